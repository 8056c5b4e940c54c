#ifndef REDSHANK_BIRD_ADVISE_PRIVATE_H
#define REDSHANK_BIRD_ADVISE_PRIVATE_H
/*
 * Shared by advise.c (when to look, what to ask, what is told) and advise_judge.c (what the answers
 * mean), and by nobody else.
 */
#include "agent/base/monotime.h"
#include "agent/bird/advise.h"
#include "agent/bird/observe.h"

#define ADVISE_TABLES_MAX 8
#define ADVISE_OTHERS_MAX 4
#define ADVISE_TOGGLES_MAX 16
#define ADVISE_TOGGLES_LEAST 3	 /* an operator at work does it once or twice */
#define ADVISE_TOGGLES_MS 600000 /* forgotten after as long without one */

/* A protocol that routes are exported to: a session of ours, or one that feeds the kernel. */
struct advise_target {
	char name[NAMES_MAX];
	bool is_kernel, is_up;
	bool channel[2];	    /* IPv4, IPv6: it is there and up */
	char table[2][NAMES_MAX];   /* that its routes come from */
	char filter[2][NAMES_MAX];  /* "ACCEPT", "REJECT", its name, or "(unnamed)" */
	bool graceful;		    /* it asks the other end to keep its routes while it is away */
	unsigned offered, exported; /* prefixes that we announce; and it exports */
	bool other_table;	    /* one of them is not in its table */
	unsigned stay;		    /* prefixes that it would export without ours, too */
};

/* The best route of a prefix in a table that is not ours. */
struct advise_other {
	char protocol[NAMES_MAX], table[NAMES_MAX];
	unsigned preference;
	bool from_bgp;
};

/* One prefix of a look. */
struct advise_route {
	const struct prefix *prefix;
	char tables[ADVISE_TABLES_MAX][NAMES_MAX]; /* that a route of ours stands in */
	size_t n_tables;
	char outranked_by[NAMES_MAX]; /* another's, of a preference like ours or more */
	unsigned outranked_preference;
	char beside[NAMES_MAX];			       /* another's of less preference */
	struct advise_other others[ADVISE_OTHERS_MAX]; /* one for each table */
	size_t n_others;
	unsigned asked, exported; /* sessions of its family that are up, and that export ours */
	char elsewhere[NAMES_MAX], elsewhere_on[NAMES_MAX]; /* another's is exported, and where */
	char stay[NAMES_MAX], stay_on[NAMES_MAX];	    /* another's would be, without ours */
};

/* Somebody switches a protocol that is not ours. */
struct advise_toggle {
	char name[NAMES_MAX];
	unsigned times;
	struct monotime last;
	bool is_source; /* it makes routes: static or direct */
};

struct advise_look {
	bool template_missing;
	struct advise_target targets[ADVISE_TARGETS_MAX];
	size_t n_targets;
	struct advise_route routes[ADVISE_PREFIXES_MAX];
	size_t n_routes;
	unsigned sessions, sessions_up; /* BGP, that match */
	bool any_bgp;
};

struct advise {
	sd_event *event;
	sd_event_source *timer;
	struct advise_ops ops;
	char *const *patterns; /* borrowed, n */
	size_t n_patterns;
	bool once;
	size_t prefixes_max;
	const struct config *config; /* borrowed */
	struct client *client;	     /* borrowed; NULL: none */

	struct monotime due, ended; /* the next look, and the last one */
	bool looking;
	bool asked;	/* a query is under way */
	unsigned stale; /* answers to come of looks that were given up */
	size_t step;	/* of the chain of queries; see advise.c */
	size_t route, target;
	bool accepted; /* the answer to ADVISE_STAY said so */
	struct advise_look look;

	struct advise_toggle toggles[ADVISE_TOGGLES_MAX];
	size_t n_toggles;
	struct advise_warning found[ADVISE_WARNINGS_MAX], before[ADVISE_WARNINGS_MAX];
	struct advise_warning told[ADVISE_WARNINGS_MAX];
	size_t n_found, n_before, n_told;
	unsigned told_up; /* sessions that were up when it was told */
};

static inline bool advise_is_six(const struct advise_route *r)
{
	return r->prefix->address.family == ADDRESS_FAMILY_IPV6;
}

/* `show protocols all TARGET`. */
void advise_read_target(struct advise_target *t, const struct reply *reply);
/* `show route PREFIX table all all`. */
void advise_read_route(struct advise_route *r, const struct reply *reply);
/* Is one of ours in the table that the target takes its routes from? */
bool advise_reaches(const struct advise_route *r, const struct advise_target *t);
/*
 * What is left of the prefix in the target's table once ours is withdrawn, and so what the target's
 * export line is put before. NULL: nothing, or nothing of which that line alone decides.
 */
const struct advise_other *advise_left(
	const struct advise *v, const struct advise_route *r, const struct advise_target *t);
enum advise_filter {
	ADVISE_FILTER_REJECTS,
	ADVISE_FILTER_ACCEPTS,
	ADVISE_FILTER_NAMED,  /* BIRD can be asked what it does with a route */
	ADVISE_FILTER_UNKNOWN /* without a name: it can not */
};
enum advise_filter advise_filter(const struct advise_target *t, bool six);
/* The target would export `other`. */
void advise_stays(
	struct advise_route *r, struct advise_target *t, const struct advise_other *other);
/* Fills v->found from v->look and v->toggles. */
void advise_judge(struct advise *v);

#endif
