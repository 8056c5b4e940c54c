/*
 * The addresses of this host.
 *
 * A sorted table of what rtnetlink told: one row for each address, length, interface and peer,
 * since the same address may lie on two of them, or twice on one. A prefix is looked up by
 * bisection: the addresses inside it lie side by side from its own first address on.
 *
 * Two sockets. One listens to the kernel's changes and is on the loop. The other is opened for each
 * dump and is done with when the dump is, so that replies and changes never mix. A change that was
 * queued before a dump is then applied after it; that is harmless, since all that followed it are
 * in the same queue, and nobody is told before the queue is empty.
 *
 * When the kernel had no room for a change (ENOBUFS), or the table changed under a dump
 * (NLM_F_DUMP_INTR), the table is dumped again. What was known stays until a dump works, also when
 * there is no descriptor or memory for one: an address that is missing must not come to be unknown
 * by our own trouble, for what is unknown withdraws nothing. Answers are unknown only as long as no
 * dump has ever worked.
 *
 * An address counts unless it is tentative or dadfailed (linux/if_addr.h). Optimistic ones (RFC
 * 4429) are tentative too until duplicate address detection is through, and wait with the rest;
 * deprecated ones count, since that is how anycast addresses are kept from being sources.
 */
#include "agent/system/addresses.h"

#include <assert.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "agent/base/cleanup.h"
#include "agent/system/log.h"
#include "agent/system/netlink.h"

#define REDUMP_US (30 * 1000000ULL)
#define RETRY_US 1000000ULL
#define DUMP_TRIES 5
#define RECEIVE_BUFFER (1 << 20)

struct row {
	struct address address;
	uint32_t interface;
	uint8_t length;
	uint8_t peer[4]; /* of IPv4, where an interface has an address once for each peer */
	bool usable;
	bool marked;
};

struct table {
	struct row *rows; /* sorted by compare_rows(); no two are equal by it */
	size_t n, allocated;
};

struct addresses {
	struct mnl_socket *changes;
	sd_event_source *io, *timer;
	struct table table;
	bool known;  /* a dump has worked */
	bool failed; /* the last one did not, which was logged */
	void (*changed)(void *userdata);
	void *userdata;
};

DEFINE_CLEANUP_PTR(struct addresses *, addresses_free)
DEFINE_CLEANUP_PTR(struct mnl_socket *, mnl_socket_close)

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int r;

	if (x->address.family != y->address.family)
		return x->address.family < y->address.family ? -1 : 1;
	r = memcmp(x->address.bytes, y->address.bytes, sizeof(x->address.bytes));
	if (r != 0)
		return r;
	if (x->interface != y->interface)
		return x->interface < y->interface ? -1 : 1;
	if (x->length != y->length)
		return x->length < y->length ? -1 : 1;
	return memcmp(x->peer, y->peer, sizeof(x->peer));
}

/* The first row that is not before `key`. */
static size_t table_find(const struct table *t, const struct row *key)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_rows(&t->rows[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int table_reserve(struct table *t)
{
	size_t allocated = t->allocated ? 2 * t->allocated : 64;
	struct row *rows;

	if (t->n < t->allocated)
		return 0;
	rows = reallocarray(t->rows, allocated, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	t->rows = rows;
	t->allocated = allocated;
	return 0;
}

/* 1 when the table says something else than before, 0 when not, negative errno. */
static int table_put(struct table *t, const struct row *row)
{
	size_t at = table_find(t, row);
	int r;

	if (at < t->n && compare_rows(&t->rows[at], row) == 0) {
		if (t->rows[at].usable == row->usable && t->rows[at].marked == row->marked)
			return 0;
		t->rows[at].usable = row->usable;
		t->rows[at].marked = row->marked;
		return 1;
	}
	r = table_reserve(t);
	if (r < 0)
		return r;
	memmove(&t->rows[at + 1], &t->rows[at], (t->n - at) * sizeof(*row));
	t->rows[at] = *row;
	t->n++;
	return 1;
}

static int table_remove(struct table *t, const struct row *row)
{
	size_t at = table_find(t, row);

	if (at == t->n || compare_rows(&t->rows[at], row) != 0)
		return 0;
	t->n--;
	memmove(&t->rows[at], &t->rows[at + 1], (t->n - at) * sizeof(*row));
	return 1;
}

static bool table_equal(const struct table *a, const struct table *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (compare_rows(&a->rows[i], &b->rows[i]) != 0 ||
			a->rows[i].usable != b->rows[i].usable ||
			a->rows[i].marked != b->rows[i].marked)
			return false;
	return true;
}

/* An RTM_NEWADDR or RTM_DELADDR as a row. False when it is not about an address of ours to know. */
static bool row_from_message(const struct nlmsghdr *nlh, struct row *ret)
{
	const struct ifaddrmsg *m = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr, *local = NULL, *address = NULL;
	struct row row = {0};
	uint32_t flags;
	size_t length;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*m) ||
		(m->ifa_family != AF_INET && m->ifa_family != AF_INET6))
		return false;
	length = m->ifa_family == AF_INET ? 4 : 16;
	flags = m->ifa_flags;
	mnl_attr_for_each(attr, nlh, sizeof(*m))
	{
		if (mnl_attr_get_type(attr) == IFA_LOCAL)
			local = attr;
		else if (mnl_attr_get_type(attr) == IFA_ADDRESS)
			address = attr;
		else if (mnl_attr_get_type(attr) == IFA_FLAGS &&
			 mnl_attr_get_payload_len(attr) == sizeof(uint32_t))
			flags = mnl_attr_get_u32(attr); /* the header has room for eight */
		else if (mnl_attr_get_type(attr) == IFA_PROTO &&
			 mnl_attr_get_payload_len(attr) == sizeof(uint8_t))
			row.marked = mnl_attr_get_u8(attr) == ADDRESSES_MARK;
	}
	/* With a point-to-point peer, IFA_ADDRESS is the peer's. */
	if (length == sizeof(row.peer) && address && mnl_attr_get_payload_len(address) == length)
		memcpy(row.peer, mnl_attr_get_payload(address), length);
	if (local)
		address = local;
	if (!address || mnl_attr_get_payload_len(address) != length)
		return false;
	row.address.family = length == 4 ? ADDRESS_FAMILY_IPV4 : ADDRESS_FAMILY_IPV6;
	memcpy(row.address.bytes, mnl_attr_get_payload(address), length);
	row.interface = m->ifa_index;
	row.length = m->ifa_prefixlen;
	row.usable = !(flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED));
	*ret = row;
	return true;
}

/* ---- dump ---- */

struct dump {
	struct table table;
	int error; /* of the table, negative errno */
};

static int on_dump_message(const struct nlmsghdr *nlh, void *userdata)
{
	struct dump *d = userdata;
	struct row row;

	if (nlh->nlmsg_type != RTM_NEWADDR || !row_from_message(nlh, &row))
		return MNL_CB_OK;
	d->error = table_reserve(&d->table);
	if (d->error < 0)
		return MNL_CB_STOP;
	d->table.rows[d->table.n++] = row;
	return MNL_CB_OK;
}

static int request_dump(struct mnl_socket *nl)
{
	char buf[NLMSG_HDRLEN + MNL_ALIGN(sizeof(struct ifaddrmsg))];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifaddrmsg *m = mnl_nlmsg_put_extra_header(nlh, sizeof(*m));

	nlh->nlmsg_type = RTM_GETADDR;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = 1;
	m->ifa_family = AF_UNSPEC;
	return mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0 ? -errno : 0;
}

/* One dump. 0, -EINTR when it must be repeated, or another negative errno. */
static int dump_once(struct dump *d)
{
	_cleanup_(mnl_socket_closep) struct mnl_socket *nl =
		mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	/* 32 KiB is what the kernel fills at most in one message of a dump. */
	char buf[32768];
	int r;

	d->table.n = 0;
	d->error = 0;
	if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	r = request_dump(nl);
	if (r < 0)
		return r;
	r = MNL_CB_OK;
	do {
		/* The kernel writes the next part when one is read: there is nothing to wait for.
		 */
		ssize_t n = mnl_socket_recvfrom(nl, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		r = netlink_run(buf, (size_t)n, 1, mnl_socket_get_portid(nl), on_dump_message, d);
		if (r < 0)
			return -errno; /* EINTR for NLM_F_DUMP_INTR */
		if (d->error < 0)
			return d->error;
	} while (r > MNL_CB_STOP);
	return 0;
}

/* Takes the kernel's whole table. 1 when it differs from ours, 0 when not, negative errno. */
static int take_dump(struct addresses *a)
{
	struct dump d = {0};
	int r = -EINTR;
	bool differs;

	for (int i = 0; r == -EINTR && i < DUMP_TRIES; i++)
		r = dump_once(&d);
	if (r < 0) {
		free(d.table.rows);
		return r;
	}
	if (d.table.n > 0)
		qsort(d.table.rows, d.table.n, sizeof(*d.table.rows), compare_rows);
	differs = !a->known || !table_equal(&a->table, &d.table);
	free(a->table.rows);
	a->table = d.table;
	a->known = true;
	return differs;
}

static void arm_timer(struct addresses *a, uint64_t us)
{
	if (sd_event_source_set_time_relative(a->timer, us) >= 0)
		(void)sd_event_source_set_enabled(a->timer, SD_EVENT_ONESHOT);
}

/* As take_dump(), with its failure told and tried again soon: 1 or 0. */
static int redump(struct addresses *a)
{
	int r = take_dump(a);

	arm_timer(a, r < 0 ? RETRY_US : REDUMP_US);
	if (r >= 0) {
		a->failed = false;
		return r;
	}
	if (!a->failed)
		log_warning("addresses: cannot ask the kernel: %s%s", strerror(-r),
			a->known ? "; what was known stands" : "");
	a->failed = true;
	return 0;
}

/* ---- changes ---- */

struct change {
	struct addresses *a;
	bool changed, failed;
};

static int on_change_message(const struct nlmsghdr *nlh, void *userdata)
{
	struct change *c = userdata;
	struct row row;
	int r = 0;

	if (!row_from_message(nlh, &row))
		return MNL_CB_OK;
	if (nlh->nlmsg_type == RTM_NEWADDR)
		r = table_put(&c->a->table, &row);
	else if (nlh->nlmsg_type == RTM_DELADDR)
		r = table_remove(&c->a->table, &row);
	if (r < 0)
		c->failed = true;
	else if (r > 0)
		c->changed = true;
	return MNL_CB_OK;
}

/* Reads all that is queued. False when something was lost. */
static bool drain(struct addresses *a, struct change *c)
{
	char buf[16384];
	bool complete = true;

	for (;;) {
		ssize_t n = mnl_socket_recvfrom(a->changes, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return complete && !c->failed;
		if (n < 0 && errno != ENOBUFS && errno != ENOSPC) {
			log_warning("addresses: netlink: %s", strerror(errno));
			return false;
		}
		if (n < 0 || netlink_run(buf, (size_t)n, 0, 0, on_change_message, c) < 0)
			complete = false;
	}
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct addresses *a = userdata;
	struct change c = {.a = a};
	bool complete = drain(a, &c);

	if ((!complete || !a->known) && redump(a) > 0)
		c.changed = true;
	if (c.changed)
		a->changed(a->userdata);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct addresses *a = userdata;

	if (redump(a) > 0)
		a->changed(a->userdata);
	return 0;
}

static int open_changes(struct addresses *a, sd_event *event)
{
	int r, size = RECEIVE_BUFFER, fd;

	a->changes = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!a->changes || mnl_socket_bind(a->changes, RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
				   MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	fd = mnl_socket_get_fd(a->changes);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	r = sd_event_add_io(event, &a->io, fd, EPOLLIN, on_io, a);
	if (r < 0)
		return r;
	return sd_event_source_set_description(a->io, "addresses");
}

int addresses_new(
	struct addresses **ret, sd_event *event, void (*changed)(void *userdata), void *userdata)
{
	_cleanup_(addresses_freep) struct addresses *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->changed = changed;
	a->userdata = userdata;
	/* Listening comes first, so that no change falls between the dump and it. */
	r = open_changes(a, event);
	if (r < 0)
		return r;
	r = sd_event_add_time(event, &a->timer, CLOCK_BOOTTIME, UINT64_MAX, RETRY_US, on_timer, a);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(a->timer, "addresses-dump");
	(void)redump(a);
	*ret = TAKE_PTR(a);
	return 0;
}

void addresses_free(struct addresses *a)
{
	if (!a)
		return;
	sd_event_source_disable_unref(a->io);
	sd_event_source_disable_unref(a->timer);
	if (a->changes)
		(void)mnl_socket_close(a->changes);
	free(a->table.rows);
	free(a);
}

enum addresses_answer addresses_in(const struct addresses *a, const struct prefix *prefix)
{
	const struct row key = {.address = prefix->address};

	if (!a->known)
		return ADDRESSES_UNKNOWN;
	for (size_t i = table_find(&a->table, &key); i < a->table.n; i++) {
		if (!prefix_contains(prefix, &a->table.rows[i].address))
			break;
		if (a->table.rows[i].usable)
			return ADDRESSES_PRESENT;
	}
	return ADDRESSES_MISSING;
}

bool addresses_read_now(struct addresses *a)
{
	struct change c = {.a = a};

	if (!drain(a, &c) && redump(a) > 0)
		c.changed = true;
	return c.changed;
}

bool addresses_await(struct addresses *a, unsigned ms)
{
	struct pollfd fd = {.fd = mnl_socket_get_fd(a->changes), .events = POLLIN};

	return poll(&fd, 1, (int)ms) > 0 && addresses_read_now(a);
}

void addresses_held(const struct addresses *a, const struct address *address, uint32_t interface,
	struct addresses_held *ret)
{
	const struct row key = {.address = *address};

	*ret = (struct addresses_held){.known = a->known};
	for (size_t i = table_find(&a->table, &key); i < a->table.n; i++) {
		const struct row *row = &a->table.rows[i];
		bool host = row->length == (address->family == ADDRESS_FAMILY_IPV4 ? 32 : 128);

		if (!address_equal(&row->address, address))
			break;
		if (row->interface == interface && host) {
			ret->here = true;
			ret->here_usable = row->usable;
		} else if (row->marked) {
			ret->ours_apart = true;
		}
		ret->ours = ret->ours || row->marked;
		ret->others = ret->others || (row->usable && !row->marked);
	}
}

bool addresses_marked(const struct addresses *a, size_t *at, struct addresses_place *ret)
{
	for (; *at < a->table.n; (*at)++) {
		const struct row *row = &a->table.rows[*at];

		if (!row->marked)
			continue;
		*ret = (struct addresses_place){.address = row->address,
			.interface = row->interface,
			.length = row->length};
		(*at)++;
		return true;
	}
	return false;
}

size_t addresses_first(const struct addresses *a, const struct address *address)
{
	const struct row key = {.address = *address};

	return table_find(&a->table, &key);
}
