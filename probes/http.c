/*
 * The http check: one request, judged by status and body.
 *
 * Every attempt is a connection of its own, and a whole TLS handshake: a check must find what a new
 * client finds, not what an old connection or a resumed session (which skips the certificate) still
 * allows. What can be prepared is: the easy handle with all its options, the headers, the pattern;
 * an attempt only adds the handle to the loop's multi handle.
 *
 * The body is looked at as it comes, in constant memory: `expect.body` is searched for with a tail
 * of its own length minus one kept between pieces, and the first bytes are kept for the pattern and
 * the reason. An answer is judged when it is complete or has reached `body_limit`, never earlier as
 * good; a status that is not expected is bad as soon as the body begins.
 *
 * Redirects are followed here and not by libcurl, because libcurl would connect to wherever an
 * answer says. The runner holds the deadline, over all of it.
 */
#include "probes/http.h"

#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "probes/curl.h"
#include "probes/pattern.h"

#define SHOWN_BYTES 48
#define USER_AGENT "redshank/" REDSHANK_VERSION
/* libcurl allocates one for each transfer under way. */
#define RECEIVE_BYTES 4096L
/* The runner ends what takes too long; libcurl's own default would be 5 minutes. */
#define CONNECT_TIMEOUT_MS 7200000L
/* A CA file that was replaced is read again after this. */
#define CA_LIFE_S 3600L

struct http {
	struct curl_transfer transfer;
	struct curl_loop *loop;
	struct curl_slist *headers, *connect_to;
	struct pattern *pattern;
	struct http_target target;
	char *redirected; /* the url of this request where it is not the target's */
	/* of this attempt */
	int errnum; /* why there is no socket */
	int64_t followed;
	long status; /* 0: not known yet */
	size_t n_headers;
	size_t n_body; /* bytes looked at */
	bool cut;      /* the body is longer than body_limit */
	bool stopped;  /* we ended the transfer, having seen enough */
	bool found;    /* expect.body */
	size_t n_tail, n_start;
	size_t start_size;
	char error[CURL_ERROR_SIZE];
	char tail[HTTP_EXPECT_MAX];
	char start[]; /* start_size */
};

static bool status_is_expected(const struct http_settings *s, long status)
{
	for (size_t i = 0; i < s->expect.status.n; i++)
		if (s->expect.status.items[i] == status)
			return true;
	return false;
}

static long status_of(struct http *h)
{
	if (h->status == 0)
		(void)curl_easy_getinfo(h->transfer.easy, CURLINFO_RESPONSE_CODE, &h->status);
	return h->status;
}

/* Searches over the seam between two pieces, and the piece. */
static void search(struct http *h, const char *wanted, const char *data, size_t n)
{
	size_t length = strlen(wanted), overlap = length - 1;
	char seam[2 * HTTP_EXPECT_MAX];
	size_t head = n < overlap ? n : overlap, keep;

	if (h->found)
		return;
	memcpy(seam, h->tail, h->n_tail);
	memcpy(seam + h->n_tail, data, head);
	h->found =
		memmem(seam, h->n_tail + head, wanted, length) || memmem(data, n, wanted, length);
	if (n >= overlap) {
		memcpy(h->tail, data + n - overlap, overlap);
		h->n_tail = overlap;
		return;
	}
	keep = h->n_tail + n < overlap ? h->n_tail + n : overlap;
	memcpy(h->tail, seam + h->n_tail + n - keep, keep);
	h->n_tail = keep;
}

static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
	struct probe *p = userdata;
	const struct http_settings *s = p->settings;
	struct http *h = p->state;
	size_t left = (size_t)s->body_limit - h->n_body, taken = n < left ? n : left, start;

	if (!status_is_expected(s, status_of(h))) {
		h->stopped = true;
		return 0;
	}
	if (s->expect.body)
		search(h, s->expect.body, data, taken);
	start = h->start_size - h->n_start;
	if (start > taken)
		start = taken;
	memcpy(h->start + h->n_start, data, start);
	h->n_start += start;
	h->n_body += taken;
	if (taken < n) {
		h->cut = h->stopped = true;
		return 0;
	}
	return n;
}

static size_t on_header(char *data, size_t size, size_t n, void *userdata)
{
	struct probe *p = userdata;
	struct http *h = p->state;

	h->n_headers += n;
	return h->n_headers > HTTP_HEADERS_MAX ? 0 : n;
}

/* Ours, so that it is never inherited by a command, and its errno is known. */
static curl_socket_t on_open_socket(
	void *userdata, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct probe *p = userdata;
	struct http *h = p->state;
	int fd = socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		address->protocol);

	if (fd < 0)
		h->errnum = errno;
	return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static void report_status(struct probe *p)
{
	const struct http_settings *s = p->settings;
	struct http *h = p->state;
	char wanted[80] = "", after[32] = "";
	size_t n = 0;

	for (size_t i = 0; i < s->expect.status.n && n < sizeof(wanted); i++)
		n += (size_t)snprintf(wanted + n, sizeof(wanted) - n, "%s%d",
			i == 0			      ? ""
			: i + 1 == s->expect.status.n ? " or "
						      : ", ",
			(int)s->expect.status.items[i]);
	if (h->followed > 0)
		(void)snprintf(after, sizeof(after), " after %d redirect%s", (int)h->followed,
			h->followed == 1 ? "" : "s");
	probe_report(
		p, CHECK_OUTCOME_BAD, "status %ld%s, expected %s", status_of(h), after, wanted);
}

static void report_body(struct probe *p, const char *kind, const char *wanted, const char *within)
{
	struct http *h = p->state;
	size_t shown = h->n_start < SHOWN_BYTES ? h->n_start : SHOWN_BYTES;
	char start[SHOWN_BYTES + 1];

	memcpy(start, h->start, shown);
	start[shown] = '\0';
	if (h->n_body == 0)
		probe_report(p, CHECK_OUTCOME_BAD, "expected %s\"%.48s\", the body is empty", kind,
			wanted);
	else
		probe_report(p, CHECK_OUTCOME_BAD, "expected %s\"%.48s\"%s, got \"%s\"%s", kind,
			wanted, within, start, h->n_body > shown ? "..." : "");
}

/* The answer is there, as far as it is read. */
static void judge(struct probe *p)
{
	const struct http_settings *s = p->settings;
	struct http *h = p->state;
	char within[48] = "";

	if (h->cut)
		(void)snprintf(within, sizeof(within), " in the first %lld bytes",
			(long long)s->body_limit);
	if (!status_is_expected(s, status_of(h)))
		report_status(p);
	else if (s->expect.body && !h->found)
		report_body(p, "", s->expect.body, within);
	else if (h->pattern && !pattern_search(h->pattern, h->start, h->n_start))
		report_body(p, "a match of ", s->expect.body_regex, "");
	else
		probe_report(p, CHECK_OUTCOME_GOOD, "%s", "");
}

static bool is_redirect(long status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static bool set_method(CURL *easy, const struct http_settings *s, const char *method)
{
	bool has_body = strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
			strcmp(method, "PATCH") == 0;
	const char *body = s->body ? s->body : "";

	if (strcmp(method, "HEAD") == 0)
		return curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, NULL) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_NOBODY, 1L) == CURLE_OK;
	if (strcmp(method, "GET") == 0)
		return curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, NULL) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L) == CURLE_OK;
	if ((has_body || s->body) &&
		(curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)strlen(body)) != CURLE_OK ||
			curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body) != CURLE_OK))
		return false;
	return curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK;
}

static void start_request(struct probe *p)
{
	struct http *h = p->state;
	int r;

	h->status = 0;
	h->n_body = h->n_tail = h->n_start = 0;
	h->cut = h->stopped = h->found = false;
	h->error[0] = '\0';
	r = curl_transfer_start(&h->transfer, h->loop);
	if (r < 0)
		probe_report(p, CHECK_OUTCOME_UNKNOWN, "cannot begin: %s", strerror(-r));
}

/* RFC 9110, 15.4: what is asked for after a redirect. */
static const char *method_after(const char *method, long status)
{
	if (status == 303 && strcmp(method, "HEAD") != 0)
		return "GET";
	return (status == 301 || status == 302) && strcmp(method, "POST") == 0 ? "GET" : method;
}

static void follow(struct probe *p)
{
	const struct http_settings *s = p->settings;
	struct http *h = p->state;
	CURL *easy = h->transfer.easy;
	struct curl_header *location;
	char *url = NULL;
	int r;

	if (curl_easy_header(easy, "Location", 0, CURLH_HEADER, -1, &location) != CURLHE_OK) {
		probe_report(p, CHECK_OUTCOME_BAD, "status %ld without a Location", status_of(h));
		return;
	}
	r = http_redirect(h->redirected ? h->redirected : h->target.url, location->value, &url);
	if (r < 0) {
		probe_report(p, r == -ENOMEM ? CHECK_OUTCOME_UNKNOWN : CHECK_OUTCOME_BAD,
			"redirect %s: \"%.80s\"",
			r == -EXDEV ? "to another scheme, host or port" : "that cannot be followed",
			location->value);
		return;
	}
	free(h->redirected);
	h->redirected = url;
	h->followed++;
	if (curl_easy_setopt(easy, CURLOPT_URL, url) != CURLE_OK ||
		!set_method(easy, s, method_after(s->method, status_of(h)))) {
		probe_report(p, CHECK_OUTCOME_UNKNOWN, "cannot begin: %s", strerror(ENOMEM));
		return;
	}
	start_request(p);
}

/* Of a line that does not end libcurl keeps CURL_MAX_HTTP_HEADER, and then says, without
 * on_header() having seen any of it, that there is no memory (7.88). There is, and an answer that
 * has begun. */
static bool head_is_endless(CURL *easy, CURLcode result)
{
	curl_off_t first_byte_us = 0;
	char *volatile memory = NULL;

	if (result != CURLE_OUT_OF_MEMORY)
		return false;
	(void)curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &first_byte_us);
	memory = malloc(4UL * HTTP_HEADERS_MAX);
	free(memory);
	return first_byte_us > 0 && memory;
}

static void on_done(struct curl_transfer *t, CURLcode result, int errnum)
{
	struct probe *p = t->owner;
	const struct http_settings *s = p->settings;
	struct http *h = p->state;

	if (errnum != 0)
		probe_report(p, probe_outcome_of_errno(errnum), "epoll: %s", strerror(errnum));
	else if (h->n_headers > HTTP_HEADERS_MAX || head_is_endless(t->easy, result))
		probe_report(
			p, CHECK_OUTCOME_BAD, "headers of more than %d bytes", HTTP_HEADERS_MAX);
	else if (result != CURLE_OK && !h->stopped)
		http_report_failure(p, t->easy, &h->target, result, h->errnum, h->error);
	else if (is_redirect(status_of(h)) && !status_is_expected(s, status_of(h)) &&
		 h->followed < s->redirects)
		follow(p);
	else
		judge(p);
}

static bool add_header(struct http *h, const char *name, const char *value)
{
	struct curl_slist *list;
	_cleanup_free_ char *line = NULL;
	bool empty = value && !*value;

	/* libcurl: "Name: value", "Name;" for an empty one, "Name:" for none of its own */
	if (asprintf(&line, "%s%s%s", name,
		    empty   ? ";"
		    : value ? ": "
			    : ":",
		    value ? value : "") < 0) {
		line = NULL;
		return false;
	}
	list = curl_slist_append(h->headers, line);
	if (!list)
		return false;
	h->headers = list;
	return true;
}

static bool build_headers(struct http *h, const struct http_settings *s)
{
	bool ok = true, has_type = false;

	for (size_t i = 0; i + 1 < s->headers.n; i += 2) {
		has_type = has_type || strcasecmp(s->headers.items[i], "Content-Type") == 0;
		ok = ok && add_header(h, s->headers.items[i], s->headers.items[i + 1]);
	}
	ok = ok && add_header(h, "Connection", "close") && add_header(h, "Expect", NULL);
	return ok && (has_type || add_header(h, "Content-Type", NULL));
}

#define SET(option, value) (curl_easy_setopt(easy, option, value) == CURLE_OK)

static bool set_connection(CURL *easy, struct http *h, const struct http_settings *s)
{
	if (h->target.connect_to) {
		h->connect_to = curl_slist_append(NULL, h->target.connect_to);
		if (!h->connect_to || !SET(CURLOPT_CONNECT_TO, h->connect_to))
			return false;
	}
	return SET(CURLOPT_NOSIGNAL, 1L) && SET(CURLOPT_PROTOCOLS_STR, "http,https") &&
	       SET(CURLOPT_PROXY, "") && SET(CURLOPT_UNIX_SOCKET_PATH, s->unix_path) &&
	       SET(CURLOPT_FRESH_CONNECT, 1L) && SET(CURLOPT_FORBID_REUSE, 1L) &&
	       SET(CURLOPT_DNS_CACHE_TIMEOUT, -1L) && /* literals do not age */
	       SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS) &&
	       SET(CURLOPT_BUFFERSIZE, RECEIVE_BYTES) &&
	       SET(CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
}

/* Without a CA file where nothing is verified, and without a folder of them where there is a file:
 * libcurl keeps what it has parsed only then (lib/vtls/openssl.c, Curl_ssl_setup_x509_store). */
static bool set_tls(CURL *easy, const struct http_settings *s)
{
	const char *ca = s->ca;

	if (!s->verify && !SET(CURLOPT_CAINFO, NULL))
		return false;
	if (ca && !SET(CURLOPT_CAINFO, ca))
		return false;
	if ((ca || !s->verify || curl_version_info(CURLVERSION_NOW)->cainfo) &&
		!SET(CURLOPT_CAPATH, NULL))
		return false;
	return SET(CURLOPT_CA_CACHE_TIMEOUT, CA_LIFE_S) &&
	       SET(CURLOPT_SSL_VERIFYPEER, s->verify ? 1L : 0L) &&
	       SET(CURLOPT_SSL_VERIFYHOST, s->verify ? 2L : 0L) &&
	       SET(CURLOPT_SSL_SESSIONID_CACHE, 0L);
}

static bool set_up(struct probe *p, struct http *h)
{
	const struct http_settings *s = p->settings;
	CURL *easy = h->transfer.easy;

	return build_headers(h, s) && set_connection(easy, h, s) && set_tls(easy, s) &&
	       SET(CURLOPT_URL, h->target.url) && SET(CURLOPT_PATH_AS_IS, 1L) &&
	       SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS) &&
	       SET(CURLOPT_HTTPHEADER, h->headers) && SET(CURLOPT_USERAGENT, USER_AGENT) &&
	       set_method(easy, s, s->method) && SET(CURLOPT_WRITEFUNCTION, on_body) &&
	       SET(CURLOPT_WRITEDATA, p) && SET(CURLOPT_HEADERFUNCTION, on_header) &&
	       SET(CURLOPT_HEADERDATA, p) && SET(CURLOPT_OPENSOCKETDATA, p) &&
	       SET(CURLOPT_ERRORBUFFER, h->error);
}

static void http_free(struct http *h)
{
	curl_transfer_stop(&h->transfer);
	curl_easy_cleanup(h->transfer.easy);
	curl_slist_free_all(h->headers);
	curl_slist_free_all(h->connect_to);
	pattern_free(h->pattern);
	http_target_done(&h->target);
	free(h->redirected);
	curl_loop_unref(h->loop);
	free(h);
}

DEFINE_CLEANUP_PTR(struct http *, http_free)

static int http_open(struct probe *p)
{
	const struct http_settings *s = p->settings;
	size_t size = s->expect.body_regex ? HTTP_REGEX_BYTES : SHOWN_BYTES;
	_cleanup_(http_freep) struct http *h = calloc(1, sizeof(*h) + size);
	int r;

	if (!h)
		return -ENOMEM;
	h->start_size = size;
	r = http_target_init(&h->target, s, NULL);
	if (r >= 0)
		r = curl_loop_get(p->host->event,
			h->target.tls && s->verify ? s->ca ? s->ca : "" : NULL, &h->loop);
	if (r >= 0 && s->expect.body_regex)
		r = pattern_new(s->expect.body_regex, &h->pattern);
	if (r < 0)
		return r;
	h->transfer.easy = curl_easy_init();
	h->transfer.done = on_done;
	h->transfer.owner = p;
	if (!h->transfer.easy || !set_up(p, h))
		return -ENOMEM;
	p->state = TAKE_PTR(h);
	return 0;
}

/* A handle keeps the errno of the last socket that failed, and shows it with whatever fails later.
 * A copy has all its options, and none. False without memory. */
static bool forget_errno(struct http *h)
{
	long errnum = 0;
	CURL *easy;

	(void)curl_easy_getinfo(h->transfer.easy, CURLINFO_OS_ERRNO, &errnum);
	if (errnum == 0)
		return true;
	easy = curl_easy_duphandle(h->transfer.easy);
	if (!easy)
		return false;
	curl_easy_cleanup(h->transfer.easy);
	h->transfer.easy = easy;
	return true;
}

static void report_no_memory(struct probe *p)
{
	probe_report(p, CHECK_OUTCOME_UNKNOWN, "cannot begin: %s", strerror(ENOMEM));
}

static void http_begin(struct probe *p)
{
	const struct http_settings *s = p->settings;
	struct http *h = p->state;
	CURL *easy;
	long scope = 0;

	if (!forget_errno(h)) {
		report_no_memory(p);
		return;
	}
	easy = h->transfer.easy;
	h->errnum = 0;
	h->followed = 0;
	h->n_headers = 0;
	if (h->redirected) {
		free(h->redirected);
		h->redirected = NULL;
		if (!SET(CURLOPT_URL, h->target.url) || !set_method(easy, s, s->method)) {
			report_no_memory(p);
			return;
		}
	}
	if (h->target.zone) {
		scope = (long)if_nametoindex(h->target.zone);
		if (scope == 0)
			scope = strtol(h->target.zone, NULL, 10);
		if (scope <= 0 || !SET(CURLOPT_ADDRESS_SCOPE, scope)) {
			probe_report(p, CHECK_OUTCOME_BAD, "connect to %s: no interface %s",
				h->target.peer, h->target.zone);
			return;
		}
	}
	start_request(p);
}

static void http_cancel(struct probe *p)
{
	struct http *h = p->state;

	curl_transfer_stop(&h->transfer);
}

static void http_close(struct probe *p)
{
	http_free(p->state);
	p->state = NULL;
}

const struct probe_type probe_type_http = {
	.name = "http",
	.settings = &http_schema,
	.validate = http_validate,
	.open = http_open,
	.begin = http_begin,
	.cancel = http_cancel,
	.close = http_close,
};
