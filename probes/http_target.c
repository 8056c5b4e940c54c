/*
 * Where requests go. The configuration's url holds an address literal, so that nothing is ever
 * resolved; the request, SNI and the certificate's check want the host's name. So the url that
 * libcurl sees has the name, and "connect to" sends it to the literal all the same.
 *
 * A zone ("%25eth0") is of this host alone (RFC 4007, 6): it chooses the socket's interface and is
 * never sent.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/base/address.h"
#include "probes/http.h"

#define URL_EXPECTED                                                         \
	"url: expected http:// or https:// and an address literal, such as " \
	"\"http://192.0.2.80/healthz\" or \"https://[2001:db8::80]:8443/\""

static void urlp(CURLU **u)
{
	curl_url_cleanup(*u);
}

static void curlp(char **text)
{
	curl_free(*text);
}

#define _cleanup_url_ _cleanup_(urlp)
#define _cleanup_curl_ _cleanup_(curlp)

/* NULL where the url has no such part, or there is no memory. */
static char *part(CURLU *u, CURLUPart what, unsigned flags)
{
	char *text = NULL;

	return curl_url_get(u, what, &text, flags) == CURLUE_OK ? text : NULL;
}

static bool is_link_local(const struct address *a)
{
	return a->family == ADDRESS_FAMILY_IPV6 && a->bytes[0] == 0xfe &&
	       (a->bytes[1] & 0xc0) == 0x80;
}

/* The literal of the url, as libcurl understood it: "192.0.2.80" or "[2001:db8::80]". */
static bool read_literal(const char *url, const char *host, struct address *ret)
{
	char text[ADDRESS_TEXT_MAX];
	size_t n = strlen(host);

	if (host[0] != '[')
		/* libcurl reads "127.1" and "0x7f.1" too; we want what is written */
		return strstr(url, host) && address_parse(host, ret, NULL) == 0;
	if (n < 2 || n - 2 >= sizeof(text))
		return false;
	memcpy(text, host + 1, n - 2);
	text[n - 2] = '\0';
	return address_parse(text, ret, NULL) == 0;
}

/* The parts that are not the host's. */
static int check_url(CURLU *u, struct error *ret_error)
{
	_cleanup_curl_ char *user = part(u, CURLUPART_USER, 0);
	_cleanup_curl_ char *password = part(u, CURLUPART_PASSWORD, 0);
	_cleanup_curl_ char *fragment = part(u, CURLUPART_FRAGMENT, 0);
	_cleanup_curl_ char *scheme = part(u, CURLUPART_SCHEME, 0);

	if (!scheme || (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
		return error_set(ret_error, EINVAL, URL_EXPECTED);
	if (user || password)
		return error_set(ret_error, EINVAL,
			"url: expected no user and password (a header Authorization says them)");
	if (fragment)
		return error_set(
			ret_error, EINVAL, "url: expected nothing behind a #, which is never sent");
	return 0;
}

static int set_zone(
	struct http_target *t, CURLU *u, const struct address *literal, struct error *ret_error)
{
	_cleanup_curl_ char *zone = part(u, CURLUPART_ZONEID, 0);

	if (is_link_local(literal) != (zone != NULL))
		return error_set(ret_error, EINVAL, "url: expected %s",
			zone ? "a zone beside a link-local address only"
			     : "a zone beside the link-local address, such as [fe80::1%25eth0]");
	if (!zone)
		return 0;
	t->zone = strdup(zone);
	if (!t->zone || curl_url_set(u, CURLUPART_ZONEID, NULL, 0) != CURLUE_OK)
		return -ENOMEM;
	return 0;
}

/* The literal's part: where the connection goes. */
static int set_peer(struct http_target *t, CURLU *u, const struct http_settings *s,
	const char *host, struct error *ret_error)
{
	_cleanup_curl_ char *port = part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT);
	char text[ADDRESS_TEXT_MAX];
	int r;

	if (s->unix_path) {
		t->peer = strdup(s->unix_path);
		return t->peer ? 0 : -ENOMEM;
	}
	if (!port)
		return -ENOMEM;
	if (!read_literal(s->url, host, &t->literal))
		return error_set(ret_error, EINVAL, "%s; a name goes into `host`", URL_EXPECTED);
	r = set_zone(t, u, &t->literal, ret_error);
	if (r < 0)
		return r;
	if (s->host && asprintf(&t->connect_to, "::%s:%s", host, port) < 0) {
		t->connect_to = NULL;
		return -ENOMEM;
	}
	if (asprintf(&t->peer, "%s%s%s port %s", address_format(&t->literal, text),
		    t->zone ? "%" : "", t->zone ? t->zone : "", port) < 0) {
		t->peer = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int set_url(struct http_target *t, CURLU *u, const struct http_settings *s, const char *host)
{
	_cleanup_curl_ char *scheme = part(u, CURLUPART_SCHEME, 0), *url = NULL;

	if (s->host && curl_url_set(u, CURLUPART_HOST, s->host, 0) != CURLUE_OK)
		return -ENOMEM;
	url = part(u, CURLUPART_URL, 0);
	t->url = url ? strdup(url) : NULL;
	t->name = strdup(s->host ? s->host : host);
	t->tls = scheme && strcmp(scheme, "https") == 0;
	return t->url && t->name && scheme ? 0 : -ENOMEM;
}

int http_target_init(
	struct http_target *ret, const struct http_settings *s, struct error *ret_error)
{
	_cleanup_url_ CURLU *u = curl_url();
	_cleanup_curl_ char *host = NULL;
	struct http_target t = {0};
	int r;

	if (!u)
		return -ENOMEM;
	if (curl_url_set(u, CURLUPART_URL, s->url, CURLU_PATH_AS_IS) != CURLUE_OK)
		return error_set(ret_error, EINVAL, URL_EXPECTED);
	host = part(u, CURLUPART_HOST, 0);
	if (!host)
		return error_set(ret_error, EINVAL, URL_EXPECTED);
	r = check_url(u, ret_error);
	if (r >= 0)
		r = set_peer(&t, u, s, host, ret_error);
	if (r >= 0)
		r = set_url(&t, u, s, host);
	if (r < 0) {
		http_target_done(&t);
		return r;
	}
	*ret = t;
	return 0;
}

void http_target_done(struct http_target *t)
{
	free(t->url);
	free(t->connect_to);
	free(t->zone);
	free(t->name);
	free(t->peer);
	*t = (struct http_target){0};
}

static bool same_part(CURLU *a, CURLU *b, CURLUPart what)
{
	_cleanup_curl_ char *of_a = part(a, what, CURLU_DEFAULT_PORT);
	_cleanup_curl_ char *of_b = part(b, what, CURLU_DEFAULT_PORT);

	return of_a && of_b && strcasecmp(of_a, of_b) == 0;
}

int http_redirect(const char *url, const char *location, char **ret)
{
	_cleanup_url_ CURLU *old = curl_url(), *new = NULL;
	_cleanup_curl_ char *text = NULL, *user = NULL, *password = NULL;

	if (!old || curl_url_set(old, CURLUPART_URL, url, CURLU_PATH_AS_IS) != CURLUE_OK)
		return -ENOMEM;
	new = curl_url_dup(old);
	if (!new)
		return -ENOMEM;
	if (curl_url_set(new, CURLUPART_URL, location, CURLU_PATH_AS_IS | CURLU_URLENCODE) !=
		CURLUE_OK)
		return -EINVAL;
	if (!same_part(old, new, CURLUPART_SCHEME) || !same_part(old, new, CURLUPART_HOST) ||
		!same_part(old, new, CURLUPART_PORT))
		return -EXDEV;
	user = part(new, CURLUPART_USER, 0);
	password = part(new, CURLUPART_PASSWORD, 0);
	if (user || password)
		return -EINVAL;
	text = part(new, CURLUPART_URL, 0);
	*ret = text ? strdup(text) : NULL;
	return *ret ? 0 : -ENOMEM;
}
