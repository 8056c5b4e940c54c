#ifndef REDSHANK_TESTS_ORACLE_H
#define REDSHANK_TESTS_ORACLE_H
/*
 * A second opinion on the engine: what must be true after each decision, worked out naively from
 * the facts, and held against what the engine says. It shares no code with core/: it keeps every
 * outcome of a check and searches its whole list, finds names by looking at all of them, and states
 * each rule as a condition of its own instead of an order. Numbers are those of docs/invariants.md.
 */
#include "agent/core/engine.h"

#define ORACLE_SERVICES 4
#define ORACLE_CHECKS 4
#define ORACLE_PREFIXES 6
#define ORACLE_OUTCOMES 256

struct oracle_check {
	const char *name;
	const char *identity;
	struct check_settings settings;
	enum check_outcome outcomes[ORACLE_OUTCOMES]; /* all of them, oldest first */
	unsigned n_outcomes;
	bool prior;		     /* what it counted as when it first spoke */
	bool again[ORACLE_OUTCOMES]; /* after this outcome a death took back what was proved */
	bool again_unspoken;	     /* the same, before it had spoken */
	enum check_state told;	     /* by transitions */
	struct monotime told_when;   /* of the last one; as configured before it */
};

struct oracle_prefix {
	const char *name;
	bool address_check;
	uint32_t weight;
	enum prefix_word word;
	enum prefix_address address;
	enum prefix_wanted found;
	bool well;		    /* what its checks count as before they speak */
	enum prefix_wanted natural; /* by the rules without words: as last seen, or frozen so */
	bool decided;
	bool last_resort;
	bool weight_of_word;
	enum prefix_shed shed;
	bool permitted;
	bool leaving;
	struct monotime leave_ends;
	bool ramps;
	unsigned ramp_step;
	struct monotime ramp_since;
	struct engine_prefix last;     /* after the decision before */
	struct monotime allowed_since; /* the rules allow more than is wanted; never: they do not */
	enum prefix_wanted told;       /* by transitions */
	enum prefix_reason told_reason;
	struct monotime told_when;
};

struct oracle_service {
	const char *name;
	struct service_require require;
	bool keep_on_stop;
	unsigned floor;
	struct ramp_settings slow_start;
	struct damping_settings hold_down;
	struct leave_settings leave;
	struct damping damping; /* by core/damping, whose arithmetic test-core-damping holds */
	bool sick; /* as of the last decision: unhealthy, and not by shared checks alone */
	enum service_health health;
	struct oracle_check checks[ORACLE_CHECKS];
	size_t n_checks;
	struct oracle_prefix prefixes[ORACLE_PREFIXES];
	size_t n_prefixes;
	enum service_health told;
};

struct oracle {
	uint64_t coalesce_ms;
	bool stopping;
	bool frozen;
	struct monotime spread; /* its end; never: it is over */
	struct monotime now;
	struct monotime idle_at; /* of the last decision after which no announcement waited */
	struct oracle_service services[ORACLE_SERVICES];
	size_t n_services;
};

/* Becomes `next`, with the state of what is configured as before; the names alone count. */
void oracle_configure(struct oracle *o, const struct oracle *next, struct monotime now);

void oracle_found(struct oracle *o, size_t service, size_t prefix, enum prefix_wanted found);
/* The start's spread, where nothing was found announced. */
void oracle_spread(struct oracle *o, uint64_t delay_ms, struct monotime now);
/* What leaves gently does so at once. */
void oracle_hurry(struct oracle *o, struct monotime now);
void oracle_permit(struct oracle *o, size_t service, size_t prefix);
void oracle_check_spoke(struct oracle *o, size_t service, size_t check, enum check_outcome outcome);
/* Right after a decision. */
void oracle_restarted(struct oracle *o, size_t service, struct monotime ordered);

/* Reads all transitions; before a reload, since it drops them. */
void oracle_hear(struct oracle *o, struct engine *e);
/* Holds the engine, as it was configured, against `o` before it decides: reload alone changes
 * nothing. */
void oracle_check_configured(const struct oracle *o, const struct engine *e);
/* Holds everything against `o` after engine_decide() returned `changed` at `now`. Reads all
 * transitions. Returns how many prefixes it judged. */
unsigned oracle_check_decided(
	struct oracle *o, struct engine *e, bool changed, struct monotime now);

#endif
