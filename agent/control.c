/*
 * The operator's changes.
 *
 * A request is read by the table of its command's keys, so that a misspelt `for` is refused and not
 * a drain without an end. A drain is carried out even when it cannot be kept on disk: the person
 * who asks for it has a reason, and is told. Everything here runs in the loop's idle moments;
 * nothing asks the network who somebody is.
 */
#include "agent/control.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/base/clock.h"
#include "agent/base/printable.h"
#include "agent/config/duration.h"
#include "agent/config/nearest.h"
#include "agent/status/explain.h"
#include "agent/status/json.h"
#include "agent/system/log.h"

#define CONTROL_ANSWER_MAX (256 * 1024)
#define CONTROL_SERVER "the whole server"

struct control {
	struct control_ops ops;
	const struct config *const *config;
	struct words words;
	sd_event_source *timer;
};

/* One request, and its answer as it grows. */
struct control_request {
	struct control *control;
	const struct caller *caller;
	const json_t *body; /* an object with none but known keys */
	unsigned status;
	char *answer; /* NULL: without memory */
};

/* --- answers --- */

static void control_refuse(struct control_request *q, unsigned status, const char *format, ...)
	_printf_(3, 4);
static void control_refuse(struct control_request *q, unsigned status, const char *format, ...)
{
	_cleanup_buffer_ struct buffer out = {0};
	struct json_writer w;
	char text[1024];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	buffer_init(&out, CONTROL_ANSWER_MAX);
	json_writer_init(&w, &out);
	json_open_object(&w, NULL);
	json_write_string(&w, "error", text);
	json_close(&w);
	q->status = status;
	if (json_writer_error(&w) >= 0 && buffer_append(&out, "\n", 1) >= 0)
		q->answer = TAKE_PTR(out.data);
}

/* What was done, and what about it did not go well, or NULL. */
static void control_done(struct control_request *q, const char *text, const char *warning)
{
	_cleanup_buffer_ struct buffer out = {0};
	struct json_writer w;

	buffer_init(&out, CONTROL_ANSWER_MAX);
	json_writer_init(&w, &out);
	json_open_object(&w, NULL);
	json_write_string(&w, "text", text);
	json_write_string(&w, "warning", warning);
	json_close(&w);
	q->status = 200;
	if (json_writer_error(&w) >= 0 && buffer_append(&out, "\n", 1) >= 0)
		q->answer = TAKE_PTR(out.data);
}

/* --- words --- */

static const char *word_target(const struct word *word)
{
	return word->name[0] ? word->name : CONTROL_SERVER;
}

static const char *word_verb(const struct word *word)
{
	switch (word->kind) {
	case WORD_DRAIN:
		return "drain";
	case WORD_WEIGHT:
		return "weight of";
	}
	abort();
}

/* "until 2026-11-30T14:00:00.000Z" */
static const char *word_until(const struct word *word, char buf[64])
{
	char text[CLOCK_TEXT_MAX];

	if (word_is_forever(word))
		(void)snprintf(buf, 64,
			word->kind == WORD_DRAIN ? "until it is undrained" : "until it is reset");
	else
		(void)snprintf(buf, 64, "until %s", clock_format(word->until, text));
	return buf;
}

static void control_arm(struct control *c)
{
	struct walltime next = words_next_end(&c->words);

	if (next.us == WORDS_FOREVER.us) {
		(void)sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
		return;
	}
	(void)sd_event_source_set_time(c->timer, (uint64_t)next.us);
	(void)sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

/* What is said now is kept and carried out. False, with the text, where it could not be kept. */
static bool control_changed(struct control *c, struct error *ret_error)
{
	int r;

	control_arm(c);
	c->ops.changed(c->ops.userdata);
	r = words_save(&c->words, ret_error);
	if (r < 0)
		log_error(
			"state: %s; what is said now does not outlive the agent", ret_error->text);
	return r >= 0;
}

/* Drops what has ended. True when something has. */
static bool control_expire(struct control *c)
{
	struct walltime now = clock_walltime();
	bool any = false;
	struct word word;

	while (words_take_ended(&c->words, now, &word)) {
		log_notice("%s %s: its time is over; it was by %s%s%s", word_verb(&word),
			word_target(&word), word.who, word.reason[0] ? ": " : "", word.reason);
		any = true;
	}
	return any;
}

/* The clock may have been set back since: then nothing has ended, and the timer is armed again. */
static int control_on_timer(sd_event_source *source, uint64_t us, void *userdata)
{
	struct control *c = userdata;
	struct error error = {0};

	if (control_expire(c))
		(void)control_changed(c, &error);
	else
		control_arm(c);
	return 0;
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

/* --- commands --- */

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

static bool control_until(struct control_request *q, struct walltime now, struct walltime *ret)
{
	const json_t *span = json_object_get(q->body, "for");
	uint64_t ms = 0;

	*ret = WORDS_FOREVER;
	if (!span || json_is_null(span))
		return true;
	if (!json_is_string(span) || duration_parse(json_string_value(span), &ms) < 0 || ms == 0) {
		control_refuse(q, 400,
			"for: expected a time such as \"30m\" or \"2h\", at most 366 days "
			"(\"8784h\")");
		return false;
	}
	ret->us = now.us + (int64_t)ms * 1000;
	return true;
}

static void control_drain(struct control_request *q)
{
	struct word word = {.since = clock_walltime()};
	struct control *c = q->control;
	char until[64], text[512];
	struct error error = {0};
	size_t n_prefixes;
	bool kept;

	if (!control_name(q, word.name) || !control_reason(q, word.reason) ||
		!control_until(q, word.since, &word.until))
		return;
	if (word.name[0] && !control_find(*c->config, word.name, &n_prefixes)) {
		control_unknown(q, word.name);
		return;
	}
	(void)caller_format(q->caller, word.who);
	if (words_put(&c->words, &word) < 0) {
		control_refuse(
			q, 507, "no room: at most %d drains and weights at one time", WORDS_MAX);
		return;
	}
	(void)word_until(&word, until);
	log_notice("drain %s: by %s, %s%s%s", word_target(&word), word.who, until,
		word.reason[0] ? ": " : "", word.reason);
	kept = control_changed(c, &error);
	(void)snprintf(text, sizeof(text), "drained %s %s", word_target(&word), until);
	control_done(q, text, kept ? NULL : error.text);
}

/* What keeps the name drained still, or would: NULL, nothing. */
static const struct word *control_cover(const struct control *c, const char *name)
{
	const struct config_service *service;
	size_t n_prefixes;

	service = control_find(*c->config, name, &n_prefixes);
	return words_cover(&c->words, service ? service->name : name, name);
}

static void control_undrain(struct control_request *q)
{
	char name[WORDS_NAME_MAX + 1], who[CALLER_TEXT_MAX], text[512];
	struct control *c = q->control;
	const struct word *cover;
	struct error error = {0};
	size_t n_prefixes;
	struct word word;
	bool kept;

	if (!control_name(q, name))
		return;
	if (!words_take(&c->words, WORD_DRAIN, name, &word)) {
		cover = control_cover(c, name);
		if (cover)
			control_refuse(q, 409, "%s is not drained by that name; it is with %s",
				name[0] ? name : CONTROL_SERVER, word_target(cover));
		else if (name[0] && !control_find(*c->config, name, &n_prefixes))
			control_unknown(q, name);
		else
			control_refuse(
				q, 409, "%s is not drained", name[0] ? name : CONTROL_SERVER);
		return;
	}
	log_notice("undrain %s: by %s; it was drained by %s%s%s", word_target(&word),
		caller_format(q->caller, who), word.who, word.reason[0] ? ": " : "", word.reason);
	kept = control_changed(c, &error);
	cover = control_cover(c, name);
	if (cover)
		(void)snprintf(text, sizeof(text), "undrained %s, which stays drained with %s",
			word_target(&word), word_target(cover));
	else
		(void)snprintf(text, sizeof(text), "undrained %s", word_target(&word));
	control_done(q, text, kept ? NULL : error.text);
}

/* True for a prefix that is configured; else refused. */
static bool control_is_prefix(struct control_request *q, const char *name)
{
	size_t n_prefixes = 0;
	const struct config_service *service = control_find(*q->control->config, name, &n_prefixes);

	if (!name[0] || (service && strcmp(service->name, name) == 0)) {
		control_refuse(q, 400, "name: expected a prefix: each has a weight of its own");
		return false;
	}
	if (!service)
		control_unknown(q, name);
	return service != NULL;
}

/* Back to what is configured. */
static void control_weight_reset(struct control_request *q, const char *name)
{
	char who[CALLER_TEXT_MAX], text[512];
	struct control *c = q->control;
	struct error error = {0};
	struct word word;
	bool kept;

	if (!words_take(&c->words, WORD_WEIGHT, name, &word)) {
		if (!words_find(&c->words, WORD_WEIGHT, name) && control_is_prefix(q, name))
			control_refuse(q, 409, "%s has the weight that is configured", name);
		return;
	}
	log_notice("weight of %s: reset by %s; it was %" PRIu32 " by %s%s%s", name,
		caller_format(q->caller, who), word.weight, word.who, word.reason[0] ? ": " : "",
		word.reason);
	kept = control_changed(c, &error);
	(void)snprintf(text, sizeof(text), "%s has the weight that is configured", name);
	control_done(q, text, kept ? NULL : error.text);
}

static void control_weight(struct control_request *q)
{
	struct word word = {.kind = WORD_WEIGHT, .since = clock_walltime()};
	const json_t *weight = json_object_get(q->body, "weight");
	struct control *c = q->control;
	struct error error = {0};
	char until[64], text[512];
	bool kept;

	if (!control_name(q, word.name) || !control_reason(q, word.reason) ||
		!control_until(q, word.since, &word.until))
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
	(void)caller_format(q->caller, word.who);
	if (words_put(&c->words, &word) < 0) {
		control_refuse(
			q, 507, "no room: at most %d words of operators at one time", WORDS_MAX);
		return;
	}
	(void)word_until(&word, until);
	log_notice("weight of %s: %" PRIu32 " by %s, %s%s%s", word.name, word.weight, word.who,
		until, word.reason[0] ? ": " : "", word.reason);
	kept = control_changed(c, &error);
	(void)snprintf(
		text, sizeof(text), "%s has weight %" PRIu32 " %s", word.name, word.weight, until);
	control_done(q, text, kept ? NULL : error.text);
}

static void control_check_now(struct control_request *q)
{
	char who[CALLER_TEXT_MAX];

	log_notice("check now: by %s", caller_format(q->caller, who));
	q->control->ops.check_now(q->control->ops.userdata);
	control_done(q, "every check runs now", NULL);
}

/* 409 and what is wrong, all of it. */
static void control_reload_refused(struct control_request *q, const struct problems *p, int error)
{
	_cleanup_buffer_ struct buffer out = {0};
	struct json_writer w;
	char text[128];

	(void)snprintf(text, sizeof(text), "%s; what ran keeps running",
		p->n > 0 ? "the configuration is refused" : strerror(-error));
	buffer_init(&out, CONTROL_ANSWER_MAX);
	json_writer_init(&w, &out);
	json_open_object(&w, NULL);
	json_write_string(&w, "error", text);
	json_open_array(&w, "problems");
	for (size_t i = 0; i < p->n; i++)
		json_write_string(&w, NULL, p->items[i].text);
	json_close(&w);
	json_close(&w);
	q->status = 409;
	if (json_writer_error(&w) >= 0 && buffer_append(&out, "\n", 1) >= 0)
		q->answer = TAKE_PTR(out.data);
}

static void control_reload(struct control_request *q)
{
	char who[CALLER_TEXT_MAX], text[64];
	struct control *c = q->control;
	struct problems problems;
	int r;

	log_notice("reload: by %s", caller_format(q->caller, who));
	problems_init(&problems);
	r = c->ops.reload(c->ops.userdata, &problems);
	if (r < 0) {
		control_reload_refused(q, &problems, r);
	} else {
		(void)snprintf(text, sizeof(text), "reloaded: watching %zu services",
			(*c->config)->n_services);
		control_done(q, text, problems.n > 0 ? problems.items[0].text : NULL);
	}
	problems_done(&problems);
}

const char *const control_commands[] = {"drain", "undrain", "weight", "check-now", "reload", NULL};

static const struct control_row {
	const char *keys[5];
	bool needs_body; /* without one it would mean more than anybody means by nothing */
	void (*run)(struct control_request *q);
} control_rows[] = {
	{{"name", "reason", "for"}, true, control_drain},
	{{"name"}, true, control_undrain},
	{{"name", "weight", "reason", "for"}, true, control_weight},
	{{NULL}, false, control_check_now},
	{{NULL}, false, control_reload},
};

/* False, and refused, where the body has a key that the command does not know. */
static bool control_keys(struct control_request *q, const struct control_row *row)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)q->body, key, value) {
		struct nearest nearest;
		bool known = false;

		nearest_init(&nearest, key);
		for (size_t i = 0; i < ELEMENTSOF(row->keys) && row->keys[i]; i++) {
			known = known || strcmp(key, row->keys[i]) == 0;
			nearest_offer(&nearest, row->keys[i]);
		}
		if (known)
			continue;
		control_refuse(q, 400, "unknown key \"%.64s\"%s%s%s", key,
			nearest.best ? "; did you mean \"" : "", nearest.best ? nearest.best : "",
			nearest.best ? "\"?" : "");
		return false;
	}
	return true;
}

char *control_command(struct control *c, const char *command, const char *body, size_t n,
	const struct caller *caller, unsigned *ret_status)
{
	struct control_request q = {.control = c, .caller = caller, .status = 503};
	json_auto_t *root = NULL;
	const char *busy = c->ops.busy(c->ops.userdata);
	const struct control_row *row = NULL;
	json_error_t error = {0};

	for (size_t i = 0; control_commands[i]; i++)
		if (strcmp(command, control_commands[i]) == 0)
			row = &control_rows[i];
	assert(row);
	root = n == 0 && !row->needs_body ? json_object()
					  : json_loadb(body, n, JSON_REJECT_DUPLICATES, &error);
	q.body = root;
	if (!json_is_object(root))
		control_refuse(&q, 400, "expected a JSON object as the body%s%s",
			error.text[0] ? ": " : "", error.text);
	else if (busy)
		control_refuse(&q, 503, "%s", busy);
	else if (control_keys(&q, row))
		row->run(&q);
	*ret_status = q.status;
	return q.answer;
}

/* --- life --- */

int control_new(struct control **ret, sd_event *event, const char *state,
	const struct config *const *config, const struct control_ops *ops)
{
	struct control *c = calloc(1, sizeof(*c));
	struct error error = {0};
	int r;

	if (!c)
		return -ENOMEM;
	c->ops = *ops;
	c->config = config;
	r = words_load(&c->words, state, &error);
	if (r < 0)
		log_error("drains and weights of before are lost: %s", error.text);
	if (r != -ENOMEM)
		r = sd_event_add_time(
			event, &c->timer, CLOCK_REALTIME, UINT64_MAX, 1000, control_on_timer, c);
	if (r < 0) {
		control_free(c);
		return r;
	}
	(void)sd_event_source_set_description(c->timer, "drain-end");
	if (control_expire(c) && words_save(&c->words, &error) < 0)
		log_error("state: %s", error.text);
	for (size_t i = 0; i < c->words.n; i++) {
		const struct word *word = &c->words.items[i];
		char until[64];

		log_notice("%s %s: still, by %s, %s%s%s", word_verb(word), word_target(word),
			word->who, word_until(word, until), word->reason[0] ? ": " : "",
			word->reason);
	}
	control_arm(c);
	*ret = c;
	return 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	sd_event_source_disable_unref(c->timer);
	words_done(&c->words);
	free(c);
}

const struct words *control_words(const struct control *c)
{
	return &c->words;
}
