#ifndef REDSHANK_TESTS_GOLDEN_H
#define REDSHANK_TESTS_GOLDEN_H
/*
 * Files beside the tests, by their paths in tests/: what goes in, and what has to come out. With
 * REDSHANK_GOLDEN=write in the environment what came out is written anew: read it before it is
 * committed.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/ctl/status.h"

#define GOLDEN_MAX (1024 * 1024)
#define GOLDEN_PATH_MAX 512

static inline FILE *golden_open(const char *file, const char *mode)
{
	const char *tests = getenv("REDSHANK_TESTS");
	char path[GOLDEN_PATH_MAX];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", tests ? tests : "tests", file);
	f = fopen(path, mode);
	ck_assert_msg(f != NULL, "%s: %m", path);
	return f;
}

/* Heap. */
static inline char *golden_read(const char *file)
{
	_cleanup_fclose_ FILE *f = golden_open(file, "re");
	char *text = calloc(1, GOLDEN_MAX);

	ck_assert_uint_lt(fread(text, 1, GOLDEN_MAX, f), GOLDEN_MAX);
	return text;
}

/* unit/data/NAME.SUFFIX */
static inline char *golden_data(const char *name, const char *suffix)
{
	char file[GOLDEN_PATH_MAX];

	(void)snprintf(file, sizeof(file), "unit/data/%s.%s", name, suffix);
	return golden_read(file);
}

static inline void golden_compare(const char *name, const char *suffix, const char *got)
{
	_cleanup_free_ char *expected = NULL;
	char file[GOLDEN_PATH_MAX];

	if (getenv("REDSHANK_GOLDEN")) {
		_cleanup_fclose_ FILE *f = NULL;

		(void)snprintf(file, sizeof(file), "unit/data/%s.%s", name, suffix);
		f = golden_open(file, "we");
		ck_assert_int_ge(fputs(got, f), 0);
		return;
	}
	expected = golden_data(name, suffix);
	ck_assert_msg(strcmp(got, expected) == 0, "%s.%s: got\n%s\nexpected\n%s", name, suffix, got,
		expected);
}

/* unit/data/NAME.json as redshankctl takes it from an agent. */
static inline json_t *golden_document(const char *name)
{
	_cleanup_free_ char *body = golden_data(name, "json");
	struct error error = {{0}};
	json_t *document = status_parse(body, strlen(body), &error);

	ck_assert_msg(document != NULL, "%s: %s", name, error.text);
	return document;
}

#endif
