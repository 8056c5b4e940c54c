/*
 * libFuzzer target of redshankctl's readers of events and answers: the stream taken apart, each
 * event shown, what concerns whom, and the answers to changes. The first byte says how the stream
 * is cut into pieces.
 *
 * Besides what the sanitizers see: the same bytes tell the same events whole and in pieces; and
 * nothing but our own colours steers the terminal.
 */
#include "agent/ctl/change.h"
#include "agent/ctl/events.h"
#include "agent/ctl/explain.h"
#include "tests/fuzz/fuzz.h"

struct told {
	FILE *out;
	size_t n;
};

static void on_event(void *userdata, const char *data, size_t length)
{
	struct told *told = userdata;
	json_t *event = json_loadb(data, length, JSON_REJECT_DUPLICATES, NULL);
	struct events_filter filter;

	assert(strlen(data) <= length);
	told->n++;
	(void)fprintf(told->out, "%zu\n", length);
	if (!event)
		return;
	events_print(told->out, event, false);
	events_print_json(told->out, event);
	/* Any document will do to filter by. */
	events_filter_init(&filter, event, "dns");
	(void)fputs(events_filter_matches(&filter, event) ? "yes\n" : "no\n", told->out);
	events_filter_done(&filter);
	json_decref(event);
}

/* What was told; heap. */
static char *take(const char *data, size_t n, size_t piece)
{
	struct told told = {0};
	char *text = NULL;
	size_t length = 0;
	struct sse sse;
	int r = 0;

	told.out = open_memstream(&text, &length);
	assert(told.out);
	sse_init(&sse, on_event, &told);
	while (r == 0 && n > 0) {
		size_t now = piece < n ? piece : n;

		r = sse_take(&sse, data, now);
		data += now;
		n -= now;
	}
	assert(strnlen(sse.id, sizeof(sse.id)) < sizeof(sse.id));
	(void)fprintf(told.out, "%d %s\n", r, sse.id[0] ? "id" : "none");
	sse_restart(&sse);
	sse_done(&sse);
	assert(fclose(told.out) == 0);
	fuzz_assert_printable(text, true);
	return text;
}

static void answer(const char *body, size_t n, long status, bool json)
{
	_cleanup_free_ char *text = NULL, *said = explain_error(body, n);
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	assert(said && out);
	(void)change_tell(out, out, json, status, body, n);
	assert(fclose(out) == 0);
	if (!json)
		fuzz_assert_printable(text, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *copy = NULL, *whole = NULL, *pieces = NULL;

	if (size < 1)
		return 0;
	copy = fuzz_copy(data + 1, size - 1);
	whole = take(copy, size - 1, size);
	pieces = take(copy, size - 1, (size_t)data[0] + 1);
	assert(strcmp(whole, pieces) == 0);
	answer(copy, size - 1, data[0] & 1 ? 200 : 409, data[0] & 2);
	return 0;
}
