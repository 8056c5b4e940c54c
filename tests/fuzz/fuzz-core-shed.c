/*
 * libFuzzer target of core/shed: one server's shedding, told whatever facts the input makes, in any
 * order and at any time; neighbours that lie are among them.
 *
 * Besides what the sanitizers see, after each decision (docs/invariants.md): S4, no prefix that was
 * promised to a neighbour is out; S5, nothing is out or promised by a server that has just started;
 * S6, what is out has `floor` live promises; S15, never all of its prefixes;
 * and what it would report is within its bounds. With FUZZ_TRACE in the environment it says when
 * something is out.
 */
#include <stdio.h>

#include "agent/core/shed.h"
#include "tests/fuzz/fuzz.h"

#define PREFIXES 4
#define NEIGHBOURS 4
#define FLOOR 2
#define CALLS 16

struct world {
	const uint8_t *data;
	size_t left;
	struct shed *shed;
	struct monotime started, now;
	struct shed_prefix_facts facts[PREFIXES];
	struct shed_call calls[CALLS];
	size_t n_calls;
	struct shed_settings settings;
};

static unsigned pick(struct world *w, unsigned n)
{
	if (w->left == 0)
		return 0;
	w->left--;
	return *w->data++ % n;
}

static void configure(struct world *w)
{
	static const char *const neighbours[NEIGHBOURS] = {"b", "c", "d", "e"};
	static const char *const names[PREFIXES] = {
		"192.0.2.1/32", "192.0.2.2/32", "192.0.2.3/32", "2001:db8::1/128"};
	struct shed_prefix_config prefixes[PREFIXES];
	struct shed_config config = {.node = "a",
		.settings = w->settings,
		.prefixes = prefixes,
		.n_prefixes = PREFIXES,
		.neighbours = neighbours,
		.n_neighbours = NEIGHBOURS};

	for (size_t i = 0; i < PREFIXES; i++)
		prefixes[i] = (struct shed_prefix_config){names[i], 100, FLOOR, i % 2};
	assert(shed_configure(w->shed, &config, w->now) == 0);
}

static void tell_prefix(struct world *w)
{
	size_t i = pick(w, PREFIXES);
	unsigned bits = pick(w, 256);

	w->facts[i] = (struct shed_prefix_facts){.announced = !(bits & 1),
		.healthy = !(bits & 2),
		.leaving = (bits & 12) == 12,
		.held = (bits & 48) == 48,
		.counted = (bits & 64) == 0,
		.load = pick(w, 256) * 10ULL};
	shed_prefix_facts(w->shed, i, &w->facts[i]);
}

static void tell_report(struct world *w)
{
	struct shed_report_prefix prefixes[PREFIXES];
	struct shed_report report = {.boot = 1 + (pick(w, 16) == 0),
		.valid = pick(w, 8) != 0,
		.capacity = 1000,
		.load = pick(w, 256) * 5ULL,
		.willing = pick(w, 4) != 0,
		.want = pick(w, 4),
		.prefixes = prefixes};

	report.spare = report.willing ? pick(w, 256) * 4ULL : 0;
	for (size_t i = 0; i < PREFIXES; i++)
		prefixes[i] = (struct shed_report_prefix){
			100, (uint16_t)(pick(w, 256) * 10), (uint8_t)(2 - pick(w, 16) % 3)};
	shed_report(w->shed, pick(w, NEIGHBOURS), &report, w->now, w->now);
}

/* The end of the first lease after the start. */
static struct monotime quiet(const struct world *w)
{
	return monotime_add_ms(w->started, w->settings.lease_ms);
}

static void tell_request(struct world *w)
{
	const struct shed_request request = {.neighbour = pick(w, NEIGHBOURS),
		.boot = 1 + (pick(w, 16) == 0),
		.prefix = pick(w, PREFIXES),
		.share = pick(w, 256),
		.purpose = (enum shed_purpose)pick(w, 2),
		.request = 1 + pick(w, 8)};
	struct shed_answer answer;

	if (pick(w, 4) == 0) {
		shed_give_back(w->shed, &request, w->now);
		return;
	}
	answer = shed_grant(w->shed, &request, w->now);
	assert((answer.refused == SHED_REFUSAL_NONE) == (answer.lease_ms > 0));
	/* What a former life has promised is not known: room is given only when that is over. */
	assert(answer.lease_ms == 0 || request.share == 0 || monotime_reached(quiet(w), w->now));
}

static void tell_answer(struct world *w)
{
	unsigned refused = pick(w, 4) == 0 ? 1 + pick(w, SHED_REFUSAL_COUNT - 1) : 0;
	const struct shed_answer answer = {
		(enum shed_refusal)refused, refused ? 0 : w->settings.lease_ms};

	if (w->n_calls == 0)
		return;
	w->n_calls--;
	shed_answered(w->shed, &w->calls[w->n_calls], &answer, w->now);
}

static void tell_own(struct world *w)
{
	const struct shed_own own = {pick(w, 16) != 0, 1000, pick(w, 256) * 6ULL};

	shed_own(w->shed, &own, w->now);
}

static void check(struct world *w)
{
	struct shed_server server;
	size_t n_out = 0;

	for (size_t i = 0; i < PREFIXES; i++) {
		struct shed_prefix p;

		shed_prefix(w->shed, i, &p, w->now);
		n_out += p.out;
		assert(!p.out || p.n_owed == 0);		      /* S4 */
		assert(!p.out || p.n_promised >= FLOOR);	      /* S6 */
		assert(!p.out || monotime_reached(quiet(w), w->now)); /* S5 */
		assert(shed_why_name(p.why)[0] && shed_why_name(p.last)[0]);
	}
	assert(n_out < PREFIXES); /* S15 */
	if (n_out > 0 && getenv("FUZZ_TRACE"))
		(void)fprintf(stderr, "%zu out at %llu us\n", n_out, (unsigned long long)w->now.us);
	shed_server(w->shed, &server, w->now);
	assert(server.n_out == n_out && server.spare <= 1000);
	assert(server.n_fresh <= NEIGHBOURS && server.n_hot <= NEIGHBOURS + 1);
}

static void decide(struct world *w)
{
	struct shed_call call;

	(void)shed_decide(w->shed, w->now, pick(w, 256));
	while (shed_next_call(w->shed, &call, w->now)) {
		assert(call.neighbour < NEIGHBOURS && call.prefix < PREFIXES);
		if (!call.give_back && w->n_calls < CALLS)
			w->calls[w->n_calls++] = call;
	}
	check(w);
}

static void pass_time(struct world *w)
{
	static const uint64_t spans_ms[] = {0, 1, 100, 900, 1000, 3000, 10000, 60000};
	struct monotime deadline = shed_deadline(w->shed);
	unsigned how = pick(w, 16);

	if (how >= ELEMENTSOF(spans_ms)) {
		if (!monotime_is_never(deadline) && monotime_reached(w->now, deadline))
			w->now = deadline;
	} else {
		w->now = monotime_add_ms(w->now, spans_ms[how]);
	}
}

static void tell_fact(struct world *w)
{
	switch (pick(w, 16)) {
	case 0:
		configure(w);
		break;
	case 1:
		shed_word(w->shed, pick(w, PREFIXES), (enum shed_word)pick(w, 3), w->now);
		break;
	case 2:
		shed_leave(w->shed, 1 + 2 * pick(w, 2), pick(w, 2), w->now);
		break;
	case 3:
		shed_route(w->shed, pick(w, NEIGHBOURS), pick(w, PREFIXES), pick(w, 2));
		break;
	case 4:
		tell_prefix(w);
		break;
	case 5:
	case 6:
		tell_own(w);
		break;
	case 7:
		tell_request(w);
		break;
	case 8:
	case 9:
	case 10:
		tell_answer(w);
		break;
	case 11:
	case 12:
	case 13:
		tell_report(w);
		break;
	default: /* time alone */
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	w->data = data;
	w->left = size;
	w->started = w->now = (struct monotime){1000000};
	w->settings = shed_settings_default();
	w->settings.enabled = w->settings.receive = true;
	w->settings.mode = (enum shed_mode)pick(w, 2);
	w->shed = shed_new(w->started);
	assert(w->shed);
	configure(w);
	while (w->left > 0) {
		tell_fact(w);
		pass_time(w);
		decide(w);
	}
	shed_free(w->shed);
	return 0;
}
