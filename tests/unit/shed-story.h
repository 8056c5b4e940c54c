#ifndef REDSHANK_TESTS_SHED_STORY_H
#define REDSHANK_TESTS_SHED_STORY_H
/*
 * Stories about shedding: one server, four neighbours that report and answer as the story says, and
 * time in steps of half a second. begin() and end() are a story's fixture; pass() lets time pass.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/shed.h"

#define PREFIXES 5
#define NEIGHBOURS 4
#define CAPACITY 100000
#define STEP_MS 500

static const char *const neighbour_names[NEIGHBOURS] = {"b", "c", "d", "e"};
static const char *const prefix_names[PREFIXES] = {
	"192.0.2.1/32", "192.0.2.2/32", "192.0.2.3/32", "192.0.2.4/32", "192.0.2.5/32"};

/* What the story says of a neighbour. */
struct teller {
	bool silent; /* sends no reports */
	bool deaf;   /* answers no calls */
	bool invalid, unwilling;
	enum shed_refusal refuses;
	uint64_t load, spare;
	uint32_t want;
	enum shed_state state[PREFIXES];
	uint16_t weight[PREFIXES];
	unsigned n_posts, n_deletes;
	uint64_t last_share;
};

static struct shed *shed;
static struct shed_settings settings;
static struct teller tellers[NEIGHBOURS];
static struct monotime now, reported;
static uint64_t load, prefix_load[PREFIXES];
static bool load_follows; /* own load falls and rises with what is out */
static bool sick[PREFIXES], held[PREFIXES], leaving[PREFIXES], was_out[PREFIXES];
static bool uncounted;
static size_t refused_prefix; /* that all refuse; SIZE_MAX: none */
static unsigned prefix_floor;
static bool floor_health;

static inline void configure(void)
{
	struct shed_prefix_config prefixes[PREFIXES];

	for (size_t v = 0; v < PREFIXES; v++)
		prefixes[v] = (struct shed_prefix_config){
			prefix_names[v], 100, prefix_floor, floor_health};
	ck_assert_int_eq(shed_configure(shed,
				 &(struct shed_config){"a", settings, prefixes, PREFIXES,
					 neighbour_names, NEIGHBOURS},
				 now),
		0);
}

static inline void begin(void)
{
	settings = shed_settings_default();
	settings.enabled = true;
	memset(tellers, 0, sizeof(tellers));
	memset(sick, 0, sizeof(sick));
	memset(held, 0, sizeof(held));
	memset(leaving, 0, sizeof(leaving));
	memset(was_out, 0, sizeof(was_out));
	now = (struct monotime){1000000000};
	reported = MONOTIME_ZERO;
	prefix_floor = 2;
	floor_health = false;
	uncounted = false;
	refused_prefix = SIZE_MAX;
	load_follows = true;
	load = 60000;
	for (size_t v = 0; v < PREFIXES; v++)
		prefix_load[v] = 4000 + 2000 * v;
	for (size_t j = 0; j < NEIGHBOURS; j++) {
		tellers[j].load = 50000;
		tellers[j].spare = 32000;
		for (size_t v = 0; v < PREFIXES; v++) {
			tellers[j].state[v] = SHED_STATE_HEALTHY;
			tellers[j].weight[v] = 100;
		}
	}
	shed = shed_new(MONOTIME_ZERO);
	ck_assert_ptr_nonnull(shed);
	configure();
}

static inline void end(void)
{
	shed_free(shed);
	shed = NULL;
}

static inline bool is_out(size_t v)
{
	struct shed_prefix p;

	shed_prefix(shed, v, &p, now);
	return p.out;
}

static inline unsigned n_out(void)
{
	unsigned n = 0;

	for (size_t v = 0; v < PREFIXES; v++)
		n += is_out(v);
	return n;
}

static inline enum shed_why why(size_t v)
{
	struct shed_prefix p;

	shed_prefix(shed, v, &p, now);
	return p.why;
}

static inline enum shed_why last(size_t v)
{
	struct shed_prefix p;

	shed_prefix(shed, v, &p, now);
	return p.last;
}

static inline enum shed_why server_why(void)
{
	struct shed_server s;

	shed_server(shed, &s, now);
	return s.why;
}

static inline void tell_reports(void)
{
	struct shed_report_prefix prefixes[PREFIXES];

	for (size_t j = 0; j < NEIGHBOURS; j++) {
		for (size_t v = 0; v < PREFIXES; v++)
			prefixes[v] = (struct shed_report_prefix){
				tellers[j].weight[v], 500, (uint8_t)tellers[j].state[v]};
		if (!tellers[j].silent)
			shed_report(shed, j,
				&(struct shed_report){
					.boot = 1,
					.valid = !tellers[j].invalid,
					.capacity = CAPACITY,
					.load = tellers[j].load,
					.spare = tellers[j].spare,
					.willing = !tellers[j].unwilling,
					.want = tellers[j].want,
					.prefixes = prefixes,
				},
				now, now);
	}
}

static inline void tell_own(void)
{
	shed_own(shed, &(struct shed_own){true, CAPACITY, load}, now);
	for (size_t v = 0; v < PREFIXES; v++)
		shed_prefix_facts(shed, v,
			&(struct shed_prefix_facts){
				.announced = !is_out(v),
				.healthy = !sick[v],
				.leaving = leaving[v],
				.held = held[v],
				.counted = !uncounted,
				.load = is_out(v) ? 0 : prefix_load[v],
			});
}

static inline void answer_calls(void)
{
	struct shed_call call;

	while (shed_next_call(shed, &call, now)) {
		struct teller *t = &tellers[call.neighbour];
		struct shed_answer answer = {t->refuses, 10000};

		t->n_posts += !call.give_back;
		t->n_deletes += call.give_back;
		if (call.give_back || t->deaf)
			continue;
		if (call.prefix == refused_prefix)
			answer.refused = SHED_REFUSAL_SHEDDING;
		t->last_share = call.share;
		shed_answered(shed, &call, &answer, now);
	}
}

static inline void follow_load(void)
{
	for (size_t v = 0; v < PREFIXES; v++) {
		bool out = is_out(v);

		if (load_follows && out != was_out[v])
			load += out ? -prefix_load[v] : prefix_load[v];
		was_out[v] = out;
	}
}

static inline void decide(void)
{
	tell_own();
	shed_decide(shed, now, 0);
	follow_load();
	answer_calls();
}

static inline void pass(uint64_t ms)
{
	for (; ms >= STEP_MS; ms -= STEP_MS) {
		now = monotime_add_ms(now, STEP_MS);
		tell_reports();
		decide();
	}
}

/* Hot, and one prefix out. */
static inline size_t until_out(void)
{
	load = 90000;
	for (int i = 0; i < 60 && n_out() == 0; i++)
		pass(STEP_MS);
	for (size_t v = 0; v < PREFIXES; v++) {
		if (is_out(v))
			return v;
	}
	ck_abort_msg("nothing was shed: %s", shed_why_name(server_why()));
	return 0;
}

static inline void expect_no_shed(enum shed_why expected)
{
	load = 90000;
	pass(15000);
	ck_assert_uint_eq(n_out(), 0);
	ck_assert_str_eq(shed_why_name(server_why()), shed_why_name(expected));
}

static inline void set_floor(void)
{
	for (size_t j = 1; j < NEIGHBOURS; j++)
		tellers[j].state[0] = tellers[j].state[1] = tellers[j].state[2] =
			tellers[j].state[3] = tellers[j].state[4] = SHED_STATE_OUT;
}

#endif
