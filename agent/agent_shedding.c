/* What shedding asks of the agent, and what it makes the engine want. */
#include "agent/agent_private.h"
#include "agent/base/clock.h"
#include "agent/system/log.h"

/* Healthy is what would be announced if nothing were shed. */
static bool agent_is_healthy(const struct engine_prefix *prefix)
{
	switch (prefix->reason) {
	case PREFIX_REASON_HEALTHY:
	case PREFIX_REASON_RAMPING:
		return prefix->wanted == PREFIX_WANTED_ANNOUNCE;
	case PREFIX_REASON_SHED:
		return true;
	case PREFIX_REASON_STOPPING:
	case PREFIX_REASON_DRAINED:
	case PREFIX_REASON_FORCED:
	case PREFIX_REASON_FROZEN:
	case PREFIX_REASON_ADDRESS_MISSING:
	case PREFIX_REASON_UNHEALTHY:
	case PREFIX_REASON_KEPT_BY_FLOOR:
	case PREFIX_REASON_FIRST_ROUND:
	case PREFIX_REASON_HELD_DOWN:
	case PREFIX_REASON_IN_DOUBT:
	case PREFIX_REASON_SHARED_UNHEALTHY:
		break;
	}
	return false;
}

static void agent_shed_facts(
	void *userdata, size_t service, size_t prefix, struct shedding_prefix *ret)
{
	struct agent *a = userdata;
	const struct engine_prefix *wanted = engine_prefix(a->engine, service, prefix);
	const struct config_prefix *config = &a->config->services[service].prefixes[prefix];
	bool confirmed = apply_observed(a->apply, service, prefix)->announced == APPLY_YES;

	*ret = (struct shedding_prefix){
		.facts =
			{
				.announced = wanted->wanted == PREFIX_WANTED_ANNOUNCE && confirmed,
				.healthy = agent_is_healthy(wanted),
				.leaving = wanted->graceful ||
					   wanted->reason == PREFIX_REASON_DRAINED ||
					   wanted->reason == PREFIX_REASON_STOPPING,
				.held = engine_is_frozen(a->engine) ||
					wanted->reason == PREFIX_REASON_FORCED,
			},
		.asks_permit = wanted->asks_permit,
		.weight = config->weight,
	};
}

static void agent_shed_own(void *userdata, struct shed_own *ret, struct message_report *report)
{
	*ret = (struct shed_own){0};
}

static bool agent_shed_load(void *userdata, size_t service, size_t prefix, uint64_t *ret)
{
	return false;
}

void agent_tell_sheds(struct agent *a)
{
	for (size_t s = 0; s < a->config->n_services; s++)
		for (size_t p = 0; p < a->config->services[s].n_prefixes; p++) {
			enum prefix_shed shed = PREFIX_SHED_NONE;
			struct shed_prefix view;

			if (shedding_prefix(a->shedding, s, p, &view) && view.out)
				shed = view.mode == SHED_MODE_DEMOTE ? PREFIX_SHED_DEMOTE
								     : PREFIX_SHED_WITHDRAW;
			engine_shed(a->engine, s, p, shed);
		}
}

static void agent_on_shed(void *userdata)
{
	struct agent *a = userdata;

	agent_tell_sheds(a);
	(void)agent_decide(a);
}

static void agent_on_permit(void *userdata, size_t service, size_t prefix)
{
	struct agent *a = userdata;

	engine_permit(a->engine, service, prefix);
}

int agent_new_shedding(struct agent *a, struct error *ret_error)
{
	const struct shedding_ops ops = {
		.prefix = agent_shed_facts,
		.own = agent_shed_own,
		.load = agent_shed_load,
		.changed = agent_on_shed,
		.permit = agent_on_permit,
		.userdata = a,
	};

	return shedding_new(
		&a->shedding, a->event, (const struct config *const *)&a->config, &ops, ret_error);
}
