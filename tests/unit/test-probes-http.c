/* The http check on a real loop against sockets of this test: where requests go, what is our own
 * fault, and that attempts which end early leave nothing behind. The bytes and the servers that
 * misbehave are in cases A14 to A16. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "probes/http.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/probe-harness.h"

#define PEERS_MAX 8

static struct harness h;
static struct http_settings settings;
static int64_t statuses[] = {200};
static int listener = -1, peers[PEERS_MAX];
static unsigned n_peers;
static int refuse_io; /* what sd_event_add_io() says; 0: it works */

int __real_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
	sd_event_io_handler_t handler, void *userdata);
int __wrap_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
	sd_event_io_handler_t handler, void *userdata);

int __wrap_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
	sd_event_io_handler_t handler, void *userdata)
{
	return refuse_io ? -refuse_io
			 : __real_sd_event_add_io(event, ret, fd, events, handler, userdata);
}

static void setup(void)
{
	static char url[64];
	int64_t port = 0;

	memset(&h, 0, sizeof(h));
	listener = harness_serve(AF_INET, SOCK_STREAM, &port);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/", (int)port);
	settings = (struct http_settings){.url = url,
		.method = (char *)"GET",
		.verify = true,
		.body_limit = 65536,
		.expect.status = {.items = statuses, .n = 1}};
	refuse_io = 0;
}

static void close_peers(void)
{
	while (n_peers > 0)
		(void)close(peers[--n_peers]);
}

static void teardown(void)
{
	harness_done(&h);
	close_peers();
	(void)close(listener);
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 512; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void start(uint64_t interval_ms, uint64_t timeout_ms)
{
	harness_start(&h, &probe_type_http, &settings, interval_ms, timeout_ms);
}

/* Takes a connection and its request. */
static void take(void)
{
	char request[4096];

	ck_assert_uint_lt(n_peers, PEERS_MAX);
	ck_assert(LOOP_UNTIL(h.event,
		(peers[n_peers] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0,
		2000));
	ck_assert(LOOP_UNTIL(h.event, recv(peers[n_peers], request, sizeof(request), 0) > 0, 2000));
	n_peers++;
}

static void answer(const char *text)
{
	ck_assert_int_eq(
		send(peers[n_peers - 1], text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

START_TEST (a_good_answer) {
	start(3600000, 1000);
	take();
	answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no");
	LOOP_FOR(h.event, 20);
	ck_assert_uint_eq(h.n, 0);
	answer("k");
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "");
	ck_assert_str_eq(h.reports[0].reason, "");
}
END_TEST

/* Not before it is complete, even where all that is expected has come. */
START_TEST (no_good_word_before_the_end) {
	settings.expect.body = (char *)"ok";
	start(3600000, 200);
	take();
	answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok");
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "timeout after 200ms");
}
END_TEST

START_TEST (nobody_listens) {
	(void)close(listener);
	start(3600000, 1000);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "connect to 127.0.0.1 port ");
	ck_assert_ptr_nonnull(strstr(h.reports[0].reason, ": Connection refused"));
}
END_TEST

START_TEST (no_descriptors) {
	rlim_t before;

	start(100, 100);
	take();
	answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "");
	before = descriptors_limit(3);
	(void)harness_wait(&h, 2);
	(void)descriptors_limit(before);
	harness_expect(&h, 2, CHECK_OUTCOME_UNKNOWN, "socket: Too many open files");
	take();
	answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	harness_expect(&h, 3, CHECK_OUTCOME_GOOD, "");
}
END_TEST

/* A socket that cannot be watched ends its own attempt, and not libcurl's multi handle. */
START_TEST (no_watches) {
	refuse_io = ENOSPC;
	start(100, 100);
	harness_expect(&h, 1, CHECK_OUTCOME_UNKNOWN, "epoll: No space left on device");
	refuse_io = 0;
	n_peers = 0;
	ck_assert(LOOP_UNTIL(
		h.event, (peers[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0, 2000));
	(void)close(peers[0]);
	take();
	answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	harness_expect(&h, 2, CHECK_OUTCOME_GOOD, "");
}
END_TEST

/* Time after time out of time, and the descriptors are those of the beginning. */
START_TEST (timeouts_leave_nothing) {
	unsigned before;

	start(30, 20);
	(void)harness_wait(&h, 2);
	before = count_descriptors();
	harness_expect(&h, 12, CHECK_OUTCOME_BAD, "timeout after 20ms");
	LOOP_FOR(h.event, 5);
	ck_assert_uint_le(count_descriptors(), before + 1);
}
END_TEST

START_TEST (freed_in_its_report) {
	h.free_in_report = true;
	start(3600000, 1000);
	take();
	answer("HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno");
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "status 503, expected 200");
	ck_assert_ptr_null(h.run);
}
END_TEST

/* Two checks share the loop; one that goes in the middle of its attempt does not touch the other.
 */
START_TEST (one_goes_the_other_stays) {
	static struct harness other;

	start(3600000, 1000);
	take();
	memset(&other, 0, sizeof(other));
	other.event = h.event;
	harness_start(&other, &probe_type_http, &settings, 3600000, 1000);
	take();
	harness_stop(&h);
	answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	ck_assert(LOOP_UNTIL(h.event, other.n == 1, 2000));
	ck_assert_int_eq(other.reports[0].outcome, CHECK_OUTCOME_GOOD);
	harness_stop(&other);
}
END_TEST

/* One line of a head without an end: libcurl has a limit of its own for it, and names it otherwise.
 */
START_TEST (a_header_without_an_end) {
	static char line[16384];

	memset(line, 'x', sizeof(line));
	start(3600000, 3000);
	take();
	answer("HTTP/1.1 200 OK\r\nX: ");
	for (unsigned i = 0; i < 500 && h.n == 0; i++) {
		(void)send(peers[0], line, sizeof(line), MSG_NOSIGNAL | MSG_DONTWAIT);
		LOOP_FOR(h.event, 2);
	}
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "headers of more than 65536 bytes");
}
END_TEST

/* Each attempt has its own reason, and none of a socket that failed before. */
START_TEST (an_errno_does_not_outlive_its_attempt) {
	int64_t port = strtol(settings.url + strlen("http://127.0.0.1:"), NULL, 10);

	(void)close(listener);
	start(3600000, 1000);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "Connection refused");
	listener = harness_serve(AF_INET, SOCK_STREAM, &port);
	run_check_now(h.run);
	take();
	answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
	harness_expect(&h, 2, CHECK_OUTCOME_BAD, "receive: ");
	ck_assert_ptr_null(strstr(h.reports[1].reason, "refused"));
	run_check_now(h.run);
	take();
	answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	harness_expect(&h, 3, CHECK_OUTCOME_GOOD, "");
}
END_TEST

/* In a network namespace where there is nothing, nor any address. */
START_TEST (no_address_to_connect_from_is_bad) {
	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	settings.url = (char *)"http://[2001:db8::80]/";
	start(3600000, 1000);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD,
		"connect to 2001:db8::80 port 80: this host has no address to connect from");
}
END_TEST

START_TEST (where_requests_go) {
	static const struct {
		const char *url, *host, *unix_path, *requested, *connect_to, *zone, *peer;
	} rows[] = {
		{"http://192.0.2.80/a/../b?c", NULL, NULL, "http://192.0.2.80/a/../b?c", NULL, NULL,
			"192.0.2.80 port 80"},
		{"https://192.0.2.80/", "www.example.net", NULL, "https://www.example.net/",
			"::192.0.2.80:443", NULL, "192.0.2.80 port 443"},
		{"https://[2001:db8::80]:8443/x", "www.example.net", NULL,
			"https://www.example.net:8443/x", "::[2001:db8::80]:8443", NULL,
			"2001:db8::80 port 8443"},
		{"http://[fe80::1%25eth0]:81/", NULL, NULL, "http://[fe80::1]:81/", NULL, "eth0",
			"fe80::1%eth0 port 81"},
		{"http://localhost/", NULL, "/run/x", "http://localhost/", NULL, NULL, "/run/x"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct http_target t = {0};
		struct error error = {.text = ""};

		settings.url = (char *)rows[i].url;
		settings.host = (char *)rows[i].host;
		settings.unix_path = (char *)rows[i].unix_path;
		ck_assert_msg(http_target_init(&t, &settings, &error) == 0, "%s: %s", rows[i].url,
			error.text);
		ck_assert_str_eq(t.url, rows[i].requested);
		ck_assert_pstr_eq(t.connect_to, rows[i].connect_to);
		ck_assert_pstr_eq(t.zone, rows[i].zone);
		ck_assert_str_eq(t.peer, rows[i].peer);
		http_target_done(&t);
	}
}
END_TEST

START_TEST (where_redirects_lead) {
	static const struct {
		const char *location, *leads;
		int r;
	} rows[] = {
		{"/b", "http://a.example:8080/b", 0},
		{"c?d=e", "http://a.example:8080/x/c?d=e", 0},
		{"//a.example:8080/y", "http://a.example:8080/y", 0},
		{"http://A.example:8080/y", "http://A.example:8080/y", 0},
		{"http://a.example/y", NULL, -EXDEV},
		{"https://a.example:8080/y", NULL, -EXDEV},
		{"//b.example:8080/y", NULL, -EXDEV},
		{"http://u@a.example:8080/", NULL, -EINVAL},
		{"gopher://a.example:8080/", NULL, -EXDEV},
		{"mailto:a", NULL, -EXDEV},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *url = NULL;
		int r = http_redirect("http://a.example:8080/x/y", rows[i].location, &url);

		ck_assert_msg(rows[i].r == 0 ? r == 0 : r < 0, "%s: %d", rows[i].location, r);
		if (rows[i].leads)
			ck_assert_str_eq(url, rows[i].leads);
		else
			ck_assert_ptr_null(url);
		free(url);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("probes-http");
	TCase *t = tcase_create("http");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_good_answer);
	tcase_add_test(t, no_good_word_before_the_end);
	tcase_add_test(t, nobody_listens);
	tcase_add_test(t, no_descriptors);
	tcase_add_test(t, no_watches);
	tcase_add_test(t, timeouts_leave_nothing);
	tcase_add_test(t, freed_in_its_report);
	tcase_add_test(t, one_goes_the_other_stays);
	tcase_add_test(t, a_header_without_an_end);
	tcase_add_test(t, an_errno_does_not_outlive_its_attempt);
	tcase_add_test(t, where_requests_go);
	tcase_add_test(t, where_redirects_lead);
	if (geteuid() == 0) /* It leaves this process in the namespace, so it comes last. */
		tcase_add_test(t, no_address_to_connect_from_is_bad);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
