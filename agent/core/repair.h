#ifndef REDSHANK_CORE_REPAIR_H
#define REDSHANK_CORE_REPAIR_H
/*
 * When a service's unit is restarted, and when it is left alone. Facts and a time go in, the next
 * step and the next deadline come out; agent/repair.c takes the steps.
 *
 * An episode begins when a check that triggers is down, and ends when none is. In it: wait `delay`,
 * ask systemd what the unit does, start or restart it where that is for us to do, wait a pause, and
 * so on. The n-th pause is `delay` (at least REPAIR_PAUSE_MIN_MS) doubled n times, at most
 * REPAIR_PAUSE_MAX_MS, and never shorter than `delay`, nor than `settle_ms`, which the checks need
 * to rise after a restart that helped. At most `limit` attempts begin within any `per`.
 *
 * The unit is asked before each attempt, so that what somebody did meanwhile counts: a unit that
 * was stopped on purpose, that systemd is about to start itself, or that does not exist, is not
 * touched.
 *
 * Invariants, asserted by tests/scenario/property-repair.c and numbered in docs/invariants.md: R1
 * to R6.
 */
#include "agent/core/check.h"

#define REPAIR_PAUSE_MIN_MS 1000
#define REPAIR_PAUSE_MAX_MS 300000
#define REPAIR_LOOK_MS 10000 /* at a unit that was stopped on purpose */
#define REPAIR_JOB_MS 600000 /* after which a job of systemd's is given up */

enum repair_trigger {
	REPAIR_TRIGGER_UP,     /* no check that triggers is down */
	REPAIR_TRIGGER_RISING, /* one is, but said good last, or could not be asked */
	REPAIR_TRIGGER_DOWN,
};

enum repair_unit {	     /* what the unit does, judged */
	REPAIR_UNIT_UNKNOWN, /* systemd did not answer */
	REPAIR_UNIT_MISSING, /* not found, masked, or wrongly written */
	REPAIR_UNIT_BUSY, /* a job is queued, it starts, stops, or waits for systemd's own restart
			   */
	REPAIR_UNIT_STOPPED, /* by somebody, or it ended by itself and said that all is well */
	REPAIR_UNIT_FAILED,  /* died, and systemd leaves it so */
	REPAIR_UNIT_ACTIVE,
};

enum repair_state {
	REPAIR_STATE_IDLE,	 /* nothing to repair */
	REPAIR_STATE_WAITING,	 /* for `delay`, or a pause after an attempt */
	REPAIR_STATE_ASKING,	 /* systemd, what the unit does */
	REPAIR_STATE_RESTARTING, /* systemd is at our job */
	REPAIR_STATE_HELD,	 /* an operator's word: drained, frozen */
	REPAIR_STATE_STOPPED,	 /* the unit was stopped on purpose */
	REPAIR_STATE_LEFT,	 /* to systemd, which is at it, or has just started it */
	REPAIR_STATE_EXHAUSTED,	 /* `limit` within `per` */
	REPAIR_STATE_UNKNOWN,	 /* systemd does not answer */
	REPAIR_STATE_MISSING,	 /* no such unit */
	REPAIR_STATE_DENIED,	 /* systemd does not let us */
};
#define REPAIR_N_STATES 11

enum repair_result {
	REPAIR_RESULT_NONE, /* there was no attempt */
	REPAIR_RESULT_DONE,
	REPAIR_RESULT_FAILED,	  /* the job did: the unit does not start */
	REPAIR_RESULT_TIMED_OUT,  /* the job did */
	REPAIR_RESULT_CANCELLED,  /* another job took its place */
	REPAIR_RESULT_DENIED,	  /* access denied; no attempt of the `limit` */
	REPAIR_RESULT_MISSING,	  /* no such unit; no attempt of the `limit` */
	REPAIR_RESULT_REFUSED,	  /* for another reason of systemd's */
	REPAIR_RESULT_UNANSWERED, /* the bus or systemd went away meanwhile */
};
#define REPAIR_N_RESULTS 9

enum repair_do {
	REPAIR_DO_NOTHING,
	REPAIR_DO_ASK,	   /* repair_found() is to follow */
	REPAIR_DO_START,   /* repair_done() is to follow */
	REPAIR_DO_RESTART, /* the same, if it still runs */
};

struct repair_settings {
	uint64_t delay_ms;
	uint64_t per_ms;
	size_t limit; /* at least 1 */
	uint64_t settle_ms;
};

struct repair_facts {
	enum repair_trigger trigger;
	bool held;
};

/* As org.freedesktop.systemd1(5) has them; times in microseconds of CLOCK_MONOTONIC, 0: never. */
struct repair_properties {
	const char *load_state, *active_state, *sub_state, *result;
	bool job; /* one is queued or runs */
	uint64_t active_enter_us, active_exit_us, main_start_us, main_exit_us;
};

struct repair {
	struct repair_settings settings;
	enum repair_state state;
	enum repair_result last_result;
	bool rising;	       /* the facts said so last: nothing is done meanwhile */
	struct monotime since; /* of `state` */
	struct monotime next;  /* when something is due in this state; never: nothing */
	struct monotime last;  /* attempt; never: none */
	unsigned episode;      /* attempts in this episode */
	size_t n_attempts;     /* of those below that were within `per` when it was looked last */
	struct monotime *attempts; /* `limit` of them, the oldest first */
};

/* One service's repair, for those who show it. */
struct repair_view {
	const char *unit;
	const struct repair *repair;
	const char *text;	 /* systemd's last words about the unit; "" for none */
	const uint64_t *results; /* attempts by enum repair_result, since the agent's start */
};

/* 0 or -ENOMEM. */
int repair_init(struct repair *r, const struct repair_settings *settings, struct monotime now);
void repair_done_with(struct repair *r);
/* The attempts, the episode and the pause of `old` go on under the settings of `r`, which was just
 * made; a pause no longer than it is by these. */
void repair_adopt(struct repair *r, const struct repair *old, struct monotime now);

/* An attempt of an earlier life of the agent, the oldest first: counted where it lies in the past
 * and within `per`. */
void repair_remember(struct repair *r, struct monotime attempt, struct monotime now);

/* One check that triggers. */
enum repair_trigger repair_trigger_of(const struct check *check);
/* Of several, the worse. */
enum repair_trigger repair_trigger_worse(enum repair_trigger a, enum repair_trigger b);

enum repair_unit repair_judge(const struct repair_properties *p);

/* Whenever a fact or a deadline came: what to do now. REPAIR_DO_ASK or REPAIR_DO_NOTHING. */
enum repair_do repair_step(struct repair *r, const struct repair_facts *facts, struct monotime now);
/* The answer to REPAIR_DO_ASK; `active_us`: for how long the unit is active. Ignored, with
 * REPAIR_DO_NOTHING, where nothing is asked any more. */
enum repair_do repair_found(
	struct repair *r, enum repair_unit unit, uint64_t active_us, struct monotime now);
/* What came of REPAIR_DO_START or REPAIR_DO_RESTART; ignored where none is under way. */
void repair_done(struct repair *r, enum repair_result result, struct monotime now);
/* When repair_step() must be called again though no fact came; never: not at all. */
struct monotime repair_deadline(const struct repair *r);
/* Attempts within `per` of `now`. */
size_t repair_attempts(const struct repair *r, struct monotime now);

/* "idle", "waiting", ...: the word in status and metric. */
const char *repair_state_name(enum repair_state state);
/* "done", "failed", ...; NULL for none. */
const char *repair_result_name(enum repair_result result);

#endif
