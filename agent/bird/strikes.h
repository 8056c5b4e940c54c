#ifndef REDSHANK_BIRD_STRIKES_H
#define REDSHANK_BIRD_STRIKES_H
/*
 * When to say that somebody keeps changing what is ours. The first of a protocol's repairs has a
 * line of its own; those that follow are counted over all protocols, and told once a minute.
 */
#include "agent/base/monotime.h"

#define STRIKES_EVERY_US 60000000 /* between two counts; as long without any, it begins anew */

struct strikes {
	struct monotime since, last; /* 0: none yet */
	unsigned n;
};

/* Counts one at `now`. How many there were, and in *ret_seconds in what time, where it is time to
 * say so; else 0. */
unsigned strikes_add(struct strikes *s, struct monotime now, unsigned *ret_seconds);

#endif
