/* The log on a pipe that nobody reads, and what sd_notify is told. */
#include "agent/system/log.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/system/notify.h"

static int kept = -1, ends[2];

/* stderr becomes a pipe that we read. */
static void setup(void)
{
	kept = fcntl(2, F_DUPFD_CLOEXEC, 3);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(dup2(ends[1], 2), 2);
	(void)close(ends[1]);
	(void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
	log_init(LOG_INFO, false);
}

static void teardown(void)
{
	(void)dup2(kept, 2);
	(void)close(kept);
	if (ends[0] >= 0)
		(void)close(ends[0]);
}

static const char *read_log(void)
{
	static char text[262144];
	size_t n = 0;
	ssize_t r;

	while ((r = read(ends[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)r;
	text[n] = '\0';
	return text;
}

START_TEST (a_line) {
	const char *got;

	log_info("service %s: %s -> %s", "dns", "up", "down");
	got = read_log();
	/* 2026-11-30T03:12:44.120Z NAME: TEXT */
	ck_assert_uint_gt(strlen(got), 26);
	ck_assert(got[4] == '-' && got[10] == 'T' && got[19] == '.' && got[23] == 'Z');
	ck_assert_int_eq(strncmp(got + 25, program_invocation_short_name,
				 strlen(program_invocation_short_name)),
		0);
	ck_assert_str_eq(strchr(got + 25, ' '), " service dns: up -> down\n");
}
END_TEST

/* Fields are the journal's; on stderr there is the text alone. */
START_TEST (an_entry) {
	const struct log_field fields[] = {{"REDSHANK_SERVICE", "dns"}, {"REDSHANK_WHY", NULL}};

	errno = ENOTTY;
	log_entry(LOG_NOTICE, "100 %s", fields, 2);
	ck_assert_int_eq(errno, ENOTTY);
	ck_assert_str_eq(strchr(read_log() + 25, ' '), " 100 %s\n");
	log_entry(LOG_DEBUG, "quiet", fields, 2);
	ck_assert_str_eq(read_log(), "");
}
END_TEST

START_TEST (one_line_whatever_it_holds) {
	log_info("a\nb%s", "\x1b[2J\xff");
	ck_assert_ptr_nonnull(strstr(read_log(), ": a\\x0ab\\x1b[2J\\xff\n"));
}
END_TEST

START_TEST (a_long_line_is_cut) {
	char text[5000];
	const char *got;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_info("%s", text);
	got = read_log();
	ck_assert_uint_lt(strlen(got), LOG_TEXT_MAX + 100);
	ck_assert_str_eq(got + strlen(got) - 6, "xx...\n");
}
END_TEST

START_TEST (levels) {
	log_debug("quiet");
	ck_assert_str_eq(read_log(), "");
	log_init(LOG_DEBUG, false);
	log_debug("loud");
	ck_assert_ptr_nonnull(strstr(read_log(), "loud"));
	log_init(LOG_ERR, false);
	log_warning("quiet");
	ck_assert_str_eq(read_log(), "");
}
END_TEST

START_TEST (errno_is_kept) {
	errno = ENOTTY;
	log_info("x");
	ck_assert_int_eq(errno, ENOTTY);
}
END_TEST

/* A reader that sleeps: lines are dropped and counted, nothing waits, and no line is broken. */
START_TEST (a_full_pipe_does_not_block) {
	const char *got;
	unsigned whole = 0, lost = 0;

	(void)signal(SIGALRM, SIG_DFL); /* not the handler of Check, which ends its whole group */
	(void)alarm(10);
	for (unsigned i = 0; i < 5000; i++)
		log_info("line %06u", i);
	got = read_log();
	for (const char *line = got; *line; line = strchr(line, '\n') + 1) {
		ck_assert_ptr_nonnull(strchr(line, '\n'));
		ck_assert_ptr_nonnull(strstr(line, ": line "));
		whole++;
	}
	ck_assert_uint_lt(whole, 5000);
	ck_assert_uint_gt(whole, 100);
	log_info("after");
	got = read_log();
	ck_assert_ptr_nonnull(strstr(got, ": after\n"));
	ck_assert_int_eq(sscanf(strstr(got, ": log: "), ": log: %u lines lost", &lost), 1);
	ck_assert_uint_eq(lost + whole, 5000);
	log_info("again");
	ck_assert_ptr_null(strstr(read_log(), "lost"));
	(void)alarm(0);
}
END_TEST

START_TEST (a_reader_that_is_gone_kills_nobody) {
	(void)close(ends[0]);
	ends[0] = -1;
	log_info("x");
	log_info("y");
}
END_TEST

/* JOURNAL_STREAM of somebody else's stderr is not ours. */
START_TEST (a_foreign_journal_stream) {
	ck_assert_int_eq(setenv("JOURNAL_STREAM", "1:2", 1), 0);
	log_init(LOG_INFO, false);
	log_info("here");
	ck_assert_ptr_nonnull(strstr(read_log(), ": here\n"));
	ck_assert_int_eq(setenv("JOURNAL_STREAM", "nonsense", 1), 0);
	log_init(LOG_INFO, false);
	log_info("here");
	ck_assert_ptr_nonnull(strstr(read_log(), ": here\n"));
	(void)unsetenv("JOURNAL_STREAM");
}
END_TEST

/* Where it is ours and no journal listens after all, the lines still come out. */
START_TEST (a_journal_that_is_not_there) {
	char stream[64];
	struct stat st;

	if (access("/run/systemd/journal/socket", F_OK) == 0)
		return;
	ck_assert_int_eq(fstat(2, &st), 0);
	(void)snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	ck_assert_int_eq(setenv("JOURNAL_STREAM", stream, 1), 0);
	log_init(LOG_INFO, false);
	log_info("here");
	ck_assert_ptr_nonnull(strstr(read_log(), ": here\n"));
	(void)unsetenv("JOURNAL_STREAM");
	log_init(LOG_INFO, false);
}
END_TEST

START_TEST (what_systemd_is_told) {
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char got[512];
	ssize_t n;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/tmp/redshank-notify-%d", (int)getpid());
	(void)unlink(a.sun_path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	notify_ready(); /* nobody is told, and nothing fails */
	ck_assert_int_eq(setenv("NOTIFY_SOCKET", a.sun_path, 1), 0);
	notify_ready();
	notify_reloading();
	notify_status("1 of %d\nREADY=1", 2);
	notify_stopping();
	notify_extend(75000000);
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unlink(a.sun_path);
	n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);
	ck_assert_int_gt(n, 0);
	got[n] = '\0';
	ck_assert_str_eq(got, "READY=1");
	n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);
	ck_assert_int_gt(n, 0);
	got[n] = '\0';
	ck_assert_int_eq(strncmp(got, "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
	n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);
	ck_assert_int_gt(n, 0);
	got[n] = '\0';
	ck_assert_str_eq(got, "STATUS=1 of 2\\x0aREADY=1");
	n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);
	ck_assert_int_gt(n, 0);
	got[n] = '\0';
	ck_assert_str_eq(got, "STOPPING=1");
	n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);
	ck_assert_int_gt(n, 0);
	got[n] = '\0';
	ck_assert_str_eq(got, "EXTEND_TIMEOUT_USEC=75000000");
	(void)close(fd);
}
END_TEST

/* A service manager that reads nothing holds the agent up for a moment, not for good. */
START_TEST (a_systemd_that_does_not_read) {
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	socklen_t length;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* An abstract address, as that of a container's systemd may be. */
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "@redshank-notify-%d", (int)getpid());
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(a.sun_path));
	ck_assert_int_eq(setenv("NOTIFY_SOCKET", a.sun_path, 1), 0);
	a.sun_path[0] = '\0';
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, length), 0);
	while (sendto(other, "x", 1, 0, (struct sockaddr *)&a, length) == 1)
		;
	ck_assert_int_eq(errno, EAGAIN);
	notify_ready();
	ck_assert_ptr_nonnull(strstr(read_log(), "lost READY=1"));
	(void)unsetenv("NOTIFY_SOCKET");
	(void)close(fd);
	(void)close(other);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("system-log");
	TCase *c = tcase_create("log");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_line);
	tcase_add_test(c, an_entry);
	tcase_add_test(c, one_line_whatever_it_holds);
	tcase_add_test(c, a_long_line_is_cut);
	tcase_add_test(c, levels);
	tcase_add_test(c, errno_is_kept);
	tcase_add_test(c, a_full_pipe_does_not_block);
	tcase_add_test(c, a_reader_that_is_gone_kills_nobody);
	tcase_add_test(c, a_foreign_journal_stream);
	tcase_add_test(c, a_journal_that_is_not_there);
	tcase_add_test(c, what_systemd_is_told);
	tcase_add_test(c, a_systemd_that_does_not_read);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
