#ifndef REDSHANK_STATUS_SCRAPE_H
#define REDSHANK_STATUS_SCRAPE_H
/*
 * GET /metrics, for any number of scrapers: the document is rendered once for all that ask
 * meanwhile, a part of a millisecond at a time, when the loop has nothing else to do. Who asks is
 * suspended until then; who asks soon after gets the same document. http.c is the only caller.
 */
#include <microhttpd.h>
#include <systemd/sd-event.h>

#include "agent/status/metrics.h"

#define SCRAPE_FRESH_MS 200    /* how old a document is handed out */
#define SCRAPE_DOCUMENTS_MAX 4 /* alive, with those that slow clients read */
#define SCRAPE_WAITING_MAX 128

struct scrape_ops {
	/* All but the renders. May be NULL: there are no metrics. */
	void (*facts)(void *userdata, struct metrics_facts *ret);
	/* Suspended connections were resumed: libmicrohttpd is to run. From the loop. */
	void (*resumed)(void *userdata);
	void *userdata;
};

struct scrape;

/* `priority`: of the loop, at which is rendered. Heap. 0 or negative errno. */
int scrape_new(
	struct scrape **ret, sd_event *event, int64_t priority, const struct scrape_ops *ops);
/* Before MHD_stop_daemon(): no connection may be suspended then. */
void scrape_resume_all(struct scrape *s);
/* After it: the readers of documents are gone. */
void scrape_free(struct scrape *s);

enum scrape_answer {
	SCRAPE_READY,	  /* *ret is the response; the reference stays ours */
	SCRAPE_SUSPENDED, /* the same request comes again when there is one */
	SCRAPE_FAILED,	  /* no memory, or too many slow readers */
};
enum scrape_answer scrape_ask(
	struct scrape *s, struct MHD_Connection *connection, struct MHD_Response **ret);

#endif
