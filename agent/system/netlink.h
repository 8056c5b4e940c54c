#ifndef REDSHANK_SYSTEM_NETLINK_H
#define REDSHANK_SYSTEM_NETLINK_H
/* What every reader of netlink messages needs beside libmnl. */
#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Do the `n` bytes of `buf` hold whole messages and nothing else, but for less than a header at the
 * end? libmnl takes a length for an int: one of 2 GB and more is smaller than any buffer for it,
 * and mnl_cb_run() reads on behind the end. And it takes a message's attributes to end where its
 * padding does, so that has to be there, too, as the kernel sends it.
 */
bool netlink_is_whole(const void *buf, size_t n);

/* The same of the first message alone. */
bool netlink_first_is_whole(const void *buf, size_t n);

/* As mnl_cb_run(), with errno EBADMSG where what came is not whole: then no callback is called. */
int netlink_run(const void *buf, size_t n, unsigned seq, unsigned portid, mnl_cb_t callback,
	void *userdata);

#endif
