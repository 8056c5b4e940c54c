/*
 * Certificates and names.
 *
 * A neighbour is who shows a certificate of the configured authority that bears its configured name
 * as a DNS name (subjectAltName), exactly: no wildcard, no common name, and not two neighbours'
 * names at once, since the name is all that its promises hang on. Validity and use are GnuTLS's to
 * judge, within the handshake.
 *
 * The files are read whole before anything is made of them, so that the server (GnuTLS) and the
 * client (libcurl) use the same bytes, and none of a replacement that is half done: a key that does
 * not fit its certificate is refused here.
 */
#include "agent/neighbour/pins.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "agent/base/buffer.h"
#include "agent/base/clock.h"
#include "agent/config/tables.h"
#include "agent/neighbour/message.h"
#include "agent/system/tcp.h"

#define FILE_MAX (1U << 20)
#define CHAIN_MAX 8
#define WARNING_MAX 200
#define SOON_S (7 * 24 * 3600)

struct pins {
	unsigned references;
	bool plain;
	struct buffer pem[PINS_FILES];
	gnutls_certificate_credentials_t credentials; /* NULL with plain */
	struct pins_member *members;
	size_t n_members;
	struct sockaddr_storage own; /* where we listen */
	char source[ADDRESS_TEXT_MAX];
	struct walltime expire;
	char warning[WARNING_MAX];
};

static const char *const refusal_names[] = {
	[PINS_WELCOME] = "welcome",
	[PINS_NO_CERTIFICATE] = "no_certificate",
	[PINS_UNTRUSTED] = "untrusted",
	[PINS_EXPIRED] = "expired",
	[PINS_STRANGER] = "stranger",
	[PINS_AMBIGUOUS] = "ambiguous",
	[PINS_NO_TLS] = "no_tls",
};

const char *pins_refusal_name(enum pins_refusal refusal)
{
	return refusal_names[refusal];
}

/* ---- files ---- */

static int read_file(const char *path, struct buffer *to, struct error *ret_error)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	char chunk[4096];
	ssize_t n;
	int r;

	if (fd < 0)
		return error_set_errno(ret_error, errno, "%s", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return error_set(ret_error, EINVAL, "%s: expected a regular file", path);
	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set_errno(ret_error, errno, "%s", path);
		r = buffer_append(to, chunk, (size_t)n);
		explicit_bzero(chunk, sizeof(chunk));
		if (r == -E2BIG)
			return error_set(
				ret_error, EFBIG, "%s: more than %u bytes", path, FILE_MAX);
		if (r < 0)
			return error_set_errno(ret_error, -r, "%s", path);
	}
	return 0;
}

static gnutls_datum_t datum_of(const struct buffer *b)
{
	return (gnutls_datum_t){.data = (unsigned char *)b->data, .size = (unsigned int)b->length};
}

/* ---- our own certificate ---- */

static bool san_is(gnutls_x509_crt_t crt, unsigned i, const char *name, int *ret_code)
{
	char text[MESSAGE_NODE_MAX + 1] = "";
	size_t n = sizeof(text) - 1;

	*ret_code = gnutls_x509_crt_get_subject_alt_name(crt, i, text, &n, NULL);
	/* What is longer than any name is not this one. */
	if (*ret_code == GNUTLS_E_SHORT_MEMORY_BUFFER)
		*ret_code = 0;
	return *ret_code == GNUTLS_SAN_DNSNAME && strlen(text) == n && strcasecmp(text, name) == 0;
}

static bool bears_name(gnutls_x509_crt_t crt, const char *name)
{
	int code = 0;

	for (unsigned i = 0; code >= 0; i++)
		if (san_is(crt, i, name, &code))
			return true;
	return false;
}

/* The first certificate of the file is ours. What is unwise about it. */
static int look_at_own(struct pins *p, const char *path, const char *node, struct error *ret_error)
{
	gnutls_x509_crt_t chain[CHAIN_MAX] = {NULL};
	gnutls_datum_t pem = datum_of(&p->pem[PINS_CERTIFICATE]);
	unsigned n = CHAIN_MAX;
	int r = gnutls_x509_crt_list_import(
		chain, &n, &pem, GNUTLS_X509_FMT_PEM, GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
	int64_t left;

	if (r <= 0)
		return error_set(ret_error, EBADMSG, "%s: %s", path,
			r < 0 ? gnutls_strerror(r) : "no certificate in it");
	p->expire.us = (int64_t)gnutls_x509_crt_get_expiration_time(chain[0]) * 1000000;
	left = p->expire.us / 1000000 - clock_walltime().us / 1000000;
	if (!bears_name(chain[0], node))
		(void)snprintf(p->warning, sizeof(p->warning),
			"it does not bear the DNS name \"%.80s\" (subjectAltName), which is "
			"`node`: "
			"neighbours will refuse it",
			node);
	else if (left < 0)
		(void)snprintf(p->warning, sizeof(p->warning),
			"it has expired: neighbours will refuse it");
	else if (left < SOON_S)
		(void)snprintf(p->warning, sizeof(p->warning), "it expires within %d days",
			(int)(left / 86400) + 1);
	for (int i = 0; i < r; i++)
		gnutls_x509_crt_deinit(chain[i]);
	return 0;
}

static int load_credentials(struct pins *p, const struct config_neighbours *c, const char *node,
	struct error *ret_error)
{
	const char *const paths[PINS_FILES] = {c->certificate, c->key, c->ca};
	gnutls_datum_t certificate, key, ca;
	int r;

	for (size_t i = 0; i < PINS_FILES; i++) {
		r = read_file(paths[i], &p->pem[i], ret_error);
		if (r < 0)
			return r;
	}
	certificate = datum_of(&p->pem[PINS_CERTIFICATE]);
	key = datum_of(&p->pem[PINS_KEY]);
	ca = datum_of(&p->pem[PINS_CA]);
	if (gnutls_certificate_allocate_credentials(&p->credentials) < 0) {
		p->credentials = NULL;
		return error_set_errno(ret_error, ENOMEM, "TLS");
	}
	r = gnutls_certificate_set_x509_trust_mem(p->credentials, &ca, GNUTLS_X509_FMT_PEM);
	if (r <= 0)
		return error_set(ret_error, EBADMSG, "%s: %s", c->ca,
			r < 0 ? gnutls_strerror(r) : "no certificate in it");
	r = look_at_own(p, c->certificate, node, ret_error);
	if (r < 0)
		return r;
	r = gnutls_certificate_set_x509_key_mem2(
		p->credentials, &certificate, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (r < 0)
		return error_set(ret_error, EBADMSG, "%s and %s: %s", c->certificate, c->key,
			gnutls_strerror(r));
	return 0;
}

/* ---- members ---- */

struct adding {
	struct pins *pins;
	const char *node;
	bool of_file;
	struct error *error;
};

static int add_member(void *userdata, const char *name, const char *address)
{
	const struct adding *a = userdata;
	struct pins *p = a->pins;
	struct pins_member *m = &p->members[p->n_members];
	const char *expected = tables_form_member(address);
	bool of_bird = strcmp(address, "bird") == 0;
	socklen_t length;

	if (strcasecmp(name, a->node) == 0)
		return 0;
	if (expected)
		return error_set(a->error, EINVAL, "%s: expected %s", name, expected);
	for (size_t i = 0; i < p->n_members; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a member has a name */
		if (strcasecmp(p->members[i].name, name) == 0)
			return error_set(a->error, EINVAL, "%s stands twice", name);
	if (p->n_members == CONFIG_MEMBERS_MAX)
		return error_set(a->error, E2BIG, "at most %d neighbours", CONFIG_MEMBERS_MAX);
	if (!of_bird && tcp_address(address, &m->socket, &length) < 0)
		return error_set(a->error, EINVAL, "%s: %s", name, address);
	if (p->plain && !tcp_is_loopback(&m->socket))
		return error_set(a->error, EINVAL,
			"%s: expected a loopback address: without TLS there are no others", name);
	m->name = strdup(name);
	m->address = strdup(address);
	m->of_file = a->of_file;
	m->of_bird = of_bird;
	p->n_members++;
	return m->name && m->address ? 0 : error_set_errno(a->error, ENOMEM, "%s", name);
}

static int compare_members(const void *a, const void *b)
{
	return strcmp(((const struct pins_member *)a)->name, ((const struct pins_member *)b)->name);
}

static int load_members(struct pins *p, const struct config_neighbours *c, const char *node,
	struct error *ret_error)
{
	_cleanup_buffer_ struct buffer text = {0};
	struct adding adding = {.pins = p, .node = node, .error = ret_error};
	int r = 0;

	p->members = calloc(CONFIG_MEMBERS_MAX + 1, sizeof(*p->members));
	if (!p->members)
		return error_set_errno(ret_error, ENOMEM, "neighbours");
	for (size_t i = 0; r == 0 && i + 1 < c->members.n; i += 2)
		r = add_member(&adding, c->members.items[i], c->members.items[i + 1]);
	if (r == 0 && c->file) {
		buffer_init(&text, FILE_MAX);
		adding.of_file = true;
		r = read_file(c->file, &text, ret_error);
		if (r < 0)
			return r;
		r = message_members_read(
			buffer_string(&text), text.length, add_member, &adding, ret_error);
		if (r < 0)
			error_prefix(ret_error, "%s", c->file);
	}
	if (r < 0) /* without memory the last one may have no name */
		return r;
	qsort(p->members, p->n_members, sizeof(*p->members), compare_members);
	return 0;
}

static int load_own(struct pins *p, const char *listen)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&p->own;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&p->own;
	socklen_t length;
	int r = tcp_address(listen, &p->own, &length);

	if (r < 0)
		return r;
	if (p->own.ss_family == AF_INET6 && !IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
		(void)inet_ntop(AF_INET6, &in6->sin6_addr, p->source, sizeof(p->source));
	if (p->own.ss_family == AF_INET && in->sin_addr.s_addr != htonl(INADDR_ANY))
		(void)inet_ntop(AF_INET, &in->sin_addr, p->source, sizeof(p->source));
	return 0;
}

/* ---- life ---- */

static void pins_free(struct pins *p)
{
	if (p->credentials)
		gnutls_certificate_free_credentials(p->credentials);
	if (p->pem[PINS_KEY].data)
		explicit_bzero(p->pem[PINS_KEY].data, p->pem[PINS_KEY].allocated);
	for (size_t i = 0; i < PINS_FILES; i++)
		buffer_done(&p->pem[i]);
	for (size_t i = 0; i < p->n_members; i++) {
		free(p->members[i].name);
		free(p->members[i].address);
	}
	free(p->members);
	free(p);
}

int pins_new(struct pins **ret, const struct config_neighbours *config, const char *node,
	struct error *ret_error)
{
	_cleanup_pins_ struct pins *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return error_set_errno(ret_error, ENOMEM, "neighbours");
	p->references = 1;
	p->plain = config->plain;
	for (size_t i = 0; i < PINS_FILES; i++)
		buffer_init(&p->pem[i], FILE_MAX);
	r = load_own(p, config->listen);
	if (r == 0 && !p->plain)
		r = load_credentials(p, config, node, ret_error);
	if (r == 0)
		r = load_members(p, config, node, ret_error);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(p);
	return 0;
}

struct pins *pins_ref(struct pins *p)
{
	(void)__atomic_add_fetch(&p->references, 1, __ATOMIC_RELAXED);
	return p;
}

void pins_unref(struct pins *p)
{
	if (p && __atomic_sub_fetch(&p->references, 1, __ATOMIC_ACQ_REL) == 0)
		pins_free(p);
}

static bool same_bytes(const struct buffer *a, const struct buffer *b)
{
	return a->length == b->length && memcmp(buffer_string(a), buffer_string(b), a->length) == 0;
}

bool pins_equal(const struct pins *a, const struct pins *b)
{
	if (!a || !b)
		return a == b;
	if (a->plain != b->plain || a->n_members != b->n_members)
		return false;
	for (size_t i = 0; i < PINS_FILES; i++)
		if (!same_bytes(&a->pem[i], &b->pem[i]))
			return false;
	for (size_t i = 0; i < a->n_members; i++)
		if (strcmp(a->members[i].name, b->members[i].name) != 0 ||
			strcmp(a->members[i].address, b->members[i].address) != 0)
			return false;
	return true;
}

size_t pins_count(const struct pins *p)
{
	return p ? p->n_members : 0;
}

const struct pins_member *pins_member(const struct pins *p, size_t i)
{
	assert(i < p->n_members);
	return &p->members[i];
}

size_t pins_find(const struct pins *p, const char *name)
{
	for (size_t i = 0; i < pins_count(p); i++)
		if (strcmp(p->members[i].name, name) == 0)
			return i;
	return SIZE_MAX;
}

size_t pins_find_host(const struct pins *p, const struct sockaddr_storage *address)
{
	for (size_t i = 0; i < pins_count(p); i++)
		if (tcp_same_host(&p->members[i].socket, address))
			return i;
	return SIZE_MAX;
}

const char *pins_source(const struct pins *p, int family)
{
	return family == p->own.ss_family && p->source[0] ? p->source : NULL;
}

unsigned pins_port(const struct pins *p)
{
	return ntohs(p->own.ss_family == AF_INET
			     ? ((const struct sockaddr_in *)&p->own)->sin_port
			     : ((const struct sockaddr_in6 *)&p->own)->sin6_port);
}

bool pins_are_plain(const struct pins *p)
{
	return p->plain;
}

const char *pins_warning(const struct pins *p)
{
	return p->warning;
}

struct walltime pins_expire(const struct pins *p)
{
	return p->expire;
}

const char *pins_pem(const struct pins *p, enum pins_file file, size_t *ret_n)
{
	*ret_n = p->pem[file].length;
	return p->plain ? NULL : buffer_string(&p->pem[file]);
}

/* ---- a caller ---- */

gnutls_certificate_credentials_t pins_credentials(const struct pins *p)
{
	return p->credentials;
}

static enum pins_refusal who_is(const struct pins *p, gnutls_x509_crt_t crt, size_t *ret_member)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < p->n_members; i++) {
		if (!bears_name(crt, p->members[i].name))
			continue;
		if (found != SIZE_MAX)
			return PINS_AMBIGUOUS;
		found = i;
	}
	if (found == SIZE_MAX)
		return PINS_STRANGER;
	*ret_member = found;
	return PINS_WELCOME;
}

enum pins_refusal pins_verify(const struct pins *p, gnutls_session_t session, size_t *ret_member)
{
	static unsigned char asker_use[] = GNUTLS_KP_TLS_WWW_CLIENT;
	gnutls_typed_vdata_st use = {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = asker_use};
	enum pins_refusal refusal = PINS_UNTRUSTED;
	gnutls_x509_crt_t crt = NULL;
	const gnutls_datum_t *shown;
	unsigned status = 0, n = 0;

	if (gnutls_certificate_type_get(session) != GNUTLS_CRT_X509)
		return PINS_UNTRUSTED;
	shown = gnutls_certificate_get_peers(session, &n);
	if (!shown || n == 0)
		return PINS_NO_CERTIFICATE;
	if (gnutls_certificate_verify_peers(session, &use, 1, &status) < 0)
		return PINS_UNTRUSTED;
	if (status != 0)
		return (status & (GNUTLS_CERT_EXPIRED | GNUTLS_CERT_NOT_ACTIVATED)) &&
				       !(status & (GNUTLS_CERT_SIGNER_NOT_FOUND |
							  GNUTLS_CERT_SIGNATURE_FAILURE))
			       ? PINS_EXPIRED
			       : PINS_UNTRUSTED;
	if (gnutls_x509_crt_init(&crt) < 0)
		return PINS_UNTRUSTED;
	if (gnutls_x509_crt_import(crt, &shown[0], GNUTLS_X509_FMT_DER) >= 0)
		refusal = who_is(p, crt, ret_member);
	gnutls_x509_crt_deinit(crt);
	return refusal;
}

bool pins_are_of(const struct pins *p, const char *pem, size_t member)
{
	gnutls_datum_t text = {.data = (unsigned char *)pem};
	gnutls_x509_crt_t crt = NULL;
	size_t found = SIZE_MAX;
	bool ours;

	if (!pem || gnutls_x509_crt_init(&crt) < 0)
		return false;
	text.size = (unsigned)strlen(pem);
	ours = gnutls_x509_crt_import(crt, &text, GNUTLS_X509_FMT_PEM) >= 0 &&
	       who_is(p, crt, &found) == PINS_WELCOME && found == member;
	gnutls_x509_crt_deinit(crt);
	return ours;
}
