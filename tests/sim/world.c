/*
 * The world: time, loads, routers, faults. Events lie in a heap by time; between them, every step,
 * the demand of each prefix is spread over the servers whose routes the router holds at the lowest
 * weight, and the run is measured. A server is dead (its routes are gone), frozen (its agent does
 * not run, BIRD does), or cut off in one or both directions.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

#define TICK_US (SIM_SECOND / 2)

uint64_t sim_random(struct sim_world *w)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return w->random * 2685821657736338717ull;
}

double sim_uniform(struct sim_world *w, double low, double high)
{
	return low + (high - low) * (double)(sim_random(w) >> 11) / 9007199254740992.0;
}

static double sim_gauss(struct sim_world *w, double sigma)
{
	double a = sim_uniform(w, 1e-12, 1), b = sim_uniform(w, 0, 1);

	return sigma * sqrt(-2 * log(a)) * cos(6.283185307179586 * b);
}

bool sim_is_alive(const struct sim_world *w, size_t server)
{
	return w->now_us >= w->servers[server].dead_until;
}

struct monotime sim_clock(const struct sim_world *w, const struct sim_server *s)
{
	return (struct monotime){(uint64_t)(s->offset_us + (int64_t)((double)w->now_us * s->skew))};
}

size_t sim_site_first(const struct sim_world *w, size_t server)
{
	return server - server % w->params.site;
}

bool sim_announces(const struct sim_world *w, size_t server, size_t prefix)
{
	const struct sim_server *s = &w->servers[server];

	return !s->out[prefix] && !s->left[prefix];
}

/* ---- events ---- */

static bool sim_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->serial < b->serial;
}

void sim_schedule(struct sim_world *w, struct sim_event event)
{
	size_t i = w->n_heap++;

	if (w->n_heap > w->size_heap) {
		w->size_heap = w->size_heap * 2 + 1024;
		w->heap = realloc(w->heap, w->size_heap * sizeof(*w->heap));
		assert(w->heap);
	}
	event.serial = w->serial++;
	for (; i > 0 && sim_before(&event, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = event;
}

static struct sim_event sim_next_event(struct sim_world *w)
{
	struct sim_event first = w->heap[0], last = w->heap[--w->n_heap];
	size_t i = 0;

	for (size_t child = 1; child < w->n_heap; child = 2 * i + 1) {
		if (child + 1 < w->n_heap && sim_before(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!sim_before(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
	return first;
}

/* ---- routes ---- */

static void sim_route(struct sim_world *w, size_t server, size_t prefix, bool on)
{
	struct sim_server *s = &w->servers[server];

	sim_schedule(
		w, (struct sim_event){
			   .at_us = w->now_us + (int64_t)(sim_uniform(w, 0.1, 0.6) * SIM_SECOND),
			   .kind = SIM_EVENT_ROUTE,
			   .server = server,
			   .prefix = prefix,
			   .on = on,
			   .route_serial = ++s->route_serial[prefix],
		   });
}

void sim_change(struct sim_world *w, size_t server, size_t prefix, bool out, bool forced)
{
	struct sim_server *s = &w->servers[server];

	sim_assert_change(w, server, prefix, out, forced);
	s->out[prefix] = out;
	if (out)
		w->outcome.n_sheds++;
	else
		w->outcome.n_restores++;
	w->outcome.n_forced += !out && forced;
	w->outcome.n_late_changes += w->now_us > (int64_t)(w->params.duration_s * SIM_SECOND / 2);
	sim_route(w, server, prefix, !out && !s->left[prefix]);
}

/* ---- loads ---- */

static double sim_weight(const struct sim_world *w, size_t server, size_t prefix)
{
	return w->params.tiers && (prefix + server) % 3 == 0 ? 1 : 0;
}

static void sim_spread_prefix(struct sim_world *w, size_t first, size_t prefix)
{
	size_t end = first + w->params.site;
	double best = 2, sum = 0, demand;

	for (size_t i = first; i < end; i++) {
		if (w->servers[i].route[prefix] && sim_is_alive(w, i))
			best = fmin(best, sim_weight(w, i, prefix));
	}
	for (size_t i = first; i < end; i++) {
		if (w->servers[i].route[prefix] && sim_is_alive(w, i) &&
			sim_weight(w, i, prefix) == best)
			sum += w->servers[i].spread[prefix];
	}
	demand = w->demand[first / w->params.site * w->params.n_prefixes + prefix] * w->factor *
		 w->prefix_factor[prefix];
	for (size_t i = first; i < end; i++) {
		struct sim_server *s = &w->servers[i];
		bool takes =
			s->route[prefix] && sim_is_alive(w, i) && sim_weight(w, i, prefix) == best;

		s->carried[prefix] = takes ? demand * s->spread[prefix] / sum : 0;
		s->load += s->carried[prefix];
	}
}

static void sim_spread(struct sim_world *w)
{
	for (size_t i = 0; i < w->n; i++)
		w->servers[i].load = w->servers[i].background;
	for (size_t first = 0; first < w->n; first += w->params.site) {
		for (size_t v = 0; v < w->params.n_prefixes; v++)
			sim_spread_prefix(w, first, v);
	}
}

/* What the server's own signals say: a 6 s average with noise. */
static void sim_take_signals(struct sim_world *w, struct sim_server *s)
{
	double a = s->measured ? 1 - exp(-0.5 / 6) : 1;

	for (size_t v = 0; v < w->params.n_prefixes; v++) {
		double x = s->carried[v] * (1 + sim_gauss(w, 0.03));

		s->prefix_told[v] += a * (fmax(x, 0) - s->prefix_told[v]);
	}
	s->told += a * (s->load * (1 + sim_gauss(w, 0.02)) - s->told);
	s->measured = true;
	if (w->params.random_load) {
		if (sim_uniform(w, 0, 1) < 0.02) {
			s->fake = sim_random(w) % 2 ? 0.3 : 0.95;
			w->servers[sim_random(w) % w->n].fake = s->fake; /* often two at once */
		}
		s->told = s->fake * s->capacity;
		for (size_t v = 0; v < w->params.n_prefixes; v++)
			s->prefix_told[v] = s->told * 0.05;
	}
}

/* ---- faults ---- */

static void sim_schedule_tick(struct sim_world *w, struct sim_server *s, int64_t at_us)
{
	s->tick_at = at_us;
	sim_schedule(w, (struct sim_event){.at_us = at_us,
				.kind = SIM_EVENT_TICK,
				.server = (size_t)(s - w->servers)});
}

/* Who is dead already has been so since its first death. */
static void sim_kill(struct sim_world *w, struct sim_server *s, double for_s)
{
	if (w->now_us >= s->dead_until)
		s->died_at = w->now_us;
	s->dead_until = w->now_us + (int64_t)(for_s * SIM_SECOND);
	s->was_dead = true;
	for (size_t v = 0; v < w->params.n_prefixes; v++) {
		s->out[v] = false;
		s->left[v] = false;
		s->route_serial[v]++;
	}
}

/* The agent alone: BIRD keeps what was true until the next agent undoes it. */
static void sim_kill_agent(struct sim_world *w, struct sim_server *s, double for_s)
{
	s->frozen_until = w->now_us + (int64_t)(for_s * SIM_SECOND);
	s->was_dead = true;
	/* also a frozen one, whose next tick lies further off */
	sim_schedule_tick(w, s, s->frozen_until);
}

static void sim_fault(struct sim_world *w)
{
	struct sim_server *s = &w->servers[sim_random(w) % w->n];
	int64_t until = w->now_us + (int64_t)(sim_uniform(w, 5, 60) * SIM_SECOND);
	double kind = sim_uniform(w, 0, 1);

	if (kind < 0.3) {
		int64_t thaw = w->now_us + (int64_t)(sim_uniform(w, 2, 60) * SIM_SECOND);

		/* who is frozen for longer stays so: its next tick is no sooner */
		s->frozen_until = thaw > s->frozen_until ? thaw : s->frozen_until;
	} else if (kind < 0.45) {
		sim_kill(w, s, sim_uniform(w, 5, 90));
	} else if (kind < 0.65) {
		sim_kill_agent(w, s, sim_uniform(w, 0.2, 8));
	} else {
		if (kind < 0.9)
			s->cut_to_until = until;
		if (kind > 0.75)
			s->cut_from_until = until;
	}
	if (w->params.health) {
		struct sim_server *t = &w->servers[sim_random(w) % w->n];
		size_t v = sim_random(w) % w->params.n_prefixes;

		t->sick[v] = sim_random(w) % 2;
	}
}

static void sim_restart(struct sim_world *w, size_t server)
{
	struct sim_server *s = &w->servers[server];

	s->was_dead = false;
	s->boot++;
	s->measured = false;
	s->n_changed = 0; /* an agent that starts anew knows nothing of its budget */
	for (size_t v = 0; v < w->params.n_prefixes; v++) {
		if (s->out[v] || s->left[v] || !s->route[v])
			sim_route(w, server, v, true);
		s->out[v] = false;
		s->left[v] = false;
	}
	s->is_over = s->is_under = s->is_top = false;
	s->want = 0;
	sim_agent_start(w, server);
}

/* ---- a server's tick ---- */

static void sim_tick(struct sim_world *w, size_t server)
{
	struct sim_server *s = &w->servers[server];
	int64_t again_at = w->now_us + TICK_US;

	s->ran_at = w->now_us;
	sim_schedule_tick(w, s, s->frozen_until > again_at ? s->frozen_until : again_at);
	if (!sim_is_alive(w, server) || w->now_us < s->frozen_until)
		return;
	if (s->was_dead)
		sim_restart(w, server);
	sim_take_signals(w, s);
	sim_agent_facts(w, server);
	if (w->params.rule == SIM_RULE_GRANT)
		sim_agent_decide(w, server);
	else if (w->params.rule != SIM_RULE_NONE)
		sim_rule_decide(w, server);
}

static void sim_route_arrives(struct sim_world *w, const struct sim_event *e)
{
	struct sim_server *s = &w->servers[e->server];

	if (s->route_serial[e->prefix] == e->route_serial)
		s->route[e->prefix] = e->on;
}

static void sim_happen(struct sim_world *w, const struct sim_event *e)
{
	struct sim_server *s = &w->servers[e->server];
	struct sim_event later = *e;

	switch (e->kind) {
	case SIM_EVENT_TICK:
		if (e->at_us == s->tick_at) /* else it was put off, or brought forward */
			sim_tick(w, e->server);
		break;
	case SIM_EVENT_POLL:
		later.at_us = w->now_us + (int64_t)(sim_uniform(w, 0.9, 1.1) * SIM_SECOND);
		sim_schedule(w, later);
		if (sim_is_alive(w, e->server) && w->now_us >= s->frozen_until && !s->was_dead)
			sim_poll(w, e->server);
		break;
	case SIM_EVENT_MESSAGE:
		if (w->now_us < s->frozen_until && !s->was_dead && sim_is_alive(w, e->server)) {
			later.at_us = s->frozen_until + 1000; /* it waits in the socket */
			sim_schedule(w, later);
			break;
		}
		if (sim_is_alive(w, e->server) && !s->was_dead)
			sim_deliver(w, e->message);
		sim_message_free(e->message);
		break;
	case SIM_EVENT_ROUTE:
		sim_route_arrives(w, e);
		break;
	}
}

/* ---- a run ---- */

void sim_params_default(struct sim_params *ret)
{
	*ret = (struct sim_params){
		.rule = SIM_RULE_GRANT,
		.n_servers = 8,
		.site = 8,
		.n_prefixes = 16,
		.floor = 2,
		.total = 0.62,
		.noise = 0.1,
		.delay_s = 0.2,
		.duration_s = 1800,
		.step_s = 0.1,
		.settings = shed_settings_default(),
	};
	ret->settings.enabled = true;
}

static void sim_demands(struct sim_world *w)
{
	const struct sim_params *p = &w->params;
	size_t n_sites = w->n / p->site;

	for (size_t g = 0; g < n_sites; g++) {
		double sum = 0, z[SIM_PREFIXES_MAX];

		for (size_t v = 0; v < p->n_prefixes; v++) {
			z[v] = p->seed < SIM_SHARES && p->n_prefixes == 16 && g == 0
				       ? sim_shares[p->seed][v]
				       : pow(sim_uniform(w, 1e-9, 1), -1 / 1.6);
			sum += z[v];
		}
		for (size_t v = 0; v < p->n_prefixes; v++)
			w->demand[g * p->n_prefixes + v] =
				z[v] / sum * p->total * 100 * (double)p->site;
	}
}

static void *sim_array(size_t n, size_t size)
{
	void *array = calloc(n, size);

	assert(array);
	return array;
}

static void sim_server_init(struct sim_world *w, size_t server)
{
	struct sim_server *s = &w->servers[server];
	size_t n = w->params.n_prefixes;

	s->capacity = s->capacity0 = 100;
	s->background = 5;
	s->fake = 0.3;
	s->boot = 1;
	s->died_at = -1;
	s->skew = 1 + sim_uniform(w, -0.01, 0.01);
	s->offset_us = (int64_t)sim_uniform(w, 100 * SIM_SECOND, 1000 * SIM_SECOND);
	s->prefix_told = sim_array(n, sizeof(double));
	s->carried = sim_array(n, sizeof(double));
	s->spread = sim_array(n, sizeof(double));
	s->out = sim_array(n, sizeof(bool));
	s->route = sim_array(n, sizeof(bool));
	s->sick = sim_array(n, sizeof(bool));
	s->left = sim_array(n, sizeof(bool));
	s->route_serial = sim_array(n, sizeof(uint64_t));
	s->out_since = sim_array(n, sizeof(int64_t));
	s->out_load = sim_array(n, sizeof(double));
	s->out_order = sim_array(n, sizeof(uint32_t));
	for (size_t v = 0; v < n; v++) {
		s->route[v] = true;
		s->spread[v] = 1 + sim_uniform(w, -w->params.noise, w->params.noise);
	}
	sim_agent_start(w, server);
	sim_schedule_tick(w, s, (int64_t)sim_uniform(w, 0, TICK_US));
	sim_schedule(w, (struct sim_event){.at_us = (int64_t)sim_uniform(w, 0, SIM_SECOND),
				.kind = SIM_EVENT_POLL,
				.server = server});
}

static void sim_server_done(struct sim_server *s)
{
	shed_free(s->shed);
	free(s->prefix_told);
	free(s->carried);
	free(s->spread);
	free(s->out);
	free(s->route);
	free(s->sick);
	free(s->left);
	free(s->route_serial);
	free(s->out_since);
	free(s->out_load);
	free(s->out_order);
}

static void sim_init(struct sim_world *w)
{
	const struct sim_params *p = &w->params;

	assert(p->n_prefixes <= SIM_PREFIXES_MAX && p->n_servers % p->site == 0);
	w->random = p->seed * 0x9e3779b97f4a7c15ull + 0x1234567;
	for (int i = 0; i < 8; i++)
		sim_random(w);
	w->n = p->n_servers;
	w->factor = 1;
	w->demand = sim_array(w->n / p->site * p->n_prefixes, sizeof(double));
	w->prefix_factor = sim_array(p->n_prefixes, sizeof(double));
	w->servers = sim_array(w->n, sizeof(*w->servers));
	for (size_t v = 0; v < p->n_prefixes; v++)
		w->prefix_factor[v] = 1;
	sim_demands(w);
	for (size_t i = 0; i < w->n; i++)
		sim_server_init(w, i);
}

static void sim_done(struct sim_world *w)
{
	for (size_t i = 0; i < w->n_heap; i++) {
		if (w->heap[i].kind == SIM_EVENT_MESSAGE)
			sim_message_free(w->heap[i].message);
	}
	for (size_t i = 0; i < w->n; i++)
		sim_server_done(&w->servers[i]);
	free(w->servers);
	free(w->demand);
	free(w->prefix_factor);
	free(w->heap);
}

struct sim_outcome sim_run(const struct sim_params *params, struct sim_plot *plot)
{
	struct sim_world w = {.params = *params, .plot = plot};
	int64_t step_us = (int64_t)(params->step_s * SIM_SECOND);
	int64_t end_us = (int64_t)(params->duration_s * SIM_SECOND);

	sim_init(&w);
	for (int64_t t = 0; t < end_us; t += step_us) {
		w.now_us = t;
		if (params->chaos_s > 0 && sim_uniform(&w, 0, 1) < params->step_s / params->chaos_s)
			sim_fault(&w);
		if (params->events)
			params->events(&w, (double)t / SIM_SECOND);
		sim_spread(&w);
		while (w.n_heap > 0 && w.heap[0].at_us < t + step_us) {
			struct sim_event e = sim_next_event(&w);

			w.now_us = e.at_us > t ? e.at_us : t;
			sim_happen(&w, &e);
		}
		sim_measure(&w, params->step_s);
		if (plot)
			sim_plot_sample(plot, &w);
	}
	sim_done(&w);
	return w.outcome;
}
