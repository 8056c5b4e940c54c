/*
 * Record, then judge: an outcome is kept for people to look at, and then held against the state.
 *
 * Judgement needs only how many outcomes in a row have spoken against the state. A check that has
 * not spoken yet is judged as if it stood where its service was found, so the first outcome needs
 * no rules of its own: one bad answer of an adopted service is the first of `fall`, one good answer
 * of a withdrawn one is the first of `rise`.
 */
#include "agent/core/check.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define OUTCOME_BITS 2
#define OUTCOME_MASK ((1U << OUTCOME_BITS) - 1)

void check_init(struct check *c, const struct check_settings *settings, struct monotime now)
{
	assert(settings->rise >= 1);
	assert(settings->fall >= 1);
	memset(c, 0, sizeof(*c));
	c->settings = *settings;
	c->state = CHECK_STATE_PENDING;
	c->since = now;
}

unsigned check_rise(const struct check *c)
{
	bool first = !c->was_up && c->settings.first_rise > 0;

	return first ? c->settings.first_rise : c->settings.rise;
}

static void check_record(struct check *c, enum check_outcome outcome)
{
	c->history = c->history << OUTCOME_BITS | (uint64_t)outcome;
	if (c->n_history < CHECK_HISTORY_LENGTH)
		c->n_history++;
}

/* The only place where the state changes. */
static bool check_turn(struct check *c, enum check_state state, struct monotime now)
{
	if (c->state == state)
		return false;
	c->state = state;
	c->since = now;
	return true;
}

bool check_rise_again(struct check *c, struct monotime now)
{
	c->again = true;
	c->streak = 0;
	c->good_streak = 0;
	return c->state != CHECK_STATE_PENDING && check_turn(c, CHECK_STATE_DOWN, now);
}

static bool check_take_gone(struct check *c, struct monotime now)
{
	c->again = false;
	c->streak = 0;
	c->good_streak = 0;
	c->dead = true;
	return check_turn(c, CHECK_STATE_DOWN, now);
}

static bool check_take_good(struct check *c, enum check_state state, struct monotime now)
{
	unsigned rise = check_rise(c);

	if (c->good_streak < rise)
		c->good_streak++;
	c->dead = false;

	if (state == CHECK_STATE_DOWN && ++c->streak < rise)
		return check_turn(c, CHECK_STATE_DOWN, now);

	c->streak = 0;
	c->again = false;
	c->was_up = true;
	return check_turn(c, CHECK_STATE_UP, now);
}

static bool check_take_bad(struct check *c, enum check_state state, struct monotime now)
{
	c->good_streak = 0;

	if (state == CHECK_STATE_UP && ++c->streak < c->settings.fall)
		return check_turn(c, CHECK_STATE_UP, now);

	c->streak = 0;
	return check_turn(c, CHECK_STATE_DOWN, now);
}

bool check_take(struct check *c, enum check_outcome outcome, bool prior, struct monotime now)
{
	enum check_state state = c->state;

	check_record(c, outcome);
	if (state == CHECK_STATE_PENDING) {
		prior = prior && !c->again;
		state = prior ? CHECK_STATE_UP : CHECK_STATE_DOWN;
		c->was_up = prior;
	}

	switch (outcome) {
	case CHECK_OUTCOME_UNKNOWN:
		return false;
	case CHECK_OUTCOME_GONE:
		return check_take_gone(c, now);
	case CHECK_OUTCOME_GOOD:
		return check_take_good(c, state, now);
	case CHECK_OUTCOME_BAD:
		return check_take_bad(c, state, now);
	}
	abort();
}

bool check_is_undecided(const struct check *c)
{
	return c->state == CHECK_STATE_PENDING || c->streak > 0 || c->again;
}

bool check_fell_along(const struct check *c)
{
	unsigned age = 0;

	if (!c->again || c->state != CHECK_STATE_DOWN || c->good_streak > 0)
		return false;
	while (age < c->n_history && check_history(c, age) == CHECK_OUTCOME_UNKNOWN)
		age++;
	return age == c->n_history || check_history(c, age) == CHECK_OUTCOME_GOOD;
}

struct monotime check_next_start(
	const struct check *c, struct monotime started, struct monotime now)
{
	uint64_t interval_ms =
		check_is_undecided(c) ? c->settings.fast_interval_ms : c->settings.interval_ms;

	return monotime_max(monotime_add_ms(started, interval_ms), now);
}

enum check_outcome check_history(const struct check *c, unsigned age)
{
	assert(age < c->n_history);
	return (enum check_outcome)(c->history >> (age * OUTCOME_BITS) & OUTCOME_MASK);
}

const char *check_state_name(enum check_state state)
{
	switch (state) {
	case CHECK_STATE_PENDING:
		return "pending";
	case CHECK_STATE_UP:
		return "up";
	case CHECK_STATE_DOWN:
		return "down";
	}
	abort();
}

const char *check_outcome_name(enum check_outcome outcome)
{
	switch (outcome) {
	case CHECK_OUTCOME_GOOD:
		return "good";
	case CHECK_OUTCOME_BAD:
		return "bad";
	case CHECK_OUTCOME_GONE:
		return "gone";
	case CHECK_OUTCOME_UNKNOWN:
		return "unknown";
	}
	abort();
}
