/* Repairs against a systemd that does as it is told: what is ordered, what each answer comes to,
 * and that no answer at all stops nothing. */
#include "agent/repair_keep.h"

#include <sys/stat.h>

#include "agent/system/log.h"
#include "agent/view.h"
#include "tests/unit/fake-systemd.h"
#include "tests/unit/loaded.h"

static sd_event *event;
static struct fake_systemd fake;
static struct units *units;
static struct engine *engine;
static struct config *config;
static struct repairs *repairs;
static char folder[64];

#define RESTART "{\"unit\": \"nsd.service\", \"delay\": \"0ms\", \"limit\": 2, \"per\": \"1h\"}"

#define CHECK(name)                                                                       \
	"\"" name "\": {\"type\": \"process\", \"unit\": \"nsd.service\", \"interval\": " \
	"\"10ms\", \"fast_interval\": \"10ms\", \"timeout\": \"10ms\", \"rise\": 1}"

static const char *checks = CHECK("process");

static struct config *load(const char *restart)
{
	char text[4096];

	ck_assert_int_lt(
		snprintf(text, sizeof(text),
			"{\"bird\": {\"fragments\": \"%s\"}, \"services\": {\"dns\": "
			"{\"prefixes\": {\"192.0.2.53/32\": 1}, \"checks\": {%s}%s%s}}}\n",
			folder, checks, restart ? ", \"restart\": " : "", restart ? restart : ""),
		(int)sizeof(text));
	return loaded_config(text);
}

static void setup_with(const char *restart)
{
	struct engine_change *change;

	config = load(restart);
	engine = engine_new();
	ck_assert_ptr_nonnull(engine);
	ck_assert_int_eq(view_prepare(config, false, &change), 0);
	engine_commit(engine, change);
	ck_assert_int_eq(repairs_new(&repairs, event, units, engine, config), 0);
}

static void setup(void)
{
	log_init(LOG_CRIT, true);
	checks = CHECK("process");
	(void)snprintf(folder, sizeof(folder), "/tmp/redshank-repair-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_ge(sd_event_new(&event), 0);
	fake_init(&fake);
	fake.units[0] = (struct fake_unit){
		"nsd.service", "loaded", "failed", "failed", "signal", 0, 0, 20, 31, 15, 30};
	fake_bus_start(&fake);
	fake_join(&fake, event);
	ck_assert_int_eq(units_new(&units, event, fake.address), 0);
	setup_with(RESTART);
}

static void teardown(void)
{
	char command[128];

	repairs_free(repairs);
	engine_free(engine);
	config_free(config);
	units_free(units);
	fake_done(&fake);
	event = sd_event_unref(event);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	(void)!system(command);
}

static void speak(enum check_outcome outcome)
{
	engine_check_spoke(engine, 0, 0, outcome, clock_monotime());
	(void)engine_decide(engine, clock_monotime());
	repairs_look(repairs);
}

static struct repair_view view(void)
{
	struct repair_view v;

	ck_assert(repairs_view(repairs, 0, &v));
	return v;
}

static bool is_in(enum repair_state state)
{
	return view().repair->state == state;
}

static uint64_t next_ms(void)
{
	return monotime_since_us(clock_monotime(), view().repair->next) / 1000;
}

/* The bus is there: from the first look on it is asked, and tried again. */
static void connect_bus(void)
{
	ck_assert(LOOP_UNTIL(event, fake.subscribed > 0, 3000));
}

START_TEST (a_failed_unit_is_started) {
	connect_bus();
	speak(CHECK_OUTCOME_GONE);
	ck_assert_uint_eq(fake.asked, 0); /* nothing yet: a withdrawal may be due */
	ck_assert(LOOP_UNTIL(event, fake.started == 1, 3000));
	ck_assert_str_eq(fake.ordered, "nsd.service");
	ck_assert_str_eq(fake.mode, "fail");
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_RESTARTING), 1000));
	LOOP_FOR(event, 50); /* the job's name has come */
	fake_end_job(&fake, "done");
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_WAITING), 3000));
	ck_assert_int_eq(view().repair->last_result, REPAIR_RESULT_DONE);
	ck_assert_uint_eq(view().results[REPAIR_RESULT_DONE], 1);
	ck_assert_uint_gt(next_ms(), 1000);
	speak(CHECK_OUTCOME_GOOD);
	ck_assert(is_in(REPAIR_STATE_IDLE));
	ck_assert_uint_eq(fake.started, 1);
}
END_TEST

START_TEST (one_that_runs_is_restarted) {
	fake.units[0] = (struct fake_unit){
		"nsd.service", "loaded", "active", "running", "success", 7, 0, 20, 10, 15, 12};
	connect_bus();
	speak(CHECK_OUTCOME_BAD);
	ck_assert(LOOP_UNTIL(event, fake.restarted == 1, 3000));
	ck_assert_str_eq(fake.mode, "fail");
	ck_assert_uint_eq(fake.started, 0);
}
END_TEST

/* A check that was up all the while has proved what the process before did; what systemd did not
 * do takes nothing back. */
START_TEST (a_restart_takes_back_what_was_proved) {
	const char *ends[] = {"failed", "done"};

	repairs_free(repairs);
	engine_free(engine);
	config_free(config);
	checks = CHECK("a") ", " CHECK("b");
	setup_with("{\"unit\": \"nsd.service\", \"delay\": \"0ms\", \"limit\": 2, \"per\": \"1h\", "
		   "\"checks\": [\"a\"]}");
	fake.units[0] = (struct fake_unit){
		"nsd.service", "loaded", "active", "running", "success", 7, 0, 20, 10, 15, 12};
	connect_bus();
	engine_check_spoke(engine, 0, 1, CHECK_OUTCOME_GOOD, clock_monotime());
	speak(CHECK_OUTCOME_BAD);
	ck_assert(LOOP_UNTIL(event, fake.restarted == 1, 3000));
	LOOP_FOR(event, 50);
	fake_end_job(&fake, ends[_i]);
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_WAITING), 3000));
	ck_assert_int_eq(engine_check(engine, 0, 1)->state, _i ? CHECK_STATE_DOWN : CHECK_STATE_UP);
	speak(CHECK_OUTCOME_GOOD);
	ck_assert_int_eq(
		engine_health(engine, 0), _i ? SERVICE_HEALTH_UNHEALTHY : SERVICE_HEALTH_HEALTHY);
	engine_check_spoke(engine, 0, 1, CHECK_OUTCOME_GOOD, clock_monotime());
	(void)engine_decide(engine, clock_monotime());
	ck_assert_int_eq(engine_health(engine, 0), SERVICE_HEALTH_HEALTHY);
}
END_TEST

/* What systemd answers or says of the job, and what it comes to. */
START_TEST (what_came_of_it) {
	static const struct {
		const char *error, *end;
		enum repair_result result;
		enum repair_state state;
	} rows[] = {
		{NULL, "failed", REPAIR_RESULT_FAILED, REPAIR_STATE_WAITING},
		{NULL, "dependency", REPAIR_RESULT_FAILED, REPAIR_STATE_WAITING},
		{NULL, "timeout", REPAIR_RESULT_TIMED_OUT, REPAIR_STATE_WAITING},
		{NULL, "canceled", REPAIR_RESULT_CANCELLED, REPAIR_STATE_WAITING},
		{NULL, "skipped", REPAIR_RESULT_REFUSED, REPAIR_STATE_WAITING},
		{SD_BUS_ERROR_ACCESS_DENIED, NULL, REPAIR_RESULT_DENIED, REPAIR_STATE_DENIED},
		{SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, NULL, REPAIR_RESULT_DENIED,
			REPAIR_STATE_DENIED},
		{"org.freedesktop.systemd1.NoSuchUnit", NULL, REPAIR_RESULT_MISSING,
			REPAIR_STATE_MISSING},
		{"org.freedesktop.systemd1.UnitMasked", NULL, REPAIR_RESULT_MISSING,
			REPAIR_STATE_MISSING},
		{"org.freedesktop.systemd1.TransactionIsDestructive", NULL, REPAIR_RESULT_REFUSED,
			REPAIR_STATE_WAITING},
	};
	size_t i = (size_t)_i;

	ck_assert_uint_lt(i, ELEMENTSOF(rows));
	fake.error = rows[i].error;
	connect_bus();
	speak(CHECK_OUTCOME_GONE);
	ck_assert(LOOP_UNTIL(event, fake.started == 1, 3000));
	if (rows[i].end) {
		LOOP_FOR(event, 50);
		fake_end_job(&fake, rows[i].end);
	}
	ck_assert(LOOP_UNTIL(event, is_in(rows[i].state), 3000));
	ck_assert_int_eq(view().repair->last_result, rows[i].result);
	ck_assert_uint_eq(view().results[rows[i].result], 1);
	/* However often the checks speak, it is not tried before its time. */
	for (int k = 0; k < 100; k++) {
		speak(CHECK_OUTCOME_BAD);
		(void)sd_event_run(event, 0);
	}
	LOOP_FOR(event, 100);
	ck_assert_uint_eq(fake.started, 1);
	ck_assert_uint_gt(next_ms(), 500);
}
END_TEST
#define N_CAME 10

START_TEST (left_alone) {
	static const struct {
		struct fake_unit unit;
		enum repair_state state;
	} rows[] = {
		{{"nsd.service", "loaded", "inactive", "dead", "success", 0, 0, 20, 30, 15, 31},
			REPAIR_STATE_STOPPED},
		{{"nsd.service", "loaded", "failed", "failed", "exit-code", 0, 0, 20, 30, 15, 31},
			REPAIR_STATE_STOPPED},
		{{"nsd.service", "loaded", "failed", "failed", "signal", 0, 9, 20, 31, 15, 30},
			REPAIR_STATE_LEFT},
		{{"nsd.service", "loaded", "activating", "auto-restart", "signal", 0, 0, 20, 31, 15,
			 30},
			REPAIR_STATE_LEFT},
		{{"nsd.service", "not-found", "inactive", "dead", "success", 0, 0, 0, 0, 0, 0},
			REPAIR_STATE_MISSING},
		{{"nsd.service", "masked", "inactive", "dead", "success", 0, 0, 0, 0, 0, 0},
			REPAIR_STATE_MISSING},
		{{NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0}, REPAIR_STATE_MISSING},
	};

	ck_assert_uint_lt((size_t)_i, ELEMENTSOF(rows));
	fake.units[0] = rows[_i].unit;
	connect_bus();
	speak(CHECK_OUTCOME_GONE);
	ck_assert(LOOP_UNTIL(event, is_in(rows[_i].state), 3000));
	LOOP_FOR(event, 100);
	ck_assert_uint_eq(fake.started + fake.restarted, 0);
	ck_assert_uint_eq(repair_attempts(view().repair, clock_monotime()), 0);
}
END_TEST
#define N_LEFT 7

START_TEST (a_systemd_that_hangs) {
	connect_bus();
	ck_assert_int_eq(kill(fake.daemon, SIGSTOP), 0);
	speak(CHECK_OUTCOME_GONE);
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_ASKING), 1000));
	/* A call is given up after 5 s; nothing waits for it meanwhile. */
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_UNKNOWN), 8000));
	ck_assert_uint_eq(repair_attempts(view().repair, clock_monotime()), 0);
	ck_assert_int_eq(kill(fake.daemon, SIGCONT), 0);
	ck_assert(LOOP_UNTIL(event, fake.started == 1, 5000));
}
END_TEST

START_TEST (the_bus_goes_away_in_the_middle) {
	connect_bus();
	fake.silent = true;
	speak(CHECK_OUTCOME_GONE);
	ck_assert(LOOP_UNTIL(event, fake.started == 1, 3000));
	fake_leave(&fake);
	fake_bus_stop(&fake);
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_WAITING), 3000));
	ck_assert_int_eq(view().repair->last_result, REPAIR_RESULT_UNANSWERED);
	ck_assert_uint_eq(repair_attempts(view().repair, clock_monotime()), 1);
	fake.silent = false;
	fake_bus_start(&fake);
	fake_join(&fake, event);
	ck_assert(LOOP_UNTIL(event, fake.started == 2, 8000));
}
END_TEST

START_TEST (without_a_bus) {
	fake_leave(&fake);
	fake_bus_stop(&fake);
	speak(CHECK_OUTCOME_GONE);
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_UNKNOWN), 3000));
	fake_bus_start(&fake);
	fake_join(&fake, event);
	ck_assert(LOOP_UNTIL(event, fake.started == 1, 8000));
}
END_TEST

/* Whatever is under way when the agent begins to leave, and however that is answered later. */
START_TEST (a_leaving_agent_begins_nothing) {
	static const struct {
		const char *what;
		enum repair_state state;
		unsigned started; /* before it leaves */
	} rows[] = {
		{"nothing asked yet", REPAIR_STATE_ASKING, 0},
		{"asked, not answered", REPAIR_STATE_ASKING, 0},
		{"a bus that hangs answers later", REPAIR_STATE_ASKING, 0},
		{"no bus, and it comes", REPAIR_STATE_UNKNOWN, 0},
		{"ordered, not answered", REPAIR_STATE_RESTARTING, 1},
		{"the job fails later", REPAIR_STATE_RESTARTING, 1},
		{"the job has failed: a pause", REPAIR_STATE_WAITING, 1},
		{"left to systemd", REPAIR_STATE_LEFT, 0},
	};
	int i = _i;

	ck_assert_uint_lt((size_t)i, ELEMENTSOF(rows));
	fake.silent = i == 4;
	if (i == 3) {
		fake_leave(&fake);
		fake_bus_stop(&fake);
	} else {
		connect_bus();
	}
	if (i == 7)
		fake.units[0].job = 9;
	if (i == 2)
		ck_assert_int_eq(kill(fake.daemon, SIGSTOP), 0);
	speak(CHECK_OUTCOME_GONE);
	if (i == 6)
		ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_RESTARTING), 3000));
	else if (i > 0)
		ck_assert(LOOP_UNTIL(
			event, is_in(rows[i].state) && fake.started == rows[i].started, 3000));
	if (i == 1)
		ck_assert(LOOP_UNTIL(event, fake.asked > 0, 3000));
	if (i == 2 || i == 5 || i == 6)
		LOOP_FOR(event, 50); /* the question has left, or the job's name has come */
	if (i == 6) {
		fake_end_job(&fake, "failed");
		ck_assert(LOOP_UNTIL(event, is_in(rows[i].state), 3000));
	}
	ck_assert_msg(is_in(rows[i].state), "%s: %s", rows[i].what,
		repair_state_name(view().repair->state));
	repairs_stop(repairs);
	if (i == 2)
		ck_assert_int_eq(kill(fake.daemon, SIGCONT), 0);
	if (i == 3) {
		fake_bus_start(&fake);
		fake_join(&fake, event);
	}
	if (i == 5)
		fake_end_job(&fake, "failed");
	fake.units[0].job = 0;
	fake.silent = false;
	LOOP_FOR(event, 1500); /* longer than the first pause */
	speak(CHECK_OUTCOME_BAD);
	LOOP_FOR(event, 100);
	ck_assert_msg(fake.started == rows[i].started && fake.restarted == 0,
		"%s: %u starts, %u restarts", rows[i].what, fake.started, fake.restarted);
}
END_TEST
#define N_LEAVING 8

/* As agent_reload.c does it. */
static void reload(const char *restart)
{
	struct config *new = load(restart), *old = config;
	struct engine_change *change;
	struct repairs_change *ours;

	ck_assert_int_eq(view_prepare(new, false, &change), 0);
	ck_assert_int_eq(repairs_prepare(repairs, new, &ours), 0);
	engine_commit(engine, change);
	config = new;
	repairs_commit(repairs, new, ours);
	config_free(old);
	(void)engine_decide(engine, clock_monotime());
	repairs_look(repairs);
}

START_TEST (a_reload_in_the_middle) {
	struct repair_view v;

	connect_bus();
	speak(CHECK_OUTCOME_GONE);
	ck_assert(LOOP_UNTIL(event, fake.started == 1, 3000));
	LOOP_FOR(event, 50);
	/* The same: the job is still ours. */
	reload("{\"unit\": \"nsd.service\", \"delay\": \"0ms\", \"limit\": 2, \"per\": \"1h\"}");
	ck_assert(is_in(REPAIR_STATE_RESTARTING));
	fake_end_job(&fake, "failed");
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_WAITING), 3000));
	ck_assert_uint_eq(view().results[REPAIR_RESULT_FAILED], 1);
	/* Another limit: the attempts count on. */
	reload("{\"unit\": \"nsd.service\", \"delay\": \"0ms\", \"limit\": 1, \"per\": \"1h\"}");
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_EXHAUSTED), 5000));
	ck_assert_uint_eq(fake.started, 1);
	ck_assert_uint_eq(view().results[REPAIR_RESULT_FAILED], 1);
	/* Taken out of the configuration: nothing is left of it. */
	reload(NULL);
	ck_assert(!repairs_view(repairs, 0, &v));
	LOOP_FOR(event, 50);
}
END_TEST

START_TEST (another_unit_begins_anew) {
	connect_bus();
	speak(CHECK_OUTCOME_GONE);
	ck_assert(LOOP_UNTIL(event, fake.started == 1, 3000));
	LOOP_FOR(event, 50);
	fake_end_job(&fake, "failed");
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_WAITING), 3000));
	reload("{\"unit\": \"unbound.service\", \"delay\": \"1h\", \"limit\": 2, \"per\": \"1h\"}");
	ck_assert_str_eq(view().unit, "unbound.service");
	for (int i = 0; i < REPAIR_N_RESULTS; i++)
		ck_assert_uint_eq(view().results[i], 0);
	ck_assert_int_eq(view().repair->last_result, REPAIR_RESULT_NONE);
	ck_assert_uint_eq(repair_attempts(view().repair, clock_monotime()), 0);
}
END_TEST

#define RESTART_OF(check)                                   \
	"{\"unit\": \"nsd.service\", \"checks\": [\"" check \
	"\"], \"delay\": \"0ms\", \"limit\": 2, "           \
	"\"per\": \"1h\"}"

static void until_restarting(void)
{
	checks = CHECK("process") ", " CHECK("answers");
	reload(RESTART_OF("process"));
	connect_bus();
	speak(CHECK_OUTCOME_GONE);
	ck_assert(LOOP_UNTIL(event, fake.started == 1, 3000));
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_RESTARTING), 1000));
	LOOP_FOR(event, 50);
}

/* A check is its name, not its place: the job is still ours, and what it waits for is the check
 * that has moved. */
START_TEST (a_check_that_moved_triggers_on) {
	until_restarting();
	checks = CHECK("answers") ", " CHECK("process");
	reload(RESTART_OF("process"));
	ck_assert(is_in(REPAIR_STATE_RESTARTING));
	fake_end_job(&fake, "done");
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_WAITING), 3000));
	ck_assert_uint_eq(view().results[REPAIR_RESULT_DONE], 1);
	speak(CHECK_OUTCOME_GOOD); /* the first is another one now */
	ck_assert(is_in(REPAIR_STATE_WAITING));
	engine_check_spoke(engine, 0, 1, CHECK_OUTCOME_GOOD, clock_monotime());
	repairs_look(repairs);
	ck_assert(is_in(REPAIR_STATE_IDLE));
}
END_TEST

START_TEST (another_check_in_its_place_is_another) {
	until_restarting();
	checks = CHECK("answers") ", " CHECK("process");
	reload(RESTART_OF("answers"));
	ck_assert(is_in(REPAIR_STATE_IDLE)); /* it has not spoken */
	ck_assert_uint_eq(repair_attempts(view().repair, clock_monotime()), 1);
	speak(CHECK_OUTCOME_GONE);
	ck_assert(is_in(REPAIR_STATE_WAITING) || is_in(REPAIR_STATE_ASKING));
}
END_TEST

/* ---- another life ---- */

static void another_life(void)
{
	repairs_free(repairs);
	engine_free(engine);
	config_free(config);
	setup_with(RESTART);
}

static size_t attempts(void)
{
	return repair_attempts(view().repair, clock_monotime());
}

/* Another folder takes a restart: the fragments and all that lies beside them stay where they are.
 */
START_TEST (attempts_stay_in_the_folder_of_the_start) {
	char start[sizeof(folder)];

	memcpy(start, folder, sizeof(folder));
	strcat(folder, "/new");
	ck_assert_int_eq(mkdir(folder, 0755), 0);
	reload(RESTART);
	connect_bus();
	speak(CHECK_OUTCOME_GONE);
	ck_assert(LOOP_UNTIL(event, fake.started == 1, 3000));
	ck_assert_int_eq(rmdir(folder), 0); /* it is empty */
	memcpy(folder, start, sizeof(folder));
	another_life();
	ck_assert_uint_eq(attempts(), 1);
}
END_TEST

static void kept(const char *text)
{
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/" REPAIR_KEEP_FILE, folder);
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

/* One that crashes as soon as it has ordered a restart, again and again: `limit` in all its
 * lives.
 */
START_TEST (a_crash_loop_restarts_no_more_than_the_limit) {
	for (unsigned life = 0; life < 6; life++) {
		unsigned before = fake.started;

		speak(CHECK_OUTCOME_GONE);
		ck_assert(LOOP_UNTIL(event,
			is_in(REPAIR_STATE_RESTARTING) || is_in(REPAIR_STATE_EXHAUSTED), 3000));
		if (is_in(REPAIR_STATE_RESTARTING))
			ck_assert(LOOP_UNTIL(event, fake.started > before, 3000));
		ck_assert_uint_eq(attempts(), life < 2 ? life + 1 : 2);
		another_life();
	}
	ck_assert_uint_eq(fake.started, 2);
	speak(CHECK_OUTCOME_GONE);
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_EXHAUSTED), 3000));
}
END_TEST

START_TEST (denied_is_not_kept) {
	connect_bus();
	fake.error = SD_BUS_ERROR_ACCESS_DENIED;
	speak(CHECK_OUTCOME_GONE);
	ck_assert(LOOP_UNTIL(event, is_in(REPAIR_STATE_DENIED), 3000));
	another_life();
	ck_assert_uint_eq(attempts(), 0);
}
END_TEST

/* Of another boot, another unit, the future, out of order, or no such file at all: counts
 * for nothing. */
START_TEST (what_is_not_ours_counts_for_nothing) {
	unsigned long long now_us = clock_monotime().us;
	char boot[64] = "", text[512];
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	ck_assert_int_eq(fscanf(f, "%63s", boot), 1);
	(void)fclose(f);
#define KEPT(lines)                                                                              \
	((void)snprintf(text, sizeof(text), "redshank-restarts 1 %s\n" lines, boot), kept(text), \
		another_life())
	KEPT("dns nsd.service 1 2\n");
	ck_assert_uint_eq(attempts(), clock_monotime().us < 3600000000 ? 2 : 0);
	(void)snprintf(text, sizeof(text), "redshank-restarts 1 %s\ndns nsd.service %llu %llu\n",
		boot, now_us - 2, now_us - 1);
	kept(text);
	another_life();
	ck_assert_uint_eq(attempts(), 2); /* and this is what else would be counted */
	memcpy(text + strlen("redshank-restarts 1 "), "another-", 8);
	kept(text);
	another_life();
	ck_assert_uint_eq(attempts(), 0);
	KEPT("dns other.service 1000000\nweb nsd.service 1000000\n");
	ck_assert_uint_eq(attempts(), 0);
	KEPT("dns nsd.service 18446744073709551615 -1 x\n\n \ndns\ndns nsd.service\n");
	ck_assert_uint_eq(attempts(), 0);
	kept("");
	another_life();
	kept("\n\n");
	another_life();
	ck_assert_uint_eq(attempts(), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("agent-repair");
	TCase *tc = tcase_create("repair");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, a_failed_unit_is_started);
	tcase_add_test(tc, one_that_runs_is_restarted);
	tcase_add_loop_test(tc, a_restart_takes_back_what_was_proved, 0, 2);
	tcase_add_loop_test(tc, what_came_of_it, 0, N_CAME);
	tcase_add_loop_test(tc, left_alone, 0, N_LEFT);
	tcase_add_test(tc, a_systemd_that_hangs);
	tcase_add_test(tc, the_bus_goes_away_in_the_middle);
	tcase_add_test(tc, without_a_bus);
	tcase_add_loop_test(tc, a_leaving_agent_begins_nothing, 0, N_LEAVING);
	tcase_add_test(tc, a_reload_in_the_middle);
	tcase_add_test(tc, another_unit_begins_anew);
	tcase_add_test(tc, a_check_that_moved_triggers_on);
	tcase_add_test(tc, another_check_in_its_place_is_another);
	tcase_add_test(tc, a_crash_loop_restarts_no_more_than_the_limit);
	tcase_add_test(tc, attempts_stay_in_the_folder_of_the_start);
	tcase_add_test(tc, denied_is_not_kept);
	tcase_add_test(tc, what_is_not_ours_counts_for_nothing);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
