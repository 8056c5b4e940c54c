/*
 * Netlink messages come from the kernel, or from whoever may forge them (CAP_NET_ADMIN); they are
 * read as a stranger's all the same, for it costs nothing.
 */
#include "agent/system/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <string.h>

bool netlink_is_whole(const void *buf, size_t n)
{
	const char *at = buf;
	struct nlmsghdr header;

	while (n >= sizeof(header)) {
		size_t step;

		memcpy(&header, at, sizeof(header));
		/* First as it is: NLMSG_ALIGN() counts in 32 bits. */
		if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > n)
			return false;
		step = NLMSG_ALIGN((size_t)header.nlmsg_len);
		if (step > n)
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
