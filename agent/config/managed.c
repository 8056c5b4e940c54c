/*
 * `manage_addresses` of a service: off, true (on lo), or an object with the interface.
 *
 * Only whole addresses can be managed: which of the addresses of a bigger prefix was meant nobody
 * could say. And what is managed is always checked, since the announcement has to wait for it.
 */
#include <string.h>

#include "agent/config/load.h"
#include "agent/config/settings.h"
#include "agent/config/tables.h"

struct managed {
	char *interface;
};

/* As the kernel names interfaces: dev_valid_name(), net/core/dev.c. */
const char *tables_form_interface(const char *text)
{
	if (strlen(text) < 16 && strcmp(text, ".") != 0 && strcmp(text, "..") != 0 &&
		text[strcspn(text, "/: \t\n\v\f\r")] == '\0')
		return NULL;
	return "the name of a network interface";
}

static const struct schema_key managed_keys[] = {
	{.name = "interface",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct managed, interface),
		.minimum = 1,
		.maximum = 15,
		.fallback = "\"lo\"",
		.form = tables_form_interface,
		.meaning = "the network interface that gets the addresses"},
	SCHEMA_END,
};
const struct schema tables_managed = {.size = sizeof(struct managed), .keys = managed_keys};

/* After the prefixes. */
static void check_prefixes(
	struct load *l, const struct path *service, json_t *object, const struct config_service *s)
{
	const struct path prefixes = {.parent = service, .key = "prefixes"};
	json_t *values = json_object_get(object, "prefixes"), *value;
	const char *key;
	size_t i = 0;

	json_object_foreach (values, key, value) {
		const struct path here = {.parent = &prefixes, .key = key};
		const struct config_prefix *p = i < s->n_prefixes ? &s->prefixes[i++] : NULL;
		char shown[VALUE_TEXT_MAX];

		if (!p || !p->prefix.address.family)
			continue;
		if (!prefix_is_host(&p->prefix))
			report_got(&l->report, &here, text_format(key, shown),
				"a single address, /32 or /128, since manage_addresses cannot know "
				"which address of a prefix is meant");
		else if (!p->address_check)
			report_got(&l->report, &here, "address_check false",
				"true, since a prefix whose address is managed is announced when "
				"the address is there");
	}
}

void managed_load(
	struct load *l, const struct path *service, json_t *object, struct config_service *ret)
{
	const struct path path = {.parent = service, .key = "manage_addresses"};
	json_t *value = json_object_get(object, "manage_addresses");
	struct managed settings = {0};

	if (!value || json_is_false(value))
		return;
	if (json_is_true(value))
		value = NULL;
	else if (!settings_is_object(
			 &l->report, &path, value, "true, false or an object with the interface"))
		return;
	settings_check_keys(&l->report, &path, value, &tables_managed, NULL);
	settings_load(&l->report, &path, &tables_managed, value, NULL, &settings);
	ret->managed_interface = settings.interface;
	check_prefixes(l, service, object, ret);
}

bool managed_print(const struct config_service *s, json_t *object)
{
	const struct managed settings = {.interface = s->managed_interface};

	if (!s->managed_interface)
		return json_object_del(object, "manage_addresses") == 0;
	return json_object_set_new(
		       object, "manage_addresses", settings_print(&tables_managed, &settings)) == 0;
}
