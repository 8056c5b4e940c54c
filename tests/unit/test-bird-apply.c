/* apply against a BIRD that misbehaves on demand (fake-bird.h), in a real loop. */
#include <check.h>

#include "agent/bird/apply_explain.h"
#include "agent/system/log.h"
#include "tests/unit/apply-site.h"

static bool many_are_up(const char *service)
{
	char name[NAMES_MAX];
	const struct fake_protocol *p = fake_find(
		&bird.running, names_family_protocol(name, service, ADDRESS_FAMILY_IPV4, false));

	return p && p->up;
}

/* Of s0 with n prefixes: what is wanted of the first, and of the others. */
static void want_whole(size_t n, enum prefix_wanted first, enum prefix_wanted others)
{
	for (size_t i = 0; i < n; i++)
		apply_want(apply, 0, i, i == 0 ? first : others);
	apply_flush(apply);
}

static struct config_prefix many[NAMES_SINGLE_MAX + 1];

/* s0 of so many prefixes that they have one protocol, redshank:s0:v4; all announced. */
static void begin_many(void)
{
	make_config(1);
	for (size_t i = 0; i < ELEMENTSOF(many); i++) {
		many[i] = prefixes[0][0];
		many[i].prefix.address.bytes[2] = (uint8_t)(i >> 8);
		many[i].prefix.address.bytes[3] = (uint8_t)i;
	}
	services[0].prefixes = many;
	services[0].n_prefixes = ELEMENTSOF(many);
	fake_start(&bird);
	start_apply();
	ck_assert(LOOP_UNTIL(event, is_ready, 2000));
	want_whole(ELEMENTSOF(many), PREFIX_WANTED_ANNOUNCE, PREFIX_WANTED_ANNOUNCE);
	ck_assert(LOOP_UNTIL(event, settled() && many_are_up("s0"), 3000));
}

/* ---- the way of a command ---- */

/* First start on an empty folder: the fragments, one configure, and then an enable for each. */
START_TEST (test_first_start) {
	begin(3);
	ck_assert_uint_eq(bird.n_configure, 1);
	ck_assert_ptr_null(strstr(fragment_of("s0"), "disabled;"));
	ck_assert_uint_eq(apply_status(apply)->sessions, 2);
	ck_assert_uint_eq(apply_status(apply)->sessions_up, 1);
	ck_assert_str_eq(apply_status(apply)->version, "2.0.12");
	ck_assert_uint_eq(apply_status(apply)->repairs, 0);
}
END_TEST

/* A withdrawal is a rename and one disable; a return is an enable. No configure, ever. */
START_TEST (test_health_is_no_configure) {
	begin(2);
	for (unsigned i = 0; i < 5; i++) {
		unsigned before = bird.n_configure;

		apply_want(apply, 0, 0, PREFIX_WANTED_WITHDRAW);
		apply_flush(apply);
		/* The file is true before BIRD has so much as read the command. */
		ck_assert_ptr_nonnull(strstr(fragment_of("s0"), "disabled;"));
		ck_assert(LOOP_UNTIL(event, !is_up(0), 1000));
		ck_assert_str_eq(bird.last, "disable \"redshank:s0:*\"");
		ck_assert(LOOP_UNTIL(event, settled(), 1000));
		apply_want(apply, 0, 0, PREFIX_WANTED_ANNOUNCE);
		apply_flush(apply);
		ck_assert(LOOP_UNTIL(event, is_up(0) && settled(), 1000));
		ck_assert_uint_eq(bird.n_configure, before);
	}
	ck_assert(is_up(1));
	ck_assert(LOOP_UNTIL(event, all_observed(APPLY_YES, 1), 1000));
}
END_TEST

/* A change of mind while the first command is not answered sends the opposite one at once. */
START_TEST (test_flip_in_flight) {
	begin(1);
	bird.mute = true; /* takes the commands and says nothing yet */
	apply_want(apply, 0, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	apply_want(apply, 0, 0, PREFIX_WANTED_ANNOUNCE);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, fake_starts(bird.last, "enable "), 1000));
	apply_want(apply, 0, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, fake_starts(bird.last, "disable "), 1000));
	ck_assert_ptr_nonnull(strstr(fragment_of("s0"), "disabled;"));
}
END_TEST

/* The same configuration again: not a byte to change anything, no file. */
START_TEST (test_same_configuration) {
	struct stat before, after;
	unsigned n;
	char path[300];

	begin(3);
	(void)snprintf(path, sizeof(path), "%s/s1.conf", folder);
	ck_assert_int_eq(stat(path, &before), 0);
	n = bird.n_configure + bird.n_disable + bird.n_enable + bird.n_check;
	ck_assert_int_eq(apply_configure(apply, &config), 0);
	want_all(PREFIX_WANTED_ANNOUNCE);
	LOOP_FOR(event, 300);
	ck_assert_uint_eq(bird.n_configure + bird.n_disable + bird.n_enable + bird.n_check, n);
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	ck_assert(settled());
}
END_TEST

/* ---- reconfiguring ---- */

/* Twelve services change within 100 ms while each configure takes BIRD two seconds: two suffice,
 * never two at a time, and the last one sees all twelve. (Case A02) */
START_TEST (test_many_changes_two_configures) {
	unsigned before;

	begin(12);
	before = bird.n_configure;
	bird.busy_ms = 2000;
	for (size_t i = 0; i < 12; i++) {
		prefixes[i][0].announced_weight = 200;
		ck_assert_int_eq(apply_configure(apply, &config), 0);
		apply_flush(apply);
		LOOP_FOR(event, 8);
	}
	ck_assert(LOOP_UNTIL(event, settled(), 5000));
	ck_assert_uint_le(bird.n_configure - before, 2);
	ck_assert(!bird.overlapping);
	for (size_t i = 0; i < 12; i++)
		ck_assert_uint_eq(bird.running.protocols[i].weight, 200);
}
END_TEST

/* 0004 is no failure, and not the end either: settled comes with 0003. (Case A01) */
START_TEST (test_in_progress_is_not_settled) {
	struct monotime begun;

	begin(1);
	bird.busy_ms = 300;
	prefixes[0][0].announced_weight = 7;
	ck_assert_int_eq(apply_configure(apply, &config), 0);
	apply_flush(apply);
	begun = clock_monotime();
	ck_assert(LOOP_UNTIL(event, bird.n_configure == 2, 1000));
	ck_assert(!settled());
	ck_assert(LOOP_UNTIL(event, settled(), 2000));
	ck_assert_uint_ge(monotime_since_us(begun, clock_monotime()), 290000);
	ck_assert_str_eq(apply_status(apply)->alarm, "");
}
END_TEST

/* A configuration of somebody else, queued before the death, resurrects the protocol. */
START_TEST (test_queued_configure_resurrects) {
	begin(2);
	fake_be_busy(&bird, 400);
	fake_queue(&bird); /* parsed while s0 is up */
	fake_push(&bird, "Reconfiguring");
	apply_want(apply, 0, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, !is_up(0), 1000));
	ck_assert(LOOP_UNTIL(event, is_up(0), 1000)); /* the queued one is loaded */
	ck_assert(LOOP_UNTIL(event, !is_up(0), 1000));
	ck_assert(LOOP_UNTIL(event, settled(), 1000));
	ck_assert(is_up(1));
	ck_assert_uint_ge(apply_status(apply)->repairs, 1);
}
END_TEST

/* A death while our own configure is not answered: the command goes right behind it. */
START_TEST (test_death_behind_configure) {
	begin(2);
	bird.mute = true;
	bird.last[0] = '\0';
	prefixes[1][0].announced_weight = 9;
	ck_assert_int_eq(apply_configure(apply, &config), 0);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, strcmp(bird.last, "configure") == 0, 1000));
	apply_want(apply, 0, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, fake_starts(bird.last, "disable \"redshank:s0:*\""), 500));
}
END_TEST

/* The same of what is not up yet, and comes with that configure, which takes BIRD long: all of a
 * service, or one prefix of two. */
START_TEST (test_death_of_what_comes) {
	make_config(2);
	services[1].n_prefixes = 2;
	prefixes[1][1] = prefixes[1][0];
	prefixes[1][1].prefix.address.bytes[3] = 9;
	fake_start(&bird);
	start_apply();
	ck_assert(LOOP_UNTIL(event, is_ready, 2000));
	apply_want(apply, 0, 0, PREFIX_WANTED_ANNOUNCE);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, settled() && is_up(0) && !is_up(1), 3000));
	bird.generation += 100; /* somebody's: what is loaded of what is down is not known */
	fake_push(&bird, "Reconfiguring");
	LOOP_FOR(event, 100);
	bird.busy_ms = 5000;
	(void)sd_event_source_set_enabled(apply->tick, SD_EVENT_OFF);
	apply_want(apply, 1, 0, PREFIX_WANTED_ANNOUNCE);
	apply_want(apply, 1, 1, PREFIX_WANTED_ANNOUNCE);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, is_up(1) && fake_is_busy(&bird), 1000));
	apply_want(apply, 1, 0, PREFIX_WANTED_WITHDRAW);
	if (_i == 0)
		apply_want(apply, 1, 1, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_WITHIN(event, !is_up(1), 4000) && fake_is_busy(&bird));
	LOOP_FOR(event, 200);
	ck_assert_uint_eq(bird.n_disable, 1);
}
END_TEST

/* ---- refusals ---- */

START_TEST (test_refused_not_ours) {
	begin(2);
	bird.refuse = "/etc/bird/bird.conf:7:3 syntax error, unexpected '}'";
	prefixes[0][0].announced_weight = 50;
	ck_assert_int_eq(apply_configure(apply, &config), 0);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->alarm[0], 1000));
	ck_assert_ptr_nonnull(strstr(apply_status(apply)->alarm, "/etc/bird/bird.conf:7:3"));
	ck_assert_ptr_nonnull(strstr(apply_status(apply)->alarm, "not a file of ours"));
	/* Health goes on, both ways: at the old weight rather than not at all. */
	for (size_t i = 0; i < 2; i++) {
		apply_want(apply, i, 0, PREFIX_WANTED_WITHDRAW);
		apply_flush(apply);
		ck_assert(LOOP_UNTIL(event, !is_up(i), 500));
		apply_want(apply, i, 0, PREFIX_WANTED_ANNOUNCE);
		apply_flush(apply);
		ck_assert(LOOP_UNTIL(event, is_up(i), 500));
	}
	ck_assert(!settled());
	/* Not repaired: tried again after 1 s, 2 s, ...; no flood. */
	LOOP_FOR(event, 1500);
	ck_assert_uint_le(bird.n_configure, 4);
	bird.refuse = NULL;
	ck_assert(LOOP_UNTIL(event, settled(), 3000));
	ck_assert_str_eq(apply_status(apply)->alarm, "");
	ck_assert_uint_eq(bird.running.protocols[0].weight + bird.running.protocols[1].weight, 150);
}
END_TEST

/* A service of so many prefixes that they have one protocol: what BIRD holds of it is announced as
 * a whole or not at all. So where BIRD refuses to learn that one of them is out, it stays down: the
 * others are not announced at the price of one that must not be. */
START_TEST (test_refused_part_of_many) {
	const struct fake_protocol *p;
	char first[PREFIX_TEXT_MAX];

	begin_many();
	p = &bird.running.protocols[0];
	(void)prefix_format(&many[0].prefix, first);
	ck_assert(fake_holds(p, first));
	bird.refuse = "/etc/bird/bird.conf:7:3 syntax error, unexpected '}'";
	want_whole(ELEMENTSOF(many), PREFIX_WANTED_WITHDRAW, PREFIX_WANTED_WITHDRAW);
	ck_assert(LOOP_UNTIL(event, !p->up && settled(), 1000));
	want_whole(ELEMENTSOF(many), PREFIX_WANTED_WITHDRAW, PREFIX_WANTED_ANNOUNCE);
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->alarm[0], 1000));
	LOOP_FOR(event, 200);
	ck_assert(!p->up);
	/* All of them are what is loaded: then it does not matter what BIRD refuses. */
	want_whole(ELEMENTSOF(many), PREFIX_WANTED_ANNOUNCE, PREFIX_WANTED_ANNOUNCE);
	ck_assert(LOOP_UNTIL(event, p->up, 1000));
	want_whole(ELEMENTSOF(many), PREFIX_WANTED_WITHDRAW, PREFIX_WANTED_WITHDRAW);
	want_whole(ELEMENTSOF(many), PREFIX_WANTED_WITHDRAW, PREFIX_WANTED_ANNOUNCE);
	bird.refuse = NULL;
	ck_assert(LOOP_UNTIL(event, settled() && p->up, 5000));
	ck_assert(!fake_holds(p, first));
}
END_TEST

/* Somebody's `configure timeout`: any other `configure` would confirm it, and nobody would be let
 * in again by its end. Health goes on, and the rest follows. */
START_TEST (test_trial_of_somebody) {
	unsigned before;

	begin(2);
	apply_want(apply, 1, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, !is_up(1) && settled(), 1000));
	before = bird.n_configure;
	bird.on_trial = true;
	bird.generation += 100;
	fake_push(&bird, "Reconfiguring");
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->on_trial, 1000));
	LOOP_FOR(event, 50);
	prefixes[0][0].announced_weight = 50;
	ck_assert_int_eq(apply_configure(apply, &config), 0);
	apply_want(apply, 1, 0, PREFIX_WANTED_ANNOUNCE); /* what is loaded of it is not known */
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, is_up(1), 500));
	apply_want(apply, 1, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, !is_up(1), 500));
	LOOP_FOR(event, 1200);
	ck_assert(bird.on_trial);
	ck_assert_uint_eq(bird.n_configure, before);
	ck_assert(!settled());
	bird.on_trial = false;
	ck_assert(LOOP_UNTIL(event, settled(), 3000));
	ck_assert_uint_eq(bird.n_configure, before + 1);
	ck_assert(!apply_status(apply)->on_trial);
	ck_assert_uint_eq(bird.running.protocols[0].weight + bird.running.protocols[1].weight, 150);
}
END_TEST

/* Our own fragment is refused: the last good text is back, with `disabled;` as it is now. */
START_TEST (test_refused_ours) {
	static char text[400];

	begin(2);
	(void)snprintf(text, sizeof(text), "%s/s0.conf:9:1 Symbol already defined", folder);
	bird.refuse = text;
	prefixes[0][0].announced_weight = 50;
	ck_assert_int_eq(apply_configure(apply, &config), 0);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->alarm[0], 1000));
	ck_assert_ptr_nonnull(strstr(apply_status(apply)->alarm, "last good one"));
	ck_assert(LOOP_UNTIL(event, strstr(fragment_of("s0"), "weight = 100"), 500));
	apply_want(apply, 0, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert_ptr_nonnull(strstr(fragment_of("s0"), "disabled;"));
	ck_assert_ptr_nonnull(strstr(fragment_of("s0"), "weight = 100"));
	ck_assert(LOOP_UNTIL(event, !is_up(0), 500));
	bird.refuse = NULL;
	apply_want(apply, 0, 0, PREFIX_WANTED_ANNOUNCE);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, settled(), 4000));
	ck_assert_ptr_nonnull(strstr(fragment_of("s0"), "weight = 50"));
	ck_assert_ptr_null(strstr(fragment_of("s0"), "disabled;"));
	ck_assert(is_up(0));
}
END_TEST

/* What BIRD takes meanwhile is the text that was put back; the wanted one is tried all the same. */
START_TEST (test_put_back_is_not_the_end) {
	static char text[400];

	begin(2);
	/* A health command: `configure check` follows it after a second, before the next try. */
	apply_want(apply, 1, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, !is_up(1), 500));
	LOOP_FOR(event, 200);
	ck_assert_uint_eq(bird.n_check, 0);
	(void)snprintf(text, sizeof(text), "%s/s0.conf:9:1 Symbol already defined", folder);
	bird.refuse = text;
	bird.refuse_weight = prefixes[0][0].announced_weight = 50;
	ck_assert_int_eq(apply_configure(apply, &config), 0);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, strstr(apply_status(apply)->alarm, "last good one"), 1000));
	ck_assert(LOOP_UNTIL(event, strstr(fragment_of("s0"), "weight = 100"), 500));
	ck_assert(LOOP_UNTIL(event, bird.n_check == 1, 2000));
	ck_assert_uint_le(bird.n_configure, 3);
	LOOP_FOR(event, 100);
	ck_assert_ptr_nonnull(strstr(apply_status(apply)->alarm, "last good one"));
	bird.refuse = NULL;
	ck_assert(LOOP_UNTIL(event, strstr(fragment_of("s0"), "weight = 50"), 3000));
	ck_assert(LOOP_UNTIL(event, settled(), 1000));
	ck_assert_str_eq(apply_status(apply)->alarm, "");
}
END_TEST

/* ---- a BIRD that is away, mute or no BIRD ---- */

START_TEST (test_bird_1_is_refused) {
	make_config(1);
	bird.greeting = "0001 BIRD 1.6.8 ready.\n";
	fake_start(&bird);
	start_apply();
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->link == APPLY_LINK_REFUSED, 1000));
	ck_assert_ptr_nonnull(strstr(apply_status(apply)->error, "BIRD 1.6.8"));
	ck_assert(LOOP_UNTIL(event, is_ready, 2000));
	want_all(PREFIX_WANTED_ANNOUNCE);
	LOOP_FOR(event, 300);
	ck_assert_uint_eq(bird.n_bytes, 0);
	ck_assert_uint_le(bird.n_connections, 4); /* greeted again every second */
	ck_assert_int_eq(apply_observed(apply, 0, 0)->announced, APPLY_UNKNOWN);
}
END_TEST

/* Closed while the agent did not run, and written to before that is seen: the loss is told. */
START_TEST (test_written_to_after_the_end) {
	begin(2);
	ck_assert(LOOP_UNTIL(event, all_observed(APPLY_YES, 1), 1000));
	fake_stop(&bird);
	apply_look(apply, 0, 0); /* finds the end */
	apply_look(apply, 1, 0); /* cannot even be sent */
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->link == APPLY_LINK_AWAY, 1000));
	apply_want(apply, 1, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	fake_start(&bird);
	ck_assert(LOOP_UNTIL(event, settled() && !is_up(1), 2000));
}
END_TEST

/* No BIRD: the fragments tell what was found, and it is what BIRD does when it comes. */
START_TEST (test_away_then_back) {
	begin(2);
	apply_want(apply, 1, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, settled(), 1000));
	apply_free(apply);
	fake_stop(&bird);
	start_apply();
	ck_assert(!is_ready);
	ck_assert(LOOP_UNTIL(event, is_ready, 1500));
	ck_assert_int_eq(apply_found(apply, 0, 0), PREFIX_WANTED_ANNOUNCE);
	ck_assert_int_eq(apply_found(apply, 1, 0), PREFIX_WANTED_WITHDRAW);
	ck_assert_int_eq(apply_status(apply)->link, APPLY_LINK_AWAY);
	ck_assert_int_eq(apply_observed(apply, 0, 0)->announced, APPLY_UNKNOWN);
	apply_want(apply, 0, 0, PREFIX_WANTED_WITHDRAW); /* dies while BIRD is away */
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, strstr(fragment_of("s0"), "disabled;"), 100));
	fake_start(&bird);
	ck_assert(LOOP_UNTIL(event, settled(), 1000));
	ck_assert(!is_up(0));
	ck_assert(all_observed(APPLY_NO, 0) || LOOP_UNTIL(event, all_observed(APPLY_NO, 0), 500));
}
END_TEST

/* Taken over from a killed agent: what is true is not said again, nor written. */
START_TEST (test_adoption) {
	unsigned told;

	begin(2);
	apply_want(apply, 1, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, settled(), 1000));
	apply_free(apply); /* leaves everything as a killed one does */
	told = bird.n_configure + bird.n_disable + bird.n_enable;
	start_apply();
	ck_assert(LOOP_UNTIL(event, is_ready, 900));
	ck_assert_int_eq(apply_found(apply, 0, 0), PREFIX_WANTED_ANNOUNCE);
	ck_assert_int_eq(apply_found(apply, 1, 0), PREFIX_WANTED_WITHDRAW);
	apply_want(apply, 0, 0, PREFIX_WANTED_ANNOUNCE);
	apply_want(apply, 1, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, settled(), 1000));
	LOOP_FOR(event, 200);
	ck_assert_uint_eq(bird.n_configure + bird.n_disable + bird.n_enable, told);
	ck_assert_uint_eq(apply_status(apply)->commands_sent, 0);
}
END_TEST

/* Taken over from an agent whose last `disable` BIRD has never read (it was busy): the fragment
 * says what that one wanted, so what BIRD still announces was not found well. */
START_TEST (test_adoption_of_a_lost_withdrawal) {
	begin(2);
	bird.mute = true;
	apply_want(apply, 1, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	apply_free(apply);
	LOOP_FOR(event, 20); /* it throws the command away */
	bird.mute = false;
	ck_assert(is_up(1));
	start_apply();
	ck_assert(LOOP_UNTIL(event, is_ready, 900));
	ck_assert_int_eq(apply_found(apply, 0, 0), PREFIX_WANTED_ANNOUNCE);
	ck_assert_int_eq(apply_found(apply, 1, 0), PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, !is_up(1), 500));
	ck_assert(is_up(0));
}
END_TEST

/* What nobody configures any more: disabled, its fragment removed, forgotten by one configure. */
START_TEST (test_orphan) {
	unsigned before;

	begin(3);
	apply_free(apply);
	before = bird.n_configure;
	config.n_services = 2;
	start_apply();
	ck_assert(LOOP_UNTIL(event, is_ready, 900));
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, settled(), 1000));
	ck_assert_uint_eq(bird.running.n, 2);
	ck_assert_str_eq(fragment_of("s2"), "");
	ck_assert_uint_eq(bird.n_configure, before + 1);
	ck_assert(is_up(0) && is_up(1));
}
END_TEST

/* A service with another name and the same prefix, over a restart of the agent: no flap. */
START_TEST (test_renamed_over_restart) {
	begin(1);
	apply_free(apply);
	(void)snprintf(names[0], sizeof(names[0]), "other");
	bird.n_disable = 0;
	start_apply();
	ck_assert(LOOP_UNTIL(event, is_ready, 900));
	ck_assert_int_eq(apply_found(apply, 0, 0), PREFIX_WANTED_ANNOUNCE);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, settled(), 1000));
	ck_assert_uint_eq(bird.n_disable, 0);
	ck_assert_uint_eq(bird.running.n, 1);
	ck_assert(is_up(0));
}
END_TEST

/* Another name, which BIRD refuses to learn, and then to be demoted: what is announced under the
 * old one is the last resort alone. */
START_TEST (test_renamed_then_demoted) {
	const struct fake_protocol *own, *last;

	make_config(1);
	prefixes[0][0].last_resort = true;
	fake_start(&bird);
	start_apply();
	ck_assert(LOOP_UNTIL(event, is_ready, 2000));
	want_all(PREFIX_WANTED_ANNOUNCE);
	ck_assert(LOOP_UNTIL(event, settled() && is_up(0), 3000));
	own = fake_find(&bird.running, "redshank:s0:192.0.2.1");
	last = fake_find(&bird.running, "redshank:s0:192.0.2.1:last");
	bird.refuse = "/etc/bird/bird.conf:7:3 syntax error, unexpected '}'";
	(void)snprintf(names[0], sizeof(names[0]), "other");
	ck_assert_int_eq(apply_configure(apply, &config), 0);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->alarm[0], 1000));
	ck_assert(own->up && last->up);
	want_all(PREFIX_WANTED_DEMOTE);
	ck_assert(LOOP_UNTIL(event, !own->up, 500));
	LOOP_FOR(event, 100);
	ck_assert(last->up);
	want_all(PREFIX_WANTED_WITHDRAW);
	ck_assert(LOOP_UNTIL(event, !last->up, 500));
}
END_TEST

/* A service that gets another name twice, the second time while BIRD is at the configure of the
 * first: the protocol that this one brings is not wanted by any name, and holds what is wanted. */
START_TEST (test_renamed_twice) {
	begin_many();
	bird.busy_ms = 300;
	bird.n_configure = 0;
	(void)snprintf(names[0], sizeof(names[0]), "first");
	ck_assert_int_eq(apply_configure(apply, &config), 0);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, bird.n_configure == 1 && many_are_up("first"), 2000));
	(void)snprintf(names[0], sizeof(names[0]), "second");
	ck_assert_int_eq(apply_configure(apply, &config), 0);
	apply_flush(apply);
	apply_observe(apply); /* as on a tick */
	ck_assert(LOOP_UNTIL(event,
		many_are_up("second") || !(many_are_up("first") || many_are_up("s0")), 5000));
	ck_assert(many_are_up("second"));
	ck_assert(LOOP_UNTIL(event, settled(), 3000));
	ck_assert_uint_eq(bird.n_disable, 0);
	ck_assert_uint_eq(bird.running.n, 1);
}
END_TEST

/* BIRD stops answering: the connection is given up within its deadline, and comes back. */
START_TEST (test_mute) {
	begin(1);
	bird.mute = true;
	apply_want(apply, 0, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->link == APPLY_LINK_AWAY, 3000));
	ck_assert_int_eq(apply_observed(apply, 0, 0)->announced, APPLY_UNKNOWN);
	bird.mute = false;
	ck_assert(LOOP_UNTIL(event, !is_up(0), 4000));
	ck_assert(LOOP_UNTIL(event, settled(), 1000));
}
END_TEST

START_TEST (test_garbage) {
	begin(1);
	bird.garbage = true;
	apply_want(apply, 0, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->link != APPLY_LINK_UP, 1000));
	bird.garbage = false;
	ck_assert(LOOP_UNTIL(event, settled() && !is_up(0), 3000));
}
END_TEST

/* BIRD starts anew, with the fragments as they are: nothing to mend, and it is read again. */
START_TEST (test_restart) {
	begin(2);
	fake_stop(&bird);
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->link == APPLY_LINK_AWAY, 500));
	ck_assert_int_eq(apply_observed(apply, 0, 0)->exported, -1);
	fake_start(&bird);
	ck_assert(LOOP_UNTIL(event, settled() && all_observed(APPLY_YES, 1), 1000));
	ck_assert_uint_eq(apply_status(apply)->repairs, 0);
}
END_TEST

/* ---- somebody else ---- */

START_TEST (test_drift) {
	begin(2);
	bird.running.protocols[0].up = false; /* by hand, with a push */
	bird.running.protocols[1].up = false;
	fake_push(&bird, "Disabling protocol somebody's");
	ck_assert(LOOP_UNTIL(event, is_up(0) && is_up(1), 500));
	ck_assert_uint_eq(apply_status(apply)->repairs, 2);
	LOOP_FOR(event, 20);
	bird.running.protocols[0].up = false; /* by hand, without: the slow timer */
	ck_assert(LOOP_UNTIL(event, is_up(0) || is_up(1), 1500));
}
END_TEST

/* What is read shows the route gone before anybody told that its protocol is: that is no other
 * body, for which `configure` would be the wrong answer. */
START_TEST (test_drift_that_a_read_finds_first) {
	unsigned n_configure, n_enable;

	begin(1);
	n_configure = bird.n_configure;
	n_enable = bird.n_enable;
	bird.running.protocols[0].up = false;
	apply_look(apply, 0, 0);
	ck_assert(LOOP_UNTIL(event, is_up(0) && settled(), 500));
	ck_assert_uint_eq(bird.n_configure, n_configure);
	ck_assert_uint_eq(bird.n_enable, n_enable + 1);
	ck_assert_uint_eq(apply_status(apply)->repairs, 1);
}
END_TEST

/* Somebody undoes it as often as we mend: no flood, and a new withdrawal waits for nothing. */
START_TEST (test_fight) {
	struct monotime end = monotime_add_ms(clock_monotime(), 1500);
	unsigned before;

	begin(2);
	before = bird.n_enable;
	while (!monotime_reached(end, clock_monotime())) {
		for (size_t i = 0; i < bird.running.n; i++)
			if (strstr(bird.running.protocols[i].name, ":s0:"))
				bird.running.protocols[i].up = false;
		fake_push(&bird, "Disabling protocol by a madman");
		LOOP_FOR(event, 5);
	}
	ck_assert_uint_le(bird.n_enable - before, 8);
	apply_want(apply, 1, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, !is_up(1), 100));
}
END_TEST

START_TEST (test_elsewhere) {
	begin(1);
	bird.other_exported = "direct1";
	apply_want(apply, 0, 0, PREFIX_WANTED_WITHDRAW);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(
		event, strcmp(apply_observed(apply, 0, 0)->elsewhere, "direct1") == 0, 1000));
	ck_assert_int_eq(apply_observed(apply, 0, 0)->announced, APPLY_NO);
	ck_assert_int_eq(apply_observed(apply, 0, 0)->exported, 0);
	bird.other_exported = NULL;
	bird.other_preferred = "direct1";
	apply_want(apply, 0, 0, PREFIX_WANTED_ANNOUNCE);
	apply_flush(apply);
	ck_assert(LOOP_UNTIL(event, settled(), 1000));
	/* Ours is up and not the best. */
	ck_assert(LOOP_UNTIL(event,
		apply_observed(apply, 0, 0)->announced == APPLY_NO &&
			strcmp(apply_observed(apply, 0, 0)->elsewhere, "direct1") == 0,
		1000));
}
END_TEST

/* Other servers' routes, by their next hops: read anew, they are those of now. */
START_TEST (test_routes_of_others) {
	struct address other, nobody;

	ck_assert_int_eq(address_parse("192.0.2.2", &other, NULL), 0);
	ck_assert_int_eq(address_parse("192.0.2.3", &nobody, NULL), 0);
	begin(1);
	ck_assert_int_eq(apply_route_from(apply, 0, 0, &other), APPLY_NO);
	bird.next_hop = "192.0.2.2";
	apply_look(apply, 0, 0);
	ck_assert(LOOP_UNTIL(event, apply_route_from(apply, 0, 0, &other) == APPLY_YES, 1000));
	ck_assert_int_eq(apply_route_from(apply, 0, 0, &nobody), APPLY_NO);
	bird.next_hop = NULL;
	apply_look(apply, 0, 0);
	ck_assert(LOOP_UNTIL(event, apply_route_from(apply, 0, 0, &other) == APPLY_NO, 1000));
	ck_assert_int_eq(apply_observed(apply, 0, 0)->announced, APPLY_YES);
}
END_TEST

/* The fragment is changed and deleted by somebody: ours again, counted; BIRD is told nothing. */
START_TEST (test_fragment_repaired) {
	char good[8192];
	unsigned told;

	begin(1);
	(void)snprintf(good, sizeof(good), "%s", fragment_of("s0"));
	told = bird.n_configure + bird.n_disable + bird.n_enable;
	write_fragment("s0", "protocol static 'redshank:s0:192.0.2.1' {\n");
	ck_assert(LOOP_UNTIL(event, strcmp(fragment_of("s0"), good) == 0, 500));
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->fragments_repaired == 1, 500));
	LOOP_FOR(event, 100);
	ck_assert_uint_eq(apply_status(apply)->fragments_repaired, 1);
	ck_assert_uint_eq(bird.n_configure + bird.n_disable + bird.n_enable, told);
}
END_TEST

/* ---- a bird.conf that BIRD would refuse, while nobody needs it ---- */

/* What is under way behind `begin` is over: from here on, nothing but the trigger checks. */
static void check_long_ago(void)
{
	apply->check_at = MONOTIME_NEVER;
	apply->check_last = MONOTIME_ZERO;
	apply->configure_sent = clock_monotime();
	bird.n_check = 0;
}

static void refuse(const char *file)
{
	static char text[400];

	(void)snprintf(
		text, sizeof(text), "%s:1:1 syntax error, unexpected CF_SYM_UNDEFINED", file);
	bird.refuse = text;
}

static bool has_alarm(const char *words)
{
	return strstr(apply_status(apply)->alarm, words) != NULL;
}

/* Somebody's file in our folder: looked at within two seconds, gone with its cure; not each time.
 */
START_TEST (test_check_follows_a_strange_file) {
	char path[300];

	begin(1);
	check_long_ago();
	(void)snprintf(path, sizeof(path), "%s/zz-mine.conf", folder);
	refuse(path);
	write_fragment("zz-mine", "oops\n");
	ck_assert(LOOP_UNTIL(event, has_alarm("in our folder, but not a file of ours"), 2000));
	ck_assert_uint_eq(bird.n_check, 1);
	bird.refuse = NULL;
	write_fragment("zz-mine", "# mended\n");
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->alarm[0] == '\0', 2000));
	ck_assert_uint_eq(bird.n_configure, 1);
	bird.n_check = 0;
	for (unsigned i = 0; i < 15; i++) {
		write_fragment("zz-mine", "# and again\n");
		LOOP_FOR(event, 100);
	}
	ck_assert_uint_eq(bird.n_check, 0);
	/* Ten seconds after the last one it is. */
	ck_assert(!monotime_is_never(apply->check_at));
	ck_assert_uint_gt(apply->check_at.us, clock_monotime().us + 5000000);
	/* What bird.conf does not include is nobody's business. */
	check_long_ago();
	write_fragment(".zz-mine", "oops\n");
	(void)snprintf(path, sizeof(path), "%s/zz-mine.conf~", folder);
	fclose(fopen(path, "we"));
	LOOP_FOR(event, 50);
	ck_assert(monotime_is_never(apply->check_at));
}
END_TEST

START_TEST (test_check_follows_a_sighup) {
	begin(1);
	check_long_ago();
	refuse("/etc/bird/bird.conf");
	fake_push(&bird, "Reconfiguration requested by SIGHUP");
	ck_assert(LOOP_UNTIL(event, has_alarm("/etc/bird/bird.conf:1:1"), 2000));
	ck_assert_uint_eq(bird.n_check, 1);
}
END_TEST

/* Nothing happens at all; and where a check is dear, nothing does indeed. */
START_TEST (test_check_on_a_slow_timer) {
	begin(1);
	check_long_ago();
	refuse("/etc/bird/bird.conf");
	LOOP_FOR(event, 2500);
	ck_assert_uint_eq(bird.n_check, 0);
	apply->configure_took_ms = APPLY_CHECK_COST_MS + 1;
	apply->configure_sent.us -= APPLY_CHECK_SLOWLY_MS * 1000ULL;
	LOOP_FOR(event, 2500);
	ck_assert_uint_eq(bird.n_check, 0);
	apply->configure_took_ms = APPLY_CHECK_COST_MS;
	ck_assert(LOOP_UNTIL(event, has_alarm("/etc/bird/bird.conf:1:1"), 3000));
	ck_assert_uint_eq(bird.n_check, 1);
	bird.refuse = NULL;
	ck_assert(LOOP_UNTIL(event, apply_status(apply)->alarm[0] == '\0', 3000));
	ck_assert_uint_eq(bird.n_configure, 1);
}
END_TEST

/* An agent that finds all as it is to be sends no configure; it looks all the same. */
START_TEST (test_check_after_a_start) {
	begin(1);
	apply_free(apply);
	apply = NULL;
	bird.n_configure = 0;
	refuse("/etc/bird/bird.conf");
	start_apply();
	ck_assert(LOOP_UNTIL(event, is_ready, 2000));
	want_all(PREFIX_WANTED_ANNOUNCE);
	ck_assert(LOOP_UNTIL(event, has_alarm("/etc/bird/bird.conf:1:1"), 4000));
	ck_assert_uint_eq(bird.n_configure, 0);
	ck_assert(is_up(0));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bird/apply");
	TCase *tc = tcase_create("apply");
	SRunner *runner;
	int failed;

	log_init(getenv("REDSHANK_TEST_LOG") ? LOG_DEBUG : LOG_EMERG, true);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, test_first_start);
	tcase_add_test(tc, test_health_is_no_configure);
	tcase_add_test(tc, test_flip_in_flight);
	tcase_add_test(tc, test_same_configuration);
	tcase_add_test(tc, test_many_changes_two_configures);
	tcase_add_test(tc, test_in_progress_is_not_settled);
	tcase_add_test(tc, test_queued_configure_resurrects);
	tcase_add_test(tc, test_death_behind_configure);
	tcase_add_loop_test(tc, test_death_of_what_comes, 0, 2);
	tcase_add_test(tc, test_refused_not_ours);
	tcase_add_test(tc, test_refused_part_of_many);
	tcase_add_test(tc, test_trial_of_somebody);
	tcase_add_test(tc, test_refused_ours);
	tcase_add_test(tc, test_put_back_is_not_the_end);
	tcase_add_test(tc, test_bird_1_is_refused);
	tcase_add_test(tc, test_written_to_after_the_end);
	tcase_add_test(tc, test_away_then_back);
	tcase_add_test(tc, test_adoption);
	tcase_add_test(tc, test_adoption_of_a_lost_withdrawal);
	tcase_add_test(tc, test_orphan);
	tcase_add_test(tc, test_renamed_over_restart);
	tcase_add_test(tc, test_renamed_then_demoted);
	tcase_add_test(tc, test_renamed_twice);
	tcase_add_test(tc, test_mute);
	tcase_add_test(tc, test_garbage);
	tcase_add_test(tc, test_restart);
	tcase_add_test(tc, test_drift);
	tcase_add_test(tc, test_drift_that_a_read_finds_first);
	tcase_add_test(tc, test_fight);
	tcase_add_test(tc, test_elsewhere);
	tcase_add_test(tc, test_routes_of_others);
	tcase_add_test(tc, test_fragment_repaired);
	tcase_add_test(tc, test_check_follows_a_strange_file);
	tcase_add_test(tc, test_check_follows_a_sighup);
	tcase_add_test(tc, test_check_on_a_slow_timer);
	tcase_add_test(tc, test_check_after_a_start);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
