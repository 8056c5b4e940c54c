#ifndef REDSHANK_CORE_SHED_PRIVATE_H
#define REDSHANK_CORE_SHED_PRIVATE_H
/*
 * What the files of shed_*.c share, and what the model checker copies and compares; nobody else
 * includes it. Everything is an array of a size that shed_configure() fixes: nothing is allocated
 * between two configurations.
 */
#include "agent/core/shed.h"

enum shed_phase {
	SHED_PHASE_FREE,
	SHED_PHASE_ASKING,
	SHED_PHASE_OUT,
	SHED_PHASE_ENDING, /* gives its promises back, then it is free */
};

/* One neighbour's part in a record. */
struct shed_held {
	uint32_t neighbour;
	uint8_t refused;  /* enum shed_refusal, of the last answer */
	bool asked;	  /* something was sent */
	uint64_t share;	  /* room asked for, margin included */
	uint64_t load_at; /* the neighbour's load when the prefix went, for the effect test */
	struct monotime call_at;      /* when to send the next call */
	struct monotime granted_sent; /* when the call was sent that was granted last */
	struct monotime until;	      /* our end of its promise; zero: none */
};

/* A prefix that we ask for, or that is out. */
struct shed_record {
	enum shed_phase phase;
	enum shed_purpose purpose;
	size_t prefix;
	uint64_t request;
	enum shed_why why;     /* OVERLOAD, OPERATOR */
	struct monotime since; /* of the phase */
	uint64_t load;	       /* of the prefix when it was asked for */
	uint64_t own_load;     /* of the server when the prefix went */
	uint64_t whole;	       /* the same, with all that was out before */
	uint64_t tier;	       /* the receivers that it was asked for, as one number */
	unsigned order;
	bool settled; /* the loads show it: the effect was judged */
	size_t n_held;
	struct shed_held *held; /* n_neighbours */
};

/* What we promised. It binds until `until`; its room is kept until `until` and a settling time. */
struct shed_promised {
	bool used;
	enum shed_purpose purpose;
	size_t neighbour, prefix;
	uint64_t boot, request, share;
	struct monotime until;
};

struct shed_changes {
	struct monotime at[SHED_CHANGES_MAX];
	unsigned n; /* all that ever were; the newest at (n - 1) % SHED_CHANGES_MAX */
};

struct shed_prefix_state {
	char *name;
	uint32_t weight;
	unsigned floor;
	bool floor_health;
	struct shed_prefix_facts facts;
	enum shed_word word;
	bool leave;
	enum shed_permit permit;
	struct monotime leave_since;
	struct monotime permit_retry;
	struct monotime hold_until; /* left alone until */
	unsigned penalty;	    /* the hold doubles so often */
	struct monotime changes[SHED_PREFIX_CHANGES_MAX];
	unsigned n_changes;
	enum shed_why why; /* the obstacle, as far as it was judged */
	size_t why_neighbour;
	enum shed_why last;
	struct monotime last_at;
	struct shed_record *record; /* of purpose shed, ASKING or OUT */
	struct shed_record *permit_record;
};

struct shed_seen { /* a prefix as a neighbour reports it */
	uint16_t weight;
	uint16_t load_bp;
	uint8_t state;
	bool gone; /* BIRD has no route of it */
};

struct shed_neighbour {
	char *name;
	uint64_t rank;
	bool heard;
	struct monotime asked;
	uint64_t boot;
	bool valid, willing;
	uint64_t capacity, load, spare;
	uint32_t want, n_sheds;
	struct monotime wants_since; /* or since its last shed */
	struct shed_seen *seen;	     /* n_prefixes */
};

struct shed_wait { /* after requests that failed */
	struct monotime until;
	unsigned n_failed; /* in a row */
};

struct shed {
	struct shed_settings settings;
	struct monotime started;
	uint64_t rank;

	size_t n_prefixes, n_neighbours, n_records, n_promised;
	size_t n_shed_records; /* the first of the records; the others are for permits */
	struct shed_prefix_state *prefixes;
	struct shed_neighbour *neighbours;
	struct shed_seen *seen;
	struct shed_record *records;
	struct shed_held *held;
	struct shed_promised *promised;	 /* n_promised */
	struct shed_guard_prefix *guard; /* n_prefixes, scratch */

	struct shed_own own;
	bool is_over, is_under, is_top;
	struct monotime over_since, under_since, top_since, able_at, picked_at;
	struct monotime last_change, last_return;
	struct monotime stopped_until, late_until;
	struct shed_wait wait, hand_wait;
	unsigned no_effect; /* in a row */
	bool alarm;
	uint32_t want;
	enum shed_why why;
	struct shed_changes changes;
	struct monotime deadline; /* of what no record tells */
	struct monotime decided_at;
	bool decided, changed;
	uint64_t last_request;
	unsigned last_order;
	size_t obeyed; /* the prefix that was asked for last by an operator's hand */
	uint64_t n_sheds, n_restores, n_granted, n_refused;
};

/* Amounts. */
static inline uint64_t shed_part(uint64_t whole, uint64_t bp)
{
	return whole * bp / SHED_WHOLE_BP;
}

static inline bool shed_is_above(uint64_t load, uint64_t capacity, unsigned bp)
{
	return load * SHED_WHOLE_BP > capacity * bp;
}

/* shed.c */
bool shed_is_fresh(const struct shed *s, const struct shed_neighbour *j, struct monotime now);
/* As last known: announces it in whatever health, and is not forgotten. */
bool shed_announces(
	const struct shed *s, const struct shed_neighbour *j, size_t prefix, struct monotime now);
bool shed_is_starting(const struct shed *s, struct monotime now);
enum shed_state shed_own_state(const struct shed *s, size_t prefix);
/* Fresh healthy announcers besides this server. */
unsigned shed_others(const struct shed *s, size_t prefix, struct monotime now);
uint64_t shed_own_spare(const struct shed *s, struct monotime now);

/* shed_grant.c */
bool shed_is_bound(const struct shed *s, size_t prefix, struct monotime now, struct monotime *ret);
uint64_t shed_reserved(const struct shed *s, struct monotime now);
void shed_promises_expire(struct shed *s, struct monotime now);

/* shed_ask.c */
/* A free one for this purpose. NULL: as many as can be counted are out or asked for. */
struct shed_record *shed_record_free(struct shed *s, enum shed_purpose purpose);
struct shed_record *shed_record_new(
	struct shed *s, size_t prefix, enum shed_purpose purpose, struct monotime now);
void shed_record_ask(struct shed_record *r, size_t neighbour, uint64_t share, struct monotime now);
unsigned shed_record_live(const struct shed_record *r, struct monotime now);
void shed_record_end(struct shed *s, struct shed_record *r, struct monotime now);
/* All that were asked have promised, and the promises hold. */
bool shed_record_is_whole(const struct shed_record *r, struct monotime now);
/* Index in held of the first that refused; SIZE_MAX: nobody. */
size_t shed_record_refused(const struct shed_record *r);
void shed_leases_check(struct shed *s, struct monotime now);
struct monotime shed_record_deadline(const struct shed *s, const struct shed_record *r);

/* shed_pick.c */
/* What the prefixes that are out carried when they went. */
uint64_t shed_load_out(const struct shed *s);
/* Own load as it will be when the sheds that do not show yet do; `ret_n`: how many those are. */
uint64_t shed_expected(const struct shed *s, unsigned *ret_n);
/* The tier as one number; 0: there is nobody. False with `ret_stale` set: unknown. */
bool shed_tier(const struct shed *s, size_t prefix, struct monotime now, uint64_t *ret_tier,
	uint32_t *ret_weight, size_t *ret_stale);
/* What stands in the way of this prefix; NOT_PICKED: nothing. By an operator's hand, size
 * and back-off do not count. */
enum shed_why shed_obstacle(const struct shed *s, size_t prefix, bool by_hand, struct monotime now,
	size_t *ret_neighbour);
/* The best candidate, or SIZE_MAX; notes every prefix's obstacle. */
size_t shed_pick(struct shed *s, struct monotime now);
/* Opens a record and asks everybody who has to promise. NULL: no record is free. */
struct shed_record *shed_begin(
	struct shed *s, size_t prefix, enum shed_why why, struct monotime now);
uint64_t shed_return_load(const struct shed *s, const struct shed_record *r, struct monotime now);

/* shed_effect.c */
void shed_judge_effects(struct shed *s, struct monotime now);

/* shed_permit.c */
void shed_permits_decide(struct shed *s, struct monotime now, uint64_t random);

/* shed_decide.c */
void shed_restore(struct shed *s, struct shed_record *r, enum shed_why why, struct monotime now);
bool shed_is_late(const struct shed *s, struct monotime now);
/* It has changed as often as it may. */
bool shed_prefix_budget_full(
	const struct shed *s, const struct shed_prefix_state *p, struct monotime now);

#endif
