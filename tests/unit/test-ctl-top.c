/*
 * The screens of top: status documents of every kind at sizes from one cell to a wall, compared
 * with what they should look like, and never wider or higher than the terminal. REDSHANK_GOLDEN=1
 * writes the screens anew.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/ctl/status.h"
#include "agent/ctl/text.h"
#include "agent/ctl/top_draw.h"
#include "tests/unit/golden.h"

#define NOW_MS 1796008368000LL /* 2026-11-30T03:12:48Z */

static char *draw(const struct top_view *view)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	top_draw(f, view);
	ck_assert_int_eq(fclose(f), 0);
	return text;
}

/* Every line fits. Colours take no room. */
static void fits(const char *text, const struct top_view *view)
{
	_cleanup_free_ char *copy = strdup(text);
	unsigned lines = 0;

	for (char *line = copy, *end; line; line = end) {
		char *to = line;

		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		for (const char *from = line; *from;) {
			if (strncmp(from, "\033[", 2) == 0) {
				from += strcspn(from, "m") + 1;
				continue;
			}
			*to++ = *from++;
		}
		*to = '\0';
		ck_assert_msg(text_columns(line) <= view->width, "%ux%u: %s", view->width,
			view->height, line);
		ck_assert_ptr_null(strpbrk(line, "\033\r\t"));
		lines++;
	}
	ck_assert_msg(lines <= view->height, "%ux%u:\n%s", view->width, view->height, text);
}

static const struct screen {
	const char *name, *document; /* NULL: none */
	unsigned width, height;
	const char *error;
} screens[] = {
	{"ctl-top-trouble", "ctl-status-trouble", 80, 24, NULL},
	{"ctl-top-trouble-low", "ctl-status-trouble", 80, 8, NULL},
	{"ctl-top-trouble-narrow", "ctl-status-trouble", 40, 12, NULL},
	{"ctl-top-quiet", "ctl-status-quiet", 80, 24, NULL},
	{"ctl-top-away", "ctl-status-away", 80, 24, NULL},
	{"ctl-top-hostile", "ctl-status-hostile", 80, 24, NULL},
	{"ctl-top-gone", "ctl-status-quiet", 80, 24,
		"no agent at /run/redshank/status.sock: Connection refused. The socket is there, "
		"but no agent listens"},
};

START_TEST (as_they_should_be) {
	const struct screen *s = &screens[_i];
	json_t *document = golden_document(s->document);
	struct top_view view = {.document = document,
		.error = s->error,
		.width = s->width,
		.height = s->height,
		.now_ms = NOW_MS};
	_cleanup_free_ char *text = draw(&view), *lines = NULL;

	fits(text, &view);
	ck_assert_int_gt(asprintf(&lines, "%s\n", text), 0);
	golden_compare(s->name, "txt", lines);
	json_decref(document);
}
END_TEST

/* n services, of which every tenth is unhealthy, with a check that is down and `prefixes`. */
static json_t *many(int n, int prefixes)
{
	json_t *services = json_object();

	for (int i = 0; i < n; i++) {
		bool bad = i % 10 == 3;
		json_t *of = json_object();
		char name[32];

		for (int p = 0; p < prefixes; p++) {
			(void)snprintf(name, sizeof(name), "192.0.%d.%d/32", i, p);
			json_object_set_new(of, name,
				json_pack("{s:s,s:b,s:i,s:s}", "wanted",
					bad ? "withdraw" : "announce", "announced", !bad,
					"exported", bad ? 0 : 2, "reason",
					bad ? "unhealthy" : "healthy"));
		}
		(void)snprintf(name, sizeof(name), "s%03d", i);
		json_object_set_new(services, name,
			json_pack("{s:s,s:{s:{s:s,s:s}},s:o}", "health",
				bad ? "unhealthy" : "healthy", "checks", "port", "state",
				bad ? "down" : "up", "reason", bad ? "timeout" : "", "prefixes",
				of));
	}
	return json_pack("{s:s,s:{s:s,s:i,s:i},s:o}", "node", "edge1", "bird", "link", "up",
		"sessions", 2, "sessions_up", 2, "services", services);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
		n++;
	return n;
}

/* Troubles first, none hidden behind the prefixes of another; what is well goes out first. */
START_TEST (many_services_at_80x24) {
	struct top_view view = {.width = 80, .height = 24};
	_cleanup_free_ char *few = NULL, *wide = NULL, *much = NULL;
	json_t *document = many(100, 40);

	view.document = document;
	few = draw(&view);
	fits(few, &view);
	ck_assert_uint_eq(count(few, "is unhealthy\n"), 10);
	ck_assert_ptr_nonnull(strstr(few, "\ns003"));
	ck_assert_ptr_nonnull(strstr(few, "\ns093"));
	ck_assert_msg(strstr(few, "more services, all well\n") != NULL, "%s", few);
	ck_assert_ptr_nonnull(strstr(few, "  and 41 more\n"));
	view.height = 200;
	wide = draw(&view);
	fits(wide, &view);
	ck_assert_ptr_nonnull(strstr(wide, "check port down"));
	ck_assert_ptr_nonnull(strstr(wide, "192.0.93.0/32 withdraw"));
	json_decref(document);
	document = many(300, 1);
	view = (struct top_view){.document = document, .width = 80, .height = 24};
	much = draw(&view);
	fits(much, &view);
	ck_assert_ptr_nonnull(strstr(much, "also some in trouble: enlarge the window"));
	json_decref(document);
}
END_TEST

START_TEST (neighbours_in_the_head) {
	struct top_view view = {.width = 120, .height = 24};
	_cleanup_free_ char *with = NULL, *without = NULL;
	json_t *document = many(3, 1);

	view.document = document;
	without = draw(&view);
	ck_assert_ptr_null(strstr(without, "neighbours"));
	(void)json_object_set_new(document, "shed",
		json_pack("{s:i, s:i, s:i}", "neighbours", 4, "neighbours_fresh", 3, "out", 2));
	with = draw(&view);
	ck_assert_msg(strstr(with, ", 3 of 4 neighbours fresh, 2 shed") != NULL, "%s", with);
	json_decref(document);
}
END_TEST

/* From one cell up, with and without colours, with and without a document. */
START_TEST (every_size) {
	json_t *documents[] = {golden_document("ctl-status-trouble"),
		golden_document("ctl-status-hostile"), many(12, 3), NULL, json_pack("{}"),
		json_pack("{s:{s:[],s:{}}}", "services", "a", "b")};

	for (size_t d = 0; d < ELEMENTSOF(documents); d++) {
		for (unsigned i = 0; i < 600; i++) {
			struct top_view view = {.document = documents[d],
				.width = 1 + i % 100 * (i < 300 ? 1 : 2),
				.height = 1 + i / 20,
				.colours = i % 2,
				.error = i % 3 ? NULL : "no agent \033[2J",
				.now_ms = NOW_MS};
			_cleanup_free_ char *text = draw(&view);

			fits(text, &view);
		}
		json_decref(documents[d]);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl-top");
	TCase *tests = tcase_create("top");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, as_they_should_be, 0, ELEMENTSOF(screens));
	tcase_add_test(tests, many_services_at_80x24);
	tcase_add_test(tests, neighbours_in_the_head);
	tcase_add_test(tests, every_size);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
