/* A leaky bucket, filled with processor time. */
#include "agent/status/pace.h"

uint64_t pace_rest_us(struct pace *p, struct monotime now, uint64_t took_us, uint64_t most_us)
{
	uint64_t paid_us = monotime_since_us(p->at, now);

	p->owes_us = p->owes_us > paid_us ? p->owes_us - paid_us : 0;
	p->owes_us += took_us * PACE_REST;
	p->at = now;
	if (p->owes_us < PACE_OWES_MAX_US)
		return 0;
	return p->owes_us < most_us ? p->owes_us : most_us;
}
