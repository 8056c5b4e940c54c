/* Patterns beside glibc's regexec(3) on random expressions and texts, what is refused and that the
 * worst of them end. */
#include <check.h>
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pattern.h"

static bool matches(const char *text, const char *data, size_t n)
{
	struct pattern *p = NULL;
	bool found;

	ck_assert_msg(pattern_new(text, &p) == 0, "%s: %s", text, pattern_form(text));
	found = pattern_search(p, data, n);
	pattern_free(p);
	return found;
}

START_TEST (what_matches) {
	static const struct {
		const char *pattern, *text;
		bool found;
	} rows[] = {
		{"ok", "it is ok.", true},
		{"ok", "o k", false},
		{"^ok$", "ok", true},
		{"^ok$", "not\nok\nat all", true},
		{"^ok$", "ok\r\n", false},
		{"^$", "a\n\nb", true},
		{"^$", "a\nb", false},
		{"$", "", true},
		{"a.c", "a\nc", false},
		{"a[^b]c", "a\nc", false},
		{"a[\n]c", "a\nc", true},
		{"a|b|cd", "xcd", true},
		{"(a|b)+c", "ababc", true},
		{"^(a|b)+$", "abcab", false},
		{"^a{3}$", "aaa", true},
		{"^a{3}$", "aaaa", false},
		{"^a{2,}$", "aaaa", true},
		{"^a{2,}$", "a", false},
		{"^a{1,3}$", "aaa", true},
		{"^a{1,3}$", "aaaa", false},
		{"^(ab{2}){2}$", "abbabb", true},
		{"^[]a-c-]+$", "]a-b", true},
		{"^[^]]$", "]", false},
		{"^[[:digit:][:upper:]_]+$", "A_9", true},
		{"^[[:digit:]]$", "x", false},
		{"\\.\\*\\\\\\/", ".*\\/", true},
		{"[\\]", "\\", true},
		{"\xc3\xa9", "caf\xc3\xa9", true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(matches(rows[i].pattern, rows[i].text, strlen(rows[i].text)) ==
				      rows[i].found,
			"/%s/ on \"%s\"", rows[i].pattern, rows[i].text);
	ck_assert(matches("a.c", "a\0c", 3));
	ck_assert(matches("c$", "a\0c", 3));
}
END_TEST

START_TEST (what_is_refused) {
	static const char *const rows[] = {"a**", "a+?", "(", "a)", "|a", "a|", "()", "a{2",
		"a{,2}", "a{256}", "a{3,2}", "a{0}", "[a", "[]", "\\1", "(a)\\1", "\\w", "\\b",
		"\\<a", "[b-a]", "*a", "+", "{1}", "^*", "[[:foo:]]", "[[=a=]]", "[[.a.]]", "a\\",
		"((a{100}){100})", "((((a{200}){200}){200}){200})"};
	char deep[100];
	struct pattern *p = NULL;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_msg(pattern_form(rows[i]) != NULL, "%s is accepted", rows[i]);
		ck_assert_int_eq(pattern_new(rows[i], &p), -EINVAL);
		ck_assert_ptr_null(p);
	}
	memset(deep, '(', 40);
	memset(deep + 40, 'a', 1);
	memset(deep + 41, ')', 40);
	deep[81] = '\0';
	ck_assert_ptr_nonnull(strstr(pattern_form(deep), "32 parentheses"));
}
END_TEST

static void random_pattern(char *to, size_t size)
{
	static const char *const atoms[] = {"a", "b", "c", ".", "[ab]", "[^a]", "(a|bc)", "(ab|c*)",
		"^", "$", "a*", "b+", "c?", "[[:digit:]]", "(a|b){2,3}", "\\."};
	unsigned n = 1 + (unsigned)random() % 5;

	to[0] = '\0';
	for (unsigned i = 0; i < n; i++) {
		const char *bar = random() % 8 == 0 && i + 1 < n ? "|" : "";

		ck_assert_uint_lt(strlen(to) + 20, size);
		strcat(to, atoms[random() % 16]);
		strcat(to, bar);
	}
}

START_TEST (as_glibc_does) {
	unsigned found = 0;
	char text[160], data[10] = ""; /* ends with a NUL for a checked regexec() */
	regex_t regex;

	srandom(7);
	for (unsigned i = 0; i < 3000; i++) {
		random_pattern(text, sizeof(text));
		ck_assert_int_eq(regcomp(&regex, text, REG_EXTENDED | REG_NOSUB | REG_NEWLINE), 0);
		for (unsigned k = 0; k < 10; k++) {
			size_t n = (size_t)random() % (sizeof(data) - 1);
			regmatch_t whole = {.rm_so = 0, .rm_eo = (regoff_t)n};
			bool wanted;

			for (size_t b = 0; b < n; b++)
				data[b] = "abc\n1."[random() % 6];
			wanted = regexec(&regex, data, 1, &whole, REG_STARTEND) == 0;
			found += wanted;
			ck_assert_msg(matches(text, data, n) == wanted, "/%s/ on \"%.*s\"", text,
				(int)n, data);
		}
		regfree(&regex);
	}
	ck_assert_uint_gt(found, 3000);
	ck_assert_uint_lt(found, 27000);
}
END_TEST

/* Each would take regexec(3) from some milliseconds to the end of memory; here, the test's own time
 * limit is far away. */
START_TEST (the_worst_ends) {
	static const char *const rows[] = {"(a|b)*a(a|b){20}c", "(a|b)*a(a|b){100}c",
		"((((a+)+)+)+)+c", "(.?){200}c", "(.*a){100}c", "(a*)*b{10}c"};
	static char data[4096];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = "ab"[random() & 1];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert(!matches(rows[i], data, sizeof(data)));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("probes-pattern");
	TCase *t = tcase_create("pattern");
	SRunner *runner;
	int failed;

	tcase_add_test(t, what_matches);
	tcase_add_test(t, what_is_refused);
	tcase_add_test(t, as_glibc_does);
	tcase_add_test(t, the_worst_ends);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
