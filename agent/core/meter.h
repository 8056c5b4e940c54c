#ifndef REDSHANK_CORE_METER_H
#define REDSHANK_CORE_METER_H
/*
 * From samples to load: how fast counters grow, which part of its limit each signal has reached,
 * how busy the server is as a whole, and what share of that a prefix has. Pure: samples go in, and
 * no clock is asked. agent/load/ reads them and owns the meters.
 *
 * Nothing is taken for granted of a counter: one that fell, stood in another whole, or was not
 * there begins anew, and says nothing until it has been seen often enough again. So a wrapped, a
 * flushed and a vanished counter are the same thing.
 *
 * Parts of a limit are basis points (10,000 is all of it), at most METER_BP_MAX.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define METER_SAMPLES 10     /* that an average is over: ten seconds by default */
#define METER_BP_MAX 1000000 /* a hundredfold overload; more is cut to it */

struct meter_sample {
	uint64_t part, whole;
};

/*
 * A counter, and what it is held against: a clock in microseconds, or another counter (all ticks of
 * the processors, of which `part` are the busy ones). Zeroed, it has seen nothing.
 */
struct meter {
	struct meter_sample samples[METER_SAMPLES + 1]; /* a ring */
	unsigned n, newest;
};

/* A sample. One that is less than the last in either of the two begins anew; one whose whole has
 * not grown is not counted, so that two looks within one tick do no harm. */
void meter_add(struct meter *m, uint64_t part, uint64_t whole);
/* The counter could not be read. */
void meter_lose(struct meter *m);
/* Steps between samples that are known now, at most METER_SAMPLES. */
unsigned meter_steps(const struct meter *m);
/* How much the part grew for each `scale` of the whole, over what is known; cut at UINT64_MAX.
 * False with fewer steps than `least` (at least 1). */
bool meter_rate(const struct meter *m, uint64_t scale, unsigned least, uint64_t *ret);

/* part x scale / whole, cut at UINT64_MAX; whole > 0. */
uint64_t meter_scaled(uint64_t part, uint64_t scale, uint64_t whole);

/* Which part of its limit that is; limit > 0. */
unsigned meter_fraction_bp(uint64_t value, uint64_t limit);

struct meter_signal {
	bool valid;
	unsigned bp;
};
/* The largest of those that are valid; false where none is. */
bool meter_utilisation(const struct meter_signal *signals, size_t n, unsigned *ret_bp);

/* What a server of this capacity does at that utilisation, in the capacity's unit. */
uint64_t meter_load(uint64_t capacity, unsigned utilisation_bp);

struct meter_share {
	bool valid;    /* its rate is known */
	uint64_t rate; /* in whatever unit; the same for all */
	uint64_t load; /* what comes of it; 0 unless valid */
};
/* Shares `load` out by the rates of those that are valid. Together they have no more than `load`;
 * where one is not valid, the others have its share, which asks for too much room, never for too
 * little. */
void meter_share(struct meter_share *shares, size_t n, uint64_t load);

#endif
