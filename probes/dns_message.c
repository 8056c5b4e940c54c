/*
 * DNS messages of the dns check, on ldns.
 *
 * ldns builds the query, knows the types and their fields, and reads what the configuration
 * expects. It is not let loose on what comes from outside: it would follow 65,535 compression
 * pointers for each name of each record, allocates for each record of each section, and its
 * printing can end the process. So a message is walked here, in place.
 *
 * Names: a compression pointer must point to before the piece of the name that it ends, as RFC
 * 1035, 4.1.4 has it ("a prior occurrence"), and a name follows at most 32 of them, which is more
 * than servers need. So there are no loops and no long chains.
 *
 * Sections: the records of the answer section are noted, at most DNS_ANSWERS_MAX of them. Of the
 * other two sections only the OPT counts, for the upper bits of the rcode, and names in them are
 * stepped over, not followed.
 *
 * Rdata: that of the type that was asked for alone is walked, field by field, and compared with
 * names uncompressed and in lower case.
 *
 * The worst that 64 KiB can hold is 128 records of names of 127 labels each;
 * tests/unit/test-probes-dns-message.c holds what that costs against a bound.
 */
#include "probes/dns_message.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <ldns/ldns.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buffer.h"
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

static int canonical_rdata(
	uint16_t type, const struct message *m, size_t at, size_t length, struct dns_rdata *ret);

int dns_rdata_parse(uint16_t type, const char *text, struct dns_rdata *ret)
{
	_cleanup_(ldns_buffer_freep) ldns_buffer *b = ldns_buffer_new(512);
	_cleanup_(ldns_rr_freep) ldns_rr *rr = NULL;
	_cleanup_free_ char *line = NULL;
	struct dns_rdata rdata = {0};
	struct message m;
	ldns_status s;
	int r;

	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return -EINVAL;
	if (!b || asprintf(&line, ". 0 IN TYPE%u %s", (unsigned)type, text) < 0)
		return -ENOMEM;
	s = ldns_rr_new_frm_str(&rr, line, 0, NULL, NULL);
	if (s == LDNS_STATUS_OK)
		s = ldns_rr_rdata2buffer_wire(b, rr);
	if (s != LDNS_STATUS_OK)
		return s == LDNS_STATUS_MEM_ERR ? -ENOMEM : -EINVAL;
	m = (struct message){.wire = ldns_buffer_begin(b), .n = ldns_buffer_position(b)};
	r = canonical_rdata(type, &m, 0, m.n, &rdata);
	if (r < 0)
		return r == -EBADMSG ? -EINVAL : r;
	rdata.text = strdup(text);
	if (!rdata.text) {
		dns_rdata_done(&rdata);
		return -ENOMEM;
	}
	*ret = rdata;
	return 0;
}

void dns_rdata_done(struct dns_rdata *r)
{
	free(r->bytes);
	free(r->text);
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

/* The fields of a record's rdata, one after the other, by ldns's description of its type. */
struct fields {
	const ldns_rr_descriptor *type;
	struct message message;
	size_t end;
	size_t n; /* seen so far */
};

struct field {
	ldns_rdf_type kind;
	const uint8_t *bytes;
	size_t length;	  /* 0 of a name */
	struct name name; /* of a LDNS_RDF_TYPE_DNAME */
};

enum next_field {
	FIELD_READ,
	FIELD_END,
	FIELD_MALFORMED,
};

static struct fields fields_of(uint16_t type, const struct message *m, size_t at, size_t length)
{
	return (struct fields){.type = ldns_rr_descript(type),
		.message = {.wire = m->wire, .n = m->n, .at = at},
		.end = at + length};
}

/* The length of a field whose kind or first byte says it; 0: it takes the rest of the rdata. */
static size_t field_length(ldns_rdf_type kind, uint8_t first)
{
	switch ((int)kind) {
	case LDNS_RDF_TYPE_INT8:
	case LDNS_RDF_TYPE_ALG:
	case LDNS_RDF_TYPE_CERTIFICATE_USAGE:
	case LDNS_RDF_TYPE_SELECTOR:
	case LDNS_RDF_TYPE_MATCHING_TYPE:
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
	case LDNS_RDF_TYPE_STR:
		return (size_t)first + 1;
	default:
		return 0;
	}
}

static enum next_field next_field(struct fields *f, struct field *ret)
{
	const ldns_rr_descriptor *d = f->type;
	struct message *m = &f->message;
	size_t length;

	if (m->at == f->end)
		return f->n >= d->_minimum || !d->_name ? FIELD_END : FIELD_MALFORMED;
	ret->kind = f->n < d->_maximum ? d->_wireformat[f->n] : d->_variable;
	ret->bytes = m->wire + m->at;
	ret->length = 0;
	if (ret->kind == LDNS_RDF_TYPE_NONE)
		return FIELD_MALFORMED; /* bytes behind the last field */
	f->n++;
	if (ret->kind == LDNS_RDF_TYPE_DNAME) {
		if (!read_name(m, &ret->name) || m->at > f->end)
			return FIELD_MALFORMED;
		return FIELD_READ;
	}
	length = field_length(ret->kind, *ret->bytes);
	ret->length = length > 0 ? length : f->end - m->at;
	if (ret->length > f->end - m->at)
		return FIELD_MALFORMED;
	if (length == 0)
		f->n = SIZE_MAX; /* whatever it holds, nothing is missing */
	m->at += ret->length;
	return FIELD_READ;
}

static bool rdata_is_well_formed(const struct answer *a, const struct record *r)
{
	struct fields fields = fields_of(r->type, &a->message, r->rdata, r->rdata_length);
	enum next_field next;
	struct field field;

	do
		next = next_field(&fields, &field);
	while (next == FIELD_READ);
	return next == FIELD_END;
}

/* Names in lower case and uncompressed, all else as it is. 0, -EBADMSG or -ENOMEM. */
static int canonical_rdata(
	uint16_t type, const struct message *m, size_t at, size_t length, struct dns_rdata *ret)
{
	struct fields fields = fields_of(type, m, at, length);
	_cleanup_buffer_ struct buffer b = {0};
	enum next_field next;
	struct field field;
	int r = 0;

	buffer_init(&b, 65535 + 4 * DNS_NAME_MAX);
	while (r == 0 && (next = next_field(&fields, &field)) == FIELD_READ)
		r = field.kind == LDNS_RDF_TYPE_DNAME
			    ? buffer_append(&b, field.name.bytes, field.name.length)
			    : buffer_append(&b, field.bytes, field.length);
	if (r < 0)
		return r;
	if (next == FIELD_MALFORMED)
		return -EBADMSG;
	ret->text = NULL;
	ret->length = b.length;
	ret->bytes = (uint8_t *)TAKE_PTR(b.data);
	return 0;
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

/* What was found of what was expected, and the first that was found. */
struct found {
	size_t n;
	bool *seen; /* n_answers of them */
	char first[TEXT_MAX + 4];
};

static void print_name(struct buffer *b, const struct name *name)
{
	for (size_t at = 0; name->bytes[at] != 0; at += (size_t)name->bytes[at] + 1)
		(void)buffer_printf(b, "%.*s.", name->bytes[at], name->bytes + at + 1);
	if (name->length == 1)
		(void)buffer_append_string(b, ".");
}

/* Of what a person cannot read, the bytes are shown, as in RFC 3597. */
static void print_field(struct buffer *b, const struct field *f)
{
	char text[INET6_ADDRSTRLEN];
	unsigned long long number = 0;

	for (size_t i = 0; i < f->length && i < 4; i++)
		number = number << 8 | f->bytes[i];
	if (b->length > 0)
		(void)buffer_append_string(b, " ");
	switch ((int)f->kind) {
	case LDNS_RDF_TYPE_DNAME:
		print_name(b, &f->name);
		break;
	case LDNS_RDF_TYPE_A:
		(void)buffer_append_string(b, inet_ntop(AF_INET, f->bytes, text, sizeof(text)));
		break;
	case LDNS_RDF_TYPE_AAAA:
		(void)buffer_append_string(b, inet_ntop(AF_INET6, f->bytes, text, sizeof(text)));
		break;
	case LDNS_RDF_TYPE_STR:
		(void)buffer_printf(b, "\"");
		(void)buffer_append(b, f->bytes + 1, f->length - 1);
		(void)buffer_printf(b, "\"");
		break;
	case LDNS_RDF_TYPE_INT8:
	case LDNS_RDF_TYPE_INT16:
	case LDNS_RDF_TYPE_INT32:
		(void)buffer_printf(b, "%llu", number);
		break;
	default:
		(void)buffer_printf(b, "\\# %zu ", f->length);
		for (size_t i = 0; i < f->length && i < TEXT_MAX; i++)
			(void)buffer_printf(b, "%02x", f->bytes[i]);
	}
}

/* ldns's own printing is not for what comes from outside: that of SVCB and HTTPS ends the process
 * with a failed assertion where a parameter is long (seen with 1.8.3). */
static void note_text(const struct answer *a, const struct record *r, struct found *f)
{
	struct fields fields = fields_of(r->type, &a->message, r->rdata, r->rdata_length);
	_cleanup_buffer_ struct buffer b = {0};
	struct field field;

	buffer_init(&b, 1024);
	while (b.length < TEXT_MAX && next_field(&fields, &field) == FIELD_READ)
		print_field(&b, &field);
	(void)printable_copy(f->first, sizeof(f->first), buffer_string(&b), b.length);
}

static bool same_rdata(const struct dns_rdata *a, const struct dns_rdata *b)
{
	return a->length == b->length &&
	       (a->length == 0 || memcmp(a->bytes, b->bytes, a->length) == 0);
}

static int compare(
	const struct dns_expect *e, const struct answer *a, const struct record *r, struct found *f)
{
	struct dns_rdata rdata = {0};
	int status;

	if (e->n_answers == 0)
		return 0;
	if (f->n == 0)
		note_text(a, r, f);
	status = canonical_rdata(r->type, &a->message, r->rdata, r->rdata_length, &rdata);
	if (status < 0)
		return status;
	for (size_t i = 0; i < e->n_answers; i++)
		f->seen[i] = f->seen[i] || same_rdata(&e->answers[i], &rdata);
	dns_rdata_done(&rdata);
	return 0;
}

/* 0, -EBADMSG or -ENOMEM. */
static int look_at_answers(const struct dns_expect *e, struct answer *a, struct found *f)
{
	struct message m = a->message;
	struct name end, owner;
	int status;

	follow_aliases(e, a, &end);
	for (size_t i = 0; i < a->n_records; i++) {
		const struct record *r = &a->records[i];

		if (r->type != e->question.type || r->owner_hash != end.hash)
			continue;
		m.at = r->at;
		if (!read_name(&m, &owner) || !same_name(&owner, &end))
			continue;
		if (!rdata_is_well_formed(a, r))
			return -EBADMSG;
		status = compare(e, a, r, f);
		if (status < 0)
			return status;
		f->n++;
	}
	return 0;
}

static enum dns_verdict judge_answers(
	const struct dns_expect *e, struct answer *a, char reason[PROBE_REASON_MAX])
{
	_cleanup_free_ bool *seen = calloc(e->n_answers + 1, sizeof(*seen));
	struct found found = {.seen = seen};
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
		if (found.n == 0)
			return say(DNS_BAD, reason, "expected the answer %.48s, got none",
				e->answers[i].text);
		return say(DNS_BAD, reason, "expected the answer %.48s, got %s%s",
			e->answers[i].text, found.first, found.n > 1 ? " and others" : "");
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
