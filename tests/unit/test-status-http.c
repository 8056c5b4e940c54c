/*
 * The status server under its own loop, asked by raw sockets: what a good client gets, what slow,
 * silent, huge and malformed ones cost, and how the socket file is made.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/buffer.h"
#include "agent/base/clock.h"
#include "agent/status/http.h"
#include "tests/unit/descriptors.h"

#define ANSWER_MAX (8 * 1024 * 1024)
#define CONNECTIONS_MAX 64 /* of one listener, as http.c has it */
#define DEADLINE_MS 10000  /* of a connection, as http.c has it */

static char directory[] = "/tmp/redshank-http-XXXXXX";
static char socket_path[sizeof(directory) + 16];
static char listen_text[32];
static unsigned short tcp_port;
static sd_event *event;
static struct http *http;
static struct config_status settings;

static size_t document_size; /* 0: there is none */
static unsigned renders;

static int render(void *userdata, uint64_t budget_us, char **ret_text, size_t *ret_length)
{
	renders++;
	if (document_size == 0)
		return -ENOMEM;
	*ret_text = malloc(document_size);
	ck_assert_ptr_nonnull(*ret_text);
	memset(*ret_text, 'x', document_size);
	*ret_length = document_size;
	return 0;
}

static unsigned explains;
static char explained[256];

static char *explain(void *userdata, const char *name, bool *ret_found)
{
	char *text = NULL;

	explains++;
	(void)snprintf(explained, sizeof(explained), "%s", name);
	*ret_found = strcmp(name, "ftp") != 0;
	if (strcmp(name, "none") == 0)
		return NULL;
	ck_assert_int_gt(asprintf(&text, "{\"asked\": %zu}\n", strlen(name)), 0);
	return text;
}

static unsigned commanded;
static char command_name[32], command_body[8192];
static uid_t command_uid;

static char *command(void *userdata, const char *name, const char *body, size_t n,
	const struct caller *caller, unsigned *ret_status)
{
	ck_assert_uint_eq(strlen(body), n);
	commanded++;
	(void)snprintf(command_name, sizeof(command_name), "%s", name);
	(void)snprintf(command_body, sizeof(command_body), "%s", body);
	command_uid = caller->uid;
	*ret_status = strstr(body, "refuse") ? 409 : 200;
	return strdup("{\"text\": \"done\"}\n");
}

static const char *const commands[] = {"drain", "check-now", NULL};
static const struct http_ops ops = {
	.status = render, .explain = explain, .command = command, .commands = commands};

/* A port that was free a moment ago. */
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

static int open_server(struct error *error)
{
	return http_new(&http, event, &settings, &ops, error);
}

static void setup(void)
{
	struct error error = {{0}};

	document_size = 100;
	renders = explains = commanded = 0;
	tcp_port = free_port();
	(void)snprintf(listen_text, sizeof(listen_text), "127.0.0.1:%u", tcp_port);
	settings = (struct config_status){.socket = socket_path, .listen = listen_text};
	ck_assert_int_ge(sd_event_new(&event), 0);
	ck_assert_msg(open_server(&error) == 0, "%s", error.text);
}

static void teardown(void)
{
	http_free(http);
	http = NULL;
	sd_event_unref(event);
}

/* --- clients --- */

static int connect_unix(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	strcpy(address.sun_path, socket_path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static int connect_tcp(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(tcp_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static void turn(void)
{
	ck_assert_int_ge(sd_event_run(event, 1000), 0);
}

static void turn_for(uint64_t ms)
{
	struct monotime end = monotime_add_ms(clock_monotime(), ms);

	while (!monotime_reached(end, clock_monotime()))
		turn();
}

/* Sends and reads until the server closes. False when it did not within `ms`. */
static bool finish(int fd, const char *request, struct buffer *answer, uint64_t ms)
{
	struct monotime end = monotime_add_ms(clock_monotime(), ms);
	size_t left = strlen(request);
	char chunk[65536];

	while (!monotime_reached(end, clock_monotime())) {
		ssize_t n;

		if (left > 0) {
			n = send(fd, request, left, MSG_NOSIGNAL);
			if (n > 0) {
				request += n;
				left -= (size_t)n;
			} else if (errno != EAGAIN) {
				left = 0;
			}
		}
		turn();
		while ((n = recv(fd, chunk, sizeof(chunk), 0)) > 0)
			ck_assert_int_eq(buffer_append(answer, chunk, (size_t)n), 0);
		if (n == 0 || errno == ECONNRESET)
			return true;
	}
	return false;
}

/* One whole request; the answer is valid until the next. */
static const char *ask_fd(int fd, const char *request)
{
	static struct buffer answer;
	bool closed;

	buffer_done(&answer);
	buffer_init(&answer, ANSWER_MAX);
	closed = finish(fd, request, &answer, 5000);
	close(fd);
	ck_assert_msg(closed, "no end of the answer to: %.60s", request);
	return buffer_string(&answer);
}

static const char *ask(const char *request)
{
	return ask_fd(connect_unix(), request);
}

#define GET "GET /v1/status HTTP/1.1\r\nHost: redshank\r\n\r\n"
#define ck_assert_starts(s, with) ck_assert_msg(strncmp(s, with, strlen(with)) == 0, "%.200s", s)
#define ck_assert_has(s, what) ck_assert_msg(strstr(s, what) != NULL, "%.400s", s)

static size_t body_length(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");

	return body ? strlen(body + 4) : 0;
}

/* --- what a good client gets --- */

START_TEST (get_is_answered_on_both_sockets) {
	for (int tcp = 0; tcp < 2; tcp++) {
		const char *answer = ask_fd(tcp ? connect_tcp() : connect_unix(), GET);

		ck_assert_starts(answer, "HTTP/1.1 200 OK\r\n");
		ck_assert_has(answer, "Content-Type: application/json\r\n");
		ck_assert_has(answer, "Content-Length: 100\r\n");
		ck_assert_has(answer, "Connection: close\r\n");
		ck_assert_uint_eq(body_length(answer), 100);
	}
	ck_assert_uint_eq(renders, 2);
}
END_TEST

START_TEST (head_has_no_body) {
	const char *answer = ask("HEAD /v1/status HTTP/1.1\r\nHost: x\r\n\r\n");

	ck_assert_starts(answer, "HTTP/1.1 200 OK\r\n");
	ck_assert_has(answer, "Content-Length: 100\r\n");
	ck_assert_uint_eq(body_length(answer), 0);
}
END_TEST

START_TEST (what_is_not_there_or_not_allowed) {
	static const struct {
		const char *request, *status, *also;
	} rows[] = {
		{"POST /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
			"HTTP/1.1 405 ", "Allow: GET, HEAD\r\n"},
		{"DELETE /v1/status HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 ", "{\"error\": "},
		{"GET /page HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 ", "{\"error\": "},
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 ", "Content-Security-Policy: "},
		{"GET /v1/status/ HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 ",
			"Content-Type: application/json\r\n"},
		{"GET /v1/status?x=y HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 ", "xxx"},
		{"GET /v1/status HTTP/1.0\r\n\r\n", "HTTP/1.", "200 OK"},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		const char *answer = ask(rows[i].request);

		ck_assert_starts(answer, rows[i].status);
		ck_assert_has(answer, rows[i].also);
	}
}
END_TEST

/* The query is a stranger's: whatever it is, it is a name of 1 to 64 bytes or a 400. */
START_TEST (what_is_to_be_explained) {
	static const char longest[] =
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	static const struct {
		const char *query, *more, *status, *name;
	} rows[] = {
		{"?name=", "dns", "HTTP/1.1 200 ", "dns"},
		{"?name=", "192.0.2.53%2F32", "HTTP/1.1 200 ", "192.0.2.53/32"},
		{"?name=", "2001:db8::53/128&x=y", "HTTP/1.1 200 ", "2001:db8::53/128"},
		{"?x=y&name=", "%1b%ff", "HTTP/1.1 200 ", "\x1b\xff"},
		{"?name=", "ftp", "HTTP/1.1 404 ", "ftp"},
		{"?name=", "none", "HTTP/1.1 503 ", "none"},
		{"?name=", longest, "HTTP/1.1 200 ", longest},
		{"?name=a", longest, "HTTP/1.1 400 ", ""},
		{"", "", "HTTP/1.1 400 ", ""},
		{"?", "", "HTTP/1.1 400 ", ""},
		{"?name", "", "HTTP/1.1 400 ", ""},
		{"?name=", "", "HTTP/1.1 400 ", ""},
		{"?Name=", "dns", "HTTP/1.1 200 ", "dns"},
		{"?name=", "dns%00web", "HTTP/1.1 400 ", ""},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		char request[256];
		const char *answer;

		explained[0] = '\0';
		(void)snprintf(request, sizeof(request),
			"GET /v1/explain%s%s HTTP/1.1\r\nHost: x\r\n\r\n", rows[i].query,
			rows[i].more);
		answer = ask(request);
		ck_assert_msg(strncmp(answer, rows[i].status, strlen(rows[i].status)) == 0,
			"row %zu: %.100s", i, answer);
		ck_assert_str_eq(explained, rows[i].name);
		ck_assert_has(answer, "Content-Type: application/json\r\n");
	}
	ck_assert_starts(
		ask("POST /v1/explain?name=dns HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 405 ");
	ck_assert_uint_eq(renders, 0);
}
END_TEST

/* Each answer is made for its request while the loop waits: of a crowd one is served in a pass, the
 * others are sent away; and a crowd on TCP is none of the operator's. */
START_TEST (a_crowd_that_asks_at_once) {
	static const char request[] = "GET /v1/explain?name=dns HTTP/1.1\r\nHost: x\r\n\r\n";
	enum { CROWD = 12 };
	int fds[CROWD], operators = connect_unix();
	unsigned served = 0, sent_away = 0;
	const char *answer;

	for (int i = 0; i < CROWD; i++)
		fds[i] = connect_tcp();
	turn_for(100);
	for (int i = 0; i < CROWD; i++)
		ck_assert_int_gt(send(fds[i], request, strlen(request), 0), 0);
	answer = ask_fd(operators, request);
	ck_assert_starts(answer, "HTTP/1.1 200 ");
	explains--;
	for (int i = 0; i < CROWD; i++) {
		answer = ask_fd(fds[i], "");
		served += strncmp(answer, "HTTP/1.1 200 ", 13) == 0;
		sent_away += strncmp(answer, "HTTP/1.1 503 ", 13) == 0;
	}
	ck_assert_uint_eq(served, explains);
	ck_assert_uint_eq(served + sent_away, CROWD);
	ck_assert_uint_ge(served, 1);
	ck_assert_uint_ge(sent_away, CROWD / 2);
	ck_assert_starts(ask(request), "HTTP/1.1 200 ");
}
END_TEST

START_TEST (without_a_document_it_says_so) {
	document_size = 0;
	ck_assert_starts(ask(GET), "HTTP/1.1 503 ");
	document_size = 100;
	ck_assert_starts(ask(GET), "HTTP/1.1 200 ");
}
END_TEST

START_TEST (a_document_that_fills_no_socket_buffer_arrives_whole) {
	document_size = 4 * 1024 * 1024;
	ck_assert_uint_eq(body_length(ask(GET)), document_size);
}
END_TEST

/* --- commands --- */

static const char *post_fd(int fd, const char *path, const char *body)
{
	static char request[16384];

	(void)snprintf(request, sizeof(request),
		"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", path, strlen(body),
		body);
	return ask_fd(fd, request);
}

START_TEST (a_command_is_carried_out) {
	ck_assert_starts(post_fd(connect_unix(), "/v1/drain", "{\"name\": 1}"), "HTTP/1.1 200 ");
	ck_assert_str_eq(command_name, "drain");
	ck_assert_str_eq(command_body, "{\"name\": 1}");
	ck_assert_uint_eq(command_uid, geteuid());
	ck_assert_starts(post_fd(connect_unix(), "/v1/check-now", ""), "HTTP/1.1 200 ");
	ck_assert_str_eq(command_body, "");
	ck_assert_starts(post_fd(connect_unix(), "/v1/drain", "refuse"), "HTTP/1.1 409 ");
	ck_assert_starts(
		ask("POST /v1/drain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "2\r\n{ \r\n1\r\n}\r\n0\r\n\r\n"),
		"HTTP/1.1 200 ");
	ck_assert_str_eq(command_body, "{ }");
	ck_assert_uint_eq(commanded, 4);
	ck_assert_starts(post_fd(connect_unix(), "/v1/drains", "{}"), "HTTP/1.1 404 ");
	ck_assert_starts(post_fd(connect_unix(), "/v1/", "{}"), "HTTP/1.1 404 ");
	ck_assert_has(ask("GET /v1/drain HTTP/1.1\r\nHost: x\r\n\r\n"), "Allow: POST\r\n");
	ck_assert_uint_eq(commanded, 4);
}
END_TEST

START_TEST (bodies_are_bounded) {
	static char body[HTTP_BODY_MAX + 2];

	memset(body, ' ', HTTP_BODY_MAX);
	ck_assert_starts(post_fd(connect_unix(), "/v1/drain", body), "HTTP/1.1 200 ");
	ck_assert_uint_eq(strlen(command_body), HTTP_BODY_MAX);
	body[HTTP_BODY_MAX] = ' ';
	ck_assert_starts(post_fd(connect_unix(), "/v1/drain", body), "HTTP/1.1 413 ");
	ck_assert_uint_eq(commanded, 1);
	/* One that ends in the middle of its body has said nothing. */
	{
		static const char half[] =
			"POST /v1/drain HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{}";
		int fd = connect_unix();

		ck_assert_int_gt(send(fd, half, strlen(half), 0), 0);
		turn_for(50);
		close(fd);
		turn_for(50);
	}
	ck_assert_uint_eq(commanded, 1);
}
END_TEST

START_TEST (nothing_is_changed_over_tcp) {
	ck_assert_starts(post_fd(connect_tcp(), "/v1/drain", "{}"), "HTTP/1.1 403 ");
	ck_assert_has(post_fd(connect_tcp(), "/v1/drain", "{}"), "on the Unix socket only");
	ck_assert_uint_eq(commanded, 0);
}
END_TEST

/* Connects as somebody else, by what the kernel writes down at that moment. */
static int connect_as(uid_t uid, gid_t gid, const gid_t *groups, size_t n)
{
	int fd;

	ck_assert_int_eq(setgroups(n, groups), 0);
	ck_assert_int_eq(setegid(gid), 0);
	ck_assert_int_eq(seteuid(uid), 0);
	fd = connect_unix();
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(setegid(0), 0);
	ck_assert_int_eq(setgroups(0, NULL), 0);
	return fd;
}

/* Anybody may reach this socket; who may change things is decided by who it is. */
START_TEST (who_may_change_things) {
	const struct group *entry = getgrnam("daemon");
	struct error error = {{0}};
	gid_t group, others[40];
	const char *answer;

	if (geteuid() != 0 || !entry)
		return;
	group = entry->gr_gid;
	for (size_t i = 0; i < ELEMENTSOF(others); i++)
		others[i] = 60000 + (gid_t)i;
	http_free(http);
	settings.group = (char *)"daemon";
	ck_assert_int_eq(open_server(&error), 0);
	ck_assert_int_eq(chmod(directory, 0755), 0);
	ck_assert_int_eq(chmod(socket_path, 0666), 0);

	answer = post_fd(connect_as(12345, 12345, others, ELEMENTSOF(others)), "/v1/drain", "{}");
	ck_assert_starts(answer, "HTTP/1.1 403 ");
	ck_assert_has(answer, "{\"error\": \"only root");
	ck_assert_starts(
		post_fd(connect_as(12345, 12345, NULL, 0), "/v1/drain", "{}"), "HTTP/1.1 403 ");
	ck_assert_starts(
		post_fd(connect_as(12345, 0, NULL, 0), "/v1/drain", "{}"), "HTTP/1.1 403 ");
	ck_assert_uint_eq(commanded, 0);
	/* Who may not change may still look. */
	ck_assert_starts(ask_fd(connect_as(12345, 12345, NULL, 0), GET), "HTTP/1.1 200 ");

	ck_assert_starts(
		post_fd(connect_as(12345, group, NULL, 0), "/v1/drain", "{}"), "HTTP/1.1 200 ");
	ck_assert_uint_eq(command_uid, 12345);
	others[39] = group;
	answer = post_fd(connect_as(12345, 12345, others, ELEMENTSOF(others)), "/v1/drain", "{}");
	ck_assert_starts(answer, "HTTP/1.1 200 ");
	ck_assert_starts(post_fd(connect_unix(), "/v1/drain", "{}"), "HTTP/1.1 200 ");
	ck_assert_uint_eq(command_uid, 0);
	ck_assert_uint_eq(commanded, 3);

	/* The agent's own user, and no group. */
	settings.group = NULL;
	http_free(http);
	ck_assert_int_eq(open_server(&error), 0);
	ck_assert_int_eq(chmod(socket_path, 0666), 0);
	ck_assert_starts(
		post_fd(connect_as(12345, group, NULL, 0), "/v1/drain", "{}"), "HTTP/1.1 403 ");
	{
		int fd = connect_as(12345, 12345, NULL, 0);

		ck_assert_int_eq(seteuid(12345), 0);
		answer = post_fd(fd, "/v1/drain", "{}");
		ck_assert_int_eq(seteuid(0), 0);
		ck_assert_starts(answer, "HTTP/1.1 200 ");
	}
}
END_TEST

/* --- what other clients cost --- */

START_TEST (malformed_requests_are_refused) {
	static char huge[200 * 1024], many[200 * 1024];
	static const char start[] = "GET /v1/status HTTP/1.1\r\nHost: x\r\n";
	const char *answer;

	/* Nothing of HTTP in it: an end is all that is asked for. */
	(void)ask("hello\r\n\r\n");
	(void)ask("\x16\x03\x01\x02\x01\x01\xfc\x03\x03\r\n\r\n");
	ck_assert_starts(ask("GET /v1/status HTTP/1.1\r\nHost: x\r\n"
			     "Content-Length: banana\r\n\r\n"),
		"HTTP/1.1 400 ");

	memset(huge, 'a', sizeof(huge) - 1);
	memcpy(huge, "GET /", 5);
	answer = ask(huge);
	ck_assert_msg(strncmp(answer, "HTTP/1.1 4", 10) == 0 || answer[0] == '\0', "%s", answer);

	strcpy(many, start);
	for (size_t n = strlen(many); n + 40 < sizeof(many); n += strlen(many + n))
		(void)snprintf(many + n, 40, "X-Filler-%05zu: abcdefgh\r\n", n % 100000);
	answer = ask(many);
	ck_assert_msg(strncmp(answer, "HTTP/1.1 4", 10) == 0 || answer[0] == '\0', "%s", answer);

	/* A body is not read, however long it says it is. */
	answer = ask("GET /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n");
	ck_assert_starts(answer, "HTTP/1.1 200 ");
	ck_assert_starts(ask(GET), "HTTP/1.1 200 ");
}
END_TEST

/* Silent, dripping and not reading: each is cut by its total time, and nobody waits for it. */
START_TEST (slow_clients_are_cut_and_cost_nobody) {
	struct monotime start = clock_monotime(), next_drip = start, next_ask = start;
	int silent = connect_unix(), dripping = connect_tcp(), not_reading = connect_unix();
	bool silent_gone = false, dripping_gone = false;
	uint64_t took_us;
	char c;

	document_size = 4 * 1024 * 1024;
	ck_assert_int_gt(send(not_reading, GET, strlen(GET), 0), 0);
	while (!silent_gone || !dripping_gone) {
		struct monotime now = clock_monotime();

		ck_assert_uint_lt(monotime_since_us(start, now), (DEADLINE_MS + 30000) * 1000ULL);
		if (monotime_reached(next_drip, now)) {
			next_drip = monotime_add_ms(now, 200);
			(void)send(dripping, "G", 1, MSG_NOSIGNAL);
		}
		if (monotime_reached(next_ask, now)) {
			next_ask = monotime_add_ms(now, 1000);
			ck_assert_starts(ask(GET), "HTTP/1.1 200 ");
			ck_assert_uint_lt(monotime_since_us(now, clock_monotime()),
				(DEADLINE_MS - 2000) * 1000ULL);
		}
		turn();
		if (recv(silent, &c, 1, 0) == 0)
			silent_gone = true;
		if (recv(dripping, &c, 1, 0) == 0 || errno == ECONNRESET)
			dripping_gone = true;
	}
	took_us = monotime_since_us(start, clock_monotime());
	ck_assert_uint_ge(took_us, (DEADLINE_MS - 100) * 1000ULL);
	/* The one that did not read got part of its answer and then the end. */
	{
		struct buffer part;

		buffer_init(&part, ANSWER_MAX);
		ck_assert(finish(not_reading, "", &part, 2000));
		ck_assert_starts(buffer_string(&part), "HTTP/1.1 200 ");
		ck_assert_uint_lt(part.length, document_size);
		buffer_done(&part);
	}
	close(silent);
	close(dripping);
	close(not_reading);
}
END_TEST

START_TEST (one_listener_full_does_not_shut_the_other) {
	int idle[CONNECTIONS_MAX], waiting;
	struct buffer answer;

	for (size_t i = 0; i < ELEMENTSOF(idle); i++)
		idle[i] = connect_tcp();
	turn_for(200);
	waiting = connect_tcp();
	buffer_init(&answer, ANSWER_MAX);
	ck_assert(!finish(waiting, GET, &answer, 300));
	ck_assert_uint_eq(answer.length, 0);
	ck_assert_starts(ask(GET), "HTTP/1.1 200 ");

	/* A place that comes free is given to the one that waits. */
	close(idle[0]);
	ck_assert(finish(waiting, "", &answer, 2000));
	ck_assert_starts(buffer_string(&answer), "HTTP/1.1 200 ");
	buffer_done(&answer);
	close(waiting);
	for (size_t i = 1; i < ELEMENTSOF(idle); i++)
		close(idle[i]);
}
END_TEST

START_TEST (slow_readers_share_documents) {
	int readers[40];
	const char *answer;

	document_size = 4 * 1024 * 1024;
	for (size_t i = 0; i < ELEMENTSOF(readers); i++) {
		char start[16] = "";
		struct monotime end = monotime_add_ms(clock_monotime(), 2000);

		readers[i] = connect_unix();
		ck_assert_int_gt(send(readers[i], GET, strlen(GET), 0), 0);
		while (recv(readers[i], start, sizeof(start) - 1, 0) < 0 &&
			!monotime_reached(end, clock_monotime()))
			turn();
		ck_assert_starts(start, "HTTP/1.1 200 ");
	}
	ck_assert_uint_le(renders, 4);
	answer = ask(GET);
	ck_assert_uint_eq(body_length(answer), document_size);
	for (size_t i = 0; i < ELEMENTSOF(readers); i++)
		close(readers[i]);
	turn_for(100);
	renders = 0;
	(void)ask(GET);
	(void)ask(GET);
	ck_assert_uint_eq(renders, 2);
}
END_TEST

static int on_death(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	unsigned *renders_before = userdata;

	*renders_before = renders;
	return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

/* Whatever else is ready is worked off before a byte of a client's is read. */
START_TEST (status_comes_last) {
	unsigned renders_before = UINT32_MAX;
	sd_event_source *death = NULL;
	int clients[8], ends[2];

	for (size_t i = 0; i < ELEMENTSOF(clients); i++)
		clients[i] = connect_unix();
	turn_for(100);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	ck_assert_int_ge(
		sd_event_add_io(event, &death, ends[0], EPOLLIN, on_death, &renders_before), 0);
	for (size_t i = 0; i < ELEMENTSOF(clients); i++)
		ck_assert_int_gt(send(clients[i], GET, strlen(GET), 0), 0);
	ck_assert_int_eq(write(ends[1], "x", 1), 1);
	turn_for(200);
	ck_assert_uint_eq(renders_before, 0);
	ck_assert_uint_ge(renders, 1);
	sd_event_source_unref(death);
	for (size_t i = 0; i < ELEMENTSOF(clients); i++)
		close(clients[i]);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

START_TEST (without_descriptors_it_rests) {
	rlim_t before;
	int fd = connect_unix();
	unsigned turns = 0;
	struct monotime end;
	struct buffer answer;

	before = descriptors_limit(3);
	end = monotime_add_ms(clock_monotime(), 500);
	while (!monotime_reached(end, clock_monotime())) {
		(void)sd_event_run(event, 500000);
		turns++;
	}
	(void)descriptors_limit(before);
	ck_assert_uint_lt(turns, 20);
	buffer_init(&answer, ANSWER_MAX);
	ck_assert(finish(fd, GET, &answer, 3000));
	ck_assert_starts(buffer_string(&answer), "HTTP/1.1 200 ");
	buffer_done(&answer);
	close(fd);
}
END_TEST

/* --- the socket file --- */

static struct stat stat_socket(void)
{
	struct stat st;

	ck_assert_int_eq(lstat(socket_path, &st), 0);
	return st;
}

static void reopen(const char *group)
{
	struct error error = {{0}};

	http_free(http);
	http = NULL;
	settings.group = (char *)group;
	ck_assert_msg(open_server(&error) == 0, "%s", error.text);
}

START_TEST (the_group_may_connect) {
	const struct group *group = getgrnam("daemon");

	if (geteuid() == 0 && group) {
		reopen("daemon");
		ck_assert_uint_eq(stat_socket().st_mode & 07777, 0660);
		ck_assert_uint_eq(stat_socket().st_gid, group->gr_gid);
	}
	reopen("no-such-group-here");
	ck_assert_uint_eq(stat_socket().st_mode & 07777, 0600);
	reopen(NULL);
	ck_assert_uint_eq(stat_socket().st_mode & 07777, 0600);
}
END_TEST

START_TEST (a_living_agent_keeps_its_socket) {
	struct http *second = NULL;
	struct error error = {{0}};
	ino_t before = stat_socket().st_ino;

	ck_assert_int_eq(http_new(&second, event, &settings, &ops, &error), -EADDRINUSE);
	ck_assert_has(error.text, socket_path);
	ck_assert_has(error.text, "another agent answers");
	ck_assert_ptr_null(second);
	ck_assert_uint_eq(stat_socket().st_ino, before);
	ck_assert_starts(ask(GET), "HTTP/1.1 200 ");
}
END_TEST

START_TEST (a_stale_socket_is_replaced) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct error error = {{0}};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	http_free(http);
	http = NULL;
	strcpy(address.sun_path, socket_path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	ck_assert_msg(open_server(&error) == 0, "%s", error.text);
	ck_assert_starts(ask(GET), "HTTP/1.1 200 ");
}
END_TEST

/* As when an agent is killed between the fork and the exec of a check's command. */
START_TEST (a_socket_that_a_child_still_holds_is_replaced) {
	const struct timespec a_moment = {.tv_nsec = 60000000};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct error error = {{0}};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), status;
	pid_t child;

	http_free(http);
	http = NULL;
	strcpy(address.sun_path, socket_path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	child = fork();
	if (child == 0) {
		(void)nanosleep(&a_moment, NULL);
		_exit(0);
	}
	close(fd);
	ck_assert_msg(open_server(&error) == 0, "%s", error.text);
	ck_assert_starts(ask(GET), "HTTP/1.1 200 ");
	ck_assert_int_eq(waitpid(child, &status, 0), child);
}
END_TEST

START_TEST (what_is_no_socket_is_left_alone) {
	struct error error = {{0}};
	int fd;

	http_free(http);
	http = NULL;
	fd = open(socket_path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(open_server(&error), -EEXIST);
	ck_assert_has(error.text, "not a socket");
	ck_assert(S_ISREG(stat_socket().st_mode));
	ck_assert_int_eq(unlink(socket_path), 0);
}
END_TEST

START_TEST (its_own_file_is_removed_and_no_other) {
	struct stat st;
	int fd;

	http_free(http);
	http = NULL;
	ck_assert_int_eq(lstat(socket_path, &st), -1);
	reopen(NULL);
	ck_assert_int_eq(unlink(socket_path), 0);
	fd = open(socket_path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	http_free(http);
	http = NULL;
	ck_assert(S_ISREG(stat_socket().st_mode));
	ck_assert_int_eq(unlink(socket_path), 0);
}
END_TEST

START_TEST (errors_say_what_was_expected) {
	static const struct {
		const char *socket, *listen;
		int r;
		const char *text;
	} rows[] = {
		{"relative.sock", NULL, -EINVAL, "absolute"},
		{"/nonexistent/redshank/status.sock", NULL, -ENOENT, "/nonexistent/redshank"},
		{NULL, "9479", -EINVAL, "ADDRESS:PORT"},
		{NULL, "127.0.0.1", -EINVAL, "ADDRESS:PORT"},
		{NULL, "127.0.0.1:0", -EINVAL, "ADDRESS:PORT"},
		{NULL, "127.0.0.1:65536", -EINVAL, "ADDRESS:PORT"},
		{NULL, "127.0.0.1:80x", -EINVAL, "ADDRESS:PORT"},
		{NULL, "127.0.0.1:-80", -EINVAL, "ADDRESS:PORT"},
		{NULL, "localhost:9479", -EINVAL, "ADDRESS:PORT"},
		{NULL, "::1:9479", -EINVAL, "ADDRESS:PORT"},
		{NULL, "[127.0.0.1]:9479", -EINVAL, "ADDRESS:PORT"},
		{NULL, "[]:9479", -EINVAL, "ADDRESS:PORT"},
		{NULL, "[::1:9479", -EINVAL, "ADDRESS:PORT"},
		{NULL, ":9479", -EINVAL, "ADDRESS:PORT"},
	};

	http_free(http);
	http = NULL;
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct error error = {{0}};
		struct stat st;

		settings.socket = rows[i].socket ? (char *)rows[i].socket : socket_path;
		settings.listen = (char *)rows[i].listen;
		ck_assert_msg(open_server(&error) == rows[i].r, "row %zu: %s", i, error.text);
		ck_assert_has(error.text, rows[i].text);
		ck_assert_ptr_null(http);
		ck_assert_int_eq(lstat(socket_path, &st), -1);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("status-http");
	TCase *good = tcase_create("answers"), *bad = tcase_create("strangers"),
	      *file = tcase_create("socket file");
	SRunner *runner;
	int failed;

	if (!mkdtemp(directory))
		return EXIT_FAILURE;
	(void)snprintf(socket_path, sizeof(socket_path), "%s/status.sock", directory);
	tcase_add_checked_fixture(good, setup, teardown);
	tcase_add_checked_fixture(bad, setup, teardown);
	tcase_add_checked_fixture(file, setup, teardown);
	tcase_set_timeout(bad, 30);
	tcase_add_test(good, get_is_answered_on_both_sockets);
	tcase_add_test(good, head_has_no_body);
	tcase_add_test(good, what_is_not_there_or_not_allowed);
	tcase_add_test(good, what_is_to_be_explained);
	tcase_add_test(good, a_crowd_that_asks_at_once);
	tcase_add_test(good, without_a_document_it_says_so);
	tcase_add_test(good, a_document_that_fills_no_socket_buffer_arrives_whole);
	tcase_add_test(good, a_command_is_carried_out);
	tcase_add_test(good, bodies_are_bounded);
	tcase_add_test(good, nothing_is_changed_over_tcp);
	tcase_add_test(good, who_may_change_things);
	tcase_add_test(bad, malformed_requests_are_refused);
	tcase_add_test(bad, slow_clients_are_cut_and_cost_nobody);
	tcase_add_test(bad, one_listener_full_does_not_shut_the_other);
	tcase_add_test(bad, slow_readers_share_documents);
	tcase_add_test(bad, status_comes_last);
	tcase_add_test(bad, without_descriptors_it_rests);
	tcase_add_test(file, the_group_may_connect);
	tcase_add_test(file, a_living_agent_keeps_its_socket);
	tcase_add_test(file, a_stale_socket_is_replaced);
	tcase_add_test(file, a_socket_that_a_child_still_holds_is_replaced);
	tcase_add_test(file, what_is_no_socket_is_left_alone);
	tcase_add_test(file, its_own_file_is_removed_and_no_other);
	tcase_add_test(file, errors_say_what_was_expected);
	suite_add_tcase(suite, good);
	suite_add_tcase(suite, bad);
	suite_add_tcase(suite, file);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	(void)unlink(socket_path);
	(void)rmdir(directory);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
