/*
 * advise against answers that are laid out here: what a look asks, what its answers mean on BIRD 2
 * and 3, and that a passing state is told to nobody. The same with real BIRDs:
 * tests/netns/shapes.py and bird-warnings.py. client_send() is this file's own: each command is
 * answered from a table.
 */
#include <check.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/bird/advise_private.h"
#include "agent/system/log.h"
#include "tests/unit/loop.h"

#define PREFIXES 200

/* A command and its answer: lines "CODE TEXT". */
static struct answer {
	const char *command, *text;
} answers[16];
static size_t n_answers;
static unsigned asked, asked_twice; /* commands; sent while another was under way */

static sd_event *event;
static struct advise *advise;
static unsigned n_changed, n_looked;
static struct monotime looked;
static struct config_prefix prefixes[PREFIXES];
static struct config_service service = {.name = (char *)"dns", .prefixes = prefixes};
static struct config config = {.services = &service, .n_services = 1};
static char *every[] = {(char *)"*"};

/* ---- the client ---- */

static struct {
	bool waits;
	client_reply_fn fn;
	void *userdata;
	char command[256];
	sd_event_source *source;
} query;

static const char *answer_to(const char *command)
{
	for (size_t i = 0; i < n_answers; i++)
		if (strcmp(answers[i].command, command) == 0)
			return answers[i].text;
	return strncmp(command, "show route", 10) == 0 ? "8001 Network not found" : "0000 ";
}

static int deliver(sd_event_source *source, void *userdata)
{
	_cleanup_free_ char *text = strdup(answer_to(query.command));
	struct reply_line lines[64];
	struct reply reply = {.lines = lines};
	char *at = text, *line;

	query.waits = false;
	while ((line = strsep(&at, "\n"))) {
		lines[reply.n_lines].code = atoi(line);
		lines[reply.n_lines++].text = line + 5;
	}
	reply.code = lines[reply.n_lines - 1].code;
	reply.text = lines[reply.n_lines - 1].text;
	query.fn(query.userdata, 0, &reply);
	return 0;
}

int client_send(struct client *c, uint64_t deadline_ms, client_reply_fn fn, void *userdata,
	const char *command_format, ...)
{
	va_list args;

	asked++;
	asked_twice += query.waits;
	va_start(args, command_format);
	(void)vsnprintf(query.command, sizeof(query.command), command_format, args);
	va_end(args);
	query.waits = true;
	query.fn = fn;
	query.userdata = userdata;
	sd_event_source_unref(query.source);
	ck_assert_int_ge(sd_event_add_defer(event, &query.source, deliver, NULL), 0);
	return 0;
}

/* ---- the stage ---- */

static void say(const char *command, const char *text)
{
	for (size_t i = 0; i < n_answers; i++) {
		if (strcmp(answers[i].command, command) == 0) {
			answers[i].text = text;
			return;
		}
	}
	answers[n_answers++] = (struct answer){command, text};
}

static void on_changed(void *userdata)
{
	n_changed++;
}

static void on_looked(void *userdata)
{
	n_looked++;
	looked = clock_monotime();
}

static void start(bool once)
{
	const struct advise_ops ops = {.changed = on_changed, .looked = on_looked};

	ck_assert_int_eq(advise_new(&advise, event, every, 1, once, &ops), 0);
	advise_configure(advise, &config);
	advise_connected(advise, (struct client *)&query); /* never looked into */
}

static void setup(void)
{
	ck_assert_int_ge(sd_event_new(&event), 0);
	for (size_t i = 0; i < PREFIXES; i++)
		prefixes[i].prefix = (struct prefix){
			.address = {.family = ADDRESS_FAMILY_IPV4, .bytes = {10, 0, 0, (uint8_t)i}},
			.length = 32};
	service.n_prefixes = 1;
	n_answers = asked = asked_twice = n_changed = n_looked = 0;
	say("show protocols", "1002 up4  BGP  ---  up  18:00  Established\n0000 ");
	say("show symbols redshank4", "1010 redshank4\trouting table");
	say("show protocols all 'up4'",
		"1006   Channel ipv4\n1006     State:          UP\n1006     Table:          "
		"master4\n0000 ");
	say("show route 10.0.0.0/32 table all all", "1007 Table master4:\n1007 10.0.0.0/32  "
						    "unreachable [redshank:dns:10.0.0.0 18:00] * "
						    "(250)\n0000 ");
	say("show route 10.0.0.0/32 export 'up4'", "1007 Table master4:\n1007 10.0.0.0/32  "
						   "unreachable [redshank:dns:10.0.0.0 18:00] * "
						   "(250)\n0000 ");
}

static void teardown(void)
{
	query.source = sd_event_source_disable_unref(query.source);
	query.waits = false;
	advise_free(TAKE_PTR(advise));
	event = sd_event_unref(event);
}

static bool is_told(const char *code)
{
	const struct advise_warning *w;
	size_t n = advise_warnings(advise, &w);

	for (size_t i = 0; i < n; i++)
		if (strcmp(w[i].code, code) == 0)
			return true;
	return false;
}

static size_t n_told(void)
{
	const struct advise_warning *w;

	return advise_warnings(advise, &w);
}

/* ---- tests ---- */

START_TEST (nothing_to_say) {
	start(true);
	ck_assert(LOOP_UNTIL(event, n_looked == 1, 1000));
	ck_assert_uint_eq(n_told(), 0);
	ck_assert_uint_eq(asked, 5);
	ck_assert_uint_eq(asked_twice, 0);
}
END_TEST

/* Each row: an answer that is otherwise, and the one warning that follows. */
static const struct {
	const char *command, *answer, *code;
} faults[] = {
	{"show symbols redshank4", "1010 redshank4\tundefined", "templates_missing"},
	{"show symbols redshank4", "9001 syntax error", "templates_missing"},
	{"show route 10.0.0.0/32 export 'up4'", "8001 Network not found", "not_exported"},
	{"show protocols all 'up4'",
		"1006   Channel ipv4\n1006     State: UP\n1006     Table: own4\n0000 ",
		"other_table"},
	{"show route 10.0.0.0/32 table all all",
		"1007 Table master4:\n1007 10.0.0.0/32  unicast [direct1 18:00] * (250)\n0000 ",
		"outranked"},
	{"show route 10.0.0.0/32 export 'up4'",
		"1007 Table master4:\n1007 10.0.0.0/32  unicast [direct1 18:00] * (240)\n0000 ",
		"announced_elsewhere"},
	{"show protocols", "1002 up4  Static  master4  up  18:00  \n0000 ", "no_sessions"},
	{"show protocols all 'up4'",
		"1006     Local capabilities\n1006       Graceful restart\n1006         Restart "
		"time: "
		"120\n1006     Neighbor capabilities\n1006   Channel ipv4\n1006     State: "
		"UP\n1006    "
		" Table: master4\n0000 ",
		"graceful_restart"},
};

START_TEST (each_fault) {
	say(faults[_i].command, faults[_i].answer);
	if (strcmp(faults[_i].code, "other_table") == 0)
		say("show route 10.0.0.0/32 export 'up4'", "8001 Network not found");
	start(true);
	ck_assert(LOOP_UNTIL(event, n_looked == 1, 1000));
	ck_assert_msg(is_told(faults[_i].code), "%s", faults[_i].code);
}
END_TEST

/*
 * Ours is the best, and another protocol has the prefix, too: would the session's filter let that
 * pass? BIRD is asked only where the filter has a name, and what can not be known is not told.
 */
#define OURS                                                                                  \
	"1007 Table master4:\n1007 10.0.0.0/32  unreachable [redshank:dns:10.0.0.0 18:00] * " \
	"(250)\n"
#define DIRECT "1007                  unicast [direct1 18:00] (240)\n1008 \tType: device univ\n"
static const struct {
	const char *filter, *routes, *accepts; /* what the filter lists */
	unsigned asks;			       /* the filter */
	bool stays;
} stays[] = {
	{"ACCEPT", OURS DIRECT "0000 ", NULL, 0, true},
	{"ACCEPT", OURS "0000 ", NULL, 0, false},
	{"REJECT", OURS DIRECT "0000 ", NULL, 0, false},
	{"(unnamed)", OURS DIRECT "0000 ", NULL, 0, false},
	{"services", OURS DIRECT "0000 ",
		"1007 Table master4:\n1007 10.0.0.0/32  unicast [direct1 18:00] (240)\n0000 ", 1,
		true},
	{"services", OURS DIRECT "0000 ", "0000 ", 1, false},
	{"services", OURS DIRECT "0000 ", "8001 Network not found", 1, false},
	{"services", OURS DIRECT "0000 ", "9001 syntax error, unexpected CF_SYM_UNDEFINED", 1,
		false},
	{"services", OURS "0000 ", NULL, 0, false},
	/* The way to another server; on 3.x, too; and the session's own. */
	{"ACCEPT", OURS "1007    unicast [up5 18:00] (100)\n1008 \tType: BGP univ\n0000 ", NULL, 0,
		false},
	{"ACCEPT", OURS "1007    unicast [up5 18:00] (100)\n1008 \tsource: BGP\n0000 ", NULL, 0,
		false},
	{"ACCEPT", OURS "1007    unicast [up4 18:00] (100)\n0000 ", NULL, 0, false},
	/* Which of two is left decides. */
	{"ACCEPT", OURS "1007    unicast [up5 18:00] (100)\n1008 \tType: BGP univ\n" DIRECT "0000 ",
		NULL, 0, true},
	{"ACCEPT", OURS "1007    unicast [up5 18:00] (245)\n1008 \tType: BGP univ\n" DIRECT "0000 ",
		NULL, 0, false},
	/* In a table that the session does not take its routes from. */
	{"ACCEPT",
		OURS "1007 Table other4:\n1007 10.0.0.0/32  unicast [direct1 18:00] * (240)\n0000 ",
		NULL, 0, false},
	/* Preferred to ours: another warning. */
	{"ACCEPT", OURS "1007    unicast [direct1 18:00] (250)\n0000 ", NULL, 0, false},
};

START_TEST (what_would_stay) {
	char protocol[200];

	(void)snprintf(protocol, sizeof(protocol),
		"1006   Channel ipv4\n1006     State:          UP\n1006     Table:          "
		"master4\n1006     Input filter:   ACCEPT\n1006     Output filter:  %s\n0000 ",
		stays[_i].filter);
	say("show protocols all 'up4'", protocol);
	say("show route 10.0.0.0/32 table all all", stays[_i].routes);
	if (stays[_i].accepts)
		say("show route 10.0.0.0/32 table 'master4' protocol 'direct1' filter 'services'",
			stays[_i].accepts);
	start(true);
	ck_assert(LOOP_UNTIL(event, n_looked == 1, 1000));
	ck_assert_uint_eq(asked, 5 + stays[_i].asks);
	ck_assert(is_told("would_stay") == stays[_i].stays);
}
END_TEST

/* The service dies: ours has gone from BIRD, and what was told stands and is told once. */
START_TEST (stays_while_withdrawn) {
	say("show protocols all 'up4'",
		"1006   Channel ipv4\n1006     State: UP\n1006     Table: master4\n1006     Output "
		"filter: ACCEPT\n0000 ");
	say("show route 10.0.0.0/32 table all all", OURS DIRECT "0000 ");
	start(false);
	ck_assert(LOOP_UNTIL(event, n_looked == 2, 5000));
	ck_assert(is_told("would_stay"));
	say("show route 10.0.0.0/32 table all all",
		"1007 Table master4:\n1007 10.0.0.0/32  unicast [direct1 18:00] * (240)\n0000 ");
	say("show route 10.0.0.0/32 export 'up4'",
		"1007 Table master4:\n1007 10.0.0.0/32  unicast [direct1 18:00] * (240)\n0000 ");
	advise_soon(advise);
	ck_assert(LOOP_UNTIL(event, n_looked == 3, 5000));
	ck_assert(is_told("would_stay"));
	ck_assert_uint_eq(n_changed, 1);
}
END_TEST

/* The other end asks for it, or this end only helps: no fault of ours. */
START_TEST (graceful_of_the_other_end) {
	say("show protocols all 'up4'",
		"1006     Local capabilities\n1006       Graceful restart\n1006       4-octet AS "
		"numbers\n1006     Neighbor capabilities\n1006       Graceful restart\n1006        "
		" "
		"Restart time: 120\n1006   Channel ipv4\n1006     State: UP\n1006     Table: "
		"master4\n0000 ");
	start(true);
	ck_assert(LOOP_UNTIL(event, n_looked == 1, 1000));
	ck_assert_uint_eq(n_told(), 0);
}
END_TEST

/* Seen once, it may have been on its way: told when the next look sees it again. */
START_TEST (a_passing_state_is_not_told) {
	say("show route 10.0.0.0/32 export 'up4'", "8001 Network not found");
	start(false);
	ck_assert(LOOP_UNTIL(event, n_looked == 1, 3000));
	ck_assert_uint_eq(n_told(), 0);
	say("show symbols redshank4", "9001 syntax error");
	ck_assert(LOOP_UNTIL(event, n_looked == 2, 3000));
	ck_assert(is_told("not_exported") && !is_told("templates_missing"));
	ck_assert_uint_eq(n_changed, 1);
	say("show symbols redshank4", "1010 redshank4\trouting table");
	ck_assert(LOOP_UNTIL(event, n_looked == 3, 3000));
	ck_assert(is_told("not_exported") && !is_told("templates_missing"));
	ck_assert_uint_eq(n_changed, 1);
}
END_TEST

/* Somebody reconfigures all the time: looked at again, and not all the time. */
START_TEST (reconfigured_all_the_time) {
	struct monotime first;

	start(false);
	ck_assert(LOOP_UNTIL(event, n_looked == 1, 3000));
	first = looked;
	ck_assert(LOOP_UNTIL(event, (advise_soon(advise), n_looked == 2), ADVISE_GAP_MS));
	ck_assert_uint_ge(monotime_since_us(first, looked), 1000 * (ADVISE_GAP_MS - 50));
}
END_TEST

/* Three times or more, and only of what makes routes and is not ours. */
START_TEST (toggles) {
	say("show protocols",
		"1002 up4  BGP  ---  up  18:00  Established\n1002 service4  Static  master4  down  "
		"18:00  \n0000 ");
	start(false);
	ck_assert(LOOP_UNTIL(event, n_looked == 1, 3000));
	for (unsigned i = 0; i < 4; i++) {
		advise_push(advise, i % 2 ? "Enabling protocol up4" : "Disabling protocol up4");
		advise_push(advise, "Disabling protocol redshank:dns:10.0.0.0");
		if (i < 3)
			advise_push(advise, "Disabling protocol service4");
	}
	ck_assert(LOOP_UNTIL(event, n_looked == 3, 3000));
	ck_assert(is_told("toggled"));
	ck_assert_uint_eq(n_told(), 1);
}
END_TEST

/* However many prefixes: a bounded number of them is asked for, and the connection may be lost. */
START_TEST (bounded) {
	service.n_prefixes = PREFIXES;
	start(true);
	ck_assert(LOOP_UNTIL(event, n_looked == 1, 2000));
	ck_assert_uint_le(asked, 3 + 2 * ADVISE_PREFIXES_MAX);
	ck_assert_uint_gt(asked, ADVISE_PREFIXES_MAX);
	advise_lost(advise);
	advise_push(advise, "Disabling protocol x");
	LOOP_FOR(event, 50);
	ck_assert_uint_eq(n_looked, 1);
}
END_TEST

/* A configuration in the middle of a look: the answer to the old one is not taken for another's. */
START_TEST (reload_in_a_look) {
	start(true);
	ck_assert(LOOP_UNTIL(event, asked == 4, 1000));
	advise_configure(advise, &config);
	ck_assert(LOOP_UNTIL(event, n_looked == 1, 3000));
	ck_assert_uint_eq(n_told(), 0);
	ck_assert_uint_eq(asked, 4 + 5);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bird-advise");
	TCase *tests = tcase_create("advise");
	SRunner *runner;
	int failed;

	log_init(LOG_EMERG, true);
	tcase_set_timeout(tests, 20);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, nothing_to_say);
	tcase_add_loop_test(tests, each_fault, 0, ELEMENTSOF(faults));
	tcase_add_loop_test(tests, what_would_stay, 0, ELEMENTSOF(stays));
	tcase_add_test(tests, stays_while_withdrawn);
	tcase_add_test(tests, graceful_of_the_other_end);
	tcase_add_test(tests, a_passing_state_is_not_told);
	tcase_add_test(tests, reconfigured_all_the_time);
	tcase_add_test(tests, toggles);
	tcase_add_test(tests, bounded);
	tcase_add_test(tests, reload_in_a_look);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
