/*
 * Random stories of apply and a BIRD that somebody plays with (fake-bird.h): services come, go, are
 * renamed and exchange prefixes while configurations settle, are refused, queued or on trial, while
 * BIRD hangs, restarts and is changed by hand, and while the agent itself begins anew.
 *
 *   any       whatever happened, what is not wanted leaves, and in the end BIRD is as wanted
 *   no flap   nobody but us does anything, and what is wanted all the time is announced all the
 * time
 *
 * A failure names the story; REDSHANK_STORY=N tells that one alone, REDSHANK_STORIES=N so many.
 */
#include <check.h>

#include "agent/system/log.h"
#include "tests/scenario/splitmix.h"
#include "tests/unit/apply-site.h"

#define STORIES 12
#define STORY_SERVICES 5
#define STORY_PREFIXES 10
#define NOWHERE STORY_SERVICES

static const char refusal[] = "/etc/bird/bird.conf:7:3 syntax error";

/* What is configured and wanted of 192.0.2.(i + 1)/32. */
static struct {
	unsigned service; /* or NOWHERE */
	unsigned weight;
	bool last_resort;
	enum prefix_wanted wanted;
} wishes[STORY_PREFIXES];
static char service_names[STORY_SERVICES][NAMES_SERVICE_MAX + 1];

/* apply keeps the configuration that it has until it takes the next one. */
static struct story_config {
	struct config config;
	struct config_service services[STORY_SERVICES];
	struct config_prefix prefixes[STORY_SERVICES][STORY_PREFIXES];
	char names[STORY_SERVICES][NAMES_SERVICE_MAX + 1];
} configs[2], *now;

static uint64_t dice;
static unsigned renamed;
static bool away, hung;
static char wrong[200];

static unsigned pick(unsigned n)
{
	return (unsigned)(splitmix64(&dice) % n);
}

static struct prefix story_prefix(size_t i)
{
	return (struct prefix){
		.address = {.family = ADDRESS_FAMILY_IPV4, .bytes = {192, 0, 2, (uint8_t)(i + 1)}},
		.length = 32};
}

static void make_story_config(void)
{
	struct story_config *c = now == &configs[0] ? &configs[1] : &configs[0];

	memset(c, 0, sizeof(*c));
	c->config = (struct config){.services = c->services, .n_services = STORY_SERVICES};
	c->config.bird.socket = socket_path;
	c->config.bird.fragments = folder;
	c->config.bird.sessions = (struct schema_strings){.items = session_items, .n = 1};
	memcpy(c->names, service_names, sizeof(c->names));
	for (size_t s = 0; s < STORY_SERVICES; s++) {
		c->services[s].name = c->names[s];
		c->services[s].prefixes = c->prefixes[s];
	}
	for (size_t i = 0; i < STORY_PREFIXES; i++) {
		struct config_service *s;

		if (wishes[i].service == NOWHERE)
			continue;
		s = &c->services[wishes[i].service];
		s->prefixes[s->n_prefixes++] = (struct config_prefix){.prefix = story_prefix(i),
			.announced_weight = wishes[i].weight,
			.last_resort = wishes[i].last_resort};
	}
	now = c;
}

static void want(void)
{
	for (size_t s = 0; s < STORY_SERVICES; s++)
		for (size_t i = 0; i < now->services[s].n_prefixes; i++) {
			const struct config_prefix *p = &now->services[s].prefixes[i];

			apply_want(apply, s, i, wishes[p->prefix.address.bytes[3] - 1].wanted);
		}
	apply_flush(apply);
}

static void reload(void)
{
	make_story_config();
	ck_assert_int_eq(apply_configure(apply, &now->config), 0);
	want();
}

static void start_agent(void)
{
	const struct apply_ops ops = {.ready = on_ready, .changed = on_changed};

	make_story_config();
	is_ready = false;
	ck_assert_int_eq(apply_new(&apply, event, &now->config.bird, &ops), 0);
	ck_assert_int_eq(apply_configure(apply, &now->config), 0);
	ck_assert_int_eq(apply_start(apply), 0);
	ck_assert(LOOP_UNTIL(event, is_ready, 2000));
	want();
}

/* ---- what must be true ---- */

/* By a protocol that has it at its weight, or by a last resort. */
static bool is_announced(size_t i, bool last)
{
	struct prefix p = story_prefix(i);
	char text[PREFIX_TEXT_MAX];

	(void)prefix_format(&p, text);
	for (size_t k = 0; k < bird.running.n; k++)
		if (bird.running.protocols[k].up && fake_holds(&bird.running.protocols[k], text) &&
			bird.running.protocols[k].graceful == last)
			return true;
	return false;
}

static bool nothing_unwanted(void)
{
	for (size_t i = 0; i < STORY_PREFIXES; i++)
		if ((is_announced(i, false) && wishes[i].wanted < PREFIX_WANTED_ANNOUNCE) ||
			(is_announced(i, true) && wishes[i].wanted < PREFIX_WANTED_DEMOTE)) {
			(void)snprintf(wrong, sizeof(wrong), "192.0.2.%zu is announced, wanted %s",
				i + 1, prefix_wanted_name(wishes[i].wanted));
			return false;
		}
	return true;
}

static bool everything_wanted(void)
{
	for (size_t i = 0; i < STORY_PREFIXES; i++)
		if (!is_announced(i, false) && (wishes[i].wanted == PREFIX_WANTED_ANNOUNCE ||
						       (wishes[i].wanted == PREFIX_WANTED_DEMOTE &&
							       !is_announced(i, true)))) {
			(void)snprintf(wrong, sizeof(wrong), "192.0.2.%zu is not announced", i + 1);
			return false;
		}
	return true;
}

static bool is_as_wanted(size_t i, bool last)
{
	enum prefix_wanted least = last ? PREFIX_WANTED_DEMOTE : PREFIX_WANTED_ANNOUNCE;
	struct prefix prefix = story_prefix(i);
	const struct fake_protocol *p;
	char name[NAMES_MAX];
	bool up = wishes[i].wanted >= least;

	p = fake_find(&bird.running,
		names_protocol(name, service_names[wishes[i].service], &prefix, last));
	(void)snprintf(wrong, sizeof(wrong), "%s is not as wanted", name);
	return p && p->up == up &&
	       (!up || p->weight == (last ? FRAGMENT_LAST_WEIGHT : wishes[i].weight));
}

static bool as_wanted(void)
{
	size_t n = 0;

	for (size_t i = 0; i < STORY_PREFIXES; i++) {
		if (wishes[i].service == NOWHERE)
			continue;
		n += wishes[i].last_resort ? 2 : 1;
		if (!is_as_wanted(i, false) || (wishes[i].last_resort && !is_as_wanted(i, true)))
			return false;
	}
	(void)snprintf(wrong, sizeof(wrong),
		"BIRD has %zu protocols instead of %zu, or has not come to rest", bird.running.n,
		n);
	return n == bird.running.n && settled();
}

/* ---- what happens ---- */

static void rename_service(void)
{
	(void)snprintf(service_names[pick(STORY_SERVICES)], sizeof(service_names[0]), "n%u",
		renamed++ % 40);
	reload();
}

static void swap_services(void)
{
	unsigned a = pick(STORY_SERVICES), b = pick(STORY_SERVICES);
	char name[sizeof(service_names[0])];

	memcpy(name, service_names[a], sizeof(name));
	memmove(service_names[a], service_names[b], sizeof(name));
	memcpy(service_names[b], name, sizeof(name));
	reload();
}

static void move_prefix(bool away_too)
{
	unsigned i = pick(STORY_PREFIXES);

	wishes[i].service = pick(STORY_SERVICES + (away_too ? 1 : 0));
	if (wishes[i].service == NOWHERE)
		wishes[i].wanted = PREFIX_WANTED_WITHDRAW;
	reload();
}

static void weigh(void)
{
	wishes[pick(STORY_PREFIXES)].weight = 100 + pick(5);
	reload();
}

static void somebody_configures(void)
{
	struct fake_configuration next;

	if (away)
		return;
	if (fake_is_busy(&bird)) {
		fake_queue(&bird);
		return;
	}
	fake_parse(&bird, &next);
	fake_load(&bird, &next);
	bird.generation += 10; /* later than two readings of one time differ */
	if (bird.busy_ms > 0)
		fake_be_busy(&bird, bird.busy_ms);
	fake_push(&bird, "Reconfiguring");
}

static void somebody_switches(void)
{
	struct fake_protocol *p;
	char text[NAMES_MAX + 40];

	if (away || bird.running.n == 0)
		return;
	p = &bird.running.protocols[pick((unsigned)bird.running.n)];
	p->up = !p->up;
	(void)snprintf(
		text, sizeof(text), "%s protocol %s", p->up ? "Enabling" : "Disabling", p->name);
	fake_push(&bird, text);
}

/* It reads nothing, and then all. */
static void hang(bool on)
{
	int enabled = on ? SD_EVENT_OFF : SD_EVENT_ON;

	hung = on;
	for (size_t i = 0; i < FAKE_CONNECTIONS; i++)
		if (bird.connections[i].fd >= 0)
			(void)sd_event_source_set_enabled(bird.connections[i].source, enabled);
	if (bird.source)
		(void)sd_event_source_set_enabled(bird.source, enabled);
}

static void come_and_go(void)
{
	hang(false);
	if (away) {
		fake_start(&bird);
		bird.life += 10;
	} else {
		fake_stop(&bird);
	}
	away = !away;
}

static void restart_agent(void)
{
	if (away || hung)
		return;
	apply_free(apply);
	start_agent();
}

/* Nothing is demoted without a last resort. */
static enum prefix_wanted may_be(size_t i, enum prefix_wanted wanted)
{
	return wanted == PREFIX_WANTED_DEMOTE && !wishes[i].last_resort ? PREFIX_WANTED_ANNOUNCE
									: wanted;
}

static void turn_health(void)
{
	unsigned i = pick(STORY_PREFIXES), service = pick(STORY_SERVICES);
	enum prefix_wanted wanted = (enum prefix_wanted)pick(3);
	bool whole = pick(2);

	for (size_t k = 0; k < STORY_PREFIXES; k++)
		if (wishes[k].service != NOWHERE && (whole ? wishes[k].service == service : k == i))
			wishes[k].wanted = may_be(k, wanted);
	want();
}

static void lose_fragment(void)
{
	char path[300];

	(void)snprintf(
		path, sizeof(path), "%s/%s.conf", folder, service_names[pick(STORY_SERVICES)]);
	(void)unlink(path);
}

/* Only what we do ourselves, but for `harmless`: what takes nothing out. */
static void happen_to_us(bool harmless)
{
	switch (pick(harmless ? 9 : 6)) {
	case 0:
		weigh();
		break;
	case 1:
	case 2:
		move_prefix(false);
		break;
	case 3:
		rename_service();
		break;
	case 4:
		swap_services();
		break;
	case 5:
		bird.busy_ms = pick(3) * 100ULL;
		break;
	case 6:
		if (!fake_is_busy(&bird)) /* a queued one was parsed before what we write now */
			somebody_configures();
		break;
	case 7:
		restart_agent();
		break;
	case 8:
		bird.refuse = bird.refuse ? NULL : refusal;
		break;
	}
}

static void happen(void)
{
	switch (pick(12)) {
	case 0:
	case 1:
	case 2:
		turn_health();
		break;
	case 3:
		move_prefix(true);
		break;
	case 4:
		come_and_go();
		break;
	case 5:
		somebody_switches();
		break;
	case 6:
		hang(pick(3) == 0);
		break;
	case 7:
		lose_fragment();
		break;
	case 8:
		bird.on_trial = !bird.on_trial;
		break;
	case 9:
		somebody_configures();
		break;
	case 10:
	case 11:
		happen_to_us(true);
		break;
	}
}

static void begin_story(int number)
{
	dice = (uint64_t)number;
	away = hung = false;
	for (size_t s = 0; s < STORY_SERVICES; s++)
		(void)snprintf(service_names[s], sizeof(service_names[s]), "s%zu", s);
	for (size_t i = 0; i < STORY_PREFIXES; i++) {
		wishes[i].service = pick(STORY_SERVICES);
		wishes[i].weight = 100;
		wishes[i].last_resort = pick(3) == 0;
		wishes[i].wanted = may_be(i, (enum prefix_wanted)pick(3));
	}
	fake_start(&bird);
	start_agent();
	ck_assert_msg(LOOP_UNTIL(event, as_wanted(), 1000), "the start: %s", wrong);
}

START_TEST (any) {
	begin_story(_i);
	for (unsigned n = 5 + pick(25); n > 0; n--) {
		happen();
		if (pick(3) > 0)
			LOOP_FOR(event, 1 + pick(pick(4) > 0 ? 10 : 200));
		if (pick(3) == 0 && !away && !hung) /* whatever BIRD refuses */
			ck_assert_msg(LOOP_UNTIL(event, nothing_unwanted(), 2000), "story %d: %s",
				_i, wrong);
	}
	bird.refuse = NULL;
	bird.busy_ms = 0;
	bird.on_trial = false;
	hang(false);
	if (away)
		come_and_go();
	ck_assert_msg(LOOP_UNTIL(event, nothing_unwanted(), 2000), "story %d: %s", _i, wrong);
	ck_assert_msg(LOOP_UNTIL(event, as_wanted(), 4000), "story %d: %s", _i, wrong);
}
END_TEST

START_TEST (no_flap) {
	begin_story(_i);
	for (unsigned n = 5 + pick(25); n > 0; n--) {
		happen_to_us(_i % 2);
		if (pick(4) > 0)
			ck_assert_msg(!LOOP_WITHIN(event, !everything_wanted(),
					      1 + pick(pick(4) > 0 ? 10 : 250)),
				"story %d: %s", _i, wrong);
		ck_assert_msg(everything_wanted(), "story %d: %s", _i, wrong);
	}
	bird.refuse = NULL;
	bird.busy_ms = 0;
	ck_assert(LOOP_UNTIL(event, as_wanted() || !everything_wanted(), 4000));
	ck_assert_msg(everything_wanted() && as_wanted(), "story %d: %s", _i, wrong);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bird/random");
	TCase *tc = tcase_create("random");
	const char *only = getenv("REDSHANK_STORY"), *many = getenv("REDSHANK_STORIES");
	int first = only ? atoi(only) : 0, end = only ? first + 1 : many ? atoi(many) : STORIES;
	SRunner *runner;
	int failed;

	log_init(getenv("REDSHANK_TEST_LOG") ? LOG_DEBUG : LOG_EMERG, true);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, any, first, end);
	tcase_add_loop_test(tc, no_flap, first, end);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
