/*
 * The naive rules, for comparison. They stand on the same signals and reports as the agent's own,
 * and with the same times: how long they are above hot, at the top, or wait after a change.
 *   alone    above hot for 6 s: withdraw; back when below 60 %
 *   report   the same, but only where neighbours' reports show room, at most half of the load, and
 *            back when fewer than the floor announce by their reports
 *   rank     the same, and only the server that wants to most, for three reports
 * A shed is at once; nobody is asked.
 */
#include <assert.h>

#include "agent/core/shed_private.h"
#include "tests/sim/sim.h"

static bool for_ms(const struct sim_world *w, int64_t since, uint64_t ms)
{
	return w->now_us - since >= (int64_t)ms * 1000;
}

static void rule_watch(const struct sim_world *w, struct sim_server *s)
{
	bool over = s->told > 0.85 * s->capacity, under = s->told < 0.75 * s->capacity;

	if (over && !s->is_over)
		s->over_since = w->now_us;
	if (under && !s->is_under)
		s->under_since = w->now_us;
	s->is_over = over;
	s->is_under = under;
}

static size_t rule_n_out(const struct sim_world *w, const struct sim_server *s)
{
	size_t n = 0;

	for (size_t v = 0; v < w->params.n_prefixes; v++)
		n += s->out[v];
	return n;
}

/* The smallest that covers the excess, else the largest; no thought of anybody else. */
static size_t rule_pick_alone(const struct sim_world *w, const struct sim_server *s)
{
	double excess = s->told - 0.75 * s->capacity;
	size_t best = SIZE_MAX;

	if (rule_n_out(w, s) + 1 >= w->params.n_prefixes)
		return SIZE_MAX;
	for (size_t v = 0; v < w->params.n_prefixes; v++) {
		double load = s->prefix_told[v];
		double best_load = best == SIZE_MAX ? 0 : s->prefix_told[best];

		if (s->out[v] || load < 0.01 * s->capacity)
			continue;
		if (best == SIZE_MAX || (best_load < excess ? load > best_load
							    : load >= excess && load < best_load))
			best = v;
	}
	return best;
}

static size_t rule_pick(struct sim_world *w, size_t server)
{
	struct sim_server *s = &w->servers[server];
	struct monotime now = sim_clock(w, s);
	size_t hot = 1, fresh = 0;
	double out = 0, best;
	size_t v;

	if (w->params.rule == SIM_RULE_ALONE)
		return rule_pick_alone(w, s);
	for (size_t j = 0; j < s->shed->n_neighbours; j++) {
		const struct shed_neighbour *n = &s->shed->neighbours[j];

		if (!shed_is_fresh(s->shed, n, now))
			continue;
		fresh++;
		hot += shed_is_above(n->load, n->capacity, s->shed->settings.hot_bp);
	}
	if (hot > 1 && hot * SHED_WHOLE_BP > (fresh + 1) * w->params.settings.site_hot_bp)
		return SIZE_MAX;
	v = shed_pick(s->shed, now);
	if (v == SIZE_MAX)
		return SIZE_MAX;
	for (size_t i = 0; i < w->params.n_prefixes; i++)
		out += s->out[i] ? s->out_load[i] : 0;
	best = s->prefix_told[v];
	return out + best <= 0.5 * (s->told + out) ? v : SIZE_MAX;
}

static bool rule_is_turn(struct sim_world *w, size_t server)
{
	struct sim_server *s = &w->servers[server];
	struct monotime now = sim_clock(w, s);
	bool top = true;

	if (w->params.rule != SIM_RULE_RANK)
		return true;
	for (size_t j = 0; j < s->shed->n_neighbours; j++) {
		const struct shed_neighbour *n = &s->shed->neighbours[j];

		if (shed_is_fresh(s->shed, n, now) &&
			(n->want > s->want || (n->want == s->want && n->rank > s->shed->rank)))
			top = false;
	}
	if (top && !s->is_top)
		s->top_since = w->now_us;
	s->is_top = top;
	return top && for_ms(w, s->top_since, w->params.settings.rank_ms);
}

static void rule_restore(struct sim_world *w, size_t server, size_t v, bool forced)
{
	struct sim_server *s = &w->servers[server];

	s->last_change = w->now_us;
	s->is_over = s->is_under = false;
	sim_change(w, server, v, false, forced);
}

/* By their reports, do enough others announce it? */
static void rule_keep(struct sim_world *w, size_t server)
{
	struct sim_server *s = &w->servers[server];
	struct monotime now = sim_clock(w, s);

	for (size_t v = 0; v < w->params.n_prefixes && w->params.rule != SIM_RULE_ALONE; v++) {
		if (s->out[v] && shed_others(s->shed, v, now) < w->params.floor)
			rule_restore(w, server, v, true);
	}
}

static void rule_release(struct sim_world *w, size_t server)
{
	struct sim_server *s = &w->servers[server];
	uint64_t under_ms = w->params.settings.under_ms, gap_ms = w->params.settings.release_gap_ms;
	size_t last = SIZE_MAX;

	for (size_t v = 0; v < w->params.n_prefixes; v++) {
		if (s->out[v] && (last == SIZE_MAX || s->out_order[v] > s->out_order[last]))
			last = v;
	}
	if (last == SIZE_MAX || !s->is_under ||
		!for_ms(w, s->under_since, under_ms < 60000 ? under_ms : 60000) ||
		!for_ms(w, s->last_change, gap_ms))
		return;
	if (w->params.rule == SIM_RULE_ALONE
			? s->told < 0.60 * s->capacity
			: s->told + s->out_load[last] * 1.2 <= 0.72 * s->capacity)
		rule_restore(w, server, last, false);
}

void sim_rule_decide(struct sim_world *w, size_t server)
{
	const struct shed_settings *settings = &w->params.settings;
	struct sim_server *s = &w->servers[server];
	size_t v;

	rule_watch(w, s);
	rule_keep(w, server);
	rule_release(w, server);
	s->want = 0;
	if (!s->is_over || !for_ms(w, s->over_since, settings->over_ms) ||
		(s->last_change > 0 && !for_ms(w, s->last_change, settings->settle_ms)))
		return;
	v = rule_pick(w, server);
	if (v == SIZE_MAX) {
		s->is_top = false;
		return;
	}
	s->want = (uint32_t)(100 * (s->told / s->capacity - 0.85)) + 1;
	if (!rule_is_turn(w, server))
		return;
	s->out_load[v] = s->prefix_told[v];
	s->out_order[v] = ++s->order;
	s->last_change = w->now_us;
	s->is_over = s->is_under = s->is_top = false;
	s->want = 0;
	sim_change(w, server, v, true, false);
}
