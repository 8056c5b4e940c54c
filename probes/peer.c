/* Sockets to the other end of a check. Nothing here waits, and names are never resolved. */
#include "probes/peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static socklen_t to_sockaddr(
	const struct address *address, int64_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	switch (address->family) {
	case ADDRESS_FAMILY_IPV4:
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		memcpy(&v4->sin_addr, address->bytes, sizeof(v4->sin_addr));
		return sizeof(*v4);
	case ADDRESS_FAMILY_IPV6:
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		memcpy(&v6->sin6_addr, address->bytes, sizeof(v6->sin6_addr));
		return sizeof(*v6);
	}
	abort();
}

/* UDP has ports of its own, so a lack of TCP's is none for it. */
bool peer_has_no_source(const struct address *address)
{
	struct sockaddr_storage peer;
	socklen_t length = to_sockaddr(address, 9, &peer);
	_cleanup_close_ int fd =
		socket(peer.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (struct sockaddr *)&peer, length) < 0 &&
	       errno == EADDRNOTAVAIL;
}

static int connect_error(
	int errnum, const struct address *address, int64_t port, struct error *ret_error)
{
	char text[ADDRESS_TEXT_MAX];

	if (errnum == EADDRNOTAVAIL && peer_has_no_source(address))
		return error_set(ret_error, ENETUNREACH, "connect to %s port %u: " PEER_NO_SOURCE,
			address_format(address, text), (unsigned)port);
	return error_set_errno(ret_error, errnum, "connect to %s port %u",
		address_format(address, text), (unsigned)port);
}

int peer_connect(
	int type, const struct address *address, int64_t port, int *ret_fd, struct error *ret_error)
{
	struct sockaddr_storage peer;
	socklen_t length = to_sockaddr(address, port, &peer);
	_cleanup_close_ int fd = socket(peer.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int yes = 1;

	if (fd < 0)
		return error_set_errno(ret_error, errno, "socket");
	if (type == SOCK_STREAM)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (connect(fd, (struct sockaddr *)&peer, length) < 0) {
		if (errno != EINPROGRESS)
			return connect_error(errno, address, port, ret_error);
		*ret_fd = TAKE_FD(fd);
		return -EINPROGRESS;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static bool connected_to_itself(int fd)
{
	struct sockaddr_storage own = {0}, peer = {0};
	socklen_t n_own = sizeof(own), n_peer = sizeof(peer);

	return getsockname(fd, (struct sockaddr *)&own, &n_own) == 0 &&
	       getpeername(fd, (struct sockaddr *)&peer, &n_peer) == 0 && n_own == n_peer &&
	       memcmp(&own, &peer, n_own) == 0;
}

int peer_connected(int fd, const struct address *address, int64_t port, struct error *ret_error)
{
	socklen_t n = sizeof(int);
	int errnum = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &n) < 0)
		errnum = errno;
	if (errnum == 0 && connected_to_itself(fd))
		errnum = ECONNREFUSED;
	return errnum == 0 ? 0 : connect_error(errnum, address, port, ret_error);
}

int peer_validate(const char *key, const struct address *address, struct error *ret_error)
{
	const uint8_t *b = address->bytes;

	if (address->family == ADDRESS_FAMILY_IPV6 && b[0] == 0xfe && (b[1] & 0xc0) == 0x80)
		return error_set(ret_error, EINVAL,
			"%s: expected an address that is not link-local (an anycast service "
			"has a global one)",
			key);
	return 0;
}
