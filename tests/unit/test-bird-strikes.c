/* Repairs that are counted: nothing in the first minute, then a line a minute, and anew after
 * quiet. */
#include <check.h>
#include <stdlib.h>

#include "agent/base/cleanup.h"
#include "agent/bird/strikes.h"

START_TEST (a_line_a_minute) {
	static const struct {
		unsigned at_s, n, seconds; /* n 0: nothing is said */
	} rows[] = {
		{100, 0, 0},
		{130, 0, 0},
		{159, 0, 0},
		{160, 4, 60},
		{161, 0, 0},
		{215, 0, 0},
		{230, 3, 70},
		{280, 0, 0},
		{341, 0, 0}, /* quiet for more than a minute: the first of a new row */
		{400, 0, 0},
		{401, 3, 60},
	};
	struct strikes s = {.n = 0};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct monotime now = {rows[i].at_s * 1000000ULL};
		unsigned seconds = 0, n = strikes_add(&s, now, &seconds);

		ck_assert_msg(n == rows[i].n && seconds == rows[i].seconds, "at %u s: %u in %u s",
			rows[i].at_s, n, seconds);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bird-strikes");
	TCase *tests = tcase_create("strikes");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, a_line_a_minute);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
