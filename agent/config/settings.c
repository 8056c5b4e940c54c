/*
 * JSON into a struct of settings, by its table. One function for each kind of value; each reports
 * by itself what it got and what it wanted, and leaves the field untouched when the value is wrong,
 * so that the default stands there and the load goes on to find what else is wrong.
 */
#include "agent/config/settings.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/base/address.h"
#include "agent/base/buffer.h"
#include "agent/config/duration.h"
#include "agent/config/nearest.h"

#define LENGTH_MAX 4096 /* of strings and lists whose table says nothing else */

/* One key being loaded. */
struct place {
	struct report *report;
	const struct path *path;
	const struct schema_key *key;
	void *field;
};

static bool wrong(const struct place *p, json_t *value)
{
	char expected[SETTINGS_EXPECTED_MAX];

	report_value(p->report, p->path, value, "%s", settings_expected(p->key, expected));
	return false;
}

static size_t length_max(const struct schema_key *key)
{
	return key->maximum > 0 ? (size_t)key->maximum : LENGTH_MAX;
}

/* A string of the right length and form; `minimum` and `maximum` in bytes. */
static bool string_is_right(const struct place *p, const struct path *path, json_t *value,
	size_t minimum, size_t maximum)
{
	const char *expected;

	if (!json_is_string(value)) {
		report_value(p->report, path, value, "a string");
		return false;
	}
	if (json_string_length(value) < minimum) {
		if (json_string_length(value) == 0)
			report_value(p->report, path, value, "a string that is not empty");
		else
			report_value(p->report, path, value, "at least %zu bytes", minimum);
		return false;
	}
	if (json_string_length(value) > maximum) {
		report_value(p->report, path, value, "at most %zu bytes", maximum);
		return false;
	}
	expected = p->key->form ? p->key->form(json_string_value(value)) : NULL;
	if (expected)
		report_value(p->report, path, value, "%s", expected);
	return expected == NULL;
}

static bool load_string(const struct place *p, json_t *value)
{
	char *copy;

	if (!string_is_right(p, p->path, value, (size_t)p->key->minimum, length_max(p->key)))
		return false;
	copy = strdup(json_string_value(value));
	if (!copy)
		return report_no_memory(p->report);
	*(char **)p->field = copy;
	return true;
}

static bool integer_is_right(const struct schema_key *key, json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) >= key->minimum &&
	       json_integer_value(value) <= key->maximum;
}

static bool load_integer(const struct place *p, json_t *value)
{
	if (!integer_is_right(p->key, value))
		return wrong(p, value);
	*(int64_t *)p->field = json_integer_value(value);
	return true;
}

static bool load_boolean(const struct place *p, json_t *value)
{
	if (!json_is_boolean(value))
		return wrong(p, value);
	*(bool *)p->field = json_is_true(value);
	return true;
}

/* Why a value is no duration, in the words of the person who wrote it. */
static const char *duration_hint(json_t *value)
{
	const char *text = json_string_value(value);

	if (json_is_real(value) || (text && strchr(text, '.')))
		return "; no fractions: one and a half seconds are \"1500ms\"";
	if (json_is_integer(value))
		return "; a number needs its unit, in quotes: \"10s\", \"500ms\"";
	if (!text)
		return "";
	if (text[0] == '-' || text[0] == '+')
		return "; no sign";
	if (text[0] != '\0' && text[strspn(text, "0123456789")] == '\0')
		return "; the unit is missing: ms, s, m or h";
	return "; digits and one of the units ms, s, m, h";
}

static bool load_duration(const struct place *p, json_t *value)
{
	char expected[SETTINGS_EXPECTED_MAX];
	uint64_t ms = 0;
	int r = json_is_string(value) ? duration_parse(json_string_value(value), &ms) : -EINVAL;

	if (r == -EINVAL) {
		report_value(p->report, p->path, value, "%s%s", settings_expected(p->key, expected),
			duration_hint(value));
		return false;
	}
	if (r < 0 || ms < (uint64_t)p->key->minimum || ms > (uint64_t)p->key->maximum)
		return wrong(p, value);
	*(uint64_t *)p->field = ms;
	return true;
}

static bool load_enum(const struct place *p, json_t *value)
{
	char expected[SETTINGS_EXPECTED_MAX];
	struct nearest nearest;

	if (!json_is_string(value))
		return wrong(p, value);
	nearest_init(&nearest, json_string_value(value));
	for (int i = 0; p->key->words[i]; i++) {
		if (strcmp(p->key->words[i], json_string_value(value)) == 0) {
			*(int *)p->field = i;
			return true;
		}
		nearest_offer(&nearest, p->key->words[i]);
	}
	if (!nearest.best)
		return wrong(p, value);
	report_value(p->report, p->path, value, "%s; did you mean \"%s\"?",
		settings_expected(p->key, expected), nearest.best);
	return false;
}

static bool load_address(const struct place *p, json_t *value)
{
	struct address address;

	if (!json_is_string(value) || address_parse(json_string_value(value), &address, NULL) < 0)
		return wrong(p, value);
	*(struct address *)p->field = address;
	return true;
}

/* Lists and maps: the number of items. */
static bool count_is_right(
	const struct place *p, json_t *value, size_t n, size_t minimum, size_t maximum)
{
	if (n < minimum)
		report_value(p->report, p->path, value, "at least %zu item%s", minimum,
			minimum == 1 ? "" : "s");
	else if (n > maximum)
		report_value(p->report, p->path, value, "at most %zu items, not %zu", maximum, n);
	return n >= minimum && n <= maximum;
}

/* Copies into the next free item. */
static bool add_string(const struct place *p, struct schema_strings *s, const char *text)
{
	s->items[s->n] = strdup(text);
	if (!s->items[s->n])
		return report_no_memory(p->report);
	s->n++;
	return true;
}

static bool load_string_list(const struct place *p, json_t *value)
{
	_cleanup_(settings_strings_done) struct schema_strings s = {0};
	bool right = true;
	json_t *item;
	size_t i;

	if (!json_is_array(value))
		return wrong(p, value);
	if (!count_is_right(
		    p, value, json_array_size(value), (size_t)p->key->minimum, length_max(p->key)))
		return false;
	s.items = calloc(json_array_size(value) + 1, sizeof(*s.items));
	if (!s.items)
		return report_no_memory(p->report);
	json_array_foreach (value, i, item) {
		const struct path path = {.parent = p->path, .index = i};

		right = string_is_right(p, &path, item, 0, LENGTH_MAX) &&
			add_string(p, &s, json_string_value(item)) && right;
	}
	if (right) {
		*(struct schema_strings *)p->field = s;
		s = (struct schema_strings){0};
	}
	return right;
}

static bool load_string_map(const struct place *p, json_t *value)
{
	_cleanup_(settings_strings_done) struct schema_strings s = {0};
	bool right = true;
	const char *key;
	json_t *item;

	if (!json_is_object(value))
		return wrong(p, value);
	if (!count_is_right(
		    p, value, json_object_size(value), (size_t)p->key->minimum, length_max(p->key)))
		return false;
	s.items = calloc(2 * json_object_size(value) + 1, sizeof(*s.items));
	if (!s.items)
		return report_no_memory(p->report);
	json_object_foreach (value, key, item) {
		const struct path path = {.parent = p->path, .key = key};

		right = string_is_right(p, &path, item, 0, LENGTH_MAX) && add_string(p, &s, key) &&
			add_string(p, &s, json_string_value(item)) && right;
	}
	if (right) {
		*(struct schema_strings *)p->field = s;
		s = (struct schema_strings){0};
	}
	return right;
}

static bool load_integer_list(const struct place *p, json_t *value)
{
	_cleanup_free_ int64_t *items = NULL;
	bool right = true;
	json_t *item;
	size_t i;

	if (!json_is_array(value))
		return wrong(p, value);
	if (!count_is_right(p, value, json_array_size(value), 1, LENGTH_MAX))
		return false;
	items = calloc(json_array_size(value), sizeof(*items));
	if (!items)
		return report_no_memory(p->report);
	json_array_foreach (value, i, item) {
		const struct path path = {.parent = p->path, .index = i};

		items[i] = json_integer_value(item);
		if (integer_is_right(p->key, item))
			continue;
		report_value(p->report, &path, item, "an integer from %" PRId64 " to %" PRId64,
			p->key->minimum, p->key->maximum);
		right = false;
	}
	if (right)
		*(struct schema_integers *)p->field = (struct schema_integers){
			.items = TAKE_PTR(items), .n = json_array_size(value)};
	return right;
}

static bool load_object(const struct place *p, json_t *value)
{
	if (!settings_is_object(p->report, p->path, value, "an object"))
		return false;
	settings_check_keys(p->report, p->path, value, p->key->object, NULL);
	settings_load(p->report, p->path, p->key->object, value, NULL, p->field);
	return true;
}

static bool load_value(const struct place *p, json_t *value)
{
	switch (p->key->kind) {
	case SCHEMA_STRING:
		return load_string(p, value);
	case SCHEMA_INTEGER:
		return load_integer(p, value);
	case SCHEMA_BOOLEAN:
		return load_boolean(p, value);
	case SCHEMA_DURATION:
		return load_duration(p, value);
	case SCHEMA_ENUM:
		return load_enum(p, value);
	case SCHEMA_ADDRESS:
		return load_address(p, value);
	case SCHEMA_STRING_LIST:
		return load_string_list(p, value);
	case SCHEMA_STRING_MAP:
		return load_string_map(p, value);
	case SCHEMA_INTEGER_LIST:
		return load_integer_list(p, value);
	case SCHEMA_OBJECT:
		return load_object(p, value);
	case SCHEMA_SPECIAL:
		break;
	}
	return true;
}

static void load_fallback(const struct place *p)
{
	size_t before = report_count(p->report);
	json_t *value = json_loads(p->key->fallback, JSON_DECODE_ANY, NULL);

	if (!value || !load_value(p, value))
		(void)report_no_memory(p->report);
	json_decref(value);
	/* A default that its own table refuses is our mistake. */
	assert(report_count(p->report) == before);
}

/* Numbers, durations and booleans own nothing, and are copied. */
static void inherit_value(const struct place *p, const void *inherit)
{
	const void *from = (const char *)inherit + p->key->offset;

	assert(p->key->kind == SCHEMA_INTEGER || p->key->kind == SCHEMA_DURATION ||
		p->key->kind == SCHEMA_BOOLEAN);
	memcpy(p->field, from, p->key->kind == SCHEMA_BOOLEAN ? sizeof(bool) : sizeof(int64_t));
}

static void load_absent(const struct place *p, const void *inherit, bool was_given)
{
	char expected[SETTINGS_EXPECTED_MAX];

	if (p->key->kind == SCHEMA_OBJECT)
		settings_load(p->report, p->path, p->key->object, NULL, NULL, p->field);
	else if (inherit)
		inherit_value(p, inherit);
	else if (p->key->fallback)
		load_fallback(p);
	else if (p->key->required && !was_given)
		report_got(
			p->report, p->path, "nothing", "%s", settings_expected(p->key, expected));
}

void settings_load(struct report *r, const struct path *path, const struct schema *schema,
	json_t *object, const void *inherit, void *settings)
{
	for (const struct schema_key *key = schema->keys; key->name; key++) {
		const struct path here = {.parent = path, .key = key->name};
		const struct place place = {.report = r,
			.path = &here,
			.key = key,
			.field = (char *)settings + key->offset};
		json_t *value = json_object_get(object, key->name);

		if (key->kind == SCHEMA_SPECIAL || (value && load_value(&place, value)))
			continue;
		load_absent(&place, inherit, value != NULL);
	}
}

bool settings_is_object(
	struct report *r, const struct path *path, json_t *value, const char *expected)
{
	if (json_is_object(value))
		return true;
	report_value(r, path, value, "%s", expected);
	return false;
}

static const struct schema_key *find_key(const struct schema *schema, const char *name)
{
	for (const struct schema_key *key = schema ? schema->keys : NULL; key && key->name; key++)
		if (strcmp(key->name, name) == 0)
			return key;
	return NULL;
}

static void list_keys(struct buffer *b, struct nearest *nearest, const struct schema *schema)
{
	for (const struct schema_key *key = schema ? schema->keys : NULL; key && key->name; key++) {
		nearest_offer(nearest, key->name);
		(void)buffer_printf(b, "%s%s", b->length ? ", " : "", key->name);
	}
}

static void report_unknown_key(struct report *r, const struct path *path,
	const struct schema *first, const struct schema *second)
{
	_cleanup_buffer_ struct buffer known = {0};
	struct nearest nearest;

	buffer_init(&known, 1024);
	nearest_init(&nearest, path->key);
	if (!report_is_full(r)) {
		list_keys(&known, &nearest, first);
		list_keys(&known, &nearest, second);
	}
	if (nearest.best)
		report_got(r, path, "an unknown key", "one of %s; did you mean \"%s\"?",
			buffer_string(&known), nearest.best);
	else
		report_got(r, path, "an unknown key", "one of %s", buffer_string(&known));
}

void settings_check_keys(struct report *r, const struct path *path, json_t *object,
	const struct schema *first, const struct schema *second)
{
	const char *name;
	json_t *value;

	json_object_foreach (object, name, value) {
		const struct path here = {.parent = path, .key = name};

		if (!find_key(first, name) && !find_key(second, name))
			report_unknown_key(r, &here, first, second);
	}
}
