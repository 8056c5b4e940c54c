#ifndef REDSHANK_STATUS_DOCUMENT_PRIVATE_H
#define REDSHANK_STATUS_DOCUMENT_PRIVATE_H
/* What the documents of the status socket have in common: document*.c and explain.c, nobody else. */
#include "agent/base/clock.h"
#include "agent/status/document.h"
#include "agent/status/json.h"

#define DOCUMENT_MAX (32 * 1024 * 1024) /* some 100,000 prefixes */

struct document {
	const struct document_facts *facts;
	struct json_writer json;
	/* One reading of both clocks for the whole document, so that equal times look equal. */
	struct monotime now;
	struct walltime wall;
	/* The time written last: prefixes change together, and formatting is the costly part. */
	struct monotime last;
	char last_text[CLOCK_TEXT_MAX];
};

static inline const char *document_null_if_empty(const char *text)
{
	return text && text[0] ? text : NULL;
}

/* Opens the outermost object and writes what every document begins with. `out` is initialised, and
 * outlives d. */
void document_begin(struct document *d, struct buffer *out, const struct document_facts *facts);
/* Closes it. The text with a final newline, owned by the caller; NULL when there is no memory. */
char *document_end(struct document *d);

/* `t` as a time of the wall, which is `wall` at `now`. Returns `text`. */
const char *document_format_time(
	struct monotime t, struct monotime now, struct walltime wall, char text[CLOCK_TEXT_MAX]);
const char *document_link_name(enum apply_link link);

/* RFC 3339; never is null. */
void document_put_time(struct document *d, const char *key, struct monotime t);
/* The word of that kind that covers the prefix, or NULL. */
const struct word *document_word(
	const struct document *d, enum word_kind kind, size_t service, size_t index);
/* The freeze of the whole server, or NULL. */
const struct word *document_freeze(const struct document *d);
void document_put_known(struct json_writer *w, const char *key, enum apply_known known);

/* `load`, or null; and that of a prefix, where prefixes are counted: document_load.c. */
void document_put_load(struct document *d);
void document_put_prefix_load(struct document *d, size_t service, size_t index);
/* `neighbours`, or null: document_neighbours.c. */
void document_put_neighbours(struct document *d);
/* `shed`, or null, of the server, and of a prefix (`whole`: with promises and who else announces
 * it): document_shed.c. */
void document_put_shed_server(struct document *d);
void document_put_shed(struct document *d, size_t service, size_t index, bool whole);

/* The keys of a word, into the object that is open. */
void document_put_word(struct json_writer *w, const struct word *word);

/* The keys that the status has of a prefix and of a check, into the object that is open. */
void document_put_prefix(struct document *d, size_t service, size_t index, bool whole);
void document_put_check(struct document *d, size_t service, size_t index);
/* The key `address` of a prefix. */
void document_put_address(struct document *d, size_t service, size_t prefix);
/* The key `repair` of a service: null where it has no `restart`. */
void document_put_repair(struct document *d, size_t service);

/* What is wanted of it is so new that BIRD may not do it yet. */
#define DOCUMENT_SETTLING_MS 1000
bool document_is_settling(const struct engine_prefix *wanted, struct monotime now);

#endif
