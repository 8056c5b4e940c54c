/*
 * How a service comes, stays away and goes: slow_start, hold_down and leave, and what of them
 * stands in `defaults`. Each is an object that a service may have or not; none has any effect where
 * it is not written.
 */
#include "agent/config/load.h"
#include "agent/config/settings.h"
#include "agent/config/tables.h"
#include "agent/core/damping.h"

#define SECOND_MS 1000
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define FIGURE_MAX 1000000

static const struct schema_key slow_start_keys[] = {
	{.name = "from",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct config_slow_start, from),
		.maximum = 65535,
		.fallback = "1000",
		.meaning = "the weight at which a prefix comes"},
	{.name = "steps",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct config_slow_start, steps),
		.minimum = 1,
		.maximum = 100,
		.fallback = "5",
		.meaning = "changes of weight on the way to its own"},
	{.name = "for",
		.kind = SCHEMA_DURATION,
		SCHEMA_FIELD(struct config_slow_start, for_ms),
		.minimum = 100,
		.maximum = 24 * HOUR_MS,
		.fallback = "\"1m\"",
		.meaning = "how long the way takes"},
	SCHEMA_END,
};
const struct schema tables_slow_start = {
	.size = sizeof(struct config_slow_start), .keys = slow_start_keys};

static const struct schema_key hold_down_keys[] = {
	{.name = "penalty",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct config_hold_down, penalty),
		.minimum = 1,
		.maximum = FIGURE_MAX,
		.fallback = "1000",
		.meaning = "what each flap adds to the service's figure"},
	{.name = "suppress",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct config_hold_down, suppress),
		.minimum = 1,
		.maximum = FIGURE_MAX,
		.fallback = "2000",
		.meaning = "the figure from which on the service is held down"},
	{.name = "reuse",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct config_hold_down, reuse),
		.minimum = 1,
		.maximum = FIGURE_MAX,
		.fallback = "750",
		.meaning = "the figure to which it must have decayed to come back"},
	{.name = "half_life",
		.kind = SCHEMA_DURATION,
		SCHEMA_FIELD(struct config_hold_down, half_life_ms),
		.minimum = 100,
		.maximum = 24 * HOUR_MS,
		.fallback = "\"5m\"",
		.meaning = "the time in which the figure halves"},
	{.name = "max",
		.kind = SCHEMA_DURATION,
		SCHEMA_FIELD(struct config_hold_down, max_ms),
		.minimum = 100,
		.maximum = 24 * HOUR_MS,
		.fallback = "\"20m\"",
		.meaning = "the longest it is held down after its last flap"},
	SCHEMA_END,
};
const struct schema tables_hold_down = {
	.size = sizeof(struct config_hold_down), .keys = hold_down_keys};

static const struct schema_key leave_keys[] = {
	{.name = "graceful",
		.kind = SCHEMA_DURATION,
		SCHEMA_FIELD(struct config_leave, graceful_ms),
		.maximum = HOUR_MS,
		.fallback = "\"10s\"",
		.meaning = "how long a prefix that leaves is announced with GRACEFUL_SHUTDOWN"},
	{.name = "weight",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct config_leave, weight),
		.maximum = 65535,
		.fallback = "65535",
		.meaning = "its weight meanwhile"},
	SCHEMA_END,
};
const struct schema tables_leave = {.size = sizeof(struct config_leave), .keys = leave_keys};

static const struct schema_key start_keys[] = {
	{.name = "start_spread",
		.kind = SCHEMA_DURATION,
		SCHEMA_FIELD(struct config_start, spread_ms),
		.maximum = HOUR_MS,
		.fallback = "\"0ms\"",
		.meaning = "a random part of it delays the first announcements after a start"},
	SCHEMA_END,
};
const struct schema tables_start = {.size = sizeof(struct config_start), .keys = start_keys};

/* An object that may be missing, into new memory; NULL where it is or is wrong as a whole. */
static void *load_optional(
	struct load *l, const struct path *path, json_t *value, const struct schema *schema)
{
	void *settings;

	if (!value || !settings_is_object(&l->report, path, value, "an object"))
		return NULL;
	settings = calloc(1, schema->size);
	if (!settings) {
		(void)report_no_memory(&l->report);
		return NULL;
	}
	settings_check_keys(&l->report, path, value, schema, NULL);
	settings_load(&l->report, path, schema, value, NULL, settings);
	return settings;
}

/* A hold-down that ends before it begins, or that no figure reaches, would silently do nothing. */
static void check_hold_down(
	struct load *l, const struct path *path, json_t *value, const struct config_hold_down *h)
{
	const struct path reuse = {.parent = path, .key = "reuse"};
	const struct path max = {.parent = path, .key = "max"};
	const struct damping_settings settings = {
		.penalty = (uint32_t)h->penalty,
		.suppress = (uint32_t)h->suppress,
		.reuse = (uint32_t)h->reuse,
		.half_life_ms = h->half_life_ms,
		.max_ms = h->max_ms,
	};

	if (h->reuse >= h->suppress)
		report_value(&l->report, &reuse, json_object_get(value, "reuse"),
			"less than suppress, %lld", (long long)h->suppress);
	else if (damping_ceiling(&settings) < settings.suppress)
		report_value(&l->report, &max, json_object_get(value, "max"),
			"time for the figure to decay from suppress, %lld, to reuse, %lld, or "
			"nothing is ever held down: more, or a shorter half_life",
			(long long)h->suppress, (long long)h->reuse);
}

void manners_load(
	struct load *l, const struct path *service, json_t *object, struct config_service *ret)
{
	const struct path slow_start = {.parent = service, .key = "slow_start"};
	const struct path hold_down = {.parent = service, .key = "hold_down"};
	const struct path leave = {.parent = service, .key = "leave"};
	json_t *value = json_object_get(object, "hold_down");
	size_t before;

	ret->slow_start = load_optional(
		l, &slow_start, json_object_get(object, "slow_start"), &tables_slow_start);
	ret->leave = load_optional(l, &leave, json_object_get(object, "leave"), &tables_leave);
	before = report_count(&l->report);
	ret->hold_down = load_optional(l, &hold_down, value, &tables_hold_down);
	if (ret->hold_down && report_count(&l->report) == before)
		check_hold_down(l, &hold_down, value, ret->hold_down);
}

/* Nobody could ever promise anything: what is unhealthy would stay for good. */
void manners_check_floors(struct load *l, json_t *services)
{
	const struct path all = {.key = "services"};

	for (size_t i = 0; !l->config->neighbours && i < l->config->n_services; i++) {
		const char *name = l->config->services[i].name;
		const struct path service = {.parent = &all, .key = name};
		const struct path floor = {.parent = &service, .key = "floor"};

		if (l->config->services[i].floor > 0)
			report_value(&l->report, &floor,
				json_object_get(json_object_get(services, name), "floor"),
				"0, since no `neighbours` are configured who could promise to "
				"stay");
	}
}

/* Takes the key's null out again where there is nothing. */
static bool print_optional(
	json_t *object, const char *key, const struct schema *schema, const void *settings)
{
	if (!settings)
		return json_object_del(object, key) == 0;
	return json_object_set_new(object, key, settings_print(schema, settings)) == 0;
}

bool manners_print(const struct config_service *s, json_t *object)
{
	return print_optional(object, "slow_start", &tables_slow_start, s->slow_start) &&
	       print_optional(object, "hold_down", &tables_hold_down, s->hold_down) &&
	       print_optional(object, "leave", &tables_leave, s->leave);
}

void manners_done(struct config_service *s)
{
	free(s->slow_start);
	free(s->hold_down);
	free(s->leave);
}
