/*
 * The table of our protocols in BIRD: those that the configuration wants, and those that are still
 * there though nothing wants them. Sorted by name, so that a line of `show protocols` finds its
 * protocol and the protocols of one service ('redshank:SERVICE:...') stand side by side, as the
 * pattern of a command means them.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/bird/apply_state.h"

/* Where the name stands or would stand. */
static size_t apply_position(const struct apply *a, const char *name, bool *ret_found)
{
	size_t low = 0, high = a->n_protocols;

	*ret_found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(a->protocols[middle]->name, name);

		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct apply_protocol *apply_find(const struct apply *a, const char *name)
{
	bool found;
	size_t i = apply_position(a, name, &found);

	return found ? a->protocols[i] : NULL;
}

struct apply_protocol *apply_add(struct apply *a, const char *name)
{
	struct apply_protocol **larger, *p;
	bool found;
	size_t i = apply_position(a, name, &found);

	assert(strlen(name) < NAMES_MAX);
	if (found)
		return a->protocols[i];
	larger = reallocarray(a->protocols, a->n_protocols + 1, sizeof(*larger));
	if (!larger)
		return NULL;
	a->protocols = larger;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	(void)snprintf(p->name, sizeof(p->name), "%s", name);
	memmove(&a->protocols[i + 1], &a->protocols[i], (a->n_protocols - i) * sizeof(p));
	a->protocols[i] = p;
	a->n_protocols++;
	return p;
}

void apply_protocol_free(struct apply_protocol *p)
{
	if (!p)
		return;
	free(p->held);
	free(p);
}

void apply_forget_absent(struct apply *a)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->n_protocols; i++) {
		struct apply_protocol *p = a->protocols[i];

		if (p->want == PLAN_WANT_GONE && p->seen == PLAN_SEEN_ABSENT && p->command == 0 &&
			!p->coming)
			apply_protocol_free(p);
		else
			a->protocols[kept++] = p;
	}
	a->n_protocols = kept;
}

/* Length of "redshank:SERVICE:". */
static size_t apply_service_part(const char *name)
{
	const char *end = strchr(name, ':');

	end = end ? strchr(end + 1, ':') : NULL;
	return end ? (size_t)(end - name) + 1 : strlen(name);
}

size_t apply_range_end(const struct apply *a, size_t first)
{
	size_t n = apply_service_part(a->protocols[first]->name), end = first + 1;

	while (end < a->n_protocols &&
		strncmp(a->protocols[end]->name, a->protocols[first]->name, n) == 0)
		end++;
	return end;
}

void apply_range(const struct apply *a, const char *pattern, size_t *ret_first, size_t *ret_end)
{
	char start[NAMES_MAX];
	size_t n = strlen(pattern), first;
	bool found;

	if (n == 0 || pattern[n - 1] != '*') {
		first = apply_position(a, pattern, &found);
		*ret_first = first;
		*ret_end = found ? first + 1 : first;
		return;
	}
	assert(n <= sizeof(start));
	memcpy(start, pattern, n - 1);
	start[n - 1] = '\0';
	first = apply_position(a, start, &found);
	*ret_first = first;
	if (first < a->n_protocols && strncmp(a->protocols[first]->name, start, n - 1) == 0)
		*ret_end = apply_range_end(a, first);
	else
		*ret_end = first;
}

static void apply_protocol_take(
	struct apply_service *s, struct apply_protocol *p, const struct fragment_protocol *from)
{
	enum plan_want want = from->up ? PLAN_WANT_UP : PLAN_WANT_DOWN;

	if (p->want != want || p->body != from->body) {
		p->reached = false;
		p->mending = false;
		p->strikes = p->attempts = 0;
		p->not_before = MONOTIME_ZERO;
	}
	p->service = s;
	p->first_prefix = from->first_prefix;
	p->n_prefixes = from->n_prefixes;
	p->family_protocol = from->family_protocol;
	p->last_resort = from->last_resort;
	p->family = from->family;
	p->want = want;
	p->body = from->body;
	p->claimed = true;
	free(TAKE_PTR(p->held));
	p->n_held = 0;
}

int apply_prepare_protocols(
	struct apply *a, const struct apply_service *s, struct apply_prepared *ret)
{
	_cleanup_free_ struct fragment_protocol *from = NULL;
	_cleanup_free_ struct apply_protocol **protocols = NULL;
	_cleanup_free_ enum prefix_wanted *wanted = NULL;
	size_t n = 0;
	int r;

	wanted = calloc(s->config->n_prefixes + 1, sizeof(*wanted));
	if (!wanted)
		return -ENOMEM;
	for (size_t i = 0; i < s->config->n_prefixes; i++)
		wanted[i] = s->prefixes[i].wanted;
	r = fragment_protocols(s->config, wanted, &from, &n);
	if (r < 0)
		return r;
	protocols = calloc(n + 1, sizeof(struct apply_protocol *));
	if (!protocols)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		protocols[i] = apply_add(a, from[i].name);
		if (!protocols[i])
			return -ENOMEM;
	}
	*ret = (struct apply_prepared){
		.from = TAKE_PTR(from), .protocols = TAKE_PTR(protocols), .n = n};
	return 0;
}

void apply_take_protocols(struct apply_service *s, struct apply_prepared *prepared)
{
	for (size_t i = 0; i < prepared->n; i++)
		apply_protocol_take(s, prepared->protocols[i], &prepared->from[i]);
	free(s->protocols);
	s->protocols = TAKE_PTR(prepared->protocols);
	s->n_protocols = prepared->n;
}

void apply_prepared_done(struct apply_prepared *prepared)
{
	free(prepared->from);
	free(prepared->protocols);
}

int apply_service_protocols(
	struct apply *a, struct apply_service *s, struct fragment_protocol **ret, size_t *ret_n)
{
	_cleanup_(apply_prepared_done) struct apply_prepared prepared = {0};
	int r = apply_prepare_protocols(a, s, &prepared);

	if (r < 0)
		return r;
	apply_take_protocols(s, &prepared);
	if (ret) {
		*ret = TAKE_PTR(prepared.from);
		*ret_n = prepared.n;
	}
	return 0;
}

enum prefix_wanted apply_least(const struct apply_protocol *p)
{
	return p->last_resort ? PREFIX_WANTED_DEMOTE : PREFIX_WANTED_ANNOUNCE;
}

bool apply_protocol_holds(const struct apply_protocol *p, size_t prefix)
{
	const struct config_prefix *c = &p->service->config->prefixes[prefix];

	if (prefix < p->first_prefix || prefix >= p->first_prefix + p->n_prefixes)
		return false;
	if (p->family_protocol && c->prefix.address.family != p->family)
		return false;
	return !p->last_resort || c->last_resort;
}

/* Is the prefix configured and `least` or more wanted of it, and is a protocol that the
 * configuration has for it seen up? */
static bool apply_prefix_is_up(const struct apply *a, const struct prefix *prefix,
	enum prefix_wanted least, bool *ret_seen_up)
{
	for (size_t s = 0; s < a->n_services; s++) {
		const struct apply_service *service = &a->services[s];

		for (size_t i = 0; i < service->config->n_prefixes; i++) {
			if (!prefix_equal(&service->config->prefixes[i].prefix, prefix))
				continue;
			*ret_seen_up = false;
			for (size_t k = 0; k < service->n_protocols; k++) {
				const struct apply_protocol *p = service->protocols[k];

				if (p->want == PLAN_WANT_UP && p->seen == PLAN_SEEN_UP &&
					apply_protocol_holds(p, i))
					*ret_seen_up = true;
			}
			return service->prefixes[i].wanted >= least;
		}
	}
	return false;
}

bool apply_may_be_up(const struct apply_protocol *p)
{
	return p->seen == PLAN_SEEN_UP || p->seen == PLAN_SEEN_UNKNOWN || p->coming;
}

bool apply_may_not_configure(const struct apply *a)
{
	return a->refused || a->status.on_trial;
}

/*
 * A protocol that is no longer configured, while prefixes that it announces are wanted still, under
 * another name (the service was renamed, a prefix moved, a service grew past NAMES_SINGLE_MAX or
 * shrank). It is not disabled, for then healthy prefixes would be gone until the `configure` that
 * brings the new protocols. That `configure` removes the old and adds the new at once, without a
 * withdrawal on the wire (seen with 2.0.12). Where BIRD refuses to configure, or does not come to
 * rest, it is disabled as soon as one of its prefixes is not wanted any more: one that is announced
 * wrongly is worse than some that are not.
 */
static bool apply_is_replaced(const struct apply *a, const struct apply_protocol *p)
{
	bool stuck = apply_may_not_configure(a) ||
		     (a->busy && monotime_since_us(a->busy_since, clock_monotime()) >
					 APPLY_BUSY_STUCK_US);
	bool all_wanted = true, waits = false;

	for (size_t i = 0; i < p->n_held; i++) {
		bool seen_up = false;

		if (!apply_prefix_is_up(a, &p->held[i], apply_least(p), &seen_up))
			all_wanted = false;
		else if (!seen_up)
			waits = true;
	}
	return waits && (all_wanted || !stuck);
}

/* Is one of several prefixes not wanted of it? */
static bool apply_is_partial(const struct apply_protocol *p)
{
	if (!p->family_protocol || !p->service)
		return false;
	for (size_t i = p->first_prefix; i < p->first_prefix + p->n_prefixes; i++)
		if (apply_protocol_holds(p, i) && p->service->prefixes[i].wanted < apply_least(p))
			return true;
	return false;
}

enum plan_step apply_plan(const struct apply *a, const struct apply_protocol *p)
{
	const struct plan_protocol facts = {.want = p->want,
		.body = p->body,
		.seen = p->seen,
		.loaded = p->loaded,
		.partial = apply_is_partial(p),
		.coming = p->coming};
	const struct plan_bird bird = {.configure_refused = apply_may_not_configure(a)};

	if (p->want == PLAN_WANT_GONE && p->seen == PLAN_SEEN_UP && apply_is_replaced(a, p))
		return bird.configure_refused ? PLAN_STEP_WAIT : PLAN_STEP_CONFIGURE;
	return plan_next(&facts, &bird);
}

void apply_unknown_all(struct apply *a, bool loaded_too)
{
	for (size_t i = 0; i < a->n_protocols; i++) {
		a->protocols[i]->seen = PLAN_SEEN_UNKNOWN;
		if (loaded_too)
			a->protocols[i]->loaded = PLAN_BODY_UNKNOWN;
	}
}
