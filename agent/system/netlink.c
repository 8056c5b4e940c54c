/*
 * Netlink messages come from the kernel, or from whoever may forge them (CAP_NET_ADMIN); they are
 * read as a stranger's all the same, for it costs nothing.
 */
#include "agent/system/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <string.h>

/* The first message with its padding, in bytes; 0: it is not whole. */
static size_t netlink_step(const void *buf, size_t n)
{
	struct nlmsghdr header;
	size_t step;

	if (n < sizeof(header))
		return 0;
	memcpy(&header, buf, sizeof(header));
	/* First as it is: NLMSG_ALIGN() counts in 32 bits. */
	if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > n)
		return 0;
	step = NLMSG_ALIGN((size_t)header.nlmsg_len);
	return step <= n ? step : 0;
}

bool netlink_first_is_whole(const void *buf, size_t n)
{
	return netlink_step(buf, n) > 0;
}

bool netlink_is_whole(const void *buf, size_t n)
{
	const char *at = buf;

	while (n >= sizeof(struct nlmsghdr)) {
		size_t step = netlink_step(at, n);

		if (step == 0)
			return false;
		at += step;
		n -= step;
	}
	return true;
}

int netlink_run(
	const void *buf, size_t n, unsigned seq, unsigned portid, mnl_cb_t callback, void *userdata)
{
	if (!netlink_is_whole(buf, n)) {
		errno = EBADMSG;
		return -1;
	}
	return mnl_cb_run(buf, n, seq, portid, callback, userdata);
}
