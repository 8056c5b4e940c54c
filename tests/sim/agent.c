/*
 * The agent's own decision on a simulated server: the facts that an agent would tell it, and what
 * an agent would do with what it says.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

static uint64_t thousandths(double amount)
{
	return amount > 0 ? (uint64_t)(amount * 1000) : 0;
}

struct names { /* made once: "s0", "s1", ...; "p0", ... */
	char server[1000][8], prefix[SIM_PREFIXES_MAX][8];
};

static void number(char *text, char first, size_t n)
{
	size_t digits = n >= 100 ? 3 : n >= 10 ? 2 : 1;

	text[0] = first;
	for (size_t i = digits; i > 0; i--, n /= 10)
		text[i] = (char)('0' + n % 10);
	text[digits + 1] = '\0';
}

static const struct names *names(void)
{
	static struct names all;

	if (all.server[0][0] == '\0') {
		for (size_t i = 0; i < 1000; i++)
			number(all.server[i], 's', i);
		for (size_t v = 0; v < SIM_PREFIXES_MAX; v++)
			number(all.prefix[v], 'p', v);
	}
	return &all;
}

void sim_agent_start(struct sim_world *w, size_t server)
{
	struct sim_server *s = &w->servers[server];
	size_t first = sim_site_first(w, server), n = 0;
	struct monotime now = sim_clock(w, s);
	struct monotime started = w->now_us == 0 ? MONOTIME_ZERO : now;
	struct shed_prefix_config prefixes[SIM_PREFIXES_MAX];
	const char *neighbours[1000];

	for (size_t v = 0; v < w->params.n_prefixes; v++)
		prefixes[v] = (struct shed_prefix_config){
			.name = names()->prefix[v],
			.weight = w->params.tiers && (v + server) % 3 == 0,
			.floor = w->params.floor,
			.floor_health = w->params.health,
		};
	for (size_t j = first; j < first + w->params.site; j++) {
		if (j != server)
			neighbours[n++] = names()->server[j];
	}
	shed_free(s->shed);
	s->shed = shed_new(started);
	assert(s->shed);
	if (shed_configure(s->shed,
		    &(struct shed_config){
			    .node = names()->server[server],
			    .settings = w->params.settings,
			    .prefixes = prefixes,
			    .n_prefixes = w->params.n_prefixes,
			    .neighbours = neighbours,
			    .n_neighbours = n,
		    },
		    now) < 0)
		abort();
	s->why = SHED_WHY_NEW;
}

void sim_agent_facts(struct sim_world *w, size_t server)
{
	struct sim_server *s = &w->servers[server];
	struct monotime now = sim_clock(w, s);

	shed_own(s->shed,
		&(struct shed_own){
			.valid = s->measured,
			.capacity = thousandths(s->capacity),
			.load = thousandths(s->told),
		},
		now);
	for (size_t v = 0; v < w->params.n_prefixes; v++) {
		shed_prefix_facts(s->shed, v,
			&(struct shed_prefix_facts){
				.announced = sim_announces(w, server, v),
				.healthy = !s->sick[v],
				.counted = s->measured,
				.load = thousandths(s->prefix_told[v]),
			});
		if (w->params.health)
			shed_leave(s->shed, v, s->sick[v], now);
	}
}

static void sim_agent_leave(struct sim_world *w, size_t server, size_t prefix)
{
	struct sim_server *s = &w->servers[server];
	bool left = shed_permit(s->shed, prefix) == SHED_PERMIT_GRANTED;

	if (left == s->left[prefix])
		return;
	w->outcome.n_leaves += left;
	s->left[prefix] = left;
	s->route[prefix] = sim_announces(w, server, prefix);
	s->route_serial[prefix]++;
}

static void sim_agent_trace(struct sim_world *w, size_t server, struct monotime now)
{
	struct sim_server *s = &w->servers[server];
	struct shed_server seen;

	shed_server(s->shed, &seen, now);
	if (seen.why == s->why)
		return;
	s->why = seen.why;
	printf("%8.1f s  server %zu  %5.1f %%  spare %5.1f  want %u  out %u  %s",
		(double)w->now_us / SIM_SECOND, server, seen.utilisation_bp / 100.0,
		(double)seen.spare / 1000, seen.want, seen.n_out, shed_why_name(seen.why));
	for (size_t v = 0; v < w->params.n_prefixes; v++) {
		struct shed_prefix p;

		shed_prefix(s->shed, v, &p, now);
		if (p.why != seen.why)
			printf("  %zu:%s", v, shed_why_name(p.why));
		if (p.last_at.us + 1000 > now.us)
			printf("(%s)", shed_why_name(p.last));
	}
	printf("\n");
}

void sim_agent_decide(struct sim_world *w, size_t server)
{
	struct sim_server *s = &w->servers[server];
	struct monotime now = sim_clock(w, s);

	shed_decide(s->shed, now, sim_random(w));
	for (size_t v = 0; v < w->params.n_prefixes; v++) {
		struct shed_prefix p;

		shed_prefix(s->shed, v, &p, now);
		if (w->params.health)
			sim_agent_leave(w, server, v);
		if (p.out != s->out[v])
			sim_change(w, server, v, p.out, !p.out && p.last != SHED_WHY_RELEASED);
	}
	if (w->params.trace)
		sim_agent_trace(w, server, now);
	sim_send_calls(w, server);
}
