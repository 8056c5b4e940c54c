/*
 * Shedding's memory: the configuration, what this server and its neighbours last said, and what is
 * shown of it. Judgements are in the other files of shed_*.c.
 *
 * A configuration is built aside and takes the old one's state over by name, prefix by prefix and
 * neighbour by neighbour, so that a reload neither forgets a promise nor a shed.
 */
#include "agent/core/shed_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct shed *shed_new(struct monotime started)
{
	struct shed *s = calloc(1, sizeof(*s));

	if (s) {
		s->started = started;
		s->why = SHED_WHY_NEW;
		s->deadline = MONOTIME_NEVER;
		s->obeyed = SIZE_MAX;
	}
	return s;
}

static void shed_done(struct shed *s)
{
	for (size_t i = 0; i < s->n_prefixes && s->prefixes; i++)
		free(s->prefixes[i].name);
	for (size_t j = 0; j < s->n_neighbours && s->neighbours; j++)
		free(s->neighbours[j].name);
	free(s->prefixes);
	free(s->neighbours);
	free(s->seen);
	free(s->records);
	free(s->held);
	free(s->promised);
	free(s->guard);
}

void shed_free(struct shed *s)
{
	if (!s)
		return;
	shed_done(s);
	free(s);
}

/* FNV-1a: the same number for the same name on every server, for the order of turns. */
static uint64_t shed_rank(const char *name)
{
	uint64_t hash = 14695981039346656037ull;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 1099511628211ull;
	return hash;
}

static size_t shed_least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void *shed_array(size_t n, size_t size)
{
	return calloc(n > 0 ? n : 1, size);
}

static char *shed_copy(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = malloc(size);

	if (copy)
		memcpy(copy, text, size);
	return copy;
}

static int shed_build_prefixes(struct shed *s, const struct shed_config *config)
{
	for (size_t i = 0; i < config->n_prefixes; i++) {
		const struct shed_prefix_config *c = &config->prefixes[i];
		struct shed_prefix_state *p = &s->prefixes[i];

		p->name = shed_copy(c->name);
		if (!p->name)
			return -ENOMEM;
		p->weight = c->weight;
		p->floor = c->floor;
		p->floor_health = c->floor_health;
		p->why = SHED_WHY_NEW;
		p->why_neighbour = SIZE_MAX;
		p->last = SHED_WHY_NEW;
	}
	return 0;
}

static int shed_build_neighbours(struct shed *s, const struct shed_config *config)
{
	for (size_t j = 0; j < config->n_neighbours; j++) {
		struct shed_neighbour *n = &s->neighbours[j];

		n->name = shed_copy(config->neighbours[j]);
		if (!n->name)
			return -ENOMEM;
		n->rank = shed_rank(n->name);
		n->seen = &s->seen[j * config->n_prefixes];
	}
	return 0;
}

/* The arrays of a configuration, in `s`, which is freed by the caller if this fails. */
static int shed_build(struct shed *s, const struct shed_config *config)
{
	size_t n_permits = 0;

	for (size_t i = 0; i < config->n_prefixes; i++)
		n_permits += config->prefixes[i].floor_health;
	s->n_prefixes = config->n_prefixes;
	s->n_neighbours = config->n_neighbours;
	s->n_shed_records = shed_least(SHED_OUT_MAX, 2 * s->n_prefixes + 2);
	s->n_records = s->n_shed_records + 2 * n_permits;
	/* one for each neighbour, prefix and purpose */
	s->n_promised = shed_least(SHED_PROMISES_MAX, 2 * s->n_prefixes * s->n_neighbours);
	s->prefixes = shed_array(s->n_prefixes, sizeof(*s->prefixes));
	s->neighbours = shed_array(s->n_neighbours, sizeof(*s->neighbours));
	s->seen = shed_array(s->n_neighbours * s->n_prefixes, sizeof(*s->seen));
	s->records = shed_array(s->n_records, sizeof(*s->records));
	s->held = shed_array(s->n_records * s->n_neighbours, sizeof(*s->held));
	s->promised = shed_array(s->n_promised, sizeof(*s->promised));
	s->guard = shed_array(s->n_prefixes, sizeof(*s->guard));
	if (!s->prefixes || !s->neighbours || !s->seen || !s->records || !s->held || !s->promised ||
		!s->guard)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_records; i++)
		s->records[i].held = &s->held[i * s->n_neighbours];
	if (shed_build_prefixes(s, config) < 0 || shed_build_neighbours(s, config) < 0)
		return -ENOMEM;
	return 0;
}

static size_t shed_find_prefix(const struct shed *s, const char *name, size_t likely)
{
	if (likely < s->n_prefixes && strcmp(s->prefixes[likely].name, name) == 0)
		return likely;
	for (size_t i = 0; i < s->n_prefixes; i++) {
		if (strcmp(s->prefixes[i].name, name) == 0)
			return i;
	}
	return SIZE_MAX;
}

static size_t shed_find_neighbour(const struct shed *s, const char *name, size_t likely)
{
	if (likely < s->n_neighbours && strcmp(s->neighbours[likely].name, name) == 0)
		return likely;
	for (size_t j = 0; j < s->n_neighbours; j++) {
		if (strcmp(s->neighbours[j].name, name) == 0)
			return j;
	}
	return SIZE_MAX;
}

static void shed_carry_prefixes(struct shed *s, const struct shed *old, size_t *map)
{
	for (size_t i = 0; i < old->n_prefixes; i++) {
		const struct shed_prefix_state *from = &old->prefixes[i];
		struct shed_prefix_state *to, next;

		map[i] = shed_find_prefix(s, from->name, i);
		if (map[i] == SIZE_MAX)
			continue;
		to = &s->prefixes[map[i]];
		next = *from;
		next.name = to->name;
		next.weight = to->weight;
		next.floor = to->floor;
		next.floor_health = to->floor_health;
		next.record = NULL;
		next.permit_record = NULL;
		next.why_neighbour = SIZE_MAX;
		*to = next;
	}
}

static void shed_carry_neighbours(
	struct shed *s, const struct shed *old, const size_t *prefix_map, size_t *map)
{
	for (size_t j = 0; j < old->n_neighbours; j++) {
		const struct shed_neighbour *from = &old->neighbours[j];
		struct shed_neighbour *to;
		struct shed_neighbour next;

		map[j] = shed_find_neighbour(s, from->name, j);
		if (map[j] == SIZE_MAX)
			continue;
		to = &s->neighbours[map[j]];
		next = *from;
		next.name = to->name;
		next.seen = to->seen;
		*to = next;
		for (size_t i = 0; i < old->n_prefixes; i++) {
			if (prefix_map[i] != SIZE_MAX)
				to->seen[prefix_map[i]] = from->seen[i];
		}
	}
}

static void shed_carry_record(struct shed *s, const struct shed_record *from,
	struct shed_record *to, const size_t *neighbour_map)
{
	struct shed_held *held = to->held;
	size_t n = 0;

	*to = *from;
	to->held = held;
	for (size_t k = 0; k < from->n_held; k++) {
		if (neighbour_map[from->held[k].neighbour] == SIZE_MAX)
			continue;
		held[n] = from->held[k];
		held[n++].neighbour = neighbour_map[from->held[k].neighbour];
	}
	to->n_held = n;
}

/* Those that only give back what they hold, or all others. */
static void shed_carry_phases(struct shed *s, const struct shed *old, const size_t *prefix_map,
	const size_t *neighbour_map, bool ending)
{
	for (size_t i = 0; i < old->n_records; i++) {
		const struct shed_record *from = &old->records[i];
		struct shed_record *to;

		if (from->phase == SHED_PHASE_FREE || prefix_map[from->prefix] == SIZE_MAX ||
			(from->phase == SHED_PHASE_ENDING) != ending)
			continue;
		to = shed_record_free(s, from->purpose);
		if (!to)
			continue;
		shed_carry_record(s, from, to, neighbour_map);
		to->prefix = prefix_map[from->prefix];
		if (ending)
			continue;
		if (to->purpose == SHED_PURPOSE_SHED)
			s->prefixes[to->prefix].record = to;
		else
			s->prefixes[to->prefix].permit_record = to;
	}
}

/* What only gives back comes last, where there is room: promises lapse. */
static void shed_carry_records(struct shed *s, const struct shed *old, const size_t *prefix_map,
	const size_t *neighbour_map)
{
	shed_carry_phases(s, old, prefix_map, neighbour_map, false);
	shed_carry_phases(s, old, prefix_map, neighbour_map, true);
}

static void shed_carry_promised(struct shed *s, const struct shed *old, const size_t *prefix_map,
	const size_t *neighbour_map)
{
	size_t n = 0;

	for (size_t i = 0; i < old->n_promised && n < s->n_promised; i++) {
		struct shed_promised p = old->promised[i];

		if (!p.used || prefix_map[p.prefix] == SIZE_MAX ||
			neighbour_map[p.neighbour] == SIZE_MAX)
			continue;
		p.prefix = prefix_map[p.prefix];
		p.neighbour = neighbour_map[p.neighbour];
		s->promised[n++] = p;
	}
}

/* The state that belongs to the server as a whole. */
static void shed_carry_server(struct shed *s, const struct shed *old)
{
	struct shed next = *old;

	next.settings = s->settings;
	next.rank = s->rank;
	next.n_prefixes = s->n_prefixes;
	next.n_neighbours = s->n_neighbours;
	next.n_records = s->n_records;
	next.n_shed_records = s->n_shed_records;
	next.n_promised = s->n_promised;
	next.prefixes = s->prefixes;
	next.neighbours = s->neighbours;
	next.seen = s->seen;
	next.records = s->records;
	next.held = s->held;
	next.promised = s->promised;
	next.guard = s->guard;
	*s = next;
}

int shed_configure(struct shed *s, const struct shed_config *config, struct monotime now)
{
	struct shed_fault fault;
	struct shed next = {0};
	size_t *prefix_map, *neighbour_map;
	int r;

	assert(shed_settings_check(&config->settings, &fault));
	prefix_map = shed_array(s->n_prefixes, sizeof(*prefix_map));
	neighbour_map = shed_array(s->n_neighbours, sizeof(*neighbour_map));
	next.settings = config->settings;
	next.rank = shed_rank(config->node);
	r = prefix_map && neighbour_map ? shed_build(&next, config) : -ENOMEM;
	if (r == 0) {
		shed_carry_prefixes(&next, s, prefix_map);
		shed_carry_neighbours(&next, s, prefix_map, neighbour_map);
		shed_carry_records(&next, s, prefix_map, neighbour_map);
		shed_carry_promised(&next, s, prefix_map, neighbour_map);
		shed_carry_server(&next, s);
		shed_done(s);
		*s = next;
		s->deadline = now;
	} else {
		shed_done(&next);
	}
	free(prefix_map);
	free(neighbour_map);
	return r;
}

/* ---- facts ---- */

void shed_own(struct shed *s, const struct shed_own *own, struct monotime now)
{
	assert(own->capacity <= SHED_AMOUNT_MAX && own->load <= SHED_AMOUNT_MAX);
	s->own = *own;
	if (s->own.capacity == 0)
		s->own.valid = false;
}

void shed_prefix_facts(struct shed *s, size_t prefix, const struct shed_prefix_facts *facts)
{
	assert(prefix < s->n_prefixes && facts->load <= SHED_AMOUNT_MAX);
	s->prefixes[prefix].facts = *facts;
}

void shed_prefix_weight(struct shed *s, size_t prefix, uint32_t weight)
{
	assert(prefix < s->n_prefixes);
	s->prefixes[prefix].weight = weight;
}

void shed_word(struct shed *s, size_t prefix, enum shed_word word, struct monotime now)
{
	assert(prefix < s->n_prefixes);
	s->prefixes[prefix].word = word;
}

void shed_leave(struct shed *s, size_t prefix, bool leave, struct monotime now)
{
	struct shed_prefix_state *p = &s->prefixes[prefix];

	assert(prefix < s->n_prefixes);
	if (p->leave == leave)
		return;
	p->leave = leave;
	p->leave_since = now;
	p->permit_retry = now;
	p->permit = leave ? SHED_PERMIT_WAITING : SHED_PERMIT_NONE;
}

enum shed_permit shed_permit(const struct shed *s, size_t prefix)
{
	assert(prefix < s->n_prefixes);
	return s->prefixes[prefix].permit;
}

/* A neighbour that no longer announces a prefix healthily has no promise to keep. */
static void shed_void_promises(struct shed *s, size_t neighbour, struct monotime asked)
{
	for (size_t i = 0; i < s->n_records; i++) {
		struct shed_record *r = &s->records[i];

		if (r->phase != SHED_PHASE_ASKING && r->phase != SHED_PHASE_OUT)
			continue;
		for (size_t k = 0; k < r->n_held; k++) {
			const struct shed_seen *seen = &s->neighbours[neighbour].seen[r->prefix];

			if (r->held[k].neighbour == neighbour &&
				(seen->gone || seen->state != SHED_STATE_HEALTHY) &&
				!monotime_before(asked, r->held[k].granted_sent))
				r->held[k].until = MONOTIME_ZERO;
		}
	}
}

void shed_report(struct shed *s, size_t neighbour, const struct shed_report *report,
	struct monotime asked, struct monotime now)
{
	struct shed_neighbour *n = &s->neighbours[neighbour];

	assert(neighbour < s->n_neighbours);
	if (n->heard && monotime_before(asked, n->asked))
		return;
	n->heard = true;
	n->asked = asked;
	n->boot = report->boot;
	n->valid = report->valid && report->capacity > 0;
	n->willing = report->willing;
	n->capacity = report->capacity < SHED_AMOUNT_MAX ? report->capacity : SHED_AMOUNT_MAX;
	n->load = report->load < SHED_AMOUNT_MAX ? report->load : SHED_AMOUNT_MAX;
	n->spare = report->spare < SHED_AMOUNT_MAX ? report->spare : SHED_AMOUNT_MAX;
	if (n->want == 0 || n->n_sheds != report->n_sheds)
		n->wants_since = asked;
	n->want = report->want;
	n->n_sheds = report->n_sheds;
	for (size_t i = 0; i < s->n_prefixes; i++) {
		n->seen[i].weight = report->prefixes[i].weight;
		n->seen[i].load_bp = report->prefixes[i].load_bp;
		n->seen[i].state = report->prefixes[i].state;
	}
	shed_void_promises(s, neighbour, asked);
}

void shed_route(struct shed *s, size_t neighbour, size_t prefix, bool there)
{
	assert(neighbour < s->n_neighbours && prefix < s->n_prefixes);
	s->neighbours[neighbour].seen[prefix].gone = !there;
}

/* ---- what is known ---- */

bool shed_is_fresh(const struct shed *s, const struct shed_neighbour *j, struct monotime now)
{
	return j->heard && monotime_reached(now, monotime_add_ms(j->asked, s->settings.stale_ms));
}

bool shed_announces(
	const struct shed *s, const struct shed_neighbour *j, size_t prefix, struct monotime now)
{
	return j->heard && j->seen[prefix].state != SHED_STATE_OUT && !j->seen[prefix].gone &&
	       monotime_reached(now, monotime_add_ms(j->asked, s->settings.forget_ms));
}

bool shed_is_starting(const struct shed *s, struct monotime now)
{
	uint64_t wait_ms = s->settings.lease_ms + s->settings.stale_ms;

	return !monotime_reached(monotime_add_ms(s->started, wait_ms), now);
}

enum shed_state shed_own_state(const struct shed *s, size_t prefix)
{
	const struct shed_prefix_state *p = &s->prefixes[prefix];

	if (!p->facts.announced || (p->record && p->record->phase == SHED_PHASE_OUT))
		return SHED_STATE_OUT;
	if (p->facts.healthy && !p->facts.leaving && p->permit == SHED_PERMIT_NONE)
		return SHED_STATE_HEALTHY;
	return SHED_STATE_KEPT;
}

unsigned shed_others(const struct shed *s, size_t prefix, struct monotime now)
{
	unsigned n = 0;

	for (size_t j = 0; j < s->n_neighbours; j++) {
		const struct shed_neighbour *other = &s->neighbours[j];

		n += shed_is_fresh(s, other, now) && shed_announces(s, other, prefix, now) &&
		     other->seen[prefix].state == SHED_STATE_HEALTHY;
	}
	return n;
}

uint64_t shed_own_spare(const struct shed *s, struct monotime now)
{
	uint64_t room, used;

	if (!s->own.valid || !s->settings.receive)
		return 0;
	room = shed_part(s->own.capacity, s->settings.accept_bp);
	used = s->own.load + shed_reserved(s, now);
	return room > used ? room - used : 0;
}

/* ---- what is shown ---- */

static uint64_t shed_offered(const struct shed *s, struct monotime now)
{
	return shed_is_starting(s, now) ? 0 : shed_own_spare(s, now);
}

void shed_report_own(struct shed *s, struct shed_report *ret, struct shed_report_prefix *prefixes,
	struct monotime now)
{
	uint32_t n_sheds = 0;

	for (size_t i = 0; i < s->n_prefixes; i++) {
		const struct shed_prefix_state *p = &s->prefixes[i];
		uint64_t load_bp = 0;

		if (s->own.valid && p->facts.counted)
			load_bp = p->facts.load * SHED_WHOLE_BP / s->own.capacity;
		n_sheds += p->record && p->record->phase == SHED_PHASE_OUT;
		prefixes[i] = (struct shed_report_prefix){
			.weight = (uint16_t)p->weight,
			.load_bp = load_bp < UINT16_MAX ? (uint16_t)load_bp : UINT16_MAX,
			.state = (uint8_t)shed_own_state(s, i),
		};
	}
	*ret = (struct shed_report){
		.valid = s->own.valid,
		.capacity = s->own.capacity,
		.load = s->own.load,
		.spare = shed_offered(s, now),
		.willing = s->settings.receive && s->own.valid && !shed_is_starting(s, now),
		.want = s->want,
		.n_sheds = n_sheds,
		.prefixes = prefixes,
	};
}

/* The latest moment until which `floor` promises hold, or zero. */
static struct monotime shed_held_until(const struct shed_record *r, unsigned floor)
{
	struct monotime until = MONOTIME_ZERO;

	for (size_t k = 0; k < r->n_held; k++) {
		unsigned n = 0;

		for (size_t l = 0; l < r->n_held; l++)
			n += !monotime_before(r->held[l].until, r->held[k].until);
		if (n >= floor)
			until = monotime_max(until, r->held[k].until);
	}
	return until;
}

void shed_prefix(const struct shed *s, size_t prefix, struct shed_prefix *ret, struct monotime now)
{
	const struct shed_prefix_state *p = &s->prefixes[prefix];
	const struct shed_record *r = p->record;

	assert(prefix < s->n_prefixes);
	*ret = (struct shed_prefix){
		.mode = s->settings.mode,
		.why = p->why,
		.since = p->last_at,
		.until = MONOTIME_NEVER,
		.neighbour = p->why_neighbour,
		.last = p->last,
		.last_at = p->last_at,
	};
	for (size_t i = 0; i < s->n_promised; i++) {
		const struct shed_promised *g = &s->promised[i];

		ret->n_owed += g->used && g->prefix == prefix && monotime_before(now, g->until);
	}
	if (p->why == SHED_WHY_BACK_OFF)
		ret->until = p->hold_until;
	if (!r)
		return;
	ret->n_promised = shed_record_live(r, now);
	ret->load_moved = r->load;
	ret->since = r->since;
	if (r->phase == SHED_PHASE_OUT) {
		ret->out = true;
		ret->why = r->why;
		ret->neighbour = SIZE_MAX;
		ret->order = r->order;
		ret->until = shed_held_until(r, p->floor);
	} else {
		ret->why = SHED_WHY_ASKING;
		ret->until = monotime_add_ms(r->since, s->settings.ask_ms);
	}
}

static bool shed_promise_held(const struct shed_record *r, size_t nth, struct shed_promise *ret)
{
	const struct shed_held *held = &r->held[nth];

	*ret = (struct shed_promise){
		.neighbour = held->neighbour,
		.purpose = r->purpose,
		.share = held->share,
		.refused = (enum shed_refusal)held->refused,
		.until = held->until,
	};
	return true;
}

bool shed_promise(const struct shed *s, size_t prefix, size_t nth, struct shed_promise *ret)
{
	const struct shed_record *records[] = {
		s->prefixes[prefix].record, s->prefixes[prefix].permit_record};

	for (size_t i = 0; i < 2; i++) {
		if (!records[i])
			continue;
		if (nth < records[i]->n_held)
			return shed_promise_held(records[i], nth, ret);
		nth -= records[i]->n_held;
	}
	for (size_t i = 0; i < s->n_promised; i++) {
		const struct shed_promised *g = &s->promised[i];

		if (!g->used || g->prefix != prefix || nth-- > 0)
			continue;
		*ret = (struct shed_promise){
			.given = true,
			.neighbour = g->neighbour,
			.purpose = g->purpose,
			.share = g->share,
			.until = g->until,
		};
		return true;
	}
	return false;
}

void shed_server(const struct shed *s, struct shed_server *ret, struct monotime now)
{
	*ret = (struct shed_server){
		.why = s->why,
		.want = s->want,
		.spare = shed_offered(s, now),
		.valid = s->own.valid,
		.n_sheds = s->n_sheds,
		.n_restores = s->n_restores,
		.n_granted = s->n_granted,
		.n_refused = s->n_refused,
		.alarm = s->alarm,
	};
	if (s->own.valid)
		ret->utilisation_bp = (unsigned)(s->own.load * SHED_WHOLE_BP / s->own.capacity);
	for (size_t i = 0; i < s->n_prefixes; i++)
		ret->n_out +=
			s->prefixes[i].record && s->prefixes[i].record->phase == SHED_PHASE_OUT;
	for (size_t j = 0; j < s->n_neighbours; j++) {
		const struct shed_neighbour *n = &s->neighbours[j];

		if (!shed_is_fresh(s, n, now))
			continue;
		ret->n_fresh++;
		ret->n_hot += n->valid && shed_is_above(n->load, n->capacity, s->settings.hot_bp);
	}
}
