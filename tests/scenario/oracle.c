/* The second opinion; see oracle.h. A violation ends the program (property.h). */
#include "tests/scenario/oracle.h"

#include "tests/scenario/property.h"

static bool same_time(struct monotime a, struct monotime b)
{
	return a.us == b.us;
}

/* ---- checks ---- */

/* What it has said, and after which of that a death took back what was proved. */
struct spoken {
	enum check_outcome outcome;
	bool again;
};

static unsigned spoken_outcomes(const struct oracle_check *c, struct spoken *ret)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->n_outcomes; i++) {
		if (c->outcomes[i] != CHECK_OUTCOME_UNKNOWN)
			ret[n++] = (struct spoken){c->outcomes[i], false};
		if (c->again[i] && n > 0)
			ret[n - 1].again = true;
	}
	return n;
}

/* How many outcomes of one kind stand in a row before position `end`, with no such death between
 * them. */
static unsigned run_before(const struct spoken *spoken, unsigned end, enum check_outcome kind)
{
	unsigned n = 0;

	while (n < end && spoken[end - 1 - n].outcome == kind &&
		(n == 0 || !spoken[end - 1 - n].again))
		n++;
	return n;
}

/* How many outcomes it took until it was up for the first time; 0: it was when it began; more than
 * n: it never was. */
static unsigned first_up(const struct oracle_check *c, const struct spoken *spoken, unsigned n)
{
	unsigned rise = c->settings.first_rise ? c->settings.first_rise : c->settings.rise;
	unsigned end = 1;

	if (c->prior)
		return 0;
	while (end <= n && run_before(spoken, end, CHECK_OUTCOME_GOOD) < rise)
		end++;
	return end;
}

/* The latest moment that decides alone: a death, its own or another of its service; `rise` good in
 * a row, `fall` bad in a row. */
static enum check_state expected_state(const struct oracle_check *c)
{
	struct spoken spoken[ORACLE_OUTCOMES];
	unsigned n = spoken_outcomes(c, spoken);
	unsigned first = first_up(c, spoken, n);

	if (n == 0)
		return CHECK_STATE_PENDING;
	for (unsigned end = n; end > 0; end--) {
		if (spoken[end - 1].outcome == CHECK_OUTCOME_GONE || spoken[end - 1].again)
			return CHECK_STATE_DOWN;
		if (end == first || (end > first && run_before(spoken, end, CHECK_OUTCOME_GOOD) >=
							    c->settings.rise))
			return CHECK_STATE_UP;
		if (run_before(spoken, end, CHECK_OUTCOME_BAD) >= c->settings.fall)
			return CHECK_STATE_DOWN;
	}
	return c->prior ? CHECK_STATE_UP : CHECK_STATE_DOWN;
}

/* A death took back what it had proved, and it was neither up since nor is it dead itself. */
static bool rises_again(const struct oracle_check *c, const struct spoken *spoken, unsigned n)
{
	unsigned first = first_up(c, spoken, n);

	for (unsigned end = n; end > 0; end--) {
		if (spoken[end - 1].again)
			return true;
		if (spoken[end - 1].outcome == CHECK_OUTCOME_GONE || end == first ||
			(end > first &&
				run_before(spoken, end, CHECK_OUTCOME_GOOD) >= c->settings.rise))
			return false;
	}
	return c->again_unspoken;
}

static bool expected_undecided(const struct oracle_check *c)
{
	struct spoken spoken[ORACLE_OUTCOMES];
	unsigned n = spoken_outcomes(c, spoken);
	enum check_state state = expected_state(c);

	if (n == 0 || rises_again(c, spoken, n))
		return true;
	return (spoken[n - 1].outcome == CHECK_OUTCOME_GOOD && state == CHECK_STATE_DOWN) ||
	       (spoken[n - 1].outcome == CHECK_OUTCOME_BAD && state == CHECK_STATE_UP);
}

static void check_schedule(const struct oracle_check *c, const struct check *real, const char *name)
{
	struct monotime started = {5000000}, soon = {5000001}, late = {5000000000000};
	uint64_t interval_ms =
		expected_undecided(c) ? c->settings.fast_interval_ms : c->settings.interval_ms;

	property_require("E20", check_is_undecided(real) == expected_undecided(c),
		"check %s is %sundecided", name, check_is_undecided(real) ? "" : "not ");
	property_require("E20",
		check_next_start(real, started, soon).us == started.us + interval_ms * 1000,
		"check %s does not start %llu ms after its last start", name,
		(unsigned long long)interval_ms);
	property_require("E20", same_time(check_next_start(real, started, late), late),
		"check %s starts in the past", name);
}

static void check_history_kept(
	const struct oracle_check *c, const struct check *real, const char *name)
{
	unsigned n = c->n_outcomes < CHECK_HISTORY_LENGTH ? c->n_outcomes : CHECK_HISTORY_LENGTH;

	property_require("E21", real->n_history == n, "check %s keeps %u outcomes of %u", name,
		real->n_history, n);
	for (unsigned age = 0; age < n; age++)
		property_require("E21",
			check_history(real, age) == c->outcomes[c->n_outcomes - 1 - age],
			"check %s: outcome %u runs ago is %s", name, age,
			check_outcome_name(check_history(real, age)));
}

static void check_check(const struct oracle_check *c, const struct check *real)
{
	enum check_state state = expected_state(c);
	bool silent = c->n_outcomes > 0 && c->outcomes[c->n_outcomes - 1] == CHECK_OUTCOME_UNKNOWN;

	property_require(silent ? "E19" : "E18", real->state == state, "check %s is %s, not %s",
		c->name, check_state_name(real->state), check_state_name(state));
	check_schedule(c, real, c->name);
	check_history_kept(c, real, c->name);
	property_require("E15", c->told == real->state && same_time(c->told_when, real->since),
		"check %s is %s, transitions told %s", c->name, check_state_name(real->state),
		check_state_name(c->told));
}

/* ---- services ---- */

static void count_checks(const struct oracle_service *s, size_t *ret_up, size_t *ret_silent)
{
	*ret_up = *ret_silent = 0;
	for (size_t i = 0; i < s->n_checks; i++) {
		enum check_state state = expected_state(&s->checks[i]);

		*ret_up += state == CHECK_STATE_UP;
		*ret_silent += state == CHECK_STATE_PENDING;
	}
}

/* Would the service be well with this many of its checks up? */
static bool enough(const struct oracle_service *s, size_t n_up)
{
	if (n_up == s->n_checks)
		return true;
	switch (s->require.kind) {
	case SERVICE_REQUIRE_ALL:
		return false;
	case SERVICE_REQUIRE_ANY:
		return n_up > 0;
	case SERVICE_REQUIRE_NUMBER:
		return n_up >= s->require.number;
	}
	return false;
}

/* The silent checks may speak either way: does it matter what they say? */
static enum service_health expected_health(const struct oracle_service *s)
{
	size_t up, silent;

	count_checks(s, &up, &silent);
	if (enough(s, up))
		return SERVICE_HEALTH_HEALTHY;
	if (!enough(s, up + silent))
		return SERVICE_HEALTH_UNHEALTHY;
	return SERVICE_HEALTH_UNDECIDED;
}

/* The latest word that is not bad is a death. */
static bool is_dead(const struct oracle_check *c)
{
	unsigned n = c->n_outcomes;

	while (n > 0 && (c->outcomes[n - 1] == CHECK_OUTCOME_BAD ||
				c->outcomes[n - 1] == CHECK_OUTCOME_UNKNOWN))
		n--;
	return n > 0 && c->outcomes[n - 1] == CHECK_OUTCOME_GONE;
}

/* Would the service be unwell if all but its dead processes were up? */
static bool expected_dead(const struct oracle_service *s)
{
	size_t alive = 0;

	for (size_t i = 0; i < s->n_checks; i++)
		alive += !is_dead(&s->checks[i]);
	return !enough(s, alive);
}

/* Would it be unwell if all shared checks were up, but for the dead, and all that are silent? */
static bool expected_sick(const struct oracle_service *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_checks; i++) {
		const struct oracle_check *c = &s->checks[i];
		bool forgiven = c->settings.shared && !is_dead(c);

		n += forgiven || expected_state(c) != CHECK_STATE_DOWN;
	}
	return !enough(s, n);
}

/* Were it not for checks whose last word was bad, it would not be healthy. */
static bool is_doubted(const struct oracle_service *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_checks; i++)
		n += expected_state(&s->checks[i]) == CHECK_STATE_UP &&
		     !expected_undecided(&s->checks[i]);
	return expected_health(s) == SERVICE_HEALTH_HEALTHY && !enough(s, n);
}

static bool everybody_spoke(const struct oracle_service *s)
{
	size_t up, silent;

	count_checks(s, &up, &silent);
	return silent == 0;
}

/* ---- prefixes ---- */

struct expectation {
	const char *number; /* of the invariant that demands it */
	enum prefix_wanted wanted;
	enum prefix_reason reason;
};

static bool ramp_is_on(const struct oracle_service *s, const struct oracle_prefix *p)
{
	return s->slow_start.steps > 0 && !p->weight_of_word;
}

static bool would_ramp(const struct oracle_service *s, const struct oracle_prefix *p)
{
	return p->last.wanted == PREFIX_WANTED_ANNOUNCE ? p->ramps : ramp_is_on(s, p);
}

static enum prefix_wanted at_most(enum prefix_wanted most, const struct oracle_prefix *p)
{
	enum prefix_wanted demoted = p->last_resort ? PREFIX_WANTED_DEMOTE : PREFIX_WANTED_ANNOUNCE;

	return most < demoted ? most : demoted;
}

/* When no word is said of it, and nothing is frozen: exactly one of the conditions is true, in
 * whatever order they are asked. */
static struct expectation expect_thawed(
	const struct oracle *o, const struct oracle_service *s, const struct oracle_prefix *p)
{
	bool missing = p->address_check && p->address == PREFIX_ADDRESS_MISSING;
	enum prefix_wanted is =
		o->frozen || p->natural < p->last.wanted ? p->natural : p->last.wanted;
	bool sick = expected_sick(s), out = is == PREFIX_WANTED_WITHDRAW;
	bool kept =
		sick && !expected_dead(s) && s->floor > 0 && (!p->permitted || o->frozen) && !out;
	bool shed = p->shed != PREFIX_SHED_NONE;
	bool known = shed || (everybody_spoke(s) && monotime_is_never(o->spread));
	bool down = s->damping.suppressed && out && p->shed != PREFIX_SHED_WITHDRAW;
	bool shared = expected_health(s) == SERVICE_HEALTH_UNHEALTHY && !sick;
	bool sound = !missing && !sick && known && !down && !shed;
	bool doubt = is_doubted(s) && is != PREFIX_WANTED_ANNOUNCE;
	bool fine = sound && !doubt;
	struct {
		bool is;
		struct expectation then;
	} all[] = {
		{missing, {"E5", PREFIX_WANTED_WITHDRAW, PREFIX_REASON_ADDRESS_MISSING}},
		{!missing && sick && !kept,
			{"E6", PREFIX_WANTED_WITHDRAW, PREFIX_REASON_UNHEALTHY}},
		{!missing && kept, {"E31", at_most(is, p), PREFIX_REASON_KEPT_BY_FLOOR}},
		{!missing && !sick && !known, {"E7", p->found, PREFIX_REASON_FIRST_ROUND}},
		{!missing && !sick && known && down,
			{"E33", PREFIX_WANTED_WITHDRAW, PREFIX_REASON_HELD_DOWN}},
		{!missing && !sick && known && !down && p->shed == PREFIX_SHED_WITHDRAW,
			{"E34", PREFIX_WANTED_WITHDRAW, PREFIX_REASON_SHED}},
		{!missing && !sick && known && !down && p->shed == PREFIX_SHED_DEMOTE,
			{"E34", PREFIX_WANTED_DEMOTE, PREFIX_REASON_SHED}},
		{sound && doubt, {"E38", is, PREFIX_REASON_IN_DOUBT}},
		{fine && shared, {"E30", at_most(PREFIX_WANTED_ANNOUNCE, p),
					 PREFIX_REASON_SHARED_UNHEALTHY}},
		{fine && !shared && would_ramp(s, p),
			{"E35", PREFIX_WANTED_ANNOUNCE, PREFIX_REASON_RAMPING}},
		{fine && !shared && !would_ramp(s, p),
			{"E8", PREFIX_WANTED_ANNOUNCE, PREFIX_REASON_HEALTHY}},
	};
	unsigned n = 0, which = 0;

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].is) {
			n++;
			which = i;
		}
	property_require("oracle", n == 1, "%u expectations of %s", n, p->name);
	return all[which].then;
}

/* When no word is said of it. */
static struct expectation expect_naturally(
	const struct oracle *o, const struct oracle_service *s, const struct oracle_prefix *p)
{
	struct expectation x = expect_thawed(o, s, p);

	if (!o->frozen || expected_dead(s) || x.reason == PREFIX_REASON_ADDRESS_MISSING ||
		x.reason == PREFIX_REASON_SHED || x.wanted == p->natural)
		return x;
	return (struct expectation){"E26", p->natural, PREFIX_REASON_FROZEN};
}

/* It leaves: at once, or later where it is well. */
static struct expectation expect_leave(const struct oracle *o, const struct oracle_service *s,
	const struct oracle_prefix *p, const char *number, enum prefix_reason reason)
{
	bool early = p->last.wanted != PREFIX_WANTED_WITHDRAW && o->now.us < p->leave_ends.us;

	if (early && !expected_sick(s) &&
		expect_naturally(o, s, p).wanted != PREFIX_WANTED_WITHDRAW)
		return (struct expectation){"E36", at_most(p->last.wanted, p), reason};
	return (struct expectation){number, PREFIX_WANTED_WITHDRAW, reason};
}

static struct expectation expect_prefix(
	const struct oracle *o, const struct oracle_service *s, const struct oracle_prefix *p)
{
	if (o->stopping)
		return expect_leave(o, s, p, "E1", PREFIX_REASON_STOPPING);
	if (p->word == PREFIX_WORD_DRAINED)
		return expect_leave(o, s, p, "E3", PREFIX_REASON_DRAINED);
	if (p->word == PREFIX_WORD_FORCED)
		return (struct expectation){"E4", PREFIX_WANTED_ANNOUNCE, PREFIX_REASON_FORCED};
	return expect_naturally(o, s, p);
}

static bool same_wanted(const struct engine_prefix *view, const struct engine_prefix *last)
{
	return view->wanted == last->wanted && view->reason == last->reason &&
	       same_time(view->since, last->since);
}

static bool waits(const struct engine_prefix *view)
{
	return !monotime_is_never(view->announces_at);
}

/* What waits: nothing of it is seen outside but when it is due. */
static void check_waiting(
	const struct oracle *o, const struct oracle_prefix *p, const struct engine_prefix *view)
{
	struct monotime latest = monotime_add_ms(p->allowed_since, o->coalesce_ms);

	property_require("E12", same_wanted(view, &p->last), "%s waits and changed to %s %s",
		p->name, prefix_wanted_name(view->wanted), prefix_reason_name(view->reason));
	property_require("E10",
		view->announces_at.us > o->now.us && view->announces_at.us <= latest.us,
		"%s waits until %llu us, allowed since %llu us", p->name,
		(unsigned long long)view->announces_at.us, (unsigned long long)p->allowed_since.us);
}

/* The rules allow more than was wanted: now, or at the end of the window. */
static void check_allowed(struct oracle *o, struct oracle_prefix *p,
	const struct engine_prefix *view, const struct expectation *x)
{
	if (monotime_is_never(p->allowed_since))
		p->allowed_since = o->now;
	if (waits(view)) {
		check_waiting(o, p, view);
		return;
	}
	property_require(x->number, view->wanted == x->wanted && view->reason == x->reason,
		"%s is %s %s, neither waiting nor %s", p->name, prefix_wanted_name(view->wanted),
		prefix_reason_name(view->reason), prefix_wanted_name(x->wanted));
	property_require("E9", monotime_since_us(o->idle_at, o->now) >= o->coalesce_ms * 1000,
		"%s announced %llu us after nothing waited", p->name,
		(unsigned long long)monotime_since_us(o->idle_at, o->now));
	p->allowed_since = MONOTIME_NEVER;
}

/* ---- what it is announced with ---- */

static uint32_t naive_weight(const struct oracle_service *s, const struct oracle_prefix *p)
{
	int64_t from = s->slow_start.from, own = p->weight, steps = s->slow_start.steps;

	if (!ramp_is_on(s, p))
		return p->weight;
	if (p->last.wanted != PREFIX_WANTED_ANNOUNCE)
		return s->slow_start.from;
	if (!p->ramps || p->ramp_step >= steps)
		return p->weight;
	return (uint32_t)(from + (own - from) * p->ramp_step / steps);
}

/* Of what was just decided, which is in p->last. */
static void check_attributes(const struct oracle *o, const struct oracle_service *s,
	const struct oracle_prefix *p, bool waiting)
{
	bool drained = p->word == PREFIX_WORD_DRAINED;
	bool graceful = !waiting && (o->stopping || drained) &&
			p->last.wanted == PREFIX_WANTED_ANNOUNCE && o->now.us < p->leave_ends.us;
	uint32_t weight = graceful && s->leave.has_weight ? s->leave.weight : naive_weight(s, p);

	property_require("E36", p->last.graceful == graceful, "%s is %sgraceful", p->name,
		p->last.graceful ? "" : "not ");
	property_require("E24", p->last.weight == weight, "%s has weight %u, not %u", p->name,
		p->last.weight, weight);
	property_require("E32",
		p->last.asks_permit ==
			(!waiting && p->last.reason == PREFIX_REASON_KEPT_BY_FLOOR && !o->frozen),
		"%s %s for a permit", p->name, p->last.asks_permit ? "asks" : "does not ask");
}

static bool same_dress(const struct engine_prefix *a, const struct engine_prefix *b)
{
	return a->weight == b->weight && a->graceful == b->graceful &&
	       a->asks_permit == b->asks_permit && same_time(a->asks_since, b->asks_since);
}

/* ---- time ---- */

static void step_ramp(
	const struct oracle *o, const struct oracle_service *s, struct oracle_prefix *p)
{
	uint64_t past_us = monotime_since_us(p->ramp_since, o->now);

	if (!ramp_is_on(s, p))
		p->ramps = false;
	if (!p->ramps || o->frozen)
		return;
	for (p->ramp_step = 0; p->ramp_step < s->slow_start.steps; p->ramp_step++)
		if (past_us * s->slow_start.steps <
			(p->ramp_step + 1) * s->slow_start.for_ms * 1000)
			break;
	p->ramps = p->ramp_step < s->slow_start.steps;
}

static void begin_leave(
	const struct oracle *o, const struct oracle_service *s, struct oracle_prefix *p)
{
	bool leaves = o->stopping || p->word == PREFIX_WORD_DRAINED;

	if (leaves && !p->leaving)
		p->leave_ends = monotime_add_ms(o->now, s->leave.graceful_ms);
	p->leaving = leaves;
}

/* Announced by force when the agent came: nobody knows what it would have been. */
static void find_by_force(struct oracle_prefix *p)
{
	if (p->decided || p->word != PREFIX_WORD_FORCED)
		return;
	p->found = p->natural = PREFIX_WANTED_WITHDRAW;
	p->well = false;
}

/* What the decision sees before it decides. */
static void pass_to(struct oracle *o, struct monotime now)
{
	o->now = now;
	if (monotime_reached(o->spread, now))
		o->spread = MONOTIME_NEVER;
	for (size_t i = 0; i < o->n_services; i++) {
		struct oracle_service *s = &o->services[i];
		bool sick = expected_sick(s);

		if (sick && !s->sick && s->health != SERVICE_HEALTH_UNDECIDED)
			damping_flap(&s->hold_down, &s->damping, now);
		s->sick = sick;
		s->health = expected_health(s);
		(void)damping_holds(&s->hold_down, &s->damping, now);
		if (o->stopping && s->keep_on_stop)
			continue;
		for (size_t k = 0; k < s->n_prefixes; k++) {
			find_by_force(&s->prefixes[k]);
			step_ramp(o, s, &s->prefixes[k]);
			begin_leave(o, s, &s->prefixes[k]);
		}
	}
}

/* The first moment at which time alone changes something. */
static struct monotime expected_deadline(const struct oracle *o)
{
	struct monotime at = o->spread;

	for (size_t i = 0; i < o->n_services; i++) {
		const struct oracle_service *s = &o->services[i];

		if (o->stopping && s->keep_on_stop)
			continue;
		at = monotime_min(at, damping_ends(&s->hold_down, &s->damping));
		for (size_t k = 0; k < s->n_prefixes; k++) {
			const struct oracle_prefix *p = &s->prefixes[k];

			at = monotime_min(at, p->last.announces_at);
			if (p->leaving && o->now.us < p->leave_ends.us &&
				p->last.wanted != PREFIX_WANTED_WITHDRAW)
				at = monotime_min(at, p->leave_ends);
			if (p->ramps && !o->frozen && p->last.wanted == PREFIX_WANTED_ANNOUNCE)
				at = monotime_min(
					at, ramp_next(&s->slow_start, p->ramp_since, p->ramp_step));
		}
	}
	return at;
}

/* E39: nobody renews promises any more. */
static void check_kept(const struct oracle *o, const struct oracle_service *s,
	const struct oracle_prefix *p, const struct engine_prefix *view)
{
	bool comes = p->last.reason == PREFIX_REASON_SHED && p->shed == PREFIX_SHED_NONE &&
		     p->word == PREFIX_WORD_NONE &&
		     expect_naturally(o, s, p).wanted == PREFIX_WANTED_ANNOUNCE;
	bool goes = p->leaving && p->last.wanted != PREFIX_WANTED_WITHDRAW;

	property_require(comes ? "E39" : "E2",
		comes  ? view->wanted == PREFIX_WANTED_ANNOUNCE && view->weight == p->weight
		: goes ? view->wanted == PREFIX_WANTED_WITHDRAW
		       : same_wanted(view, &p->last) && same_dress(view, &p->last),
		"%s is kept on stop and changed to %s %s at weight %u", p->name,
		prefix_wanted_name(view->wanted), prefix_reason_name(view->reason), view->weight);
	property_require("E2", !waits(view), "%s waits after a stop", p->name);
}

static void check_prefix(struct oracle *o, const struct oracle_service *s, struct oracle_prefix *p,
	const struct engine_prefix *view)
{
	struct expectation x = expect_prefix(o, s, p);

	if (o->stopping && s->keep_on_stop) {
		check_kept(o, s, p, view);
		p->allowed_since = MONOTIME_NEVER;
	} else if (x.wanted > p->last.wanted) {
		check_allowed(o, p, view, &x);
	} else {
		property_require(x.number, view->wanted == x.wanted && view->reason == x.reason,
			"%s is %s %s, not %s %s", p->name, prefix_wanted_name(view->wanted),
			prefix_reason_name(view->reason), prefix_wanted_name(x.wanted),
			prefix_reason_name(x.reason));
		property_require("E13", !waits(view), "%s waits for nothing", p->name);
		p->allowed_since = MONOTIME_NEVER;
	}
}

/* The return value, `since` and the transitions agree with what is seen. Returns true when the
 * prefix changed. */
static bool check_told(
	const struct oracle *o, const struct oracle_prefix *p, const struct engine_prefix *view)
{
	bool changed = view->wanted != p->last.wanted || view->reason != p->last.reason;

	property_require("E14", same_time(view->since, changed ? o->now : p->last.since),
		"%s: since is not when it changed", p->name);
	property_require("E15",
		p->told == view->wanted && p->told_reason == view->reason &&
			same_time(p->told_when, view->since),
		"%s is %s %s, transitions told %s %s", p->name, prefix_wanted_name(view->wanted),
		prefix_reason_name(view->reason), prefix_wanted_name(p->told),
		prefix_reason_name(p->told_reason));
	return changed || !same_dress(view, &p->last);
}

/* ---- transitions ---- */

static void hear_check(struct oracle_check *c, const struct engine_transition *t)
{
	property_require("E15", t->from == (int)c->told && t->to != t->from,
		"check %s told from %d to %d", c->name, t->from, t->to);
	c->told = (enum check_state)t->to;
	c->told_when = t->when;
}

static void hear_service(struct oracle_service *s, const struct engine_transition *t)
{
	property_require("E15", t->from == (int)s->told && t->to != t->from,
		"service %s told from %d to %d", s->name, t->from, t->to);
	s->told = (enum service_health)t->to;
}

static void hear_prefix(struct oracle_prefix *p, const struct engine_transition *t)
{
	property_require("E15",
		t->from == (int)p->told && (t->to != t->from || t->reason != p->told_reason),
		"%s told from %d to %d", p->name, t->from, t->to);
	p->told = (enum prefix_wanted)t->to;
	p->told_reason = t->reason;
	p->told_when = t->when;
}

static void hear_transition(struct oracle *o, const struct engine_transition *t)
{
	struct oracle_service *s;

	property_require("E15", t->service < o->n_services, "service %zu told", t->service);
	s = &o->services[t->service];
	switch (t->kind) {
	case ENGINE_TRANSITION_CHECK:
		property_require("E15", t->index < s->n_checks, "check %zu told", t->index);
		hear_check(&s->checks[t->index], t);
		return;
	case ENGINE_TRANSITION_SERVICE:
		hear_service(s, t);
		return;
	case ENGINE_TRANSITION_PREFIX:
		property_require("E15", t->index < s->n_prefixes, "prefix %zu told", t->index);
		hear_prefix(&s->prefixes[t->index], t);
		return;
	}
}

void oracle_hear(struct oracle *o, struct engine *e)
{
	struct engine_transition t;

	while (engine_next_transition(e, &t))
		hear_transition(o, &t);
}

/* ---- facts ---- */

/* A death made it unhealthy. */
static void rise_again(struct oracle_service *s)
{
	for (size_t i = 0; i < s->n_checks; i++) {
		struct oracle_check *c = &s->checks[i];

		if (is_dead(c) || c->settings.shared)
			continue;
		if (expected_state(c) == CHECK_STATE_PENDING)
			c->again_unspoken = true;
		else
			c->again[c->n_outcomes - 1] = true;
	}
}

void oracle_restarted(struct oracle *o, size_t service, struct monotime ordered)
{
	struct oracle_service *s = &o->services[service];

	if (expected_health(s) != SERVICE_HEALTH_UNHEALTHY)
		return;
	for (size_t i = 0; i < s->n_checks; i++) {
		struct oracle_check *c = &s->checks[i];

		if (expected_state(c) == CHECK_STATE_UP && !c->settings.shared &&
			c->told_when.us <= ordered.us)
			c->again[c->n_outcomes - 1] = true;
	}
}

void oracle_check_spoke(struct oracle *o, size_t service, size_t check, enum check_outcome outcome)
{
	struct oracle_service *s = &o->services[service];
	struct oracle_check *c = &s->checks[check];
	bool was_dead = is_dead(c);

	if (expected_state(c) == CHECK_STATE_PENDING) {
		c->prior = false;
		for (size_t i = 0; i < s->n_prefixes; i++)
			if (s->prefixes[i].well && !c->again_unspoken)
				c->prior = true;
	}
	c->outcomes[c->n_outcomes] = outcome;
	c->again[c->n_outcomes++] = false;
	if (outcome == CHECK_OUTCOME_GONE && !was_dead && expected_dead(s))
		rise_again(s);
}

/* ---- all of it ---- */

void oracle_check_configured(const struct oracle *o, const struct engine *e)
{
	for (size_t i = 0; i < o->n_services; i++) {
		const struct oracle_service *s = &o->services[i];

		for (size_t k = 0; k < s->n_checks; k++) {
			property_require("E22",
				engine_check(e, i, k)->state == expected_state(&s->checks[k]),
				"check %s/%s is %s after the reload", s->name, s->checks[k].name,
				check_state_name(engine_check(e, i, k)->state));
			check_schedule(&s->checks[k], engine_check(e, i, k), s->checks[k].name);
			check_history_kept(&s->checks[k], engine_check(e, i, k), s->checks[k].name);
		}
		for (size_t k = 0; k < s->n_prefixes; k++) {
			const struct engine_prefix *view = engine_prefix(e, i, k);
			const struct oracle_prefix *p = &s->prefixes[k];

			property_require("E23",
				same_wanted(view, &p->last) &&
					same_time(view->announces_at, p->last.announces_at),
				"%s is %s %s after the reload, it was %s %s", p->name,
				prefix_wanted_name(view->wanted), prefix_reason_name(view->reason),
				prefix_wanted_name(p->last.wanted),
				prefix_reason_name(p->last.reason));
		}
	}
}

static bool check_service(struct oracle *o, size_t service, struct engine *e, bool *ret_waiting)
{
	struct oracle_service *s = &o->services[service];
	enum service_health health = expected_health(s);
	bool changed = false;

	for (size_t k = 0; k < s->n_checks; k++)
		check_check(&s->checks[k], engine_check(e, service, k));
	property_require("E25", engine_health(e, service) == health, "service %s is %s, not %s",
		s->name, service_health_name(engine_health(e, service)),
		service_health_name(health));
	property_require("E15", s->told == health, "service %s: transitions told %s", s->name,
		service_health_name(s->told));
	for (size_t k = 0; k < s->n_prefixes; k++) {
		const struct engine_prefix *view = engine_prefix(e, service, k);
		struct oracle_prefix *p = &s->prefixes[k];

		check_prefix(o, s, p, view);
		changed |= check_told(o, p, view);
		*ret_waiting |= waits(view);
	}
	return changed;
}

/* Notes what was seen of one prefix. */
static void note_prefix(const struct oracle *o, const struct oracle_service *s,
	struct oracle_prefix *p, const struct engine_prefix *view)
{
	bool came =
		view->wanted == PREFIX_WANTED_ANNOUNCE && p->last.wanted != PREFIX_WANTED_ANNOUNCE;
	bool kept = o->stopping && s->keep_on_stop;
	bool sound = view->reason == PREFIX_REASON_HEALTHY ||
		     view->reason == PREFIX_REASON_RAMPING || view->reason == PREFIX_REASON_SHED;

	if (view->reason == PREFIX_REASON_FIRST_ROUND)
		sound = view->wanted == PREFIX_WANTED_ANNOUNCE && p->last.sound;
	property_require(
		"E40", view->sound == sound, "%s is %ssound", p->name, sound ? "not " : "");
	p->last = *view;
	p->decided = true;
	if (kept)
		return;
	if (!waits(view)) {
		struct oracle_prefix bare = *p;

		bare.shed = PREFIX_SHED_NONE;
		if (view->reason == PREFIX_REASON_SHED)
			bare.last.wanted = p->natural;
		p->natural = expect_naturally(o, s, &bare).wanted;
		if (came) {
			p->ramps = ramp_is_on(s, p) && view->reason != PREFIX_REASON_FORCED;
			p->ramp_step = 0;
			p->ramp_since = o->now;
		}
	}
	if (!view->asks_permit)
		p->permitted = false;
	check_attributes(o, s, p, waits(view));
}

/* At a moment when something is announced, nothing goes on waiting. */
static void check_together(struct oracle *o, const struct engine *e, bool waiting)
{
	for (size_t i = 0; i < o->n_services; i++) {
		struct oracle_service *s = &o->services[i];

		for (size_t k = 0; k < s->n_prefixes; k++) {
			const struct engine_prefix *view = engine_prefix(e, i, k);

			property_require("E11",
				view->wanted <= s->prefixes[k].last.wanted || !waiting,
				"%s is announced while others wait", s->prefixes[k].name);
			note_prefix(o, s, &s->prefixes[k], view);
		}
	}
}

unsigned oracle_check_decided(struct oracle *o, struct engine *e, bool changed, struct monotime now)
{
	bool waiting = false, seen = false;
	unsigned n = 0;

	pass_to(o, now);
	oracle_hear(o, e);
	for (size_t i = 0; i < o->n_services; i++) {
		seen |= check_service(o, i, e, &waiting);
		n += (unsigned)o->services[i].n_prefixes;
	}
	property_require("E14", seen == changed, "decide returned %d", changed);
	check_together(o, e, waiting);
	property_require("E13", same_time(engine_deadline(e), expected_deadline(o)),
		"the deadline is %llu us, not %llu us", (unsigned long long)engine_deadline(e).us,
		(unsigned long long)expected_deadline(o).us);
	if (!waiting)
		o->idle_at = now;
	return n;
}
