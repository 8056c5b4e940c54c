/*
 * One judgement: each row is a status document, how bad it is, and what the first line of the
 * status says of it. The plug-in's exit code has to be the same, and so has the word that begins
 * the line.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/judge/judge.h"
#include "agent/ctl/status.h"

#define UP "'link':'up','sessions':2,'sessions_up':2"
#define WELL "'wanted':'announce','announced':true,'exported':2,'reason':'healthy'"
#define HELD "'wanted':'announce','announced':true,'exported':2,'reason':'forced'"
#define SETTLING "'settling':true,"
#define SHED "'shed':{'enabled':true,'hot':8500,'utilisation':"
#define LAST(outcomes) "','outcomes':['" outcomes "'],'reason':'no descriptors"
#define GONE "'wanted':'withdraw','announced':false,'exported':0"

static const struct row {
	const char *top, *bird, *health, *prefix, *check;
	enum judge_level level;
	const char *says;
} rows[] = {
	{"", UP, "healthy", WELL, "up", JUDGE_GOOD, "All is well: 1 service, 1 of 1 prefixes"},
	/* the service */
	{"", UP, "healthy", WELL, "down", JUDGE_LOOK, "dns is healthy, but check c is down"},
	/* a check that has no outcome twice in a row, whatever it said before */
	{"", UP, "healthy", WELL, "up" LAST("good','unknown','unknown"), JUDGE_LOOK,
		"Look (redshankctl explain dns): dns is healthy, but check c says nothing\n"},
	{"", UP, "healthy", WELL, "down" LAST("bad','unknown','unknown"), JUDGE_LOOK,
		"dns is healthy, but check c says nothing\n"},
	{"", UP, "undecided", GONE ",'reason':'first_round'", "pending" LAST("unknown','unknown"),
		JUDGE_LOOK, "dns is not decided yet\n"},
	{"", UP, "unhealthy", GONE ",'reason':'unhealthy'", "down" LAST("bad','unknown','unknown"),
		JUDGE_TROUBLE, "dns is unhealthy\n"},
	{"", UP, "healthy", WELL, "up" LAST("unknown','unknown','good"), JUDGE_GOOD, "All is well"},
	{"", UP, "healthy", WELL, "up" LAST("good','unknown"), JUDGE_GOOD, "All is well"},
	{"", UP, "healthy", WELL, "up" LAST("unknown"), JUDGE_GOOD, "All is well"},
	{"", UP, "undecided", GONE ",'reason':'first_round'", "pending", JUDGE_LOOK,
		"dns is not decided yet"},
	{"", UP, "unhealthy", GONE ",'reason':'unhealthy'", "down", JUDGE_TROUBLE,
		"(redshankctl explain dns): dns is unhealthy\n"},
	/* the prefix */
	{"", UP, "unhealthy", GONE ",'reason':'unhealthy','elsewhere':'direct1'", "down",
		JUDGE_TROUBLE, "dns is unhealthy and STILL ANNOUNCED by direct1\n"},
	{"", UP, "healthy", GONE ",'reason':'drained','elsewhere':'direct1'", "up", JUDGE_TROUBLE,
		"dns is drained and STILL ANNOUNCED by direct1\n"},
	{"", UP, "healthy", GONE ",'reason':'drained'", "up", JUDGE_LOOK, "dns is drained\n"},
	{"", UP, "healthy", "'wanted':'announce','announced':true,'exported':2,'reason':'drained'",
		"up", JUDGE_LOOK, "dns is drained\n"},
	{"", UP, "unhealthy", "'wanted':'withdraw','announced':true,'reason':'unhealthy'", "down",
		JUDGE_TROUBLE, "dns is unhealthy and STILL ANNOUNCED\n"},
	{"", UP, "unhealthy",
		"'wanted':'withdraw','announced':false,'exported':1,'reason':'unhealthy'", "down",
		JUDGE_TROUBLE, "dns is unhealthy and STILL ANNOUNCED\n"},
	{"", UP, "healthy", "'wanted':'announce','announced':false,'exported':0,'reason':'healthy'",
		"up", JUDGE_TROUBLE, "dns is NOT ANNOUNCED\n"},
	{"", UP, "healthy",
		"'wanted':'announce','announced':false,'reason':'healthy','elsewhere':'static7'",
		"up", JUDGE_TROUBLE, "dns is NOT ANNOUNCED: BIRD prefers the route of static7\n"},
	{"", UP, "healthy", WELL ",'elsewhere':'static7'", "up", JUDGE_TROUBLE,
		"dns is announced by the route of static7, not by ours\n"},
	{"", UP, "healthy", "'wanted':'announce','announced':true,'exported':0,'reason':'healthy'",
		"up", JUDGE_TROUBLE, "dns is announced to no session\n"},
	{"", "'link':'up','sessions':0,'sessions_up':0", "healthy",
		"'wanted':'announce','announced':true,'exported':0,'reason':'healthy'", "up",
		JUDGE_GOOD, "All is well"},
	{"", UP, "healthy", GONE ",'reason':'address_missing'", "up", JUDGE_TROUBLE,
		"dns: 192.0.2.53/32 has no address on this host\n"},
	{"", UP, "unhealthy", GONE ",'reason':'address_missing'", "down", JUDGE_TROUBLE,
		"dns is unhealthy and 192.0.2.53/32 has no address on this host\n"},
	{"", UP, "healthy",
		"'wanted':'demote','announced':true,'exported':2,'reason':'shared_unhealthy'", "up",
		JUDGE_LOOK, "dns is demoted: shared_unhealthy\n"},
	{"", UP, "healthy", GONE ",'reason':'stopping'", "up", JUDGE_LOOK,
		"dns has withdrawn prefixes: stopping\n"},
	{"", UP, "healthy", HELD, "up", JUDGE_LOOK,
		"Look (redshankctl explain dns): dns is announced by force\n"},
	{"", UP, "undecided", HELD, "pending", JUDGE_LOOK,
		"dns is not decided yet and ANNOUNCED BY FORCE\n"},
	{"", UP, "unhealthy", HELD, "down", JUDGE_TROUBLE,
		"TROUBLE (redshankctl explain dns): dns is unhealthy and ANNOUNCED BY FORCE\n"},
	{"", UP, "unhealthy", "'wanted':'announce','announced':false,'reason':'forced'", "down",
		JUDGE_TROUBLE, "dns is unhealthy and NOT ANNOUNCED\n"},
	{"", UP, "unhealthy", "'wanted':'announce','announced':true,'exported':2,'reason':'frozen'",
		"down", JUDGE_TROUBLE, "dns is unhealthy and KEPT ANNOUNCED BY THE FREEZE\n"},
	{"", UP, "healthy", GONE ",'reason':'frozen'", "up", JUDGE_LOOK,
		"dns is KEPT WITHDRAWN BY THE FREEZE\n"},
	{"'freeze':{'who':'root (uid 0, pid 7)','until':'2026-11-30T03:12:40.123Z','reason':'x'},",
		UP, "healthy", WELL, "up", JUDGE_LOOK,
		"Look (redshankctl thaw): the server is frozen by root (uid 0, pid 7) until "
		"2026-11-30T03:12:40Z: x\n"},
	/* what is wanted since a moment ago may not be done yet, and a death is told all the same
	 */
	{"", UP, "healthy", SETTLING "'wanted':'announce','announced':false,'reason':'healthy'",
		"up", JUDGE_GOOD, "All is well: 1 service, 0 of 1 prefixes"},
	{"", UP, "healthy",
		SETTLING "'wanted':'announce','announced':true,'exported':0,'reason':'healthy'",
		"up", JUDGE_GOOD, "All is well: "},
	{"", UP, "healthy",
		SETTLING "'wanted':'withdraw','announced':true,'exported':2,'reason':'drained'",
		"up", JUDGE_LOOK, "dns is drained\n"},
	{"", UP, "unhealthy",
		SETTLING "'wanted':'withdraw','announced':true,'exported':2,'reason':'unhealthy'",
		"down", JUDGE_TROUBLE, "dns is unhealthy\n"},
	/* BIRD and the agent */
	{"'drains':[{'name':null,'who':'root (uid 0, pid 7)','until':null,'reason':'new disks'}],",
		UP, "healthy", GONE ",'reason':'drained'", "up", JUDGE_LOOK,
		"Look (redshankctl undrain --all): the server is drained by root (uid 0, pid 7): "
		"new "
		"disks\n"},
	{"'drains':[{'name':null,'who':'x'}],", UP, "unhealthy", GONE ",'reason':'drained'", "down",
		JUDGE_TROUBLE, "dns is unhealthy; the server is drained by x\n"},
	{"", "'link':'away','error':'refused'", "healthy", "'wanted':'announce'", "up",
		JUDGE_TROUBLE, "TROUBLE (systemctl status bird): BIRD is away\n"},
	{"", "'link':'away','silent_since':'2026-11-30T03:12:40.123Z','error':'no greeting'",
		"unhealthy", GONE ",'reason':'unhealthy'", "down", JUDGE_TROUBLE,
		"TROUBLE (systemctl restart bird): BIRD runs but does not answer (since "
		"2026-11-30T03:12:40Z): what it announces now it keeps announcing; dns is "
		"unhealthy\n"},
	{"", "'link':'refused','error':'1.6'", "healthy", "'wanted':'announce'", "up",
		JUDGE_TROUBLE, "BIRD is not spoken to\n"},
	{"", "'link':'greeting'", "healthy", "'wanted':'announce'", "up", JUDGE_LOOK,
		"BIRD is being asked what it announces\n"},
	{"", UP ",'alarm':'x.conf:1:1 bad'", "healthy", WELL, "up", JUDGE_LOOK,
		"Look (birdc configure check): BIRD refuses its configuration\n"},
	{"", UP ",'alarm':'BIRD accepts its configuration, but that does not hold protocol x'",
		"healthy", WELL, "up", JUDGE_LOOK,
		"Look (redshankd --check): BIRD does not load our fragments\n"},
	{"", UP ",'files_error':'bird: open /x: No such file or directory'", "healthy", WELL, "up",
		JUDGE_LOOK,
		"Look (systemd-tmpfiles --create): fragments can not be written, bird: open /x: "
		"No"},
	{"", "'link':'up','sessions':2,'sessions_up':1", "healthy",
		"'wanted':'announce','announced':true,'exported':1,'reason':'healthy'", "up",
		JUDGE_LOOK, "Look (birdc show protocols): 1 of 2 sessions down"},
	{"", "'link':'up','sessions':9,'sessions_up':3,'sessions_down':['a','b','c','d','e','f']",
		"healthy", WELL, "up", JUDGE_LOOK,
		"Look (birdc show protocols all a): 6 of 9 sessions down (a, b, c, d and 2 "
		"more)\n"},
	{"'config':{'error':'redshank.json: bad'},", UP, "healthy", WELL, "up", JUDGE_LOOK,
		"Look (redshankd --check): the configuration on disk was refused, redshank.json: "},
	{"'state':{'error':'/x: No space left'},", UP, "healthy", WELL, "up", JUDGE_LOOK,
		"Look (journalctl -u redshank): what operators have said is not on disk, /x: No "
		"space left\n"},
	{SHED "9700,'why':'no_room'},", UP, "healthy", WELL, "up", JUDGE_LOOK,
		"Look (redshankctl status): the server is overloaded (97.0 %) and can shed "
		"nothing\n"},
	{SHED "9700,'why':'enough','out':2},", UP, "healthy", WELL, "up", JUDGE_LOOK,
		"the server is overloaded (97.0 %) and can shed nothing more\n"},
	{SHED "9700,'why':'asking'},", UP, "healthy", WELL, "up", JUDGE_GOOD, "All is well: "},
	{SHED "null,'why':'no_load'},", UP, "healthy", WELL, "up", JUDGE_LOOK,
		"(redshankctl status): the load of the server is not known, and nothing is shed\n"},
	{SHED "8000,'why':'alone'},", UP, "healthy", WELL, "up", JUDGE_GOOD, "All is well: "},
	{"'stopping':true,", UP, "healthy", WELL, "up", JUDGE_LOOK, "the agent is stopping\n"},
	/* the worst is said first, and its command is given */
	{"", "'link':'up','sessions':2,'sessions_up':1", "unhealthy", GONE ",'reason':'unhealthy'",
		"down", JUDGE_TROUBLE,
		"TROUBLE (redshankctl explain dns): dns is unhealthy; 1 of 2 sessions down"},
};

static json_t *make(const struct row *row)
{
	char text[2000];
	json_error_t error;
	json_t *document;

	(void)snprintf(text, sizeof(text),
		"{'format':1,'node':'edge1','version':'1',%s'bird':{%s},'services':{'dns':{"
		"'health':'%s','checks':{'c':{'state':'%s'}},'prefixes':{'192.0.2.53/32':{%s}}}}}",
		row->top, row->bird, row->health, row->check, row->prefix);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	document = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(document != NULL, "%s: %s", error.text, text);
	return document;
}

/* On one line, as a pipe gets it. */
static char *first_line(const json_t *document)
{
	const struct status_view view = {.now = 0};
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	status_print_verdict(f, document, &view);
	ck_assert_int_eq(fclose(f), 0);
	for (char *c = text; (c = strchr(c, '\n')) != NULL && c[1] != '\0'; c++)
		*c = ' ';
	return text;
}

static char *plugin_line(const json_t *document, int *ret_code)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	*ret_code = status_plugin(f, document);
	ck_assert_int_eq(fclose(f), 0);
	return text;
}

START_TEST (judgements) {
	static const char *const words[] = {"All is well: ", "Look (", "TROUBLE ("};
	static const char *const codes[] = {"REDSHANK OK", "REDSHANK WARNING", "REDSHANK CRITICAL"};
	const struct row *row = &rows[_i];
	json_t *document = make(row);
	_cleanup_free_ char *line = first_line(document);
	_cleanup_free_ char *plugin = NULL;
	int code = -1;

	plugin = plugin_line(document, &code);
	ck_assert_msg(strstr(line, row->says) != NULL, "\"%s\" is not in %s", row->says, line);
	ck_assert_int_eq(judge_document(document), row->level);
	ck_assert_msg(code == (int)row->level, "%d: %s", code, plugin);
	ck_assert_msg(strncmp(line, words[row->level], strlen(words[row->level])) == 0, "%s", line);
	ck_assert_msg(
		strncmp(plugin, codes[row->level], strlen(codes[row->level])) == 0, "%s", plugin);
	json_decref(document);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl-judge");
	TCase *tests = tcase_create("judge");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tests, judgements, 0, (int)ELEMENTSOF(rows));
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
