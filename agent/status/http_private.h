#ifndef REDSHANK_STATUS_HTTP_PRIVATE_H
#define REDSHANK_STATUS_HTTP_PRIVATE_H
/* What http.c (answers, start and end) and http_loop.c (connections, passes of the loop) share. */
#include <microhttpd.h>

#include "agent/base/clock.h"
#include "agent/status/http.h"
#include "agent/status/listen.h"
#include "agent/status/pace.h"
#include "agent/status/scrape.h"
#include "agent/status/shared.h"
#include "agent/status/stream.h"
#include "agent/system/log.h"

#define HTTP_PRIORITY SD_EVENT_PRIORITY_IDLE
#define HTTP_CONNECTIONS_MAX 64 /* of each listener */
#define HTTP_OF_ONE_MAX 48     /* of them on the Unix socket, of one process: others have a place */
#define HTTP_REQUEST_MAX 8192  /* bytes of request line and headers */
#define HTTP_DEADLINE_MS 10000 /* from accept to the last byte */
#define HTTP_DOCUMENTS_MAX 4
#define HTTP_SEND_BUFFER 32768
#define HTTP_REST_MS 1000 /* of a listener whose accept failed */
#define HTTP_REST_MAX_US 20000
#define HTTP_ROUTES 8 /* what is counted apart: those below, commands, others */
#define HTTP_CODES 9  /* the same: those of http.c, the last for all others */

enum http_kind {
	HTTP_UNIX,
	HTTP_TCP,
	HTTP_N_KINDS,
};

struct http_connection {
	bool used;
	bool started; /* libmicrohttpd has taken it and will say when it ends */
	bool shut;    /* past its deadline: told to go */
	int fd;	      /* libmicrohttpd's to close */
	pid_t pid;    /* of who connected to the Unix socket; 0: not known */
	struct monotime deadline;
};

struct http_listener {
	struct http *http;
	int fd; /* owned; -1: not configured */
	sd_event_source *source;
	struct monotime rests_until; /* never: does not rest */
	bool explained;		     /* a document for one alone was made in this pass */
	size_t n_connections;
	struct http_connection connections[HTTP_CONNECTIONS_MAX];
};

struct http {
	sd_event *event;
	struct http_ops ops;
	struct MHD_Daemon *daemon;
	sd_event_source *epoll_source;
	sd_event_source *timer_source;
	struct http_listener listeners[HTTP_N_KINDS];
	char *unix_path; /* of a file that we made; else NULL */
	struct listen_file unix_file;
	gid_t group; /* of who may change things, or (gid_t)-1 */
	sd_event_source *rest_source;
	bool rests;   /* nothing is read, written or accepted until rest_source fires */
	bool resumed; /* a connection was; the next pass goes on with it */
	struct pace pace;
	struct shared *status;
	struct scrape *scrape;
	struct streams *streams;
	size_t route; /* of the request that is being answered */
	uint64_t requests[HTTP_ROUTES][HTTP_CODES];
	/* The same, as the metrics want it. */
	struct metrics_requests counted[HTTP_ROUTES * HTTP_CODES];
	unsigned n_documents; /* alive, ours and those of slow readers */
};

/* The connection of a socket, and its listener; NULL: none. */
struct http_connection *http_connection_by_fd(
	struct http *h, int fd, struct http_listener **ret_listener);
/* MHD_OPTION_NOTIFY_CONNECTION. */
void http_on_connection(void *userdata, struct MHD_Connection *connection, void **socket_context,
	enum MHD_ConnectionNotificationCode code);
/* Whatever libmicrohttpd can do now; then it waits for more, or rests. */
void http_pass(struct http *h);
/* Sources of the loop: libmicrohttpd's epoll, the timers (userdata is the http), a listener (the
 * http_listener). */
int http_on_epoll(sd_event_source *source, int fd, uint32_t events, void *userdata);
int http_on_rest_over(sd_event_source *source, uint64_t usec, void *userdata);
int http_on_timer(sd_event_source *source, uint64_t usec, void *userdata);
int http_on_accept(sd_event_source *source, int fd, uint32_t events, void *userdata);

#endif
