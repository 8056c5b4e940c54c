/*
 * Stopping and leaving. With TERM the engine wants each service by its on_stop, and the agent stays
 * until BIRD has done it or the time is over; with USR2 it leaves at once and BIRD keeps what was
 * true.
 *
 * Where a service leaves gently, its prefixes stay announced with GRACEFUL_SHUTDOWN first. The
 * checks go on meanwhile, since what dies now is to be withdrawn now; the rest of the stop comes
 * after it.
 */
#include <errno.h>

#include "agent/agent_private.h"
#include "agent/base/clock.h"
#include "agent/events/events.h"
#include "agent/system/notify.h"

#define AGENT_READ_MAX_MS 2000	 /* for BIRD to be read once more, where addresses wait for it */
#define AGENT_STOP_MAX_MS 5000	 /* for BIRD to settle */
#define AGENT_STOP_SLACK_MS 5000 /* for a loaded host */

/* BIRD did what was wanted of it, or is away: then the fragments say it for when it comes back. */
static bool agent_may_leave(const struct agent *a)
{
	const struct apply_status *status = apply_status(a->apply);

	return status->settled || status->link == APPLY_LINK_AWAY ||
	       status->link == APPLY_LINK_REFUSED;
}

/* The time is over at which a stop leaves in any case: fn is called then. Counted from now, and not
 * from when the loop woke up, as sd_event_add_time_relative does: before the time of what leaves
 * gently is over it is not withdrawn, and the agent would end without having done it. */
static int agent_stop_timer(struct agent *a, uint64_t ms, sd_event_time_handler_t fn)
{
	uint64_t when_us = clock_monotime().us + ms * 1000;

	a->stop_timer = sd_event_source_disable_unref(a->stop_timer);
	return sd_event_add_time(a->event, &a->stop_timer, CLOCK_BOOTTIME, when_us, 1000, fn, a);
}

/* The managed addresses go last, each when its own grace is over; those of which BIRD has not said
 * in time that they are withdrawn stay. */
static int agent_on_grace_over(sd_event_source *source, uint64_t us, void *userdata)
{
	struct agent *a = userdata;
	struct monotime now = clock_monotime();
	uint64_t ms = managed_leave(a->managed);

	if (a->ends_by.us == 0)
		a->ends_by = monotime_add_ms(now, a->config->stop_grace_ms + AGENT_READ_MAX_MS);
	if (ms > 0 && !monotime_reached(a->ends_by, now) &&
		agent_stop_timer(a, ms, agent_on_grace_over) >= 0)
		return 0;
	return sd_event_exit(a->event, 0);
}

/* Routers have just been told: queries that were on their way are answered before the agent ends,
 * since what stops after it may be the service. */
static void agent_leave(struct agent *a)
{
	uint64_t grace_ms = a->withdrew ? a->config->stop_grace_ms : 0;

	if (a->leaving)
		return;
	a->leaving = true;
	if (agent_stop_timer(a, grace_ms, agent_on_grace_over) < 0)
		(void)sd_event_exit(a->event, 0);
}

/* BIRD throws away what lies unread in a socket that was closed, so this is the last word. */
static int agent_leave_unconfirmed(struct agent *a)
{
	event_say(LOG_WARNING, EVENT_AGENT_TROUBLE, NULL,
		"stop: BIRD has not confirmed the withdrawal; the fragments say it, and "
		"`birdc configure` makes BIRD do it");
	return sd_event_exit(a->event, 0);
}

static int agent_on_stop_timeout(sd_event_source *source, uint64_t us, void *userdata)
{
	return agent_leave_unconfirmed(userdata);
}

const char *agent_signalled_by(const struct signalfd_siginfo *si, char buf[CALLER_TEXT_MAX])
{
	const struct caller caller = {.pid = (pid_t)si->ssi_pid, .uid = si->ssi_uid};

	buf[0] = '\0';
	return caller.pid == getpid() ? buf : caller_format(&caller, buf);
}

/* Everything is withdrawn now that is to be. */
static int agent_stop_now(struct agent *a)
{
	bool changed = agent_decide(a) || a->lingers;

	checks_stop(a->checks);
	a->withdrew = a->withdrew || (changed && apply_status(a->apply)->link == APPLY_LINK_UP);
	a->lingers = false;
	if (agent_may_leave(a)) {
		agent_leave(a);
		return 0;
	}
	return agent_stop_timer(a, AGENT_STOP_MAX_MS, agent_on_stop_timeout);
}

static int agent_on_lingered(sd_event_source *source, uint64_t us, void *userdata)
{
	return agent_stop_now(userdata);
}

/* The worst that this stop can take, to systemd: whatever is configured, TimeoutStopSec is for an
 * agent that hangs. After what leaves gently comes BIRD's part, the grace, and that of the managed
 * addresses, which begins later. */
static void agent_ask_for_time(const struct agent *a, uint64_t gentle_ms)
{
	notify_extend((gentle_ms + AGENT_STOP_MAX_MS + 2 * a->config->stop_grace_ms +
			      AGENT_READ_MAX_MS + AGENT_STOP_SLACK_MS) *
		      1000);
}

/* True where the stop goes on later, when what leaves gently has left. */
static bool agent_linger(struct agent *a)
{
	struct monotime now = clock_monotime(), left = engine_left(a->engine, now);
	uint64_t ms = monotime_since_us(now, left) / 1000 + 1;

	agent_ask_for_time(a, left.us == 0 ? 0 : ms);
	if (left.us == 0 || agent_stop_timer(a, ms, agent_on_lingered) < 0)
		return false;
	a->lingers = true;
	event_say(LOG_NOTICE, EVENT_AGENT_STOPPING, NULL,
		"stopping: leaving gently, withdrawing in %.1f s", (double)ms / 1000);
	return true;
}

void agent_on_changed(void *userdata)
{
	struct agent *a = userdata;

	a->revision++;
	shedding_touch(a->shedding);
	managed_touch(a->managed);
	if (!a->stopping)
		return;
	/* All that was to leave gently is gone before its time; from the loop, since this is
	 * apply's call, and what stops now may be more than it expects. */
	if (a->lingers && engine_left(a->engine, clock_monotime()).us == 0) {
		if (agent_stop_timer(a, 0, agent_on_lingered) < 0)
			(void)agent_stop_now(a);
	} else if (!a->lingers && agent_may_leave(a)) {
		agent_leave(a);
	}
}

/* TERM, INT. A second one waits no longer for what leaves gently, or else for BIRD. */
int agent_on_stop(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	struct agent *a = userdata;
	char who[CALLER_TEXT_MAX];

	if (a->leaving || (!a->ready && a->early == SIGTERM))
		return sd_event_exit(a->event, 0);
	if (!a->ready) /* What is announced is not known, and would stay without anybody. */
		return agent_come_again(a, SIGTERM);
	if (a->lingers) {
		engine_hurry(a->engine, clock_monotime());
		return agent_stop_now(a);
	}
	if (a->stopping)
		return agent_leave_unconfirmed(a);
	event_say(LOG_NOTICE, EVENT_AGENT_STOPPING,
		&(const struct event_fields){.who = agent_signalled_by(si, who)},
		"stopping: each service by its on_stop");
	a->stopping = true;
	shedding_stop(a->shedding);
	managed_stop(a->managed);
	agent_tell_sheds(a);
	repairs_stop(a->repairs);
	engine_stop(a->engine);
	a->withdrew = agent_decide(a) && apply_status(a->apply)->link == APPLY_LINK_UP;
	agent_tell_shed_events(a);
	notify_stopping();
	return agent_linger(a) ? 0 : agent_stop_now(a);
}

int agent_on_leave(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	struct agent *a = userdata;
	char who[CALLER_TEXT_MAX];

	event_say(LOG_NOTICE, EVENT_AGENT_LEFT,
		&(const struct event_fields){.who = agent_signalled_by(si, who)},
		"leaving: BIRD keeps what is announced now");
	notify_stopping();
	return sd_event_exit(a->event, 0);
}
