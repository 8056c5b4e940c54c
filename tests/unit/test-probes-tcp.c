/* The tcp check against real sockets on loopback, and routes in a namespace of its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/address.h"
#include "probes/settings.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/probe-harness.h"

static struct harness h;
static struct tcp_settings settings;
static int listener = -1, peer = -1;

static void setup(void)
{
	memset(&h, 0, sizeof(h));
	ck_assert_uint_eq(probe_type_tcp.settings->size, sizeof(settings));
	settings = (struct tcp_settings){.port = 1};
	ck_assert_int_eq(address_parse("127.0.0.1", &settings.address, NULL), 0);
}

static void teardown(void)
{
	harness_done(&h);
	harness_close(&listener);
	harness_close(&peer);
}

static void listen_on(int family)
{
	settings.port = 0;
	listener = harness_serve(family, SOCK_STREAM, &settings.port);
	if (family == AF_INET6)
		ck_assert_int_eq(address_parse("::1", &settings.address, NULL), 0);
}

static void start(uint64_t interval_ms, uint64_t timeout_ms)
{
	harness_start(&h, &probe_type_tcp, &settings, interval_ms, timeout_ms);
}

static void accept_peer(void)
{
	ck_assert(LOOP_UNTIL(h.event,
		(peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0, 2000));
}

static void answer(const char *text, size_t n)
{
	ck_assert_int_eq(send(peer, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

START_TEST (somebody_listens) {
	listen_on(_i == 0 ? AF_INET : AF_INET6);
	start(3600000, 1000);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "");
	ck_assert_str_eq(h.reports[0].reason, "");
}
END_TEST

START_TEST (nobody_listens) {
	listen_on(AF_INET);
	harness_close(&listener);
	start(3600000, 1000);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "connect to 127.0.0.1 port ");
	ck_assert_ptr_nonnull(strstr(h.reports[0].reason, ": Connection refused"));
}
END_TEST

/* Our end may be given the very port that it connects to, when nobody else has it: TCP then opens a
 * connection with itself. Made certain here by leaving the kernel one port to choose from. */
START_TEST (a_connection_with_itself_is_no_answer) {
	char before[64] = "", one[64];
	FILE *f;
	int n = 0;

	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	ck_assert_int_eq(system("ip link set lo up"), 0);
	f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	ck_assert_ptr_nonnull(fgets(before, sizeof(before), f));
	(void)fclose(f);
	settings.port = 40000;
	n = snprintf(one, sizeof(one), "echo 40000 40001 > /proc/sys/net/ipv4/ip_local_port_range");
	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(system(one), 0);
	start(1, 1000);
	(void)harness_wait(&h, 20);
	for (unsigned i = 0; i < 20; i++)
		harness_expect(&h, i + 1, CHECK_OUTCOME_BAD, "Connection refused");
}
END_TEST

/* A20: what connect(2) says at once is an attempt that failed like any other, once an interval. */
START_TEST (no_route) {
	struct timespec before, after;

	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	ck_assert_int_eq(system("ip link set lo up"), 0);
	if (_i == 0)
		ck_assert_int_eq(system("ip route add unreachable 198.51.100.7"), 0);
	ck_assert_int_eq(address_parse("198.51.100.7", &settings.address, NULL), 0);
	start(50, 40);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD,
		_i == 0 ? "connect to 198.51.100.7 port 1: No route to host"
			: "connect to 198.51.100.7 port 1: Network is unreachable");
	(void)harness_wait(&h, 5);
	for (unsigned i = 1; i < 5; i++)
		ck_assert_uint_ge(monotime_since_us(h.started[i - 1], h.started[i]), 50000);
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	LOOP_FOR(h.event, 500);
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	ck_assert_uint_le(h.n, 16);
	ck_assert_int_lt(
		(after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000,
		250);
}
END_TEST

/* The listener's queue is full: the kernel drops our SYN, and nothing answers. */
START_TEST (a_hung_service) {
	int fillers[64];
	unsigned n = 0;

	listen_on(AF_INET);
	ck_assert_int_eq(listen(listener, 0), 0);
	for (; n < 8; n++) {
		struct sockaddr_in a = {.sin_family = AF_INET,
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
			.sin_port = htons((uint16_t)settings.port)};

		fillers[n] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(fillers[n], (struct sockaddr *)&a, sizeof(a));
	}
	start(3600000, 100);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "timeout after 100ms");
	ck_assert_uint_ge(h.duration_us[0], 100000);
	while (n > 0)
		(void)close(fillers[--n]);
}
END_TEST

START_TEST (it_says_what_is_expected) {
	char got[16] = "";

	listen_on(AF_INET);
	settings.send = (char *)"PING\r\n";
	settings.expect = (char *)"PONG";
	start(3600000, 1000);
	accept_peer();
	ck_assert(LOOP_UNTIL(h.event, recv(peer, got, sizeof(got) - 1, 0) > 0, 1000));
	ck_assert_str_eq(got, "PING\r\n");
	/* In pieces, with something before it. */
	answer("-ERR PO", 7);
	LOOP_FOR(h.event, 20);
	ck_assert_uint_eq(h.n, 0);
	answer("NG", 2);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "");
}
END_TEST

START_TEST (it_says_something_else_and_closes) {
	listen_on(AF_INET);
	settings.expect = (char *)"220 ";
	start(3600000, 1000);
	accept_peer();
	answer("421 too busy\r\n", 14);
	harness_close(&peer);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD,
		"expected \"220 \", the connection was closed, got \"421 too busy\\x0d\\x0a\"");
}
END_TEST

START_TEST (it_says_nothing_and_closes) {
	listen_on(AF_INET);
	settings.expect = (char *)"220 ";
	start(3600000, 1000);
	accept_peer();
	harness_close(&peer);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD,
		"expected \"220 \", the connection was closed without an answer");
}
END_TEST

START_TEST (it_says_nothing) {
	listen_on(AF_INET);
	settings.expect = (char *)"220 ";
	start(3600000, 100);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "timeout after 100ms");
}
END_TEST

START_TEST (it_talks_without_end) {
	static char noise[65536];
	struct linger reset = {.l_onoff = 1};

	memset(noise, 'x', sizeof(noise));
	listen_on(AF_INET);
	settings.expect = (char *)"220 ";
	start(3600000, 1000);
	accept_peer();
	(void)send(peer, noise, sizeof(noise), MSG_NOSIGNAL);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "not in the first 4096 bytes, got \"xxxx");
	(void)setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}
END_TEST

START_TEST (it_resets) {
	struct linger reset = {.l_onoff = 1};

	listen_on(AF_INET);
	settings.expect = (char *)"220 ";
	start(3600000, 1000);
	accept_peer();
	LOOP_FOR(h.event, 20); /* so that it knows that it is connected */
	(void)setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	harness_close(&peer);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "receive: Connection reset by peer");
}
END_TEST

START_TEST (no_descriptors_is_unknown) {
	rlim_t before;

	listen_on(AF_INET);
	start(20, 10);
	before = descriptors_limit(3);
	harness_expect(&h, 1, CHECK_OUTCOME_UNKNOWN, "socket: Too many open files");
	(void)descriptors_limit(before);
	ck_assert(LOOP_UNTIL(h.event, h.reports[h.n - 1].outcome == CHECK_OUTCOME_GOOD, 1000));
}
END_TEST

START_TEST (no_local_ports_is_unknown) {
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(40001)};
	int fds[2];

	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	ck_assert_int_eq(system("ip link set lo up && echo 40000 40001 > "
				"/proc/sys/net/ipv4/ip_local_port_range"),
		0);
	for (int i = 0; i < 2; i++) {
		any.sin_port = htons((uint16_t)(40000 + i));
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ck_assert_int_eq(bind(fds[i], (struct sockaddr *)&any, sizeof(any)), 0);
	}
	start(3600000, 100);
	harness_expect(&h, 1, CHECK_OUTCOME_UNKNOWN, "Cannot assign requested address");
	(void)close(fds[0]);
	(void)close(fds[1]);
}
END_TEST

/* IPv6 that is off, or has lost its addresses, says what a lack of ports says. */
START_TEST (no_address_to_connect_from_is_bad) {
	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	ck_assert_int_eq(address_parse("2001:db8::53", &settings.address, NULL), 0);
	start(3600000, 100);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD,
		"connect to 2001:db8::53 port 1: this host has no address to connect from");
}
END_TEST

START_TEST (nothing_is_left_behind) {
	unsigned before;

	listen_on(AF_INET);
	settings.expect = (char *)"x";
	start(5, 4);
	(void)harness_wait(&h, 1);
	before = count_descriptors();
	(void)harness_wait(&h, 60);
	ck_assert_uint_le(count_descriptors(), before + 1);
	harness_stop(&h);
	ck_assert_uint_lt(count_descriptors(), before + 1);
}
END_TEST

START_TEST (link_local_addresses_are_refused) {
	struct error e;

	ck_assert_int_eq(probe_type_tcp.validate(&settings, &e), 0);
	ck_assert_int_eq(address_parse("fe80::1", &settings.address, NULL), 0);
	ck_assert_int_eq(probe_type_tcp.validate(&settings, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.text, "address: expected"));
	ck_assert_int_eq(address_parse("fec0::1", &settings.address, NULL), 0);
	ck_assert_int_eq(probe_type_tcp.validate(&settings, &e), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probes-tcp");
	TCase *c = tcase_create("tcp"), *n;
	SRunner *runner;
	int failed;

	tcase_set_timeout(c, 30);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, somebody_listens, 0, 2);
	tcase_add_test(c, nobody_listens);
	tcase_add_test(c, a_hung_service);
	tcase_add_test(c, it_says_what_is_expected);
	tcase_add_test(c, it_says_something_else_and_closes);
	tcase_add_test(c, it_says_nothing_and_closes);
	tcase_add_test(c, it_says_nothing);
	tcase_add_test(c, it_talks_without_end);
	tcase_add_test(c, it_resets);
	tcase_add_test(c, no_descriptors_is_unknown);
	tcase_add_test(c, nothing_is_left_behind);
	tcase_add_test(c, link_local_addresses_are_refused);
	suite_add_tcase(suite, c);
	if (geteuid() == 0) {
		/* These leave this process in a network namespace of its own, so they come last. */
		n = tcase_create("namespace");
		tcase_add_checked_fixture(n, setup, teardown);
		tcase_add_loop_test(n, no_route, 0, 2);
		tcase_add_test(n, a_connection_with_itself_is_no_answer);
		tcase_add_test(n, no_local_ports_is_unknown);
		tcase_add_test(n, no_address_to_connect_from_is_bad);
		suite_add_tcase(suite, n);
	}
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
