#ifndef REDSHANK_PROBES_DNS_MESSAGE_H
#define REDSHANK_PROBES_DNS_MESSAGE_H
/*
 * DNS messages of the dns check (probes/dns.c): the query's bytes, and what an answer's bytes are
 * worth. No sockets, no clock: the same bytes give the same verdict.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/probe.h"

#define DNS_NAME_MAX 255    /* bytes of a name on the wire, RFC 1035, 3.1 */
#define DNS_QUERY_MAX 288   /* header 12, question 255 + 4, OPT 11 */
#define DNS_UDP_SIZE 1232   /* what our OPT offers: no fragments on any path of IPv6 */
#define DNS_ANSWERS_MAX 128 /* records of an answer section that are looked at */

/* Forms for the schema: NULL where the text is right, else what was expected. */
const char *dns_form_name(const char *text);
const char *dns_form_rrtype(const char *text);
const char *dns_form_rcode(const char *text);

struct dns_question {
	uint8_t name[DNS_NAME_MAX]; /* on the wire, as it was written */
	size_t length;
	uint16_t type;
};

struct dns_rdata {
	uint8_t *bytes; /* owned; names uncompressed and in lower case */
	char *text;	/* owned; as it was written */
	size_t length;
};

/* What a healthy answer is. */
struct dns_expect {
	struct dns_question question;
	uint32_t rcodes;	   /* one bit each */
	struct dns_rdata *answers; /* owned; each of them must be among the answers */
	size_t n_answers;
	size_t min_answers;
	bool authoritative; /* AA must be set */
};

/* Both texts have the right form. */
void dns_question_parse(const char *name, const char *rrtype, struct dns_question *ret);
/* The bit of a word of the right form. */
uint32_t dns_rcode_bit(const char *word);
/* `text` as in a zone file, for a type of the right form. 0, -EINVAL: not of that type, or
 * -ENOMEM. Release with dns_rdata_done(). */
int dns_rdata_parse(uint16_t type, const char *text, struct dns_rdata *ret);
void dns_rdata_done(struct dns_rdata *r);
void dns_expect_done(struct dns_expect *e);

/* The query with id 0: a header, one question of class IN, an OPT without options (RFC 6891).
 * 0 or -ENOMEM. */
int dns_query_build(const struct dns_question *q, bool recursion_desired,
	uint8_t ret[DNS_QUERY_MAX], size_t *ret_length);
/* Puts an id into the message. */
void dns_query_set_id(uint8_t *message, uint16_t id);

enum dns_verdict {
	DNS_GOOD,
	DNS_BAD,
	DNS_STRAY,     /* no answer to this query: another id or question, no reply, too short */
	DNS_TRUNCATED, /* TC: ask again over TCP */
	DNS_NO_MEMORY,
};

/*
 * Judges one message. The reason says why, as it goes into the report; "" with a plain good. Never
 * reads behind `n`, and takes time in proportion to `n` (at most 65,535) whatever it holds: see the
 * .c file.
 */
enum dns_verdict dns_judge(const struct dns_expect *e, uint16_t id, const uint8_t *wire, size_t n,
	char ret_reason[PROBE_REASON_MAX]);

#endif
