/*
 * What happened, asked over the real server: the document and its query, the stream, what it
 * resumes with, and what clients that go away, do not read or come in crowds cost.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/base/buffer.h"
#include "agent/base/clock.h"
#include "agent/events/events.h"
#include "agent/status/http.h"
#include "agent/status/stream.h"

#define HEADERS "Host: redshank\r\n\r\n"
#define STREAM_OF(query, more) \
	"GET /v1/events" query " HTTP/1.1\r\nAccept: text/event-stream\r\n" more HEADERS

static char directory[] = "/tmp/redshank-stream-XXXXXX";
static char socket_path[sizeof(directory) + 16];
static char listen_text[32];
static unsigned short tcp_port;
static sd_event *event;
static struct http *http;
static struct buffer got;

static unsigned short free_port(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	close(fd);
	return ntohs(address.sin_port);
}

static void setup(void)
{
	static const struct http_ops ops = {0};
	struct config_status settings = {.socket = socket_path, .listen = listen_text};
	struct error error = {{0}};

	tcp_port = free_port();
	(void)snprintf(listen_text, sizeof(listen_text), "127.0.0.1:%u", tcp_port);
	ck_assert_int_eq(events_init(), 0);
	ck_assert_int_ge(sd_event_new(&event), 0);
	ck_assert_msg(http_new(&http, event, &settings, &ops, &error) == 0, "%s", error.text);
	buffer_init(&got, 64 * 1024 * 1024);
}

static void teardown(void)
{
	http_free(http);
	http = NULL;
	sd_event_unref(event);
	events_done();
	buffer_done(&got);
}

static void say(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		event_say(LOG_INFO, EVENT_CHECK, &(const struct event_fields){.service = "dns"},
			"event %u", i);
}

/* --- clients --- */

static int client(bool tcp)
{
	struct sockaddr_un path = {.sun_family = AF_UNIX};
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(tcp_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM, 0);

	strcpy(path.sun_path, socket_path);
	ck_assert_int_eq(tcp ? connect(fd, (struct sockaddr *)&address, sizeof(address))
			     : connect(fd, (struct sockaddr *)&path, sizeof(path)),
		0);
	ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static int asked(bool tcp, const char *request)
{
	int fd = client(tcp);

	ck_assert_int_eq(send(fd, request, strlen(request), 0), (ssize_t)strlen(request));
	return fd;
}

static void turn(void)
{
	ck_assert_int_ge(sd_event_run(event, 1000), 0);
}

/* What the client gets until it holds `text`; or until it is closed, where that is NULL. */
static const char *read_until(int fd, const char *text)
{
	struct monotime end = monotime_add_ms(clock_monotime(), 10000);
	char chunk[65536];

	buffer_clear(&got);
	while (!monotime_reached(end, clock_monotime())) {
		ssize_t n = recv(fd, chunk, sizeof(chunk), 0);

		if (n > 0)
			ck_assert_int_eq(buffer_append(&got, chunk, (size_t)n), 0);
		if (text && strstr(buffer_string(&got), text))
			return buffer_string(&got);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			break;
		turn();
	}
	ck_assert_msg(!text, "no \"%s\" in: %.2000s", text, buffer_string(&got));
	ck_assert_msg(!monotime_reached(end, clock_monotime()), "not closed");
	return buffer_string(&got);
}

static void turn_for(uint64_t ms)
{
	struct monotime end = monotime_add_ms(clock_monotime(), ms);

	while (!monotime_reached(end, clock_monotime()))
		turn();
}

/* --- the document --- */

static json_t *document(const char *query)
{
	const char *answer, *body;
	char request[256];
	json_t *root;
	int fd;

	(void)snprintf(request, sizeof(request), "GET /v1/events%s HTTP/1.1\r\n" HEADERS, query);
	fd = asked(false, request);
	answer = read_until(fd, NULL);
	close(fd);
	ck_assert_msg(strncmp(answer, "HTTP/1.1 200 ", 13) == 0, "%.200s", answer);
	body = strstr(answer, "\r\n\r\n");
	ck_assert_ptr_nonnull(body);
	root = json_loads(body + 4, JSON_REJECT_DUPLICATES, NULL);
	ck_assert_msg(json_is_object(root), "%s", body);
	return root;
}

static json_int_t number(const json_t *root, const char *key)
{
	return json_integer_value(json_object_get(root, key));
}

static json_int_t id_at(const json_t *root, size_t i)
{
	return number(json_array_get(json_object_get(root, "events"), i), "id");
}

START_TEST (the_document) {
	char other[64], mine[64];
	struct {
		const char *query;
		json_int_t n, first, lost;
		bool more, restarted;
	} rows[] = {
		{"", 10, 1, 0, false, false},
		{"?limit=3", 3, 8, 0, false, false},
		{"?limit=0", 0, 0, 0, false, false},
		{"?since=0", 10, 1, 0, false, false},
		{"?since=7", 3, 8, 0, false, false},
		{"?since=10", 0, 0, 0, false, false},
		{"?since=2&limit=2", 2, 3, 0, true, false},
		{"?since=99", 10, 1, 0, false, true},
		{mine, 3, 8, 0, false, false},
		{other, 10, 1, 0, false, true},
	};

	say(10);
	(void)snprintf(mine, sizeof(mine), "?since=%s-7", events_span().instance);
	(void)snprintf(other, sizeof(other), "?since=x%s-7", events_span().instance);
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		json_t *root = document(rows[i].query);
		size_t n = json_array_size(json_object_get(root, "events"));

		ck_assert_msg((json_int_t)n == rows[i].n, "row %zu: %zu", i, n);
		ck_assert_int_eq(id_at(root, 0), rows[i].first);
		ck_assert_int_eq(number(root, "format"), 1);
		ck_assert_int_eq(number(root, "oldest"), 1);
		ck_assert_int_eq(number(root, "newest"), 10);
		ck_assert_int_eq(number(root, "lost"), rows[i].lost);
		ck_assert_int_eq(json_is_true(json_object_get(root, "more")), rows[i].more);
		ck_assert_int_eq(
			json_is_true(json_object_get(root, "restarted")), rows[i].restarted);
		json_decref(root);
	}
}
END_TEST

START_TEST (the_document_of_none_and_of_many) {
	json_t *root = document("");

	ck_assert_int_eq(number(root, "oldest"), 1);
	ck_assert_int_eq(number(root, "newest"), 0);
	ck_assert_uint_eq(json_array_size(json_object_get(root, "events")), 0);
	json_decref(root);
	say(EVENTS_MAX + 76);
	root = document("?since=50");
	ck_assert_int_eq(number(root, "oldest"), 77);
	ck_assert_int_eq(number(root, "lost"), 26);
	ck_assert_uint_eq(json_array_size(json_object_get(root, "events")), EVENTS_MAX);
	ck_assert_int_eq(id_at(root, 0), 77);
	json_decref(root);
}
END_TEST

START_TEST (what_is_no_question) {
	static const char *const queries[] = {"?limit=x", "?limit=-1", "?limit=1025", "?since=x",
		"?since=-1", "?since=1x", "?since=a-b-1", "?since=99999999999999999999"};

	for (size_t i = 0; i < ELEMENTSOF(queries); i++) {
		char request[256];
		int fd;

		(void)snprintf(request, sizeof(request), "GET /v1/events%s HTTP/1.1\r\n" HEADERS,
			queries[i]);
		fd = asked(false, request);
		ck_assert_msg(strncmp(read_until(fd, NULL), "HTTP/1.1 400 ", 13) == 0, "%s: %.100s",
			queries[i], buffer_string(&got));
		close(fd);
	}
}
END_TEST

/* --- the stream --- */

START_TEST (what_comes) {
	for (int tcp = 0; tcp < 2; tcp++) {
		const char *answer;
		char wanted[64];
		int fd;

		say(1);
		fd = asked(tcp, STREAM_OF("", ""));
		answer = read_until(fd, "retry: 1000");
		ck_assert_ptr_nonnull(strstr(answer, "HTTP/1.1 200 "));
		ck_assert_ptr_nonnull(strstr(answer, "Content-Type: text/event-stream\r\n"));
		ck_assert_ptr_null(strstr(answer, "data:"));
		say(1);
		(void)snprintf(wanted, sizeof(wanted), "id: %s-%llu\ndata: {\"id\": %llu, ",
			events_span().instance, (unsigned long long)events_span().newest,
			(unsigned long long)events_span().newest);
		(void)read_until(fd, wanted);
		say(3);
		(void)read_until(fd, "event 2\"}\n\n");
		ck_assert_ptr_nonnull(strstr(buffer_string(&got), "event 0"));
		ck_assert_ptr_nonnull(strstr(buffer_string(&got), "event 1"));
		close(fd);
	}
}
END_TEST

START_TEST (where_it_begins) {
	char resumed[256];
	struct {
		const char *request;
		const char *first, *not ;
	} rows[] = {
		{STREAM_OF("?limit=2", ""), "\"id\": 9,", "\"id\": 8,"},
		{STREAM_OF("?since=3", ""), "\"id\": 4,", "\"id\": 3,"},
		{STREAM_OF("?since=3", "Last-Event-ID: 8\r\n"), "\"id\": 9,", "\"id\": 8,"},
		{resumed, "\"id\": 6,", "\"id\": 5,"},
		{STREAM_OF("", "Last-Event-ID: 00000000-8\r\n"), "\"id\": 1,", "\"lost\""},
	};

	say(10);
	(void)snprintf(resumed, sizeof(resumed), STREAM_OF("?limit=1", "Last-Event-ID: %s-5\r\n"),
		events_span().instance);
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		int fd = asked(false, rows[i].request);

		(void)read_until(fd, "\"id\": 10,");
		ck_assert_msg(strstr(buffer_string(&got), rows[i].first) != NULL, "row %zu: %s", i,
			buffer_string(&got));
		ck_assert_msg(strstr(buffer_string(&got), rows[i].not ) == NULL, "row %zu: %s", i,
			buffer_string(&got));
		close(fd);
	}
}
END_TEST

START_TEST (a_gap_is_told) {
	int fd;

	say(EVENTS_MAX + 10);
	fd = asked(false, STREAM_OF("?since=4", ""));
	(void)read_until(fd, "\"id\": 11,");
	ck_assert_ptr_nonnull(strstr(buffer_string(&got), "\"event\": \"lost\""));
	ck_assert_ptr_nonnull(strstr(buffer_string(&got), "\"lost\": 6,"));
	ck_assert_ptr_nonnull(strstr(buffer_string(&got), "data: {\"id\": 10, "));
	close(fd);
}
END_TEST

/* Every data line is one whole JSON object, whatever was said, and however much at once. */
START_TEST (every_line_is_whole) {
	static const char evil[] = "\"\\\n\ndata: x\r\nid: 3\x01\xff";
	unsigned lines = 0;
	const char *line;
	char *body;
	int fd = asked(false, STREAM_OF("", "Connection: close\r\n"));

	(void)read_until(fd, "retry: 1000\n\n");
	for (int i = 0; i < 200; i++)
		event_say(LOG_INFO, EVENT_DRAIN,
			&(const struct event_fields){.why = evil, .service = evil}, "%s", evil);
	say(1);
	(void)read_until(fd, "event 0\"}\n\n");
	/* Chunks of the transfer coding stand between: a line is what lies between two "data: ". */
	body = strdup(buffer_string(&got));
	for (line = body; (line = strstr(line, "\ndata: {")); line++)
		lines++;
	free(body);
	ck_assert_uint_ge(lines, 195); /* a chunk's head may stand before some */
	ck_assert_ptr_null(strstr(buffer_string(&got), "\nid: 3\x01"));
	ck_assert_ptr_null(strstr(buffer_string(&got), "\ndata: x"));
	close(fd);
}
END_TEST

/* --- what clients cost --- */

START_TEST (a_client_that_goes_frees_its_place) {
	for (unsigned i = 0; i < 4 * STREAMS_MAX; i++) {
		int fd = asked(i % 2, STREAM_OF("", ""));

		ck_assert_ptr_nonnull(strstr(read_until(fd, "\r\n\r\n"), "HTTP/1.1 200 "));
		close(fd);
		turn_for(5);
	}
}
END_TEST

START_TEST (a_crowd_is_bounded_for_each_socket) {
	int fds[STREAMS_MAX], more;

	for (unsigned i = 0; i < STREAMS_MAX; i++) {
		fds[i] = asked(true, STREAM_OF("", ""));
		(void)read_until(fds[i], "retry: ");
	}
	more = asked(true, STREAM_OF("", ""));
	(void)read_until(more, "HTTP/1.1 503 ");
	close(more);
	more = asked(false, STREAM_OF("", ""));
	(void)read_until(more, "retry: ");
	say(1);
	(void)read_until(more, "event 0");
	for (unsigned i = 0; i < STREAMS_MAX; i++) {
		(void)read_until(fds[i], "event 0");
		close(fds[i]);
	}
	close(more);
}
END_TEST

/*
 * One that does not read is shut out in its time; another one beside it misses nothing, has no
 * total deadline as other requests have one, and hears a heartbeat when it is quiet. The loop does
 * not spin meanwhile.
 */
START_TEST (one_that_does_not_read_and_one_that_does) {
	int deaf = asked(false, STREAM_OF("", "")), fd = asked(false, STREAM_OF("", ""));
	struct pollfd shut = {.fd = deaf, .events = POLLRDHUP};
	struct monotime begin;
	unsigned turns = 0;

	(void)read_until(deaf, "retry: ");
	(void)read_until(fd, "retry: ");
	for (unsigned i = 0; i < 40; i++) {
		say(50);
		(void)read_until(fd, "event 49");
	}
	begin = clock_monotime();
	ck_assert_int_gt(STREAM_HEARTBEAT_MS, STREAM_SLOW_MS + 1500);
	while (monotime_since_us(begin, clock_monotime()) < (STREAM_HEARTBEAT_MS - 500) * 1000ULL) {
		ck_assert_int_ge(sd_event_run(event, 100000), 0);
		turns++;
	}
	ck_assert_uint_lt(turns, 600);
	(void)read_until(fd, ":\n\n");
	say(1);
	(void)read_until(fd, "event 0");
	ck_assert_int_eq(poll(&shut, 1, 0), 1);
	ck_assert(shut.revents & POLLRDHUP);
	(void)read_until(deaf, NULL);
	ck_assert_ptr_null(strstr(buffer_string(&got), "\"id\": 2001,"));
	close(deaf);
	close(fd);
}
END_TEST

/* The last words come through when the agent ends. */
START_TEST (the_end) {
	int fd = asked(false, STREAM_OF("", ""));

	(void)read_until(fd, "retry: ");
	say(2);
	http_free(http);
	http = NULL;
	buffer_clear(&got);
	for (char chunk[4096];;) {
		ssize_t n = recv(fd, chunk, sizeof(chunk), 0);

		if (n <= 0)
			break;
		ck_assert_int_eq(buffer_append(&got, chunk, (size_t)n), 0);
	}
	ck_assert_ptr_nonnull(strstr(buffer_string(&got), "event 1\"}\n\n"));
	ck_assert_ptr_nonnull(strstr(buffer_string(&got), "\r\n0\r\n"));
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("status-stream");
	TCase *c = tcase_create("stream");
	SRunner *runner;
	int failed, fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (!mkdtemp(directory))
		return EXIT_FAILURE;
	(void)snprintf(socket_path, sizeof(socket_path), "%s/status.sock", directory);
	log_init(LOG_ERR, true);
	(void)dup2(fd, 2);
	tcase_set_timeout(c, 40);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, the_document);
	tcase_add_test(c, the_document_of_none_and_of_many);
	tcase_add_test(c, what_is_no_question);
	tcase_add_test(c, what_comes);
	tcase_add_test(c, where_it_begins);
	tcase_add_test(c, a_gap_is_told);
	tcase_add_test(c, every_line_is_whole);
	tcase_add_test(c, a_client_that_goes_frees_its_place);
	tcase_add_test(c, a_crowd_is_bounded_for_each_socket);
	tcase_add_test(c, one_that_does_not_read_and_one_that_does);
	tcase_add_test(c, the_end);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	(void)rmdir(directory);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
