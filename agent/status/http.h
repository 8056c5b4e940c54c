#ifndef REDSHANK_STATUS_HTTP_H
#define REDSHANK_STATUS_HTTP_H
/*
 * The status socket: HTTP/1.1 by libmicrohttpd on the agent's own loop, read-only: a Unix socket
 * (mode 0660, status.group), and a TCP listener where configured. Clients are strangers: number of
 * connections, size of a request and total time of each are bounded, and a slow one costs no check.
 */
#include <systemd/sd-event.h>

#include "agent/config/config.h"

struct http;

#define HTTP_NAME_MAX 64

struct http_ops {
	/* The body of GET /v1/status: heap, freed by http; NULL: 503. */
	char *(*status)(void *userdata);
	/* The body of GET /v1/explain?name=NAME, with `ret_found` false that of a 404: heap, freed
	 * by http; NULL: 503. `name` is any text of at most HTTP_NAME_MAX bytes. */
	char *(*explain)(void *userdata, const char *name, bool *ret_found);
	void *userdata;
};

/* Binds and serves. 0 or negative errno with the text ("status: bind /run/...: Permission denied
 * ..."). Heap. */
int http_new(struct http **ret, sd_event *event, const struct config_status *status,
	const struct http_ops *ops, struct error *ret_error);
void http_free(struct http *h);

#endif
