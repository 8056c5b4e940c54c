#ifndef REDSHANK_BASE_MONOTIME_H
#define REDSHANK_BASE_MONOTIME_H
/*
 * Time as one-field structs, so that the clock that runs on and the clock on the wall cannot be
 * mixed. Every deadline is a monotime; only words of operators and what people read is walltime.
 * This header asks no clock and links to nothing: core/ includes it. The clocks are in clock.h.
 */
#include <stdbool.h>
#include <stdint.h>

struct monotime {
	uint64_t us; /* CLOCK_BOOTTIME, microseconds */
};

struct walltime {
	int64_t us; /* CLOCK_REALTIME, microseconds since the epoch */
};

#define MONOTIME_ZERO ((struct monotime){0})
#define MONOTIME_NEVER ((struct monotime){UINT64_MAX})

static inline bool monotime_is_never(struct monotime t)
{
	return t.us == UINT64_MAX;
}

static inline bool monotime_before(struct monotime a, struct monotime b)
{
	return a.us < b.us;
}

/* True when t has been reached. */
static inline bool monotime_reached(struct monotime t, struct monotime now)
{
	return t.us <= now.us;
}

static inline struct monotime monotime_min(struct monotime a, struct monotime b)
{
	return a.us < b.us ? a : b;
}

static inline struct monotime monotime_max(struct monotime a, struct monotime b)
{
	return a.us > b.us ? a : b;
}

/* t + ms; never stays never, and an overflow is never. */
static inline struct monotime monotime_add_ms(struct monotime t, uint64_t ms)
{
	if (ms > (UINT64_MAX - 1 - t.us) / 1000 || monotime_is_never(t))
		return MONOTIME_NEVER;
	return (struct monotime){t.us + ms * 1000};
}

/* Microseconds from a to b, 0 when b is earlier. */
static inline uint64_t monotime_since_us(struct monotime a, struct monotime b)
{
	return b.us > a.us ? b.us - a.us : 0;
}

#endif
