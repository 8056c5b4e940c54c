/* Text of outsiders made fit to be shown. */
#include "agent/base/printable.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"

static const struct {
	const char *text, *shown;
} rows[] = {
	{"", ""},
	{"plain text, 100 % fine \\n", "plain text, 100 % fine \\n"},
	{"a\nb\tc\r", "a\\x0ab\\x09c\\x0d"},
	{"\x1b[2J\x7f", "\\x1b[2J\\x7f"},
	{"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xa6", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xa6"},
	{"\xc2\x85", "\\xc2\\x85"}, /* C1: NEL */
	{"\xe2\x80\xae"
	 "evil",
		"\\xe2\\x80\\xae"
		"evil"},		     /* right to left from here on */
	{"\xe2\x80\xa8", "\\xe2\\x80\\xa8"}, /* LINE SEPARATOR */
	{"\xc0\xaf", "\\xc0\\xaf"},	     /* overlong */
	{"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},
	{"\xf0\x80\x80\xaf", "\\xf0\\x80\\x80\\xaf"},
	{"\xed\xa0\x80", "\\xed\\xa0\\x80"},	      /* half of a surrogate pair */
	{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* above U+10FFFF */
	{"\xff\xfe", "\\xff\\xfe"},
	{"\xc3", "\\xc3"}, /* cut off */
	{"\xe2\x82", "\\xe2\\x82"},
	{"\x80x", "\\x80x"},
};

START_TEST (what_passes) {
	char buf[256];

	ck_assert_str_eq(printable_copy(buf, sizeof(buf), rows[_i].text, strlen(rows[_i].text)),
		rows[_i].shown);
}
END_TEST

START_TEST (a_nul_is_shown) {
	char buf[16];

	ck_assert_str_eq(printable_copy(buf, sizeof(buf), "a\0b", 3), "a\\x00b");
}
END_TEST

/* Whatever the room, what comes out fits, and is either all or a whole part of it and dots. */
START_TEST (nothing_is_cut_in_two) {
	static const char text[] = "ab\n\xe2\x82\xac\xf0\x9f\x90\xa6\xff\xc3\xa9xyz";
	char whole[128];
	size_t n;

	(void)printable_copy(whole, sizeof(whole), text, sizeof(text) - 1);
	n = strlen(whole);
	for (size_t size = 8; size < n + 8; size++) {
		char *buf = malloc(size); /* of that size, for the sanitizer to look at */
		char again[128];
		size_t length;

		(void)printable_copy(buf, size, text, sizeof(text) - 1);
		length = strlen(buf);
		if (size > n) {
			ck_assert_str_eq(buf, whole);
		} else {
			ck_assert_uint_ge(length, 3);
			ck_assert_str_eq(buf + length - 3, "...");
			ck_assert_mem_eq(buf, whole, length - 3);
			/* Valid as it stands: nothing is left to escape. */
			ck_assert_str_eq(printable_copy(again, sizeof(again), buf, length), buf);
		}
		free(buf);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base-printable");
	TCase *c = tcase_create("printable");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(c, what_passes, 0, ELEMENTSOF(rows));
	tcase_add_test(c, a_nul_is_shown);
	tcase_add_test(c, nothing_is_cut_in_two);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
