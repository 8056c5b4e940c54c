/*
 * The operators' words: what covers a prefix, how they end by the clock on the wall however that
 * jumps, and their file: read back as written, and hostile ones kept aside.
 */
#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/words/words.h"
#include "tests/unit/descriptors.h"

static char folder[] = "/tmp/redshank-words-XXXXXX";
static char path[sizeof(folder) + 32], bad[sizeof(folder) + 40];
static struct words words;

static void setup(void)
{
	struct error error = {{0}};

	(void)unlink(path);
	(void)unlink(bad);
	ck_assert_int_eq(words_load(&words, path, &error), 0);
}

static void teardown(void)
{
	words_done(&words);
}

static struct word make(const char *name, int64_t until_us)
{
	struct word word = {.since = {1000}, .until = {until_us}};

	(void)snprintf(word.name, sizeof(word.name), "%s", name);
	(void)snprintf(word.reason, sizeof(word.reason), "why \"%s\" \xe2\x82\xac\n", name);
	(void)snprintf(word.who, sizeof(word.who), "root (uid 0, pid 1)");
	return word;
}

static void put(const char *name, int64_t until_us)
{
	struct word word = make(name, until_us);

	ck_assert_int_eq(words_put(&words, &word), 0);
}

static void write_file(const char *text, size_t n)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
}

static void reload(void)
{
	struct error error = {{0}};

	words_done(&words);
	ck_assert_msg(words_load(&words, path, &error) == 0, "%s", error.text);
}

START_TEST (what_covers_a_prefix) {
	ck_assert_ptr_null(words_cover(&words, WORD_DRAIN, "dns", "192.0.2.53/32"));
	put("192.0.2.53/32", 2000);
	ck_assert_ptr_nonnull(words_cover(&words, WORD_DRAIN, "dns", "192.0.2.53/32"));
	ck_assert_ptr_null(words_cover(&words, WORD_DRAIN, "dns", "192.0.2.54/32"));
	put("dns", 5000);
	ck_assert_ptr_nonnull(words_cover(&words, WORD_DRAIN, "dns", "192.0.2.54/32"));
	ck_assert_ptr_null(words_cover(&words, WORD_DRAIN, "dns-alt", "192.0.2.55/32"));
	/* The one that lasts the longest is told. */
	ck_assert_str_eq(words_cover(&words, WORD_DRAIN, "dns", "192.0.2.53/32")->name, "dns");
	put("", INT64_MAX);
	ck_assert_ptr_nonnull(words_cover(&words, WORD_DRAIN, "dns-alt", "192.0.2.55/32"));
	ck_assert_str_eq(words_cover(&words, WORD_DRAIN, "dns", "192.0.2.53/32")->name, "");
}
END_TEST

START_TEST (one_word_about_one_name) {
	struct word word;

	put("dns", 2000);
	put("dns", 3000);
	ck_assert_uint_eq(words.n, 1);
	ck_assert_int_eq(words.items[0].until.us, 3000);
	ck_assert(!words_take(&words, WORD_DRAIN, "web", &word));
	ck_assert(words_take(&words, WORD_DRAIN, "dns", &word));
	ck_assert_int_eq(word.until.us, 3000);
	ck_assert_uint_eq(words.n, 0);
}
END_TEST

/* A weight drains nothing, and is another word than the drain of the same name. */
START_TEST (weights_and_drains_are_apart) {
	struct word word = make("192.0.2.53/32", INT64_MAX);

	word.kind = WORD_WEIGHT;
	word.weight = 7;
	ck_assert_int_eq(words_put(&words, &word), 0);
	ck_assert_ptr_null(words_cover(&words, WORD_DRAIN, "dns", "192.0.2.53/32"));
	put("192.0.2.53/32", 5);
	ck_assert_uint_eq(words.n, 2);
	ck_assert_uint_eq(words_find(&words, WORD_WEIGHT, "192.0.2.53/32")->weight, 7);
	ck_assert(words_take(&words, WORD_WEIGHT, "192.0.2.53/32", &word));
	ck_assert(!words_take(&words, WORD_WEIGHT, "192.0.2.53/32", &word));
	ck_assert_ptr_nonnull(words_cover(&words, WORD_DRAIN, "dns", "192.0.2.53/32"));
}
END_TEST

START_TEST (no_more_than_there_is_room_for) {
	struct word word = make("one too many", INT64_MAX);
	char name[16];

	for (int i = 0; i < WORDS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "s%d", i);
		put(name, INT64_MAX);
	}
	ck_assert_int_eq(words_put(&words, &word), -ENOSPC);
	put("s0", 5); /* said again takes no room */
	ck_assert_uint_eq(words.n, WORDS_MAX);
}
END_TEST

/* An end is a time on the wall: when the clock jumps over it, it has come; when it is set back, it
 * is to come again. */
START_TEST (found_in_whatever_order_they_came) {
	bool there[WORDS_MAX] = {false};
	char name[WORDS_NAME_MAX + 1];
	unsigned n = 0;

	/* 97 is prime to 256, so i * 97 comes by each number once; every other one is taken back,
	 * later. */
	for (unsigned i = 0; i < 3 * WORDS_MAX; i++) {
		unsigned k = i * 97 % WORDS_MAX;
		struct word word, taken;

		(void)snprintf(name, sizeof(name), "name-%u", k);
		word = make(name, INT64_MAX);
		word.kind = k % WORD_N_KINDS;
		if (i < WORDS_MAX || !there[k]) {
			ck_assert_int_eq(words_put(&words, &word), 0);
			there[k] = true;
		} else if (k % 2 == 1) {
			ck_assert(words_take(&words, word.kind, name, &taken));
			ck_assert_str_eq(taken.name, name);
			there[k] = false;
		}
	}
	for (unsigned k = 0; k < WORDS_MAX; k++) {
		const struct word *word;

		(void)snprintf(name, sizeof(name), "name-%u", k);
		word = words_find(&words, k % WORD_N_KINDS, name);
		ck_assert_int_eq(word != NULL, there[k]);
		if (word)
			ck_assert_str_eq(word->name, name);
		ck_assert_ptr_null(words_find(&words, (k + 1) % WORD_N_KINDS, name));
		n += there[k];
	}
	ck_assert_uint_eq(words.n, n);
}
END_TEST

START_TEST (ends_and_a_clock_that_jumps) {
	struct word word;

	ck_assert_int_eq(words_next_end(&words).us, INT64_MAX);
	put("", INT64_MAX);
	put("dns", 2000000);
	put("web", 1000000);
	ck_assert_int_eq(words_next_end(&words).us, 1000000);
	ck_assert(!words_take_ended(&words, (struct walltime){999999}, &word));
	ck_assert(!words_take_ended(&words, (struct walltime){0}, &word));
	ck_assert(words_take_ended(&words, (struct walltime){1000000}, &word));
	ck_assert_str_eq(word.name, "web");
	ck_assert(!words_take_ended(&words, (struct walltime){1000000}, &word));
	ck_assert_int_eq(words_next_end(&words).us, 2000000);
	ck_assert(words_take_ended(&words, (struct walltime){INT64_MAX - 1}, &word));
	ck_assert_str_eq(word.name, "dns");
	ck_assert(!words_take_ended(&words, (struct walltime){INT64_MAX - 1}, &word));
	ck_assert_uint_eq(words.n, 1);
}
END_TEST

START_TEST (read_back_as_written) {
	struct error error = {{0}};
	struct word was[7], weight = make("192.0.2.53/32", INT64_MAX), forced = make("dns", 7),
			    freeze = make("", INT64_MAX), shed = make("192.0.2.1/32", 9),
			    unshed = make("192.0.2.2/32", INT64_MAX);
	struct stat st;

	put("", INT64_MAX);
	put("2001:db8::53/128", 1780000000123456);
	weight.kind = WORD_WEIGHT;
	weight.weight = WORDS_WEIGHT_MAX;
	ck_assert_int_eq(words_put(&words, &weight), 0);
	forced.kind = WORD_ANNOUNCE;
	ck_assert_int_eq(words_put(&words, &forced), 0);
	freeze.kind = WORD_FREEZE;
	ck_assert_int_eq(words_put(&words, &freeze), 0);
	shed.kind = WORD_SHED;
	ck_assert_int_eq(words_put(&words, &shed), 0);
	unshed.kind = WORD_UNSHED;
	ck_assert_int_eq(words_put(&words, &unshed), 0);
	memcpy(was, words.items, sizeof(was));
	ck_assert_msg(words_save(&words, &error) == 0, "%s", error.text);
	reload();
	ck_assert_uint_eq(words.n, 7);
	ck_assert_mem_eq(words.items, was, sizeof(was));
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0640 & ~umask(022));
	ck_assert_int_ne(access(bad, F_OK), 0);
}
END_TEST

/* An agent of before there were announces and freezes wrote no such list, and reads a file only
 * where it holds none. */
START_TEST (of_an_older_agent) {
	struct error error = {{0}};
	char text[256] = "";
	FILE *f;

	ck_assert_int_eq(words_save(&words, &error), 0);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	(void)fread(text, 1, sizeof(text) - 1, f);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_str_eq(text, "{\n \"format\": 1,\n \"drains\": [],\n \"weights\": []\n}");
	reload();
}
END_TEST

START_TEST (a_folder_that_is_not_there) {
	struct error error = {{0}};
	char deep[sizeof(folder) + 64];

	words_done(&words);
	(void)snprintf(deep, sizeof(deep), "%s/new/state.json", folder);
	ck_assert_int_eq(words_load(&words, deep, &error), 0);
	put("dns", INT64_MAX);
	ck_assert_msg(words_save(&words, &error) == 0, "%s", error.text);
	ck_assert_int_eq(access(deep, R_OK), 0);
	ck_assert_int_eq(unlink(deep), 0);
	(void)snprintf(deep, sizeof(deep), "%s/new", folder);
	ck_assert_int_eq(rmdir(deep), 0); /* and no dot-file in it */

	/* Two that are missing, or a file where the folder should be: said, not made. */
	words_done(&words);
	ck_assert_int_eq(words_load(&words, "/tmp/redshank-none/none/state.json", &error), 0);
	ck_assert_int_lt(words_save(&words, &error), 0);
	ck_assert_ptr_nonnull(strstr(error.text, "No such file"));
}
END_TEST

#define GOOD "{\"name\": \"a\", \"reason\": \"\", \"who\": \"\", \"since\": 1, \"until\": null}"
#define WEIGHT(n)                                                                            \
	"{\"name\": \"a\", \"reason\": \"\", \"who\": \"\", \"since\": 1, \"until\": null, " \
	"\"weight\": " n "}"
#define OTHER(list, item) \
	"{\"format\": 1, \"drains\": [], \"weights\": [], \"" list "\": [" item "]}"
#define FILE_OF(items) "{\"format\": 1, \"drains\": [" items "], \"weights\": []}"

/* Whatever it is, nothing of it is believed, and it is kept. */
START_TEST (hostile_files) {
	static const char *const rows[] = {
		"",
		"{",
		"[]",
		"null",
		"{\"format\": 2, \"drains\": []}",
		"{\"format\": 1}",
		"{\"format\": 1, \"drains\": []}",
		"{\"format\": 1, \"drains\": [], \"weights\": [" GOOD "]}",
		"{\"format\": 1, \"drains\": [], \"weights\": [" WEIGHT("65536") "]}",
		"{\"format\": 1, \"drains\": [], \"weights\": [" WEIGHT("-1") "]}",
		"{\"format\": 1, \"drains\": [], \"weights\": [" WEIGHT("\"1\"") "]}",
		"{\"format\": 1, \"drains\": {}}",
		"{\"format\": 1, \"drains\": [], \"more\": 1}",
		"{\"format\": 1, \"format\": 1, \"drains\": []}",
		OTHER("freeze", ""),
		OTHER("freezes", GOOD),	  /* of one name */
		OTHER("announces", GOOD), /* without an end */
		OTHER("announces",
			"{\"name\": null, \"reason\": \"\", \"who\": \"\", \"since\": 1, "
			"\"until\": 1}"),
		FILE_OF("1"),
		FILE_OF("{}"),
		FILE_OF(GOOD ", 1"),
		FILE_OF(GOOD ", " GOOD),
		FILE_OF("{\"name\": 1, \"reason\": \"\", \"who\": \"\", \"since\": 1, \"until\": "
			"1}"),
		FILE_OF("{\"name\": \"a\", \"reason\": \"\", \"who\": \"\", \"since\": -1, "
			"\"until\": 1}"),
		FILE_OF("{\"name\": \"a\", \"reason\": \"\", \"who\": \"\", \"since\": 1, "
			"\"until\": 1.5}"),
		FILE_OF("{\"name\": \"a\", \"reason\": null, \"who\": \"\", \"since\": 1, "
			"\"until\": 1}"),
		FILE_OF("{\"name\": \"a\\u0000\", \"reason\": \"\", \"who\": \"\", \"since\": 1, "
			"\"until\": 1}"),
		FILE_OF("{\"name\": "
			"\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			"\", \"reason\": \"\", \"who\": \"\", \"since\": 1, \"until\": 1}"),
		FILE_OF(GOOD) "x",
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct error error = {{0}};

		words_done(&words);
		write_file(rows[i], strlen(rows[i]));
		ck_assert_msg(words_load(&words, path, &error) < 0, "row %zu: %s", i, rows[i]);
		ck_assert_msg(strstr(error.text, "it is kept as") != NULL, "%s", error.text);
		ck_assert_uint_eq(words.n, 0);
		ck_assert_int_ne(access(path, F_OK), 0);
		ck_assert_int_eq(unlink(bad), 0);
		/* It goes on from there. */
		put("dns", INT64_MAX);
		ck_assert_int_eq(words_save(&words, &error), 0);
		reload();
		ck_assert_uint_eq(words.n, 1);
	}
	write_file(FILE_OF(GOOD), strlen(FILE_OF(GOOD)));
	reload();
	ck_assert_uint_eq(words.n, 1);
}
END_TEST

START_TEST (files_that_are_none) {
	static char big[2 * 1024 * 1024];
	struct error error = {{0}};
	struct stat st;

	memset(big, ' ', sizeof(big));
	words_done(&words);
	write_file(big, sizeof(big));
	ck_assert_int_eq(words_load(&words, path, &error), -E2BIG);
	ck_assert_int_eq(unlink(bad), 0);
	/* A pipe does not hang, a link is not followed. */
	words_done(&words);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_lt(words_load(&words, path, &error), 0);
	ck_assert_int_eq(unlink(bad), 0);
	words_done(&words);
	ck_assert_int_eq(symlink("/etc/passwd", path), 0);
	ck_assert_int_lt(words_load(&words, path, &error), 0);
	ck_assert_int_eq(lstat(bad, &st), 0);
	ck_assert(S_ISLNK(st.st_mode));
	ck_assert_int_eq(unlink(bad), 0);
}
END_TEST

/* Every allocation of the JSON library fails once: what was said is read, or lies where it lay, or
 * is kept aside; it is never lost. */
static long allocations_left;

static void *failing_malloc(size_t n)
{
	return allocations_left-- > 0 ? malloc(n) : NULL;
}

START_TEST (memory_ends_anywhere) {
	struct error error = {{0}};
	bool refused = false;
	int r = -ENOMEM;

	put("dns", INT64_MAX);
	ck_assert_int_eq(words_save(&words, &error), 0);
	for (long n = 0; r < 0; n++) {
		ck_assert_int_lt(n, 1000);
		words_done(&words);
		allocations_left = n;
		json_set_alloc_funcs(failing_malloc, free);
		r = words_load(&words, path, &error);
		json_set_alloc_funcs(malloc, free);
		refused = refused || r == -ENOMEM;
		if (r < 0 && r != -ENOMEM) /* jansson takes it for a syntax error there */
			ck_assert_int_eq(rename(bad, path), 0);
		ck_assert_int_eq(access(path, F_OK), 0);
		ck_assert_int_ne(access(bad, F_OK), 0);
	}
	ck_assert(refused);
	ck_assert_uint_eq(words.n, 1);
}
END_TEST

/* A host that is out of descriptors for a moment says nothing about the file. */
START_TEST (no_descriptors) {
	rlim_t before;
	struct error error = {{0}};

	put("dns", INT64_MAX);
	ck_assert_int_eq(words_save(&words, &error), 0);
	words_done(&words);
	before = descriptors_limit(3);
	ck_assert_int_eq(words_load(&words, path, &error), -EMFILE);
	(void)descriptors_limit(before);
	ck_assert_int_ne(access(bad, F_OK), 0);
	words_done(&words);
	ck_assert_int_eq(words_load(&words, path, &error), 0);
	ck_assert_uint_eq(words.n, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("words-store");
	TCase *tc = tcase_create("all");
	SRunner *runner;
	int failed;

	if (!mkdtemp(folder))
		return 1;
	(void)snprintf(path, sizeof(path), "%s/state.json", folder);
	(void)snprintf(bad, sizeof(bad), "%s.bad", path);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_covers_a_prefix);
	tcase_add_test(tc, one_word_about_one_name);
	tcase_add_test(tc, weights_and_drains_are_apart);
	tcase_add_test(tc, no_more_than_there_is_room_for);
	tcase_add_test(tc, found_in_whatever_order_they_came);
	tcase_add_test(tc, ends_and_a_clock_that_jumps);
	tcase_add_test(tc, read_back_as_written);
	tcase_add_test(tc, of_an_older_agent);
	tcase_add_test(tc, a_folder_that_is_not_there);
	tcase_add_test(tc, hostile_files);
	tcase_add_test(tc, files_that_are_none);
	tcase_add_test(tc, memory_ends_anywhere);
	tcase_add_test(tc, no_descriptors);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	(void)unlink(path);
	(void)unlink(bad);
	(void)rmdir(folder);
	return failed ? 1 : 0;
}
