/* The list of processes, where the kernel has no memory to tell it whole: nobody is missing because
 * of that. The process that is looked for is the test itself. */
#include <dirent.h>
#include <errno.h>
#include <sys/prctl.h>

#include "agent/base/cleanup.h"
#include "probes/pids.h"
#include "probes/settings.h"
#include "tests/unit/probe-harness.h"

static struct harness h;
static int refuse_reads, refuse_folders; /* what read() and readdir() say; 0: they work */
static const char *refuse_file;		 /* of this process alone; NULL: of all */

ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n);
struct dirent *__real_readdir(DIR *folder);
struct dirent *__wrap_readdir(DIR *folder);

static bool is_refused(int fd)
{
	char link[64], path[128] = "", own[64];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	(void)snprintf(own, sizeof(own), "/proc/%d/%s", (int)getpid(), refuse_file);
	return !refuse_file ||
	       (readlink(link, path, sizeof(path) - 1) > 0 && strcmp(path, own) == 0);
}

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	if (!refuse_reads || !is_refused(fd))
		return __real_read(fd, buf, n);
	errno = refuse_reads;
	return -1;
}

struct dirent *__wrap_readdir(DIR *folder)
{
	if (!refuse_folders)
		return __real_readdir(folder);
	errno = refuse_folders;
	return NULL;
}

/* It is known by its argv[0] alone, which is read once. */
START_TEST (what_cannot_be_read_is_unknown) {
	static const struct {
		int reads, folders;
		const char *file;
	} rows[] = {
		{ENOMEM, 0, NULL}, {ENOMEM, 0, "comm"}, {ENOMEM, 0, "cmdline"}, {0, ENOMEM, NULL}};
	struct process_settings settings = {
		.executable = program_invocation_short_name, .count = 1};
	unsigned n = 1;

	ck_assert_uint_eq(probe_type_process.settings->size, sizeof(settings));
	ck_assert_int_eq(prctl(PR_SET_NAME, "another"), 0);
	harness_start(&h, &probe_type_process, &settings, 3600000, 1000);
	harness_expect(&h, n++, CHECK_OUTCOME_GOOD, "1 process");
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		pids_list_done();
		refuse_reads = rows[i].reads;
		refuse_folders = rows[i].folders;
		refuse_file = rows[i].file;
		run_check_now(h.run);
		(void)harness_wait(&h, n);
		refuse_reads = refuse_folders = 0;
		harness_expect(&h, n++, CHECK_OUTCOME_UNKNOWN, "cannot read /proc");
		run_check_now(h.run);
		harness_expect(&h, n++, CHECK_OUTCOME_GOOD, "1 process");
	}
	harness_done(&h);
	pids_list_done();
}
END_TEST

/* A process that ends while the list is made is no failure. */
START_TEST (who_ends_meanwhile_is_not_there) {
	const struct pids_entry *entries;
	size_t n = 1;
	int r;

	refuse_file = NULL;
	refuse_reads = ESRCH;
	r = pids_list(0, &entries, &n);
	refuse_reads = 0;
	ck_assert_int_eq(r, 0);
	ck_assert_uint_eq(n, 0);
	pids_list_done();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probes-pids");
	TCase *c = tcase_create("pids");
	SRunner *runner;
	int failed;

	tcase_add_test(c, what_cannot_be_read_is_unknown);
	tcase_add_test(c, who_ends_meanwhile_is_not_there);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
