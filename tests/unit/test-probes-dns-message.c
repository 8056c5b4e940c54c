/* DNS messages: the bytes of queries (A17), and what answers are worth (A18). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "probes/dns_message.h"
#include "tests/unit/cost.h"
#include "tests/unit/dns-bytes.h"

#define ID 0x1234
#define TYPE_A 1
#define TYPE_NS 2
#define TYPE_CNAME 5
#define TYPE_TXT 16
#define TYPE_MX 15
#define QUESTION_AT 12 /* where "health.example.net" stands in the answers below */

static struct dns_expect expect;
static struct bytes b;
static char reason[PROBE_REASON_MAX];
static const uint8_t one[4] = {192, 0, 2, 1}, two[4] = {192, 0, 2, 2};

static void ask_for(const char *name, const char *rrtype)
{
	dns_expect_done(&expect);
	expect = (struct dns_expect){.rcodes = 1, .min_answers = 1};
	dns_question_parse(name, rrtype, &expect.question);
}

static void expect_answer(const char *text)
{
	expect.answers =
		reallocarray(expect.answers, expect.n_answers + 1, sizeof(*expect.answers));
	ck_assert_int_eq(
		dns_rdata_parse(expect.question.type, text, &expect.answers[expect.n_answers]), 0);
	expect.n_answers++;
}

static void setup(void)
{
	ask_for("health.example.net", "A");
}

static void teardown(void)
{
	dns_expect_done(&expect);
}

/* The head of an answer to the question of setup(). */
static void begin(unsigned flags, unsigned answers)
{
	put_header(&b, ID, flags, 1, answers);
	put_question(&b, "health.example.net", expect.question.type);
}

static void put_answer(const char *owner, unsigned type, const void *rdata, size_t n)
{
	put_name(&b, owner);
	put_rest(&b, type, rdata, n);
}

static void put_alias(const char *owner, const char *target)
{
	struct bytes *name = calloc(1, sizeof(*name));

	put_name(name, target);
	put_answer(owner, TYPE_CNAME, name->data, name->n);
	free(name);
}

/* Judges a copy of just the right size, so that a byte too far is seen. */
static void judge(enum dns_verdict wanted, const char *text)
{
	_cleanup_free_ uint8_t *copy = malloc(b.n + 1);
	uint8_t *wire = copy + 1;
	enum dns_verdict got;

	memcpy(wire, b.data, b.n);
	got = dns_judge(&expect, ID, wire, b.n, reason);
	ck_assert_msg(got == wanted && strcmp(reason, text) == 0,
		"verdict %d \"%s\", expected %d \"%s\"", (int)got, reason, (int)wanted, text);
}

static void build(const char *name, const char *rrtype, bool recursion_desired, struct bytes *ret)
{
	struct dns_question q;
	uint8_t wire[DNS_QUERY_MAX];

	ck_assert_ptr_null(dns_form_name(name));
	ck_assert_ptr_null(dns_form_rrtype(rrtype));
	dns_question_parse(name, rrtype, &q);
	ck_assert_int_eq(dns_query_build(&q, recursion_desired, wire, &ret->n), 0);
	memcpy(ret->data, wire, ret->n);
}

/* ---- queries ---- */

START_TEST (a_query_is_a_question_and_an_opt) {
	static struct bytes wanted, got;

	put_header(&wanted, 0, DNS_RD, 1, 0);
	wanted.data[11] = 1; /* one additional record */
	put_question(&wanted, "example.net", TYPE_TXT);
	put8(&wanted, 0);
	put16(&wanted, 41);
	put16(&wanted, 1232);
	put16(&wanted, 0);
	put16(&wanted, 0);
	put16(&wanted, 0);
	build("example.net", "TXT", true, &got);
	ck_assert_uint_eq(got.n, wanted.n);
	ck_assert_mem_eq(got.data, wanted.data, got.n);
	build("example.net", "TXT", false, &got);
	ck_assert_uint_eq(got.data[2], 0);
	dns_query_set_id(got.data, 0xabcd);
	ck_assert_uint_eq(got.data[0], 0xab);
	ck_assert_uint_eq(got.data[1], 0xcd);
}
END_TEST

START_TEST (a_dot_at_the_end_changes_nothing) {
	static struct bytes with, without;

	build("example.net.", "A", true, &with);
	build("example.net", "A", true, &without);
	ck_assert_uint_eq(with.n, without.n);
	ck_assert_mem_eq(with.data, without.data, with.n);
}
END_TEST

START_TEST (names_on_the_wire) {
	static const struct {
		const char *text, *wire;
		size_t n;
	} rows[] = {
		{".", "", 1}, /* one zero byte */
		{"a.b", "\1a\1b", 5},
		{"_dns.resolver.arpa", "\4_dns\10resolver\4arpa", 20},
		{"xn--bcher-kva.example", "\15xn--bcher-kva\7example", 23},
		{"\\046dot.example", "\4.dot\7example", 14},
		{"a\\.b", "\3a.b", 5},
		{"*.example", "\1*\7example", 11},
		{"Example", "\7Example", 9},
	};
	static struct bytes got;

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		build(rows[i].text, "A", true, &got);
		ck_assert_uint_eq(got.n, 12 + rows[i].n + 4 + 11);
		ck_assert_mem_eq(got.data + 12, rows[i].wire, rows[i].n);
	}
}
END_TEST

START_TEST (bad_names_are_refused) {
	char label[80], name[512] = "";
	static const char *const rows[] = {"a..b", ".a", "..", "a.b..", "a\\", "a\\9", "a\\256.b",
		"b\xc3\xbc"
		"cher.example",
		"a b", " ", "", "a\tb"};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		ck_assert_msg(dns_form_name(rows[i]), "%s", rows[i]);
	memset(label, 'x', sizeof(label));
	label[63] = '\0';
	ck_assert_ptr_null(dns_form_name(label));
	label[63] = 'x';
	label[64] = '\0';
	ck_assert_ptr_nonnull(strstr(dns_form_name(label), "63 bytes"));
	/* 126 labels of one byte and one of two are 255 bytes; one byte more is too much. */
	for (int i = 0; i < 126; i++)
		strcat(name, "a.");
	strcat(name, "b");
	ck_assert_ptr_null(dns_form_name(name));
	strcat(name, "b");
	ck_assert_ptr_nonnull(strstr(dns_form_name(name), "255 bytes"));
}
END_TEST

START_TEST (types_and_rcodes) {
	static const char *const good[] = {"A", "aaaa", "SOA", "HTTPS", "TYPE65280", "CNAME"};
	static const char *const bad[] = {"", "B", "ANY", "AXFR", "OPT", "TYPE0", "TYPE65536",
		"TYPE1x", "TYPE", "TYPE255", "HIP", "TSIG", "TYPE-1"};

	for (size_t i = 0; i < ELEMENTSOF(good); i++)
		ck_assert_msg(!dns_form_rrtype(good[i]), "%s", good[i]);
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		ck_assert_msg(dns_form_rrtype(bad[i]), "%s", bad[i]);
	ck_assert_uint_eq(dns_rcode_bit("NOERROR"), 1);
	ck_assert_uint_eq(dns_rcode_bit("NXDOMAIN"), 8);
	ck_assert_ptr_nonnull(dns_form_rcode("nxdomain"));
	ck_assert_ptr_nonnull(dns_form_rcode(""));
}
END_TEST

START_TEST (rdata_of_the_type) {
	struct dns_rdata r;

	ck_assert_int_eq(dns_rdata_parse(TYPE_A, "192.0.2.1", &r), 0);
	ck_assert_uint_eq(r.length, 4);
	ck_assert_mem_eq(r.bytes, one, 4);
	dns_rdata_done(&r);
	ck_assert_int_eq(dns_rdata_parse(TYPE_A, "2001:db8::1", &r), -EINVAL);
	ck_assert_int_eq(dns_rdata_parse(TYPE_A, "192.0.2.1 192.0.2.2", &r), -EINVAL);
	ck_assert_int_eq(dns_rdata_parse(TYPE_A, "", &r), -EINVAL);
	ck_assert_int_eq(dns_rdata_parse(TYPE_A, "192.0.2.1\n. 0 IN A 192.0.2.2", &r), -EINVAL);
	ck_assert_int_eq(dns_rdata_parse(TYPE_MX, "ten mail", &r), -EINVAL);
}
END_TEST

/* ---- answers ---- */

START_TEST (an_answer_of_the_type_is_good) {
	begin(DNS_QR, 1);
	put_pointer(&b, QUESTION_AT);
	put_rest(&b, TYPE_A, one, 4);
	judge(DNS_GOOD, "");
}
END_TEST

START_TEST (case_does_not_matter) {
	put_header(&b, ID, DNS_QR, 1, 1);
	put_question(&b, "HEALTH.example.NET", TYPE_A);
	put_answer("health.EXAMPLE.net", TYPE_A, one, 4);
	judge(DNS_GOOD, "");
}
END_TEST

/* A18 */
START_TEST (rcodes) {
	static const char *const words[] = {"NOERROR without an answer of type A",
		"answered FORMERR", "answered SERVFAIL", "answered NXDOMAIN", "answered NOTIMP",
		"answered REFUSED", "answered YXDOMAIN", "answered YXRRSET", "answered NXRRSET",
		"answered NOTAUTH", "answered NOTZONE", "answered rcode 11"};

	begin(DNS_QR | (unsigned)_i, 0);
	judge(DNS_BAD, words[_i]);
	/* An answer beside an error is none. */
	begin(DNS_QR | (unsigned)_i, 1);
	put_answer("health.example.net", TYPE_A, one, 4);
	if (_i > 0)
		judge(DNS_BAD, words[_i]);
}
END_TEST

START_TEST (an_accepted_rcode_needs_no_answer) {
	expect.rcodes = dns_rcode_bit("NXDOMAIN");
	begin(DNS_QR | 3, 0);
	judge(DNS_GOOD, "answered NXDOMAIN");
	begin(DNS_QR | 2, 0);
	judge(DNS_BAD, "answered SERVFAIL");
	begin(DNS_QR, 1);
	put_answer("health.example.net", TYPE_A, one, 4);
	judge(DNS_BAD, "answered NOERROR");
	expect.rcodes |= 1;
	judge(DNS_GOOD, "");
	/* NOERROR still wants its answers. */
	begin(DNS_QR, 0);
	judge(DNS_BAD, "NOERROR without an answer of type A");
}
END_TEST

START_TEST (the_upper_bits_of_an_rcode_stand_in_the_opt) {
	begin(DNS_QR, 0);
	b.data[11] = 1;
	put8(&b, 0);
	put16(&b, 41);
	put16(&b, 1232);
	put16(&b, 0x0100); /* upper bits 1, version 0 */
	put16(&b, 0);
	put16(&b, 0);
	judge(DNS_BAD, "answered BADVERS");
	expect.rcodes = dns_rcode_bit("BADVERS");
	judge(DNS_GOOD, "answered BADVERS");
	b.data[b.n - 6] = 0xff;
	judge(DNS_BAD, "answered rcode 4080");
}
END_TEST

START_TEST (another_type_is_no_answer) {
	begin(DNS_QR, 1);
	put_answer("health.example.net", TYPE_TXT, "\1x", 2);
	judge(DNS_BAD, "NOERROR without an answer of type A");
}
END_TEST

START_TEST (another_name_is_no_answer) {
	begin(DNS_QR, 1);
	put_answer("example.net", TYPE_A, one, 4);
	judge(DNS_BAD, "NOERROR without an answer of type A");
}
END_TEST

START_TEST (aliases_are_followed) {
	begin(DNS_QR, 3);
	put_alias("health.example.net", "a.example.net");
	put_alias("a.example.net", "b.Example.net");
	put_answer("B.example.net", TYPE_A, one, 4);
	judge(DNS_GOOD, "");
	/* In whatever order. */
	begin(DNS_QR, 3);
	put_answer("b.example.net", TYPE_A, one, 4);
	put_alias("a.example.net", "b.example.net");
	put_alias("health.example.net", "a.example.net");
	judge(DNS_GOOD, "");
	/* To their end. */
	begin(DNS_QR, 2);
	put_alias("health.example.net", "a.example.net");
	put_answer("b.example.net", TYPE_A, one, 4);
	judge(DNS_BAD, "NOERROR without an answer of type A");
	/* A circle ends, too. */
	begin(DNS_QR, 2);
	put_alias("health.example.net", "a.example.net");
	put_alias("a.example.net", "health.example.net");
	judge(DNS_BAD, "NOERROR without an answer of type A");
}
END_TEST

START_TEST (an_alias_may_be_what_is_asked_for) {
	ask_for("health.example.net", "CNAME");
	expect_answer("A.example.net.");
	begin(DNS_QR, 1);
	put_alias("health.example.net", "a.EXAMPLE.net");
	judge(DNS_GOOD, "");
}
END_TEST

START_TEST (so_many_answers) {
	expect.min_answers = 2;
	begin(DNS_QR, 1);
	put_answer("health.example.net", TYPE_A, one, 4);
	judge(DNS_BAD, "1 answer of type A, expected at least 2");
	begin(DNS_QR, 2);
	put_answer("health.example.net", TYPE_A, one, 4);
	put_answer("health.example.net", TYPE_A, two, 4);
	judge(DNS_GOOD, "");
	expect.min_answers = 0;
	begin(DNS_QR, 0);
	judge(DNS_GOOD, "");
}
END_TEST

START_TEST (what_the_answers_hold) {
	expect_answer("192.0.2.2");
	begin(DNS_QR, 1);
	put_answer("health.example.net", TYPE_A, one, 4);
	judge(DNS_BAD, "expected the answer 192.0.2.2, got 192.0.2.1");
	begin(DNS_QR, 2);
	put_answer("health.example.net", TYPE_A, one, 4);
	put_answer("health.example.net", TYPE_A, two, 4);
	judge(DNS_GOOD, "");
	expect_answer("192.0.2.3");
	judge(DNS_BAD, "expected the answer 192.0.2.3, got 192.0.2.1 and others");
	expect.min_answers = 0;
	begin(DNS_QR, 0);
	judge(DNS_BAD, "expected the answer 192.0.2.2, got none");
}
END_TEST

/* Names in rdata may be compressed, and written in any case. */
START_TEST (names_in_answers) {
	static const uint8_t mx[] = {0, 10, 4, 'M', 'a', 'i', 'l', 0xc0, QUESTION_AT + 7};

	ask_for("health.example.net", "MX");
	expect_answer("10 mail.Example.net");
	begin(DNS_QR, 1);
	put_answer("health.example.net", TYPE_MX, mx, sizeof(mx));
	judge(DNS_GOOD, "");
}
END_TEST

START_TEST (texts_in_answers) {
	ask_for("health.example.net", "TXT");
	expect_answer("\"o k\" on");
	begin(DNS_QR, 1);
	put_answer("health.example.net", TYPE_TXT, "\3o k\2on", 7);
	judge(DNS_GOOD, "");
	begin(DNS_QR, 1);
	put_answer("health.example.net", TYPE_TXT, "\3o k\3\33[m", 8);
	judge(DNS_BAD, "expected the answer \"o k\" on, got \"o k\" \"\\x1b[m\"");
}
END_TEST

/* What is written as in a zone file is found again on the wire, for types of all kinds of fields.
 */
START_TEST (rdata_of_many_types) {
	static const struct {
		const char *type, *text;
	} rows[] = {
		{"A", "192.0.2.1"},
		{"AAAA", "2001:db8::1"},
		{"NS", "Ns1.example.net."},
		{"PTR", "host.example.net."},
		{"MX", "10 Mail.example.net."},
		{"SOA", "ns.example.net. hostmaster.example.net. 1 3600 600 86400 60"},
		{"TXT", "\"a b\" c \"\""},
		{"SRV", "1 2 443 www.example.net."},
		{"NAPTR", "100 10 \"u\" \"sip+E2U\" \"!^.*$!sip:x@example.net!\" ."},
		{"CAA", "0 issue \"ca.example.net\""},
		{"TLSA", "3 1 1 "
			 "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"},
		{"SSHFP", "4 2 "
			  "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"},
		{"DS", "4711 13 2 "
		       "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"},
		{"DNSKEY", "257 3 13 AAECAwQFBgcICQ=="},
		{"NSEC", "b.example.net. A RRSIG NSEC"},
		{"NSEC3", "1 0 10 ab 2vptu5timamqttgl4luu9kg21e0aor3s A"},
		{"RRSIG", "A 13 2 60 20301231000000 20261130000000 4711 example.net. AAECAw=="},
		{"HTTPS", "1 . alpn=h2 port=8443 ipv4hint=192.0.2.1"},
		{"LOC", "52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m"},
		{"TYPE65280", "\\# 3 abcdef"},
		{"TYPE65280", "\\# 0"},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct dns_rdata *r;

		ask_for("health.example.net", rows[i].type);
		expect_answer(rows[i].text);
		r = &expect.answers[0];
		begin(DNS_QR, 1);
		put_answer("health.example.net", expect.question.type,
			r->length > 0 ? r->bytes : one, r->length);
		judge(DNS_GOOD, "");
		/* A byte too many is another rdata, or none of the type. */
		begin(DNS_QR, 1);
		put_answer("health.example.net", expect.question.type,
			r->length > 0 ? r->bytes : one, r->length);
		put8(&b, 0);
		b.data[b.n - r->length - 2]++;
		ck_assert_msg(dns_judge(&expect, ID, b.data, b.n, reason) == DNS_BAD, "%s %s",
			rows[i].type, rows[i].text);
	}
}
END_TEST

/* ldns prints parameters of SVCB into a buffer that is too short, and ends the process. */
START_TEST (what_is_shown_of_an_answer) {
	uint8_t rdata[240] = {0, 1, 0, 0xff, 0, 0, 233};

	ask_for("health.example.net", "HTTPS");
	expect_answer("1 . alpn=h2");
	begin(DNS_QR, 1);
	put_answer("health.example.net", 65, rdata, sizeof(rdata));
	judge(DNS_BAD, "expected the answer 1 . alpn=h2, got 1 . \\# 237 "
		       "ff0000e900000000000000000000000000000...");
	ask_for("health.example.net", "MX");
	expect_answer("10 a.");
	begin(DNS_QR, 1);
	put_answer("health.example.net", TYPE_MX, "\0\24\4ma\33l\3net\0", 12);
	judge(DNS_BAD, "expected the answer 10 a., got 20 ma\\x1bl.net.");
	ask_for("health.example.net", "AAAA");
	expect_answer("2001:db8::1");
	begin(DNS_QR, 1);
	put_answer("health.example.net", 28, "\40\1\15\270\0\0\0\0\0\0\0\0\0\0\0\2", 16);
	judge(DNS_BAD, "expected the answer 2001:db8::1, got 2001:db8::2");
}
END_TEST

START_TEST (authority) {
	expect.authoritative = true;
	begin(DNS_QR, 1);
	put_answer("health.example.net", TYPE_A, one, 4);
	judge(DNS_BAD, "the answer is not authoritative");
	begin(DNS_QR | DNS_AA, 1);
	put_answer("health.example.net", TYPE_A, one, 4);
	judge(DNS_GOOD, "");
}
END_TEST

START_TEST (truncated) {
	begin(DNS_QR | DNS_TC, 0);
	judge(DNS_TRUNCATED, "the answer is truncated");
}
END_TEST

/* ---- what is no answer to the query ---- */

START_TEST (strays) {
	begin(0, 0);
	judge(DNS_STRAY, "it is a query, not a reply");
	begin(DNS_QR, 0);
	b.data[1] ^= 1;
	judge(DNS_STRAY, "it has another id");
	begin(DNS_QR | 0x2800, 0);
	judge(DNS_STRAY, "it has another opcode");
	put_header(&b, ID, DNS_QR, 1, 0);
	put_question(&b, "health2.example.net", TYPE_A);
	judge(DNS_STRAY, "it has another question");
	put_header(&b, ID, DNS_QR, 1, 0);
	put_question(&b, "health.example.net", TYPE_TXT);
	judge(DNS_STRAY, "it has another question");
	begin(DNS_QR, 0);
	b.data[b.n - 1] = 3; /* class CH */
	judge(DNS_STRAY, "it has another question");
	put_header(&b, ID, DNS_QR, 0, 0);
	judge(DNS_STRAY, "it has 0 questions");
	put_header(&b, ID, DNS_QR, 2, 0);
	judge(DNS_STRAY, "it has 2 questions");
	b.n = 3;
	judge(DNS_STRAY, "3 bytes are no DNS message");
	b.n = 0;
	judge(DNS_STRAY, "0 bytes are no DNS message");
}
END_TEST

/* A server that cannot read a query sends the header alone. */
START_TEST (an_error_without_the_question_is_an_answer) {
	put_header(&b, ID, DNS_QR | 1, 0, 0);
	judge(DNS_BAD, "answered FORMERR");
	put_header(&b, ID, DNS_QR | 3, 0, 0);
	judge(DNS_STRAY, "it has 0 questions");
}
END_TEST

/* ---- what is malformed ---- */

START_TEST (cut_short) {
	size_t whole, head;

	begin(DNS_QR, 1);
	head = b.n;
	put_answer("health.example.net", TYPE_A, one, 4);
	whole = b.n;
	for (b.n = head; b.n < whole; b.n++)
		judge(DNS_BAD, "malformed answer: its answer section");
	for (b.n = 12; b.n < head; b.n++)
		judge(DNS_STRAY, "it has another question");
	b.n = whole;
	b.data[9] = 1; /* an authority record that is not there */
	judge(DNS_BAD, "malformed answer: behind its answer section");
}
END_TEST

START_TEST (pointers_that_do_not_point_back) {
	size_t here;

	begin(DNS_QR, 1);
	here = b.n;
	put_pointer(&b, here); /* to itself */
	put_rest(&b, TYPE_A, one, 4);
	judge(DNS_BAD, "malformed answer: its answer section");
	begin(DNS_QR, 1);
	put_pointer(&b, here + 2); /* ahead, and back again */
	put_pointer(&b, here);
	put_rest(&b, TYPE_A, one, 4);
	judge(DNS_BAD, "malformed answer: its answer section");
	begin(DNS_QR, 1);
	put8(&b, 1); /* a label, and back to it */
	put8(&b, 'x');
	put_pointer(&b, here);
	put_rest(&b, TYPE_A, one, 4);
	judge(DNS_BAD, "malformed answer: its answer section");
	begin(DNS_QR, 1);
	put_pointer(&b, here + 14); /* ahead, to a name in the rdata, and no loop */
	put_rest(&b, TYPE_CNAME, "\1x", 3);
	judge(DNS_BAD, "malformed answer: its answer section");
	/* In the question it is not even our answer. */
	put_header(&b, ID, DNS_QR, 1, 0);
	put_pointer(&b, 12);
	put16(&b, TYPE_A);
	put16(&b, 1);
	judge(DNS_STRAY, "it has another question");
	/* In rdata. */
	ask_for("health.example.net", "NS");
	begin(DNS_QR, 1);
	put_pointer(&b, QUESTION_AT);
	put16(&b, TYPE_NS);
	put16(&b, 1);
	put16(&b, 0);
	put16(&b, 0);
	put16(&b, 2);
	put_pointer(&b, b.n);
	judge(DNS_BAD, "malformed answer: a record of type NS");
}
END_TEST

START_TEST (rdata_that_is_not_of_its_type) {
	begin(DNS_QR, 1);
	put_answer("health.example.net", TYPE_A, one, 3);
	judge(DNS_BAD, "malformed answer: a record of type A");
	begin(DNS_QR, 1);
	put_answer("health.example.net", TYPE_A, one, 0);
	judge(DNS_BAD, "malformed answer: a record of type A");
	ask_for("health.example.net", "NSEC"); /* its name reaches out of it */
	begin(DNS_QR, 1);
	put_answer("health.example.net", 47, "\1", 1);
	put(&b, "x\0\0\0\0", 5);
	judge(DNS_BAD, "malformed answer: a record of type NSEC");
	ask_for("health.example.net", "TXT");
	begin(DNS_QR, 1);
	put_answer("health.example.net", TYPE_TXT, "\5ab", 3);
	judge(DNS_BAD, "malformed answer: a record of type TXT");
}
END_TEST

START_TEST (too_many_records) {
	begin(DNS_QR, 129);
	for (int i = 0; i < 129; i++) {
		put_pointer(&b, QUESTION_AT);
		put_rest(&b, TYPE_A, one, 4);
	}
	judge(DNS_BAD, "129 records in the answer, more than 128");
	b.data[7] = 128; /* 128, and one behind them */
	b.data[11] = 1;
	judge(DNS_GOOD, "");
}
END_TEST

/* ---- what the worst costs ---- */

static enum dns_verdict verdict;

static void judge_once(unsigned n)
{
	verdict = dns_judge(&expect, ID, b.data, n, reason);
}

/* As many records behind the answers as go into a message: each has to be looked at. */
static void put_tiny_records(void)
{
	unsigned n;

	begin(DNS_QR, 0);
	while (b.n + 11 <= 65535) {
		put8(&b, 0);
		put_rest(&b, TYPE_A, one, 0);
	}
	n = (unsigned)(b.n - 36) / 11;
	b.data[8] = (uint8_t)(n >> 8); /* all of them authority */
	b.data[9] = (uint8_t)n;
}

/* What the largest honest message costs. Leaves what is judged as it was. */
static uint64_t honest_ns(void)
{
	static struct bytes kept;
	struct dns_expect kept_expect = expect;
	uint64_t ns;

	kept = b;
	expect = (struct dns_expect){0};
	ask_for("health.example.net", "A");
	put_tiny_records();
	ns = cost_ns(judge_once, (unsigned)b.n);
	ck_assert_int_eq(verdict, DNS_BAD);
	dns_expect_done(&expect);
	expect = kept_expect;
	b = kept;
	return ns;
}

/* One that could ask for more than its size allows would cost hundreds of times as much as that. */
static void cost(enum dns_verdict wanted, const char *text)
{
	uint64_t honest = honest_ns(), ns = cost_ns(judge_once, (unsigned)b.n);

	ck_assert_int_eq(verdict, wanted);
	ck_assert_msg(strncmp(reason, text, strlen(text)) == 0, "%s", reason);
	(void)printf("%zu bytes: %llu ns, honest ones %llu ns\n", b.n, (unsigned long long)ns,
		(unsigned long long)honest);
	ck_assert_uint_lt(ns, 20 * honest);
}

/* A question for a name of 127 labels, and in front of the records a chain of `n` pointers, each to
 * the one before, that ends at that name. Returns where the chain ends. */
static size_t put_chain(unsigned answers, unsigned type, size_t n)
{
	char name[512] = "";
	size_t at;

	for (int i = 0; i < 127; i++)
		strcat(name, i < 126 ? "a." : "a");
	ask_for(name, type == TYPE_NS ? "NS" : "A");
	put_header(&b, ID, DNS_QR, 1, answers);
	put_question(&b, name, type);
	/* The chain lies in the rdata of a first record of another type. */
	put_pointer(&b, QUESTION_AT);
	put16(&b, 65280);
	put16(&b, 1);
	put16(&b, 0);
	put16(&b, 0);
	put16(&b, (unsigned)(2 * n));
	at = QUESTION_AT;
	for (size_t i = 0; i < n; i++) {
		size_t here = b.n;

		put_pointer(&b, at);
		at = here;
	}
	return at;
}

START_TEST (many_tiny_records) {
	put_tiny_records();
	judge(DNS_BAD, "NOERROR without an answer of type A");
}
END_TEST

static void put_long_answers(size_t end, int n)
{
	for (int i = 0; i < n; i++) {
		put_pointer(&b, end);
		put16(&b, TYPE_NS);
		put16(&b, 1);
		put16(&b, 0);
		put16(&b, 0);
		put16(&b, 2);
		put_pointer(&b, end);
	}
}

START_TEST (many_answers_of_long_names) {
	size_t end = put_chain(128, TYPE_NS, 31);

	put_long_answers(end, 127);
	cost(DNS_GOOD, "");
	expect_answer("x");
	cost(DNS_BAD, "expected the answer x, got a.a.a.a");
}
END_TEST

/* As long as pointers can reach: each name would cost 8,000 steps. */
START_TEST (chains_of_pointers_are_refused) {
	size_t end = put_chain(128, TYPE_NS, 7900);

	put_long_answers(end, 127);
	cost(DNS_BAD, "malformed answer: its answer section");
}
END_TEST

START_TEST (chains_of_pointers_in_rdata_are_refused) {
	size_t end = put_chain(128, TYPE_NS, 7900);

	for (int i = 0; i < 127; i++) {
		put_pointer(&b, QUESTION_AT);
		put16(&b, TYPE_NS);
		put16(&b, 1);
		put16(&b, 0);
		put16(&b, 0);
		put16(&b, 2);
		put_pointer(&b, end);
	}
	cost(DNS_BAD, "malformed answer: a record of type NS");
}
END_TEST

/* Each step along the chain looks through all records. */
START_TEST (many_aliases) {
	char from[64] = "health.example.net", to[64];

	begin(DNS_QR, 128);
	for (int i = 0; i < 128; i++) {
		(void)snprintf(to, sizeof(to), "a%d.example.net", i);
		put_alias(from, to);
		memcpy(from, to, sizeof(from));
	}
	cost(DNS_BAD, "NOERROR without an answer of type A");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probes-dns-message");
	TCase *c = tcase_create("message");
	SRunner *runner;
	int failed;

	tcase_set_timeout(c, 30);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_query_is_a_question_and_an_opt);
	tcase_add_test(c, a_dot_at_the_end_changes_nothing);
	tcase_add_test(c, names_on_the_wire);
	tcase_add_test(c, bad_names_are_refused);
	tcase_add_test(c, types_and_rcodes);
	tcase_add_test(c, rdata_of_the_type);
	tcase_add_test(c, an_answer_of_the_type_is_good);
	tcase_add_test(c, case_does_not_matter);
	tcase_add_loop_test(c, rcodes, 0, 12);
	tcase_add_test(c, an_accepted_rcode_needs_no_answer);
	tcase_add_test(c, the_upper_bits_of_an_rcode_stand_in_the_opt);
	tcase_add_test(c, another_type_is_no_answer);
	tcase_add_test(c, another_name_is_no_answer);
	tcase_add_test(c, aliases_are_followed);
	tcase_add_test(c, an_alias_may_be_what_is_asked_for);
	tcase_add_test(c, so_many_answers);
	tcase_add_test(c, what_the_answers_hold);
	tcase_add_test(c, names_in_answers);
	tcase_add_test(c, texts_in_answers);
	tcase_add_test(c, rdata_of_many_types);
	tcase_add_test(c, what_is_shown_of_an_answer);
	tcase_add_test(c, authority);
	tcase_add_test(c, truncated);
	tcase_add_test(c, strays);
	tcase_add_test(c, an_error_without_the_question_is_an_answer);
	tcase_add_test(c, cut_short);
	tcase_add_test(c, pointers_that_do_not_point_back);
	tcase_add_test(c, rdata_that_is_not_of_its_type);
	tcase_add_test(c, too_many_records);
	tcase_add_test(c, many_tiny_records);
	tcase_add_test(c, many_answers_of_long_names);
	tcase_add_test(c, chains_of_pointers_are_refused);
	tcase_add_test(c, chains_of_pointers_in_rdata_are_refused);
	tcase_add_test(c, many_aliases);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
