#ifndef REDSHANK_CORE_MANAGED_H
#define REDSHANK_CORE_MANAGED_H
/*
 * When an address that the agent manages comes and goes: `manage_addresses`. The rules are
 * numbered; the first that matches wins. docs/invariants.md has what is always true of them.
 *
 *  0. kept       the agent leaves and BIRD keeps what is announced, or what BIRD does is not known
 *                yet: nothing is removed
 *  1. handed     the prefix is configured, and its service manages no addresses (any more): whose
 *                the address is now, an operator decides
 *  2. wanted     the service is here, healthy or not, since its checks may well speak to this very
 *                address: it is added where it is missing. `others` where somebody else has put it
 *  3. others     what somebody else has put there is never removed
 *  4. announced  to be removed, and something still wants packets for it
 *  5. bird       to be removed, and BIRD is not known to have withdrawn it
 *  6. grace      to be removed, and packets may still be under way
 *  7. removed
 */
#include <stdbool.h>

enum managed_action {
	MANAGED_ACTION_NONE,
	MANAGED_ACTION_ADD,
	MANAGED_ACTION_REMOVE, /* each of ours */
	MANAGED_ACTION_TIDY,   /* those of ours that are not where they belong */
};

enum managed_state {
	MANAGED_STATE_KEPT,
	MANAGED_STATE_HANDED,
	MANAGED_STATE_PRESENT,
	MANAGED_STATE_OTHERS,  /* there, but not ours */
	MANAGED_STATE_MISSING, /* to be added */
	MANAGED_STATE_ANNOUNCED,
	MANAGED_STATE_BIRD,
	MANAGED_STATE_GRACE,
	MANAGED_STATE_ABSENT, /* neither here nor wanted */
};

enum managed_bird {
	MANAGED_BIRD_UNKNOWN, /* away, silent, or not read since */
	MANAGED_BIRD_ANNOUNCES,
	MANAGED_BIRD_WITHDRAWN, /* announced by nobody here, exported to nobody */
};

struct managed_facts {
	bool kept;	 /* rule 0 */
	bool configured; /* the prefix is */
	bool managed;	 /* and its service manages its addresses */
	bool leaves;	 /* drained, or stopping without `keep` */
	bool wanted;	 /* it, or a configured prefix around it, is to be announced or demoted */
	enum managed_bird bird;
	bool grace_over; /* since BIRD withdrew it */
	bool here;	 /* on the interface where it belongs, usable */
	bool ours;	 /* one or more on this host have our mark */
	bool ours_apart; /* one of them is on another interface */
	bool others;	 /* usable, on whichever interface, without our mark */
	bool may_add;	 /* it was not added a moment ago */
	bool may_remove; /* nor was it, in vain, removed */
};

struct managed_verdict {
	enum managed_action action;
	enum managed_state state;
};

struct managed_verdict managed_decide(const struct managed_facts *facts);

/* "kept", "handed", "present", "others", "missing", "announced", "bird", "grace", "absent" */
const char *managed_state_name(enum managed_state state);

#endif
