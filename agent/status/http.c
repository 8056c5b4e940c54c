/*
 * The status server: libmicrohttpd, driven by the agent's own event loop.
 *
 * Every source here has the lowest priority of the loop, so whatever else is ready, a death first
 * of all, is worked off before a byte is read from a client. libmicrohttpd keeps its sockets in an
 * epoll of its own; that one descriptor is in our loop, and MHD_run() is called when it is ready.
 *
 * We accept connections ourselves and hand them over. That keeps in our hands what libmicrohttpd
 * leaves open: a bound for each listener, so that strangers on TCP cannot shut out the operator on
 * the Unix socket; no busy loop when the process has no descriptors left (the listener then rests);
 * and a deadline for each connection as a whole, since its own timeout starts again with every
 * byte. A connection carries one request. One that is not done in time has its socket shut down,
 * which libmicrohttpd sees as a client that went away.
 *
 * Memory that clients can take: HTTP_REQUEST_MAX for each connection, and HTTP_DOCUMENTS_MAX
 * documents however slowly they are read. What one asks to be explained is made for that request
 * alone, once in a pass for each listener, so that no crowd of clients makes a death wait, and none
 * on TCP shuts out the operator; who comes too often is told to ask again. The status and the
 * metrics are long: they are rendered in slices, shared, and those who ask wait suspended
 * (shared.c); when all places are taken by slow readers, the newest is served again, and its own
 * `time` says how old it is. A stream of events has no total deadline, but others (stream.c).
 *
 * Time that clients can take: a pass sends each at most what its socket's buffer holds, and the
 * server then rests (pace.h). However many ask without end, a tenth of the loop is what they get.
 */
#include "agent/status/http.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/base/buffer.h"
#include "agent/status/http_private.h"
#include "agent/status/page.h"
#include "agent/system/log.h"
#include "agent/system/tcp.h"

/* The body of one response; freed by libmicrohttpd's callback with its last reader. */
struct http_document {
	struct http *http;
	char *text;
};

/* What is counted apart; the last one: any other. */
static const unsigned http_codes[] = {MHD_HTTP_OK, MHD_HTTP_NOT_MODIFIED, MHD_HTTP_BAD_REQUEST,
	MHD_HTTP_FORBIDDEN, MHD_HTTP_NOT_FOUND, MHD_HTTP_METHOD_NOT_ALLOWED, MHD_HTTP_CONFLICT,
	MHD_HTTP_SERVICE_UNAVAILABLE, 0};
_Static_assert(ELEMENTSOF(http_codes) == HTTP_CODES, "a column of counters for each code");

/* --- responses --- */

static void document_free(void *userdata)
{
	struct http_document *d = userdata;

	assert(d->http->n_documents > 0);
	d->http->n_documents--;
	free(d->text);
	free(d);
}

static bool response_add_headers(struct MHD_Response *response)
{
	return MHD_add_response_header(
		       response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json") == MHD_YES &&
	       MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") ==
		       MHD_YES &&
	       MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
}

/* A response that owns `text`, which may be NULL. NULL without memory. */
static struct MHD_Response *document_response(struct http *h, char *text)
{
	struct http_document *d = text ? calloc(1, sizeof(*d)) : NULL;
	struct MHD_Response *response;

	if (!d) {
		free(text);
		return NULL;
	}
	*d = (struct http_document){h, text};
	response = MHD_create_response_from_buffer_with_free_callback_cls(
		strlen(text), text, document_free, d);
	if (!response) {
		free(text);
		free(d);
		return NULL;
	}
	h->n_documents++;
	if (!response_add_headers(response)) {
		MHD_destroy_response(response);
		return NULL;
	}
	return response;
}

/* Every answer goes through here, and is counted. */
static enum MHD_Result answer(
	struct MHD_Connection *connection, unsigned status, struct MHD_Response *response)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct http *h = info->socket_context;
	size_t code = 0;

	while (code < ELEMENTSOF(http_codes) - 1 && http_codes[code] != status)
		code++;
	h->requests[h->route][code]++;
	return MHD_queue_response(connection, status, response);
}

static enum MHD_Result answer_error(
	struct MHD_Connection *connection, unsigned status, const char *allow, const char *text)
{
	char body[160];
	struct MHD_Response *response;
	enum MHD_Result r = MHD_NO;

	(void)snprintf(body, sizeof(body), "{\"error\": \"%s\"}\n", text);
	response = MHD_create_response_from_buffer(strlen(body), body, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	if (response_add_headers(response) &&
		(!allow ||
			MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow) == MHD_YES))
		r = answer(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

static struct http_listener *listener_of(struct http *h, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_listener *l = NULL;

	assert(info);
	(void)http_connection_by_fd(h, info->connect_fd, &l);
	assert(l);
	return l;
}

/* `key` of the query, decoded by libmicrohttpd. NULL where it is none: missing, empty, too long,
 * or with a NUL in it. */
static const char *query_value(struct MHD_Connection *connection, const char *key)
{
	const char *value = NULL;
	size_t n = 0;

	if (MHD_lookup_connection_value_n(
		    connection, MHD_GET_ARGUMENT_KIND, key, strlen(key), &value, &n) != MHD_YES ||
		!value || n == 0 || n > HTTP_NAME_MAX || strlen(value) != n)
		return NULL;
	return value;
}

/* Of the listener: whether another document may be made for one who asks alone. One place is kept
 * for the Unix socket. */
static bool may_make_document(struct http *h, struct http_listener *l)
{
	if (l->explained ||
		h->n_documents >= HTTP_DOCUMENTS_MAX + (l == &h->listeners[HTTP_UNIX] ? 1U : 0U))
		return false;
	l->explained = true;
	return true;
}

static enum MHD_Result answer_explain(struct http *h, struct MHD_Connection *connection)
{
	const char *name = query_value(connection, "name");
	struct MHD_Response *response;
	enum MHD_Result r;
	bool found = false;

	if (!name)
		return answer_error(connection, MHD_HTTP_BAD_REQUEST, NULL,
			"expected ?name=SERVICE or ?name=PREFIX, at most 64 bytes");
	if (!may_make_document(h, listener_of(h, connection)))
		return answer_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
			"too many ask at once; ask again");
	response = document_response(h, h->ops.explain(h->ops.userdata, name, &found));
	if (!response)
		return answer_error(
			connection, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, "no memory or not ready");
	r = answer(connection, found ? MHD_HTTP_OK : MHD_HTTP_NOT_FOUND, response);
	MHD_destroy_response(response);
	return r;
}

/* --- events --- */

static enum MHD_Result answer_stream(
	struct http *h, struct MHD_Connection *connection, const struct history_query *query)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_listener *l = NULL;
	struct MHD_Response *response;
	struct http_connection *c;
	bool too_many = false;
	enum MHD_Result r;

	assert(info);
	c = http_connection_by_fd(h, info->connect_fd, &l);
	assert(c);
	response = stream_begin(
		h->streams, connection, c->fd, (unsigned)(l - h->listeners), query, &too_many);
	if (!response)
		return answer_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
			too_many ? "too many streams" : "no memory");
	c->deadline = MONOTIME_NEVER;
	r = answer(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return r;
}

/* The document, or the stream for who accepts one. What a stream resumes with counts more than what
 * its address says, which a browser asks for again and again. */
static enum MHD_Result answer_events(struct http *h, struct MHD_Connection *connection)
{
	bool stream = stream_is_wanted(connection);
	const char *since =
		stream ? MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Last-Event-ID")
		       : NULL;
	struct MHD_Response *response;
	struct history_query query;
	enum MHD_Result r;

	if (!history_parse(since ? since : query_value(connection, "since"),
		    query_value(connection, "limit"), stream ? 0 : HISTORY_LIMIT_MAX, &query))
		return answer_error(connection, MHD_HTTP_BAD_REQUEST, NULL,
			"expected ?since=ID and ?limit=N, at most 1024");
	if (stream)
		return answer_stream(h, connection, &query);
	if (!may_make_document(h, listener_of(h, connection)))
		return answer_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
			"too many ask at once; ask again");
	response = document_response(h, history_document(&query));
	if (!response)
		return answer_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, "no memory");
	r = answer(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return r;
}

/* --- commands --- */

/* A POST while its body comes in. Freed when libmicrohttpd is done with the request. */
struct http_upload {
	struct caller caller;
	bool too_long;
	struct buffer body;
};

static void on_completed(void *userdata, struct MHD_Connection *connection, void **request,
	enum MHD_RequestTerminationCode code)
{
	struct http_upload *u = *request;

	*request = NULL;
	if (!u)
		return;
	buffer_done(&u->body);
	free(u);
}

/* The headers are there: who may not change things is told so before a byte of the body is read. */
static enum MHD_Result command_begin(
	struct http *h, struct MHD_Connection *connection, void **request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_upload *u;
	struct caller caller;

	if (listener_of(h, connection) != &h->listeners[HTTP_UNIX])
		return answer_error(connection, MHD_HTTP_FORBIDDEN, NULL,
			"changes are made on the Unix socket only");
	/* Every browser says with a POST which page it comes from; nothing else does. Somebody who
	 * forwards the socket to his own machine lends his rights to no page that is open there. */
	if (MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN))
		return answer_error(connection, MHD_HTTP_FORBIDDEN, NULL,
			"changes are made with redshankctl, not by a page in a browser");
	if (caller_of(info->connect_fd, h->group, &caller) < 0 || !caller.may_change)
		return answer_error(connection, MHD_HTTP_FORBIDDEN, NULL,
			"only root, the agent's own user and members of status.group may change "
			"things");
	u = calloc(1, sizeof(*u));
	if (!u)
		return answer_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, "no memory");
	u->caller = caller;
	buffer_init(&u->body, HTTP_BODY_MAX);
	*request = u;
	return MHD_YES;
}

static enum MHD_Result answer_command(struct http *h, struct MHD_Connection *connection,
	const char *command, const struct http_upload *u)
{
	struct MHD_Response *response;
	unsigned status = MHD_HTTP_OK;
	enum MHD_Result r;

	if (u->too_long)
		return answer_error(connection, MHD_HTTP_CONTENT_TOO_LARGE, NULL,
			"a body has at most 4096 bytes");
	response = document_response(
		h, h->ops.command(h->ops.userdata, command, buffer_string(&u->body), u->body.length,
			   &u->caller, &status));
	if (!response)
		return answer_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, "no memory");
	r = answer(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

/* Called for the headers, for each piece of the body, and at its end. */
static enum MHD_Result on_command(struct http *h, struct MHD_Connection *connection,
	const char *command, const char *data, size_t *n, void **request)
{
	struct http_upload *u = *request;

	if (!u)
		return command_begin(h, connection, request);
	if (*n == 0)
		return answer_command(h, connection, command, u);
	if (buffer_append(&u->body, data, *n) < 0)
		u->too_long = true;
	*n = 0;
	return MHD_YES;
}

/* The command that `url` names, or NULL. */
static const char *command_of(const struct http *h, const char *url)
{
	if (strncmp(url, "/v1/", 4) != 0)
		return NULL;
	for (size_t i = 0; h->ops.commands && h->ops.commands[i]; i++)
		if (strcmp(url + 4, h->ops.commands[i]) == 0)
			return h->ops.commands[i];
	return NULL;
}

/* --- status, metrics, health --- */

/* What was asked of a document that is shared. */
static enum MHD_Result answer_shared(
	struct MHD_Connection *connection, enum shared_answer asked, struct MHD_Response *response)
{
	switch (asked) {
	case SHARED_READY:
		return answer(connection, MHD_HTTP_OK, response);
	case SHARED_SUSPENDED:
		return MHD_YES;
	case SHARED_FAILED:
		return answer_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
			"no memory, or too many slow readers");
	}
	abort();
}

static enum MHD_Result answer_status(struct http *h, struct MHD_Connection *connection)
{
	struct MHD_Response *response = NULL;
	enum shared_answer asked = shared_ask(h->status, connection, &response);

	return answer_shared(connection, asked, response);
}

static enum MHD_Result answer_metrics(struct http *h, struct MHD_Connection *connection)
{
	struct MHD_Response *response = NULL;
	enum shared_answer asked = scrape_ask(h->scrape, connection, &response);

	return answer_shared(connection, asked, response);
}

/* Of the agent itself, in words. */
static enum MHD_Result answer_health(struct http *h, struct MHD_Connection *connection)
{
	char text[HTTP_HEALTH_MAX] = "not ready\n";
	bool healthy = h->ops.health && h->ops.health(h->ops.userdata, text);
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result r = MHD_NO;

	if (!response)
		return MHD_NO;
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
		    "text/plain; charset=utf-8") == MHD_YES &&
		MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") ==
			MHD_YES &&
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES)
		r = answer(
			connection, healthy ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, response);
	MHD_destroy_response(response);
	return r;
}

static enum MHD_Result answer_page(struct http *h, struct MHD_Connection *connection)
{
	bool known = page_is_known(MHD_lookup_connection_value(
		connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH));
	struct MHD_Response *response = page_response(known);
	enum MHD_Result r;

	if (!response)
		return answer_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, "no memory");
	r = answer(connection, known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return r;
}

static const struct http_route {
	const char *path;
	enum MHD_Result (*answer)(struct http *h, struct MHD_Connection *connection);
} routes[] = {
	{"/v1/status", answer_status},
	{"/v1/explain", answer_explain},
	{"/v1/events", answer_events},
	{"/metrics", answer_metrics},
	{"/healthz", answer_health},
	{"/", answer_page},
};
#define ROUTE_COMMAND ELEMENTSOF(routes)
#define ROUTE_OTHER (ELEMENTSOF(routes) + 1)
_Static_assert(ROUTE_OTHER + 1 == HTTP_ROUTES, "a row of counters for each route");

static const char *route_path(size_t route)
{
	if (route < ELEMENTSOF(routes))
		return routes[route].path;
	return route == ROUTE_COMMAND ? "command" : "other";
}

static void on_facts(void *userdata, struct metrics_facts *ret)
{
	struct http *h = userdata;
	struct stream_counts streams = streams_count(h->streams);
	size_t n = 0;

	h->ops.metrics(h->ops.userdata, ret);
	ret->streams = streams.open;
	ret->slow_streams = streams.slow;
	for (size_t r = 0; r < HTTP_ROUTES; r++)
		for (size_t c = 0; c < ELEMENTSOF(http_codes); c++)
			if (h->requests[r][c] > 0)
				h->counted[n++] = (struct metrics_requests){
					route_path(r), http_codes[c], h->requests[r][c]};
	ret->requests = h->counted;
	ret->n_requests = n;
}

/* Answers as soon as the headers are there: none but a command reads a body. */
static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection,
	const char *url, const char *method, const char *version, const char *upload_data,
	size_t *upload_data_size, void **request)
{
	struct http *h = userdata;
	const char *command = command_of(h, url);

	h->route = command ? ROUTE_COMMAND : ROUTE_OTHER;
	if (command && strcmp(method, MHD_HTTP_METHOD_POST) == 0)
		return on_command(h, connection, command, upload_data, upload_data_size, request);
	if (command)
		return answer_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "POST",
			"only POST is allowed here");
	for (size_t i = 0; i < ELEMENTSOF(routes); i++) {
		if (strcmp(url, routes[i].path) != 0)
			continue;
		h->route = i;
		if (strcmp(method, MHD_HTTP_METHOD_GET) == 0 ||
			strcmp(method, MHD_HTTP_METHOD_HEAD) == 0)
			return routes[i].answer(h, connection);
		return answer_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET, HEAD",
			"only GET and HEAD are allowed here");
	}
	return answer_error(connection, MHD_HTTP_NOT_FOUND, NULL, "no such resource");
}

/* --- life --- */

static void on_mhd_log(void *userdata, const char *format, va_list ap) _printf_(2, 0);
static void on_mhd_log(void *userdata, const char *format, va_list ap)
{
	char text[256];

	(void)vsnprintf(text, sizeof(text), format, ap);
	text[strcspn(text, "\r\n")] = '\0';
	log_debug("status: libmicrohttpd: %s", text);
}

static int add_io(struct http *h, sd_event_source **ret, int fd, sd_event_io_handler_t handler,
	void *userdata, const char *name)
{
	int r = sd_event_add_io(h->event, ret, fd, EPOLLIN, handler, userdata);

	if (r < 0)
		return r;
	(void)sd_event_source_set_description(*ret, name);
	return sd_event_source_set_priority(*ret, HTTP_PRIORITY);
}

static int add_timer(
	struct http *h, sd_event_source **ret, sd_event_time_handler_t handler, const char *name)
{
	int r = sd_event_add_time(h->event, ret, CLOCK_BOOTTIME, UINT64_MAX, 1, handler, h);

	if (r < 0)
		return r;
	(void)sd_event_source_set_description(*ret, name);
	(void)sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
	return sd_event_source_set_priority(*ret, HTTP_PRIORITY);
}

static int start_daemon(struct http *h)
{
	const union MHD_DaemonInfo *info;
	int r;

	h->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
					     MHD_ALLOW_SUSPEND_RESUME,
		0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER, on_mhd_log, NULL,
		MHD_OPTION_NOTIFY_CONNECTION, http_on_connection, h, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, NULL, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)(HTTP_N_KINDS * HTTP_CONNECTIONS_MAX), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)HTTP_REQUEST_MAX, MHD_OPTION_END);
	if (!h->daemon)
		return -ENOMEM;
	info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info || info->epoll_fd < 0)
		return -ENOTSUP;
	r = add_io(h, &h->epoll_source, info->epoll_fd, http_on_epoll, h, "status-clients");
	if (r < 0)
		return r;
	r = add_timer(h, &h->timer_source, http_on_timer, "status-deadline");
	return r < 0 ? r : add_timer(h, &h->rest_source, http_on_rest_over, "status-rest");
}

/* While the server rests it is done when that is over: nothing but a pass sees who was resumed. */
static void on_resumed(void *userdata)
{
	struct http *h = userdata;

	h->resumed = true;
	if (!h->rests)
		http_pass(h);
}

static int on_status_step(void *userdata, uint64_t budget_us, char **ret_text, size_t *ret_length)
{
	struct http *h = userdata;

	if (!h->ops.status)
		return -ENODATA;
	return h->ops.status(h->ops.userdata, budget_us, ret_text, ret_length);
}

static int start_streams(struct http *h)
{
	const struct stream_ops ops = {.resumed = on_resumed, .userdata = h};

	return streams_new(&h->streams, h->event, HTTP_PRIORITY, &ops);
}

static int start_documents(struct http *h)
{
	const struct scrape_ops scrape_ops = {
		.facts = h->ops.metrics ? on_facts : NULL, .resumed = on_resumed, .userdata = h};
	const struct shared_ops status_ops = {
		.name = "status",
		.content_type = "application/json",
		.step = on_status_step,
		.resumed = on_resumed,
		.userdata = h,
	};
	int r = shared_new(&h->status, h->event, HTTP_PRIORITY, &status_ops);

	return r < 0 ? r : scrape_new(&h->scrape, h->event, HTTP_PRIORITY, &scrape_ops);
}

/* Takes `fd` over. */
static int serve(struct http *h, enum http_kind kind, int fd, const char *name)
{
	struct http_listener *l = &h->listeners[kind];

	l->fd = fd;
	return add_io(h, &l->source, fd, http_on_accept, l, name);
}

static struct http *http_alloc(sd_event *event, const struct http_ops *ops)
{
	struct http *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->event = sd_event_ref(event);
	h->ops = *ops;
	for (size_t k = 0; k < HTTP_N_KINDS; k++) {
		h->listeners[k].http = h;
		h->listeners[k].fd = -1;
		h->listeners[k].rests_until = MONOTIME_NEVER;
	}
	return h;
}

/* The socket unit's, or one of our own, whose file goes when we go. */
static int open_unix(struct http *h, const struct config_status *status,
	struct listen_passed *passed, struct error *ret_error)
{
	_cleanup_free_ char *path = strdup(status->socket);
	int fd, r;

	if (!path)
		return error_set_errno(ret_error, ENOMEM, "status");
	if (passed->unix_fd >= 0) {
		log_info("status: the Unix socket is the socket unit's");
		listen_passed_compare(passed->unix_fd, path);
		fd = TAKE_FD(passed->unix_fd);
	} else {
		fd = listen_unix(path, status->group, &h->unix_file, ret_error);
		if (fd < 0)
			return fd;
		h->unix_path = TAKE_PTR(path);
	}
	h->group = caller_group(status->group);
	r = serve(h, HTTP_UNIX, fd, "status-unix");
	return r < 0 ? error_set_errno(ret_error, -r, "status: %s", status->socket) : 0;
}

static int open_tcp(struct http *h, const struct config_status *status,
	struct listen_passed *passed, struct error *ret_error)
{
	int fd, r;

	if (passed->tcp_fd >= 0)
		fd = TAKE_FD(passed->tcp_fd);
	else if (status->listen)
		fd = tcp_listen("status", status->listen, ret_error);
	else
		return 0;
	if (fd < 0)
		return fd;
	r = serve(h, HTTP_TCP, fd, "status-tcp");
	return r < 0 ? error_set_errno(ret_error, -r, "status: TCP") : 0;
}

DEFINE_CLEANUP_PTR(struct http *, http_free)

int http_new(struct http **ret, sd_event *event, const struct config_status *status,
	const struct http_ops *ops, struct error *ret_error)
{
	_cleanup_(listen_passed_done) struct listen_passed passed = LISTEN_PASSED_NONE;
	_cleanup_(http_freep) struct http *h = http_alloc(event, ops);
	int r;

	if (!h)
		return error_set_errno(ret_error, ENOMEM, "status");
	r = start_daemon(h);
	if (r >= 0)
		r = start_documents(h);
	if (r >= 0)
		r = start_streams(h);
	if (r < 0)
		return error_set_errno(ret_error, -r, "status: start the server");
	r = listen_take(&passed, ret_error);
	if (r < 0)
		return r;
	r = open_unix(h, status, &passed, ret_error);
	if (r < 0)
		return r;
	r = open_tcp(h, status, &passed, ret_error);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(h);
	return 0;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	for (size_t k = 0; k < HTTP_N_KINDS; k++) {
		sd_event_source_disable_unref(h->listeners[k].source);
		closep(&h->listeners[k].fd);
	}
	sd_event_source_disable_unref(h->epoll_source);
	sd_event_source_disable_unref(h->timer_source);
	sd_event_source_disable_unref(h->rest_source);
	if (h->streams) /* runs the daemon, so who asks for documents may be suspended by it */
		streams_end(h->streams, h->daemon);
	shared_resume_all(h->status);
	scrape_resume_all(h->scrape);
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	scrape_free(h->scrape);
	shared_free(h->status);
	streams_free(h->streams);
	if (h->unix_path)
		listen_unix_remove(h->unix_path, &h->unix_file);
	free(h->unix_path);
	sd_event_unref(h->event);
	free(h);
}
