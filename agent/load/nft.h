#ifndef REDSHANK_LOAD_NFT_H
#define REDSHANK_LOAD_NFT_H
/*
 * Named counters of nftables, one for each prefix, in the table `inet redshank`: read over netlink,
 * never written. Who makes them is the operator, with the script that nft_print() writes: the agent
 * has no business in a firewall's rules. To read needs CAP_NET_ADMIN, as all of nfnetlink does
 * (net/netfilter/nfnetlink.c); so this is opt-in.
 *
 * Messages: include/uapi/linux/netfilter/nf_tables.h, NFT_MSG_GETOBJ and NFT_MSG_NEWOBJ.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <systemd/sd-event.h>

#include "agent/base/address.h"
#include "agent/config/config.h"

#define NFT_NAME_MAX 64

/* "v4_192.0.2.53_32", "v6_2001_db8__53_128": what nft(8) takes for a name. Returns buf. */
const char *nft_counter_name(const struct prefix *prefix, char buf[NFT_NAME_MAX]);

/* The script for `nft -f` that counts the prefixes of this configuration. To run it again keeps
 * what was counted. False where it could not be written. */
bool nft_print(const struct config *config, FILE *to);

/* ---- what the kernel says ---- */

typedef void (*nft_counter_fn)(void *userdata, const char *name, uint64_t packets, uint64_t bytes);

/*
 * Goes through one datagram of a dump that was asked for with `sequence`. 1: more will come. 0:
 * that was the last. -EINTR: the rules changed meanwhile, so it may be incomplete. -EBADMSG: no
 * such messages; another negative errno: the kernel's own answer. Bytes may be any; they are
 * aligned as a struct nlmsghdr is.
 */
int nft_parse(
	const void *bytes, size_t n, uint32_t sequence, nft_counter_fn counter, void *userdata);

/* ---- a dump ---- */

struct nft;

/* All counters were told (`error` 0), or why not: a negative errno. */
typedef void (*nft_done_fn)(void *userdata, int error);

/* Heap. 0 or negative errno. */
int nft_new(struct nft **ret, sd_event *event, nft_counter_fn counter, nft_done_fn done,
	void *userdata);
void nft_free(struct nft *n); /* NULL is fine; not from inside a callback */

/* Asks for all of them. `done` comes once, from the loop or at once. Nothing where the last is
 * under way. */
void nft_fetch(struct nft *n);

#endif
