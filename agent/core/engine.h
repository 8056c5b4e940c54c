#ifndef REDSHANK_CORE_ENGINE_H
#define REDSHANK_CORE_ENGINE_H
/*
 * The engine: facts and a time go in, the wanted state of every prefix and the next deadline come
 * out. It asks no clock, calls nothing, and gives the same answer to the same facts, so that it is
 * replayed, simulated, fuzzed and property-tested as it is.
 *
 * Use: engine_configure(), then engine_found() for each prefix, then any facts in any order, each
 * followed by engine_decide() before the wanted state is read. Services, checks and prefixes are
 * named by their index in the configuration that was passed last.
 *
 * Whatever makes a prefix less attractive is wanted at once. What makes it more so (withdraw ->
 * demote -> announce) waits for the end of a window: the first prefix that the rules allow opens
 * it, it closes `coalesce_ms` later, and all that are allowed by then are wanted together. While a
 * prefix waits, its wanted state, reason and `since` stay as they were, so that a verdict that
 * changes back meanwhile is never seen outside. What was found announced stays announced without a
 * wait.
 *
 * Invariants that hold after every engine_decide() are numbered E1, E2, ... in docs/invariants.md
 * and asserted by tests/unit and tests/scenario.
 */
#include "agent/core/check.h"
#include "agent/core/damping.h"
#include "agent/core/guard.h"
#include "agent/core/leave.h"
#include "agent/core/prefix.h"
#include "agent/core/ramp.h"
#include "agent/core/service.h"

struct engine;

struct engine_check_config {
	const char *name;
	const char
		*identity; /* equal text: the same check, whose history a new configuration keeps */
	struct check_settings settings;
};

struct engine_prefix_config {
	const char *name; /* as "192.0.2.53/32"; a prefix keeps its state when it changes service */
	uint32_t weight;  /* its own: 0 to 65,535 */
	bool address_check;
	bool last_resort;    /* it can be demoted */
	bool weight_of_word; /* `weight` is an operator's, and slow start has no say */
};

struct engine_service_config {
	const char *name;
	struct service_require require;
	bool keep_on_stop;
	unsigned floor; /* unhealthy, a prefix leaves only with a permit; 0: it just leaves */
	struct ramp_settings slow_start;
	struct damping_settings hold_down;
	struct leave_settings leave;
	const struct engine_check_config *checks;
	size_t n_checks;
	const struct engine_prefix_config *prefixes;
	size_t n_prefixes;
};

struct engine_config {
	uint64_t coalesce_ms;
	const struct engine_service_config *services;
	size_t n_services;
};

/* The engine's view of a prefix, for those who act and those who show. */
struct engine_prefix {
	enum prefix_wanted wanted;
	enum prefix_reason reason;
	uint32_t weight;	      /* with which it is announced, or would be now */
	bool graceful;		      /* announced with GRACEFUL_SHUTDOWN: it is about to leave */
	bool sound;		      /* its service announces it as healthy, but for being shed;
					 while a reload asks checks anew, it did before */
	bool asks_permit;	      /* kept_by_floor: engine_permit() would let it leave */
	struct monotime asks_since;   /* of `asks_permit`; never: it does not ask */
	struct monotime since;	      /* of `wanted` and `reason` */
	struct monotime announces_at; /* when a waiting announcement is due; never: none waits */
};

enum engine_transition_kind {
	ENGINE_TRANSITION_CHECK,   /* from, to: enum check_state */
	ENGINE_TRANSITION_SERVICE, /* from, to: enum service_health */
	ENGINE_TRANSITION_PREFIX,  /* from, to: enum prefix_wanted; equal: only the reason is new */
};

struct engine_transition {
	enum engine_transition_kind kind;
	size_t service;
	size_t index; /* of the check or the prefix */
	int from, to;
	enum prefix_reason reason; /* for `to`, of a prefix */
	struct monotime when;
};

/* Heap; NULL when there is no memory. */
struct engine *engine_new(void);
void engine_free(struct engine *e);

/*
 * Takes a new configuration; every text is copied. What is configured as before keeps its state,
 * counters and history. A check that is new, has another identity or other settings, or is in a
 * service of another name, is pending; the prefixes of its service keep what is wanted now until it
 * has spoken, and that is also what it counts as before it has. A prefix keeps its state when its
 * service is renamed or it moves to another one; a new prefix starts as found withdrawn.
 * Transitions that were not read are dropped, since their indexes mean something else now. 0 or
 * -ENOMEM, with the old configuration untouched. A name that stands twice (a prefix in two
 * services) is a caller's mistake (asserted).
 */
int engine_configure(struct engine *e, const struct engine_config *config, struct monotime now);

/* The same in two steps, for those who have more to change than the engine: what can fail, then
 * what cannot. engine_commit() takes the change over; a prepared one may be freed instead. */
struct engine_change;
int engine_prepare(
	struct engine_change **ret, const struct engine_config *config, struct monotime now);
void engine_commit(struct engine *e, struct engine_change *change);
void engine_change_free(struct engine_change *change);
/* True when the prefix is announced or demoted now and the change does not have it any more. */
bool engine_change_drops(
	const struct engine *e, const struct engine_change *change, size_t service, size_t prefix);
/* The same of all prefixes, for guard_refuses(). */
struct guard_count engine_change_count(const struct engine *e, const struct engine_change *change);

/* What the prefix of the change is until it is decided about anew: what it is now where it is
 * known, of whichever service. Valid until the engine is called again. */
const struct engine_prefix *engine_change_prefix(
	const struct engine *e, const struct engine_change *change, size_t service, size_t prefix);

/*
 * systemd was ordered at `ordered` to restart the service's unit, and has. What a check has proved
 * before that, it has proved of the process that was: where the service is unhealthy, as of the
 * last decision, each that is up since then at the latest has to rise again. engine_check_spoke()
 * does so by itself for a death that it is told of.
 */
void engine_restarted(
	struct engine *e, size_t service, struct monotime ordered, struct monotime now);

/* What BIRD was found doing before the first decision about this prefix; ignored after it. Tell the
 * operators' words before that decision, too: what one of them forces is no sign of health. */
void engine_found(struct engine *e, size_t service, size_t prefix, enum prefix_wanted found);

/*
 * Many agents may start together: where nothing was found announced, nothing is announced by itself
 * until `delay_ms` from now, which the caller draws at random. Call it after engine_found().
 */
void engine_spread(struct engine *e, uint64_t delay_ms, struct monotime now);

void engine_check_spoke(struct engine *e, size_t service, size_t check, enum check_outcome outcome,
	struct monotime now);
void engine_address(struct engine *e, size_t service, size_t prefix, enum prefix_address address);
void engine_word(struct engine *e, size_t service, size_t prefix, enum prefix_word word);
/* By core/shed: rule 6. DEMOTE is for prefixes with a last resort. */
void engine_shed(struct engine *e, size_t service, size_t prefix, enum prefix_shed shed);
/* Enough neighbours have promised to stay: the prefix that asks may leave. Ignored when it does not
 * ask; a permit is for one leaving. */
void engine_permit(struct engine *e, size_t service, size_t prefix);
/*
 * The operator's freeze of the whole server: nothing changes by itself until the thaw, but for what
 * a dead process or a missing address withdraws. Words about prefixes still act, and when one ends
 * the prefix goes back to what the freeze holds. The thaw lets everything catch up.
 */
void engine_freeze(struct engine *e, bool frozen);
bool engine_is_frozen(const struct engine *e);
/*
 * The agent is leaving; there is no way back. Prefixes of services without `keep_on_stop` are
 * withdrawn by the next engine_decide(), those of the others stay as they are whatever comes, but
 * that what was shed, and engine_shed() says so no longer, is announced.
 */
void engine_stop(struct engine *e);

/* Whatever leaves gently does so no longer: the next engine_decide() withdraws it. */
void engine_hurry(struct engine *e, struct monotime now);
/* When the last of what leaves gently now is withdrawn; MONOTIME_ZERO: nothing does. */
struct monotime engine_left(const struct engine *e, struct monotime now);

/* Judges everything again at `now`. Returns true when anything that engine_prefix() shows but
 * `announces_at` changed. */
bool engine_decide(struct engine *e, struct monotime now);
/* When engine_decide() must be called again though no fact came; never: not at all. */
struct monotime engine_deadline(const struct engine *e);

const struct engine_prefix *engine_prefix(const struct engine *e, size_t service, size_t prefix);
/* When the hold-down of a service ends, if it does not flap again; never: none runs. */
struct monotime engine_reuse(const struct engine *e, size_t service);
/* When a ramp takes its next step; never: the prefix is on none, or frozen. */
struct monotime engine_next_step(const struct engine *e, size_t service, size_t prefix);
/* When a prefix that leaves gently is withdrawn; never: it does not. */
struct monotime engine_leaves(
	const struct engine *e, size_t service, size_t prefix, struct monotime now);
/* When the start's spread is over; never: it is. */
struct monotime engine_spread_ends(const struct engine *e);
const struct check *engine_check(const struct engine *e, size_t service, size_t check);
enum service_health engine_health(const struct engine *e, size_t service);

/*
 * The oldest transition that was not read yet; false when there is none. They come in the order in
 * which they happened. The queue is bounded, with room for whatever one engine_decide() can change:
 * when nobody reads, the oldest are dropped.
 */
bool engine_next_transition(struct engine *e, struct engine_transition *ret);

#endif
