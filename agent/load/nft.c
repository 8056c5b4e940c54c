/* Reads the counters: one datagram a turn of the loop, since there may be thousands. */
#include "agent/load/nft.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "agent/base/cleanup.h"
#include "agent/system/netlink.h"

#define NFT_TABLE "redshank"
#define NFT_DATAGRAM_MAX (32U * 1024) /* the kernel's own bound of a dump's datagrams */

struct nft {
	struct mnl_socket *socket;
	sd_event_source *io;
	sd_event *event;
	nft_counter_fn counter;
	nft_done_fn done;
	void *userdata;
	uint32_t sequence;
	bool busy;
	_Alignas(8) char datagram[NFT_DATAGRAM_MAX];
};

/* ---- messages ---- */

static const char *string_of(const struct nlattr *attr)
{
	return mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) < 0 ? NULL : mnl_attr_get_str(attr);
}

static bool number_of(const struct nlattr *attr, uint64_t *ret)
{
	if (mnl_attr_validate(attr, MNL_TYPE_U64) < 0)
		return false;
	*ret = be64toh(mnl_attr_get_u64(attr));
	return true;
}

static bool counter_of(const struct nlattr *data, uint64_t *ret_packets, uint64_t *ret_bytes)
{
	uint64_t packets = 0, bytes = 0;
	bool has_packets = false, has_bytes = false;
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, data)
	{
		if (mnl_attr_get_type(attr) == NFTA_COUNTER_PACKETS)
			has_packets = number_of(attr, &packets);
		else if (mnl_attr_get_type(attr) == NFTA_COUNTER_BYTES)
			has_bytes = number_of(attr, &bytes);
	}
	if (!has_packets || !has_bytes)
		return false;
	*ret_packets = packets;
	*ret_bytes = bytes;
	return true;
}

/* One object: told where it is a counter of ours. */
static void take_object(const struct nlmsghdr *h, nft_counter_fn counter, void *userdata)
{
	const char *table = NULL, *name = NULL;
	const struct nlattr *attr, *data = NULL;
	uint64_t packets, bytes;
	uint32_t type = NFT_OBJECT_UNSPEC;

	if (mnl_nlmsg_get_payload_len(h) < sizeof(struct nfgenmsg))
		return;
	mnl_attr_for_each(attr, h, sizeof(struct nfgenmsg))
	{
		switch (mnl_attr_get_type(attr)) {
		case NFTA_OBJ_TABLE:
			table = string_of(attr);
			break;
		case NFTA_OBJ_NAME:
			name = string_of(attr);
			break;
		case NFTA_OBJ_TYPE:
			if (mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
				type = ntohl(mnl_attr_get_u32(attr));
			break;
		case NFTA_OBJ_DATA:
			data = attr;
			break;
		default: /* no enum of ours: a newer kernel says more */
			break;
		}
	}
	if (table && name && data && type == NFT_OBJECT_COUNTER && strcmp(table, NFT_TABLE) == 0 &&
		counter_of(data, &packets, &bytes))
		counter(userdata, name, packets, bytes);
}

static int error_of(const struct nlmsghdr *h)
{
	int32_t error;

	if (mnl_nlmsg_get_payload_len(h) < sizeof(struct nlmsgerr))
		return -EBADMSG;
	memcpy(&error, mnl_nlmsg_get_payload(h), sizeof(error));
	return error < 0 ? error : -EBADMSG;
}

int nft_parse(
	const void *bytes, size_t n, uint32_t sequence, nft_counter_fn counter, void *userdata)
{
	const struct nlmsghdr *h = bytes;
	int left = (int)n;
	bool interrupted = false;

	for (; left > 0 && netlink_first_is_whole(h, (size_t)left); h = mnl_nlmsg_next(h, &left)) {
		if (h->nlmsg_seq != sequence)
			continue;
		interrupted = interrupted || (h->nlmsg_flags & NLM_F_DUMP_INTR);
		if (h->nlmsg_type == NLMSG_ERROR)
			return error_of(h);
		if (h->nlmsg_type == NLMSG_DONE)
			return interrupted ? -EINTR : 0;
		if (h->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWOBJ))
			take_object(h, counter, userdata);
	}
	if (left > 0)
		return -EBADMSG;
	return interrupted ? -EINTR : 1;
}

/* ---- a dump ---- */

static void close_socket(struct nft *n)
{
	n->io = sd_event_source_disable_unref(n->io);
	if (n->socket)
		(void)mnl_socket_close(n->socket);
	n->socket = NULL;
}

/* Of a dump that ended in the middle the kernel keeps the rest, and refuses another on this socket
 * until that was read (-EBUSY). */
static void finish(struct nft *n, int error)
{
	n->busy = false;
	if (error < 0)
		close_socket(n);
	else
		(void)sd_event_source_set_enabled(n->io, SD_EVENT_OFF);
	n->done(n->userdata, error);
}

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct nft *n = userdata;
	ssize_t length = recv(fd, n->datagram, sizeof(n->datagram), MSG_DONTWAIT | MSG_TRUNC);
	int r;

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (length < 0)
		r = -errno;
	else if ((size_t)length > sizeof(n->datagram))
		r = -EMSGSIZE;
	else
		r = n->busy ? nft_parse(n->datagram, (size_t)length, n->sequence, n->counter,
				      n->userdata)
			    : 1;
	if (r <= 0 && n->busy)
		finish(n, r);
	return 0;
}

static int open_socket(struct nft *n)
{
	int r;

	n->socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!n->socket)
		return -errno;
	if (mnl_socket_bind(n->socket, 0, MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	r = sd_event_add_io(
		n->event, &n->io, mnl_socket_get_fd(n->socket), EPOLLIN, on_readable, n);
	if (r >= 0)
		r = sd_event_source_set_priority(n->io, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		(void)sd_event_source_set_description(n->io, "load: nftables");
	return r;
}

static int ask(struct nft *n)
{
	char message[256] = {0}; /* and so the padding behind attributes */
	struct nlmsghdr *h = mnl_nlmsg_put_header(message);
	struct nfgenmsg *g;
	int r;

	h->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETOBJ;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	h->nlmsg_seq = ++n->sequence;
	g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
	g->nfgen_family = NFPROTO_INET;
	g->version = NFNETLINK_V0;
	mnl_attr_put_strz(h, NFTA_OBJ_TABLE, NFT_TABLE);
	mnl_attr_put_u32(h, NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
	if (mnl_socket_sendto(n->socket, h, h->nlmsg_len) < 0)
		return -errno;
	r = sd_event_source_set_enabled(n->io, SD_EVENT_ON);
	return r < 0 ? r : 0;
}

void nft_fetch(struct nft *n)
{
	int r = 0;

	if (n->busy)
		return;
	if (!n->socket)
		r = open_socket(n);
	n->busy = true;
	if (r >= 0)
		r = ask(n);
	if (r < 0)
		finish(n, r);
}

int nft_new(
	struct nft **ret, sd_event *event, nft_counter_fn counter, nft_done_fn done, void *userdata)
{
	struct nft *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->event = sd_event_ref(event);
	n->counter = counter;
	n->done = done;
	n->userdata = userdata;
	*ret = n;
	return 0;
}

void nft_free(struct nft *n)
{
	if (!n)
		return;
	close_socket(n);
	sd_event_unref(n->event);
	free(n);
}
