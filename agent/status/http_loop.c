/*
 * The status server's connections: taken, bounded in number and time, and dropped; and what one
 * pass of the agent's loop does for them. http.c says why it is so.
 */
#include "agent/status/http_private.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/system/log.h"

/* --- connections --- */

struct http_connection *http_connection_by_fd(
	struct http *h, int fd, struct http_listener **ret_listener)
{
	for (size_t k = 0; k < HTTP_N_KINDS; k++)
		for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
			struct http_connection *c = &h->listeners[k].connections[i];

			if (!c->used || c->fd != fd)
				continue;
			*ret_listener = &h->listeners[k];
			return c;
		}
	return NULL;
}

static void connection_release(struct http_listener *l, struct http_connection *c)
{
	assert(l->n_connections > 0);
	*c = (struct http_connection){.fd = -1};
	l->n_connections--;
}

void http_on_connection(void *userdata, struct MHD_Connection *connection, void **socket_context,
	enum MHD_ConnectionNotificationCode code)
{
	struct http *h = userdata;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_listener *l;
	struct http_connection *c;

	assert(info);
	c = http_connection_by_fd(h, info->connect_fd, &l);
	assert(c);
	switch (code) {
	case MHD_CONNECTION_NOTIFY_STARTED:
		c->started = true;
		*socket_context = h;
		break;
	case MHD_CONNECTION_NOTIFY_CLOSED:
		shared_forget(h->status, connection);
		scrape_forget(h->scrape, connection);
		connection_release(l, c);
		break;
	}
}

/* Shuts what is past its deadline. Returns the next deadline. */
static struct monotime connections_expire(struct http *h, struct monotime now)
{
	struct monotime next = MONOTIME_NEVER;

	for (size_t k = 0; k < HTTP_N_KINDS; k++)
		for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
			struct http_connection *c = &h->listeners[k].connections[i];

			if (!c->used || c->shut)
				continue;
			if (!monotime_reached(c->deadline, now)) {
				next = monotime_min(next, c->deadline);
				continue;
			}
			c->shut = true;
			(void)shutdown(c->fd, SHUT_RDWR);
		}
	return next;
}

/* Drops what libmicrohttpd could not take and has closed without a word. */
static void connections_sweep(struct http *h)
{
	for (size_t k = 0; k < HTTP_N_KINDS; k++)
		for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
			struct http_connection *c = &h->listeners[k].connections[i];

			if (c->used && !c->started)
				connection_release(&h->listeners[k], c);
		}
}

/* --- the loop --- */

/* Lets each listener accept, or not: it is full, or rests. Returns when a resting one is due. */
static struct monotime listeners_arm(struct http *h, struct monotime now)
{
	struct monotime next = MONOTIME_NEVER;

	for (size_t k = 0; k < HTTP_N_KINDS; k++) {
		struct http_listener *l = &h->listeners[k];
		bool rests;

		if (!l->source)
			continue;
		if (monotime_reached(l->rests_until, now))
			l->rests_until = MONOTIME_NEVER;
		rests = !monotime_is_never(l->rests_until);
		if (rests)
			next = monotime_min(next, l->rests_until);
		(void)sd_event_source_set_enabled(
			l->source, rests || l->n_connections >= HTTP_CONNECTIONS_MAX ? SD_EVENT_OFF
										     : SD_EVENT_ON);
	}
	return next;
}

/* Waits for what comes next; what is past its deadline is told to go. */
static void http_arm(struct http *h)
{
	struct monotime now = clock_monotime(), next;
	MHD_UNSIGNED_LONG_LONG timeout_ms;

	next = monotime_min(connections_expire(h, now), listeners_arm(h, now));
	if (MHD_get_timeout(h->daemon, &timeout_ms) == MHD_YES)
		next = monotime_min(next, monotime_add_ms(now, timeout_ms));
	(void)sd_event_source_set_enabled(h->epoll_source, SD_EVENT_ON);
	if (!monotime_is_never(next))
		(void)sd_event_source_set_time(h->timer_source, next.us);
	(void)sd_event_source_set_enabled(
		h->timer_source, monotime_is_never(next) ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

static void http_rest(struct http *h, uint64_t us)
{
	h->rests = sd_event_source_set_time_relative(h->rest_source, us) >= 0 &&
		   sd_event_source_set_enabled(h->rest_source, SD_EVENT_ONESHOT) >= 0;
	if (!h->rests) {
		http_arm(h);
		return;
	}
	(void)sd_event_source_set_enabled(h->epoll_source, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(h->timer_source, SD_EVENT_OFF);
	for (size_t k = 0; k < HTTP_N_KINDS; k++)
		if (h->listeners[k].source)
			(void)sd_event_source_set_enabled(h->listeners[k].source, SD_EVENT_OFF);
}

/* One pass: whatever libmicrohttpd can do now. */
void http_pass(struct http *h)
{
	uint64_t began_us = clock_cpu_us(), rest_us;

	h->resumed = false;
	(void)connections_expire(h, clock_monotime());
	(void)MHD_run(h->daemon);
	connections_sweep(h);
	for (size_t k = 0; k < HTTP_N_KINDS; k++)
		h->listeners[k].explained = false;
	rest_us = pace_rest_us(
		&h->pace, clock_monotime(), clock_cpu_us() - began_us, HTTP_REST_MAX_US);
	if (rest_us > 0)
		http_rest(h, rest_us);
	else
		http_arm(h);
}

int http_on_rest_over(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct http *h = userdata;

	h->rests = false;
	if (h->resumed)
		http_pass(h);
	else
		http_arm(h);
	return 0;
}

int http_on_epoll(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	http_pass(userdata);
	return 0;
}

int http_on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	http_pass(userdata);
	return 0;
}

/* The process at the other end of a Unix socket; 0: not known. */
static pid_t connection_pid(int fd)
{
	struct caller caller;

	return caller_of(fd, (gid_t)-1, &caller) == 0 ? caller.pid : 0;
}

/* Has this process taken its share of a listener? One that leaks connections keeps nobody else
 * waiting, least of all who wants to know what is wrong. */
static bool listener_is_full_of(const struct http_listener *l, pid_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++)
		n += l->connections[i].used && l->connections[i].pid == pid;
	return pid != 0 && n >= HTTP_OF_ONE_MAX;
}

int http_on_accept(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct http_listener *l = userdata;
	struct http *h = l->http;
	struct sockaddr_storage peer = {0};
	socklen_t length = sizeof(peer);
	struct http_connection *c = NULL;
	pid_t pid;
	int client;

	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX && !c; i++)
		if (!l->connections[i].used)
			c = &l->connections[i];
	assert(c);
	client = accept4(fd, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (client < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			log_warning("status: accept: %m; the status socket rests for %u s",
				HTTP_REST_MS / 1000);
			l->rests_until = monotime_add_ms(clock_monotime(), HTTP_REST_MS);
			http_pass(h);
		}
		return 0;
	}
	pid = l == &h->listeners[HTTP_UNIX] ? connection_pid(client) : 0;
	if (listener_is_full_of(l, pid)) {
		(void)close(client);
		return 0;
	}
	/* libmicrohttpd fills it once in a pass: what many readers of long documents take of a pass
	 * stays well below a millisecond. Best effort. */
	(void)setsockopt(client, SOL_SOCKET, SO_SNDBUF, &(int){HTTP_SEND_BUFFER}, sizeof(int));
	*c = (struct http_connection){
		.used = true,
		.fd = client,
		.pid = pid,
		.deadline = monotime_add_ms(clock_monotime(), HTTP_DEADLINE_MS),
	};
	l->n_connections++;
	/* A client on an unnamed Unix socket has an address of no more than its family. */
	if (MHD_add_connection(h->daemon, client, (const struct sockaddr *)&peer, length) !=
			MHD_YES &&
		c->used)
		connection_release(l, c);
	http_pass(h);
	return 0;
}
