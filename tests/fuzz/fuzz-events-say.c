/*
 * libFuzzer target of the writer of events and of JSON: a line and its fields, with the byte 0x1e
 * between them, and the questions that may be asked about events.
 *
 * Besides what the sanitizers see: whatever text comes in, every event is one line of JSON that a
 * strict reader takes, and what was kept is found again.
 */
#include "agent/events/events.h"

#include <jansson.h>

#include "agent/status/history.h"
#include "agent/status/json.h"
#include "tests/fuzz/fuzz.h"

#define TEXTS 14

static void write_json(char *const texts[TEXTS])
{
	_cleanup_buffer_ struct buffer out = {0};
	struct json_writer w;
	json_t *root;

	buffer_init(&out, 1U << 24);
	json_writer_init(&w, &out);
	json_open_object(&w, NULL);
	for (size_t i = 0; i < TEXTS; i += 2)
		json_write_string(&w, texts[i], texts[i + 1]);
	json_open_array(&w, "all");
	for (size_t i = 0; i < TEXTS; i++)
		json_write_string(&w, NULL, texts[i]);
	json_close(&w);
	json_close(&w);
	assert(json_writer_error(&w) == 0);
	root = json_loadb(out.data, out.length, 0, NULL);
	assert(json_is_object(root));
	assert(json_array_size(json_object_get(root, "all")) == TEXTS);
	json_decref(root);
}

static void check_newest(void)
{
	struct events_span span = events_span();
	const char *text;
	size_t n = 0;
	json_t *root;

	text = events_get(span.newest, &n);
	if (!text)
		return; /* too long to be kept: counted */
	assert(n < EVENT_TEXT_MAX && !memchr(text, '\n', n));
	root = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	assert(json_is_object(root));
	json_decref(root);
}

static void ask(const char *since, const char *limit)
{
	struct history_query query;
	_cleanup_free_ char *text = NULL;
	json_t *root;

	if (!history_parse(since[0] ? since : NULL, limit[0] ? limit : NULL, 5, &query))
		return;
	assert(query.limit <= HISTORY_LIMIT_MAX);
	query.limit %= 8;
	text = history_document(&query);
	root = json_loads(text ? text : "", JSON_REJECT_DUPLICATES, NULL);
	assert(json_is_object(root));
	json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool ready;
	char *texts[TEXTS];
	struct event_fields fields;

	if (!ready) {
		log_init(LOG_EMERG, true);
		assert(events_init() == 0);
		ready = true;
	}
	for (size_t i = 0; i < TEXTS; i++)
		texts[i] = fuzz_next(&data, &size);
	write_json(texts);
	fields = (struct event_fields){.service = texts[2],
		.check = texts[3],
		.prefixes = texts[4],
		.n_prefixes = strlen(texts[5]),
		.from = texts[5],
		.to = texts[6],
		.reason = texts[7],
		.who = texts[8],
		.why = texts[9],
		.unit = texts[10],
		.neighbour = texts[11],
		.session = texts[12],
		.protocol = texts[13]};
	event_say(LOG_NOTICE, (enum event_kind)(strlen(texts[0]) % (EVENT_FRAGMENT_WRITABLE + 1)),
		&fields, "%s", texts[1]);
	check_newest();
	ask(texts[2], texts[3]);
	for (size_t i = 0; i < TEXTS; i++)
		free(texts[i]);
	return 0;
}
