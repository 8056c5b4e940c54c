/* The services: each with its prefixes, its checks, and what goes around them. */
#include <inttypes.h>
#include <string.h>

#include "agent/config/load.h"
#include "agent/config/settings.h"
#include "agent/config/tables.h"

static void load_require(struct load *l, const struct path *parent, json_t *service_object,
	struct config_service *service)
{
	const struct path path = {.parent = parent, .key = "require"};
	json_t *value = json_object_get(service_object, "require");
	size_t n_checks = json_object_size(json_object_get(service_object, "checks"));
	const char *word = json_string_value(value);

	service->require = CONFIG_REQUIRE_ALL;
	if (!value || (word && strcmp(word, "all") == 0))
		return;
	if (word && strcmp(word, "any") == 0) {
		service->require = CONFIG_REQUIRE_ANY;
	} else if (json_is_integer(value) && json_integer_value(value) >= 1 &&
		   json_integer_value(value) <= (json_int_t)n_checks) {
		service->require = CONFIG_REQUIRE_NUMBER;
		service->require_number = (unsigned)json_integer_value(value);
	} else if (n_checks < 2) {
		report_value(&l->report, &path, value, "\"all\"%s; there %s",
			n_checks == 1 ? ", \"any\" or 1" : " or \"any\"",
			n_checks == 1 ? "is one check" : "are no checks to count");
	} else {
		report_value(&l->report, &path, value,
			"\"all\", \"any\" or a number from 1 to %zu, the number of checks",
			n_checks);
	}
}

static bool is_check(const struct config_service *service, const char *name)
{
	for (size_t i = 0; i < service->n_checks; i++)
		if (strcmp(service->checks[i].name, name) == 0)
			return true;
	return false;
}

/* The checks of processes, where the file names none. False without memory. */
static bool default_triggers(const struct config_service *service, struct schema_strings *checks)
{
	checks->items = calloc(service->n_checks + 1, sizeof(*checks->items));
	for (size_t i = 0; checks->items && i < service->n_checks; i++) {
		if (!service->checks[i].type ||
			strcmp(service->checks[i].type->name, "process") != 0)
			continue;
		checks->items[checks->n] = strdup(service->checks[i].name);
		if (!checks->items[checks->n])
			return false;
		checks->n++;
	}
	return checks->items != NULL;
}

static void load_triggers(
	struct load *l, const struct path *restart, json_t *value, struct config_service *service)
{
	const struct path path = {.parent = restart, .key = "checks"};
	struct schema_strings *checks = &service->restart->checks;

	for (size_t i = 0; i < checks->n; i++) {
		const struct path item = {.parent = &path, .index = i};

		if (!is_check(service, checks->items[i]))
			report_value(&l->report, &item, json_array_get(value, i),
				"the name of a check of this service");
	}
	if (value)
		return;
	if (!default_triggers(service, checks))
		(void)report_no_memory(&l->report);
	else if (checks->n == 0)
		report_got(&l->report, &path, "nothing",
			"the names of the checks that trigger a restart, since no check of this "
			"service is of type \"process\"");
}

/* After the service's checks. */
static void load_restart(
	struct load *l, const struct path *parent, json_t *value, struct config_service *service)
{
	const struct path path = {.parent = parent, .key = "restart"};

	if (!value || !settings_is_object(&l->report, &path, value, "an object"))
		return;
	service->restart = calloc(1, sizeof(*service->restart));
	if (!service->restart) {
		(void)report_no_memory(&l->report);
		return;
	}
	settings_check_keys(&l->report, &path, value, &tables_restart, NULL);
	settings_load(&l->report, &path, &tables_restart, value, NULL, service->restart);
	load_triggers(l, &path, json_object_get(value, "checks"), service);
}

static void load_service(
	struct load *l, const struct path *path, json_t *object, struct config_service *ret)
{
	load_name(l, path, &ret->name);
	if (!settings_is_object(&l->report, path, object, "an object with prefixes and checks"))
		return;
	settings_check_keys(&l->report, path, object, &tables_service, NULL);
	settings_load(&l->report, path, &tables_service, object, NULL, ret);
	prefixes_load(l, path, json_object_get(object, "prefixes"), ret);
	load_require(l, path, object, ret);
	checks_load(l, path, json_object_get(object, "checks"), ret);
	load_restart(l, path, json_object_get(object, "restart"), ret);
	hooks_load(l, path, json_object_get(object, "hooks"), ret);
	manners_load(l, path, object, ret);
	managed_load(l, path, object, ret);
}

static void report_same_prefix(
	struct load *l, const struct index_entry *first, const struct index_entry *second)
{
	const struct path services = {.key = "services"};
	const struct path owners[2] = {{.parent = &services, .key = first->owner},
		{.parent = &services, .key = second->owner}};
	const struct path lists[2] = {{.parent = &owners[0], .key = "prefixes"},
		{.parent = &owners[1], .key = "prefixes"}};
	const struct path keys[2] = {{.parent = &lists[0], .key = first->key},
		{.parent = &lists[1], .key = second->key}};
	char shown[VALUE_TEXT_MAX], where[PATH_TEXT_MAX];

	report_got(&l->report, &keys[1], text_format(second->key, shown),
		"each prefix in one place only: %s: %s is the same",
		sources_origin(l->report.sources, &keys[0]), path_format(&keys[0], where));
}

/* The later one is reported, beside the first of all that are the same. */
static void report_same_prefixes(struct load *l)
{
	const struct index *ix = &l->prefixes;
	size_t first = 0;

	for (size_t i = 1; i < ix->n; i++) {
		if (prefix_equal(&ix->entries[i].prefix, &ix->entries[first].prefix))
			report_same_prefix(l, &ix->entries[first], &ix->entries[i]);
		else
			first = i;
	}
}

void services_load(struct load *l, json_t *services)
{
	const struct path path = {.key = "services"};
	struct config *c = l->config;
	const char *key;
	json_t *value;

	if (!json_is_object(services) || json_object_size(services) == 0) {
		report_value(&l->report, &path, services, "an object with at least one service");
		return;
	}
	if (json_object_size(services) > CONFIG_SERVICES_MAX) {
		report_value(&l->report, &path, services, "at most %d services, not %zu",
			CONFIG_SERVICES_MAX, json_object_size(services));
		return;
	}
	c->services = calloc(json_object_size(services), sizeof(*c->services));
	if (!c->services) {
		(void)report_no_memory(&l->report);
		return;
	}
	json_object_foreach (services, key, value) {
		const struct path here = {.parent = &path, .key = key};

		load_service(l, &here, value, &c->services[c->n_services++]);
	}
	index_sort(&l->prefixes);
	report_same_prefixes(l);
}
