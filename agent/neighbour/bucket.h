#ifndef REDSHANK_NEIGHBOUR_BUCKET_H
#define REDSHANK_NEIGHBOUR_BUCKET_H
/* How often something may be done: `per_s` times a second, and `burst` times at once after a rest.
 * Zeroed, it has had all the rest that there is. */
#include "agent/base/monotime.h"

struct bucket {
	struct monotime since; /* from when on what was not taken has been earned */
};

/* Takes one; false where there is none. per_s and burst > 0. */
static inline bool bucket_take(
	struct bucket *b, struct monotime now, unsigned per_s, unsigned burst)
{
	const uint64_t one_us = 1000000 / per_s, all_us = one_us * burst;

	if (monotime_since_us(b->since, now) > all_us)
		b->since.us = now.us - all_us;
	if (monotime_since_us(b->since, now) < one_us)
		return false;
	b->since.us += one_us;
	return true;
}

#endif
