#ifndef REDSHANK_CORE_PLAN_H
#define REDSHANK_CORE_PLAN_H
/*
 * Wanted against observed: the one next step for each protocol of ours in BIRD. Pure; bird/apply
 * carries it out and comes back with what it then observes. A restarted, reconfigured or forgetful
 * BIRD is repaired by the same table that announces.
 *
 * The fragment is a file and its content is not decided here: bird/apply makes it true before it
 * carries out any step. `body` is an id of the protocol's text without its `disabled;` line: equal
 * ids mean that BIRD would announce the same thing.
 *
 *   want   seen     loaded              step
 *   down   up       any                 disable
 *   down   down     any                 none
 *   down   absent   -                   configure (so that a later enable is enough)
 *   down   any      coming              disable (right behind the configure under way)
 *   up     absent   -                   configure
 *   up     up       as wanted           none
 *   up     up       unknown             read (the route, back from BIRD)
 *   up     up       other               configure
 *   up     down     as wanted           enable
 *   up     down     unknown or other    configure; enable where BIRD refuses to configure, since a
 *                                       healthy prefix at an old weight is better than none; not
 *                                       where it is `partial`
 *   gone   up       any                 disable (no longer configured: its removal is a withdrawal)
 *   gone   down     any                 configure (so that BIRD forgets it)
 *   gone   absent   -                   none
 *   any    unknown  any                 observe
 *
 * A refused `configure` (bird.conf is broken) is not repeated before its back-off has run out;
 * until then its place in the table is taken by `wait`.
 */
#include <stdbool.h>
#include <stdint.h>

enum plan_want {
	PLAN_WANT_GONE,
	PLAN_WANT_DOWN,
	PLAN_WANT_UP,
};

enum plan_seen {
	PLAN_SEEN_UNKNOWN,
	PLAN_SEEN_ABSENT,
	PLAN_SEEN_DOWN,
	PLAN_SEEN_UP,
};

#define PLAN_BODY_UNKNOWN 0

struct plan_protocol {
	enum plan_want want;
	uint64_t body;
	enum plan_seen seen;
	uint64_t loaded; /* the body that BIRD holds, or PLAN_BODY_UNKNOWN */
	bool partial; /* of several prefixes some are to be out: another body may announce them */
	bool coming;  /* a `configure` under way brings it up, whatever is seen of it */
};

struct plan_bird {
	bool configure_refused; /* the last one was, and its back-off runs */
};

enum plan_step {
	PLAN_STEP_NONE,
	PLAN_STEP_DISABLE,
	PLAN_STEP_ENABLE,
	PLAN_STEP_CONFIGURE,
	PLAN_STEP_READ,
	PLAN_STEP_OBSERVE,
	PLAN_STEP_WAIT,
};

enum plan_step plan_next(const struct plan_protocol *protocol, const struct plan_bird *bird);

const char *plan_step_name(enum plan_step step);

#endif
