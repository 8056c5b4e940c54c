/*
 * What is kept of what was said: the ring's bounds, the JSON of hostile text, and that nothing of
 * it needs memory or can fail. stderr, where the log goes, is thrown away.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/events/events.h"

static unsigned recorded;

static void on_recorded(void *userdata)
{
	recorded++;
}

static void setup(void)
{
	ck_assert_int_eq(events_init(), 0);
	recorded = 0;
	events_watch(on_recorded, NULL);
}

static void teardown(void)
{
	events_done();
}

/* Owned by the caller. */
static json_t *parsed(uint64_t id)
{
	size_t length = 0;
	const char *text = events_get(id, &length);
	json_error_t error;
	json_t *event;

	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(strlen(text), length);
	ck_assert_ptr_null(strpbrk(text, "\r\n"));
	event = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(event != NULL, "%s: %s", error.text, text);
	return event;
}

static const char *text_of(const json_t *event, const char *key)
{
	const char *text = json_string_value(json_object_get(event, key));

	return text ? text : "(none)";
}

START_TEST (an_event) {
	const struct event_fields fields = {.service = "dns",
		.check = "answers",
		.from = "up",
		.to = "down",
		.reason = "timeout after 500ms",
		.why = ""};
	json_t *event;

	errno = ENOTTY;
	event_say(LOG_INFO, EVENT_CHECK, &fields, "check %s/%s: down", "dns", "answers");
	ck_assert_int_eq(errno, ENOTTY);
	ck_assert_uint_eq(recorded, 1);
	ck_assert_uint_eq(events_span().oldest, 1);
	ck_assert_uint_eq(events_span().newest, 1);
	event = parsed(1);
	ck_assert_int_eq(json_integer_value(json_object_get(event, "id")), 1);
	ck_assert_str_eq(text_of(event, "instance"), events_span().instance);
	ck_assert_uint_eq(strlen(text_of(event, "time")), 24);
	ck_assert_str_eq(text_of(event, "event"), "check");
	ck_assert_str_eq(text_of(event, "level"), "info");
	ck_assert_str_eq(text_of(event, "service"), "dns");
	ck_assert_str_eq(text_of(event, "check"), "answers");
	ck_assert_str_eq(text_of(event, "from"), "up");
	ck_assert_str_eq(text_of(event, "to"), "down");
	ck_assert_str_eq(text_of(event, "reason"), "timeout after 500ms");
	ck_assert_str_eq(text_of(event, "message"), "check dns/answers: down");
	ck_assert_ptr_null(json_object_get(event, "why"));
	ck_assert_ptr_null(json_object_get(event, "prefixes"));
	json_decref(event);
}
END_TEST

START_TEST (what_is_not_kept) {
	event_say(LOG_DEBUG, EVENT_DRIFT, NULL, "again");
	ck_assert_uint_eq(events_span().newest, 0);
	ck_assert_uint_eq(events_span().oldest, 1);
	ck_assert_uint_eq(recorded, 0);
	ck_assert_ptr_null(events_get(0, &(size_t){0}));
	ck_assert_ptr_null(events_get(1, &(size_t){0}));
	ck_assert_ptr_null(events_get(UINT64_MAX, &(size_t){0}));
}
END_TEST

/* Case A26: quotes, backslashes, newlines, terminal codes, bytes that are no UTF-8. */
START_TEST (hostile_text) {
	static const char evil[] =
		"a\"b\\c\nid: 7\r\n\ndata: x\x1b[2J\xff\xc3\xa9\xe2\x80\xa8</script>\x7f";
	const struct event_fields fields = {.service = evil,
		.check = evil,
		.prefixes = evil,
		.from = evil,
		.reason = evil,
		.who = evil,
		.why = evil,
		.session = evil,
		.protocol = evil};
	json_t *event;

	event_say(LOG_ERR, EVENT_DRAIN, &fields, "%s", evil);
	event = parsed(1);
	ck_assert_str_eq(text_of(event, "level"), "error");
	ck_assert_ptr_nonnull(strstr(text_of(event, "why"), "a\"b\\c\nid: 7"));
	ck_assert_ptr_nonnull(strstr(text_of(event, "message"), "a\"b\\c\\x0aid: 7"));
	json_decref(event);
}
END_TEST

START_TEST (many_prefixes) {
	char list[EVENT_PREFIXES_NAMED * 20] = "";
	const struct event_fields fields = {.service = "dns", .prefixes = list, .n_prefixes = 5000};
	const struct event_fields two = {.prefixes = "192.0.2.53/32 2001:db8::53/128"};
	json_t *event, *prefixes;

	for (unsigned i = 0; i < EVENT_PREFIXES_NAMED; i++)
		(void)snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s192.0.2.%u/32",
			i > 0 ? " " : "", i);
	event_say(LOG_INFO, EVENT_PREFIX, &fields, "many");
	event_say(LOG_INFO, EVENT_PREFIX, &two, "two");
	event = parsed(1);
	prefixes = json_object_get(event, "prefixes");
	ck_assert_uint_eq(json_array_size(prefixes), EVENT_PREFIXES_NAMED);
	ck_assert_str_eq(json_string_value(json_array_get(prefixes, 63)), "192.0.2.63/32");
	ck_assert_int_eq(json_integer_value(json_object_get(event, "prefix_count")), 5000);
	json_decref(event);
	event = parsed(2);
	ck_assert_uint_eq(json_array_size(json_object_get(event, "prefixes")), 2);
	ck_assert_int_eq(json_integer_value(json_object_get(event, "prefix_count")), 2);
	json_decref(event);
}
END_TEST

/* The longest that can be said is kept, if need be without the prefixes' names. */
START_TEST (the_longest_event) {
	char text[3000], list[EVENT_PREFIXES_SIZE];
	struct event_fields fields = {
		.service = "dns", .prefixes = list, .reason = text, .why = text};
	json_t *event;

	memset(text, '"', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memset(list, '2', sizeof(list) - 1);
	for (size_t i = 45; i < sizeof(list); i += 46)
		list[i] = ' ';
	list[sizeof(list) - 1] = '\0';
	event_say(LOG_INFO, EVENT_SERVICE, &fields, "%s", text);
	ck_assert_uint_eq(events_span().newest + events_span().lost, 1);
	fields.reason = "short";
	event_say(LOG_INFO, EVENT_SERVICE, &fields, "%s", "short");
	event = parsed(events_span().newest);
	ck_assert_str_eq(text_of(event, "message"), "short");
	json_decref(event);
}
END_TEST

/* Of many events the newest are kept, whole, within the number and the bytes. */
START_TEST (the_ring) {
	static const size_t lengths[] = {1, 5, 900, 40, 300, 700, 2};
	char text[1000];
	uint64_t shortest = UINT64_MAX;

	memset(text, 'x', sizeof(text));
	for (uint64_t i = 1; i <= 6000; i++) {
		const struct event_fields fields = {.reason = text, .why = text};
		size_t length = lengths[i % ELEMENTSOF(lengths)] % (i < 3000 ? 1000 : 50);
		struct events_span span;
		size_t kept = 0;

		text[length] = '\0';
		event_say(LOG_INFO, EVENT_CHECK, &fields, "%llu %s", (unsigned long long)i, text);
		text[length] = 'x';
		span = events_span();
		ck_assert_uint_eq(span.newest, i);
		ck_assert_ptr_null(events_get(span.oldest - 1, &(size_t){0}));
		if (i % 97 != 0)
			continue;
		for (uint64_t id = span.oldest; id <= span.newest; id++) {
			size_t n = 0;
			const char *got = events_get(id, &n);
			char wanted[64];

			ck_assert_ptr_nonnull(got);
			ck_assert_uint_eq(strlen(got), n);
			(void)snprintf(
				wanted, sizeof(wanted), "{\"id\": %llu, ", (unsigned long long)id);
			ck_assert_int_eq(strncmp(got, wanted, strlen(wanted)), 0);
			ck_assert_int_eq(got[n - 1], '}');
			kept += n + 1;
		}
		ck_assert_uint_le(kept, EVENTS_BYTES);
		ck_assert_uint_le(span.newest + 1 - span.oldest, EVENTS_MAX);
		if (i > EVENTS_MAX && span.newest + 1 - span.oldest < shortest)
			shortest = span.newest + 1 - span.oldest;
	}
	/* Long ones push out by bytes, short ones by number; never much more than they must. */
	ck_assert_uint_ge(shortest, 300);
	ck_assert_uint_eq(events_span().newest + 1 - events_span().oldest, EVENTS_MAX);
	ck_assert_uint_eq(events_span().lost, 0);
}
END_TEST

START_TEST (without_memory_they_are_counted) {
	events_done();
	event_say(LOG_INFO, EVENT_CHECK, NULL, "x");
	ck_assert_uint_eq(events_span().newest, 0);
	ck_assert_uint_eq(events_span().lost, 1);
}
END_TEST

START_TEST (each_life_has_a_word_of_its_own) {
	char before[EVENTS_INSTANCE_MAX];

	(void)snprintf(before, sizeof(before), "%s", events_span().instance);
	ck_assert_uint_eq(strlen(before), 8);
	event_say(LOG_INFO, EVENT_CHECK, NULL, "x");
	ck_assert_int_eq(events_init(), 0);
	ck_assert_str_ne(events_span().instance, before);
	ck_assert_uint_eq(events_span().newest, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("events-ring");
	TCase *c = tcase_create("ring");
	SRunner *runner;
	int failed, fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	log_init(LOG_ERR, true);
	(void)dup2(fd, 2);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, an_event);
	tcase_add_test(c, what_is_not_kept);
	tcase_add_test(c, hostile_text);
	tcase_add_test(c, many_prefixes);
	tcase_add_test(c, the_longest_event);
	tcase_add_test(c, the_ring);
	tcase_add_test(c, without_memory_they_are_counted);
	tcase_add_test(c, each_life_has_a_word_of_its_own);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
