#ifndef REDSHANK_CTL_EXPLAIN_H
#define REDSHANK_CTL_EXPLAIN_H
/* What `redshankctl explain` shows of the document of GET /v1/explain (docs/status.md). */
#include "agent/ctl/status.h"

#define EXPLAIN_NAME_MAX 64 /* bytes; no service and no prefix has a longer name */

/*
 * The path and query that ask for `name`, which may be any text. Heap, never NULL: exits without
 * memory.
 */
char *explain_path(const char *name);

/* Of the body of a 404: the text of its "error", or "" where it has none. Heap. */
char *explain_error(const char *body, size_t length);

/*
 * For people: BIRD's troubles, then each service: its prefixes, those with the same verdict
 * together, and its checks. Times are told from the document's own `time`.
 */
void explain_print(FILE *out, const json_t *document, const struct status_view *view);

#endif
