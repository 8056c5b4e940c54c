/* The hooks of a service: commands that are run when something changes. */
#include <string.h>

#include "agent/config/load.h"
#include "agent/config/settings.h"
#include "agent/config/tables.h"

static bool is_event(const char *word)
{
	for (size_t i = 0; tables_hook_events[i]; i++)
		if (strcmp(word, tables_hook_events[i]) == 0)
			return true;
	return false;
}

static void check_command(
	struct load *l, const struct path *hook, json_t *value, const struct config_hook *h)
{
	const struct path path = {.parent = hook, .key = "command"};
	const struct path first = {.parent = &path, .index = 0};

	if (h->command.n > 0 && h->command.items[0][0] != '/')
		report_value(&l->report, &first, json_array_get(value, 0),
			"the absolute path of a program (there is no shell)");
}

static void check_events(
	struct load *l, const struct path *hook, json_t *value, const struct config_hook *h)
{
	const struct path path = {.parent = hook, .key = "on"};

	for (size_t i = 0; value && i < h->on.n; i++) {
		const struct path item = {.parent = &path, .index = i};

		if (!is_event(h->on.items[i]))
			report_value(&l->report, &item, json_array_get(value, i),
				"\"service\", \"prefix\" or \"check\"");
	}
}

static void load_hook(
	struct load *l, const struct path *path, json_t *object, struct config_hook *ret)
{
	load_name(l, path, &ret->name);
	if (!settings_is_object(&l->report, path, object, "an object with a command"))
		return;
	settings_check_keys(&l->report, path, object, &tables_hook, NULL);
	settings_load(&l->report, path, &tables_hook, object, NULL, ret);
	check_command(l, path, json_object_get(object, "command"), ret);
	check_events(l, path, json_object_get(object, "on"), ret);
}

void hooks_load(
	struct load *l, const struct path *parent, json_t *value, struct config_service *service)
{
	const struct path path = {.parent = parent, .key = "hooks"};
	const char *key;
	json_t *object;

	if (!value || !settings_is_object(&l->report, &path, value, "an object, names to hooks"))
		return;
	if (json_object_size(value) > CONFIG_HOOKS_MAX) {
		report_value(&l->report, &path, value, "at most %d hooks", CONFIG_HOOKS_MAX);
		return;
	}
	service->hooks = calloc(json_object_size(value) + 1, sizeof(*service->hooks));
	if (!service->hooks) {
		(void)report_no_memory(&l->report);
		return;
	}
	json_object_foreach (value, key, object) {
		const struct path here = {.parent = &path, .key = key};

		load_hook(l, &here, object, &service->hooks[service->n_hooks++]);
	}
}

json_t *hooks_print(const struct config_service *service)
{
	json_t *object = json_object();
	bool ok = object != NULL;

	for (size_t i = 0; ok && i < service->n_hooks; i++)
		ok = json_object_set_new(object, service->hooks[i].name,
			     settings_print(&tables_hook, &service->hooks[i])) == 0;
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}

void hooks_release(struct config_service *service)
{
	for (size_t i = 0; i < service->n_hooks; i++) {
		free(service->hooks[i].name);
		settings_done(&tables_hook, &service->hooks[i]);
	}
	free(service->hooks);
}
