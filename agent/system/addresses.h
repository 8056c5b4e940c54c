#ifndef REDSHANK_SYSTEM_ADDRESSES_H
#define REDSHANK_SYSTEM_ADDRESSES_H
/*
 * The addresses of this host, followed by rtnetlink (RFC 3549; linux/rtnetlink.h): one dump, then
 * every change as it comes. An address counts while it is neither tentative nor dadfailed. A lost
 * message (ENOBUFS) or an interrupted dump (NLM_F_DUMP_INTR) is followed by a new dump; a slow
 * timer dumps again in any case. Interface does not matter: lo, dummy0 and eth0 are all this host.
 */
#include <systemd/sd-event.h>

#include "agent/base/address.h"

struct addresses;

enum addresses_answer {
	ADDRESSES_UNKNOWN, /* no dump has worked yet */
	ADDRESSES_PRESENT,
	ADDRESSES_MISSING,
};

/* `changed` is called from the loop when any address came, went or changed its state. Heap.
 * The first dump is done before it returns. 0 or negative errno. */
int addresses_new(
	struct addresses **ret, sd_event *event, void (*changed)(void *userdata), void *userdata);
void addresses_free(struct addresses *a);

/* Is there an address of this host in the prefix? */
enum addresses_answer addresses_in(const struct addresses *a, const struct prefix *prefix);

#endif
