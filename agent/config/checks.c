/*
 * A service's checks. The kind of check brings the table of its own keys (probes/probe.h); those
 * that every check has are here. A misspelt key or type is an error, never a check that is silently
 * off.
 */
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/config/load.h"
#include "agent/config/nearest.h"
#include "agent/config/settings.h"
#include "agent/config/tables.h"

static const struct probe_type *find_type(const struct load *l, const char *name)
{
	for (const struct probe_type *const *t = l->types; *t; t++)
		if (strcmp((*t)->name, name) == 0)
			return *t;
	return NULL;
}

/* Where there is no type: the key that was meant to be it, or NULL. */
static const char *misspelt_type(json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach (object, key, value) {
		struct nearest nearest;

		nearest_init(&nearest, key);
		nearest_offer(&nearest, "type");
		if (nearest.best && json_is_string(value))
			return key;
	}
	return NULL;
}

static void report_type(struct load *l, const struct path *path, json_t *object, json_t *value)
{
	const char *name = json_string_value(value), *hint = "";
	_cleanup_buffer_ struct buffer known = {0};
	struct nearest nearest;
	char meant[VALUE_TEXT_MAX + 40] = "", shown[VALUE_TEXT_MAX];
	const char *key = value ? NULL : misspelt_type(object);

	buffer_init(&known, 512);
	nearest_init(&nearest, name ? name : "");
	for (const struct probe_type *const *t = l->types; *t; t++) {
		nearest_offer(&nearest, (*t)->name);
		(void)buffer_printf(&known, "%s\"%s\"", known.length ? ", " : "", (*t)->name);
	}
	if (name && strcmp(name, "address") == 0)
		hint = "; the address of every prefix is checked anyway, unless "
		       "\"address_check\": false stands beside it";
	else if (nearest.best)
		(void)snprintf(meant, sizeof(meant), "; did you mean \"%s\"?", nearest.best);
	if (key)
		(void)snprintf(
			meant, sizeof(meant), "; did you mean it by %s?", text_format(key, shown));
	report_value(&l->report, path, value, "one of %s%s%s", buffer_string(&known), hint, meant);
}

static const struct probe_type *load_type(struct load *l, const struct path *parent, json_t *object)
{
	const struct path path = {.parent = parent, .key = "type"};
	json_t *value = json_object_get(object, "type");
	const struct probe_type *type =
		json_is_string(value) ? find_type(l, json_string_value(value)) : NULL;

	if (!type)
		report_type(l, &path, object, value);
	return type;
}

static bool has_key(const struct schema *schema, const char *name, size_t length)
{
	for (const struct schema_key *key = schema->keys; key->name; key++)
		if (strlen(key->name) == length && strncmp(key->name, name, length) == 0)
			return true;
	return false;
}

/* The type says "KEY: what was expected", or just what was expected. */
static void report_invalid(struct load *l, const struct path *path, json_t *object,
	const struct schema *schema, const char *text)
{
	static const char word[] = "expected ";
	const char *colon = strstr(text, ": ");
	_cleanup_free_ char *key = NULL;
	struct path here = {.parent = path};

	if (colon && has_key(schema, text, (size_t)(colon - text))) {
		key = strndup(text, (size_t)(colon - text));
		if (!key) {
			(void)report_no_memory(&l->report);
			return;
		}
		here.key = key;
		text = colon + 2;
	}
	if (strncmp(text, word, strlen(word)) == 0)
		text += strlen(word);
	if (key)
		report_value(&l->report, &here, json_object_get(object, key), "%s", text);
	else
		report_value(&l->report, path, object, "%s", text);
}

static void load_settings(
	struct load *l, const struct path *path, json_t *object, struct config_check *check)
{
	const struct probe_type *type = check->type;
	size_t before = report_count(&l->report);
	struct error error = {.text = ""};

	check->settings = calloc(1, type->settings->size);
	if (!check->settings) {
		(void)report_no_memory(&l->report);
		return;
	}
	settings_check_keys(&l->report, path, object, &tables_check, type->settings);
	settings_load(&l->report, path, type->settings, object, NULL, check->settings);
	if (report_count(&l->report) == before && l->report.failed == 0 && type->validate &&
		type->validate(check->settings, &error) < 0)
		report_invalid(l, path, object, type->settings, error.text);
}

static void load_check(
	struct load *l, const struct path *path, json_t *object, struct config_check *ret)
{
	struct config_timing timing = {0};

	load_name(l, path, &ret->name);
	if (!settings_is_object(&l->report, path, object,
		    "an object, such as {\"type\": \"process\", \"unit\": \"nsd.service\"}"))
		return;
	ret->type = load_type(l, path, object);
	timing_load(l, path, object, &l->config->defaults, &timing);
	ret->interval_ms = timing.interval_ms;
	ret->fast_interval_ms = timing.fast_interval_ms;
	ret->timeout_ms = timing.timeout_ms;
	ret->rise = (unsigned)timing.rise;
	ret->fall = (unsigned)timing.fall;
	ret->first_rise = (unsigned)timing.first_rise;
	settings_load(&l->report, path, &tables_check_own, object, NULL, &timing);
	ret->shared = timing.shared;
	if (ret->type)
		load_settings(l, path, object, ret);
}

/* Called where the configuration is right as far as this check goes. */
static void fill_identity(struct load *l, struct config_check *check)
{
	json_t *object = checks_print(check);

	if (object)
		check->identity = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	if (!check->identity)
		(void)report_no_memory(&l->report);
}

void checks_load(
	struct load *l, const struct path *parent, json_t *checks, struct config_service *service)
{
	const struct path path = {.parent = parent, .key = "checks"};
	size_t before = report_count(&l->report);
	const char *key;
	json_t *value;

	if (checks && !settings_is_object(&l->report, &path, checks, "an object of checks"))
		return;
	if (json_object_size(checks) == 0) {
		report_warning(&l->report, parent,
			"has no checks: its prefixes are announced whenever their addresses are "
			"here");
		return;
	}
	l->n_checks += json_object_size(checks);
	if (l->n_checks > CONFIG_CHECKS_MAX) {
		report_value(&l->report, &path, checks, "at most %d checks in all services",
			CONFIG_CHECKS_MAX);
		return;
	}
	service->checks = calloc(json_object_size(checks), sizeof(*service->checks));
	if (!service->checks) {
		(void)report_no_memory(&l->report);
		return;
	}
	json_object_foreach (checks, key, value) {
		const struct path here = {.parent = &path, .key = key};

		load_check(l, &here, value, &service->checks[service->n_checks++]);
	}
	for (size_t i = 0; i < service->n_checks; i++)
		if (report_count(&l->report) == before && l->report.failed == 0)
			fill_identity(l, &service->checks[i]);
}

json_t *checks_print(const struct config_check *check)
{
	const struct config_timing timing = {
		.interval_ms = check->interval_ms,
		.fast_interval_ms = check->fast_interval_ms,
		.timeout_ms = check->timeout_ms,
		.rise = check->rise,
		.fall = check->fall,
		.first_rise = check->first_rise,
		.shared = check->shared,
	};
	json_t *object = json_object();
	json_t *common = settings_print(&tables_timing, &timing);
	json_t *shared = settings_print(&tables_check_own, &timing);
	/* Its kind is known where the check was right. */
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	json_t *own = settings_print(check->type->settings, check->settings);
	bool ok = object && common && shared && own &&
		  json_object_set_new(object, "type", json_string(check->type->name)) == 0 &&
		  json_object_update(object, own) == 0 && json_object_update(object, common) == 0 &&
		  json_object_update(object, shared) == 0;

	json_decref(common);
	json_decref(shared);
	json_decref(own);
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}
