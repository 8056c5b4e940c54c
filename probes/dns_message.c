/*
 * DNS messages of the dns check, on ldns.
 *
 * ldns builds the query, knows the types, and turns rdata into what can be compared. It is not let
 * loose on a message as a whole: it would follow 65,535 compression pointers for each name of each
 * record, and allocate for each record of each section. So the message is first walked here, once,
 * in place.
 *
 * Names: a compression pointer must point to before the piece of the name that it ends, as RFC
 * 1035, 4.1.4 has it ("a prior occurrence"), and a name follows at most 32 of them, which is more
 * than servers need. So there are no loops and no long chains.
 *
 * Sections: the records of the answer section are noted, at most DNS_ANSWERS_MAX of them. Of the
 * other two sections only the OPT counts, for the upper bits of the rcode, and names in them are
 * stepped over, not followed.
 *
 * Rdata: ldns gets the records of the type that was asked for alone, after the names in their rdata
 * have been walked in the same way.
 *
 * The worst that 64 KiB can hold is 128 records of names of 127 labels each;
 * tests/unit/test-probes-dns-message.c holds what that costs against a bound.
 */
#include "probes/dns_message.h"

#include <assert.h>
#include <errno.h>
#include <ldns/ldns.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/printable.h"

#define HEADER_LENGTH 12
#define POINTERS_MAX 32
#define CHAIN_MAX 16 /* CNAMEs from the name that was asked for to the answer */
#define TEXT_MAX 48  /* of rdata in a reason */

DEFINE_CLEANUP_PTR(ldns_rr *, ldns_rr_free)
DEFINE_CLEANUP_PTR(ldns_pkt *, ldns_pkt_free)
DEFINE_CLEANUP_PTR(ldns_rdf *, ldns_rdf_deep_free)
DEFINE_CLEANUP_PTR(ldns_buffer *, ldns_buffer_free)

/* RFC 1035, 2136, 6891; NULL: unassigned. */
static const char *const rcode_names[32] = {"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP",
	"REFUSED", "YXDOMAIN", "YXRRSET", "NXRRSET", "NOTAUTH", "NOTZONE", [16] = "BADVERS"};

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* ---- what the configuration says ---- */

static bool is_plain(const char *text)
{
	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c > '~')
			return false;
	return true;
}

const char *dns_form_name(const char *text)
{
	_cleanup_(ldns_rdf_deep_freep) ldns_rdf *name = NULL;

	if (!is_plain(text))
		return "a domain name in ASCII (international names as xn--..., other bytes as "
		       "\\DDD)";
	switch ((int)ldns_str2rdf_dname(&name, text)) {
	case LDNS_STATUS_OK:
	case LDNS_STATUS_MEM_ERR:
		return NULL;
	case LDNS_STATUS_EMPTY_LABEL:
		return "a domain name without an empty label";
	case LDNS_STATUS_LABEL_OVERFLOW:
		return "a domain name with labels of at most 63 bytes";
	case LDNS_STATUS_DOMAINNAME_OVERFLOW:
		return "a domain name of at most 255 bytes";
	default:
		return "a domain name, such as \"health.example.net\"";
	}
}

/* 0: none that can be asked for. */
static uint16_t type_of(const char *text)
{
	const ldns_rr_descriptor *d;
	unsigned type = ldns_get_rr_type_by_name(text);

	if (strncasecmp(text, "TYPE", 4) == 0 && text[4] != '\0' &&
		(strlen(text) > 9 || text[4 + strspn(text + 4, "0123456789")] != '\0'))
		return 0;
	/* RFC 6895, 3.1: 128 to 255 are questions and meta types. */
	if (type == 0 || type > 65535 || type == LDNS_RR_TYPE_OPT || (type >= 128 && type <= 255))
		return 0;
	/* Any number of names in one record (HIP): see above. */
	d = ldns_rr_descript((uint16_t)type);
	return d->_variable == LDNS_RDF_TYPE_DNAME ? 0 : (uint16_t)type;
}

const char *dns_form_rrtype(const char *text)
{
	return type_of(text) ? NULL
			     : "the type of a record, such as \"A\", \"SOA\" or \"TYPE65280\"";
}

const char *dns_form_rcode(const char *text)
{
	return dns_rcode_bit(text)
		       ? NULL
		       : "one of NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED, "
			 "YXDOMAIN, YXRRSET, NXRRSET, NOTAUTH, NOTZONE, BADVERS";
}

uint32_t dns_rcode_bit(const char *word)
{
	for (unsigned i = 0; i < ELEMENTSOF(rcode_names); i++)
		if (rcode_names[i] && strcmp(rcode_names[i], word) == 0)
			return UINT32_C(1) << i;
	return 0;
}

void dns_question_parse(const char *name, const char *rrtype, struct dns_question *ret)
{
	_cleanup_(ldns_rdf_deep_freep) ldns_rdf *rdf = NULL;

	*ret = (struct dns_question){.type = type_of(rrtype)};
	if (ldns_str2rdf_dname(&rdf, name) != LDNS_STATUS_OK)
		return; /* no memory: the query cannot be built either */
	assert(ldns_rdf_size(rdf) <= sizeof(ret->name));
	ret->length = ldns_rdf_size(rdf);
	memcpy(ret->name, ldns_rdf_data(rdf), ret->length);
}

/* The rdata of a record, with names in lower case and uncompressed. 0 or -ENOMEM. */
static int canonical_rdata(ldns_rr *rr, struct dns_rdata *ret)
{
	_cleanup_(ldns_buffer_freep) ldns_buffer *b = ldns_buffer_new(512);

	if (!b)
		return -ENOMEM;
	ldns_rr2canonical(rr);
	if (ldns_rr_rdata2buffer_wire(b, rr) != LDNS_STATUS_OK)
		return -ENOMEM;
	ret->bytes = malloc(ldns_buffer_position(b) + 1);
	if (!ret->bytes)
		return -ENOMEM;
	ret->length = ldns_buffer_position(b);
	memcpy(ret->bytes, ldns_buffer_begin(b), ret->length);
	return 0;
}

int dns_rdata_parse(uint16_t type, const char *text, struct dns_rdata *ret)
{
	_cleanup_(ldns_rr_freep) ldns_rr *rr = NULL;
	_cleanup_free_ char *line = NULL;
	ldns_status s;

	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return -EINVAL;
	if (asprintf(&line, ". 0 IN TYPE%u %s", (unsigned)type, text) < 0)
		return -ENOMEM;
	s = ldns_rr_new_frm_str(&rr, line, 0, NULL, NULL);
	if (s == LDNS_STATUS_MEM_ERR)
		return -ENOMEM;
	if (s != LDNS_STATUS_OK)
		return -EINVAL;
	return canonical_rdata(rr, ret);
}

void dns_rdata_done(struct dns_rdata *r)
{
	free(r->bytes);
	*r = (struct dns_rdata){0};
}

void dns_expect_done(struct dns_expect *e)
{
	for (size_t i = 0; i < e->n_answers; i++)
		dns_rdata_done(&e->answers[i]);
	free(e->answers);
	e->answers = NULL;
	e->n_answers = 0;
}

/* ---- the query ---- */

int dns_query_build(const struct dns_question *q, bool recursion_desired,
	uint8_t ret[DNS_QUERY_MAX], size_t *ret_length)
{
	_cleanup_(ldns_rdf_deep_freep) ldns_rdf *name =
		ldns_rdf_new_frm_data(LDNS_RDF_TYPE_DNAME, q->length, q->name);
	_cleanup_(ldns_pkt_freep) ldns_pkt *query = NULL;
	_cleanup_free_ uint8_t *wire = NULL;
	size_t length;

	if (!name || q->length == 0)
		return -ENOMEM;
	query = ldns_pkt_query_new(
		name, q->type, LDNS_RR_CLASS_IN, recursion_desired ? LDNS_RD : 0);
	if (!query)
		return -ENOMEM;
	name = NULL; /* the query's now */
	ldns_pkt_set_id(query, 0);
	ldns_pkt_set_edns_udp_size(query, DNS_UDP_SIZE);
	if (ldns_pkt2wire(&wire, query, &length) != LDNS_STATUS_OK)
		return -ENOMEM;
	assert(length <= DNS_QUERY_MAX);
	memcpy(ret, wire, length);
	*ret_length = length;
	return 0;
}

void dns_query_set_id(uint8_t *message, uint16_t id)
{
	message[0] = (uint8_t)(id >> 8);
	message[1] = (uint8_t)id;
}

/* ---- walking a message ---- */

struct name {
	uint8_t bytes[DNS_NAME_MAX]; /* uncompressed, lower case */
	size_t length;
	uint32_t hash;
};

struct message {
	const uint8_t *wire;
	size_t n;
	size_t at;
};

/* Steps over a name without following it. */
static bool skip_name(struct message *m)
{
	while (m->at < m->n) {
		uint8_t c = m->wire[m->at];

		if (c >= 0xc0) {
			m->at += 2;
			return m->at <= m->n;
		}
		if (c > 63)
			return false;
		m->at += (size_t)c + 1;
		if (c == 0)
			return true;
	}
	return false;
}

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

/* Appends one label with its length byte, which is below every letter. */
static void add_label(struct name *name, const uint8_t *label, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t c = lower(label[i]);

		name->bytes[name->length++] = c;
		name->hash = (name->hash ^ c) * 16777619U; /* FNV-1a */
	}
}

/* Reads a name, and leaves `at` behind it. */
static bool read_name(struct message *m, struct name *ret)
{
	size_t at = m->at, piece = m->at, behind = 0, pointers = 0;

	ret->length = 0;
	ret->hash = 2166136261U;
	while (at < m->n) {
		uint8_t c = m->wire[at];
		size_t n = (size_t)c + 1;

		if (c >= 0xc0) {
			size_t target;

			if (at + 2 > m->n)
				return false;
			target = get16(m->wire + at) & 0x3fff;
			if (target >= piece || ++pointers > POINTERS_MAX)
				return false;
			if (behind == 0)
				behind = at + 2;
			at = piece = target;
			continue;
		}
		if (c > 63 || ret->length + n > DNS_NAME_MAX || at + n > m->n)
			return false;
		add_label(ret, m->wire + at, n);
		at += n;
		if (c == 0) {
			m->at = behind ? behind : at;
			return true;
		}
	}
	return false;
}

static bool same_name(const struct name *a, const struct name *b)
{
	return a->hash == b->hash && a->length == b->length &&
	       memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* One record of the answer section, by where it lies. */
struct record {
	size_t at, rdata, rdata_length;
	uint16_t type;
	uint32_t owner_hash;
};

struct answer {
	struct message message;
	uint16_t rcode; /* with the OPT's bits */
	struct record records[DNS_ANSWERS_MAX];
	size_t n_records;
	bool no_memory;
};

/* Type, class, TTL, length and rdata, from behind the owner's name. */
static bool read_fixed(
	struct message *m, struct record *ret, uint16_t *ret_class, uint32_t *ret_ttl)
{
	const uint8_t *p = m->wire + m->at;

	if (m->n - m->at < 10)
		return false;
	ret->type = get16(p);
	*ret_class = get16(p + 2);
	*ret_ttl = (uint32_t)get16(p + 4) << 16 | get16(p + 6);
	ret->rdata_length = get16(p + 8);
	ret->rdata = m->at + 10;
	if (m->n - ret->rdata < ret->rdata_length)
		return false;
	m->at = ret->rdata + ret->rdata_length;
	return true;
}

static bool walk_answers(struct answer *a, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct record r = {.at = a->message.at};
		uint16_t class;
		struct name owner;
		uint32_t ttl;

		if (!read_name(&a->message, &owner) || !read_fixed(&a->message, &r, &class, &ttl))
			return false;
		r.owner_hash = owner.hash;
		if (class == LDNS_RR_CLASS_IN)
			a->records[a->n_records++] = r;
	}
	return true;
}

static bool walk_rest(struct answer *a, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct record r;
		uint16_t class;
		uint32_t ttl;

		if (!skip_name(&a->message) || !read_fixed(&a->message, &r, &class, &ttl))
			return false;
		if (r.type == LDNS_RR_TYPE_OPT) /* RFC 6891, 6.1.3 */
			a->rcode = (uint16_t)((ttl >> 24) << 4 | (a->rcode & 15));
	}
	return true;
}

/* ---- rdata ---- */

/* Of a field whose length does not depend on what it holds; 0: it does. */
static size_t fixed_length(ldns_rdf_type field)
{
	switch ((int)field) {
	case LDNS_RDF_TYPE_INT8:
	case LDNS_RDF_TYPE_ALG:
		return 1;
	case LDNS_RDF_TYPE_INT16:
	case LDNS_RDF_TYPE_TYPE:
	case LDNS_RDF_TYPE_CLASS:
	case LDNS_RDF_TYPE_CERT_ALG:
		return 2;
	case LDNS_RDF_TYPE_INT32:
	case LDNS_RDF_TYPE_A:
	case LDNS_RDF_TYPE_TIME:
	case LDNS_RDF_TYPE_PERIOD:
		return 4;
	case LDNS_RDF_TYPE_AAAA:
		return 16;
	default:
		return 0;
	}
}

/* Walks the names in a record's rdata, as far as its type has any. */
static bool names_are_bounded(const struct answer *a, const struct record *r)
{
	const ldns_rr_descriptor *d = ldns_rr_descript(r->type);
	struct message m = {.wire = a->message.wire, .n = a->message.n, .at = r->rdata};
	size_t end = r->rdata + r->rdata_length;
	struct name name;

	for (size_t i = 0; i < d->_maximum && m.at < end; i++) {
		ldns_rdf_type field = ldns_rr_descriptor_field_type(d, i);

		if (field == LDNS_RDF_TYPE_DNAME) {
			if (!read_name(&m, &name))
				return false;
		} else if (field == LDNS_RDF_TYPE_STR) {
			m.at += (size_t)m.wire[m.at] + 1;
		} else if (fixed_length(field) > 0) {
			m.at += fixed_length(field);
		} else {
			break; /* no type but those that are refused has names behind such a field
				*/
		}
	}
	return m.at <= end;
}

/* The record, or NULL where it is malformed or there is no memory. */
static ldns_rr *parse_record(struct answer *a, const struct record *r)
{
	_cleanup_(ldns_rr_freep) ldns_rr *rr = NULL;
	size_t at = r->at;
	ldns_status s;

	if (!names_are_bounded(a, r))
		return NULL;
	s = ldns_wire2rr(&rr, a->message.wire, a->message.n, &at, LDNS_SECTION_ANSWER);
	if (s == LDNS_STATUS_MEM_ERR)
		a->no_memory = true;
	if (s != LDNS_STATUS_OK)
		return NULL;
	if (ldns_rr_rd_count(rr) < ldns_rr_descriptor_minimum(ldns_rr_descript(r->type)))
		return NULL;
	return TAKE_PTR(rr);
}

/* ---- the verdict ---- */

static enum dns_verdict say(enum dns_verdict verdict, char reason[PROBE_REASON_MAX],
	const char *format, ...) __attribute__((format(printf, 3, 4)));

static enum dns_verdict say(
	enum dns_verdict verdict, char reason[PROBE_REASON_MAX], const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(reason, PROBE_REASON_MAX, format, ap);
	va_end(ap);
	return verdict;
}

static const char *rcode_text(unsigned rcode, char buf[16])
{
	if (rcode < ELEMENTSOF(rcode_names) && rcode_names[rcode])
		return rcode_names[rcode];
	(void)snprintf(buf, 16, "rcode %u", rcode);
	return buf;
}

static const char *type_text(uint16_t type, char buf[16])
{
	const ldns_rr_descriptor *d = ldns_rr_descript(type);

	if (d->_name)
		return d->_name;
	(void)snprintf(buf, 16, "TYPE%u", type);
	return buf;
}

static void question_name(const struct dns_expect *e, struct name *ret)
{
	struct message m = {.wire = e->question.name, .n = e->question.length};
	bool r = read_name(&m, ret);

	assert(r);
}

/* Is the message a reply to our query? DNS_GOOD, or DNS_STRAY with the reason. Leaves `at` behind
 * the question. */
static enum dns_verdict match_query(
	const struct dns_expect *e, uint16_t id, struct message *m, char reason[PROBE_REASON_MAX])
{
	struct name asked, name;
	unsigned rcode, count;

	if (m->n < HEADER_LENGTH)
		return say(DNS_STRAY, reason, "%zu bytes are no DNS message", m->n);
	if (!(m->wire[2] & 0x80))
		return say(DNS_STRAY, reason, "it is a query, not a reply");
	if (get16(m->wire) != id)
		return say(DNS_STRAY, reason, "it has another id");
	if ((m->wire[2] >> 3 & 15) != 0)
		return say(DNS_STRAY, reason, "it has another opcode");
	m->at = HEADER_LENGTH;
	rcode = m->wire[3] & 15;
	count = get16(m->wire + 4);
	/* A server that could not read the query, or did not care to, may leave the question out.
	 */
	if (count == 0 && rcode != LDNS_RCODE_NOERROR && rcode != LDNS_RCODE_NXDOMAIN)
		return DNS_GOOD;
	if (count != 1)
		return say(DNS_STRAY, reason, "it has %u questions", count);
	question_name(e, &asked);
	if (!read_name(m, &name) || m->n - m->at < 4 || !same_name(&name, &asked) ||
		get16(m->wire + m->at) != e->question.type ||
		get16(m->wire + m->at + 2) != LDNS_RR_CLASS_IN)
		return say(DNS_STRAY, reason, "it has another question");
	m->at += 4;
	return DNS_GOOD;
}

/* The target of a CNAME of this name among the answers. */
static bool follow_alias(struct answer *a, struct name *name)
{
	struct message m = a->message;
	struct name owner, target;

	for (size_t i = 0; i < a->n_records; i++) {
		const struct record *r = &a->records[i];

		if (r->type != LDNS_RR_TYPE_CNAME || r->owner_hash != name->hash)
			continue;
		m.at = r->at;
		if (!read_name(&m, &owner) || !same_name(&owner, name))
			continue;
		m.at = r->rdata;
		if (!read_name(&m, &target) || m.at != r->rdata + r->rdata_length)
			return false;
		*name = target;
		return true;
	}
	return false;
}

/* The name at the end of the chain of aliases, which servers need not write in order. */
static void follow_aliases(const struct dns_expect *e, struct answer *a, struct name *ret)
{
	question_name(e, ret);
	if (e->question.type == LDNS_RR_TYPE_CNAME)
		return;
	for (int i = 0; i < CHAIN_MAX && follow_alias(a, ret); i++)
		;
}

/* What was expected and found, and the first that was found. */
struct found {
	size_t n;
	bool *seen; /* n_answers of them */
	char first[TEXT_MAX + 4];
};

static void note_text(ldns_rr *rr, struct found *f)
{
	_cleanup_(ldns_buffer_freep) ldns_buffer *b = ldns_buffer_new(256);
	_cleanup_free_ char *text = NULL;

	for (size_t i = 0; b && i < ldns_rr_rd_count(rr); i++) {
		if (i > 0)
			(void)ldns_buffer_printf(b, " ");
		if (ldns_rdf2buffer_str(b, ldns_rr_rdf(rr, i)) != LDNS_STATUS_OK)
			return;
	}
	text = b ? ldns_buffer_export2str(b) : NULL;
	if (text)
		(void)printable_copy(f->first, sizeof(f->first), text, strlen(text));
}

static int compare(const struct dns_expect *e, ldns_rr *rr, struct found *f)
{
	struct dns_rdata rdata = {0};
	int r;

	if (e->n_answers == 0)
		return 0;
	if (f->n == 0)
		note_text(rr, f);
	r = canonical_rdata(rr, &rdata);
	if (r < 0)
		return r;
	for (size_t i = 0; i < e->n_answers; i++)
		f->seen[i] = f->seen[i] ||
			     (e->answers[i].length == rdata.length &&
				     memcmp(e->answers[i].bytes, rdata.bytes, rdata.length) == 0);
	dns_rdata_done(&rdata);
	return 0;
}

/* 0, -EBADMSG or -ENOMEM. */
static int look_at_answers(const struct dns_expect *e, struct answer *a, struct found *f)
{
	struct message m = a->message;
	struct name end, owner;

	follow_aliases(e, a, &end);
	for (size_t i = 0; i < a->n_records; i++) {
		const struct record *r = &a->records[i];
		_cleanup_(ldns_rr_freep) ldns_rr *rr = NULL;

		if (r->type != e->question.type || r->owner_hash != end.hash)
			continue;
		m.at = r->at;
		if (!read_name(&m, &owner) || !same_name(&owner, &end))
			continue;
		rr = parse_record(a, r);
		if (!rr)
			return a->no_memory ? -ENOMEM : -EBADMSG;
		if (compare(e, rr, f) < 0)
			return -ENOMEM;
		f->n++;
	}
	return 0;
}

/* The text of an expected answer, for a reason. */
static void expected_text(
	const struct dns_expect *e, const struct dns_rdata *rdata, struct found *ret)
{
	/* A record of the root, built around the rdata: type, class, TTL, length. */
	uint8_t wire[11 + 1024] = {0, (uint8_t)(e->question.type >> 8), (uint8_t)e->question.type,
		0, LDNS_RR_CLASS_IN, 0, 0, 0, 0, (uint8_t)(rdata->length >> 8),
		(uint8_t)rdata->length};
	_cleanup_(ldns_rr_freep) ldns_rr *rr = NULL;
	size_t at = 0;

	ret->first[0] = '\0';
	if (rdata->length > sizeof(wire) - 11)
		return;
	memcpy(wire + 11, rdata->bytes, rdata->length);
	if (ldns_wire2rr(&rr, wire, 11 + rdata->length, &at, LDNS_SECTION_ANSWER) == LDNS_STATUS_OK)
		note_text(rr, ret);
}

static enum dns_verdict judge_answers(
	const struct dns_expect *e, struct answer *a, char reason[PROBE_REASON_MAX])
{
	_cleanup_free_ bool *seen = calloc(e->n_answers + 1, sizeof(*seen));
	struct found found = {.seen = seen}, wanted = {0};
	char type[16];
	int r = seen ? look_at_answers(e, a, &found) : -ENOMEM;

	if (r == -ENOMEM)
		return say(DNS_NO_MEMORY, reason, "no memory");
	if (r < 0)
		return say(DNS_BAD, reason, "malformed answer: a record of type %s",
			type_text(e->question.type, type));
	if (found.n == 0 && e->min_answers > 0)
		return say(DNS_BAD, reason, "NOERROR without an answer of type %s",
			type_text(e->question.type, type));
	if (found.n < e->min_answers)
		return say(DNS_BAD, reason, "%zu answer%s of type %s, expected at least %zu",
			found.n, found.n == 1 ? "" : "s", type_text(e->question.type, type),
			e->min_answers);
	for (size_t i = 0; i < e->n_answers; i++) {
		if (seen[i])
			continue;
		expected_text(e, &e->answers[i], &wanted);
		if (found.n == 0)
			return say(
				DNS_BAD, reason, "expected the answer %s, got none", wanted.first);
		return say(DNS_BAD, reason, "expected the answer %s, got %s%s", wanted.first,
			found.first, found.n > 1 ? " and others" : "");
	}
	return say(DNS_GOOD, reason, "%s", "");
}

enum dns_verdict dns_judge(const struct dns_expect *e, uint16_t id, const uint8_t *wire, size_t n,
	char ret_reason[PROBE_REASON_MAX])
{
	struct answer a; /* 5 KiB: not zeroed as a whole */
	enum dns_verdict verdict;
	char text[16];

	a.message = (struct message){.wire = wire, .n = n};
	a.n_records = 0;
	a.no_memory = false;
	ret_reason[0] = '\0';
	verdict = match_query(e, id, &a.message, ret_reason);
	if (verdict != DNS_GOOD)
		return verdict;
	if (wire[2] & 0x02)
		return say(DNS_TRUNCATED, ret_reason, "the answer is truncated");
	if (get16(wire + 6) > DNS_ANSWERS_MAX)
		return say(DNS_BAD, ret_reason, "%u records in the answer, more than %d",
			get16(wire + 6), DNS_ANSWERS_MAX);
	a.rcode = wire[3] & 15;
	if (!walk_answers(&a, get16(wire + 6)))
		return say(DNS_BAD, ret_reason, "malformed answer: its answer section");
	if (!walk_rest(&a, (size_t)get16(wire + 8) + get16(wire + 10)))
		return say(DNS_BAD, ret_reason, "malformed answer: behind its answer section");
	if (a.rcode >= 32 || !(e->rcodes >> a.rcode & 1))
		return say(DNS_BAD, ret_reason, "answered %s", rcode_text(a.rcode, text));
	if (e->authoritative && !(wire[2] & 0x04))
		return say(DNS_BAD, ret_reason, "the answer is not authoritative");
	if (a.rcode != LDNS_RCODE_NOERROR)
		return say(DNS_GOOD, ret_reason, "answered %s", rcode_text(a.rcode, text));
	return judge_answers(e, &a, ret_reason);
}
