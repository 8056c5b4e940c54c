/*
 * A TLS client on GnuTLS, which is here anyway, under libmicrohttpd.
 *
 * The socket is read and written by functions of our own, so that an error of the socket keeps its
 * errno and no SIGPIPE is raised. GnuTLS verifies the certificate and its name within the
 * handshake, so that not one byte of a query goes to somebody else.
 */
#include "probes/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Where the certificates of a host lie on Debian, to see that they were replaced. Where this file
 * does not exist, GnuTLS knows another place, and they are read once. */
#define HOST_CERTIFICATES "/etc/ssl/certs/ca-certificates.crt"

#define WARNINGS_MAX 8

struct tls_trust {
	struct tls_trust *next;
	unsigned references;
	char *ca; /* NULL: this host's */
	struct stat file;
	gnutls_certificate_credentials_t credentials;
};

struct tls {
	gnutls_session_t session;
	gnutls_certificate_credentials_t anybody; /* without a trust */
	int fd;
	int errnum; /* of the socket, since the last call */
	bool shaken;
};

static struct tls_trust *trusts;

/* ---- trust ---- */

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool same_path(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

void tls_trust_free(struct tls_trust *t)
{
	struct tls_trust **link = &trusts;

	if (!t || --t->references > 0)
		return;
	while (*link && *link != t)
		link = &(*link)->next;
	if (*link)
		*link = t->next;
	if (t->credentials)
		gnutls_certificate_free_credentials(t->credentials);
	free(t->ca);
	free(t);
}

DEFINE_CLEANUP_PTR(struct tls_trust *, tls_trust_free)

static int read_certificates(struct tls_trust *t, struct error *ret_error)
{
	int n;

	if (gnutls_certificate_allocate_credentials(&t->credentials) < 0) {
		t->credentials = NULL;
		return error_set_errno(ret_error, ENOMEM, "TLS");
	}
	if (t->ca)
		n = gnutls_certificate_set_x509_trust_file(
			t->credentials, t->ca, GNUTLS_X509_FMT_PEM);
	else
		n = gnutls_certificate_set_x509_system_trust(t->credentials);
	if (n < 0)
		return error_set(ret_error, n == GNUTLS_E_MEMORY_ERROR ? ENOMEM : EBADMSG,
			"cannot read certificates of %s: %s", t->ca ? t->ca : "this host",
			gnutls_strerror(n));
	if (n == 0)
		return error_set(ret_error, ENODATA, "no certificates to trust in %s",
			t->ca ? t->ca : "this host's store");
	return 0;
}

static int trust_new(
	struct tls_trust **ret, const char *ca, const struct stat *file, struct error *ret_error)
{
	_cleanup_(tls_trust_freep) struct tls_trust *t = calloc(1, sizeof(*t));
	int r;

	if (t)
		t->references = 1;
	if (t && ca)
		t->ca = strdup(ca);
	if (!t || (ca && !t->ca))
		return error_set_errno(ret_error, ENOMEM, "TLS");
	t->file = *file;
	r = read_certificates(t, ret_error);
	if (r < 0)
		return r;
	t->next = trusts;
	trusts = t;
	*ret = TAKE_PTR(t);
	return 0;
}

int tls_trust_update(struct tls_trust **trust, const char *ca, struct error *ret_error)
{
	struct stat file = {0};
	int r;

	if (stat(ca ? ca : HOST_CERTIFICATES, &file) < 0 && ca) {
		r = error_set_errno(ret_error, errno, "cannot read certificates of %s", ca);
		tls_trust_free(TAKE_PTR(*trust));
		return r;
	}
	if (*trust && same_file(&(*trust)->file, &file))
		return 0;
	tls_trust_free(TAKE_PTR(*trust));
	for (struct tls_trust *t = trusts; t; t = t->next) {
		if (!same_path(t->ca, ca) || !same_file(&t->file, &file))
			continue;
		t->references++;
		*trust = t;
		return 0;
	}
	return trust_new(trust, ca, &file, ret_error);
}

/* ---- session ---- */

static ssize_t pull(gnutls_transport_ptr_t userdata, void *data, size_t n)
{
	struct tls *t = userdata;
	ssize_t r = recv(t->fd, data, n, 0);

	if (r < 0) {
		t->errnum = errno;
		gnutls_transport_set_errno(t->session, errno);
	}
	return r;
}

static ssize_t push(gnutls_transport_ptr_t userdata, const void *data, size_t n)
{
	struct tls *t = userdata;
	ssize_t r = send(t->fd, data, n, MSG_NOSIGNAL);

	if (r < 0) {
		t->errnum = errno;
		gnutls_transport_set_errno(t->session, errno);
	}
	return r;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	if (t->shaken)
		(void)gnutls_bye(t->session, GNUTLS_SHUT_WR);
	if (t->session)
		gnutls_deinit(t->session);
	if (t->anybody)
		gnutls_certificate_free_credentials(t->anybody);
	free(t);
}

DEFINE_CLEANUP_PTR(struct tls *, tls_free)

static bool is_address(const char *name)
{
	uint8_t bytes[16];

	return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* RFC 8310, 8.1: the profiles with and without a name. RFC 9325: no TLS below 1.2. */
static int set_up(struct tls *t, const char *name, const struct tls_trust *trust)
{
	int r = gnutls_set_default_priority_append(
		t->session, "-VERS-TLS1.0:-VERS-TLS1.1", NULL, 0);

	if (r >= 0 && !trust)
		r = gnutls_certificate_allocate_credentials(&t->anybody);
	if (r >= 0)
		r = gnutls_credentials_set(t->session, GNUTLS_CRD_CERTIFICATE,
			trust ? trust->credentials : t->anybody);
	if (r >= 0 && name && !is_address(name))
		r = gnutls_server_name_set(t->session, GNUTLS_NAME_DNS, name, strlen(name));
	if (r < 0)
		return r;
	if (trust)
		gnutls_session_set_verify_cert(t->session, name, 0);
	gnutls_transport_set_ptr(t->session, t);
	gnutls_transport_set_pull_function(t->session, pull);
	gnutls_transport_set_push_function(t->session, push);
	return 0;
}

int tls_new(struct tls **ret, int fd, const char *name, const struct tls_trust *trust,
	struct error *ret_error)
{
	_cleanup_(tls_freep) struct tls *t = calloc(1, sizeof(*t));
	int r = GNUTLS_E_MEMORY_ERROR;

	assert(name || !trust);
	if (t) {
		t->fd = fd;
		r = gnutls_init(&t->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK);
	}
	if (r >= 0)
		r = set_up(t, name, trust);
	if (r < 0)
		return error_set(ret_error, ENOMEM, "TLS: %s", gnutls_strerror(r));
	*ret = TAKE_PTR(t);
	return 0;
}

/* GnuTLS's words for a certificate, made short, the cause that matters first. */
static int refuse_certificate(const struct tls *t, struct error *ret_error)
{
	static const struct {
		unsigned flag;
		const char *text;
	} causes[] = {
		{GNUTLS_CERT_SIGNER_NOT_FOUND, "its issuer is unknown"},
		{GNUTLS_CERT_SIGNER_NOT_CA, "its issuer is no authority"},
		{GNUTLS_CERT_REVOKED, "revoked"},
		{GNUTLS_CERT_EXPIRED, "expired"},
		{GNUTLS_CERT_NOT_ACTIVATED, "not valid yet"},
		{GNUTLS_CERT_UNEXPECTED_OWNER, "it has another name"},
		{GNUTLS_CERT_INSECURE_ALGORITHM, "an insecure algorithm"},
		{GNUTLS_CERT_SIGNATURE_FAILURE, "its signature is wrong"},
		{GNUTLS_CERT_PURPOSE_MISMATCH, "not for a server"},
	};
	unsigned status = gnutls_session_get_verify_cert_status(t->session);

	for (size_t i = 0; i < ELEMENTSOF(causes); i++)
		if (status & causes[i].flag)
			return error_set(
				ret_error, EKEYREJECTED, "certificate: %s", causes[i].text);
	return error_set(ret_error, EKEYREJECTED, "certificate: not trusted");
}

static int fail(struct tls *t, int code, struct error *ret_error)
{
	switch (code) {
	case GNUTLS_E_AGAIN:
	case GNUTLS_E_INTERRUPTED:
		return -EAGAIN;
	case GNUTLS_E_MEMORY_ERROR:
		return error_set_errno(ret_error, ENOMEM, "TLS");
	case GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR:
		return refuse_certificate(t, ret_error);
	case GNUTLS_E_PULL_ERROR:
	case GNUTLS_E_PUSH_ERROR:
		return error_set_errno(ret_error, t->errnum ? t->errnum : EIO, "TLS");
	case GNUTLS_E_PREMATURE_TERMINATION:
		return error_set(ret_error, EPROTO, "TLS: the connection was closed");
	case GNUTLS_E_UNEXPECTED_PACKET:
	case GNUTLS_E_UNSUPPORTED_VERSION_PACKET:
	case GNUTLS_E_UNEXPECTED_PACKET_LENGTH:
	case GNUTLS_E_RECORD_OVERFLOW:
		return error_set(ret_error, EPROTO, "TLS: the other end does not speak it (%s)",
			gnutls_strerror(code));
	case GNUTLS_E_FATAL_ALERT_RECEIVED:
		return error_set(ret_error, EPROTO, "TLS: refused with the alert \"%s\"",
			gnutls_alert_get_name(gnutls_alert_get(t->session)));
	default:
		return error_set(ret_error, EPROTO, "TLS: %s", gnutls_strerror(code));
	}
}

/* Alerts that are mere warnings are passed over, a few of them. */
int tls_handshake(struct tls *t, struct error *ret_error)
{
	int r = 0;

	for (int i = 0; i < WARNINGS_MAX; i++) {
		t->errnum = 0;
		r = gnutls_handshake(t->session);
		if (r >= 0) {
			t->shaken = true;
			return 0;
		}
		if (r == GNUTLS_E_AGAIN || gnutls_error_is_fatal(r))
			break;
	}
	return fail(t, r, ret_error);
}

ssize_t tls_send(struct tls *t, const void *data, size_t n, struct error *ret_error)
{
	ssize_t r;

	t->errnum = 0;
	r = gnutls_record_send(t->session, data, n);
	return r < 0 ? fail(t, (int)r, ret_error) : r;
}

/* A server that asks for a new handshake (TLS 1.2 alone) is not humoured: RFC 9325, 3.5. */
ssize_t tls_receive(struct tls *t, void *data, size_t n, struct error *ret_error)
{
	ssize_t r;

	t->errnum = 0;
	r = gnutls_record_recv(t->session, data, n);
	return r < 0 ? fail(t, (int)r, ret_error) : r;
}

uint32_t tls_events(const struct tls *t)
{
	return gnutls_record_get_direction(t->session) ? EPOLLOUT : EPOLLIN;
}
