/* What a check knows and its reason must not say: each row a text of a service or command, and what
 * is left of it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "probes/probe.h"
#include "probes/secrets.h"

struct settings {
	struct schema_strings headers, env;
	char *send;
};

static const struct schema_key keys[] = {
	{.name = "headers", .kind = SCHEMA_STRING_MAP, SCHEMA_FIELD(struct settings, headers)},
	{.name = "env", .kind = SCHEMA_STRING_MAP, SCHEMA_FIELD(struct settings, env)},
	{.name = "send", .kind = SCHEMA_STRING, SCHEMA_FIELD(struct settings, send)},
	SCHEMA_END,
};
static const struct schema schema = {.size = sizeof(struct settings), .keys = keys};

/* Text that may be changed, as a configuration's is. */
#define OWN(text) ((char[]){text})

static char *header_items[] = {OWN("Authorization"), OWN("Bearer hunter2-hunter2"), OWN("X-Other"),
	OWN("Bearer hunter2-swordfish"), OWN("Cookie"), OWN("sid=0123456789"), OWN("X-Short"),
	OWN("true"), NULL};
static char *env_items[] = {
	OWN("DB_PASSWORD"), OWN("swordfish"), OWN("TARGET"), OWN("192.0.2.53"), NULL};
static const struct settings known = {.headers = {header_items, 8}, .env = {env_items, 4}};

static const struct {
	const char *rule, *text, *left;
} rows[] = {
	{"nothing", "", ""},
	{"none of it", "status 500, expected 200", "status 500, expected 200"},
	{"a header's value", "got \"authorization: Bearer hunter2-hunter2\"",
		"got \"authorization: ***\""},
	{"its second word alone", "bad token hunter2-hunter2!", "bad token ***!"},
	{"behind the equals sign", "no session 0123456789", "no session ***"},
	{"two that begin alike", "Bearer hunter2-swordfish, hunter2-swordfish", "***, ***"},
	{"twice", "swordfishswordfish", "******"},
	{"cut off behind eight", "got \"Bearer h", "got \"***"},
	{"cut off before eight", "got \"Bearer", "got \"Bearer"},
	{"a longer word that begins so", "swordfishes", "***es"},
	{"short ones are words", "true", "true"},
	{"a variable that sounds like none", "no answer from 192.0.2.53",
		"no answer from 192.0.2.53"},
};

START_TEST (what_is_left) {
	char text[256];

	(void)snprintf(text, sizeof(text), "%s", rows[_i].text);
	secrets_mask(&schema, &known, text);
	ck_assert_msg(strcmp(text, rows[_i].left) == 0, "%s: %s", rows[_i].rule, text);
}
END_TEST

static const struct {
	const char *text, *left;
} urls[] = {
	{"no url", "no url"},
	{"http://192.0.2.80/a@b", "http://192.0.2.80/a@b"},
	{"get http://admin:hunter2@192.0.2.80/ failed", "get http://***@192.0.2.80/ failed"},
	{"http://a:p@ss@x http://b:c@y", "http://***@x http://***@y"},
	{"ftp://u@x", "ftp://*@x"},
	{"ftp://@x and ://", "ftp://@x and ://"},
	{"\"https://u:pw\" a@b", "\"https://u:pw\" a@b"},
};

START_TEST (what_is_left_of_urls) {
	char text[256];

	(void)snprintf(text, sizeof(text), "%s", urls[_i].text);
	secrets_mask_urls(text);
	ck_assert_str_eq(text, urls[_i].left);
}
END_TEST

START_TEST (names) {
	ck_assert(secrets_is_name("API_TOKEN"));
	ck_assert(secrets_is_name("db-password"));
	ck_assert(secrets_is_name("Sshkey"));
	ck_assert(!secrets_is_name("LANG"));
}
END_TEST

/* Whether the agent's memory may be dumped. */
START_TEST (where_secrets_are) {
	char *plain_items[] = {OWN("LANG"), OWN("C"), NULL};
	struct settings s = {.env = {plain_items, 2}};

	ck_assert(secrets_are_in(&schema, &known));
	ck_assert(!secrets_are_in(&schema, &s));
	s.send = OWN("AUTH x");
	ck_assert(secrets_are_in(&schema, &s));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probes-secrets");
	TCase *tc = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, what_is_left, 0, (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_loop_test(tc, what_is_left_of_urls, 0, (int)(sizeof(urls) / sizeof(urls[0])));
	tcase_add_test(tc, names);
	tcase_add_test(tc, where_secrets_are);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
