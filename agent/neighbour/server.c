/*
 * The neighbours' endpoint, on libmicrohttpd and GnuTLS.
 *
 * libmicrohttpd asks a client for a certificate and then takes it with none, or with any. So its
 * credentials are never used: as each connection begins, before its first byte, the GnuTLS session
 * gets ours instead, a certificate is required, and a verify function of ours judges it within the
 * handshake. A handshake that it fails never becomes a connection on which libmicrohttpd reads. A
 * connection that was not verified and sends a request all the same would be our mistake, and is
 * closed without a word.
 *
 * As in the status server (status/http.c) we accept connections ourselves, so that what
 * libmicrohttpd leaves open has a bound: handshakes under way, those of hosts that are no
 * neighbour's apart and few a second; connections of one neighbour (the oldest goes) and its
 * requests a second (those beyond wait); the time of a handshake, of a request, and between two.
 *
 * A grant is the agent's to give: its connection is suspended until server_answer(), for
 * ANSWER_MS at most.
 */
#include "agent/neighbour/server.h"

#include <assert.h>
#include <errno.h>
#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/neighbour/bucket.h"
#include "agent/system/tcp.h"

#define CONNECTIONS_MAX (2 * CONFIG_MEMBERS_MAX + 128)
#define STRANGERS_MAX 32   /* handshakes under way with hosts that are no neighbour's */
#define STRANGERS_PER_S 20 /* and how many may begin in a second, after a burst */
#define STRANGERS_BURST 40
#define OF_ONE_HOST_MAX 16  /* handshakes under way with one neighbour's host */
#define OF_ONE_HOST_PER_S 5 /* and how many may begin */
#define OF_ONE_HOST_BURST 20
#define OF_ONE_MEMBER_PER_S 40	/* requests, after a burst: beyond, each waits */
#define OF_ONE_MEMBER_BURST 120 /* a report a second, and as many renewals as can be */
#define THROTTLE_MS 250
#define REQUEST_MAX 8192 /* bytes of request line and headers */
#define HANDSHAKE_MS 3000
#define REQUEST_MS 5000 /* from the headers to the last byte of the answer */
#define IDLE_MS 30000	/* between two requests, headers of the second included */
#define ANSWER_MS 2000	/* that the agent has to answer a request for a grant */
#define REPORT_MS 3000	/* after which a report that the agent has not renewed is none */
#define REST_MS 1000	/* of a listener whose accept failed */
#define ACCURACY_US 1000
#define NOBODY SIZE_MAX

/* The text of a report, until its last reader is done. One thread: no locks. */
struct text {
	unsigned references;
	size_t n;
	char *data;
	struct monotime since;
};

struct exchange;

struct connection {
	bool used;
	bool started; /* libmicrohttpd has taken it and will say when it ends */
	bool shut;    /* told to go */
	bool busy;    /* with a request */
	bool verified;
	bool stranger; /* its host is no neighbour's */
	int fd;	       /* libmicrohttpd's to close */
	struct server *server;
	struct pins *pins; /* under which it began; owned */
	size_t member;	   /* within `pins`; NOBODY with plain */
	enum pins_refusal refusal;
	struct sockaddr_storage peer;
	struct monotime deadline, since;
	struct exchange *exchange; /* that is suspended, or NULL */
};

/* A POST or DELETE, from its headers to its end. */
struct exchange {
	struct connection *connection;
	struct MHD_Connection *mhd;
	uint64_t id;
	bool give_back, too_long, suspended, answered;
	bool throttled; /* one too many: it only waits */
	uint64_t share;
	struct shed_answer answer;
	struct monotime deadline; /* for the agent's answer */
	struct buffer body;
};

struct server {
	sd_event *event;
	struct server_ops ops;
	struct pins *pins;	   /* NULL: nobody may speak yet */
	struct MHD_Daemon *daemon; /* NULL before the first pins */
	bool daemon_is_plain;
	int fd;
	sd_event_source *accept_source, *epoll_source, *timer_source;
	struct monotime rests_until; /* never: does not rest */
	unsigned n_connections;
	struct bucket strangers, hosts[CONFIG_MEMBERS_MAX], requests[CONFIG_MEMBERS_MAX];
	uint64_t last_id;
	struct text *report;
	struct server_counts counts;
	struct connection connections[CONNECTIONS_MAX];
};

/* What a GET has for its exchange. */
static char get_seen;

static void pass(struct server *s);

static const char *const request_names[] = {
	[SERVER_REPORT] = "report",
	[SERVER_GRANTED] = "granted",
	[SERVER_REFUSED] = "refused",
	[SERVER_GIVEN_BACK] = "given_back",
	[SERVER_BAD] = "bad",
	[SERVER_BUSY] = "busy",
};

const char *server_request_name(enum server_request request)
{
	return request_names[request];
}

/* ---- texts ---- */

static void text_unref(void *userdata)
{
	struct text *t = userdata;

	if (!t || --t->references > 0)
		return;
	free(t->data);
	free(t);
}

void server_publish(struct server *s, char *text, size_t n)
{
	struct text *t = text ? calloc(1, sizeof(*t)) : NULL;

	if (t)
		*t = (struct text){
			.references = 1, .n = n, .data = text, .since = clock_monotime()};
	else
		free(text);
	text_unref(s->report);
	s->report = t;
}

/* ---- answers ---- */

static enum MHD_Result answer(struct MHD_Connection *mhd, unsigned status,
	struct MHD_Response *response, const char *allow, bool close)
{
	enum MHD_Result r = MHD_NO;

	if (!response)
		return MHD_NO;
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json") ==
			MHD_YES &&
		(!allow || MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow) ==
				   MHD_YES) &&
		(!close || MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") ==
				   MHD_YES))
		r = MHD_queue_response(mhd, status, response);
	MHD_destroy_response(response);
	return r;
}

/* `text` may quote what came: it is made fit for a JSON string. */
static enum MHD_Result answer_error(struct server *s, struct MHD_Connection *mhd, unsigned status,
	const char *allow, const char *text)
{
	char body[ERROR_TEXT_MAX + 32];
	size_t n = (size_t)snprintf(body, sizeof(body), "{\"error\":\"");

	s->counts.requests[status == MHD_HTTP_SERVICE_UNAVAILABLE ? SERVER_BUSY : SERVER_BAD]++;
	for (; *text && n < sizeof(body) - 8; text++)
		if ((unsigned char)*text >= 0x20 && *text != '"' && *text != '\\')
			body[n++] = *text;
		else
			body[n++] = '\'';
	memcpy(body + n, "\"}\n", 4);
	return answer(mhd, status,
		MHD_create_response_from_buffer(n + 3, body, MHD_RESPMEM_MUST_COPY), allow,
		status != MHD_HTTP_SERVICE_UNAVAILABLE);
}

static enum MHD_Result answer_report(struct server *s, struct MHD_Connection *mhd)
{
	struct MHD_Response *response;

	if (!s->report)
		return answer_error(
			s, mhd, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, "nothing to report yet");
	/* Who asks takes it for as old as the question. */
	if (monotime_reached(monotime_add_ms(s->report->since, REPORT_MS), clock_monotime()))
		return answer_error(s, mhd, MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
			"the agent hangs: it has not reported for seconds");
	response = MHD_create_response_from_buffer_with_free_callback_cls(
		s->report->n, s->report->data, text_unref, s->report);
	if (!response)
		return MHD_NO;
	s->report->references++;
	s->counts.requests[SERVER_REPORT]++;
	return answer(mhd, MHD_HTTP_OK, response, NULL, false);
}

static enum MHD_Result answer_grant(
	struct server *s, struct MHD_Connection *mhd, const struct exchange *e)
{
	bool granted = e->answer.refused == SHED_REFUSAL_NONE;
	_cleanup_buffer_ struct buffer body = {0};

	buffer_init(&body, MESSAGE_GRANT_MAX);
	if (!e->answered)
		return answer_error(s, mhd, MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
			"the agent has not answered in time");
	if ((e->give_back ? buffer_append_string(&body, "{}\n")
			  : message_answer_write(&e->answer, e->share, &body)) < 0)
		return MHD_NO;
	s->counts.requests[e->give_back ? SERVER_GIVEN_BACK
			   : granted	? SERVER_GRANTED
					: SERVER_REFUSED]++;
	return answer(mhd, granted || e->give_back ? MHD_HTTP_OK : MHD_HTTP_CONFLICT,
		MHD_create_response_from_buffer(body.length, body.data, MHD_RESPMEM_MUST_COPY),
		NULL, false);
}

/* ---- grants ---- */

static void exchange_resume(struct exchange *e)
{
	if (!e->suspended)
		return;
	e->suspended = false;
	e->connection->exchange = NULL;
	MHD_resume_connection(e->mhd);
}

void server_answer(struct server *s, uint64_t id, const struct shed_answer *a, uint64_t share)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct exchange *e = s->connections[i].exchange;

		if (!e || e->id != id)
			continue;
		e->answer = *a;
		e->share = share;
		e->answered = true;
		exchange_resume(e);
		pass(s);
		return;
	}
}

/* The whole body is there. */
static enum MHD_Result take_grant(struct server *s, struct exchange *e)
{
	struct connection *c = e->connection;
	struct message_grant grant;
	struct error error = {""};
	int r;

	if (e->too_long)
		return answer_error(s, e->mhd, MHD_HTTP_CONTENT_TOO_LARGE, NULL,
			"a body has at most 2048 bytes");
	r = message_grant_read(buffer_string(&e->body), e->body.length, &grant, &error);
	if (r == -ENOMEM)
		return answer_error(s, e->mhd, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, "no memory");
	if (r < 0)
		return answer_error(s, e->mhd, MHD_HTTP_BAD_REQUEST, NULL, error.text);
	if (c->member != NOBODY ? strcmp(grant.node, pins_member(c->pins, c->member)->name) != 0
				: pins_find(c->pins, grant.node) == SIZE_MAX)
		return answer_error(s, e->mhd, MHD_HTTP_FORBIDDEN, NULL,
			"`node` is not the name in the certificate");
	e->id = ++s->last_id;
	if (!s->ops.grant(s->ops.userdata, e->id, &grant, e->give_back))
		return answer_error(s, e->mhd, MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
			"too many ask at once; ask again");
	e->deadline = monotime_add_ms(clock_monotime(), ANSWER_MS);
	e->suspended = true;
	c->exchange = e;
	MHD_suspend_connection(e->mhd);
	return MHD_YES;
}

/* Called for the headers, for each piece of the body, at its end, and when it is answered. */
static enum MHD_Result on_grant(struct server *s, struct MHD_Connection *mhd, struct connection *c,
	bool give_back, const char *data, size_t *n, void **request)
{
	struct exchange *e = *request;

	if (!e) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return MHD_NO;
		*e = (struct exchange){.connection = c, .mhd = mhd, .give_back = give_back};
		buffer_init(&e->body, MESSAGE_GRANT_MAX);
		*request = e;
		return MHD_YES;
	}
	if (*n > 0) {
		if (buffer_append(&e->body, data, *n) < 0)
			e->too_long = true;
		*n = 0;
		return MHD_YES;
	}
	return e->id == 0 ? take_grant(s, e) : answer_grant(s, mhd, e);
}

/* ---- requests ---- */

static struct connection *connection_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* An answer to the headers alone would end the connection: it takes a second call. */
static enum MHD_Result on_get(
	struct server *s, struct MHD_Connection *mhd, size_t *n, void **request)
{
	if (*request && *n == 0)
		return answer_report(s, mhd);
	*request = &get_seen;
	*n = 0;
	return MHD_YES;
}

static bool may_ask(struct server *s, const struct connection *c)
{
	return c->member == NOBODY || c->pins != s->pins ||
	       bucket_take(&s->requests[c->member], clock_monotime(), OF_ONE_MEMBER_PER_S,
		       OF_ONE_MEMBER_BURST);
}

/* To refuse at once would only bring the next one sooner. */
static enum MHD_Result throttle(struct connection *c, struct MHD_Connection *mhd, void **request)
{
	struct exchange *e = calloc(1, sizeof(*e));

	if (!e)
		return MHD_NO;
	*e = (struct exchange){.connection = c, .mhd = mhd, .throttled = true, .suspended = true};
	e->deadline = monotime_add_ms(clock_monotime(), THROTTLE_MS);
	buffer_init(&e->body, MESSAGE_GRANT_MAX);
	*request = e;
	c->exchange = e;
	MHD_suspend_connection(mhd);
	return MHD_YES;
}

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *mhd, const char *url,
	const char *method, const char *version, const char *upload_data, size_t *upload_data_size,
	void **request)
{
	struct connection *c = connection_of(mhd);
	struct server *s = userdata;

	if (!c || !c->verified)
		return MHD_NO;
	if (!c->busy) {
		c->busy = true;
		c->deadline = monotime_add_ms(clock_monotime(), REQUEST_MS);
		if (!may_ask(s, c))
			return throttle(c, mhd, request);
	}
	if (*request && *request != &get_seen && ((struct exchange *)*request)->throttled)
		return answer_error(s, mhd, MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
			"too many requests of this neighbour; ask again");
	if (strcmp(url, "/v1/report") == 0) {
		if (strcmp(method, MHD_HTTP_METHOD_GET) == 0)
			return on_get(s, mhd, upload_data_size, request);
		return answer_error(
			s, mhd, MHD_HTTP_METHOD_NOT_ALLOWED, "GET", "only GET is allowed here");
	}
	if (strcmp(url, "/v1/grant") == 0) {
		bool give_back = strcmp(method, MHD_HTTP_METHOD_DELETE) == 0;

		if (give_back || strcmp(method, MHD_HTTP_METHOD_POST) == 0)
			return on_grant(
				s, mhd, c, give_back, upload_data, upload_data_size, request);
		return answer_error(s, mhd, MHD_HTTP_METHOD_NOT_ALLOWED, "POST, DELETE",
			"only POST and DELETE are allowed here");
	}
	return answer_error(s, mhd, MHD_HTTP_NOT_FOUND, NULL, "no such resource");
}

static void on_completed(void *userdata, struct MHD_Connection *mhd, void **request,
	enum MHD_RequestTerminationCode code)
{
	struct connection *c = connection_of(mhd);
	struct exchange *e = *request == &get_seen ? NULL : *request;

	*request = NULL;
	if (c) {
		c->busy = false;
		c->deadline = monotime_add_ms(clock_monotime(), IDLE_MS);
		c->exchange = NULL;
	}
	if (!e)
		return;
	buffer_done(&e->body);
	free(e);
}

/* ---- the handshake ---- */

static void shut(struct connection *c)
{
	if (c->shut)
		return;
	c->shut = true;
	(void)shutdown(c->fd, SHUT_RDWR);
}

/* The neighbour's oldest connection makes room for one more. */
static void bound_member(struct server *s, const struct connection *new)
{
	struct connection *oldest = NULL;
	unsigned n = 0;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *c = &s->connections[i];

		if (!c->used || c->shut || !c->verified || c->pins != new->pins ||
			c->member != new->member)
			continue;
		n++;
		if (!oldest || monotime_before(c->since, oldest->since))
			oldest = c;
	}
	if (n >= MESSAGE_CONNECTIONS_MAX)
		shut(oldest);
}

static gnutls_alert_description_t alert_of(enum pins_refusal refusal)
{
	switch (refusal) {
	case PINS_NO_CERTIFICATE:
		return GNUTLS_A_CERTIFICATE_REQUIRED;
	case PINS_UNTRUSTED:
		return GNUTLS_A_UNKNOWN_CA;
	case PINS_EXPIRED:
		return GNUTLS_A_CERTIFICATE_EXPIRED;
	case PINS_STRANGER:
	case PINS_AMBIGUOUS:
		return GNUTLS_A_ACCESS_DENIED;
	case PINS_WELCOME:
	case PINS_NO_TLS:
		break;
	}
	return GNUTLS_A_HANDSHAKE_FAILURE;
}

/* GnuTLS calls it within the handshake, when the client has shown its certificate. */
static int on_certificate(gnutls_session_t session)
{
	struct connection *c = connection_of(gnutls_session_get_ptr(session));

	if (!c)
		return GNUTLS_E_CERTIFICATE_ERROR;
	c->refusal = pins_verify(c->pins, session, &c->member);
	if (c->refusal != PINS_WELCOME) {
		(void)gnutls_alert_send(session, GNUTLS_AL_FATAL, alert_of(c->refusal));
		return GNUTLS_E_CERTIFICATE_ERROR;
	}
	bound_member(c->server, c);
	c->verified = true;
	c->since = clock_monotime();
	c->deadline = monotime_add_ms(c->since, IDLE_MS);
	c->server->counts.refused[PINS_WELCOME]++;
	return 0;
}

/* The client's Certificate message (RFC 8446, 4.4.2; RFC 5246, 7.4.6): one of four bytes or less
 * holds none. GnuTLS would end the handshake without an alert. */
static int on_message(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
	const gnutls_datum_t *message)
{
	struct connection *c = connection_of(gnutls_session_get_ptr(session));

	if (!c || !incoming || message->size > 4)
		return 0;
	c->refusal = PINS_NO_CERTIFICATE;
	(void)gnutls_alert_send(session, GNUTLS_AL_FATAL, alert_of(c->refusal));
	return GNUTLS_E_CERTIFICATE_REQUIRED;
}

/* Before the first byte: the session is ours. False: it must not go on. */
static bool guard_session(struct connection *c, struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	gnutls_session_t session = info ? (gnutls_session_t)info->tls_session : NULL;

	if (!session || gnutls_credentials_set(
				session, GNUTLS_CRD_CERTIFICATE, pins_credentials(c->pins)) < 0)
		return false;
	gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
	gnutls_session_set_verify_function(session, on_certificate);
	gnutls_handshake_set_hook_function(
		session, GNUTLS_HANDSHAKE_CERTIFICATE_PKT, GNUTLS_HOOK_PRE, on_message);
	return true;
}

/* libmicrohttpd's own credentials hold no certificate; nothing should ever ask for one. */
static int no_certificate(gnutls_session_t session, const gnutls_datum_t *issuers, int n_issuers,
	const gnutls_pk_algorithm_t *algorithms, int n_algorithms, gnutls_pcert_st **certificates,
	unsigned *n_certificates, gnutls_privkey_t *key)
{
	return -1;
}

/* ---- connections ---- */

static void connection_release(struct connection *c)
{
	struct server *s = c->server;

	assert(s->n_connections > 0);
	pins_unref(c->pins);
	*c = (struct connection){.fd = -1, .server = s};
	s->n_connections--;
	s->counts.open = s->n_connections;
}

static void tell_refused(struct connection *c)
{
	static const char *const texts[PINS_REFUSALS] = {
		[PINS_NO_CERTIFICATE] = "it shows no certificate",
		[PINS_UNTRUSTED] = "its certificate is not of `neighbours.ca`, or not for a client",
		[PINS_EXPIRED] = "its certificate has expired, or is not valid yet",
		[PINS_STRANGER] = "its certificate bears no neighbour's name",
		[PINS_AMBIGUOUS] = "its certificate bears the names of two neighbours",
		[PINS_NO_TLS] = "it does not finish the TLS handshake",
	};
	enum pins_refusal refusal = c->refusal == PINS_WELCOME ? PINS_NO_TLS : c->refusal;
	char host[TCP_TEXT_MAX], text[160];

	c->server->counts.refused[refusal]++;
	(void)snprintf(text, sizeof(text), "a caller from %s is turned away: %s",
		tcp_format(&c->peer, host), texts[refusal]);
	c->server->ops.refused(c->server->ops.userdata, refusal, text);
}

static struct connection *connection_by_fd(struct server *s, int fd)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (s->connections[i].used && s->connections[i].fd == fd)
			return &s->connections[i];
	return NULL;
}

static void on_connection(void *userdata, struct MHD_Connection *mhd, void **socket_context,
	enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct server *s = userdata;
	struct connection *c;

	assert(info);
	c = connection_by_fd(s, info->connect_fd);
	assert(c);
	switch (code) {
	case MHD_CONNECTION_NOTIFY_STARTED:
		c->started = true;
		*socket_context = c;
		if (!pins_are_plain(c->pins) && !guard_session(c, mhd))
			shut(c);
		break;
	case MHD_CONNECTION_NOTIFY_CLOSED:
		if (!c->verified)
			tell_refused(c);
		connection_release(c);
		break;
	}
}

/* Ends what is past its deadline, or of another time. Returns the next deadline. */
static struct monotime connections_expire(struct server *s, struct monotime now)
{
	struct monotime next = MONOTIME_NEVER;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *c = &s->connections[i];

		/* Also of one that was told to go: libmicrohttpd looks at no suspended socket. */
		if (c->used && c->exchange) {
			if (!monotime_reached(c->exchange->deadline, now))
				next = monotime_min(next, c->exchange->deadline);
			else
				exchange_resume(c->exchange);
			continue;
		}
		if (!c->used || c->shut)
			continue;
		if (monotime_reached(c->deadline, now) || (c->pins != s->pins && !c->busy)) {
			shut(c);
		} else {
			next = monotime_min(next, c->deadline);
		}
	}
	return next;
}

/* Drops what libmicrohttpd could not take and has closed without a word. */
static void connections_sweep(struct server *s)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (s->connections[i].used && !s->connections[i].started)
			connection_release(&s->connections[i]);
}

/* ---- the loop ---- */

static void arm(struct server *s, struct monotime now, struct monotime next)
{
	MHD_UNSIGNED_LONG_LONG timeout_ms;
	bool rests;

	if (monotime_reached(s->rests_until, now))
		s->rests_until = MONOTIME_NEVER;
	rests = !monotime_is_never(s->rests_until);
	next = monotime_min(next, s->rests_until);
	(void)sd_event_source_set_enabled(s->accept_source,
		rests || s->n_connections >= CONNECTIONS_MAX ? SD_EVENT_OFF : SD_EVENT_ON);
	if (s->daemon && MHD_get_timeout(s->daemon, &timeout_ms) == MHD_YES)
		next = monotime_min(next, monotime_add_ms(now, timeout_ms));
	if (!monotime_is_never(next))
		(void)sd_event_source_set_time(s->timer_source, next.us);
	(void)sd_event_source_set_enabled(
		s->timer_source, monotime_is_never(next) ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

static void pass(struct server *s)
{
	struct monotime now = clock_monotime(), next;

	next = connections_expire(s, now);
	if (s->daemon)
		(void)MHD_run(s->daemon);
	connections_sweep(s);
	arm(s, now, next);
}

static int on_epoll(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	pass(userdata);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	pass(userdata);
	return 0;
}

/* May another handshake with this host begin? Neighbours' hosts do not pay for strangers. */
static bool may_begin(struct server *s, const struct sockaddr_storage *peer, size_t host)
{
	struct monotime now = clock_monotime();
	bool stranger = host == NOBODY;
	unsigned n = 0;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		const struct connection *c = &s->connections[i];

		if (c->used && !c->verified && c->stranger == stranger &&
			(stranger || tcp_same_host(&c->peer, peer)))
			n++;
	}
	if (stranger)
		return n < STRANGERS_MAX &&
		       bucket_take(&s->strangers, now, STRANGERS_PER_S, STRANGERS_BURST);
	return n < OF_ONE_HOST_MAX &&
	       bucket_take(&s->hosts[host], now, OF_ONE_HOST_PER_S, OF_ONE_HOST_BURST);
}

static void begin(struct server *s, int client, const struct sockaddr_storage *peer, socklen_t n)
{
	bool plain = pins_are_plain(s->pins), stranger = pins_find_host(s->pins, peer) == NOBODY;
	struct connection *c = NULL;

	for (size_t i = 0; i < CONNECTIONS_MAX && !c; i++)
		if (!s->connections[i].used)
			c = &s->connections[i];
	assert(c);
	*c = (struct connection){
		.used = true,
		.fd = client,
		.server = s,
		.pins = pins_ref(s->pins),
		.member = NOBODY,
		.verified = plain,
		.stranger = stranger,
		.peer = *peer,
		.deadline = monotime_add_ms(clock_monotime(), plain ? IDLE_MS : HANDSHAKE_MS),
		.since = clock_monotime(),
	};
	s->n_connections++;
	s->counts.open = s->n_connections;
	(void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	if (MHD_add_connection(s->daemon, client, (const struct sockaddr *)peer, n) != MHD_YES &&
		c->used)
		connection_release(c);
}

static int on_accept(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct sockaddr_storage peer = {0};
	socklen_t length = sizeof(peer);
	struct server *s = userdata;
	int client = accept4(fd, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (client < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			s->rests_until = monotime_add_ms(clock_monotime(), REST_MS);
	} else if (!s->pins || !may_begin(s, &peer, pins_find_host(s->pins, &peer))) {
		s->counts.connections++;
		s->counts.turned_away++;
		(void)close(client);
	} else {
		s->counts.connections++;
		begin(s, client, &peer, length);
	}
	pass(s);
	return 0;
}

/* ---- life ---- */

static void on_mhd_log(void *userdata, const char *format, va_list ap) _printf_(2, 0);
static void on_mhd_log(void *userdata, const char *format, va_list ap)
{
	/* It only says what the counters say. */
}

static void stop_daemon(struct server *s)
{
	s->epoll_source = sd_event_source_disable_unref(s->epoll_source);
	if (!s->daemon)
		return;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (s->connections[i].exchange)
			exchange_resume(s->connections[i].exchange);
	MHD_stop_daemon(s->daemon);
	s->daemon = NULL;
}

static int start_daemon(struct server *s, bool plain)
{
	unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
			 MHD_ALLOW_SUSPEND_RESUME | (plain ? 0 : MHD_USE_TLS);
	const struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)no_certificate},
		{MHD_OPTION_HTTPS_PRIORITIES, 0,
			(char[]){"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"}},
		{MHD_OPTION_END, 0, NULL},
	};
	const union MHD_DaemonInfo *info;
	int r;

	s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s,
		MHD_OPTION_EXTERNAL_LOGGER, on_mhd_log, NULL, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_MAX, MHD_OPTION_ARRAY,
		plain ? &tls[2] : tls, MHD_OPTION_END);
	if (!s->daemon)
		return -ENOMEM;
	s->daemon_is_plain = plain;
	info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	r = info && info->epoll_fd >= 0 ? sd_event_add_io(s->event, &s->epoll_source,
						  info->epoll_fd, EPOLLIN, on_epoll, s)
					: -ENOTSUP;
	if (r < 0)
		stop_daemon(s);
	else
		(void)sd_event_source_set_description(s->epoll_source, "neighbours-clients");
	return r < 0 ? r : 0;
}

int server_use(struct server *s, struct pins *pins)
{
	int r = 0;

	if (s->daemon && s->daemon_is_plain != pins_are_plain(pins))
		stop_daemon(s);
	if (!s->daemon)
		r = start_daemon(s, pins_are_plain(pins));
	if (r < 0)
		return r;
	pins_ref(pins);
	pins_unref(s->pins);
	s->pins = pins;
	memset(s->hosts, 0, sizeof(s->hosts));
	memset(s->requests, 0, sizeof(s->requests));
	pass(s);
	return 0;
}

const struct server_counts *server_counts(const struct server *s)
{
	return &s->counts;
}

int server_new(struct server **ret, sd_event *event, int fd, const struct server_ops *ops)
{
	_cleanup_(server_freep) struct server *s = calloc(1, sizeof(*s));
	int r;

	if (!s) {
		(void)close(fd);
		return -ENOMEM;
	}
	s->event = sd_event_ref(event);
	s->ops = *ops;
	s->fd = fd;
	s->rests_until = MONOTIME_NEVER;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		s->connections[i] = (struct connection){.fd = -1, .server = s};
	r = sd_event_add_time(
		event, &s->timer_source, CLOCK_BOOTTIME, UINT64_MAX, ACCURACY_US, on_timer, s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->timer_source, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_io(event, &s->accept_source, fd, EPOLLIN, on_accept, s);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(s->timer_source, "neighbours-deadline");
	(void)sd_event_source_set_description(s->accept_source, "neighbours-accept");
	*ret = TAKE_PTR(s);
	return 0;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	s->accept_source = sd_event_source_disable_unref(s->accept_source);
	stop_daemon(s);
	sd_event_source_disable_unref(s->timer_source);
	closep(&s->fd);
	text_unref(s->report);
	pins_unref(s->pins);
	sd_event_unref(s->event);
	free(s);
}
