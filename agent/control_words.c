/*
 * The operators' words: drain, undrain, weight, announce, freeze, thaw, shed, unshed.
 *
 * Each reads what it was asked, refuses what it does not understand or what would not do what the
 * person means, and says the word. What wins where several cover a prefix:
 *
 *   a drain goes before an announcement by force, whichever came first, for a drain means that
 *   somebody is about to pull a cable. So what is drained is not announced by force (409), and a
 *   drain of the same name ends the announcement;
 *   both go before a freeze, which stops what the agent does by itself, and no operator.
 *
 * An announcement by force has to say when it ends, and that is near: it holds an address up
 * whatever its service does.
 */
#include "agent/control_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/printable.h"
#include "agent/config/duration.h"
#include "agent/status/explain.h"

#define CONTROL_SERVER "the whole server"
#define CONTROL_ANNOUNCE_MAX_MS (24 * 3600 * 1000ULL)
#define CONTROL_TEXT_MAX 640
#define CONTROL_DISK_MS 20 /* that an answer waits for the disk, and the loop with it */

/* --- how a word is told --- */

const char *control_word_target(const struct word *word)
{
	return word->name[0] ? word->name : CONTROL_SERVER;
}

const char *control_word_verb(const struct word *word)
{
	switch (word->kind) {
	case WORD_DRAIN:
		return "drain";
	case WORD_WEIGHT:
		return "weight of";
	case WORD_ANNOUNCE:
		return "announce";
	case WORD_FREEZE:
		return "freeze";
	case WORD_SHED:
		return "shed";
	case WORD_UNSHED:
		return "unshed";
	}
	abort();
}

/* What has to be done to end one that has no end. */
static const char *word_undone(const struct word *word)
{
	switch (word->kind) {
	case WORD_DRAIN:
		return "until it is undrained";
	case WORD_WEIGHT:
	case WORD_ANNOUNCE:
	case WORD_SHED:
	case WORD_UNSHED:
		return "until it is reset";
	case WORD_FREEZE:
		return "until it is thawed";
	}
	abort();
}

const char *control_word_until(const struct word *word, char buf[CONTROL_UNTIL_MAX])
{
	char text[CLOCK_TEXT_MAX];

	if (word_is_forever(word))
		(void)snprintf(buf, CONTROL_UNTIL_MAX, "%s", word_undone(word));
	else
		(void)snprintf(buf, CONTROL_UNTIL_MAX, "until %s", clock_format(word->until, text));
	return buf;
}

/* --- names --- */

/* The name as words have it: an address stands for its host prefix, a prefix is written one way. */
static void control_canonical(const char *name, char ret[WORDS_NAME_MAX + 1])
{
	char text[PREFIX_TEXT_MAX];
	struct address address;
	struct prefix prefix;

	(void)snprintf(ret, WORDS_NAME_MAX + 1, "%s", name);
	if (prefix_parse(name, &prefix, NULL) == 0) {
		(void)snprintf(ret, WORDS_NAME_MAX + 1, "%s", prefix_format(&prefix, text));
	} else if (address_parse(name, &address, NULL) == 0) {
		prefix = (struct prefix){.address = address,
			.length = address.family == ADDRESS_FAMILY_IPV4 ? 32 : 128};
		(void)snprintf(ret, WORDS_NAME_MAX + 1, "%s", prefix_format(&prefix, text));
	}
}

/* The service that is or has `name`, and how many prefixes that means; NULL: nobody. */
static const struct config_service *control_find(
	const struct config *config, const char *name, size_t *ret_prefixes)
{
	char text[PREFIX_TEXT_MAX];

	for (size_t s = 0; s < config->n_services; s++) {
		const struct config_service *service = &config->services[s];

		*ret_prefixes = service->n_prefixes;
		if (strcmp(service->name, name) == 0)
			return service;
		*ret_prefixes = 1;
		for (size_t i = 0; i < service->n_prefixes; i++)
			if (strcmp(prefix_format(&service->prefixes[i].prefix, text), name) == 0)
				return service;
	}
	return NULL;
}

/* The request's `name` into ret, "" where there is none. False, and refused, where it is none. */
static bool control_name(struct control_request *q, char ret[WORDS_NAME_MAX + 1])
{
	const json_t *name = json_object_get(q->body, "name");

	ret[0] = '\0';
	if (!name || json_is_null(name))
		return true;
	if (!json_is_string(name) || json_string_length(name) == 0 ||
		json_string_length(name) > WORDS_NAME_MAX) {
		control_refuse(q, 400,
			"name: expected a service, a prefix, or nothing for the whole server");
		return false;
	}
	control_canonical(json_string_value(name), ret);
	return true;
}

static void control_unknown(struct control_request *q, const char *name)
{
	q->status = 404;
	q->answer = explain_nothing(*q->control->config, name);
}

static bool control_reason(struct control_request *q, char ret[WORDS_TEXT_MAX + 1])
{
	const json_t *reason = json_object_get(q->body, "reason");

	ret[0] = '\0';
	if (!reason || json_is_null(reason))
		return true;
	if (!json_is_string(reason) || json_string_length(reason) > WORDS_TEXT_MAX) {
		control_refuse(q, 400, "reason: expected text of at most %d bytes", WORDS_TEXT_MAX);
		return false;
	}
	(void)printable_copy(
		ret, WORDS_TEXT_MAX + 1, json_string_value(reason), json_string_length(reason));
	return true;
}

/* The request's `for` into *ret. `max_ms` 0: no end is an end, too. */
static bool control_until(
	struct control_request *q, struct walltime now, uint64_t max_ms, struct walltime *ret)
{
	const json_t *span = json_object_get(q->body, "for");
	uint64_t ms = 0;

	*ret = WORDS_FOREVER;
	if (max_ms == 0 && (!span || json_is_null(span)))
		return true;
	if (!json_is_string(span) || duration_parse(json_string_value(span), &ms) < 0 || ms == 0 ||
		(max_ms > 0 && ms > max_ms)) {
		control_refuse(q, 400,
			max_ms > 0
				? "for: expected a time such as \"30m\" or \"2h\", at most a day "
				  "(\"24h\"): what is announced by force has to end"
				: "for: expected a time such as \"30m\" or \"2h\", at most 366 "
				  "days "
				  "(\"8784h\")");
		return false;
	}
	ret->us = now.us + (int64_t)ms * 1000;
	return true;
}

bool control_read_word(struct control_request *q, struct word *word)
{
	uint64_t max_ms = word->kind == WORD_ANNOUNCE ? CONTROL_ANNOUNCE_MAX_MS : 0;

	word->since = clock_walltime();
	return control_name(q, word->name) && control_reason(q, word->reason) &&
	       control_until(q, word->since, max_ms, &word->until);
}

/* Who says a word has to hear whose word that ends. */
static void control_note_replaced(struct control_request *q, const struct word *word)
{
	const struct word *old = words_find(&q->control->words, word->kind, word->name);
	char until[CONTROL_UNTIL_MAX];

	if (old)
		(void)snprintf(q->replaced, sizeof(q->replaced),
			"; this replaces what %s said, %s%s%s", old->who,
			control_word_until(old, until), old->reason[0] ? ": " : "", old->reason);
}

bool control_put(struct control_request *q, struct word *word)
{
	(void)caller_format(q->caller, word->who);
	control_note_replaced(q, word);
	if (words_put(&q->control->words, word) >= 0)
		return true;
	control_refuse(q, 507, "no room: at most %d words of operators at one time", WORDS_MAX);
	return false;
}

/* Takes back the word about exactly that name; false where there is none. */
static bool control_take(
	struct control_request *q, enum word_kind kind, const char *name, struct word *ret)
{
	return words_take(&q->control->words, kind, name, ret);
}

void control_answer(struct control_request *q, const char *text)
{
	struct error error = {0};
	bool kept = control_changed(q->control, CONTROL_DISK_MS, &error);
	char whole[CONTROL_TEXT_MAX + CONTROL_REPLACED_MAX];

	(void)snprintf(whole, sizeof(whole), "%s%s", text, q->replaced);
	control_done(q, whole, kept ? NULL : error.text);
}

/* The word of that kind that covers what has the name, or "" for the whole server; NULL: none. */
static const struct word *control_cover(
	const struct control *c, enum word_kind kind, const char *name)
{
	const struct config_service *service;
	size_t n_prefixes;

	service = control_find(*c->config, name, &n_prefixes);
	return words_cover(&c->words, kind, service ? service->name : name, name);
}

static const char *called(const char *name)
{
	return name[0] ? name : CONTROL_SERVER;
}

/* --- how it is logged --- */

static const char *word_state(const struct word *word, struct control_texts *texts)
{
	switch (word->kind) {
	case WORD_DRAIN:
		return "drained";
	case WORD_WEIGHT:
		(void)snprintf(texts->weight, sizeof(texts->weight), "%" PRIu32, word->weight);
		return texts->weight;
	case WORD_ANNOUNCE:
		return "forced";
	case WORD_FREEZE:
		return "frozen";
	case WORD_SHED:
		return "shed";
	case WORD_UNSHED:
		return "unshed";
	}
	abort();
}

struct event_fields control_word_fields(
	const struct control *c, const struct word *word, struct control_texts *texts)
{
	size_t n_prefixes = 0;
	const struct config_service *service = control_find(*c->config, word->name, &n_prefixes);

	texts->until[0] = '\0';
	if (!word_is_forever(word))
		(void)clock_format(word->until, texts->until);
	return (struct event_fields){
		.service = service ? service->name : NULL,
		.prefixes = strchr(word->name, '/') ? word->name : NULL,
		.to = word_state(word, texts),
		.who = word->who,
		.why = word->reason,
		.until = texts->until,
	};
}

static enum event_kind word_event(const struct word *word)
{
	switch (word->kind) {
	case WORD_DRAIN:
		return EVENT_DRAIN;
	case WORD_WEIGHT:
		return EVENT_WEIGHT;
	case WORD_ANNOUNCE:
		return EVENT_ANNOUNCE;
	case WORD_FREEZE:
		return EVENT_FREEZE;
	case WORD_SHED:
		return EVENT_SHED;
	case WORD_UNSHED:
		return EVENT_UNSHED;
	}
	abort();
}

void control_log_said(const struct control_request *q, const struct word *word)
{
	struct control_texts texts;
	const struct event_fields fields = control_word_fields(q->control, word, &texts);
	char until[CONTROL_UNTIL_MAX];

	event_say(LOG_NOTICE, word_event(word), &fields, "%s %s: %s%sby %s, %s%s%s%s",
		control_word_verb(word), control_word_target(word),
		word->kind == WORD_WEIGHT ? texts.weight : "", word->kind == WORD_WEIGHT ? " " : "",
		word->who, control_word_until(word, until), word->reason[0] ? ": " : "",
		word->reason, q->replaced);
}

void control_log_taken(const struct control_request *q, enum event_kind kind, const char *verb,
	const struct word *word, const char *was)
{
	char who[CALLER_TEXT_MAX];
	struct control_texts texts;
	struct event_fields fields = control_word_fields(q->control, word, &texts);

	fields.from = fields.to;
	fields.to = fields.why = fields.until = NULL;
	fields.who = caller_format(q->caller, who);
	event_say(LOG_NOTICE, kind, &fields, "%s %s: %sby %s; it was %s by %s%s%s", verb,
		control_word_target(word), word->kind == WORD_WEIGHT ? "reset " : "", who, was,
		word->who, word->reason[0] ? ": " : "", word->reason);
}

/* --- drain, undrain --- */

void control_drain(struct control_request *q)
{
	struct word word = {.kind = WORD_DRAIN}, forced;
	char until[CONTROL_UNTIL_MAX], text[CONTROL_TEXT_MAX];
	size_t n_prefixes;
	bool was_forced;

	if (!control_read_word(q, &word))
		return;
	if (word.name[0] && !control_find(*q->control->config, word.name, &n_prefixes)) {
		control_unknown(q, word.name);
		return;
	}
	if (!control_put(q, &word))
		return;
	was_forced = control_take(q, WORD_ANNOUNCE, word.name, &forced);
	control_log_said(q, &word);
	if (was_forced)
		control_log_taken(q, EVENT_ANNOUNCE, "announce", &forced,
			"ended by this drain; it was given");
	(void)snprintf(text, sizeof(text), "drained %s %s%s", control_word_target(&word),
		control_word_until(&word, until),
		was_forced ? "; it is announced by force no more" : "");
	control_answer(q, text);
}

void control_undrain(struct control_request *q)
{
	char name[WORDS_NAME_MAX + 1], text[CONTROL_TEXT_MAX];
	struct control *c = q->control;
	const struct word *cover;
	size_t n_prefixes;
	struct word word;

	if (!control_name(q, name))
		return;
	if (!control_take(q, WORD_DRAIN, name, &word)) {
		cover = control_cover(c, WORD_DRAIN, name);
		if (cover)
			control_refuse(q, 409, "%s is not drained by that name; it is with %s",
				called(name), control_word_target(cover));
		else if (name[0] && !control_find(*c->config, name, &n_prefixes))
			control_unknown(q, name);
		else
			control_refuse(q, 409, "%s is not drained", called(name));
		return;
	}
	control_log_taken(q, EVENT_UNDRAIN, "undrain", &word, "drained");
	cover = control_cover(c, WORD_DRAIN, name);
	(void)snprintf(text, sizeof(text), "undrained %s%s%s", control_word_target(&word),
		cover ? ", which stays drained with " : "",
		cover ? control_word_target(cover) : "");
	control_answer(q, text);
}

/* --- announce --- */

/* The prefixes of the service, or the one, that a drain keeps withdrawn. */
static size_t control_n_drained(const struct control *c, const char *name)
{
	const struct config *config = *c->config;
	char text[PREFIX_TEXT_MAX];
	size_t n = 0;

	for (size_t s = 0; s < config->n_services; s++) {
		const struct config_service *service = &config->services[s];
		bool whole = strcmp(service->name, name) == 0;

		for (size_t i = 0; i < service->n_prefixes; i++) {
			(void)prefix_format(&service->prefixes[i].prefix, text);
			if ((whole || strcmp(text, name) == 0) &&
				words_cover(&c->words, WORD_DRAIN, service->name, text))
				n++;
		}
	}
	return n;
}

/* `reset`: the rules decide again. */
static void control_announce_reset(struct control_request *q, const char *name)
{
	char text[CONTROL_TEXT_MAX];
	const struct word *cover;
	size_t n_prefixes;
	struct word word;

	if (json_object_size(q->body) != 2) {
		control_refuse(q, 400, "reset: expected it with `name` alone");
		return;
	}
	if (!control_take(q, WORD_ANNOUNCE, name, &word)) {
		cover = control_cover(q->control, WORD_ANNOUNCE, name);
		if (cover)
			control_refuse(q, 409,
				"%s is not announced by force by that name; it is with %s",
				called(name), control_word_target(cover));
		else if (!control_find(*q->control->config, name, &n_prefixes))
			control_unknown(q, name);
		else
			control_refuse(q, 409, "%s is not announced by force", called(name));
		return;
	}
	control_log_taken(q, EVENT_ANNOUNCE, "announce", &word, "reset; it was given");
	cover = control_cover(q->control, WORD_ANNOUNCE, name);
	(void)snprintf(text, sizeof(text), "%s is announced by force no more%s%s", name,
		cover ? " by that name; it still is with " : "",
		cover ? control_word_target(cover) : "");
	control_answer(q, text);
}

/* Nobody means "by force" without meaning what: there is none for the whole server. */
static bool control_announce_name(struct control_request *q, char ret[WORDS_NAME_MAX + 1])
{
	if (!control_name(q, ret))
		return false;
	if (ret[0])
		return true;
	control_refuse(q, 400,
		"name: expected a service or a prefix; the whole server is not "
		"announced by force");
	return false;
}

void control_announce(struct control_request *q)
{
	const json_t *reset = json_object_get(q->body, "reset");
	struct word word = {.kind = WORD_ANNOUNCE};
	char until[CONTROL_UNTIL_MAX], text[CONTROL_TEXT_MAX], but[64] = "";
	const struct word *drain;
	size_t n_prefixes = 0, n_drained;

	if (!control_announce_name(q, word.name))
		return;
	if (reset && !json_is_boolean(reset)) {
		control_refuse(q, 400, "reset: expected true or false");
		return;
	}
	if (json_is_true(reset)) {
		control_announce_reset(q, word.name);
		return;
	}
	if (!control_read_word(q, &word))
		return;
	if (!control_find(*q->control->config, word.name, &n_prefixes)) {
		control_unknown(q, word.name);
		return;
	}
	drain = control_cover(q->control, WORD_DRAIN, word.name);
	if (drain) {
		bool same = strcmp(drain->name, word.name) == 0;

		control_refuse(q, 409,
			"%s is drained%s%s by %s%s%s; a drain goes before an announcement by "
			"force: undrain it first",
			word.name, same ? "" : " with ", same ? "" : control_word_target(drain),
			drain->who, drain->reason[0] ? ": " : "", drain->reason);
		return;
	}
	if (!control_put(q, &word))
		return;
	control_log_said(q, &word);
	n_drained = control_n_drained(q->control, word.name);
	if (n_drained > 0)
		(void)snprintf(but, sizeof(but), "; %zu of its %zu prefixes stay drained",
			n_drained, n_prefixes);
	(void)snprintf(text, sizeof(text), "announcing %s by force %s, whatever its checks say%s",
		word.name, control_word_until(&word, until), but);
	control_answer(q, text);
}

/* --- freeze, thaw --- */

void control_freeze(struct control_request *q)
{
	struct word word = {.kind = WORD_FREEZE};
	char until[CONTROL_UNTIL_MAX], text[CONTROL_TEXT_MAX];

	if (!control_read_word(q, &word) || !control_put(q, &word))
		return;
	control_log_said(q, &word);
	(void)snprintf(text, sizeof(text),
		"frozen %s: nothing is announced or withdrawn but for a dead process, a missing "
		"address or an operator's word",
		control_word_until(&word, until));
	control_answer(q, text);
}

void control_thaw(struct control_request *q)
{
	struct word word;

	if (!control_take(q, WORD_FREEZE, "", &word)) {
		control_refuse(q, 409, CONTROL_SERVER " is not frozen");
		return;
	}
	control_log_taken(q, EVENT_THAW, "thaw", &word, "frozen");
	control_answer(q, "thawed: the checks decide again");
}

/* --- weight --- */

bool control_is_prefix(struct control_request *q, const char *name)
{
	size_t n_prefixes = 0;
	const struct config_service *service = control_find(*q->control->config, name, &n_prefixes);

	if (!name[0] || (service && strcmp(service->name, name) == 0)) {
		control_refuse(
			q, 400, "name: expected a prefix, not a service or the whole server");
		return false;
	}
	if (!service)
		control_unknown(q, name);
	return service != NULL;
}

/* Back to what is configured. */
static void control_weight_reset(struct control_request *q, const char *name)
{
	char text[512], was[16];
	struct word word;

	if (!control_take(q, WORD_WEIGHT, name, &word)) {
		if (control_is_prefix(q, name))
			control_refuse(q, 409, "%s has the weight that is configured", name);
		return;
	}
	(void)snprintf(was, sizeof(was), "%" PRIu32, word.weight);
	control_log_taken(q, EVENT_WEIGHT, "weight of", &word, was);
	(void)snprintf(text, sizeof(text), "%s has the weight that is configured", name);
	control_answer(q, text);
}

void control_weight(struct control_request *q)
{
	struct word word = {.kind = WORD_WEIGHT};
	const json_t *weight = json_object_get(q->body, "weight");
	const char *waits;
	char until[CONTROL_UNTIL_MAX], text[CONTROL_TEXT_MAX];

	if (!control_read_word(q, &word))
		return;
	if (json_is_null(weight)) {
		control_weight_reset(q, word.name);
		return;
	}
	if (!json_is_integer(weight) || json_integer_value(weight) < 0 ||
		json_integer_value(weight) > WORDS_WEIGHT_MAX) {
		control_refuse(q, 400, "weight: expected 0 to %d, or null for the configured one",
			WORDS_WEIGHT_MAX);
		return;
	}
	if (!control_is_prefix(q, word.name))
		return;
	word.weight = (uint32_t)json_integer_value(weight);
	if (!control_put(q, &word))
		return;
	control_log_said(q, &word);
	waits = q->control->ops.weight_waits(q->control->ops.userdata);
	(void)snprintf(text, sizeof(text), "%s has weight %" PRIu32 " %s%s%s%s", word.name,
		word.weight, control_word_until(&word, until), waits ? "; NOT YET: " : "",
		waits ? waits : "", waits ? ", and what it announces stays as it is" : "");
	control_answer(q, text);
}
