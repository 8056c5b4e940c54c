/*
 * The receiver: what this server promises to others, and for how long it must keep it.
 *
 * A promise says two things: this server goes on announcing the prefix, and, where a share was
 * asked for, it has the room. It counts from the moment the request was received, so that it ends
 * after the holder's, which counts from when it was sent. While it binds, this server neither sheds
 * the prefix, nor asks to, nor leaves with it as unhealthy where a floor holds it.
 *
 * The room is kept a settling time longer than the promise: a holder that froze right after it had
 * acted has sent us load that our own measurement does not show yet. A holder lowers its share to
 * nothing once the load must have become visible; a lower share is taken at its word, a higher one
 * is judged like a new request.
 *
 * A server that has just started has forgotten the promises of its last life. It gives no room
 * until they have lapsed; that it goes on announcing it can promise at once.
 */
#include "agent/core/shed_private.h"

#include <assert.h>

static bool shed_promise_binds(const struct shed_promised *g, struct monotime now)
{
	return g->used && monotime_before(now, g->until);
}

bool shed_is_bound(const struct shed *s, size_t prefix, struct monotime now, struct monotime *ret)
{
	bool bound = false;

	for (size_t i = 0; i < s->n_promised; i++) {
		const struct shed_promised *g = &s->promised[i];

		if (g->prefix != prefix || !shed_promise_binds(g, now))
			continue;
		*ret = bound ? monotime_max(*ret, g->until) : g->until;
		bound = true;
	}
	return bound;
}

static struct monotime shed_promise_end(const struct shed *s, const struct shed_promised *g)
{
	return g->share > 0 ? monotime_add_ms(g->until, s->settings.settle_ms) : g->until;
}

uint64_t shed_reserved(const struct shed *s, struct monotime now)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->n_promised; i++) {
		const struct shed_promised *g = &s->promised[i];

		if (g->used && monotime_before(now, shed_promise_end(s, g)))
			sum += g->share;
	}
	return sum;
}

void shed_promises_expire(struct shed *s, struct monotime now)
{
	for (size_t i = 0; i < s->n_promised; i++) {
		struct shed_promised *g = &s->promised[i];

		if (g->used && monotime_reached(shed_promise_end(s, g), now))
			g->used = false;
	}
}

static struct shed_promised *shed_promised_find(struct shed *s, const struct shed_request *request)
{
	for (size_t i = 0; i < s->n_promised; i++) {
		struct shed_promised *g = &s->promised[i];

		if (g->used && g->neighbour == request->neighbour && g->prefix == request->prefix &&
			g->purpose == request->purpose)
			return g;
	}
	return NULL;
}

static struct shed_promised *shed_promised_free(struct shed *s)
{
	for (size_t i = 0; i < s->n_promised; i++) {
		if (!s->promised[i].used)
			return &s->promised[i];
	}
	return NULL;
}

/* Can this server promise to go on announcing the prefix? */
static enum shed_refusal shed_judge_staying(const struct shed *s, size_t prefix)
{
	const struct shed_prefix_state *p = &s->prefixes[prefix];

	if (p->record)
		return SHED_REFUSAL_SHEDDING;
	if (p->word == SHED_WORD_SHED)
		return SHED_REFUSAL_SHEDDING;
	if (p->facts.leaving || p->leave)
		return SHED_REFUSAL_LEAVING;
	if (shed_own_state(s, prefix) != SHED_STATE_HEALTHY)
		return SHED_REFUSAL_NOT_ANNOUNCED;
	return SHED_REFUSAL_NONE;
}

/* Has it room for `more` than it has promised? */
static enum shed_refusal shed_judge_room(const struct shed *s, uint64_t more, struct monotime now)
{
	if (!s->own.valid || !s->settings.receive)
		return SHED_REFUSAL_UNWILLING;
	if (shed_is_starting(s, now))
		return SHED_REFUSAL_STARTING;
	if (shed_is_above(s->own.load, s->own.capacity, s->settings.hot_bp))
		return SHED_REFUSAL_HOT;
	if (shed_own_spare(s, now) < more)
		return SHED_REFUSAL_NO_ROOM;
	return SHED_REFUSAL_NONE;
}

/* `known` is the promise of this neighbour for this prefix, or NULL. */
static enum shed_refusal shed_judge_request(const struct shed *s, const struct shed_promised *known,
	const struct shed_request *request, struct monotime now)
{
	bool same_life = known && known->boot == request->boot;
	uint64_t kept = known ? known->share : 0;
	enum shed_refusal refusal;

	if (same_life && request->request < known->request)
		return SHED_REFUSAL_STALE;
	refusal = shed_judge_staying(s, request->prefix);
	if (refusal != SHED_REFUSAL_NONE)
		return refusal;
	return request->share > kept ? shed_judge_room(s, request->share - kept, now)
				     : SHED_REFUSAL_NONE;
}

struct shed_answer shed_grant(
	struct shed *s, const struct shed_request *request, struct monotime now)
{
	struct monotime until = monotime_add_ms(now, s->settings.lease_ms);
	struct shed_promised *g;
	enum shed_refusal refusal;

	if (request->prefix >= s->n_prefixes || request->neighbour >= s->n_neighbours) {
		s->n_refused++;
		return (struct shed_answer){.refused = SHED_REFUSAL_NOT_ANNOUNCED};
	}
	shed_promises_expire(s, now);
	g = shed_promised_find(s, request);
	refusal = shed_judge_request(s, g, request, now);
	if (refusal == SHED_REFUSAL_NONE && !g) {
		g = shed_promised_free(s);
		refusal = g ? SHED_REFUSAL_NONE : SHED_REFUSAL_FULL;
	}
	if (refusal != SHED_REFUSAL_NONE) {
		s->n_refused++;
		return (struct shed_answer){.refused = refusal};
	}
	s->n_granted += !g->used;
	*g = (struct shed_promised){
		.used = true,
		.purpose = request->purpose,
		.neighbour = request->neighbour,
		.prefix = request->prefix,
		.boot = request->boot,
		.request = request->request,
		.share = request->share < SHED_AMOUNT_MAX ? request->share : SHED_AMOUNT_MAX,
		.until = g->used ? monotime_max(g->until, until) : until,
	};
	s->deadline = monotime_min(s->deadline, until);
	return (struct shed_answer){.lease_ms = s->settings.lease_ms};
}

void shed_give_back(struct shed *s, const struct shed_request *request, struct monotime now)
{
	struct shed_promised *g = shed_promised_find(s, request);

	if (g && g->boot == request->boot && g->request == request->request)
		g->used = false;
}
