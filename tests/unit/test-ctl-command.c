/*
 * redshankctl as a whole: its exit codes and what it says where there is no agent, a silent one, or
 * something that is no agent. A thread plays the other end of the socket.
 */
#include <check.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "agent/base/clock.h"
#include "agent/ctl/command.h"
#include "agent/ctl/fetch.h"

#define BODY                                                                                \
	"{\"format\": 1, \"node\": \"edge1\", \"bird\": {\"link\": \"up\"}, \"services\": " \
	"{\"dns\": {\"health\": \"healthy\", \"prefixes\": {}, \"checks\": {}}}}"

static char directory[] = "/tmp/redshank-ctl-XXXXXX";
static char socket_path[sizeof(directory) + 16];
static int listening = -1;
static pthread_t server;
static const char *answer; /* "": closes at once; NULL: says nothing */
static char request[4096];

/* One client: reads its request, answers, and waits until the client has gone. */
static void *serve(void *userdata)
{
	int fd = accept(listening, NULL, NULL);
	char rest[256];
	ssize_t n;

	if (fd < 0)
		return NULL;
	n = recv(fd, request, sizeof(request) - 1, 0);
	request[n > 0 ? n : 0] = '\0';
	if (answer)
		(void)send(fd, answer, strlen(answer), MSG_NOSIGNAL);
	if (answer)
		(void)shutdown(fd, SHUT_WR);
	while (recv(fd, rest, sizeof(rest), 0) > 0)
		;
	close(fd);
	return NULL;
}

static void listen_at_path(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(address.sun_path, socket_path);
	listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listening, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(listening, 5), 0);
}

static void begin(const char *text)
{
	answer = text;
	listen_at_path();
	ck_assert_int_eq(pthread_create(&server, NULL, serve, NULL), 0);
}

static void end(void)
{
	ck_assert_int_eq(pthread_join(server, NULL), 0);
	close(listening);
	ck_assert_int_eq(unlink(socket_path), 0);
}

/* Runs one command line; what it printed is in `out` and `err` until the next. */
static char out[65536], err[65536];

static void slurp(FILE *f, char *text, size_t size)
{
	size_t n;

	rewind(f);
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	(void)fclose(f);
}

static int run(const char *line)
{
	_cleanup_free_ char *copy = strdup(line);
	char *argv[16] = {(char *)"redshankctl", (char *)"--socket", socket_path};
	int argc = 3, code, saved_out = dup(1), saved_err = dup(2);
	FILE *to_out = tmpfile(), *to_err = tmpfile();

	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	(void)fflush(NULL);
	ck_assert_int_ge(dup2(fileno(to_out), 1), 0);
	ck_assert_int_ge(dup2(fileno(to_err), 2), 0);
	optind = 0;
	code = command_run(argc, argv);
	(void)fflush(NULL);
	ck_assert_int_ge(dup2(saved_out, 1), 0);
	ck_assert_int_ge(dup2(saved_err, 2), 0);
	close(saved_out);
	close(saved_err);
	slurp(to_out, out, sizeof(out));
	slurp(to_err, err, sizeof(err));
	return code;
}

#define ck_assert_has(s, what) ck_assert_msg(strstr(s, what) != NULL, "%.400s", s)

START_TEST (good_answers) {
	static const struct {
		const char *line;
		int code;
		const char *says;
	} rows[] = {
		{"status", 0, "dns: healthy"},
		{"status dns", 0, "dns: healthy"},
		{"--json status", 0, "\"format\": 1"},
		{"status --plugin", 0, "REDSHANK OK - 1 of 1 services healthy"},
		{"status ftp", 1, ""},
		{"status ftp --plugin", 3, "REDSHANK UNKNOWN - "},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		begin("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" BODY);
		ck_assert_msg(run(rows[i].line) == rows[i].code, "%s: %s", rows[i].line, err);
		ck_assert_has(out, rows[i].says);
		ck_assert_int_eq(strncmp(request, "GET /v1/status HTTP/1.1\r\n", 25), 0);
		end();
	}
}
END_TEST

START_TEST (answers_that_are_none) {
	static const struct {
		const char *answer;
		int code;
		const char *says;
	} rows[] = {
		{"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n{}", 1, "HTTP status 503"},
		{"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<html>", 1, "not JSON"},
		{"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"format\": 7}", 1,
			"not a status of form 1"},
		{"0001 BIRD 2.0.12 ready.\n", 3, "Is that an agent's socket?"},
		{"", 3, "Is that an agent's socket?"},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		begin(rows[i].answer);
		ck_assert_msg(run("status") == rows[i].code, "row %zu: %s", i, err);
		ck_assert_has(err, rows[i].says);
		ck_assert_str_eq(out, "");
		end();
	}
}
END_TEST

START_TEST (no_agent_says_why_and_what_to_try) {
	ck_assert_int_eq(run("status"), 3);
	ck_assert_has(err, socket_path);
	ck_assert_has(err, "No such file or directory");
	ck_assert_has(err, "systemctl status redshank");

	listen_at_path();
	close(listening);
	ck_assert_int_eq(run("status"), 3);
	ck_assert_has(err, "Connection refused");
	ck_assert_has(err, "no agent listens");
	ck_assert_int_eq(run("status --plugin"), 3);
	ck_assert_has(out, "REDSHANK UNKNOWN - no agent at");
	ck_assert_str_eq(err, "");
	ck_assert_int_eq(unlink(socket_path), 0);
}
END_TEST

/* Words of a command line, and what an agent says, may hold anything. */
START_TEST (words_of_any_bytes) {
	static const char *const lines[] = {"status", "explain dns", "events", "check-now"};

	for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
		char line[128];

		(void)snprintf(line, sizeof(line), "--json --socket /none/\xff %s", lines[i]);
		ck_assert_int_eq(run(line), 3);
		ck_assert_msg(strstr(out, "\"error\"") && strstr(out, "/none/\\\\xff"), "%s: %s",
			line, out);
		ck_assert_str_eq(err, "");
	}
	begin("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" BODY);
	ck_assert_int_eq(run("status f|p --plugin"), 3);
	ck_assert_has(out, "REDSHANK UNKNOWN - ");
	ck_assert_msg(!strchr(out, '|'), "performance data begins there: %s", out);
	end();
}
END_TEST

START_TEST (a_silent_agent_is_not_waited_for) {
	struct monotime start = clock_monotime();
	uint64_t took_us;

	begin(NULL);
	ck_assert_int_eq(run("status"), 3);
	took_us = monotime_since_us(start, clock_monotime());
	ck_assert_uint_ge(took_us, 4500 * 1000ULL);
	ck_assert_uint_lt(took_us, 30000 * 1000ULL);
	ck_assert_has(err, "within 5 s");
	end();
}
END_TEST

/* A proxy from the environment would carry the question to a stranger. */
START_TEST (no_proxy_is_asked) {
	ck_assert_int_eq(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
	ck_assert_int_eq(setenv("ALL_PROXY", "http://127.0.0.1:1", 1), 0);
	begin("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" BODY);
	ck_assert_msg(run("status") == 0, "%s", err);
	ck_assert_int_eq(strncmp(request, "GET /v1/status HTTP/1.1\r\n", 25), 0);
	end();
	unsetenv("http_proxy");
	unsetenv("ALL_PROXY");
}
END_TEST

#define OK "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
#define NOT_FOUND "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n"

/* What is asked is sent as one word of a query, whatever stands in it. */
START_TEST (explain_asks_and_exits) {
	static const struct {
		const char *line, *request, *answer;
		int code;
		const char *says;
	} rows[] = {
		{"explain dns", "name=dns", OK BODY, 0, "service dns on edge1: healthy"},
		{"explain 192.0.2.53/32", "name=192.0.2.53%2F32", OK BODY, 0, "service dns"},
		{"explain 2001:db8::53", "name=2001:db8::53", OK BODY, 0, "service dns"},
		{"explain a&b=c#d?\n", "name=a%26b%3Dc%23d%3F%0A", OK BODY, 0, ""},
		{"--json explain dns", "name=dns", OK BODY, 0, "\"format\": 1"},
		{"explain dsn", "name=dsn", NOT_FOUND "{\"error\": \"did you mean \\\"dns\\\"?\"}",
			1, "redshankctl: did you mean \"dns\"?"},
		{"explain dns", "name=dns", NOT_FOUND "{\"error\": \"no such resource\"}", 1,
			"no such resource"},
		{"explain dns", "name=dns", NOT_FOUND "<html>", 1, "HTTP status 404"},
		{"explain dns", "name=dns", OK "<html>", 1, "not JSON"},
		{"explain dns", "name=dns", "0001 BIRD 2.0.12 ready.\n", 3,
			"Is that an agent's socket?"},
	};
	char first[128];

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		begin(rows[i].answer);
		ck_assert_msg(run(rows[i].line) == rows[i].code, "%s: %s", rows[i].line, err);
		ck_assert_has(rows[i].code == 0 ? out : err, rows[i].says);
		(void)snprintf(
			first, sizeof(first), "GET /v1/explain?%s HTTP/1.1\r\n", rows[i].request);
		ck_assert_msg(strncmp(request, first, strlen(first)) == 0, "%s", request);
		end();
	}
	ck_assert_int_eq(run("explain dns"), 3);
	ck_assert_has(err, "No such file or directory");
	ck_assert_int_eq(run("explain aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			     "aaaa"),
		1);
	ck_assert_has(err, "a name that long");
}
END_TEST

/* What goes to the agent, and what its answers become. */
START_TEST (changes) {
	static const struct {
		const char *line, *path, *body, *answer;
		int code;
		const char *said, *complained;
	} rows[] = {
		{"drain dns --for 2h --reason disks", "drain",
			"{\"name\": \"dns\", \"reason\": \"disks\", \"for\": \"2h\"}",
			OK "{\"text\": \"drained dns\", \"warning\": null}", 0, "drained dns\n",
			""},
		{"drain --all", "drain", "{}", OK "{\"text\": \"x\", \"warning\": \"y\\u001b\"}", 0,
			"x\n", "redshankctl: warning: y\\x1b\n"},
		{"undrain 192.0.2.53/32", "undrain", "{\"name\": \"192.0.2.53/32\"}",
			NOT_FOUND "{\"error\": \"nobody\\n\"}", 1, "", "redshankctl: nobody"},
		{"weight a 7 --for 1h", "weight",
			"{\"weight\": 7, \"name\": \"a\", \"for\": \"1h\"}", OK "{\"text\": \"w\"}",
			0, "w\n", ""},
		{"weight a --reset", "weight", "{\"weight\": null, \"name\": \"a\"}",
			OK "{\"text\": \"w\"}", 0, "w\n", ""},
		{"announce dns --for 1h --reason x", "announce",
			"{\"name\": \"dns\", \"reason\": \"x\", \"for\": \"1h\"}",
			OK "{\"text\": \"f\"}", 0, "f\n", ""},
		{"shed 192.0.2.1 --for 1h", "shed", "{\"name\": \"192.0.2.1\", \"for\": \"1h\"}",
			OK "{\"text\": \"s\"}", 0, "s\n", ""},
		{"unshed 192.0.2.1", "unshed", "{\"name\": \"192.0.2.1\"}", OK "{\"text\": \"u\"}",
			0, "u\n", ""},
		{"shed 192.0.2.1 --reset", "shed", "{\"reset\": true, \"name\": \"192.0.2.1\"}",
			OK "{\"text\": \"r\"}", 0, "r\n", ""},
		{"announce dns --reset", "announce", "{\"reset\": true, \"name\": \"dns\"}",
			OK "{\"text\": \"r\"}", 0, "r\n", ""},
		{"freeze --for 1h", "freeze", "{\"for\": \"1h\"}", OK "{\"text\": \"z\"}", 0, "z\n",
			""},
		{"thaw", "thaw", "{}", OK "{\"text\": \"z\"}", 0, "z\n", ""},
		{"reload", "reload", "{}",
			NOT_FOUND "{\"error\": \"refused\", \"problems\": [\"one\", 2, \"three\"]}",
			1, "", "redshankctl: refused\n  one\n  three\n"},
		{"check-now --json", "check-now", "{}", OK "{\"text\": \"z\"}", 0,
			"{\n  \"text\": \"z\"\n}\n", ""},
		{"check-now", "check-now", "{}", NOT_FOUND "<html>", 1, "", "HTTP status 404"},
		{"check-now", "check-now", "{}", OK "{}", 1, "", "HTTP status 200"},
	};
	char first[128];

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		begin(rows[i].answer);
		ck_assert_msg(run(rows[i].line) == rows[i].code, "%s: %s", rows[i].line, err);
		ck_assert_str_eq(out, rows[i].said);
		ck_assert_has(err, rows[i].complained);
		(void)snprintf(first, sizeof(first), "POST /v1/%s HTTP/1.1\r\n", rows[i].path);
		ck_assert_msg(strncmp(request, first, strlen(first)) == 0, "%s", request);
		ck_assert_has(request, rows[i].body);
		end();
	}
	ck_assert_int_eq(run("drain dns"), 3);
}
END_TEST

START_TEST (usage) {
	static const struct {
		const char *line;
		int code;
		const char *says;
	} rows[] = {
		{"", 2, "expected a command"},
		{"statsu", 2, "did you mean \"status\"?"},
		{"versoin", 2, "did you mean \"version\"?"},
		{"fnord", 2, "The commands are: status explain top drain undrain"},
		{"status a b", 2, "unexpected \"b\""},
		{"explain", 2, "expected a service, a prefix or an address"},
		{"explain a b", 2, "unexpected \"b\""},
		{"explain dns --plugin", 2, "--plugin goes with status"},
		{"explian dns", 2, "did you mean \"explain\"?"},
		{"drain", 2, "drain: expected a service or a prefix, or --all"},
		{"drain dns --all", 2, "or --all for the whole server"},
		{"drain a b", 2, "unexpected \"b\""},
		{"drain --al", 2, "unknown option \"--al\"; did you mean \"--all\"?"},
		{"drain --fo 2h dns", 2, "unknown option \"--fo\""},
		{"drain --reaso=x dns", 2, "did you mean \"--reason\"?"},
		{"foo", 2, "unknown command \"foo\"\n"},
		{"help", 2, "did you mean \"--help\"?"},
		{"weight 192.0.2.80/32 65536", 2, "expected a number from 0 to 65535"},
		{"drain --reason", 2, "argument"},
		{"undrain dns --for 1h", 2, "--for does not go with undrain"},
		{"undrain dns --reason x", 2, "--reason does not go with undrain"},
		{"reload --all", 2, "--all does not go with reload"},
		{"weight", 2, "weight: expected a prefix and a number"},
		{"weight a", 2, "weight: expected a prefix and a number"},
		{"weight a 1 --reset", 2, "a prefix and --reset"},
		{"weight a 1x", 2, "a number from 0 to 65535, not \"1x\""},
		{"weight a 1 2", 2, "unexpected \"2\""},
		{"drain a --reset", 2, "--reset does not go with drain"},
		{"shed", 2, "shed: expected a prefix"},
		{"unshed a --for 1h --reset", 2, "or with --reset"},
		{"unshed a --reset --reason x", 2, "--reason does not go with unshed --reset"},
		{"announce", 2, "announce: expected a service or a prefix with --for D"},
		{"announce dns", 2, "with --for D (at most 24h), or with --reset"},
		{"announce dns --for 1h --reset", 2, "or with --reset"},
		{"announce dns --reset --reason x", 2,
			"--reason does not go with announce --reset"},
		{"announce dns --for 1h --all", 2, "--all does not go with announce"},
		{"freeze dns", 2, "unexpected \"dns\""},
		{"thaw --for 1h", 2, "--for does not go with thaw"},
		{"reload dns", 2, "unexpected \"dns\""},
		{"status --all", 2, "go with drain"},
		{"version a", 2, "unexpected \"a\""},
		{"import", 2, "expected ahc, exabgp or birdwatcher"},
		{"import ahc", 2, "expected files of that program"},
		{"import bird /dev/null", 2, "expected ahc, exabgp or birdwatcher"},
		{"import ahc /no/such /nor/such", 1, "cannot read /nor/such: No such file"},
		{"import exabgp /dev/null", 1, "cannot read /dev/null: not a file"},
		{"version --plugin", 2, "--plugin goes with status"},
		{"--fnord", 2, "fnord"},
		{"--socket", 2, "argument"},
		{"version", 0, ""},
		{"--help", 0, ""},
		{"--version", 0, ""},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		ck_assert_msg(run(rows[i].line) == rows[i].code, "%s: %s", rows[i].line, err);
		ck_assert_has(err, rows[i].says);
		ck_assert_msg(strstr(err, "did you mean") == NULL ||
				      strstr(rows[i].says, "did you mean") != NULL,
			"%s: %s", rows[i].line, err);
		if (rows[i].code == 0)
			ck_assert_has(out, "redshankctl");
	}
}
END_TEST

/* What is completed goes into somebody's shell: nothing that it could run, or that could steer a
 * terminal, and nobody is waited for who does not answer. */
START_TEST (completion_trusts_nobody) {
	struct monotime begun;

	begin(OK "{\"format\": 1, \"services\": {\"dns\": {\"health\": \"healthy\", "
		 "\"prefixes\": {\"d`x`\": {}, \"192.0.2.53/32\": {}}}, \"d$(reboot)\": {}, "
		 "\"d\\u001b[2J\": {}, \"d n\": {}, \"d2\": {\"health\": \"a\\tb\\n\"}}}");
	ck_assert_int_eq(run("complete -- explain d"), 0);
	ck_assert_str_eq(out, "dns\thealthy\nd2\n");
	ck_assert_str_eq(err, "");
	end();
	ck_assert_int_eq(run("complete -- explain d"), 0);
	ck_assert_str_eq(out, "");
	ck_assert_str_eq(err, "");
	begin(NULL);
	begun = clock_monotime();
	ck_assert_int_eq(run("complete -- explain d"), 0);
	ck_assert_str_eq(out, "");
	ck_assert_uint_lt(
		monotime_since_us(begun, clock_monotime()), 4900000); /* others wait 5 s */
	end();
	ck_assert_int_eq(run("complete -- import b"), 0);
	ck_assert_str_eq(out, "birdwatcher\n");
	ck_assert_int_eq(run("complete -- import ahc x"), 0);
	ck_assert_str_eq(out, ":files\n");
	ck_assert_int_eq(run("complete"), 0);
}
END_TEST

START_TEST (help_fits_a_terminal) {
	char *save = NULL;

	ck_assert_int_eq(run("--help"), 0);
	for (char *line = strtok_r(out, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		ck_assert_msg(strlen(line) <= 80, "%zu columns: %s", strlen(line), line);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl-command");
	TCase *tests = tcase_create("command");
	SRunner *runner;
	int failed;

	if (!mkdtemp(directory))
		return EXIT_FAILURE;
	(void)snprintf(socket_path, sizeof(socket_path), "%s/status.sock", directory);
	tcase_set_timeout(tests, 30);
	tcase_add_test(tests, good_answers);
	tcase_add_test(tests, answers_that_are_none);
	tcase_add_test(tests, no_agent_says_why_and_what_to_try);
	tcase_add_test(tests, words_of_any_bytes);
	tcase_add_test(tests, a_silent_agent_is_not_waited_for);
	tcase_add_test(tests, no_proxy_is_asked);
	tcase_add_test(tests, explain_asks_and_exits);
	tcase_add_test(tests, changes);
	tcase_add_test(tests, usage);
	tcase_add_test(tests, completion_trusts_nobody);
	tcase_add_test(tests, help_fits_a_terminal);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	(void)unlink(socket_path);
	(void)rmdir(directory);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
