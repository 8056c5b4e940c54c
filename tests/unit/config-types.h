#ifndef REDSHANK_TESTS_CONFIG_TYPES_H
#define REDSHANK_TESTS_CONFIG_TYPES_H
/* A kind of check that exists for tests of config/ only: a key of every kind that a table knows. */
#include <errno.h>
#include <string.h>

#include "probes/probe.h"

struct kinds_inner {
	struct schema_integers codes;
	char *body;
};

struct kinds {
	char *text;
	int64_t number;
	bool flag;
	uint64_t wait_ms;
	int word;
	struct address address;
	struct schema_strings list, map;
	struct kinds_inner inner;
};

static const char *const kinds_words[] = {"red", "green", "blue", NULL};

static const char *kinds_form(const char *text)
{
	return strchr(text, ' ') ? "a text without blanks" : NULL;
}

static const struct schema_key kinds_inner_keys[] = {
	{.name = "codes",
		.kind = SCHEMA_INTEGER_LIST,
		SCHEMA_FIELD(struct kinds_inner, codes),
		.minimum = 100,
		.maximum = 599,
		.fallback = "[200]"},
	{.name = "body",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct kinds_inner, body),
		.maximum = 8},
	SCHEMA_END,
};
static const struct schema kinds_inner_schema = {
	.size = sizeof(struct kinds_inner), .keys = kinds_inner_keys};

static const struct schema_key kinds_keys[] = {
	{.name = "text",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct kinds, text),
		.required = true,
		.minimum = 1,
		.form = kinds_form},
	{.name = "number",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct kinds, number),
		.minimum = -5,
		.maximum = 5,
		.fallback = "3"},
	{.name = "flag",
		.kind = SCHEMA_BOOLEAN,
		SCHEMA_FIELD(struct kinds, flag),
		.fallback = "true"},
	{.name = "wait",
		.kind = SCHEMA_DURATION,
		SCHEMA_FIELD(struct kinds, wait_ms),
		.minimum = 1,
		.maximum = 60000},
	{.name = "word",
		.kind = SCHEMA_ENUM,
		SCHEMA_FIELD(struct kinds, word),
		.words = kinds_words,
		.fallback = "\"green\""},
	{.name = "address", .kind = SCHEMA_ADDRESS, SCHEMA_FIELD(struct kinds, address)},
	{.name = "list",
		.kind = SCHEMA_STRING_LIST,
		SCHEMA_FIELD(struct kinds, list),
		.minimum = 1,
		.maximum = 3},
	{.name = "map", .kind = SCHEMA_STRING_MAP, SCHEMA_FIELD(struct kinds, map), .maximum = 2},
	{.name = "inner",
		.kind = SCHEMA_OBJECT,
		SCHEMA_FIELD(struct kinds, inner),
		.object = &kinds_inner_schema},
	SCHEMA_END,
};
static const struct schema kinds_schema = {.size = sizeof(struct kinds), .keys = kinds_keys};

static int kinds_validate(const void *settings, struct error *ret_error)
{
	const struct kinds *k = settings;

	if (k->number == 4)
		return error_set(ret_error, EINVAL, "number: expected anything but 4");
	if (k->number == 5)
		return error_set(ret_error, EINVAL, "expected no number 5: ever");
	return 0;
}

static const struct probe_type kinds_type = {
	.name = "kinds", .settings = &kinds_schema, .validate = kinds_validate};
static const struct probe_type *const kinds_types[] = {&kinds_type, NULL};

#endif
