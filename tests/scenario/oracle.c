/* The second opinion; see oracle.h. A violation ends the program (property.h). */
#include "tests/scenario/oracle.h"

#include <string.h>

#include "tests/scenario/property.h"

static bool same_text(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static bool same_time(struct monotime a, struct monotime b)
{
	return a.us == b.us;
}

/* ---- checks ---- */

static unsigned spoken_outcomes(const struct oracle_check *c, enum check_outcome *ret)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->n_outcomes; i++)
		if (c->outcomes[i] != CHECK_OUTCOME_UNKNOWN)
			ret[n++] = c->outcomes[i];
	return n;
}

/* How many outcomes of one kind stand in a row before position `end`. */
static unsigned run_before(
	const enum check_outcome *outcomes, unsigned end, enum check_outcome kind)
{
	unsigned n = 0;

	while (n < end && outcomes[end - 1 - n] == kind)
		n++;
	return n;
}

/* The latest moment that decides alone: a death, `rise` good in a row, `fall` bad in a row. */
static enum check_state expected_state(const struct oracle_check *c)
{
	enum check_outcome spoken[ORACLE_OUTCOMES];
	unsigned n = spoken_outcomes(c, spoken);

	if (n == 0)
		return CHECK_STATE_PENDING;
	for (unsigned end = n; end > 0; end--) {
		if (spoken[end - 1] == CHECK_OUTCOME_GONE)
			return CHECK_STATE_DOWN;
		if (run_before(spoken, end, CHECK_OUTCOME_GOOD) >= c->settings.rise)
			return CHECK_STATE_UP;
		if (run_before(spoken, end, CHECK_OUTCOME_BAD) >= c->settings.fall)
			return CHECK_STATE_DOWN;
	}
	return c->prior ? CHECK_STATE_UP : CHECK_STATE_DOWN;
}

static bool expected_undecided(const struct oracle_check *c)
{
	enum check_outcome spoken[ORACLE_OUTCOMES];
	unsigned n = spoken_outcomes(c, spoken);
	enum check_state state = expected_state(c);

	if (n == 0)
		return true;
	return (spoken[n - 1] == CHECK_OUTCOME_GOOD && state == CHECK_STATE_DOWN) ||
	       (spoken[n - 1] == CHECK_OUTCOME_BAD && state == CHECK_STATE_UP);
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

/* Would the service be unwell if all but its dead processes were up? The latest word that is not
 * bad is a death. */
static bool expected_dead(const struct oracle_service *s)
{
	size_t alive = 0;

	for (size_t i = 0; i < s->n_checks; i++) {
		const struct oracle_check *c = &s->checks[i];
		unsigned n = c->n_outcomes;

		while (n > 0 && (c->outcomes[n - 1] == CHECK_OUTCOME_BAD ||
					c->outcomes[n - 1] == CHECK_OUTCOME_UNKNOWN))
			n--;
		alive += n == 0 || c->outcomes[n - 1] != CHECK_OUTCOME_GONE;
	}
	return !enough(s, alive);
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

/* What is wanted of it when no word is said of it. */
static enum prefix_wanted expect_naturally(
	const struct oracle *o, const struct oracle_service *s, const struct oracle_prefix *p)
{
	if (p->address_check && p->address == PREFIX_ADDRESS_MISSING)
		return PREFIX_WANTED_WITHDRAW;
	if (expected_dead(s))
		return PREFIX_WANTED_WITHDRAW;
	if (o->frozen)
		return p->natural;
	if (expected_health(s) == SERVICE_HEALTH_UNHEALTHY)
		return PREFIX_WANTED_WITHDRAW;
	return everybody_spoke(s) ? PREFIX_WANTED_ANNOUNCE : p->found;
}

/* Exactly one of the conditions is true, in whatever order they are asked. */
static struct expectation expect_prefix(
	const struct oracle *o, const struct oracle_service *s, const struct oracle_prefix *p)
{
	bool no_word = !o->stopping && p->word == PREFIX_WORD_NONE;
	bool missing = p->address_check && p->address == PREFIX_ADDRESS_MISSING;
	bool unhealthy = expected_health(s) == SERVICE_HEALTH_UNHEALTHY;
	bool known = everybody_spoke(s);
	struct expectation all[7];
	unsigned n = 0;

	if (o->stopping)
		all[n++] =
			(struct expectation){"E1", PREFIX_WANTED_WITHDRAW, PREFIX_REASON_STOPPING};
	if (!o->stopping && p->word == PREFIX_WORD_DRAINED)
		all[n++] =
			(struct expectation){"E3", PREFIX_WANTED_WITHDRAW, PREFIX_REASON_DRAINED};
	if (!o->stopping && p->word == PREFIX_WORD_FORCED)
		all[n++] = (struct expectation){"E4", PREFIX_WANTED_ANNOUNCE, PREFIX_REASON_FORCED};
	if (no_word && missing)
		all[n++] = (struct expectation){
			"E5", PREFIX_WANTED_WITHDRAW, PREFIX_REASON_ADDRESS_MISSING};
	if (no_word && !missing && unhealthy)
		all[n++] =
			(struct expectation){"E6", PREFIX_WANTED_WITHDRAW, PREFIX_REASON_UNHEALTHY};
	if (no_word && !missing && !unhealthy && !known)
		all[n++] = (struct expectation){"E7", p->found, PREFIX_REASON_FIRST_ROUND};
	if (no_word && !missing && !unhealthy && known)
		all[n++] =
			(struct expectation){"E8", PREFIX_WANTED_ANNOUNCE, PREFIX_REASON_HEALTHY};
	property_require("oracle", n == 1, "%u expectations of %s", n, p->name);
	if (o->frozen && no_word && !missing && !expected_dead(s) && all[0].wanted != p->natural)
		return (struct expectation){"E26", p->natural, PREFIX_REASON_FROZEN};
	return all[0];
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
static void check_waiting(const struct oracle *o, const struct oracle_prefix *p,
	const struct engine_prefix *view, const struct engine *e)
{
	struct monotime latest = monotime_add_ms(p->allowed_since, o->coalesce_ms);

	property_require("E12", same_wanted(view, &p->last), "%s waits and changed to %s %s",
		p->name, prefix_wanted_name(view->wanted), prefix_reason_name(view->reason));
	property_require("E10",
		view->announces_at.us > o->now.us && view->announces_at.us <= latest.us,
		"%s waits until %llu us, allowed since %llu us", p->name,
		(unsigned long long)view->announces_at.us, (unsigned long long)p->allowed_since.us);
	property_require("E13", same_time(engine_deadline(e), view->announces_at),
		"%s waits and the deadline is another", p->name);
}

/* The rules allow more than was wanted: now, or at the end of the window. */
static void check_allowed(struct oracle *o, struct oracle_prefix *p,
	const struct engine_prefix *view, const struct expectation *x, const struct engine *e)
{
	if (monotime_is_never(p->allowed_since))
		p->allowed_since = o->now;
	if (waits(view)) {
		check_waiting(o, p, view, e);
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

static void check_prefix(struct oracle *o, const struct oracle_service *s, struct oracle_prefix *p,
	const struct engine_prefix *view, const struct engine *e)
{
	struct expectation x = expect_prefix(o, s, p);

	property_require("E24", view->weight == p->weight, "%s has weight %u, not %u", p->name,
		view->weight, p->weight);
	if (o->stopping && s->keep_on_stop) {
		property_require("E2", same_wanted(view, &p->last) && !waits(view),
			"%s is kept on stop and changed to %s %s", p->name,
			prefix_wanted_name(view->wanted), prefix_reason_name(view->reason));
		p->allowed_since = MONOTIME_NEVER;
	} else if (x.wanted > p->last.wanted) {
		check_allowed(o, p, view, &x, e);
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
	return changed;
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

static const struct oracle_service *find_service(const struct oracle *o, const char *name)
{
	for (size_t i = 0; i < o->n_services; i++)
		if (same_text(o->services[i].name, name))
			return &o->services[i];
	return NULL;
}

static const struct oracle_prefix *find_prefix(
	const struct oracle *o, const char *name, const struct oracle_service **ret_service)
{
	for (size_t i = 0; i < o->n_services; i++)
		for (size_t k = 0; k < o->services[i].n_prefixes; k++)
			if (same_text(o->services[i].prefixes[k].name, name)) {
				*ret_service = &o->services[i];
				return &o->services[i].prefixes[k];
			}
	return NULL;
}

static bool same_check(const struct oracle_check *a, const struct oracle_check *b)
{
	return same_text(a->name, b->name) && same_text(a->identity, b->identity) &&
	       a->settings.interval_ms == b->settings.interval_ms &&
	       a->settings.fast_interval_ms == b->settings.fast_interval_ms &&
	       a->settings.rise == b->settings.rise && a->settings.fall == b->settings.fall;
}

/* Returns true when a check has to be asked anew. */
static bool carry_checks(
	struct oracle_service *s, const struct oracle_service *last, struct monotime now)
{
	bool anew = false;

	for (size_t i = 0; i < s->n_checks; i++) {
		const struct oracle_check *old = NULL;

		for (size_t k = 0; last && k < last->n_checks; k++)
			if (same_check(&last->checks[k], &s->checks[i]))
				old = &last->checks[k];
		if (old) {
			s->checks[i] = *old;
			continue;
		}
		anew = true;
		s->checks[i].n_outcomes = 0;
		s->checks[i].told = CHECK_STATE_PENDING;
		s->checks[i].told_when = now;
	}
	return anew;
}

static void carry_prefix(struct oracle_prefix *p, const struct oracle_service *s, bool anew,
	const struct oracle *last, struct monotime now)
{
	const struct oracle_service *old_service;
	const struct oracle_prefix *old = find_prefix(last, p->name, &old_service);
	struct oracle_prefix fresh = {
		.name = p->name,
		.address_check = p->address_check,
		.weight = p->weight,
		.last = {.wanted = PREFIX_WANTED_WITHDRAW,
			.reason = PREFIX_REASON_FIRST_ROUND,
			.since = now,
			.announces_at = MONOTIME_NEVER},
		.allowed_since = MONOTIME_NEVER,
		.told_reason = PREFIX_REASON_FIRST_ROUND,
		.told_when = now,
	};

	if (old) {
		fresh = *old;
		fresh.name = p->name;
		fresh.address_check = p->address_check;
		fresh.weight = p->weight;
		if (anew || !same_text(old_service->name, s->name))
			fresh.found = old->last.wanted;
	}
	*p = fresh;
}

void oracle_configure(struct oracle *o, const struct oracle *next, struct monotime now)
{
	static struct oracle last;

	last = *o;
	*o = *next;
	o->stopping = last.stopping;
	o->frozen = last.frozen;
	o->idle_at = last.idle_at;
	o->now = now;
	for (size_t i = 0; i < o->n_services; i++) {
		struct oracle_service *s = &o->services[i];
		const struct oracle_service *old = find_service(&last, s->name);
		bool anew = carry_checks(s, old, now);

		s->told = old ? old->told : SERVICE_HEALTH_UNDECIDED;
		for (size_t k = 0; k < s->n_prefixes; k++)
			carry_prefix(&s->prefixes[k], s, anew, &last, now);
	}
}

void oracle_found(struct oracle *o, size_t service, size_t prefix, enum prefix_wanted found)
{
	struct oracle_prefix *p = &o->services[service].prefixes[prefix];

	if (p->decided)
		return;
	p->found = p->natural = p->last.wanted = p->told = found;
}

void oracle_check_spoke(struct oracle *o, size_t service, size_t check, enum check_outcome outcome)
{
	struct oracle_service *s = &o->services[service];
	struct oracle_check *c = &s->checks[check];

	if (expected_state(c) == CHECK_STATE_PENDING) {
		c->prior = false;
		for (size_t i = 0; i < s->n_prefixes; i++)
			if (s->prefixes[i].found != PREFIX_WANTED_WITHDRAW)
				c->prior = true;
	}
	c->outcomes[c->n_outcomes++] = outcome;
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

		check_prefix(o, s, p, view, e);
		changed |= check_told(o, p, view);
		*ret_waiting |= waits(view);
	}
	return changed;
}

/* At a moment when something is announced, nothing goes on waiting. Notes what was seen. */
static void check_together(struct oracle *o, const struct engine *e, bool waiting)
{
	for (size_t i = 0; i < o->n_services; i++) {
		const struct oracle_service *s = &o->services[i];

		for (size_t k = 0; k < s->n_prefixes; k++) {
			const struct engine_prefix *view = engine_prefix(e, i, k);
			struct oracle_prefix *p = &o->services[i].prefixes[k];

			property_require("E11", view->wanted <= p->last.wanted || !waiting,
				"%s is announced while others wait", p->name);
			p->last = *view;
			if (!waits(view) && !(o->stopping && s->keep_on_stop))
				p->natural = expect_naturally(o, s, p);
			p->decided = true;
		}
	}
}

unsigned oracle_check_decided(struct oracle *o, struct engine *e, bool changed, struct monotime now)
{
	bool waiting = false, seen = false;
	unsigned n = 0;

	o->now = now;
	oracle_hear(o, e);
	for (size_t i = 0; i < o->n_services; i++) {
		seen |= check_service(o, i, e, &waiting);
		n += (unsigned)o->services[i].n_prefixes;
	}
	property_require("E14", seen == changed, "decide returned %d", changed);
	property_require("E13", waiting || monotime_is_never(engine_deadline(e)),
		"nothing waits and there is a deadline");
	check_together(o, e, waiting);
	if (!waiting)
		o->idle_at = now;
	return n;
}
