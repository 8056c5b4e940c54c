/*
 * The udp check: a datagram goes out, and what is expected comes back.
 *
 * One attempt is one connected socket and one datagram. Being connected, the socket hears of nobody
 * but its peer, and the kernel hands it the ICMP error of a port that nobody listens on at once;
 * being new, it hears nothing of what an earlier attempt has caused.
 *
 * Without `expect`, silence has to do: UDP does not say that anybody has taken the datagram. An
 * attempt then waits for an ICMP error for half of the timeout, and is good where none has come.
 * That is weak evidence, as the reason says: a service that hangs passes, and so does one that is
 * gone while a firewall swallows the errors.
 */
#include "probes/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/address.h"
#include "agent/base/clock.h"
#include "probes/peer.h"
#include "probes/settings.h"

/* How much of an answer is looked through, and how much of it is shown. */
#define ANSWER_MAX 4096
#define SHOWN_MAX 48

struct udp {
	int fd; /* -1 between attempts */
	sd_event_source *io;
	sd_event_source *silence; /* the end of the wait, without `expect` */
};

static const struct schema_key udp_keys[] = {
	{.name = "address",
		.kind = SCHEMA_ADDRESS,
		SCHEMA_FIELD(struct udp_settings, address),
		.required = true,
		.meaning = "where to send to, an address literal"},
	{.name = "port",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct udp_settings, port),
		.required = true,
		.minimum = 1,
		.maximum = 65535,
		.meaning = "UDP port"},
	{.name = "send",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct udp_settings, send),
		.minimum = 1,
		.maximum = 4096,
		.meaning = "what the datagram holds"},
	{.name = "expect",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct udp_settings, expect),
		.minimum = 1,
		.maximum = 1024,
		.meaning = "what the first 4,096 bytes of the reply must contain"},
	SCHEMA_END,
};

static const struct schema udp_schema = {.size = sizeof(struct udp_settings), .keys = udp_keys};

static int udp_validate(const void *settings, struct error *ret_error)
{
	const struct udp_settings *s = settings;

	return peer_validate("address", &s->address, ret_error);
}

static int udp_open(struct probe *p)
{
	struct udp *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->fd = -1;
	p->state = u;
	return 0;
}

static void udp_drop(struct udp *u)
{
	u->io = sd_event_source_disable_unref(u->io);
	u->silence = sd_event_source_disable_unref(u->silence);
	if (u->fd >= 0)
		(void)close(u->fd);
	u->fd = -1;
}

static void udp_cancel(struct probe *p)
{
	udp_drop(p->state);
}

static void udp_close(struct probe *p)
{
	udp_drop(p->state);
	free(p->state);
	p->state = NULL;
}

static void fail_errno(struct probe *p, const char *what, int errnum)
{
	const struct udp_settings *s = p->settings;
	char text[ADDRESS_TEXT_MAX];

	udp_drop(p->state);
	if (errnum == ECONNREFUSED) /* ICMP, RFC 1122, 4.1.3.3 */
		probe_report(p, CHECK_OUTCOME_BAD, "%s port %u: port unreachable",
			address_format(&s->address, text), (unsigned)s->port);
	else
		probe_report(p, probe_outcome_of_errno(errnum), "%s: %s", what, strerror(errnum));
}

static void judge(struct probe *p, const char *answer, size_t n)
{
	const struct udp_settings *s = p->settings;
	size_t shown = n < SHOWN_MAX ? n : SHOWN_MAX;

	udp_drop(p->state);
	if (!s->expect || memmem(answer, n, s->expect, strlen(s->expect)))
		probe_report(p, CHECK_OUTCOME_GOOD, "%s", "");
	else
		probe_report(p, CHECK_OUTCOME_BAD, "expected \"%.48s\", got \"%.*s\"%s", s->expect,
			(int)shown, answer, n > shown ? "..." : "");
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct probe *p = userdata;
	struct udp *u = p->state;
	char answer[ANSWER_MAX];
	ssize_t n = recv(u->fd, answer, sizeof(answer), 0);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		fail_errno(p, "receive", errno);
	else
		judge(p, answer, (size_t)n);
	return 0;
}

static int on_silence(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct probe *p = userdata;

	udp_drop(p->state);
	probe_report(p, CHECK_OUTCOME_GOOD, "sent; no answer is expected: weak evidence");
	return 0;
}

/* Behind I/O, so that an error that lies there is seen first, and ahead of the deadline. */
static int wait_for_silence(struct probe *p)
{
	struct udp *u = p->state;
	struct monotime end = {clock_monotime().us + p->timeout_ms * 1000 / 2};
	int r = sd_event_add_time(
		p->host->event, &u->silence, CLOCK_BOOTTIME, end.us, 1000, on_silence, p);

	if (r < 0)
		return r;
	(void)sd_event_source_set_description(u->silence, "check-udp-silence");
	return sd_event_source_set_priority(u->silence, PROBE_PRIORITY_DEADLINE - 1);
}

static void udp_begin(struct probe *p)
{
	const struct udp_settings *s = p->settings;
	struct udp *u = p->state;
	size_t length = s->send ? strlen(s->send) : 0;
	struct error error;
	int r = peer_connect(SOCK_DGRAM, &s->address, s->port, &u->fd, &error);

	if (r < 0) {
		probe_report(p, probe_outcome_of_errno(-r), "%s", error.text);
		return;
	}
	if (send(u->fd, s->send, length, MSG_NOSIGNAL) < 0) {
		fail_errno(p, "send", errno);
		return;
	}
	r = sd_event_add_io(p->host->event, &u->io, u->fd, EPOLLIN, on_io, p);
	if (r >= 0)
		r = sd_event_source_set_description(u->io, "check-udp");
	if (r >= 0 && !s->expect)
		r = wait_for_silence(p);
	if (r < 0)
		fail_errno(p, "epoll", -r);
}

const struct probe_type probe_type_udp = {
	.name = "udp",
	.settings = &udp_schema,
	.validate = udp_validate,
	.open = udp_open,
	.begin = udp_begin,
	.cancel = udp_cancel,
	.close = udp_close,
};
