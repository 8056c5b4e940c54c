/*
 * The thread that keeps the words on disk: what is written, what the loop hears, a disk that fails
 * and one that hangs: fsync(2) of this program (CMakeLists.txt, --wrap) takes until a pipe ends.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/words/keeper.h"
#include "tests/unit/loop.h"

static char folder[] = "/tmp/redshank-keeper-XXXXXX";
static char path[sizeof(folder) + 32], dot[sizeof(folder) + 32];
static sd_event *event;
static struct keeper *keeper;
static char heard[ERROR_TEXT_MAX];
static unsigned times;

static int hangs_until = -1; /* the end of this pipe; negative: it does not hang */

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
	char byte;

	if (hangs_until >= 0)
		(void)!read(hangs_until, &byte, 1);
	return __real_fsync(fd);
}

static void on_changed(void *userdata, const char *error)
{
	ck_assert_ptr_eq(userdata, &times);
	(void)snprintf(heard, sizeof(heard), "%s", error);
	times++;
}

static void setup(void)
{
	times = 0;
	ck_assert_int_ge(sd_event_new(&event), 0);
	ck_assert_int_eq(keeper_new(&keeper, event, path, on_changed, &times), 0);
}

static void teardown(void)
{
	keeper_free(keeper);
	sd_event_unref(event);
	(void)unlink(dot);
	(void)unlink(path);
	(void)rmdir(path);
}

static const char *content(void)
{
	static char text[256];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		(void)close(fd);
	return text;
}

static int put(const char *text, unsigned ms)
{
	struct error error = {{0}};

	return keeper_put(keeper, strdup(text), ms, &error);
}

START_TEST (what_is_given_is_written) {
	ck_assert_int_eq(put("one", 60000), 1);
	ck_assert_str_eq(content(), "one");
	ck_assert_int_eq(put("two", 60000), 1);
	ck_assert_str_eq(content(), "two");
	LOOP_FOR(event, 20);
	ck_assert_uint_eq(times, 0); /* no news */
	ck_assert_str_eq(keeper_error(keeper), "");
	(void)put("three", 0);
	keeper_free(keeper); /* not before it is written */
	keeper = NULL;
	ck_assert_str_eq(content(), "three");
}
END_TEST

START_TEST (a_disk_that_fails) {
	struct error error = {{0}};

	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_lt(keeper_put(keeper, strdup("one"), 60000, &error), 0);
	ck_assert_ptr_nonnull(strstr(error.text, path));
	ck_assert(LOOP_UNTIL(event, times == 1, 5000));
	ck_assert_str_eq(heard, error.text);
	ck_assert_str_eq(keeper_error(keeper), error.text);
	ck_assert_int_lt(put("two", 60000), 0);
	LOOP_FOR(event, 20);
	ck_assert_uint_eq(times, 1); /* the same is said once */
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(put("three", 60000), 1);
	ck_assert(LOOP_UNTIL(event, times == 2, 5000));
	ck_assert_str_eq(heard, "");
	ck_assert_str_eq(content(), "three");
}
END_TEST

/* Nobody has to say it again; and who leaves tries once more. */
START_TEST (a_disk_that_works_again) {
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_lt(put("one", 60000), 0);
	ck_assert(LOOP_UNTIL(event, times == 1, 5000));
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert(LOOP_UNTIL(event, times == 2, 5000));
	ck_assert_str_eq(heard, "");
	ck_assert_str_eq(content(), "one");
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_lt(put("two", 60000), 0);
	ck_assert_int_eq(rmdir(path), 0);
	keeper_free(keeper);
	keeper = NULL;
	ck_assert_str_eq(content(), "two");
}
END_TEST

/* Nobody waits for it, the newest text wins, and it is all well when it goes on. */
START_TEST (a_disk_that_hangs) {
	struct monotime begun = clock_monotime();
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	hangs_until = ends[0];
	ck_assert_int_eq(put("one", 20), 0);
	ck_assert_int_eq(put("two", 0), 0);
	ck_assert_int_eq(put("three", 0), 0);
	ck_assert_uint_lt(monotime_since_us(begun, clock_monotime()), 20000000);
	(void)close(ends[1]);
	ck_assert(LOOP_UNTIL(event, strcmp(content(), "three") == 0, 5000));
	ck_assert_int_eq(put("four", 60000), 1);
	hangs_until = -1;
	(void)close(ends[0]);
}
END_TEST

/* A pipe where the dot-file should be holds nobody up, and a link is not written through. */
START_TEST (what_lies_in_the_way) {
	char other[sizeof(path) + 8];
	struct stat st;
	int fd;

	ck_assert_int_eq(mkfifo(dot, 0600), 0);
	ck_assert_int_eq(put("one", 60000), 1);
	ck_assert_str_eq(content(), "one");
	(void)snprintf(other, sizeof(other), "%s.other", path);
	fd = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "mine", 4), 4);
	(void)close(fd);
	ck_assert_int_eq(link(other, dot), 0);
	ck_assert_int_eq(put("two", 60000), 1);
	ck_assert_int_eq(symlink(other, dot), 0);
	ck_assert_int_eq(put("three", 60000), 1);
	ck_assert_str_eq(content(), "three");
	ck_assert_int_eq(stat(other, &st), 0);
	ck_assert_int_eq(st.st_size, 4);
	ck_assert_int_eq(unlink(other), 0);
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert(S_ISREG(st.st_mode) && (st.st_mode & 07777 & ~0640U) == 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("words-keeper");
	TCase *tc = tcase_create("all");
	SRunner *runner;
	int failed;

	if (!mkdtemp(folder))
		return 1;
	(void)snprintf(path, sizeof(path), "%s/state.json", folder);
	(void)snprintf(dot, sizeof(dot), "%s/.state.json.new", folder);
	tcase_set_timeout(tc, 30);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_is_given_is_written);
	tcase_add_test(tc, a_disk_that_fails);
	tcase_add_test(tc, a_disk_that_works_again);
	tcase_add_test(tc, a_disk_that_hangs);
	tcase_add_test(tc, what_lies_in_the_way);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	(void)rmdir(folder);
	return failed ? 1 : 0;
}
