#ifndef REDSHANK_STATUS_PACE_H
#define REDSHANK_STATUS_PACE_H
/*
 * How much of the loop strangers get: what was done for them is owed nine times over, and paid for
 * by the time that goes by. Who owes too much rests. Pure.
 */
#include <stdint.h>

#include "agent/base/monotime.h"

#define PACE_REST 9	      /* times what was done: a tenth of the loop is what they get */
#define PACE_OWES_MAX_US 1000 /* before it rests: a single request never does */

struct pace {
	uint64_t owes_us; /* as of `at` */
	struct monotime at;
};

/* Adds `took_us`, up to `now`. 0: go on; else how long to rest, at most `most_us`. */
uint64_t pace_rest_us(struct pace *p, struct monotime now, uint64_t took_us, uint64_t most_us);

#endif
