#ifndef REDSHANK_STATUS_METRICS_LOAD_H
#define REDSHANK_STATUS_METRICS_LOAD_H
/* The samples of the families about this server's load, for metrics.c. NULL: no load, no sample. */
#include "agent/load/load.h"
#include "agent/status/metrics_text.h"

void metrics_load_utilisation(struct metrics_writer *w, const struct load *l);
void metrics_load_capacity(struct metrics_writer *w, const struct load *l);
void metrics_load_signal_valid(struct metrics_writer *w, const struct load *l);
void metrics_load_signal_value(struct metrics_writer *w, const struct load *l);
void metrics_load_signal_limit(struct metrics_writer *w, const struct load *l);
void metrics_load_signal_utilisation(struct metrics_writer *w, const struct load *l);
/* With the labels that are set. */
void metrics_load_prefix(
	struct metrics_writer *w, const struct load *l, size_t service, size_t prefix);

#endif
