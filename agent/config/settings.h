#ifndef REDSHANK_CONFIG_SETTINGS_H
#define REDSHANK_CONFIG_SETTINGS_H
/*
 * A struct of settings by its table (schema.h): load from JSON, print as JSON, release. For config/
 * alone.
 */
#include "agent/config/report.h"
#include "agent/config/schema.h"

/*
 * Fills the zeroed struct: what the object says, else what `inherit` (a struct of the same table,
 * numbers, durations and booleans only; NULL: none) says, else the default. A wrong value is
 * reported and counts as absent. `object` NULL: nothing is said. Does not look for unknown keys.
 */
void settings_load(struct report *r, const struct path *path, const struct schema *schema,
	json_t *object, const void *inherit, void *settings);

/* False, and reported, where the value is no object. */
bool settings_is_object(
	struct report *r, const struct path *path, json_t *value, const char *expected);

/* Reports every key that is in neither table (`second` may be NULL), with the nearest known one. */
void settings_check_keys(struct report *r, const struct path *path, json_t *object,
	const struct schema *first, const struct schema *second);

/* A new object in the table's order, null for what is SCHEMA_SPECIAL; NULL without memory. */
json_t *settings_print(const struct schema *schema, const void *settings);

/* Releases what the struct owns, and zeroes it. Not for what is SCHEMA_SPECIAL. */
void settings_done(const struct schema *schema, void *settings);

void settings_strings_done(struct schema_strings *s);

/* What the key wants, such as `a duration from "10ms" to "1h"`. Returns buf. */
#define SETTINGS_EXPECTED_MAX 320
const char *settings_expected(const struct schema_key *key, char buf[SETTINGS_EXPECTED_MAX]);

#endif
