/*
 * The schedule and the deadline of one check.
 *
 * A check is in one of three states: waiting for its next start, busy with an attempt, or inside
 * the caller's report. Two timers of CLOCK_BOOTTIME: one for the next start, armed by what the
 * report returned, and one for the deadline, armed only while an attempt is under way. An attempt
 * that reports before begin() returns never touches the second.
 *
 * Starts are counted from when they were due, not from when they happened, so that a schedule does
 * not drift by what the loop takes. After a loop that was really late (see is_late) the schedule
 * begins anew, instead of catching up with what was missed.
 *
 * A late deadline. When the agent was stopped (SIGSTOP, a suspended machine) or starved, time went
 * by that the attempt could not use: an answer was not read, a request not written. The deadline's
 * timer has a lower priority than any I/O, so an answer that lies there ends the attempt before
 * the deadline is seen. Where none lies there, a deadline that was seen late is moved, once, by as
 * much as it was late and at most by the timeout: what could not be looked at is not held against
 * the service, and a service that hangs is still found out, one timeout after the agent runs again.
 *
 * More checks than the loop can start. Starts that are late queue up behind each other and would
 * keep everything of a lower priority waiting for ever, who asks what is wrong among them. So a
 * check whose start was late waits for its next one among those: each has its turn.
 */
#include "probes/run.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/base/printable.h"
#include "probes/secrets.h"

/* A hung service's time on the wire is the sum of a start and `fall` deadlines: these are exact,
 * and cost nothing while services answer. Starts may share a wake-up. */
#define START_ACCURACY_US 250
#define DEADLINE_ACCURACY_US 50
#define LATE_US 100000
#define YIELD_US 20000 /* late by this, a start has no priority next time */
/* Waking up costs as much as an attempt, so a few of them share it. */
#define SPREAD_STEP_MS 25

struct run_check {
	struct probe probe;
	struct run_ops ops;
	uint64_t timeout_us;
	sd_event_source *start_source, *deadline_source;

	bool opened;
	bool busy;     /* an attempt is under way */
	bool in_begin; /* begin() runs: a report waits in `early` until it has returned */
	bool has_early;
	bool extended; /* the deadline was moved because it was seen late */
	bool in_report;
	bool woken;		  /* run_check_now() was called inside the report */
	bool removed;		  /* run_check_free() was called inside the report */
	struct monotime due;	  /* the next start; never: none is armed */
	struct monotime started;  /* of this or the last attempt, as told to the caller */
	struct monotime began;	  /* when begin() was called */
	struct monotime deadline; /* of this attempt */
	uint64_t duration_us;	  /* of the last attempt that ended */
	struct probe_report early;
};

DEFINE_CLEANUP_PTR(struct run_check *, run_check_free)

/* Lateness that is not the loop's daily work. */
static bool is_late(const struct run_check *r, uint64_t late_us)
{
	uint64_t half = r->timeout_us / 2;

	return late_us > (half < LATE_US ? half : LATE_US);
}

static void arm_start(struct run_check *r, struct monotime due)
{
	int e;

	r->due = due;
	if (monotime_is_never(due)) {
		e = sd_event_source_set_enabled(r->start_source, SD_EVENT_OFF);
		assert(e >= 0);
		return;
	}
	e = sd_event_source_set_time(r->start_source, due.us);
	assert(e >= 0);
	e = sd_event_source_set_enabled(r->start_source, SD_EVENT_ONESHOT);
	assert(e >= 0);
}

static void arm_deadline(struct run_check *r)
{
	int e = sd_event_source_set_time(r->deadline_source, r->deadline.us);

	assert(e >= 0);
	e = sd_event_source_set_enabled(r->deadline_source, SD_EVENT_ONESHOT);
	assert(e >= 0);
}

static void disarm(sd_event_source *source)
{
	int e = sd_event_source_set_enabled(source, SD_EVENT_OFF);

	assert(e >= 0);
}

static void run_check_release(struct run_check *r)
{
	if (r->busy)
		r->probe.type->cancel(&r->probe);
	if (r->opened)
		r->probe.type->close(&r->probe);
	sd_event_source_disable_unref(r->start_source);
	sd_event_source_disable_unref(r->deadline_source);
	free(r);
}

/* Tells the caller and arms what it answers. The check may be freed when this returns. */
static void deliver(struct run_check *r, const struct probe_report *report)
{
	bool between = !r->busy;
	struct monotime next;
	uint64_t duration_us = 0;

	if (!between) {
		r->busy = false;
		disarm(r->deadline_source);
		duration_us = monotime_since_us(r->began, clock_monotime());
		r->duration_us = duration_us;
	}
	r->in_report = true;
	r->woken = false;
	next = r->ops.report(r->ops.userdata, report, r->started, duration_us);
	r->in_report = false;
	if (r->removed) {
		run_check_release(r);
		return;
	}
	if (r->woken)
		next = clock_monotime();
	arm_start(r, between ? monotime_min(r->due, next) : next);
}

static void on_report(struct probe *p, const struct probe_report *report)
{
	struct run_check *r = p->runner;

	assert(r->busy || report->outcome == CHECK_OUTCOME_GONE);
	assert(!r->in_report);
	if (r->in_begin) {
		assert(!r->has_early);
		r->early = *report;
		r->has_early = true;
		return;
	}
	deliver(r, report);
}

static void on_wake(struct probe *p)
{
	run_check_now(p->runner);
}

static void begin(struct run_check *r)
{
	r->extended = false;
	r->has_early = false;
	r->busy = true;
	r->in_begin = true;
	r->probe.type->begin(&r->probe);
	r->in_begin = false;
	if (r->has_early) {
		deliver(r, &r->early);
		return;
	}
	r->deadline = (struct monotime){r->began.us + r->timeout_us};
	arm_deadline(r);
}

static int on_start(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct run_check *r = userdata;
	struct monotime due = r->due;
	uint64_t late_us;
	int e;

	assert(!r->busy);
	r->began = clock_monotime();
	late_us = monotime_since_us(due, r->began);
	r->started = is_late(r, late_us) ? r->began : due;
	(void)sd_event_source_set_priority(
		s, late_us > YIELD_US ? SD_EVENT_PRIORITY_IDLE : PROBE_PRIORITY_START);
	r->due = MONOTIME_NEVER;
	if (!r->opened) {
		e = r->probe.type->open(&r->probe);
		if (e < 0) {
			r->busy = true;
			probe_report(&r->probe, CHECK_OUTCOME_UNKNOWN, "cannot start the check: %s",
				strerror(-e));
			return 0;
		}
		r->opened = true;
	}
	begin(r);
	return 0;
}

static void report_timeout(struct run_check *r)
{
	const struct probe_type *type = r->probe.type;
	const char *waiting = type->waiting ? type->waiting(&r->probe) : NULL;
	uint64_t ms = r->timeout_us / 1000;
	bool seconds = ms >= 1000 && ms % 1000 == 0;
	char seen[PROBE_REASON_MAX] = "";

	if (waiting)
		(void)snprintf(seen, sizeof(seen), ": %s", waiting);
	type->cancel(&r->probe);
	probe_report(&r->probe, CHECK_OUTCOME_BAD, "timeout after %llu%s%s",
		(unsigned long long)(seconds ? ms / 1000 : ms), seconds ? "s" : "ms", seen);
}

static int on_deadline(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct run_check *r = userdata;
	uint64_t late_us = monotime_since_us(r->deadline, clock_monotime());

	assert(r->busy);
	if (!r->extended && is_late(r, late_us)) {
		r->extended = true;
		r->deadline.us += late_us;
		r->deadline.us += late_us < r->timeout_us ? late_us : r->timeout_us;
		arm_deadline(r);
		return 0;
	}
	report_timeout(r);
	return 0;
}

static int add_timer(sd_event *event, sd_event_source **ret, int64_t priority, uint64_t accuracy_us,
	const char *name, sd_event_time_handler_t handler, void *userdata)
{
	int e = sd_event_add_time(
		event, ret, CLOCK_BOOTTIME, UINT64_MAX, accuracy_us, handler, userdata);

	if (e < 0)
		return e;
	e = sd_event_source_set_priority(*ret, priority);
	if (e < 0)
		return e;
	e = sd_event_source_set_description(*ret, name);
	if (e < 0)
		return e;
	return sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

int run_check_new(struct run_check **ret, const struct probe_type *type, const void *settings,
	const struct probe_host *host, uint64_t timeout_ms, struct monotime first,
	const struct run_ops *ops)
{
	_cleanup_(run_check_freep) struct run_check *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	r->probe = (struct probe){.type = type,
		.settings = settings,
		.timeout_ms = timeout_ms,
		.host = host,
		.report = on_report,
		.wake = on_wake,
		.runner = r};
	r->ops = *ops;
	r->timeout_us = timeout_ms * 1000;
	r->started = first;
	r->began = MONOTIME_NEVER;
	e = add_timer(host->event, &r->start_source, PROBE_PRIORITY_START, START_ACCURACY_US,
		"check-start", on_start, r);
	if (e < 0)
		return e;
	e = add_timer(host->event, &r->deadline_source, PROBE_PRIORITY_DEADLINE,
		DEADLINE_ACCURACY_US, "check-deadline", on_deadline, r);
	if (e < 0)
		return e;
	/* A failure is told at the first start, which tries again. */
	r->opened = type->open(&r->probe) >= 0;
	arm_start(r, first);
	*ret = TAKE_PTR(r);
	return 0;
}

void run_check_free(struct run_check *r)
{
	if (!r)
		return;
	assert(!r->in_begin);
	if (r->in_report)
		r->removed = true;
	else
		run_check_release(r);
}

void run_check_now(struct run_check *r)
{
	if (r->in_report)
		r->woken = true;
	else if (!r->busy)
		arm_start(r, monotime_min(r->due, clock_monotime()));
}

void run_check_view(const struct run_check *r, struct run_view *ret)
{
	*ret = (struct run_view){
		.busy = r->busy,
		.began = r->began,
		.duration_us = r->duration_us,
		.next = r->busy ? MONOTIME_NEVER : r->due,
		.deadline = r->busy ? r->deadline : MONOTIME_NEVER,
	};
}

uint64_t run_spread_ms(uint64_t interval_ms, unsigned index, unsigned n)
{
	uint64_t ms;

	if (n == 0)
		return 0;
	ms = interval_ms / n * (index % n) + interval_ms % n * (index % n) / n;
	return interval_ms < 10 * SPREAD_STEP_MS ? ms : ms - ms % SPREAD_STEP_MS;
}

void probe_report(struct probe *p, enum check_outcome outcome, const char *reason_format, ...)
{
	struct probe_report report = {.outcome = outcome};
	char raw[2 * PROBE_REASON_MAX];
	va_list ap;
	int n;

	va_start(ap, reason_format);
	n = vsnprintf(raw, sizeof(raw), reason_format, ap);
	va_end(ap);
	if (n < 0)
		n = 0;
	if ((size_t)n >= sizeof(raw))
		n = sizeof(raw) - 1;
	if (n > 0) {
		secrets_mask_urls(raw);
		if (p->settings)
			secrets_mask(p->type->settings, p->settings, raw);
		n = (int)strlen(raw);
	}
	(void)printable_copy(report.reason, sizeof(report.reason), raw, (size_t)n);
	p->report(p, &report);
}

void probe_wake(struct probe *p)
{
	p->wake(p);
}

enum check_outcome probe_outcome_of_errno(int errnum)
{
	switch (errnum) {
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ENOBUFS:
	case ENOSPC:	    /* inotify watches, epoll watches */
	case EAGAIN:	    /* processes */
	case EADDRNOTAVAIL: /* every local port to that peer is in use */
	case ETXTBSY:	    /* the command is just being replaced */
		return CHECK_OUTCOME_UNKNOWN;
	default:
		return CHECK_OUTCOME_BAD;
	}
}
