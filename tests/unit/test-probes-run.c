/*
 * The runner: schedule, deadline, late loops, deaths, and its end inside its own report. The probe
 * is one that does as it is told.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/unit/probe-harness.h"

/* ---- a probe that does as it is told ---- */

struct told {
	int open_errno;	   /* open() fails with it */
	bool report_early; /* begin() reports good before it returns */
	int fd;		   /* an eventfd: its readiness is an answer; -1: no answer ever comes */
	unsigned opens, begins, cancels, closes;
	struct monotime begun[256];
	struct probe *probe;
	sd_event_source *io;
};

static struct told told;

static int told_open(struct probe *p)
{
	told.opens++;
	told.probe = p;
	return -told.open_errno;
}

static int told_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	uint64_t n;

	ck_assert_int_eq(read(fd, &n, sizeof(n)), sizeof(n));
	told.io = sd_event_source_disable_unref(told.io);
	probe_report(told.probe, CHECK_OUTCOME_GOOD, "%s", "");
	return 0;
}

static void told_begin(struct probe *p)
{
	told.begun[told.begins++ % 256] = clock_monotime();
	if (told.report_early)
		probe_report(p, CHECK_OUTCOME_GOOD, "early");
	else if (told.fd >= 0)
		ck_assert_int_ge(
			sd_event_add_io(p->host->event, &told.io, told.fd, EPOLLIN, told_io, p), 0);
}

static void told_cancel(struct probe *p)
{
	told.cancels++;
	told.io = sd_event_source_disable_unref(told.io);
}

static void told_close(struct probe *p)
{
	told.closes++;
}

static const struct probe_type told_type = {
	.name = "told",
	.open = told_open,
	.begin = told_begin,
	.cancel = told_cancel,
	.close = told_close,
};

static struct harness h;

static void setup(void)
{
	memset(&h, 0, sizeof(h));
	memset(&told, 0, sizeof(told));
	told.fd = -1;
}

static void teardown(void)
{
	harness_done(&h);
	if (told.fd >= 0)
		(void)close(told.fd);
	ck_assert_uint_eq(told.closes, told.opens > 0 && told.open_errno == 0);
}

/* ---- schedule ---- */

/* In a row, up to the last: each within 50 ms of its time, which is 100 ms after the one before. */
static unsigned starts_in_time(void)
{
	unsigned n = 0;

	while (n + 1 < h.n && h.started[h.n - 1 - n].us == h.started[h.n - 2 - n].us + 100000 &&
		monotime_since_us(h.started[h.n - 1 - n], told.begun[h.n - 1 - n]) < 50000)
		n++;
	return n;
}

/* Each is where arithmetic says, to the microsecond, not later by what the one before took. Where
 * the machine makes one late, which begins the schedule anew, those behind it. */
START_TEST (starts_do_not_drift) {
	told.report_early = true;
	harness_start(&h, &told_type, NULL, 100, 100);
	ck_assert(LOOP_UNTIL(h.event, starts_in_time() >= 8, 1100));
}
END_TEST

START_TEST (attempts_do_not_overlap) {
	harness_start(&h, &told_type, NULL, 20, 60);
	harness_expect(&h, 3, CHECK_OUTCOME_BAD, "timeout after 60ms");
	ck_assert_uint_eq(told.cancels, 3);
	ck_assert_uint_ge(monotime_since_us(told.begun[0], told.begun[1]), 60000);
	ck_assert_uint_lt(monotime_since_us(told.begun[0], told.begun[1]), 5000000);
	ck_assert_uint_ge(h.duration_us[0], 60000);
}
END_TEST

/* What a person is told: before the first attempt, during it, and after it. */
START_TEST (the_schedule_is_told) {
	struct run_view view;
	struct monotime began;

	harness_start(&h, &told_type, NULL, 200, 60);
	run_check_view(h.run, &view);
	ck_assert(!view.busy && monotime_is_never(view.began) && view.duration_us == 0);
	ck_assert(!monotime_is_never(view.next));
	ck_assert(LOOP_UNTIL(h.event, told.begins == 1, 1000));
	run_check_view(h.run, &view);
	ck_assert(view.busy && monotime_is_never(view.next) && view.duration_us == 0);
	began = view.began;
	ck_assert_uint_le(monotime_since_us(began, told.begun[0]), 5000000);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "timeout");
	run_check_view(h.run, &view);
	ck_assert(!view.busy);
	ck_assert_uint_eq(view.began.us, began.us);
	ck_assert_uint_eq(view.duration_us, h.duration_us[0]);
	ck_assert_uint_eq(view.next.us, h.started[0].us + 200000);
}
END_TEST

START_TEST (a_thousand_checks_start_when_they_are_due) {
	static struct harness many[1000];
	uint64_t worst = UINT64_MAX;

	told.report_early = true;
	ck_assert_int_ge(sd_event_new(&h.event), 0);
	for (unsigned i = 0; i < 1000; i++) {
		const struct run_ops ops = {.report = harness_report, .userdata = &many[i]};

		many[i].n = 0;
		many[i].interval_ms = 1000;
		many[i].event = many[i].host.event = h.event;
		ck_assert_int_eq(run_check_new(&many[i].run, &told_type, NULL, &many[i].host, 500,
					 monotime_add_ms(clock_monotime(),
						 300 + run_spread_ms(1000, i, 1000)),
					 &ops),
			0);
	}
	/* Those that a stop of the machine made late are looked at again in the next round. */
	for (unsigned round = 1; round <= 20 && worst >= 50000; round++) {
		worst = 0;
		for (unsigned i = 0; i < 1000; i++) {
			uint64_t best = UINT64_MAX;

			(void)harness_wait(&many[i], round);
			for (unsigned n = 0; n < many[i].n; n++) {
				uint64_t late =
					monotime_since_us(many[i].started[n], many[i].when[n]);

				best = late < best ? late : best;
			}
			worst = best > worst ? best : worst;
		}
	}
	ck_assert_uint_lt(worst, 50000);
	for (unsigned i = 0; i < 1000; i++)
		run_check_free(many[i].run);
	told.opens = told.closes = 0;
}
END_TEST

static void busy_begin(struct probe *p)
{
	uint64_t from = clock_cpu_us();

	while (clock_cpu_us() - from < 2000)
		;
	probe_report(p, CHECK_OUTCOME_GOOD, "%s", "");
}

static int count_turn(sd_event_source *source, uint64_t us, void *userdata)
{
	++*(unsigned *)userdata;
	ck_assert_int_ge(sd_event_source_set_time_relative(source, 10000), 0);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static bool all_above(const struct harness *list, size_t n, unsigned reports)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].n <= reports)
			return false;
	return true;
}

/* 20 checks that each take 2 ms of every 10: four times what there is. What has the lowest
 * priority, as the status socket, has its turns all the same. */
START_TEST (too_many_checks_leave_turns_to_others) {
	static struct harness many[20];
	const struct probe_type busy_type = {
		.name = "busy",
		.open = told_open,
		.begin = busy_begin,
		.cancel = told_cancel,
		.close = told_close,
	};
	sd_event_source *other = NULL;
	unsigned turns = 0;

	ck_assert_int_ge(sd_event_new(&h.event), 0);
	ck_assert_int_ge(sd_event_add_time_relative(
				 h.event, &other, CLOCK_BOOTTIME, 200000, 1, count_turn, &turns),
		0);
	ck_assert_int_ge(sd_event_source_set_priority(other, SD_EVENT_PRIORITY_IDLE), 0);
	for (unsigned i = 0; i < ELEMENTSOF(many); i++) {
		many[i].event = h.event;
		harness_start(&many[i], &busy_type, NULL, 10, 10);
	}
	ck_assert(LOOP_UNTIL(h.event, turns > 5 && all_above(many, ELEMENTSOF(many), 5), 1000));
	for (unsigned i = 0; i < ELEMENTSOF(many); i++)
		run_check_free(many[i].run);
	sd_event_source_disable_unref(other);
	told.opens = told.closes = 0;
}
END_TEST

START_TEST (now_means_now) {
	told.report_early = true;
	harness_start(&h, &told_type, NULL, 60000, 50);
	(void)harness_wait(&h, 1);
	run_check_now(h.run);
	(void)harness_wait(&h, 2);
	ck_assert_uint_lt(monotime_since_us(h.when[0], h.when[1]), 30000000);
	probe_wake(told.probe);
	(void)harness_wait(&h, 3);
}
END_TEST

START_TEST (now_does_not_disturb_an_attempt) {
	harness_start(&h, &told_type, NULL, 60000, 50);
	ck_assert(LOOP_UNTIL(h.event, told.begins == 1, 1000));
	run_check_now(h.run);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "timeout");
	ck_assert_uint_eq(told.begins, 1);
}
END_TEST

START_TEST (spread_is_even) {
	unsigned in_step[40] = {0};

	/* In steps, so that few wake-ups serve many checks, and as many in each. */
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t ms = run_spread_ms(1000, i, 1000);

		ck_assert_uint_lt(ms, 1000);
		ck_assert_uint_eq(ms % 25, 0);
		in_step[ms / 25]++;
	}
	for (unsigned i = 0; i < 40; i++)
		ck_assert_uint_eq(in_step[i], 25);
	for (unsigned i = 0; i < 7; i++)
		ck_assert_uint_eq(run_spread_ms(70, i, 7), i * 10);
	ck_assert_uint_eq(run_spread_ms(1000, 3, 0), 0);
	ck_assert_uint_lt(run_spread_ms(UINT64_MAX, 4294967294U, 4294967295U), UINT64_MAX);
}
END_TEST

/* ---- reports ---- */

START_TEST (an_early_report_ends_the_attempt) {
	told.report_early = true;
	harness_start(&h, &told_type, NULL, 10, 5);
	harness_expect(&h, 3, CHECK_OUTCOME_GOOD, "early");
	ck_assert_uint_eq(told.cancels, 0);
	ck_assert_uint_eq(told.begins, 3);
}
END_TEST

START_TEST (a_death_between_attempts_goes_through) {
	told.report_early = true;
	harness_start(&h, &told_type, NULL, 60000, 50);
	(void)harness_wait(&h, 1);
	/* The caller's next start is a minute away; this one comes first. */
	h.interval_ms = 0;
	probe_report(told.probe, CHECK_OUTCOME_GONE, "dead");
	ck_assert_uint_eq(h.n, 2);
	ck_assert_uint_eq(h.duration_us[1], 0);
	harness_expect(&h, 2, CHECK_OUTCOME_GONE, "dead");
	(void)harness_wait(&h, 3);
}
END_TEST

START_TEST (a_death_does_not_put_off_the_next_attempt) {
	told.report_early = true;
	harness_start(&h, &told_type, NULL, 100, 50);
	(void)harness_wait(&h, 1);
	h.interval_ms = 60000;
	probe_report(told.probe, CHECK_OUTCOME_GONE, "dead");
	(void)harness_wait(&h, 3);
}
END_TEST

START_TEST (a_death_ends_the_attempt_under_way) {
	harness_start(&h, &told_type, NULL, 60000, 100);
	ck_assert(LOOP_UNTIL(h.event, told.begins == 1, 1000));
	probe_report(told.probe, CHECK_OUTCOME_GONE, "dead");
	LOOP_FOR(h.event, 150);
	ck_assert_uint_eq(h.n, 1);
	ck_assert_uint_eq(told.cancels, 0);
}
END_TEST

START_TEST (it_may_be_freed_in_its_report) {
	h.free_in_report = true;
	if (_i == 0)
		told.report_early = true;
	if (_i == 2)
		told.fd = eventfd(1, EFD_CLOEXEC);
	harness_start(&h, &told_type, NULL, 10, 20);
	(void)harness_wait(&h, 1);
	LOOP_FOR(h.event, 50);
	ck_assert_uint_eq(h.n, 1);
	ck_assert_uint_eq(told.closes, 1);
}
END_TEST

START_TEST (an_attempt_under_way_is_cancelled_by_free) {
	harness_start(&h, &told_type, NULL, 10, 1000);
	ck_assert(LOOP_UNTIL(h.event, told.begins == 1, 1000));
	harness_stop(&h);
	ck_assert_uint_eq(told.cancels, 1);
	ck_assert_uint_eq(told.closes, 1);
	LOOP_FOR(h.event, 30);
	ck_assert_uint_eq(h.n, 0);
}
END_TEST

START_TEST (a_probe_that_cannot_open_is_unknown_and_opened_again) {
	told.open_errno = EMFILE;
	told.report_early = true;
	harness_start(&h, &told_type, NULL, 10, 5);
	harness_expect(&h, 2, CHECK_OUTCOME_UNKNOWN, "Too many open files");
	ck_assert_uint_eq(told.begins, 0);
	told.open_errno = 0;
	ck_assert(LOOP_UNTIL(h.event, told.begins > 0, 1000));
	ck_assert(LOOP_UNTIL(h.event, h.reports[h.n - 1].outcome == CHECK_OUTCOME_GOOD, 1000));
}
END_TEST

START_TEST (reasons_are_printable_and_bounded) {
	char text[2 * PROBE_REASON_MAX];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	told.report_early = true;
	harness_start(&h, &told_type, NULL, 60000, 50);
	(void)harness_wait(&h, 1);
	probe_report(told.probe, CHECK_OUTCOME_GONE, "a\nb\x1b[2J \xff \xc3\xa9 \xe2\x80\xae");
	ck_assert_str_eq(h.reports[1].reason, "a\\x0ab\\x1b[2J \\xff \xc3\xa9 \\xe2\\x80\\xae");
	probe_report(told.probe, CHECK_OUTCOME_GONE, "%s", text);
	ck_assert_uint_eq(strlen(h.reports[2].reason), PROBE_REASON_MAX - 1);
	ck_assert_str_eq(h.reports[2].reason + PROBE_REASON_MAX - 4, "...");
}
END_TEST

/* ---- late loops: the agent was stopped, or starved ---- */

/* An answer that lies there when the loop runs again counts, however late it is. */
START_TEST (what_is_readable_is_read_before_the_deadline) {
	/* Late by a little, which gives no time back, and by much. */
	const unsigned timeout_ms = _i == 0 ? 400 : 50;
	uint64_t one = 1;

	told.fd = eventfd(0, EFD_CLOEXEC);
	harness_start(&h, &told_type, NULL, 60000, timeout_ms);
	ck_assert(LOOP_UNTIL(h.event, told.begins == 1, 1000));
	ck_assert_int_eq(write(told.fd, &one, sizeof(one)), sizeof(one));
	(void)usleep(430000);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "");
	ck_assert_uint_ge(h.duration_us[0], 430000);
}
END_TEST

/* No answer lies there, but nobody could have read the question's first half either. */
START_TEST (a_late_loop_gives_the_time_back_once) {
	struct monotime again;
	uint64_t one = 1;

	told.fd = eventfd(0, EFD_CLOEXEC);
	harness_start(&h, &told_type, NULL, 60000, 1000);
	ck_assert(LOOP_UNTIL(h.event, told.begins == 1, 1000));
	(void)usleep(2100000);
	again = clock_monotime();
	LOOP_FOR(h.event, 50);
	ck_assert_uint_eq(h.n, 0);
	if (_i == 0) {
		ck_assert_int_eq(write(told.fd, &one, sizeof(one)), sizeof(one));
		harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "");
		return;
	}
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "timeout after 1s");
	ck_assert_uint_ge(monotime_since_us(again, h.when[0]), 990000);
	ck_assert_uint_lt(monotime_since_us(again, h.when[0]), 10000000);
}
END_TEST

/* After a stop the schedule goes on from there: no burst of what was missed. */
START_TEST (a_late_loop_does_not_catch_up) {
	told.report_early = true;
	harness_start(&h, &told_type, NULL, 50, 40);
	(void)harness_wait(&h, 1);
	(void)usleep(500000);
	(void)harness_wait(&h, 4);
	ck_assert_uint_ge(monotime_since_us(told.begun[1], told.begun[2]), 40000);
	ck_assert_uint_ge(monotime_since_us(told.begun[2], told.begun[3]), 40000);
}
END_TEST

START_TEST (our_own_faults_are_unknown) {
	static const int own[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN, EADDRNOTAVAIL, ENOSPC};
	static const int theirs[] = {
		ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ECONNRESET, EPIPE, ETIMEDOUT, EACCES};

	for (size_t i = 0; i < ELEMENTSOF(own); i++)
		ck_assert_int_eq(probe_outcome_of_errno(own[i]), CHECK_OUTCOME_UNKNOWN);
	for (size_t i = 0; i < ELEMENTSOF(theirs); i++)
		ck_assert_int_eq(probe_outcome_of_errno(theirs[i]), CHECK_OUTCOME_BAD);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probes-run");
	TCase *c = tcase_create("run");
	SRunner *runner;
	int failed;

	tcase_set_timeout(c, 30);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, starts_do_not_drift);
	tcase_add_test(c, attempts_do_not_overlap);
	tcase_add_test(c, the_schedule_is_told);
	tcase_add_test(c, a_thousand_checks_start_when_they_are_due);
	tcase_add_test(c, too_many_checks_leave_turns_to_others);
	tcase_add_test(c, now_means_now);
	tcase_add_test(c, now_does_not_disturb_an_attempt);
	tcase_add_test(c, spread_is_even);
	tcase_add_test(c, an_early_report_ends_the_attempt);
	tcase_add_test(c, a_death_between_attempts_goes_through);
	tcase_add_test(c, a_death_does_not_put_off_the_next_attempt);
	tcase_add_test(c, a_death_ends_the_attempt_under_way);
	tcase_add_loop_test(c, it_may_be_freed_in_its_report, 0, 3);
	tcase_add_test(c, an_attempt_under_way_is_cancelled_by_free);
	tcase_add_test(c, a_probe_that_cannot_open_is_unknown_and_opened_again);
	tcase_add_test(c, reasons_are_printable_and_bounded);
	tcase_add_loop_test(c, what_is_readable_is_read_before_the_deadline, 0, 2);
	tcase_add_loop_test(c, a_late_loop_gives_the_time_back_once, 0, 2);
	tcase_add_test(c, a_late_loop_does_not_catch_up);
	tcase_add_test(c, our_own_faults_are_unknown);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
