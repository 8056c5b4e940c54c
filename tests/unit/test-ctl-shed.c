/* What `explain` and `status` say of shedding: the first obstacle with its numbers, who promised
 * and until when, what an operator wants, and nothing at all where there are no neighbours. */
#include "agent/ctl/explain.h"

#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/ctl/status.h"
#include "agent/judge/judge.h"
#include "agent/judge/verdict.h"

#define NOW "\"2026-11-30T12:00:00.000Z\""

/* A document of one prefix; `server` and `shed` are objects, or null. */
static json_t *document_of(const char *server, const char *shed)
{
	_cleanup_free_ char *text = NULL;
	json_error_t error;
	json_t *document;

	ck_assert_int_gt(
		asprintf(&text,
			"{\"format\": 1, \"node\": \"edge1\", \"time\": " NOW
			", \"ready\": true, \"bird\": {\"link\": \"up\"}, \"shed\": %s, "
			"\"services\": {\"dns\": {\"health\": \"healthy\", \"prefixes\": "
			"{\"192.0.2.53/32\": {\"wanted\": \"announce\", \"announced\": true, "
			"\"reason\": \"healthy\", \"rule\": 7, \"shed\": %s}}}}}",
			server, shed),
		0);
	document = json_loads(text, 0, &error);
	ck_assert_msg(document != NULL, "%s: %s", error.text, text);
	return document;
}

/* Heap, in one line: what was broken at blanks is put together. */
static char *said(const json_t *document, bool whole)
{
	const struct status_view view = {.now = 1796040000};
	char *text = NULL, *to, *from;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	ck_assert_ptr_nonnull(out);
	if (whole)
		explain_print(out, document, &view);
	else
		status_print_shed(out, document, &view);
	ck_assert_int_eq(fclose(out), 0);
	for (from = to = text; *from; from++) {
		char c = *from == '\n' ? ' ' : *from;

		if (c != ' ' || to == text || to[-1] != ' ')
			*to++ = c;
	}
	*to = '\0';
	return text;
}

#define SERVER(why)                                                                        \
	"{\"why\": \"" why "\", \"utilisation\": 4120, \"hot\": 8500, \"neighbours\": 4, " \
	"\"neighbours_fresh\": 1, \"neighbours_hot\": 1, \"out\": 3}"
#define IN(why, more) \
	"{\"out\": false, \"mode\": \"withdraw\", \"why\": \"" why "\", \"floor\": 2" more "}"
#define ASKED                                                                                     \
	", \"promises\": [{\"neighbour\": \"edge2\", \"given\": false, \"until\": "               \
	"\"2026-11-30T12:00:08.000Z\"}, {\"neighbour\": \"edge3\", \"given\": false, "            \
	"\"refused\": "                                                                           \
	"\"no_room\", \"until\": null}, {\"neighbour\": \"edge4\", \"given\": false, \"until\": " \
	"null}]"
#define OTHERS                                                                             \
	", \"neighbours\": [{\"neighbour\": \"edge2\", \"report\": \"fresh\", \"state\": " \
	"\"healthy\", \"willing\": true, \"spare\": 40000}, {\"neighbour\": \"edge3\", "   \
	"\"report\": \"stale\", \"state\": \"healthy\"}]"

START_TEST (why_it_is_in_or_out) {
	static const struct {
		const char *server, *shed, *says;
	} rows[] = {
		{SERVER("cool"), IN("new", ""),
			"not out: this server is not overloaded (utilisation 41.2 %, hot is 85.0 "
			"%)."},
		{SERVER("alone"), IN("floor", ""),
			"fewer than half of the neighbours are fresh (1 of 4)."},
		{SERVER("site_hot"), IN("new", ""), "(1 of 1 neighbours that are fresh)"},
		{SERVER("overload"), IN("floor", OTHERS),
			"too few neighbours announce it healthily (1, and its floor is 2)."},
		{SERVER("overload"), IN("no_room", ", \"neighbour\": \"edge2\"" OTHERS),
			"too little room (edge2, which has room for 40000)."},
		{SERVER("overload"), IN("back_off", ", \"until\": \"2026-11-30T12:05:00.000Z\""),
			"left alone for a while, for 5m more."},
		{SERVER("cool"), IN("asking", ASKED),
			"neighbours are being asked. Promises (its floor is 2): edge2 (for 8.0s "
			"more), "
			"edge3 refused (no_room): it has too little room, edge4 has not answered."},
		/* An operator's word does not wait for load, but for promises. */
		{SERVER("cool"),
			IN("starting", ", \"word\": {\"word\": \"shed\", \"who\": \"root\", "
				       "\"reason\": \"hot disks\", \"until\": null}"),
			"not out: the agent has just started, and may have promised in its last "
			"life. "
			"By hand: shed by root, until it is reset: hot disks."},
		{SERVER("overload"),
			IN("held", ", \"word\": {\"word\": \"unshed\", \"who\": \"root\", "
				   "\"until\": \"2026-11-30T13:00:00.000Z\"}"),
			"not out: an operator keeps it here. By hand: unshed by root, until 2026-"},
		{SERVER("cool"),
			IN("promised",
				", \"promises\": [{\"neighbour\": \"edge4\", \"given\": true, "
				"\"until\": \"2026-11-30T12:00:09.000Z\"}]"),
			"It stays here: this server has promised it to edge4 (for 9.0s more)."},
		{SERVER("cool"),
			IN("new", ", \"last\": \"leases\", \"last_at\": "
				  "\"2026-11-30T11:55:00.000Z\""),
			"came back, or was not taken, 5m ago: too few promises were left."},
		{SERVER("overload"),
			"{\"out\": true, \"mode\": \"demote\", \"why\": \"overload\", \"until\": "
			"null, \"load_moved\": 120, \"order\": 2}",
			"out (demoted): this server is overloaded. No promise holds any more. It "
			"brings back 120"},
		{SERVER("overload"),
			"{\"out\": true, \"mode\": \"withdraw\", \"why\": \"overload\", \"floor\": "
			"2, "
			"\"since\": \"2026-11-30T11:59:48.000Z\", \"until\": "
			"\"2026-11-30T12:00:07.900Z\", \"load_moved\": 120, \"order\": 2" ASKED "}",
			"out for 12s (withdrawn): this server is overloaded. The promises hold, "
			"for 7.9s "
			"more, and are renewed. It brings back 120 of load, and is number 2 of 3 "
			"that "
			"are out: the last one comes back first. Promises (its floor is 2): edge2"},
		{SERVER("of_tomorrow"), IN("of_tomorrow", ""),
			"not out: nothing has been judged yet."},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *document = document_of(rows[i].server, rows[i].shed);
		_cleanup_free_ char *text = said(document, true);

		ck_assert_msg(strstr(text, rows[i].says), "%s\n%s\nnot in\n%s", rows[i].shed,
			rows[i].says, text);
		json_decref(document);
	}
}
END_TEST

/* Who has promised, and who might, where the floor keeps what is unhealthy. */
START_TEST (kept_by_its_floor) {
	json_t *document = document_of(SERVER("cool"), IN("not_announced", ASKED OTHERS));
	json_t *prefix = json_object_get(
		json_object_get(
			json_object_get(json_object_get(document, "services"), "dns"), "prefixes"),
		"192.0.2.53/32");
	_cleanup_free_ char *text = NULL;

	ck_assert_int_eq(json_object_set_new(prefix, "reason", json_string("kept_by_floor")), 0);
	text = said(document, true);
	ck_assert_msg(
		strstr(text, "it wants to leave, and asks for the promises of 2 neighbours that "
			     "announce it healthily; as far as reports tell there is 1 of them. "
			     "Promises (its floor is 2): edge2 (for 8.0s more)"),
		"%s", text);
	json_decref(document);
}
END_TEST

START_TEST (nothing_without_neighbours) {
	json_t *document = document_of("null", "null");
	_cleanup_free_ char *text = said(document, true), *status = said(document, false);

	ck_assert_ptr_null(strstr(text, "Shed"));
	ck_assert_str_eq(status, "");
	json_decref(document);
}
END_TEST

START_TEST (the_server_and_who_is_away) {
	json_t *document = document_of(SERVER("budget"), "null");
	_cleanup_free_ char *text = NULL;

	ck_assert_int_eq(
		json_object_set_new(document, "neighbours",
			json_loads("{\"members\": {\"edge2\": {\"state\": \"fresh\"}, \"edge3\": "
				   "{\"state\": \"silent\", \"address\": \"192.0.2.3:9480\", "
				   "\"asked\": \"2026-11-30T11:54:00.000Z\", \"error\": "
				   "\"refused\"}}}",
				0, NULL)),
		0);
	text = said(document, false);
	ck_assert_str_eq(text,
		"shedding: 3 prefixes out, utilisation 41.2 % (hot 85.0 %), 1 of 4 neighbours "
		"fresh; "
		"there were too many changes lately neighbour edge3 (192.0.2.3:9480): silent, last "
		"heard of 6m ago: refused ");
	json_decref(document);
}
END_TEST

/* What the first line and the plug-in are made of. */
START_TEST (how_bad_it_is) {
	static const struct {
		const char *path, *value;
		enum judge_level level;
		const char *says, *command;
	} rows[] = {
		{"shed", "{\"alarm\": true}", JUDGE_LOOK, "shedding had no effect", "journalctl"},
		{"shed", "{\"neighbours\": 4, \"neighbours_fresh\": 1}", JUDGE_LOOK,
			"only 1 of 4 neighbours report", "redshankctl status"},
		{"shed", "{\"neighbours\": 4, \"neighbours_fresh\": 2}", JUDGE_GOOD, "All is well",
			""},
		{"neighbours", "{\"error\": \"ca.pem: gone\"}", JUDGE_LOOK,
			"are not taken into use", "journalctl"},
		{"neighbours", "{\"warning\": \"it expires within 7 days\"}", JUDGE_LOOK,
			"the certificate for neighbours: it expires within 7 days", "journalctl"},
	};
	json_t *prefix;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *document = document_of("null", "null");
		struct verdict v;

		ck_assert_int_eq(json_object_set_new(document, rows[i].path,
					 json_loads(rows[i].value, 0, NULL)),
			0);
		verdict_judge(&v, document);
		ck_assert_msg(
			v.level == rows[i].level && strstr(buffer_string(&v.text), rows[i].says),
			"%s: %d %s", rows[i].value, (int)v.level, buffer_string(&v.text));
		ck_assert_msg(strstr(v.command, rows[i].command) == v.command, "%s: %s",
			rows[i].value, v.command);
		verdict_done(&v);
		json_decref(document);
	}
	prefix = json_loads(
		"{\"wanted\": \"withdraw\", \"announced\": false, \"reason\": \"shed\"}", 0, NULL);
	ck_assert_int_eq(judge_prefix(prefix, NULL), JUDGE_PREFIX_SHED);
	json_decref(prefix);
	prefix = json_loads(
		"{\"wanted\": \"announce\", \"announced\": true, \"reason\": \"kept_by_floor\"}", 0,
		NULL);
	ck_assert_int_eq(judge_prefix(prefix, NULL), JUDGE_PREFIX_KEPT);
	ck_assert_int_eq(judge_prefix_level(JUDGE_PREFIX_KEPT), JUDGE_TROUBLE);
	json_decref(prefix);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl-shed");
	TCase *tc = tcase_create("words");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, why_it_is_in_or_out);
	tcase_add_test(tc, kept_by_its_floor);
	tcase_add_test(tc, nothing_without_neighbours);
	tcase_add_test(tc, the_server_and_who_is_away);
	tcase_add_test(tc, how_bad_it_is);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
