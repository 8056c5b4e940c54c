/*
 * The converters of `redshankctl import`. Files of tests/cases/peerconf against golden output in
 * tests/unit/data (with REDSHANK_GOLDEN=write in the environment it is written anew: read it before
 * it is committed), then a row for each rule of how the peers read their own files. Whatever comes
 * out must load as a configuration, without an error.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/base/buffer.h"
#include "agent/config/load.h"
#include "agent/ctl/import.h"
#include "agent/ctl/import_parts.h"
#include "probes/probe.h"
#include "tests/unit/golden.h"

/* What came out of a conversion, until the next. */
static char *out, *err;

static void forget(void)
{
	free(out);
	free(err);
	out = err = NULL;
}

static void must_load(const char *text)
{
	_cleanup_sources_ struct sources sources = {0};
	_cleanup_config_ struct config *config = NULL;
	struct problems problems;
	int r;

	problems_init(&problems);
	sources_init(&sources);
	r = sources_add_text(&sources, "out", text, strlen(text), &problems);
	if (r == 0)
		r = load_sources(&sources, probe_types, &config, &problems);
	ck_assert_msg(r == 0 && problems.n_errors == 0, "%s\n%s",
		problems.n > 0 ? problems.items[0].text : "no problem was told", text);
	problems_done(&problems);
}

/* True when a configuration came out; it is in `out` (indented by 2, or on one line with 0). */
static bool convert(enum import_peer peer, const struct import_text *texts, size_t n, size_t indent)
{
	size_t size = 0;
	FILE *f;
	json_t *configuration;

	forget();
	f = open_memstream(&err, &size);
	configuration = import_convert(peer, texts, n, f);
	ck_assert_int_eq(fclose(f), 0);
	if (!configuration)
		return false;
	out = json_dumps(configuration, indent ? JSON_INDENT(indent) : JSON_COMPACT);
	json_decref(configuration);
	must_load(out);
	return true;
}

static bool convert_text(enum import_peer peer, const char *text)
{
	const struct import_text one = {"f", text, strlen(text)};

	return convert(peer, &one, 1, 0);
}

#define FILES_MAX 3

START_TEST (golden) {
	static const struct {
		const char *name;
		enum import_peer peer;
		const char *files[FILES_MAX];
	} rows[] = {
		{"ahc", IMPORT_AHC, {"ahc.conf", "ahc.d/10-resolver.conf", "ahc.d/20-others.conf"}},
		{"exabgp", IMPORT_EXABGP, {"exabgp.conf", "site-check.conf"}},
		{"birdwatcher", IMPORT_BIRDWATCHER, {"birdwatcher.conf"}},
	};
	struct import_text texts[FILES_MAX];
	char name[64];
	size_t n = 0;

	for (; n < FILES_MAX && rows[_i].files[n]; n++) {
		char file[GOLDEN_PATH_MAX], *text;

		(void)snprintf(file, sizeof(file), "cases/peerconf/%s", rows[_i].files[n]);
		text = golden_read(file);
		texts[n] = (struct import_text){rows[_i].files[n], text, strlen(text)};
	}
	ck_assert_msg(convert(rows[_i].peer, texts, n, 2), "%s", err);
	(void)snprintf(name, sizeof(name), "ctl-import-%s", rows[_i].name);
	golden_compare(name, "json", out);
	golden_compare(name, "err", err);
	for (size_t i = 0; i < n; i++)
		free((void *)(uintptr_t)texts[i].text);
	forget();
}
END_TEST

#define ON "check_disabled=false\n"
#define AHC(text) "[s]\nip_prefix=192.0.2.1\n" ON text
#define AHC_COMMAND(command) AHC("check_cmd=" command "\n")
#define EXABGP(options) "process p { run exabgp healthcheck --ip 192.0.2.1 " options "; }"
#define WATCHER(text) "[services.s]\nprefixes=[\"192.0.2.1/32\"]\n" text

/* One rule of a peer's a row: a part of what comes out, and of what is told. */
struct rule {
	enum import_peer peer;
	const char *text, *out, *err;
};

static const struct rule rules[] = {
	/* Python's configparser */
	{IMPORT_AHC, "[DEFAULT]\ncheck_interval=7\n" AHC_COMMAND("/c"), "\"interval\":\"7s\"", ""},
	{IMPORT_AHC, AHC_COMMAND("/c"), "\"interval\":\"10s\"", ""},
	{IMPORT_AHC, AHC_COMMAND("/c"), "\"timeout\":\"2s\",\"rise\":2,\"fall\":2", ""},
	{IMPORT_AHC, "\xef\xbb\xbf" AHC_COMMAND("/c"), "\"192.0.2.1/32\":100", ""},
	{IMPORT_AHC, AHC("CHECK_CMD : /c\r\n"), "[\"/c\"]", ""},
	{IMPORT_AHC, AHC("check_cmd=/c ; no comment\n"), "[\"/c\",\";\",\"no\",\"comment\"]", ""},
	{IMPORT_AHC, AHC("check_cmd=/c\n  a\n# not this\n\n  b\n"), "[\"/c\",\"a\",\"b\"]", ""},
	{IMPORT_AHC, AHC("check_cmd=/c 5%% %(ip_prefix)s\n"), "[\"/c\",\"5%\",\"192.0.2.1\"]", ""},
	{IMPORT_AHC, AHC("x=%(y)s%(y)s\ny=z\ncheck_cmd=/c %(X)s\n"), "[\"/c\",\"zz\"]",
		"f:4: x: not an option of a service"},
	/* Python's shlex */
	{IMPORT_AHC, AHC_COMMAND("/c 'a b'\"c d\"e\\ f"), "[\"/c\",\"a bc de f\"]", ""},
	{IMPORT_AHC, AHC_COMMAND("/c '' \"\\\"\\x\\\\\" '\\n'"),
		"[\"/c\",\"\",\"\\\"\\\\x\\\\\",\"\\\\n\"]", ""},
	{IMPORT_AHC, AHC_COMMAND("/c $HOME `id` | x"), "[\"/c\",\"$HOME\",\"`id`\",\"|\",\"x\"]",
		""},
	{IMPORT_AHC, AHC_COMMAND("curl x"), "[\"/usr/bin/env\",\"curl\",\"x\"]",
		"f:4: curl is looked for in PATH"},
	/* anycast-healthchecker */
	{IMPORT_AHC, "[s]\nip_prefix=192.0.2.1\non_disabled=advertise\n",
		"{\"s\":{\"prefixes\":{\"192.0.2.1/32\":100}}}",
		"f:1: [s]: no check, always announced (check_disabled is true unless"},
	{IMPORT_AHC, "[DEFAULT]\ncheck_disabled=yes\n[s]\nip_prefix=::2\non_disabled=advertise\n",
		"{\"s\":{\"prefixes\":{\"::2/128\":100}}}",
		"f:2: [s]: no check, always announced (check_disabled is true,"},
	{IMPORT_AHC, "[gone]\nip_prefix=192.0.2.2\n" AHC_COMMAND("/c"),
		"{\"services\":{\"s\":", "f:1: [gone]: no check, never announced"},
	{IMPORT_AHC, AHC_COMMAND("/c") "ip_check_disabled=on\n", "\"address_check\":false", ""},
	{IMPORT_AHC, AHC_COMMAND("/c") "check_timeout=.25\n", "\"timeout\":\"250ms\"", ""},
	{IMPORT_AHC, AHC_COMMAND("/c") "check_interval=1\n",
		"\"interval\":\"1s\",\"fast_interval\":\"1s\",\"timeout\":\"1s\"",
		"the default timeout 2s is longer than the interval 1s"},
	{IMPORT_AHC, AHC_COMMAND("/c") "check_interval=1\ncheck_timeout=4\n",
		"\"interval\":\"4s\",\"fast_interval\":\"1s\",\"timeout\":\"4s\"",
		"timeout 4s is longer than the interval 1s"},
	{IMPORT_AHC, AHC_COMMAND("/c") "check_interval=86400\n", "\"interval\":\"1h\"",
		"interval 24h is made 1h"},
	{IMPORT_AHC, AHC_COMMAND("/c") "custom_bird_reconfigure_cmd=/x\n", "",
		"f:5: custom_bird_reconfigure_cmd = /x: no equivalent"},
	{IMPORT_AHC, "[daemon]\ndummy_ip_prefix=203.0.113.1/32\n" AHC_COMMAND("/c"), "",
		"f:2: dummy_ip_prefix = 203.0.113.1/32: not needed, and never announced"},
	/* names */
	{IMPORT_AHC,
		"[a.b]\nip_prefix=192.0.2.9\n" ON "check_cmd=/c\n[a-b]\nip_prefix=192.0.2.8\n" ON
		"check_cmd=/c\n",
		"\"a-b-2\":{", "f:5: \"a-b\" is called a-b-2 here"},
	{IMPORT_AHC, "[--\xc3\xa9]\nip_prefix=192.0.2.9\n" ON "check_cmd=/c\n", "\"service\":{",
		""},
	{IMPORT_AHC,
		"[abcdefghijklmnopqrstuvwxyz0123456789]\nip_prefix=192.0.2.9\n" ON "check_cmd=/c\n",
		"\"abcdefghijklmnopqrstuvwxyz012345\":{", "32 at most"},
	/* exabgp: what is not said */
	{IMPORT_EXABGP, EXABGP("--cmd /c"),
		"{\"p\":{\"prefixes\":{\"192.0.2.1/32\":{\"weight\":100,\"last_resort\":true}}",
		"f:1: no --withdraw-on-down: when the service fails, exabgp goes on announcing it, "
		"with metric 1000"},
	{IMPORT_EXABGP, EXABGP("--cmd /c"),
		"\"interval\":\"5s\",\"fast_interval\":\"1s\",\"timeout\":\"5s\",\"rise\":3,"
		"\"fall\":3",
		"exabgp puts the addresses on lo itself"},
	{IMPORT_EXABGP, EXABGP("--withdraw-on-down"), "{\"192.0.2.1/32\":100}}}",
		"no --command: no check, always announced"},
	{IMPORT_EXABGP, EXABGP("--cmd 'a | b'"), "[\"/bin/sh\",\"-c\",\"a | b\"]", ""},
	/* argparse */
	{IMPORT_EXABGP, EXABGP("--name=n --inter 2 -t1 -f .5 -c \"x=\\\"y\\\"\""), "{\"n\":{", ""},
	{IMPORT_EXABGP, EXABGP("--inter 2 -t1 -f .5 -c \"x=\\\"y\\\"\""),
		"\"x=\\\"y\\\"\"],\"interval\":\"2s\",\"fast_interval\":\"500ms\",\"timeout\":"
		"\"1s\"",
		""},
	{IMPORT_EXABGP, EXABGP("--cmd /c --rise 0 --silent -d --no-ack"), "\"rise\":1",
		"rise 0 is made 1"},
	{IMPORT_EXABGP, EXABGP("--cmd /c -i 2 --timeout 4"),
		"\"interval\":\"4s\",\"fast_interval\":\"1s\",\"timeout\":\"4s\"",
		"timeout 4s is longer than the interval 2s"},
	{IMPORT_EXABGP, EXABGP("--cmd /c -i 2"),
		"\"interval\":\"2s\",\"fast_interval\":\"1s\",\"timeout\":\"2s\"",
		"the default timeout 5s is longer than the interval 2s"},
	/* metrics */
	{IMPORT_EXABGP, EXABGP("--ip 192.0.2.2 --ip 192.0.2.3 --withdraw-on-down --increase 5"),
		"{\"192.0.2.1/32\":100,\"192.0.2.2/32\":105,\"192.0.2.3/32\":110}", ""},
	{IMPORT_EXABGP, EXABGP("--ip 192.0.2.2 --ip 192.0.2.3 --withdraw-on-down --start-ip 1"),
		"{\"192.0.2.2/32\":100,\"192.0.2.3/32\":101,\"192.0.2.1/32\":102}", ""},
	{IMPORT_EXABGP,
		EXABGP("--ip 192.0.2.4/30 --deaggregate-networks --withdraw-on-down --up-metric 7"),
		"{\"192.0.2.1/32\":7,\"192.0.2.4/32\":8,\"192.0.2.5/32\":9,\"192.0.2.6/32\":10,"
		"\"192.0.2.7/32\":11}",
		""},
	{IMPORT_EXABGP, EXABGP("--withdraw-on-down --up-metric 70000"), "{\"192.0.2.1/32\":65535}",
		"metric 70000 is cut to 65535"},
	{IMPORT_EXABGP, EXABGP("--community \"no-export 64496:1\" --withdraw-on-down"),
		"\"communities\":[\"65535:65281\",\"64496:1\"]", ""},
	{IMPORT_EXABGP, EXABGP("--community 70000:1 --large-community '[ 70000:1:2 ]'"),
		"\"large_communities\":[\"70000:1:2\"]", "community 70000:1: no equivalent"},
	/* the maintenance file */
	{IMPORT_EXABGP, EXABGP("--cmd /c --disable /run/d --withdraw-on-down"),
		"\"enabled\":{\"type\":\"exec\",\"command\":[\"/usr/bin/test\",\"!\",\"-e\","
		"\"/run/d\"],\"interval\":\"5s\",\"fast_interval\":\"1s\",\"timeout\":\"1s\","
		"\"rise\":3,\"fall\":1}",
		"withdrawn then, as before"},
	{IMPORT_EXABGP, EXABGP("--cmd /c --disable /run/d --disabled-metric 600"), "",
		"and not announced with metric 600"},
	/* what has no equivalent */
	{IMPORT_EXABGP, EXABGP("--cmd /c\n --next-hop\n 192.0.2.9\n --neighbor *"), "",
		"f:2: --next-hop 192.0.2.9: no equivalent"},
	{IMPORT_EXABGP, EXABGP("--cmd /c --user nobody"), "", "checks run as the agent's user"},
	{IMPORT_EXABGP,
		EXABGP("") "\nneighbor 192.0.2.7 {\n static { route 192.0.2.8/32 next-hop"
			   " self; }\n}\n",
		"", "f:3: route 192.0.2.8/32: announced without any check"},
	{IMPORT_EXABGP, EXABGP("") "process q { run /x; }", "",
		"process q runs no `exabgp healthcheck`"},
	/* a --config file alone */
	{IMPORT_EXABGP, "# c\n ip = 192.0.2.1\n\n withdraw-on-down\ncommand= a = 'b' # c\n",
		"{\"f\":{\"prefixes\":{\"192.0.2.1/32\":100},\"checks\":{\"command\":{\"type\":"
		"\"exec\",\"command\":[\"/bin/sh\",\"-c\",\"a = 'b' # c\"]",
		""},
	/* birdwatcher */
	{IMPORT_BIRDWATCHER, WATCHER("command=\"/c\"\n"),
		"\"interval\":\"1s\",\"fast_interval\":\"1s\",\"timeout\":\"1s\",\"rise\":1,"
		"\"fall\":1",
		"f:1: the default timeout 10s is longer than the interval 1s"},
	{IMPORT_BIRDWATCHER, WATCHER("command=\"/c a  'b\"\n"), "[\"/c\",\"a\",\"\",\"'b\"]",
		"f:3: the command has two blanks in a row"},
	{IMPORT_BIRDWATCHER, WATCHER("Command='/c'\nFAIL=3\nrise=2\ninterval=20\n"),
		"\"interval\":\"20s\",\"fast_interval\":\"20s\",\"timeout\":\"10s\",\"rise\":2,"
		"\"fall\":3",
		"function match_route(): no equivalent"},
	{IMPORT_BIRDWATCHER, WATCHER("command='/c'\ninterval=200\ntimeout=\"1m1.5s\"\n"),
		"\"timeout\":\"61500ms\"", ""},
	{IMPORT_BIRDWATCHER, WATCHER("command='/c'\ninterval=10\ntimeout=10\n"),
		"\"timeout\":\"10s\"", "f:5: timeout = 10 is so many nanoseconds"},
	{IMPORT_BIRDWATCHER, WATCHER("command='/c'\nfunctionname='fn'\n"), "",
		"f:4: function fn(): no equivalent"},
	{IMPORT_BIRDWATCHER, WATCHER("command='/c'\n[services.t]\ncommand='/c'\n"),
		"{\"services\":{\"s\":", "f:4: service t has no prefixes"},
	{IMPORT_BIRDWATCHER, "services.s.command='/c'\nservices.s.prefixes=['192.0.2.9/31']\n",
		"{\"192.0.2.8/31\":100}", "f:2: 192.0.2.9/31 is the prefix 192.0.2.8/31"},
	/* TOML */
	{IMPORT_BIRDWATCHER, WATCHER("command = \"/c\\u00e9\\t\\\\ \\U0001F426\" # c\n"),
		"\"/c\xc3\xa9\\t\\\\\",\"\xf0\x9f\x90\xa6\"", ""},
	{IMPORT_BIRDWATCHER,
		"[ services . 'a b' ]\r\ncommand='/c'\r\nprefixes=[ # c\r\n'192.0.2.1/32'"
		",\r\n]\r\ninterval=1_0\r\n",
		"\"a-b\":{", "f:1: \"a b\" is called a-b here"},
};

START_TEST (each_rule) {
	const struct rule *rule = &rules[_i];

	ck_assert_msg(convert_text(rule->peer, rule->text), "%s\n%s", rule->text, err);
	ck_assert_msg(strstr(out, rule->out) != NULL, "%s\ngot %s\nexpected %s", rule->text, out,
		rule->out);
	ck_assert_msg(strstr(err, rule->err) != NULL, "%s\ntold %s\nexpected %s", rule->text, err,
		rule->err);
	forget();
}
END_TEST

static const struct rule refusals[] = {
	{IMPORT_AHC, "", "", "error: nothing to convert"},
	{IMPORT_AHC, "[daemon]\npidfile=/x\n", "", "error: nothing to convert"},
	{IMPORT_AHC, "a=b\n", "", "f:1: error: got \"a=b\"; expected a section"},
	{IMPORT_AHC, "[s]\nfnord\n", "", "f:2: error: got \"fnord\"; expected OPTION = VALUE"},
	{IMPORT_AHC, "[s]\na=1\nA=2\n", "", "f:3: error: a is set twice in [s]"},
	{IMPORT_AHC, "[s]\n[t]\n[s]\n", "", "f:3: error: section [s] stands in this file twice"},
	{IMPORT_AHC, AHC_COMMAND("/c 'a"), "", "f:4: error: check_cmd: got a quote"},
	{IMPORT_AHC, AHC_COMMAND("/c a\\"), "", "f:4: error: check_cmd: got a backslash"},
	{IMPORT_AHC, AHC_COMMAND(""), "", "f:4: error: the command is empty"},
	{IMPORT_AHC, AHC_COMMAND("./c"), "", "f:4: error: ./c: expected the absolute path"},
	{IMPORT_AHC, AHC_COMMAND("/c 5%"), "", "f:4: error: check_cmd: got a % that starts no"},
	{IMPORT_AHC, AHC_COMMAND("/c %(x)s"), "", "f:4: error: check_cmd: got a %(name)s that"},
	{IMPORT_AHC, AHC_COMMAND("%(check_cmd)s"), "", "values that name each other too often"},
	{IMPORT_AHC, AHC(""), "", "f:1: error: [s] has no check_cmd"},
	{IMPORT_AHC, "[s]\n", "", "f:1: error: [s] has no ip_prefix"},
	{IMPORT_AHC, "[s]\nip_prefix=192.0.2.1/24\non_disabled=advertise\n", "",
		"f:2: error: got \"192.0.2.1/24\"; expected no bits set"},
	{IMPORT_AHC, "[s]\nip_prefix=127.0.0.1\non_disabled=advertise\n", "",
		"f:2: error: 127.0.0.1/32 is no other host's"},
	{IMPORT_AHC, "[s]\nip_prefix=192.0.2.1\non_disabled=maybe\n", "",
		"f:3: error: on_disabled: got \"maybe\""},
	{IMPORT_AHC, "[s]\nip_prefix=192.0.2.1\ncheck_disabled=maybe\n", "",
		"f:3: error: check_disabled: got \"maybe\"; expected true or false"},
	{IMPORT_AHC, AHC_COMMAND("/c") "check_timeout=1s\n", "",
		"f:5: error: check_timeout: got \"1s\"; expected seconds"},
	{IMPORT_AHC, AHC_COMMAND("/c") "check_rise=1.5\n", "", "f:5: error: check_rise: got"},
	{IMPORT_AHC, AHC_COMMAND("/c") "[t]\nip_prefix=192.0.2.1\n" ON "check_cmd=/c\n", "",
		"f:6: error: 192.0.2.1/32 belongs to s already"},
	{IMPORT_AHC, "[s]\xff\n", "", "f:1: error: not a text in UTF-8"},
	{IMPORT_EXABGP, "process p { run exabgp healthcheck --ip 192.0.2.1 }", "",
		"f:1: error: got \"}\"; expected \";\" before it"},
	{IMPORT_EXABGP, "process p {\n run x;\n", "", "f:2: error: the file ends inside a block"},
	{IMPORT_EXABGP, "process p { run 'x; }", "", "f:1: error: a quote that does not end"},
	{IMPORT_EXABGP, "process p { } }", "", "f:1: error: got \"}\"; expected nothing to close"},
	{IMPORT_EXABGP, "process p { run exabgp healthcheck --cmd x; }", "", "error: no --ip"},
	{IMPORT_EXABGP, EXABGP("--fnord 1"), "", "error: got \"--fnord\"; expected an option"},
	{IMPORT_EXABGP, EXABGP("--di x"), "", "error: got \"--di\"; expected an option"},
	{IMPORT_EXABGP, EXABGP("x"), "", "error: got \"x\"; expected an option"},
	{IMPORT_EXABGP, EXABGP("--rise"), "", "error: --rise: expected a value behind it"},
	{IMPORT_EXABGP, EXABGP("--rise x"), "", "error: --rise: got \"x\"; expected a whole"},
	{IMPORT_EXABGP, EXABGP("--ip 192.0.2.1"), "", "error: 192.0.2.1/32 belongs to p already"},
	{IMPORT_EXABGP, EXABGP("--config /no/such"), "", "error: --config /no/such: no such file"},
	{IMPORT_EXABGP, "name = x\nip 192.0.2.1\n", "", "f:2: error: got \"--ip 192.0.2.1\""},
	{IMPORT_BIRDWATCHER, "[services]\n", "", "error: nothing to convert"},
	{IMPORT_BIRDWATCHER, WATCHER(""), "", "f:1: error: service s has no command"},
	{IMPORT_BIRDWATCHER, "[services.s]\ncommand='/c'\nprefixes=['192.0.2.1']\n", "",
		"f:3: error: prefixes of s: expected strings with a length"},
	{IMPORT_BIRDWATCHER, "[services.s]\ncommand='/c'\nprefixes='192.0.2.1/32'\n", "",
		"f:3: error: prefixes: expected a list of strings"},
	{IMPORT_BIRDWATCHER, WATCHER("command='/c'\ntimeout=\"10\"\n"), "",
		"f:4: error: timeout: expected a duration"},
	{IMPORT_BIRDWATCHER, WATCHER("command='/c'\nrise='2'\n"), "",
		"f:4: error: rise: expected a whole number"},
	{IMPORT_BIRDWATCHER, WATCHER("command='/c'\ntimeout=10s\n"), "",
		"f:4: error: a number that is none"},
	{IMPORT_BIRDWATCHER, "path = /metrics\n", "", "f:1: error: got \"/metrics"},
	{IMPORT_BIRDWATCHER, "a='b\n", "", "f:1: error: a string that does not end on its line"},
	{IMPORT_BIRDWATCHER, "a='''b'''\n", "", "f:1: error: a string in three quotes"},
	{IMPORT_BIRDWATCHER, "a=\"\\q\"\n", "", "f:1: error: an escape \\q"},
	{IMPORT_BIRDWATCHER, "a=\"\\u0000\"\n", "", "f:1: error: an escape that is no character"},
	{IMPORT_BIRDWATCHER, "a=\"\\ud800\"\n", "", "f:1: error: an escape that is no character"},
	{IMPORT_BIRDWATCHER, "a=1\na=2\n", "", "f:2: error: a stands here twice"},
	{IMPORT_BIRDWATCHER, "[a]\n[a]\n", "", "f:2: error: the table [a] stands here twice"},
	{IMPORT_BIRDWATCHER, "a=1\n[a.b]\n", "", "f:2: error: a is a value, and no table"},
	{IMPORT_BIRDWATCHER, "[[a]]\n", "", "f:1: error: a list of tables"},
	{IMPORT_BIRDWATCHER, "a={}\n", "", "f:1: error: got \"{}"},
	{IMPORT_BIRDWATCHER, "a=[[]]\n", "", "f:1: error: got \"[]]"},
	{IMPORT_BIRDWATCHER, "a.b.c.d.e.f.g.h.i=1\n", "", "f:1: error: a key of more than 8 parts"},
	{IMPORT_BIRDWATCHER, "a=1 b=2\n\n", "", "f:1: error: got \"b=2"},
	{IMPORT_BIRDWATCHER, "a\n", "", "f:1: error: got \"\\x0a\"; expected KEY = VALUE"},
};

START_TEST (each_refusal) {
	const struct rule *rule = &refusals[_i];

	ck_assert_msg(!convert_text(rule->peer, rule->text), "%s\ngave %s", rule->text, out);
	ck_assert_msg(strstr(err, rule->err) != NULL, "%s\ntold %s\nexpected %s", rule->text, err,
		rule->err);
	for (const char *c = err; *c; c++)
		ck_assert_msg(*c == '\n' || (unsigned char)*c >= ' ', "%s", err);
	forget();
}
END_TEST

/* Sizes: what outsiders can make grow ends in a word about it. */
START_TEST (limits) {
	static const struct {
		enum import_peer peer;
		const char *head, *piece;
		size_t n;
		const char *tail, *err;
	} rows[] = {
		{IMPORT_AHC, "#", "xxxxxxxxxxxxxxxx", 65536, "", "error: more than 1048576 bytes"},
		{IMPORT_AHC, "[s]\na=b\n", " 0123456789012345678901234567890123456789\n", 2000, "",
			"error: a value of more than 65536 bytes"},
		{IMPORT_AHC, AHC("check_cmd=/c"), " x", 300, "",
			"error: a command has at most 256"},
		{IMPORT_AHC, AHC("check_cmd=/c "), "xxxx", 1025, "",
			"error: a command has at most"},
		{IMPORT_EXABGP, "process p { run exabgp healthcheck", " --ip 192.0.2.1", 5000,
			"; }", "error: more than 4096 words"},
		{IMPORT_EXABGP, "process", " x", 200000, "", "error: more than 100000 words"},
		{IMPORT_EXABGP, "ip=192.0.2.1\n", "debug\n", 5000, "",
			"error: more than 2048 options"},
		{IMPORT_EXABGP, "process p ", "{", 99000, "",
			"error: the file ends inside a block"},
		{IMPORT_BIRDWATCHER, "a=", "[", 100000, "", "error: got \"["},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_buffer_ struct buffer text = {0};

		buffer_init(&text, 8U << 20);
		ck_assert_int_eq(buffer_append_string(&text, rows[i].head), 0);
		for (size_t j = 0; j < rows[i].n; j++)
			ck_assert_int_eq(buffer_append_string(&text, rows[i].piece), 0);
		ck_assert_int_eq(buffer_append_string(&text, rows[i].tail), 0);
		ck_assert(!convert_text(rows[i].peer, buffer_string(&text)));
		ck_assert_msg(strstr(err, rows[i].err) != NULL, "row %zu: told %.300s", i, err);
	}
	forget();
}
END_TEST

/* Values that multiply at each depth end at a number of them. */
START_TEST (interpolation_does_not_explode) {
	_cleanup_buffer_ struct buffer text = {0};

	buffer_init(&text, 1U << 20);
	ck_assert_int_eq(buffer_append_string(&text, AHC("")), 0);
	for (char name = 'a'; name < 'f'; name++) {
		ck_assert_int_eq(buffer_printf(&text, "%c=", name), 0);
		for (int i = 0; i < 500; i++)
			ck_assert_int_eq(buffer_printf(&text, "%%(%c)s", name + 1), 0);
		ck_assert_int_eq(buffer_append_string(&text, "\n"), 0);
	}
	ck_assert_int_eq(buffer_append_string(&text, "f=\ncheck_cmd=%(a)s\n"), 0);
	ck_assert(!convert_text(IMPORT_AHC, buffer_string(&text)));
	ck_assert_msg(strstr(err, "values that name each other too often") != NULL, "%s", err);
	forget();
}
END_TEST

START_TEST (durations) {
	static const struct {
		uint64_t ms;
		const char *text;
	} rows[] = {{0, "0ms"}, {1, "1ms"}, {500, "500ms"}, {1000, "1s"}, {1500, "1500ms"},
		{60000, "1m"}, {61000, "61s"}, {3600000, "1h"}, {5400000, "90m"}};
	char buf[IMPORT_DURATION_MAX];
	uint64_t ms;

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		ck_assert_str_eq(import_duration(rows[i].ms, buf), rows[i].text);
	ck_assert(import_seconds("0.0625", &ms) && ms == 63);
	ck_assert(import_seconds("99999999999999999999", &ms));
	ck_assert(!import_seconds("", &ms) && !import_seconds(".", &ms));
	ck_assert(!import_seconds("-1", &ms) && !import_seconds("1.2.3", &ms));
	ck_assert(!import_seconds("1e3", &ms) && !import_seconds("nan", &ms));
}
END_TEST

/* --- the command, on files --- */

static char folder[] = "/tmp/redshank-import-XXXXXX";

static void write_file(const char *name, const char *text)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_fclose_ FILE *f = NULL;

	ck_assert_int_gt(asprintf(&path, "%s/%s", folder, name), 0);
	f = fopen(path, "we");
	ck_assert(f && fputs(text, f) >= 0);
}

static int run(enum import_peer peer, const char *first, const char *second)
{
	char paths[2][64], *list[2] = {paths[0], paths[1]};
	size_t size_out = 0, size_err = 0;
	FILE *to_out, *to_err;
	int code;

	forget();
	to_out = open_memstream(&out, &size_out);
	to_err = open_memstream(&err, &size_err);
	(void)snprintf(paths[0], sizeof(paths[0]), "%s/%s", folder, first);
	(void)snprintf(paths[1], sizeof(paths[1]), "%s/%s", folder, second ? second : "");
	code = import_command(peer, second ? 2 : 1, list, to_out, to_err);
	ck_assert_int_eq(fclose(to_out), 0);
	ck_assert_int_eq(fclose(to_err), 0);
	return code;
}

START_TEST (the_command) {
	_cleanup_free_ char *sub = NULL;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_gt(asprintf(&sub, "%s/d", folder), 0);
	ck_assert_int_eq(mkdir(sub, 0700), 0);
	write_file("main.conf", "[DEFAULT]\ncheck_interval=4\n");
	write_file("d/b.conf", "[b]\nip_prefix=192.0.2.2\n" ON "check_cmd=/c\n");
	write_file("d/a.conf", "[a]\nip_prefix=192.0.2.3\n" ON "check_cmd=/c\n");
	write_file("d/a.conf.bak", "[DEFAULT]\ncheck_interval=9\n");
	write_file("d/.c.conf", "[DEFAULT]\ncheck_interval=9\n");
	write_file("exabgp.conf", "process p { run exabgp healthcheck -F /no/where/web.conf; }");
	write_file("web.conf", "ip=192.0.2.1\nname=web\n");
	ck_assert_msg(run(IMPORT_AHC, "main.conf", "d") == 0, "%s", err);
	ck_assert_msg(strstr(out, "{\n  \"services\": {\n    \"a\": {\n") == out, "%s", out);
	ck_assert(strstr(out, "\"interval\": \"4s\"") && !strstr(out, "\"9s\""));
	ck_assert_msg(strstr(err, "2 services converted, 0 remarks;") != NULL, "%s", err);
	ck_assert_int_eq(out[strlen(out) - 1], '\n');
	/* The file that --config names is looked for beside the one that names it. */
	ck_assert_msg(run(IMPORT_EXABGP, "exabgp.conf", NULL) == 0, "%s", err);
	ck_assert_ptr_nonnull(strstr(out, "\"web\""));
	ck_assert_msg(run(IMPORT_EXABGP, "web.conf", "exabgp.conf") == 0, "%s", err);
	ck_assert_int_eq(run(IMPORT_EXABGP, "no-such", NULL), 1);
	ck_assert_msg(strstr(err, "no-such: No such file") && !out[0], "%s", err);
	ck_assert_int_eq(run(IMPORT_EXABGP, "d", NULL), 1);
	ck_assert_msg(strstr(err, "not a file") && !out[0], "%s", err);
	ck_assert_int_eq(run(IMPORT_AHC, "d/a.conf", "web.conf"), 1);
	ck_assert_msg(strstr(err, "web.conf:1: error: ") && !out[0], "%s", err);
	ck_assert_ptr_nonnull(strstr(err, "nothing was written\n"));
	for (size_t i = 0; i < 7; i++) {
		static const char *const names[] = {"main.conf", "d/b.conf", "d/a.conf",
			"d/a.conf.bak", "d/.c.conf", "exabgp.conf", "web.conf"};
		_cleanup_free_ char *path = NULL;

		ck_assert_int_gt(asprintf(&path, "%s/%s", folder, names[i]), 0);
		(void)unlink(path);
	}
	(void)rmdir(sub);
	(void)rmdir(folder);
	forget();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl-import");
	TCase *tests = tcase_create("import");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 30);
	tcase_add_loop_test(tests, golden, 0, 3);
	tcase_add_loop_test(tests, each_rule, 0, (int)ELEMENTSOF(rules));
	tcase_add_loop_test(tests, each_refusal, 0, (int)ELEMENTSOF(refusals));
	tcase_add_test(tests, limits);
	tcase_add_test(tests, interpolation_does_not_explode);
	tcase_add_test(tests, durations);
	tcase_add_test(tests, the_command);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
