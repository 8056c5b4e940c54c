/*
 * The way to BIRD through birdc. First with a real BIRD that runs beside the test (without a
 * protocol that touches the network): what birdc's output is turned into must be what the socket
 * says. Then with programs called birdc, found first in PATH, that misbehave.
 */
#include <assert.h>
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/base/clock.h"
#include "agent/bird/client.h"

#define PATIENCE_MS 30000

static char folder[64], path[96], original_path[4096];
static pid_t bird = -1;

static struct {
	sd_event *event;
	struct client *client;
	bool free_in_reply;
	struct buffer log;
	char lost_text[512];
	unsigned greeted, answers, lost;
	int lost_error;
} t;

static void on_greeted(void *userdata, const char *version)
{
	t.greeted++;
	ck_assert_int_eq(buffer_printf(&t.log, "greeted %s\n", version), 0);
}

static void on_reply(void *userdata, int error, const struct reply *reply)
{
	const char *tag = userdata;

	t.answers++;
	if (!reply)
		ck_assert_int_eq(buffer_printf(&t.log, "%s ! %d\n", tag, error), 0);
	for (size_t i = 0; reply && i < reply->n_lines; i++)
		ck_assert_int_eq(buffer_printf(&t.log, "%s %04d %s\n", tag, reply->lines[i].code,
					 reply->lines[i].text),
			0);
	if (t.free_in_reply) {
		client_free(t.client);
		t.client = NULL;
	}
}

static void on_lost(void *userdata, int error, const char *text)
{
	t.lost++;
	t.lost_error = error;
	(void)snprintf(t.lost_text, sizeof(t.lost_text), "%s", text);
	ck_assert_int_eq(client_send(t.client, 0, on_reply, NULL, "show status"), -ENOTCONN);
}

static const struct client_ops ops = {.greeted = on_greeted, .lost = on_lost};

static uint64_t now_ms(void)
{
	return clock_monotime().us / 1000;
}

static void until(const unsigned *counter, unsigned n)
{
	uint64_t end = now_ms() + PATIENCE_MS;

	while (*counter < n) {
		ck_assert_msg(now_ms() < end, "waited in vain; so far:\n%s%s",
			buffer_string(&t.log), t.lost_text);
		ck_assert_int_ge(sd_event_run(t.event, 10000), 0);
	}
}

static size_t open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static size_t descriptors_before;

static void setup(void)
{
	memset(&t, 0, sizeof(t));
	buffer_init(&t.log, 16U << 20);
	descriptors_before = open_descriptors();
	ck_assert_int_ge(sd_event_new(&t.event), 0);
}

/* Nothing is left of any run: no process (alive or zombie) and no descriptor. */
static void teardown(void)
{
	pid_t pid;

	client_free(t.client);
	sd_event_unref(t.event);
	buffer_done(&t.log);
	ck_assert_uint_eq(open_descriptors(), descriptors_before);
	pid = waitpid(-1, NULL, WNOHANG);
	ck_assert_msg(pid == (bird > 0 ? 0 : -1), "a child is left: %d", (int)pid);
	(void)setenv("PATH", original_path, 1);
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	char file[128];
	FILE *f;

	(void)snprintf(file, sizeof(file), "%s/%s", folder, name);
	f = fopen(file, "we");
	assert(f);
	assert(fputs(text, f) >= 0);
	assert(fclose(f) == 0);
	assert(chmod(file, mode) == 0);
}

static void client_start(void)
{
	ck_assert_int_eq(client_new_birdc(&t.client, t.event, path, &ops), 0);
	ck_assert_uint_eq(t.greeted + t.lost, 0);
}

/* --- a real BIRD --- */

static const char bird_conf[] = "router id 198.51.100.1;\n"
				"attribute int redshank_weight;\n"
				"ipv4 table redshank4;\n"
				"protocol static 'redshank:dns:192.0.2.53' {\n"
				"	ipv4 { table redshank4; preference 250; };\n"
				"	route 192.0.2.53/32 unreachable { redshank_weight = 100; "
				"bgp_community.add((64501,1)); };\n"
				"}\n"
				"protocol static 'redshank:dns:192.0.2.54' {\n"
				"	ipv4 { table redshank4; preference 250; };\n"
				"	route 192.0.2.54/32 unreachable;\n"
				"}\n"
				"protocol static 'redshank:dns-alt:192.0.2.55' {\n"
				"	ipv4 { table redshank4; preference 250; };\n"
				"	route 192.0.2.55/32 unreachable;\n"
				"}\n";

static void bird_start(void)
{
	char conf[128], pidfile[128];
	char *const arguments[] = {(char *)"bird", (char *)"-f", (char *)"-c", conf, (char *)"-s",
		path, (char *)"-P", pidfile, NULL};
	uint64_t end = now_ms() + PATIENCE_MS;
	sigset_t none;

	(void)sigemptyset(&none);

	write_file("bird.conf", bird_conf, 0644);
	(void)snprintf(conf, sizeof(conf), "%s/bird.conf", folder);
	(void)snprintf(pidfile, sizeof(pidfile), "%s/bird.pid", folder);
	bird = fork();
	assert(bird >= 0);
	if (bird == 0) {
		/* It ends with this test, however that ends. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)execvp("bird", arguments);
		_exit(127);
	}
	while (access(path, F_OK) < 0) {
		assert(now_ms() < end);
		(void)poll(NULL, 0, 5);
	}
}

static void bird_stop(void)
{
	(void)kill(bird, SIGTERM);
	(void)waitpid(bird, NULL, 0);
	bird = -1;
}

/* Every kind of reply, as birdc gives it and as the socket does. */
static const char *const commands[] = {
	"show protocols",
	"show protocols all",
	"show protocols all \"redshank:dns:*\"",
	"show route all table redshank4",
	"show route table redshank4 192.0.2.99/32",
	"configure status",
	"configure check",
	"disable nosuch",
	"disable \"zzz*\"",
	"disable \"redshank:dns:*\"",
	"disable \"redshank:dns:*\"",
	"enable \"redshank:dns:*\"",
	"configure soft",
};

static void all_commands(void)
{
	for (size_t i = 0; i < ELEMENTSOF(commands); i++)
		ck_assert_int_eq(client_send(t.client, 5000, on_reply, (void *)commands[i], "%s",
					 commands[i]),
			0);
	ck_assert_uint_eq(client_waiting(t.client), ELEMENTSOF(commands));
	until(&t.answers, ELEMENTSOF(commands));
	ck_assert_uint_eq(client_waiting(t.client), 0);
}

/* The times in BIRD's words ("18:04:17.582") made equal. */
static void blur(char *text)
{
	for (char *at = text; *at; at++) {
		int hour, minute, second, ms, n = 0;

		if (sscanf(at, "%2d:%2d:%2d.%3d%n", &hour, &minute, &second, &ms, &n) == 4 &&
			n == 12)
			memcpy(at, "00:00:00.000", 12);
	}
}

START_TEST (same_as_the_socket) {
	_cleanup_free_ char *socket = NULL;

	ck_assert_int_eq(client_new_socket(&t.client, t.event, path, &ops), 0);
	until(&t.greeted, 1);
	all_commands();
	socket = strdup(buffer_string(&t.log));
	client_free(t.client);
	buffer_clear(&t.log);
	t.greeted = t.answers = 0;

	client_start();
	ck_assert_int_eq(client_send(t.client, 0, on_reply, NULL, "show status"), -ENOTCONN);
	until(&t.greeted, 1);
	all_commands();
	blur(socket);
	blur(t.log.data);
	ck_assert_str_eq(t.log.data, socket);
	ck_assert_uint_eq(t.lost, 0);
	ck_assert_ptr_nonnull(strstr(socket, "\" 0009 redshank:dns:192.0.2.54: disabled\n"));
	ck_assert_ptr_null(strstr(socket, "0009 redshank:dns-alt"));
	ck_assert_ptr_nonnull(strstr(socket, "configure check 0020 Configuration OK\n"));
}
END_TEST

/* --- no BIRD, or no birdc --- */

static void assert_lost(int error, const char *part)
{
	ck_assert_int_eq(t.lost_error, error);
	ck_assert_msg(strstr(t.lost_text, part), "\"%s\" in \"%s\"", part, t.lost_text);
	while (sd_event_run(t.event, 0) > 0)
		;
	ck_assert_uint_eq(t.lost, 1);
}

START_TEST (nobody_there) {
	ck_assert_int_eq(client_new_birdc(&t.client, t.event, "/nonexistent/bird.ctl", &ops), 0);
	until(&t.lost, 1);
	assert_lost(-ECONNREFUSED, "exit status 1: Unable to connect to server control socket "
				   "(/nonexistent/bird.ctl): No such file or directory");
}
END_TEST

/* A script that stands in for birdc; $4 is the command. */
static void fake(const char *script)
{
	char text[1024], search[4200];

	(void)snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", script);
	write_file("birdc", text, 0755);
	(void)snprintf(search, sizeof(search), "%s:%s", folder, original_path);
	(void)setenv("PATH", search, 1);
}

#define GREET "echo '0001 BIRD 2.0.12 ready.'\n"
/* Behaves when asked for the greeting. */
#define AFTER_GREETING GREET "[ \"$4\" = 'show status' ] && exit 0\n"

START_TEST (arguments) {
	const char *command = "disable \"redshank:dns:*\" $HOME `id` 'x'";
	char expected[512];

	fake(AFTER_GREETING "echo \"1000-$# $1 $2 $3\"; echo \"     $4\"");
	client_start();
	until(&t.greeted, 1);
	ck_assert_int_eq(client_send(t.client, 0, on_reply, (void *)"a", "%s", command), 0);
	until(&t.answers, 1);
	(void)snprintf(expected, sizeof(expected),
		"greeted 2.0.12\na 1000 4 -v -s %s\na 1000 %s\na 0000 \n", path, command);
	ck_assert_str_eq(buffer_string(&t.log), expected);
}
END_TEST

static const struct {
	const char *script;
	int error;
	const char *part;
} greetings[] = {
	{"exit 0", -ECONNREFUSED, "exit status 0: it said nothing"},
	{"exit 3", -ECONNREFUSED, "exit status 3: it said nothing"},
	{"kill -SEGV $$", -ECONNABORTED, "killed by signal 11"},
	{"echo '0001 FRR ready.'", -EBADMSG, "expected a BIRD's greeting"},
	{"echo 'Permission denied' >&2; exit 1", -ECONNREFUSED, "(is the agent in group bird?)"},
	{"printf '\\033[2Jevil' >&2; exit 1", -ECONNREFUSED, "\\x1b[2Jevil"},
	{"exec sleep 600", -ETIMEDOUT, "no greeting within 2000 ms"},
};

START_TEST (no_greeting) {
	fake(greetings[_i].script);
	client_start();
	until(&t.lost, 1);
	assert_lost(greetings[_i].error, greetings[_i].part);
	ck_assert_uint_eq(t.greeted, 0);
}
END_TEST

static const struct {
	const char *script;
	int error;
	const char *part;
} replies[] = {
	/* Cut in the middle, in three ways. */
	{GREET "echo '0002-x'; echo 'Connection closed by server' >&2; exit 1", -ECONNREFUSED,
		"Connection closed by server"},
	{GREET "echo '0002-x'; kill -KILL $$", -ECONNABORTED, "killed by signal 9"},
	{GREET "echo '0002-x'; exit 1", -ECONNREFUSED, "exit status 1"},
	{GREET "echo '     x'", -EBADMSG, "a continuation of nothing"},
	{"echo '0001 BIRD 2.14 ready.'", -ECONNRESET, "BIRD was restarted"},
	{GREET "echo \"No such command. Press \\`?' for help.\"; exit 1", -ECONNREFUSED,
		"No such command"},
	{GREET "echo 1000-x; exec yes '     a line that comes again and again'", -E2BIG,
		"output of birdc"},
	{GREET "echo 0003 one; echo 0003 two", -EBADMSG, "nobody asked for"},
	{GREET "echo '??? <0x>'", -ECONNREFUSED, "??? <0x>"},
};

START_TEST (no_reply) {
	char script[512];

	(void)snprintf(script, sizeof(script),
		"if [ \"$4\" = 'show status' ]; then " GREET "else\n%s\nfi", replies[_i].script);
	fake(script);
	client_start();
	until(&t.greeted, 1);
	ck_assert_int_eq(client_send(t.client, 5000, on_reply, (void *)"a", "a"), 0);
	until(&t.lost, 1);
	assert_lost(replies[_i].error, replies[_i].part);
}
END_TEST

/* The deadline of the command that runs answers all that wait, and kills the program. */
START_TEST (deadline) {
	uint64_t began;

	fake(AFTER_GREETING "exec sleep 600");
	client_start();
	until(&t.greeted, 1);
	began = now_ms();
	ck_assert_int_eq(client_send(t.client, 100, on_reply, (void *)"a", "a"), 0);
	ck_assert_int_eq(client_send(t.client, 100, on_reply, (void *)"b", "b"), 0);
	until(&t.lost, 1);
	ck_assert_uint_ge(now_ms() - began, 100);
	ck_assert_uint_lt(now_ms() - began, 15000);
	assert_lost(-ETIMEDOUT, "no reply to `a` within 100 ms");
	ck_assert_str_eq(buffer_string(&t.log), "greeted 2.0.12\na ! -110\nb ! -110\n");
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}
END_TEST

/* Each run writes its start and end into a file: they never overlap, and keep the order. */
START_TEST (one_at_a_time) {
	char log[128], script[512], text[256] = "";
	FILE *f;

	(void)snprintf(log, sizeof(log), "%s/runs", folder);
	(void)snprintf(script, sizeof(script),
		AFTER_GREETING "echo \"+$4\" >>%s; sleep 0.02; echo \"-$4\" >>%s; echo 0003 $4",
		log, log);
	fake(script);
	client_start();
	until(&t.greeted, 1);
	for (const char *c = "abc"; *c; c++)
		ck_assert_int_eq(client_send(t.client, 5000, on_reply, (void *)"r", "%c", *c), 0);
	until(&t.answers, 3);
	ck_assert_str_eq(buffer_string(&t.log), "greeted 2.0.12\nr 0003 a\nr 0003 b\nr 0003 c\n");
	f = fopen(log, "re");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, f), 0);
	(void)fclose(f);
	(void)unlink(log);
	ck_assert_str_eq(text, "+a\n-a\n+b\n-b\n+c\n-c\n");
}
END_TEST

START_TEST (freed_in_reply) {
	fake(AFTER_GREETING "echo 0003 $4");
	client_start();
	until(&t.greeted, 1);
	t.free_in_reply = true;
	ck_assert_int_eq(client_send(t.client, 0, on_reply, (void *)"r", "a"), 0);
	ck_assert_int_eq(client_send(t.client, 0, on_reply, (void *)"r", "b"), 0);
	until(&t.answers, 1);
	while (sd_event_run(t.event, 50000) > 0)
		;
	ck_assert_str_eq(buffer_string(&t.log), "greeted 2.0.12\nr 0003 a\n");
}
END_TEST

/* Freed while a run is under way: killed and reaped at once (teardown looks). */
START_TEST (freed_in_mid_run) {
	fake("exec sleep 600");
	client_start();
	client_free(t.client);
	t.client = NULL;
}
END_TEST

/* --- */

static int run(const char *name, void (*add)(TCase *tc))
{
	Suite *suite = suite_create(name);
	TCase *tc = tcase_create(name);
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 50);
	add(tc);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed;
}

static void add_real(TCase *tc)
{
	tcase_add_test(tc, same_as_the_socket);
}

static void add_fakes(TCase *tc)
{
	tcase_add_test(tc, nobody_there);
	tcase_add_test(tc, arguments);
	tcase_add_loop_test(tc, no_greeting, 0, ELEMENTSOF(greetings));
	tcase_add_loop_test(tc, no_reply, 0, ELEMENTSOF(replies));
	tcase_add_test(tc, deadline);
	tcase_add_test(tc, one_at_a_time);
	tcase_add_test(tc, freed_in_reply);
	tcase_add_test(tc, freed_in_mid_run);
}

int main(void)
{
	static const char *const files[] = {"bird.conf", "bird.pid", "bird.ctl", "birdc"};
	sigset_t child;
	int failed;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, NULL);
	(void)snprintf(original_path, sizeof(original_path), "%s:/usr/sbin", getenv("PATH"));
	(void)setenv("PATH", original_path, 1);
	(void)snprintf(folder, sizeof(folder), "/tmp/redshank-birdc-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	(void)snprintf(path, sizeof(path), "%s/bird.ctl", folder);

	bird_start();
	failed = run("bird-birdc-real", add_real);
	bird_stop();
	failed += run("bird-birdc", add_fakes);

	for (size_t i = 0; i < ELEMENTSOF(files); i++) {
		char file[128];

		(void)snprintf(file, sizeof(file), "%s/%s", folder, files[i]);
		(void)unlink(file);
	}
	(void)rmdir(folder);
	return failed ? 1 : 0;
}
