/*
 * The network between agents: each message is delayed by an exponential time, may be lost or cut
 * off in one direction, and may overtake another. A report is asked for and answered; a grant is
 * posted and answered; a DELETE is not answered.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/shed_private.h"
#include "tests/sim/sim.h"

void sim_message_free(struct sim_message *m)
{
	free(m->prefixes);
	free(m);
}

static void sim_send(struct sim_world *w, struct sim_message message)
{
	const struct sim_server *from = &w->servers[message.from], *to = &w->servers[message.to];
	double delay_s = -log(sim_uniform(w, 1e-12, 1)) * w->params.delay_s;
	struct sim_message *m;

	w->outcome.n_messages++;
	if (sim_uniform(w, 0, 1) < w->params.loss || w->now_us < from->cut_from_until ||
		w->now_us < to->cut_to_until) {
		free(message.prefixes);
		return;
	}
	m = malloc(sizeof(*m));
	assert(m);
	*m = message;
	m->boot = from->boot;
	sim_schedule(w, (struct sim_event){
				.at_us = w->now_us + (int64_t)(delay_s * SIM_SECOND) + 500,
				.kind = SIM_EVENT_MESSAGE,
				.server = message.to,
				.message = m,
			});
}

/* How `server` counts its neighbours: those of its site without itself. */
static size_t sim_neighbour_index(const struct sim_world *w, size_t server, size_t other)
{
	size_t i = other - sim_site_first(w, server);

	return other > server ? i - 1 : i;
}

static size_t sim_neighbour_server(const struct sim_world *w, size_t server, size_t index)
{
	size_t other = sim_site_first(w, server) + index;

	return other >= server ? other + 1 : other;
}

void sim_poll(struct sim_world *w, size_t server)
{
	for (size_t j = 0; j + 1 < w->params.site; j++)
		sim_send(w, (struct sim_message){
				    .kind = SIM_MSG_ASK_REPORT,
				    .from = server,
				    .to = sim_neighbour_server(w, server, j),
				    .asked = sim_clock(w, &w->servers[server]),
			    });
}

void sim_send_calls(struct sim_world *w, size_t server)
{
	struct sim_server *s = &w->servers[server];
	struct shed_call call;

	while (shed_next_call(s->shed, &call, sim_clock(w, s)))
		sim_send(w, (struct sim_message){
				    .kind = call.give_back ? SIM_MSG_DELETE : SIM_MSG_POST,
				    .from = server,
				    .to = sim_neighbour_server(w, server, call.neighbour),
				    .call = call,
			    });
}

static void sim_answer_report(struct sim_world *w, const struct sim_message *m)
{
	struct sim_server *s = &w->servers[m->to];
	struct sim_message reply = {.kind = SIM_MSG_REPORT, .from = m->to, .to = m->from};

	reply.asked = m->asked;
	reply.prefixes = calloc(w->params.n_prefixes, sizeof(*reply.prefixes));
	assert(reply.prefixes);
	shed_report_own(s->shed, &reply.report, reply.prefixes, sim_clock(w, s));
	reply.report.boot = s->boot;
	if (w->params.rule != SIM_RULE_GRANT)
		reply.report.want = s->want;
	for (size_t v = 0; v < w->params.n_prefixes; v++) {
		if (!sim_announces(w, m->to, v))
			reply.prefixes[v].state = SHED_STATE_OUT;
	}
	sim_send(w, reply);
}

static struct shed_request sim_request(const struct sim_world *w, const struct sim_message *m)
{
	return (struct shed_request){
		.neighbour = sim_neighbour_index(w, m->to, m->from),
		.boot = m->boot,
		.prefix = m->call.prefix,
		.share = m->call.share,
		.purpose = m->call.purpose,
		.request = m->call.request,
	};
}

static struct shed_answer sim_grant(
	struct sim_world *w, size_t server, const struct shed_request *request, struct monotime now)
{
	struct shed *s = w->servers[server].shed;
	uint64_t before = shed_reserved(s, now);
	struct shed_answer answer = shed_grant(s, request, now);

	if (answer.refused == SHED_REFUSAL_NONE)
		sim_assert_promise(w, server, request->prefix, before);
	return answer;
}

void sim_deliver(struct sim_world *w, struct sim_message *m)
{
	struct sim_server *s = &w->servers[m->to];
	struct monotime now = sim_clock(w, s);
	struct shed_request request = sim_request(w, m);
	size_t j = sim_neighbour_index(w, m->to, m->from);
	struct shed_answer answer;

	switch (m->kind) {
	case SIM_MSG_ASK_REPORT:
		sim_answer_report(w, m);
		break;
	case SIM_MSG_REPORT:
		m->report.prefixes = m->prefixes;
		shed_report(s->shed, j, &m->report, m->asked, now);
		break;
	case SIM_MSG_POST:
		sim_agent_facts(w, m->to);
		answer = sim_grant(w, m->to, &request, now);
		sim_send(w, (struct sim_message){
				    .kind = SIM_MSG_ANSWER,
				    .from = m->to,
				    .to = m->from,
				    .call = m->call,
				    .answer = answer,
			    });
		break;
	case SIM_MSG_ANSWER:
		m->call.neighbour = j;
		shed_answered(s->shed, &m->call, &m->answer, now);
		sim_agent_decide(w, m->to);
		break;
	case SIM_MSG_DELETE:
		shed_give_back(s->shed, &request, now);
		break;
	}
}
