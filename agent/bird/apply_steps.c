/*
 * One round: the files are made true, core/plan is asked for the step of each protocol, and the
 * steps are sent: `disable` and `enable` for a whole service where all of it takes the step, and
 * one `configure` for everything that needs one. A round runs after anything happened, once for all
 * that happened in one turn of the loop; it never waits.
 *
 * Repair and back-off. A protocol that was as wanted and is found otherwise was changed by somebody
 * else: that is mended and counted. Whoever keeps undoing it makes `enable` and `configure` wait
 * longer each time (100 ms doubling to 30 s from the second time on); `disable` waits only from the
 * sixth time on and never more than a second. What is newly wanted waits for nothing.
 */
#include "agent/bird/apply_state.h"

#include <string.h>

#include "agent/base/clock.h"
#include "agent/events/events.h"

#define STEPS_QUIET_US 60000000 /* without a repair: the count begins anew */
#define STEPS_LATE_US 1000000	/* from what is wanted to BIRD's doing it: more is told */

/* What a range of protocols of one service, side by side in the table, is to do. */
struct steps_range {
	size_t first, end;
	size_t n_disable, n_enable;
	bool pattern_disables; /* `disable` of the whole service touches nothing else */
	bool pattern_enables;
	size_t n_mended;
};

static uint64_t steps_backoff(const struct apply_protocol *p, enum plan_step step)
{
	unsigned n;

	if (step == PLAN_STEP_DISABLE) {
		n = p->strikes > 5 ? p->strikes - 5 : 0;
		return n == 0 ? 0 : n < 4 ? 100ULL << n : 1000;
	}
	n = p->strikes > 1 ? p->strikes - 1 : 0;
	return n == 0 ? 0 : n < 9 ? 50ULL << n : 30000;
}

static void steps_strike(struct apply *a, struct apply_protocol *p, enum plan_step step)
{
	struct monotime now = clock_monotime();
	unsigned seconds = 0, n = strikes_add(&a->strikes, now, &seconds);
	struct event_fields fields;

	if (monotime_since_us(p->last_strike, now) > STEPS_QUIET_US)
		p->strikes = 0;
	p->strikes++;
	p->last_strike = now;
	p->reached = false;
	p->mending = true;
	p->not_before = monotime_add_ms(now, steps_backoff(p, step));
	a->status.repairs++;
	apply_say_changed(a);
	fields = (struct event_fields){
		.service = p->service ? p->service->name : NULL,
		.protocol = p->name,
		.from = p->seen == PLAN_SEEN_ABSENT ? "gone"
			: p->seen == PLAN_SEEN_DOWN ? "down"
			: step == PLAN_STEP_DISABLE ? "up"
						    : "other attributes",
		.to = p->want == PLAN_WANT_UP ? "up" : "down",
	};
	event_say(p->strikes == 1 ? LOG_WARNING : LOG_DEBUG, EVENT_DRIFT, &fields,
		"bird: protocol %s was changed by somebody (%s, wanted %s): %s again", p->name,
		fields.from, fields.to, plan_step_name(step));
	if (n > 0)
		event_say(LOG_WARNING, EVENT_DRIFT, &fields,
			"bird: protocols of ours are still being changed: %u repairs in %u s, "
			"%s the last",
			n, seconds, p->name);
}

static bool steps_may_enable(const struct apply *a, const struct apply_protocol *p)
{
	return a->folder_fd >= 0 && p->service && !p->service->dirty && !p->service->stale;
}

static void steps_read_body(struct apply *a, struct apply_protocol *p)
{
	if (p->reads_left > 0 || !p->service)
		return;
	p->reads_differ = false;
	for (size_t i = p->first_prefix; i < p->first_prefix + p->n_prefixes; i++) {
		if (!apply_protocol_holds(p, i))
			continue;
		p->reads_left++;
		apply_want_read(a, p->service, i);
	}
}

/* The step that is due now; WAIT where back-off holds it. */
static enum plan_step steps_of(struct apply *a, struct apply_protocol *p)
{
	enum plan_step step = apply_plan(a, p);

	switch (step) {
	case PLAN_STEP_NONE:
		p->reached = p->want != PLAN_WANT_GONE;
		p->mending = false;
		p->attempts = 0;
		break;
	case PLAN_STEP_WAIT:
		break;
	case PLAN_STEP_OBSERVE:
		if (p->command == 0)
			a->observe_wanted = true;
		break;
	case PLAN_STEP_READ:
		steps_read_body(a, p);
		break;
	case PLAN_STEP_DISABLE:
	case PLAN_STEP_ENABLE:
	case PLAN_STEP_CONFIGURE:
		if (p->reached)
			steps_strike(a, p, step);
		if (!monotime_reached(p->not_before, clock_monotime())) {
			apply_wake_at(a, p->not_before);
			return PLAN_STEP_WAIT;
		}
		if (step == PLAN_STEP_ENABLE && !steps_may_enable(a, p))
			return PLAN_STEP_WAIT;
		break;
	}
	return step;
}

/* Returns false while anything of the range is not as wanted. */
static bool steps_plan(struct apply *a, struct steps_range *range)
{
	bool done = true;

	range->pattern_disables = range->pattern_enables = true;
	for (size_t i = range->first; i < range->end; i++) {
		struct apply_protocol *p = a->protocols[i];
		enum plan_step step = steps_of(a, p);
		bool enables = step == PLAN_STEP_ENABLE;
		bool disables = step == PLAN_STEP_DISABLE;

		p->step = step;
		done = done && step == PLAN_STEP_NONE && p->command == 0;
		range->n_disable += disables;
		range->n_enable += enables;
		p->attempting = p->attempting || (step == PLAN_STEP_CONFIGURE &&
							 a->configure == APPLY_CONFIGURE_NONE);
		a->configure_wanted = a->configure_wanted || step == PLAN_STEP_CONFIGURE;
		if (p->want == PLAN_WANT_UP || (p->seen == PLAN_SEEN_UP && !disables))
			range->pattern_disables = false;
		if (p->want != PLAN_WANT_UP || (p->seen != PLAN_SEEN_UP && !enables))
			range->pattern_enables = false;
	}
	return done;
}

static const char *steps_pattern(const struct apply_protocol *p, char buf[NAMES_MAX])
{
	char service[NAMES_SERVICE_MAX + 1];
	const char *start = strchr(p->name, ':') + 1;

	(void)snprintf(service, sizeof(service), "%.*s", (int)strcspn(start, ":"), start);
	return names_pattern(buf, service);
}

static void steps_send(struct apply *a, const struct steps_range *range, enum plan_step which)
{
	bool disables = which == PLAN_STEP_DISABLE;
	size_t n = disables ? range->n_disable : range->n_enable;
	char buf[NAMES_MAX];

	if (n == 0)
		return;
	if (disables ? range->pattern_disables : range->pattern_enables) {
		const char *pattern = steps_pattern(a->protocols[range->first], buf);

		if (disables)
			apply_send_disable(a, pattern);
		else
			apply_send_enable(a, pattern);
		return;
	}
	for (size_t i = range->first; i < range->end; i++) {
		if (a->protocols[i]->step != which)
			continue;
		if (a->commands_waiting >= APPLY_SINGLES_MAX)
			return; /* The round after an answer goes on. */
		if (disables)
			apply_send_disable(a, a->protocols[i]->name);
		else
			apply_send_enable(a, a->protocols[i]->name);
	}
}

/* Withdrawals of all services first, then the rest. */
static bool steps_protocols(struct apply *a)
{
	bool done = true;

	a->configure_wanted = false;
	for (size_t i = 0; i < a->n_protocols;) {
		struct steps_range range = {.first = i, .end = apply_range_end(a, i)};

		bool as_wanted = steps_plan(a, &range);

		for (size_t k = range.first; k < range.end; k++)
			if (a->protocols[k]->service)
				a->protocols[k]->service->as_wanted = as_wanted;
		done = as_wanted && done;
		steps_send(a, &range, PLAN_STEP_DISABLE);
		i = range.end;
	}
	for (size_t i = 0; i < a->n_protocols;) {
		struct steps_range range = {.first = i, .end = apply_range_end(a, i)};

		range.pattern_enables = true;
		for (size_t k = range.first; k < range.end; k++) {
			const struct apply_protocol *p = a->protocols[k];
			bool enables = p->step == PLAN_STEP_ENABLE;

			range.n_enable += enables;
			if (p->want != PLAN_WANT_UP || (p->seen != PLAN_SEEN_UP && !enables))
				range.pattern_enables = false;
		}
		steps_send(a, &range, PLAN_STEP_ENABLE);
		i = range.end;
	}
	return done;
}

/* What was decided is in the log already. Where BIRD was away, hung or was busy, routers have been
 * told only now. */
static void steps_say_late(struct apply *a)
{
	for (size_t i = 0; i < a->n_services; i++) {
		struct apply_service *s = &a->services[i];
		size_t n = s->config->n_prefixes, withdrawn = 0;
		uint64_t late_us;

		if (s->wanted_at.us == 0 || s->changed || !s->as_wanted)
			continue;
		late_us = monotime_since_us(s->wanted_at, clock_monotime());
		s->wanted_at = MONOTIME_ZERO;
		if (late_us < STEPS_LATE_US)
			continue;
		for (size_t p = 0; p < n; p++)
			withdrawn += s->prefixes[p].wanted == PREFIX_WANTED_WITHDRAW;
		event_say(LOG_NOTICE, EVENT_BIRD_LATE,
			&(const struct event_fields){.service = s->name},
			"service %s: %s now (BIRD answered after %llu.%llu s)", s->name,
			withdrawn == n	 ? "withdrawn"
			: withdrawn == 0 ? "announced"
					 : "as wanted",
			(unsigned long long)late_us / 1000000,
			(unsigned long long)late_us / 100000 % 10);
	}
}

/* BIRD took its configuration and still does not know a protocol of ours. */
static void steps_say_absent(struct apply *a)
{
	const struct apply_protocol *absent = NULL;

	for (size_t i = 0; i < a->n_protocols && !absent; i++) {
		const struct apply_protocol *p = a->protocols[i];

		if (p->want != PLAN_WANT_GONE && p->seen == PLAN_SEEN_ABSENT && p->attempts > 0 &&
			p->command == 0)
			absent = p;
	}
	if (absent && !a->absent_alarm && !a->status.alarm[0]) {
		apply_set_alarm(a,
			"BIRD accepts its configuration, but that does not hold protocol %s: does "
			"bird.conf include \"%s/*.conf\"?",
			absent->name, a->folder);
		event_say(LOG_ERR, EVENT_BIRD_REFUSED,
			&(const struct event_fields){.protocol = absent->name}, "bird: %s",
			a->status.alarm);
		a->absent_alarm = true;
	}
	if (!absent && a->absent_alarm) {
		a->absent_alarm = false;
		apply_set_alarm(a, "%s", "");
		event_say(LOG_NOTICE, EVENT_BIRD_ACCEPTED, NULL,
			"bird: holds all protocols of ours now");
	}
}

/* The back-off of a refused configure is over: what is wanted takes the place of what was put back,
 * and core/plan is asked without the refusal. */
static void steps_retry(struct apply *a)
{
	if (!a->refused)
		return;
	if (!monotime_reached(a->retry, clock_monotime())) {
		apply_wake_at(a, a->retry);
		return;
	}
	a->refused = false;
	apply_files_try_again(a);
}

static void steps_configure(struct apply *a)
{
	struct monotime now = clock_monotime();
	bool may = a->configure == APPLY_CONFIGURE_NONE && !a->check_sent && !a->busy &&
		   !apply_files_dirty(a) && a->folder_fd >= 0;

	if (a->configure_wanted && may) {
		apply_send_configure(a);
		return;
	}
	/* After a refusal, with nothing left that needs a configure: is it mended? */
	if (may && !a->refused && a->refusals > 0) {
		apply_send_check(a);
		return;
	}
	if (monotime_is_never(a->check_at))
		return;
	if (!monotime_reached(a->check_at, now))
		apply_wake_at(a, a->check_at);
	else if (may && !a->unconfirmed)
		apply_send_check(a);
}

static void steps_settled(struct apply *a, bool done)
{
	bool settled = done && a->status.link == APPLY_LINK_UP && a->flushed && !a->unconfirmed &&
		       !a->busy && a->commands_waiting == 0 &&
		       a->configure == APPLY_CONFIGURE_NONE && !apply_files_dirty(a);

	if (settled != a->status.settled)
		apply_say_changed(a);
	a->status.settled = settled;
}

void apply_round(struct apply *a)
{
	bool done = false;

	apply_link_round(a);
	apply_forget_absent(a);
	if (a->ready && a->flushed) {
		if (a->folder_check)
			apply_files_tick(a);
		steps_retry(a);
		apply_files_sync(a);
		if (a->command.greeted) {
			done = steps_protocols(a);
			steps_say_absent(a);
			steps_configure(a);
			steps_say_late(a);
		}
	}
	if (a->status_wanted && a->configure != APPLY_CONFIGURE_SENT && a->commands_waiting == 0)
		apply_send_status(a);
	if (a->observe_wanted)
		apply_observe(a);
	apply_reads_pump(a);
	steps_settled(a, done);
}
