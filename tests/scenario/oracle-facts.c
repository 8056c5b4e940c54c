/* What the oracle is told, and what it takes along from one configuration to the next; see
 * oracle.h. */
#include "tests/scenario/oracle.h"

#include <string.h>

static bool same_text(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static const struct oracle_service *find_service(const struct oracle *o, const char *name)
{
	for (size_t i = 0; i < o->n_services; i++)
		if (same_text(o->services[i].name, name))
			return &o->services[i];
	return NULL;
}

static const struct oracle_prefix *find_prefix(
	const struct oracle *o, const char *name, const struct oracle_service **ret_service)
{
	for (size_t i = 0; i < o->n_services; i++)
		for (size_t k = 0; k < o->services[i].n_prefixes; k++)
			if (same_text(o->services[i].prefixes[k].name, name)) {
				*ret_service = &o->services[i];
				return &o->services[i].prefixes[k];
			}
	return NULL;
}

static bool same_check(const struct oracle_check *a, const struct oracle_check *b)
{
	return same_text(a->name, b->name) && same_text(a->identity, b->identity) &&
	       a->settings.interval_ms == b->settings.interval_ms &&
	       a->settings.fast_interval_ms == b->settings.fast_interval_ms &&
	       a->settings.rise == b->settings.rise && a->settings.fall == b->settings.fall &&
	       a->settings.first_rise == b->settings.first_rise &&
	       a->settings.shared == b->settings.shared;
}

/* Returns true when a check has to be asked anew. */
static bool carry_checks(
	struct oracle_service *s, const struct oracle_service *last, struct monotime now)
{
	bool anew = false;

	for (size_t i = 0; i < s->n_checks; i++) {
		const struct oracle_check *old = NULL;

		for (size_t k = 0; last && k < last->n_checks; k++)
			if (same_check(&last->checks[k], &s->checks[i]))
				old = &last->checks[k];
		if (old) {
			s->checks[i] = *old;
			continue;
		}
		anew = true;
		s->checks[i].n_outcomes = 0;
		s->checks[i].again_unspoken = false;
		s->checks[i].told = CHECK_STATE_PENDING;
		s->checks[i].told_when = now;
	}
	return anew;
}

static void carry_prefix(struct oracle_prefix *p, const struct oracle_service *s, bool anew,
	const struct oracle *last, struct monotime now)
{
	const struct oracle_service *old_service;
	const struct oracle_prefix *old = find_prefix(last, p->name, &old_service);
	struct oracle_prefix fresh = {
		.name = p->name,
		.address_check = p->address_check,
		.weight = p->weight,
		.last_resort = p->last_resort,
		.weight_of_word = p->weight_of_word,
		.last = {.wanted = PREFIX_WANTED_WITHDRAW,
			.reason = PREFIX_REASON_FIRST_ROUND,
			.since = now,
			.weight = p->weight,
			.announces_at = MONOTIME_NEVER,
			.asks_since = MONOTIME_NEVER},
		.allowed_since = MONOTIME_NEVER,
		.told_reason = PREFIX_REASON_FIRST_ROUND,
		.told_when = now,
	};

	if (old) {
		fresh = *old;
		fresh.name = p->name;
		fresh.address_check = p->address_check;
		fresh.weight = p->weight;
		fresh.last_resort = p->last_resort;
		fresh.weight_of_word = p->weight_of_word;
		if (anew || !same_text(old_service->name, s->name)) {
			fresh.found = old->natural;
			fresh.well = old->natural != PREFIX_WANTED_WITHDRAW;
		}
	}
	*p = fresh;
}

void oracle_configure(struct oracle *o, const struct oracle *next, struct monotime now)
{
	static struct oracle last;

	last = *o;
	*o = *next;
	o->stopping = last.stopping;
	o->frozen = last.frozen;
	o->idle_at = last.idle_at;
	o->spread = last.spread;
	o->now = now;
	for (size_t i = 0; i < o->n_services; i++) {
		struct oracle_service *s = &o->services[i];
		const struct oracle_service *old = find_service(&last, s->name);
		bool anew = carry_checks(s, old, now);

		s->told = s->health = SERVICE_HEALTH_UNDECIDED;
		s->sick = false;
		s->damping = (struct damping){0};
		if (old) {
			s->told = old->told;
			s->health = old->health;
			s->sick = old->sick;
			s->damping = old->damping;
		}
		for (size_t k = 0; k < s->n_prefixes; k++)
			carry_prefix(&s->prefixes[k], s, anew, &last, now);
	}
}

void oracle_found(struct oracle *o, size_t service, size_t prefix, enum prefix_wanted found)
{
	struct oracle_prefix *p = &o->services[service].prefixes[prefix];

	if (p->decided)
		return;
	p->found = p->natural = p->last.wanted = p->told = found;
	p->well = found != PREFIX_WANTED_WITHDRAW;
}

void oracle_spread(struct oracle *o, uint64_t delay_ms, struct monotime now)
{
	for (size_t i = 0; i < o->n_services; i++)
		for (size_t k = 0; k < o->services[i].n_prefixes; k++)
			if (o->services[i].prefixes[k].well)
				return;
	o->spread = monotime_add_ms(now, delay_ms);
}

void oracle_hurry(struct oracle *o, struct monotime now)
{
	for (size_t i = 0; i < o->n_services; i++)
		for (size_t k = 0; k < o->services[i].n_prefixes; k++) {
			struct oracle_prefix *p = &o->services[i].prefixes[k];

			p->leave_ends = monotime_min(p->leave_ends, now);
		}
}

void oracle_permit(struct oracle *o, size_t service, size_t prefix)
{
	struct oracle_prefix *p = &o->services[service].prefixes[prefix];

	if (p->last.asks_permit)
		p->permitted = true;
}
