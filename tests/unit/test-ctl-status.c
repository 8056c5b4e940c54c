/*
 * What `redshankctl status` prints of documents in tests/unit/data: NAME.json is the document,
 * NAME.txt the table, NAME.plugin the line and exit code for monitoring. With REDSHANK_GOLDEN=write
 * in the environment the expected files are written anew: read them before they are committed.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/ctl/status.h"
#include "agent/ctl/text.h"
#include "tests/unit/golden.h"

#define NOW 1796008364 /* 2026-11-30T03:12:44Z */

static const char *const names[] = {"ctl-status-quiet", "ctl-status-load", "ctl-status-trouble",
	"ctl-status-away", "ctl-status-hostile", "ctl-status-refused"};

static char *render(const json_t *document, bool colours)
{
	const struct status_view view = {.colours = colours, .terminal = true, .now = NOW};
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	status_print(f, document, &view);
	ck_assert_int_eq(fclose(f), 0);
	return text;
}

START_TEST (tables) {
	json_t *document = golden_document(names[_i]);
	_cleanup_free_ char *text = render(document, false);

	golden_compare(names[_i], "txt", text);
	json_decref(document);
}
END_TEST

START_TEST (plugin_lines) {
	json_t *document = golden_document(names[_i]);
	_cleanup_free_ char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int code = status_plugin(f, document);

	(void)fprintf(f, "exit %d\n", code);
	ck_assert_int_eq(fclose(f), 0);
	golden_compare(names[_i], "plugin", text);
	json_decref(document);
}
END_TEST

START_TEST (no_line_is_wider_than_a_terminal) {
	json_t *document = golden_document(names[_i]);
	_cleanup_free_ char *text = render(document, false);

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		ck_assert_msg(text_columns(line) <= TEXT_WIDTH, "%zu columns: %s",
			text_columns(line), line);
	json_decref(document);
}
END_TEST

/* Without colours no escape at all; with them only our own, and each is switched off again. */
START_TEST (only_our_own_escapes) {
	json_t *document = golden_document(names[_i]);

	for (int colours = 0; colours < 2; colours++) {
		_cleanup_free_ char *text = render(document, colours);
		bool on = false;

		for (const char *s = text; *s; s++) {
			unsigned char c = (unsigned char)*s;

			ck_assert_msg(c == '\n' || c == '\033' || (c >= 0x20 && c != 0x7f),
				"byte 0x%02x", c);
			if (c == 0xc2)
				ck_assert_msg((unsigned char)s[1] >= 0xa0, "a C1 control");
			ck_assert_msg(
				strncmp(s, "\xe2\x80\xae", 3) != 0, "a right-to-left override");
			if (c != '\033')
				continue;
			ck_assert(colours);
			ck_assert_int_eq(s[1], '[');
			ck_assert_int_eq(s[2 + strspn(s + 2, "0123456789;")], 'm');
			ck_assert_msg(on == (s[2] == '0'), "colour inside a colour");
			on = !on;
		}
		ck_assert(!on);
	}
	json_decref(document);
}
END_TEST

/* `redshankctl status | head -1` */
START_TEST (the_first_line_is_whole_in_a_pipe) {
	const struct status_view view = {.now = NOW};
	json_t *document = golden_document(names[_i]);
	_cleanup_free_ char *wrapped = render(document, false);
	char *text = NULL, *end = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	status_print(f, document, &view);
	ck_assert_int_eq(fclose(f), 0);
	end = strchr(text, '\n');
	*end = '\0';
	ck_assert_ptr_nonnull(strstr(text, ": "));
	for (char *a = text, *b = wrapped; *a; a++, b++)
		ck_assert_msg(*a == *b || (*a == ' ' && *b == '\n'), "%s", text);
	*end = '\n';
	ck_assert_msg(strcmp(end, wrapped + (end - text)) == 0, "the rest is the same: %s", end);
	free(text);
	json_decref(document);
}
END_TEST

START_TEST (ages) {
	static const struct {
		int64_t seconds;
		const char *age;
	} rows[] = {{-5, "0s"}, {0, "0s"}, {59, "59s"}, {60, "1m"}, {3599, "59m"}, {3600, "1h"},
		{86399, "23h"}, {86400, "1d"}, {400 * 86400LL, "400d"}};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_free_ char *age = text_age(rows[i].seconds);

		ck_assert_str_eq(age, rows[i].age);
	}
	ck_assert_int_eq(text_parse_time("2026-11-30T03:12:44.120Z"), NOW);
	ck_assert_int_eq(text_parse_time("2026-11-30T03:12:44Z"), NOW);
	ck_assert_int_eq(text_parse_time("2026-11-30T03:12:44+01:00"), -1);
	ck_assert_int_eq(text_parse_time("-"), -1);
}
END_TEST

START_TEST (selection) {
	static const struct {
		const char *what;
		size_t services, prefixes_of_web;
	} rows[] = {
		{"web", 1, 2},
		{"192.0.2.80/32", 1, 1},
		{"192.0.2.81", 1, 1},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		json_t *document = golden_document("ctl-status-trouble");
		const json_t *services = json_object_get(document, "services");
		struct error error;

		ck_assert_int_eq(status_select(document, rows[i].what, &error), 0);
		ck_assert_uint_eq(json_object_size(services), rows[i].services);
		ck_assert_uint_eq(json_object_size(json_object_get(
					  json_object_get(services, "web"), "prefixes")),
			rows[i].prefixes_of_web);
		json_decref(document);
	}
}
END_TEST

START_TEST (selection_of_nothing) {
	static const char *const rows[] = {
		"ftp", "192.0.2.99", "192.0.2.80/31", "192.0.2.8", "", "\033"};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		json_t *document = golden_document("ctl-status-trouble");
		struct error error = {{0}};

		ck_assert_int_eq(status_select(document, rows[i], &error), -ENOENT);
		ck_assert_msg(strstr(error.text, "dns, web") != NULL, "%s", error.text);
		ck_assert_ptr_null(strchr(error.text, '\033'));
		ck_assert_uint_eq(json_object_size(json_object_get(document, "services")), 2);
		json_decref(document);
	}
}
END_TEST

START_TEST (what_is_no_document) {
	static const struct {
		const char *body, *text;
	} rows[] = {
		{"", "not JSON"},
		{"<html>", "not JSON"},
		{"[]", "not a status of form 1"},
		{"{}", "not a status of form 1"},
		{"{\"format\": 2}", "not a status of form 1"},
		{"{\"format\": \"1\"}", "not a status of form 1"},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct error error = {{0}};

		ck_assert_ptr_null(status_parse(rows[i].body, strlen(rows[i].body), &error));
		ck_assert_msg(strstr(error.text, rows[i].text) != NULL, "%s", error.text);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl-status");
	TCase *tests = tcase_create("status");
	SRunner *runner;
	int failed, n = (int)ELEMENTSOF(names);

	tcase_add_loop_test(tests, tables, 0, n);
	tcase_add_loop_test(tests, plugin_lines, 0, n);
	tcase_add_loop_test(tests, no_line_is_wider_than_a_terminal, 0, n);
	tcase_add_loop_test(tests, only_our_own_escapes, 0, n);
	tcase_add_loop_test(tests, the_first_line_is_whole_in_a_pipe, 0, n);
	tcase_add_test(tests, ages);
	tcase_add_test(tests, selection);
	tcase_add_test(tests, selection_of_nothing);
	tcase_add_test(tests, what_is_no_document);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
