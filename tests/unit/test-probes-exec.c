/*
 * The exec check on real commands: verdicts, surroundings, and what is left of commands that hang,
 * fork, hide and talk without end (A21).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/settings.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/probe-harness.h"

#define HOUR 3600000

static struct harness h;
static struct exec_settings settings;
static char *command[8], *env[8];

static void setup(void)
{
	memset(&h, 0, sizeof(h));
	ck_assert_uint_eq(probe_type_exec.settings->size, sizeof(settings));
	settings = (struct exec_settings){.output_limit = 4096};
}

static void use(const char *a, const char *b, const char *c)
{
	command[0] = (char *)a;
	command[1] = (char *)b;
	command[2] = (char *)c;
	settings.command = (struct schema_strings){.items = command, .n = b ? c ? 3 : 2 : 1};
}

static void use_shell(const char *script)
{
	use("/bin/sh", "-c", script);
}

static void start(uint64_t interval_ms, uint64_t timeout_ms)
{
	harness_start(&h, &probe_type_exec, &settings, interval_ms, timeout_ms);
}

/* Processes that carry our mark, wherever they went; children of ours, zombies included. */
static unsigned count_marked(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *d;
	unsigned n = 0;
	char mark[64];

	(void)snprintf(mark, sizeof(mark), "REDSHANK_CHECK_OF=%d.", (int)getpid());
	while ((d = readdir(proc))) {
		char path[300], text[4096];
		int fd;
		ssize_t got;

		(void)snprintf(path, sizeof(path), "/proc/%s/environ", d->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		got = read(fd, text, sizeof(text));
		(void)close(fd);
		n += got > 0 && memmem(text, (size_t)got, mark, strlen(mark));
	}
	(void)closedir(proc);
	return n;
}

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void expect_nothing_left(void)
{
	bool ended = LOOP_UNTIL(h.event, count_marked() == 0 && !has_children(), 4000);

	ck_assert_msg(ended, "%u processes are left", count_marked());
}

static void teardown(void)
{
	harness_done(&h);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* ---- verdicts ---- */

static const struct {
	bool plugin;
	const char *script;
	enum check_outcome outcome;
	const char *reason;
} rows[] = {
	{false, "exit 0", CHECK_OUTCOME_GOOD, ""},
	{false, "echo; echo '  all is well  '; echo more", CHECK_OUTCOME_GOOD, "all is well"},
	{false, "echo all is well | cat; exit 0", CHECK_OUTCOME_GOOD, "all is well"},
	{false, "exit 1", CHECK_OUTCOME_BAD, "exit 1"},
	{false, "echo no such zone >&2; exit 1", CHECK_OUTCOME_BAD, "exit 1: no such zone"},
	{false, "echo 'a | b'; exit 3", CHECK_OUTCOME_BAD, "exit 3: a | b"},
	{false, "exit 126", CHECK_OUTCOME_BAD, "exit 126 (a command cannot be executed)"},
	{false, "redshank-no-such-command", CHECK_OUTCOME_BAD,
		"exit 127 (a command was not found): /bin/sh: 1: redshank-no-such-command: not "
		"found"},
	{false, "kill -SEGV $$", CHECK_OUTCOME_BAD, "killed by SIGSEGV"},
	{false, "kill -TERM $$", CHECK_OUTCOME_BAD, "killed by SIGTERM"},
	{false, "printf 'a\\033[2J\\377b'", CHECK_OUTCOME_GOOD, "a\\x1b[2J\\xffb"},
	{false, "printf 'a\\000b\\n'", CHECK_OUTCOME_GOOD, "a"},
	{true, "echo 'OK - 3 ms | time=0.003'; exit 0", CHECK_OUTCOME_GOOD, "OK - 3 ms"},
	{true, "echo 'WARNING - slow | time=3'; exit 1", CHECK_OUTCOME_GOOD,
		"warning: WARNING - slow"},
	{true, "echo CRITICAL; exit 2", CHECK_OUTCOME_BAD, "critical: CRITICAL"},
	{true, "exit 2", CHECK_OUTCOME_BAD, "critical"},
	{true, "echo no arguments; exit 3", CHECK_OUTCOME_UNKNOWN, "unknown: no arguments"},
	{true, "exit 4", CHECK_OUTCOME_BAD, "exit 4"},
};

START_TEST (verdicts) {
	settings.plugin = rows[_i].plugin;
	use_shell(rows[_i].script);
	start(HOUR, 30000);
	(void)harness_wait(&h, 1);
	ck_assert_int_eq(h.reports[0].outcome, rows[_i].outcome);
	ck_assert_str_eq(h.reports[0].reason, rows[_i].reason);
}
END_TEST

START_TEST (a_command_that_cannot_be_started) {
	use(_i == 0 ? "/nonexistent/check" : "/etc", NULL, NULL);
	start(HOUR, 1000);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD,
		_i == 0 ? "cannot execute /nonexistent/check: No such file or directory"
			: "cannot execute /etc: Permission denied");
	expect_nothing_left();
}
END_TEST

START_TEST (a_command_that_is_just_being_written) {
	char path[] = "/var/tmp/redshank-exec-XXXXXX";
	int fd = mkstemp(path), copied;
	char line[128];

	(void)snprintf(line, sizeof(line), "cp /bin/true %s && chmod 755 %s", path, path);
	copied = system(line);
	ck_assert_int_eq(copied, 0);
	use(path, NULL, NULL);
	start(100, 90);
	harness_expect(&h, 1, CHECK_OUTCOME_UNKNOWN, "Text file busy");
	(void)close(fd);
	ck_assert(LOOP_UNTIL(h.event, h.reports[h.n - 1].outcome == CHECK_OUTCOME_GOOD, 1000));
	(void)unlink(path);
}
END_TEST

START_TEST (no_descriptors_is_unknown) {
	rlim_t before;

	use("/bin/true", NULL, NULL);
	start(20, 1000);
	before = descriptors_limit(3 + (rlim_t)_i);
	(void)harness_wait(&h, 2);
	(void)descriptors_limit(before);
	for (unsigned i = 0; i < h.n; i++)
		ck_assert_int_ne(h.reports[i].outcome, CHECK_OUTCOME_BAD);
	ck_assert(LOOP_UNTIL(h.event, h.reports[h.n - 1].outcome == CHECK_OUTCOME_GOOD, 1000));
	expect_nothing_left();
}
END_TEST

/* ---- surroundings ---- */

START_TEST (it_gets_little) {
	int leaked = open("/etc/hostname", O_RDONLY); /* on purpose without O_CLOEXEC */
	sigset_t block;

	(void)sigfillset(&block);
	(void)sigprocmask(SIG_BLOCK, &block, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(setenv("REDSHANK_SECRET", "x", 1), 0);
	use_shell("test \"$(pwd)\" = / || { echo \"in $(pwd)\"; exit 1; }\n"
		  "test -z \"$REDSHANK_SECRET\" || { echo environment; exit 1; }\n"
		  "test \"$(readlink /proc/self/fd/0)\" = /dev/null || { echo input; exit 1; }\n"
		  "for n in 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do\n"
		  "test -e /proc/$$/fd/$n && { echo descriptor $n; exit 1; }; done\n"
		  /* Read by the shell itself, which blocks signals while it forks. */
		  "while read -r name value; do case \"$name $value\" in\n"
		  "'SigBlk: 0000000000000000'|'SigIgn: 0000000000000000') ;;\n"
		  "'SigIgn: 0000000180000000') ;;\n"
		  "SigBlk:*|SigIgn:*) echo \"$name $value\"; exit 1;;\n"
		  "esac; done < /proc/$$/status\n"
		  "test \"$(cut -d' ' -f6 /proc/$$/stat)\" = $$ || { echo session; exit 1; }\n"
		  "env | sort | cut -d= -f1 | tr '\\n' ' '");
	start(HOUR, 30000);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "HOME LANG PATH PWD REDSHANK_CHECK_OF");
	(void)close(leaked);
	(void)sigprocmask(SIG_UNBLOCK, &block, NULL);
}
END_TEST

START_TEST (env_adds_and_replaces) {
	env[0] = (char *)"LANG";
	env[1] = (char *)"de_DE.UTF-8";
	env[2] = (char *)"ZONE";
	env[3] = (char *)"example.net";
	settings.env = (struct schema_strings){.items = env, .n = 4};
	use_shell("echo $LANG $ZONE $(env | grep -c ^LANG=)");
	start(HOUR, 30000);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "de_DE.UTF-8 example.net 1");
}
END_TEST

/* ---- output ---- */

START_TEST (much_output_is_forgotten) {
	struct rusage before, after;

	use_shell("echo first; head -c 300000000 /dev/zero; exit 7");
	(void)getrusage(RUSAGE_SELF, &before);
	start(HOUR, 100000);
	ck_assert(LOOP_UNTIL(h.event, h.n == 1, 20000));
	(void)getrusage(RUSAGE_SELF, &after);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "exit 7: first");
	ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 20000);
}
END_TEST

START_TEST (output_past_the_limit_is_not_kept) {
	settings.output_limit = 64;
	use_shell("printf '%070d' 7; exit 1");
	start(HOUR, 30000);
	(void)harness_wait(&h, 1);
	ck_assert_uint_eq(strlen(h.reports[0].reason), strlen("exit 1: ") + 64);
}
END_TEST

/* ---- A21: what is left ---- */

START_TEST (offspring_does_not_delay_the_verdict) {
	static const char *const scripts[] = {
		"sleep 600 & echo fine",
		"setsid sleep 600 & echo fine",
		"(setsid sh -c 'sleep 600 & sleep 600' &) ; echo fine",
		"sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' & echo fine",
	};

	use_shell(scripts[_i]);
	start(HOUR, 30000);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "fine");
	ck_assert_uint_lt(h.duration_us[0], 20000000);
	expect_nothing_left();
}
END_TEST

START_TEST (a_command_that_hangs_dies_with_its_children) {
	static const char *const scripts[] = {
		"sleep 600 & sleep 600",
		"trap '' TERM INT HUP; sleep 600 & while :; do sleep 600; done",
		"(sh -c 'sleep 600 & sleep 600' &); sleep 600",
		"setsid sh -c 'sleep 600 & sleep 600' & sleep 600",
		"setsid setsid sleep 600 & setsid sleep 600 & exec sleep 600",
	};
	unsigned before, rounds = 20;

	use_shell(scripts[_i]);
	start(60, 50);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "timeout after 50ms");
	before = count_descriptors();
	(void)harness_wait(&h, rounds);
	ck_assert_uint_le(count_descriptors(), before + 2);
	/* In the midst of it: no more than what the last few rounds started. */
	ck_assert_uint_le(count_marked(), 24);
	h.interval_ms = HOUR;
	(void)harness_wait(&h, h.n + 1);
	for (unsigned i = 0; i < rounds; i++)
		ck_assert_int_eq(h.reports[i].outcome, CHECK_OUTCOME_BAD);
	expect_nothing_left();
}
END_TEST

/* The process whose id the helper of a command wrote; 0: it did not come so far. */
static pid_t read_helper(const char *path)
{
	FILE *f = fopen(path, "re");
	int pid = 0;

	if (f) {
		if (fscanf(f, "%d", &pid) != 1) /* NOLINT(cert-err34-c): our own file */
			pid = 0;
		(void)fclose(f);
	}
	return pid;
}

/* Who is whose: what a command left behind dies with it, and not with anybody else. A command that
 * needs its orphaned helper runs, while others end again and again with leftovers of their own. */
START_TEST (a_helper_lives_as_long_as_its_own_command) {
	static const char *const scripts[] = {
		/* in the command's group, and in a session of its own */
		"(sh -c 'sleep 1.2; echo $$ >\"$0\"; exec sleep 600' \"$0\" &)\n"
		"until test -s \"$0\"; do sleep 0.02; done",
		"(setsid sh -c 'sleep 1.2; echo $$ >\"$0\"; exec sleep 600' \"$0\" &)\n"
		"until test -s \"$0\"; do sleep 0.02; done",
		/* ended by its timeout */
		"(setsid sh -c 'sleep 1.2; echo $$ >\"$0\"; exec sleep 600' \"$0\" &)\n"
		"exec sleep 600",
	};
	char *other_command[] = {
		(char *)"/bin/sh", (char *)"-c", (char *)"setsid sleep 600 & sleep 0.04", NULL};
	struct exec_settings other_settings = {
		.output_limit = 4096, .command = {.items = other_command, .n = 3}};
	char path[] = "/tmp/redshank-helper-XXXXXX";
	struct harness other = {0};
	int fd = mkstemp(path);
	unsigned most = 0;
	pid_t helper;

	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	use_shell(scripts[_i]);
	command[3] = path;
	settings.command.n = 4;
	start(HOUR, _i == 2 ? 4000 : 30000);
	other.event = sd_event_ref(h.event);
	harness_start(&other, &probe_type_exec, &other_settings, 50, 2000);
	while (h.n == 0 && other.n < HARNESS_REPORTS_MAX - 20) {
		unsigned now = count_marked();

		most = now > most ? now : most;
		ck_assert(LOOP_UNTIL(h.event, h.n > 0 || other.n % 4 == 3, 5000));
		ck_assert(LOOP_UNTIL(h.event, h.n > 0 || other.n % 4 == 0, 5000));
	}
	harness_expect(&h, 1, _i == 2 ? CHECK_OUTCOME_BAD : CHECK_OUTCOME_GOOD,
		_i == 2 ? "timeout after 4s" : "");
	ck_assert_uint_ge(other.n, 4);
	/* The command, its helper, a sleep of each, and what the others left just now. */
	ck_assert_uint_le(most, 16);
	helper = read_helper(path);
	ck_assert_int_gt(helper, 0);
	/* While the others go on. */
	ck_assert(LOOP_UNTIL(h.event, kill(helper, 0) < 0, 2000));
	ck_assert_int_eq(errno, ESRCH);
	harness_done(&other);
	expect_nothing_left();
	(void)unlink(path);
}
END_TEST

/* Children of other parts of the agent are none of our business: not killed, and not reaped before
 * their owner had all the time it wants. */
START_TEST (foreign_children_are_left_alone) {
	pid_t living = fork(), dead;
	siginfo_t info;
	struct monotime begun;
	unsigned n = 0;

	if (living == 0) {
		(void)pause();
		_exit(0);
	}
	use_shell("setsid sleep 600 & exit 0");
	start(50, 1000);
	do { /* another one where the machine took the second that its owner has */
		begun = clock_monotime();
		dead = fork();
		if (dead == 0)
			_exit(7);
		n += 10;
		(void)harness_wait(&h, n);
		info.si_status = 0;
	} while (waitid(P_PID, (id_t)dead, &info, WEXITED | WNOHANG) < 0 && n < 100 &&
		 monotime_since_us(begun, clock_monotime()) >= 1000000);
	ck_assert_int_eq(info.si_status, 7);
	ck_assert_int_eq(kill(living, 0), 0);
	ck_assert_int_eq(waitid(P_PID, (id_t)living, &info, WEXITED | WNOHANG), 0);
	(void)kill(living, SIGKILL);
	(void)waitpid(living, NULL, 0);
}
END_TEST

START_TEST (a_check_that_goes_takes_its_command_along) {
	use_shell("sleep 600 & sleep 600");
	start(HOUR, 60000);
	ck_assert(LOOP_UNTIL(h.event, count_marked() >= 2, 2000));
	harness_stop(&h);
	ck_assert(LOOP_UNTIL(h.event, count_marked() == 0, 2000));
}
END_TEST

START_TEST (settings_that_make_no_sense) {
	struct error e;

	use("check", NULL, NULL);
	ck_assert_int_eq(probe_type_exec.validate(&settings, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.text, "command: expected the absolute path"));
	use("/bin/check", NULL, NULL);
	ck_assert_int_eq(probe_type_exec.validate(&settings, &e), 0);
	env[0] = (char *)"A=B";
	env[1] = (char *)"C";
	settings.env = (struct schema_strings){.items = env, .n = 2};
	ck_assert_int_eq(probe_type_exec.validate(&settings, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.text, "env: expected names"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probes-exec");
	TCase *c = tcase_create("exec");
	SRunner *runner;
	int failed;

	tcase_set_timeout(c, 60);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, verdicts, 0, ELEMENTSOF(rows));
	tcase_add_loop_test(c, a_command_that_cannot_be_started, 0, 2);
	tcase_add_test(c, a_command_that_is_just_being_written);
	tcase_add_loop_test(c, no_descriptors_is_unknown, 0, 8);
	tcase_add_test(c, it_gets_little);
	tcase_add_test(c, env_adds_and_replaces);
	tcase_add_test(c, much_output_is_forgotten);
	tcase_add_test(c, output_past_the_limit_is_not_kept);
	tcase_add_loop_test(c, offspring_does_not_delay_the_verdict, 0, 4);
	tcase_add_loop_test(c, a_command_that_hangs_dies_with_its_children, 0, 5);
	tcase_add_loop_test(c, a_helper_lives_as_long_as_its_own_command, 0, 3);
	tcase_add_test(c, foreign_children_are_left_alone);
	tcase_add_test(c, a_check_that_goes_takes_its_command_along);
	tcase_add_test(c, settings_that_make_no_sense);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
