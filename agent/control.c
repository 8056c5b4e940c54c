/*
 * The operator's changes.
 *
 * A request is read by the table of its command's keys, so that a misspelt `for` is refused and not
 * a drain without an end. A drain is carried out even when it cannot be kept on disk: the person
 * who asks for it has a reason, and is told. Everything here runs in the loop's idle moments;
 * nothing asks the network who somebody is, and the disk has a thread of its own (words/keeper.h):
 * BIRD has been told by then.
 */
#include "agent/control_private.h"

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

#define CONTROL_ANSWER_MAX (256 * 1024)
/* --- answers --- */

void control_refuse(struct control_request *q, unsigned status, const char *format, ...)
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

void control_done(struct control_request *q, const char *text, const char *warning)
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

bool control_changed(struct control *c, unsigned wait_ms, struct error *ret_error)
{
	char *text;

	control_arm(c);
	c->ops.changed(c->ops.userdata);
	text = words_render(&c->words);
	if (!text) {
		(void)error_set_errno(ret_error, ENOMEM, "%s", c->words.path);
		return false;
	}
	return keeper_put(c->keeper, text, wait_ms, ret_error) >= 0;
}

/* What has become of the file, where that is news. */
static void control_on_kept(void *userdata, const char *error)
{
	if (error[0])
		event_say(LOG_ERR, EVENT_STATE_TROUBLE, NULL,
			"state: %s; what is said now does not outlive the agent", error);
	else
		event_say(LOG_NOTICE, EVENT_STATE_TROUBLE, NULL,
			"state: what operators have said is on disk again");
}

const char *control_state_error(const struct control *c)
{
	return keeper_error(c->keeper);
}

/* Drops what has ended. True when something has. */
static bool control_expire(struct control *c)
{
	struct walltime now = clock_walltime();
	struct control_texts texts;
	bool any = false;
	struct word word;

	while (words_take_ended(&c->words, now, &word)) {
		struct event_fields fields = control_word_fields(c, &word, &texts);

		fields.from = fields.to;
		fields.to = NULL;
		event_say(LOG_NOTICE, EVENT_WORD_ENDED, &fields,
			"%s %s: its time is over; it was by %s%s%s", control_word_verb(&word),
			control_word_target(&word), word.who, word.reason[0] ? ": " : "",
			word.reason);
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
		(void)control_changed(c, 0, &error);
	else
		control_arm(c);
	return 0;
}

/* --- commands --- */

static void control_check_now(struct control_request *q)
{
	char who[CALLER_TEXT_MAX];
	const struct event_fields fields = {.who = caller_format(q->caller, who)};

	event_say(LOG_NOTICE, EVENT_CHECK_NOW, &fields, "check now: by %s", who);
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
	const struct event_fields fields = {.who = caller_format(q->caller, who)};
	const json_t *force = json_object_get(q->body, "force");
	struct control *c = q->control;
	struct problems problems;
	int r;

	if (force && !json_is_boolean(force)) {
		control_refuse(q, 400, "force: expected true or false");
		return;
	}
	event_say(LOG_NOTICE, EVENT_RELOAD, &fields, "reload%s: by %s",
		json_is_true(force) ? " --force" : "", who);
	problems_init(&problems);
	r = c->ops.reload(c->ops.userdata, json_is_true(force), &problems);
	if (r < 0) {
		control_reload_refused(q, &problems, r);
	} else {
		(void)snprintf(text, sizeof(text), "reloaded: watching %zu services",
			(*c->config)->n_services);
		control_done(q, text, problems.n > 0 ? problems.items[0].text : NULL);
	}
	problems_done(&problems);
}

const char *const control_commands[] = {"drain", "undrain", "announce", "weight", "freeze", "thaw",
	"check-now", "reload", "shed", "unshed", NULL};

static const struct control_row {
	const char *keys[5];
	bool needs_body; /* without one it would mean more than anybody means by nothing */
	void (*run)(struct control_request *q);
} control_rows[] = {
	{{"name", "reason", "for"}, true, control_drain},
	{{"name"}, true, control_undrain},
	{{"name", "reason", "for", "reset"}, true, control_announce},
	{{"name", "weight", "reason", "for"}, true, control_weight},
	{{"reason", "for"}, false, control_freeze},
	{{NULL}, false, control_thaw},
	{{NULL}, false, control_check_now},
	{{"force"}, false, control_reload},
	{{"name", "reason", "for", "reset"}, true, control_shed},
	{{"name", "reason", "for", "reset"}, true, control_unshed},
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
	bool expired;
	char *text;
	int r;

	if (!c)
		return -ENOMEM;
	c->ops = *ops;
	c->config = config;
	r = words_load(&c->words, state, &error);
	if (r < 0)
		event_say(LOG_ERR, EVENT_STATE_TROUBLE, NULL,
			"what operators have said before is %s: %s",
			words_is_own_trouble(r) ? "not known, and so nothing begins" : "lost",
			error.text);
	if (!words_is_own_trouble(r))
		r = keeper_new(&c->keeper, event, state, control_on_kept, c);
	if (r >= 0)
		r = sd_event_add_time(
			event, &c->timer, CLOCK_REALTIME, UINT64_MAX, 1000, control_on_timer, c);
	if (r < 0) {
		control_free(c);
		return r;
	}
	(void)sd_event_source_set_description(c->timer, "drain-end");
	expired = control_expire(c);
	for (size_t i = 0; i < c->words.n; i++) {
		const struct word *word = &c->words.items[i];
		char until[CONTROL_UNTIL_MAX];
		struct control_texts texts;
		const struct event_fields fields = control_word_fields(c, word, &texts);

		event_say(LOG_NOTICE, EVENT_WORD_KEPT, &fields, "%s %s: still, by %s, %s%s%s",
			control_word_verb(word), control_word_target(word), word->who,
			control_word_until(word, until), word->reason[0] ? ": " : "", word->reason);
	}
	control_arm(c);
	text = expired ? words_render(&c->words) : NULL;
	if (text)
		(void)keeper_put(c->keeper, text, 0, &error);
	*ret = c;
	return 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	sd_event_source_disable_unref(c->timer);
	keeper_free(c->keeper);
	words_done(&c->words);
	free(c);
}

const struct words *control_words(const struct control *c)
{
	return &c->words;
}
