#ifndef REDSHANK_CORE_DAMPING_H
#define REDSHANK_CORE_DAMPING_H
/*
 * Hold-down of a service that flaps, in the terms of route flap damping (RFC 2439, sections 2.2 and
 * 4.8): each flap adds a penalty to a figure of merit that decays with a half-life. From `suppress`
 * on the service is suppressed; it may be used again when the figure is no longer above `reuse`.
 * Nobody is suppressed for longer than `max` after the last flap, since the figure is cut to what
 * decays to `reuse` in that time.
 *
 * Whole numbers only: the same facts give the same answer on every machine.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/base/monotime.h"

struct damping_settings {
	uint32_t penalty;	  /* of one flap; 0: no hold-down */
	uint32_t suppress, reuse; /* reuse < suppress */
	uint64_t half_life_ms;
	uint64_t max_ms;
};

struct damping {
	uint32_t figure; /* of merit, at */
	struct monotime at;
	bool suppressed; /* `suppress` was reached, and `reuse` has not been since */
};

/* The highest figure there can be: it decays to `reuse` in `max`. */
uint32_t damping_ceiling(const struct damping_settings *settings);
/* The figure at `now`, which is not before d->at. */
uint32_t damping_figure(
	const struct damping_settings *settings, const struct damping *d, struct monotime now);
/* One flap at `now`. */
void damping_flap(const struct damping_settings *settings, struct damping *d, struct monotime now);
/* Suppressed at `now`? Ends it where it is over. Always false without hold-down. */
bool damping_holds(const struct damping_settings *settings, struct damping *d, struct monotime now);
/* When damping_holds() becomes false if there is no further flap; never: it is false now. */
struct monotime damping_ends(const struct damping_settings *settings, const struct damping *d);

#endif
