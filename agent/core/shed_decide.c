/*
 * The wanter: is this server hot, may it shed, is it its turn, and what becomes of what it shed.
 *
 * The order of a decision: what must come back comes back first (leases, no effect, an operator's
 * word), then a request that runs goes on, then permits, then a new want, then what may return
 * because the load fell, and last of all the guard. At most one prefix goes in one decision. What
 * went shows in the load only after a settling time; until then it is reckoned with as if it did,
 * and more goes only while what is expected to remain is above hot.
 *
 * Turns: everybody reports how much it wants to shed, in steps of 5 % so that noise does not change
 * the order; the highest of (want, hash of the name) acts when it has been that for three reports.
 * This is for liveness alone; that two act at once is made harmless by the promises.
 */
#include "agent/core/shed_private.h"

#define SHED_HEARTBEAT_MS 1000
#define SHED_PICK_MS 250 /* a pick looks at every prefix and neighbour: not at every report */
#define SHED_WANT_STEP_BP 500
#define SHED_DOUBLINGS_MAX 5

bool shed_is_late(const struct shed *s, struct monotime now)
{
	return !monotime_reached(s->late_until, now);
}

/* ---- changes ---- */

static void shed_note_change(struct shed *s, size_t prefix, struct monotime now)
{
	struct shed_prefix_state *p = &s->prefixes[prefix];

	p->changes[p->n_changes++ % SHED_PREFIX_CHANGES_MAX] = now;
	s->changes.at[s->changes.n++ % SHED_CHANGES_MAX] = now;
	s->last_change = now;
	s->is_under = false;
	s->is_top = false;
	s->changed = true;
}

static bool shed_window_full(const struct monotime *ring, unsigned size, unsigned n,
	unsigned allowed, uint64_t window_ms, struct monotime now)
{
	struct monotime oldest;

	if (n < allowed)
		return false;
	oldest = ring[(n - allowed) % size];
	return !monotime_reached(monotime_add_ms(oldest, window_ms), now);
}

static bool shed_server_budget_full(const struct shed *s, struct monotime now)
{
	return shed_window_full(s->changes.at, SHED_CHANGES_MAX, s->changes.n,
		s->settings.server_changes, s->settings.server_window_ms, now);
}

bool shed_prefix_budget_full(
	const struct shed *s, const struct shed_prefix_state *p, struct monotime now)
{
	return shed_window_full(p->changes, SHED_PREFIX_CHANGES_MAX, p->n_changes,
		s->settings.prefix_changes, s->settings.prefix_window_ms, now);
}

/* How long a prefix that came back is left alone. */
static uint64_t shed_hold_ms(
	const struct shed *s, struct shed_prefix_state *p, enum shed_why why, uint64_t out_us)
{
	uint64_t hold_ms = s->settings.back_off_ms;
	bool lasted = out_us >= 5 * s->settings.back_off_ms * 1000;

	if (why == SHED_WHY_NO_EFFECT || why == SHED_WHY_RECEIVER_ROSE)
		return s->settings.leave_alone_ms;
	if (why == SHED_WHY_RELEASED && lasted)
		p->penalty = 0;
	hold_ms <<= p->penalty;
	if (p->penalty < SHED_DOUBLINGS_MAX)
		p->penalty++;
	return hold_ms < s->settings.back_off_max_ms ? hold_ms : s->settings.back_off_max_ms;
}

/* What is out comes back; what is only asked for is given up. */
void shed_restore(struct shed *s, struct shed_record *r, enum shed_why why, struct monotime now)
{
	struct shed_prefix_state *p = &s->prefixes[r->prefix];
	bool was_out = r->phase == SHED_PHASE_OUT;

	p->last = why;
	p->last_at = now;
	if (was_out) {
		uint64_t hold_ms = shed_hold_ms(s, p, why, monotime_since_us(r->since, now));

		p->hold_until = monotime_add_ms(now, hold_ms);
		s->n_restores++;
		shed_note_change(s, r->prefix, now);
		s->last_return = now;
		s->is_over = false;
	}
	shed_record_end(s, r, now);
}

static void shed_act(struct shed *s, struct shed_record *r, struct monotime now)
{
	for (size_t k = 0; k < r->n_held; k++)
		r->held[k].load_at = s->neighbours[r->held[k].neighbour].load;
	r->whole = s->own.load + shed_load_out(s);
	r->phase = SHED_PHASE_OUT;
	r->since = now;
	r->own_load = s->own.load;
	r->order = ++s->last_order;
	r->settled = false;
	s->n_sheds++;
	s->wait.n_failed = s->hand_wait.n_failed = 0;
	shed_note_change(s, r->prefix, now);
}

/* ---- what must come back ---- */

static enum shed_why shed_must_return(const struct shed *s, const struct shed_record *r)
{
	const struct shed_prefix_state *p = &s->prefixes[r->prefix];

	if (!p->facts.healthy || p->facts.leaving)
		return SHED_WHY_GONE;
	if (p->word == SHED_WORD_UNSHED)
		return SHED_WHY_UNSHED;
	if (r->why == SHED_WHY_OPERATOR)
		return p->word == SHED_WORD_SHED ? SHED_WHY_NEW : SHED_WHY_UNSHED;
	return s->settings.enabled ? SHED_WHY_NEW : SHED_WHY_OFF;
}

static void shed_return_what_must(struct shed *s, struct monotime now)
{
	for (size_t i = 0; i < s->n_prefixes; i++) {
		struct shed_record *r = s->prefixes[i].record;
		enum shed_why why;

		if (!r)
			continue;
		if (s->prefixes[i].word == SHED_WORD_SHED)
			r->why = SHED_WHY_OPERATOR;
		why = shed_must_return(s, r);
		if (why != SHED_WHY_NEW)
			shed_restore(s, r, why, now);
	}
}

/* ---- want ---- */

static void shed_watch_load(struct shed *s, struct monotime now)
{
	const struct shed_own *own = &s->own;
	bool over = own->valid && shed_is_above(own->load, own->capacity, s->settings.hot_bp);
	bool under = own->valid && !shed_is_above(own->load, own->capacity, s->settings.target_bp);

	if (over && !s->is_over)
		s->over_since = now;
	if (under && !s->is_under)
		s->under_since = now;
	s->is_over = over;
	s->is_under = under;
}

/* ALONE, SITE_HOT or NOT_PICKED. */
static enum shed_why shed_judge_site(const struct shed *s, struct monotime now)
{
	size_t n_fresh = 0, n_hot = 1;

	for (size_t j = 0; j < s->n_neighbours; j++) {
		const struct shed_neighbour *n = &s->neighbours[j];

		if (!shed_is_fresh(s, n, now))
			continue;
		n_fresh++;
		n_hot += n->valid && shed_is_above(n->load, n->capacity, s->settings.hot_bp);
	}
	if (n_fresh == 0 || n_fresh * SHED_WHOLE_BP < s->n_neighbours * s->settings.fresh_bp)
		return SHED_WHY_ALONE;
	if (n_hot > 1 && n_hot * SHED_WHOLE_BP > (n_fresh + 1) * s->settings.site_hot_bp)
		return SHED_WHY_SITE_HOT;
	return SHED_WHY_NOT_PICKED;
}

/* What came back must show first; of what went, so much may be under way as the load that will be
 * left when all of it shows is still too much. */
static bool shed_is_settled(const struct shed *s, struct monotime now)
{
	unsigned n;
	uint64_t expected = shed_expected(s, &n);

	if (s->n_restores > 0 &&
		!monotime_reached(monotime_add_ms(s->last_return, s->settings.settle_ms), now))
		return false;
	return n == 0 || (n < s->settings.in_flight &&
				 shed_is_above(expected, s->own.capacity, s->settings.hot_bp));
}

/* What stands in the way of shedding anything at all; NOT_PICKED: nothing. */
static enum shed_why shed_server_obstacle(const struct shed *s, struct monotime now)
{
	if (!s->settings.enabled)
		return SHED_WHY_OFF;
	if (!s->own.valid)
		return SHED_WHY_NO_LOAD;
	if (!s->is_over)
		return SHED_WHY_COOL;
	if (!monotime_reached(s->stopped_until, now))
		return SHED_WHY_STOPPED;
	if (shed_is_starting(s, now))
		return SHED_WHY_STARTING;
	if (shed_is_late(s, now))
		return SHED_WHY_LATE;
	if (!shed_is_settled(s, now))
		return SHED_WHY_SETTLING;
	if (shed_server_budget_full(s, now))
		return SHED_WHY_BUDGET;
	if (!monotime_reached(s->wait.until, now))
		return SHED_WHY_WAITING;
	return shed_judge_site(s, now);
}

/* Whoever wants for longer than two turns take and does nothing is not waited for: it lies, or
 * others do not let it. */
static bool shed_has_turn(const struct shed *s, const struct shed_neighbour *n, struct monotime now)
{
	uint64_t turn_ms = s->settings.rank_ms + s->settings.ask_ms;

	return n->want > 0 && shed_is_fresh(s, n, now) &&
	       !monotime_reached(monotime_add_ms(n->wants_since, 2 * turn_ms), now);
}

static bool shed_is_top(const struct shed *s, struct monotime now)
{
	for (size_t j = 0; j < s->n_neighbours; j++) {
		const struct shed_neighbour *n = &s->neighbours[j];

		if (shed_has_turn(s, n, now) &&
			(n->want > s->want || (n->want == s->want && n->rank > s->rank)))
			return false;
	}
	return true;
}

static struct shed_record *shed_asking(const struct shed *s)
{
	for (size_t i = 0; i < s->n_prefixes; i++) {
		struct shed_record *r = s->prefixes[i].record;

		if (r && r->phase == SHED_PHASE_ASKING)
			return r;
	}
	return NULL;
}

static void shed_note_obstacle(struct shed *s, enum shed_why why)
{
	s->why = why;
	for (size_t i = 0; i < s->n_prefixes; i++) {
		s->prefixes[i].why = why;
		s->prefixes[i].why_neighbour = SIZE_MAX;
	}
}

/* Its turn, for long enough? Reports begin to say that it wants to `rank_ms` before `over_ms` is
 * over, so that the order is known by then. */
static bool shed_may_ask(struct shed *s, struct monotime now)
{
	uint64_t over_us = monotime_since_us(s->over_since, now);
	unsigned n;
	uint64_t expected_bp = shed_expected(s, &n) * SHED_WHOLE_BP / s->own.capacity;
	uint64_t early_ms = s->settings.over_ms > s->settings.rank_ms
				    ? s->settings.over_ms - s->settings.rank_ms
				    : 0;
	bool top;

	s->want = 0;
	if (over_us < early_ms * 1000) {
		s->is_top = false;
		s->why = SHED_WHY_NOT_YET;
		return false;
	}
	s->want = (uint32_t)((expected_bp - s->settings.hot_bp) / SHED_WANT_STEP_BP + 1);
	top = shed_is_top(s, now);
	if (top && !s->is_top)
		s->top_since = now;
	s->is_top = top;
	if (over_us < s->settings.over_ms * 1000)
		s->why = SHED_WHY_NOT_YET;
	else
		s->why = SHED_WHY_NOT_TOP;
	return top && monotime_reached(monotime_add_ms(s->top_since, s->settings.rank_ms), now);
}

static void shed_want(struct shed *s, struct monotime now)
{
	enum shed_why why = shed_server_obstacle(s, now);
	size_t prefix;

	if (shed_asking(s)) {
		s->why = SHED_WHY_ASKING;
		return;
	}
	if (why != SHED_WHY_NOT_PICKED) {
		s->want = 0;
		s->is_top = false;
		shed_note_obstacle(s, why);
		return;
	}
	if (!monotime_reached(monotime_add_ms(s->picked_at, SHED_PICK_MS), now))
		return;
	s->picked_at = now;
	prefix = shed_pick(s, now);
	if (prefix == SIZE_MAX) {
		/* its turn is kept for a moment, since noise makes candidates come and go */
		if (monotime_reached(monotime_add_ms(s->able_at, s->settings.rank_ms), now)) {
			s->want = 0;
			s->is_top = false;
		}
		s->why = SHED_WHY_NO_ROOM;
		return;
	}
	s->able_at = now;
	if (!shed_may_ask(s, now)) {
		s->prefixes[prefix].why = s->why;
		return;
	}
	if (shed_begin(s, prefix, SHED_WHY_OVERLOAD, now))
		s->why = SHED_WHY_ASKING;
}

/* ---- a request that runs ---- */

/* Requests by hand wait by themselves: one that is refused for good is not in the others' way. */
static void shed_give_up(struct shed *s, struct shed_record *r, enum shed_why why, size_t neighbour,
	struct monotime now, uint64_t random)
{
	struct shed_prefix_state *p = &s->prefixes[r->prefix];
	struct shed_wait *wait = r->why == SHED_WHY_OPERATOR ? &s->hand_wait : &s->wait;
	uint64_t spread_ms = s->settings.wait_max_ms - s->settings.wait_min_ms + 1;
	unsigned doublings = wait->n_failed < 3 ? wait->n_failed : 3;
	uint64_t wait_ms = (s->settings.wait_min_ms + random % spread_ms) << doublings;

	wait->n_failed++;
	wait->until = monotime_add_ms(now, wait_ms);
	/* Whoever refused may do so for good: another prefix has the next turn, where there is one.
	 */
	if (why == SHED_WHY_REFUSED || why == SHED_WHY_TIMEOUT)
		p->hold_until = monotime_max(p->hold_until,
			monotime_add_ms(wait->until, s->settings.rank_ms + s->settings.ask_ms));
	p->why_neighbour = neighbour;
	if (wait == &s->wait) {
		s->want = 0;
		s->is_top = false;
	}
	shed_restore(s, r, why, now);
}

/* May it go, now that all have promised? NEW: yes. */
static enum shed_why shed_last_doubt(
	const struct shed *s, const struct shed_record *r, struct monotime now)
{
	enum shed_why why;
	unsigned n;

	if (shed_is_starting(s, now))
		return SHED_WHY_STARTING;
	if (shed_is_late(s, now))
		return SHED_WHY_LATE;
	if (r->why == SHED_WHY_OPERATOR)
		return SHED_WHY_NEW;
	if (s->prefixes[r->prefix].facts.held)
		return SHED_WHY_HELD;
	if (!s->own.valid)
		return SHED_WHY_NO_LOAD;
	if (!shed_is_above(shed_expected(s, &n), s->own.capacity, s->settings.target_bp))
		return SHED_WHY_COOL;
	why = shed_judge_site(s, now);
	return why == SHED_WHY_NOT_PICKED ? SHED_WHY_NEW : why;
}

static void shed_go_on(struct shed *s, struct shed_record *r, struct monotime now, uint64_t random)
{
	struct monotime end = monotime_add_ms(r->since, s->settings.ask_ms);
	size_t refused = shed_record_refused(r), stale = SIZE_MAX;
	enum shed_why doubt = shed_last_doubt(s, r, now);
	uint64_t tier = 0;
	uint32_t weight;

	bool is_known = shed_tier(s, r->prefix, now, &tier, &weight, &stale);

	if (is_known && tier != r->tier)
		shed_give_up(s, r, SHED_WHY_TIER_CHANGED, stale, now, random);
	else if (doubt != SHED_WHY_NEW)
		shed_give_up(s, r, doubt, SIZE_MAX, now, random);
	else if (refused != SIZE_MAX)
		shed_give_up(s, r, SHED_WHY_REFUSED, r->held[refused].neighbour, now, random);
	else if (is_known && shed_record_is_whole(r, now) &&
		 shed_record_live(r, now) >= s->prefixes[r->prefix].floor)
		shed_act(s, r, now);
	else if (monotime_reached(end, now))
		shed_give_up(s, r, SHED_WHY_TIMEOUT, SIZE_MAX, now, random);
}

/* An operator wants it out: it is asked for without a turn, whatever the load is; behind the last
 * one that was. */
static void shed_obey(struct shed *s, struct monotime now)
{
	size_t first = s->obeyed + 1;

	for (size_t k = 0; k < s->n_prefixes; k++) {
		size_t i = (first + k) % s->n_prefixes;
		struct shed_prefix_state *p = &s->prefixes[i];

		if (p->word != SHED_WORD_SHED || p->record)
			continue;
		p->why = shed_obstacle(s, i, true, now, &p->why_neighbour);
		if (shed_is_starting(s, now))
			p->why = SHED_WHY_STARTING;
		else if (shed_is_late(s, now))
			p->why = SHED_WHY_LATE;
		else if (!monotime_reached(s->hand_wait.until, now))
			p->why = SHED_WHY_WAITING;
		else if (p->why == SHED_WHY_NOT_PICKED && !shed_asking(s) &&
			 shed_begin(s, i, SHED_WHY_OPERATOR, now))
			s->obeyed = i;
	}
}

/* ---- what may return ---- */

static struct shed_record *shed_last_out(struct shed *s)
{
	struct shed_record *last = NULL;

	for (size_t i = 0; i < s->n_prefixes; i++) {
		struct shed_record *r = s->prefixes[i].record;

		if (r && r->phase == SHED_PHASE_OUT && r->why == SHED_WHY_OVERLOAD &&
			(!last || r->order > last->order))
			last = r;
	}
	return last;
}

static void shed_release(struct shed *s, struct monotime now)
{
	struct shed_record *r = shed_last_out(s);
	uint64_t gap_ms = s->settings.release_gap_ms;
	uint64_t back;

	if (!r || !s->is_under || shed_asking(s) ||
		!monotime_reached(monotime_add_ms(s->under_since, s->settings.under_ms), now) ||
		!monotime_reached(monotime_add_ms(s->last_change, gap_ms), now) ||
		shed_server_budget_full(s, now) ||
		shed_prefix_budget_full(s, &s->prefixes[r->prefix], now))
		return;
	back = shed_return_load(s, r, now);
	back += shed_part(back, s->settings.margin_bp);
	if (shed_is_above(s->own.load + back, s->own.capacity, s->settings.release_bp))
		return;
	shed_restore(s, r, SHED_WHY_RELEASED, now);
	s->is_under = true; /* the time under target goes on; the gap is between two returns */
}

/* ---- last of all ---- */

static void shed_obey_guard(struct shed *s, struct monotime now)
{
	uint64_t load = 0;
	bool any = false;

	for (size_t i = 0; i < s->n_prefixes; i++) {
		const struct shed_prefix_state *p = &s->prefixes[i];
		const struct shed_record *r = p->record;
		bool is_out = r && r->phase == SHED_PHASE_OUT;
		unsigned live = is_out ? shed_record_live(r, now) : 0;
		unsigned others = is_out ? shed_others(s, i, now) : 0;

		s->guard[i] = (struct shed_guard_prefix){
			.announced = p->facts.healthy,
			.out = is_out,
			.order = is_out ? r->order : 0,
			.others = live > others ? live : others,
			.load = is_out ? r->load : 0,
		};
		any = any || is_out;
		/* half of what it was when the last one went, with all that was out by then */
		if (is_out && r->whole > load)
			load = r->whole;
	}
	if (!any || shed_guard(s->guard, s->n_prefixes, load, s->settings.most_bp) == 0)
		return;
	for (size_t i = 0; i < s->n_prefixes; i++) {
		struct shed_record *r = s->prefixes[i].record;

		if (r && r->phase == SHED_PHASE_OUT && !s->guard[i].out)
			shed_restore(s, r, SHED_WHY_GUARD, now);
	}
}

static bool shed_is_idle(const struct shed *s)
{
	for (size_t i = 0; i < s->n_prefixes; i++) {
		const struct shed_prefix_state *p = &s->prefixes[i];

		if (p->record || p->leave || p->word != SHED_WORD_NONE)
			return false;
	}
	return !s->settings.enabled;
}

static struct monotime shed_later(
	const struct shed *s, struct monotime a, struct monotime base, uint64_t ms)
{
	struct monotime t = monotime_add_ms(base, ms);

	return monotime_before(s->decided_at, t) ? monotime_min(a, t) : a;
}

static struct monotime shed_next(const struct shed *s, struct monotime now)
{
	struct monotime at = MONOTIME_NEVER;

	if (shed_is_idle(s))
		return at;
	at = monotime_add_ms(now, SHED_HEARTBEAT_MS);
	if (s->is_over) {
		at = shed_later(s, at, s->over_since, s->settings.over_ms);
		at = shed_later(s, at, s->last_return, s->settings.settle_ms);
		at = shed_later(s, at, s->wait.until, 0);
		if (s->is_top)
			at = shed_later(s, at, s->top_since, s->settings.rank_ms);
	}
	return at;
}

struct monotime shed_deadline(const struct shed *s)
{
	struct monotime at = s->deadline;

	for (size_t i = 0; i < s->n_records; i++) {
		struct monotime t = shed_record_deadline(s, &s->records[i]);

		at = monotime_min(at, t);
	}
	return at;
}

bool shed_decide(struct shed *s, struct monotime now, uint64_t random)
{
	struct monotime due = shed_deadline(s);
	struct shed_record *asking;

	if (s->decided && monotime_before(monotime_add_ms(due, s->settings.late_ms), now))
		s->late_until = monotime_add_ms(now, s->settings.stale_ms);
	s->decided = true;
	s->decided_at = now;
	s->changed = false;

	shed_promises_expire(s, now);
	shed_watch_load(s, now);
	shed_leases_check(s, now);
	shed_permits_decide(s, now, random);
	shed_return_what_must(s, now);
	shed_judge_effects(s, now);
	asking = shed_asking(s);
	if (asking)
		shed_go_on(s, asking, now, random >> 16);
	shed_want(s, now);
	shed_obey(s, now);
	shed_release(s, now);
	shed_obey_guard(s, now);

	s->deadline = shed_next(s, now);
	return s->changed;
}
