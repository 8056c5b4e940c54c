/* When a unit is restarted and when it is not: the judgement of systemd's properties as a table,
 * then stories. */
#include "agent/core/repair.h"

#include <check.h>
#include <stdlib.h>

#define DELAY 1000
#define PER 60000
#define LIMIT 3
#define SETTLE 3000

static struct repair repair;
static struct monotime now;

static void setup_with(uint64_t delay_ms, uint64_t settle_ms)
{
	const struct repair_settings settings = {
		.delay_ms = delay_ms, .per_ms = PER, .limit = LIMIT, .settle_ms = settle_ms};

	now = (struct monotime){1000000};
	ck_assert_int_eq(repair_init(&repair, &settings, now), 0);
}

static void setup(void)
{
	setup_with(DELAY, SETTLE);
}

static void teardown(void)
{
	repair_done_with(&repair);
}

/* ---- the unit ---- */

START_TEST (units) {
	static const struct {
		const char *what;
		struct repair_properties p;
		enum repair_unit unit;
	} rows[] = {
		{"runs", {"loaded", "active", "running", "success", false, 20, 10, 15, 12},
			REPAIR_UNIT_ACTIVE},
		{"has a job", {"loaded", "active", "running", "success", true, 20, 10, 15, 12},
			REPAIR_UNIT_BUSY},
		{"failed, start queued",
			{"loaded", "failed", "failed", "signal", true, 20, 40, 15, 39},
			REPAIR_UNIT_BUSY},
		{"starts", {"loaded", "activating", "start-pre", "success", false, 0, 0, 0, 0},
			REPAIR_UNIT_BUSY},
		{"reloads", {"loaded", "reloading", "reload", "success", false, 20, 10, 15, 12},
			REPAIR_UNIT_BUSY},
		{"is being stopped",
			{"loaded", "deactivating", "stop-sigterm", "success", true, 20, 30, 15, 12},
			REPAIR_UNIT_BUSY},
		{"is restarted by systemd",
			{"loaded", "activating", "auto-restart", "signal", false, 20, 31, 15, 30},
			REPAIR_UNIT_BUSY},
		{"the same, newer systemd",
			{"loaded", "failed", "failed-before-auto-restart", "signal", false, 20, 31,
				15, 30},
			REPAIR_UNIT_BUSY},
		{"killed: the process ended before the unit left `active`",
			{"loaded", "failed", "failed", "signal", false, 20, 31, 15, 30},
			REPAIR_UNIT_FAILED},
		{"the same instant",
			{"loaded", "failed", "failed", "signal", false, 20, 30, 15, 30},
			REPAIR_UNIT_FAILED},
		{"exit 1", {"loaded", "failed", "failed", "exit-code", false, 20, 31, 15, 30},
			REPAIR_UNIT_FAILED},
		{"never started well",
			{"loaded", "failed", "failed", "exit-code", false, 0, 0, 15, 30},
			REPAIR_UNIT_FAILED},
		{"ran, and then did not start again",
			{"loaded", "failed", "failed", "exit-code", false, 20, 31, 40, 50},
			REPAIR_UNIT_FAILED},
		{"cannot be executed",
			{"loaded", "failed", "failed", "resources", false, 0, 0, 0, 0},
			REPAIR_UNIT_FAILED},
		{"stopped", {"loaded", "inactive", "dead", "success", false, 20, 30, 15, 31},
			REPAIR_UNIT_STOPPED},
		{"never started", {"loaded", "inactive", "dead", "success", false, 0, 0, 0, 0},
			REPAIR_UNIT_STOPPED},
		{"ended with success",
			{"loaded", "inactive", "dead", "success", false, 20, 31, 15, 30},
			REPAIR_UNIT_STOPPED},
		{"stopped, with an exit status",
			{"loaded", "failed", "failed", "exit-code", false, 20, 30, 15, 31},
			REPAIR_UNIT_STOPPED},
		{"stopped, and had to be killed",
			{"loaded", "failed", "failed", "timeout", false, 20, 30, 15, 99},
			REPAIR_UNIT_STOPPED},
		{"hung, as its watchdog found",
			{"loaded", "failed", "failed", "watchdog", false, 20, 30, 15, 31},
			REPAIR_UNIT_FAILED},
		{"out of memory", {"loaded", "failed", "failed", "oom-kill", false, 20, 30, 15, 31},
			REPAIR_UNIT_FAILED},
		{"systemd gave up",
			{"loaded", "failed", "failed", "start-limit-hit", false, 20, 30, 15, 31},
			REPAIR_UNIT_FAILED},
		{"unknown", {"not-found", "inactive", "dead", "success", false, 0, 0, 0, 0},
			REPAIR_UNIT_MISSING},
		{"masked", {"masked", "inactive", "dead", "success", false, 0, 0, 0, 0},
			REPAIR_UNIT_MISSING},
		{"wrongly written",
			{"bad-setting", "inactive", "dead", "success", false, 0, 0, 0, 0},
			REPAIR_UNIT_MISSING},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(repair_judge(&rows[i].p) == rows[i].unit, "%s", rows[i].what);
}
END_TEST

START_TEST (triggers) {
	const struct check_settings settings = {
		.interval_ms = 1000, .fast_interval_ms = 1000, .rise = 2, .fall = 2};
	struct check c;

	check_init(&c, &settings, now);
	ck_assert_int_eq(repair_trigger_of(&c), REPAIR_TRIGGER_UP);
	/* Found withdrawn: it counts as down until it has risen, and nothing is wrong. */
	ck_assert(check_take(&c, CHECK_OUTCOME_GOOD, false, now));
	ck_assert_int_eq(c.state, CHECK_STATE_DOWN);
	ck_assert_int_eq(repair_trigger_of(&c), REPAIR_TRIGGER_RISING);
	(void)check_take(&c, CHECK_OUTCOME_BAD, false, now);
	ck_assert_int_eq(repair_trigger_of(&c), REPAIR_TRIGGER_DOWN);
	(void)check_take(&c, CHECK_OUTCOME_UNKNOWN, false, now);
	ck_assert_int_eq(repair_trigger_of(&c), REPAIR_TRIGGER_RISING);
	(void)check_take(&c, CHECK_OUTCOME_GONE, false, now);
	ck_assert_int_eq(repair_trigger_of(&c), REPAIR_TRIGGER_DOWN);
	ck_assert_int_eq(
		repair_trigger_worse(REPAIR_TRIGGER_UP, REPAIR_TRIGGER_DOWN), REPAIR_TRIGGER_DOWN);
	ck_assert_int_eq(repair_trigger_worse(REPAIR_TRIGGER_RISING, REPAIR_TRIGGER_UP),
		REPAIR_TRIGGER_RISING);
}
END_TEST

/* ---- stories ---- */

static enum repair_do step(enum repair_trigger trigger, bool held)
{
	const struct repair_facts facts = {trigger, held};

	return repair_step(&repair, &facts, now);
}

static enum repair_do down(void)
{
	return step(REPAIR_TRIGGER_DOWN, false);
}

static void pass(uint64_t ms)
{
	now = monotime_add_ms(now, ms);
}

static uint64_t due_ms(void)
{
	ck_assert(!monotime_is_never(repair_deadline(&repair)));
	return monotime_since_us(now, repair_deadline(&repair)) / 1000;
}

/* Down, and asked after the delay. */
static void begin(void)
{
	ck_assert_int_eq(down(), REPAIR_DO_NOTHING);
	pass(due_ms());
	ck_assert_int_eq(down(), REPAIR_DO_ASK);
}

START_TEST (waits_asks_starts_and_rests) {
	ck_assert_int_eq(repair.state, REPAIR_STATE_IDLE);
	ck_assert(monotime_is_never(repair_deadline(&repair)));
	ck_assert_int_eq(down(), REPAIR_DO_NOTHING);
	ck_assert_int_eq(repair.state, REPAIR_STATE_WAITING);
	ck_assert_uint_eq(due_ms(), DELAY);
	pass(DELAY - 1);
	ck_assert_int_eq(down(), REPAIR_DO_NOTHING);
	pass(1);
	ck_assert_int_eq(down(), REPAIR_DO_ASK);
	ck_assert_int_eq(down(), REPAIR_DO_NOTHING); /* once */
	ck_assert_int_eq(repair_found(&repair, REPAIR_UNIT_FAILED, 0, now), REPAIR_DO_START);
	ck_assert_int_eq(repair.state, REPAIR_STATE_RESTARTING);
	ck_assert_uint_eq(repair_attempts(&repair, now), 1);
	pass(50);
	repair_done(&repair, REPAIR_RESULT_DONE, now);
	ck_assert_int_eq(repair.last_result, REPAIR_RESULT_DONE);
	ck_assert_uint_eq(due_ms(), SETTLE); /* longer than twice the delay */
	ck_assert_int_eq(step(REPAIR_TRIGGER_RISING, false), REPAIR_DO_NOTHING);
	ck_assert(monotime_is_never(repair_deadline(&repair)));
	pass(10 * SETTLE);
	ck_assert_int_eq(step(REPAIR_TRIGGER_RISING, false), REPAIR_DO_NOTHING);
	ck_assert_int_eq(step(REPAIR_TRIGGER_UP, false), REPAIR_DO_NOTHING);
	ck_assert_int_eq(repair.state, REPAIR_STATE_IDLE);
	ck_assert_uint_eq(repair.episode, 0);
	ck_assert_uint_eq(repair_attempts(&repair, now), 1); /* still of the limit */
	pass(PER);
	ck_assert_uint_eq(repair_attempts(&repair, now), 0);
}
END_TEST

START_TEST (pauses_grow_to_a_bound) {
	static const uint64_t expected[] = {
		2000, 4000, 8000, 16000, 32000, 64000, 128000, 256000, 300000, 300000};
	const struct repair_settings settings = {
		.delay_ms = 0, .per_ms = 24 * 3600000, .limit = 100, .settle_ms = 0};

	repair_done_with(&repair);
	ck_assert_int_eq(repair_init(&repair, &settings, now), 0);
	ck_assert_int_eq(down(), REPAIR_DO_ASK); /* no delay at all */
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		ck_assert_int_eq(
			repair_found(&repair, REPAIR_UNIT_FAILED, 0, now), REPAIR_DO_START);
		repair_done(&repair, REPAIR_RESULT_FAILED, now);
		ck_assert_uint_eq(due_ms(), expected[i]);
		pass(due_ms());
		ck_assert_int_eq(down(), REPAIR_DO_ASK);
	}
}
END_TEST

/* Who asked to be patient gets no hurry from the bound. */
START_TEST (no_pause_is_shorter_than_the_delay) {
	const struct repair_settings settings = {
		.delay_ms = 3600000, .per_ms = 24 * 3600000, .limit = 100, .settle_ms = 0};

	repair_done_with(&repair);
	ck_assert_int_eq(repair_init(&repair, &settings, now), 0);
	ck_assert_int_eq(down(), REPAIR_DO_NOTHING);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(due_ms(), 3600000);
		pass(due_ms());
		ck_assert_int_eq(down(), REPAIR_DO_ASK);
		ck_assert_int_eq(
			repair_found(&repair, REPAIR_UNIT_FAILED, 0, now), REPAIR_DO_START);
		repair_done(&repair, REPAIR_RESULT_FAILED, now);
	}
}
END_TEST

START_TEST (no_more_than_the_limit) {
	begin();
	for (unsigned i = 0; i < LIMIT; i++) {
		ck_assert_int_eq(
			repair_found(&repair, REPAIR_UNIT_FAILED, 0, now), REPAIR_DO_START);
		repair_done(&repair, REPAIR_RESULT_FAILED, now);
		pass(due_ms());
		ck_assert_int_eq(down(), i + 1 < LIMIT ? REPAIR_DO_ASK : REPAIR_DO_NOTHING);
	}
	ck_assert_int_eq(repair.state, REPAIR_STATE_EXHAUSTED);
	/* Up and down again is no way around it. */
	(void)step(REPAIR_TRIGGER_UP, false);
	(void)down();
	pass(due_ms());
	ck_assert_int_eq(down(), REPAIR_DO_NOTHING);
	ck_assert_int_eq(repair.state, REPAIR_STATE_EXHAUSTED);
	pass(due_ms());
	ck_assert_uint_eq(repair_attempts(&repair, now), LIMIT - 1);
	ck_assert_int_eq(down(), REPAIR_DO_ASK);
}
END_TEST

START_TEST (left_alone) {
	static const struct {
		enum repair_unit unit;
		enum repair_state state;
		uint64_t next_ms;
	} rows[] = {
		{REPAIR_UNIT_STOPPED, REPAIR_STATE_STOPPED, REPAIR_LOOK_MS},
		{REPAIR_UNIT_BUSY, REPAIR_STATE_LEFT, REPAIR_PAUSE_MIN_MS},
		{REPAIR_UNIT_UNKNOWN, REPAIR_STATE_UNKNOWN, SETTLE},
		{REPAIR_UNIT_MISSING, REPAIR_STATE_MISSING, REPAIR_PAUSE_MAX_MS},
	};

	begin();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned again = 0; again < 50; again++) {
			ck_assert_int_eq(
				repair_found(&repair, rows[i].unit, 0, now), REPAIR_DO_NOTHING);
			ck_assert_int_eq(repair.state, rows[i].state);
			ck_assert_uint_eq(due_ms(), rows[i].next_ms);
			pass(due_ms());
			ck_assert_int_eq(down(), REPAIR_DO_ASK);
		}
	ck_assert_uint_eq(repair_attempts(&repair, now), 0);
	ck_assert_int_eq(repair_found(&repair, REPAIR_UNIT_FAILED, 0, now), REPAIR_DO_START);
}
END_TEST

START_TEST (what_runs_is_restarted_when_it_has_had_its_time) {
	begin();
	ck_assert_int_eq(
		repair_found(&repair, REPAIR_UNIT_ACTIVE, 1000000, now), REPAIR_DO_NOTHING);
	ck_assert_int_eq(repair.state, REPAIR_STATE_LEFT);
	ck_assert_uint_eq(due_ms(), SETTLE - 1000);
	pass(due_ms());
	ck_assert_int_eq(down(), REPAIR_DO_ASK);
	ck_assert_int_eq(
		repair_found(&repair, REPAIR_UNIT_ACTIVE, SETTLE * 1000, now), REPAIR_DO_RESTART);
}
END_TEST

START_TEST (held_by_a_word) {
	ck_assert_int_eq(step(REPAIR_TRIGGER_DOWN, true), REPAIR_DO_NOTHING);
	ck_assert_int_eq(repair.state, REPAIR_STATE_HELD);
	ck_assert(monotime_is_never(repair_deadline(&repair)));
	pass(100000);
	ck_assert_int_eq(step(REPAIR_TRIGGER_DOWN, true), REPAIR_DO_NOTHING);
	begin(); /* the delay begins when the word ends */
	/* A word that comes while systemd is being asked counts. */
	(void)step(REPAIR_TRIGGER_DOWN, true);
	ck_assert_int_eq(repair_found(&repair, REPAIR_UNIT_FAILED, 0, now), REPAIR_DO_NOTHING);
	ck_assert_int_eq(repair.state, REPAIR_STATE_HELD);
	(void)step(REPAIR_TRIGGER_UP, true);
	ck_assert_int_eq(repair.state, REPAIR_STATE_IDLE);
}
END_TEST

START_TEST (a_check_that_answers_again_meanwhile) {
	begin();
	(void)step(REPAIR_TRIGGER_RISING, false);
	ck_assert_int_eq(
		repair_found(&repair, REPAIR_UNIT_ACTIVE, UINT64_MAX, now), REPAIR_DO_NOTHING);
	ck_assert_int_eq(down(), REPAIR_DO_ASK);
	(void)step(REPAIR_TRIGGER_UP, false);
	ck_assert_int_eq(repair_found(&repair, REPAIR_UNIT_FAILED, 0, now), REPAIR_DO_NOTHING);
	ck_assert_int_eq(repair.state, REPAIR_STATE_IDLE);
	/* At a start the checks of a service that runs rise: no reason for anything. */
	(void)step(REPAIR_TRIGGER_RISING, false);
	ck_assert_int_eq(repair.state, REPAIR_STATE_IDLE);
	ck_assert(monotime_is_never(repair_deadline(&repair)));
}
END_TEST

START_TEST (denied_is_no_attempt) {
	static const struct {
		enum repair_result result;
		enum repair_state state;
	} rows[] = {{REPAIR_RESULT_DENIED, REPAIR_STATE_DENIED},
		{REPAIR_RESULT_MISSING, REPAIR_STATE_MISSING}};

	begin();
	for (size_t i = 0; i < 10; i++) {
		ck_assert_int_eq(
			repair_found(&repair, REPAIR_UNIT_FAILED, 0, now), REPAIR_DO_START);
		repair_done(&repair, rows[i % 2].result, now);
		ck_assert_int_eq(repair.state, rows[i % 2].state);
		ck_assert_uint_eq(due_ms(), REPAIR_PAUSE_MAX_MS);
		ck_assert_uint_eq(repair_attempts(&repair, now), 0);
		pass(due_ms());
		ck_assert_int_eq(down(), REPAIR_DO_ASK);
	}
}
END_TEST

START_TEST (a_job_without_an_end) {
	begin();
	(void)repair_found(&repair, REPAIR_UNIT_FAILED, 0, now);
	ck_assert_uint_eq(due_ms(), REPAIR_JOB_MS);
	pass(REPAIR_JOB_MS - 1);
	ck_assert_int_eq(down(), REPAIR_DO_NOTHING);
	ck_assert_int_eq(repair.state, REPAIR_STATE_RESTARTING);
	pass(1);
	ck_assert_int_eq(down(), REPAIR_DO_NOTHING);
	ck_assert_int_eq(repair.last_result, REPAIR_RESULT_TIMED_OUT);
	ck_assert_int_eq(repair.state, REPAIR_STATE_WAITING);
	/* Too late. */
	repair_done(&repair, REPAIR_RESULT_DONE, now);
	ck_assert_int_eq(repair.last_result, REPAIR_RESULT_TIMED_OUT);
}
END_TEST

START_TEST (a_reload_keeps_the_attempts) {
	const struct repair_settings fewer = {.per_ms = PER, .limit = 1};
	struct repair other;

	begin();
	(void)repair_found(&repair, REPAIR_UNIT_FAILED, 0, now);
	repair_done(&repair, REPAIR_RESULT_FAILED, now);
	pass(due_ms());
	ck_assert_int_eq(down(), REPAIR_DO_ASK);
	(void)repair_found(&repair, REPAIR_UNIT_FAILED, 0, now);
	ck_assert_int_eq(repair_init(&other, &fewer, now), 0);
	repair_adopt(&other, &repair, now);
	ck_assert_uint_eq(repair_attempts(&other, now), 1);
	ck_assert_int_eq(other.attempts[0].us, now.us); /* the newest */
	repair_done_with(&repair);
	repair = other;
	pass(due_ms());
	ck_assert_int_eq(down(), REPAIR_DO_NOTHING);
	ck_assert_int_eq(repair.state, REPAIR_STATE_EXHAUSTED);
}
END_TEST

START_TEST (an_earlier_life_counts) {
	begin();
	for (unsigned i = 0; i <= repair.settings.limit; i++) /* the newest of them */
		repair_remember(&repair, (struct monotime){now.us - 1000 + i}, now);
	repair_remember(&repair, (struct monotime){now.us - 5000}, now); /* out of order */
	repair_remember(&repair, (struct monotime){now.us + 1}, now);	 /* of another clock */
	ck_assert_uint_eq(repair_attempts(&repair, now), repair.settings.limit);
	ck_assert_int_eq(repair.attempts[0].us, now.us - 999);
}
END_TEST

START_TEST (words) {
	for (int i = 0; i < REPAIR_N_STATES; i++)
		for (int k = 0; k < i; k++)
			ck_assert_str_ne(repair_state_name((enum repair_state)i),
				repair_state_name((enum repair_state)k));
	ck_assert_ptr_null(repair_result_name(REPAIR_RESULT_NONE));
	for (int i = 1; i < REPAIR_N_RESULTS; i++)
		ck_assert_ptr_nonnull(repair_result_name((enum repair_result)i));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("core-repair");
	TCase *tc = tcase_create("repair");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, units);
	tcase_add_test(tc, triggers);
	tcase_add_test(tc, waits_asks_starts_and_rests);
	tcase_add_test(tc, pauses_grow_to_a_bound);
	tcase_add_test(tc, no_pause_is_shorter_than_the_delay);
	tcase_add_test(tc, no_more_than_the_limit);
	tcase_add_test(tc, left_alone);
	tcase_add_test(tc, what_runs_is_restarted_when_it_has_had_its_time);
	tcase_add_test(tc, held_by_a_word);
	tcase_add_test(tc, a_check_that_answers_again_meanwhile);
	tcase_add_test(tc, denied_is_no_attempt);
	tcase_add_test(tc, a_job_without_an_end);
	tcase_add_test(tc, a_reload_keeps_the_attempts);
	tcase_add_test(tc, an_earlier_life_counts);
	tcase_add_test(tc, words);
	suite_add_tcase(s, tc);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
