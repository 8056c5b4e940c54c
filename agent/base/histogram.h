#ifndef REDSHANK_BASE_HISTOGRAM_H
#define REDSHANK_BASE_HISTOGRAM_H
/*
 * Durations, counted in fixed buckets: a few words of memory, and an addition for each duration, so
 * that the path of a withdrawal may count, too. Not for core/.
 */
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_BUCKETS 8

struct histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS]; /* each its own durations alone, not those below */
	uint64_t count;			     /* all, also those above the last bound */
	uint64_t sum_us;
};

/* The upper bound of a bucket, which belongs to it, in microseconds; growing. */
extern const uint32_t histogram_bounds_us[HISTOGRAM_BUCKETS];

void histogram_add(struct histogram *h, uint64_t us);

#endif
