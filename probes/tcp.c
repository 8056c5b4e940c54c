/*
 * The tcp check: the service accepts a connection and, where configured, says what is expected.
 *
 * One attempt is one connection: connect, write all of `send`, read until `expect` was seen, close.
 * Many attempts never reach the loop, since connect(2) says at once that there is no route or that
 * nobody listens; they report from begin(). The runner holds the deadline.
 */
#include "probes/probe.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/address.h"
#include "probes/peer.h"
#include "probes/settings.h"

/* How much of an answer is looked through. */
#define ANSWER_MAX 4096

struct tcp {
	int fd; /* -1 between attempts */
	sd_event_source *io;
	bool connected;
	size_t sent;
	size_t n_answer;
	char answer[]; /* ANSWER_MAX where an answer is expected */
};

static const struct schema_key tcp_keys[] = {
	{.name = "address",
		.kind = SCHEMA_ADDRESS,
		SCHEMA_FIELD(struct tcp_settings, address),
		.required = true,
		.meaning = "where to connect to, an address literal"},
	{.name = "port",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct tcp_settings, port),
		.required = true,
		.minimum = 1,
		.maximum = 65535,
		.meaning = "TCP port"},
	{.name = "send",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct tcp_settings, send),
		.minimum = 1,
		.maximum = 4096,
		.meaning = "what to send once connected"},
	{.name = "expect",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct tcp_settings, expect),
		.minimum = 1,
		.maximum = 1024,
		.meaning = "what the first 4,096 bytes of the answer must contain"},
	SCHEMA_END,
};

static const struct schema tcp_schema = {.size = sizeof(struct tcp_settings), .keys = tcp_keys};

static int tcp_validate(const void *settings, struct error *ret_error)
{
	const struct tcp_settings *s = settings;

	return peer_validate("address", &s->address, ret_error);
}

static int tcp_open(struct probe *p)
{
	const struct tcp_settings *s = p->settings;
	struct tcp *t = calloc(1, sizeof(*t) + (s->expect ? ANSWER_MAX : 0));

	if (!t)
		return -ENOMEM;
	t->fd = -1;
	p->state = t;
	return 0;
}

static void tcp_drop(struct tcp *t)
{
	t->io = sd_event_source_disable_unref(t->io);
	if (t->fd >= 0)
		(void)close(t->fd);
	t->fd = -1;
}

static void tcp_cancel(struct probe *p)
{
	tcp_drop(p->state);
}

static void tcp_close(struct probe *p)
{
	tcp_drop(p->state);
	free(p->state);
	p->state = NULL;
}

static void fail_errno(struct probe *p, const char *what, int errnum)
{
	tcp_drop(p->state);
	probe_report(p, probe_outcome_of_errno(errnum), "%s: %s", what, strerror(errnum));
}

static void fail_error(struct probe *p, int r, const struct error *error)
{
	tcp_drop(p->state);
	probe_report(p, probe_outcome_of_errno(-r), "%s", error->text);
}

static void succeed(struct probe *p)
{
	tcp_drop(p->state);
	probe_report(p, CHECK_OUTCOME_GOOD, "%s", "");
}

static void fail_answer(struct probe *p, const char *end)
{
	const struct tcp_settings *s = p->settings;
	struct tcp *t = p->state;
	size_t shown = t->n_answer < 48 ? t->n_answer : 48;
	char start[49];

	memcpy(start, t->answer, shown);
	start[shown] = '\0';
	tcp_drop(t);
	if (t->n_answer == 0)
		probe_report(p, CHECK_OUTCOME_BAD, "expected \"%.48s\", %s without an answer",
			s->expect, end);
	else
		probe_report(p, CHECK_OUTCOME_BAD, "expected \"%.48s\", %s, got \"%s\"%s",
			s->expect, end, start, t->n_answer > shown ? "..." : "");
}

/* Writes what is left of `send`. True when all is written; false when the attempt waits or is over.
 */
static bool write_rest(struct probe *p)
{
	const struct tcp_settings *s = p->settings;
	struct tcp *t = p->state;
	size_t length = s->send ? strlen(s->send) : 0;

	while (t->sent < length) {
		ssize_t n = send(t->fd, s->send + t->sent, length - t->sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0) {
			fail_errno(p, "send", errno);
			return false;
		}
		t->sent += (size_t)n;
	}
	return true;
}

/* Reads once: the loop comes back while there is more. The attempt may be over on return. */
static void read_some(struct probe *p)
{
	const struct tcp_settings *s = p->settings;
	struct tcp *t = p->state;
	ssize_t n = recv(t->fd, t->answer + t->n_answer, ANSWER_MAX - t->n_answer, 0);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) {
		fail_errno(p, "receive", errno);
		return;
	}
	if (n == 0) {
		fail_answer(p, "the connection was closed");
		return;
	}
	t->n_answer += (size_t)n;
	if (memmem(t->answer, t->n_answer, s->expect, strlen(s->expect)))
		succeed(p);
	else if (t->n_answer == ANSWER_MAX)
		fail_answer(p, "not in the first 4096 bytes");
}

static void advance(struct probe *p)
{
	const struct tcp_settings *s = p->settings;
	struct tcp *t = p->state;
	struct error error;
	int r;

	if (!t->connected) {
		r = peer_connected(t->fd, &s->address, s->port, &error);
		if (r < 0) {
			fail_error(p, r, &error);
			return;
		}
		t->connected = true;
	}
	if (!write_rest(p))
		return;
	if (!s->expect) {
		succeed(p);
		return;
	}
	r = sd_event_source_set_io_events(t->io, EPOLLIN);
	if (r < 0)
		fail_errno(p, "epoll", -r);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct probe *p = userdata;
	const struct tcp_settings *s = p->settings;
	struct tcp *t = p->state;
	bool sending = !t->connected || (s->send && t->sent < strlen(s->send));

	if (sending)
		advance(p);
	else
		read_some(p);
	return 0;
}

static void tcp_begin(struct probe *p)
{
	const struct tcp_settings *s = p->settings;
	struct tcp *t = p->state;
	struct error error;
	int r;

	t->connected = false;
	t->sent = t->n_answer = 0;
	r = peer_connect(SOCK_STREAM, &s->address, s->port, &t->fd, &error);
	if (r < 0 && r != -EINPROGRESS) {
		fail_error(p, r, &error);
		return;
	}
	r = sd_event_add_io(p->host->event, &t->io, t->fd, EPOLLOUT, on_io, p);
	if (r < 0) {
		fail_errno(p, "epoll", -r);
		return;
	}
	(void)sd_event_source_set_description(t->io, "check-tcp");
}

const struct probe_type probe_type_tcp = {
	.name = "tcp",
	.settings = &tcp_schema,
	.validate = tcp_validate,
	.open = tcp_open,
	.begin = tcp_begin,
	.cancel = tcp_cancel,
	.close = tcp_close,
};
