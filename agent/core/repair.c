/*
 * The decision about restarting a unit: repair.h has the rules.
 *
 * What tells a unit that was stopped on purpose. systemd has no property for it, but:
 *   - `inactive` is where a stop leads, and a main process that ended with success. A crash
 *     leads to `failed`. A clean end without a stop is somebody's doing just as well
 *     (`nsd-control stop`), and systemd's own Restart=on-failure sees it so.
 *   - a stop can lead to `failed`, too: when the process says so in its exit status, or has to be
 *     killed. Then the unit left `active` before its process ended, while a crash ends the process
 *     first. Both times are properties, and stay when the agent was not looking. What systemd stops
 *     by itself, because of its watchdog or memory, names that as its Result.
 *
 * Every change of state goes through turn().
 */
#include "agent/core/repair.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

int repair_init(struct repair *r, const struct repair_settings *settings, struct monotime now)
{
	struct monotime *attempts;

	assert(settings->limit >= 1);
	attempts = calloc(settings->limit, sizeof(*attempts));
	if (!attempts)
		return -ENOMEM;
	*r = (struct repair){
		.settings = *settings,
		.since = now,
		.next = MONOTIME_NEVER,
		.last = MONOTIME_NEVER,
		.attempts = attempts,
	};
	return 0;
}

void repair_done_with(struct repair *r)
{
	free(r->attempts);
	r->attempts = NULL;
}

static void turn(
	struct repair *r, enum repair_state state, struct monotime next, struct monotime now)
{
	if (r->state != state)
		r->since = now;
	r->state = state;
	r->next = next;
}

/* ---- facts, judged ---- */

enum repair_trigger repair_trigger_of(const struct check *check)
{
	if (check->state != CHECK_STATE_DOWN)
		return REPAIR_TRIGGER_UP;
	switch (check_history(check, 0)) {
	case CHECK_OUTCOME_BAD:
	case CHECK_OUTCOME_GONE:
		return REPAIR_TRIGGER_DOWN;
	case CHECK_OUTCOME_GOOD:
	case CHECK_OUTCOME_UNKNOWN:
		return REPAIR_TRIGGER_RISING;
	}
	abort();
}

enum repair_trigger repair_trigger_worse(enum repair_trigger a, enum repair_trigger b)
{
	return a > b ? a : b;
}

static bool is(const char *text, const char *word)
{
	return strcmp(text, word) == 0;
}

static bool begins(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

/* It left `active` in the life of its last process, before that ended, and not by systemd's own
 * decision. */
static bool failed_by_stop(const struct repair_properties *p)
{
	if (is(p->result, "watchdog") || is(p->result, "oom-kill") ||
		is(p->result, "start-limit-hit"))
		return false;
	return p->main_start_us > 0 && p->main_start_us <= p->active_enter_us &&
	       p->active_enter_us <= p->active_exit_us && p->active_exit_us < p->main_exit_us;
}

enum repair_unit repair_judge(const struct repair_properties *p)
{
	if (!is(p->load_state, "loaded"))
		return REPAIR_UNIT_MISSING;
	/* Waiting for its own restart it is `activating`, and in newer systemds for a moment
	 * "failed-before-auto-restart" before. */
	if (p->job || begins(p->sub_state, "failed-before-") ||
		begins(p->sub_state, "dead-before-"))
		return REPAIR_UNIT_BUSY;
	if (is(p->active_state, "active"))
		return REPAIR_UNIT_ACTIVE;
	if (is(p->active_state, "inactive"))
		return REPAIR_UNIT_STOPPED;
	if (is(p->active_state, "failed"))
		return failed_by_stop(p) ? REPAIR_UNIT_STOPPED : REPAIR_UNIT_FAILED;
	return REPAIR_UNIT_BUSY; /* activating, deactivating, reloading, ... */
}

/* ---- times ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The pause behind the attempt that was made last. */
static uint64_t pause_ms(const struct repair *r)
{
	uint64_t ms = larger(r->settings.delay_ms, REPAIR_PAUSE_MIN_MS);
	uint64_t most = larger(r->settings.delay_ms, REPAIR_PAUSE_MAX_MS);

	for (unsigned i = 0; i < r->episode && ms < most; i++)
		ms *= 2;
	if (ms > most)
		ms = most;
	return larger(ms, r->settings.settle_ms);
}

static struct monotime attempt_ends(const struct repair *r, size_t i)
{
	return monotime_add_ms(r->attempts[i], r->settings.per_ms);
}

size_t repair_attempts(const struct repair *r, struct monotime now)
{
	size_t over = 0;

	while (over < r->n_attempts && monotime_reached(attempt_ends(r, over), now))
		over++;
	return r->n_attempts - over;
}

/* Forgets the attempts that are older than `per`. */
static void forget(struct repair *r, struct monotime now)
{
	size_t left = repair_attempts(r, now);

	memmove(r->attempts, r->attempts + (r->n_attempts - left), left * sizeof(*r->attempts));
	r->n_attempts = left;
}

/* What was asked or ordered is not waited for any more: it is looked again, later. A delay or a
 * pause that runs goes on, or begins anew where the new one is over sooner. */
void repair_adopt(struct repair *r, const struct repair *old, struct monotime now)
{
	size_t skip = old->n_attempts > r->settings.limit ? old->n_attempts - r->settings.limit : 0;
	struct monotime next =
		monotime_add_ms(now, larger(r->settings.settle_ms, REPAIR_PAUSE_MIN_MS));
	struct monotime paused;

	r->n_attempts = old->n_attempts - skip;
	memcpy(r->attempts, old->attempts + skip, r->n_attempts * sizeof(*r->attempts));
	r->last = old->last;
	r->last_result = old->last_result;
	r->episode = old->episode;
	if (old->state == REPAIR_STATE_IDLE)
		return;
	if (old->state == REPAIR_STATE_HELD) {
		turn(r, REPAIR_STATE_HELD, MONOTIME_NEVER, now);
		return;
	}
	paused = monotime_add_ms(now, r->episode == 0 ? r->settings.delay_ms : pause_ms(r));
	if (old->state == REPAIR_STATE_RESTARTING)
		next = monotime_max(next, paused);
	else if (old->state == REPAIR_STATE_WAITING)
		next = monotime_max(next, monotime_min(old->next, paused));
	turn(r, REPAIR_STATE_WAITING, next, now);
}

void repair_remember(struct repair *r, struct monotime attempt, struct monotime now)
{
	bool later = r->n_attempts == 0 || attempt.us >= r->attempts[r->n_attempts - 1].us;

	if (!later || attempt.us > now.us)
		return;
	if (r->n_attempts == r->settings.limit) {
		r->n_attempts--;
		memmove(r->attempts, r->attempts + 1, r->n_attempts * sizeof(*r->attempts));
	}
	r->attempts[r->n_attempts++] = attempt;
	r->last = attempt;
	forget(r, now);
}

/* ---- steps ---- */

static bool is_exhausted(struct repair *r, struct monotime now)
{
	forget(r, now);
	if (r->n_attempts < r->settings.limit)
		return false;
	turn(r, REPAIR_STATE_EXHAUSTED, attempt_ends(r, 0), now);
	return true;
}

enum repair_do repair_step(struct repair *r, const struct repair_facts *facts, struct monotime now)
{
	r->rising = facts->trigger == REPAIR_TRIGGER_RISING;
	if (r->state == REPAIR_STATE_RESTARTING) {
		if (!monotime_reached(r->next, now))
			return REPAIR_DO_NOTHING;
		repair_done(r, REPAIR_RESULT_TIMED_OUT, now);
	}
	if (facts->trigger == REPAIR_TRIGGER_UP) {
		r->episode = 0;
		turn(r, REPAIR_STATE_IDLE, MONOTIME_NEVER, now);
		return REPAIR_DO_NOTHING;
	}
	if (r->state == REPAIR_STATE_IDLE && r->rising)
		return REPAIR_DO_NOTHING;
	if (facts->held) {
		turn(r, REPAIR_STATE_HELD, MONOTIME_NEVER, now);
		return REPAIR_DO_NOTHING;
	}
	if (r->state == REPAIR_STATE_IDLE || r->state == REPAIR_STATE_HELD)
		turn(r, REPAIR_STATE_WAITING,
			monotime_add_ms(now, r->episode == 0 ? r->settings.delay_ms : pause_ms(r)),
			now);
	if (r->state == REPAIR_STATE_ASKING) {
		if (r->rising)
			turn(r, REPAIR_STATE_WAITING, now, now);
		return REPAIR_DO_NOTHING;
	}
	if (r->rising || !monotime_reached(r->next, now))
		return REPAIR_DO_NOTHING;
	if (is_exhausted(r, now))
		return REPAIR_DO_NOTHING;
	turn(r, REPAIR_STATE_ASKING, MONOTIME_NEVER, now);
	return REPAIR_DO_ASK;
}

static enum repair_do attempt(struct repair *r, enum repair_do what, struct monotime now)
{
	assert(r->n_attempts < r->settings.limit);
	r->attempts[r->n_attempts++] = now;
	r->last = now;
	r->episode++;
	turn(r, REPAIR_STATE_RESTARTING, monotime_add_ms(now, REPAIR_JOB_MS), now);
	return what;
}

enum repair_do repair_found(
	struct repair *r, enum repair_unit unit, uint64_t active_us, struct monotime now)
{
	uint64_t settle_ms = r->settings.settle_ms;

	if (r->state != REPAIR_STATE_ASKING)
		return REPAIR_DO_NOTHING;
	switch (unit) {
	case REPAIR_UNIT_UNKNOWN:
		turn(r, REPAIR_STATE_UNKNOWN, monotime_add_ms(now, pause_ms(r)), now);
		return REPAIR_DO_NOTHING;
	case REPAIR_UNIT_MISSING:
		turn(r, REPAIR_STATE_MISSING, monotime_add_ms(now, REPAIR_PAUSE_MAX_MS), now);
		return REPAIR_DO_NOTHING;
	case REPAIR_UNIT_BUSY:
		turn(r, REPAIR_STATE_LEFT, monotime_add_ms(now, REPAIR_PAUSE_MIN_MS), now);
		return REPAIR_DO_NOTHING;
	case REPAIR_UNIT_STOPPED:
		turn(r, REPAIR_STATE_STOPPED, monotime_add_ms(now, REPAIR_LOOK_MS), now);
		return REPAIR_DO_NOTHING;
	case REPAIR_UNIT_FAILED:
		return attempt(r, REPAIR_DO_START, now);
	case REPAIR_UNIT_ACTIVE:
		if (active_us / 1000 >= settle_ms)
			return attempt(r, REPAIR_DO_RESTART, now);
		/* Somebody has just started it: its checks may be about to rise. */
		turn(r, REPAIR_STATE_LEFT, monotime_add_ms(now, settle_ms - active_us / 1000), now);
		return REPAIR_DO_NOTHING;
	}
	abort();
}

void repair_done(struct repair *r, enum repair_result result, struct monotime now)
{
	if (r->state != REPAIR_STATE_RESTARTING)
		return;
	r->last_result = result;
	switch (result) {
	case REPAIR_RESULT_DENIED:
	case REPAIR_RESULT_MISSING:
		/* Nothing was restarted. */
		r->n_attempts--;
		r->episode--;
		turn(r, result == REPAIR_RESULT_DENIED ? REPAIR_STATE_DENIED : REPAIR_STATE_MISSING,
			monotime_add_ms(now, REPAIR_PAUSE_MAX_MS), now);
		return;
	case REPAIR_RESULT_NONE:
	case REPAIR_RESULT_DONE:
	case REPAIR_RESULT_FAILED:
	case REPAIR_RESULT_TIMED_OUT:
	case REPAIR_RESULT_CANCELLED:
	case REPAIR_RESULT_REFUSED:
	case REPAIR_RESULT_UNANSWERED:
		turn(r, REPAIR_STATE_WAITING, monotime_add_ms(now, pause_ms(r)), now);
		return;
	}
	abort();
}

struct monotime repair_deadline(const struct repair *r)
{
	/* A check that rises says the next word; a job is given up in any case. */
	return r->rising && r->state != REPAIR_STATE_RESTARTING ? MONOTIME_NEVER : r->next;
}

/* ---- words ---- */

const char *repair_state_name(enum repair_state state)
{
	switch (state) {
	case REPAIR_STATE_IDLE:
		return "idle";
	case REPAIR_STATE_WAITING:
		return "waiting";
	case REPAIR_STATE_ASKING:
		return "asking";
	case REPAIR_STATE_RESTARTING:
		return "restarting";
	case REPAIR_STATE_HELD:
		return "held";
	case REPAIR_STATE_STOPPED:
		return "stopped";
	case REPAIR_STATE_LEFT:
		return "left";
	case REPAIR_STATE_EXHAUSTED:
		return "exhausted";
	case REPAIR_STATE_UNKNOWN:
		return "unknown";
	case REPAIR_STATE_MISSING:
		return "missing";
	case REPAIR_STATE_DENIED:
		return "denied";
	}
	abort();
}

const char *repair_result_name(enum repair_result result)
{
	switch (result) {
	case REPAIR_RESULT_NONE:
		return NULL;
	case REPAIR_RESULT_DONE:
		return "done";
	case REPAIR_RESULT_FAILED:
		return "failed";
	case REPAIR_RESULT_TIMED_OUT:
		return "timed_out";
	case REPAIR_RESULT_CANCELLED:
		return "cancelled";
	case REPAIR_RESULT_DENIED:
		return "denied";
	case REPAIR_RESULT_MISSING:
		return "missing";
	case REPAIR_RESULT_REFUSED:
		return "refused";
	case REPAIR_RESULT_UNANSWERED:
		return "unanswered";
	}
	abort();
}
