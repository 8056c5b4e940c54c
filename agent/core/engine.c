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
 * ring of transitions, for the log and for those who watch.
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
	struct monotime window; /* when it closes; never: no announcement waits */
	bool stopping;
	bool frozen;
};

struct engine *engine_new(void)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (e)
		e->window = MONOTIME_NEVER;
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
	p->held = found;
	p->view.wanted = found;
}

/* What a check counts as before it has spoken: the service was announced, so it was well. */
static bool service_was_announced(const struct inventory_service *s)
{
	for (size_t i = 0; i < s->n_prefixes; i++)
		if (s->prefixes[i].found != PREFIX_WANTED_WITHDRAW)
			return true;
	return false;
}

void engine_check_spoke(struct engine *e, size_t service, size_t check, enum check_outcome outcome,
	struct monotime now)
{
	struct inventory_service *s = engine_service(e, service);
	struct check *c = service_check(s, check);
	bool dead = c->dead, turned;
	bool prior = c->state == CHECK_STATE_PENDING && service_was_announced(s);
	struct engine_transition transition = {
		.kind = ENGINE_TRANSITION_CHECK,
		.service = service,
		.index = check,
		.from = (int)c->state,
		.when = now,
	};

	turned = check_take(c, outcome, prior, now);
	if (turned || c->dead != dead) /* a death says more than `down` */
		s->stale = true;
	if (!turned)
		return;
	transition.to = (int)c->state;
	transitions_put(&e->transitions, &transition);
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

static void engine_judge_all(struct engine *e)
{
	for (size_t i = 0; i < e->inventory.n_services; i++)
		e->inventory.services[i].stale = true;
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

/* The only place where a service's health changes. */
static void service_turn(
	struct engine *e, size_t service, enum service_health health, struct monotime now)
{
	struct inventory_service *s = engine_service(e, service);
	struct engine_transition transition = {
		.kind = ENGINE_TRANSITION_SERVICE,
		.service = service,
		.from = (int)s->health,
		.to = (int)health,
		.when = now,
	};

	if (s->health == health)
		return;
	s->health = health;
	transitions_put(&e->transitions, &transition);
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

static bool engine_judge_prefix(
	struct engine *e, size_t service, size_t prefix, bool all_spoken, struct monotime now)
{
	struct inventory_service *s = engine_service(e, service);
	struct inventory_prefix *p = &s->prefixes[prefix];
	struct prefix_facts facts = {
		.stopping = e->stopping,
		.word = p->word,
		.address = p->address_check ? p->address : PREFIX_ADDRESS_PRESENT,
		.health = s->health,
		.dead = service_is_dead(&s->require, s->checks, s->n_checks),
		.frozen = e->frozen,
		.held = p->held,
		.all_spoken = all_spoken,
		.found = p->found,
	};
	struct prefix_verdict verdict = prefix_decide(&facts);

	p->decided = true;
	if (verdict.wanted > p->view.wanted && !window_is_over(e, now)) {
		p->view.announces_at = e->window;
		s->n_waiting++;
		return false;
	}
	p->view.announces_at = MONOTIME_NEVER;
	p->held = prefix_decide_alone(&facts).wanted;
	return prefix_turn(e, service, prefix, verdict, now);
}

/* The agent is leaving and the service stays as it is: what waits will not happen any more. */
static void service_freeze(struct inventory_service *s)
{
	for (size_t i = 0; i < s->n_prefixes; i++) {
		s->prefixes[i].decided = true;
		s->prefixes[i].view.announces_at = MONOTIME_NEVER;
	}
}

static bool engine_judge_service(struct engine *e, size_t service, struct monotime now)
{
	struct inventory_service *s = engine_service(e, service);
	bool all_spoken = service_has_spoken(s);
	bool changed = false;

	service_turn(e, service, service_judge(&s->require, s->checks, s->n_checks), now);
	s->stale = false;
	s->n_waiting = 0;
	if (e->stopping && s->keep_on_stop) {
		service_freeze(s);
		return false;
	}
	for (size_t i = 0; i < s->n_prefixes; i++)
		if (engine_judge_prefix(e, service, i, all_spoken, now))
			changed = true;
	return changed;
}

bool engine_decide(struct engine *e, struct monotime now)
{
	bool over = monotime_reached(e->window, now);
	bool changed = false;
	size_t n_waiting = 0;

	for (size_t i = 0; i < e->inventory.n_services; i++) {
		const struct inventory_service *s = engine_service(e, i);

		if (s->stale || (over && s->n_waiting > 0))
			if (engine_judge_service(e, i, now))
				changed = true;
		n_waiting += s->n_waiting;
	}
	if (n_waiting == 0)
		e->window = MONOTIME_NEVER;
	return changed;
}

struct monotime engine_deadline(const struct engine *e)
{
	return e->window;
}

const struct engine_prefix *engine_prefix(const struct engine *e, size_t service, size_t prefix)
{
	return &service_prefix(engine_service(e, service), prefix)->view;
}

const struct check *engine_check(const struct engine *e, size_t service, size_t check)
{
	return service_check(engine_service(e, service), check);
}

enum service_health engine_health(const struct engine *e, size_t service)
{
	return engine_service(e, service)->health;
}
