/*
 * One request, one answer, on a socket of its own: nothing is left to wait for, nothing to mix up.
 *
 * The kernel handles a request of rtnetlink inside sendto(), in the caller's own time (net/core/
 * rtnetlink.c, rtnetlink_rcv()), and its acknowledgement is in the socket when that returns. So
 * the answer is read without waiting. Where there is none it is an error like others: whoever
 * looks at the addresses sees what is true.
 */
#include "agent/system/address_change.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "agent/base/cleanup.h"
#include "agent/system/netlink.h"

DEFINE_CLEANUP_PTR(struct mnl_socket *, mnl_socket_close)

#define REQUEST_SIZE 256
#define ANSWER_SIZE 4096

static int send_request(const struct nlmsghdr *nlh)
{
	_cleanup_(mnl_socket_closep) struct mnl_socket *nl =
		mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	char answer[ANSWER_SIZE];
	ssize_t n;

	if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	do
		n = mnl_socket_recvfrom(nl, answer, sizeof(answer));
	while (n < 0 && errno == EINTR);
	if (n < 0 || netlink_run(answer, (size_t)n, nlh->nlmsg_seq, mnl_socket_get_portid(nl), NULL,
			     NULL) < 0)
		return -errno;
	return 0;
}

static struct nlmsghdr *put_request(
	char *buf, uint16_t type, uint16_t flags, const struct addresses_place *place)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifaddrmsg *m = mnl_nlmsg_put_extra_header(nlh, sizeof(*m));
	size_t size = place->address.family == ADDRESS_FAMILY_IPV4 ? 4 : 16;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	nlh->nlmsg_seq = 1;
	m->ifa_family = size == 4 ? AF_INET : AF_INET6;
	m->ifa_prefixlen = place->length;
	m->ifa_scope = RT_SCOPE_UNIVERSE;
	m->ifa_index = place->interface;
	mnl_attr_put(nlh, IFA_LOCAL, size, place->address.bytes);
	mnl_attr_put(nlh, IFA_ADDRESS, size, place->address.bytes);
	return nlh;
}

int address_change_add(const struct address *address, uint32_t interface)
{
	char buf[REQUEST_SIZE] = {0}; /* and so the padding behind attributes */
	const struct addresses_place place = {.address = *address,
		.interface = interface,
		.length = address->family == ADDRESS_FAMILY_IPV4 ? 32 : 128};
	struct nlmsghdr *nlh = put_request(buf, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &place);

	if (address->family == ADDRESS_FAMILY_IPV6)
		mnl_attr_put_u32(nlh, IFA_FLAGS, IFA_F_NODAD);
	mnl_attr_put_u8(nlh, IFA_PROTO, ADDRESSES_MARK);
	return send_request(nlh);
}

int address_change_remove(const struct addresses_place *place)
{
	char buf[REQUEST_SIZE] = {0}; /* and so the padding behind attributes */

	return send_request(put_request(buf, RTM_DELADDR, 0, place));
}
