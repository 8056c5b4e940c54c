/* What BIRD's answers say, from what 2.0.12 and 3.2.1 print. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bird/observe.h"

#define LINES_MAX 64

/* A reply from "CODE text" lines. */
struct made {
	char text[8192];
	struct reply_line lines[LINES_MAX];
	struct reply reply;
};

static const struct reply *make(struct made *m, const char *text)
{
	int code = 0;

	memset(m, 0, sizeof(*m));
	(void)snprintf(m->text, sizeof(m->text), "%s", text);
	m->reply.lines = m->lines;
	for (char *line = strtok(m->text, "\n"); line; line = strtok(NULL, "\n")) {
		const char *rest = line + 1;

		if (line[0] != ' ') {
			code = atoi(line);
			rest = line + 5;
		}
		m->lines[m->reply.n_lines++] = (struct reply_line){code, rest};
		m->reply.code = code;
		m->reply.text = rest;
	}
	return &m->reply;
}

START_TEST (test_status) {
	struct observe_status s = {.reboot = "untouched"};
	struct made m;

	ck_assert(!observe_status(make(&m, "0013 Daemon is up and running\n"), &s));
	ck_assert_str_eq(s.reboot, "untouched");
	ck_assert(observe_status(make(&m, "1000-BIRD 3.2.1\n"
					  "1011-Router ID is 198.51.100.1\n"
					  " Hostname is edge1\n"
					  " Current server time is 2026-11-30 16:27:03.551\n"
					  " Last reboot on 2026-11-30 16:27:02.707\n"
					  " Last reconfiguration on 2026-11-30 16:27:02.709\n"
					  "0013 Daemon is up and running\n"),
		&s));
	ck_assert_str_eq(s.reboot, "2026-11-30 16:27:02.707");
	ck_assert_str_eq(s.reconfigured, "2026-11-30 16:27:02.709");
}
END_TEST

static const struct {
	int code;
	const char *text, *name;
	bool bgp, up, established;
} protocol_rows[] = {
	{2002, "Name       Proto      Table      State  Since         Info", NULL, 0, 0, 0},
	{1002, "device1    Device     ---        up     16:26:55.611  ", "device1", 0, 1, 1},
	{1002, "up1        BGP        ---        start  16:26:55.611  Idle          ", "up1", 1, 1,
		0},
	{1002, "up1        BGP        ---        up     2026-11-30  Established   ", "up1", 1, 1,
		1},
	{1002, "redshank:dns:192.0.2.53 Static     redshank4  down   18:02:49.205  ",
		"redshank:dns:192.0.2.53", 0, 0, 0},
	{1002, "x Static master4 stop 18:02:49.205", "x", 0, 0, 0},
	{1002, "x Static master4 flush 18:02:49.205", "x", 0, 0, 0},
	{1002, "x Static master4", NULL, 0, 0, 0},
	{1002, "", NULL, 0, 0, 0},
	{1002,
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa Static t "
		"up 1",
		NULL, 0, 0, 0},
	{0, "", NULL, 0, 0, 0},
};

static struct observe_status stamps(const char *reboot, const char *reconfigured)
{
	struct observe_status s = {0};

	(void)snprintf(s.reboot, sizeof(s.reboot), "%s", reboot);
	(void)snprintf(s.reconfigured, sizeof(s.reconfigured), "%s", reconfigured);
	return s;
}

START_TEST (the_same_moment_may_read_a_millisecond_later) {
	static const struct {
		const char *what, *reboot, *reconfigured;
		bool life, configuration;
	} rows[] = {
		{"the same", "2026-11-30 16:27:02.999", "2026-11-30 16:30:00.985", true, true},
		{"a grain", "2026-11-30 16:27:03.000", "2026-11-30 16:30:00.985", true, true},
		{"a grain each", "2026-11-30 16:27:02.998", "2026-11-30 16:30:00.986", true, true},
		{"reconfigured", "2026-11-30 16:27:02.999", "2026-11-30 16:30:00.992", true, false},
		{"at once", "2026-11-30 16:27:02.999", "2026-11-30 16:30:00.988", true, false},
		{"started anew", "2026-11-30 16:31:00.000", "2026-11-30 16:31:00.000", false,
			false},
		{"the clock was set", "2026-11-30 17:27:02.999", "2026-11-30 17:30:00.985", false,
			true},
		{"set back over midnight", "2026-11-29 23:59:59.999", "2026-11-30 00:02:57.985",
			false, true},
		{"no milliseconds", "2026-11-30 16:27:02", "2026-11-30 16:30:00", true, true},
		{"another form", "16:27:02", "16:30:00", false, false},
	};
	const struct observe_status a =
		stamps("2026-11-30 16:27:02.999", "2026-11-30 16:30:00.985");
	const struct observe_status odd = stamps("16:27:02", "16:30:00");

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		const struct observe_status b = stamps(rows[i].reboot, rows[i].reconfigured);

		ck_assert_msg(observe_same_life(&a, &b) == rows[i].life, "%s: life", rows[i].what);
		ck_assert_msg(observe_same_life(&b, &a) == rows[i].life, "%s: life", rows[i].what);
		ck_assert_msg(observe_same_configuration(&a, &b) == rows[i].configuration,
			"%s: configuration", rows[i].what);
	}
	ck_assert(observe_same_life(&odd, &odd) && observe_same_configuration(&odd, &odd));
}
END_TEST

START_TEST (test_protocols) {
	for (size_t i = 0; i < ELEMENTSOF(protocol_rows); i++) {
		const struct reply_line line = {protocol_rows[i].code, protocol_rows[i].text};
		struct observe_protocol p;
		bool found = observe_protocol(&line, &p);

		ck_assert_msg(found == (protocol_rows[i].name != NULL), "row %zu", i);
		if (!found)
			continue;
		ck_assert_str_eq(p.name, protocol_rows[i].name);
		ck_assert_msg(p.is_bgp == protocol_rows[i].bgp && p.up == protocol_rows[i].up &&
				      p.established == protocol_rows[i].established,
			"row %zu", i);
	}
}
END_TEST

START_TEST (test_protocol_info) {
	static const struct {
		const char *text, *info;
	} rows[] = {
		{"up1 BGP --- start  16:26:55.611  Idle          ", "Idle"},
		{"up1 BGP --- start  2026-11-30 16:26:55.611  Active        Socket: Connection "
		 "refused",
			"Active Socket: Connection refused"},
		{"up1 BGP --- start  16:26        Active  ", "Active"},
		{"up1 BGP --- down   16:26:55.611  ", ""},
		{"up1 BGP --- down   2026-11-30 16:26:55.611", ""},
		{"up1 BGP --- down", ""},
		{"up1 BGP --- start  1  "
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		 "aaaa",
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			"aaaaa"},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		const struct reply_line line = {1002, rows[i].text};
		struct observe_protocol p;

		ck_assert(observe_protocol(&line, &p));
		ck_assert_str_eq(p.info, rows[i].info);
	}
}
END_TEST

START_TEST (test_our_name) {
	char name[NAMES_MAX] = "untouched";

	ck_assert(observe_our_name("redshank:dns:192.0.2.53: disabled", name));
	ck_assert_str_eq(name, "redshank:dns:192.0.2.53");
	ck_assert(observe_our_name("redshank:dns:2001:db8::53: already enabled", name));
	ck_assert_str_eq(name, "redshank:dns:2001:db8::53");
	ck_assert(observe_our_name("Disabling protocol redshank:dns:v4:last", name));
	ck_assert_str_eq(name, "redshank:dns:v4:last");
	ck_assert(!observe_our_name("Disabling protocol device1", name));
	ck_assert(!observe_our_name("redshank:", name));
	ck_assert_str_eq(name, "redshank:dns:v4:last");
}
END_TEST

struct seen {
	struct observe_route routes[8];
	size_t n;
};

static void on_route(void *userdata, const struct observe_route *route)
{
	struct seen *s = userdata;

	s->routes[s->n++] = *route;
}

START_TEST (test_routes_2) {
	struct seen s = {0};
	struct made m;

	observe_routes(make(&m, "1007-Table master4:\n"
				" 192.0.2.53/32        unicast [direct1 18:02:49.205] * (240)\n"
				" \tdev lo\n"
				"                      unreachable [redshank:dns:192.0.2.53 "
				"18:02:49.205] (230)\n"
				"1008-\tType: static univ\n"
				"1012-\tBGP.community: (64501,53) (65535,0)\n"
				" \t\t(64501,54)\n"
				" \tBGP.large_community: (64501, 1, 53)\n"
				" \tredshank_weight: 100\n"
				" \tredshank_prepend: 2\n"
				"1007-\n"
				" Table redshank4:\n"
				" 192.0.2.53/32        unreachable [redshank:dns:192.0.2.53 "
				"18:02:49.205] ! (250)\n"
				"0000 \n"),
		on_route, &s);
	ck_assert_uint_eq(s.n, 3);
	ck_assert_str_eq(s.routes[0].protocol, "direct1");
	ck_assert(s.routes[0].best && !s.routes[0].has_weight);
	ck_assert_str_eq(s.routes[1].table, "master4");
	ck_assert_str_eq(s.routes[1].protocol, "redshank:dns:192.0.2.53");
	ck_assert(!s.routes[1].best && s.routes[1].has_weight);
	ck_assert_uint_eq(s.routes[1].weight, 100);
	ck_assert_uint_eq(s.routes[1].prepend, 2);
	ck_assert_uint_eq(s.routes[1].n_communities, 3);
	ck_assert_uint_eq(s.routes[1].communities[2].part[1], 54);
	ck_assert_uint_eq(s.routes[1].n_large_communities, 1);
	ck_assert_uint_eq(s.routes[1].large_communities[0].part[2], 53);
	ck_assert_str_eq(s.routes[2].table, "redshank4");
	ck_assert(s.routes[2].best && !s.routes[2].has_weight);
}
END_TEST

START_TEST (test_routes_3) {
	struct seen s = {0};
	struct made m;

	observe_routes(make(&m, "1007-Table master4:\n"
				" 192.0.2.53/32        unicast [acast_dns4 16:27:03.802] * (200)\n"
				" \tdev lo\n"
				"1012-\tpreference: 200\n"
				" \tsource: static\n"
				" \tbgp_community: (64496,100)\n"
				" \tbgp_large_community: (64496, 1, 2)\n"
				" \tredshank_weight: 7\n"
				"1008-\tInternal route handling values: 0L 3G 0S id 2\n"
				"0000 \n"),
		on_route, &s);
	ck_assert_uint_eq(s.n, 1);
	ck_assert_uint_eq(s.routes[0].communities[0].part[1], 100);
	ck_assert_uint_eq(s.routes[0].large_communities[0].part[1], 1);
	ck_assert_uint_eq(s.routes[0].weight, 7);
}
END_TEST

/* Whose routes they are: in the words of 2.x and 3.x, with a link-local address behind, and not. */
START_TEST (test_next_hops) {
	struct seen s = {0};
	char text[ADDRESS_TEXT_MAX];
	struct made m;

	observe_routes(
		make(&m, "1007-Table master4:\n"
			 " 192.0.2.53/32        unicast [up1 18:02:49.205] * (100) [AS64501i]\n"
			 " \tvia 198.51.100.1 on eth0\n"
			 "1008-\tType: BGP univ\n"
			 "1012-\tBGP.origin: IGP\n"
			 " \tBGP.next_hop: 192.0.2.2\n"
			 " \tBGP.med: 100\n"
			 "1007-                 unicast [up2 18:02:49.205] (100) [AS64501i]\n"
			 "1012-\tsource: BGP\n"
			 " \tbgp_next_hop: 2001:db8::2 fe80::1\n"
			 "1007-                 unreachable [static1 18:02:49.205] (200)\n"
			 "1008-\tType: static univ\n"
			 "1007-                 unicast [up3 18:02:49.205] (100) [AS64501i]\n"
			 "1008-\tType: BGP univ\n"
			 "1012-\tBGP.next_hop: nonsense\n"
			 "0000 \n"),
		on_route, &s);
	ck_assert_uint_eq(s.n, 4);
	ck_assert_str_eq(address_format(&s.routes[0].next_hop, text), "192.0.2.2");
	ck_assert_str_eq(address_format(&s.routes[1].next_hop, text), "2001:db8::2");
	ck_assert(s.routes[0].from_bgp && s.routes[1].from_bgp && !s.routes[2].from_bgp);
	ck_assert_int_eq(s.routes[2].next_hop.family, 0);
	ck_assert_int_eq(s.routes[3].next_hop.family, 0);
}
END_TEST

/* Each row changes one thing of what the prefix is to carry. */
START_TEST (test_matches) {
	struct config_community communities[] = {{{64501, 53}}, {{64501, 54}}};
	struct config_community large[] = {{{64501, 1, 53}}};
	const struct config_prefix prefix = {.announced_weight = 100,
		.prepend = 2,
		.communities = communities,
		.n_communities = 2,
		.large_communities = large,
		.n_large_communities = 1};
	const struct observe_route good = {.has_weight = true,
		.weight = 100,
		.prepend = 2,
		.communities = {{{64501, 54}}, {{64501, 53}}}, /* the order says nothing */
		.n_communities = 2,
		.large_communities = {{{64501, 1, 53}}},
		.n_large_communities = 1};
	struct observe_route r = good;
	struct config_prefix leaving;

	ck_assert(observe_route_matches(&good, &prefix, false));
	ck_assert(!observe_route_matches(&good, &prefix, true));
	r.weight = 101;
	ck_assert(!observe_route_matches(&r, &prefix, false));
	r = good;
	r.has_weight = false;
	ck_assert(!observe_route_matches(&r, &prefix, false));
	r = good;
	r.prepend = 0;
	ck_assert(!observe_route_matches(&r, &prefix, false));
	r = good;
	r.n_communities = 1;
	ck_assert(!observe_route_matches(&r, &prefix, false));
	r = good;
	r.communities[r.n_communities++] = (struct config_community){{65535, 0}};
	ck_assert(!observe_route_matches(&r, &prefix, false));
	r.weight = 65535; /* with GRACEFUL_SHUTDOWN and the worst weight it is the twin's */
	ck_assert(observe_route_matches(&r, &prefix, true));
	leaving = prefix;
	leaving.graceful = true;
	r.weight = 100;
	ck_assert(observe_route_matches(&r, &leaving, false));
	ck_assert(!observe_route_matches(&good, &leaving, false));
	/* Said twice, it is said once. */
	communities[1] = (struct config_community){{65535, 0}};
	r = good;
	r.communities[0] = (struct config_community){{65535, 0}};
	ck_assert(observe_route_matches(&r, &leaving, false));
	communities[1] = (struct config_community){{64501, 54}};
	r = good;
	r.large_communities[0].part[1] = 2;
	ck_assert(!observe_route_matches(&r, &prefix, false));
}
END_TEST

static const struct {
	const char *text, *file;
} refusals[] = {
	{"/etc/bird/bird.conf:1:22 syntax error, unexpected '-'", "/etc/bird/bird.conf"},
	{"/etc/bird/a:b.conf:3:1 Symbol already defined", "/etc/bird/a:b.conf"},
	{"bird.conf:12 Unable to open included file", ""},
	{"Configuration file error", ""},
	{"", ""},
};

START_TEST (test_refused_file) {
	for (size_t i = 0; i < ELEMENTSOF(refusals); i++) {
		size_t n = observe_refused_file(refusals[i].text);

		ck_assert_uint_eq(n, strlen(refusals[i].file));
		ck_assert(strncmp(refusals[i].text, refusals[i].file, n) == 0);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bird/observe");
	TCase *tc = tcase_create("observe");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, test_status);
	tcase_add_test(tc, the_same_moment_may_read_a_millisecond_later);
	tcase_add_test(tc, test_protocols);
	tcase_add_test(tc, test_protocol_info);
	tcase_add_test(tc, test_our_name);
	tcase_add_test(tc, test_routes_2);
	tcase_add_test(tc, test_routes_3);
	tcase_add_test(tc, test_next_hops);
	tcase_add_test(tc, test_matches);
	tcase_add_test(tc, test_refused_file);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
