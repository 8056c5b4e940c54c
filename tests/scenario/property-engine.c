/*
 * Random facts, in random order, at random times, against the second opinion of oracle.c: what any
 * server could see in a few minutes, thousands of times over. A sequence starts with a random
 * configuration and what BIRD was found doing, and goes on with outcomes, addresses, operators'
 * words, reloads and, at last, the agent's stop. See property.h for its arguments.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/oracle.h"
#include "tests/scenario/property.h"

#define STEPS_MAX 50

static const char *const service_names[] = {"dns", "web", "cache", "log", "proxy"};
static const char *const check_names[] = {"process", "answers", "page", "port"};
static const char *const identities[] = {"one", "two", "three"};
static const char *const prefix_names[] = {"192.0.2.1/32", "192.0.2.2/32", "192.0.2.3/32",
	"2001:db8::1/128", "2001:db8::2/128", "198.51.100.0/24"};

struct world {
	uint64_t random;
	struct oracle oracle;
	struct engine *engine;
	struct engine *twin; /* is told the same; NULL in most sequences */
	struct monotime now;
	unsigned streak_bias; /* how often a check says what it said before, in percent */
	uint64_t judged;
};

static unsigned pick(struct world *w, unsigned n)
{
	return random_below(&w->random, n);
}

static bool chance(struct world *w, unsigned percent)
{
	return random_chance(&w->random, percent);
}

/* ---- configurations ---- */

static struct check_settings random_settings(struct world *w)
{
	static const uint64_t intervals[] = {1000, 2000, 10000};

	return (struct check_settings){
		.interval_ms = intervals[pick(w, 3)],
		.fast_interval_ms = 100 + pick(w, 3) * 200,
		.rise = 1 + pick(w, 3),
		.fall = 1 + pick(w, 3),
		.first_rise = pick(w, 4),
		.shared = chance(w, 25),
	};
}

static struct service_require random_require(struct world *w)
{
	return (struct service_require){
		.kind = (enum service_require_kind)pick(w, 3),
		.number = 1 + pick(w, 4),
	};
}

/* How a service comes, goes and stays: each of it in some services only. */
static void add_manners(struct world *w, struct oracle_service *s)
{
	s->floor = chance(w, 25) ? 1 + pick(w, 2) : 0;
	s->slow_start = (struct ramp_settings){0};
	s->hold_down = (struct damping_settings){0};
	s->leave = (struct leave_settings){0};
	if (chance(w, 30))
		s->slow_start =
			(struct ramp_settings){pick(w, 65536), 1 + pick(w, 4), 1 + pick(w, 3000)};
	if (chance(w, 30))
		s->hold_down = (struct damping_settings){
			1000, 800 + pick(w, 1000), 750, 1000 + pick(w, 3000), 10000};
	if (chance(w, 30))
		s->leave = (struct leave_settings){1 + pick(w, 2000), chance(w, 50), 65535};
}

static bool has_service(const struct oracle *o, const char *name)
{
	for (size_t i = 0; i < o->n_services; i++)
		if (strcmp(o->services[i].name, name) == 0)
			return true;
	return false;
}

static bool has_check(const struct oracle_service *s, const char *name)
{
	for (size_t i = 0; i < s->n_checks; i++)
		if (strcmp(s->checks[i].name, name) == 0)
			return true;
	return false;
}

static bool has_prefix(const struct oracle *o, const char *name)
{
	for (size_t i = 0; i < o->n_services; i++)
		for (size_t k = 0; k < o->services[i].n_prefixes; k++)
			if (strcmp(o->services[i].prefixes[k].name, name) == 0)
				return true;
	return false;
}

static void add_check(struct world *w, struct oracle_service *s)
{
	const char *name = check_names[pick(w, 4)];

	if (s->n_checks == ORACLE_CHECKS || has_check(s, name))
		return;
	s->checks[s->n_checks++] = (struct oracle_check){
		.name = name, .identity = identities[pick(w, 3)], .settings = random_settings(w)};
}

static void add_prefix(struct world *w, struct oracle *o, struct oracle_service *s)
{
	const char *name = prefix_names[pick(w, 6)];

	if (s->n_prefixes == ORACLE_PREFIXES || has_prefix(o, name))
		return;
	s->prefixes[s->n_prefixes++] = (struct oracle_prefix){.name = name,
		.address_check = chance(w, 75),
		.weight = pick(w, 65536),
		.last_resort = chance(w, 40),
		.weight_of_word = chance(w, 10)};
}

static void add_service(struct world *w, struct oracle *o)
{
	const char *name = service_names[pick(w, 5)];
	struct oracle_service *s = &o->services[o->n_services];

	if (o->n_services == ORACLE_SERVICES || has_service(o, name))
		return;
	memset(s, 0, sizeof(*s));
	s->name = name;
	s->require = random_require(w);
	s->keep_on_stop = chance(w, 30);
	add_manners(w, s);
	o->n_services++;
	for (unsigned n = pick(w, 4); n > 0; n--)
		add_check(w, s);
	for (unsigned n = 1 + pick(w, 3); n > 0; n--)
		add_prefix(w, o, s);
}

static void remove_at(void *items, size_t *n, size_t size, size_t index)
{
	char *base = items;

	memmove(base + index * size, base + (index + 1) * size, (*n - index - 1) * size);
	(*n)--;
}

static void move_prefix(struct world *w, struct oracle *o, struct oracle_service *s)
{
	struct oracle_service *to = &o->services[pick(w, (unsigned)o->n_services)];

	if (to == s || s->n_prefixes == 0 || to->n_prefixes == ORACLE_PREFIXES)
		return;
	to->prefixes[to->n_prefixes++] = s->prefixes[s->n_prefixes - 1];
	s->n_prefixes--;
}

static void swap_services(struct world *w, struct oracle *o, struct oracle_service *s)
{
	static struct oracle_service kept;
	struct oracle_service *other = &o->services[pick(w, (unsigned)o->n_services)];

	kept = *s;
	*s = *other;
	*other = kept;
}

static void rename_service(struct world *w, const struct oracle *o, struct oracle_service *s)
{
	const char *name = service_names[pick(w, 5)];

	if (!has_service(o, name))
		s->name = name;
}

static void change_check(struct world *w, struct oracle_service *s)
{
	struct oracle_check *c;

	if (s->n_checks == 0)
		return;
	c = &s->checks[pick(w, (unsigned)s->n_checks)];
	if (chance(w, 70))
		c->identity = identities[pick(w, 3)];
	else if (chance(w, 50))
		c->settings.shared = !c->settings.shared;
	else
		c->settings = random_settings(w);
}

static void change_prefix(struct world *w, struct oracle_service *s)
{
	struct oracle_prefix *p;

	if (s->n_prefixes == 0)
		return;
	p = &s->prefixes[pick(w, (unsigned)s->n_prefixes)];
	if (chance(w, 50))
		p->weight_of_word = !p->weight_of_word;
	else
		p->last_resort = !p->last_resort;
}

static void change_configuration(struct world *w, struct oracle *o)
{
	struct oracle_service *s;

	if (o->n_services == 0) {
		add_service(w, o);
		return;
	}
	s = &o->services[pick(w, (unsigned)o->n_services)];
	switch (pick(w, 13)) {
	case 0:
		add_service(w, o);
		break;
	case 1:
		remove_at(o->services, &o->n_services, sizeof(*s), (size_t)(s - o->services));
		break;
	case 2:
		rename_service(w, o, s);
		break;
	case 3:
		add_check(w, s);
		break;
	case 4:
		if (s->n_checks > 0)
			remove_at(s->checks, &s->n_checks, sizeof(s->checks[0]),
				pick(w, (unsigned)s->n_checks));
		break;
	case 5:
	case 6:
		change_check(w, s);
		break;
	case 7:
		add_prefix(w, o, s);
		break;
	case 8:
		if (s->n_prefixes > 0)
			remove_at(s->prefixes, &s->n_prefixes, sizeof(s->prefixes[0]),
				pick(w, (unsigned)s->n_prefixes));
		break;
	case 9:
		move_prefix(w, o, s);
		break;
	case 10:
		swap_services(w, o, s);
		break;
	case 11:
		s->require = random_require(w);
		s->keep_on_stop = chance(w, 30);
		add_manners(w, s);
		break;
	case 12:
		change_prefix(w, s);
		break;
	}
}

/* The same configuration in the engine's words. */
static void tell_configuration(struct engine *e, const struct oracle *o, struct monotime now)
{
	struct engine_check_config checks[ORACLE_SERVICES][ORACLE_CHECKS];
	struct engine_prefix_config prefixes[ORACLE_SERVICES][ORACLE_PREFIXES];
	struct engine_service_config services[ORACLE_SERVICES];
	struct engine_config config = {o->coalesce_ms, services, o->n_services};

	for (size_t i = 0; i < o->n_services; i++) {
		const struct oracle_service *s = &o->services[i];

		for (size_t k = 0; k < s->n_checks; k++)
			checks[i][k] = (struct engine_check_config){
				s->checks[k].name, s->checks[k].identity, s->checks[k].settings};
		for (size_t k = 0; k < s->n_prefixes; k++)
			prefixes[i][k] = (struct engine_prefix_config){.name = s->prefixes[k].name,
				.weight = s->prefixes[k].weight,
				.address_check = s->prefixes[k].address_check,
				.last_resort = s->prefixes[k].last_resort,
				.weight_of_word = s->prefixes[k].weight_of_word};
		services[i] = (struct engine_service_config){.name = s->name,
			.require = s->require,
			.keep_on_stop = s->keep_on_stop,
			.floor = s->floor,
			.slow_start = s->slow_start,
			.hold_down = s->hold_down,
			.leave = s->leave,
			.checks = checks[i],
			.n_checks = s->n_checks,
			.prefixes = prefixes[i],
			.n_prefixes = s->n_prefixes};
	}
	if (engine_configure(e, &config, now) != 0)
		abort();
}

static void trace_configuration(const struct world *w)
{
	const struct oracle *o = &w->oracle;

	property_trace("%8llu configuration, coalesce %llu ms\n", (unsigned long long)w->now.us,
		(unsigned long long)o->coalesce_ms);
	for (size_t i = 0; i < o->n_services; i++) {
		const struct oracle_service *s = &o->services[i];

		property_trace("         service %zu %s require %d/%u%s\n", i, s->name,
			(int)s->require.kind, s->require.number, s->keep_on_stop ? " keep" : "");
		for (size_t k = 0; k < s->n_checks; k++)
			property_trace("           check %zu %s %s rise %u fall %u\n", k,
				s->checks[k].name, s->checks[k].identity,
				s->checks[k].settings.rise, s->checks[k].settings.fall);
		for (size_t k = 0; k < s->n_prefixes; k++)
			property_trace("           prefix %zu %s weight %u%s\n", k,
				s->prefixes[k].name, s->prefixes[k].weight,
				s->prefixes[k].address_check ? "" : " no address check");
	}
}

static void configure(struct world *w, const struct oracle *next)
{
	oracle_configure(&w->oracle, next, w->now);
	trace_configuration(w);
	tell_configuration(w->engine, &w->oracle, w->now);
	if (w->twin)
		tell_configuration(w->twin, &w->oracle, w->now);
	oracle_check_configured(&w->oracle, w->engine);
}

/* ---- decisions ---- */

static void check_twin(const struct world *w)
{
	for (size_t i = 0; i < w->oracle.n_services; i++)
		for (size_t k = 0; k < w->oracle.services[i].n_prefixes; k++) {
			const struct engine_prefix *a = engine_prefix(w->engine, i, k);
			const struct engine_prefix *b = engine_prefix(w->twin, i, k);

			property_require("E17",
				a->wanted == b->wanted && a->reason == b->reason &&
					a->since.us == b->since.us &&
					a->announces_at.us == b->announces_at.us &&
					a->weight == b->weight && a->graceful == b->graceful &&
					a->asks_since.us == b->asks_since.us,
				"%s is not the same in two engines that were told the same",
				w->oracle.services[i].prefixes[k].name);
		}
}

static void decide(struct world *w)
{
	bool changed = engine_decide(w->engine, w->now);

	property_trace("%8llu decide: %s\n", (unsigned long long)w->now.us,
		changed ? "changed" : "the same");
	w->judged += oracle_check_decided(&w->oracle, w->engine, changed, w->now);
	if (w->twin) {
		(void)engine_decide(w->twin, w->now);
		check_twin(w);
	}
	if (chance(w, 15))
		property_require("E16", !engine_decide(w->engine, w->now),
			"deciding again without a fact changed something");
}

/* Time goes on; a deadline on the way is kept, or missed by a loop that was late. */
static void pass_time(struct world *w)
{
	struct monotime deadline = engine_deadline(w->engine);
	uint64_t gap = w->oracle.coalesce_ms * 1000;
	struct monotime to = w->now;

	switch (pick(w, 6)) {
	case 0:
		break;
	case 1:
		to.us += 1;
		break;
	case 2:
		to.us += pick(w, (unsigned)(gap * 2 + 1000));
		break;
	case 3:
		to.us += 10000000;
		break;
	case 4:
	case 5:
		if (!monotime_is_never(deadline))
			to.us = deadline.us - pick(w, 2);
		break;
	}
	if (!monotime_reached(deadline, to)) {
		w->now = to;
		if (chance(w, 20))
			property_require("E16", !engine_decide(w->engine, to),
				"something changed before the deadline, without a fact");
		return;
	}
	if (chance(w, 70)) {
		w->now = deadline;
		decide(w);
	}
	w->now = to;
}

/* ---- facts ---- */

static enum check_outcome random_outcome(struct world *w, const struct oracle_check *c)
{
	static const enum check_outcome outcomes[] = {CHECK_OUTCOME_GOOD, CHECK_OUTCOME_GOOD,
		CHECK_OUTCOME_GOOD, CHECK_OUTCOME_GOOD, CHECK_OUTCOME_BAD, CHECK_OUTCOME_BAD,
		CHECK_OUTCOME_BAD, CHECK_OUTCOME_GONE, CHECK_OUTCOME_UNKNOWN};

	if (c->n_outcomes > 0 && chance(w, w->streak_bias))
		return c->outcomes[c->n_outcomes - 1];
	return outcomes[pick(w, 9)];
}

static void speak(struct world *w, unsigned service)
{
	struct oracle_service *s = &w->oracle.services[service];
	unsigned check;
	enum check_outcome outcome;

	if (s->n_checks == 0)
		return;
	check = pick(w, (unsigned)s->n_checks);
	if (s->checks[check].n_outcomes == ORACLE_OUTCOMES)
		return;
	outcome = random_outcome(w, &s->checks[check]);
	property_trace("%8llu %s/%s %s\n", (unsigned long long)w->now.us, s->name,
		s->checks[check].name, check_outcome_name(outcome));
	oracle_check_spoke(&w->oracle, service, check, outcome);
	/* As engine_check_spoke() is called: the transition's time is the fact's. */
	engine_check_spoke(w->engine, service, check, outcome, w->now);
	if (w->twin)
		engine_check_spoke(w->twin, service, check, outcome, w->now);
}

/* systemd has restarted the unit, as it was ordered some time ago. */
static void restarted(struct world *w, unsigned service)
{
	uint64_t ago = pick(w, 500000);
	struct monotime ordered = {w->now.us > ago ? w->now.us - ago : 0};

	decide(w);
	property_trace("%8llu %s restarted, ordered at %llu\n", (unsigned long long)w->now.us,
		w->oracle.services[service].name, (unsigned long long)ordered.us);
	oracle_restarted(&w->oracle, service, ordered);
	engine_restarted(w->engine, service, ordered, w->now);
	if (w->twin)
		engine_restarted(w->twin, service, ordered, w->now);
}

static void tell_word(struct world *w, unsigned service, unsigned prefix, enum prefix_word word)
{
	struct oracle_prefix *p = &w->oracle.services[service].prefixes[prefix];

	p->word = word;
	property_trace("%8llu %s word %d\n", (unsigned long long)w->now.us, p->name, (int)word);
	engine_word(w->engine, service, prefix, word);
	if (w->twin)
		engine_word(w->twin, service, prefix, word);
}

static void tell_prefix(struct world *w, unsigned service)
{
	struct oracle_service *s = &w->oracle.services[service];
	unsigned prefix;
	struct oracle_prefix *p;

	if (s->n_prefixes == 0)
		return;
	prefix = pick(w, (unsigned)s->n_prefixes);
	p = &s->prefixes[prefix];
	if (chance(w, 60)) {
		p->address =
			chance(w, 65) ? PREFIX_ADDRESS_PRESENT : (enum prefix_address)pick(w, 3);
		property_trace("%8llu %s address %d\n", (unsigned long long)w->now.us, p->name,
			(int)p->address);
		engine_address(w->engine, service, prefix, p->address);
		if (w->twin)
			engine_address(w->twin, service, prefix, p->address);
	} else {
		tell_word(w, service, prefix,
			chance(w, 60) ? PREFIX_WORD_NONE : (enum prefix_word)pick(w, 3));
	}
}

/* BIRD tells what it does; for most prefixes too late to matter. */
static void find(struct world *w, unsigned service, unsigned percent)
{
	const struct oracle_service *s = &w->oracle.services[service];

	for (unsigned k = 0; k < s->n_prefixes; k++) {
		enum prefix_wanted found = (enum prefix_wanted)pick(w, 3);

		if (!chance(w, percent))
			continue;
		property_trace("%8llu %s found %s\n", (unsigned long long)w->now.us,
			s->prefixes[k].name, prefix_wanted_name(found));
		oracle_found(&w->oracle, service, k, found);
		engine_found(w->engine, service, k, found);
		if (w->twin)
			engine_found(w->twin, service, k, found);
	}
}

/* What the neighbours' side says of it. */
static void tell_neighbours(struct world *w, unsigned service)
{
	struct oracle_service *s = &w->oracle.services[service];
	unsigned prefix;

	if (s->n_prefixes == 0)
		return;
	prefix = pick(w, (unsigned)s->n_prefixes);
	if (chance(w, 50)) {
		property_trace("%8llu %s permit\n", (unsigned long long)w->now.us,
			s->prefixes[prefix].name);
		oracle_permit(&w->oracle, service, prefix);
		engine_permit(w->engine, service, prefix);
		if (w->twin)
			engine_permit(w->twin, service, prefix);
		return;
	}
	s->prefixes[prefix].shed = chance(w, 60) ? PREFIX_SHED_NONE : (enum prefix_shed)pick(w, 3);
	property_trace("%8llu %s shed %d\n", (unsigned long long)w->now.us,
		s->prefixes[prefix].name, (int)s->prefixes[prefix].shed);
	engine_shed(w->engine, service, prefix, s->prefixes[prefix].shed);
	if (w->twin)
		engine_shed(w->twin, service, prefix, s->prefixes[prefix].shed);
}

/* Often just when something is about to leave. */
static void stop(struct world *w, unsigned service)
{
	if (w->oracle.services[service].n_prefixes > 0 && chance(w, 50)) {
		tell_word(w, service, 0, PREFIX_WORD_DRAINED);
		decide(w);
	}
	property_trace("%8llu stop\n", (unsigned long long)w->now.us);
	w->oracle.stopping = true;
	engine_stop(w->engine);
	if (w->twin)
		engine_stop(w->twin);
}

/* As the second signal does. */
static void hurry(struct world *w)
{
	property_trace("%8llu hurry\n", (unsigned long long)w->now.us);
	oracle_hurry(&w->oracle, w->now);
	engine_hurry(w->engine, w->now);
	if (w->twin)
		engine_hurry(w->twin, w->now);
}

static void freeze(struct world *w)
{
	w->oracle.frozen = !w->oracle.frozen;
	property_trace(
		"%8llu %s\n", (unsigned long long)w->now.us, w->oracle.frozen ? "freeze" : "thaw");
	engine_freeze(w->engine, w->oracle.frozen);
	if (w->twin)
		engine_freeze(w->twin, w->oracle.frozen);
}

static void reload(struct world *w)
{
	static struct oracle next;

	oracle_hear(&w->oracle, w->engine);
	next = w->oracle;
	for (unsigned n = pick(w, 3); n > 0; n--)
		change_configuration(w, &next);
	/* A window that is open closes as it was announced, so a new length begins with the next.
	 */
	if (monotime_is_never(engine_deadline(w->engine)) && chance(w, 30))
		next.coalesce_ms = pick(w, 3) * 100;
	configure(w, &next);
}

static void tell_fact(struct world *w)
{
	unsigned service;

	if (chance(w, 8)) {
		reload(w);
		return;
	}
	if (w->oracle.n_services == 0)
		return;
	service = pick(w, (unsigned)w->oracle.n_services);
	switch (pick(w, 20)) {
	case 0:
		if (chance(w, 15))
			stop(w, service);
		else if (chance(w, 50))
			hurry(w);
		break;
	case 1:
		find(w, service, 50);
		break;
	case 2:
	case 3:
	case 4:
		tell_prefix(w, service);
		break;
	case 5:
		freeze(w);
		break;
	case 6:
	case 7:
		tell_neighbours(w, service);
		break;
	default:
		if (chance(w, 4))
			restarted(w, service);
		else
			speak(w, service);
		break;
	}
}

static void spread(struct world *w)
{
	uint64_t delay_ms = pick(w, 3000);

	property_trace("%8llu spread %llu ms\n", (unsigned long long)w->now.us,
		(unsigned long long)delay_ms);
	oracle_spread(&w->oracle, delay_ms, w->now);
	engine_spread(w->engine, delay_ms, w->now);
	if (w->twin)
		engine_spread(w->twin, delay_ms, w->now);
}

static void begin(struct world *w)
{
	static struct oracle first;
	bool words = chance(w, 10);

	memset(&first, 0, sizeof(first));
	first.coalesce_ms = pick(w, 3) * 100;
	w->oracle.spread = MONOTIME_NEVER;
	for (unsigned n = 1 + pick(w, 2); n > 0; n--)
		add_service(w, &first);
	configure(w, &first);
	w->oracle.idle_at = w->now;
	for (unsigned i = 0; i < w->oracle.n_services; i++)
		find(w, i, chance(w, 70) ? 70 : 0);
	if (chance(w, 30))
		spread(w);
	/* Words outlive the agent: they are told after what was found. */
	for (unsigned i = 0; i < w->oracle.n_services && words; i++)
		for (unsigned k = 0; k < w->oracle.services[i].n_prefixes; k++)
			tell_word(w, i, k, (enum prefix_word)pick(w, 3));
	decide(w);
}

static uint64_t sequence(uint64_t seed)
{
	static struct world world;
	struct world *w = &world;
	unsigned steps;

	memset(w, 0, sizeof(*w));
	w->random = seed;
	w->now = (struct monotime){1000000};
	w->streak_bias = pick(w, 80);
	w->engine = engine_new();
	w->twin = chance(w, 10) ? engine_new() : NULL;
	begin(w);
	steps = 4 + pick(w, STEPS_MAX - 4);
	for (unsigned i = 0; i < steps; i++) {
		pass_time(w);
		for (unsigned n = chance(w, 70) ? 1 : pick(w, 4); n > 0; n--)
			tell_fact(w);
		decide(w);
	}
	engine_free(w->engine);
	engine_free(w->twin);
	return w->judged;
}

const struct property_program property_program = {"engine", sequence};
