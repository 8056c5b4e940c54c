/*
 * The load as the agent calls it, over texts and files made here: what the typed object holds, what
 * is refused and in which words, and that nothing is lost or leaked when memory ends.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/config/load.h"
#include "tests/unit/config-types.h"

static struct problems problems;

/* Loads texts as if they were files called a, b, ... ending with NULL. */
static int load_texts(struct config **ret, const char *const *texts)
{
	_cleanup_sources_ struct sources sources = {0};
	int r = 0;

	sources_init(&sources);
	problems_done(&problems);
	for (size_t i = 0; texts[i]; i++) {
		const char name[] = {(char)('a' + i), '\0'};

		r = sources_add_text(&sources, name, texts[i], strlen(texts[i]), &problems);
		if (r < 0)
			return r;
	}
	return load_sources(&sources, kinds_types, ret, &problems);
}

static int load_text(struct config **ret, const char *text)
{
	return load_texts(ret, (const char *const[]){text, NULL});
}

/* One service with what `checks` says behind its prefixes. */
static int load_checks(struct config **ret, const char *before, const char *checks)
{
	_cleanup_free_ char *behind = NULL, *text = NULL;

	ck_assert(asprintf(&behind, ",\"checks\":{%s}", checks) > 0);
	ck_assert(asprintf(&text,
			  "{\"node\":\"n\",%s\"services\":{\"s\":{\"prefixes\":{\"192.0.2."
			  "1/32\":7}%s}}}",
			  before, behind) > 0);
	return load_text(ret, text);
}

static void assert_good(int r)
{
	if (r < 0 && problems.n > 0)
		ck_abort_msg("%s", problems.items[0].text);
	ck_assert_int_eq(r, 0);
}

/* Refused with exactly this one error. */
static void assert_only(int r, const char *text)
{
	size_t errors = 0;

	ck_assert_int_eq(r, -EINVAL);
	for (size_t i = 0; i < problems.n; i++) {
		if (problems.items[i].level != PROBLEM_ERROR)
			continue;
		ck_assert_str_eq(problems.items[i].text, text);
		errors++;
	}
	ck_assert_uint_eq(errors, 1);
}

static void assert_fixed_point(const struct config *c)
{
	_cleanup_free_ char *printed = config_effective(c), *again = NULL;
	_cleanup_config_ struct config *reloaded = NULL;

	ck_assert_ptr_nonnull(printed);
	assert_good(load_text(&reloaded, printed));
	again = config_effective(reloaded);
	ck_assert_str_eq(printed, again);
}

START_TEST (every_kind_of_key) {
	_cleanup_config_ struct config *c = NULL;
	const struct kinds *k;

	assert_good(load_checks(&c, "",
		"\"c\":{\"type\":\"kinds\",\"text\":\"t\",\"number\":-5,\"flag\":false,\"wait\":"
		"\"1m\",\"word\":\"blue\",\"address\":\"2001:DB8::1\",\"list\":[\"a\",\"\"],"
		"\"map\":{\"k\":\"v\"},\"inner\":{\"codes\":[100,599],\"body\":\"12345678\"}}"));
	k = c->services[0].checks[0].settings;
	ck_assert_str_eq(k->text, "t");
	ck_assert_int_eq(k->number, -5);
	ck_assert(!k->flag);
	ck_assert_uint_eq(k->wait_ms, 60000);
	ck_assert_int_eq(k->word, 2);
	ck_assert_int_eq(k->address.family, ADDRESS_FAMILY_IPV6);
	ck_assert_uint_eq(k->list.n, 2);
	ck_assert_str_eq(k->list.items[1], "");
	ck_assert_ptr_null(k->list.items[2]);
	ck_assert_uint_eq(k->map.n, 2);
	ck_assert_str_eq(k->map.items[1], "v");
	ck_assert_uint_eq(k->inner.codes.n, 2);
	ck_assert_str_eq(k->inner.body, "12345678");
	assert_fixed_point(c);
}
END_TEST

START_TEST (every_default) {
	_cleanup_config_ struct config *c = NULL;
	const struct config_check *check;
	const struct kinds *k;

	assert_good(load_checks(&c, "", "\"c\":{\"type\":\"kinds\",\"text\":\"t\"}"));
	check = &c->services[0].checks[0];
	k = check->settings;
	ck_assert_int_eq(k->number, 3);
	ck_assert(k->flag);
	ck_assert_uint_eq(k->wait_ms, 0);
	ck_assert_int_eq(k->word, 1);
	ck_assert_int_eq((int)k->address.family, 0);
	ck_assert_ptr_null(k->list.items);
	ck_assert_int_eq(k->inner.codes.items[0], 200);
	ck_assert_uint_eq(check->interval_ms, 1000);
	ck_assert_uint_eq(check->fast_interval_ms, 500);
	ck_assert_uint_eq(check->timeout_ms, 500);
	ck_assert_uint_eq(check->rise, 3);
	ck_assert_uint_eq(check->fall, 2);
	ck_assert_str_eq(c->bird.socket, "/run/bird/bird.ctl");
	ck_assert_str_eq(c->bird.fragments, "/run/redshank/bird");
	ck_assert_int_eq(c->bird.control, CONFIG_CONTROL_SOCKET);
	ck_assert_str_eq(c->bird.sessions.items[0], "*");
	ck_assert_str_eq(c->status.socket, "/run/redshank/status.sock");
	ck_assert_str_eq(c->status.group, "redshank");
	ck_assert_ptr_null(c->status.listen);
	ck_assert_int_eq(c->services[0].on_stop, CONFIG_ON_STOP_WITHDRAW);
	ck_assert_int_eq(c->services[0].require, CONFIG_REQUIRE_ALL);
	ck_assert(c->services[0].prefixes[0].address_check);
	assert_fixed_point(c);
}
END_TEST

START_TEST (kinds_refuse) {
	static const struct {
		const char *key, *text;
	} rows[] = {
		{"\"text\":\"\"", "text: got \"\"; expected a string that is not empty"},
		{"\"text\":1", "text: got 1; expected a string"},
		{"\"text\":\"a b\"", "text: got \"a b\"; expected a text without blanks"},
		{"\"x\":1", "text: got nothing; expected a string"},
		{"\"text\":\"t\",\"number\":6", "number: got 6; expected an integer from -5 to 5"},
		{"\"text\":\"t\",\"number\":true",
			"number: got true; expected an integer from -5 to 5"},
		{"\"text\":\"t\",\"number\":4", "number: got 4; expected anything but 4"},
		{"\"text\":\"t\",\"number\":5", "got an object; expected no number 5: ever"},
		{"\"text\":\"t\",\"flag\":0", "flag: got 0; expected true or false"},
		{"\"text\":\"t\",\"wait\":\"61s\"",
			"wait: got \"61s\"; expected a duration from \"1ms\" to \"1m\""},
		{"\"text\":\"t\",\"word\":\"gren\"", "word: got \"gren\"; expected one of \"red\", "
						     "\"green\" or \"blue\"; did you mean "
						     "\"green\"?"},
		{"\"text\":\"t\",\"word\":7",
			"word: got 7; expected one of \"red\", \"green\" or \"blue\""},
		{"\"text\":\"t\",\"list\":[]", "list: got an empty list; expected at least 1 item"},
		{"\"text\":\"t\",\"list\":[\"\",\"\",\"\",\"\"]",
			"list: got a list; expected at most 3 items, not 4"},
		{"\"text\":\"t\",\"list\":[1]", "list[0]: got 1; expected a string"},
		{"\"text\":\"t\",\"map\":{\"k\":null}", "map.k: got null; expected a string"},
		{"\"text\":\"t\",\"map\":[]",
			"map: got an empty list; expected an object whose values are strings"},
		{"\"text\":\"t\",\"inner\":{\"codes\":[99]}",
			"inner.codes[0]: got 99; expected an integer from 100 to 599"},
		{"\"text\":\"t\",\"inner\":{\"codes\":[]}",
			"inner.codes: got an empty list; expected at least 1 item"},
		{"\"text\":\"t\",\"inner\":{\"body\":\"123456789\"}",
			"inner.body: got \"123456789\"; expected at most 8 bytes"},
		{"\"text\":\"t\",\"inner\":{\"codez\":1}",
			"inner.codez: got an unknown key; expected one of codes, body; did you "
			"mean \"codes\"?"},
		{"\"text\":\"t\",\"inner\":1", "inner: got 1; expected an object"},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_free_ char *checks = NULL, *expected = NULL;
		struct config *c = (struct config *)&problems; /* must stay as it is */
		bool of_check = strncmp(rows[i].text, "got", 3) == 0;

		/* "x" stands for nothing at all. */
		ck_assert(asprintf(&checks, "\"c\":{\"type\":\"kinds\"%s%s}",
				  strcmp(rows[i].key, "\"x\":1") == 0 ? "" : ",",
				  strcmp(rows[i].key, "\"x\":1") == 0 ? "" : rows[i].key) > 0);
		ck_assert(asprintf(&expected, "a: services.s.checks.c%s%s", of_check ? ": " : ".",
				  rows[i].text) > 0);
		assert_only(load_checks(&c, "", checks), expected);
		ck_assert_ptr_eq(c, &problems);
	}
}
END_TEST

START_TEST (timing_is_inherited_and_cut) {
	_cleanup_config_ struct config *c = NULL;
	const struct config_check *checks;

	assert_good(load_checks(&c,
		"\"defaults\":{\"interval\":\"2s\",\"timeout\":\"2s\",\"fast_interval\":\"50ms\","
		"\"rise\":1},",
		"\"a\":{\"type\":\"kinds\",\"text\":\"t\"},"
		"\"b\":{\"type\":\"kinds\",\"text\":\"t\",\"interval\":\"100ms\"},"
		"\"c\":{\"type\":\"kinds\",\"text\":\"t\",\"interval\":\"20ms\",\"fall\":9}"));
	checks = c->services[0].checks;
	ck_assert_uint_eq(checks[0].interval_ms, 2000);
	ck_assert_uint_eq(checks[0].timeout_ms, 2000);
	ck_assert_uint_eq(checks[0].rise, 1);
	ck_assert_uint_eq(checks[0].fall, 2);
	ck_assert_uint_eq(checks[1].timeout_ms, 100);
	ck_assert_uint_eq(checks[1].fast_interval_ms, 50);
	ck_assert_uint_eq(checks[2].fast_interval_ms, 20);
	ck_assert_uint_eq(checks[2].fall, 9);
	assert_fixed_point(c);
}
END_TEST

START_TEST (identity_tells_what_is_done) {
	_cleanup_config_ struct config *c = NULL;
	const struct config_check *checks;

	assert_good(load_checks(&c, "",
		"\"a\":{\"type\":\"kinds\",\"text\":\"t\"},"
		"\"same\":{\"number\":3,\"interval\":\"1000ms\",\"text\":\"t\",\"type\":\"kinds\"},"
		"\"timing\":{\"type\":\"kinds\",\"text\":\"t\",\"rise\":4},"
		"\"setting\":{\"type\":\"kinds\",\"text\":\"u\"}"));
	checks = c->services[0].checks;
	ck_assert_str_eq(checks[0].identity, checks[1].identity);
	ck_assert_str_ne(checks[0].identity, checks[2].identity);
	ck_assert_str_ne(checks[0].identity, checks[3].identity);
}
END_TEST

START_TEST (weights_of_the_node) {
	_cleanup_config_ struct config *c = NULL;
	const struct config_prefix *prefixes;

	assert_good(load_text(&c,
		"{\"node\":\"n\",\"services\":{\"s\":{\"prefixes\":{\"192.0.2.1/32\":7,"
		"\"2001:db8::1/128\":{\"weight\":8}}}},\"weights\":{\"other\":{\"192.0.2.1/32\":1,"
		"\"203.0.113.1/32\":2},\"n\":{\"2001:DB8:0::1/128\":0}}}"));
	prefixes = c->services[0].prefixes;
	ck_assert_uint_eq(prefixes[0].weight, 7);
	ck_assert(!prefixes[0].weight_is_of_node);
	ck_assert_uint_eq(prefixes[1].weight, 0);
	ck_assert_uint_eq(prefixes[1].own_weight, 8);
	ck_assert(prefixes[1].weight_is_of_node);
	ck_assert_uint_eq(c->n_weights, 2);
	ck_assert_uint_eq(c->weights[0].n, 2);
	assert_fixed_point(c);
}
END_TEST

/* Prefixes that are alike are told from each other, in any order. */
START_TEST (near_prefixes_are_not_the_same) {
	_cleanup_config_ struct config *c = NULL;
	struct config *none = NULL;
	const struct config_prefix *prefixes;

	assert_good(load_text(&c,
		"{\"node\":\"n\",\"services\":{\"s\":{\"prefixes\":{\"192.0.2.3/32\":7,"
		"\"192.0.2.1/32\":7,\"192.0.2.4/32\":7,\"192.0.2.2/32\":7,\"192.0.2.0/24\":7,"
		"\"2001:db8::1/128\":7,\"2001:db8::/64\":7,\"192.0.2.0/25\":7}}},\"weights\":{"
		"\"n\":{\"192.0.2.2/32\":1,\"192.0.2.0/24\":2,\"2001:db8::/64\":3}}}"));
	prefixes = c->services[0].prefixes;
	for (size_t i = 0; i < 8; i++)
		ck_assert_uint_eq(prefixes[i].weight, i == 3 ? 1 : i == 4 ? 2 : i == 6 ? 3 : 7);
	assert_only(
		load_text(&none, "{\"node\":\"n\",\"services\":{\"s\":{\"prefixes\":{"
				 "\"2001:db8::1/128\":7,\"192.0.2.1/32\":7,\"2001:db8::2/128\":7}},"
				 "\"t\":{\"prefixes\":{\"2001:db8:0::1/128\":1}}}}"),
		"a: services.t.prefixes[\"2001:db8:0::1/128\"]: got \"2001:db8:0::1/128\"; "
		"expected each prefix in one place only: a: "
		"services.s.prefixes[\"2001:db8::1/128\"] is the same");
}
END_TEST

/* What BIRD 2.0.12 was seen to ignore ("Ignoring bogus route") and what it was seen to announce. */
START_TEST (prefixes_that_bird_announces) {
	static const struct {
		const char *prefix;
		bool announced;
	} rows[] = {
		{"127.0.0.9/32", false},
		{"224.1.1.1/32", false},
		{"239.255.0.0/16", false},
		{"0.1.2.3/32", false},
		{"255.255.255.255/32", false},
		{"0.0.0.0/0", false},
		{"::/0", false},
		{"::1/128", false},
		{"::/128", false},
		{"::127.0.0.1/128", false},
		{"fe80::1/128", false},
		{"febf::/16", false},
		{"ff02::1/128", false},
		{"240.1.1.1/32", true},
		{"169.254.1.1/32", true},
		{"10.0.0.1/32", true},
		{"128.0.0.0/1", true},
		{"4000::1/128", true},
		{"64:ff9b::1/128", true},
		{"::192.0.2.1/128", true},
		{"::ffff:192.0.2.1/128", true},
		{"fc00::1/128", true},
		{"fec0::1/128", true},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_config_ struct config *c = NULL;
		_cleanup_free_ char *text = NULL;

		ck_assert(asprintf(&text,
				  "{\"node\":\"n\",\"services\":{\"s\":{\"prefixes\":{"
				  "\"%s\":7}}}}",
				  rows[i].prefix) > 0);
		ck_assert_msg(
			(load_text(&c, text) == 0) == rows[i].announced, "%s", rows[i].prefix);
	}
}
END_TEST

START_TEST (address_check_is_inherited) {
	_cleanup_config_ struct config *c = NULL;

	assert_good(load_text(&c,
		"{\"node\":\"n\",\"services\":{\"s\":{\"address_check\":false,\"prefixes\":{"
		"\"192.0.2.1/32\":7,\"192.0.2.2/32\":{\"address_check\":true},"
		"\"192.0.2.3/32\":{}}}}}"));
	ck_assert(!c->services[0].prefixes[0].address_check);
	ck_assert(c->services[0].prefixes[1].address_check);
	ck_assert(!c->services[0].prefixes[2].address_check);
	ck_assert_uint_eq(c->services[0].prefixes[2].weight, 100);
	assert_fixed_point(c);
}
END_TEST

START_TEST (node_is_the_host) {
	_cleanup_config_ struct config *c = NULL;
	char name[256] = "";

	ck_assert_int_eq(gethostname(name, sizeof(name) - 1), 0);
	assert_good(load_text(&c, "{\"services\":{\"s\":{\"prefixes\":{\"192.0.2.1/32\":7}}}}"));
	ck_assert_str_eq(c->node, name);
}
END_TEST

/* The neighbours' key: who may read it can speak as this node. */
START_TEST (a_key_that_others_may_read) {
	static const struct {
		mode_t mode;
		const char *warning;
	} rows[] = {
		{0600, NULL},
		{0640, NULL},
		{0644, "every user of this host may read "},
		{0602, "every user of this host may change "},
	};
	char key[] = "/tmp/redshank-key-XXXXXX", text[512];
	int fd = mkstemp(key);

	ck_assert_int_ge(fd, 0);
	(void)snprintf(text, sizeof(text),
		"{\"node\":\"n\",\"services\":{\"s\":{\"prefixes\":{\"192.0.2.1/"
		"32\":7}}},\"neighbours\":{\"listen\":\"192.0.2.1:9480\","
		"\"site\":\"s\",\"certificate\":\"/c\",\"key\":\"%s\",\"ca\":\"/a\","
		"\"members\":{}}}",
		key);
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_config_ struct config *config = NULL;
		const char *said = NULL;

		ck_assert_int_eq(fchmod(fd, rows[i].mode), 0);
		assert_good(load_text(&config, text));
		for (size_t p = 0; p < problems.n; p++)
			if (strstr(problems.items[p].text, "every user of this host"))
				said = problems.items[p].text;
		ck_assert((said != NULL) == (rows[i].warning != NULL));
		ck_assert(!said || strstr(said, rows[i].warning));
	}
	(void)close(fd);
	(void)unlink(key);
}
END_TEST

START_TEST (an_empty_group_is_nobody) {
	_cleanup_config_ struct config *c = NULL;

	assert_good(load_checks(&c, "\"status\":{\"group\":\"\"},", ""));
	ck_assert_ptr_null(c->status.group);
	assert_fixed_point(c);
}
END_TEST

START_TEST (leaves_stand_in_one_file) {
	struct config *c = NULL;

	assert_only(load_texts(&c, (const char *const[]){"{\"node\":\"n\",\"services\":{\"s\":{"
							 "\"prefixes\":{\"192.0.2.1/32\":7}}}}",
					   "{\"bird\":{\"control\":\"birdc\"}}",
					   "{\"bird\":{\"control\":\"birdc\"}}", NULL}),
		"c: bird.control: got \"birdc\"; expected it in one file only: b has it already "
		"(\"birdc\")");
	assert_only(load_texts(&c, (const char *const[]){"{\"node\":\"n\",\"services\":{\"s\":{"
							 "\"prefixes\":{\"192.0.2.1/32\":7}}}}",
					   "{\"services\":{\"s\":{\"prefixes\":[]}}}", NULL}),
		"b: services.s.prefixes: got an empty list; expected it in one file only: a has it "
		"already (an object)");
}
END_TEST

START_TEST (problems_are_bounded) {
	_cleanup_free_ char *text = NULL;
	struct config *c = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)fputs("{\"node\":\"n\"", f);
	for (int i = 0; i < 500; i++)
		(void)fprintf(f, ",\"k%d\":0", i);
	(void)fputs("}", f);
	(void)fclose(f);
	ck_assert_int_eq(load_text(&c, text), -EINVAL);
	ck_assert_uint_eq(problems.n, PROBLEMS_MAX);
	ck_assert_uint_eq(problems.n_errors, 501);
	ck_assert_uint_eq(problems.n_dropped, 301);
}
END_TEST

/* `n` rows of a printf format with one number, in one object. */
static char *many(const char *before, const char *row, int n, const char *after)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)fputs(before, f);
	for (int i = 0; i < n; i++) {
		if (i > 0)
			(void)fputc(',', f);
		(void)fprintf(f, row, i / 65536, i / 256 % 256, i % 256);
	}
	(void)fputs(after, f);
	(void)fclose(f);
	return text;
}

START_TEST (numbers_are_bounded) {
	static const struct {
		const char *before, *row, *after, *text;
		int n;
	} rows[] = {
		{"{\"node\":\"n\",\"services\":{\"s\":{\"prefixes\":{", "\"10.%d.%d.%d/32\":1",
			"}}}}",
			"a: services.s.prefixes: got an object; expected at most 10000 prefixes in "
			"all services",
			CONFIG_PREFIXES_MAX},
		{"{\"node\":\"n\",\"services\":{\"s\":{\"prefixes\":{\"192.0.2.1/32\":1},"
		 "\"checks\":{",
			"\"c%d-%d-%d\":{\"type\":\"kinds\",\"text\":\"t\"}", "}}}}",
			"a: services.s.checks: got an object; expected at most 4096 checks in all "
			"services",
			CONFIG_CHECKS_MAX},
		{"{\"node\":\"n\",\"services\":{\"s\":{\"prefixes\":{\"192.0.2.1/32\":1}}},"
		 "\"weights\":{\"m\":{",
			"\"10.%d.%d.%d/32\":1", "}}}",
			"a: weights: got an object; expected at most 100000 weights, not 100001",
			CONFIG_WEIGHTS_MAX},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_free_ char *most =
			many(rows[i].before, rows[i].row, rows[i].n, rows[i].after);
		_cleanup_free_ char *more =
			many(rows[i].before, rows[i].row, rows[i].n + 1, rows[i].after);
		_cleanup_config_ struct config *c = NULL;
		struct config *none = NULL;

		assert_good(load_text(&c, most));
		assert_only(load_text(&none, more), rows[i].text);
	}
}
END_TEST

/* Every allocation of the JSON library fails once: the load says so and leaks nothing. */
static long allocations_left;

static void *failing_malloc(size_t n)
{
	return allocations_left-- > 0 ? malloc(n) : NULL;
}

START_TEST (memory_ends_anywhere) {
	static const char text[] =
		"{\"node\":\"n\",\"status\":{\"listen\":\"[::1]:1\"},\"services\":{\"s\":{"
		"\"prefixes\":{\"192.0.2.1/32\":{\"communities\":[\"1:2\"]}},\"checks\":{\"c\":{"
		"\"type\":\"kinds\",\"text\":\"t\",\"list\":[\"a\"],\"map\":{\"k\":\"v\"}}}}},"
		"\"weights\":{\"n\":{\"192.0.2.1/32\":5}}}";
	struct config *c = NULL;
	long n;
	int r;

	for (n = 0; n < 2000; n++) {
		allocations_left = n;
		json_set_alloc_funcs(failing_malloc, free);
		r = load_text(&c, text);
		json_set_alloc_funcs(malloc, free);
		if (r == 0)
			break;
		/* Inside its parser jansson takes a lack of memory for a syntax error. */
		ck_assert(r == -ENOMEM || (r == -EINVAL && problems.n_errors == 1));
		ck_assert_ptr_null(c);
	}
	ck_assert_int_gt(n, 100);
	ck_assert_int_eq(r, 0);
	for (n = 0; n < 2000; n++) {
		_cleanup_free_ char *printed = NULL;

		allocations_left = n;
		json_set_alloc_funcs(failing_malloc, free);
		printed = config_effective(c);
		json_set_alloc_funcs(malloc, free);
		/* json_dumps() hands out memory of the failing allocator, too. */
		if (printed)
			break;
	}
	ck_assert_int_gt(n, 100);
	ck_assert_int_lt(n, 2000);
	config_free(c);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("config-load");
	TCase *t = tcase_create("load");

	tcase_set_timeout(t, 30);
	tcase_add_test(t, every_kind_of_key);
	tcase_add_test(t, every_default);
	tcase_add_test(t, kinds_refuse);
	tcase_add_test(t, timing_is_inherited_and_cut);
	tcase_add_test(t, identity_tells_what_is_done);
	tcase_add_test(t, weights_of_the_node);
	tcase_add_test(t, near_prefixes_are_not_the_same);
	tcase_add_test(t, prefixes_that_bird_announces);
	tcase_add_test(t, address_check_is_inherited);
	tcase_add_test(t, node_is_the_host);
	tcase_add_test(t, a_key_that_others_may_read);
	tcase_add_test(t, an_empty_group_is_nobody);
	tcase_add_test(t, leaves_stand_in_one_file);
	tcase_add_test(t, problems_are_bounded);
	tcase_add_test(t, numbers_are_bounded);
	tcase_add_test(t, memory_ends_anywhere);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	problems_done(&problems);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
