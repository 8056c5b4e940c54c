/*
 * The keys of the http check, and what no table can say of them.
 *
 * Whatever reaches the request is looked at here, once: a header that would end the line it stands
 * in, or frame the message in a second way, is refused at load and not repaired at run time.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "agent/base/address.h"
#include "probes/http.h"
#include "probes/pattern.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
/* RFC 9110, 5.6.2 */
#define TOKEN LETTERS DIGITS "!#$%&'*+-.^_`|~"

static bool is_token(const char *text)
{
	return *text && text[strspn(text, TOKEN)] == '\0';
}

static const char *form_method(const char *text)
{
	if (!is_token(text))
		return "a method such as \"GET\", without spaces";
	return strcmp(text, "CONNECT") == 0 ? "a method other than CONNECT" : NULL;
}

/* What would be an address in other notations ("127.1", "0x7f.1") is not taken for a name. */
static const char *form_host(const char *text)
{
	const char *last = strrchr(text, '.');
	struct address literal;

	if (address_parse(text, &literal, NULL) == 0)
		return literal.family == ADDRESS_FAMILY_IPV4 ? NULL
							     : "a name (the address is in the url)";
	last = last ? last + 1 : text;
	if (text[strspn(text, LETTERS DIGITS "-._")] != '\0' || !isalnum((unsigned char)*text) ||
		!isalnum((unsigned char)text[strlen(text) - 1]) || strstr(text, ".."))
		return "a host's name without port, such as \"www.example.net\"";
	return isdigit((unsigned char)*last) ? "a host's name whose last label is no number" : NULL;
}

static const char *form_url(const char *text)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
			return "a URL of ASCII without spaces; others are written %XX";
	return NULL;
}

static const struct schema_key expect_keys[] = {
	{.name = "status",
		.kind = SCHEMA_INTEGER_LIST,
		SCHEMA_FIELD(struct http_expect, status),
		.minimum = 200,
		.maximum = 599,
		.fallback = "[200]",
		.meaning = "status codes that are good"},
	{.name = "body",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct http_expect, body),
		.minimum = 1,
		.maximum = HTTP_EXPECT_MAX,
		.meaning = "what the body must contain, within body_limit"},
	{.name = "body_regex",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct http_expect, body_regex),
		.minimum = 1,
		.maximum = 1024,
		.form = pattern_form,
		.meaning = "a POSIX extended regular expression that the first 4,096 bytes of the "
			   "body must match somewhere"},
	SCHEMA_END,
};

static const struct schema expect_schema = {
	.size = sizeof(struct http_expect), .keys = expect_keys};

static const struct schema_key http_keys[] = {
	{.name = "url",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct http_settings, url),
		.required = true,
		.minimum = 1,
		.maximum = 2048,
		.form = form_url,
		.meaning = "what to request, http or https, from an address literal"},
	{.name = "host",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct http_settings, host),
		.minimum = 1,
		.maximum = 253,
		.form = form_host,
		.meaning = "the name in Host, SNI and certificate, in place of the literal"},
	{.name = "method",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct http_settings, method),
		.minimum = 1,
		.maximum = 32,
		.fallback = "\"GET\"",
		.form = form_method,
		.meaning = "the request's method"},
	{.name = "headers",
		.kind = SCHEMA_STRING_MAP,
		SCHEMA_FIELD(struct http_settings, headers),
		.minimum = 1,
		.maximum = 64,
		.meaning = "further headers of the request"},
	{.name = "body",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct http_settings, body),
		.minimum = 1,
		.maximum = 4096,
		.meaning = "the request's body; beside a method other than GET and HEAD"},
	{.name = "redirects",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct http_settings, redirects),
		.minimum = 0,
		.maximum = 10,
		.fallback = "0",
		.meaning = "how many redirects to the same host and port are followed"},
	{.name = "verify",
		.kind = SCHEMA_BOOLEAN,
		SCHEMA_FIELD(struct http_settings, verify),
		.fallback = "true",
		.meaning = "verify the certificate of https"},
	{.name = "ca",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct http_settings, ca),
		.minimum = 1,
		.maximum = 1024,
		.form = schema_form_absolute_path,
		.meaning = "a file of the issuers to trust, in PEM"},
	{.name = "unix",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct http_settings, unix_path),
		.minimum = 1,
		.maximum = 107,
		.form = schema_form_socket_path,
		.meaning = "a Unix socket to connect to, whatever the url says"},
	{.name = "body_limit",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct http_settings, body_limit),
		.minimum = 1,
		.maximum = HTTP_BODY_LIMIT_MAX,
		.fallback = "65536",
		.meaning = "bytes of the body that are read; the verdict is over them"},
	{.name = "expect",
		.kind = SCHEMA_OBJECT,
		SCHEMA_FIELD(struct http_settings, expect),
		.object = &expect_schema,
		.meaning = "what makes an answer good"},
	SCHEMA_END,
};

const struct schema http_schema = {.size = sizeof(struct http_settings), .keys = http_keys};

/* Headers that the agent writes itself, since they say who is meant and where a message ends. */
static const char *header_owner(const char *name)
{
	static const char *const framing[] = {"Connection", "Content-Length", "Expect",
		"HTTP2-Settings", "Keep-Alive", "Proxy-Connection", "TE", "Trailer",
		"Transfer-Encoding", "Upgrade"};

	if (strcasecmp(name, "Host") == 0)
		return "no Host (the key `host` sets it)";
	for (size_t i = 0; i < ELEMENTSOF(framing); i++)
		if (strcasecmp(name, framing[i]) == 0)
			return "no header that says how the message travels (the agent writes it)";
	return NULL;
}

static const char *header_wrong(const char *name, const char *value)
{
	size_t n = strlen(value);

	if (!is_token(name))
		return "names of letters, digits and -";
	if (header_owner(name))
		return header_owner(name);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)value[i] < ' ' || value[i] == 0x7f)
			return "values without CR, LF and other control characters";
	if (n > 0 && (value[0] == ' ' || value[n - 1] == ' '))
		return "values without spaces at their ends";
	return NULL;
}

static int validate_headers(const struct schema_strings *headers, struct error *ret_error)
{
	for (size_t i = 0; i + 1 < headers->n; i += 2) {
		const char *name = headers->items[i];
		const char *expected = header_wrong(name, headers->items[i + 1]);
		bool named = is_token(name) && strlen(name) <= 64;

		for (size_t k = 0; !expected && k < i; k += 2)
			if (strcasecmp(headers->items[k], name) == 0)
				expected = "each name once, in whatever case";
		if (expected)
			return error_set(ret_error, EINVAL, "headers: expected %s%s%s",
				named ? name : "", named ? ": " : "", expected);
	}
	return 0;
}

static int validate_expect(const struct http_settings *s, struct error *ret_error)
{
	bool wants_body = s->expect.body || s->expect.body_regex;

	if (wants_body && strcmp(s->method, "HEAD") == 0)
		return error_set(ret_error, EINVAL,
			"expect: expected no body and body_regex, since an answer to HEAD has "
			"none");
	if (s->expect.body && strlen(s->expect.body) > (size_t)s->body_limit)
		return error_set(ret_error, EINVAL,
			"expect: expected a body of at most body_limit (%lld) bytes",
			(long long)s->body_limit);
	return 0;
}

int http_validate(const void *settings, struct error *ret_error)
{
	const struct http_settings *s = settings;
	struct http_target target;
	int r = http_target_init(&target, s, ret_error);

	if (r == -ENOMEM)
		return error_set(ret_error, EINVAL, "url: expected memory to read it");
	if (r < 0)
		return r;
	if (s->ca && (!target.tls || !s->verify))
		r = error_set(ret_error, EINVAL,
			"ca: expected only beside a url of https that is verified");
	http_target_done(&target);
	if (r < 0)
		return r;
	if (s->body && (strcmp(s->method, "GET") == 0 || strcmp(s->method, "HEAD") == 0))
		return error_set(ret_error, EINVAL,
			"body: expected only beside a method that has one, such as \"POST\"");
	r = validate_headers(&s->headers, ret_error);
	return r < 0 ? r : validate_expect(s, ret_error);
}
