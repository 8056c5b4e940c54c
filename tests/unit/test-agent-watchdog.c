/* When a check counts as lost: the rows of watchdog_overdue(), both sides of each bound. And that
 * systemd is fed while all move, and not while one is lost. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/config/config.h"
#include "agent/watchdog.h"
#include "tests/unit/loaded.h"
#include "tests/unit/loop.h"

#define INTERVAL_MS 1000
#define NEVER UINT64_MAX
#define NOW_S 1000
/* Seconds before NOW_S of something that is just late enough. */
#define LATE_S (INTERVAL_MS / 1000 + WATCHDOG_LATE_MS / 1000)

static const struct {
	const char *what;
	bool busy;
	uint64_t began_s, next_s, deadline_s;
	bool overdue;
} rows[] = {
	{"does not run", false, NEVER, NEVER, NEVER, false},
	{"waits for its first attempt", false, NEVER, NOW_S + 1, NEVER, false},
	{"waits for its next one", false, NOW_S - 1, NOW_S + 3600, NEVER, false},
	{"is late, as a loaded machine makes it", false, NOW_S - 20, NOW_S - LATE_S + 1, NEVER,
		false},
	{"is too late", false, NOW_S - 20, NOW_S - LATE_S, NEVER, true},
	{"its first attempt is too late", false, NEVER, NOW_S - LATE_S, NEVER, true},
	{"is not to begin again", false, NOW_S - 1, NEVER, NEVER, true},
	{"runs", true, NOW_S - 1, NEVER, NOW_S + 1, false},
	{"runs since the machine slept", true, NOW_S - 3600, NEVER, NOW_S + 1, false},
	{"should have ended a moment ago", true, NOW_S - 20, NEVER, NOW_S - LATE_S + 1, false},
	{"should have ended long ago", true, NOW_S - 20, NEVER, NOW_S - LATE_S, true},
	{"runs without an end", true, NOW_S - 1, NEVER, NEVER, true},
};

static struct monotime at(uint64_t s)
{
	return s == NEVER ? MONOTIME_NEVER : (struct monotime){s * 1000000};
}

START_TEST (overdue) {
	const struct run_view view = {.busy = rows[_i].busy,
		.began = at(rows[_i].began_s),
		.next = at(rows[_i].next_s),
		.deadline = at(rows[_i].deadline_s)};

	ck_assert_msg(watchdog_overdue(&view, INTERVAL_MS, at(NOW_S)) == rows[_i].overdue, "%s",
		rows[_i].what);
}
END_TEST

static struct monotime next; /* of the check; never: this agent has lost it */

static struct monotime on_report(void *userdata, size_t service, size_t check,
	enum check_outcome outcome, struct monotime started)
{
	return next;
}

/* How often systemd was fed since it was asked the last time. */
static unsigned feedings(int systemd)
{
	char got[64];
	unsigned n = 0;
	ssize_t length;

	while ((length = recv(systemd, got, sizeof(got) - 1, MSG_DONTWAIT)) > 0) {
		got[length] = '\0';
		n += strcmp(got, "WATCHDOG=1") == 0;
	}
	return n;
}

static const char one_process[] =
	"{\"services\": {\"dns\": {\"prefixes\": {\"192.0.2.53/32\": 1}, \"checks\": {"
	"\"process\": {\"type\": \"process\", \"pidfile\": \"/nonexistent/pid\"}}}}}";

/* As systemd makes it, with a WatchdogSec of 80 ms. */
static int systemd_new(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/tmp/redshank-watchdog-%d", (int)getpid());
	(void)unlink(a.sun_path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(setenv("NOTIFY_SOCKET", a.sun_path, 1), 0);
	ck_assert_int_eq(setenv("WATCHDOG_USEC", "80000", 1), 0);
	(void)unsetenv("WATCHDOG_PID");
	return fd;
}

static bool has_run(const struct checks *checks)
{
	struct run_view view;

	checks_view(checks, 0, 0, &view);
	return !view.busy && !monotime_is_never(view.began);
}

START_TEST (fed_while_checks_move) {
	const struct checks_ops ops = {.report = on_report};
	struct probe_host host = {0};
	struct config *config = loaded_config(one_process);
	int systemd = systemd_new();
	struct watchdog *w = NULL;
	struct checks *checks = NULL;
	unsigned n = 0;

	ck_assert_int_ge(sd_event_new(&host.event), 0);
	ck_assert_int_eq(checks_new(&checks, &host, config, &ops), 0);
	next = monotime_add_ms(clock_monotime(), 3600000);
	checks_start(checks);
	ck_assert_int_eq(
		watchdog_new(&w, host.event, checks, (const struct config *const *)&config), 0);
	ck_assert(LOOP_UNTIL(host.event, (n += feedings(systemd)) > 5, 1000));
	ck_assert(has_run(checks));
	/* Nothing will ever run the check again, and the loop goes round as ever. */
	next = MONOTIME_NEVER;
	checks_all_now(checks);
	LOOP_FOR(host.event, 100);
	ck_assert(has_run(checks));
	(void)feedings(systemd);
	LOOP_FOR(host.event, 500);
	ck_assert_uint_eq(feedings(systemd), 0);
	next = monotime_add_ms(clock_monotime(), 3600000);
	checks_all_now(checks);
	ck_assert(LOOP_UNTIL(host.event, feedings(systemd) > 0, 1000));
	watchdog_free(w);
	checks_free(checks);
	config_free(config);
	sd_event_unref(host.event);
	(void)unlink(getenv("NOTIFY_SOCKET"));
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)close(systemd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("watchdog");
	TCase *tc = tcase_create("overdue");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, overdue, 0, sizeof(rows) / sizeof(*rows));
	tcase_add_test(tc, fed_while_checks_move);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
