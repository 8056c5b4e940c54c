#ifndef REDSHANK_CORE_SHED_H
#define REDSHANK_CORE_SHED_H
/*
 * Shedding: an overloaded server takes some of its prefixes out while neighbours have promised the
 * room for them. Facts and a time go in (own load, the prefixes' loads and states, neighbours'
 * reports, requests for grants, answers to ours); which prefixes are out and why, whom to ask for
 * what, what to promise, and the next deadline come out. It asks no clock, rolls no dice and calls
 * nothing; the simulator in tests/sim drives this very code.
 *
 * Three roles in one server, each in a file of its own:
 *   the wanter    shed_decide.c, shed_pick.c: is it hot, may it, which prefix, its turn, the effect
 *   the holder    shed_ask.c: asks, counts leases from the moment it *sent*, renews, gives back
 *   the receiver  shed_grant.c: promises, keeps what it promised, counts from the moment of receipt
 * and shed_guard.c stands last in every decision.
 *
 * Why it is safe: a prefix leaves only while at least `floor` other servers have promised to go on
 * announcing it; a promise ends for the holder before it ends for the one who gave it; who has
 * promised neither sheds the prefix nor asks to. Reports only tell where asking may be of use.
 *
 * Amounts of load are thousandths of the site's unit of capacity, at most SHED_AMOUNT_MAX. Parts of
 * a whole are basis points (10,000 is all). Neighbours and prefixes are named by their index in the
 * configuration that was passed last. The invariants S1, S2, ... stand in docs/invariants.md.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/monotime.h"

#define SHED_AMOUNT_MAX 1000000000000ull
#define SHED_WHOLE_BP 10000u
#define SHED_OUT_MAX 32	      /* prefixes out or asked for at one time */
#define SHED_PROMISES_MAX 512 /* promises that one receiver gives at one time */
#define SHED_NAME_MAX 255

enum shed_mode {
	SHED_MODE_WITHDRAW, /* the default: the route goes */
	SHED_MODE_DEMOTE,   /* announced at the worst weight, for routers that compare it */
};

enum shed_purpose {
	SHED_PURPOSE_SHED,
	SHED_PURPOSE_HEALTH, /* a permit to leave unhealthy, where a floor holds the prefix */
};

/* A prefix as a server's report shows it. */
enum shed_state {
	SHED_STATE_OUT,	    /* not announced, or demoted: takes no part */
	SHED_STATE_KEPT,    /* announced, but unhealthy, leaving or not confirmed by BIRD */
	SHED_STATE_HEALTHY, /* announced, healthy, confirmed by BIRD */
};

/*
 * Why something is as it is; each has a word for log, status, metrics and explain. What a prefix
 * shows when it is not out is the first obstacle that stands in its way.
 */
enum shed_why {
	/* the server: no need */
	SHED_WHY_COOL,	  /* not above hot */
	SHED_WHY_NOT_YET, /* above hot, but not for long enough */
	/* the server: may not */
	SHED_WHY_OFF,	   /* shedding is not configured */
	SHED_WHY_NO_LOAD,  /* no valid signal of its own load */
	SHED_WHY_STARTING, /* too soon after its own start */
	SHED_WHY_LATE,	   /* its own timer was late */
	SHED_WHY_STOPPED,  /* shedding had no effect twice; stopped for a while */
	SHED_WHY_SETTLING, /* the last change has not settled */
	SHED_WHY_WAITING,  /* after a request that failed or found no candidate */
	SHED_WHY_BUDGET,   /* too many changes lately, of the server or of the prefix */
	SHED_WHY_ALONE,	   /* under half of the neighbours are fresh */
	SHED_WHY_SITE_HOT, /* too much of the site is hot: everybody absorbs */
	SHED_WHY_NOT_TOP,  /* another server's turn */
	SHED_WHY_ASKING,   /* a request is running */
	SHED_WHY_ENOUGH,   /* half of the load is out already */
	/* the prefix: is no candidate */
	SHED_WHY_NOT_ANNOUNCED, /* not announced healthily and confirmed here */
	SHED_WHY_HELD,		/* by an operator's word */
	SHED_WHY_PROMISED,	/* promised to a neighbour */
	SHED_WHY_UNCOUNTED,	/* its load is not known */
	SHED_WHY_TOO_SMALL,
	SHED_WHY_TOO_LARGE,
	SHED_WHY_LAST_PREFIX,  /* the last one that this server announces */
	SHED_WHY_BACK_OFF,     /* left alone after a restore or a refusal */
	SHED_WHY_FLOOR,	       /* too few healthy announcers besides this server */
	SHED_WHY_TIER_UNKNOWN, /* one of those who would receive it is stale */
	SHED_WHY_TIER_HOT,     /* too many of those who would receive it are hot */
	SHED_WHY_NO_ROOM,      /* a receiver has too little room */
	SHED_WHY_NOT_PICKED,   /* a candidate; another one fits better */
	/* out */
	SHED_WHY_OVERLOAD,
	SHED_WHY_OPERATOR,
	/* back, or given up */
	SHED_WHY_RELEASED,	/* the load fell */
	SHED_WHY_LEASES,	/* fewer than `floor` live promises */
	SHED_WHY_NO_EFFECT,	/* own load did not fall */
	SHED_WHY_RECEIVER_ROSE, /* a receiver took more than its share */
	SHED_WHY_REFUSED,	/* a neighbour refused */
	SHED_WHY_TIMEOUT,	/* not all granted in time */
	SHED_WHY_TIER_CHANGED,
	SHED_WHY_UNSHED, /* the operator's word */
	SHED_WHY_GUARD,	 /* the last guard */
	SHED_WHY_GONE,	 /* no longer healthy or configured here */
	SHED_WHY_NEW,	 /* nothing was decided yet */
};
#define SHED_WHY_COUNT (SHED_WHY_NEW + 1)

/* What a receiver answers. The words go over the wire (409 {refused: WORD}). */
enum shed_refusal {
	SHED_REFUSAL_NONE,	    /* granted */
	SHED_REFUSAL_NOT_ANNOUNCED, /* not announced healthily and confirmed, or unknown prefix */
	SHED_REFUSAL_LEAVING,	    /* draining or stopping */
	SHED_REFUSAL_SHEDDING,	    /* has it shed, or is about to */
	SHED_REFUSAL_HOT,
	SHED_REFUSAL_NO_ROOM,
	SHED_REFUSAL_UNWILLING, /* does not receive, or its load is not known */
	SHED_REFUSAL_STARTING,	/* has forgotten what it promised in its last life */
	SHED_REFUSAL_FULL,	/* gives as many promises as it can count */
	SHED_REFUSAL_STALE,	/* a request older than one that it has seen */
};
#define SHED_REFUSAL_COUNT (SHED_REFUSAL_STALE + 1)

struct shed_settings {
	bool enabled; /* sheds at all */
	bool receive; /* gives promises of room */
	enum shed_mode mode;
	/* of the capacity, release < target < accept < hot */
	unsigned release_bp, target_bp, accept_bp, hot_bp;
	unsigned margin_bp;	/* on top of every amount that is asked for */
	unsigned pick_min_bp;	/* of own load: smaller prefixes are not worth a change */
	unsigned pick_max_bp;	/* of own load: larger ones are too much at once */
	unsigned most_bp;	/* of own load: never more than this out */
	unsigned warm_share_bp; /* of its capacity: what may fall on a receiver above accept */
	unsigned site_hot_bp;	/* of the site above hot: from here on everybody absorbs */
	unsigned fresh_bp;	/* of the configured neighbours: so many must be fresh */
	unsigned noise_bp;	/* of capacity: what the effect test takes for noise */
	unsigned drift_bp;	/* of a lease: how much two clocks may differ in speed */
	uint64_t over_ms;	/* above hot for so long before anything is shed */
	uint64_t rank_ms;	/* highest of all wanters for so long (three reports) */
	uint64_t visible_ms; /* from a change until a receiver's own load shows nearly all of it */
	uint64_t settle_ms;  /* from a change until loads show it */
	uint64_t under_ms;   /* under target for so long before anything returns */
	uint64_t release_gap_ms;	   /* between two returns */
	uint64_t ask_ms;		   /* all must have granted within */
	uint64_t wait_min_ms, wait_max_ms; /* after a request that failed, at random */
	uint64_t stale_ms;		   /* an older report says nothing */
	uint64_t forget_ms;		   /* a neighbour silent for longer announces nothing */
	uint64_t lease_ms;		   /* of a promise */
	uint64_t guard_ms;		   /* a holder's lease ends this much earlier */
	uint64_t renew_ms;		   /* between two renewals */
	uint64_t late_ms;		   /* a decision later than its deadline by this was late */
	uint64_t permit_ms;		   /* permits to leave unhealthy must have come within */
	uint64_t back_off_ms, back_off_max_ms; /* of a prefix after a restore; doubles */
	uint64_t leave_alone_ms; /* of a prefix or the server after the effect test failed */
	unsigned prefix_changes; /* in prefix_window_ms */
	uint64_t prefix_window_ms;
	unsigned in_flight;	 /* sheds whose effect does not show yet */
	unsigned server_changes; /* in server_window_ms; at most SHED_CHANGES_MAX */
	uint64_t server_window_ms;
};
#define SHED_CHANGES_MAX 32
#define SHED_PREFIX_CHANGES_MAX 8

/* What docs/shedding.md says; enabled is false. */
struct shed_settings shed_settings_default(void);

/* The one place that judges an order or a range: false fills `ret` with the first fault, as in
 * "`low` (was 8300) must be less than `high` (was 8200)". `high` is NULL for a fault of `low`
 * alone, `limit_low` to `limit_high` being its range. The words are the configuration's keys. */
struct shed_fault {
	const char *low, *high;
	uint64_t low_value, high_value;
	uint64_t limit_low, limit_high;
};
bool shed_settings_check(const struct shed_settings *settings, struct shed_fault *ret);

struct shed_prefix_config {
	const char *name;  /* as "192.0.2.53/32" */
	uint32_t weight;   /* 0 to 65,535; the lowest wins */
	unsigned floor;	   /* announcers that must remain besides this server, at least 1 */
	bool floor_health; /* an unhealthy server may leave only with permits */
};

struct shed_config {
	const char *node;
	struct shed_settings settings;
	const struct shed_prefix_config *prefixes;
	size_t n_prefixes;
	const char *const *neighbours; /* their node names */
	size_t n_neighbours;
};

struct shed;

/* Heap, or NULL when there is no memory. `started` is the moment of the agent's start, for
 * SHED_WHY_STARTING; pass a moment long past only where no promise can have been given. */
struct shed *shed_new(struct monotime started);
void shed_free(struct shed *s);

/*
 * Takes a configuration; texts are copied. A prefix and a neighbour that were there under the same
 * name keep their state; what is out and no longer configured is no longer out (its promises are
 * given back by lapsing). The settings must have passed shed_settings_check() (asserted), names are
 * told once (asserted). 0 or -ENOMEM with the old configuration untouched.
 */
int shed_configure(struct shed *s, const struct shed_config *config, struct monotime now);

/* ---- facts: this server ---- */

struct shed_own {
	bool valid; /* at least one signal speaks; else it neither sheds nor offers room */
	uint64_t capacity, load;
};
void shed_own(struct shed *s, const struct shed_own *own, struct monotime now);

struct shed_prefix_facts {
	bool announced; /* wanted, and BIRD confirms it (false while it is out) */
	bool healthy;	/* the engine would announce it if nothing were shed */
	bool leaving;	/* draining or stopping: promises nothing */
	bool held;	/* an operator's word or a freeze: not to be shed */
	bool counted;	/* `load` is known */
	uint64_t load;
};
void shed_prefix_facts(struct shed *s, size_t prefix, const struct shed_prefix_facts *facts);
/* Its weight now; the order runtime change > row > service is the caller's. */
void shed_prefix_weight(struct shed *s, size_t prefix, uint32_t weight);

enum shed_word {
	SHED_WORD_NONE,
	SHED_WORD_SHED,	  /* out as soon as neighbours have promised the room, until further word */
	SHED_WORD_UNSHED, /* back at once, and held */
};
/* Returns at once; what becomes of it shows in shed_prefix(). */
void shed_word(struct shed *s, size_t prefix, enum shed_word word, struct monotime now);

/* The engine wants this unhealthy prefix out (true), or no longer (false). Only for prefixes with
 * `floor_health`; a dead process, a missing address and an operator's word never come here. */
void shed_leave(struct shed *s, size_t prefix, bool leave, struct monotime now);

enum shed_permit {
	SHED_PERMIT_NONE,    /* nobody asked to leave */
	SHED_PERMIT_WAITING, /* at most `permit_ms` */
	SHED_PERMIT_GRANTED, /* go, at once */
	SHED_PERMIT_KEPT,    /* kept_by_floor: stays, and goes on asking */
};
enum shed_permit shed_permit(const struct shed *s, size_t prefix);

/* ---- facts: neighbours ---- */

struct shed_report_prefix { /* six bytes, since there are neighbours x prefixes of them */
	uint16_t weight;
	uint16_t load_bp; /* of the reporter's capacity */
	uint8_t state;	  /* enum shed_state */
};

struct shed_report {
	uint64_t boot; /* another value: another life of that agent */
	bool valid;    /* its own load is known; else the amounts below say nothing */
	uint64_t capacity, load, spare;
	bool willing;
	uint32_t want; /* 0: does not want to shed; else its severity */
	uint32_t n_sheds;
	/* by *our* index of prefixes, n_prefixes long; what it does not mention is OUT */
	const struct shed_report_prefix *prefixes;
};

/*
 * A report arrived. `asked` is when the request for it was sent, by our clock: it is as old as
 * that. One whose request is older than that of the last one is ignored. Copied.
 */
void shed_report(struct shed *s, size_t neighbour, const struct shed_report *report,
	struct monotime asked, struct monotime now);
/* BIRD has no route of this neighbour's for the prefix any more (false), or has one (true); until
 * it is told, the report alone counts. */
void shed_route(struct shed *s, size_t neighbour, size_t prefix, bool there);

/* Our own report for others. `prefixes` has room for n_prefixes. */
void shed_report_own(struct shed *s, struct shed_report *ret, struct shed_report_prefix *prefixes,
	struct monotime now);

/* ---- the receiver ---- */

struct shed_request {
	size_t neighbour; /* who asks: the one whose certificate the connection showed */
	uint64_t boot;	  /* its life */
	size_t prefix;
	uint64_t share; /* room that is asked for, margin included; 0: only to go on announcing */
	enum shed_purpose purpose;
	uint64_t request; /* its number, rising within one life; the same number renews */
};

struct shed_answer {
	enum shed_refusal refused; /* NONE: granted */
	uint64_t lease_ms;	   /* from receipt, when granted */
};

/* POST /v1/grant. The promise, or the reason why not. */
struct shed_answer shed_grant(
	struct shed *s, const struct shed_request *request, struct monotime now);
/* DELETE /v1/grant: only node, boot, prefix, purpose and request count. */
void shed_give_back(struct shed *s, const struct shed_request *request, struct monotime now);

/* ---- the holder ---- */

struct shed_call {
	bool give_back; /* DELETE, whose answer nobody waits for; else POST */
	size_t neighbour;
	size_t prefix;
	uint64_t share;
	enum shed_purpose purpose;
	uint64_t request;
	struct monotime sent; /* handed back with the answer: the lease counts from here */
};

/* The next call that is due; the caller sends it at once (or drops it: it comes again). Read until
 * false after every shed_decide(). */
bool shed_next_call(struct shed *s, struct shed_call *ret, struct monotime now);
/* What came back for `call`: granted or refused. What failed to come back is not told. */
void shed_answered(struct shed *s, const struct shed_call *call, const struct shed_answer *answer,
	struct monotime now);

/* ---- decisions ---- */

/*
 * Judges everything again. `random` is any fresh number. Returns true when a prefix went out or
 * came back, or a permit changed: what BIRD is to be told. Call it after every fact and at
 * shed_deadline(); a call later than that by `late_ms` shows that this process did not run, and
 * nothing is shed until `stale_ms` after.
 */
bool shed_decide(struct shed *s, struct monotime now, uint64_t random);
struct monotime shed_deadline(const struct shed *s);

/* A prefix, for those who act and those who explain. */
struct shed_prefix {
	bool out;
	enum shed_mode mode;
	enum shed_why why;     /* out: why; else what stands in the way, or why it came back */
	struct monotime since; /* of `out` */
	struct monotime until; /* of the obstacle or the lease; never: no end known */
	size_t neighbour;      /* whom `why` is about; SIZE_MAX: nobody */
	unsigned n_promised;   /* promises that we hold for it */
	unsigned n_owed;       /* promises that we gave for it */
	uint64_t load_moved;   /* what it carried when it went */
	unsigned order;	       /* 1: the first that went; the highest comes back first */
	enum shed_why last;    /* why it came back, or was given up, the last time; NEW: never */
	struct monotime last_at;
};
void shed_prefix(const struct shed *s, size_t prefix, struct shed_prefix *ret, struct monotime now);

/* The promises behind a prefix: those that we hold, then those that we gave. False past the last.
 */
struct shed_promise {
	bool given; /* by us to `neighbour`; else by it to us */
	size_t neighbour;
	enum shed_purpose purpose;
	uint64_t share;
	enum shed_refusal refused; /* of one that is asked for; NONE while nothing came */
	struct monotime until;	   /* zero: not granted */
};
bool shed_promise(const struct shed *s, size_t prefix, size_t nth, struct shed_promise *ret);

/* The server as a whole. */
struct shed_server {
	enum shed_why why; /* what stands in the way of shedding; OVERLOAD: nothing does */
	uint32_t want;	   /* as reported */
	uint64_t spare;	   /* as reported */
	bool valid;	   /* the utilisation is known */
	unsigned utilisation_bp;
	unsigned n_out, n_fresh, n_hot;
	uint64_t n_sheds, n_restores;  /* since the start */
	uint64_t n_granted, n_refused; /* as receiver */
	bool alarm;		       /* shedding had no effect, twice */
};
void shed_server(const struct shed *s, struct shed_server *ret, struct monotime now);

/* "cool", "not_yet", ... */
const char *shed_why_name(enum shed_why why);
/* "not_announced", ...; NONE is "granted" */
const char *shed_refusal_name(enum shed_refusal refusal);
/* The word's value, or SHED_REFUSAL_COUNT. */
unsigned shed_refusal_parse(const char *word);
const char *shed_mode_name(enum shed_mode mode);	  /* "withdraw", "demote" */
const char *shed_purpose_name(enum shed_purpose purpose); /* "shed", "health" */
const char *shed_state_name(enum shed_state state);	  /* "out", "kept", "healthy" */
const char *shed_permit_name(enum shed_permit permit);	  /* "none", "waiting", ... */

/* ---- last of all ---- */

struct shed_guard_prefix {
	bool announced;	 /* would be announced if nothing were shed */
	bool out;	 /* is shed, or about to be */
	unsigned order;	 /* of its shed, 1 the first */
	unsigned others; /* healthy announcers besides this server, as far as is known */
	uint64_t load;	 /* 0 when not known */
};
/*
 * One pure function at the end of every decision about sheds, whatever it was for: shedding never
 * takes the last prefix of a server, never the last announcer of a prefix, never more than
 * `most_bp` of the `load` of the server (sheds included). Sheds that break this are undone in
 * `prefixes`, the last first. Returns how many.
 */
size_t shed_guard(struct shed_guard_prefix *prefixes, size_t n, uint64_t load, unsigned most_bp);

#endif
