/*
 * Facts are noted where they belong and mark their service as stale; engine_decide() judges what is
 * stale and what has waited long enough, and nothing else, so that a decision without news costs
 * one look at each service.
 *
 * Announcements wait in one window for the whole server. The first that the rules allow opens it,
 * `coalesce_ms` later it closes, and all that are allowed by then are wanted together. Whatever
 * makes a prefix more attractive waits (withdraw -> demote -> announce in the order of the enum),
 * whatever makes it less so happens at once. While a prefix waits, what is wanted, why and since
 * when stay as they were: a verdict that comes and goes within the window leaves no trace.
 *
 * The one function that changes what is wanted is prefix_turn(); each change goes into a bounded
 * ring of transitions, for the log and for those who watch. What a prefix is announced with (its
 * weight, GRACEFUL_SHUTDOWN) is prefix_dress()'s.
 *
 * What time alone changes (a step of a ramp, the end of a leaving or of a hold-down) each service
 * knows the next moment of; the deadline is the first of these and the window's end.
 */
#include "agent/core/engine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/inventory.h"

/* Room for a reader who comes after each decision, whatever changed in it, and some more. */
#define TRANSITIONS_SPARE 256

struct transitions {
	struct engine_transition *items; /* a ring */
	size_t allocated;
	size_t first;
	size_t n;
};

struct engine {
	struct inventory inventory;
	struct transitions transitions;
	uint64_t coalesce_ms;
	struct monotime window;	  /* when it closes; never: no announcement waits */
	struct monotime spread;	  /* when the start's spread is over; never: it is */
	struct monotime deadline; /* as of the last decision */
	bool stopping;
	bool frozen;
};

struct engine *engine_new(void)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (e)
		e->window = e->spread = e->deadline = MONOTIME_NEVER;
	return e;
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	inventory_done(&e->inventory);
	free(e->transitions.items);
	free(e);
}

static void transitions_put(struct transitions *t, const struct engine_transition *transition)
{
	t->items[(t->first + t->n) % t->allocated] = *transition;
	if (t->n < t->allocated)
		t->n++;
	else
		t->first = (t->first + 1) % t->allocated;
}

bool engine_next_transition(struct engine *e, struct engine_transition *ret)
{
	struct transitions *t = &e->transitions;

	if (t->n == 0)
		return false;
	*ret = t->items[t->first];
	t->first = (t->first + 1) % t->allocated;
	t->n--;
	return true;
}

/* A configuration that was prepared and not taken. */
struct engine_change {
	struct inventory inventory;
	struct transitions transitions;
	uint64_t coalesce_ms;
};

int engine_prepare(
	struct engine_change **ret, const struct engine_config *config, struct monotime now)
{
	struct engine_change *change = calloc(1, sizeof(*change));
	struct transitions *t;
	int r;

	if (!change)
		return -ENOMEM;
	r = inventory_build(&change->inventory, config, now);
	if (r < 0) {
		free(change);
		return r;
	}
	t = &change->transitions;
	t->allocated = TRANSITIONS_SPARE + 2 * change->inventory.n_entries;
	t->items = calloc(t->allocated, sizeof(*t->items));
	if (!t->items) {
		engine_change_free(change);
		return -ENOMEM;
	}
	change->coalesce_ms = config->coalesce_ms;
	*ret = change;
	return 0;
}

void engine_commit(struct engine *e, struct engine_change *change)
{
	inventory_carry_over(&change->inventory, &e->inventory);

	inventory_done(&e->inventory);
	e->inventory = change->inventory;
	free(e->transitions.items);
	e->transitions = change->transitions;
	e->coalesce_ms = change->coalesce_ms;
	free(change);
}

void engine_change_free(struct engine_change *change)
{
	if (!change)
		return;
	inventory_done(&change->inventory);
	free(change->transitions.items);
	free(change);
}

int engine_configure(struct engine *e, const struct engine_config *config, struct monotime now)
{
	struct engine_change *change;
	int r = engine_prepare(&change, config, now);

	if (r < 0)
		return r;
	engine_commit(e, change);
	return 0;
}

bool engine_change_drops(
	const struct engine *e, const struct engine_change *change, size_t service, size_t prefix)
{
	const struct inventory_prefix *p = &e->inventory.services[service].prefixes[prefix];

	return p->view.wanted != PREFIX_WANTED_WITHDRAW &&
	       !inventory_prefix_named(&change->inventory, p->name);
}

const struct engine_prefix *engine_change_prefix(
	const struct engine *e, const struct engine_change *change, size_t service, size_t prefix)
{
	const struct inventory_prefix *p = &change->inventory.services[service].prefixes[prefix];
	const struct inventory_prefix *now = inventory_prefix_named(&e->inventory, p->name);

	return now ? &now->view : &p->view;
}

struct guard_count engine_change_count(const struct engine *e, const struct engine_change *change)
{
	struct guard_count count = {0};

	for (size_t i = 0; i < e->inventory.n_services; i++) {
		const struct inventory_service *s = &e->inventory.services[i];

		for (size_t k = 0; k < s->n_prefixes; k++) {
			count.n_announced += s->prefixes[k].view.wanted != PREFIX_WANTED_WITHDRAW;
			count.n_dropped += engine_change_drops(e, change, i, k);
		}
	}
	return count;
}

static struct inventory_service *engine_service(const struct engine *e, size_t service)
{
	assert(service < e->inventory.n_services);
	return &e->inventory.services[service];
}

static struct inventory_prefix *service_prefix(struct inventory_service *s, size_t prefix)
{
	assert(prefix < s->n_prefixes);
	return &s->prefixes[prefix];
}

static struct check *service_check(struct inventory_service *s, size_t check)
{
	assert(check < s->n_checks);
	return &s->checks[check];
}

void engine_found(struct engine *e, size_t service, size_t prefix, enum prefix_wanted found)
{
	struct inventory_service *s = engine_service(e, service);
	struct inventory_prefix *p = service_prefix(s, prefix);

	if (p->decided)
		return;
	p->found = found;
	p->found_well = found != PREFIX_WANTED_WITHDRAW;
	p->held = found;
	p->view.wanted = found;
}

/* What a check counts as before it has spoken: the service was announced, so it was well. */
static bool service_was_well(const struct inventory_service *s)
{
	for (size_t i = 0; i < s->n_prefixes; i++)
		if (s->prefixes[i].found_well)
			return true;
	return false;
}

/* The first decision knows the operators' words. Where they force the prefix, BIRD was found doing
 * what they wanted, and that is no sign of health. */
static void prefix_doubt_found(struct inventory_prefix *p)
{
	if (p->decided || p->word != PREFIX_WORD_FORCED)
		return;
	p->found = p->held = PREFIX_WANTED_WITHDRAW;
	p->found_well = false;
}

/* The check's state is another one than `from`. */
static void check_turned(
	struct engine *e, size_t service, size_t check, enum check_state from, struct monotime now)
{
	const struct engine_transition transition = {
		.kind = ENGINE_TRANSITION_CHECK,
		.service = service,
		.index = check,
		.from = (int)from,
		.to = (int)service_check(engine_service(e, service), check)->state,
		.when = now,
	};

	transitions_put(&e->transitions, &transition);
}

/* What the check has proved is of the process that was: the next one is well when all of them have
 * risen. Not a shared one, which asks for what others do. */
static void service_rise_again(struct engine *e, size_t service, size_t check, struct monotime now)
{
	struct check *c = service_check(engine_service(e, service), check);
	enum check_state from = c->state;

	if (!c->settings.shared && check_rise_again(c, now))
		check_turned(e, service, check, from, now);
}

void engine_restarted(
	struct engine *e, size_t service, struct monotime ordered, struct monotime now)
{
	struct inventory_service *s = engine_service(e, service);

	if (s->health != SERVICE_HEALTH_UNHEALTHY)
		return;
	for (size_t i = 0; i < s->n_checks; i++)
		if (s->checks[i].state == CHECK_STATE_UP &&
			monotime_reached(s->checks[i].since, ordered))
			service_rise_again(e, service, i, now);
	s->stale = true;
}

/* A death has made the service unhealthy. */
static void service_died(struct engine *e, size_t service, struct monotime now)
{
	struct inventory_service *s = engine_service(e, service);

	for (size_t i = 0; i < s->n_checks; i++)
		if (!s->checks[i].dead)
			service_rise_again(e, service, i, now);
}

void engine_check_spoke(struct engine *e, size_t service, size_t check, enum check_outcome outcome,
	struct monotime now)
{
	struct inventory_service *s = engine_service(e, service);
	struct check *c = service_check(s, check);
	bool dead = c->dead, undecided = check_is_undecided(c), turned;
	bool prior = c->state == CHECK_STATE_PENDING && service_was_well(s);
	enum check_state from = c->state;

	turned = check_take(c, outcome, prior, now);
	/* A death says more than `down`, and one bad outcome more than `up`. */
	if (turned || c->dead != dead || check_is_undecided(c) != undecided)
		s->stale = true;
	if (turned)
		check_turned(e, service, check, from, now);
	if (!dead && c->dead &&
		service_cause(&s->require, s->checks, s->n_checks) == SERVICE_CAUSE_DEATH)
		service_died(e, service, now);
}

void engine_address(struct engine *e, size_t service, size_t prefix, enum prefix_address address)
{
	struct inventory_service *s = engine_service(e, service);
	struct inventory_prefix *p = service_prefix(s, prefix);

	if (p->address == address)
		return;
	p->address = address;
	s->stale = true;
}

void engine_word(struct engine *e, size_t service, size_t prefix, enum prefix_word word)
{
	struct inventory_service *s = engine_service(e, service);
	struct inventory_prefix *p = service_prefix(s, prefix);

	if (p->word == word)
		return;
	p->word = word;
	s->stale = true;
}

void engine_shed(struct engine *e, size_t service, size_t prefix, enum prefix_shed shed)
{
	struct inventory_service *s = engine_service(e, service);
	struct inventory_prefix *p = service_prefix(s, prefix);

	if (p->shed == shed)
		return;
	p->shed = shed;
	s->stale = true;
}

void engine_permit(struct engine *e, size_t service, size_t prefix)
{
	struct inventory_service *s = engine_service(e, service);
	struct inventory_prefix *p = service_prefix(s, prefix);

	if (!p->view.asks_permit)
		return;
	p->permitted = true;
	s->stale = true;
}

static void engine_judge_all(struct engine *e)
{
	for (size_t i = 0; i < e->inventory.n_services; i++)
		e->inventory.services[i].stale = true;
}

void engine_spread(struct engine *e, uint64_t delay_ms, struct monotime now)
{
	for (size_t i = 0; i < e->inventory.n_services; i++)
		if (service_was_well(engine_service(e, i)))
			return;
	e->spread = monotime_add_ms(now, delay_ms);
	engine_judge_all(e);
}

void engine_freeze(struct engine *e, bool frozen)
{
	if (e->frozen == frozen)
		return;
	e->frozen = frozen;
	engine_judge_all(e);
}

bool engine_is_frozen(const struct engine *e)
{
	return e->frozen;
}

void engine_stop(struct engine *e)
{
	e->stopping = true;
	engine_judge_all(e);
}

void engine_hurry(struct engine *e, struct monotime now)
{
	for (size_t i = 0; i < e->inventory.n_services; i++)
		for (size_t k = 0; k < e->inventory.services[i].n_prefixes; k++) {
			struct leave *l = &e->inventory.services[i].prefixes[k].leave;

			if (l->begun)
				l->ends = monotime_min(l->ends, now);
		}
	engine_judge_all(e);
}

static struct monotime prefix_leaves(const struct inventory_prefix *p, struct monotime now)
{
	return p->view.wanted == PREFIX_WANTED_WITHDRAW ? MONOTIME_NEVER
							: leave_ends(&p->leave, now);
}

struct monotime engine_left(const struct engine *e, struct monotime now)
{
	struct monotime last = MONOTIME_ZERO;

	for (size_t i = 0; i < e->inventory.n_services; i++)
		for (size_t k = 0; k < e->inventory.services[i].n_prefixes; k++) {
			struct monotime ends =
				prefix_leaves(&e->inventory.services[i].prefixes[k], now);

			if (!monotime_is_never(ends))
				last = monotime_max(last, ends);
		}
	return last;
}

/* The only place where a service's health changes. What was well or suffered from a shared check
 * only, and is unwell by itself now, has flapped. */
static void service_turn(struct engine *e, size_t service, enum service_health health,
	enum service_cause cause, struct monotime now)
{
	struct inventory_service *s = engine_service(e, service);
	struct engine_transition transition = {
		.kind = ENGINE_TRANSITION_SERVICE,
		.service = service,
		.from = (int)s->health,
		.to = (int)health,
		.when = now,
	};

	if (s->health != SERVICE_HEALTH_UNDECIDED && s->cause < SERVICE_CAUSE_CHECKS &&
		cause >= SERVICE_CAUSE_CHECKS)
		damping_flap(&s->hold_down, &s->damping, now);
	s->cause = cause;
	if (s->health == health)
		return;
	s->health = health;
	transitions_put(&e->transitions, &transition);
}

static bool prefix_is_sound(const struct engine_prefix *view)
{
	if (view->reason == PREFIX_REASON_FIRST_ROUND)
		return view->sound && view->wanted == PREFIX_WANTED_ANNOUNCE;
	return view->reason == PREFIX_REASON_HEALTHY || view->reason == PREFIX_REASON_RAMPING ||
	       view->reason == PREFIX_REASON_SHED;
}

/* The only place where what is wanted of a prefix changes. */
static bool prefix_turn(struct engine *e, size_t service, size_t prefix,
	struct prefix_verdict verdict, struct monotime now)
{
	struct engine_prefix *view = &engine_service(e, service)->prefixes[prefix].view;
	struct engine_transition transition = {
		.kind = ENGINE_TRANSITION_PREFIX,
		.service = service,
		.index = prefix,
		.from = (int)view->wanted,
		.to = (int)verdict.wanted,
		.reason = verdict.reason,
		.when = now,
	};

	if (view->wanted == verdict.wanted && view->reason == verdict.reason)
		return false;
	view->wanted = verdict.wanted;
	view->reason = verdict.reason;
	view->since = now;
	view->sound = prefix_is_sound(view);
	transitions_put(&e->transitions, &transition);
	return true;
}

static bool service_has_spoken(const struct inventory_service *s)
{
	for (size_t i = 0; i < s->n_checks; i++)
		if (s->checks[i].state == CHECK_STATE_PENDING)
			return false;
	return true;
}

/* True when announcements that the rules allow are to be wanted now; opens the window. */
static bool window_is_over(struct engine *e, struct monotime now)
{
	if (monotime_is_never(e->window))
		e->window = monotime_add_ms(now, e->coalesce_ms);
	return monotime_reached(e->window, now);
}

/* Where the ramp of a prefix stands. A freeze holds its step, too. */
static void prefix_ramp(const struct engine *e, const struct inventory_service *s,
	struct inventory_prefix *p, struct monotime now)
{
	if (s->slow_start.steps == 0 || p->weight_of_word)
		p->ramps = false;
	if (!p->ramps || e->frozen)
		return;
	p->ramp_step = ramp_step(&s->slow_start, p->ramp_started, now);
	p->ramps = p->ramp_step < s->slow_start.steps;
}

/* It begins to be announced: at its own weight only where an operator wants it so at once. */
static void prefix_ramp_begin(const struct inventory_service *s, struct inventory_prefix *p,
	enum prefix_reason reason, struct monotime now)
{
	p->ramps = s->slow_start.steps > 0 && !p->weight_of_word && reason != PREFIX_REASON_FORCED;
	p->ramp_step = 0;
	p->ramp_started = now;
}

/* What is out is given the weight that it will come back with, so that BIRD has it loaded then. */
static uint32_t prefix_weight(const struct inventory_service *s, const struct inventory_prefix *p)
{
	bool ramps = p->view.wanted == PREFIX_WANTED_ANNOUNCE
			     ? p->ramps
			     : s->slow_start.steps > 0 && !p->weight_of_word;
	unsigned step = p->view.wanted == PREFIX_WANTED_ANNOUNCE ? p->ramp_step : 0;

	if (p->view.graceful && s->leave.has_weight)
		return s->leave.weight;
	return ramps ? ramp_weight(&s->slow_start, p->own_weight, step) : p->own_weight;
}

/* The only place where changes what a prefix is announced with. */
static bool prefix_dress(
	const struct inventory_service *s, struct inventory_prefix *p, bool lingers)
{
	struct engine_prefix *view = &p->view;
	bool graceful = view->graceful;
	uint32_t weight = view->weight;

	view->graceful = lingers && view->wanted == PREFIX_WANTED_ANNOUNCE;
	view->weight = prefix_weight(s, p);
	return view->graceful != graceful || view->weight != weight;
}

/* A permit is for one leaving, and for the reason for which it was asked. */
static bool prefix_ask(struct inventory_prefix *p, bool asks, struct monotime now)
{
	bool changed = p->view.asks_permit != asks;

	if (changed)
		p->view.asks_since = asks ? now : MONOTIME_NEVER;
	p->view.asks_permit = asks;
	if (!asks)
		p->permitted = false;
	return changed;
}

static struct prefix_facts prefix_gather(const struct engine *e, const struct inventory_service *s,
	struct inventory_prefix *p, bool leaves, struct monotime now)
{
	bool announced = p->view.wanted != PREFIX_WANTED_WITHDRAW;
	bool comes = p->view.wanted != PREFIX_WANTED_ANNOUNCE;

	return (struct prefix_facts){
		.stopping = e->stopping,
		.word = p->word,
		.lingers = leave_lingers(&s->leave, &p->leave, leaves, announced, now),
		.address = p->address_check ? p->address : PREFIX_ADDRESS_PRESENT,
		.health = s->health,
		.cause = s->cause,
		.all_spoken = s->all_spoken,
		.spread = !monotime_is_never(e->spread),
		.found = p->found,
		.now = p->view.wanted,
		.floored = s->floor > 0 && (!p->permitted || e->frozen),
		.held_down = s->damping.suppressed,
		.doubted = s->doubted,
		.shed = p->shed,
		.ramps = comes ? s->slow_start.steps > 0 && !p->weight_of_word : p->ramps,
		.last_resort = p->last_resort,
		.frozen = e->frozen,
		.held = p->held,
	};
}

static bool engine_judge_prefix(
	struct engine *e, size_t service, size_t prefix, struct monotime now)
{
	struct inventory_service *s = engine_service(e, service);
	struct inventory_prefix *p = &s->prefixes[prefix];
	struct prefix_facts facts;
	struct prefix_verdict verdict;
	bool changed;

	prefix_doubt_found(p);
	prefix_ramp(e, s, p, now);
	facts = prefix_gather(e, s, p, e->stopping || p->word == PREFIX_WORD_DRAINED, now);
	verdict = prefix_decide(&facts);
	p->decided = true;
	if (verdict.wanted > p->view.wanted && !window_is_over(e, now)) {
		p->view.announces_at = e->window;
		s->n_waiting++;
		changed = prefix_dress(s, p, false);
		return prefix_ask(p, false, now) || changed;
	}
	p->view.announces_at = MONOTIME_NEVER;
	/* No freeze holds a shed: what it is for that, it would not be without. */
	facts.now = verdict.reason == PREFIX_REASON_SHED ? p->held : verdict.wanted;
	facts.shed = PREFIX_SHED_NONE;
	p->held = prefix_decide_alone(&facts).wanted;
	if (verdict.wanted == PREFIX_WANTED_ANNOUNCE && p->view.wanted != PREFIX_WANTED_ANNOUNCE)
		prefix_ramp_begin(s, p, verdict.reason, now);
	changed = prefix_turn(e, service, prefix, verdict, now);
	changed |= prefix_dress(s, p, facts.lingers);
	changed |= prefix_ask(p, verdict.reason == PREFIX_REASON_KEPT_BY_FLOOR && !e->frozen, now);
	return changed;
}

static struct monotime prefix_next_step(
	const struct engine *e, const struct inventory_service *s, const struct inventory_prefix *p)
{
	if (!p->ramps || e->frozen || p->view.wanted != PREFIX_WANTED_ANNOUNCE)
		return MONOTIME_NEVER;
	return ramp_next(&s->slow_start, p->ramp_started, p->ramp_step);
}

/* When time alone changes something of the service. */
static struct monotime service_next(
	const struct engine *e, const struct inventory_service *s, struct monotime now)
{
	struct monotime next = damping_ends(&s->hold_down, &s->damping);

	for (size_t i = 0; i < s->n_prefixes; i++) {
		const struct inventory_prefix *p = &s->prefixes[i];

		next = monotime_min(next, prefix_leaves(p, now));
		next = monotime_min(next, prefix_next_step(e, s, p));
	}
	return next;
}

/* The agent is leaving and the service stays, but what neighbours have promised for this prefix
 * ends with the agent: where nothing else speaks against it, it is announced at once, and at its
 * own weight, since nobody will be here to take the steps of a ramp. */
static bool prefix_end_shed(struct engine *e, size_t service, size_t prefix, struct monotime now)
{
	struct inventory_service *s = engine_service(e, service);
	struct inventory_prefix *p = &s->prefixes[prefix];
	struct prefix_verdict verdict;
	struct prefix_facts facts;
	bool changed;

	if (p->view.reason != PREFIX_REASON_SHED || p->shed != PREFIX_SHED_NONE ||
		p->word != PREFIX_WORD_NONE)
		return false;
	facts = prefix_gather(e, s, p, false, now);
	facts.stopping = facts.ramps = false;
	verdict = prefix_decide(&facts);
	if (verdict.wanted != PREFIX_WANTED_ANNOUNCE)
		return false;
	p->ramps = false;
	changed = prefix_turn(e, service, prefix, verdict, now);
	return prefix_dress(s, p, false) || changed;
}

/* The agent is leaving and the service stays as it is: what waits will not happen any more, and
 * what was already about to leave does so at once, since nobody will be here at its time. */
static bool service_keep(struct engine *e, size_t service, struct monotime now)
{
	struct inventory_service *s = engine_service(e, service);
	bool changed = false;

	for (size_t i = 0; i < s->n_prefixes; i++) {
		struct inventory_prefix *p = &s->prefixes[i];

		p->decided = true;
		p->view.announces_at = MONOTIME_NEVER;
		changed |= prefix_end_shed(e, service, i, now);
		if (!p->leave.begun || p->view.wanted == PREFIX_WANTED_WITHDRAW)
			continue;
		changed |= prefix_turn(e, service, i,
			(struct prefix_verdict){PREFIX_WANTED_WITHDRAW, PREFIX_REASON_DRAINED},
			now);
		changed |= prefix_dress(s, p, false);
	}
	return changed;
}

static bool engine_judge_service(struct engine *e, size_t service, struct monotime now)
{
	struct inventory_service *s = engine_service(e, service);
	bool changed = false;

	service_turn(e, service, service_judge(&s->require, s->checks, s->n_checks),
		service_cause(&s->require, s->checks, s->n_checks), now);
	(void)damping_holds(&s->hold_down, &s->damping, now);
	s->all_spoken = service_has_spoken(s);
	s->doubted = service_is_doubted(&s->require, s->checks, s->n_checks);
	s->stale = false;
	s->n_waiting = 0;
	s->next = MONOTIME_NEVER;
	if (e->stopping && s->keep_on_stop)
		return service_keep(e, service, now);
	for (size_t i = 0; i < s->n_prefixes; i++)
		if (engine_judge_prefix(e, service, i, now))
			changed = true;
	s->next = service_next(e, s, now);
	return changed;
}

bool engine_decide(struct engine *e, struct monotime now)
{
	bool over = monotime_reached(e->window, now);
	bool changed = false;
	size_t n_waiting = 0;

	if (monotime_reached(e->spread, now)) {
		e->spread = MONOTIME_NEVER;
		engine_judge_all(e);
	}
	e->deadline = e->spread;
	for (size_t i = 0; i < e->inventory.n_services; i++) {
		const struct inventory_service *s = engine_service(e, i);

		if (s->stale || (over && s->n_waiting > 0) || monotime_reached(s->next, now))
			if (engine_judge_service(e, i, now))
				changed = true;
		n_waiting += s->n_waiting;
		e->deadline = monotime_min(e->deadline, s->next);
	}
	if (n_waiting == 0)
		e->window = MONOTIME_NEVER;
	e->deadline = monotime_min(e->deadline, e->window);
	return changed;
}

struct monotime engine_deadline(const struct engine *e)
{
	return e->deadline;
}

const struct engine_prefix *engine_prefix(const struct engine *e, size_t service, size_t prefix)
{
	return &service_prefix(engine_service(e, service), prefix)->view;
}

struct monotime engine_reuse(const struct engine *e, size_t service)
{
	const struct inventory_service *s = engine_service(e, service);

	return damping_ends(&s->hold_down, &s->damping);
}

struct monotime engine_next_step(const struct engine *e, size_t service, size_t prefix)
{
	struct inventory_service *s = engine_service(e, service);

	return prefix_next_step(e, s, service_prefix(s, prefix));
}

struct monotime engine_leaves(
	const struct engine *e, size_t service, size_t prefix, struct monotime now)
{
	return prefix_leaves(service_prefix(engine_service(e, service), prefix), now);
}

struct monotime engine_spread_ends(const struct engine *e)
{
	return e->spread;
}

const struct check *engine_check(const struct engine *e, size_t service, size_t check)
{
	return service_check(engine_service(e, service), check);
}

enum service_health engine_health(const struct engine *e, size_t service)
{
	return engine_service(e, service)->health;
}
