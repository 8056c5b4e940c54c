/* systemd's units over sd-bus: states, order of signals, aliases, and every way to lose the bus. */
#include "agent/system/units.h"

#include <sys/mman.h>
#include <unistd.h>

#include "agent/system/log.h"
#include "tests/unit/fake-systemd.h"

static sd_event *event;
static struct fake_systemd fake;
static struct units *units;
static struct units_watch *watch, *many[200];
static unsigned n_changed;

static void changed(void *userdata)
{
	n_changed++;
}

static void setup(void)
{
	log_init(LOG_CRIT, true);
	n_changed = 0;
	ck_assert_int_ge(sd_event_new(&event), 0);
	fake_init(&fake);
	fake.units[0] = (struct fake_unit){
		"nsd.service", "loaded", "active", "running", "success", 4242, 0, 0, 0, 0, 0};
	fake.units[1] = (struct fake_unit){
		"real.service", "loaded", "active", "running", "success", 4343, 0, 0, 0, 0, 0};
	fake.units[2] = (struct fake_unit){
		"gone.service", "not-found", "inactive", "dead", "success", 0, 0, 0, 0, 0, 0};
	fake_bus_start(&fake);
	fake_join(&fake, event);
	ck_assert_int_eq(units_new(&units, event, fake.address), 0);
}

static void teardown(void)
{
	units_watch_free(watch);
	watch = NULL;
	for (size_t i = 0; i < ELEMENTSOF(many); i++) {
		units_watch_free(many[i]);
		many[i] = NULL;
	}
	units_free(units);
	units = NULL;
	fake_done(&fake);
	event = sd_event_unref(event);
}

static void watch_unit(const char *name)
{
	ck_assert_int_eq(units_watch_new(&watch, units, name, changed, NULL), 0);
	ck_assert_int_eq(units_watch_view(watch)->state, UNITS_UNKNOWN);
}

static bool sees(enum units_state state, pid_t main_pid)
{
	const struct units_view *v = units_watch_view(watch);

	return v->state == state && v->main_pid == main_pid;
}

static void expect(enum units_state state, pid_t main_pid, const char *text)
{
	const struct units_view *v = units_watch_view(watch);

	ck_assert_msg(LOOP_UNTIL(event, sees(state, main_pid) && strcmp(v->text, text) == 0, 3000),
		"state %d, process %d, \"%s\" instead of %d, %d, \"%s\"", (int)v->state,
		(int)v->main_pid, v->text, (int)state, (int)main_pid, text);
}

START_TEST (a_running_unit) {
	watch_unit("nsd.service");
	expect(UNITS_RUNNING, 4242, "nsd.service is active");
	ck_assert_uint_eq(n_changed, 1);
	ck_assert_uint_eq(fake.subscribed, 1);
}
END_TEST

START_TEST (every_state) {
	static const struct {
		const char *active, *sub, *result;
		enum units_state state;
		const char *text;
	} rows[] = {
		{"reloading", "reload", "success", UNITS_RUNNING, "nsd.service is reloading"},
		{"deactivating", "stop-sigterm", "success", UNITS_GONE,
			"nsd.service is deactivating (stop-sigterm)"},
		{"inactive", "dead", "success", UNITS_GONE, "nsd.service is inactive (dead)"},
		{"activating", "start-pre", "success", UNITS_STARTING,
			"nsd.service is activating (start-pre)"},
		{"active", "running", "success", UNITS_RUNNING, "nsd.service is active"},
		{"activating", "auto-restart", "signal", UNITS_GONE,
			"nsd.service is activating (auto-restart)"},
		{"failed", "failed", "signal", UNITS_GONE, "nsd.service is failed (signal)"},
		{"failed", "failed", "exit-code", UNITS_GONE, "nsd.service is failed (exit-code)"},
		{"maintenance", "", "success", UNITS_GONE, "nsd.service is maintenance"},
		{"active", "exited", "success", UNITS_RUNNING, "nsd.service is active"},
	};

	watch_unit("nsd.service");
	expect(UNITS_RUNNING, 4242, "nsd.service is active");
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		fake_set(&fake, 0, rows[i].active, rows[i].sub, rows[i].result, (uint32_t)i);
		expect(rows[i].state, (pid_t)i, rows[i].text);
	}
}
END_TEST

/* Signals carry the values: after the first six questions nothing is asked. */
START_TEST (nothing_is_asked_twice) {
	unsigned asked;

	watch_unit("nsd.service");
	expect(UNITS_RUNNING, 4242, "nsd.service is active");
	asked = fake.asked;
	fake_set(&fake, 0, "failed", "failed", "signal", 0);
	expect(UNITS_GONE, 0, "nsd.service is failed (signal)");
	/* Emitting looks the object up too, twice for each of the two interfaces at most. */
	ck_assert_uint_le(fake.asked - asked, 8);
}
END_TEST

START_TEST (a_unit_that_systemd_does_not_know) {
	watch_unit("gone.service");
	expect(UNITS_GONE, 0, "systemd knows no unit gone.service");
}
END_TEST

START_TEST (an_object_that_the_bus_does_not_know) {
	watch_unit("never.service");
	expect(UNITS_GONE, 0, "systemd knows no unit never.service");
}
END_TEST

START_TEST (an_alias_follows_the_real_unit) {
	watch_unit("alias.service");
	expect(UNITS_RUNNING, 4343, "alias.service is active");
	fake_set(&fake, 1, "failed", "failed", "signal", 0);
	expect(UNITS_GONE, 0, "alias.service is failed (signal)");
}
END_TEST

START_TEST (a_reload_asks_again) {
	watch_unit("gone.service");
	expect(UNITS_GONE, 0, "systemd knows no unit gone.service");
	fake.units[2].load = "loaded"; /* systemd does not signal this */
	ck_assert_int_ge(sd_bus_emit_signal(fake.bus, "/org/freedesktop/systemd1",
				 "org.freedesktop.systemd1.Manager", "Reloading", "b", 0),
		0);
	expect(UNITS_GONE, 0, "gone.service is inactive (dead)");
}
END_TEST

START_TEST (systemd_leaves_and_returns) {
	watch_unit("nsd.service");
	expect(UNITS_RUNNING, 4242, "nsd.service is active");
	fake_leave(&fake);
	ck_assert(LOOP_UNTIL(event, sees(UNITS_UNKNOWN, 0), 3000));
	LOOP_FOR(event, 300);
	ck_assert(sees(UNITS_UNKNOWN, 0));
	fake.units[0].main_pid = 77;
	fake_join(&fake, event);
	expect(UNITS_RUNNING, 77, "nsd.service is active");
	fake_set(&fake, 0, "inactive", "dead", "success", 0);
	expect(UNITS_GONE, 0, "nsd.service is inactive (dead)");
}
END_TEST

START_TEST (the_bus_goes_and_returns) {
	watch_unit("nsd.service");
	expect(UNITS_RUNNING, 4242, "nsd.service is active");
	fake_bus_stop(&fake);
	expect(UNITS_UNKNOWN, 0, "nsd.service: the system bus is away");
	fake_leave(&fake);
	fake_bus_start(&fake);
	fake_join(&fake, event);
	expect(UNITS_RUNNING, 4242, "nsd.service is active");
}
END_TEST

START_TEST (no_bus_at_all) {
	fake_bus_stop(&fake);
	units_free(units);
	ck_assert_int_eq(units_new(&units, event, fake.address), 0);
	watch_unit("nsd.service");
	LOOP_FOR(event, 250);
	ck_assert(sees(UNITS_UNKNOWN, 0));
	fake_leave(&fake);
	fake_bus_start(&fake);
	fake_join(&fake, event);
	expect(UNITS_RUNNING, 4242, "nsd.service is active");
}
END_TEST

/* dbus-daemon has a limit for each connection: 128 calls without an answer. */
START_TEST (more_units_than_the_bus_takes_at_once) {
	unsigned n = ELEMENTSOF(many), known = 0;

	for (unsigned i = 0; i < n; i++)
		ck_assert_int_eq(units_watch_new(&many[i], units, "nsd.service", changed, NULL), 0);
	ck_assert_msg(LOOP_UNTIL(event, ({
		known = 0;
		for (unsigned i = 0; i < n; i++)
			known += units_watch_view(many[i])->state == UNITS_RUNNING;
		known == n;
	}),
			      10000),
		"%u of %u are known: %s", known, n, units_watch_view(many[0])->text);
	fake_set(&fake, 0, "failed", "failed", "signal", 0);
	ck_assert(LOOP_UNTIL(event,
		units_watch_view(many[0])->state == UNITS_GONE &&
			units_watch_view(many[n - 1])->state == UNITS_GONE,
		3000));
}
END_TEST

/* What the agent logs at the terminal while `fn` runs. */
static const char *logged_while(void (*fn)(void))
{
	static char text[4096];
	int saved = dup(STDERR_FILENO), fd = memfd_create("log", MFD_CLOEXEC);
	ssize_t n;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
	log_init(LOG_INFO, true);
	fn();
	log_init(LOG_CRIT, true);
	ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	close(saved);
	close(fd);
	return text;
}

static void rest_without_bus(void)
{
	fake_bus_stop(&fake);
	units_free(units);
	ck_assert_int_eq(units_new(&units, event, fake.address), 0);
	LOOP_FOR(event, 250);
}

static void watch_without_bus(void)
{
	watch_unit("nsd.service");
	LOOP_FOR(event, 250);
}

/* An agent without checks of units needs no bus and complains of none. */
START_TEST (no_watch_no_bus) {
	ck_assert_str_eq(logged_while(rest_without_bus), "");
	ck_assert_ptr_nonnull(strstr(logged_while(watch_without_bus), "the system bus is away"));
}
END_TEST

START_TEST (the_bus_is_asked_for_the_first_watch) {
	LOOP_FOR(event, 100);
	ck_assert_uint_eq(fake.subscribed, 0);
	watch_unit("nsd.service");
	expect(UNITS_RUNNING, 4242, "nsd.service is active");
	ck_assert_uint_eq(fake.subscribed, 1);
}
END_TEST

static void lose_without_watch(void)
{
	units_watch_free(watch);
	watch = NULL;
	fake_bus_stop(&fake);
	LOOP_FOR(event, 250);
}

START_TEST (a_bus_that_nobody_needs_any_more) {
	unsigned subscribed;

	watch_unit("nsd.service");
	expect(UNITS_RUNNING, 4242, "nsd.service is active");
	ck_assert_str_eq(logged_while(lose_without_watch), "");
	fake_leave(&fake);
	fake_bus_start(&fake);
	fake_join(&fake, event);
	subscribed = fake.subscribed;
	LOOP_FOR(event, 500);
	ck_assert_uint_eq(fake.subscribed, subscribed);
	watch_unit("nsd.service");
	expect(UNITS_RUNNING, 4242, "nsd.service is active");
}
END_TEST

static void free_in_callback(void *userdata)
{
	n_changed++;
	units_watch_free(watch);
	watch = NULL;
}

START_TEST (a_watch_may_go_in_its_callback) {
	struct units_watch *other;

	ck_assert_int_eq(units_watch_new(&watch, units, "nsd.service", free_in_callback, NULL), 0);
	ck_assert_int_eq(units_watch_new(&other, units, "real.service", changed, NULL), 0);
	ck_assert(LOOP_UNTIL(event, n_changed == 2, 3000));
	ck_assert_ptr_null(watch);
	watch = other;
	expect(UNITS_RUNNING, 4343, "real.service is active");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("system-units");
	TCase *c = tcase_create("units");
	SRunner *runner;
	int failed;

	tcase_set_timeout(c, 30);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_running_unit);
	tcase_add_test(c, every_state);
	tcase_add_test(c, nothing_is_asked_twice);
	tcase_add_test(c, a_unit_that_systemd_does_not_know);
	tcase_add_test(c, an_object_that_the_bus_does_not_know);
	tcase_add_test(c, an_alias_follows_the_real_unit);
	tcase_add_test(c, a_reload_asks_again);
	tcase_add_test(c, systemd_leaves_and_returns);
	tcase_add_test(c, the_bus_goes_and_returns);
	tcase_add_test(c, no_bus_at_all);
	tcase_add_test(c, more_units_than_the_bus_takes_at_once);
	tcase_add_test(c, no_watch_no_bus);
	tcase_add_test(c, the_bus_is_asked_for_the_first_watch);
	tcase_add_test(c, a_bus_that_nobody_needs_any_more);
	tcase_add_test(c, a_watch_may_go_in_its_callback);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
