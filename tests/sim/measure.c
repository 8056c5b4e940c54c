/*
 * What is measured of a run at every step, and what must hold at every change.
 *
 * Below the floor because of shedding: fewer servers than the floor are willing to announce a
 * prefix, while somebody has it out. Two ways to count, and either is a fault. The first takes a
 * dead server for one that announces: it is about what was decided. The second takes one that has
 * been dead for longer than a promise lasts for its holder, and one decision, for one that does
 * not: it is about what was kept out although it should have come back; who is frozen or dead
 * itself can bring nothing back and is not to blame until its first decision.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/shed_private.h"
#include "tests/sim/sim.h"

/* Between two decisions of one that runs, and a step of the measure. */
#define MEASURE_DECISION_MS 600

static bool measure_is_culprit(
	const struct sim_world *w, const struct sim_server *s, size_t server, size_t prefix)
{
	return s->out[prefix] && sim_is_alive(w, server) &&
	       w->now_us > s->frozen_until + MEASURE_DECISION_MS * 1000 && !s->was_dead;
}

static void measure_prefix(struct sim_world *w, size_t first, size_t prefix, double dt)
{
	const struct shed_settings *settings = &w->params.settings;
	int64_t lease_ms = (int64_t)(settings->lease_ms - settings->guard_ms);
	int64_t lasts_us = (lease_ms + MEASURE_DECISION_MS) * 1000;
	unsigned willing = 0, there = 0;
	bool culprit = false, lit = false, alive = false;

	for (size_t i = first; i < first + w->params.site; i++) {
		const struct sim_server *s = &w->servers[i];
		bool long_dead = !sim_is_alive(w, i) && w->now_us > s->died_at + lasts_us;

		willing += sim_announces(w, i, prefix);
		there += sim_announces(w, i, prefix) && !long_dead;
		culprit = culprit || measure_is_culprit(w, s, i, prefix);
		lit = lit || (s->route[prefix] && sim_is_alive(w, i));
		alive = alive || sim_is_alive(w, i);
	}
	if (willing < w->params.floor || (there < w->params.floor && culprit))
		w->outcome.below_s += dt;
	if (!lit && alive)
		w->outcome.dark_s += dt;
}

static void measure_broken(struct sim_world *w, const char *what, size_t server, size_t prefix)
{
	if (w->outcome.n_broken++ == 0)
		snprintf(w->outcome.broken, sizeof(w->outcome.broken),
			"%s at %.1f s, server %zu, prefix %zu", what,
			(double)w->now_us / SIM_SECOND, server, prefix);
}

/* Of the world itself: whoever is taken for one that runs, does. */
static void measure_runs(struct sim_world *w, size_t server)
{
	const struct sim_server *s = &w->servers[server];
	int64_t since_us = s->frozen_until > s->ran_at ? s->frozen_until : s->ran_at;

	if (w->now_us > since_us + MEASURE_DECISION_MS * 1000)
		measure_broken(w, "an agent that runs decides nothing", server, 0);
}

void sim_measure(struct sim_world *w, double dt)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct sim_server *s = &w->servers[i];
		double u = s->load / s->capacity;

		measure_runs(w, i);
		if (!sim_is_alive(w, i))
			continue;
		w->outcome.hot_s += u > 0.9 ? dt : 0;
		w->outcome.pushed_s += u > 0.87 && !s->touched ? dt : 0;
		w->outcome.worst = fmax(w->outcome.worst, u);
	}
	for (size_t first = 0; first < w->n; first += w->params.site) {
		for (size_t v = 0; v < w->params.n_prefixes; v++)
			measure_prefix(w, first, v, dt);
	}
}

/* Changes of this server within the window before now. */
static unsigned measure_changes(const struct sim_world *w, const struct sim_server *s)
{
	int64_t window_us = (int64_t)w->params.settings.server_window_ms * 1000;
	unsigned n = 0;

	for (unsigned k = s->n_changed > 64 ? s->n_changed - 64 : 0; k < s->n_changed; k++)
		n += w->now_us - s->changed_at[k % 64] < window_us * 98 / 100;
	return n;
}

/* S8: whoever receives it has been heard of within `stale_after`. */
static void measure_freshness(struct sim_world *w, size_t server, size_t prefix)
{
	const struct shed *s = w->servers[server].shed;
	const struct shed_record *r = s->prefixes[prefix].record;
	uint64_t now_us = sim_clock(w, &w->servers[server]).us;

	for (size_t k = 0; r && k < r->n_held; k++) {
		uint64_t asked_us = s->neighbours[r->held[k].neighbour].asked.us;

		if (r->held[k].share > 0 && now_us > asked_us + s->settings.stale_ms * 1000)
			measure_broken(w, "shed to a neighbour that is stale", server, prefix);
	}
}

/* S2: what was just promised fits, with all that was promised before. */
void sim_assert_promise(struct sim_world *w, size_t server, size_t prefix, uint64_t reserved_before)
{
	const struct shed *s = w->servers[server].shed;
	uint64_t reserved = shed_reserved(s, sim_clock(w, &w->servers[server]));

	if (reserved > reserved_before &&
		s->own.load + reserved > shed_part(s->own.capacity, s->settings.accept_bp))
		measure_broken(w, "more room promised than there is", server, prefix);
}

/* S12, S13: within the budget; last out, first back. */
void sim_assert_change(struct sim_world *w, size_t server, size_t prefix, bool out, bool forced)
{
	struct sim_server *s = &w->servers[server];

	if (w->params.rule != SIM_RULE_GRANT)
		return;
	if (!forced && measure_changes(w, s) >= w->params.settings.server_changes)
		measure_broken(w, "more changes than the budget", server, prefix);
	s->changed_at[s->n_changed++ % 64] = w->now_us;
	if (out) {
		s->out_order[prefix] = ++s->order;
		measure_freshness(w, server, prefix);
		return;
	}
	for (size_t v = 0; v < w->params.n_prefixes && !forced; v++) {
		if (s->out[v] && s->out_order[v] > s->out_order[prefix])
			measure_broken(w, "not the last out that came back first", server, prefix);
	}
}
