#ifndef REDSHANK_CORE_RAMP_H
#define REDSHANK_CORE_RAMP_H
/*
 * Slow start: a prefix that comes back begins with a weight that others beat, and goes to its own
 * in equal steps, so that caches fill and connections open before all of the traffic is there.
 *
 * Only the number of the step is state; what it weighs follows from the settings of the moment, so
 * that a reload in the middle of a ramp goes on with the new ones.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/base/monotime.h"

struct ramp_settings {
	uint32_t from;	 /* the weight of step 0 */
	unsigned steps;	 /* changes of weight on the way, at least 1; 0: no slow start */
	uint64_t for_ms; /* from step 0 to the last, which has the prefix's own weight */
};

/* The step at `now` of a ramp that began at `started`: 0 to steps. */
unsigned ramp_step(
	const struct ramp_settings *settings, struct monotime started, struct monotime now);
/* What step `step` weighs, of a prefix whose own weight is `own`. Rounded towards `from`. */
uint32_t ramp_weight(const struct ramp_settings *settings, uint32_t own, unsigned step);
/* When the step after `step` begins; never: there is none. */
struct monotime ramp_next(
	const struct ramp_settings *settings, struct monotime started, unsigned step);

#endif
