#ifndef REDSHANK_STATUS_TALLY_H
#define REDSHANK_STATUS_TALLY_H
/*
 * What the agent counts of its services: outcomes and durations of checks, changes of state. For
 * the metrics. A reload keeps the counters of what has the same name; the number of counters is
 * that of the configured things.
 */
#include "agent/base/histogram.h"
#include "agent/config/config.h"
#include "agent/core/engine.h"

#define TALLY_OUTCOMES 4 /* enum check_outcome */
#define TALLY_WANTED 3	 /* enum prefix_wanted */
#define TALLY_HEALTH 3	 /* enum service_health */

struct tally_check {
	uint64_t outcomes[TALLY_OUTCOMES];
	uint64_t transitions;
	size_t duration; /* index into the service's durations */
};

struct tally_prefix {
	uint64_t transitions[TALLY_WANTED]; /* to each; a new reason alone is none */
};

/* All checks of one type in one service. */
struct tally_duration {
	const struct probe_type *type;
	struct histogram histogram;
};

struct tally_service {
	struct tally_check *checks;	  /* as in the configuration */
	struct tally_prefix *prefixes;	  /* as in the configuration */
	struct tally_duration *durations; /* in the order in which the types are met */
	size_t n_durations;
	uint64_t transitions[TALLY_HEALTH]; /* to each */
};

struct tally {
	const struct config *config;
	struct tally_service *services;
};

/* For `config`, which outlives it. What `old` (or NULL) counted of the same names is copied; its
 * own configuration is still there. Heap. 0 or -ENOMEM. */
int tally_new(struct tally **ret, const struct config *config, const struct tally *old);
void tally_free(struct tally *t);
DEFINE_CLEANUP_PTR(struct tally *, tally_free)

/* One report of a check. None of these needs memory. */
void tally_outcome(struct tally *t, size_t service, size_t check, enum check_outcome outcome,
	uint64_t duration_us);
void tally_transition(struct tally *t, const struct engine_transition *transition);

#endif
