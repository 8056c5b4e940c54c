/*
 * Building the next configuration beside the one that runs, and moving the state over.
 *
 * Everything that can fail happens in inventory_build(), before the old inventory is looked at:
 * carrying over cannot fail, so a reload either happens whole or not at all. Names are looked up in
 * a sorted array, so that a reload of thousands of prefixes costs n log n.
 */
#include "agent/core/inventory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Zeroed, and never NULL for want of elements. */
static void *allocate(size_t n, size_t size)
{
	return calloc(n > 0 ? n : 1, size);
}

static char *copy_text(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = malloc(size);

	if (copy)
		memcpy(copy, text, size);
	return copy;
}

static int inventory_build_checks(struct inventory_service *s,
	const struct engine_service_config *config, struct monotime now)
{
	s->checks = allocate(config->n_checks, sizeof(*s->checks));
	s->labels = allocate(config->n_checks, sizeof(*s->labels));
	if (!s->checks || !s->labels)
		return -ENOMEM;
	s->n_checks = config->n_checks;

	for (size_t i = 0; i < s->n_checks; i++) {
		const struct engine_check_config *c = &config->checks[i];

		check_init(&s->checks[i], &c->settings, now);
		s->labels[i].name = copy_text(c->name);
		s->labels[i].identity = copy_text(c->identity);
		if (!s->labels[i].name || !s->labels[i].identity)
			return -ENOMEM;
	}
	return 0;
}

static int inventory_build_prefixes(struct inventory_service *s,
	const struct engine_service_config *config, struct monotime now)
{
	s->prefixes = allocate(config->n_prefixes, sizeof(*s->prefixes));
	if (!s->prefixes)
		return -ENOMEM;
	s->n_prefixes = config->n_prefixes;

	for (size_t i = 0; i < s->n_prefixes; i++) {
		const struct engine_prefix_config *c = &config->prefixes[i];

		s->prefixes[i] = (struct inventory_prefix){
			.name = copy_text(c->name),
			.address_check = c->address_check,
			.last_resort = c->last_resort,
			.own_weight = c->weight,
			.weight_of_word = c->weight_of_word,
			.found = PREFIX_WANTED_WITHDRAW,
			.held = PREFIX_WANTED_WITHDRAW,
			.word = PREFIX_WORD_NONE,
			.address = PREFIX_ADDRESS_UNKNOWN,
			.view = {.wanted = PREFIX_WANTED_WITHDRAW,
				.reason = PREFIX_REASON_FIRST_ROUND,
				.weight = c->weight,
				.since = now,
				.announces_at = MONOTIME_NEVER,
				.asks_since = MONOTIME_NEVER},
		};
		if (!s->prefixes[i].name)
			return -ENOMEM;
	}
	return 0;
}

static int inventory_build_service(struct inventory_service *s,
	const struct engine_service_config *config, struct monotime now)
{
	int r;

	s->require = config->require;
	s->keep_on_stop = config->keep_on_stop;
	s->floor = config->floor;
	s->slow_start = config->slow_start;
	s->hold_down = config->hold_down;
	s->leave = config->leave;
	s->next = MONOTIME_NEVER;
	s->health = SERVICE_HEALTH_UNDECIDED;
	s->stale = true;
	s->name = copy_text(config->name);
	if (!s->name)
		return -ENOMEM;
	r = inventory_build_checks(s, config, now);
	if (r < 0)
		return r;
	return inventory_build_prefixes(s, config, now);
}

static int entry_compare(const void *a, const void *b)
{
	const struct inventory_entry *x = a, *y = b;
	int r;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	r = strcmp(x->name, y->name);
	return r != 0 ? r : strcmp(x->scope, y->scope);
}

static void inventory_index_service(struct inventory *inventory, const struct inventory_service *s)
{
	struct inventory_entry *entry = &inventory->entries[inventory->n_entries];

	*entry++ = (struct inventory_entry){INVENTORY_SERVICE, s->name, "", s, 0};
	for (size_t i = 0; i < s->n_checks; i++)
		*entry++ =
			(struct inventory_entry){INVENTORY_CHECK, s->labels[i].name, s->name, s, i};
	for (size_t i = 0; i < s->n_prefixes; i++)
		*entry++ =
			(struct inventory_entry){INVENTORY_PREFIX, s->prefixes[i].name, "", s, i};
	inventory->n_entries += 1 + s->n_checks + s->n_prefixes;
}

static int inventory_index(struct inventory *inventory)
{
	size_t n = inventory->n_services;

	for (size_t i = 0; i < inventory->n_services; i++)
		n += inventory->services[i].n_checks + inventory->services[i].n_prefixes;
	inventory->entries = allocate(n, sizeof(*inventory->entries));
	if (!inventory->entries)
		return -ENOMEM;

	for (size_t i = 0; i < inventory->n_services; i++)
		inventory_index_service(inventory, &inventory->services[i]);
	qsort(inventory->entries, n, sizeof(*inventory->entries), entry_compare);
	for (size_t i = 1; i < n; i++)
		assert(entry_compare(&inventory->entries[i - 1], &inventory->entries[i]) != 0);
	return 0;
}

int inventory_build(struct inventory *ret, const struct engine_config *config, struct monotime now)
{
	struct inventory next = {0};
	int r = 0;

	next.services = allocate(config->n_services, sizeof(*next.services));
	if (!next.services)
		return -ENOMEM;
	next.n_services = config->n_services;
	for (size_t i = 0; i < next.n_services && r == 0; i++)
		r = inventory_build_service(&next.services[i], &config->services[i], now);
	if (r == 0)
		r = inventory_index(&next);
	if (r < 0) {
		inventory_done(&next);
		return r;
	}
	*ret = next;
	return 0;
}

static void inventory_service_done(struct inventory_service *s)
{
	for (size_t i = 0; i < s->n_checks; i++) {
		free(s->labels[i].name);
		free(s->labels[i].identity);
	}
	for (size_t i = 0; i < s->n_prefixes; i++)
		free(s->prefixes[i].name);
	free(s->checks);
	free(s->labels);
	free(s->prefixes);
	free(s->name);
}

void inventory_done(struct inventory *inventory)
{
	for (size_t i = 0; i < inventory->n_services; i++)
		inventory_service_done(&inventory->services[i]);
	free(inventory->services);
	free(inventory->entries);
	memset(inventory, 0, sizeof(*inventory));
}

static const struct inventory_entry *inventory_find(const struct inventory *inventory,
	enum inventory_kind kind, const char *name, const char *scope)
{
	struct inventory_entry key = {.kind = kind, .name = name, .scope = scope};

	if (inventory->n_entries == 0)
		return NULL;
	return bsearch(&key, inventory->entries, inventory->n_entries, sizeof(key), entry_compare);
}

const struct inventory_prefix *inventory_prefix_named(
	const struct inventory *inventory, const char *name)
{
	const struct inventory_entry *entry = inventory_find(inventory, INVENTORY_PREFIX, name, "");

	return entry ? &entry->service->prefixes[entry->index] : NULL;
}

static bool settings_equal(const struct check_settings *a, const struct check_settings *b)
{
	return a->interval_ms == b->interval_ms && a->fast_interval_ms == b->fast_interval_ms &&
	       a->rise == b->rise && a->fall == b->fall && a->first_rise == b->first_rise &&
	       a->shared == b->shared;
}

/* True when the check goes on where it was. */
static bool carry_over_check(
	struct inventory_service *s, size_t index, const struct inventory *last)
{
	const struct inventory_label *label = &s->labels[index];
	const struct inventory_entry *entry =
		inventory_find(last, INVENTORY_CHECK, label->name, s->name);
	const struct check *check;

	if (!entry)
		return false;
	check = &entry->service->checks[entry->index];
	if (strcmp(entry->service->labels[entry->index].identity, label->identity) != 0)
		return false;
	if (!settings_equal(&check->settings, &s->checks[index].settings))
		return false;
	s->checks[index] = *check;
	return true;
}

/* Until its service's checks have spoken, it is what it is now; what a word or a shed made of it
 * says nothing of its health. */
static void find_anew(struct inventory_prefix *p)
{
	p->found = p->held;
	p->found_well = p->held != PREFIX_WANTED_WITHDRAW;
}

static void carry_over_prefix(const struct inventory_service *s, struct inventory_prefix *p,
	bool asked_anew, const struct inventory *last)
{
	const struct inventory_entry *entry = inventory_find(last, INVENTORY_PREFIX, p->name, "");
	const struct inventory_prefix *old;

	if (!entry)
		return;
	old = &entry->service->prefixes[entry->index];
	p->decided = old->decided;
	p->found = old->found;
	p->found_well = old->found_well;
	p->held = old->held;
	p->word = old->word;
	p->address = old->address;
	p->shed = old->shed;
	p->permitted = old->permitted;
	p->leave = old->leave;
	p->ramps = old->ramps;
	p->ramp_step = old->ramp_step;
	p->ramp_started = old->ramp_started;
	p->view = old->view;
	if (asked_anew || strcmp(entry->service->name, s->name) != 0)
		find_anew(p);
}

static void carry_over_service(struct inventory_service *s, const struct inventory *last)
{
	const struct inventory_entry *entry = inventory_find(last, INVENTORY_SERVICE, s->name, "");
	bool asked_anew = false;

	if (entry) {
		s->health = entry->service->health;
		s->cause = entry->service->cause;
		s->damping = entry->service->damping;
	}
	for (size_t i = 0; i < s->n_checks; i++)
		if (!carry_over_check(s, i, last))
			asked_anew = true;
	for (size_t i = 0; i < s->n_prefixes; i++)
		carry_over_prefix(s, &s->prefixes[i], asked_anew, last);
}

void inventory_carry_over(struct inventory *next, const struct inventory *last)
{
	for (size_t i = 0; i < next->n_services; i++)
		carry_over_service(&next->services[i], last);
}
