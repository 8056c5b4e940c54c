/*
 * A stream is a response without an end: libmicrohttpd asks for its next bytes whenever the socket
 * takes some. While there are none the connection is suspended, which takes it out of
 * libmicrohttpd's epoll; an event that is recorded, or a heartbeat that is due, resumes it, from
 * the loop and after all that is urgent. A suspended connection does not see its client go, so each
 * stream also watches its socket for that: else a page that is loaded again and again would use up
 * the places.
 *
 * Each stream copies what it sends next into a buffer of its own: the ring may forget an event
 * while half of it is sent. A stream that the ring has overtaken is told how many events it missed.
 *
 * One timer serves all: for the heartbeats of those that wait, and for the end of those that do not
 * read. How long one may take is counted from the last bytes it took, so what a slow reader holds
 * is its place, the buffer and what the kernel has for its socket.
 */
#include "agent/status/stream.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "agent/base/buffer.h"
#include "agent/base/clock.h"
#include "agent/events/events.h"

#define STREAM_BUFFER (EVENT_TEXT_MAX + 256)
#define STREAM_RETRY_MS 1000 /* after which a browser connects again */

struct stream {
	struct streams *streams;
	struct MHD_Connection *connection;
	sd_event_source *watch; /* of the socket, for the client's end */
	int fd;			/* libmicrohttpd's */
	unsigned listener;
	bool suspended;
	bool gone;		  /* the client is */
	uint64_t next;		  /* id of the event to send */
	uint64_t lost;		  /* to be told */
	struct monotime deadline; /* to take what there is; while not suspended */
	struct monotime heartbeat;
	size_t sent; /* of out */
	struct buffer out;
	char memory[STREAM_BUFFER];
};

struct streams {
	sd_event *event; /* borrowed: http's */
	int64_t priority;
	struct stream_ops ops;
	sd_event_source *news;
	sd_event_source *timer;
	bool ending;
	struct stream_counts counts;
	struct stream *streams[STREAM_LISTENERS * STREAMS_MAX];
};

/* --- what is sent --- */

/* An event of its own that was never recorded: what a reader missed. */
static void append_lost(struct stream *st)
{
	struct events_span span = events_span();
	char time[CLOCK_TEXT_MAX];

	(void)buffer_printf(&st->out,
		"data: {\"id\": %" PRIu64 ", \"instance\": \"%s\", \"time\": \"%s\", \"event\": "
		"\"lost\", \"level\": \"warning\", \"lost\": %" PRIu64 ", \"message\": \"%" PRIu64
		" events before the next are not kept any more\"}\n\n",
		st->next - 1, span.instance, clock_format(clock_walltime(), time), st->lost,
		st->lost);
	st->lost = 0;
}

/* Fills the empty buffer with what is next: as many events as it has room for. */
static void stream_fill(struct stream *st)
{
	struct events_span span = events_span();

	buffer_clear(&st->out);
	st->sent = 0;
	if (st->next < span.oldest) {
		st->lost += span.oldest - st->next;
		st->next = span.oldest;
	}
	if (st->lost > 0)
		append_lost(st);
	while (st->next <= span.newest) {
		size_t length = 0;
		const char *text = events_get(st->next, &length);

		if (length + 64 > st->out.maximum - st->out.length)
			return;
		(void)buffer_printf(&st->out, "id: %s-%" PRIu64 "\ndata: %s\n\n", span.instance,
			st->next++, text);
	}
}

static bool stream_has_more(const struct stream *st)
{
	return st->sent < st->out.length || st->next <= events_span().newest || st->lost > 0;
}

static void stream_wait(struct stream *st)
{
	st->suspended = true;
	MHD_suspend_connection(st->connection);
}

/* libmicrohttpd has room for `max` bytes. */
static ssize_t on_read(void *userdata, uint64_t position, char *to, size_t max)
{
	struct stream *st = userdata;
	struct monotime now = clock_monotime();
	size_t n;

	if (st->gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	st->deadline = monotime_add_ms(now, STREAM_SLOW_MS);
	if (st->sent == st->out.length)
		stream_fill(st);
	if (st->out.length == 0 && st->streams->ending)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (st->out.length == 0 && monotime_reached(st->heartbeat, now))
		(void)buffer_append_string(&st->out, ":\n\n");
	n = st->out.length - st->sent;
	if (n == 0) {
		stream_wait(st);
		return 0;
	}
	n = n < max ? n : max;
	memcpy(to, st->out.data + st->sent, n);
	st->sent += n;
	st->heartbeat = monotime_add_ms(now, STREAM_HEARTBEAT_MS);
	return (ssize_t)n;
}

/* --- the loop --- */

static void streams_arm(struct streams *s)
{
	struct monotime next = MONOTIME_NEVER;

	for (size_t i = 0; i < ELEMENTSOF(s->streams); i++) {
		const struct stream *st = s->streams[i];

		if (st)
			next = monotime_min(next, st->suspended ? st->heartbeat : st->deadline);
	}
	if (!monotime_is_never(next))
		(void)sd_event_source_set_time(s->timer, next.us);
	(void)sd_event_source_set_enabled(
		s->timer, monotime_is_never(next) ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

/* Resumes who has something to be told, shuts out who does not listen. */
static void streams_pump(struct streams *s)
{
	struct monotime now = clock_monotime();

	for (size_t i = 0; i < ELEMENTSOF(s->streams); i++) {
		struct stream *st = s->streams[i];

		if (!st)
			continue;
		if (!st->suspended && monotime_reached(st->deadline, now)) {
			s->counts.slow += st->gone ? 0 : 1;
			st->gone = true;
			st->deadline = MONOTIME_NEVER;
			(void)shutdown(st->fd, SHUT_RDWR);
		}
		if (st->suspended && (st->gone || s->ending || stream_has_more(st) ||
					     monotime_reached(st->heartbeat, now))) {
			st->suspended = false;
			st->deadline = monotime_add_ms(now, STREAM_SLOW_MS);
			MHD_resume_connection(st->connection);
		}
	}
	s->ops.resumed(s->ops.userdata);
	streams_arm(s);
}

static int on_news(sd_event_source *source, void *userdata)
{
	streams_pump(userdata);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t us, void *userdata)
{
	streams_pump(userdata);
	return 0;
}

static int on_client_end(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct stream *st = userdata;

	st->gone = true;
	(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
	streams_pump(st->streams);
	return 0;
}

/* From event_say(), wherever that is: only to be woken later. */
static void on_recorded(void *userdata)
{
	struct streams *s = userdata;

	if (s->counts.open > 0)
		(void)sd_event_source_set_enabled(s->news, SD_EVENT_ONESHOT);
}

/* --- a stream's life --- */

static void stream_free(void *userdata)
{
	struct stream *st = userdata;
	struct streams *s = st->streams;

	for (size_t i = 0; i < ELEMENTSOF(s->streams); i++)
		if (s->streams[i] == st) {
			s->streams[i] = NULL;
			s->counts.open--;
		}
	sd_event_source_disable_unref(st->watch);
	free(st);
}

bool stream_is_wanted(struct MHD_Connection *connection)
{
	const char *accept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);

	return accept && strcasestr(accept, "text/event-stream");
}

static struct stream **streams_place(struct streams *s, unsigned listener)
{
	struct stream **place = NULL;
	unsigned n = 0;

	for (size_t i = 0; i < ELEMENTSOF(s->streams); i++) {
		if (!s->streams[i])
			place = &s->streams[i];
		else if (s->streams[i]->listener == listener)
			n++;
	}
	return n < STREAMS_MAX ? place : NULL;
}

static int stream_watch(struct stream *st)
{
	struct streams *s = st->streams;
	unsigned timeout_ms = 2 * STREAM_HEARTBEAT_MS;
	int r;

	r = sd_event_add_io(s->event, &st->watch, st->fd, EPOLLRDHUP, on_client_end, st);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(st->watch, "status-stream");
	/* A client whose machine is gone acknowledges no heartbeat. No TCP: no matter. */
	(void)setsockopt(st->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
	return sd_event_source_set_priority(st->watch, s->priority);
}

static bool add_headers(struct MHD_Response *response)
{
	return MHD_add_response_header(
		       response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream") == MHD_YES &&
	       MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") ==
		       MHD_YES &&
	       MHD_add_response_header(response, "X-Accel-Buffering", "no") == MHD_YES &&
	       MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
}

/* Owned by the response, which frees it. */
static struct stream *stream_new(struct streams *s, struct MHD_Connection *connection, int fd,
	unsigned listener, const struct history_query *query)
{
	struct history_range range = history_find(query);
	struct stream *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	*st = (struct stream){
		.streams = s,
		.connection = connection,
		.fd = fd,
		.listener = listener,
		.next = range.first,
		.lost = range.lost,
		.deadline = monotime_add_ms(clock_monotime(), STREAM_SLOW_MS),
	};
	buffer_init_fixed(&st->out, st->memory, sizeof(st->memory));
	/* Something is sent at once, so that the client sees the head of the answer. */
	(void)buffer_printf(&st->out, "retry: %d\n\n", STREAM_RETRY_MS);
	if (stream_watch(st) < 0) {
		stream_free(st);
		return NULL;
	}
	return st;
}

struct MHD_Response *stream_begin(struct streams *s, struct MHD_Connection *connection, int fd,
	unsigned listener, const struct history_query *query, bool *ret_too_many)
{
	struct stream **place = streams_place(s, listener);
	struct MHD_Response *response;
	struct stream *st;

	*ret_too_many = !place;
	st = place ? stream_new(s, connection, fd, listener, query) : NULL;
	if (!st)
		return NULL;
	response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, STREAM_BUFFER, on_read, st, stream_free);
	if (!response) {
		stream_free(st);
		return NULL;
	}
	*place = st;
	s->counts.open++;
	s->counts.begun++;
	if (!add_headers(response)) {
		MHD_destroy_response(response);
		return NULL;
	}
	streams_arm(s);
	return response;
}

void streams_end(struct streams *s, struct MHD_Daemon *daemon)
{
	s->ending = true;
	events_watch(NULL, NULL);
	for (size_t i = 0; i < ELEMENTSOF(s->streams); i++) {
		struct stream *st = s->streams[i];

		if (st && st->suspended) {
			st->suspended = false;
			MHD_resume_connection(st->connection);
		}
	}
	for (int pass = 0; pass < 4; pass++)
		(void)MHD_run(daemon);
}

struct stream_counts streams_count(const struct streams *s)
{
	return s->counts;
}

void streams_free(struct streams *s)
{
	if (!s)
		return;
	assert(s->counts.open == 0);
	sd_event_source_disable_unref(s->news);
	sd_event_source_disable_unref(s->timer);
	free(s);
}

int streams_new(
	struct streams **ret, sd_event *event, int64_t priority, const struct stream_ops *ops)
{
	struct streams *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->event = event;
	s->priority = priority;
	s->ops = *ops;
	r = sd_event_add_defer(event, &s->news, on_news, s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->news, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_priority(s->news, priority);
	if (r >= 0)
		r = sd_event_add_time(
			event, &s->timer, CLOCK_BOOTTIME, UINT64_MAX, 1000, on_timer, s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_priority(s->timer, priority);
	if (r < 0) {
		streams_free(s);
		return r;
	}
	(void)sd_event_source_set_description(s->news, "status-news");
	(void)sd_event_source_set_description(s->timer, "status-streams");
	events_watch(on_recorded, s);
	*ret = s;
	return 0;
}
