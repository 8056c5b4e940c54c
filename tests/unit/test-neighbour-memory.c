/*
 * Reading certificates and members without memory: whichever allocation fails, it is an error and
 * nothing leaks. The linker puts the functions below between neighbour/ and the allocator
 * (CMakeLists.txt, --wrap).
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/neighbour/pins.h"

static char names[4][16] = {"edge3", "127.0.0.3:9480", "edge2", "127.0.0.2:9480"};
static char *members[] = {names[0], names[1], names[2], names[3], NULL};
static char own[] = "127.0.0.1:9480", site[] = "lab";
static const struct config_neighbours config = {
	.listen = own,
	.site = site,
	.plain = true,
	.members = {.items = members, .n = ELEMENTSOF(members) - 1},
};

static long fails_after = -1; /* so many more allocations succeed; negative: all do */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
char *__wrap_strdup(const char *text);

static bool fails(void)
{
	return fails_after >= 0 && fails_after-- == 0;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : __real_strdup(text);
}

START_TEST (members_without_memory) {
	struct pins *pins = NULL;
	int r = -ENOMEM;
	long n;

	for (n = 0; r < 0; n++) {
		struct error error = {""};

		ck_assert_int_lt(n, 100);
		fails_after = n;
		r = pins_new(&pins, &config, "edge1", &error);
		fails_after = -1;
		ck_assert(r == 0 || r == -ENOMEM);
		ck_assert((r == 0) == (error.text[0] == '\0'));
	}
	ck_assert_int_gt(n, 6);
	ck_assert_uint_eq(pins_count(pins), 2);
	ck_assert_str_eq(pins_member(pins, 0)->name, "edge2");
	pins_unref(pins);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("neighbour-memory");
	TCase *t = tcase_create("memory");
	SRunner *runner;
	int failed;

	tcase_add_test(t, members_without_memory);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
