#ifndef REDSHANK_CORE_CHECK_H
#define REDSHANK_CORE_CHECK_H
/*
 * One check's history and what it makes of it: rise and fall.
 *
 * A probe reports one outcome at a time and knows nothing of the past; this module keeps the past
 * and judges. It also says when the check is to run next, because that depends on whether it is
 * undecided. Nothing here knows what kind of probe stands behind the check.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/monotime.h"

enum check_outcome {
	CHECK_OUTCOME_GOOD,
	CHECK_OUTCOME_BAD,
	CHECK_OUTCOME_GONE,    /* a process's death: no need to ask `fall` times */
	CHECK_OUTCOME_UNKNOWN, /* our own fault (no descriptors, no memory, no bus): says nothing */
};

/* So many of them in a row, and the check is said to say nothing; one comes where systemd was not
 * asked yet. */
#define CHECK_SILENT 2

enum check_state {
	CHECK_STATE_PENDING, /* has not spoken since it was configured */
	CHECK_STATE_UP,
	CHECK_STATE_DOWN,
};

struct check_settings {
	uint64_t interval_ms;	   /* from start to start while decided */
	uint64_t fast_interval_ms; /* from start to start while undecided */
	unsigned rise;		   /* good outcomes in a row that make it up, at least 1 */
	unsigned fall;		   /* bad outcomes in a row that make it down, at least 1 */
	unsigned first_rise;	   /* `rise` until it was up for the first time; 0: the same */
	bool shared; /* asks for what every server depends on: may demote, not withdraw */
};

/* Outcomes kept for people to look at; the newest is the lowest pair of bits. */
#define CHECK_HISTORY_LENGTH 32

struct check {
	struct check_settings settings;
	enum check_state state;
	bool was_up;	       /* once, since it was configured or before the agent began */
	bool dead;	       /* down by a death, and nothing good was heard since */
	bool again;	       /* a process of its service died, and it was not up since */
	unsigned streak;       /* outcomes in a row that speak against `state`; 0: settled */
	unsigned good_streak;  /* good outcomes in a row, saturating at rise */
	uint64_t history;      /* CHECK_HISTORY_LENGTH outcomes of two bits */
	unsigned n_history;    /* how many of them are filled */
	struct monotime since; /* of `state` */
};

void check_init(struct check *c, const struct check_settings *settings, struct monotime now);

/*
 * One outcome. `prior` is what the check counts as before it has spoken: true where its service was
 * found announced, so that one bad answer after a restart of the agent is one of `fall`, and false
 * where it was not, so that it has to rise. Returns true when the state changed.
 */
bool check_take(struct check *c, enum check_outcome outcome, bool prior, struct monotime now);

/*
 * A process of its service has died: what the check has proved, it has proved of that one. It is
 * down until it has risen again; one that has not spoken has to rise, whatever `prior` says.
 * Returns true when the state changed.
 */
bool check_rise_again(struct check *c, struct monotime now);

/* Good outcomes in a row that make it up now: `rise` or `first_rise`. */
unsigned check_rise(const struct check *c);

/* True while the next outcome can change the state, and while it has to rise again: run at
 * fast_interval. */
bool check_is_undecided(const struct check *c);

/* Down for another's death alone: it has said nothing since, and what it said last was good. */
bool check_fell_along(const struct check *c);

/* When to start the run after one that started at `started`: never before `now`, no overlap. */
struct monotime check_next_start(
	const struct check *c, struct monotime started, struct monotime now);

/* The outcome `age` runs ago (0 is the newest). age < c->n_history. */
enum check_outcome check_history(const struct check *c, unsigned age);

/* "up", "down", "pending"; the word in JSON, log and metric. */
const char *check_state_name(enum check_state state);
/* "good", "bad", "gone", "unknown". */
const char *check_outcome_name(enum check_outcome outcome);

#endif
