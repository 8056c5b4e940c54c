/* See the header. */
#include "agent/core/meter.h"

#include <assert.h>

static const struct meter_sample *newest(const struct meter *m)
{
	return &m->samples[m->newest];
}

static const struct meter_sample *oldest(const struct meter *m)
{
	return &m->samples[(m->newest + METER_SAMPLES + 2 - m->n) % (METER_SAMPLES + 1)];
}

void meter_lose(struct meter *m)
{
	m->n = 0;
}

void meter_add(struct meter *m, uint64_t part, uint64_t whole)
{
	if (m->n > 0) {
		if (part < newest(m)->part || whole < newest(m)->whole)
			meter_lose(m);
		else if (whole == newest(m)->whole)
			return;
	}
	m->newest = (m->newest + 1) % (METER_SAMPLES + 1);
	m->samples[m->newest] = (struct meter_sample){.part = part, .whole = whole};
	if (m->n <= METER_SAMPLES)
		m->n++;
}

unsigned meter_steps(const struct meter *m)
{
	return m->n > 0 ? m->n - 1 : 0;
}

/* The product has 128 bits; to divide these by 64, the compiler would call a library. */
uint64_t meter_scaled(uint64_t part, uint64_t scale, uint64_t whole)
{
	unsigned __int128 product = (unsigned __int128)part * scale;
	uint64_t rest = (uint64_t)(product >> 64), low = (uint64_t)product, quotient = 0;

	assert(whole > 0);
	if (rest == 0)
		return low / whole;
	if (rest >= whole)
		return UINT64_MAX;
	for (int bit = 0; bit < 64; bit++) {
		bool carry = rest >> 63;

		rest = rest << 1 | low >> 63;
		low <<= 1;
		quotient <<= 1;
		if (carry || rest >= whole) {
			rest -= whole;
			quotient |= 1;
		}
	}
	return quotient;
}

bool meter_rate(const struct meter *m, uint64_t scale, unsigned least, uint64_t *ret)
{
	assert(least >= 1);
	if (meter_steps(m) < least)
		return false;
	*ret = meter_scaled(
		newest(m)->part - oldest(m)->part, scale, newest(m)->whole - oldest(m)->whole);
	return true;
}

unsigned meter_fraction_bp(uint64_t value, uint64_t limit)
{
	uint64_t bp = meter_scaled(value, 10000, limit);

	return bp > METER_BP_MAX ? METER_BP_MAX : (unsigned)bp;
}

bool meter_utilisation(const struct meter_signal *signals, size_t n, unsigned *ret_bp)
{
	bool any = false;
	unsigned most = 0;

	for (size_t i = 0; i < n; i++) {
		if (!signals[i].valid)
			continue;
		any = true;
		if (signals[i].bp > most)
			most = signals[i].bp;
	}
	if (any)
		*ret_bp = most;
	return any;
}

uint64_t meter_load(uint64_t capacity, unsigned utilisation_bp)
{
	return meter_scaled(capacity, utilisation_bp, 10000);
}

void meter_share(struct meter_share *shares, size_t n, uint64_t load)
{
	unsigned __int128 sum = 0;
	unsigned shift = 0;

	for (size_t i = 0; i < n; i++) {
		shares[i].load = 0;
		if (shares[i].valid)
			sum += shares[i].rate;
	}
	while (sum >> shift > UINT64_MAX)
		shift++;
	for (size_t i = 0; sum > 0 && i < n; i++)
		if (shares[i].valid)
			shares[i].load = meter_scaled(
				load, shares[i].rate >> shift, (uint64_t)(sum >> shift));
}
