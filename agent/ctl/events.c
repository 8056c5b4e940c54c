/*
 * Events as lines, which of them are wanted, and the stream taken apart.
 *
 * A prefix is asked for by the service that has it, as the agent knows it now: an event that names
 * only the first of many prefixes is shown to who asks for one of the others.
 */
#include "agent/ctl/events.h"

#include <errno.h>
#include <string.h>

#include "agent/ctl/status.h"
#include "agent/judge/judge.h"

/* --- which --- */

void events_filter_init(struct events_filter *f, const json_t *explained, const char *what)
{
	json_t *services = json_object_get(explained, "services"), *service;
	const char *name;

	f->prefixes = json_object();
	json_object_foreach (services, name, service) {
		json_t *prefixes = strcmp(name, what) == 0
					   ? json_true()
					   : json_incref(json_object_get(service, "prefixes"));

		(void)json_object_set_new(f->prefixes, name, prefixes ? prefixes : json_true());
	}
}

void events_filter_done(struct events_filter *f)
{
	json_decref(f->prefixes);
	f->prefixes = NULL;
}

/* Of the prefixes that the event names, one is wanted; or it does not name all of them, or none. */
static bool names_one(const json_t *wanted, const json_t *event)
{
	const json_t *named = json_object_get(event, "prefixes");
	json_int_t count = json_integer_value(json_object_get(event, "prefix_count"));
	const json_t *prefix;
	size_t i;

	if (json_array_size(named) == 0 || count > (json_int_t)json_array_size(named))
		return true;
	json_array_foreach (named, i, prefix)
		if (json_is_string(prefix) && json_object_get(wanted, json_string_value(prefix)))
			return true;
	return false;
}

bool events_filter_matches(const struct events_filter *f, const json_t *event)
{
	const char *service = judge_text(event, "service"), *kind = judge_text(event, "event");
	const json_t *wanted;

	if (!f->prefixes || strcmp(kind, "lost") == 0 || strcmp(kind, "agent_started") == 0)
		return true;
	if (!service[0])
		return judge_text(event, "who")[0];
	wanted = json_object_get(f->prefixes, service);
	return json_is_true(wanted) || (wanted && names_one(wanted, event));
}

/* --- how --- */

static enum text_colour event_colour(const json_t *event)
{
	const char *level = judge_text(event, "level");

	if (strcmp(level, "error") == 0)
		return TEXT_RED;
	if (strcmp(level, "warning") == 0)
		return TEXT_YELLOW;
	return status_word_colour(judge_text(event, "to"));
}

void events_print(FILE *out, const json_t *event, bool colours)
{
	const char *level = judge_text(event, "level");
	bool bad = strcmp(level, "error") == 0 || strcmp(level, "warning") == 0;

	text_put(out, colours, TEXT_DIM, judge_text(event, "time"));
	(void)fputs("  ", out);
	if (bad) {
		text_put(out, colours, event_colour(event), level);
		(void)fputs(": ", out);
	}
	text_put(out, colours, event_colour(event), judge_text(event, "message"));
	(void)fputc('\n', out);
}

void events_print_json(FILE *out, const json_t *event)
{
	(void)text_put_json(out, event, 0);
	(void)fputc('\n', out);
}

/* --- the stream --- */

void sse_init(
	struct sse *s, void (*event)(void *userdata, const char *data, size_t n), void *userdata)
{
	*s = (struct sse){.event = event, .userdata = userdata};
	buffer_init(&s->line, SSE_LINE_MAX);
	buffer_init(&s->data, SSE_LINE_MAX);
}

void sse_done(struct sse *s)
{
	buffer_done(&s->line);
	buffer_done(&s->data);
}

void sse_restart(struct sse *s)
{
	buffer_clear(&s->line);
	buffer_clear(&s->data);
}

/* The value of a line's field, or NULL where it is another one. */
static const char *field_value(const char *line, const char *field)
{
	size_t n = strlen(field);

	if (strncmp(line, field, n) != 0 || line[n] != ':')
		return NULL;
	return line + n + (line[n + 1] == ' ' ? 2 : 1);
}

static int sse_line(struct sse *s)
{
	const char *line, *value;
	int r = 0;

	if (s->line.length > 0 && s->line.data[s->line.length - 1] == '\r')
		s->line.data[--s->line.length] = '\0';
	line = buffer_string(&s->line);
	if (!line[0]) {
		if (s->data.length > 0)
			s->event(s->userdata, buffer_string(&s->data), s->data.length);
		buffer_clear(&s->data);
	} else if ((value = field_value(line, "id"))) {
		(void)snprintf(s->id, sizeof(s->id), "%s", value);
	} else if ((value = field_value(line, "data"))) {
		r = s->data.length > 0 ? buffer_append(&s->data, "\n", 1) : 0;
		if (r >= 0)
			r = buffer_append_string(&s->data, value);
	}
	buffer_clear(&s->line);
	return r;
}

int sse_take(struct sse *s, const char *data, size_t n)
{
	while (n > 0) {
		const char *end = memchr(data, '\n', n);
		size_t length = end ? (size_t)(end - data) : n;
		int r = buffer_append(&s->line, data, length);

		if (r >= 0 && end)
			r = sse_line(s);
		if (r < 0)
			return r;
		data += end ? length + 1 : length;
		n -= end ? length + 1 : length;
	}
	return 0;
}
