#ifndef REDSHANK_BIRD_ADVISE_H
#define REDSHANK_BIRD_ADVISE_H
/*
 * Looks at a BIRD that somebody else configured, and says what about it will hurt: an export line
 * that does not match our routes, another route that is preferred to ours, our routes in the
 * kernel, graceful restart, somebody else who switches protocols. docs/bird-beside.md has the list
 * with the cures.
 *
 * Advice only: nothing is changed, nothing that decides waits for it, and what is wrong here makes
 * no prefix unhealthy. A look is a chain of queries, one at a time, over at most
 * ADVISE_PREFIXES_MAX prefixes (spread evenly over all) and ADVISE_TARGETS_MAX protocols, so it
 * costs BIRD some milliseconds once a minute and never holds up another query. What a look finds
 * counts when the next one, ADVISE_CONFIRM_MS later, finds it again: BIRD may have been on its way
 * from one state to another.
 */
#include <systemd/sd-event.h>

#include "agent/bird/client.h"
#include "agent/config/config.h"

#define ADVISE_PREFIXES_MAX 64
#define ADVISE_PREFIXES_FRUGAL 8
#define ADVISE_TARGETS_MAX 64
#define ADVISE_WARNINGS_MAX 32

#define ADVISE_FIRST_MS 1000
#define ADVISE_CONFIRM_MS 1500
#define ADVISE_EVERY_MS 60000
#define ADVISE_GAP_MS 3000 /* at least, however often somebody reconfigures */

struct advise_warning {
	const char *code; /* a word of the manual's table */
	char text[512];	  /* what, and the cure */
};

struct advise;

struct advise_ops {
	/* advise_warnings() tells something else now; it was logged. */
	void (*changed)(void *userdata);
	/* A look is complete. May be NULL. */
	void (*looked)(void *userdata);
	void *userdata;
};

/*
 * `patterns` are those of bird.sessions and stay the caller's. `once`: for a caller that looks once
 * and ends; nothing is logged, what is found counts at once, and prefixes that others announce are
 * told, too (an agent says that itself). Heap. 0 or negative errno.
 */
int advise_new(struct advise **ret, sd_event *event, char *const *patterns, size_t n_patterns,
	bool once, const struct advise_ops *ops);
void advise_free(struct advise *v);

/* Each query costs a process (birdc): ADVISE_PREFIXES_FRUGAL prefixes are enough. */
void advise_be_frugal(struct advise *v);

/* Which prefixes; the configuration must live until the next call. */
void advise_configure(struct advise *v, const struct config *config);

/* The connection to ask on; it is greeted and stays the caller's. The first look comes soon. */
void advise_connected(struct advise *v, struct client *client);
/* It is lost. What was found last is still told. */
void advise_lost(struct advise *v);
/* Somebody reconfigured BIRD: a look comes soon. */
void advise_soon(struct advise *v);
/* A line that BIRD pushed on it. */
void advise_push(struct advise *v, const char *text);

/* The warnings, in the manual's order; valid until the loop runs again. */
size_t advise_warnings(const struct advise *v, const struct advise_warning **ret);

/* BGP sessions that match, and how many of them are up, as of the last look. */
void advise_sessions(const struct advise *v, unsigned *ret, unsigned *ret_up);

#endif
