/* How often something may be done: a burst, then the rate, and no more saved than the burst. */
#include <check.h>
#include <stdlib.h>

#include "agent/neighbour/bucket.h"

#define PER_S 10
#define BURST 4

static unsigned taken(struct bucket *b, uint64_t now_ms, unsigned tries)
{
	const struct monotime now = {now_ms * 1000};
	unsigned n = 0;

	for (unsigned i = 0; i < tries; i++)
		n += bucket_take(b, now, PER_S, BURST);
	return n;
}

START_TEST (a_burst_and_then_the_rate) {
	struct bucket b = {.since = MONOTIME_ZERO};

	ck_assert_uint_eq(taken(&b, 3600000, 100), BURST);
	ck_assert_uint_eq(taken(&b, 3600099, 100), 0);
	ck_assert_uint_eq(taken(&b, 3600100, 100), 1);
	ck_assert_uint_eq(taken(&b, 3600350, 100), 2);
	ck_assert_uint_eq(taken(&b, 3600400, 100), 1);
	ck_assert_uint_eq(taken(&b, 7200000, 100), BURST);
}
END_TEST

START_TEST (never_more_than_the_rate_in_the_long_run) {
	struct bucket b = {.since = MONOTIME_ZERO};
	unsigned n = taken(&b, 1000000, 100);

	for (uint64_t ms = 1; ms <= 60000; ms++)
		n += taken(&b, 1000000 + ms, 2);
	ck_assert_uint_eq(n, BURST + 60 * PER_S);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("neighbour-bucket");
	TCase *t = tcase_create("bucket");
	SRunner *runner;
	int failed;

	tcase_add_test(t, a_burst_and_then_the_rate);
	tcase_add_test(t, never_more_than_the_rate_in_the_long_run);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
