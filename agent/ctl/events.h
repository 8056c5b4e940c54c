#ifndef REDSHANK_CTL_EVENTS_H
#define REDSHANK_CTL_EVENTS_H
/* What `redshankctl events` shows of GET /v1/events and its stream (docs/status.md). */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "agent/base/buffer.h"
#include "agent/base/error.h"

/* --- which --- */

/* Events that concern a service, or some of its prefixes. */
struct events_filter {
	json_t *prefixes; /* owned: by service, an object with their names, or true for all of the
			     service; NULL: every event is shown */
};

/* `explained`: the document of GET /v1/explain?name=WHAT, borrowed for the call. */
void events_filter_init(struct events_filter *f, const json_t *explained, const char *what);
void events_filter_done(struct events_filter *f);
#define _cleanup_events_filter_ _cleanup_(events_filter_done)
/* What is about the whole server, and says so with a person's name, concerns everything. */
bool events_filter_matches(const struct events_filter *f, const json_t *event);

/* --- how --- */

/* One line: when, how bad where it is, and the log's line. */
void events_print(FILE *out, const json_t *event, bool colours);
/* The event as it came, on one line, in ASCII. */
void events_print_json(FILE *out, const json_t *event);

/* --- the stream --- */

#define SSE_LINE_MAX (64 * 1024)
#define SSE_ID_MAX 64

/*
 * Takes server-sent events apart (HTML Living Standard, 9.2.6), as far as the agent's need it:
 * lines end with LF or CRLF; `data` and `id` count.
 */
struct sse {
	struct buffer line, data;
	char id[SSE_ID_MAX]; /* of the newest event that had one; "": none yet */
	void (*event)(void *userdata, const char *data, size_t length);
	void *userdata;
};

void sse_init(
	struct sse *s, void (*event)(void *userdata, const char *data, size_t n), void *userdata);
void sse_done(struct sse *s);
/* A new connection: what was half received is dropped; the id stays. */
void sse_restart(struct sse *s);
/* 0; -E2BIG: a line longer than SSE_LINE_MAX, which no agent sends; -ENOMEM. */
int sse_take(struct sse *s, const char *data, size_t n);

/* --- the command --- */

struct events_options {
	const char *socket;
	const char *what; /* a service or a prefix; NULL: all */
	bool json;
	bool follow;
	bool colours;
};

/*
 * Shows them; with `follow` goes on until it is ended or `out` cannot be written to, over restarts
 * of the agent. Returns a code of enum command_exit; what went wrong was said on `err`.
 */
int events_command(const struct events_options *options, FILE *out, FILE *err);

#endif
