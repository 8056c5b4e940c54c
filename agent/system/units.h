#ifndef REDSHANK_SYSTEM_UNITS_H
#define REDSHANK_SYSTEM_UNITS_H
/*
 * systemd's units over sd-bus (org.freedesktop.systemd1(5)): state and main process of each watched
 * unit, as systemd tells of a change. One bus connection for all; when it is lost, every unit is
 * unknown until it is back (tried with back-off).
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "agent/base/error.h"

struct units;
struct units_watch;

enum units_state {
	UNITS_UNKNOWN,	/* the bus is away or has not answered yet */
	UNITS_RUNNING,	/* active, reloading */
	UNITS_STARTING, /* activating */
	UNITS_GONE, /* inactive, failed, deactivating, waiting for its restart, or no such unit */
};

struct units_view {
	enum units_state state;
	pid_t main_pid; /* 0: none */
	char text[128]; /* "nsd.service is failed (exit-code)", for the reason */
};

/* Heap. Connects in the background, once a unit is watched; `bus_address` NULL is the system bus. 0
 * or negative errno. */
int units_new(struct units **ret, sd_event *event, const char *bus_address);
void units_free(struct units *u);

/*
 * `changed` is called from the loop whenever the view changes, never from inside units_watch_new();
 * it may free any watch. `unit` is copied. Watches are freed before their units. 0 or negative
 * errno.
 */
int units_watch_new(struct units_watch **ret, struct units *u, const char *unit,
	void (*changed)(void *userdata), void *userdata);
void units_watch_free(struct units_watch *w);
const struct units_view *units_watch_view(const struct units_watch *w);

/* While somebody holds it, the bus is connected to though no unit is watched. */
void units_hold(struct units *u);
void units_unhold(struct units *u);

/* ---- asking and ordering: units_call.c ---- */

struct units_call;

#define UNITS_WORD_MAX 32

/* What a unit does at one moment, as systemd has it; times in microseconds of CLOCK_MONOTONIC, 0:
 * never. A unit that systemd does not know has the load state "not-found". */
struct units_facts {
	char load_state[UNITS_WORD_MAX], active_state[UNITS_WORD_MAX], sub_state[UNITS_WORD_MAX],
		result[UNITS_WORD_MAX];
	bool job; /* one is queued or runs */
	uint64_t active_enter_us, active_exit_us, main_start_us, main_exit_us;
};

enum units_job_end {
	UNITS_JOB_DONE,
	UNITS_JOB_FAILED,
	UNITS_JOB_TIMED_OUT,
	UNITS_JOB_CANCELLED,
	UNITS_JOB_DENIED,     /* access denied */
	UNITS_JOB_NO_UNIT,    /* not found, masked, or wrongly written */
	UNITS_JOB_REFUSED,    /* for another reason */
	UNITS_JOB_UNANSWERED, /* the bus or systemd is away, or hangs */
};

enum units_order {
	UNITS_ORDER_START,	 /* StartUnit */
	UNITS_ORDER_TRY_RESTART, /* TryRestartUnit: nothing where it does not run any more */
};

/*
 * Asks what a unit does. `answered` is called once from the loop, never from in here: with the
 * facts, or with NULL and the reason; the call is over then and freed. -ENOTCONN while the bus is
 * away.
 */
typedef void (*units_answered_fn)(void *userdata, const struct units_facts *facts, const char *why);
int units_ask(struct units_call **ret, struct units *u, const char *unit,
	units_answered_fn answered, void *userdata);

/*
 * Orders a job, in the mode "fail": where another job is queued for the unit (somebody stops it),
 * systemd refuses. `ended` is called once, from the loop, when the job has ended or cannot begin,
 * with systemd's own words; the call is freed then. How long a job takes is for systemd, and for
 * the caller, to bound. -ENOTCONN while the bus is away.
 */
typedef void (*units_ended_fn)(void *userdata, enum units_job_end end, const char *text);
int units_order(struct units_call **ret, struct units *u, enum units_order order, const char *unit,
	units_ended_fn ended, void *userdata);

/* Forgets a call: nothing is told any more. A job that was ordered goes on. */
void units_call_free(struct units_call *call);

#endif
