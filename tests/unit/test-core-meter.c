/*
 * Rates, averages, parts of limits and shares; what a counter that fell, stood still or vanished
 * does; and, at random, that shares never exceed the whole.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "agent/core/meter.h"

static uint64_t rate_of(const struct meter *m)
{
	uint64_t rate = UINT64_MAX;

	ck_assert(meter_rate(m, 1000, 1, &rate));
	return rate;
}

START_TEST (a_rate_is_over_ten_samples) {
	struct meter m = {0};
	uint64_t rate = 7;

	ck_assert(!meter_rate(&m, 1000, 1, &rate));
	meter_add(&m, 100, 1000);
	ck_assert_uint_eq(meter_steps(&m), 0);
	ck_assert(!meter_rate(&m, 1000, 1, &rate));
	ck_assert_uint_eq(rate, 7);
	meter_add(&m, 150, 2000);
	ck_assert_uint_eq(rate_of(&m), 50);
	for (unsigned i = 0; i < 20; i++)
		meter_add(&m, 150 + 10 * (i + 1), 3000 + 1000 * i);
	ck_assert_uint_eq(meter_steps(&m), METER_SAMPLES);
	ck_assert_uint_eq(rate_of(&m), 10); /* the 50 of the beginning is forgotten */
	ck_assert(meter_rate(&m, 1000, METER_SAMPLES, &rate));
}
END_TEST

static void fill(struct meter *m)
{
	*m = (struct meter){0};
	for (uint64_t i = 0; i <= METER_SAMPLES; i++)
		meter_add(m, i * 10, i * 1000);
	ck_assert_uint_eq(meter_steps(m), METER_SAMPLES);
}

START_TEST (a_counter_that_fell_begins_anew) {
	struct meter m;
	uint64_t rate;

	fill(&m);
	meter_add(&m, 3, 11000); /* flushed, or wrapped */
	ck_assert_uint_eq(meter_steps(&m), 0);
	for (uint64_t i = 1; i < METER_SAMPLES; i++)
		meter_add(&m, 3 + i, 11000 + 1000 * i);
	ck_assert(!meter_rate(&m, 1000, METER_SAMPLES, &rate));
	meter_add(&m, 3 + METER_SAMPLES, 11000 + 1000 * METER_SAMPLES);
	ck_assert(meter_rate(&m, 1000, METER_SAMPLES, &rate));
	ck_assert_uint_eq(rate, 1);
	fill(&m);
	meter_add(&m, 200, 999); /* a clock that went back */
	ck_assert_uint_eq(meter_steps(&m), 0);
	fill(&m);
	meter_lose(&m);
	ck_assert(!meter_rate(&m, 1000, 1, &rate));
	fill(&m);
	meter_add(&m, 500, METER_SAMPLES * 1000); /* twice within a tick */
	ck_assert_uint_eq(rate_of(&m), 10);
}
END_TEST

START_TEST (a_product_has_room) {
	ck_assert_uint_eq(meter_scaled(3, 10, 4), 7);
	ck_assert_uint_eq(meter_scaled(UINT64_MAX, UINT64_MAX, UINT64_MAX), UINT64_MAX);
	ck_assert_uint_eq(meter_scaled(UINT64_MAX, 2, 1), UINT64_MAX);
	ck_assert_uint_eq(meter_scaled(UINT64_MAX - 1, 3, 6), (UINT64_MAX - 1) / 2);
	ck_assert_uint_eq(meter_scaled(1ULL << 63, 1ULL << 63, UINT64_MAX), 1ULL << 62);
	ck_assert_uint_eq(meter_scaled(0, 5, 1), 0);
	ck_assert_uint_eq(meter_fraction_bp(50, 200), 2500);
	ck_assert_uint_eq(meter_fraction_bp(UINT64_MAX, 1), METER_BP_MAX);
	ck_assert_uint_eq(meter_load(100000, 6312), 63120);
}
END_TEST

START_TEST (the_largest_valid_signal_counts) {
	struct meter_signal s[] = {{true, 100}, {false, 9000}, {true, 4000}};
	unsigned bp = 7;

	ck_assert(meter_utilisation(s, 3, &bp));
	ck_assert_uint_eq(bp, 4000);
	s[0].valid = s[2].valid = false;
	bp = 7;
	ck_assert(!meter_utilisation(s, 3, &bp));
	ck_assert(!meter_utilisation(s, 0, &bp));
	ck_assert_uint_eq(bp, 7);
}
END_TEST

START_TEST (shares) {
	struct meter_share s[] = {{true, 300, 9}, {false, 500, 9}, {true, 100, 9}};

	meter_share(s, 3, 80000);
	ck_assert_uint_eq(s[0].load, 60000);
	ck_assert_uint_eq(s[1].load, 0);
	ck_assert_uint_eq(s[2].load, 20000);
	s[0].rate = s[2].rate = 0;
	meter_share(s, 3, 80000);
	ck_assert_uint_eq(s[0].load, 0);
}
END_TEST

static uint64_t any(void)
{
	uint64_t n = (uint64_t)random() << 62 ^ (uint64_t)random() << 31 ^ (uint64_t)random();

	return n >> (random() % 64);
}

/* The product by another way: the long one, in halves. */
static bool is_quotient(uint64_t part, uint64_t scale, uint64_t whole, uint64_t quotient)
{
	unsigned __int128 product = (unsigned __int128)part * scale;
	unsigned __int128 below = (unsigned __int128)quotient * whole;

	if (quotient == UINT64_MAX)
		return product >= below;
	return below <= product && product - below < whole;
}

START_TEST (no_share_is_more_than_all) {
	unsigned seed = (unsigned)time(NULL);

	srandom(seed);
	for (unsigned round = 0; round < 20000; round++) {
		struct meter_share s[6];
		uint64_t load = any(), sum = 0;
		uint64_t part = any(), scale = any(), whole = any() | 1;

		ck_assert_msg(is_quotient(part, scale, whole, meter_scaled(part, scale, whole)),
			"seed %u", seed);
		for (size_t i = 0; i < 6; i++)
			s[i] = (struct meter_share){random() % 3 > 0, any(), any()};
		meter_share(s, 6, load);
		for (size_t i = 0; i < 6; i++) {
			ck_assert_msg(s[i].load <= load - sum, "seed %u", seed);
			ck_assert_msg(s[i].valid || s[i].load == 0, "seed %u", seed);
			sum += s[i].load;
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("core-meter");
	TCase *t = tcase_create("meter");
	SRunner *runner;
	int failed;

	tcase_add_test(t, a_rate_is_over_ten_samples);
	tcase_add_test(t, a_counter_that_fell_begins_anew);
	tcase_add_test(t, a_product_has_room);
	tcase_add_test(t, the_largest_valid_signal_counts);
	tcase_add_test(t, shares);
	tcase_add_test(t, no_share_is_more_than_all);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}
