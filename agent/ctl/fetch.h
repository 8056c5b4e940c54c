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

/*
 * GET of a stream of server-sent events: `on_data` gets its bytes as they come, for as long as it
 * returns 0. `last_id`: where to continue, or "". 0 when an agent answered and the stream is over,
 * with the answer's status (only of a 200 anything comes); negative errno and a text as above. An
 * agent that is silent for FETCH_SILENCE_MS is gone.
 */
#define FETCH_SILENCE_MS 45000
int fetch_stream(const char *socket_path, const char *path, const char *last_id,
	int (*on_data)(void *userdata, const char *data, size_t n), void *userdata,
	long *ret_status, struct error *ret_error);

#endif
