/* The families about managed addresses: what there is, and what was done. */
#include "agent/status/metrics_addresses.h"

void metrics_addresses_managed(struct metrics_writer *w, const struct managed_counts *c)
{
	if (!c)
		return;
	metrics_sample(w, "state", "missing", c->n_missing);
	metrics_sample(w, "state", "other", c->n_managed - c->n_missing);
}

void metrics_addresses_changes(struct metrics_writer *w, const struct managed_counts *c)
{
	if (!c)
		return;
	metrics_sample(w, "result", "added", c->added);
	metrics_sample(w, "result", "restored", c->restored);
	metrics_sample(w, "result", "removed", c->removed);
	metrics_sample(w, "result", "failed", c->failed);
}
