#ifndef REDSHANK_CONFIG_MERGE_H
#define REDSHANK_CONFIG_MERGE_H
/* Several trees into one. For load.c. */
#include "agent/config/report.h"
#include "agent/config/sources.h"

/* The merged tree, owned by the caller; conflicts are in the report, and the first file's value
 * stands. NULL without memory (noted in the report). */
json_t *merge_sources(const struct sources *sources, struct report *report);

#endif
