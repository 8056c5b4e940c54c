/*
 * TCP sockets at literal addresses, for those who listen: the status server and the neighbours'
 * endpoint.
 */
#include "agent/system/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/address.h"

#define LISTEN_BACKLOG 128

/* "192.0.2.1:9479", "[2001:db8::1]:9479" */
int tcp_address(const char *text, struct sockaddr_storage *ret, socklen_t *ret_length)
{
	char host[ADDRESS_TEXT_MAX + 2];
	const char *colon = strrchr(text, ':');
	bool brackets = text[0] == '[';
	size_t n = colon ? (size_t)(colon - text) : 0;
	struct address a;
	char *end = NULL;
	unsigned long port = 0;

	if (colon && colon[1] >= '0' && colon[1] <= '9')
		port = strtoul(colon + 1, &end, 10);
	if (n == 0 || n >= sizeof(host) || !end || *end || port < 1 || port > 65535 ||
		(brackets && (n < 2 || text[n - 1] != ']')))
		return -EINVAL;
	memcpy(host, text, n);
	host[n - (brackets ? 1 : 0)] = '\0';
	if (address_parse(host + (brackets ? 1 : 0), &a, NULL) < 0 ||
		brackets != (a.family == ADDRESS_FAMILY_IPV6))
		return -EINVAL;

	*ret = (struct sockaddr_storage){0};
	if (brackets) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
		memcpy(&in6->sin6_addr, a.bytes, 16);
		*ret_length = sizeof(*in6);
	} else {
		struct sockaddr_in *in = (struct sockaddr_in *)ret;

		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		memcpy(&in->sin_addr, a.bytes, 4);
		*ret_length = sizeof(*in);
	}
	return 0;
}

const char *tcp_format(const struct sockaddr_storage *address, char buf[TCP_TEXT_MAX])
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	char host[INET6_ADDRSTRLEN] = "?";

	if (address->ss_family == AF_INET && inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host)))
		(void)snprintf(buf, TCP_TEXT_MAX, "%s:%u", host, ntohs(in->sin_port));
	else if (address->ss_family == AF_INET6 &&
		 inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host)))
		(void)snprintf(buf, TCP_TEXT_MAX, "[%s]:%u", host, ntohs(in6->sin6_port));
	else
		(void)snprintf(buf, TCP_TEXT_MAX, "?");
	return buf;
}

/* The IPv4 address, also of ::ffff:192.0.2.1; NULL where it is another. */
static const uint8_t *as_ipv4(const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;

	if (a->ss_family == AF_INET)
		return (const uint8_t *)&((const struct sockaddr_in *)a)->sin_addr;
	if (a->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		return &in6->sin6_addr.s6_addr[12];
	return NULL;
}

bool tcp_is_loopback(const struct sockaddr_storage *address)
{
	const uint8_t *v4 = as_ipv4(address);

	if (v4)
		return v4[0] == 127;
	return address->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

bool tcp_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const uint8_t *first = as_ipv4(a), *second = as_ipv4(b);

	if (first || second)
		return first && second && memcmp(first, second, 4) == 0;
	return a->ss_family == AF_INET6 && b->ss_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)b)->sin6_addr, 16) == 0;
}

int tcp_listen(const char *who, const char *address_port, struct error *ret_error)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_storage address;
	socklen_t length = 0;
	const int on = 1;

	if (tcp_address(address_port, &address, &length) < 0)
		return error_set(ret_error, EINVAL,
			"%s: listen on \"%s\": expected ADDRESS:PORT, such as 127.0.0.1:9479 or "
			"[::1]:9479",
			who, address_port);
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set_errno(ret_error, errno, "%s: socket", who);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
	if (address.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&address, length) < 0)
		return error_set_errno(ret_error, errno, "%s: bind %s", who, address_port);
	if (listen(fd, LISTEN_BACKLOG) < 0)
		return error_set_errno(ret_error, errno, "%s: listen %s", who, address_port);
	return TAKE_FD(fd);
}
