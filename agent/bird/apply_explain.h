#ifndef REDSHANK_BIRD_APPLY_EXPLAIN_H
#define REDSHANK_BIRD_APPLY_EXPLAIN_H
/*
 * What apply knows of one prefix beyond apply_observed(), for the person who asks why: its
 * protocols, its fragment, each session, who else has a route for it, and what apply does next.
 * Nothing is asked of BIRD for it: these are the answers of the last time it was read.
 */
#include "agent/bird/apply.h"
#include "agent/core/plan.h"

enum apply_fragment {
	APPLY_FRAGMENT_TRUE,	   /* the file says what is wanted */
	APPLY_FRAGMENT_PENDING,	   /* it is being written */
	APPLY_FRAGMENT_UNWRITABLE, /* it could not be; tried again on each slow tick */
	APPLY_FRAGMENT_PUT_BACK,   /* BIRD refused it: the last good one stands in its place */
};

/* What apply waits for or does next. */
enum apply_step {
	APPLY_STEP_NONE,	    /* nothing: BIRD does what is wanted */
	APPLY_STEP_CONNECT,	    /* BIRD is away; tried again at `at` */
	APPLY_STEP_ASK,		    /* BIRD is being asked what it does */
	APPLY_STEP_WRITE,	    /* the fragment is written, or tried again */
	APPLY_STEP_COMMAND,	    /* `disable` or `enable` is due, at `at` (back-off) or now */
	APPLY_STEP_ANSWER,	    /* it was sent, and BIRD has not answered */
	APPLY_STEP_CONFIGURE,	    /* `configure` is under way, or due at `at` (back-off) */
	APPLY_STEP_CONFIGURE_RETRY, /* BIRD refused it; tried again at `at` */
	APPLY_STEP_CONFIGURE_TRIAL, /* it would confirm what somebody tries */
};

struct apply_explained_protocol {
	const char *name; /* valid until the loop runs again, as every pointer here */
	bool last_resort;
	bool want_up;
	enum plan_seen seen;	 /* UNKNOWN while BIRD is away */
	enum apply_known loaded; /* what BIRD holds of it is what is wanted */
	bool has_weight;	 /* its route for the prefix was read, with the */
	uint32_t weight;
};

struct apply_explained {
	struct apply_explained_protocol protocols[2]; /* its own and the last-resort twin */
	size_t n_protocols;
	const char *folder; /* of the fragment, FOLDER/SERVICE.conf */
	enum apply_fragment fragment;
	enum apply_step step;
	struct monotime at; /* never: now */
	bool read;	    /* the sessions below were asked as they are now */
	bool reading; /* again: what apply_observed() tells may be of before the last change */
};

void apply_explain(
	const struct apply *a, size_t service, size_t prefix, struct apply_explained *ret);

/* When BIRD is tried again; never while an attempt is under way or the connection lives. */
struct monotime apply_explain_retry(const struct apply *a);

/* One of the sessions that match bird.sessions, in BIRD's order. */
struct apply_explained_session {
	const char *name;
	bool up;
};

/* False when there are no more than `index`. Only the first 64 are told of a prefix by name. */
bool apply_explain_session(
	const struct apply *a, size_t index, struct apply_explained_session *ret);

enum apply_export {
	APPLY_EXPORT_UNKNOWN,
	APPLY_EXPORT_YES,
	APPLY_EXPORT_NO,	/* its filter, or another route, keeps ours from it */
	APPLY_EXPORT_NO_FAMILY, /* it is down, or has no channel for the prefix's family */
};

enum apply_export apply_explain_export(
	const struct apply *a, size_t service, size_t prefix, size_t session);

/*
 * Protocols that are not ours and whose routes for the prefix BIRD knows: the one at or after
 * *index, which is moved behind it. NULL at the end. `ret_best`: it is a table's best.
 */
const char *apply_explain_other(
	const struct apply *a, size_t service, size_t prefix, size_t *index, bool *ret_best);
/* There are others whose names are not kept. */
bool apply_explain_more_others(const struct apply *a, size_t service, size_t prefix);

/* The weight that BIRD announces the prefix with, by our protocol for it, when it was read last.
 * False: not read, or no such route. */
bool apply_weight(const struct apply *a, size_t service, size_t prefix, uint32_t *ret);

/* The next hops of all BGP routes for our prefixes that BIRD was seen to know, since the start; how
 * many. Valid until the loop goes on. */
size_t apply_next_hops(const struct apply *a, const struct address **ret);
/*
 * Does BIRD know a BGP route for the prefix whose next hop is this address: does that server, as
 * far as can be seen from here, announce it? UNKNOWN before the prefix was read, and where more
 * servers announce than are kept apart. A NO means something only of an address that was a YES: a
 * router need not tell us others' routes.
 */
enum apply_known apply_route_from(
	const struct apply *a, size_t service, size_t prefix, const struct address *next_hop);

#endif
