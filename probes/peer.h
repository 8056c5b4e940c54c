#ifndef REDSHANK_PROBES_PEER_H
#define REDSHANK_PROBES_PEER_H
/* The other end of a check that speaks over a socket: an address literal and a port. For the kinds
 * of check that open sockets of their own. */
#include <stdbool.h>
#include <stdint.h>

#include "agent/base/address.h"

/*
 * A new non-blocking socket of `type` (SOCK_STREAM or SOCK_DGRAM), connected. With SOCK_DGRAM the
 * kernel then drops what comes from elsewhere, hands over ICMP errors, and chooses a random port of
 * ours. 0; -EINPROGRESS: the socket is there, and writable once it is decided; or another negative
 * errno, without a socket, and with "socket: TEXT" or "connect to 192.0.2.53 port 53: TEXT"; of
 * these -EADDRNOTAVAIL is a lack of ports, and -ENETUNREACH also one of addresses.
 */
int peer_connect(int type, const struct address *address, int64_t port, int *ret_fd,
	struct error *ret_error);

/* After EADDRNOTAVAIL, which says both: true where this host has no address to connect from, so
 * that nobody here reaches the peer; false where it has no port left, which says nothing of it. */
bool peer_has_no_source(const struct address *address);
#define PEER_NO_SOURCE "this host has no address to connect from"

/*
 * How a connection that was in progress came out: 0, or negative errno with the text as above.
 * A connection that came about with itself counts as refused: when nobody listens on a port of the
 * ephemeral range, the kernel may choose that same port for our end, and TCP's simultaneous open
 * (RFC 9293, 3.5) then connects the socket to itself.
 */
int peer_connected(int fd, const struct address *address, int64_t port, struct error *ret_error);

/* For validate(): an anycast service has an address that is not link-local. 0, or -EINVAL with
 * "KEY: what was expected". */
int peer_validate(const char *key, const struct address *address, struct error *ret_error);

#endif
