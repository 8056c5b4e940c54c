#ifndef REDSHANK_PROBES_TLS_H
#define REDSHANK_PROBES_TLS_H
/*
 * A TLS client on a connected, non-blocking socket, for checks that speak TLS themselves (DNS over
 * TLS). On GnuTLS. Nothing here waits: where it would, it returns -EAGAIN and tls_events() says
 * what to wait for.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/base/error.h"

/*
 * Whom to trust: the certificates of a file, or those of this host. Shared by all checks of the
 * same file. A file that was replaced is read again.
 */
struct tls_trust;

/*
 * Makes *trust current: reads the certificates the first time (some 10 ms for those of a whole
 * host), and again when the file has changed. `ca` NULL: this host's. Call it when no session of
 * this trust is under way. *trust is NULL before the first call. 0, or negative errno with the
 * text, and then *trust is NULL.
 */
int tls_trust_update(struct tls_trust **trust, const char *ca, struct error *ret_error);
void tls_trust_free(struct tls_trust *t);

struct tls;

/*
 * A session. With a trust the certificate must come from it and name `name` (a host name, which is
 * also sent as SNI, or an address literal); with NULL whoever answers will do. The descriptor stays
 * the caller's, and outlives the session, as the trust does. 0, or negative errno with the text.
 */
int tls_new(struct tls **ret, int fd, const char *name, const struct tls_trust *trust,
	struct error *ret_error);
/* Tells the other end that there is no more, where that is possible at once. NULL is fine. */
void tls_free(struct tls *t);

/*
 * 0; -EAGAIN; or another negative errno with the text: -EKEYREJECTED for a certificate
 * ("certificate: expired"), the socket's errno, -ENOMEM, -EPROTO for all else. A send that said
 * -EAGAIN is repeated with the same bytes.
 */
int tls_handshake(struct tls *t, struct error *ret_error);
ssize_t tls_send(struct tls *t, const void *data, size_t n, struct error *ret_error);
/* 0 at the end. */
ssize_t tls_receive(struct tls *t, void *data, size_t n, struct error *ret_error);

/* EPOLLIN or EPOLLOUT, after -EAGAIN. */
uint32_t tls_events(const struct tls *t);

#endif
