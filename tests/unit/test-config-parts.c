/* The small parts of config/, each by a table: durations, nearest words, forms, paths, files. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/config/duration.h"
#include "agent/config/nearest.h"
#include "agent/config/sources.h"
#include "agent/config/tables.h"

START_TEST (durations) {
	static const struct {
		const char *text;
		int r;
		uint64_t ms;
		const char *again;
	} rows[] = {
		{"200ms", 0, 200, "200ms"},
		{"0ms", 0, 0, "0ms"},
		{"0h", 0, 0, "0ms"},
		{"10s", 0, 10000, "10s"},
		{"1000ms", 0, 1000, "1s"},
		{"90s", 0, 90000, "90s"},
		{"120s", 0, 120000, "2m"},
		{"60m", 0, 3600000, "1h"},
		{"2h", 0, 7200000, "2h"},
		{"010s", 0, 10000, "10s"},
		{"8784h", 0, DURATION_MS_MAX, "8784h"},
		{"8785h", -ERANGE, 0, NULL},
		{"18446744073709551616ms", -ERANGE, 0, NULL},
		{"", -EINVAL, 0, NULL},
		{"10", -EINVAL, 0, NULL},
		{"s", -EINVAL, 0, NULL},
		{"1.5s", -EINVAL, 0, NULL},
		{"-1s", -EINVAL, 0, NULL},
		{"+1s", -EINVAL, 0, NULL},
		{" 1s", -EINVAL, 0, NULL},
		{"1 s", -EINVAL, 0, NULL},
		{"1s ", -EINVAL, 0, NULL},
		{"1S", -EINVAL, 0, NULL},
		{"1m30s", -EINVAL, 0, NULL},
		{"1d", -EINVAL, 0, NULL},
		{"0x1s", -EINVAL, 0, NULL},
	};
	char text[DURATION_TEXT_MAX];

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		uint64_t ms = 77;

		ck_assert_msg(duration_parse(rows[i].text, &ms) == rows[i].r, "%s", rows[i].text);
		ck_assert_uint_eq(ms, rows[i].r == 0 ? rows[i].ms : 77);
		if (rows[i].again)
			ck_assert_str_eq(duration_format(ms, text), rows[i].again);
	}
}
END_TEST

START_TEST (nearest_words) {
	static const char *const words[] = {"type", "interval", "fast_interval", "timeout", "rise",
		"fall", "node", "unit", "large_communities"};
	static const struct {
		const char *wanted, *best;
	} rows[] = {
		{"fal", "fall"},
		{"falll", "fall"},
		{"flal", "fall"},
		{"Fall", "fall"},
		{"ris", "rise"},
		{"fastInterval", "fast_interval"},
		{"fast-interval", "fast_interval"},
		{"timout", "timeout"},
		{"tpye", "type"},
		{"typ", "type"},
		{"large_comunity", "large_communities"},
		{"load", NULL},
		{"shed", NULL},
		{"", NULL},
		{"x", NULL},
		{"a_very_long_key_that_nobody_would_ever_write_by_hand", NULL},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct nearest n;

		nearest_init(&n, rows[i].wanted);
		for (size_t j = 0; j < ELEMENTSOF(words); j++)
			nearest_offer(&n, words[j]);
		if (rows[i].best)
			ck_assert_pstr_eq(n.best, rows[i].best);
		else
			ck_assert_msg(!n.best, "%s: %s", rows[i].wanted, n.best);
	}
}
END_TEST

START_TEST (forms) {
	static const struct {
		const char *(*form)(const char *);
		const char *text;
		bool right;
	} rows[] = {
		{tables_form_listen, "127.0.0.1:9479", true},
		{tables_form_listen, "0.0.0.0:1", true},
		{tables_form_listen, "[::]:65535", true},
		{tables_form_listen, "[127.0.0.1]:1", false},
		{tables_form_listen, "[::1]", false},
		{tables_form_listen, "[]:1", false},
		{tables_form_listen, ":1", false},
		{tables_form_listen, "127.0.0.1:01", false},
		{tables_form_listen, "127.0.0.1:65536", false},
		{tables_form_listen, "127.0.0.1:+1", false},
		{tables_form_listen, "127.0.0.1:100000000000000000000", false},
		{tables_form_listen, "[fe80::1%eth0]:1", false},
		{tables_form_name, "dns-v4", true},
		{tables_form_name, "4dns", true},
		{tables_form_name, "a234567890123456789012345678901_", true},
		{tables_form_name, "a234567890123456789012345678901_x", false},
		{tables_form_name, "_dns", false},
		{tables_form_name, "dns.v4", false},
		{tables_form_name, "dns*", false},
		{tables_form_name, "dns'", false},
		{tables_form_name, "", false},
		{tables_form_node, "edge1.example.net", true},
		{tables_form_node, "-edge", false},
		{tables_form_node, "", false},
		{schema_form_unit_name, "nsd.service", true},
		{schema_form_unit_name, "unbound@1.service", true},
		{schema_form_unit_name, "unbound@.service", false},
		{schema_form_unit_name, ".service", false},
		{schema_form_unit_name, "nsd", false},
		{schema_form_unit_name, "a b.service", false},
		{schema_form_unit_name, "../x.service", false},
		{schema_form_absolute_path, "/run", true},
		{schema_form_absolute_path, "run", false},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		ck_assert_msg(
			(rows[i].form(rows[i].text) == NULL) == rows[i].right, "%s", rows[i].text);
}
END_TEST

START_TEST (paths_and_values) {
	const struct path services = {.key = "services"};
	const struct path odd = {.parent = &services, .key = "a \"b\"\x1b"};
	const struct path item = {.parent = &odd, .index = 3};
	char text[PATH_TEXT_MAX], shown[VALUE_TEXT_MAX], *big = malloc(100000);
	struct path deep[PATH_DEPTH_MAX];

	ck_assert_str_eq(path_format(NULL, text), "top level");
	ck_assert_str_eq(path_format(&item, text), "services[\"a \\\"b\\\"\\u001B\"][3]");
	for (size_t i = 0; i < ELEMENTSOF(deep); i++)
		deep[i] = (struct path){
			.parent = i ? &deep[i - 1] : NULL, .key = "abcdefghijklmnopqrstuvwxyz"};
	ck_assert_uint_eq(
		strlen(path_format(&deep[ELEMENTSOF(deep) - 1], text)), PATH_TEXT_MAX - 1);
	/* Cut between characters, and short, however much comes. */
	memset(big, 'x', 99999);
	big[99999] = '\0';
	ck_assert_uint_lt(strlen(text_format(big, shown)), 80);
	for (size_t i = 0; i + 2 < 100000; i += 2)
		memcpy(big + i, "\xc3\xa9", 2);
	big[99998] = '\0';
	ck_assert_uint_lt(strlen(text_format(big, shown)), 80);
	ck_assert_ptr_nonnull(strstr(shown, "..."));
	free(big);
}
END_TEST

static char folder[] = "/tmp/redshank-config-XXXXXX";
static struct problems problems;

/* FOLDER/NAME, in one of four buffers. */
static const char *at(const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];

	(void)snprintf(path, 128, "%s/%s", folder, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(at(name), "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void make_folder(void)
{
	strcpy(folder, "/tmp/redshank-config-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	problems_init(&problems);
}

static void remove_folder(void)
{
	static const char *const names[] = {"conf.d/a.json", "conf.d/b.json", "conf.d/.c.json",
		"conf.d/d.json~", "conf.d", "main.json"};

	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		if (unlink(at(names[i])) < 0)
			(void)rmdir(at(names[i]));
	ck_assert_int_eq(rmdir(folder), 0);
	problems_done(&problems);
}

static void assert_refused(const char *behind)
{
	_cleanup_sources_ struct sources s = {0};

	sources_init(&s);
	ck_assert_int_eq(sources_read(&s, at("main.json"), &problems), -EINVAL);
	ck_assert_uint_eq(problems.n, 1);
	ck_assert_ptr_nonnull(strstr(problems.items[0].text, behind));
	problems_done(&problems);
}

START_TEST (files_that_are_none) {
	assert_refused("main.json: cannot be read: No such file or directory");
	ck_assert_int_eq(mkdir(at("main.json"), 0755), 0);
	assert_refused("main.json: got a directory; expected a regular file");
	ck_assert_int_eq(rmdir(at("main.json")), 0);
	/* Nobody writes into it: the load must not wait. */
	ck_assert_int_eq(mkfifo(at("main.json"), 0644), 0);
	assert_refused("main.json: got a pipe; expected a regular file");
	ck_assert_int_eq(unlink(at("main.json")), 0);
	ck_assert_int_eq(symlink("nowhere", at("main.json")), 0);
	assert_refused("main.json: cannot be read: No such file or directory");
	ck_assert_int_eq(unlink(at("main.json")), 0);
	put("main.json", "{}");
	put("conf.d", "");
	assert_refused("conf.d: cannot be read: Not a directory; expected a folder");
}
END_TEST

START_TEST (files_that_are_too_much) {
	put("main.json", "{}");
	/* A hole reads as NULs, and is bigger than what is allowed. */
	ck_assert_int_eq(truncate(at("main.json"), SOURCES_FILE_MAX + 1), 0);
	assert_refused("main.json: got more than 4 MiB; expected a smaller file");
	ck_assert_int_eq(truncate(at("main.json"), SOURCES_FILE_MAX), 0);
	assert_refused("main.json:1:3: end of file expected");
}
END_TEST

START_TEST (files_that_are_many) {
	_cleanup_sources_ struct sources s = {0};
	char name[32];
	int r = 0;

	put("main.json", "{}");
	ck_assert_int_eq(mkdir(at("conf.d"), 0755), 0);
	for (int i = 0; i < SOURCES_FILES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "conf.d/%d.json", i);
		put(name, "{}");
	}
	sources_init(&s);
	ck_assert_int_eq(sources_read(&s, at("main.json"), &problems), 0);
	ck_assert_uint_eq(s.n, SOURCES_FILES_MAX + 1);
	put("conf.d/a.json", "{}");
	assert_refused("conf.d: got 1001 files; expected at most 1000");
	for (int i = 0; i < SOURCES_FILES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "conf.d/%d.json", i);
		ck_assert_int_eq(unlink(at(name)), 0);
	}
	/* All together: four files of 4 MiB, and one byte. */
	sources_done(&s);
	for (unsigned i = 0; i <= SOURCES_TOTAL_MAX / SOURCES_FILE_MAX; i++) {
		_cleanup_free_ char *text = malloc(SOURCES_FILE_MAX);

		memset(text, ' ', SOURCES_FILE_MAX);
		memcpy(text, "{}", 2);
		ck_assert_int_eq(r, 0);
		r = sources_add_text(&s, "f", text, i < 4 ? SOURCES_FILE_MAX : 2, &problems);
	}
	ck_assert_int_eq(r, -EINVAL);
	ck_assert_str_eq(problems.items[0].text,
		"f: got more than 16 MiB in all files together; expected less");
}
END_TEST

START_TEST (files_of_the_folder) {
	_cleanup_sources_ struct sources s = {0};
	const struct path top = {.key = "x"}, one = {.parent = &top, .key = "one"},
			  two = {.parent = &top, .key = "two"},
			  none = {.parent = &two, .key = "none"};

	put("main.json", "{\"x\":{}}");
	ck_assert_int_eq(mkdir(at("conf.d"), 0755), 0);
	put("conf.d/b.json", "{\"x\":{\"two\":{}}}");
	put("conf.d/a.json", "{\"x\":{\"one\":true}}");
	put("conf.d/.c.json", "{");
	put("conf.d/d.json~", "{");
	sources_init(&s);
	ck_assert_int_eq(sources_read(&s, at("main.json"), &problems), 0);
	ck_assert_uint_eq(s.n, 3);
	ck_assert_str_eq(s.items[0].name, at("main.json"));
	ck_assert_str_eq(s.items[1].name, at("conf.d/a.json"));
	ck_assert_str_eq(s.items[2].name, at("conf.d/b.json"));
	ck_assert_str_eq(sources_origin(&s, NULL), at("main.json"));
	ck_assert_str_eq(sources_origin(&s, &top), at("main.json"));
	ck_assert_str_eq(sources_origin(&s, &one), at("conf.d/a.json"));
	ck_assert_str_eq(sources_origin(&s, &two), at("conf.d/b.json"));
	ck_assert_str_eq(sources_origin(&s, &none), at("conf.d/b.json"));
}
END_TEST

/* What every user may change is obeyed, and said. */
START_TEST (files_that_others_may_change) {
	_cleanup_sources_ struct sources s = {0};

	put("main.json", "{}");
	ck_assert_int_eq(mkdir(at("conf.d"), 0755), 0);
	put("conf.d/a.json", "{}");
	ck_assert_int_eq(chmod(at("main.json"), 0664), 0);
	ck_assert_int_eq(chmod(at("conf.d/a.json"), 0646), 0);
	ck_assert_int_eq(chmod(at("conf.d"), 0757), 0);
	sources_init(&s);
	ck_assert_int_eq(sources_read(&s, at("main.json"), &problems), 0);
	ck_assert_uint_eq(problems.n, 2);
	ck_assert_uint_eq(problems.n_errors, 0);
	ck_assert_ptr_nonnull(strstr(problems.items[0].text,
		"conf.d: every user of this host may put files into it (mode 0757)"));
	ck_assert_ptr_nonnull(strstr(problems.items[1].text,
		"conf.d/a.json: every user of this host may change it (mode 0646)"));
	ck_assert_int_eq(unlink(at("conf.d/a.json")), 0);
}
END_TEST

static char *nested(size_t depth)
{
	char *text = malloc(2 * depth + 6);

	memcpy(text, "{\"a\":", 5);
	memset(text + 5, '[', depth);
	memset(text + 5 + depth, ']', depth);
	memcpy(text + 5 + 2 * depth, "}", 1);
	return text;
}

START_TEST (depth_is_bounded) {
	static const size_t depths[] = {SOURCES_DEPTH_MAX - 1, SOURCES_DEPTH_MAX, 3000, 1000000};

	for (size_t i = 0; i < ELEMENTSOF(depths); i++) {
		_cleanup_sources_ struct sources s = {0};
		_cleanup_free_ char *text = nested(depths[i]);

		sources_init(&s);
		ck_assert_int_eq(sources_add_text(&s, "f", text, 2 * depths[i] + 6, &problems),
			i == 0 ? 0 : -EINVAL);
		if (i > 0)
			ck_assert_str_eq(problems.items[0].text,
				"f:1:37: objects and lists are nested more than 32 deep");
		problems_done(&problems);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("config-parts");
	TCase *parts = tcase_create("parts"), *files = tcase_create("files");

	tcase_add_test(parts, durations);
	tcase_add_test(parts, nearest_words);
	tcase_add_test(parts, forms);
	tcase_add_test(parts, paths_and_values);
	tcase_add_test(parts, depth_is_bounded);
	tcase_add_checked_fixture(files, make_folder, remove_folder);
	tcase_add_test(files, files_that_are_none);
	tcase_add_test(files, files_that_are_too_much);
	tcase_add_test(files, files_that_are_many);
	tcase_add_test(files, files_of_the_folder);
	tcase_add_test(files, files_that_others_may_change);
	suite_add_tcase(s, parts);
	suite_add_tcase(s, files);
	return s;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
