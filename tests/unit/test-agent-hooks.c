/* Hooks: what they get, how many run, what becomes of those that are slow, wrong or too many. */
#include "agent/hooks.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/system/log.h"
#include "tests/unit/loop.h"
#include "tests/unit/loaded.h"

static char folder[] = "/tmp/redshank-hooks-XXXXXX";
static sd_event *event;
static struct config *config;
static struct hooks *hooks;

/* `hooks_json`: what stands between the braces of `hooks`; %1$s is the folder. */
static struct config *load(const char *hooks_json)
{
	char hooks_text[2048], text[4096];

	ck_assert_int_lt(snprintf(hooks_text, sizeof(hooks_text), hooks_json, folder),
		(int)sizeof(hooks_text));
	ck_assert_int_lt(snprintf(text, sizeof(text),
				 "{\"node\": \"edge1\", \"services\": {\"dns\": {\"prefixes\": "
				 "{\"192.0.2.53/32\": 1}, \"hooks\": {%s}}}}\n",
				 hooks_text),
		(int)sizeof(text));
	return loaded_config(text);
}

static void begin(const char *hooks_json)
{
	config = load(hooks_json);
	ck_assert_int_eq(hooks_new(&hooks, event, (const struct config *const *)&config), 0);
}

static void setup(void)
{
	log_init(LOG_CRIT, true);
	(void)strcpy(folder + strlen(folder) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_ge(sd_event_new(&event), 0);
}

static void teardown(void)
{
	char command[128];

	hooks_free(hooks);
	config_free(config);
	event = sd_event_unref(event);
	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

static void tell(const char *to)
{
	const struct event_fields fields = {.service = "dns",
		.from = "healthy",
		.to = to,
		.reason = "check a: \"x\"\n$(reboot)",
		.prefixes = "192.0.2.53/32 2001:db8::53/128",
		.n_prefixes = 2,
		.wanted = "withdraw",
		.rule = "unhealthy"};

	hooks_tell(hooks, 0, EVENT_SERVICE, &fields);
}

static uint64_t n(enum hooks_result result)
{
	return hooks_results(hooks)[result];
}

/* The file in the folder; "" where there is none. */
static const char *read_file(const char *name)
{
	static char text[65536];
	char path[128];
	size_t size = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "re");
	if (f) {
		size = fread(text, 1, sizeof(text) - 1, f);
		(void)fclose(f);
	}
	text[size] = '\0';
	return text;
}

START_TEST (what_a_hook_gets) {
	static const char *const lines[] = {"REDSHANK_EVENT=service", "REDSHANK_HOOK=note",
		"REDSHANK_NODE=edge1", "REDSHANK_SERVICE=dns",
		"REDSHANK_CHECK=", "REDSHANK_FROM=healthy", "REDSHANK_TO=unhealthy",
		"REDSHANK_REASON=check a: \"x\"\\x0a$(reboot)",
		"REDSHANK_PREFIXES=192.0.2.53/32 2001:db8::53/128", "REDSHANK_PREFIX_COUNT=2",
		"REDSHANK_WANTED=withdraw", "REDSHANK_RULE=unhealthy", "HOME=/", "LANG=C.UTF-8"};
	const char *text;

	begin("\"note\": {\"command\": [\"/bin/sh\", \"-c\", \"env >%1$s/env; echo said\"]}");
	tell("unhealthy");
	ck_assert_str_eq(read_file("env"), ""); /* nothing is run from in there */
	ck_assert(LOOP_UNTIL(event, n(HOOKS_DONE) == 1, 5000));
	text = read_file("env");
	for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
		char line[128];

		(void)snprintf(line, sizeof(line), "%s\n", lines[i]);
		ck_assert_msg(strstr(text, line) != NULL, "%s in %s", line, text);
	}
	ck_assert_ptr_nonnull(strstr(text, "REDSHANK_TIME=20"));
	ck_assert_ptr_null(strstr(text, "ASAN_OPTIONS"));
}
END_TEST

START_TEST (only_what_it_is_for) {
	const struct event_fields fields = {.service = "dns"};

	begin("\"p\": {\"command\": [\"/bin/true\"], \"on\": [\"prefix\"]}");
	tell("unhealthy");
	hooks_tell(hooks, 0, EVENT_CHECK, &fields);
	LOOP_FOR(event, 100);
	ck_assert_uint_eq(n(HOOKS_DONE), 0);
	hooks_tell(hooks, 0, EVENT_PREFIX, &fields);
	ck_assert(LOOP_UNTIL(event, n(HOOKS_DONE) == 1, 5000));
}
END_TEST

START_TEST (in_order_and_one_at_a_time) {
	begin("\"o\": {\"command\": [\"/bin/sh\", \"-c\", "
	      "\"mkdir %1$s/lock || echo twice >>%1$s/log; sleep 0.01; "
	      "echo $REDSHANK_TO >>%1$s/log; rmdir %1$s/lock\"]}");
	for (int i = 0; i < 10; i++) {
		char to[8];

		(void)snprintf(to, sizeof(to), "%d", i);
		tell(to);
	}
	ck_assert(LOOP_UNTIL(event, n(HOOKS_DONE) == 10, 10000));
	ck_assert_str_eq(read_file("log"), "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
}
END_TEST

START_TEST (four_of_all) {
	begin("\"a\": {\"command\": [\"/bin/sh\", \"-c\", \"echo . >>%1$s/n; while test ! -e "
	      "%1$s/go; do sleep 0.01; done\"]},"
	      "\"b\": {\"command\": [\"/bin/sh\", \"-c\", \"echo . >>%1$s/n; while test ! -e "
	      "%1$s/go; do sleep 0.01; done\"]},"
	      "\"c\": {\"command\": [\"/bin/sh\", \"-c\", \"echo . >>%1$s/n; while test ! -e "
	      "%1$s/go; do sleep 0.01; done\"]},"
	      "\"d\": {\"command\": [\"/bin/sh\", \"-c\", \"echo . >>%1$s/n; while test ! -e "
	      "%1$s/go; do sleep 0.01; done\"]},"
	      "\"e\": {\"command\": [\"/bin/sh\", \"-c\", \"echo . >>%1$s/n; while test ! -e "
	      "%1$s/go; do sleep 0.01; done\"]}");
	char path[128];

	tell("unhealthy");
	ck_assert(LOOP_UNTIL(event, strlen(read_file("n")) == 2 * HOOKS_AT_ONCE, 5000));
	LOOP_FOR(event, 200);
	ck_assert_uint_eq(strlen(read_file("n")), 2 * HOOKS_AT_ONCE);
	(void)snprintf(path, sizeof(path), "%s/go", folder);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert(LOOP_UNTIL(event, n(HOOKS_DONE) == 5, 5000));
}
END_TEST

START_TEST (too_many) {
	const char *text;

	begin("\"o\": {\"command\": [\"/bin/sh\", \"-c\", \"echo $REDSHANK_TO >>%1$s/log\"]}");
	for (int i = 0; i < HOOKS_QUEUED + 10; i++) {
		char to[8];

		(void)snprintf(to, sizeof(to), "%d", i);
		tell(to);
	}
	ck_assert_uint_eq(n(HOOKS_DROPPED), 10);
	ck_assert(LOOP_UNTIL(event, n(HOOKS_DONE) == HOOKS_QUEUED, 20000));
	text = read_file("log"); /* the oldest were dropped */
	ck_assert_msg(strncmp(text, "10\n11\n", 6) == 0, "%s", text);
	ck_assert_ptr_nonnull(strstr(text, "\n73\n"));
}
END_TEST

START_TEST (one_that_hangs) {
	char path[128];

	begin("\"h\": {\"command\": [\"/bin/sh\", \"-c\", \"echo begun; (until test -e %1$s/go; do "
	      "sleep "
	      "0.01; done; echo . >%1$s/left) & sleep 100\"], \"timeout\": \"100ms\"}");
	tell("unhealthy");
	ck_assert(LOOP_UNTIL(event, n(HOOKS_TIMED_OUT) == 1, 3000));
	(void)snprintf(path, sizeof(path), "%s/go", folder);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	LOOP_FOR(event, 500);
	ck_assert_str_eq(read_file("left"), ""); /* its child is gone, too */
	tell("healthy");			 /* and the next one is run */
	ck_assert(LOOP_UNTIL(event, n(HOOKS_TIMED_OUT) == 2, 3000));
}
END_TEST

START_TEST (those_that_fail) {
	begin("\"x\": {\"command\": [\"/nonexistent/program\"]},"
	      "\"y\": {\"command\": [\"/bin/false\"]},"
	      "\"z\": {\"command\": [\"/bin/sh\", \"-c\", \"kill -9 $$\"]}");
	for (int i = 0; i < 3; i++)
		tell("unhealthy");
	ck_assert(LOOP_UNTIL(event, n(HOOKS_NOT_STARTED) == 3 && n(HOOKS_FAILED) == 6, 5000));
	ck_assert_uint_eq(n(HOOKS_DONE), 0);
}
END_TEST

START_TEST (a_reload_takes_it_out) {
	struct config *old;

	begin("\"o\": {\"command\": [\"/bin/sh\", \"-c\", \"echo . >>%1$s/log\"]}");
	tell("unhealthy");
	old = config;
	config = load("\"other\": {\"command\": [\"/bin/true\"]}");
	config_free(old);
	LOOP_FOR(event, 200);
	ck_assert_str_eq(read_file("log"), "");
	tell("healthy");
	ck_assert(LOOP_UNTIL(event, n(HOOKS_DONE) == 1, 5000));
}
END_TEST

/* A hook's helper is its own, however many others end meanwhile, and dies with it. */
START_TEST (a_helper_lives_as_long_as_its_own_hook) {
	const struct event_fields fields = {.service = "dns"};
	char path[128];
	int helper;

	begin("\"slow\": {\"command\": [\"/bin/sh\", \"-c\", \"(setsid sh -c 'until test -e "
	      "%1$s/go; "
	      "do sleep 0.02; done; echo $$ >%1$s/helper; exec sleep 600' &); until test -s "
	      "%1$s/helper; "
	      "do sleep 0.02; done\"]}, "
	      "\"quick\": {\"command\": [\"/bin/sleep\", \"0.02\"], \"on\": [\"prefix\"]}");
	tell("unhealthy");
	for (int i = 0; i < 60; i++)
		hooks_tell(hooks, 0, EVENT_PREFIX, &fields);
	ck_assert(LOOP_UNTIL(event, n(HOOKS_DONE) >= 5, 5000));
	ck_assert_str_eq(read_file("helper"), "");
	(void)snprintf(path, sizeof(path), "%s/go", folder);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert(LOOP_UNTIL(event, n(HOOKS_DONE) == 61, 9000));
	helper = (int)strtol(read_file("helper"), NULL, 10);
	ck_assert_int_gt(helper, 1);
	ck_assert(LOOP_UNTIL(event, kill(helper, 0) < 0, 2000));
}
END_TEST

/* What lives longer than the event: texts as long as they can be. */
START_TEST (long_texts) {
	static char longer[20000];
	const struct event_fields fields = {
		.service = "dns", .reason = longer, .prefixes = longer, .n_prefixes = 99};

	memset(longer, 'x', sizeof(longer) - 1);
	begin("\"l\": {\"command\": [\"/bin/sh\", \"-c\", \"env >%1$s/env\"]}");
	hooks_tell(hooks, 0, EVENT_SERVICE, &fields);
	ck_assert(LOOP_UNTIL(event, n(HOOKS_DONE) == 1, 5000));
	ck_assert_ptr_nonnull(strstr(read_file("env"), "REDSHANK_PREFIX_COUNT=99\n"));
	ck_assert_ptr_nonnull(strstr(read_file("env"), "xxx...\n"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("agent-hooks");
	TCase *tc = tcase_create("hooks");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, what_a_hook_gets);
	tcase_add_test(tc, only_what_it_is_for);
	tcase_add_test(tc, in_order_and_one_at_a_time);
	tcase_add_test(tc, four_of_all);
	tcase_add_test(tc, too_many);
	tcase_add_test(tc, one_that_hangs);
	tcase_add_test(tc, those_that_fail);
	tcase_add_test(tc, a_helper_lives_as_long_as_its_own_hook);
	tcase_add_test(tc, a_reload_takes_it_out);
	tcase_add_test(tc, long_texts);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
