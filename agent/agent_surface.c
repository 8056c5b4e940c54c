/* What the status socket shows of the agent, and the changes that come in by it. */
#include "agent/agent_private.h"
#include "agent/health.h"
#include "agent/status/explain.h"

static void agent_check_view(void *userdata, size_t service, size_t check, struct run_view *ret)
{
	const struct agent *a = userdata;

	checks_view(a->checks, service, check, ret);
}

static size_t agent_check_durations(
	void *userdata, size_t service, size_t check, uint32_t ret_us[CHECK_HISTORY_LENGTH])
{
	const struct agent *a = userdata;

	return checks_durations(a->checks, service, check, ret_us);
}

static bool agent_repair(void *userdata, size_t service, struct repair_view *ret)
{
	const struct agent *a = userdata;

	return repairs_view(a->repairs, service, ret);
}

static bool agent_shed(void *userdata, size_t service, size_t prefix, struct shed_prefix *ret)
{
	const struct agent *a = userdata;

	return shedding_prefix(a->shedding, service, prefix, ret);
}

static bool agent_promise(
	void *userdata, size_t service, size_t prefix, size_t nth, struct shed_promise *ret)
{
	const struct agent *a = userdata;

	return shedding_promise(a->shedding, service, prefix, nth, ret);
}

static void agent_shed_server(void *userdata, struct shed_server *ret)
{
	const struct agent *a = userdata;

	shedding_server(a->shedding, ret);
}

static bool agent_address(void *userdata, size_t service, size_t prefix, struct managed_view *ret)
{
	const struct agent *a = userdata;

	return managed_view(a->managed, service, prefix, ret);
}

static struct document_facts agent_facts(struct agent *a)
{
	return (struct document_facts){
		.config = a->config,
		.engine = a->engine,
		.apply = a->apply,
		.check_reason = agent_check_reason,
		.check_view = agent_check_view,
		.check_durations = agent_check_durations,
		.repair = agent_repair,
		.address = agent_address,
		.addresses = managed_counts(a->managed),
		.hooks = hooks_results(a->hooks),
		.words = control_words(a->control),
		.neighbours = shedding_neighbours(a->shedding),
		.shed = agent_shed,
		.promise = agent_promise,
		.shed_server = agent_shed_server,
		.load = a->load,
		.userdata = a,
		.ready = a->ready,
		.stopping = a->stopping,
		.config_error = a->config_error,
		.state_error = control_state_error(a->control),
		.config_loaded = a->config_loaded,
		.generation = a->generation,
		.revision = a->revision,
	};
}

static int agent_status(void *userdata, uint64_t budget_us, char **ret_text, size_t *ret_length)
{
	struct agent *a = userdata;
	const struct document_facts facts = agent_facts(a);

	return document_render_step(a->status, &facts, budget_us, ret_text, ret_length);
}

static char *agent_explain(void *userdata, const char *name, bool *ret_found)
{
	const struct document_facts facts = agent_facts(userdata);

	return document_explain(&facts, name, ret_found);
}

const char *agent_weight_waits(void *userdata)
{
	const struct agent *a = userdata;
	const struct apply_status *s = apply_status(a->apply);

	if (s->link != APPLY_LINK_UP)
		return "BIRD is away";
	if (s->alarm[0])
		return "BIRD refuses its configuration";
	return s->on_trial ? "BIRD's configuration is on trial (`configure timeout`)" : NULL;
}

const char *agent_busy(void *userdata)
{
	const struct agent *a = userdata;

	if (a->stopping)
		return "the agent is stopping";
	return a->ready ? NULL : "the agent has just started; ask again in a second";
}

static char *agent_command(void *userdata, const char *command, const char *body, size_t n,
	const struct caller *caller, unsigned *ret_status)
{
	struct agent *a = userdata;

	return control_command(a->control, command, body, n, caller, ret_status);
}

static void agent_metrics(void *userdata, struct metrics_facts *ret)
{
	struct agent *a = userdata;

	*ret = (struct metrics_facts){
		.document = agent_facts(a),
		.tally = a->tally,
		.turns = &loop_view(a->loop)->turns,
		.lateness = &loop_view(a->loop)->lateness,
	};
}

static bool agent_health(void *userdata, char text[HTTP_HEALTH_MAX])
{
	const struct agent *a = userdata;

	return health_tell(a->checks, a->config, a->ready, a->stopping, text, HTTP_HEALTH_MAX);
}

const struct http_ops agent_http_ops = {
	.status = agent_status,
	.explain = agent_explain,
	.metrics = agent_metrics,
	.health = agent_health,
	.command = agent_command,
	.commands = control_commands,
};
