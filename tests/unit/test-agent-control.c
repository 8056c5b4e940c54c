/*
 * What is asked of the agent: each command with what it answers and what it leaves said, bodies
 * that are none, who may not be heard now, what ends by itself, and what was kept from before.
 */
#include "agent/control.h"

#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/config/load.h"
#include "agent/system/log.h"
#include "probes/probe.h"
#include "tests/unit/loop.h"
#include "tests/unit/loaded.h"

#define CONFIG                                                                                  \
	"{\"services\": {\"dns\": {\"prefixes\": {\"192.0.2.53/32\": 1, \"2001:db8::53/128\": " \
	"1}}, "                                                                                 \
	"\"web\": {\"prefixes\": {\"192.0.2.80/32\": 1}}}}\n"

static char folder[] = "/tmp/redshank-control-XXXXXX";
static char state[sizeof(folder) + 16];
static sd_event *event;
static struct config *config;
static struct control *control;
static const char *busy;
static unsigned changes, checks, reloads;
static int reload_result;
static const char *reload_problem;

static void on_changed(void *userdata)
{
	changes++;
}

static void on_check_now(void *userdata)
{
	checks++;
}

static bool reload_forced;

static int on_reload(void *userdata, bool force, struct problems *problems)
{
	reloads++;
	reload_forced = force;
	if (reload_problem)
		problems_add(problems, PROBLEM_ERROR, "%s", reload_problem);
	return reload_result;
}

static const char *is_busy(void *userdata)
{
	return busy;
}

static const char *cannot_shed;

static const char *on_cannot_shed(void *userdata)
{
	return cannot_shed;
}

static const char *weight_waits;

static const char *on_weight_waits(void *userdata)
{
	return weight_waits;
}

static void begin(void)
{
	const struct control_ops ops = {.changed = on_changed,
		.check_now = on_check_now,
		.reload = on_reload,
		.busy = is_busy,
		.cannot_shed = on_cannot_shed,
		.weight_waits = on_weight_waits};

	ck_assert_int_eq(
		control_new(&control, event, state, (const struct config *const *)&config, &ops),
		0);
}

static void setup(void)
{
	busy = reload_problem = cannot_shed = weight_waits = NULL;
	changes = checks = reloads = 0;
	reload_result = 0;
	ck_assert_int_ge(sd_event_new(&event), 0);
	config = loaded_config(CONFIG);
	begin();
}

static void teardown(void)
{
	control_free(control);
	control = NULL;
	config_free(config);
	sd_event_unref(event);
	(void)unlink(state);
}

/* The answer's `text` or `error`, valid until the next. */
static unsigned status;

static const char *ask(const char *command, const char *body)
{
	static const struct caller caller = {.pid = 7, .uid = 0, .may_change = true};
	static char said[1024];
	_cleanup_free_ char *answer =
		control_command(control, command, body, strlen(body), &caller, &status);
	json_auto_t *json = json_loads(answer ? answer : "", 0, NULL);
	const char *text =
		json_string_value(json_object_get(json, status == 200 ? "text" : "error"));

	ck_assert_msg(text != NULL, "%s %s: %u %s", command, body, status, answer);
	(void)snprintf(said, sizeof(said), "%s", text);
	return said;
}

static const struct words *words(void)
{
	return control_words(control);
}

/* Each in a world in which nothing was said yet. */
START_TEST (one_request) {
	static const struct {
		const char *command, *body;
		unsigned status;
		const char *says;
		size_t said; /* words, after it */
	} rows[] = {
		{"drain", "{\"name\": \"dns\"}", 200, "drained dns until it is undrained", 1},
		{"drain", "{\"name\": \"192.0.2.53\"}", 200, "drained 192.0.2.53/32 until", 1},
		{"drain", "{\"name\": \"2001:DB8:0::53/128\"}", 200, "drained 2001:db8::53/128", 1},
		{"drain", "{}", 200, "drained the whole server", 1},
		{"drain", "{\"name\": null, \"for\": null, \"reason\": null}", 200, "server", 1},
		{"drain", "{\"name\": \"dns\", \"for\": \"2h\"}", 200, "drained dns until 20", 1},
		{"drain", "{\"name\": \"dnz\"}", 404, "did you mean \"dns\"?", 0},
		{"drain", "{\"name\": \"192.0.2.0/24\"}", 404, "is called \"192.0.2.0/24\"", 0},
		{"drain", "{\"name\": \"dns\", \"for\": \"8785h\"}", 400, "at most 366 days", 0},
		{"drain", "{\"name\": [\"dns\"]}", 400, "name: expected", 0},
		{"drain", "{\"nmae\": \"dns\"}", 400, "did you mean \"name\"?", 0},
		{"drain", "{\"name\": \"dns\", \"name\": \"web\"}", 400, "JSON object", 0},
		{"drain", "", 400, "JSON object", 0},
		{"drain", "[]", 400, "JSON object", 0},
		{"drain", "{\"name\": \"dns\"", 400, "JSON object", 0},
		{"drain", "{\"name\": \"dns\\u0000\"}", 400, "", 0},
		{"undrain", "{\"name\": \"dns\"}", 409, "dns is not drained", 0},
		{"undrain", "{\"name\": \"x\"}", 404, "is called \"x\"", 0},
		{"announce", "{\"name\": \"dns\", \"for\": \"1h\"}", 200, "announcing dns by force",
			1},
		{"announce", "{\"name\": \"dns\", \"for\": \"24h\"}", 200, "by force until", 1},
		{"announce", "{\"name\": \"dns\", \"for\": \"25h\"}", 400, "has to end", 0},
		{"announce", "{\"name\": \"dns\"}", 400, "has to end", 0},
		{"announce", "{\"for\": \"1h\"}", 400, "the whole server is not", 0},
		{"announce", "{\"name\": \"web\", \"reset\": true}", 409, "web is not announced",
			0},
		{"weight", "{\"name\": \"192.0.2.53\", \"weight\": 65535}", 200, "weight 65535", 1},
		{"weight", "{\"name\": \"192.0.2.53\", \"weight\": 65536}", 400, "0 to 65535", 0},
		{"weight", "{\"name\": \"dns\", \"weight\": 1}", 400, "expected a prefix", 0},
		{"weight", "{\"name\": \"192.0.2.53\", \"weight\": null}", 409, "configured", 0},
		{"freeze", "", 200, "frozen until it is thawed", 1},
		{"freeze", "{\"for\": \"1h\", \"reason\": \"x\"}", 200, "frozen until 20", 1},
		{"freeze", "{\"name\": \"dns\"}", 400, "unknown key", 0},
		{"thaw", "{}", 409, "the whole server is not frozen", 0},
		{"check-now", "", 200, "every check runs now", 0},
		{"check-now", "{\"name\": \"dns\"}", 400, "unknown key", 0},
		{"reload", "", 200, "reloaded: watching 2 services", 0},
		{"reload", "{\"force\": 1}", 400, "force: expected true or false", 0},
		{"shed", "{\"name\": \"192.0.2.53\"}", 200, "when neighbours have promised", 1},
		{"shed", "{\"name\": \"192.0.2.53\", \"for\": \"1h\"}", 200, "shed until 20", 1},
		{"shed", "{\"name\": \"dns\"}", 400, "expected a prefix", 0},
		{"shed", "{}", 400, "expected a prefix", 0},
		{"shed", "{\"name\": \"192.0.2.99\"}", 404, "is called \"192.0.2.99/32\"", 0},
		{"shed", "{\"name\": \"192.0.2.53\", \"reset\": true}", 409, "not shed by", 0},
		{"shed", "{\"name\": \"192.0.2.53\", \"reset\": 1}", 400, "reset: expected", 0},
		{"unshed", "{\"name\": \"192.0.2.53\"}", 200, "not shed until it is reset", 1},
		{"unshed", "{\"name\": \"192.0.2.53\", \"reset\": true, \"for\": \"1h\"}", 400,
			"with `name` alone", 0},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		const char *says;

		teardown();
		setup();
		says = ask(rows[i].command, rows[i].body);
		ck_assert_msg(status == rows[i].status && strstr(says, rows[i].says),
			"%s %s: %u %s", rows[i].command, rows[i].body, status, says);
		ck_assert_msg(words()->n == rows[i].said, "%s", rows[i].body);
		ck_assert_uint_eq(changes, rows[i].said);
	}
}
END_TEST

/* A drain goes before an announcement by force; one of the same name ends it. */
START_TEST (what_goes_before_what) {
	(void)ask("announce", "{\"name\": \"192.0.2.53\", \"for\": \"1h\"}");
	ck_assert_str_eq(ask("drain", "{\"name\": \"dns\"}"), "drained dns until it is undrained");
	ck_assert_uint_eq(words()->n, 2);
	ck_assert_ptr_nonnull(strstr(ask("announce", "{\"name\": \"dns\", \"for\": \"1h\"}"),
		"dns is drained by root (uid 0, pid 7); a drain goes before"));
	ck_assert_uint_eq(status, 409);
	ck_assert_ptr_nonnull(
		strstr(ask("drain", "{\"name\": \"192.0.2.53\"}"), "by force no more"));
	ck_assert_ptr_null(words_find(words(), WORD_ANNOUNCE, "192.0.2.53/32"));
	(void)ask("undrain", "{\"name\": \"dns\"}");
	ck_assert_ptr_nonnull(strstr(ask("announce", "{\"name\": \"dns\", \"for\": \"1h\"}"),
		"; 1 of its 2 prefixes stay drained"));
	(void)ask("drain", "{}");
	ck_assert_str_eq(ask("undrain", "{\"name\": \"192.0.2.53\"}"),
		"undrained 192.0.2.53/32, which stays drained with the whole server");
	ck_assert_ptr_nonnull(strstr(ask("undrain", "{\"name\": \"dns\"}"),
		"dns is not drained by that name; it is with the whole server"));
	ck_assert_str_eq(ask("undrain", "{}"), "undrained the whole server");
	ck_assert_str_eq(ask("announce", "{\"name\": \"dns\", \"reset\": true}"),
		"dns is announced by force no more");
	ck_assert_uint_eq(words()->n, 0);
}
END_TEST

/* The newest of shed and unshed counts; each is taken back by its own name. */
START_TEST (shed_and_unshed) {
	(void)ask("shed", "{\"name\": \"192.0.2.53\", \"reason\": \"x\"}");
	(void)ask("unshed", "{\"name\": \"192.0.2.53/32\", \"for\": \"1h\"}");
	ck_assert_uint_eq(words()->n, 1);
	ck_assert_ptr_nonnull(words_find(words(), WORD_UNSHED, "192.0.2.53/32"));
	(void)ask("shed", "{\"name\": \"192.0.2.53\", \"reset\": true}");
	ck_assert_uint_eq(status, 409);
	(void)ask("shed", "{\"name\": \"192.0.2.53\"}");
	ck_assert_uint_eq(words()->n, 1);
	ck_assert_ptr_nonnull(words_find(words(), WORD_SHED, "192.0.2.53/32"));
	ck_assert_ptr_nonnull(strstr(
		ask("shed", "{\"name\": \"192.0.2.53\", \"reset\": true}"), "by hand no more"));
	ck_assert_uint_eq(words()->n, 0);
}
END_TEST

/* Where nothing can be shed that is said; what was said before can be taken back all the same. */
START_TEST (nothing_is_shed_here) {
	(void)ask("shed", "{\"name\": \"192.0.2.53\"}");
	cannot_shed = "nothing is shed without `neighbours`";
	ck_assert_str_eq(ask("unshed", "{\"name\": \"192.0.2.53\"}"), cannot_shed);
	ck_assert_uint_eq(status, 409);
	ck_assert_str_eq(ask("shed", "{\"name\": \"192.0.2.80\"}"), cannot_shed);
	ck_assert_uint_eq(words()->n, 1);
	(void)ask("shed", "{\"name\": \"192.0.2.53\", \"reset\": true}");
	ck_assert_uint_eq(status, 200);
	ck_assert_uint_eq(words()->n, 0);
}
END_TEST

START_TEST (who_is_not_heard) {
	busy = "the agent is stopping";
	ck_assert_str_eq(ask("drain", "{}"), "the agent is stopping");
	ck_assert_uint_eq(status, 503);
	(void)ask("check-now", "");
	(void)ask("reload", "");
	ck_assert_uint_eq(changes + checks + reloads + words()->n, 0);
}
END_TEST

START_TEST (the_others) {
	ck_assert_str_eq(ask("check-now", "{}"), "every check runs now");
	ck_assert_uint_eq(checks, 1);
	reload_result = -EINVAL;
	reload_problem = "services.dns: bad";
	ck_assert_ptr_nonnull(strstr(ask("reload", ""), "the configuration is refused"));
	ck_assert_uint_eq(status, 409);
	reload_problem = NULL;
	reload_result = -ENOMEM;
	ck_assert_ptr_nonnull(strstr(ask("reload", ""), "Cannot allocate memory; what ran"));
	ck_assert_uint_eq(reloads, 2);
	ck_assert(!reload_forced);
	(void)ask("reload", "{\"force\": true}");
	ck_assert(reload_forced);
}
END_TEST

START_TEST (what_ends_by_itself) {
	(void)ask("drain", "{\"name\": \"web\", \"for\": \"1s\"}");
	(void)ask("freeze", "{\"for\": \"1100ms\"}");
	(void)ask("announce", "{\"name\": \"dns\", \"for\": \"1200ms\"}");
	(void)ask("weight", "{\"name\": \"192.0.2.53\", \"weight\": 7}");
	ck_assert_uint_eq(words()->n, 4);
	ck_assert(LOOP_UNTIL(event, words()->n == 1, 5000));
	ck_assert_uint_ge(changes, 5); /* each end is told, at least once together */
	ck_assert_int_eq((int)words()->items[0].kind, WORD_WEIGHT);
}
END_TEST

/* Whose word it ends is said, and that a weight is not in BIRD yet. */
START_TEST (the_whole_truth) {
	ck_assert_str_eq(ask("drain", "{\"name\": \"web\", \"reason\": \"new disks\"}"),
		"drained web until it is undrained");
	ck_assert_str_eq(ask("drain", "{\"name\": \"web\"}"),
		"drained web until it is undrained; this replaces what root (uid 0, pid 7) said, "
		"until it is undrained: new disks");
	weight_waits = "BIRD is away";
	ck_assert_str_eq(ask("weight", "{\"name\": \"192.0.2.53\", \"weight\": 7}"),
		"192.0.2.53/32 has weight 7 until it is reset; NOT YET: BIRD is away, and what it "
		"announces stays as it is");
}
END_TEST

/* Said anew, it has a new end. */
START_TEST (the_newest_end_counts) {
	(void)ask("drain", "{\"name\": \"web\", \"for\": \"30ms\"}");
	(void)ask("drain", "{\"name\": \"web\", \"for\": \"1h\", \"reason\": \"longer\"}");
	LOOP_FOR(event, 80);
	ck_assert_uint_eq(words()->n, 1);
	ck_assert_str_eq(words()->items[0].reason, "longer");
	ck_assert_str_eq(words()->items[0].who, "root (uid 0, pid 7)");
}
END_TEST

/* The next agent hears what was said, but for what has ended meanwhile. */
START_TEST (what_is_kept) {
	(void)ask("drain", "{\"name\": \"web\", \"reason\": \"disks \\u001b[31m\"}");
	(void)ask("freeze", "{}");
	(void)ask("announce", "{\"name\": \"dns\", \"for\": \"20ms\"}");
	control_free(control);
	LOOP_FOR(event, 40);
	begin();
	ck_assert_uint_eq(words()->n, 2);
	ck_assert_ptr_nonnull(words_find(words(), WORD_FREEZE, ""));
	ck_assert_str_eq(words_find(words(), WORD_DRAIN, "web")->reason, "disks \\x1b[31m");
	ck_assert_str_eq(ask("thaw", ""), "thawed: the checks decide again");
	ck_assert_str_eq(control_state_error(control), "");
}
END_TEST

START_TEST (no_more_than_there_is_room_for) {
	struct words *full = (struct words *)words();
	struct word word = {.kind = WORD_DRAIN, .until = WORDS_FOREVER};

	for (int i = 0; i < WORDS_MAX; i++) {
		(void)snprintf(word.name, sizeof(word.name), "s%d", i);
		ck_assert_int_eq(words_put(full, &word), 0);
	}
	ck_assert_ptr_nonnull(strstr(ask("drain", "{\"name\": \"web\"}"), "at most 256 words"));
	ck_assert_uint_eq(status, 507);
}
END_TEST

/* Any bytes: an answer that is JSON, and nothing said. */
START_TEST (any_bytes) {
	static const char alphabet[] = "{}[]\":,name for1h\\u0\x80\xff\n\t -";
	unsigned seed = 1;

	for (int i = 0; i < 4000; i++) {
		char body[64];
		size_t n = (size_t)i % (sizeof(body) - 1);
		const char *command = control_commands[i % 5];

		for (size_t k = 0; k < n; k++) {
			seed = seed * 1103515245U + 12345U;
			body[k] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
		}
		body[n] = '\0';
		(void)ask(command, body);
	}
	for (size_t i = 0; i < words()->n; i++)
		ck_assert_int_eq((int)words()->items[i].kind, WORD_FREEZE); /* of an empty body */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("agent-control");
	TCase *tc = tcase_create("all");
	SRunner *runner;
	int failed;

	if (!mkdtemp(folder))
		return 1;
	(void)snprintf(state, sizeof(state), "%s/s.json", folder);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, one_request);
	tcase_add_test(tc, what_goes_before_what);
	tcase_add_test(tc, shed_and_unshed);
	tcase_add_test(tc, nothing_is_shed_here);
	tcase_add_test(tc, who_is_not_heard);
	tcase_add_test(tc, the_others);
	tcase_add_test(tc, what_ends_by_itself);
	tcase_add_test(tc, the_whole_truth);
	tcase_add_test(tc, the_newest_end_counts);
	tcase_add_test(tc, what_is_kept);
	tcase_add_test(tc, no_more_than_there_is_room_for);
	tcase_add_test(tc, any_bytes);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	(void)rmdir(folder);
	return failed ? 1 : 0;
}
