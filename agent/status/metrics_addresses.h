#ifndef REDSHANK_STATUS_METRICS_ADDRESSES_H
#define REDSHANK_STATUS_METRICS_ADDRESSES_H
/* The samples of the families about managed addresses, for metrics.c. NULL: nothing is known. */
#include "agent/status/managed_view.h"
#include "agent/status/metrics_text.h"

void metrics_addresses_managed(struct metrics_writer *w, const struct managed_counts *c);
void metrics_addresses_changes(struct metrics_writer *w, const struct managed_counts *c);

#endif
