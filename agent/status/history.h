#ifndef REDSHANK_STATUS_HISTORY_H
#define REDSHANK_STATUS_HISTORY_H
/*
 * Which of the kept events (agent/events) somebody asks for, and the document of GET /v1/events.
 *
 * `since` is the id of the last event that the asker knows, "17", or with the agent's life that it
 * is of, "6f0c2d19-17": ids begin at 1 in each life.
 */
#include <stdbool.h>
#include <stdint.h>

#define HISTORY_SINCE_MAX 48
#define HISTORY_LIMIT_MAX 1024 /* no more are kept */

struct history_query {
	bool since_given;
	bool other_life; /* `since` is of another life of the agent */
	uint64_t since;
	uint64_t limit;
};

/* Either may be NULL: not given; `limit` is then `default_limit`. False: not what is expected. */
bool history_parse(
	const char *since, const char *limit, uint64_t default_limit, struct history_query *ret);

struct history_range {
	uint64_t first;	 /* id of the first event to tell; newest + 1: none yet */
	uint64_t lost;	 /* events after `since` that are not kept any more */
	bool other_life; /* the asker knows another life of the agent, or thinks so */
};

/* With `since`: what came after it, as far as it is kept; else the newest `limit` events. */
struct history_range history_find(const struct history_query *query);

/* docs/status.md; heap, freed by the caller. NULL without memory. */
char *history_document(const struct history_query *query);

#endif
