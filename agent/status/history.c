/*
 * Questions about what happened. Events are JSON text already (agent/events): a document is a head
 * and copies of them, one on each line.
 */
#include "agent/status/history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/base/clock.h"
#include "agent/events/events.h"

_Static_assert(HISTORY_LIMIT_MAX == EVENTS_MAX, "all that are kept may be asked for");
#define HISTORY_DOCUMENT_MAX (EVENTS_BYTES + 8 * EVENTS_MAX + 1024)

/* Decimal digits and nothing else. */
static bool parse_number(const char *text, uint64_t *ret)
{
	unsigned long long value;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end)
		return false;
	*ret = value;
	return true;
}

bool history_parse(
	const char *since, const char *limit, uint64_t default_limit, struct history_query *ret)
{
	struct history_query q = {.since_given = since != NULL, .limit = default_limit};
	struct events_span span = events_span();
	const char *dash = since ? strchr(since, '-') : NULL;

	if (limit && (!parse_number(limit, &q.limit) || q.limit > HISTORY_LIMIT_MAX))
		return false;
	if (since && (dash == since || strlen(since) > HISTORY_SINCE_MAX ||
			     !parse_number(dash ? dash + 1 : since, &q.since)))
		return false;
	q.other_life =
		since && ((dash && (strncmp(since, span.instance, (size_t)(dash - since)) != 0 ||
					   span.instance[dash - since])) ||
				 q.since > span.newest);
	*ret = q;
	return true;
}

struct history_range history_find(const struct history_query *q)
{
	struct events_span span = events_span();
	uint64_t kept = span.newest + 1 - span.oldest, next;

	if (!q->since_given)
		return (struct history_range){
			.first = span.newest + 1 - (q->limit < kept ? q->limit : kept)};
	next = q->other_life ? 1 : q->since + 1;
	return (struct history_range){
		.first = next > span.oldest ? next : span.oldest,
		.lost = span.oldest > next ? span.oldest - next : 0,
		.other_life = q->other_life,
	};
}

static int append_head(struct buffer *out, const struct history_range *range, bool more)
{
	struct events_span span = events_span();
	char time[CLOCK_TEXT_MAX];

	return buffer_printf(out,
		"{\n"
		"  \"format\": 1,\n"
		"  \"instance\": \"%s\",\n"
		"  \"time\": \"%s\",\n"
		"  \"oldest\": %" PRIu64 ",\n"
		"  \"newest\": %" PRIu64 ",\n"
		"  \"lost\": %" PRIu64 ",\n"
		"  \"restarted\": %s,\n"
		"  \"more\": %s,\n"
		"  \"events\": [",
		span.instance, clock_format(clock_walltime(), time), span.oldest, span.newest,
		range->lost, range->other_life ? "true" : "false", more ? "true" : "false");
}

char *history_document(const struct history_query *query)
{
	struct history_range range = history_find(query);
	_cleanup_buffer_ struct buffer out = {0};
	struct events_span span = events_span();
	uint64_t n = span.newest + 1 - range.first;
	bool more = n > query->limit;

	n = more ? query->limit : n;
	buffer_init(&out, HISTORY_DOCUMENT_MAX);
	if (append_head(&out, &range, more) < 0)
		return NULL;
	for (uint64_t i = 0; i < n; i++) {
		size_t length = 0;
		const char *text = events_get(range.first + i, &length);

		if (buffer_append_string(&out, i > 0 ? ",\n    " : "\n    ") < 0 ||
			buffer_append(&out, text, length) < 0)
			return NULL;
	}
	if (buffer_append_string(&out, n > 0 ? "\n  ]\n}\n" : "]\n}\n") < 0)
		return NULL;
	return TAKE_PTR(out.data);
}
