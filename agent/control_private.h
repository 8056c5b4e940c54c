#ifndef REDSHANK_AGENT_CONTROL_PRIVATE_H
#define REDSHANK_AGENT_CONTROL_PRIVATE_H
/* What the two halves of control share: control.c (requests, the timer, life), control_words.c
 * and control_shed.c (the commands that say or take back a word), nobody else. */
#include <jansson.h>
#include <stdbool.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/base/error.h"
#include "agent/control.h"
#include "agent/events/events.h"
#include "agent/words/keeper.h"

struct control {
	struct control_ops ops;
	const struct config *const *config;
	struct words words;
	struct keeper *keeper; /* of the words, on disk */
	sd_event_source *timer;
};

#define CONTROL_REPLACED_MAX 600

/* One request, and its answer as it grows. */
struct control_request {
	struct control *control;
	const struct caller *caller;
	const json_t *body; /* an object with none but known keys */
	unsigned status;
	char *answer; /* NULL: without memory */
	/* "; this replaces what root (uid 0, pid 7) said, until it is undrained: new disks", or ""
	 */
	char replaced[CONTROL_REPLACED_MAX];
};

/* {"error": TEXT} and the HTTP status. */
void control_refuse(struct control_request *q, unsigned status, const char *format, ...)
	_printf_(3, 4);
/* 200: what was done, and what about it did not go well, or NULL. */
void control_done(struct control_request *q, const char *text, const char *warning);
/* What is said now is carried out, then kept. Waits for the disk for `wait_ms` at most. False, with
 * the text, where it is known by then that it could not be kept. */
bool control_changed(struct control *c, unsigned wait_ms, struct error *ret_error);

/* "drain", "weight of"; "dns", "the whole server"; "until 2026-11-30T14:00:00.000Z" */
const char *control_word_verb(const struct word *word);
const char *control_word_target(const struct word *word);
#define CONTROL_UNTIL_MAX 64
const char *control_word_until(const struct word *word, char buf[CONTROL_UNTIL_MAX]);

/* Room for texts that an event borrows. */
struct control_texts {
	char until[CLOCK_TEXT_MAX];
	char weight[16];
};
/* A word as an event has it: about what, by whom, why, until when; `to` is what it makes. */
struct event_fields control_word_fields(
	const struct control *c, const struct word *word, struct control_texts *texts);

/* Name, reason and end of the request into *word, which has its kind. False, and refused. */
bool control_read_word(struct control_request *q, struct word *word);
/* True for a prefix that is configured; else refused. */
bool control_is_prefix(struct control_request *q, const char *name);
/* Says it, with who asks. False, and refused: there is no room. */
bool control_put(struct control_request *q, struct word *word);
/* What was said counts from here on, and `text` is the answer. */
void control_answer(struct control_request *q, const char *text);
/* "drain dns: by root (uid 0, pid 7), until 2026-...: new disks" */
void control_log_said(const struct control_request *q, const struct word *word);
/* "undrain dns: by bob; it was drained by root: new disks" */
void control_log_taken(const struct control_request *q, enum event_kind kind, const char *verb,
	const struct word *word, const char *was);

void control_drain(struct control_request *q);
void control_undrain(struct control_request *q);
void control_announce(struct control_request *q);
void control_freeze(struct control_request *q);
void control_thaw(struct control_request *q);
void control_weight(struct control_request *q);
void control_shed(struct control_request *q);
void control_unshed(struct control_request *q);

#endif
