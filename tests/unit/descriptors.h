#ifndef REDSHANK_TESTS_DESCRIPTORS_H
#define REDSHANK_TESTS_DESCRIPTORS_H
/* A process that runs out of descriptors, and gets them back: what tests of everything that opens
 * something do. */
#include <check.h>
#include <sys/resource.h>

/* The first one that may not be opened any more; what is open stays so. Returns the limit before,
 * which gives them back. */
static inline rlim_t descriptors_limit(rlim_t n)
{
	struct rlimit limit;
	rlim_t before;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = n;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return before;
}

#endif
