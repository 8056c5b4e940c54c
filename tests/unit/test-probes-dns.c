/* The dns check on its ways: UDP, TCP, and from one to the other, against a server of this test's
 * own on loopback. TLS, and real servers, are in tests/cases. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/address.h"
#include "probes/settings.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/dns-bytes.h"
#include "tests/unit/probe-harness.h"

static struct harness h;
static struct dns_settings settings;
static char *noerror[] = {(char *)"NOERROR", NULL};
static int server = -1, listener = -1, peer = -1;
static struct sockaddr_storage client; /* who asked last */
static struct bytes query, answer;

/* A UDP socket and a listener on one port. */
static void serve(void)
{
	settings.port = 0;
	listener = harness_serve(AF_INET, SOCK_STREAM, &settings.port);
	server = harness_serve(AF_INET, SOCK_DGRAM, &settings.port);
}

static void setup(void)
{
	memset(&h, 0, sizeof(h));
	ck_assert_uint_eq(probe_type_dns.settings->size, sizeof(settings));
	settings = (struct dns_settings){.name = (char *)"health.example.net",
		.rrtype = (char *)"A",
		.recursion_desired = true,
		.expect = {.rcodes = {.items = noerror, .n = 1}, .min_answers = 1}};
	ck_assert_int_eq(address_parse("127.0.0.1", &settings.server, NULL), 0);
	serve();
}

static void teardown(void)
{
	harness_done(&h);
	harness_close(&server);
	harness_close(&listener);
	harness_close(&peer);
}

static void start(uint64_t interval_ms, uint64_t timeout_ms)
{
	harness_start(&h, &probe_type_dns, &settings, interval_ms, timeout_ms);
}

static bool receive(void)
{
	socklen_t n = sizeof(client);
	ssize_t r =
		recvfrom(server, query.data, sizeof(query.data), 0, (struct sockaddr *)&client, &n);

	if (r > 0)
		query.n = (size_t)r;
	return r > 0;
}

static void wait_query(void)
{
	ck_assert(LOOP_UNTIL(h.event, receive(), 2000));
}

static unsigned id_asked(void)
{
	return (unsigned)(query.data[0] << 8 | query.data[1]);
}

static void make_answer(unsigned flags, unsigned answers)
{
	static const uint8_t address[4] = {192, 0, 2, 1};

	put_header(&answer, id_asked(), DNS_QR | flags, 1, answers);
	put_question(&answer, "health.example.net", 1);
	for (unsigned i = 0; i < answers; i++) {
		put_pointer(&answer, 12);
		put_rest(&answer, 1, address, sizeof(address));
	}
}

static void reply_from(int fd)
{
	ck_assert_int_eq(sendto(fd, answer.data, answer.n, 0, (struct sockaddr *)&client,
				 sizeof(struct sockaddr_in)),
		(ssize_t)answer.n);
}

static void reply(void)
{
	reply_from(server);
}

static void accept_peer(void)
{
	harness_close(&peer);
	ck_assert(LOOP_UNTIL(h.event,
		(peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0, 2000));
}

/* The query that came over TCP, without its length. */
static void read_query(void)
{
	uint8_t raw[512];
	ssize_t n;

	ck_assert(LOOP_UNTIL(h.event, (n = recv(peer, raw, sizeof(raw), 0)) > 2, 2000));
	ck_assert_int_eq(raw[0] << 8 | raw[1], n - 2);
	query.n = 0;
	put(&query, raw + 2, (size_t)n - 2);
}

/* The first `n` bytes of the answer behind its length. */
static void stream(size_t from, size_t to)
{
	uint8_t raw[2 + 1024];

	ck_assert_uint_le(answer.n, 1024);
	raw[0] = (uint8_t)(answer.n >> 8);
	raw[1] = (uint8_t)answer.n;
	memcpy(raw + 2, answer.data, answer.n);
	ck_assert_int_eq(send(peer, raw + from, to - from, MSG_NOSIGNAL), (ssize_t)(to - from));
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

START_TEST (an_answer_over_udp) {
	start(3600000, 1000);
	wait_query();
	make_answer(0, 1);
	reply();
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "");
	ck_assert_str_eq(h.reports[0].reason, "");
	ck_assert_uint_eq(query.data[2], 1); /* RD */
}
END_TEST

START_TEST (a_bad_answer_is_bad_at_once) {
	start(3600000, 10000);
	wait_query();
	make_answer(2, 0);
	reply();
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "answered SERVFAIL");
	ck_assert_uint_lt(h.duration_us[0], 9000000);
}
END_TEST

/* A18: what does not answer the query is ignored, whatever it is, and the wait goes on. */
START_TEST (strays_are_ignored) {
	int other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	start(3600000, 1000);
	wait_query();
	make_answer(0, 1);
	reply_from(other); /* from another port */
	answer.data[0] ^= 0x55;
	reply();
	make_answer(0, 1);
	answer.data[13] = 'H' + 1; /* another name */
	reply();
	make_answer(2, 0);
	answer.data[2] &= 0x7f; /* a query */
	reply();
	make_answer(2, 0);
	answer.n = 3;
	reply();
	LOOP_FOR(h.event, 50);
	ck_assert_uint_eq(h.n, 0);
	make_answer(0, 1);
	reply();
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "");
	(void)close(other);
}
END_TEST

START_TEST (strays_are_told_at_the_deadline) {
	start(3600000, 100);
	wait_query();
	make_answer(0, 1);
	answer.data[0] ^= 0x55;
	reply();
	harness_expect(&h, 1, CHECK_OUTCOME_BAD,
		"timeout after 100ms: 1 reply was ignored, the last "
		"because it has another id");
	ck_assert_uint_ge(h.duration_us[0], 100000);
}
END_TEST

START_TEST (silence) {
	start(3600000, 100);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "timeout after 100ms");
	ck_assert_str_eq(h.reports[0].reason, "timeout after 100ms");
}
END_TEST

START_TEST (a_late_answer_is_nobodys) {
	start(150, 100);
	wait_query();
	make_answer(0, 1);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "timeout");
	reply();
	(void)harness_wait(&h, 2);
	harness_expect(&h, 2, CHECK_OUTCOME_BAD, "timeout");
}
END_TEST

START_TEST (nobody_listens) {
	uint64_t best_us = UINT64_MAX;

	harness_close(&server);
	start(200, 200);
	for (unsigned i = 1; i <= 3; i++) {
		harness_expect(&h, i, CHECK_OUTCOME_BAD, "127.0.0.1 port ");
		harness_expect(&h, i, CHECK_OUTCOME_BAD, ": port unreachable");
		if (h.duration_us[i - 1] < best_us)
			best_us = h.duration_us[i - 1];
	}
	ck_assert_uint_lt(best_us, 150000);
}
END_TEST

/* Neither the id nor the port of the next query is known to those who saw the last one. */
START_TEST (ids_and_ports_are_new_each_time) {
	unsigned ids[16], ports[16], same = 0;

	start(1, 500);
	for (int i = 0; i < 16; i++) {
		wait_query();
		ids[i] = id_asked();
		ports[i] = ((struct sockaddr_in *)&client)->sin_port;
		make_answer(0, 1);
		reply();
		(void)harness_wait(&h, (unsigned)i + 1);
		for (int k = 0; k < i; k++)
			same += (ids[k] == ids[i]) + (ports[k] == ports[i]);
	}
	ck_assert_uint_le(same, 2);
}
END_TEST

START_TEST (a_huge_answer_over_udp) {
	static uint8_t noise[5000];

	start(3600000, 1000);
	wait_query();
	make_answer(0, 1);
	put(&answer, noise, sizeof(noise));
	reply();
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "bytes over UDP, more than 4096");
}
END_TEST

START_TEST (a_truncated_answer_is_asked_for_over_tcp) {
	unsigned id;

	start(3600000, 1000);
	wait_query();
	id = id_asked();
	make_answer(DNS_TC, 0);
	reply();
	accept_peer();
	read_query();
	ck_assert_uint_eq(id, id_asked());
	make_answer(0, 3);
	/* In pieces: of the length, too. */
	stream(0, 1);
	LOOP_FOR(h.event, 10);
	stream(1, 7);
	LOOP_FOR(h.event, 10);
	stream(7, answer.n + 1);
	LOOP_FOR(h.event, 10);
	ck_assert_uint_eq(h.n, 0);
	stream(answer.n + 1, answer.n + 2);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "");
}
END_TEST

/* One deadline for both. */
START_TEST (the_deadline_covers_both) {
	struct run_view udp, tcp;

	start(3600000, 60000);
	wait_query();
	run_check_view(h.run, &udp);
	make_answer(DNS_TC, 0);
	reply();
	accept_peer();
	read_query();
	run_check_view(h.run, &tcp);
	ck_assert(udp.busy && tcp.busy);
	ck_assert_uint_eq(monotime_since_us(tcp.began, tcp.deadline), 60000000);
	ck_assert_uint_eq(tcp.deadline.us, udp.deadline.us);
}
END_TEST

START_TEST (truncated_with_nobody_on_tcp) {
	harness_close(&listener);
	start(3600000, 1000);
	wait_query();
	make_answer(DNS_TC, 0);
	reply();
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "connect to 127.0.0.1 port ");
	ck_assert_ptr_nonnull(strstr(h.reports[0].reason, "Connection refused"));
}
END_TEST

START_TEST (over_tcp_a_stray_is_bad_at_once) {
	settings.transport = TRANSPORT_TCP;
	start(3600000, 1000);
	accept_peer();
	read_query();
	make_answer(_i == 2 ? DNS_TC : 0, 1);
	if (_i == 0)
		answer.data[1] ^= 1;
	if (_i == 1)
		answer.n = 3;
	stream(0, answer.n + 2);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD,
		_i == 0	  ? "no answer to the query: it has another id"
		: _i == 1 ? "no answer to the query: 3 bytes are no DNS message"
			  : "the answer is truncated, and not over UDP");
}
END_TEST

START_TEST (over_tcp_it_hangs_up) {
	settings.transport = TRANSPORT_TCP;
	start(3600000, 1000);
	accept_peer();
	read_query();
	make_answer(0, 1);
	if (_i > 0)
		stream(0, _i == 1 ? 1 : 2);
	ck_assert_int_eq(shutdown(peer, SHUT_WR), 0);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD,
		_i == 0 ? "the connection was closed without an answer"
			: "the connection was closed in the middle of the answer");
}
END_TEST

START_TEST (over_tcp_it_resets) {
	struct linger reset = {.l_onoff = 1};

	settings.transport = TRANSPORT_TCP;
	start(3600000, 1000);
	accept_peer();
	read_query();
	(void)setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	harness_close(&peer);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "receive: Connection reset by peer");
}
END_TEST

START_TEST (over_tcp_it_says_nothing) {
	settings.transport = _i == 0 ? TRANSPORT_TCP : TRANSPORT_TLS;
	start(3600000, 100);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "timeout after 100ms");
}
END_TEST

START_TEST (what_does_not_speak_tls) {
	settings.transport = TRANSPORT_TLS;
	start(3600000, 1000);
	accept_peer();
	ck_assert_int_eq(send(peer, "220 mail.example.net ESMTP\r\n", 28, MSG_NOSIGNAL), 28);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "TLS: the other end does not speak it");
}
END_TEST

START_TEST (no_descriptors_is_unknown) {
	rlim_t before;

	if (_i == 1)
		settings.transport = TRANSPORT_TCP;
	start(20, 10);
	before = descriptors_limit(3);
	harness_expect(&h, 1, CHECK_OUTCOME_UNKNOWN, "socket: Too many open files");
	(void)descriptors_limit(before);
	ck_assert(LOOP_UNTIL(h.event, h.reports[h.n - 1].outcome == CHECK_OUTCOME_BAD, 1000));
}
END_TEST

START_TEST (certificates_that_cannot_be_read_are_unknown) {
	settings.transport = TRANSPORT_TLS;
	settings.tls_name = (char *)"dns.example.net";
	settings.ca = (char *)(_i == 0 ? "/nonexistent/ca.pem" : "/dev/null");
	start(3600000, 1000);
	harness_expect(&h, 1, CHECK_OUTCOME_UNKNOWN,
		_i == 0 ? "cannot read certificates of /nonexistent/ca.pem: No such file"
			: "/dev/null");
}
END_TEST

START_TEST (nothing_is_left_behind) {
	unsigned before;

	settings.transport = _i;
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
	settings.transport = _i;
	start(3600000, 1000);
	if (_i == TRANSPORT_UDP) {
		wait_query();
		make_answer(0, 1);
		reply();
	} else {
		accept_peer();
		read_query();
		make_answer(0, 1);
		stream(0, answer.n + 2);
	}
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "");
}
END_TEST

static char *one_answer[] = {NULL, NULL};

static void refused(const char *text)
{
	struct error e = {""};

	ck_assert_int_eq(probe_type_dns.validate(&settings, &e), -EINVAL);
	ck_assert_msg(strstr(e.text, text), "%s", e.text);
	setup();
}

START_TEST (what_keys_exclude) {
	ck_assert_int_eq(probe_type_dns.validate(&settings, NULL), 0);
	settings.tls_name = (char *)"dns.example.net";
	refused("tls_name: expected only beside");
	settings.transport = TRANSPORT_TLS;
	settings.ca = (char *)"/etc/ca.pem";
	refused("ca: expected only beside tls_name");
	ck_assert_int_eq(address_parse("fe80::1", &settings.server, NULL), 0);
	refused("server: expected an address that is not link-local");
	one_answer[0] = (char *)"2001:db8::1";
	settings.expect.answers = (struct schema_strings){.items = one_answer, .n = 1};
	refused("expect: expected answers of type A as in a zone file, not \"2001:db8::1\"");
	one_answer[0] = (char *)"192.0.2.1";
	settings.expect.answers = (struct schema_strings){.items = one_answer, .n = 1};
	ck_assert_int_eq(probe_type_dns.validate(&settings, NULL), 0);
	noerror[0] = (char *)"NXDOMAIN";
	refused("expect: expected no answers where rcodes leave NOERROR out");
	noerror[0] = (char *)"NOERROR";
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probes-dns");
	TCase *c = tcase_create("dns");
	SRunner *runner;
	int failed;

	tcase_set_timeout(c, 30);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, an_answer_over_udp);
	tcase_add_test(c, a_bad_answer_is_bad_at_once);
	tcase_add_test(c, strays_are_ignored);
	tcase_add_test(c, strays_are_told_at_the_deadline);
	tcase_add_test(c, silence);
	tcase_add_test(c, a_late_answer_is_nobodys);
	tcase_add_test(c, nobody_listens);
	tcase_add_test(c, ids_and_ports_are_new_each_time);
	tcase_add_test(c, a_huge_answer_over_udp);
	tcase_add_test(c, a_truncated_answer_is_asked_for_over_tcp);
	tcase_add_test(c, the_deadline_covers_both);
	tcase_add_test(c, truncated_with_nobody_on_tcp);
	tcase_add_loop_test(c, over_tcp_a_stray_is_bad_at_once, 0, 3);
	tcase_add_loop_test(c, over_tcp_it_hangs_up, 0, 3);
	tcase_add_test(c, over_tcp_it_resets);
	tcase_add_loop_test(c, over_tcp_it_says_nothing, 0, 2);
	tcase_add_test(c, what_does_not_speak_tls);
	tcase_add_loop_test(c, no_descriptors_is_unknown, 0, 2);
	tcase_add_loop_test(c, certificates_that_cannot_be_read_are_unknown, 0, 2);
	tcase_add_loop_test(c, nothing_is_left_behind, TRANSPORT_UDP, TRANSPORT_TLS + 1);
	tcase_add_loop_test(c, it_goes_away_inside_its_report, TRANSPORT_UDP, TRANSPORT_TCP + 1);
	tcase_add_test(c, what_keys_exclude);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
