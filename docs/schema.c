/*
 * Prints the JSON Schema (draft 7, which editors know best) of redshank.json, from the same tables
 * that load it: agent/config/tables.c and each kind of check's own. Run by the build; what it
 * prints is installed as /usr/share/redshank/redshank.schema.json.
 *
 * It describes the merged whole: a file of conf.d may lack what is required here. What no table
 * says is not in it, either: sums over the whole (a prefix stands once), keys that go together, the
 * bounds of a duration, the text of a URL. `redshankd --check` has the last word;
 * tests/config/schema.py holds the two together.
 *
 * Whatever is marked special in a table has its function here, found by the table and the name.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "agent/config/tables.h"
#include "probes/probe.h"

#define STRING_MAX 4096 /* where a table says nothing less */
#define INTEGER_LIST_MAX 4096

#define NAME_PATTERN "^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$"
#define NODE_PATTERN "^[A-Za-z0-9_][A-Za-z0-9._-]{0,252}$"
#define PREFIX_PATTERN "^[0-9A-Fa-f:.]+/[0-9]{1,3}$"
#define UNIT_PATTERN                                                                           \
	"^[A-Za-z0-9:_.\\\\@-]+\\.(service|socket|target|mount|timer|path|slice|scope|device|" \
	"swap|automount)$"

static const struct {
	const char *(*form)(const char *text);
	const char *pattern;
} forms[] = {
	{schema_form_absolute_path, "^/"},
	{schema_form_socket_path, "^/.{0,106}$"},
	{schema_form_unit_name, UNIT_PATTERN},
	{tables_form_listen, "^([0-9.]+|\\[[0-9A-Fa-f:.]+\\]):[1-9][0-9]{0,4}$"},
	{tables_form_member, "^(bird|([0-9.]+|\\[[0-9A-Fa-f:.]+\\]):[1-9][0-9]{0,4})$"},
	{tables_form_node, NODE_PATTERN},
	{tables_form_name, NAME_PATTERN},
};

/* There is nobody to whom a build could be handed back half done. */
static json_t *made(json_t *value)
{
	if (!value) {
		(void)fputs("redshank-schema: no memory, or wrong JSON in a table\n", stderr);
		exit(1);
	}
	return value;
}

static void set(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, made(value)) < 0)
		(void)made(NULL);
}

static json_t *ref(const char *name)
{
	return made(json_pack("{s:s+}", "$ref", "#/definitions/", name));
}

static json_t *object_of(const struct schema *schema);

/* ---- one key ---- */

static json_t *string(const struct schema_key *key)
{
	json_t *to = made(json_pack("{s:s, s:I, s:I}", "type", "string", "minLength", key->minimum,
		"maxLength", key->maximum ? key->maximum : STRING_MAX));

	for (size_t i = 0; key->form && i < ELEMENTSOF(forms); i++)
		if (forms[i].form == key->form)
			set(to, "pattern", json_string(forms[i].pattern));
	return to;
}

static json_t *string_list(const struct schema_key *key)
{
	const struct schema_key item = {.form = key->form};

	return made(json_pack("{s:s, s:I, s:I, s:o}", "type", "array", "minItems", key->minimum,
		"maxItems", key->maximum ? key->maximum : STRING_MAX, "items", string(&item)));
}

static json_t *string_map(const struct schema_key *key)
{
	const struct schema_key item = {.form = key->form};

	return made(json_pack("{s:s, s:I, s:I, s:o}", "type", "object", "minProperties",
		key->minimum, "maxProperties", key->maximum ? key->maximum : STRING_MAX,
		"additionalProperties", string(&item)));
}

static json_t *integer(const struct schema_key *key)
{
	return made(json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", key->minimum,
		"maximum", key->maximum));
}

static json_t *words(const struct schema_key *key)
{
	json_t *list = made(json_array());

	for (size_t i = 0; key->words[i]; i++)
		if (json_array_append_new(list, made(json_string(key->words[i]))) < 0)
			(void)made(NULL);
	return made(json_pack("{s:o}", "enum", list));
}

static json_t *special(const char *name);

static json_t *type_of(const struct schema_key *key)
{
	switch (key->kind) {
	case SCHEMA_STRING:
		return string(key);
	case SCHEMA_INTEGER:
		return integer(key);
	case SCHEMA_BOOLEAN:
		return made(json_pack("{s:s}", "type", "boolean"));
	case SCHEMA_DURATION:
		return ref("duration");
	case SCHEMA_ENUM:
		return words(key);
	case SCHEMA_ADDRESS:
		return ref("address");
	case SCHEMA_STRING_LIST:
		return string_list(key);
	case SCHEMA_STRING_MAP:
		return string_map(key);
	case SCHEMA_INTEGER_LIST:
		return made(json_pack("{s:s, s:i, s:i, s:o}", "type", "array", "minItems", 1,
			"maxItems", INTEGER_LIST_MAX, "items", integer(key)));
	case SCHEMA_OBJECT:
		return object_of(key->object);
	case SCHEMA_SPECIAL:
		return special(key->name);
	}
	assert(!"a kind of key");
	return NULL;
}

/* Draft 7 looks at nothing beside a $ref, so what is said about one stands around it. */
static json_t *described(const struct schema_key *key)
{
	json_t *to = type_of(key);

	if (json_object_get(to, "$ref"))
		to = made(json_pack("{s:[o]}", "allOf", to));
	if (key->meaning)
		set(to, "description", json_string(key->meaning));
	if (key->fallback)
		set(to, "default", json_loads(key->fallback, JSON_DECODE_ANY, NULL));
	return to;
}

/* ---- objects ---- */

static void add_keys(json_t *object, const struct schema *schema)
{
	json_t *properties = json_object_get(object, "properties");
	json_t *required = json_object_get(object, "required");

	for (const struct schema_key *key = schema->keys; key->name; key++) {
		if (!json_object_get(properties, key->name))
			set(properties, key->name, described(key));
		if (key->required && json_array_append_new(required, json_string(key->name)) < 0)
			(void)made(NULL);
	}
}

static json_t *empty_object(void)
{
	return made(json_pack("{s:s, s:{}, s:[], s:b}", "type", "object", "properties", "required",
		"additionalProperties", 0));
}

static json_t *object_of(const struct schema *schema)
{
	json_t *object = empty_object();

	add_keys(object, schema);
	return object;
}

/* Any keys of a form, all of one type. */
static json_t *map_of(const char *key_pattern, int minimum, json_t *type)
{
	return made(json_pack("{s:s, s:{s:s}, s:i, s:o}", "type", "object", "propertyNames",
		"pattern", key_pattern, "minProperties", minimum, "additionalProperties", type));
}

static json_t *communities(const char *pattern)
{
	return made(json_pack("{s:s, s:i, s:b, s:{s:s, s:s}}", "type", "array", "maxItems",
		CONFIG_COMMUNITIES_MAX, "uniqueItems", 1, "items", "type", "string", "pattern",
		pattern));
}

static json_t *weight_or_prefix(void)
{
	return made(json_pack("{s:[o, o]}", "anyOf", ref("weight"), object_of(&tables_prefix)));
}

static json_t *require(void)
{
	return made(json_pack("{s:[{s:[s, s]}, {s:s, s:i, s:i}], s:s}", "anyOf", "enum", "all",
		"any", "type", "integer", "minimum", 1, "maximum", CONFIG_CHECKS_MAX, "default",
		"all"));
}

static json_t *defaults(void)
{
	json_t *object = object_of(&tables_timing);

	add_keys(object, &tables_start);
	return object;
}

/* `type` chooses one of these. */
static json_t *one_of(const struct tables_type *types)
{
	json_t *choices = made(json_array());

	for (; types->name; types++) {
		json_t *object = object_of(&types->schema);

		set(json_object_get(object, "properties"), "type",
			json_pack("{s:s}", "const", types->name));
		if (json_array_append_new(
			    json_object_get(object, "required"), made(json_string("type"))) < 0 ||
			json_array_append_new(choices, object) < 0)
			(void)made(NULL);
	}
	return made(json_pack("{s:o}", "oneOf", choices));
}

static json_t *load(void)
{
	json_t *object = empty_object();
	json_t *properties = json_object_get(object, "properties");

	set(properties, "signals", map_of(NAME_PATTERN, 1, one_of(tables_signals)));
	set(properties, "prefixes", one_of(tables_countings));
	add_keys(object, &tables_load);
	return object;
}

static json_t *special(const char *name)
{
	if (strcmp(name, "defaults") == 0)
		return defaults();
	if (strcmp(name, "services") == 0)
		return map_of(NAME_PATTERN, 1, object_of(&tables_service));
	if (strcmp(name, "weights") == 0)
		return map_of(NODE_PATTERN, 0, map_of(PREFIX_PATTERN, 0, ref("weight")));
	if (strcmp(name, "neighbours") == 0)
		return object_of(&tables_neighbours);
	if (strcmp(name, "shed") == 0)
		return object_of(&tables_shed);
	if (strcmp(name, "load") == 0)
		return load();
	if (strcmp(name, "prefixes") == 0)
		return map_of(PREFIX_PATTERN, 1, weight_or_prefix());
	if (strcmp(name, "require") == 0)
		return require();
	if (strcmp(name, "checks") == 0)
		return map_of(NAME_PATTERN, 0, ref("check"));
	if (strcmp(name, "restart") == 0)
		return object_of(&tables_restart);
	if (strcmp(name, "hooks") == 0)
		return map_of(NAME_PATTERN, 0, object_of(&tables_hook));
	if (strcmp(name, "slow_start") == 0)
		return object_of(&tables_slow_start);
	if (strcmp(name, "hold_down") == 0)
		return object_of(&tables_hold_down);
	if (strcmp(name, "leave") == 0)
		return object_of(&tables_leave);
	if (strcmp(name, "manage_addresses") == 0)
		return made(json_pack(
			"{s:[{s:s}, o]}", "anyOf", "type", "boolean", object_of(&tables_managed)));
	if (strcmp(name, "communities") == 0)
		return communities("^[0-9]{1,5}:[0-9]{1,5}$");
	if (strcmp(name, "large_communities") == 0)
		return communities("^[0-9]{1,10}:[0-9]{1,10}:[0-9]{1,10}$");
	(void)fprintf(stderr, "redshank-schema: no schema is known for the key %s\n", name);
	exit(1);
}

/* ---- checks: `type` chooses the table ---- */

static json_t *check_of(const struct probe_type *type)
{
	json_t *object = empty_object();

	set(json_object_get(object, "properties"), "type",
		json_pack("{s:s, s:s}", "const", type->name, "description", "the kind of check"));
	add_keys(object, type->settings);
	add_keys(object, &tables_check);
	return object;
}

static json_t *check(json_t *definitions)
{
	json_t *types = made(json_array()), *choices = made(json_array());

	for (const struct probe_type *const *t = probe_types; *t; t++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "check-%s", (*t)->name);
		set(definitions, name, check_of(*t));
		if (json_array_append_new(types, made(json_string((*t)->name))) < 0 ||
			json_array_append_new(
				choices, made(json_pack("{s:{s:{s:{s:s}}, s:[s]}, s:o}", "if",
						 "properties", "type", "const", (*t)->name,
						 "required", "type", "then", ref(name)))) < 0)
			(void)made(NULL);
	}
	return made(json_pack("{s:s, s:[s], s:{s:{s:o}}, s:o}", "type", "object", "required",
		"type", "properties", "type", "enum", types, "allOf", choices));
}

int main(void)
{
	json_t *definitions = made(json_object()), *top = object_of(&tables_top);
	int r;

	set(definitions, "duration",
		json_pack("{s:s, s:s}", "type", "string", "pattern", "^[0-9]{1,19}(ms|s|m|h)$"));
	set(definitions, "address",
		json_pack("{s:s, s:s}", "type", "string", "pattern", "^[0-9A-Fa-f:.]{2,45}$"));
	set(definitions, "weight",
		json_pack("{s:s, s:i, s:i}", "type", "integer", "minimum", 0, "maximum", 65535));
	set(definitions, "check", check(definitions));
	set(top, "$schema", json_string("http://json-schema.org/draft-07/schema#"));
	set(top, "title", json_string("The configuration of redshankd, see redshank.json(5)"));
	set(top, "definitions", definitions);
	r = json_dumpf(top, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
	json_decref(top);
	return r < 0 || putchar('\n') == EOF || fflush(stdout) == EOF ? 1 : 0;
}
