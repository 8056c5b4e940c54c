/*
 * The dns check: a server answers one question as expected.
 *
 * What a query and an answer are is dns_message.c's; here are the ways they travel:
 *
 *   udp   a connected socket for each attempt, so that the kernel drops what comes from elsewhere,
 *         chooses a random port, and tells of a port that nobody listens on at once. A reply that
 *         does not belong to the query (another id, another question, no reply at all) is ignored
 *         and counted, and the attempt waits on to its deadline. A truncated answer is asked for
 *         again over tcp, within the same attempt.
 *   tcp   a connection for each attempt, messages behind their length (RFC 1035, 4.2.2). Nobody
 *         else can be on it, and one query is all that was sent: whatever does not answer it is bad
 *         at once.
 *   tls   the same within TLS (RFC 7858). With `tls_name` the certificate must be valid for it; the
 *         query is sent only then.
 *
 * The id is random for each attempt. Answers are bounded: 4,096 bytes over UDP, 65,535 otherwise,
 * for which memory is there only while one is being read.
 */
#include "probes/probe.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/address.h"
#include "probes/dns_message.h"
#include "probes/peer.h"
#include "probes/settings.h"
#include "probes/tls.h"

#define UDP_ANSWER_MAX 4096
#define PORT_PLAIN 53
#define PORT_TLS 853 /* RFC 7858, 3.1 */

enum dns_step {
	STEP_UDP,
	STEP_CONNECT,
	STEP_HANDSHAKE,
	STEP_SEND,
	STEP_READ_LENGTH,
	STEP_READ,
};

struct dns {
	/* From open() to close(). */
	struct dns_expect expect;
	uint8_t query[2 + DNS_QUERY_MAX]; /* its length in two bytes, and the message */
	size_t query_length;		  /* of both */
	struct tls_trust *trust;	  /* NULL until the first attempt that needs it */

	/* Of an attempt. */
	int fd; /* -1 between attempts */
	sd_event_source *io;
	struct tls *tls;
	enum dns_step step;
	uint16_t id;
	size_t sent;
	uint8_t answer_length[2];
	uint8_t *answer; /* of a stream, once its length is known */
	size_t n_answer; /* bytes of the length or the answer that are there */
	unsigned strays;
	char stray[PROBE_REASON_MAX]; /* what the last of them was */
	char waiting[PROBE_REASON_MAX + 64];
};

static const char *const transport_words[] = {"udp", "tcp", "tls", NULL};

static const struct schema_key dns_expect_keys[] = {
	{.name = "rcodes",
		.kind = SCHEMA_STRING_LIST,
		SCHEMA_FIELD(struct dns_expect_settings, rcodes),
		.minimum = 1,
		.maximum = 12,
		.fallback = "[\"NOERROR\"]",
		.meaning = "the response codes that are healthy",
		.form = dns_form_rcode},
	{.name = "answers",
		.kind = SCHEMA_STRING_LIST,
		SCHEMA_FIELD(struct dns_expect_settings, answers),
		.minimum = 1,
		.maximum = 64,
		.meaning = "rdata as in a zone file: each must be among the answers of NOERROR"},
	{.name = "min_answers",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct dns_expect_settings, min_answers),
		.minimum = 0,
		.maximum = DNS_ANSWERS_MAX,
		.fallback = "1",
		.meaning = "answers of the type that NOERROR must bring, at least"},
	{.name = "authoritative",
		.kind = SCHEMA_BOOLEAN,
		SCHEMA_FIELD(struct dns_expect_settings, authoritative),
		.fallback = "false",
		.meaning = "the answer must be authoritative (AA)"},
	SCHEMA_END,
};

static const struct schema dns_expect_schema = {
	.size = sizeof(struct dns_expect_settings), .keys = dns_expect_keys};

static const struct schema_key dns_keys[] = {
	{.name = "server",
		.kind = SCHEMA_ADDRESS,
		SCHEMA_FIELD(struct dns_settings, server),
		.required = true,
		.meaning = "whom to ask, an address literal"},
	{.name = "port",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct dns_settings, port),
		.minimum = 1,
		.maximum = 65535,
		.meaning = "its port; 53, and 853 with tls"},
	{.name = "transport",
		.kind = SCHEMA_ENUM,
		SCHEMA_FIELD(struct dns_settings, transport),
		.words = transport_words,
		.fallback = "\"udp\"",
		.meaning = "udp, falling back to tcp where the answer is truncated; tcp; tls"},
	{.name = "tls_name",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct dns_settings, tls_name),
		.minimum = 1,
		.maximum = 255,
		.meaning = "whom the server's certificate must name"},
	{.name = "ca",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct dns_settings, ca),
		.minimum = 2,
		.maximum = 1024,
		.meaning = "certificates to trust, a file in PEM, instead of this host's"},
	{.name = "name",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct dns_settings, name),
		.required = true,
		.minimum = 1,
		.maximum = 1024,
		.meaning = "the name to ask for, with or without a dot at its end",
		.form = dns_form_name},
	{.name = "rrtype",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct dns_settings, rrtype),
		.required = true,
		.minimum = 1,
		.maximum = 16,
		.meaning = "the type to ask for",
		.form = dns_form_rrtype},
	{.name = "recursion_desired",
		.kind = SCHEMA_BOOLEAN,
		SCHEMA_FIELD(struct dns_settings, recursion_desired),
		.fallback = "true",
		.meaning = "set RD in the query"},
	{.name = "expect",
		.kind = SCHEMA_OBJECT,
		SCHEMA_FIELD(struct dns_settings, expect),
		.object = &dns_expect_schema,
		.meaning = "what a healthy answer is"},
	SCHEMA_END,
};

static const struct schema dns_schema = {.size = sizeof(struct dns_settings), .keys = dns_keys};

/* ---- what was configured ---- */

static uint32_t rcode_bits(const struct dns_settings *s)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < s->expect.rcodes.n; i++)
		bits |= dns_rcode_bit(s->expect.rcodes.items[i]);
	return bits;
}

static int validate_answers(const struct dns_settings *s, struct error *ret_error)
{
	struct dns_question question;

	dns_question_parse(s->name, s->rrtype, &question);
	for (size_t i = 0; i < s->expect.answers.n; i++) {
		struct dns_rdata rdata = {0};
		int r = dns_rdata_parse(question.type, s->expect.answers.items[i], &rdata);

		dns_rdata_done(&rdata);
		if (r == -EINVAL)
			return error_set(ret_error, EINVAL,
				"expect: expected answers of type %s as in a zone file, not "
				"\"%.64s\"",
				s->rrtype, s->expect.answers.items[i]);
	}
	if (s->expect.answers.n > 0 && !(rcode_bits(s) & dns_rcode_bit("NOERROR")))
		return error_set(ret_error, EINVAL,
			"expect: expected no answers where rcodes leave NOERROR out");
	return 0;
}

static int dns_validate(const void *settings, struct error *ret_error)
{
	const struct dns_settings *s = settings;

	if (s->tls_name && s->transport != TRANSPORT_TLS)
		return error_set(
			ret_error, EINVAL, "tls_name: expected only beside \"transport\": \"tls\"");
	if (s->ca && !s->tls_name)
		return error_set(ret_error, EINVAL, "ca: expected only beside tls_name");
	if (s->ca && s->ca[0] != '/')
		return error_set(ret_error, EINVAL, "ca: expected an absolute path");
	if (peer_validate("server", &s->server, ret_error) < 0)
		return -EINVAL;
	return validate_answers(s, ret_error);
}

static int fill_expect(const struct dns_settings *s, struct dns_expect *e)
{
	int r = 0;

	dns_question_parse(s->name, s->rrtype, &e->question);
	e->rcodes = rcode_bits(s);
	e->min_answers = (size_t)s->expect.min_answers;
	e->authoritative = s->expect.authoritative;
	e->answers = calloc(s->expect.answers.n + 1, sizeof(*e->answers));
	if (!e->answers)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < s->expect.answers.n; i++) {
		r = dns_rdata_parse(e->question.type, s->expect.answers.items[i], &e->answers[i]);
		e->n_answers += r >= 0;
	}
	return r;
}

static void dns_drop(struct dns *d)
{
	d->io = sd_event_source_disable_unref(d->io);
	tls_free(TAKE_PTR(d->tls));
	free(TAKE_PTR(d->answer));
	if (d->fd >= 0)
		(void)close(d->fd);
	d->fd = -1;
}

static void dns_cancel(struct probe *p)
{
	dns_drop(p->state);
}

static void dns_close(struct probe *p)
{
	struct dns *d = p->state;

	dns_drop(d);
	tls_trust_free(d->trust);
	dns_expect_done(&d->expect);
	free(d);
	p->state = NULL;
}

static int dns_open(struct probe *p)
{
	const struct dns_settings *s = p->settings;
	struct dns *d = calloc(1, sizeof(*d));
	size_t length = 0;
	int r;

	if (!d)
		return -ENOMEM;
	d->fd = -1;
	p->state = d;
	r = fill_expect(s, &d->expect);
	if (r >= 0)
		r = dns_query_build(
			&d->expect.question, s->recursion_desired, d->query + 2, &length);
	if (r < 0) {
		dns_close(p);
		return r;
	}
	d->query[0] = (uint8_t)(length >> 8);
	d->query[1] = (uint8_t)length;
	d->query_length = length + 2;
	return 0;
}

/* ---- the end of an attempt ---- */

static int64_t port_of(const struct dns_settings *s)
{
	if (s->port != 0)
		return s->port;
	return s->transport == TRANSPORT_TLS ? PORT_TLS : PORT_PLAIN;
}

/* Where an attempt stands after a step. */
enum progress {
	PROGRESS_ON,   /* the next step can be tried at once */
	PROGRESS_WAIT, /* for the socket */
	PROGRESS_OVER, /* reported, or begun anew: hands off */
};

static enum progress fail_error(struct probe *p, int r, const struct error *error)
{
	dns_drop(p->state);
	probe_report(p, probe_outcome_of_errno(-r), "%s", error->text);
	return PROGRESS_OVER;
}

static enum progress fail_errno(struct probe *p, const char *what, int errnum)
{
	const struct dns_settings *s = p->settings;
	struct dns *d = p->state;
	char text[ADDRESS_TEXT_MAX];

	dns_drop(d);
	if (d->step == STEP_UDP && errnum == ECONNREFUSED) /* ICMP, RFC 1122, 4.1.3.3 */
		probe_report(p, CHECK_OUTCOME_BAD, "%s port %u: port unreachable",
			address_format(&s->server, text), (unsigned)port_of(s));
	else
		probe_report(p, probe_outcome_of_errno(errnum), "%s: %s", what, strerror(errnum));
	return PROGRESS_OVER;
}

static enum progress fail_end(struct probe *p)
{
	struct dns *d = p->state;
	bool begun = d->step == STEP_READ || d->n_answer > 0;

	dns_drop(d);
	probe_report(p, CHECK_OUTCOME_BAD, "the connection was closed %s",
		begun ? "in the middle of the answer" : "without an answer");
	return PROGRESS_OVER;
}

static enum progress start_stream(struct probe *p);

/* Judges one message, and ends the attempt, starts it over TCP, or (UDP alone) lets it wait. The
 * message may be the attempt's own: it is gone on return, except while the attempt waits. */
static enum progress judge(struct probe *p, const uint8_t *wire, size_t n)
{
	char reason[PROBE_REASON_MAX];
	struct dns *d = p->state;
	bool udp = d->step == STEP_UDP;
	enum dns_verdict verdict = dns_judge(&d->expect, d->id, wire, n, reason);

	if (udp && verdict == DNS_STRAY) {
		d->strays++;
		memcpy(d->stray, reason, sizeof(d->stray));
		return PROGRESS_WAIT;
	}
	dns_drop(d);
	if (udp && verdict == DNS_TRUNCATED)
		return start_stream(p);
	switch (verdict) {
	case DNS_GOOD:
		probe_report(p, CHECK_OUTCOME_GOOD, "%s", reason);
		break;
	case DNS_BAD:
		probe_report(p, CHECK_OUTCOME_BAD, "%s", reason);
		break;
	case DNS_NO_MEMORY:
		probe_report(p, CHECK_OUTCOME_UNKNOWN, "answer: %s", strerror(ENOMEM));
		break;
	case DNS_TRUNCATED:
		probe_report(p, CHECK_OUTCOME_BAD, "the answer is truncated, and not over UDP");
		break;
	case DNS_STRAY:
		probe_report(p, CHECK_OUTCOME_BAD, "no answer to the query: %s", reason);
		break;
	}
	return PROGRESS_OVER;
}

static const char *dns_waiting(struct probe *p)
{
	struct dns *d = p->state;

	if (d->strays == 0)
		return NULL;
	(void)snprintf(d->waiting, sizeof(d->waiting), "%u repl%s ignored, the last because %s",
		d->strays, d->strays == 1 ? "y was" : "ies were", d->stray);
	return d->waiting;
}

/* ---- udp ---- */

/* Reads one: the loop comes back while there are more. */
static enum progress read_datagram(struct probe *p)
{
	struct dns *d = p->state;
	uint8_t answer[UDP_ANSWER_MAX];
	ssize_t n = recv(d->fd, answer, sizeof(answer), MSG_TRUNC);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return PROGRESS_WAIT;
	if (n < 0)
		return fail_errno(p, "receive", errno);
	if ((size_t)n <= sizeof(answer))
		return judge(p, answer, (size_t)n);
	dns_drop(d);
	probe_report(p, CHECK_OUTCOME_BAD, "an answer of %zd bytes over UDP, more than %d", n,
		UDP_ANSWER_MAX);
	return PROGRESS_OVER;
}

/* ---- tcp and tls ---- */

/* -EAGAIN where it has to wait. 0 at the end of reading. */
static ssize_t transfer(struct dns *d, bool sending, void *data, size_t n, struct error *error)
{
	ssize_t r;

	if (d->tls)
		return sending ? tls_send(d->tls, data, n, error)
			       : tls_receive(d->tls, data, n, error);
	do
		r = sending ? send(d->fd, data, n, MSG_NOSIGNAL) : recv(d->fd, data, n, 0);
	while (r < 0 && errno == EINTR);
	if (r >= 0)
		return r;
	if (errno == EAGAIN)
		return -EAGAIN;
	return error_set_errno(error, errno, "%s", sending ? "send" : "receive");
}

/* Sends or reads what is left of `n` bytes; on, when all of it is done. */
static enum progress move(struct probe *p, bool sending, uint8_t *data, size_t n, size_t *done)
{
	struct dns *d = p->state;
	struct error error;

	while (*done < n) {
		ssize_t r = transfer(d, sending, data + *done, n - *done, &error);

		if (r == -EAGAIN)
			return PROGRESS_WAIT;
		if (r < 0)
			return fail_error(p, (int)r, &error);
		if (r == 0)
			return fail_end(p);
		*done += (size_t)r;
	}
	return PROGRESS_ON;
}

static enum progress finish_connect(struct probe *p)
{
	const struct dns_settings *s = p->settings;
	struct dns *d = p->state;
	struct error error;
	int r = peer_connected(d->fd, &s->server, port_of(s), &error);

	if (r >= 0 && s->transport == TRANSPORT_TLS)
		r = tls_new(&d->tls, d->fd, s->tls_name, d->trust, &error);
	if (r < 0)
		return fail_error(p, r, &error);
	d->step = d->tls ? STEP_HANDSHAKE : STEP_SEND;
	return PROGRESS_ON;
}

static enum progress shake_hands(struct probe *p)
{
	struct dns *d = p->state;
	struct error error;
	int r = tls_handshake(d->tls, &error);

	if (r == -EAGAIN)
		return PROGRESS_WAIT;
	if (r < 0)
		return fail_error(p, r, &error);
	d->step = STEP_SEND;
	return PROGRESS_ON;
}

static enum progress send_query(struct probe *p)
{
	struct dns *d = p->state;
	enum progress progress = move(p, true, d->query, d->query_length, &d->sent);

	if (progress == PROGRESS_ON)
		d->step = STEP_READ_LENGTH;
	return progress;
}

static size_t length_of_answer(const struct dns *d)
{
	return (size_t)(d->answer_length[0] << 8 | d->answer_length[1]);
}

static enum progress read_length(struct probe *p)
{
	struct dns *d = p->state;
	enum progress progress =
		move(p, false, d->answer_length, sizeof(d->answer_length), &d->n_answer);

	if (progress != PROGRESS_ON)
		return progress;
	d->n_answer = 0;
	d->answer = malloc(length_of_answer(d) + 1);
	if (!d->answer)
		return fail_errno(p, "answer", ENOMEM);
	d->step = STEP_READ;
	return PROGRESS_ON;
}

static enum progress read_answer(struct probe *p)
{
	struct dns *d = p->state;
	size_t length = length_of_answer(d);
	enum progress progress = move(p, false, d->answer, length, &d->n_answer);

	return progress == PROGRESS_ON ? judge(p, d->answer, length) : progress;
}

/* ---- all three ---- */

static enum progress advance(struct probe *p)
{
	struct dns *d = p->state;

	switch (d->step) {
	case STEP_UDP:
		return read_datagram(p);
	case STEP_CONNECT:
		return finish_connect(p);
	case STEP_HANDSHAKE:
		return shake_hands(p);
	case STEP_SEND:
		return send_query(p);
	case STEP_READ_LENGTH:
		return read_length(p);
	case STEP_READ:
		return read_answer(p);
	}
	abort();
}

static uint32_t events_of(const struct dns *d)
{
	switch (d->step) {
	case STEP_UDP:
		return EPOLLIN;
	case STEP_CONNECT:
		return EPOLLOUT;
	case STEP_HANDSHAKE:
		return tls_events(d->tls);
	case STEP_SEND:
		return d->tls ? tls_events(d->tls) : EPOLLOUT;
	case STEP_READ_LENGTH:
	case STEP_READ:
		return d->tls ? tls_events(d->tls) : EPOLLIN;
	}
	abort();
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct probe *p = userdata;
	struct dns *d = p->state;
	enum progress progress;
	int r;

	do
		progress = advance(p);
	while (progress == PROGRESS_ON);
	if (progress == PROGRESS_OVER)
		return 0;
	r = sd_event_source_set_io_events(d->io, events_of(d));
	if (r < 0)
		(void)fail_errno(p, "epoll", -r);
	return 0;
}

static int watch(struct probe *p)
{
	struct dns *d = p->state;
	int r = sd_event_add_io(p->host->event, &d->io, d->fd, events_of(d), on_io, p);

	return r < 0 ? r : sd_event_source_set_description(d->io, "check-dns");
}

/* RFC 5452, 4.5: an id that nobody can guess. */
static int choose_id(struct dns *d)
{
	if (getrandom(&d->id, sizeof(d->id), GRND_NONBLOCK) != sizeof(d->id))
		return -EAGAIN; /* so early after the boot that there is none */
	dns_query_set_id(d->query + 2, d->id);
	return 0;
}

static enum progress start_stream(struct probe *p)
{
	const struct dns_settings *s = p->settings;
	struct dns *d = p->state;
	struct error error;
	int r;

	d->step = STEP_CONNECT;
	d->sent = d->n_answer = 0;
	r = peer_connect(SOCK_STREAM, &s->server, port_of(s), &d->fd, &error);
	if (r < 0 && r != -EINPROGRESS)
		return fail_error(p, r, &error);
	r = watch(p);
	return r < 0 ? fail_errno(p, "epoll", -r) : PROGRESS_OVER;
}

static void begin_udp(struct probe *p)
{
	const struct dns_settings *s = p->settings;
	struct dns *d = p->state;
	struct error error;
	int r = peer_connect(SOCK_DGRAM, &s->server, port_of(s), &d->fd, &error);

	d->step = STEP_UDP;
	if (r < 0) {
		(void)fail_error(p, r, &error);
		return;
	}
	if (send(d->fd, d->query + 2, d->query_length - 2, MSG_NOSIGNAL) < 0) {
		(void)fail_errno(p, "send", errno);
		return;
	}
	r = watch(p);
	if (r < 0)
		(void)fail_errno(p, "epoll", -r);
}

static void dns_begin(struct probe *p)
{
	const struct dns_settings *s = p->settings;
	struct dns *d = p->state;
	struct error error;

	d->strays = 0;
	if (choose_id(d) < 0) {
		probe_report(p, CHECK_OUTCOME_UNKNOWN, "no random numbers yet");
		return;
	}
	if (s->transport == TRANSPORT_UDP) {
		begin_udp(p);
		return;
	}
	/* Certificates that cannot be read say nothing of the server. */
	if (s->tls_name && tls_trust_update(&d->trust, s->ca, &error) < 0) {
		probe_report(p, CHECK_OUTCOME_UNKNOWN, "%s", error.text);
		return;
	}
	(void)start_stream(p);
}

const struct probe_type probe_type_dns = {
	.name = "dns",
	.settings = &dns_schema,
	.validate = dns_validate,
	.open = dns_open,
	.begin = dns_begin,
	.cancel = dns_cancel,
	.close = dns_close,
	.waiting = dns_waiting,
};
