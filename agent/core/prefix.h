#ifndef REDSHANK_CORE_PREFIX_H
#define REDSHANK_CORE_PREFIX_H
/*
 * What should be true of one prefix, by the numbered rules. The first rule that matches wins, and
 * its name is the reason that log, status, metrics and the manual show.
 *
 *  0. stopping         the agent is leaving and the service's on_stop is `withdraw`
 *  1. drained, forced  the operator's word about the prefix
 *     frozen           the operator's word about everything: what rules 3 to 7 would change stays
 *                      as it was; a dead process and a missing address pass it
 *  2. address_missing  no address of this host lies in the prefix
 *  3. unhealthy        `require` of the service's checks is not met, whatever shared checks say
 *     kept_by_floor    the same, but too few others are known to announce it; never of the dead
 *  4. first_round      until every check has spoken once and the start's spread is over, what BIRD
 *                      was found doing; not of what is shed, which rule 6 keeps so
 *  5. held_down        it flapped, and comes back when its penalty has decayed
 *  6. shed             handed to neighbours, because this server is overloaded
 *  7. in_doubt         it could come back, but the last outcome of a check that counts was bad:
 *                      what is out stays out until that check has made up its mind
 *     shared_unhealthy only checks that every server shares are down: demoted, where possible
 *     ramping          healthy, on the way to its own weight
 *     healthy
 *
 * Who leaves gently (0, `drained`) stays announced for a while, with GRACEFUL_SHUTDOWN, as long as
 * rules 2 to 7 would announce it.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/core/service.h"

enum prefix_wanted {
	PREFIX_WANTED_WITHDRAW,
	PREFIX_WANTED_DEMOTE, /* announced at a weight that every other announcer beats */
	PREFIX_WANTED_ANNOUNCE,
};

enum prefix_reason {
	PREFIX_REASON_STOPPING,
	PREFIX_REASON_DRAINED,
	PREFIX_REASON_FORCED,
	PREFIX_REASON_FROZEN,
	PREFIX_REASON_ADDRESS_MISSING,
	PREFIX_REASON_UNHEALTHY,
	PREFIX_REASON_KEPT_BY_FLOOR,
	PREFIX_REASON_FIRST_ROUND,
	PREFIX_REASON_HELD_DOWN,
	PREFIX_REASON_SHED,
	PREFIX_REASON_IN_DOUBT,
	PREFIX_REASON_SHARED_UNHEALTHY,
	PREFIX_REASON_RAMPING,
	PREFIX_REASON_HEALTHY,
};

enum prefix_word { /* the operator's */
	PREFIX_WORD_NONE,
	PREFIX_WORD_DRAINED,
	PREFIX_WORD_FORCED,
};

enum prefix_address {
	PREFIX_ADDRESS_UNKNOWN, /* not asked yet, or could not be asked: says nothing */
	PREFIX_ADDRESS_PRESENT, /* or address_check is off */
	PREFIX_ADDRESS_MISSING,
};

enum prefix_shed { /* by core/shed */
	PREFIX_SHED_NONE,
	PREFIX_SHED_WITHDRAW,
	PREFIX_SHED_DEMOTE,
};

struct prefix_facts {
	bool stopping;
	enum prefix_word word;
	bool lingers; /* leaves gently, and its time is not over */
	enum prefix_address address;
	enum service_health health;
	enum service_cause cause;
	bool all_spoken;	  /* every check of the service has spoken once */
	bool spread;		  /* the start's spread is not over */
	enum prefix_wanted found; /* what BIRD was found doing when the agent began with it */
	enum prefix_wanted now;	  /* what is wanted of it now */
	bool floored;		  /* unhealthy, it leaves only with a permit, and there is none */
	bool held_down;		  /* its service is suppressed */
	bool doubted;		  /* its service is healthy by checks one of which may be falling */
	enum prefix_shed shed;
	bool ramps;	  /* announced, it would be on the way to its own weight */
	bool last_resort; /* it can be demoted */
	bool frozen;
	enum prefix_wanted
		held; /* what rules 2 to 7 came to last; frozen: what they came to then */
};

struct prefix_verdict {
	enum prefix_wanted wanted;
	enum prefix_reason reason;
};

struct prefix_verdict prefix_decide(const struct prefix_facts *facts);
/* The same without rules 0 and 1's words about the prefix: what it comes to when they end. */
struct prefix_verdict prefix_decide_alone(const struct prefix_facts *facts);

/* "announce", "demote", "withdraw" */
const char *prefix_wanted_name(enum prefix_wanted wanted);
/* "stopping", "drained", ... as in the list above */
const char *prefix_reason_name(enum prefix_reason reason);
/* The rule's number in the list above. */
unsigned prefix_reason_rule(enum prefix_reason reason);

#endif
