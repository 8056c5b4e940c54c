#ifndef REDSHANK_EVENTS_EVENTS_H
#define REDSHANK_EVENTS_EVENTS_H
/*
 * What happened: the log's lines with their facts as fields, the last of them kept for
 * `GET /v1/events`, its stream and the page. event_say() is the one call that writes the line (to
 * the journal with the fields and a message id) and records the event, so that no line says what no
 * event says. As the log it is the process's own: there is one.
 *
 * Kept are at most EVENTS_MAX events in EVENTS_BYTES, taken once, in events_init(); event_say()
 * allocates nothing, waits for nothing and never fails, but an event that cannot be kept is counted
 * as lost. It is for the time after BIRD was told, never before.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/base/cleanup.h"
#include "agent/events/kinds.h"
#include "agent/system/log.h"

#define EVENTS_MAX 1024
#define EVENTS_BYTES (512 * 1024)
#define EVENT_TEXT_MAX 8192 /* of one event as JSON, with the NUL */
#define EVENT_PREFIXES_NAMED 64
#define EVENT_PREFIXES_SIZE (EVENT_PREFIXES_NAMED * 48) /* of `prefixes`, with the NUL */
#define EVENTS_INSTANCE_MAX 17

/* What is NULL, or "", does not apply. Any text: it is made fit for one line. */
struct event_fields {
	const char *service;
	const char *check;
	const char *prefixes; /* one, or many with a space between: the first EVENT_PREFIXES_NAMED
			       */
	size_t n_prefixes;    /* all of them; 0: those of `prefixes` */
	const char *from;     /* the state that was left, in the words of the status */
	const char *to;
	const char *wanted; /* of the prefixes now: announce, demote, withdraw */
	const char *reason; /* what was observed: "timeout after 500ms" */
	const char *rule;   /* that decided: a reason of the status' prefixes */
	const char *who;    /* "alice (uid 1000, pid 4711)" */
	const char *why;    /* that one's words */
	const char *until;  /* RFC 3339 */
	const char *unit;   /* of systemd */
	const char *neighbour;
	const char *session;
	const char *protocol;
};

/* Takes the memory and begins a new life, with the ids from 1 again. 0 or -ENOMEM: nothing will be
 * kept, and all else works. */
int events_init(void);
void events_done(void);

/*
 * One line of the log at `level` (LOG_ERR to LOG_INFO), and the event. At LOG_DEBUG the line only.
 * `fields` may be NULL. Keeps errno.
 */
void event_say(int level, enum event_kind kind, const struct event_fields *fields,
	const char *format, ...) _printf_(4, 5);

const char *event_kind_name(enum event_kind kind);
const char *event_kind_message_id(enum event_kind kind);
/* "error", "warning", "notice", "info", "debug". */
const char *event_level_name(int level);

/* --- what is kept --- */

struct events_span {
	const char *instance; /* a word for this life of the agent, never the same twice */
	uint64_t oldest;      /* the first id that is kept; newest + 1: none */
	uint64_t newest;      /* the last id that was given; 0: none */
	uint64_t lost;	      /* events that could not be kept at all */
};

struct events_span events_span(void);

/* The event as a JSON object on one line (docs/status.md), valid until the next event_say(). NULL:
 * not kept, or not kept any more. */
const char *events_get(uint64_t id, size_t *ret_length);

/* Called after each event that was recorded, from event_say(): it may do no more than wake
 * somebody. One at most; NULL: nobody. */
void events_watch(void (*recorded)(void *userdata), void *userdata);

#endif
