/*
 * All interleavings of up to four servers, with the agent's own decision in each: a search through
 * every order in which clocks tick, agents run (or do not: a frozen one is one that does not),
 * messages arrive (or do not), agents crash and start anew, and services fail. A set of the states
 * that were seen keeps it finite; a state is everything that the future depends on.
 *
 * The world is as bad as it can be for the promises: every report says that everybody is healthy,
 * cool and has room, so that whoever may ask does ask; whoever decides is hot and whoever is asked
 * is not. Only the promises themselves stand between the servers and the floor.
 *
 * In the narrow world each server knows of no more others than the floor, in a ring, and asks
 * nobody else: the fewest promises that can be.
 *
 * After every event it must hold that
 *   S1  no fewer servers than the floor are willing to announce the prefix
 *   S2  what a receiver has promised, with its load, is within what it accepts
 * What is bounded: the time (in ticks; a lease is three of them), the crashes and failures, and the
 * network, which holds one message of each kind from one server to another for at most `delay`
 * ticks; a later one takes the place of one that is under way, which is then lost. Within a tick
 * the events are ordered by server, and each may be left out; what needs another order needs
 * another tick.
 *
 *   model [--servers N] [--floor N] [--ticks N] [--crashes N] [--sick N] [--delay N] [--wanters N]
 * [--narrow] model --all, --quick        those of the test suite; those that are done in a second
 *   With REDSHANK_LONG in the environment --all does more.
 */
#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/shed_private.h"

#define SERVERS_MAX 4
#define PREFIX 0 /* the one that is fought for; prefix 1 is never shed */
#define TICK_MS 1000
#define EPOCH_MS 1000000
#define CAPACITY 100000
#define COOL_LOAD 50000
#define HOT_LOAD 95000
#define PREFIX_LOAD 20000
#define DEPTH_MAX 400

struct bounds {
	size_t n;
	unsigned floor, ticks, crashes, sick, delay, wanters; /* wanters: the others only receive */
	bool narrow; /* each sees only the `floor` servers after it, so that it needs the fewest
			promises */
};

enum kind { KIND_POST, KIND_ANSWER, KIND_DELETE };
#define KINDS 3

struct letter {
	bool there;
	unsigned age; /* ticks; one older than `delay` is lost */
	struct shed_call call;
	struct shed_answer answer;
	uint64_t boot;
};

/* What is not in the agents. Compared byte by byte: zeroed before use. */
struct world {
	unsigned tick, crashes, sick, place; /* place: of the last event in the tick's order */
	struct letter post[SERVERS_MAX][SERVERS_MAX][KINDS]; /* from, to */
	uint64_t boot[SERVERS_MAX];
	bool out[SERVERS_MAX], left[SERVERS_MAX], is_sick[SERVERS_MAX];
};

static struct bounds bounds;
static struct world world;
static struct shed *agents[SERVERS_MAX];

/* ---- saving and restoring: the agents' arrays lie where they lie ---- */

struct piece {
	void *at;
	size_t size;
};
#define PIECES 7

static void pieces_of(struct shed *s, struct piece *ret)
{
	ret[0] = (struct piece){s, sizeof(*s)};
	ret[1] = (struct piece){s->prefixes, s->n_prefixes * sizeof(*s->prefixes)};
	ret[2] = (struct piece){s->neighbours, s->n_neighbours * sizeof(*s->neighbours)};
	ret[3] = (struct piece){s->seen, s->n_neighbours * s->n_prefixes * sizeof(*s->seen)};
	ret[4] = (struct piece){s->records, s->n_records * sizeof(*s->records)};
	ret[5] = (struct piece){s->held, s->n_records * s->n_neighbours * sizeof(*s->held)};
	ret[6] = (struct piece){s->promised, s->n_promised * sizeof(*s->promised)};
}

static char *pristine[SERVERS_MAX]; /* an agent that has just begun */

static void save_pristine(size_t i)
{
	struct piece pieces[PIECES];
	size_t size = 0;

	pieces_of(agents[i], pieces);
	for (size_t k = 0; k < PIECES; k++)
		size += pieces[k].size;
	pristine[i] = malloc(size);
	assert(pristine[i]);
	size = 0;
	for (size_t k = 0; k < PIECES; k++) {
		memcpy(pristine[i] + size, pieces[k].at, pieces[k].size);
		size += pieces[k].size;
	}
}

static size_t snapshot_size;
static char *snapshots; /* DEPTH_MAX of them */

/* Of the world and of the one agent that the next event touches; SERVERS_MAX: none. */
static void snapshot(size_t depth, size_t agent, bool restore)
{
	char *at = snapshots + depth * snapshot_size;
	struct piece pieces[PIECES];

	memcpy(restore ? (char *)&world : at, restore ? at : (char *)&world, sizeof(world));
	at += sizeof(world);
	if (agent == SERVERS_MAX)
		return;
	pieces_of(agents[agent], pieces);
	for (size_t k = 0; k < PIECES; k++) {
		memcpy(restore ? pieces[k].at : at, restore ? at : pieces[k].at, pieces[k].size);
		at += pieces[k].size;
	}
}

static size_t measure_snapshot(void)
{
	struct piece pieces[PIECES];
	size_t size = sizeof(world);

	pieces_of(agents[0], pieces);
	for (size_t k = 0; k < PIECES; k++)
		size += pieces[k].size;
	return size;
}

/* ---- what the future depends on, as two numbers ---- */

struct digest {
	uint64_t a, b;
};

static void mix(struct digest *d, uint64_t x)
{
	d->a = (d->a ^ x) * 0x9e3779b97f4a7c15ull;
	d->a ^= d->a >> 29;
	d->b = (d->b + x) * 0xff51afd7ed558ccdull;
	d->b ^= d->b >> 32;
}

/* Moments in the past are all the same where only their being past counts. */
static void mix_time(struct digest *d, struct monotime t, struct monotime now)
{
	mix(d, t.us <= now.us ? 0 : t.us);
}

static void mix_record(
	struct digest *d, const struct shed *s, const struct shed_record *r, struct monotime now)
{
	if (r->phase == SHED_PHASE_FREE)
		return;
	mix(d, (uint64_t)r->phase << 8 | r->purpose << 4 | r->prefix << 1 | r->settled);
	mix(d, s->last_request - r->request);
	mix_time(d,
		monotime_add_ms(r->since,
			r->phase == SHED_PHASE_OUT ? s->settings.settle_ms : s->settings.ask_ms),
		now);
	mix(d, r->n_held);
	for (size_t k = 0; k < r->n_held; k++) {
		mix(d, r->held[k].neighbour << 9 | r->held[k].refused << 1 | r->held[k].asked);
		mix(d, r->held[k].share);
		mix_time(d, r->held[k].call_at, now);
		mix(d, r->held[k].until.us > now.us ? r->held[k].granted_sent.us : 0);
		mix_time(d, r->held[k].until, now);
	}
}

/* Only which of two requests is later matters, and whose life they are of. */
static uint64_t request_age(size_t asker, uint64_t boot, uint64_t request)
{
	return (world.boot[asker] - boot) << 16 |
	       (boot == world.boot[asker] ? agents[asker]->last_request - request : request);
}

static size_t neighbour_server(size_t i, size_t j)
{
	return j >= i ? j + 1 : j;
}

static struct digest mix_promised(size_t self, const struct shed_promised *g, struct monotime now)
{
	uint64_t settle_ms = g->share > 0 ? agents[self]->settings.settle_ms : 0;
	struct digest d = {0};

	if (!g->used || monotime_reached(monotime_add_ms(g->until, settle_ms), now))
		return d;
	mix(&d, 1 + (g->neighbour << 8 | g->prefix << 4 | g->purpose));
	mix(&d, request_age(neighbour_server(self, g->neighbour), g->boot, g->request));
	mix(&d, g->share);
	mix(&d, g->until.us);
	return d;
}

static void mix_agent(struct digest *d, size_t self, struct monotime now)
{
	const struct shed *s = agents[self];
	struct digest sum = {0};

	mix_time(d, monotime_add_ms(s->started, s->settings.lease_ms + s->settings.stale_ms), now);
	mix_time(d, s->wait.until, now);
	mix_time(d, monotime_add_ms(s->last_return, s->settings.settle_ms), now);
	mix(d, (uint64_t)s->is_over << 2 | (uint64_t)s->is_under << 1);
	for (size_t i = 0; i < s->n_prefixes; i++) {
		const struct shed_prefix_state *p = &s->prefixes[i];

		mix(d, (uint64_t)p->leave << 8 | p->permit);
		mix_time(d, p->hold_until, now);
		mix_time(d, p->permit_retry, now);
	}
	for (size_t i = 0; i < s->n_records; i++)
		mix_record(d, s, &s->records[i], now);
	for (size_t i = 0; i < s->n_promised; i++) {
		struct digest one = mix_promised(self, &s->promised[i], now);

		sum.a += one.a; /* whatever their places in the array */
		sum.b += one.b;
	}
	mix(d, sum.a);
	mix(d, sum.b);
}

static struct monotime now_of(void)
{
	return (struct monotime){(EPOCH_MS + (uint64_t)world.tick * TICK_MS) * 1000};
}

static void mix_letter(struct digest *d, const struct letter *l, size_t asker)
{
	mix(d, l->there);
	if (!l->there)
		return;
	mix(d, request_age(asker, l->boot, l->call.request) << 8 | l->call.purpose << 4 |
			l->call.prefix << 2 | l->age);
	mix(d, l->call.share);
	mix(d, l->call.sent.us);
	mix(d, l->answer.refused);
}

static struct digest digest(void)
{
	struct digest d = {1, 2};

	mix(&d, world.tick << 24 | world.place << 16 | world.crashes << 8 | world.sick);
	for (size_t i = 0; i < bounds.n; i++) {
		mix(&d, world.boot[i] << 3 | (uint64_t)world.out[i] << 2 | world.left[i] << 1 |
				world.is_sick[i]);
		mix_agent(&d, i, now_of());
		for (size_t j = 0; j < bounds.n; j++) {
			for (size_t k = 0; k < KINDS; k++)
				mix_letter(&d, &world.post[i][j][k], k == KIND_ANSWER ? j : i);
		}
	}
	return d;
}

/* The states that were seen: open addressing. Two numbers of 64 bits stand for a state. */
static struct {
	struct digest *slots;
	size_t size, n;
} seen;

static bool seen_add_to(struct digest *slots, size_t size, struct digest d)
{
	size_t i = d.a & (size - 1);

	for (; slots[i].a || slots[i].b; i = (i + 1) & (size - 1)) {
		if (slots[i].a == d.a && slots[i].b == d.b)
			return false;
	}
	slots[i] = d;
	return true;
}

static bool seen_add(struct digest d)
{
	if (seen.n * 2 >= seen.size) {
		size_t size = seen.size ? seen.size * 2 : 1 << 16;
		struct digest *slots = calloc(size, sizeof(*slots));

		assert(slots);
		for (size_t i = 0; i < seen.size; i++) {
			if (seen.slots[i].a || seen.slots[i].b)
				seen_add_to(slots, size, seen.slots[i]);
		}
		free(seen.slots);
		seen.slots = slots;
		seen.size = size;
	}
	if (!seen_add_to(seen.slots, seen.size, d))
		return false;
	seen.n++;
	return true;
}

/* ---- the servers ---- */

static struct shed_settings settings(void)
{
	struct shed_settings s = shed_settings_default();

	s.enabled = true;
	s.lease_ms = 3 * TICK_MS;
	s.guard_ms = TICK_MS;
	s.drift_bp = 0;
	s.renew_ms = TICK_MS;
	s.stale_ms = TICK_MS;
	s.ask_ms = 2 * TICK_MS;
	s.over_ms = s.rank_ms = 0;
	s.visible_ms = s.settle_ms = TICK_MS;
	s.under_ms = s.release_gap_ms = 0;
	s.wait_min_ms = s.wait_max_ms = TICK_MS;
	s.permit_ms = TICK_MS;
	s.late_ms = 1000 * TICK_MS;
	s.back_off_ms = s.back_off_max_ms = TICK_MS;
	s.pick_max_bp = 10000;
	s.fresh_bp = 0;
	s.site_hot_bp = 10000;
	s.prefix_changes = SHED_PREFIX_CHANGES_MAX;
	s.prefix_window_ms = 1;
	s.server_changes = SHED_CHANGES_MAX;
	s.server_window_ms = 1;
	return s;
}

static void agent_start(size_t i, struct monotime started)
{
	static const char *const names[SERVERS_MAX] = {"a", "b", "c", "d"};
	const struct shed_prefix_config prefixes[] = {
		{"fought-for", 0, bounds.floor, bounds.sick > 0},
		{"kept", 0, bounds.floor, false},
	};
	const char *neighbours[SERVERS_MAX];
	size_t n = 0;

	for (size_t j = 0; j < bounds.n; j++) {
		if (j != i)
			neighbours[n++] = names[j];
	}
	shed_free(agents[i]);
	agents[i] = shed_new(started);
	assert(agents[i]);
	if (shed_configure(agents[i],
		    &(struct shed_config){names[i], settings(), prefixes, 2, neighbours, n},
		    now_of()) < 0)
		abort();
}

static bool announces(size_t i)
{
	return !world.out[i] && !world.left[i];
}

static void agent_facts(size_t i, uint64_t load)
{
	struct monotime now = now_of();

	shed_own(agents[i], &(struct shed_own){true, CAPACITY, load}, now);
	shed_prefix_facts(agents[i], PREFIX,
		&(struct shed_prefix_facts){
			.announced = announces(i),
			.healthy = !world.is_sick[i],
			.counted = true,
			.load = PREFIX_LOAD,
		});
	shed_prefix_facts(agents[i], 1,
		&(struct shed_prefix_facts){.announced = true, .healthy = true, .held = true});
	if (bounds.sick > 0)
		shed_leave(agents[i], PREFIX, world.is_sick[i], now);
}

/* Every neighbour is healthy, cool and has room, whatever is true. */
static void agent_lies(size_t i)
{
	struct shed_report_prefix prefixes[] = {
		{0, 2000, SHED_STATE_HEALTHY}, {0, 0, SHED_STATE_HEALTHY}};
	struct shed_report report = {
		.valid = true,
		.capacity = CAPACITY,
		.load = COOL_LOAD,
		.spare = CAPACITY,
		.willing = true,
		.prefixes = prefixes,
	};

	for (size_t j = 0; j + 1 < bounds.n; j++) {
		size_t after = (neighbour_server(i, j) + bounds.n - i) % bounds.n;

		prefixes[PREFIX].state =
			bounds.narrow && after > bounds.floor ? SHED_STATE_OUT : SHED_STATE_HEALTHY;
		shed_report(agents[i], j, &report, now_of(), now_of());
	}
}

static size_t neighbour_index(size_t i, size_t other)
{
	return other > i ? other - 1 : other;
}

static void agent_decide(size_t i)
{
	struct shed_call call;
	struct shed_prefix p;

	agent_facts(i, HOT_LOAD);
	agent_lies(i);
	shed_decide(agents[i], now_of(), 0);
	shed_prefix(agents[i], PREFIX, &p, now_of());
	world.out[i] = p.out;
	world.left[i] = shed_permit(agents[i], PREFIX) == SHED_PERMIT_GRANTED;
	while (shed_next_call(agents[i], &call, now_of())) {
		size_t to = neighbour_server(i, call.neighbour);
		struct letter *l = &world.post[i][to][call.give_back ? KIND_DELETE : KIND_POST];

		*l = (struct letter){.there = true, .call = call, .boot = world.boot[i]};
	}
}

static void agent_receive(size_t from, size_t to, enum kind kind)
{
	struct letter letter = world.post[from][to][kind];
	struct shed_request request = {
		.neighbour = neighbour_index(to, from),
		.boot = letter.boot,
		.prefix = letter.call.prefix,
		.share = letter.call.share,
		.purpose = letter.call.purpose,
		.request = letter.call.request,
	};

	world.post[from][to][kind] = (struct letter){0};
	agent_facts(to, COOL_LOAD);
	switch (kind) {
	case KIND_POST:
		letter.answer = shed_grant(agents[to], &request, now_of());
		letter.age = 0;
		world.post[to][from][KIND_ANSWER] = letter;
		break;
	case KIND_ANSWER:
		if (letter.boot != world.boot[to])
			break; /* the connection went with the life that asked */
		letter.call.neighbour = neighbour_index(to, from);
		shed_answered(agents[to], &letter.call, &letter.answer, now_of());
		break;
	case KIND_DELETE:
		shed_give_back(agents[to], &request, now_of());
		break;
	}
}

static void agent_crash(size_t i)
{
	struct piece pieces[PIECES];
	char *at = pristine[i];

	world.crashes++;
	world.boot[i]++;
	world.out[i] = world.left[i] = false;
	pieces_of(agents[i], pieces);
	for (size_t k = 0; k < PIECES; k++) {
		memcpy(pieces[k].at, at, pieces[k].size);
		at += pieces[k].size;
	}
	agents[i]->started = now_of();
}

/* ---- the search ---- */

struct event {
	enum { EVENT_TICK, EVENT_DECIDE, EVENT_RECEIVE, EVENT_CRASH, EVENT_SICK } what;
	unsigned char i, j, kind;
};

static struct event path[DEPTH_MAX];
static uint64_t n_events, n_outs, n_lefts;
static size_t deepest;

static bool event_next(struct event *e)
{
	switch (e->what) {
	case EVENT_TICK:
		*e = (struct event){.what = EVENT_DECIDE};
		return true;
	case EVENT_DECIDE:
		if (++e->i < bounds.n)
			return true;
		*e = (struct event){.what = EVENT_RECEIVE};
		return true;
	case EVENT_RECEIVE:
		if (++e->kind < KINDS)
			return true;
		e->kind = 0;
		if (++e->j < bounds.n)
			return true;
		e->j = 0;
		if (++e->i < bounds.n)
			return true;
		*e = (struct event){.what = EVENT_CRASH};
		return true;
	case EVENT_CRASH:
		if (++e->i < bounds.n)
			return true;
		*e = (struct event){.what = EVENT_SICK};
		return true;
	case EVENT_SICK:
		return ++e->i < bounds.n;
	}
	abort();
}

/* The order within a tick: server by server, what it suffers, receives, decides. Any of it may be
 * left out, so that what happens in another order happens in a later tick. */
static unsigned event_place(const struct event *e)
{
	unsigned per_server = (unsigned)bounds.n * KINDS + 3;

	switch (e->what) {
	case EVENT_TICK:
		return UINT32_MAX;
	case EVENT_CRASH:
		return e->i * per_server + 1;
	case EVENT_SICK:
		return e->i * per_server + 2;
	case EVENT_RECEIVE:
		return e->j * per_server + 3 + e->i * KINDS + e->kind;
	case EVENT_DECIDE:
		return (e->i + 1) * per_server;
	}
	abort();
}

static bool event_can(const struct event *e)
{
	if (event_place(e) <= world.place)
		return false;
	switch (e->what) {
	case EVENT_TICK:
		return world.tick < bounds.ticks;
	case EVENT_DECIDE:
		return e->i < bounds.wanters;
	case EVENT_RECEIVE:
		return world.post[e->i][e->j][e->kind].there;
	case EVENT_CRASH:
		return world.crashes < bounds.crashes;
	case EVENT_SICK:
		return world.sick < bounds.sick && e->i < bounds.wanters;
	}
	abort();
}

static void lose_letters(void)
{
	for (size_t i = 0; i < bounds.n * bounds.n * KINDS; i++) {
		struct letter *l =
			&world.post[i / KINDS / bounds.n][i / KINDS % bounds.n][i % KINDS];

		if (l->there && l->age++ >= bounds.delay)
			*l = (struct letter){0};
	}
}

static size_t event_agent(const struct event *e)
{
	if (e->what == EVENT_TICK)
		return SERVERS_MAX;
	return e->what == EVENT_RECEIVE ? e->j : e->i;
}

/* Nobody waits for this answer any more. */
static bool is_dead_answer(size_t to, const struct letter *l)
{
	if (l->boot != world.boot[to] ||
		(l->answer.refused == SHED_REFUSAL_NONE &&
			monotime_reached(monotime_add_ms(l->call.sent,
						 settings().lease_ms - settings().guard_ms),
				now_of())))
		return true;
	for (size_t i = 0; i < agents[to]->n_records; i++) {
		const struct shed_record *r = &agents[to]->records[i];

		if ((r->phase == SHED_PHASE_ASKING || r->phase == SHED_PHASE_OUT) &&
			r->request == l->call.request)
			return false;
	}
	return true;
}

/* There is nothing to give back, and nothing under way that would change that. */
static bool is_dead_delete(size_t from, size_t to, const struct letter *l)
{
	const struct letter *post = &world.post[from][to][KIND_POST];

	if (post->there && post->call.request == l->call.request)
		return false;
	for (size_t i = 0; i < agents[to]->n_promised; i++) {
		const struct shed_promised *g = &agents[to]->promised[i];

		if (g->used && g->neighbour == neighbour_index(to, from) &&
			g->request == l->call.request && g->boot == l->boot)
			return false;
	}
	return true;
}

/* Letters that can do nothing would only tell states apart that are the same. */
static void drop_dead_letters(void)
{
	for (size_t i = 0; i < bounds.n; i++) {
		for (size_t j = 0; j < bounds.n; j++) {
			struct letter *answer = &world.post[i][j][KIND_ANSWER];
			struct letter *undo = &world.post[i][j][KIND_DELETE];

			if (answer->there && is_dead_answer(j, answer))
				*answer = (struct letter){0};
			if (undo->there && is_dead_delete(i, j, undo))
				*undo = (struct letter){0};
		}
	}
}

static void event_do(const struct event *e)
{
	world.place = event_place(e);
	switch (e->what) {
	case EVENT_TICK:
		world.tick++;
		world.place = 0;
		lose_letters();
		break;
	case EVENT_DECIDE:
		agent_decide(e->i);
		break;
	case EVENT_RECEIVE:
		agent_receive(e->i, e->j, (enum kind)e->kind);
		break;
	case EVENT_CRASH:
		agent_crash(e->i);
		break;
	case EVENT_SICK:
		world.sick++;
		world.is_sick[e->i] = !world.is_sick[e->i];
		break;
	}
}

static void print_path(size_t depth)
{
	static const char *const whats[] = {"tick", "decide", "receive", "crash", "sick"};
	static const char *const kinds[] = {"post", "answer", "delete"};

	for (size_t k = 0; k < depth; k++) {
		const struct event *e = &path[k];

		fprintf(stderr, "  %3zu %s", k, whats[e->what]);
		if (e->what == EVENT_RECEIVE)
			fprintf(stderr, " %s from %c at %c", kinds[e->kind], 'a' + e->i,
				'a' + e->j);
		else if (e->what != EVENT_TICK)
			fprintf(stderr, " %c", 'a' + e->i);
		fprintf(stderr, "\n");
	}
}

static const char *judge(void)
{
	unsigned willing = 0;

	for (size_t i = 0; i < bounds.n; i++) {
		uint64_t accepted = shed_part(CAPACITY, agents[i]->settings.accept_bp);

		willing += announces(i);
		if (COOL_LOAD + shed_reserved(agents[i], now_of()) > accepted)
			return "S2: more room is promised than there is";
	}
	return willing < bounds.floor ? "S1: below the floor" : NULL;
}

/* Depth first; the depth is bounded by the time, since within one tick every event uses something
 * up. */
static bool search(size_t depth)
{
	struct event e = {.what = EVENT_TICK};

	if (depth > deepest)
		deepest = depth;
	if (depth + 1 >= DEPTH_MAX)
		abort();
	do {
		const char *broken;
		size_t touched;

		if (!event_can(&e))
			continue;
		path[depth] = e;
		touched = event_agent(&e);
		snapshot(depth, touched, false);
		n_events++;
		event_do(&e);
		drop_dead_letters();
		broken = judge();
		if (broken) {
			fprintf(stderr, "VIOLATED %s, after\n", broken);
			print_path(depth + 1);
			return false;
		}
		if (seen_add(digest()) && !search(depth + 1))
			return false;
		for (size_t i = 0; i < bounds.n; i++) {
			n_outs += world.out[i];
			n_lefts += world.left[i];
		}
		snapshot(depth, touched, true);
	} while (event_next(&e));
	return true;
}

static bool run(const struct bounds *b)
{
	bool good;

	bounds = *b;
	memset(&world, 0, sizeof(world));
	n_events = n_outs = n_lefts = 0;
	deepest = 0;
	for (size_t i = 0; i < bounds.n; i++) {
		world.boot[i] = 1;
		agent_start(i, MONOTIME_ZERO);
		save_pristine(i);
	}
	snapshot_size = measure_snapshot();
	snapshots = malloc(DEPTH_MAX * snapshot_size);
	assert(snapshots);
	seen_add(digest());
	good = search(0);
	printf("%zu servers (%u want), floor %u%s, %u ticks, delay %u, %u crashes, %u failures: "
	       "%zu "
	       "states, "
	       "%llu events, "
	       "depth %zu, %llu times out, %llu times left: %s\n",
		bounds.n, bounds.wanters, bounds.floor, bounds.narrow ? " narrow" : "",
		bounds.ticks, bounds.delay, bounds.crashes, bounds.sick, seen.n,
		(unsigned long long)n_events, deepest, (unsigned long long)n_outs,
		(unsigned long long)n_lefts, good ? "holds" : "BROKEN");
	fflush(stdout);
	for (size_t i = 0; i < bounds.n; i++) {
		shed_free(agents[i]);
		agents[i] = NULL;
		free(pristine[i]);
	}
	free(snapshots);
	free(seen.slots);
	memset(&seen, 0, sizeof(seen));
	/* a search in which nothing ever went proves nothing */
	return good && n_outs > 0 && (bounds.sick == 0 || n_lefts > 0);
}

int main(int argc, char **argv)
{
	static const struct bounds all[] = {
		/* servers, floor, ticks, crashes, failures, delay, wanters, narrow */
		{2, 1, 9, 2, 0, 2, 2, false},
		{2, 1, 8, 1, 2, 1, 2, false},
		{3, 2, 6, 0, 0, 1, 3, false},
		{3, 1, 6, 0, 0, 1, 3, false},
		{3, 2, 4, 1, 0, 1, 3, false},
		{3, 2, 3, 0, 1, 1, 3, false},
		{4, 3, 4, 0, 0, 1, 2, false},
		{3, 1, 8, 1, 0, 1, 3, true},
		{3, 1, 5, 0, 2, 1, 3, true},
		{4, 1, 4, 0, 0, 1, 4, true},
		{4, 3, 2, 0, 2, 1, 2, false},
		{4, 1, 4, 0, 2, 1, 3, true},
		{4, 1, 5, 1, 2, 1, 2, true},
	};
	static const struct bounds longer[] = {
		{3, 2, 8, 1, 0, 1, 3, false}, /* a gigabyte of states at most */
		{3, 1, 8, 1, 0, 1, 3, false},
		{3, 1, 5, 0, 1, 1, 3, false},
		{4, 3, 6, 1, 0, 1, 2, false},
		{4, 3, 3, 0, 2, 1, 2, false},
		{4, 1, 2, 0, 4, 1, 4, true},
	};
	static const struct bounds quick[] = {
		{2, 1, 7, 1, 0, 1, 2, false},
		{2, 1, 6, 1, 1, 1, 2, false},
		{3, 2, 3, 0, 0, 1, 3, false},
		{3, 1, 5, 1, 0, 1, 3, true},
		{3, 1, 4, 0, 1, 1, 3, true},
	};
	static const struct option longs[] = {
		{"servers", required_argument, NULL, 's'},
		{"floor", required_argument, NULL, 'f'},
		{"ticks", required_argument, NULL, 't'},
		{"crashes", required_argument, NULL, 'c'},
		{"delay", required_argument, NULL, 'd'},
		{"wanters", required_argument, NULL, 'w'},
		{"sick", required_argument, NULL, 'k'},
		{"narrow", no_argument, NULL, 'n'},
		{"all", no_argument, NULL, 'a'},
		{"quick", no_argument, NULL, 'q'},
		{NULL, 0, NULL, 0},
	};
	struct bounds one = {.n = 2, .floor = 1, .ticks = 5, .delay = 1};
	bool is_all = false, is_quick = false, good = true;

	for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
		unsigned value = optarg ? (unsigned)strtoul(optarg, NULL, 0) : 0;

		if (c == 's' && value >= 2 && value <= SERVERS_MAX)
			one.n = value;
		else if (c == 'f')
			one.floor = value;
		else if (c == 't')
			one.ticks = value;
		else if (c == 'c')
			one.crashes = value;
		else if (c == 'd')
			one.delay = value;
		else if (c == 'w')
			one.wanters = value;
		else if (c == 'k')
			one.sick = value;
		else if (c == 'n')
			one.narrow = true;
		else if (c == 'a')
			is_all = true;
		else if (c == 'q')
			is_quick = true;
		else
			return 2;
	}
	if (one.wanters == 0)
		one.wanters = (unsigned)one.n;
	if (!is_all && !is_quick)
		return run(&one) ? 0 : 1;
	for (size_t k = 0; k < sizeof(quick) / sizeof(quick[0]) && is_quick; k++)
		good = good && run(&quick[k]);
	for (size_t k = 0;
		k < sizeof(longer) / sizeof(longer[0]) && is_all && getenv("REDSHANK_LONG"); k++)
		good = good && run(&longer[k]);
	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]) && is_all; k++)
		good = run(&all[k]) && good;
	return good ? 0 : 1;
}
