/* Counts repairs for a line a minute. No clock: it is called with the time. */
#include "agent/bird/strikes.h"

unsigned strikes_add(struct strikes *s, struct monotime now, unsigned *ret_seconds)
{
	uint64_t us;
	unsigned n;

	if (s->last.us == 0 || monotime_since_us(s->last, now) > STRIKES_EVERY_US)
		*s = (struct strikes){.since = now};
	s->last = now;
	n = ++s->n;
	us = monotime_since_us(s->since, now);
	if (us < STRIKES_EVERY_US)
		return 0;
	*ret_seconds = (unsigned)(us / 1000000);
	*s = (struct strikes){.since = now, .last = now};
	return n;
}
