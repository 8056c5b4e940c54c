/* What status and explain say of a repair: a sentence for each state, and none where there is
 * nothing. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/ctl/status.h"

static char *say(const char *repair, bool always)
{
	const struct status_view view = {.now = 1000};
	char *text = NULL, json[1024];
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	json_t *service;

	(void)snprintf(json, sizeof(json), "{\"repair\": %s}", repair);
	service = json_loads(json, 0, NULL);
	ck_assert_ptr_nonnull(service);
	status_print_repair(
		f, service, &view, text_parse_time_ms("2026-11-30T21:00:00.000Z"), 0, always);
	(void)fclose(f);
	json_decref(service);
	for (size_t i = 0; i < n; i++) /* the lines are broken for people */
		if (text[i] == '\n' && i + 1 < n)
			text[i] = ' ';
	return text;
}

static const struct {
	const char *state, *rest, *text;
} rows[] = {
	{"idle", "", "repair: nsd.service is restarted when it fails; 1 of 3 attempts used\n"},
	{"waiting", ", \"next\": \"2026-11-30T21:00:02.000Z\", \"last_result\": \"failed\"",
		"repair: nsd.service waits, again in 2.0s; 1 of 3 attempts used, the last one: "
		"failed\n"},
	{"waiting", ", \"next\": null",
		"repair: nsd.service waits, again when its checks stop rising; 1 of 3 attempts "
		"used\n"},
	{"asking", "", "repair: systemd is asked what nsd.service does; 1 of 3 attempts used\n"},
	{"restarting", "", "repair: systemd starts nsd.service; 1 of 3 attempts used\n"},
	{"held", "",
		"repair: nsd.service is not restarted while it is drained or the server frozen; 1 "
		"of 3 "
		"attempts used\n"},
	{"stopped", ", \"text\": \"inactive, dead\"",
		"repair: nsd.service was stopped, or ended with success, and is left so (inactive, "
		"dead); 1 of 3 attempts used. FOR A PERSON: `systemctl start nsd.service`\n"},
	{"denied", ", \"text\": \"Access denied\", \"next\": \"2026-11-30T21:05:00.000Z\"",
		"repair: systemd does not let the agent restart nsd.service; a polkit rule has to "
		"name "
		"it (docs/repair.md) (Access denied), again in 5m; 1 of 3 attempts used\n"},
	{"exhausted", ", \"next\": \"2026-11-30T21:05:00.000Z\"",
		"repair: restarts of nsd.service did not help, again in "
		"5m; 1 of 3 attempts used. FOR A PERSON: `systemctl status nsd.service`\n"},
	{"dreaming", "", "repair: nsd.service dreaming; 1 of 3 attempts used\n"},
};

START_TEST (sentences) {
	char json[512];
	_cleanup_free_ char *text = NULL;

	(void)snprintf(json, sizeof(json),
		"{\"unit\": \"nsd.service\", \"state\": \"%s\", \"attempts\": 1, \"limit\": 3%s}",
		rows[_i].state, rows[_i].rest);
	text = say(json, true);
	ck_assert_str_eq(text, rows[_i].text);
}
END_TEST

START_TEST (nothing_to_say) {
	_cleanup_free_ char *idle = say("{\"unit\": \"x.service\", \"state\": \"idle\"}", false);
	_cleanup_free_ char *none = say("null", true);
	_cleanup_free_ char *hostile =
		say("{\"unit\": \"x\\u001b[2J.service\", \"state\": \"left\"}", false);

	ck_assert_str_eq(idle, "");
	ck_assert_str_eq(none, "");
	ck_assert_ptr_null(strchr(hostile, '\033'));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl-repair");
	TCase *tc = tcase_create("repair");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, sentences, 0, (int)ELEMENTSOF(rows));
	tcase_add_test(tc, nothing_to_say);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
