/*
 * The engine's view of a configuration: what core/ wants to know of it, in core's own words, since
 * core includes nothing of config/. The engine copies what it keeps, so a view lives for one call.
 */
#include "agent/view.h"

#include <errno.h>

#include "agent/base/clock.h"

#define VIEW_COALESCE_MS 20 /* announcements that recover together go together */

struct view {
	struct engine_config config;
	struct engine_service_config *services;
	struct engine_check_config *checks;
	struct engine_prefix_config *prefixes;
	char (*names)[PREFIX_TEXT_MAX];
};

static void view_done(struct view *v)
{
	free(v->services);
	free(v->checks);
	free(v->prefixes);
	free(v->names);
}

static struct service_require view_require(const struct config_service *service)
{
	struct service_require require = {.number = service->require_number};

	switch (service->require) {
	case CONFIG_REQUIRE_ALL:
		require.kind = SERVICE_REQUIRE_ALL;
		break;
	case CONFIG_REQUIRE_ANY:
		require.kind = SERVICE_REQUIRE_ANY;
		break;
	case CONFIG_REQUIRE_NUMBER:
		require.kind = SERVICE_REQUIRE_NUMBER;
		break;
	}
	return require;
}

/* How it comes, stays away and goes. */
static void view_manners(const struct config_service *from, struct engine_service_config *to)
{
	if (from->slow_start)
		to->slow_start = (struct ramp_settings){
			.from = (uint32_t)from->slow_start->from,
			.steps = (unsigned)from->slow_start->steps,
			.for_ms = from->slow_start->for_ms,
		};
	if (from->hold_down)
		to->hold_down = (struct damping_settings){
			.penalty = (uint32_t)from->hold_down->penalty,
			.suppress = (uint32_t)from->hold_down->suppress,
			.reuse = (uint32_t)from->hold_down->reuse,
			.half_life_ms = from->hold_down->half_life_ms,
			.max_ms = from->hold_down->max_ms,
		};
	if (from->leave)
		to->leave = (struct leave_settings){
			.graceful_ms = from->leave->graceful_ms,
			.has_weight = true,
			.weight = (uint32_t)from->leave->weight,
		};
}

static void view_service(struct view *v, const struct config_service *from,
	struct engine_service_config *to, size_t n_checks, size_t n_prefixes)
{
	*to = (struct engine_service_config){
		.name = from->name,
		.require = view_require(from),
		.keep_on_stop = from->on_stop == CONFIG_ON_STOP_KEEP,
		.floor = (unsigned)from->floor,
		.checks = v->checks + n_checks,
		.n_checks = from->n_checks,
		.prefixes = v->prefixes + n_prefixes,
		.n_prefixes = from->n_prefixes,
	};
	for (size_t i = 0; i < from->n_checks; i++)
		v->checks[n_checks + i] = (struct engine_check_config){
			.name = from->checks[i].name,
			.identity = from->checks[i].identity,
			.settings =
				{
					.interval_ms = from->checks[i].interval_ms,
					.fast_interval_ms = from->checks[i].fast_interval_ms,
					.rise = from->checks[i].rise,
					.fall = from->checks[i].fall,
					.first_rise = from->checks[i].first_rise,
					.shared = from->checks[i].shared,
				},
		};
	for (size_t i = 0; i < from->n_prefixes; i++)
		v->prefixes[n_prefixes + i] = (struct engine_prefix_config){
			.name = prefix_format(&from->prefixes[i].prefix, v->names[n_prefixes + i]),
			.weight = from->prefixes[i].weight,
			.address_check = from->prefixes[i].address_check,
			.last_resort = from->prefixes[i].last_resort,
			.weight_of_word = from->prefixes[i].weight_of_word,
		};
	view_manners(from, to);
}

static int view_make(const struct config *config, bool promised, struct view *ret)
{
	struct view v = {0};
	size_t n_checks = 0, n_prefixes = 0;

	for (size_t s = 0; s < config->n_services; s++) {
		n_checks += config->services[s].n_checks;
		n_prefixes += config->services[s].n_prefixes;
	}
	v.services = calloc(config->n_services + 1, sizeof(*v.services));
	v.checks = calloc(n_checks + 1, sizeof(*v.checks));
	v.prefixes = calloc(n_prefixes + 1, sizeof(*v.prefixes));
	v.names = calloc(n_prefixes + 1, sizeof(*v.names));
	if (!v.services || !v.checks || !v.prefixes || !v.names) {
		view_done(&v);
		return -ENOMEM;
	}
	n_checks = n_prefixes = 0;
	for (size_t s = 0; s < config->n_services; s++) {
		view_service(&v, &config->services[s], &v.services[s], n_checks, n_prefixes);
		if (!promised) /* what is unhealthy would stay for good */
			v.services[s].floor = 0;
		n_checks += config->services[s].n_checks;
		n_prefixes += config->services[s].n_prefixes;
	}
	v.config = (struct engine_config){
		.coalesce_ms = VIEW_COALESCE_MS,
		.services = v.services,
		.n_services = config->n_services,
	};
	*ret = v;
	return 0;
}

int view_prepare(const struct config *config, bool promised, struct engine_change **ret)
{
	_cleanup_(view_done) struct view view = {0};
	int r;

	r = view_make(config, promised, &view);
	if (r < 0)
		return r;
	return engine_prepare(ret, &view.config, clock_monotime());
}
