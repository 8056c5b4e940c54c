/*
 * Repairs against a model of systemd, of a service and of the people who work on it: whatever they
 * do, a unit is touched only when it may be, never too often, and never forgotten. Numbers R1, R2,
 * ... are those of docs/invariants.md. See property.h for the arguments.
 *
 * The driver plays agent/repair.c: it hands in every fact, answers what is asked, ends the jobs,
 * and comes again at the deadline.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/core/repair.h"
#include "tests/scenario/property.h"

#define ATTEMPTS_MAX 4096
#define LATE_MS (REPAIR_PAUSE_MAX_MS + REPAIR_JOB_MS)

struct world {
	uint64_t random;
	struct repair repair;
	struct monotime now;
	struct repair_facts facts;
	enum repair_unit unit;
	struct monotime active_since;
	bool asked, ordered;
	/* what the checker keeps */
	struct monotime attempts[ATTEMPTS_MAX];
	size_t n_attempts;
	struct monotime ended; /* the last attempt, in this episode; never: none */
	unsigned in_episode;
	uint64_t sooner_ms; /* what a pause was by settings that a reload has changed since */
	uint64_t n_steps;
};

static unsigned pick(struct world *w, unsigned n)
{
	return random_below(&w->random, n);
}

static bool chance(struct world *w, unsigned percent)
{
	return random_chance(&w->random, percent);
}

static uint64_t active_us(const struct world *w)
{
	return monotime_since_us(w->active_since, w->now);
}

/* What the manual says of the pause behind the n-th attempt. */
static uint64_t least_pause_ms(const struct world *w)
{
	const struct repair_settings *s = &w->repair.settings;
	uint64_t ms = s->delay_ms > 1000 ? s->delay_ms : 1000;

	for (unsigned i = 0; i < w->in_episode && ms < 300000; i++)
		ms *= 2;
	ms = ms < 300000 ? ms : 300000;
	ms = ms > s->delay_ms ? ms : s->delay_ms;
	return ms > s->settle_ms ? ms : s->settle_ms;
}

/* ---- what must hold ---- */

static void require_attempt(struct world *w, enum repair_do what)
{
	const struct repair_settings *s = &w->repair.settings;
	uint64_t pause_ms = least_pause_ms(w) < w->sooner_ms ? least_pause_ms(w) : w->sooner_ms;
	size_t within = 1;

	property_require("R2", w->facts.trigger == REPAIR_TRIGGER_DOWN && !w->facts.held,
		"an attempt while trigger %d, held %d", (int)w->facts.trigger, w->facts.held);
	property_require("R2",
		(w->unit == REPAIR_UNIT_FAILED && what == REPAIR_DO_START) ||
			(w->unit == REPAIR_UNIT_ACTIVE && what == REPAIR_DO_RESTART &&
				active_us(w) / 1000 >= s->settle_ms),
		"step %d for a unit that is %d", (int)what, (int)w->unit);
	property_require("R3", !w->ordered, "an attempt while another is under way");
	for (size_t i = 0; i < w->n_attempts; i++)
		within += monotime_since_us(w->attempts[i], w->now) < s->per_ms * 1000;
	property_require(
		"R1", within <= s->limit, "%zu attempts within per, limit %zu", within, s->limit);
	if (!monotime_is_never(w->ended))
		property_require("R4", monotime_since_us(w->ended, w->now) / 1000 >= pause_ms,
			"a pause of %llu ms instead of %llu",
			(unsigned long long)monotime_since_us(w->ended, w->now) / 1000,
			(unsigned long long)pause_ms);
}

/* Nothing is due at once, and something is due in the end. */
static void require_deadline(const struct world *w)
{
	struct monotime next = repair_deadline(&w->repair);
	const struct repair_settings *s = &w->repair.settings;

	property_require("R5", !monotime_reached(next, w->now), "due again at once, in state %s",
		repair_state_name(w->repair.state));
	if (w->facts.trigger == REPAIR_TRIGGER_DOWN && !w->facts.held && !w->asked && !w->ordered)
		property_require("R5",
			monotime_reached(
				next, monotime_add_ms(w->now,
					      LATE_MS + s->per_ms + s->settle_ms + s->delay_ms)),
			"nothing is due, in state %s", repair_state_name(w->repair.state));
}

/* ---- the driver ---- */

static void take(struct world *w, enum repair_do what)
{
	switch (what) {
	case REPAIR_DO_NOTHING:
		return;
	case REPAIR_DO_ASK:
		property_require("R3", !w->ordered, "a question while a job is under way");
		property_trace("%llu ask\n", (unsigned long long)w->now.us / 1000);
		w->asked = true;
		return;
	case REPAIR_DO_START:
	case REPAIR_DO_RESTART:
		property_trace(
			"%llu attempt %d\n", (unsigned long long)w->now.us / 1000, (int)what);
		require_attempt(w, what);
		w->attempts[w->n_attempts++] = w->now;
		w->in_episode++;
		w->ordered = true;
		return;
	}
}

static void step(struct world *w)
{
	enum repair_state before = w->repair.state;

	take(w, repair_step(&w->repair, &w->facts, w->now));
	if (before == REPAIR_STATE_RESTARTING && w->repair.state != before) {
		w->ordered = false; /* given up */
		w->ended = w->now;
		w->sooner_ms = UINT64_MAX;
	}
	if (w->repair.state != REPAIR_STATE_ASKING)
		w->asked = false;
	if (w->facts.trigger == REPAIR_TRIGGER_UP && !w->ordered) {
		w->in_episode = 0;
		w->ended = MONOTIME_NEVER;
	}
	require_deadline(w);
	w->n_steps++;
}

static void answer(struct world *w)
{
	property_trace("%llu the unit is %d\n", (unsigned long long)w->now.us / 1000, (int)w->unit);
	w->asked = false;
	take(w, repair_found(&w->repair, w->unit, active_us(w), w->now));
	step(w);
}

static void end_job(struct world *w)
{
	enum repair_result result =
		(enum repair_result)(REPAIR_RESULT_DONE + (int)pick(w, REPAIR_N_RESULTS - 1));

	property_trace(
		"%llu job %s", (unsigned long long)w->now.us / 1000, repair_result_name(result));
	repair_done(&w->repair, result, w->now);
	w->ordered = false;
	if (result == REPAIR_RESULT_DENIED || result == REPAIR_RESULT_MISSING) {
		w->n_attempts--;
		w->in_episode--;
	} else {
		w->ended = w->now;
		w->sooner_ms = UINT64_MAX;
	}
	if (result == REPAIR_RESULT_DONE) {
		w->unit = REPAIR_UNIT_ACTIVE;
		w->active_since = w->now;
	}
	step(w);
}

static void disturb(struct world *w)
{
	switch (pick(w, 4)) {
	case 0:
		w->facts.trigger = (enum repair_trigger)pick(w, 3);
		break;
	case 1:
		w->facts.held = chance(w, 30);
		break;
	case 2:
		w->unit = (enum repair_unit)pick(w, 6);
		w->active_since = w->now;
		break;
	case 3:
		w->facts.trigger = REPAIR_TRIGGER_DOWN;
		w->unit = REPAIR_UNIT_FAILED;
		break;
	default:
		break;
	}
	property_trace("%llu trigger %d, held %d, unit %d\n", (unsigned long long)w->now.us / 1000,
		(int)w->facts.trigger, w->facts.held, (int)w->unit);
}

/* Time goes on, to the deadline or not as far. */
static void pass(struct world *w)
{
	struct monotime next = repair_deadline(&w->repair);
	struct monotime to = monotime_add_ms(w->now, 1 + pick(w, 20000));

	w->now = chance(w, 70) && !monotime_is_never(next) ? next : monotime_min(next, to);
}

/* The unit has failed and nobody is in the way: an attempt begins. */
static void settle(struct world *w)
{
	size_t before = w->n_attempts;

	w->facts = (struct repair_facts){REPAIR_TRIGGER_DOWN, false};
	w->unit = REPAIR_UNIT_FAILED;
	if (w->ordered)
		end_job(w);
	w->unit = REPAIR_UNIT_FAILED;
	before = w->n_attempts;
	for (unsigned i = 0; i < 8 && w->n_attempts == before; i++) {
		step(w);
		if (w->asked)
			answer(w);
		if (w->n_attempts == before)
			w->now = repair_deadline(&w->repair);
	}
	property_require("R6", w->n_attempts > before, "no attempt, in state %s",
		repair_state_name(w->repair.state));
}

static struct repair_settings random_settings(struct world *w)
{
	static const unsigned delays[] = {1, 5000, 3600001};

	return (struct repair_settings){
		.delay_ms = pick(w, delays[pick(w, 3)]),
		.per_ms = 1000 + pick(w, 100000),
		.limit = 1 + pick(w, 4),
		.settle_ms = chance(w, 30) ? 0 : pick(w, 20000),
	};
}

/* Other settings: what is under way is not waited for, and its pause begins. `per` stays, since
 * nobody remembers what was over by a shorter one; of attempts a lower limit keeps the newest. */
static void reload(struct world *w)
{
	struct repair_settings settings = random_settings(w);
	uint64_t pause_ms = least_pause_ms(w);
	struct repair next;

	settings.per_ms = w->repair.settings.per_ms;
	if (repair_init(&next, &settings, w->now) < 0)
		abort();
	repair_adopt(&next, &w->repair, w->now);
	repair_done_with(&w->repair);
	w->repair = next;
	if (w->ordered) {
		w->ended = w->now;
		w->sooner_ms = UINT64_MAX;
	} else if (w->sooner_ms > pause_ms) {
		w->sooner_ms = pause_ms;
	}
	w->asked = w->ordered = false;
	if (w->n_attempts > settings.limit) {
		memmove(w->attempts, w->attempts + (w->n_attempts - settings.limit),
			settings.limit * sizeof(w->attempts[0]));
		w->n_attempts = settings.limit;
	}
	property_trace("%llu reload: delay %llu ms, limit %zu, settle %llu ms\n",
		(unsigned long long)w->now.us / 1000, (unsigned long long)settings.delay_ms,
		settings.limit, (unsigned long long)settings.settle_ms);
}

static uint64_t sequence(uint64_t seed)
{
	static struct world w;
	struct repair_settings settings;

	memset(&w, 0, sizeof(w));
	w.random = seed;
	w.now = (struct monotime){1000000};
	w.ended = MONOTIME_NEVER;
	w.sooner_ms = UINT64_MAX;
	settings = random_settings(&w);
	if (repair_init(&w.repair, &settings, w.now) < 0)
		return 0;
	for (unsigned i = 0, n = pick(&w, 60); i < n; i++) {
		if (chance(&w, 50))
			disturb(&w);
		if (chance(&w, 10))
			reload(&w);
		step(&w);
		if (w.asked && chance(&w, 80))
			answer(&w);
		if (w.ordered && chance(&w, 60))
			end_job(&w);
		pass(&w);
		step(&w);
	}
	settle(&w);
	repair_done_with(&w.repair);
	return w.n_steps;
}

const struct property_program property_program = {"repair", sequence};
