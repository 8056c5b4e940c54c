/* The udp check against a socket of this test's own on loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/address.h"
#include "probes/settings.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/probe-harness.h"

#define WEAK "sent; no answer is expected: weak evidence"

static struct harness h;
static struct udp_settings settings;
static int server = -1;
static struct sockaddr_storage client;
static char got[8192];
static ssize_t n_got;

static void serve(int family, int64_t port)
{
	settings.port = port;
	server = harness_serve(family, SOCK_DGRAM, &settings.port);
	if (family == AF_INET6)
		ck_assert_int_eq(address_parse("::1", &settings.address, NULL), 0);
}

static void setup(void)
{
	memset(&h, 0, sizeof(h));
	ck_assert_uint_eq(probe_type_udp.settings->size, sizeof(settings));
	settings = (struct udp_settings){.send = (char *)"PING"};
	ck_assert_int_eq(address_parse("127.0.0.1", &settings.address, NULL), 0);
	serve(AF_INET, 0);
}

static void teardown(void)
{
	harness_done(&h);
	harness_close(&server);
}

static void start(uint64_t interval_ms, uint64_t timeout_ms)
{
	harness_start(&h, &probe_type_udp, &settings, interval_ms, timeout_ms);
}

static bool receive(void)
{
	socklen_t n = sizeof(client);

	n_got = recvfrom(server, got, sizeof(got), 0, (struct sockaddr *)&client, &n);
	return n_got >= 0;
}

static void wait_datagram(void)
{
	ck_assert(LOOP_UNTIL(h.event, receive(), 2000));
}

static void reply_from(int fd, const char *text, size_t n)
{
	ck_assert_int_eq(sendto(fd, text, n, 0, (struct sockaddr *)&client,
				 client.ss_family == AF_INET ? sizeof(struct sockaddr_in)
							     : sizeof(struct sockaddr_in6)),
		(ssize_t)n);
}

START_TEST (the_expected_reply) {
	if (_i == 1) {
		harness_close(&server);
		serve(AF_INET6, 0);
	}
	settings.expect = (char *)"PONG";
	start(3600000, 1000);
	wait_datagram();
	ck_assert_int_eq(n_got, 4);
	ck_assert_mem_eq(got, "PING", 4);
	reply_from(server, "+PONG\r\n", 7);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "");
	ck_assert_str_eq(h.reports[0].reason, "");
}
END_TEST

START_TEST (another_reply) {
	settings.expect = (char *)"PONG";
	start(3600000, 10000);
	wait_datagram();
	reply_from(server, "busy\n", 5);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "expected \"PONG\", got \"busy\\x0a\"");
	ck_assert_uint_lt(h.duration_us[0], 9000000);
}
END_TEST

START_TEST (a_reply_of_somebody_else_is_ignored) {
	int other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	settings.expect = (char *)"PONG";
	start(3600000, 1000);
	wait_datagram();
	reply_from(other, "PONG", 4);
	LOOP_FOR(h.event, 30);
	ck_assert_uint_eq(h.n, 0);
	reply_from(server, "PONG", 4);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "");
	(void)close(other);
}
END_TEST

START_TEST (no_reply_where_one_is_expected) {
	settings.expect = (char *)"PONG";
	start(3600000, 100);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "timeout after 100ms");
}
END_TEST

START_TEST (silence_is_weak_evidence) {
	unsigned n = 0;

	start(100, 400);
	do { /* again where the machine stood still */
		harness_expect(&h, ++n, CHECK_OUTCOME_GOOD, WEAK);
		ck_assert_uint_ge(h.duration_us[n - 1], 200000); /* half of the timeout */
	} while (h.duration_us[n - 1] > 300000 && n < 20);
	ck_assert_uint_le(h.duration_us[n - 1], 300000);
}
END_TEST

START_TEST (any_reply_is_better_evidence) {
	start(3600000, 1000);
	wait_datagram();
	reply_from(server, "", 0);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "");
	ck_assert_str_eq(h.reports[0].reason, "");
}
END_TEST

START_TEST (nothing_to_send_is_an_empty_datagram) {
	settings.send = NULL;
	start(3600000, 1000);
	wait_datagram();
	ck_assert_int_eq(n_got, 0);
}
END_TEST

/* A19: within milliseconds, whether a reply is expected or not. */
START_TEST (nobody_listens) {
	harness_close(&server);
	if (_i == 1)
		settings.expect = (char *)"PONG";
	start(3600000, 20000);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "127.0.0.1 port ");
	ck_assert_ptr_nonnull(strstr(h.reports[0].reason, ": port unreachable"));
	ck_assert_uint_lt(h.duration_us[0], 9000000); /* silence would take ten seconds */
}
END_TEST

/* The error of an attempt may arrive after its end; the next one does not hear of it. */
START_TEST (an_error_of_an_earlier_attempt) {
	int port = (int)settings.port;

	harness_close(&server);
	start(50, 40);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "port unreachable");
	serve(AF_INET, port);
	LOOP_FOR(h.event, 10);
	harness_expect(&h, h.n + 1, CHECK_OUTCOME_GOOD, WEAK);
	harness_expect(&h, h.n + 1, CHECK_OUTCOME_GOOD, WEAK);
}
END_TEST

START_TEST (no_route) {
	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	ck_assert_int_eq(system("ip link set lo up && ip route add unreachable 198.51.100.7"), 0);
	ck_assert_int_eq(address_parse("198.51.100.7", &settings.address, NULL), 0);
	start(3600000, 1000);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "connect to 198.51.100.7 port ");
	ck_assert_ptr_nonnull(strstr(h.reports[0].reason, "No route to host"));
}
END_TEST

START_TEST (no_descriptors_is_unknown) {
	rlim_t before;

	start(20, 10);
	before = descriptors_limit(3);
	harness_expect(&h, 1, CHECK_OUTCOME_UNKNOWN, "socket: Too many open files");
	(void)descriptors_limit(before);
	ck_assert(LOOP_UNTIL(h.event, h.reports[h.n - 1].outcome == CHECK_OUTCOME_GOOD, 1000));
}
END_TEST

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

START_TEST (nothing_is_left_behind) {
	unsigned before;

	settings.expect = (char *)(_i == 0 ? NULL : "x");
	start(5, 4);
	(void)harness_wait(&h, 1);
	before = count_descriptors();
	(void)harness_wait(&h, 60);
	ck_assert_uint_le(count_descriptors(), before + 1);
	harness_stop(&h);
	ck_assert_uint_lt(count_descriptors(), before + 1);
}
END_TEST

START_TEST (it_goes_away_inside_its_report) {
	h.free_in_report = true;
	start(3600000, 20);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, WEAK);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probes-udp");
	TCase *c = tcase_create("udp"), *n;
	SRunner *runner;
	int failed;

	tcase_set_timeout(c, 30);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, the_expected_reply, 0, 2);
	tcase_add_test(c, another_reply);
	tcase_add_test(c, a_reply_of_somebody_else_is_ignored);
	tcase_add_test(c, no_reply_where_one_is_expected);
	tcase_add_test(c, silence_is_weak_evidence);
	tcase_add_test(c, any_reply_is_better_evidence);
	tcase_add_test(c, nothing_to_send_is_an_empty_datagram);
	tcase_add_loop_test(c, nobody_listens, 0, 2);
	tcase_add_test(c, an_error_of_an_earlier_attempt);
	tcase_add_test(c, no_descriptors_is_unknown);
	tcase_add_loop_test(c, nothing_is_left_behind, 0, 2);
	tcase_add_test(c, it_goes_away_inside_its_report);
	suite_add_tcase(suite, c);
	if (geteuid() == 0) {
		/* This leaves the process in a network namespace of its own, so it comes last. */
		n = tcase_create("namespace");
		tcase_add_checked_fixture(n, setup, teardown);
		tcase_add_test(n, no_route);
		suite_add_tcase(suite, n);
	}
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
