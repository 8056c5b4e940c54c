/*
 * The decay is figure * 2^-(elapsed / half_life): whole half-lives are shifts, and the part that
 * remains comes from a table of 2^-(i/16) with a straight line between its points, at most 0.03 %
 * above the curve. It is monotone, also across a half-life, so that the end of a suppression can be
 * found by halving.
 */
#include "agent/core/damping.h"

#define FRACTION_BITS 16
#define POINTS 16
/* After so many half-lives nothing is left of a figure of 32 bits. */
#define HALF_LIVES_MAX 32

/* 2^-(i/16) in 1/65536. */
static const uint32_t points[POINTS + 1] = {65536, 62757, 60097, 57549, 55109, 52773, 50535, 48393,
	46341, 44376, 42495, 40693, 38968, 37316, 35734, 34219, 32768};

/* 2^-(rest / whole) in 1/65536; rest < whole, and whole at most some years. */
static uint32_t damping_fraction(uint64_t rest_us, uint64_t whole_us)
{
	uint64_t at = rest_us * POINTS / whole_us, into = rest_us * POINTS % whole_us;

	return points[at] - (uint32_t)((points[at] - points[at + 1]) * into / whole_us);
}

static uint32_t damping_decay(
	const struct damping_settings *settings, uint32_t figure, uint64_t elapsed_us)
{
	uint64_t half_life_us = settings->half_life_ms * 1000;
	uint64_t n = elapsed_us / half_life_us;

	if (n >= HALF_LIVES_MAX)
		return 0;
	return (uint32_t)((uint64_t)figure *
				  damping_fraction(elapsed_us % half_life_us, half_life_us) >>
			  (FRACTION_BITS + n));
}

uint32_t damping_ceiling(const struct damping_settings *settings)
{
	uint64_t half_life_us = settings->half_life_ms * 1000, max_us = settings->max_ms * 1000;
	uint64_t n = max_us / half_life_us;
	uint64_t ceiling;

	if (n >= HALF_LIVES_MAX)
		return UINT32_MAX;
	ceiling = ((uint64_t)settings->reuse << FRACTION_BITS) /
		  damping_fraction(max_us % half_life_us, half_life_us);
	ceiling = ceiling > UINT32_MAX >> n ? UINT32_MAX : ceiling << n;
	return (uint32_t)ceiling;
}

uint32_t damping_figure(
	const struct damping_settings *settings, const struct damping *d, struct monotime now)
{
	return damping_decay(settings, d->figure, monotime_since_us(d->at, now));
}

void damping_flap(const struct damping_settings *settings, struct damping *d, struct monotime now)
{
	uint32_t ceiling, figure;

	if (settings->penalty == 0)
		return;
	ceiling = damping_ceiling(settings);
	figure = damping_figure(settings, d, now);
	d->figure = figure < ceiling && settings->penalty < ceiling - figure
			    ? figure + settings->penalty
			    : ceiling;
	d->at = now;
	if (d->figure >= settings->suppress)
		d->suppressed = true;
}

bool damping_holds(const struct damping_settings *settings, struct damping *d, struct monotime now)
{
	if (settings->penalty == 0 || damping_figure(settings, d, now) <= settings->reuse)
		d->suppressed = false;
	return d->suppressed;
}

struct monotime damping_ends(const struct damping_settings *settings, const struct damping *d)
{
	uint64_t low = 0, high = settings->half_life_ms * 1000 * HALF_LIVES_MAX;

	if (!d->suppressed || settings->penalty == 0)
		return MONOTIME_NEVER;
	while (low < high) { /* the first moment at which the figure is `reuse` or less */
		uint64_t middle = low + (high - low) / 2;

		if (damping_decay(settings, d->figure, middle) <= settings->reuse)
			high = middle;
		else
			low = middle + 1;
	}
	return (struct monotime){d->at.us + high};
}
