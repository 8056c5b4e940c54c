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

/*
 * A GET for those who have something else to wait for. fetch_begin(): 0, or a negative errno with
 * the text. fetch_wait() waits until the answer is there (1, and the caller owns it), until one of
 * the n descriptors is readable or the time is over (0), or until it is clear that no agent answers
 * (a negative errno with the text, as of fetch_get()). At most one answer comes of a job.
 */
struct fetch_job;
#define FETCH_WAIT_FDS_MAX 4
int fetch_begin(
	struct fetch_job **ret, const char *socket_path, const char *path, struct error *ret_error);
int fetch_wait(struct fetch_job *job, int timeout_ms, const int *fds, size_t n,
	struct fetch_answer *ret, struct error *ret_error);
void fetch_job_free(struct fetch_job *job);

#endif
