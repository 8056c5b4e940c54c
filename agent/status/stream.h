#ifndef REDSHANK_STATUS_STREAM_H
#define REDSHANK_STATUS_STREAM_H
/*
 * GET /v1/events as a stream of server-sent events (HTML Living Standard, 9.2), for as long as the
 * client stays: each event as it is recorded, `data:` is the event's JSON on one line and `id:` its
 * life and number, with which a client resumes (Last-Event-ID). A comment now and then shows that
 * the agent lives. http.c is the only caller.
 *
 * Streams are bounded in number for each listener, and in what each may hold; who does not read is
 * shut out. What waits for a stream lies in the ring of events and nowhere else.
 */
#include <microhttpd.h>
#include <systemd/sd-event.h>

#include "agent/status/history.h"

#define STREAMS_MAX 16 /* of each listener */
#define STREAM_LISTENERS 2
#define STREAM_HEARTBEAT_MS 15000
#define STREAM_SLOW_MS 10000 /* in which a reader must have taken what there was */

struct stream_ops {
	/* Streams were resumed: libmicrohttpd is to run. From the loop. */
	void (*resumed)(void *userdata);
	void *userdata;
};

struct streams;

/* `priority`: of the loop. Heap. 0 or negative errno. */
int streams_new(
	struct streams **ret, sd_event *event, int64_t priority, const struct stream_ops *ops);
/* Before MHD_stop_daemon(): each stream gets what was recorded last, and ends, as far as its socket
 * takes it at once. Runs `daemon`. */
void streams_end(struct streams *s, struct MHD_Daemon *daemon);
/* After it. */
void streams_free(struct streams *s);

/* Whether a request wants the stream and not the document. */
bool stream_is_wanted(struct MHD_Connection *connection);

/*
 * The response that streams from `query` on, for the connection of socket `fd` on the listener.
 * The caller queues it and drops its reference. NULL: no memory, or *ret_too_many of them.
 */
struct MHD_Response *stream_begin(struct streams *s, struct MHD_Connection *connection, int fd,
	unsigned listener, const struct history_query *query, bool *ret_too_many);

struct stream_counts {
	unsigned open;
	uint64_t begun;
	uint64_t slow; /* shut out */
};
struct stream_counts streams_count(const struct streams *s);

#endif
