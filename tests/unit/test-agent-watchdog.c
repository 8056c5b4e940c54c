/* When a check counts as lost: the rows of watchdog_overdue(), both sides of each bound. */
#include <check.h>
#include <stdlib.h>

#include "agent/watchdog.h"

#define INTERVAL_MS 1000
#define NEVER UINT64_MAX
#define NOW_S 1000
/* Seconds before NOW_S of something that is just late enough. */
#define LATE_S (INTERVAL_MS / 1000 + WATCHDOG_LATE_MS / 1000)

static const struct {
	const char *what;
	bool busy;
	uint64_t began_s, next_s, deadline_s;
	bool overdue;
} rows[] = {
	{"does not run", false, NEVER, NEVER, NEVER, false},
	{"waits for its first attempt", false, NEVER, NOW_S + 1, NEVER, false},
	{"waits for its next one", false, NOW_S - 1, NOW_S + 3600, NEVER, false},
	{"is late, as a loaded machine makes it", false, NOW_S - 20, NOW_S - LATE_S + 1, NEVER,
		false},
	{"is too late", false, NOW_S - 20, NOW_S - LATE_S, NEVER, true},
	{"its first attempt is too late", false, NEVER, NOW_S - LATE_S, NEVER, true},
	{"is not to begin again", false, NOW_S - 1, NEVER, NEVER, true},
	{"runs", true, NOW_S - 1, NEVER, NOW_S + 1, false},
	{"runs since the machine slept", true, NOW_S - 3600, NEVER, NOW_S + 1, false},
	{"should have ended a moment ago", true, NOW_S - 20, NEVER, NOW_S - LATE_S + 1, false},
	{"should have ended long ago", true, NOW_S - 20, NEVER, NOW_S - LATE_S, true},
	{"runs without an end", true, NOW_S - 1, NEVER, NEVER, true},
};

static struct monotime at(uint64_t s)
{
	return s == NEVER ? MONOTIME_NEVER : (struct monotime){s * 1000000};
}

START_TEST (overdue) {
	const struct run_view view = {.busy = rows[_i].busy,
		.began = at(rows[_i].began_s),
		.next = at(rows[_i].next_s),
		.deadline = at(rows[_i].deadline_s)};

	ck_assert_msg(watchdog_overdue(&view, INTERVAL_MS, at(NOW_S)) == rows[_i].overdue, "%s",
		rows[_i].what);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("watchdog");
	TCase *tc = tcase_create("overdue");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, overdue, 0, sizeof(rows) / sizeof(*rows));
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
