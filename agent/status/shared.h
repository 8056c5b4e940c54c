#ifndef REDSHANK_STATUS_SHARED_H
#define REDSHANK_STATUS_SHARED_H
/*
 * A long document for any number of readers: it is rendered once for all who ask meanwhile, a part
 * of a millisecond at a time, when the loop has nothing else to do. Who asks is suspended until
 * then. What is rendered is the caller's; http.c has one of these for each such document.
 */
#include <microhttpd.h>
#include <systemd/sd-event.h>

#define SHARED_DOCUMENTS_MAX 4 /* alive of each, with those that slow clients read */
#define SHARED_WAITING_MAX 128

struct shared_ops {
	const char *name; /* for the log, and of the loop's sources */
	const char *content_type;
	/* How old a document is handed out. 0: each is begun after it was asked for. */
	uint64_t fresh_ms;
	/* A new document is begun. May be NULL: step() knows. */
	void (*begin)(void *userdata);
	/* Goes on for about `budget_us`. 1: there is more to do. 0: *ret_text is the document,
	 * heap, taken over, of *ret_length bytes. Negative errno: that is the end of it. */
	int (*step)(void *userdata, uint64_t budget_us, char **ret_text, size_t *ret_length);
	/* Suspended connections were resumed: libmicrohttpd is to run. From the loop. */
	void (*resumed)(void *userdata);
	void *userdata;
};

struct shared;

/* `priority`: of the loop, at which is rendered. `ops` is copied, its texts outlive it. Heap. 0 or
 * negative errno. */
int shared_new(
	struct shared **ret, sd_event *event, int64_t priority, const struct shared_ops *ops);
/* Before MHD_stop_daemon(): no connection may be suspended then. NULL is fine. */
void shared_resume_all(struct shared *s);
/* After it: the readers of documents are gone. */
void shared_free(struct shared *s);

enum shared_answer {
	SHARED_READY,	  /* *ret is the response; the reference stays ours */
	SHARED_SUSPENDED, /* the same request comes again when there is one */
	SHARED_FAILED,	  /* no memory, or too many slow readers */
};
enum shared_answer shared_ask(
	struct shared *s, struct MHD_Connection *connection, struct MHD_Response **ret);
/* The connection is closed. */
void shared_forget(struct shared *s, const struct MHD_Connection *connection);

/* How many were rendered, and the loop's time that went into them. */
uint64_t shared_renders(const struct shared *s);
uint64_t shared_render_us(const struct shared *s);

#endif
