#ifndef REDSHANK_PROBES_RUN_H
#define REDSHANK_PROBES_RUN_H
/*
 * Runs one check on its schedule: begin, deadline, report, next start. One run_check per configured
 * check. The judgement and the next start come from the caller (the engine), through run_ops.
 */
#include "probes/probe.h"

struct run_check;

struct run_ops {
	/* One report. `started` is when the attempt was due (so that schedules do not drift), or
	 * when it began where the loop was late; for a death between attempts, the attempt before.
	 * `duration_us` from begin to report; 0 for a death told between attempts.
	 * Called from the loop, never from inside run_check_new(). Returns when the next attempt
	 * must start. A death told between attempts only moves the next start forward. */
	struct monotime (*report)(void *userdata, const struct probe_report *report,
		struct monotime started, uint64_t duration_us);
	void *userdata;
};

/*
 * Opens the probe and begins its first attempt at `first`. `timeout_ms` bounds each attempt as a
 * whole; past it the outcome is bad, "timeout after 500ms". When the loop itself was late (the
 * agent was stopped or starved), what is readable is read before a deadline is held against it,
 * and the attempt gets the lost time back once, up to another timeout. A probe that cannot be
 * opened is unknown, and is opened again at its next start. Heap. 0 or negative errno.
 */
int run_check_new(struct run_check **ret, const struct probe_type *type, const void *settings,
	const struct probe_host *host, uint64_t timeout_ms, struct monotime first,
	const struct run_ops *ops);
/* Never calls back again. May be called from inside the report callback. */
void run_check_free(struct run_check *r);
/* The next attempt starts now (unless one is under way). */
void run_check_now(struct run_check *r);

/* What a person is told of the schedule. */
struct run_view {
	bool busy;		  /* an attempt is under way */
	struct monotime began;	  /* this attempt, or the last one; never: none was begun yet */
	uint64_t duration_us;	  /* of the last attempt that ended; 0: none did */
	struct monotime next;	  /* when the next one starts; never while one is under way */
	struct monotime deadline; /* when the one under way ends at the latest; never: none is */
};
void run_check_view(const struct run_check *r, struct run_view *ret);

/* When the first of n checks of one interval starts, so that they do not all run at once: an offset
 * in ms below interval_ms, even over the n, in steps of 25 ms where the interval is 250 ms or more:
 * an idle agent wakes up 40 times a second at most, however many checks it has. */
uint64_t run_spread_ms(uint64_t interval_ms, unsigned index, unsigned n);

#endif
