/*
 * Steps in whole microseconds: step k begins at started + k * for / steps, rounded up, and
 * ramp_step() is the largest k that has begun. Both use the same expression, so that a wake-up at
 * ramp_next() always finds the next step.
 */
#include "agent/core/ramp.h"

static struct monotime ramp_begins(
	const struct ramp_settings *settings, struct monotime started, unsigned step)
{
	uint64_t for_us = settings->for_ms * 1000;
	uint64_t whole = for_us / settings->steps, rest = for_us % settings->steps;

	return (struct monotime){
		started.us + step * whole + (step * rest + settings->steps - 1) / settings->steps};
}

unsigned ramp_step(
	const struct ramp_settings *settings, struct monotime started, struct monotime now)
{
	unsigned step = 0;

	while (step < settings->steps &&
		monotime_reached(ramp_begins(settings, started, step + 1), now))
		step++;
	return step;
}

uint32_t ramp_weight(const struct ramp_settings *settings, uint32_t own, unsigned step)
{
	int64_t from = settings->from, way = (int64_t)own - from;

	if (step >= settings->steps)
		return own;
	return (uint32_t)(from + way * (int64_t)step / (int64_t)settings->steps);
}

struct monotime ramp_next(
	const struct ramp_settings *settings, struct monotime started, unsigned step)
{
	return step < settings->steps ? ramp_begins(settings, started, step + 1) : MONOTIME_NEVER;
}
