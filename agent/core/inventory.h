#ifndef REDSHANK_CORE_INVENTORY_H
#define REDSHANK_CORE_INVENTORY_H
/*
 * What the engine keeps of a configuration: its services, checks and prefixes with their state, and
 * a sorted index of their names by which the state moves into the next configuration. Private to
 * core/; the engine is its only caller.
 */
#include "agent/core/damping.h"
#include "agent/core/engine.h"

struct inventory_prefix {
	char *name;
	bool address_check;
	bool decided;		  /* once: what BIRD was found doing comes too late after that */
	enum prefix_wanted found; /* without what an operator's word made of it */
	bool found_well; /* by the rules, which neither a word nor a shed speaks for or against */
	enum prefix_wanted held; /* what the rules came to last without the operator's word */
	enum prefix_word word;
	enum prefix_address address;
	enum prefix_shed shed;
	bool permitted; /* to leave unhealthy, though the floor holds it */
	bool last_resort;
	uint32_t own_weight; /* as configured, */
	bool weight_of_word; /* or as an operator gave it: then it is never ramped */
	struct leave leave;
	bool ramps; /* it came, and is not at its own weight yet: */
	unsigned ramp_step;
	struct monotime ramp_started;
	struct engine_prefix view;
};

struct inventory_label {
	char *name;
	char *identity;
};

struct inventory_service {
	char *name;
	struct service_require require;
	bool keep_on_stop;
	unsigned floor;
	/* Of its checks, as it was judged last: all have spoken; service_is_doubted(). */
	bool all_spoken, doubted;
	struct ramp_settings slow_start;
	struct damping_settings hold_down;
	struct leave_settings leave;
	enum service_health health;
	enum service_cause cause;
	struct damping damping;
	struct monotime next; /* when time alone changes something; never: it does not */
	bool stale;	      /* a fact came since it was judged last */
	struct check *checks;
	struct inventory_label *labels; /* of the checks, by the same index */
	size_t n_checks;
	struct inventory_prefix *prefixes;
	size_t n_prefixes;
	size_t n_waiting; /* prefixes whose announcement waits */
};

enum inventory_kind {
	INVENTORY_SERVICE,
	INVENTORY_CHECK,
	INVENTORY_PREFIX,
};

struct inventory_entry {
	enum inventory_kind kind;
	const char *name;
	const char *scope; /* where the name is unique: a check's service, else "" */
	const struct inventory_service *service;
	size_t index; /* in the service */
};

struct inventory {
	struct inventory_service *services;
	size_t n_services;
	struct inventory_entry *entries; /* of all, sorted by kind, name and scope */
	size_t n_entries;
};

/*
 * Copies the configuration; every check is pending and every prefix is found withdrawn. A name that
 * stands twice is the caller's mistake (asserted). 0; -ENOMEM with nothing kept.
 */
int inventory_build(struct inventory *ret, const struct engine_config *config, struct monotime now);
void inventory_done(struct inventory *inventory);

/* The prefix of this name; NULL: none is configured. */
const struct inventory_prefix *inventory_prefix_named(
	const struct inventory *inventory, const char *name);

/*
 * Moves the state of what is configured as before:
 *  - a check with the same service, name, identity and settings goes on where it was;
 *  - a prefix keeps all of its state, in whatever service it is now;
 *  - where that service has a check which has to be asked anew, or is another one than before, what
 *    is wanted of the prefix now counts as what BIRD was found doing: it stays until the checks of
 *    the new configuration have spoken. Where an operator's word made it that, what the rules made
 *    of it counts instead; and for the checks, the same where it is shed.
 */
void inventory_carry_over(struct inventory *next, const struct inventory *last);

#endif
