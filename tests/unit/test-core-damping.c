/*
 * The arithmetic of hold-down against real numbers: the figure is what 2^-(t / half-life) makes of
 * it, it never rises by itself, and its ends are where it says.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "agent/core/damping.h"

static const struct damping_settings settings = {
	.penalty = 1000, .suppress = 2000, .reuse = 750, .half_life_ms = 60000, .max_ms = 300000};

static struct monotime at_ms(uint64_t ms)
{
	return (struct monotime){1000000 + ms * 1000};
}

START_TEST (decays_by_half_lives) {
	static const uint64_t half_lives_ms[] = {1, 3, 1000, 60000, 86400000};

	for (size_t i = 0; i < sizeof(half_lives_ms) / sizeof(half_lives_ms[0]); i++) {
		struct damping_settings s = settings;
		struct damping d = {.figure = 4000000000U, .at = at_ms(0)};
		uint32_t last = d.figure;

		s.half_life_ms = half_lives_ms[i];
		for (unsigned step = 0; step <= 1000; step++) {
			uint64_t us = s.half_life_ms * step * 33; /* 33 half-lives in all */
			struct monotime now = {d.at.us + us};
			double exact = d.figure * exp2(-(double)us / (s.half_life_ms * 1000.0));
			uint32_t figure = damping_figure(&s, &d, now);

			ck_assert_uint_le(figure, last);
			ck_assert_double_le(figure, exact * 1.0004);
			ck_assert_double_ge(figure, exact - 1 - exact * 0.0001);
			last = figure;
		}
		ck_assert_uint_eq(last, 0);
	}
}
END_TEST

START_TEST (three_flaps_suppress) {
	struct damping d = {0};
	struct monotime ends;

	damping_flap(&settings, &d, at_ms(0));
	damping_flap(&settings, &d, at_ms(10000));
	ck_assert(!damping_holds(&settings, &d, at_ms(10000)));
	ck_assert(monotime_is_never(damping_ends(&settings, &d)));
	damping_flap(&settings, &d, at_ms(20000));
	ck_assert(damping_holds(&settings, &d, at_ms(20000)));
	ends = damping_ends(&settings, &d);
	ck_assert_double_eq_tol((double)ends.us, (double)at_ms(20000).us + 110.4e6, 0.2e6);
	ck_assert(damping_holds(&settings, &d, (struct monotime){ends.us - 1}));
	ck_assert(!damping_holds(&settings, &d, ends));
	/* Suppressed no more, though the figure has not gone: `suppress` decides anew. */
	ck_assert_uint_eq(damping_figure(&settings, &d, ends), settings.reuse);
	damping_flap(&settings, &d, ends);
	ck_assert(!damping_holds(&settings, &d, ends));
}
END_TEST

START_TEST (never_longer_than_max) {
	static const struct damping_settings rows[] = {
		{1000, 2000, 750, 60000, 300000},
		{1, 2, 1, 1000, 1000},
		{UINT32_MAX, UINT32_MAX, 4000000000U, 1000, 10000000},
		{1000, 1001, 1000, 7, 12345},
		{7, 9, 1, 999, 86400000},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct damping d = {0};

		for (unsigned n = 0; n < 100; n++)
			damping_flap(&rows[i], &d, at_ms(n));
		ck_assert_uint_le(d.figure, damping_ceiling(&rows[i]));
		ck_assert(!damping_holds(&rows[i], &d, at_ms(99 + rows[i].max_ms)));
	}
	ck_assert_uint_eq(damping_ceiling(&rows[0]), 750 * 32);
}
END_TEST

START_TEST (off_is_off) {
	struct damping_settings off = {0};
	struct damping d = {.figure = 5000, .at = at_ms(0), .suppressed = true};

	damping_flap(&off, &d, at_ms(1));
	ck_assert_uint_eq(d.figure, 5000);
	ck_assert(monotime_is_never(damping_ends(&off, &d)));
	ck_assert(!damping_holds(&off, &d, at_ms(1)));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core damping");
	TCase *tests = tcase_create("damping");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, decays_by_half_lives);
	tcase_add_test(tests, three_flaps_suppress);
	tcase_add_test(tests, never_longer_than_max);
	tcase_add_test(tests, off_is_off);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
