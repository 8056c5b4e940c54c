#ifndef REDSHANK_SYSTEM_TCP_H
#define REDSHANK_SYSTEM_TCP_H
/* TCP sockets at literal addresses. Nothing is resolved. */
#include <stdbool.h>
#include <sys/socket.h>

#include "agent/base/error.h"

/* "192.0.2.1:9479", "[2001:db8::1]:9479". 0 or -EINVAL. */
int tcp_address(const char *text, struct sockaddr_storage *ret, socklen_t *ret_length);

#define TCP_TEXT_MAX 56
/* "192.0.2.1:9479", "[2001:db8::1]:9479", or "?". Returns buf. */
const char *tcp_format(const struct sockaddr_storage *address, char buf[TCP_TEXT_MAX]);

bool tcp_is_loopback(const struct sockaddr_storage *address);
/* The same host's address, whatever the port; an IPv4 address within IPv6 is that IPv4 address. */
bool tcp_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

/*
 * A listening TCP socket at "ADDRESS:PORT", an IPv6 address in brackets. The address may be one
 * that the host does not have yet. Returns the descriptor, owned by the caller, or negative errno
 * with the text, which begins with `who` ("status").
 */
int tcp_listen(const char *who, const char *address_port, struct error *ret_error);

#endif
