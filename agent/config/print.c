/*
 * A struct of settings as JSON, in the order of its table, and its release. What is printed loads
 * again to the same struct: durations in their largest whole unit, addresses in their canonical
 * form, and nothing for what is absent and has no default.
 */
#include <string.h>

#include "agent/base/address.h"
#include "agent/config/duration.h"
#include "agent/config/settings.h"

/* Sets *ret to a new value, or to NULL for what is absent. False without memory. */
static bool print_string(const struct schema_key *key, const char *text, json_t **ret)
{
	/* A string with a default is only absent where it was emptied on purpose. */
	if (!text && !key->fallback) {
		*ret = NULL;
		return true;
	}
	*ret = json_string(text ? text : "");
	return *ret != NULL;
}

static bool print_integer(const struct schema_key *key, int64_t n, json_t **ret)
{
	bool absent = n < key->minimum || n > key->maximum;

	*ret = absent ? NULL : json_integer(n);
	return absent || *ret;
}

static bool print_duration(const struct schema_key *key, uint64_t ms, json_t **ret)
{
	bool absent = ms < (uint64_t)key->minimum || ms > (uint64_t)key->maximum;
	char text[DURATION_TEXT_MAX];

	*ret = absent ? NULL : json_string(duration_format(ms, text));
	return absent || *ret;
}

static bool print_address(const struct address *a, json_t **ret)
{
	bool absent = a->family != ADDRESS_FAMILY_IPV4 && a->family != ADDRESS_FAMILY_IPV6;
	char text[ADDRESS_TEXT_MAX];

	*ret = absent ? NULL : json_string(address_format(a, text));
	return absent || *ret;
}

static bool print_string_list(const struct schema_strings *s, json_t **ret)
{
	json_t *list = s->items ? json_array() : NULL;
	bool ok = list || !s->items;

	for (size_t i = 0; ok && list && i < s->n; i++)
		ok = json_array_append_new(list, json_string(s->items[i])) == 0;
	*ret = list;
	return ok;
}

static bool print_string_map(const struct schema_strings *s, json_t **ret)
{
	json_t *object = s->items ? json_object() : NULL;
	bool ok = object || !s->items;

	for (size_t i = 0; ok && object && i + 1 < s->n; i += 2)
		ok = json_object_set_new(object, s->items[i], json_string(s->items[i + 1])) == 0;
	*ret = object;
	return ok;
}

static bool print_integer_list(const struct schema_integers *s, json_t **ret)
{
	json_t *list = s->items ? json_array() : NULL;
	bool ok = list || !s->items;

	for (size_t i = 0; ok && list && i < s->n; i++)
		ok = json_array_append_new(list, json_integer(s->items[i])) == 0;
	*ret = list;
	return ok;
}

static bool print_object(const struct schema *schema, const void *settings, json_t **ret)
{
	json_t *object = settings_print(schema, settings);
	bool ok = object != NULL;

	if (object && json_object_size(object) == 0) {
		json_decref(object);
		object = NULL;
	}
	*ret = object;
	return ok;
}

static bool print_value(const struct schema_key *key, const void *field, json_t **ret)
{
	switch (key->kind) {
	case SCHEMA_STRING:
		return print_string(key, *(char *const *)field, ret);
	case SCHEMA_INTEGER:
		return print_integer(key, *(const int64_t *)field, ret);
	case SCHEMA_BOOLEAN:
		*ret = json_boolean(*(const bool *)field);
		return true;
	case SCHEMA_DURATION:
		return print_duration(key, *(const uint64_t *)field, ret);
	case SCHEMA_ENUM:
		*ret = json_string(key->words[*(const int *)field]);
		return *ret != NULL;
	case SCHEMA_ADDRESS:
		return print_address(field, ret);
	case SCHEMA_STRING_LIST:
		return print_string_list(field, ret);
	case SCHEMA_STRING_MAP:
		return print_string_map(field, ret);
	case SCHEMA_INTEGER_LIST:
		return print_integer_list(field, ret);
	case SCHEMA_OBJECT:
		return print_object(key->object, field, ret);
	case SCHEMA_SPECIAL:
		*ret = json_null();
		return true;
	}
	return false;
}

json_t *settings_print(const struct schema *schema, const void *settings)
{
	json_t *object = json_object(), *value = NULL;
	bool ok = object != NULL;

	for (const struct schema_key *key = schema->keys; ok && key->name; key++) {
		ok = print_value(key, (const char *)settings + key->offset, &value);
		if (ok && value)
			ok = json_object_set_new(object, key->name, value) == 0;
		else
			json_decref(value);
	}
	if (!ok) {
		json_decref(object);
		return NULL;
	}
	return object;
}

void settings_strings_done(struct schema_strings *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->items[i]);
	free(s->items);
	*s = (struct schema_strings){0};
}

static void free_value(const struct schema_key *key, void *field)
{
	switch (key->kind) {
	case SCHEMA_STRING:
		free(*(char **)field);
		return;
	case SCHEMA_STRING_LIST:
	case SCHEMA_STRING_MAP:
		settings_strings_done(field);
		return;
	case SCHEMA_INTEGER_LIST:
		free(((struct schema_integers *)field)->items);
		return;
	case SCHEMA_OBJECT:
		settings_done(key->object, field);
		return;
	case SCHEMA_INTEGER:
	case SCHEMA_BOOLEAN:
	case SCHEMA_DURATION:
	case SCHEMA_ENUM:
	case SCHEMA_ADDRESS:
	case SCHEMA_SPECIAL:
		return;
	}
}

void settings_done(const struct schema *schema, void *settings)
{
	/* Zeroing the whole struct would lose what is special; zero each field instead. */
	static const size_t sizes[] = {
		[SCHEMA_STRING] = sizeof(char *),
		[SCHEMA_INTEGER] = sizeof(int64_t),
		[SCHEMA_BOOLEAN] = sizeof(bool),
		[SCHEMA_DURATION] = sizeof(uint64_t),
		[SCHEMA_ENUM] = sizeof(int),
		[SCHEMA_ADDRESS] = sizeof(struct address),
		[SCHEMA_STRING_LIST] = sizeof(struct schema_strings),
		[SCHEMA_STRING_MAP] = sizeof(struct schema_strings),
		[SCHEMA_INTEGER_LIST] = sizeof(struct schema_integers),
		[SCHEMA_OBJECT] = 0,
		[SCHEMA_SPECIAL] = 0,
	};

	for (const struct schema_key *key = schema->keys; key->name; key++) {
		void *field = (char *)settings + key->offset;

		free_value(key, field);
		memset(field, 0, sizes[key->kind]);
	}
}
