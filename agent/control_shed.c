/*
 * The operator's words about shedding: shed, unshed. Each is about one prefix, and the newest of
 * the two replaces the other.
 *
 * A shed by hand is no withdrawal: the prefix goes only when neighbours have promised to go on
 * announcing it, as one that this server sheds by itself, and the last guard is the same. So the
 * answer says what is awaited, never that it is out. An unshed brings it back at once and keeps it
 * from being shed. Who wants a prefix out whatever the neighbours say has `drain`.
 */
#include "agent/control_private.h"

#include <string.h>

#define CONTROL_TEXT_MAX 640

static enum word_kind other_of(enum word_kind kind)
{
	return kind == WORD_SHED ? WORD_UNSHED : WORD_SHED;
}

static const char *verb_of(enum word_kind kind)
{
	return kind == WORD_SHED ? "shed" : "unshed";
}

static enum event_kind event_of(enum word_kind kind)
{
	return kind == WORD_SHED ? EVENT_SHED : EVENT_UNSHED;
}

/* `reset`: shedding decides by itself again. */
static void control_shed_reset(struct control_request *q, enum word_kind kind, const char *name)
{
	char text[CONTROL_TEXT_MAX];
	struct word word;

	if (json_object_size(q->body) != 2) {
		control_refuse(q, 400, "reset: expected it with `name` alone");
		return;
	}
	if (!words_take(&q->control->words, kind, name, &word)) {
		if (control_is_prefix(q, name))
			control_refuse(q, 409, "%s is not %s by an operator", name, verb_of(kind));
		return;
	}
	control_log_taken(q, event_of(kind), verb_of(kind), &word, "reset; it was given");
	(void)snprintf(text, sizeof(text),
		kind == WORD_SHED ? "%s is shed by hand no more: if it was out, it comes back"
				  : "%s may be shed again when this server is overloaded",
		name);
	control_answer(q, text);
}

static void control_shed_say(struct control_request *q, struct word *word)
{
	char until[CONTROL_UNTIL_MAX], text[CONTROL_TEXT_MAX];
	struct word other;
	bool replaced;

	if (!control_put(q, word))
		return;
	replaced = words_take(&q->control->words, other_of(word->kind), word->name, &other);
	control_log_said(q, word);
	if (replaced)
		control_log_taken(q, event_of(other.kind), verb_of(other.kind), &other,
			"replaced by this word; it was given");
	(void)control_word_until(word, until);
	if (word->kind == WORD_SHED)
		(void)snprintf(text, sizeof(text),
			"%s is to be shed %s: it goes when neighbours have promised to go on "
			"announcing it; `redshankctl explain %s` says what it waits for",
			word->name, until, word->name);
	else
		(void)snprintf(text, sizeof(text),
			"%s comes back if it was shed, and is not shed %s", word->name, until);
	control_answer(q, text);
}

static void control_shed_word(struct control_request *q, enum word_kind kind)
{
	const json_t *reset = json_object_get(q->body, "reset");
	struct word word = {.kind = kind};
	const char *cannot;

	if (reset && !json_is_boolean(reset)) {
		control_refuse(q, 400, "reset: expected true or false");
		return;
	}
	if (!control_read_word(q, &word))
		return;
	if (json_is_true(reset)) {
		control_shed_reset(q, kind, word.name);
		return;
	}
	if (!control_is_prefix(q, word.name))
		return;
	cannot = q->control->ops.cannot_shed(q->control->ops.userdata);
	if (cannot)
		control_refuse(q, 409, "%s", cannot);
	else
		control_shed_say(q, &word);
}

void control_shed(struct control_request *q)
{
	control_shed_word(q, WORD_SHED);
}

void control_unshed(struct control_request *q)
{
	control_shed_word(q, WORD_UNSHED);
}
