/* A service's health from its checks: `require`, both ways, with checks that have not spoken. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/service.h"

#define ALL SERVICE_REQUIRE_ALL, 0
#define ANY SERVICE_REQUIRE_ANY, 0
#define NUMBER(n) SERVICE_REQUIRE_NUMBER, n
#define HEALTHY SERVICE_HEALTH_HEALTHY
#define UNHEALTHY SERVICE_HEALTH_UNHEALTHY
#define UNDECIDED SERVICE_HEALTH_UNDECIDED

/* Checks: u up, d down, p pending. */
struct row {
	const char *proves;
	enum service_require_kind kind;
	unsigned number;
	const char *checks;
	enum service_health health;
};

static const struct row rows[] = {
	{"no checks: healthy", ALL, "", HEALTHY},
	{"no checks: healthy", ANY, "", HEALTHY},
	{"no checks: healthy", NUMBER(2), "", HEALTHY},
	{"all: every one is up", ALL, "uuu", HEALTHY},
	{"all: one is down", ALL, "udu", UNHEALTHY},
	{"all: one is down, decided before the others speak", ALL, "dpp", UNHEALTHY},
	{"all: one is silent", ALL, "uup", UNDECIDED},
	{"all: everyone is silent", ALL, "ppp", UNDECIDED},
	{"any: one is up", ANY, "ddu", HEALTHY},
	{"any: one is up, decided before the others speak", ANY, "ppu", HEALTHY},
	{"any: everyone is down", ANY, "ddd", UNHEALTHY},
	{"any: all down but the silent one", ANY, "ddp", UNDECIDED},
	{"number: exactly enough", NUMBER(2), "udu", HEALTHY},
	{"number: more than enough", NUMBER(2), "uuu", HEALTHY},
	{"number: one too few", NUMBER(2), "udd", UNHEALTHY},
	{"number: the silent one decides", NUMBER(2), "udp", UNDECIDED},
	{"number: enough without the silent one", NUMBER(2), "upu", HEALTHY},
	{"number: too few even with the silent one", NUMBER(3), "ddpu", UNHEALTHY},
	{"number: above n counts as n", NUMBER(9), "uu", HEALTHY},
	{"number: above n counts as n", NUMBER(9), "ud", UNHEALTHY},
	{"number: 1 is any", NUMBER(1), "ddu", HEALTHY},
};

START_TEST (require) {
	const struct row *row = &rows[_i];
	struct service_require required = {row->kind, row->number};
	struct check checks[8];
	size_t n = strlen(row->checks);

	memset(checks, 0, sizeof(checks));
	for (size_t i = 0; i < n; i++) {
		char c = row->checks[i];

		checks[i].state = c == 'u'   ? CHECK_STATE_UP
				  : c == 'd' ? CHECK_STATE_DOWN
					     : CHECK_STATE_PENDING;
	}
	ck_assert_msg(service_judge(&required, checks, n) == row->health, "%s: '%s' is %s",
		row->proves, row->checks, service_health_name(service_judge(&required, checks, n)));
}
END_TEST

START_TEST (names) {
	ck_assert_str_eq(service_health_name(UNDECIDED), "undecided");
	ck_assert_str_eq(service_health_name(HEALTHY), "healthy");
	ck_assert_str_eq(service_health_name(UNHEALTHY), "unhealthy");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core service");
	TCase *tests = tcase_create("service");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tests, require, 0, (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(tests, names);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
