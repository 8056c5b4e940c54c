/* Who is at the other end of a socket, as the log names it. Rights: test-status-http.c. */
#include <check.h>
#include <errno.h>
#include <sys/socket.h>

#include "agent/base/cleanup.h"
#include "agent/status/caller.h"

START_TEST (what_a_caller_is_called) {
	struct caller caller = {.uid = 0, .pid = 4711};
	char text[CALLER_TEXT_MAX];

	ck_assert_str_eq(caller_format(&caller, text), "root (uid 0, pid 4711)");
	caller.uid = 4294967000U;
	ck_assert_str_eq(caller_format(&caller, text), "uid 4294967000 (pid 4711)");
}
END_TEST

START_TEST (a_socket_knows_who_made_it) {
	struct caller caller = {0};
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ck_assert_int_eq(caller_of(fds[0], (gid_t)-1, &caller), 0);
	ck_assert_int_eq(caller.pid, getpid());
	ck_assert_uint_eq(caller.uid, geteuid());
	ck_assert(caller.may_change);
	(void)close(fds[0]);
	(void)close(fds[1]);
	caller.may_change = false;
	ck_assert_int_eq(caller_of(fds[0], (gid_t)-1, &caller), -EBADF);
	ck_assert(!caller.may_change);
}
END_TEST

START_TEST (groups_that_are_none) {
	ck_assert_uint_eq(caller_group(NULL), (gid_t)-1);
	ck_assert_uint_eq(caller_group("no-such-group-here"), (gid_t)-1);
	ck_assert_uint_eq(caller_group("root"), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("status-caller");
	TCase *tests = tcase_create("caller");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, what_a_caller_is_called);
	tcase_add_test(tests, a_socket_knows_who_made_it);
	tcase_add_test(tests, groups_that_are_none);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
