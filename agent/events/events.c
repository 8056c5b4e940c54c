/*
 * The events: what was said, kept as the JSON text in which it is asked for.
 *
 * An event is rendered once, when it is recorded, into a buffer on the stack, and copied into a
 * ring of bytes. Readers copy it from there: a crowd of them costs no rendering. A record lies in
 * one piece; where it does not fit behind the newest it goes to the ring's beginning. Whatever it
 * would overwrite is forgotten first, the oldest before the newer ones, which is the order in which
 * they lie.
 *
 * Prefixes of a service that change alike are one event with the first of their names and their
 * number: the death of a service of 5,000 prefixes does not push out all that led to it.
 */
#include "agent/events/events.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/base/buffer.h"
#include "agent/base/clock.h"
#include "agent/base/printable.h"
#include "agent/status/json.h"

static const struct {
	const char *word;
	const char *message_id;
} kinds[] = {
#define X(name, word, id) {word, id},
	EVENT_KINDS(X)
#undef X
};

struct record {
	size_t offset;
	size_t length;
};

static struct {
	char instance[EVENTS_INSTANCE_MAX];
	char *bytes; /* owned, EVENTS_BYTES; NULL: nothing is kept */
	size_t end;  /* behind the newest record */
	struct record records[EVENTS_MAX];
	size_t first; /* the oldest of records */
	size_t n;
	uint64_t newest;
	uint64_t lost;
	void (*recorded)(void *userdata);
	void *userdata;
} state;

const char *event_kind_name(enum event_kind kind)
{
	assert((size_t)kind < ELEMENTSOF(kinds));
	return kinds[kind].word;
}

const char *event_kind_message_id(enum event_kind kind)
{
	assert((size_t)kind < ELEMENTSOF(kinds));
	return kinds[kind].message_id;
}

const char *event_level_name(int level)
{
	switch (level) {
	case LOG_WARNING:
		return "warning";
	case LOG_NOTICE:
		return "notice";
	case LOG_INFO:
		return "info";
	case LOG_DEBUG:
		return "debug";
	default: /* LOG_ERR and worse, of which there is none */
		return "error";
	}
}

/* --- the ring --- */

static struct record *oldest_record(void)
{
	return &state.records[state.first];
}

static void forget_oldest(void)
{
	assert(state.n > 0);
	state.first = (state.first + 1) % EVENTS_MAX;
	state.n--;
}

/* Where `length` bytes go: what lies there is forgotten. */
static size_t ring_place(size_t length)
{
	assert(length <= EVENTS_BYTES);
	if (state.n == 0)
		state.end = 0;
	if (state.n == EVENTS_MAX)
		forget_oldest();
	if (state.end + length > EVENTS_BYTES) {
		while (state.n > 0 && oldest_record()->offset >= state.end)
			forget_oldest();
		state.end = 0;
	}
	while (state.n > 0 && oldest_record()->offset >= state.end &&
		oldest_record()->offset < state.end + length)
		forget_oldest();
	return state.end;
}

static void ring_put(const char *text, size_t length)
{
	struct record *record;
	size_t offset = ring_place(length + 1);

	memcpy(state.bytes + offset, text, length + 1);
	record = &state.records[(state.first + state.n) % EVENTS_MAX];
	*record = (struct record){offset, length};
	state.n++;
	state.end = offset + length + 1;
}

/* --- one event as JSON --- */

static void write_word(struct json_writer *w, const char *key, const char *value)
{
	if (value && value[0])
		json_write_string(w, key, value);
}

/* The names of `list`, at most EVENT_PREFIXES_NAMED, cut out of `memory`. Returns how many. */
static size_t split_prefixes(
	const char *list, char memory[EVENT_PREFIXES_SIZE], const char *names[EVENT_PREFIXES_NAMED])
{
	size_t n = 0;
	char *rest = memory, *name;

	(void)snprintf(memory, EVENT_PREFIXES_SIZE, "%s", list ? list : "");
	while (n < EVENT_PREFIXES_NAMED && (name = strsep(&rest, " ")))
		if (name[0])
			names[n++] = name;
	return n;
}

struct event {
	uint64_t id;
	int level;
	enum event_kind kind;
	const struct event_fields *fields;
	const char *message;
	const char *time;
	const char *prefixes[EVENT_PREFIXES_NAMED];
	size_t n_named, n_prefixes;
};

static void write_prefixes(struct json_writer *w, const struct event *e, size_t n_named)
{
	if (e->n_prefixes == 0)
		return;
	json_open_array(w, "prefixes");
	for (size_t i = 0; i < n_named; i++)
		json_write_string(w, NULL, e->prefixes[i]);
	json_close(w);
	json_write_number(w, "prefix_count", e->n_prefixes);
}

static int write_event(const struct event *e, size_t n_named, struct buffer *out)
{
	struct json_writer w;

	buffer_clear(out);
	json_writer_init_line(&w, out);
	json_open_object(&w, NULL);
	json_write_number(&w, "id", e->id);
	json_write_string(&w, "instance", state.instance);
	json_write_string(&w, "time", e->time);
	json_write_string(&w, "event", event_kind_name(e->kind));
	json_write_string(&w, "level", event_level_name(e->level));
	write_word(&w, "service", e->fields->service);
	write_word(&w, "check", e->fields->check);
	write_prefixes(&w, e, n_named);
	write_word(&w, "from", e->fields->from);
	write_word(&w, "to", e->fields->to);
	write_word(&w, "wanted", e->fields->wanted);
	write_word(&w, "reason", e->fields->reason);
	write_word(&w, "rule", e->fields->rule);
	write_word(&w, "who", e->fields->who);
	write_word(&w, "why", e->fields->why);
	write_word(&w, "until", e->fields->until);
	write_word(&w, "unit", e->fields->unit);
	write_word(&w, "neighbour", e->fields->neighbour);
	write_word(&w, "session", e->fields->session);
	write_word(&w, "protocol", e->fields->protocol);
	json_write_string(&w, "message", e->message);
	json_close(&w);
	return json_writer_error(&w);
}

static void keep(const struct event *e)
{
	char memory[EVENT_TEXT_MAX];
	struct buffer out;

	buffer_init_fixed(&out, memory, sizeof(memory));
	if (!state.bytes || (write_event(e, e->n_named, &out) < 0 && write_event(e, 0, &out) < 0)) {
		state.lost++;
		return;
	}
	ring_put(buffer_string(&out), out.length);
	state.newest = e->id;
	if (state.recorded)
		state.recorded(state.userdata);
}

/* --- one event as a line of the log --- */

static void tell(const struct event *e)
{
	const struct event_fields *f = e->fields;
	const struct log_field fixed[] = {
		{"MESSAGE_ID", event_kind_message_id(e->kind)},
		{"REDSHANK_EVENT", event_kind_name(e->kind)},
		{"REDSHANK_SERVICE", f->service},
		{"REDSHANK_CHECK", f->check},
		{"REDSHANK_FROM", f->from},
		{"REDSHANK_TO", f->to},
		{"REDSHANK_WANTED", f->wanted},
		{"REDSHANK_REASON", f->reason},
		{"REDSHANK_RULE", f->rule},
		{"REDSHANK_WHO", f->who},
		{"REDSHANK_WHY", f->why},
		{"REDSHANK_UNTIL", f->until},
		{"REDSHANK_UNIT", f->unit},
		{"REDSHANK_NEIGHBOUR", f->neighbour},
		{"REDSHANK_SESSION", f->session},
		{"REDSHANK_PROTOCOL", f->protocol},
	};
	struct log_field fields[ELEMENTSOF(fixed) + 1 + EVENT_PREFIXES_NAMED];
	size_t n = ELEMENTSOF(fixed);
	char count[24];

	memcpy(fields, fixed, sizeof(fixed));
	if (e->n_prefixes > 0) {
		(void)snprintf(count, sizeof(count), "%zu", e->n_prefixes);
		fields[n++] = (struct log_field){"REDSHANK_PREFIX_COUNT", count};
	}
	for (size_t i = 0; i < e->n_named; i++)
		fields[n++] = (struct log_field){"REDSHANK_PREFIX", e->prefixes[i]};
	log_entry(e->level, e->message, fields, n);
}

void event_say(
	int level, enum event_kind kind, const struct event_fields *fields, const char *format, ...)
{
	static const struct event_fields none = {0};
	char text[LOG_TEXT_MAX], time[CLOCK_TEXT_MAX];
	char names[EVENT_PREFIXES_SIZE];
	struct event e = {.level = level, .kind = kind, .fields = fields ? fields : &none};
	int saved = errno;
	va_list ap;

	va_start(ap, format);
	e.message = log_format(text, format, ap);
	va_end(ap);
	e.n_named = split_prefixes(e.fields->prefixes, names, e.prefixes);
	e.n_prefixes = e.fields->n_prefixes > 0 ? e.fields->n_prefixes : e.n_named;
	tell(&e);
	if (level < LOG_DEBUG) {
		e.id = state.newest + 1;
		e.time = clock_format(clock_walltime(), time);
		keep(&e);
	}
	errno = saved;
}

/* --- life, and readers --- */

/* A word that no other life of an agent has had: random, and the time where there is no chance yet
 * (early in the boot of a machine). */
static void new_instance(void)
{
	uint64_t word = 0;

	if (getrandom(&word, sizeof(word), GRND_NONBLOCK) != sizeof(word))
		word = (uint64_t)clock_walltime().us;
	(void)snprintf(
		state.instance, sizeof(state.instance), "%08x", (unsigned)(word ^ (word >> 32)));
}

int events_init(void)
{
	events_done();
	new_instance();
	state.bytes = malloc(EVENTS_BYTES);
	return state.bytes ? 0 : -ENOMEM;
}

void events_done(void)
{
	free(state.bytes);
	memset(&state, 0, sizeof(state));
}

struct events_span events_span(void)
{
	return (struct events_span){.instance = state.instance,
		.oldest = state.newest - state.n + 1,
		.newest = state.newest,
		.lost = state.lost};
}

const char *events_get(uint64_t id, size_t *ret_length)
{
	const struct record *record;

	if (id > state.newest || state.newest - id >= state.n)
		return NULL;
	record = &state.records[(state.first + (state.n - 1 - (size_t)(state.newest - id))) %
				EVENTS_MAX];
	*ret_length = record->length;
	return state.bytes + record->offset;
}

void events_watch(void (*recorded)(void *userdata), void *userdata)
{
	state.recorded = recorded;
	state.userdata = userdata;
}
