#ifndef REDSHANK_CTL_FETCH_H
#define REDSHANK_CTL_FETCH_H
/* Asks the agent over its status socket. */
#include "agent/base/buffer.h"
#include "agent/base/error.h"

#define FETCH_BODY_MAX (64 * 1024 * 1024)

struct fetch_answer {
	long status; /* HTTP's: 200, 404, ... */
	struct buffer body;
};

void fetch_answer_done(struct fetch_answer *a);
#define _cleanup_fetch_answer_ _cleanup_(fetch_answer_done)

/*
 * GET `path` ("/v1/status"). Whatever the agent answered, good or bad, is 0 and the answer, which
 * the caller owns. Where no agent answered: a negative errno and a text that says at which socket,
 * why not, and what to try.
 */
int fetch_get(const char *socket_path, const char *path, struct fetch_answer *ret,
	struct error *ret_error);

/* The same with POST and `body`, of JSON. */
int fetch_post(const char *socket_path, const char *path, const char *body,
	struct fetch_answer *ret, struct error *ret_error);

#endif
