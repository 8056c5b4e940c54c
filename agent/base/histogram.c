/*
 * Durations in fixed buckets. The bounds span what is measured here: an answer of this host (tens
 * of microseconds to milliseconds), one over a network, and the timeouts, which are seconds at
 * most. None is a whole number of seconds: "1" and "1.0" are two series to Prometheus, and which of
 * them is right depends on the format.
 */
#include "agent/base/histogram.h"

const uint32_t histogram_bounds_us[HISTOGRAM_BUCKETS] = {
	500, 1000, 5000, 10000, 50000, 100000, 500000, 2500000};

void histogram_add(struct histogram *h, uint64_t us)
{
	h->count++;
	h->sum_us += us;
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (us <= histogram_bounds_us[i]) {
			h->buckets[i]++;
			return;
		}
}
