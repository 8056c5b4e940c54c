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

/* The protocol (IFA_PROTO, linux/if_addr.h, since Linux 5.18) of the addresses that an agent has
 * added, this one or one before it. Nothing in the kernel goes by it. */
#define ADDRESSES_MARK 82

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

/* Takes what the kernel has already told, without waiting for the loop; `changed` is not called.
 * True when anything is another than before. */
bool addresses_read_now(struct addresses *a);

/* The same, but waits until the kernel tells something, for at most `ms`. For the start alone. */
bool addresses_await(struct addresses *a, unsigned ms);

/* Where an address is, on which interface how. */
struct addresses_held {
	bool known;	  /* else nothing is */
	bool here;	  /* on the interface that was asked about, alone (/32, /128) */
	bool here_usable; /* and neither tentative nor dadfailed */
	bool ours;	  /* somewhere with our mark */
	bool ours_apart;  /* with our mark, and not `here` */
	bool others;	  /* usable somewhere without our mark */
};
void addresses_held(const struct addresses *a, const struct address *address, uint32_t interface,
	struct addresses_held *ret);

struct addresses_place {
	struct address address;
	uint32_t interface;
	uint8_t length;
};
/* Walks the addresses with our mark in their order, from the row *at (0, or addresses_first()), and
 * moves *at on. False past the last. Anything that reads from the kernel ends the walk. */
bool addresses_marked(const struct addresses *a, size_t *at, struct addresses_place *ret);
/* The row where an address begins. */
size_t addresses_first(const struct addresses *a, const struct address *address);

#endif
