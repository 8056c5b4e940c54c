/* What shedding asks of the agent, and what it makes the engine want. */
#include <stdio.h>
#include <string.h>

#include "agent/agent_private.h"
#include "agent/base/clock.h"
#include "agent/bird/apply_explain.h"
#include "agent/system/log.h"

/* An operator's word about exactly this prefix. */
static enum shed_word agent_shed_word(const struct agent *a, const struct prefix *prefix)
{
	const struct words *words = control_words(a->control);
	char name[PREFIX_TEXT_MAX];

	(void)prefix_format(prefix, name);
	if (words_find(words, WORD_UNSHED, name))
		return SHED_WORD_UNSHED;
	return words_find(words, WORD_SHED, name) ? SHED_WORD_SHED : SHED_WORD_NONE;
}

const char *agent_cannot_shed(void *userdata)
{
	const struct agent *a = userdata;

	if (!a->config->neighbours)
		return "nothing is shed without `neighbours`: only they can promise to take it; "
		       "`redshankctl drain` withdraws whatever they say";
	if (!shedding_neighbours(a->shedding))
		return "`neighbours` is new, which takes a restart of the agent";
	return a->config->shed ? NULL : "nothing is shed without the section `shed`";
}

/* BIRD announces it, and somebody hears it. Where none of the sessions is BGP's, as with OSPF,
 * there is no more to see than that BIRD has it. */
static bool agent_is_confirmed(const struct agent *a, size_t service, size_t prefix)
{
	const struct apply_observed *seen = apply_observed(a->apply, service, prefix);

	return seen->announced == APPLY_YES &&
	       (seen->exported != 0 || apply_status(a->apply)->sessions == 0);
}

static void agent_shed_facts(
	void *userdata, size_t service, size_t prefix, struct shedding_prefix *ret)
{
	struct agent *a = userdata;
	const struct engine_prefix *wanted = engine_prefix(a->engine, service, prefix);
	const struct config_prefix *config = &a->config->services[service].prefixes[prefix];

	*ret = (struct shedding_prefix){
		.facts =
			{
				.announced = wanted->wanted == PREFIX_WANTED_ANNOUNCE &&
					     agent_is_confirmed(a, service, prefix),
				.healthy = wanted->sound,
				.leaving = wanted->graceful ||
					   wanted->reason == PREFIX_REASON_DRAINED ||
					   wanted->reason == PREFIX_REASON_STOPPING,
				.held = engine_is_frozen(a->engine) ||
					wanted->reason == PREFIX_REASON_FORCED,
			},
		.asks_permit = wanted->asks_permit,
		.word = agent_shed_word(a, &config->prefix),
		.weight = config->weight,
	};
	/* Others reckon with who is preferred now: a ramp's step, a weight that BIRD refused. */
	if (ret->facts.announced)
		(void)apply_weight(a->apply, service, prefix, &ret->weight);
}

static void agent_shed_own(void *userdata, struct shed_own *ret, struct message_report *report)
{
	struct agent *a = userdata;
	struct load_signal signal;
	struct load_view view;

	load_view(a->load, &view);
	*ret = (struct shed_own){.valid = view.valid, .capacity = view.capacity, .load = view.load};
	for (size_t i = 0; report && load_signal(a->load, i, &signal); i++) {
		struct message_signal *told = &report->signals[report->n_signals];

		if (!signal.valid || report->n_signals == MESSAGE_SIGNALS_MAX)
			continue;
		told->bp = signal.bp < MESSAGE_BP_MAX ? signal.bp : MESSAGE_BP_MAX;
		(void)snprintf(told->name, sizeof(told->name), "%s", signal.name);
		report->n_signals++;
	}
}

static bool agent_shed_load(void *userdata, size_t service, size_t prefix, uint64_t *ret)
{
	const struct agent *a = userdata;

	return load_prefix(a->load, service, prefix, ret);
}

static size_t agent_next_hops(void *userdata, const struct address **ret)
{
	const struct agent *a = userdata;

	return apply_next_hops(a->apply, ret);
}

static enum apply_known agent_route_from(
	void *userdata, size_t service, size_t prefix, const struct address *next_hop)
{
	const struct agent *a = userdata;

	return apply_route_from(a->apply, service, prefix, next_hop);
}

static void agent_look(void *userdata, size_t service, size_t prefix)
{
	struct agent *a = userdata;

	apply_look(a->apply, service, prefix);
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

	if (agent_sheds_differ(a)) /* before anything goes: a death in between leaves nothing out */
		agent_write_deadman(a);
	agent_tell_sheds(a);
	(void)agent_decide(a);
	agent_tell_shed_events(a);
}

static void agent_on_permit(void *userdata, size_t service, size_t prefix)
{
	struct agent *a = userdata;

	engine_permit(a->engine, service, prefix);
}

void agent_configure_shedding(struct agent *a)
{
	int r = load_configure(a->load);

	if (r < 0)
		log_error("load: %s; nothing is measured until the next reload", strerror(-r));
	shedding_configure(a->shedding);
}

int agent_new_shedding(struct agent *a, struct error *ret_error)
{
	const struct shedding_ops ops = {
		.prefix = agent_shed_facts,
		.own = agent_shed_own,
		.load = agent_shed_load,
		.next_hops = agent_next_hops,
		.route = agent_route_from,
		.look = agent_look,
		.changed = agent_on_shed,
		.permit = agent_on_permit,
		.grant = agent_on_grant,
		.userdata = a,
	};

	int r = load_new(&a->load, a->event, (const struct config *const *)&a->config);

	if (r < 0)
		return error_set_errno(ret_error, -r, "load");
	return shedding_new(
		&a->shedding, a->event, (const struct config *const *)&a->config, &ops, ret_error);
}
