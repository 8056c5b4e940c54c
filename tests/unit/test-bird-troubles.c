/*
 * What can be wrong with BIRD and its socket (fake-bird.h), each with its state, its metric and its
 * way back: docs/faults.md has them, docs/metrics.md and docs/status.md the words.
 */
#include <check.h>

#include "agent/system/log.h"
#include "tests/unit/apply-site.h"

static int crowd[64]; /* connections that nobody will accept */
static size_t n_crowd;

/* ---- the troubles ---- */

static void gone(void)
{
	fake_stop(&bird);
}

static void back(void)
{
	fake_start(&bird);
}

/* Its socket file outlived it. */
static void killed(void)
{
	char kept[200];

	(void)snprintf(kept, sizeof(kept), "%s/kept", base);
	ck_assert_int_eq(link(socket_path, kept), 0);
	fake_stop(&bird);
	ck_assert_int_eq(rename(kept, socket_path), 0);
}

static void restarted(void)
{
	fake_stop(&bird);
	fake_start(&bird);
}

static void hung(void)
{
	bird.mute = true;
}

static void dripping(void)
{
	bird.drips = true;
}

static void garbled(void)
{
	bird.garbage = true;
}

static void another_program(void)
{
	fake_stop(&bird);
	bird.greeting = "220 mail.example.net ESMTP\n";
	fake_start(&bird);
}

static void an_old_one(void)
{
	fake_stop(&bird);
	bird.greeting = "0001 BIRD 1.6.8 ready.\n";
	fake_start(&bird);
}

static void ours_again(void)
{
	fake_stop(&bird);
	bird.greeting = NULL;
	fake_start(&bird);
}

static void answers_again(void)
{
	bird.mute = bird.drips = bird.garbage = false;
}

/* It accepts nobody, its backlog is full, and the connections that were there have ended. */
static void full(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", bird.socket);
	ck_assert_int_ge(sd_event_source_set_enabled(bird.source, SD_EVENT_OFF), 0);
	for (n_crowd = 0; n_crowd < ELEMENTSOF(crowd); n_crowd++) {
		crowd[n_crowd] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		ck_assert_int_ge(crowd[n_crowd], 0);
		if (connect(crowd[n_crowd], (struct sockaddr *)&address, sizeof(address)) < 0) {
			ck_assert_int_eq(errno, EAGAIN);
			(void)close(crowd[n_crowd]);
			break;
		}
	}
	for (size_t i = 0; i < FAKE_CONNECTIONS; i++)
		fake_close(&bird.connections[i]);
}

static void room_again(void)
{
	while (n_crowd > 0)
		(void)close(crowd[--n_crowd]);
	ck_assert_int_ge(sd_event_source_set_enabled(bird.source, SD_EVENT_ON), 0);
}

static const struct trouble {
	const char *name;
	void (*begin)(void), (*end)(void);
	const char *reason; /* while it lasts */
	bool silent;
	enum apply_link link;
} troubles[] = {
	{"gone", gone, back, "absent", false, APPLY_LINK_AWAY},
	{"killed, its socket left behind", killed, back, "refused", false, APPLY_LINK_AWAY},
	{"hung", hung, answers_again, "silent", true, APPLY_LINK_AWAY},
	{"dripping", dripping, answers_again, "silent", true, APPLY_LINK_AWAY},
	{"garbled", garbled, answers_again, "garbled", false, APPLY_LINK_AWAY},
	{"another program", another_program, ours_again, "garbled", false, APPLY_LINK_REFUSED},
	{"too old", an_old_one, ours_again, "too_old", false, APPLY_LINK_REFUSED},
	{"full", full, room_again, "full", true, APPLY_LINK_AWAY},
};

static const char *reason(void)
{
	const char *word = loss_name(apply_status(apply)->loss);

	return word ? word : "";
}

static uint64_t lost(const char *word)
{
	for (unsigned k = LOSS_NONE + 1; k < LOSSES; k++)
		if (strcmp(loss_name((enum loss)k), word) == 0)
			return apply_status(apply)->losses[k];
	abort();
}

static bool is_silent(void)
{
	return !monotime_is_never(apply_status(apply)->silent_since);
}

/* A service dies in the middle of it: it is withdrawn when BIRD is back. */
START_TEST (each_has_its_state_its_metric_and_its_way_back) {
	const struct trouble *t = &troubles[_i];
	const struct apply_status *s;
	uint64_t before;

	begin(2);
	s = apply_status(apply);
	ck_assert_str_eq(reason(), "");
	before = lost(t->reason);
	t->begin();
	apply_want(apply, 0, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert_msg(LOOP_UNTIL(event,
			      strcmp(reason(), t->reason) == 0 && s->link == t->link &&
				      lost(t->reason) > before,
			      6000),
		"%s: %s, link %d: %s", t->name, reason(), s->link, s->error);
	ck_assert_msg(is_silent() == t->silent, "%s: silent or not", t->name);
	ck_assert_msg(s->error[0] != '\0', "%s: no sentence", t->name);
	ck_assert_int_eq(apply_observed(apply, 1, 0)->announced, APPLY_UNKNOWN);
	t->end();
	ck_assert_msg(LOOP_UNTIL(event, settled() && !is_up(0) && is_up(1), 6000), "%s: %s",
		t->name, s->error);
	ck_assert(!is_silent());
	ck_assert_str_eq(reason(), "");
	ck_assert_str_eq(s->error, "");
}
END_TEST

/* Too short for anything but the counter: `closed`, and a new life. */
START_TEST (restarted_is_counted) {
	begin(1);
	restarted();
	ck_assert(LOOP_UNTIL(event, lost("closed") > 0, 1000));
	ck_assert(LOOP_UNTIL(event, settled() && is_up(0), 2000));
	ck_assert(!is_silent());
}
END_TEST

/* Somebody's hand costs no connection: it is counted where it is mended. */
START_TEST (by_hand_is_no_loss) {
	uint64_t all = 0;

	begin(1);
	bird.running.protocols[0].up = false;
	fake_push(&bird, "Disabling protocol redshank:s0:192.0.2.1");
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->repairs == 1, 2000));
	ck_assert(LOOP_UNTIL(event, settled() && is_up(0), 2000));
	for (unsigned k = 0; k < LOSSES; k++)
		all += apply_status(apply)->losses[k];
	ck_assert_uint_eq(all, 0);
}
END_TEST

/* Off: BIRD reads nothing, and answers later. */
static void listens(bool on)
{
	for (size_t i = 0; i < FAKE_CONNECTIONS; i++)
		if (bird.connections[i].fd >= 0)
			(void)sd_event_source_set_enabled(
				bird.connections[i].source, on ? SD_EVENT_ON : SD_EVENT_OFF);
}

/* Slow, but within its time: no loss either; the durations have it. */
START_TEST (slow_is_in_the_durations) {
	const struct apply_counter *disable;
	struct histogram before;

	begin(1);
	disable = &apply_status(apply)->commands[APPLY_COMMAND_DISABLE];
	before = disable->duration;
	listens(false);
	apply_want(apply, 0, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	LOOP_FOR(event, 600);
	ck_assert(!settled());
	listens(true);
	ck_assert(LOOP_UNTIL(event, settled() && !is_up(0), 2000));
	ck_assert_uint_eq(disable->duration.count, before.count + 1);
	ck_assert_uint_ge(disable->duration.sum_us - before.sum_us, 600000);
	ck_assert_uint_eq(lost("silent"), 0);
	ck_assert(!is_silent());
}
END_TEST

/* More is to be said than may wait: what could not be sent is counted, and said when there is room.
 */
START_TEST (a_full_queue_is_counted) {
	const struct apply_counter *commands;

	begin(2);
	commands = apply_status(apply)->commands;
	while (client_send(apply->command.client, 0, NULL, NULL, "show status") == 0)
		;
	apply_want(apply, 0, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert_uint_eq(commands[APPLY_COMMAND_DISABLE].results[APPLY_RESULT_UNSENT], 1);
	ck_assert_uint_eq(bird.n_disable, 0);
	ck_assert(LOOP_UNTIL(event, settled() && !is_up(0) && is_up(1), 8000));
}
END_TEST

/* Not even a socket of ours can be had. */
START_TEST (our_own_side_is_told_too) {
	_cleanup_free_ char *long_path = calloc(1, 200);

	memset(long_path, 'x', 199);
	long_path[0] = '/';
	make_config(1);
	config.bird.socket = long_path;
	start_apply();
	ck_assert(LOOP_UNTIL(event, lost("failed") > 0, 1000));
	ck_assert_int_eq(apply_status(apply)->link, APPLY_LINK_AWAY);
	ck_assert_str_eq(reason(), "failed");
	ck_assert_ptr_nonnull(strstr(apply_status(apply)->error, "File name too long"));
}
END_TEST

/* What no test can make as root, and what only birdc says. */
START_TEST (words) {
	ck_assert_int_eq(loss_of(-EACCES), LOSS_DENIED);
	ck_assert_int_eq(loss_of(-EPIPE), LOSS_CLOSED);
	ck_assert_int_eq(loss_of(-ECONNABORTED), LOSS_FAILED);
	ck_assert_int_eq(loss_of(-EMFILE), LOSS_FAILED);
	ck_assert_ptr_null(loss_name(LOSS_NONE));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bird-troubles");
	TCase *tc = tcase_create("troubles");
	SRunner *runner;
	int failed;

	log_init(getenv("REDSHANK_TEST_LOG") ? LOG_DEBUG : LOG_EMERG, true);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_loop_test(
		tc, each_has_its_state_its_metric_and_its_way_back, 0, (int)ELEMENTSOF(troubles));
	tcase_add_test(tc, restarted_is_counted);
	tcase_add_test(tc, by_hand_is_no_loss);
	tcase_add_test(tc, slow_is_in_the_durations);
	tcase_add_test(tc, a_full_queue_is_counted);
	tcase_add_test(tc, our_own_side_is_told_too);
	tcase_add_test(tc, words);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
