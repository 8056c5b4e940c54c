/*
 * The small clocks of coming and going: a ramp's steps lie where its wake-ups are and end at the
 * prefix's own weight, a leaving ends once, and the guard counts as it says.
 */
#include <check.h>
#include <stdlib.h>

#include "agent/core/guard.h"
#include "agent/core/leave.h"
#include "agent/core/ramp.h"

static struct monotime at_us(uint64_t us)
{
	return (struct monotime){7000000 + us};
}

START_TEST (a_ramp_is_walked_step_by_step) {
	static const struct {
		struct ramp_settings settings;
		uint32_t own;
	} rows[] = {
		{{1000, 4, 240000}, 100},
		{{0, 7, 1000}, 65535}, /* upwards, and not even */
		{{65535, 1, 1}, 0},
		{{5, 3, 10}, 5},
		{{65535, 1000, 86400000}, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct ramp_settings *s = &rows[i].settings;
		struct monotime now = at_us(0);
		unsigned step = 0;

		ck_assert_uint_eq(ramp_weight(s, rows[i].own, 0), s->from);
		while (step < s->steps) {
			struct monotime next = ramp_next(s, at_us(0), step);

			ck_assert(monotime_before(now, next));
			ck_assert_uint_eq(
				ramp_step(s, at_us(0), (struct monotime){next.us - 1}), step);
			step = ramp_step(s, at_us(0), next);
			now = next;
		}
		ck_assert_uint_eq(now.us, at_us(s->for_ms * 1000).us);
		ck_assert(monotime_is_never(ramp_next(s, at_us(0), step)));
		ck_assert_uint_eq(ramp_weight(s, rows[i].own, step), rows[i].own);
	}
}
END_TEST

START_TEST (its_weights) {
	struct ramp_settings s = {1000, 4, 240000};
	static const uint32_t weights[] = {1000, 775, 550, 325, 100, 100};

	for (unsigned step = 0; step < 6; step++)
		ck_assert_uint_eq(ramp_weight(&s, 100, step), weights[step]);
}
END_TEST

START_TEST (a_leaving_ends_once) {
	struct leave_settings s = {.graceful_ms = 10};
	struct leave l = {0};

	ck_assert(!leave_lingers(&s, &l, false, true, at_us(0)));
	ck_assert(monotime_is_never(leave_ends(&l, at_us(0))));
	ck_assert(leave_lingers(&s, &l, true, true, at_us(0)));
	ck_assert_uint_eq(leave_ends(&l, at_us(0)).us, at_us(10000).us);
	ck_assert(leave_lingers(&s, &l, true, true, at_us(9999)));
	ck_assert(!leave_lingers(&s, &l, true, true, at_us(10000)));
	/* Anew, and then it is withdrawn for another reason: what comes back meanwhile does not. */
	ck_assert(!leave_lingers(&s, &l, false, true, at_us(20000)));
	ck_assert(leave_lingers(&s, &l, true, true, at_us(20000)));
	ck_assert(!leave_lingers(&s, &l, true, false, at_us(20001)));
	ck_assert(!leave_lingers(&s, &l, true, true, at_us(20002)));
}
END_TEST

START_TEST (what_the_guard_refuses) {
	static const struct {
		struct guard_count count;
		unsigned percent;
		bool refuses;
	} rows[] = {
		{{0, 0}, 0, false},
		{{10, 0}, 0, false},
		{{10, 1}, 0, true},
		{{10, 5}, 50, false},
		{{10, 6}, 50, true},
		{{1, 1}, 50, true},
		{{3, 2}, 66, true},
		{{3, 2}, 67, false},
		{{10, 10}, 99, true},
		{{10, 10}, 100, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(guard_refuses(&rows[i].count, rows[i].percent) == rows[i].refuses,
			"%zu of %zu at %u %%", rows[i].count.n_dropped, rows[i].count.n_announced,
			rows[i].percent);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core ramp");
	TCase *tests = tcase_create("ramp");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, a_ramp_is_walked_step_by_step);
	tcase_add_test(tests, its_weights);
	tcase_add_test(tests, a_leaving_ends_once);
	tcase_add_test(tests, what_the_guard_refuses);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
