/* The running checks of a configuration: when each starts for the first time, and what is told. */
#include "agent/checks.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/config/config.h"
#include "agent/events/events.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/loop.h"

#define N_CHECKS 8

static char path[] = "/tmp/redshank-checks-XXXXXX";
static sd_event *event;
static struct probe_host host;
static struct config *config;
static struct checks *checks;
static enum check_outcome outcomes[N_CHECKS];
static unsigned reports[N_CHECKS];

static struct monotime on_report(void *userdata, size_t service, size_t check,
	enum check_outcome outcome, struct monotime started)
{
	ck_assert_uint_eq(service, 0);
	outcomes[check] = outcome;
	reports[check]++;
	return MONOTIME_NEVER;
}

/* Half of the checks are of processes that do not exist, and they stand last. */
static void setup(void)
{
	const struct checks_ops ops = {.report = on_report};
	struct problems problems;
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");

	ck_assert_ptr_nonnull(f);
	(void)fprintf(f, "{\"services\": {\"dns\": {\"prefixes\": {\"192.0.2.53/32\": 1}, "
			 "\"checks\": {");
	for (int i = 0; i < N_CHECKS; i++) {
		(void)fprintf(f, "%s\"c%d\": {%s, ", i > 0 ? ", " : "", i,
			i < N_CHECKS / 2 ? "\"type\": \"tcp\", \"address\": \"127.0.0.1\", "
					   "\"port\": 1"
					 : "\"type\": \"process\", \"pidfile\": "
					   "\"/nonexistent/pid\"");
		(void)fprintf(f, "\"interval\": \"60s\", \"fast_interval\": \"40s\"}");
	}
	(void)fprintf(f, "}}}}\n");
	(void)fclose(f);
	memset(reports, 0, sizeof(reports));
	ck_assert_int_ge(sd_event_new(&event), 0);
	host = (struct probe_host){.event = event};
	problems_init(&problems);
	ck_assert_msg(config_load(path, probe_types, &config, &problems) == 0, "%s",
		problems.n > 0 ? problems.items[0].text : "");
	problems_done(&problems);
	(void)unlink(path);
	memcpy(path, "/tmp/redshank-checks-XXXXXX", sizeof(path));
	ck_assert_int_eq(checks_new(&checks, &host, config, &ops), 0);
}

static void teardown(void)
{
	checks_free(checks);
	config_free(config);
	sd_event_unref(event);
}

static bool processes_spoke(void)
{
	for (int i = N_CHECKS / 2; i < N_CHECKS; i++)
		if (reports[i] == 0)
			return false;
	return true;
}

/* Of 40 s over which the others are spread, a dead process is not left alive for one. */
START_TEST (processes_are_asked_at_once) {
	checks_start(checks);
	ck_assert(LOOP_UNTIL(event, processes_spoke(), 2000));
	for (int i = 0; i < N_CHECKS; i++) {
		struct run_view view;

		checks_view(checks, 0, (size_t)i, &view);
		if (i >= N_CHECKS / 2) {
			ck_assert_int_ne(outcomes[i], CHECK_OUTCOME_GOOD);
			ck_assert_ptr_nonnull(
				strstr(checks_reason(checks, 0, (size_t)i), "/nonexistent/pid"));
			ck_assert(!monotime_is_never(view.began));
		} else if (i > 0) {
			/* The others keep their places: the second of eight is due after 5 s. */
			ck_assert_uint_eq(reports[i], 0);
			ck_assert(monotime_is_never(view.began));
			ck_assert_uint_ge(monotime_since_us(clock_monotime(), view.next),
				(unsigned)i * 5000000ULL - 2500000);
		}
	}
}
END_TEST

START_TEST (what_does_not_run_has_no_times) {
	struct run_view view;

	checks_view(checks, 0, 5, &view);
	ck_assert(monotime_is_never(view.began) && monotime_is_never(view.next) && !view.busy);
	checks_start(checks);
	ck_assert(LOOP_UNTIL(event, processes_spoke(), 2000));
	checks_stop(checks);
	checks_view(checks, 0, 5, &view);
	ck_assert(monotime_is_never(view.began) && monotime_is_never(view.next) && !view.busy);
}
END_TEST

/* The last 32 of 40, in their order. */
START_TEST (how_long_the_last_ones_took) {
	const size_t last = N_CHECKS - 1;
	uint32_t us[CHECK_HISTORY_LENGTH], took[40];

	ck_assert_uint_eq(checks_durations(checks, 0, last, us), 0);
	checks_start(checks);
	for (unsigned i = 0; i < ELEMENTSOF(took); i++) {
		struct run_view view;
		size_t n;

		ck_assert(LOOP_UNTIL(event, reports[last] == i + 1, 2000));
		checks_view(checks, 0, last, &view);
		took[i] = (uint32_t)view.duration_us;
		n = checks_durations(checks, 0, last, us);
		ck_assert_uint_eq(n, i < CHECK_HISTORY_LENGTH ? i + 1 : CHECK_HISTORY_LENGTH);
		ck_assert_mem_eq(us, &took[i + 1 - n], n * sizeof(us[0]));
		checks_all_now(checks);
	}
}
END_TEST

/* Events of this kind with these words. */
static unsigned told(const char *words)
{
	struct events_span span = events_span();
	unsigned n = 0;

	for (uint64_t id = span.oldest; id <= span.newest; id++) {
		size_t length;
		const char *event_text = events_get(id, &length);

		ck_assert_ptr_nonnull(event_text);
		n += strstr(event_text, "\"agent_trouble\"") && strstr(event_text, words);
	}
	return n;
}

static void run_all(unsigned times)
{
	for (; times > 0; times--) {
		unsigned before[N_CHECKS];

		memcpy(before, reports, sizeof(before));
		checks_all_now(checks);
		for (size_t i = 0; i < N_CHECKS; i++)
			ck_assert(LOOP_UNTIL(event, reports[i] > before[i], 2000));
	}
}

/* As many descriptors as are open now, or as many as before. */
static void starve(bool on)
{
	static rlim_t before;

	if (on)
		before = descriptors_limit(3);
	else
		(void)descriptors_limit(before);
}

/* Without descriptors no check has an outcome: that is told, with each reason once, and its end. */
START_TEST (what_says_nothing_is_told_once) {
	ck_assert_int_eq(events_init(), 0);
	checks_start(checks);
	run_all(2);
	starve(true);
	run_all(1); /* systemd may only not have been asked yet */
	ck_assert_uint_eq(told("says nothing"), 0);
	run_all(4);
	/* Those of processes, too, but under valgrind a file is missing first. */
	for (size_t i = 0; i < N_CHECKS / 2; i++)
		ck_assert_int_eq(outcomes[i], CHECK_OUTCOME_UNKNOWN);
	ck_assert_uint_eq(told("meanwhile: socket: Too many open files"), 1);
	ck_assert_uint_le(told("says nothing"), 2);
	ck_assert_uint_eq(told("without an outcome any more"), 0);
	starve(false);
	run_all(2);
	ck_assert_uint_eq(told("without an outcome any more"), 1);
	/* What comes and goes is not told each time. */
	for (int i = 0; i < 3; i++) {
		starve(true);
		run_all(3);
		starve(false);
		run_all(1);
	}
	ck_assert_uint_eq(told("meanwhile: socket: Too many open files"), 1);
	ck_assert_uint_le(told("says nothing"), 2);
	ck_assert_uint_eq(told("without an outcome any more"), 1);
	events_done();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("agent-checks");
	TCase *tests = tcase_create("checks");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, processes_are_asked_at_once);
	tcase_add_test(tests, what_does_not_run_has_no_times);
	tcase_add_test(tests, how_long_the_last_ones_took);
	tcase_add_test(tests, what_says_nothing_is_told_once);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
