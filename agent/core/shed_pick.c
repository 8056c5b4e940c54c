/*
 * Which prefix to shed, and whom to ask.
 *
 * The receivers of a prefix are its tier: of everyone last known to announce it, those of the
 * lowest weight besides this server. What is shed falls on all of them, whoever promised. So they
 * are told apart: G, who can take it and has to promise, with room for the whole as if nobody else
 * took any; and W, the warm (above accept, or announcing without health), on whom so little falls
 * that it does not matter. If one of the tier is stale nobody knows who would receive, and nothing
 * is done.
 *
 * Where G is smaller than the floor, other healthy announcers are asked to stay, for no share.
 */
#include "agent/core/shed_private.h"

#include <assert.h>

bool shed_tier(const struct shed *s, size_t prefix, struct monotime now, uint64_t *ret_tier,
	uint32_t *ret_weight, size_t *ret_stale)
{
	uint32_t weight = UINT32_MAX;
	uint64_t tier = 0;

	for (size_t j = 0; j < s->n_neighbours; j++) {
		if (shed_announces(s, &s->neighbours[j], prefix, now) &&
			s->neighbours[j].seen[prefix].weight < weight)
			weight = s->neighbours[j].seen[prefix].weight;
	}
	for (size_t j = 0; j < s->n_neighbours && weight != UINT32_MAX; j++) {
		const struct shed_neighbour *n = &s->neighbours[j];

		if (!shed_announces(s, n, prefix, now) || n->seen[prefix].weight != weight)
			continue;
		if (!shed_is_fresh(s, n, now)) {
			*ret_stale = j;
			return false;
		}
		tier = (tier ^ (j + 1)) * 1099511628211ull + 1;
	}
	*ret_tier = tier;
	*ret_weight = weight;
	return true;
}

static bool shed_in_tier(
	const struct shed *s, size_t j, size_t prefix, uint32_t weight, struct monotime now)
{
	return shed_announces(s, &s->neighbours[j], prefix, now) &&
	       s->neighbours[j].seen[prefix].weight == weight;
}

/* Of the tier: in W, where it takes a share but makes no promise. */
static bool shed_is_warm(const struct shed *s, size_t j, size_t prefix)
{
	const struct shed_neighbour *n = &s->neighbours[j];

	return !n->valid || n->seen[prefix].state != SHED_STATE_HEALTHY ||
	       shed_is_above(n->load, n->capacity, s->settings.accept_bp);
}

struct shed_split {
	size_t n_tier, n_good;
	uint64_t share; /* asked of each of G, margin included */
};

static struct shed_split shed_split(
	const struct shed *s, size_t prefix, uint32_t weight, uint64_t load, struct monotime now)
{
	struct shed_split split = {0};

	for (size_t j = 0; j < s->n_neighbours; j++) {
		if (!shed_in_tier(s, j, prefix, weight, now))
			continue;
		split.n_tier++;
		split.n_good += !shed_is_warm(s, j, prefix);
	}
	if (split.n_good > 0) {
		uint64_t whole = load + shed_part(load, s->settings.margin_bp);

		split.share = (whole + split.n_good - 1) / split.n_good;
	}
	return split;
}

/* Room at the receivers, as far as reports tell. */
static enum shed_why shed_obstacle_room(const struct shed *s, size_t prefix, uint32_t weight,
	struct monotime now, size_t *ret_neighbour)
{
	uint64_t load = s->prefixes[prefix].facts.load;
	struct shed_split split = shed_split(s, prefix, weight, load, now);

	if (split.n_good == 0 || split.n_good * 2 < split.n_tier)
		return SHED_WHY_TIER_HOT;
	for (size_t j = 0; j < s->n_neighbours; j++) {
		const struct shed_neighbour *n = &s->neighbours[j];
		bool warm;

		if (!shed_in_tier(s, j, prefix, weight, now))
			continue;
		warm = shed_is_warm(s, j, prefix);
		*ret_neighbour = j;
		if (warm && load / split.n_tier > shed_part(n->capacity, s->settings.warm_share_bp))
			return SHED_WHY_TIER_HOT;
		if (!warm && (!n->willing || n->spare < split.share))
			return SHED_WHY_NO_ROOM;
	}
	*ret_neighbour = SIZE_MAX;
	return SHED_WHY_NOT_PICKED;
}

static bool shed_record_is_out(const struct shed_record *r)
{
	return r->phase == SHED_PHASE_OUT;
}

uint64_t shed_load_out(const struct shed *s)
{
	uint64_t out = 0;

	for (size_t i = 0; i < s->n_shed_records; i++)
		out += shed_record_is_out(&s->records[i]) ? s->records[i].load : 0;
	return out;
}

uint64_t shed_expected(const struct shed *s, unsigned *ret_n)
{
	const struct shed_record *first = NULL;
	uint64_t moved = 0, left;

	*ret_n = 0;
	for (size_t i = 0; i < s->n_shed_records; i++) {
		const struct shed_record *r = &s->records[i];

		if (!shed_record_is_out(r) || r->settled)
			continue;
		(*ret_n)++;
		moved += r->load;
		if (!first || r->order < first->order)
			first = r;
	}
	if (!first)
		return s->own.load;
	left = first->own_load > moved ? first->own_load - moved : 0;
	return left < s->own.load ? left : s->own.load;
}

static enum shed_why shed_obstacle_size(const struct shed *s, size_t prefix)
{
	uint64_t load = s->prefixes[prefix].facts.load;
	uint64_t out = shed_load_out(s);
	unsigned n;

	if (!s->prefixes[prefix].facts.counted)
		return SHED_WHY_UNCOUNTED;
	if (load < shed_part(s->own.load, s->settings.pick_min_bp) || load == 0)
		return SHED_WHY_TOO_SMALL;
	if (load > shed_part(s->own.load, s->settings.pick_max_bp))
		return SHED_WHY_TOO_LARGE;
	if (out + load > shed_part(shed_expected(s, &n) + out, s->settings.most_bp))
		return SHED_WHY_ENOUGH;
	return SHED_WHY_NOT_PICKED;
}

static bool shed_is_last_prefix(const struct shed *s, size_t prefix)
{
	for (size_t i = 0; i < s->n_prefixes; i++) {
		if (i != prefix && shed_own_state(s, i) == SHED_STATE_HEALTHY)
			return false;
	}
	return true;
}

enum shed_why shed_obstacle(const struct shed *s, size_t prefix, bool by_hand, struct monotime now,
	size_t *ret_neighbour)
{
	const struct shed_prefix_state *p = &s->prefixes[prefix];
	struct monotime until;
	uint64_t tier;
	uint32_t weight;
	enum shed_why why;

	*ret_neighbour = SIZE_MAX;
	if (shed_own_state(s, prefix) != SHED_STATE_HEALTHY)
		return SHED_WHY_NOT_ANNOUNCED;
	if (!by_hand && (p->facts.held || p->word == SHED_WORD_UNSHED))
		return SHED_WHY_HELD;
	if (shed_is_last_prefix(s, prefix))
		return SHED_WHY_LAST_PREFIX;
	if (!by_hand) {
		if (!monotime_reached(p->hold_until, now))
			return SHED_WHY_BACK_OFF;
		if (shed_prefix_budget_full(s, p, now))
			return SHED_WHY_BUDGET;
		why = shed_obstacle_size(s, prefix);
		if (why != SHED_WHY_NOT_PICKED)
			return why;
	}
	if (shed_is_bound(s, prefix, now, &until))
		return SHED_WHY_PROMISED;
	if (shed_others(s, prefix, now) < p->floor)
		return SHED_WHY_FLOOR;
	if (!shed_tier(s, prefix, now, &tier, &weight, ret_neighbour))
		return SHED_WHY_TIER_UNKNOWN;
	return shed_obstacle_room(s, prefix, weight, now, ret_neighbour);
}

size_t shed_pick(struct shed *s, struct monotime now)
{
	uint64_t goal = shed_part(s->own.capacity, s->settings.target_bp);
	unsigned n;
	uint64_t expected = shed_expected(s, &n);
	uint64_t excess = expected > goal ? expected - goal : 0;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < s->n_prefixes; i++) {
		struct shed_prefix_state *p = &s->prefixes[i];
		uint64_t load, best_load;

		if (p->record)
			continue;
		load = p->facts.load;
		p->why = shed_obstacle(s, i, false, now, &p->why_neighbour);
		if (p->why != SHED_WHY_NOT_PICKED)
			continue;
		best_load = best == SIZE_MAX ? 0 : s->prefixes[best].facts.load;
		if (best == SIZE_MAX || (best_load < excess ? load > best_load
							    : load >= excess && load < best_load))
			best = i;
	}
	return best;
}

/* Healthy announcers who are not among those that were asked, until the floor is met. */
static void shed_ask_others(struct shed *s, struct shed_record *r, struct monotime now)
{
	for (size_t j = 0; j < s->n_neighbours && r->n_held < s->prefixes[r->prefix].floor; j++) {
		const struct shed_neighbour *n = &s->neighbours[j];
		bool asked = false;

		for (size_t k = 0; k < r->n_held; k++)
			asked = asked || r->held[k].neighbour == j;
		if (!asked && shed_is_fresh(s, n, now) && shed_announces(s, n, r->prefix, now) &&
			n->seen[r->prefix].state == SHED_STATE_HEALTHY)
			shed_record_ask(r, j, 0, now);
	}
}

struct shed_record *shed_begin(
	struct shed *s, size_t prefix, enum shed_why why, struct monotime now)
{
	struct shed_record *r = shed_record_new(s, prefix, SHED_PURPOSE_SHED, now);
	struct shed_prefix_state *p = &s->prefixes[prefix];
	struct shed_split split;
	uint32_t weight = 0;
	size_t stale;

	if (!r)
		return NULL;
	r->why = why;
	r->load = p->facts.counted ? p->facts.load : 0;
	if (!shed_tier(s, prefix, now, &r->tier, &weight, &stale))
		assert(!"a candidate's tier is known");
	split = shed_split(s, prefix, weight, r->load, now);
	for (size_t j = 0; j < s->n_neighbours; j++) {
		if (shed_in_tier(s, j, prefix, weight, now) && !shed_is_warm(s, j, prefix))
			shed_record_ask(r, j, split.share, now);
	}
	shed_ask_others(s, r, now);
	p->record = r;
	return r;
}

/* What the prefix would bring if it came back now: what it took along, or its share of what its
 * tier carries by now, whichever is more. */
uint64_t shed_return_load(const struct shed *s, const struct shed_record *r, struct monotime now)
{
	uint32_t mine = s->prefixes[r->prefix].weight, weight;
	uint64_t carried = 0, tier, share;
	size_t n = 0, stale;

	if (!shed_tier(s, r->prefix, now, &tier, &weight, &stale) || mine > weight)
		return r->load;
	for (size_t j = 0; j < s->n_neighbours; j++) {
		const struct shed_neighbour *other = &s->neighbours[j];

		if (!shed_in_tier(s, j, r->prefix, weight, now))
			continue;
		carried += shed_part(other->capacity, other->seen[r->prefix].load_bp);
		n++;
	}
	share = mine < weight ? carried : carried / (n + 1);
	return share > r->load ? share : r->load;
}
