/*
 * Commands to BIRD and their replies: the part that both ways to BIRD share, and the Unix socket.
 *
 * BIRD answers commands of one connection in order, so that a queue is all the bookkeeping there
 * is: a command goes to its tail, a reply answers its head. One timer watches over the greeting and
 * then over the head: it starts when a command becomes the head, so that a long queue is not held
 * against BIRD, but a reply that drips is. Where the loop was late, what lies there is read first,
 * and BIRD, which may have stood still as well (a suspended machine), gets the lost time back once,
 * at most as much as it has anyhow. Asynchronous lines have no place in the queue.
 *
 * A withdrawal must leave also when no memory is to be had. So the records of the first
 * CLIENT_SPARES short commands and room for their bytes are there from the start, and lie ready
 * again when they are answered; longer ones, and those of a long queue, are allocated.
 *
 * Callbacks may do anything, client_free() included; see client_private.h for how that is kept
 * safe. The connection is given up at the first thing that is not as it should be; whoever owns the
 * client makes a new one. It must not reconnect, retry or judge a reply.
 *
 * A Unix socket connects at once or not at all (connect(2): EAGAIN means that BIRD's backlog is
 * full, and nothing would tell when it no longer is).
 */
#include "agent/bird/client.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "agent/base/clock.h"
#include "agent/base/printable.h"
#include "agent/bird/client_private.h"

#define CLIENT_OUTPUT_MAX (1024U * 1024) /* bytes that BIRD has not taken yet */
/*
 * Bytes of commands that BIRD is given before it has answered all of them. It reads into a buffer
 * of 1,024 bytes that is emptied only when every command in it has been worked off, and takes the
 * read of 0 bytes into a full one for the end of the connection (sysdep/unix/main.c, cli_connect
 * and cli_get_command; sysdep/unix/io.c, sk_read; seen on 2.0.12).
 */
#define CLIENT_BATCH_MAX 1000
#define CLIENT_READ_SIZE 16384
#define CLIENT_READS_MAX 64 /* in one go, so that other sources get their turn */
#define CLIENT_TIMER_ACCURACY_US 1000
#define CLIENT_LATE_US 100000
#define CLIENT_VERSION_MAX 32
#define CLIENT_QUOTED_MAX 120 /* of a reply in an error */

/* --- life and callbacks --- */

static void client_destroy_list(struct client_command *list)
{
	while (list) {
		struct client_command *command = list;

		list = command->next;
		free(command);
	}
}

static void client_destroy(struct client *c)
{
	client_destroy_list(c->head);
	client_destroy_list(c->spares);
	sd_event_source_disable_unref(c->deadline);
	sd_event_source_disable_unref(c->loss);
	sd_event_unref(c->event);
	reply_parser_free(c->parser);
	free(c->path);
	free(c);
}

void client_enter(struct client *c)
{
	c->entered++;
}

void client_leave(struct client *c)
{
	assert(c->entered > 0);
	if (--c->entered == 0 && c->freed)
		client_destroy(c);
}

static void client_close(struct client *c)
{
	(void)sd_event_source_set_enabled(c->deadline, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(c->loss, SD_EVENT_OFF);
	c->link->close(c);
}

void client_free(struct client *c)
{
	if (!c)
		return;
	assert(!c->freed);
	c->freed = true;
	if (!c->lost)
		client_close(c);
	if (c->entered == 0)
		client_destroy(c);
}

/* Takes the head out of the queue. */
static struct client_command *client_pop(struct client *c)
{
	struct client_command *command = c->head;

	c->head = command->next;
	if (!c->head)
		c->tail = &c->head;
	c->waiting--;
	return command;
}

static void client_put_back(struct client *c, struct client_command *command)
{
	if (!command->spare) {
		free(command);
		return;
	}
	command->next = c->spares;
	c->spares = command;
}

/* Inside client_enter(): the callback may free the client. */
static void client_answer(
	struct client *c, struct client_command *command, int error, const struct reply *reply)
{
	if (command->fn)
		command->fn(command->userdata, error, reply);
	client_put_back(c, command);
}

static void client_lose_with(struct client *c, int error, const struct error *text)
{
	struct error copy = *text; /* of a struct that may go with the client */

	assert(error > 0);
	if (client_is_over(c))
		return;
	client_enter(c);
	c->lost = true;
	client_close(c);
	while (c->head && !c->freed)
		client_answer(c, client_pop(c), -error, NULL);
	if (!c->freed)
		c->ops.lost(c->ops.userdata, -error, copy.text);
	client_leave(c);
}

void client_lose(struct client *c, int error, const char *format, ...)
{
	struct error text;
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text.text, sizeof(text.text), format, ap);
	va_end(ap);
	client_lose_with(c, error, &text);
}

void client_lose_later(struct client *c, int error, const char *format, ...)
{
	va_list ap;

	assert(error > 0);
	if (client_is_over(c) || c->loss_error)
		return;
	va_start(ap, format);
	(void)vsnprintf(c->loss_text.text, sizeof(c->loss_text.text), format, ap);
	va_end(ap);
	c->loss_error = error;
	(void)sd_event_source_set_enabled(c->loss, SD_EVENT_ONESHOT);
}

static int client_on_loss(sd_event_source *s, void *userdata)
{
	struct client *c = userdata;

	client_lose_with(c, c->loss_error, &c->loss_text);
	return 0;
}

/* --- deadline --- */

static void client_set_deadline(struct client *c, uint64_t at)
{
	c->deadline_at = at;
	(void)sd_event_source_set_time(c->deadline, at);
	(void)sd_event_source_set_enabled(c->deadline, SD_EVENT_ONESHOT);
}

/* Milliseconds that whatever is waited for now has. */
static uint64_t client_deadline_ms(const struct client *c)
{
	return c->greeted ? c->head->deadline_ms : CLIENT_DEADLINE_MS;
}

/* Starts the time of whatever is waited for now. */
static void client_watch(struct client *c)
{
	c->extended = false;
	if (c->greeted && !c->head)
		(void)sd_event_source_set_enabled(c->deadline, SD_EVENT_OFF);
	else
		client_set_deadline(c, monotime_add_ms(clock_monotime(), client_deadline_ms(c)).us);
}

/* The deadline of what is still waited for has passed. */
static void client_overdue(struct client *c, uint64_t now)
{
	uint64_t late = now - c->deadline_at, most = client_deadline_ms(c) * 1000;

	if (!c->extended && late > CLIENT_LATE_US) {
		c->extended = true;
		client_set_deadline(c, now + (late < most ? late : most));
	} else if (!c->greeted) {
		client_lose(c, ETIMEDOUT,
			"bird: %s: no greeting within %d ms (BIRD runs, but does not answer)",
			c->path, CLIENT_DEADLINE_MS);
	} else {
		client_lose(c, ETIMEDOUT, "bird: %s: no reply to `%s` within %llu ms", c->path,
			c->head->text, (unsigned long long)c->head->deadline_ms);
	}
}

static int client_on_deadline(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct client *c = userdata;
	uint64_t now;

	client_enter(c);
	/* It may be us who are late: what BIRD has said in time lies in the socket. */
	c->link->receive(c);
	now = clock_monotime().us;
	if (!client_is_over(c) && (!c->greeted || c->head) && now >= c->deadline_at)
		client_overdue(c, now);
	client_leave(c);
	return 0;
}

/* --- what comes --- */

/* Loses the connection over a reply that has no place; `why` leads to it. */
static void client_refuse(struct client *c, const struct reply *reply, const char *why)
{
	char quoted[CLIENT_QUOTED_MAX];

	printable_copy(quoted, sizeof(quoted), reply->text, strlen(reply->text));
	client_lose(c, EBADMSG, "bird: %s: %s: \"%04d %s\"", c->path, why, reply->code, quoted);
}

/* The version in "BIRD 2.0.12 ready.", or false. */
static bool client_version(const char *greeting, char version[CLIENT_VERSION_MAX])
{
	const char *start, *end;

	if (strncmp(greeting, "BIRD ", strlen("BIRD ")) != 0)
		return false;
	start = greeting + strlen("BIRD ");
	end = strstr(start, " ready.");
	if (!end || end == start || end - start >= CLIENT_VERSION_MAX)
		return false;
	for (const char *at = start; at < end; at++)
		if (*at <= ' ' || *at > '~')
			return false;
	(void)snprintf(version, CLIENT_VERSION_MAX, "%.*s", (int)(end - start), start);
	return true;
}

static void client_greet(struct client *c, const struct reply *reply)
{
	char version[CLIENT_VERSION_MAX];

	if (reply->code != 1 || !client_version(reply->text, version)) {
		client_refuse(c, reply, "expected a BIRD's greeting, got");
		return;
	}
	c->greeted = true;
	client_watch(c);
	c->ops.greeted(c->ops.userdata, version);
}

static void client_on_reply(void *userdata, const struct reply *reply)
{
	struct client *c = userdata;
	struct client_command *command;

	if (client_is_over(c))
		return;
	if (!c->greeted) {
		client_greet(c, reply);
		return;
	}
	if (!c->head) {
		client_refuse(c, reply, "a reply that nobody asked for");
		return;
	}
	command = client_pop(c);
	client_watch(c);
	if (c->link->answered)
		c->link->answered(c, command);
	client_answer(c, command, 0, reply);
}

static void client_on_push(void *userdata, const char *text)
{
	struct client *c = userdata;

	if (!client_is_over(c) && c->ops.push)
		c->ops.push(c->ops.userdata, text);
}

void client_input(struct client *c, const char *data, size_t n)
{
	struct error error;
	int r;

	client_enter(c);
	r = reply_parser_feed(c->parser, data, n, &error);
	if (r < 0)
		client_lose(c, -r, "bird: %s: %s", c->path, error.text);
	client_leave(c);
}

/* --- beginning and sending --- */

static int client_add_spares(struct client *c)
{
	for (size_t i = 0; i < CLIENT_SPARES; i++) {
		struct client_command *command = malloc(sizeof(*command) + CLIENT_SPARE_SIZE);

		if (!command)
			return -ENOMEM;
		command->spare = true;
		client_put_back(c, command);
	}
	return 0;
}

int client_new(struct client **ret, sd_event *event, const char *socket_path,
	const struct client_ops *ops, const struct client_link *link, void *state)
{
	const struct reply_ops reply_ops = {.reply = client_on_reply, .push = client_on_push};
	struct reply_ops parser_ops = reply_ops;
	struct client *c = calloc(1, sizeof(*c));
	int r = -ENOMEM;

	if (!c)
		return -ENOMEM;
	parser_ops.userdata = c;
	c->link = link;
	c->state = state;
	c->event = sd_event_ref(event);
	c->ops = *ops;
	c->tail = &c->head;
	c->path = strdup(socket_path);
	c->parser = reply_parser_new(&parser_ops);
	if (c->path && c->parser)
		r = client_add_spares(c);
	if (r >= 0)
		r = sd_event_add_time(event, &c->deadline, CLOCK_BOOTTIME, 0,
			CLIENT_TIMER_ACCURACY_US, client_on_deadline, c);
	if (r >= 0)
		r = sd_event_source_set_enabled(c->deadline, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_defer(event, &c->loss, client_on_loss, c);
	if (r >= 0)
		r = sd_event_source_set_enabled(c->loss, SD_EVENT_OFF);
	if (r < 0) {
		client_destroy(c);
		return r;
	}
	(void)sd_event_source_set_description(c->deadline, "bird-client-deadline");
	(void)sd_event_source_set_description(c->loss, "bird-client-loss");
	*ret = c;
	return 0;
}

void client_begin(struct client *c)
{
	client_watch(c);
}

/* The command at the tail of the queue, not linked yet; NULL: no memory. */
static struct client_command *client_command_new(struct client *c, const char *format, va_list ap)
{
	struct client_command *command;
	char text[CLIENT_COMMAND_MAX];
	int n = vsnprintf(text, sizeof(text), format, ap);

	assert(n > 0 && n < CLIENT_COMMAND_MAX);
	assert(!strchr(text, '\n'));
	if (c->spares && n < CLIENT_SPARE_SIZE) {
		command = c->spares;
		c->spares = command->next;
		*command = (struct client_command){.spare = true};
	} else {
		command = malloc(sizeof(*command) + (size_t)n + 1);
		if (!command)
			return NULL;
		*command = (struct client_command){0};
	}
	memcpy(command->text, text, (size_t)n + 1);
	return command;
}

bool client_is_sound(const struct client *c)
{
	return !client_is_over(c) && !c->loss_error;
}

int client_send(struct client *c, uint64_t deadline_ms, client_reply_fn fn, void *userdata,
	const char *command_format, ...)
{
	struct client_command *command, **before = c->tail;
	va_list ap;
	int r;

	if (client_is_over(c) || !c->greeted || c->loss_error)
		return -ENOTCONN;
	if (c->waiting >= CLIENT_WAITING_MAX)
		return -ENOBUFS;
	va_start(ap, command_format);
	command = client_command_new(c, command_format, ap);
	va_end(ap);
	if (!command)
		return -ENOMEM;
	command->deadline_ms = deadline_ms ? deadline_ms : CLIENT_DEADLINE_MS;
	command->fn = fn;
	command->userdata = userdata;
	*before = command;
	c->tail = &command->next;
	c->waiting++;

	r = c->link->send(c, command);
	if (r < 0) {
		*before = NULL;
		c->tail = before;
		c->waiting--;
		client_put_back(c, command);
		return r;
	}
	if (c->head == command)
		client_watch(c);
	return 0;
}

size_t client_waiting(const struct client *c)
{
	return c->waiting;
}

/* --- the socket --- */

struct socket_link {
	int fd;
	sd_event_source *io;
	struct buffer out;
	size_t released;   /* bytes at the front of `out`, whole commands, that may be written */
	size_t batch;	   /* bytes released since BIRD last had nothing to do */
	size_t unanswered; /* bytes of released commands that wait for their replies */
};

static void socket_link_free(struct socket_link *s)
{
	sd_event_source_disable_unref(s->io);
	closep(&s->fd);
	buffer_done(&s->out);
	free(s);
}
DEFINE_CLEANUP_PTR(struct socket_link *, socket_link_free)

static void socket_close(struct client *c)
{
	socket_link_free(c->state);
	c->state = NULL;
}

static void socket_closed_text(const struct client *c, struct error *ret)
{
	if (!c->greeted)
		(void)error_set(ret, ECONNRESET, "bird: %s: closed before its greeting", c->path);
	else if (c->head)
		(void)error_set(ret, ECONNRESET, "bird: %s: closed before the reply to `%s`",
			c->path, c->head->text);
	else
		(void)error_set(ret, ECONNRESET, "bird: %s: closed by BIRD", c->path);
}

/* Releases the next commands for writing, as far as the batch has room; one goes in any case. */
static void socket_release(struct socket_link *s)
{
	const char *end;

	if (s->unanswered == 0)
		s->batch = 0;
	while (s->released < s->out.length &&
		(end = memchr(s->out.data + s->released, '\n', s->out.length - s->released))) {
		size_t n = (size_t)(end - s->out.data) + 1 - s->released;

		if (s->batch > 0 && s->batch + n > CLIENT_BATCH_MAX)
			return;
		s->released += n;
		s->batch += n;
		s->unanswered += n;
	}
}

/* Writes what may be written and BIRD takes. 0 or negative errno. */
static int socket_flush(struct socket_link *s)
{
	socket_release(s);
	while (s->released > 0) {
		ssize_t n = send(s->fd, s->out.data, s->released, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return -errno;
		buffer_consume(&s->out, (size_t)n);
		s->released -= (size_t)n;
	}
	return 0;
}

static void socket_want(struct socket_link *s)
{
	(void)sd_event_source_set_io_events(s->io, s->released > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Writes what it can, from where no callback is allowed. */
static void socket_push(struct client *c)
{
	struct socket_link *s = c->state;
	int r = socket_flush(s);

	if (r < 0)
		client_lose_later(c, -r, "bird: write to %s: %s", c->path, strerror(-r));
	else
		socket_want(s);
}

static int socket_send(struct client *c, const struct client_command *command)
{
	struct socket_link *s = c->state;
	size_t before = s->out.length;
	int r;

	r = buffer_append_string(&s->out, command->text);
	if (r == 0)
		r = buffer_append_string(&s->out, "\n");
	if (r < 0) {
		s->out.length = before;
		return r == -E2BIG ? -ENOBUFS : r;
	}
	/* With released bytes waiting, BIRD takes none now, and epoll will tell when. */
	if (s->released == 0)
		socket_push(c);
	return 0;
}

static void socket_answered(struct client *c, const struct client_command *command)
{
	struct socket_link *s = c->state;
	size_t n = strlen(command->text) + 1;

	/* A reply that came before its command was written would be a liar's. */
	s->unanswered -= n < s->unanswered ? n : s->unanswered;
	if (s->unanswered == 0 && s->released == 0 && s->out.length > 0)
		socket_push(c);
}

static void socket_receive(struct client *c)
{
	struct socket_link *s = c->state;
	char data[CLIENT_READ_SIZE];
	struct error text;

	for (int i = 0; i < CLIENT_READS_MAX && !client_is_over(c); i++) {
		ssize_t n = recv(s->fd, data, sizeof(data), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0 && errno != ECONNRESET) {
			client_lose(c, errno, "bird: read from %s: %s", c->path, strerror(errno));
			return;
		}
		if (n <= 0) {
			socket_closed_text(c, &text);
			client_lose(c, ECONNRESET, "%s", text.text);
			return;
		}
		client_input(c, data, (size_t)n);
	}
}

static int socket_on_io(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct client *c = userdata;
	struct socket_link *s = c->state;
	int r = 0;

	client_enter(c);
	/* Read first: what BIRD said before it closed is still worth hearing. */
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		socket_receive(c);
	if (!client_is_over(c) && (events & EPOLLOUT)) {
		r = socket_flush(s);
		if (r == 0)
			socket_want(s);
		else
			client_lose(c, -r, "bird: write to %s: %s", c->path, strerror(-r));
	}
	client_leave(c);
	return 0;
}

/* Why the usual causes happen. */
static const char *socket_hint(int errnum)
{
	switch (errnum) {
	case EACCES:
	case EPERM:
		return " (is the agent in group bird?)";
	case ENOENT:
		return " (is BIRD running, and is this the socket of its -s option?)";
	case ECONNREFUSED:
		return " (BIRD does not run: nobody listens there)";
	case EAGAIN:
		return " (BIRD hangs: it takes no more connections)";
	}
	return "";
}

/* The descriptor, or negative errno when there is none to have. A refused connect is no error here:
 * it is told from the loop. */
static int socket_connect(struct client *c, struct socket_link *s)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, c->path, strlen(c->path));
	if (connect(s->fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return 0;
	client_lose_later(
		c, errno, "bird: connect %s: %s%s", c->path, strerror(errno), socket_hint(errno));
	return -errno;
}

int client_new_socket(
	struct client **ret, sd_event *event, const char *socket_path, const struct client_ops *ops)
{
	static const struct client_link link = {
		.send = socket_send,
		.answered = socket_answered,
		.receive = socket_receive,
		.close = socket_close,
	};
	_cleanup_(socket_link_freep) struct socket_link *s = calloc(1, sizeof(*s));
	struct client *c;
	int r;

	if (!s)
		return -ENOMEM;
	s->fd = -1;
	buffer_init(&s->out, CLIENT_OUTPUT_MAX);
	if (buffer_reserve(&s->out, CLIENT_SPARES * CLIENT_SPARE_SIZE) < 0)
		return -ENOMEM;
	if (strlen(socket_path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return -ENAMETOOLONG;
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	r = client_new(&c, event, socket_path, ops, &link, s);
	if (r < 0)
		return r;
	if (socket_connect(c, s) == 0) {
		r = sd_event_add_io(event, &s->io, s->fd, EPOLLIN, socket_on_io, c);
		if (r >= 0)
			r = sd_event_source_set_description(s->io, "bird-client-socket");
		client_begin(c);
	}
	TAKE_PTR(s);
	if (r < 0) {
		client_free(c);
		return r;
	}
	*ret = c;
	return 0;
}
