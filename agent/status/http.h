#ifndef REDSHANK_STATUS_HTTP_H
#define REDSHANK_STATUS_HTTP_H
/*
 * The status socket: HTTP/1.1 by libmicrohttpd on the agent's own loop: a Unix socket (mode
 * 0660, status.group), on which those who may also change things by POST, and a read-only TCP
 * listener where configured. Clients are strangers: number of
 * connections, size of a request and total time of each are bounded, and a slow one costs no check.
 */
#include <systemd/sd-event.h>

#include "agent/config/config.h"
#include "agent/status/metrics.h"
#include "agent/status/caller.h"

struct http;

#define HTTP_NAME_MAX 64
#define HTTP_HEALTH_MAX 256
#define HTTP_BODY_MAX 4096

struct http_ops {
	/* The body of GET /v1/status, in steps of about `budget_us`. 1: there is more to do. 0:
	 * *ret_text is the document, heap, freed by http; the next step begins another one.
	 * Negative errno: 503. */
	int (*status)(void *userdata, uint64_t budget_us, char **ret_text, size_t *ret_length);
	/* The body of GET /v1/explain?name=NAME, with `ret_found` false that of a 404: heap, freed
	 * by http; NULL: 503. `name` is any text of at most HTTP_NAME_MAX bytes. */
	char *(*explain)(void *userdata, const char *name, bool *ret_found);
	/* The answer to POST /v1/COMMAND from one who may change things: heap, freed by http; NULL:
	 * 503. `body` is any text of `n` bytes, at most HTTP_BODY_MAX. */
	char *(*command)(void *userdata, const char *command, const char *body, size_t n,
		const struct caller *caller, unsigned *ret_status);
	const char *const *commands; /* their names, NULL at the end; NULL: there are none */
	/* What the metrics are made of; `requests` and `renders` are http's. NULL: there are none.
	 */
	void (*metrics)(void *userdata, struct metrics_facts *ret);
	/* The body of GET /healthz; false: 503. NULL: not ready. */
	bool (*health)(void *userdata, char text[HTTP_HEALTH_MAX]);
	void *userdata;
};

/* Binds and serves. 0 or negative errno with the text ("status: bind /run/...: Permission denied
 * ..."). Heap. */
int http_new(struct http **ret, sd_event *event, const struct config_status *status,
	const struct http_ops *ops, struct error *ret_error);
void http_free(struct http *h);

#endif
