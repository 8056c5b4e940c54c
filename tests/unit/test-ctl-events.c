/* What redshankctl makes of events: the stream taken apart however it is cut, which concern whom,
 * and how they look. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/events.h"

static struct sse sse;
static char seen[4096];

static void on_event(void *userdata, const char *data, size_t length)
{
	ck_assert_uint_eq(strlen(data), length);
	(void)snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "[%s]", data);
}

static void setup(void)
{
	sse_init(&sse, on_event, NULL);
	seen[0] = '\0';
}

static void teardown(void)
{
	sse_done(&sse);
}

/* --- the stream --- */

static const struct {
	const char *stream, *events, *id;
} streams[] = {
	{"retry: 1000\n\nid: a-1\ndata: {\"x\": 1}\n\n", "[{\"x\": 1}]", "a-1"},
	{"id: a-1\r\ndata: {}\r\n\r\nid: a-2\r\ndata: {}\r\n\r\n", "[{}][{}]", "a-2"},
	{":\n\n: a comment\n\ndata: x\n\n", "[x]", ""},
	{"data: one\ndata: two\n\n", "[one\ntwo]", ""},
	{"data:x\nevent: other\nunknown: y\ndatax: z\n\n", "[x]", ""},
	{"id: a-1\n\ndata: half", "", "a-1"},
	{"\n\n\n", "", ""},
};

START_TEST (taken_apart) {
	const char *stream = streams[_i].stream;

	ck_assert_int_eq(sse_take(&sse, stream, strlen(stream)), 0);
	ck_assert_str_eq(seen, streams[_i].events);
	ck_assert_str_eq(sse.id, streams[_i].id);
}
END_TEST

START_TEST (byte_by_byte) {
	for (const char *c = streams[_i].stream; *c; c++)
		ck_assert_int_eq(sse_take(&sse, c, 1), 0);
	ck_assert_str_eq(seen, streams[_i].events);
	ck_assert_str_eq(sse.id, streams[_i].id);
}
END_TEST

START_TEST (a_new_connection) {
	static const char first[] = "id: a-1\ndata: x\n\ndata: ha", second[] = "data: y\n\n";

	ck_assert_int_eq(sse_take(&sse, first, strlen(first)), 0);
	sse_restart(&sse);
	ck_assert_int_eq(sse_take(&sse, second, strlen(second)), 0);
	ck_assert_str_eq(seen, "[x][y]");
	ck_assert_str_eq(sse.id, "a-1");
}
END_TEST

START_TEST (a_line_without_end) {
	static char many[SSE_LINE_MAX + 2];

	memset(many, 'x', sizeof(many));
	ck_assert_int_eq(sse_take(&sse, many, sizeof(many)), -E2BIG);
}
END_TEST

/* --- which --- */

#define EXPLAINED                                                                     \
	"{\"services\": {\"dns\": {\"prefixes\": {\"192.0.2.53/32\": {}}}, \"sub\": " \
	"{\"prefixes\": {\"192.0.2.0/24\": {}}}}}"
static const struct {
	const char *event;
	bool service, prefix; /* concerns dns; 192.0.2.53 */
} filtered[] = {
	{"{\"event\": \"check\", \"service\": \"dns\"}", true, true},
	{"{\"event\": \"check\", \"service\": \"web\"}", false, false},
	{"{\"event\": \"prefix\", \"service\": \"dns\", \"prefixes\": [\"192.0.2.53/32\"], "
	 "\"prefix_count\": 1}",
		true, true},
	{"{\"event\": \"prefix\", \"service\": \"dns\", \"prefixes\": [\"192.0.2.54/32\"], "
	 "\"prefix_count\": 1}",
		true, false},
	{"{\"event\": \"prefix\", \"service\": \"dns\", \"prefixes\": [\"192.0.2.54/32\"], "
	 "\"prefix_count\": 900}",
		true, true},
	{"{\"event\": \"prefix\", \"service\": \"dns\", \"prefixes\": [7], \"prefix_count\": 1}",
		true, false},
	{"{\"event\": \"drain\", \"who\": \"root\"}", true, true},
	{"{\"event\": \"session_down\"}", false, false},
	{"{\"event\": \"lost\"}", true, true},
	{"{\"event\": \"agent_started\"}", true, true},
	{"{}", false, false},
};

START_TEST (who_is_concerned) {
	json_t *event = json_loads(filtered[_i].event, 0, NULL);
	json_t *explained = json_loads(EXPLAINED, 0, NULL);
	struct events_filter filter = {0};

	ck_assert(events_filter_matches(&filter, event));
	events_filter_init(&filter, explained, "192.0.2.53");
	ck_assert_int_eq(events_filter_matches(&filter, event), filtered[_i].prefix);
	events_filter_done(&filter);
	events_filter_init(&filter, explained, "dns");
	ck_assert_int_eq(events_filter_matches(&filter, event), filtered[_i].service);
	events_filter_done(&filter);
	json_decref(explained);
	json_decref(event);
}
END_TEST

/* --- how --- */

static const struct {
	const char *event, *plain, *coloured;
} printed[] = {
	{"{\"time\": \"T\", \"level\": \"info\", \"to\": \"down\", \"message\": \"m\"}", "T  m\n",
		"\033[2mT\033[0m  \033[1;31mm\033[0m\n"},
	{"{\"time\": \"T\", \"level\": \"info\", \"to\": \"healthy\", \"message\": \"m\"}",
		"T  m\n", "\033[2mT\033[0m  \033[32mm\033[0m\n"},
	{"{\"time\": \"T\", \"level\": \"warning\", \"message\": \"m\"}", "T  warning: m\n",
		"\033[2mT\033[0m  \033[33mwarning\033[0m: \033[33mm\033[0m\n"},
	{"{\"time\": \"T\", \"level\": \"error\", \"message\": \"a\\u001b[2J\\u009bb\\n\"}",
		"T  error: a\\x1b[2J\\xc2\\x9bb\\x0a\n",
		"\033[2mT\033[0m  \033[1;31merror\033[0m: "
		"\033[1;31ma\\x1b[2J\\xc2\\x9bb\\x0a\033[0m\n"},
	{"{}", "  \n", "\033[2m\033[0m  \n"},
};

static void expect_printed(const json_t *event, bool colours, const char *wanted)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	events_print(out, event, colours);
	ck_assert_int_eq(fclose(out), 0);
	ck_assert_str_eq(text, wanted);
	free(text);
}

START_TEST (as_a_line) {
	json_t *event = json_loads(printed[_i].event, 0, NULL);

	ck_assert_ptr_nonnull(event);
	expect_printed(event, false, printed[_i].plain);
	expect_printed(event, true, printed[_i].coloured);
	json_decref(event);
}
END_TEST

/* The agent writes DEL as an escape, jansson does not. */
START_TEST (as_json) {
	json_t *event = json_loads("{\"text\": \"a\\u007fb\\u001b\u00e9\"}", 0, NULL);
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	ck_assert_ptr_nonnull(event);
	events_print_json(f, event);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_str_eq(text, "{\"text\": \"a\\u007fb\\u001B\\u00E9\"}\n");
	free(text);
	json_decref(event);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl-events");
	TCase *c = tcase_create("events");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, taken_apart, 0, ELEMENTSOF(streams));
	tcase_add_loop_test(c, byte_by_byte, 0, ELEMENTSOF(streams));
	tcase_add_test(c, a_new_connection);
	tcase_add_test(c, a_line_without_end);
	tcase_add_loop_test(c, who_is_concerned, 0, ELEMENTSOF(filtered));
	tcase_add_loop_test(c, as_a_line, 0, ELEMENTSOF(printed));
	tcase_add_test(c, as_json);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
