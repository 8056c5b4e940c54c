#ifndef REDSHANK_CONFIG_REPORT_H
#define REDSHANK_CONFIG_REPORT_H
/*
 * Errors and warnings of meaning, for config/ alone: which file, which JSON path, what came, what
 * was expected. The file is looked up by the path, so whoever finds a problem need not know where
 * the value came from.
 *
 * A report is passed down through the whole load. Memory that could not be had is noted in
 * `failed` and makes the load fail at its end; nobody in between has to hand it up.
 */
#include <jansson.h>

#include "agent/base/cleanup.h"
#include "agent/config/problems.h"

/* Where we are in the document: a chain on the stack, from the leaf up. The top level is NULL. */
struct path {
	const struct path *parent;
	const char *key; /* of an object; NULL: an element of a list */
	size_t index;	 /* of a list */
};

#define PATH_DEPTH_MAX 40 /* more than SOURCES_DEPTH_MAX */
#define PATH_TEXT_MAX 512
#define VALUE_TEXT_MAX 128

struct sources;

struct report {
	struct problems *problems;
	const struct sources *sources;
	int failed; /* 0, or -ENOMEM once and for all */
};

/* services.dns.prefixes["192.0.2.53/32"].weight; "top level". Cut at PATH_TEXT_MAX. Returns buf. */
const char *path_format(const struct path *path, char buf[PATH_TEXT_MAX]);

/*
 * A JSON value (NULL: "nothing") as people should see it: short, on one line, ASCII, so that what
 * only looks like a known word can be told from it. Objects and lists are named, not shown.
 * Returns buf.
 */
const char *value_format(json_t *value, char buf[VALUE_TEXT_MAX]);
/* The same of what stands at `path`: secrets of checks (headers, env, send, body) are named, too. */
const char *value_at_format(const struct path *path, json_t *value, char buf[VALUE_TEXT_MAX]);
/* The same of a string. User and password of a URL are shown as ***. */
const char *text_format(const char *text, char buf[VALUE_TEXT_MAX]);

/* FILE: PATH: got VALUE; expected EXPECTED. A hint goes behind "; " into the expected text. */
void report_value(struct report *r, const struct path *path, json_t *value, const char *expected,
	...) _printf_(4, 5);
/* The same where `got` says in words what came. */
void report_got(struct report *r, const struct path *path, const char *got, const char *expected,
	...) _printf_(4, 5);
/* FILE: PATH: TEXT */
void report_warning(struct report *r, const struct path *path, const char *text, ...)
	_printf_(3, 4);
/* Errors so far: the same number before and after a step says that the step was clean. */
size_t report_count(const struct report *r);

/* True once further problems are only counted: no need to look for words for them. */
bool report_is_full(const struct report *r);

/* Notes that there is no memory. Returns false, for `return report_no_memory(r)`. */
bool report_no_memory(struct report *r);

#endif
