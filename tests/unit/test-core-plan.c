/* The whole table of core/plan.h: every want, seen and loaded, with and without a back-off. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/plan.h"

#define BODY 7
#define OTHER 8

/* clang-format off */
struct row {
	enum plan_want want;
	enum plan_seen seen;
	const char *loaded; /* "any", "as wanted", "other", "unknown" */
	const char *step;
	const char *step_refused; /* while the back-off of a refused configure runs */
};

static const struct row rows[] = {
	{PLAN_WANT_DOWN, PLAN_SEEN_UP,      "any",       "disable",   "disable"},
	{PLAN_WANT_DOWN, PLAN_SEEN_DOWN,    "any",       "none",      "none"},
	{PLAN_WANT_DOWN, PLAN_SEEN_ABSENT,  "any",       "configure", "wait"},
	{PLAN_WANT_DOWN, PLAN_SEEN_UNKNOWN, "any",       "observe",   "observe"},
	{PLAN_WANT_UP,   PLAN_SEEN_ABSENT,  "any",       "configure", "wait"},
	{PLAN_WANT_UP,   PLAN_SEEN_UP,      "as wanted", "none",      "none"},
	{PLAN_WANT_UP,   PLAN_SEEN_UP,      "unknown",   "read",      "read"},
	{PLAN_WANT_UP,   PLAN_SEEN_UP,      "other",     "configure", "wait"},
	{PLAN_WANT_UP,   PLAN_SEEN_DOWN,    "as wanted", "enable",    "enable"},
	{PLAN_WANT_UP,   PLAN_SEEN_DOWN,    "unknown",   "configure", "enable"},
	{PLAN_WANT_UP,   PLAN_SEEN_DOWN,    "other",     "configure", "enable"},
	{PLAN_WANT_UP,   PLAN_SEEN_UNKNOWN, "any",       "observe",   "observe"},
	{PLAN_WANT_GONE, PLAN_SEEN_UP,      "any",       "disable",   "disable"},
	{PLAN_WANT_GONE, PLAN_SEEN_DOWN,    "any",       "configure", "wait"},
	{PLAN_WANT_GONE, PLAN_SEEN_ABSENT,  "any",       "none",      "none"},
	{PLAN_WANT_GONE, PLAN_SEEN_UNKNOWN, "any",       "observe",   "observe"},
};
/* clang-format on */

static void try_row(const struct row *row, uint64_t loaded)
{
	struct plan_protocol protocol = {row->want, BODY, row->seen, loaded, false, false};
	struct plan_bird sound = {.configure_refused = false};
	struct plan_bird refused = {.configure_refused = true};

	ck_assert_str_eq(plan_step_name(plan_next(&protocol, &sound)), row->step);
	ck_assert_str_eq(plan_step_name(plan_next(&protocol, &refused)), row->step_refused);
}

START_TEST (table) {
	const struct row *row = &rows[_i];
	bool any = strcmp(row->loaded, "any") == 0;

	if (any || strcmp(row->loaded, "as wanted") == 0)
		try_row(row, BODY);
	if (any || strcmp(row->loaded, "other") == 0)
		try_row(row, OTHER);
	if (any || strcmp(row->loaded, "unknown") == 0)
		try_row(row, PLAN_BODY_UNKNOWN);
}
END_TEST

/* What is wanted down or gone has no text of its own to compare. */
START_TEST (no_body_is_needed_to_leave) {
	struct plan_protocol protocol = {
		PLAN_WANT_GONE, PLAN_BODY_UNKNOWN, PLAN_SEEN_UP, PLAN_BODY_UNKNOWN, false, false};
	struct plan_bird bird = {.configure_refused = false};

	ck_assert_int_eq(plan_next(&protocol, &bird), PLAN_STEP_DISABLE);
	protocol.want = PLAN_WANT_DOWN;
	ck_assert_int_eq(plan_next(&protocol, &bird), PLAN_STEP_DISABLE);
}
END_TEST

/* A prefix that is to be out does not come back with the old text of the others. */
START_TEST (part_waits_for_its_text) {
	struct plan_protocol protocol = {
		PLAN_WANT_UP, BODY, PLAN_SEEN_DOWN, PLAN_BODY_UNKNOWN, true, false};
	struct plan_bird sound = {.configure_refused = false};
	struct plan_bird refused = {.configure_refused = true};

	ck_assert_int_eq(plan_next(&protocol, &sound), PLAN_STEP_CONFIGURE);
	ck_assert_int_eq(plan_next(&protocol, &refused), PLAN_STEP_WAIT);
	protocol.loaded = OTHER;
	ck_assert_int_eq(plan_next(&protocol, &refused), PLAN_STEP_WAIT);
	protocol.loaded = BODY;
	ck_assert_int_eq(plan_next(&protocol, &refused), PLAN_STEP_ENABLE);
}
END_TEST

/* It need not have been seen: who dies while it is brought up does not stay until somebody looks.
 */
START_TEST (what_comes_is_disabled) {
	struct plan_protocol protocol = {
		PLAN_WANT_DOWN, BODY, PLAN_SEEN_ABSENT, PLAN_BODY_UNKNOWN, false, true};
	struct plan_bird bird = {.configure_refused = false};

	for (int seen = PLAN_SEEN_UNKNOWN; seen <= PLAN_SEEN_UP; seen++) {
		protocol.seen = (enum plan_seen)seen;
		ck_assert_int_eq(plan_next(&protocol, &bird), PLAN_STEP_DISABLE);
	}
	protocol.want = PLAN_WANT_UP;
	protocol.seen = PLAN_SEEN_ABSENT;
	ck_assert_int_eq(plan_next(&protocol, &bird), PLAN_STEP_CONFIGURE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core plan");
	TCase *tests = tcase_create("plan");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tests, table, 0, (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(tests, no_body_is_needed_to_leave);
	tcase_add_test(tests, part_waits_for_its_text);
	tcase_add_test(tests, what_comes_is_disabled);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
