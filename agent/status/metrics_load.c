/* The families about this server's load. Parts of a limit are ratios: 1 is all of it. */
#include "agent/status/metrics_load.h"

#define BP_US 100     /* a basis point as millionths, which the writer has for seconds */
#define MILLI_US 1000 /* a thousandth likewise */

static uint64_t millionths(uint64_t milli)
{
	return milli > UINT64_MAX / MILLI_US ? UINT64_MAX : milli * MILLI_US;
}

void metrics_load_utilisation(struct metrics_writer *w, const struct load *l)
{
	struct load_view view;

	load_view(l, &view);
	if (view.valid)
		metrics_sample_us(w, (uint64_t)view.utilisation_bp * BP_US);
}

void metrics_load_capacity(struct metrics_writer *w, const struct load *l)
{
	struct load_view view;

	load_view(l, &view);
	if (view.configured)
		metrics_sample(w, NULL, NULL, view.capacity / 1000);
}

static void label(struct metrics_writer *w, const struct load_signal *s)
{
	metrics_labels_clear(w);
	metrics_label(w, "signal", s->name);
}

void metrics_load_signal_valid(struct metrics_writer *w, const struct load *l)
{
	struct load_signal s;

	for (size_t i = 0; load_signal(l, i, &s); i++) {
		label(w, &s);
		metrics_sample(w, NULL, NULL, s.valid);
	}
}

void metrics_load_signal_value(struct metrics_writer *w, const struct load *l)
{
	struct load_signal s;

	for (size_t i = 0; load_signal(l, i, &s); i++) {
		if (!s.valid)
			continue;
		label(w, &s);
		metrics_sample_us(w, millionths(s.value_milli));
	}
}

void metrics_load_signal_limit(struct metrics_writer *w, const struct load *l)
{
	struct load_signal s;

	for (size_t i = 0; load_signal(l, i, &s); i++) {
		label(w, &s);
		metrics_sample(w, NULL, NULL, s.limit_milli / 1000);
	}
}

void metrics_load_signal_utilisation(struct metrics_writer *w, const struct load *l)
{
	struct load_signal s;

	for (size_t i = 0; load_signal(l, i, &s); i++) {
		if (!s.valid)
			continue;
		label(w, &s);
		metrics_sample_us(w, (uint64_t)s.bp * BP_US);
	}
}

void metrics_load_prefix(
	struct metrics_writer *w, const struct load *l, size_t service, size_t prefix)
{
	uint64_t load;

	if (load_prefix(l, service, prefix, &load))
		metrics_sample_us(w, millionths(load));
}
