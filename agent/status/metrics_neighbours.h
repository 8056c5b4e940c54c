#ifndef REDSHANK_STATUS_METRICS_NEIGHBOURS_H
#define REDSHANK_STATUS_METRICS_NEIGHBOURS_H
/* The samples of the families about neighbours, for metrics.c. `n` is not NULL. */
#include "agent/neighbour/neighbour.h"
#include "agent/status/metrics_text.h"

void metrics_neighbours_fresh(struct metrics_writer *w, const struct neighbours *n);
void metrics_neighbours_age(struct metrics_writer *w, const struct neighbours *n);
void metrics_neighbours_reports(struct metrics_writer *w, const struct neighbours *n);
void metrics_neighbours_failures(struct metrics_writer *w, const struct neighbours *n);
void metrics_neighbours_refused(struct metrics_writer *w, const struct neighbours *n);
void metrics_neighbours_requests(struct metrics_writer *w, const struct neighbours *n);
void metrics_neighbours_connections(struct metrics_writer *w, const struct neighbours *n);
void metrics_neighbours_cpu(struct metrics_writer *w, const struct neighbours *n);
void metrics_neighbours_expires(struct metrics_writer *w, const struct neighbours *n);
void metrics_neighbours_error(struct metrics_writer *w, const struct neighbours *n);

#endif
