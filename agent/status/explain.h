#ifndef REDSHANK_STATUS_EXPLAIN_H
#define REDSHANK_STATUS_EXPLAIN_H
/*
 * The document of GET /v1/explain?name=SERVICE|PREFIX|ADDRESS: all that the agent knows of one
 * service or of the prefixes that are asked for, and what happens next. docs/status.md has the
 * form.
 */
#include "agent/status/document.h"

#define EXPLAIN_NAME_MAX 64 /* no service and no prefix has a longer name */

/*
 * JSON text with a final newline; heap, owned by the caller; NULL when there is no memory. Where
 * nothing is called `name`, which may be any text, *ret_found is false and the JSON is {"error":
 * TEXT, "nearest": NAME or null}.
 */
char *document_explain(const struct document_facts *facts, const char *name, bool *ret_found);

/* What is said of a name that nobody has: {"error": TEXT, "nearest": NAME or null}, of any text of
 * at most EXPLAIN_NAME_MAX bytes. Heap, owned by the caller; NULL without memory. */
char *explain_nothing(const struct config *config, const char *name);

#endif
