/*
 * A kind of check that watches a unit has a key `unit` of text in its table; nothing else is known
 * of it here. Lists are short, and this runs once in a boot: each name is compared with those
 * before it.
 */
#include "agent/watched.h"

#include <string.h>

#include "probes/probe.h"

static const char *unit_of_check(const struct config_check *check)
{
	for (const struct schema_key *key = check->type->settings->keys; key->name; key++)
		if (key->kind == SCHEMA_STRING && strcmp(key->name, "unit") == 0)
			return *(char *const *)((const char *)check->settings + key->offset);
	return NULL;
}

/* The i-th unit that a service names, NULL where that is none; its checks' first, then the one that
 * it restarts. */
static const char *unit_of_service(const struct config_service *service, size_t i)
{
	if (i < service->n_checks)
		return unit_of_check(&service->checks[i]);
	return service->restart ? service->restart->unit : NULL;
}

static bool is_named_before(const struct config *config, size_t service, size_t i, const char *unit)
{
	for (size_t s = 0; s <= service; s++)
		for (size_t k = 0; k <= config->services[s].n_checks; k++) {
			const char *other = unit_of_service(&config->services[s], k);

			if (s == service && k == i)
				return false;
			if (other && strcmp(other, unit) == 0)
				return true;
		}
	return false;
}

void watched_print(const struct config *config, FILE *out)
{
	for (size_t s = 0; s < config->n_services; s++)
		for (size_t i = 0; i <= config->services[s].n_checks; i++) {
			const char *unit = unit_of_service(&config->services[s], i);

			if (unit && !is_named_before(config, s, i, unit))
				(void)fprintf(out, "%s\n", unit);
		}
}
