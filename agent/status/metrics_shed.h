#ifndef REDSHANK_STATUS_METRICS_SHED_H
#define REDSHANK_STATUS_METRICS_SHED_H
/* The samples of the families about shedding, for metrics.c; none where no neighbours are
 * configured. Labels come from the configuration alone, and from enums. */
#include "agent/status/document.h"
#include "agent/status/metrics_text.h"

/* Of the server. */
void metrics_shed_prefixes(struct metrics_writer *w, const struct document_facts *f);
void metrics_shed_want(struct metrics_writer *w, const struct document_facts *f);
void metrics_shed_spare(struct metrics_writer *w, const struct document_facts *f);
void metrics_shed_hot(struct metrics_writer *w, const struct document_facts *f);
void metrics_shed_alarm(struct metrics_writer *w, const struct document_facts *f);
void metrics_shed_sheds(struct metrics_writer *w, const struct document_facts *f);
void metrics_shed_restores(struct metrics_writer *w, const struct document_facts *f);
void metrics_shed_grants(struct metrics_writer *w, const struct document_facts *f);

/* Of each neighbour, as its last report says; no sample while it is not fresh. */
void metrics_shed_neighbour_utilisation(struct metrics_writer *w, const struct document_facts *f);
void metrics_shed_neighbour_spare(struct metrics_writer *w, const struct document_facts *f);
void metrics_shed_neighbour_willing(struct metrics_writer *w, const struct document_facts *f);
void metrics_shed_neighbour_want(struct metrics_writer *w, const struct document_facts *f);

/* 1: this prefix is out, by shedding. */
void metrics_shed_prefix(
	struct metrics_writer *w, const struct document_facts *f, size_t service, size_t prefix);

#endif
