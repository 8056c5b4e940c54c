/*
 * `redshankctl events`: what is kept, and with -f what comes.
 *
 * What is kept is asked for as a document, the stream continues behind its newest event. When the
 * stream ends the agent is restarting, or has shut us out: it is asked again and again, with the id
 * of the last event, so that nothing is told twice and what is missing is told as missing. Words
 * about that go to standard error, events alone to standard output.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "agent/ctl/command.h"
#include "agent/ctl/events.h"
#include "agent/ctl/explain.h"
#include "agent/ctl/fetch.h"

#define FOLLOW_AGAIN_MS 500

struct follow {
	const struct events_options *options;
	struct events_filter filter;
	FILE *out, *err;
	struct sse stream;
	char instance[SSE_ID_MAX]; /* the agent's life of the newest event; "": none was seen */
	bool waiting;		   /* that the agent is gone was said */
	bool over;		   /* nobody reads what is written */
};

/* On `err`, or for programs as a line of JSON with `error` where they read. */
static void say(struct follow *f, const char *format, ...) _printf_(2, 3);
static void say(struct follow *f, const char *format, ...)
{
	char text[ERROR_TEXT_MAX + 128];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (f->options->json) {
		(void)text_put_json_error(f->out, text);
	} else {
		_cleanup_free_ char *escaped = text_escape(text);

		(void)fprintf(f->err, "redshankctl: %s\n", escaped);
	}
}

static void show(struct follow *f, const json_t *event)
{
	if (!events_filter_matches(&f->filter, event))
		return;
	if (f->options->json)
		events_print_json(f->out, event);
	else
		events_print(f->out, event, f->options->colours);
}

/* GET; an answer other than 200 is an error that is told. NULL: *ret_code is the exit code. */
static json_t *ask(struct follow *f, const char *path, int *ret_code)
{
	_cleanup_fetch_answer_ struct fetch_answer answer = {0};
	_cleanup_free_ char *said = NULL;
	struct error error;
	json_t *document;

	if (fetch_get(f->options->socket, path, &answer, &error) < 0) {
		say(f, "%s", error.text);
		*ret_code = COMMAND_NO_AGENT;
		return NULL;
	}
	*ret_code = COMMAND_REFUSED;
	if (answer.status != 200) {
		said = explain_error(buffer_string(&answer.body), answer.body.length);
		if (said[0])
			say(f, "%s", said);
		else
			say(f, "the agent answered HTTP status %ld", answer.status);
		return NULL;
	}
	document = status_parse(buffer_string(&answer.body), answer.body.length, &error);
	if (!document)
		say(f, "%s", error.text);
	return document;
}

static int choose(struct follow *f)
{
	_cleanup_free_ char *path = NULL;
	const char *what = f->options->what;
	json_t *explained;
	int code = COMMAND_OK;

	if (!what)
		return COMMAND_OK;
	if (strlen(what) > EXPLAIN_NAME_MAX) {
		say(f, "no service and no prefix has a name that long");
		return COMMAND_REFUSED;
	}
	path = explain_path(what);
	explained = ask(f, path, &code);
	if (!explained)
		return code;
	events_filter_init(&f->filter, explained, what);
	json_decref(explained);
	return COMMAND_OK;
}

/* What is kept. Where the stream is to continue is noted. */
static int show_kept(struct follow *f)
{
	int code = COMMAND_OK;
	json_t *document = ask(f, "/v1/events", &code), *event;
	const char *instance;
	size_t i;

	if (!document)
		return code;
	json_array_foreach (json_object_get(document, "events"), i, event)
		show(f, event);
	instance = json_string_value(json_object_get(document, "instance"));
	(void)snprintf(f->instance, sizeof(f->instance), "%s", instance ? instance : "");
	(void)snprintf(f->stream.id, sizeof(f->stream.id), "%.32s-%" JSON_INTEGER_FORMAT,
		f->instance, json_integer_value(json_object_get(document, "newest")));
	json_decref(document);
	return COMMAND_OK;
}

/* --- what comes --- */

static void on_event(void *userdata, const char *data, size_t length)
{
	struct follow *f = userdata;
	json_t *event = json_loadb(data, length, JSON_REJECT_DUPLICATES, NULL);
	const char *instance = json_string_value(json_object_get(event, "instance"));

	if (instance && strcmp(instance, f->instance) != 0) {
		say(f, "the agent has started anew");
		(void)snprintf(f->instance, sizeof(f->instance), "%s", instance);
	}
	if (json_is_object(event))
		show(f, event);
	json_decref(event);
}

/* Anything that comes, be it a comment, shows that the agent is there. */
static int on_data(void *userdata, const char *data, size_t n)
{
	struct follow *f = userdata;
	int r;

	f->waiting = false;
	r = sse_take(&f->stream, data, n);
	if (fflush(f->out) != 0)
		f->over = true;
	return f->over ? -EPIPE : r;
}

static int follow(struct follow *f)
{
	const struct timespec pause = {.tv_nsec = FOLLOW_AGAIN_MS * 1000000L};

	for (;;) {
		struct error error;
		long status = 0;
		int r;

		sse_restart(&f->stream);
		r = fetch_stream(f->options->socket, "/v1/events", f->stream.id, on_data, f,
			&status, &error);
		if (f->over)
			return COMMAND_REFUSED;
		if (r >= 0 && status == 404) {
			say(f, "the agent answered HTTP status %ld: it has no stream", status);
			return COMMAND_REFUSED;
		}
		if (!f->waiting && r >= 0 && status != 200)
			say(f, "the agent answered HTTP status %ld: asking again", status);
		else if (!f->waiting)
			say(f, "the agent is gone: waiting for it");
		f->waiting = true;
		(void)nanosleep(&pause, NULL);
	}
}

int events_command(const struct events_options *options, FILE *out, FILE *err)
{
	struct follow f = {.options = options, .out = out, .err = err};
	int code;

	sse_init(&f.stream, on_event, &f);
	code = choose(&f);
	if (code == COMMAND_OK)
		code = show_kept(&f);
	if (code == COMMAND_OK && options->follow)
		code = fflush(out) == 0 ? follow(&f) : COMMAND_REFUSED;
	sse_done(&f.stream);
	events_filter_done(&f.filter);
	return code;
}
