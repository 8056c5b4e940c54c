/* How long what was done for strangers keeps the loop for others, row by row. */
#include <check.h>
#include <stdlib.h>

#include "agent/status/pace.h"

#define MOST_US 20000

static const struct {
	const char *what;
	uint64_t at_us, took_us, rest_us;
} rows[] = {
	{"a single request goes on", 1000000, 40, 0},
	{"so does the next, when the first is paid for", 1000400, 40, 0},
	{"two in a row are added up", 1000400, 40, 0},
	{"the third has to wait until it all is paid for", 1000400, 40, 1080},
	{"after the rest nothing is owed", 1001480, 40, 0},
	{"a long one rests nine times as long", 2000000, 500, 4500},
	{"one that comes in the middle of it is added", 2001000, 100, 4400},
	{"but there is a bound", 3000000, 1000000, MOST_US},
	{"and the rest of it is still owed", 3020000, 0, MOST_US},
	{"until time has gone by", 13000000, 0, 0},
};

START_TEST (a_tenth_of_the_loop) {
	struct pace pace = {.owes_us = 0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t rest_us = pace_rest_us(
			&pace, (struct monotime){rows[i].at_us}, rows[i].took_us, MOST_US);

		ck_assert_msg(rest_us == rows[i].rest_us, "%s: %llu", rows[i].what,
			(unsigned long long)rest_us);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("status-pace");
	TCase *tests = tcase_create("pace");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, a_tenth_of_the_loop);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
