#ifndef REDSHANK_STATUS_SCRAPE_H
#define REDSHANK_STATUS_SCRAPE_H
/*
 * GET /metrics, for any number of scrapers: one document of each format, shared (shared.h) by all
 * who ask while it is made, and soon after. http.c is the only caller.
 */
#include <microhttpd.h>
#include <systemd/sd-event.h>

#include "agent/status/metrics.h"
#include "agent/status/shared.h"

#define SCRAPE_FRESH_MS 200 /* how old a document is handed out */

struct scrape_ops {
	/* All but the renders. May be NULL: there are no metrics. */
	void (*facts)(void *userdata, struct metrics_facts *ret);
	/* As of shared_ops. */
	void (*resumed)(void *userdata);
	void *userdata;
};

struct scrape;

/* As those of shared.h. */
int scrape_new(
	struct scrape **ret, sd_event *event, int64_t priority, const struct scrape_ops *ops);
void scrape_resume_all(struct scrape *s);
void scrape_free(struct scrape *s);
enum shared_answer scrape_ask(
	struct scrape *s, struct MHD_Connection *connection, struct MHD_Response **ret);
void scrape_forget(struct scrape *s, const struct MHD_Connection *connection);

#endif
