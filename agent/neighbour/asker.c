/*
 * The asker. For each neighbour one transfer after the other, a second apart with a tenth of
 * jitter, so that a site's agents do not fall into step; one that cannot be reached is asked a
 * little more rarely, since a handshake costs both sides something. Grants go beside the reports, a
 * few at a time with each neighbour, since it lets us have few connections; the others wait in a
 * row, and of those about the same prefix the newest counts. So whoever is silent keeps nobody else
 * waiting, and renewals that have fallen into step are all heard.
 *
 * Who answers is checked before a byte of the request is sent: libcurl has verified the certificate
 * against `neighbours.ca` and its name; on each new connection we look ourselves that the name is
 * there exactly, as the server does with callers, since libcurl would take a wildcard.
 *
 * An answer has bounds of size and time. A report counts from before its request was sent; what it
 * says of the past nobody can check. Addresses are literals: nothing is resolved. We call from the
 * address on which we listen: by that one neighbours know our host.
 */
#include "agent/neighbour/asker.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/base/clock.h"
#include "agent/base/printable.h"
#include "probes/curl.h"

#define PERIOD_MS 1000
#define JITTER_MS 100	 /* to either side */
#define PATIENCE_MS 2000 /* for an answer as a whole */
#define SLOWER_AFTER 3	 /* failures in a row, from which on the period doubles */
#define PERIOD_MAX_MS 4000
#define FAILURES_MAX 100000U /* that are counted: many for each place where one may be found */
#define CALLS_MAX \
	(MESSAGE_CONNECTIONS_MAX - 1) /* under way with one neighbour: one is for reports */
#define WAITING_MAX 64		      /* behind them */
#define URL_MAX (MESSAGE_NODE_MAX + 32)
#define RECEIVE_BYTES 16384L
#define ACCURACY_US 10000

/* One transfer's side of a neighbour. */
struct asking {
	struct asker *asker;
	size_t member;
	CURL *easy;
	struct curl_transfer transfer;
	struct curl_slist *connect_to;
	size_t place; /* of a member of BIRD's: which of asker.found it is asked at */
	char where[ASKER_WHERE_MAX];
	struct buffer body;
	struct monotime asked;
	char error[CURL_ERROR_SIZE];
	bool wrong_name;
};

struct peer {
	struct asking asking;
	sd_event_source *timer;
	unsigned failures;  /* in a row */
	struct call *calls; /* the oldest first: under way, or waiting */
	unsigned n_calls, n_under_way;
};

struct call {
	struct asking asking;
	struct call *next;
	bool under_way; /* else nothing but `what` is filled in */
	struct asker_call what;
	struct buffer text;
};

struct asker {
	sd_event *event;
	struct asker_ops ops;
	struct curl_loop *loop; /* NULL before the first pins */
	struct pins *pins;
	char site[MESSAGE_WORD_MAX];
	struct peer *peers; /* pins_count() of them */
	size_t n_peers;
	struct address found[ASKER_FOUND_MAX];
	size_t n_found;
};

/* ---- one transfer ---- */

static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
	struct asking *a = userdata;

	return buffer_append(&a->body, data, size * n) < 0 ? 0 : size * n;
}

/* The certificate of the other end, as libcurl hands it out: PEM behind "Cert:". */
static const char *certificate_of(CURL *easy)
{
	struct curl_certinfo *info = NULL;

	if (curl_easy_getinfo(easy, CURLINFO_CERTINFO, &info) != CURLE_OK || !info ||
		info->num_of_certs < 1)
		return NULL;
	for (const struct curl_slist *i = info->certinfo[0]; i; i = i->next)
		if (strncmp(i->data, "Cert:", 5) == 0)
			return i->data + 5;
	return NULL;
}

/* Connected, and nothing is sent yet. A connection that is used again was looked at when new. */
static int on_connected(void *userdata, char *peer_ip, char *own_ip, int peer_port, int own_port)
{
	struct asking *a = userdata;
	long new = 0;

	if (pins_are_plain(a->asker->pins))
		return CURL_PREREQFUNC_OK;
	(void)curl_easy_getinfo(a->easy, CURLINFO_NUM_CONNECTS, &new);
	a->wrong_name = new > 0 && !pins_are_of(a->asker->pins, certificate_of(a->easy), a->member);
	return a->wrong_name ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static bool set_blob(CURL *easy, CURLoption option, const struct pins *pins, enum pins_file file)
{
	struct curl_blob blob = {.flags = CURL_BLOB_COPY};
	const char *pem = pins_pem(pins, file, &blob.len);

	blob.data = (void *)pem;
	return curl_easy_setopt(easy, option, &blob) == CURLE_OK;
}

#define SET(option, value) (curl_easy_setopt(easy, option, value) == CURLE_OK)

static bool set_tls(CURL *easy, const struct pins *pins)
{
	if (pins_are_plain(pins))
		return true;
	return set_blob(easy, CURLOPT_SSLCERT_BLOB, pins, PINS_CERTIFICATE) &&
	       set_blob(easy, CURLOPT_SSLKEY_BLOB, pins, PINS_KEY) &&
	       set_blob(easy, CURLOPT_CAINFO_BLOB, pins, PINS_CA) && SET(CURLOPT_CAPATH, NULL) &&
	       SET(CURLOPT_SSL_VERIFYPEER, 1L) && SET(CURLOPT_SSL_VERIFYHOST, 2L) &&
	       SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) &&
	       SET(CURLOPT_SSL_SESSIONID_CACHE, 0L) && SET(CURLOPT_CERTINFO, 1L);
}

static const struct pins_member *member_of(const struct asking *a)
{
	return pins_member(a->asker->pins, a->member);
}

static bool aim_at(struct asking *a, const char *address_port, int family)
{
	const char *from = pins_source(a->asker->pins, family);
	char connect_to[ASKER_WHERE_MAX + 4], source[ADDRESS_TEXT_MAX + 8];
	CURL *easy = a->easy;

	(void)snprintf(a->where, sizeof(a->where), "%s", address_port);
	curl_slist_free_all(a->connect_to);
	(void)snprintf(connect_to, sizeof(connect_to), "::%s", address_port);
	(void)snprintf(source, sizeof(source), "host!%s", from ? from : "");
	a->connect_to = curl_slist_append(NULL, connect_to);
	return a->connect_to && SET(CURLOPT_CONNECT_TO, a->connect_to) &&
	       SET(CURLOPT_INTERFACE, from ? source : NULL);
}

/* Where the member is, or may be. False: nowhere. */
static bool aim(struct asking *a)
{
	const struct pins_member *m = member_of(a);
	const struct asker *c = a->asker;
	char text[ADDRESS_TEXT_MAX], address_port[ASKER_WHERE_MAX];
	const struct address *found;
	bool v6;

	if (!m->of_bird)
		return a->connect_to || aim_at(a, m->address, m->socket.ss_family);
	if (c->n_found == 0)
		return false;
	found = &c->found[a->place % c->n_found];
	v6 = found->family == ADDRESS_FAMILY_IPV6;
	(void)snprintf(address_port, sizeof(address_port), v6 ? "[%s]:%u" : "%s:%u",
		address_format(found, text), pins_port(c->pins));
	return aim_at(a, address_port, v6 ? AF_INET6 : AF_INET);
}

static bool set_up(struct asking *a, const char *path)
{
	const struct pins *pins = a->asker->pins;
	const char *scheme = pins_are_plain(pins) ? "http" : "https";
	CURL *easy = a->easy;
	char url[URL_MAX];

	(void)snprintf(url, sizeof(url), "%s://%s/v1/%s", scheme, member_of(a)->name, path);
	return SET(CURLOPT_URL, url) && SET(CURLOPT_NOSIGNAL, 1L) &&
	       SET(CURLOPT_PROTOCOLS_STR, scheme) && SET(CURLOPT_PROXY, "") &&
	       SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
	       SET(CURLOPT_USERAGENT, "redshankd/" REDSHANK_VERSION) &&
	       SET(CURLOPT_DNS_CACHE_TIMEOUT, -1L) && /* literals do not age */
	       SET(CURLOPT_TIMEOUT_MS, (long)PATIENCE_MS) &&
	       SET(CURLOPT_CONNECTTIMEOUT_MS, (long)PATIENCE_MS) &&
	       SET(CURLOPT_BUFFERSIZE, RECEIVE_BYTES) && SET(CURLOPT_WRITEFUNCTION, on_body) &&
	       SET(CURLOPT_WRITEDATA, a) && SET(CURLOPT_PREREQFUNCTION, on_connected) &&
	       SET(CURLOPT_PREREQDATA, a) && SET(CURLOPT_ERRORBUFFER, a->error) &&
	       set_tls(easy, pins);
}

static int asking_init(struct asking *a, struct asker *c, size_t member, const char *path,
	size_t answer_max, void (*done)(struct curl_transfer *t, CURLcode result, int errnum))
{
	*a = (struct asking){.asker = c, .member = member, .easy = curl_easy_init()};
	buffer_init(&a->body, answer_max);
	a->transfer = (struct curl_transfer){.easy = a->easy, .done = done, .owner = a};
	return a->easy && set_up(a, path) ? 0 : -ENOMEM;
}

static void asking_done(struct asking *a)
{
	curl_transfer_stop(&a->transfer);
	if (a->easy)
		curl_easy_cleanup(a->easy);
	curl_slist_free_all(a->connect_to);
	buffer_done(&a->body);
}

static int asking_start(struct asking *a)
{
	buffer_clear(&a->body);
	a->error[0] = '\0';
	a->wrong_name = false;
	a->asked = clock_monotime();
	if (!aim(a))
		return -EADDRNOTAVAIL;
	return curl_transfer_start(&a->transfer, a->asker->loop);
}

/* Why there is no answer; NULL: there is one, of this status. */
static const char *trouble(const struct asking *a, CURLcode result, int errnum, long *ret_status)
{
	if (errnum != 0)
		return strerror(errnum);
	if (a->wrong_name)
		return "its certificate does not bear its name, or two neighbours'";
	if (result == CURLE_WRITE_ERROR)
		return "its answer is too long";
	/* With TLS 1.3 who asks learns only now that his certificate is not taken. */
	if (result == CURLE_SEND_ERROR || result == CURLE_RECV_ERROR || result == CURLE_GOT_NOTHING)
		return "it closed the connection (does it refuse our certificate? its log says)";
	if (result != CURLE_OK)
		return a->error[0] ? a->error : curl_easy_strerror(result);
	(void)curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, ret_status);
	return NULL;
}

/* ---- reports ---- */

static uint32_t random_below(uint32_t n)
{
	uint32_t r = 0;

	/* Without randomness yet, the address of the stack is as good: this is jitter. */
	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != sizeof(r))
		r = (uint32_t)(uintptr_t)&r ^ (uint32_t)clock_monotime().us;
	return r % n;
}

static void peer_arm(struct peer *p, struct monotime at)
{
	(void)sd_event_source_set_time(p->timer, at.us);
	(void)sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
}

/* A period after the last one was asked for, or at once where that is over. */
static void peer_plan(struct peer *p)
{
	const struct asker *c = p->asking.asker;
	uint64_t period_ms = PERIOD_MS;
	unsigned failures = p->failures;

	/* One that is looked for is not there until it has been asked for everywhere. */
	if (member_of(&p->asking)->of_bird && c->n_found > 0)
		failures /= (unsigned)c->n_found;
	for (unsigned i = SLOWER_AFTER; i <= failures && period_ms < PERIOD_MAX_MS; i++)
		period_ms *= 2;
	peer_arm(p, monotime_add_ms(p->asking.asked,
			    period_ms - JITTER_MS + random_below(2 * JITTER_MS + 1)));
}

static void peer_failed(struct peer *p, const char *text)
{
	struct asker *c = p->asking.asker;
	char shown[ASKER_ERROR_MAX];

	c->ops.failed(c->ops.userdata, c->pins, p->asking.member,
		printable_copy(shown, sizeof(shown), text, strlen(text)));
}

/* The report that the text is, and that it is of whom we asked. NULL, and told, where it is not. */
static struct message_report *peer_read(struct peer *p)
{
	const struct asker *c = p->asking.asker;
	_cleanup_report_ struct message_report *r = NULL;
	struct error error = {""};
	char text[ASKER_ERROR_MAX];

	if (message_report_read(buffer_string(&p->asking.body), p->asking.body.length, &r, &error) <
		0)
		peer_failed(p, error.text);
	else if (strcmp(r->node, pins_member(c->pins, p->asking.member)->name) != 0) {
		(void)snprintf(text, sizeof(text), "its report is of the node %.100s", r->node);
		peer_failed(p, text);
	} else if (strcmp(r->site, c->site) != 0) {
		(void)snprintf(text, sizeof(text), "its report is of the site \"%s\"", r->site);
		peer_failed(p, text);
	} else {
		return TAKE_PTR(r);
	}
	return NULL;
}

static void on_report(struct curl_transfer *t, CURLcode result, int errnum)
{
	struct asking *a = t->owner;
	struct asker *c = a->asker;
	struct peer *p = &c->peers[a->member];
	struct message_report *report;
	char text[32];
	long status = 0;
	const char *why = trouble(a, result, errnum, &status);

	p->failures = why ? p->failures + (p->failures < FAILURES_MAX) : 0;
	peer_plan(p);
	if (!why && status != 200) {
		(void)snprintf(text, sizeof(text), "it answers with status %ld", status);
		why = text;
	}
	if (why) {
		a->place++;
		peer_failed(p, why);
		return;
	}
	report = peer_read(p);
	if (report)
		c->ops.report(c->ops.userdata, c->pins, a->member, report, a->asked, a->where);
	/* A long report does not keep its memory between two. */
	buffer_done(&a->body);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct peer *p = userdata;

	int r = asking_start(&p->asking);

	if (r == -EADDRNOTAVAIL)
		peer_failed(p, "BIRD knows no other server's route of our prefixes");
	if (r < 0)
		peer_plan(p);
	return 0;
}

/* ---- calls ---- */

static void call_free(struct peer *p, struct call *call)
{
	struct call **at = &p->calls;

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	p->n_calls--;
	p->n_under_way -= call->under_way;
	asking_done(&call->asking);
	buffer_done(&call->text);
	free(call);
}

static void peer_call_on(struct peer *p);

static void on_answer(struct curl_transfer *t, CURLcode result, int errnum)
{
	struct call *call = (struct call *)t->owner;
	struct asking *a = &call->asking;
	struct asker *c = a->asker;
	struct peer *p = &c->peers[a->member];
	struct shed_answer answer;
	long status = 0;

	if (!trouble(a, result, errnum, &status) && (status == 200 || status == 409) &&
		!call->what.give_back) {
		message_answer_read(buffer_string(&a->body), a->body.length, status == 200,
			call->what.grant.share, &answer);
		c->ops.answered(c->ops.userdata, call->what.id, &answer);
	}
	call_free(p, call);
	peer_call_on(p);
}

_Static_assert(offsetof(struct call, asking) == 0, "a call's asking is the call");

static int call_set_up(struct call *call)
{
	CURL *easy = call->asking.easy;

	buffer_init(&call->text, MESSAGE_GRANT_MAX);
	if (message_grant_write(&call->what.grant, &call->text) < 0)
		return -ENOMEM;
	return SET(CURLOPT_POSTFIELDSIZE, (long)call->text.length) &&
			       SET(CURLOPT_POSTFIELDS, call->text.data) &&
			       (!call->what.give_back || SET(CURLOPT_CUSTOMREQUEST, "DELETE"))
		       ? 0
		       : -ENOMEM;
}

static int call_begin(struct peer *p, struct call *call)
{
	struct asker *c = p->asking.asker;
	int r;

	r = asking_init(&call->asking, c, p->asking.member, "grant", MESSAGE_GRANT_MAX, on_answer);
	if (r >= 0)
		r = call_set_up(call);
	if (r < 0)
		return r;
	call->asking.place = p->asking.place;
	call->under_way = true;
	p->n_under_way++;
	return asking_start(&call->asking);
}

/* Those that wait begin, the oldest first, as far as there is a place. */
static void peer_call_on(struct peer *p)
{
	for (struct call *call = p->calls, *next; call && p->n_under_way < CALLS_MAX; call = next) {
		next = call->next;
		if (!call->under_way && call_begin(p, call) < 0)
			call_free(p, call);
	}
}

static bool call_is_about(const struct call *call, const struct asker_call *what)
{
	return call->what.grant.purpose == what->grant.purpose &&
	       prefix_equal(&call->what.grant.prefix, &what->grant.prefix);
}

void asker_call(struct asker *c, const struct asker_call *what)
{
	size_t member = pins_find(c->pins, what->member);
	struct call *call, **at;
	struct peer *p;

	if (member == SIZE_MAX || !c->loop)
		return;
	p = &c->peers[member];
	for (at = &p->calls; *at; at = &(*at)->next)
		if (!(*at)->under_way && call_is_about(*at, what)) {
			(*at)->what = *what;
			return;
		}
	call = p->n_calls < CALLS_MAX + WAITING_MAX ? calloc(1, sizeof(*call)) : NULL;
	if (!call)
		return;
	call->what = *what;
	*at = call;
	p->n_calls++;
	peer_call_on(p);
}

void asker_found(struct asker *c, const struct address *addresses, size_t n)
{
	c->n_found = n < ASKER_FOUND_MAX ? n : ASKER_FOUND_MAX;
	if (c->n_found > 0)
		memcpy(c->found, addresses, c->n_found * sizeof(*addresses));
}

/* ---- life ---- */

static void drop_all(struct asker *c)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		while (c->peers[i].calls)
			call_free(&c->peers[i], c->peers[i].calls);
		sd_event_source_disable_unref(c->peers[i].timer);
		asking_done(&c->peers[i].asking);
	}
	free(c->peers);
	c->peers = NULL;
	c->n_peers = 0;
	c->loop = curl_loop_unref(c->loop);
}

/* The first questions are spread over a period. */
static int peer_init(struct asker *c, size_t member)
{
	struct peer *p = &c->peers[member];
	int r;

	c->n_peers = member + 1;
	r = asking_init(&p->asking, c, member, "report", MESSAGE_REPORT_MAX, on_report);
	if (r >= 0)
		r = sd_event_add_time(c->event, &p->timer, CLOCK_BOOTTIME,
			monotime_add_ms(clock_monotime(), random_below(PERIOD_MS)).us, ACCURACY_US,
			on_timer, p);
	if (r >= 0)
		(void)sd_event_source_set_description(p->timer, "neighbours-ask");
	return r < 0 ? r : 0;
}

int asker_use(struct asker *c, struct pins *pins, const char *site)
{
	size_t n = pins_count(pins);
	int r;

	drop_all(c);
	pins_ref(pins);
	pins_unref(c->pins);
	c->pins = pins;
	(void)snprintf(c->site, sizeof(c->site), "%s", site);
	/* Those that are busy with who is silent count among those that are kept. */
	r = curl_loop_new(
		c->event, "neighbours-curl", (unsigned)(MESSAGE_CONNECTIONS_MAX * n + 1), &c->loop);
	if (r < 0)
		return r;
	c->peers = calloc(n + 1, sizeof(*c->peers));
	if (!c->peers)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = peer_init(c, i);
	if (r < 0)
		drop_all(c);
	return r;
}

int asker_new(struct asker **ret, sd_event *event, const struct asker_ops *ops)
{
	struct asker *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->event = sd_event_ref(event);
	c->ops = *ops;
	*ret = c;
	return 0;
}

void asker_free(struct asker *c)
{
	if (!c)
		return;
	drop_all(c);
	pins_unref(c->pins);
	sd_event_unref(c->event);
	free(c);
}
