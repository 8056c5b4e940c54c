#ifndef REDSHANK_PROBES_HTTP_H
#define REDSHANK_PROBES_HTTP_H
/* What the files of the http check share: its keys, where its requests go, and words for what went
 * wrong. Nobody else includes this but its test. */
#include <curl/curl.h>

#include "agent/base/address.h"
#include "probes/probe.h"

#define HTTP_BODY_LIMIT_MAX 1048576
#define HTTP_EXPECT_MAX 1024
#define HTTP_REGEX_BYTES 4096
#define HTTP_HEADERS_MAX 65536 /* bytes of an answer's head, over all its redirects */

struct http_expect {
	struct schema_integers status;
	char *body;
	char *body_regex;
};

struct http_settings {
	char *url;
	char *host;
	char *method;
	struct schema_strings headers;
	char *body;
	int64_t redirects;
	bool verify;
	char *ca;
	char *unix_path;
	int64_t body_limit;
	struct http_expect expect;
};

extern const struct schema http_schema;
int http_validate(const void *settings, struct error *ret_error);

/* Where the requests of a check go, made of `url`, `host` and `unix`. */
struct http_target {
	char *url;	  /* requested: the host's name in place of the literal, without a zone */
	char *connect_to; /* as CURLOPT_CONNECT_TO has it; NULL: where `url` says */
	char *zone;	  /* of a link-local literal; NULL */
	char *name;	  /* whom the certificate must name */
	struct address literal; /* where the connection goes; family 0: to the Unix socket */
	char *peer;		/* for reasons: "192.0.2.80 port 80", or the Unix socket's path */
	bool tls;
};

/* 0, -EINVAL with "KEY: what was expected", -ENOMEM. */
int http_target_init(
	struct http_target *ret, const struct http_settings *s, struct error *ret_error);
void http_target_done(struct http_target *t);

/*
 * Where `location` of an answer to `url` leads. 0 with a heap string; -EXDEV when it leads to
 * another scheme, host or port; -EINVAL when it is no URL that could be followed; -ENOMEM.
 */
int http_redirect(const char *url, const char *location, char **ret);

/* Reports why a transfer failed. `errnum` is what a socket's creation said, or 0; `error` is
 * libcurl's error buffer. */
void http_report_failure(struct probe *p, CURL *easy, const struct http_target *target,
	CURLcode result, int errnum, const char *error);

#endif
