/*
 * The manual against the tables: each key of each table has a row in docs/redshank.json.5.md whose
 * meaning is not empty and which shows the default and the range that the loader uses.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/config/duration.h"
#include "agent/config/tables.h"

static struct buffer manual;

static void read_manual(void)
{
	_cleanup_fclose_ FILE *f = fopen(getenv("REDSHANK_MANUAL"), "r");
	char chunk[4096];
	size_t n;

	ck_assert_ptr_nonnull(f);
	buffer_init(&manual, 1U << 20);
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		ck_assert_int_eq(buffer_append(&manual, chunk, n), 0);
}

static void done_manual(void)
{
	buffer_done(&manual);
}

/* What the row of this key must show. */
static size_t wanted_words(const struct schema_key *key, char words[3][64])
{
	char text[DURATION_TEXT_MAX];
	size_t n = 0;

	if (key->kind == SCHEMA_DURATION) {
		(void)snprintf(
			words[n++], 64, "\"%s\"", duration_format((uint64_t)key->minimum, text));
		(void)snprintf(
			words[n++], 64, "\"%s\"", duration_format((uint64_t)key->maximum, text));
	} else if (key->kind == SCHEMA_INTEGER) {
		(void)snprintf(
			words[n++], 64, "%" PRId64 " to %" PRId64, key->minimum, key->maximum);
	}
	if (key->fallback)
		(void)snprintf(words[n++], 64, "%s", key->fallback);
	return n;
}

static bool row_shows(const char *row, size_t length, const struct schema_key *key)
{
	char words[3][64];
	size_t n = wanted_words(key, words);

	for (size_t i = 0; i < n; i++)
		if (!memmem(row, length, words[i], strlen(words[i])))
			return false;
	return true;
}

/* Some row of the key shows all of it: the name may stand in several tables. */
static bool manual_shows(const struct schema_key *key)
{
	_cleanup_free_ char *start = NULL;
	const char *row = buffer_string(&manual);

	ck_assert(asprintf(&start, "\n| `%s` | ", key->name) > 0);
	while ((row = strstr(row, start)) != NULL) {
		row += strlen(start);
		if (row_shows(row, strcspn(row, "\n"), key))
			return true;
	}
	return false;
}

static void check_table(const char *of, const struct schema *schema)
{
	for (const struct schema_key *key = schema->keys; key->name; key++) {
		ck_assert_msg(manual_shows(key),
			"%s: the manual has no row of `%s` with its default and range", of,
			key->name);
		ck_assert_msg(
			key->meaning && *key->meaning, "%s: %s has no meaning", of, key->name);
		if (key->kind == SCHEMA_OBJECT)
			check_table(key->name, key->object);
	}
}

START_TEST (every_key_is_in_the_manual) {
	check_table("top level", &tables_top);
	check_table("service", &tables_service);
	check_table("prefix", &tables_prefix);
	check_table("restart", &tables_restart);
	check_table("hooks", &tables_hook);
	check_table("neighbours", &tables_neighbours);
	check_table("load", &tables_load);
	for (const struct tables_type *t = tables_signals; t->name; t++)
		check_table(t->name, &t->schema);
	for (const struct tables_type *t = tables_countings; t->name; t++)
		check_table(t->name, &t->schema);
	check_table("check", &tables_check);
	check_table("defaults", &tables_start);
	check_table("slow_start", &tables_slow_start);
	check_table("hold_down", &tables_hold_down);
	check_table("leave", &tables_leave);
	check_table("manage_addresses", &tables_managed);
	for (const struct probe_type *const *t = probe_types; *t; t++)
		check_table((*t)->name, (*t)->settings);
}
END_TEST

/* What schema.h asks of whoever writes a table, and what no key may be called. */
static void check_rules(const char *of, const struct schema *schema, bool is_check)
{
	for (const struct schema_key *key = schema->keys; key->name; key++) {
		ck_assert_msg(key->kind == SCHEMA_SPECIAL || key->offset < schema->size,
			"%s: %s lies outside its struct", of, key->name);
		if (key->kind == SCHEMA_INTEGER || key->kind == SCHEMA_DURATION ||
			key->kind == SCHEMA_INTEGER_LIST)
			ck_assert_msg(
				key->minimum < key->maximum, "%s: %s has no range", of, key->name);
		ck_assert_msg(!key->required || !key->fallback,
			"%s: %s is required and has a "
			"default",
			of, key->name);
		for (const struct schema_key *c = tables_check.keys; is_check && c->name; c++)
			ck_assert_str_ne(c->name, key->name);
		if (key->kind == SCHEMA_OBJECT)
			check_rules(key->name, key->object, false);
	}
}

START_TEST (tables_keep_their_rules) {
	check_rules("top level", &tables_top, false);
	check_rules("service", &tables_service, false);
	check_rules("prefix", &tables_prefix, false);
	check_rules("restart", &tables_restart, false);
	check_rules("hooks", &tables_hook, false);
	check_rules("neighbours", &tables_neighbours, false);
	check_rules("defaults", &tables_start, false);
	check_rules("slow_start", &tables_slow_start, false);
	check_rules("hold_down", &tables_hold_down, false);
	check_rules("leave", &tables_leave, false);
	check_rules("manage_addresses", &tables_managed, false);
	check_rules("load", &tables_load, false);
	for (const struct tables_type *t = tables_signals; t->name; t++)
		check_rules(t->name, &t->schema, false);
	for (const struct tables_type *t = tables_countings; t->name; t++)
		check_rules(t->name, &t->schema, false);
	for (const struct probe_type *const *t = probe_types; *t; t++)
		check_rules((*t)->name, (*t)->settings, true);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("config-manual");
	TCase *t = tcase_create("manual");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, read_manual, done_manual);
	tcase_add_test(t, every_key_is_in_the_manual);
	tcase_add_test(t, tables_keep_their_rules);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
