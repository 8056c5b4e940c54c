/*
 * libFuzzer target of the judgement of a DNS answer. The first byte chooses what is expected, the
 * next two are the id that was asked with; the rest is the message.
 *
 * Besides what the sanitizers see: the same message gets the same verdict twice; what is good has
 * the id, is a reply, and holds the question (but for bare errors); a reason is there where it must
 * be, ends, and is fit for a terminal; and strays are never good.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probes/dns_message.h"

#define N_EXPECTS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct dns_expect expects[N_EXPECTS];

static void expect(size_t i, const char *name, const char *rrtype, const char *answer)
{
	struct dns_expect *e = &expects[i];

	assert(!dns_form_name(name) && !dns_form_rrtype(rrtype));
	*e = (struct dns_expect){.rcodes = 1, .min_answers = 1};
	dns_question_parse(name, rrtype, &e->question);
	if (!answer)
		return;
	e->answers = calloc(1, sizeof(*e->answers));
	assert(e->answers);
	e->n_answers = 1;
	if (dns_rdata_parse(e->question.type, answer, &e->answers[0]) < 0)
		abort();
}

static void set_up(void)
{
	expect(0, "health.example.net", "A", NULL);
	expect(1, "health.example.net", "A", "192.0.2.1");
	expect(2, "example.net", "MX", "10 mail.example.net.");
	expect(3, ".", "SOA", NULL);
	expect(4, "a.b", "TXT", "\"o k\" on");
	expect(5, "x", "HTTPS", "1 . alpn=h2");
	expect(6, "x", "NAPTR", NULL);
	expect(7, "x", "TYPE65280", "\\# 2 abcd");
	expects[3].authoritative = true;
	expects[6].rcodes = UINT32_MAX;
	expects[6].min_answers = 2;
}

static void check_reason(enum dns_verdict verdict, const char *reason)
{
	size_t n = strnlen(reason, PROBE_REASON_MAX);

	assert(n < PROBE_REASON_MAX);
	assert(n > 0 || verdict == DNS_GOOD);
	for (size_t i = 0; i < n; i++)
		assert((unsigned char)reason[i] >= ' ' && reason[i] != 0x7f);
}

static void check_good(const uint8_t *wire, size_t n, uint16_t id)
{
	assert(n >= 12);
	assert((wire[0] << 8 | wire[1]) == id);
	assert(wire[2] & 0x80);
	assert(!(wire[2] & 0x02));
	assert((wire[4] << 8 | wire[5]) == 1 || (wire[3] & 15) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char reason[PROBE_REASON_MAX], again[PROBE_REASON_MAX];
	enum dns_verdict verdict;
	const struct dns_expect *e;
	uint16_t id;

	if (expects[0].question.length == 0)
		set_up();
	if (size < 3 || size > 65535 + 3)
		return 0;
	e = &expects[data[0] % N_EXPECTS];
	id = (uint16_t)(data[1] << 8 | data[2]);
	memset(reason, 'x', sizeof(reason));
	memset(again, 'y', sizeof(again));
	verdict = dns_judge(e, id, data + 3, size - 3, reason);
	assert(dns_judge(e, id, data + 3, size - 3, again) == verdict);
	assert(strcmp(reason, again) == 0);
	check_reason(verdict, reason);
	if (verdict == DNS_GOOD)
		check_good(data + 3, size - 3, id);
	return 0;
}
