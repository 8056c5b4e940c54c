#ifndef REDSHANK_TESTS_COST_H
#define REDSHANK_TESTS_COST_H
/*
 * What work costs as it grows. So many microseconds would be another bound on each machine, under a
 * sanitizer and under valgrind: work on n things is compared with the same work on eight times as
 * many, in processor time, the best of some rounds each, since others use the caches too.
 */
#include <check.h>
#include <stdint.h>
#include <time.h>

#define COST_ROUNDS 5
#define COST_TIMES 8

static inline uint64_t cost_clock_ns(void)
{
	struct timespec t;

	ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* In ns, at least 1. `work` is called with the same n again and again. */
static inline uint64_t cost_ns(void (*work)(unsigned n), unsigned n)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < COST_ROUNDS; i++) {
		uint64_t began_ns = cost_clock_ns(), ns;

		work(n);
		ns = cost_clock_ns() - began_ns;
		best = ns < best ? ns : best;
	}
	return best > 0 ? best : 1;
}

/* Work on `most` costs less than `limit` times what it costs on an eighth of them. */
static inline void cost_expect(void (*work)(unsigned n), unsigned most, unsigned limit)
{
	uint64_t few_ns = cost_ns(work, most / COST_TIMES), many_ns = cost_ns(work, most);

	ck_assert_msg(many_ns < few_ns * limit, "%u: %llu ns, %u: %llu ns", most / COST_TIMES,
		(unsigned long long)few_ns, most, (unsigned long long)many_ns);
}

/* Linear would be 8, quadratic 64. */
#define cost_expect_linear(work, most) cost_expect(work, most, 3 * COST_TIMES)

/* The same for all n; linear would be 8. */
#define cost_expect_constant(work, most) cost_expect(work, most, COST_TIMES / 2)

#endif
