/* What a socket unit may pass on, and what is said of anything else. */
#include "agent/status/listen.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static char directory[] = "/tmp/redshank-listen-XXXXXX";
static char socket_path[sizeof(directory) + 16];

/* A Unix socket at socket_path, listening or not. */
static int make_unix(int type, bool listening)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type, 0);

	strcpy(address.sun_path, socket_path);
	(void)unlink(socket_path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	if (listening)
		ck_assert_int_eq(listen(fd, 8), 0);
	return fd;
}

static int make_inet(int family, int type)
{
	int fd = socket(family, type, 0);

	ck_assert_int_ge(fd, 0);
	if (type == SOCK_STREAM)
		ck_assert_int_eq(listen(fd, 8), 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

START_TEST (one_of_each) {
	static const int families[] = {AF_INET, AF_INET6};

	for (size_t i = 0; i < 2; i++) {
		int fds[] = {make_inet(families[i], SOCK_STREAM), make_unix(SOCK_STREAM, true)};
		struct listen_passed passed;

		ck_assert_int_eq(listen_sort(fds, 2, &passed, NULL), 0);
		ck_assert_int_eq(passed.tcp_fd, fds[0]);
		ck_assert_int_eq(passed.unix_fd, fds[1]);
		for (size_t k = 0; k < 2; k++) {
			ck_assert_int_ne(fcntl(fds[k], F_GETFL) & O_NONBLOCK, 0);
			ck_assert_int_ne(fcntl(fds[k], F_GETFD) & FD_CLOEXEC, 0);
		}
		listen_passed_done(&passed);
		ck_assert(!is_open(fds[0]) && !is_open(fds[1]));
		ck_assert_int_eq(passed.unix_fd, -1);
	}
}
END_TEST

START_TEST (nothing_is_nothing) {
	struct listen_passed passed = {.unix_fd = 7, .tcp_fd = 7};

	ck_assert_int_eq(listen_sort(NULL, 0, &passed, NULL), 0);
	ck_assert_int_eq(passed.unix_fd, -1);
	ck_assert_int_eq(passed.tcp_fd, -1);
}
END_TEST

/* The wrong one comes first; a good one behind it is closed, too. */
static void refused(int fd, const char *expected)
{
	int fds[] = {fd, make_inet(AF_INET, SOCK_STREAM)};
	struct listen_passed passed = {.unix_fd = 7, .tcp_fd = 7};
	struct error error = {{0}};

	ck_assert_int_eq(listen_sort(fds, 2, &passed, &error), -EINVAL);
	ck_assert_msg(strstr(error.text, expected) != NULL, "%s", error.text);
	ck_assert_msg(strstr(error.text, "ListenStream=") != NULL, "%s", error.text);
	ck_assert(!is_open(fds[0]) && !is_open(fds[1]));
	ck_assert_int_eq(passed.unix_fd, 7);
}

START_TEST (wrong_ones) {
	int pair[2], pipes[2];

	refused(make_unix(SOCK_DGRAM, false), "is no stream socket");
	refused(make_unix(SOCK_SEQPACKET, true), "is no stream socket");
	refused(make_inet(AF_INET, SOCK_DGRAM), "is no stream socket");
	refused(make_unix(SOCK_STREAM, false), "is not listening");
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	refused(pair[0], "is not listening");
	close(pair[1]);
	ck_assert_int_eq(pipe(pipes), 0);
	refused(pipes[0], "is no socket");
	close(pipes[1]);
	refused(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0), "neither a Unix nor an IP socket");
}
END_TEST

START_TEST (two_of_a_kind) {
	int fds[] = {make_inet(AF_INET, SOCK_STREAM), make_inet(AF_INET6, SOCK_STREAM)};
	int files[] = {make_unix(SOCK_STREAM, true), make_unix(SOCK_STREAM, true)};
	struct listen_passed passed;
	struct error error = {{0}};

	ck_assert_int_eq(listen_sort(fds, 2, &passed, &error), -EINVAL);
	ck_assert_msg(strstr(error.text, "is a second TCP socket") != NULL, "%s", error.text);
	ck_assert(!is_open(fds[0]) && !is_open(fds[1]));
	ck_assert_int_eq(listen_sort(files, 2, &passed, &error), -EINVAL);
	ck_assert_msg(strstr(error.text, "is a second Unix socket") != NULL, "%s", error.text);
}
END_TEST

START_TEST (the_environment) {
	struct listen_passed passed;
	struct error error = {{0}};
	char pid[16];

	/* Another process's. */
	ck_assert_int_eq(setenv("LISTEN_PID", "1", 1), 0);
	ck_assert_int_eq(setenv("LISTEN_FDS", "1", 1), 0);
	ck_assert_int_eq(listen_take(&passed, &error), 0);
	ck_assert_int_eq(passed.unix_fd, -1);
	ck_assert_ptr_null(getenv("LISTEN_FDS"));

	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	ck_assert_int_eq(setenv("LISTEN_PID", pid, 1), 0);
	ck_assert_int_eq(setenv("LISTEN_FDS", "many", 1), 0);
	ck_assert_int_eq(listen_take(&passed, &error), -EINVAL);
	ck_assert_msg(strstr(error.text, "LISTEN_FDS") != NULL, "%s", error.text);
	ck_assert_ptr_null(getenv("LISTEN_FDS"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("status-listen");
	TCase *tc = tcase_create("passed");
	SRunner *runner;
	int failed;

	if (!mkdtemp(directory))
		return EXIT_FAILURE;
	(void)snprintf(socket_path, sizeof(socket_path), "%s/x.sock", directory);
	tcase_add_test(tc, one_of_each);
	tcase_add_test(tc, nothing_is_nothing);
	tcase_add_test(tc, wrong_ones);
	tcase_add_test(tc, two_of_a_kind);
	tcase_add_test(tc, the_environment);
	suite_add_tcase(s, tc);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	(void)unlink(socket_path);
	(void)rmdir(directory);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
