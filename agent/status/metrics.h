#ifndef REDSHANK_STATUS_METRICS_H
#define REDSHANK_STATUS_METRICS_H
/*
 * The metrics of GET /metrics, written piece by piece: docs/metrics.md has the list. A render is
 * begun once and then stepped, a part of a millisecond at a time, so that nothing on the loop waits
 * for it, however much is configured. What it says of two services may be some milliseconds apart.
 */
#include "agent/status/document.h"
#include "agent/status/metrics_text.h"
#include "agent/status/tally.h"

/* Requests of the status server, by path and status. */
struct metrics_requests {
	const char *path; /* of a route, or "other" */
	unsigned code;
	uint64_t n;
};

struct metrics_facts {
	struct document_facts document;
	const struct tally *tally;
	const struct histogram *turns, *lateness; /* of the loop; NULL: not measured */
	const struct metrics_requests *requests;
	size_t n_requests;
	unsigned streams; /* of events, open */
	uint64_t slow_streams;
	uint64_t renders,
		render_us; /* of these documents, and the loop's time that went into them */
};

struct metrics_render {
	struct metrics_writer writer;
	struct buffer out;
	uint64_t generation;
	size_t family, service, item; /* what comes next */
};

/* In place. */
void metrics_begin(struct metrics_render *m, enum metrics_format format, uint64_t generation);
void metrics_done(struct metrics_render *m);

/*
 * Goes on for about `budget_us`. 1: there is more to do. 0: *ret_text is the document, heap, the
 * caller's, of *ret_length bytes. -E2BIG, -ENOMEM. Where the generation of the facts is another one
 * than before it begins anew.
 */
int metrics_step(struct metrics_render *m, const struct metrics_facts *facts, uint64_t budget_us,
	char **ret_text, size_t *ret_length);

#endif
