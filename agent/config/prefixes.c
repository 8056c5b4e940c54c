/* A service's prefixes: a weight, or an object with more. */
#include <stdio.h>
#include <string.h>

#include "agent/config/load.h"
#include "agent/config/settings.h"
#include "agent/config/tables.h"

/* A kind of community: so many numbers with ':' between them, each up to `maximum`. */
struct community_kind {
	const char *key;
	size_t n_parts;
	uint64_t maximum;
	const char *expected;
};

static const struct community_kind plain_kind = {
	"communities", 2, 65535, "\"ASN:VALUE\", each from 0 to 65535, such as \"64501:53\""};
static const struct community_kind large_kind = {"large_communities", 3, UINT32_MAX,
	"\"ASN:VALUE:VALUE\", each from 0 to 4294967295, such as \"64501:1:53\""};

/* One number, without sign or blanks, up to `end`. */
static bool parse_part(const char *text, const char *end, uint64_t maximum, uint32_t *ret)
{
	uint64_t n = 0;

	if (text == end || end - text > 10)
		return false;
	for (; text < end; text++) {
		if (*text < '0' || *text > '9')
			return false;
		n = n * 10 + (uint64_t)(*text - '0');
	}
	*ret = (uint32_t)n;
	return n <= maximum;
}

static bool parse_community(
	const struct community_kind *kind, const char *text, struct config_community *ret)
{
	struct config_community c = {0};

	for (size_t i = 0; i < kind->n_parts; i++) {
		const char *end = strchrnul(text, ':');
		bool last = i + 1 == kind->n_parts;

		if (last != (*end == '\0') || !parse_part(text, end, kind->maximum, &c.part[i]))
			return false;
		text = last ? end : end + 1;
	}
	*ret = c;
	return true;
}

/* What the person probably needs to know about "65551:100". */
static const char *community_hint(const struct community_kind *kind, const char *text)
{
	struct config_community c;

	if (kind == &plain_kind && parse_community(&large_kind, text, &c))
		return "; this is one of large_communities";
	if (kind == &large_kind && parse_community(&plain_kind, text, &c))
		return "; this is one of communities";
	for (size_t colons = 0; kind == &plain_kind && *text; text++) {
		colons += *text == ':';
		if (*text != ':' && (*text < '0' || *text > '9'))
			return colons ? ""
				      : "; well-known ones as numbers too: no-export is "
					"\"65535:65281\"";
	}
	return kind == &plain_kind ? "; bigger numbers go into large_communities" : "";
}

static bool load_community(struct load *l, const struct path *path, json_t *item,
	const struct community_kind *kind, const struct config_community *others, size_t n,
	struct config_community *ret)
{
	if (!json_is_string(item)) {
		report_value(&l->report, path, item, "a string: %s", kind->expected);
		return false;
	}
	if (!parse_community(kind, json_string_value(item), ret)) {
		report_value(&l->report, path, item, "%s%s", kind->expected,
			community_hint(kind, json_string_value(item)));
		return false;
	}
	for (size_t i = 0; i < n; i++)
		if (memcmp(&others[i], ret, sizeof(*ret)) == 0) {
			report_value(&l->report, path, item, "each community once");
			return false;
		}
	return true;
}

static void load_communities(struct load *l, const struct path *parent, json_t *object,
	const struct community_kind *kind, struct config_community **ret, size_t *ret_n)
{
	const struct path path = {.parent = parent, .key = kind->key};
	json_t *list = json_object_get(object, kind->key), *item;
	size_t i;

	if (!list)
		return;
	if (!json_is_array(list)) {
		report_value(&l->report, &path, list, "a list of strings: %s", kind->expected);
		return;
	}
	if (json_array_size(list) > CONFIG_COMMUNITIES_MAX) {
		report_value(&l->report, &path, list, "at most %d communities, not %zu",
			CONFIG_COMMUNITIES_MAX, json_array_size(list));
		return;
	}
	*ret = calloc(json_array_size(list) + 1, sizeof(**ret));
	if (!*ret) {
		(void)report_no_memory(&l->report);
		return;
	}
	json_array_foreach (list, i, item) {
		const struct path here = {.parent = &path, .index = i};

		*ret_n += load_community(l, &here, item, kind, *ret, *ret_n, *ret + *ret_n);
	}
}

/* "192.0.2.53/32": 100 says what "192.0.2.53/32": {"weight": 100} says. */
static void load_weight_alone(
	struct load *l, const struct path *path, json_t *value, struct tables_prefix *settings)
{
	if (json_is_integer(value) && json_integer_value(value) >= 0 &&
		json_integer_value(value) <= 65535)
		settings->weight = json_integer_value(value);
	else
		report_value(&l->report, path, value, "a weight, an integer from 0 to 65535%s",
			json_is_number(value) ? "" : ", or an object");
}

static void load_prefix(struct load *l, const struct path *path, json_t *value,
	const struct config_service *service, struct config_prefix *ret)
{
	json_t *object = json_is_object(value) ? value : NULL;
	struct tables_prefix settings = {0};

	settings_check_keys(&l->report, path, object, &tables_prefix, NULL);
	settings_load(&l->report, path, &tables_prefix, object, NULL, &settings);
	if (!object)
		load_weight_alone(l, path, value, &settings);
	if (!json_object_get(object, "address_check"))
		settings.address_check = service->address_check;
	ret->own_weight = ret->configured_weight = ret->weight = (uint32_t)settings.weight;
	ret->announced_weight = ret->weight;
	ret->prepend = (uint32_t)settings.prepend;
	ret->last_resort = settings.last_resort;
	ret->address_check = settings.address_check;
	load_communities(l, path, object, &plain_kind, &ret->communities, &ret->n_communities);
	load_communities(
		l, path, object, &large_kind, &ret->large_communities, &ret->n_large_communities);
}

void prefixes_load(
	struct load *l, const struct path *parent, json_t *prefixes, struct config_service *service)
{
	const struct path path = {.parent = parent, .key = "prefixes"};
	const char *key;
	json_t *value;

	if (!json_is_object(prefixes) || json_object_size(prefixes) == 0) {
		report_value(&l->report, &path, prefixes,
			"an object with at least one prefix, such as {\"192.0.2.53/32\": 100}");
		return;
	}
	if (json_object_size(prefixes) > CONFIG_PREFIXES_MAX - l->prefixes.n) {
		report_value(&l->report, &path, prefixes, "at most %d prefixes in all services",
			CONFIG_PREFIXES_MAX);
		return;
	}
	service->prefixes = calloc(json_object_size(prefixes), sizeof(*service->prefixes));
	if (!service->prefixes) {
		(void)report_no_memory(&l->report);
		return;
	}
	json_object_foreach (prefixes, key, value) {
		const struct path here = {.parent = &path, .key = key};
		struct config_prefix *prefix = &service->prefixes[service->n_prefixes];
		struct index_entry entry = {.owner = parent->key, .key = key, .target = prefix};

		service->n_prefixes++;
		load_prefix(l, &here, value, service, prefix);
		if (!index_parse_key(&l->report, &here, &entry.prefix))
			continue;
		prefix->prefix = entry.prefix;
		(void)index_add(&l->prefixes, &l->report, &entry);
	}
}

static json_t *print_communities(
	const struct community_kind *kind, const struct config_community *items, size_t n)
{
	json_t *list = json_array();
	bool ok = list != NULL;
	char text[40];

	for (size_t i = 0; ok && i < n; i++) {
		if (kind->n_parts == 2)
			(void)snprintf(
				text, sizeof(text), "%u:%u", items[i].part[0], items[i].part[1]);
		else
			(void)snprintf(text, sizeof(text), "%u:%u:%u", items[i].part[0],
				items[i].part[1], items[i].part[2]);
		ok = json_array_append_new(list, json_string(text)) == 0;
	}
	if (!ok) {
		json_decref(list);
		return NULL;
	}
	return list;
}

json_t *prefixes_print(const struct config_prefix *prefix)
{
	const struct tables_prefix settings = {.weight = prefix->own_weight,
		.prepend = prefix->prepend,
		.last_resort = prefix->last_resort,
		.address_check = prefix->address_check};
	json_t *object = settings_print(&tables_prefix, &settings);

	if (object &&
		json_object_set_new(object, plain_kind.key,
			print_communities(
				&plain_kind, prefix->communities, prefix->n_communities)) == 0 &&
		json_object_set_new(object, large_kind.key,
			print_communities(&large_kind, prefix->large_communities,
				prefix->n_large_communities)) == 0)
		return object;
	json_decref(object);
	return NULL;
}
