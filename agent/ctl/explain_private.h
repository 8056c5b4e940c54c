#ifndef REDSHANK_CTL_EXPLAIN_PRIVATE_H
#define REDSHANK_CTL_EXPLAIN_PRIVATE_H
/* Between explain.c (blocks and tables), explain_say.c (sentences) and the sentences that the
 * status has, too (*_say.c); nobody else's. */
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/ctl/explain.h"
#include "agent/judge/judge.h"

#define EXPLAIN_LINE_MAX 8192 /* bytes of one line's text; what does not fit is dropped */

enum explain_line {
	EXPLAIN_STATE,
	EXPLAIN_WHY,
	EXPLAIN_BIRD,
	EXPLAIN_SESSIONS,
	EXPLAIN_OTHERS,
	EXPLAIN_WEIGHT,
	EXPLAIN_LOAD,	 /* of a block; empty where it is not counted */
	EXPLAIN_ADDRESS, /* empty where it is not managed */
	EXPLAIN_SHED,	 /* empty where there are no neighbours */
	EXPLAIN_NEXT,
	EXPLAIN_N_LINES,
};

/* The document and the service that is told of. All borrowed. */
struct explain {
	const json_t *document, *bird, *service;
	const char *service_name;
	int64_t now_ms; /* the document's `time` */
};

struct explain_text {
	struct buffer line[EXPLAIN_N_LINES]; /* initialised by the caller */
	enum text_colour colour[EXPLAIN_N_LINES];
};

/* Everything that is said of one prefix. `single`: its protocols by their names, else by the
 * service's pattern, so that prefixes of which the same is to be said have the same text. */
void explain_say(
	const struct explain *e, const json_t *prefix, bool single, struct explain_text *ret);

/* What prefixes of which the same is said have of this server's load, together: load_say.c. */
struct explain_load {
	double sum;	   /* in the unit of `load.capacity`, of those of which it is known */
	size_t n, unknown; /* how many are counted, and of how many of these it is not known */
};
void explain_add_load(struct explain_load *load, const json_t *prefix);
void explain_say_load(const struct explain *e, struct buffer *b, const struct explain_load *load);

/* Of its address, where it is managed: address_say.c. */
enum text_colour explain_say_address(struct buffer *b, const json_t *prefix);

/* What shedding makes of the prefix: shed_say.c. */
void explain_say_shed(const struct explain *e, struct buffer *b, const json_t *prefix);

/* "18ms", "1.0s", "12s", "3m": without a space, so that no line ends inside. */
void explain_say_span(struct buffer *b, int64_t ms);
/* "all 2 must be up" */
void explain_say_require(const struct explain *e, struct buffer *b);

static inline const json_t *explain_get(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

/* 0 where there is none. */
static inline long long explain_number(const json_t *object, const char *key)
{
	return (long long)json_integer_value(explain_get(object, key));
}

#endif
