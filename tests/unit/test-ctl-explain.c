/*
 * What `redshankctl explain` prints of documents in tests/unit/data: ctl-explain-NAME.json is the
 * document, as a real agent gave it in that trouble (doubt, spread, leaving, rare, waiting,
 * managed, load and hostile were changed by hand), NAME.txt the text. With REDSHANK_GOLDEN=write in
 * the environment the texts are written anew: read them before they are committed.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/ctl/explain.h"
#include "tests/unit/cost.h"
#include "tests/unit/golden.h"

static const char *const names[] = {"ctl-explain-healthy", "ctl-explain-dead", "ctl-explain-rising",
	"ctl-explain-hang", "ctl-explain-address", "ctl-explain-first-round", "ctl-explain-unknown",
	"ctl-explain-away", "ctl-explain-silent", "ctl-explain-broken", "ctl-explain-elsewhere",
	"ctl-explain-session-down", "ctl-explain-stopping", "ctl-explain-waiting",
	"ctl-explain-reading", "ctl-explain-starting", "ctl-explain-drained", "ctl-explain-weight",
	"ctl-explain-doubt", "ctl-explain-spread", "ctl-explain-leaving", "ctl-explain-rare",
	"ctl-explain-managed", "ctl-explain-load", "ctl-explain-hostile"};

static char *render(const json_t *document, bool colours)
{
	const struct status_view view = {.colours = colours};
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	explain_print(f, document, &view);
	ck_assert_int_eq(fclose(f), 0);
	return text;
}

START_TEST (texts) {
	json_t *document = golden_document(names[_i]);
	_cleanup_free_ char *text = render(document, false);

	golden_compare(names[_i], "txt", text);
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
			ck_assert_msg(
				strncmp(s, "\xe2\x80\xae", 3) != 0, "a right-to-left override");
			if (c != '\033')
				continue;
			ck_assert(colours);
			ck_assert_int_eq(s[2 + strspn(s + 2, "0123456789;")], 'm');
			ck_assert_msg(on == (s[2] == '0'), "colour inside a colour");
			on = !on;
		}
		ck_assert(!on);
	}
	json_decref(document);
}
END_TEST

/* A service of n prefixes that died, the last one with another weight. */
static json_t *document_of_many(unsigned n)
{
	json_t *document = golden_document("ctl-explain-dead"), *prefixes, *sample;
	char name[64];

	prefixes = json_object_get(
		json_object_get(json_object_get(document, "services"), "dns"), "prefixes");
	sample = json_deep_copy(json_object_get(prefixes, "192.0.2.53/32"));
	ck_assert_int_eq(json_object_clear(prefixes), 0);
	for (unsigned i = 0; i < n; i++) {
		json_t *one = json_deep_copy(sample);

		(void)snprintf(name, sizeof(name), "10.0.%u.%u/32", i / 256, i % 256);
		if (i == n - 1)
			json_object_set_new(one, "weight", json_integer(7));
		ck_assert_int_eq(json_object_set_new(prefixes, name, one), 0);
	}
	json_decref(sample);
	return document;
}

static json_t *few, *many;

static void render_many(unsigned n)
{
	free(render(n == 5000 ? many : few, false));
}

/* It is one block, and one whose prefixes differ is a few. */
START_TEST (five_thousand_prefixes) {
	_cleanup_free_ char *text = NULL;
	size_t lines = 0;

	few = document_of_many(5000 / COST_TIMES);
	many = document_of_many(5000);
	cost_expect_linear(render_many, 5000);
	text = render(many, false);
	for (const char *s = text; *s; s++)
		lines += *s == '\n';
	ck_assert_msg(lines < 40, "%zu lines", lines);
	ck_assert_ptr_nonnull(strstr(text, "4999 prefixes: 10.0.0.0/32, "));
	ck_assert_ptr_nonnull(strstr(text, "and 4991 more"));
	ck_assert_ptr_nonnull(strstr(text, "protocol redshank:dns:* is down"));
	ck_assert_ptr_nonnull(strstr(text, "\n10.0.19.135/32\n"));
	ck_assert_ptr_nonnull(strstr(text, "7, the service's own."));
	json_decref(few);
	json_decref(many);
}
END_TEST

/* The text with every white space between words as one space. */
static char *on_one_line(const char *text)
{
	char *flat = calloc(1, strlen(text) + 1), *to = flat;

	for (const char *s = text; *s; s++) {
		if (*s != ' ' && *s != '\n')
			*to++ = *s;
		else if (to > flat && to[-1] != ' ')
			*to++ = ' ';
	}
	return flat;
}

/* Blocks that all differ keep their order and none is lost. */
START_TEST (many_blocks) {
	json_t *document = golden_document("ctl-explain-dead"), *prefixes, *sample;
	_cleanup_free_ char *text = NULL;
	const char *at;
	char name[64];

	prefixes = json_object_get(
		json_object_get(json_object_get(document, "services"), "dns"), "prefixes");
	sample = json_deep_copy(json_object_get(prefixes, "192.0.2.53/32"));
	ck_assert_int_eq(json_object_clear(prefixes), 0);
	for (int i = 0; i < 100; i++) {
		json_t *one = json_deep_copy(sample);

		(void)snprintf(name, sizeof(name), "10.0.0.%d/32", i);
		json_object_set_new(one, "weight", json_integer(i));
		ck_assert_int_eq(json_object_set_new(prefixes, name, one), 0);
	}
	text = render(document, false);
	at = text;
	for (int i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "\n10.0.0.%d/32\n", i);
		at = strstr(at, name);
		ck_assert_msg(at != NULL, "%s", name);
		(void)snprintf(name, sizeof(name), "  Weight    %d, the", i);
		at = strstr(at, name);
		ck_assert_msg(at != NULL, "%s", name);
	}
	json_decref(sample);
	json_decref(document);
}
END_TEST

START_TEST (spans) {
	static const struct {
		const char *at, *says;
	} rows[] = {
		{"2026-11-30T03:12:44.138Z", "due in 18ms."},
		{"2026-11-30T03:12:45.119Z", "due in 999ms."},
		{"2026-11-30T03:12:45.120Z", "due in 1.0s."},
		{"2026-11-30T03:12:54.119Z", "due in 9.9s."},
		{"2026-11-30T03:13:44.120Z", "due in 60s."},
		{"2026-11-30T05:12:44.120Z", "due in 2h."},
		{"2026-11-30T05:11:44.120Z", "due in 1h59m."},
		{"2026-12-03T05:12:44.120Z", "due in 3d2h."},
		{"2026-11-30T03:12:44.120Z", "due now."},
		{"2026-11-30T03:12:40Z", "due now."},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		json_t *document = golden_document("ctl-explain-waiting"), *prefixes, *prefix;
		_cleanup_free_ char *text = NULL, *flat = NULL;
		const char *name;

		prefixes = json_object_get(
			json_object_get(json_object_get(document, "services"), "dns"), "prefixes");
		json_object_foreach (prefixes, name, prefix)
			json_object_set_new(json_array_get(json_object_get(prefix, "next"), 0),
				"at", json_string(rows[i].at));
		text = render(document, false);
		flat = on_one_line(text);
		ck_assert_msg(strstr(flat, rows[i].says) != NULL, "%s: %s", rows[i].says, flat);
		json_decref(document);
	}
}
END_TEST

START_TEST (what_is_asked) {
	static const struct {
		const char *name, *path;
	} rows[] = {
		{"dns", "/v1/explain?name=dns"},
		{"192.0.2.53/32", "/v1/explain?name=192.0.2.53%2F32"},
		{"2001:db8::53", "/v1/explain?name=2001:db8::53"},
		{"a b&c=\xc3\xa9\n%", "/v1/explain?name=a%20b%26c%3D%C3%A9%0A%25"},
		{"", "/v1/explain?name="},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_free_ char *path = explain_path(rows[i].name);

		ck_assert_str_eq(path, rows[i].path);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl-explain");
	TCase *tests = tcase_create("explain");
	SRunner *runner;
	int failed, n = (int)ELEMENTSOF(names);

	tcase_set_timeout(tests, 30);
	tcase_add_loop_test(tests, texts, 0, n);
	tcase_add_loop_test(tests, no_line_is_wider_than_a_terminal, 0, n);
	tcase_add_loop_test(tests, only_our_own_escapes, 0, n);
	tcase_add_test(tests, five_thousand_prefixes);
	tcase_add_test(tests, many_blocks);
	tcase_add_test(tests, spans);
	tcase_add_test(tests, what_is_asked);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
