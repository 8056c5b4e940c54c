/*
 * The holder: what this server asks of others, and for how long it may count on it.
 *
 * A record is one prefix that is asked for or out, with one entry for each neighbour that has to
 * promise. Every call carries the moment it was sent; the lease of an answer counts from there,
 * less `guard_ms` and `drift_bp`, so that it is over here before it is over there, whatever the
 * network did in between. An answer that belongs to no record any more is nobody's.
 */
#include "agent/core/shed_private.h"

#include <assert.h>

struct shed_record *shed_record_free(struct shed *s, enum shed_purpose purpose)
{
	bool for_shed = purpose == SHED_PURPOSE_SHED;
	size_t end = for_shed ? s->n_shed_records : s->n_records;

	for (size_t i = for_shed ? 0 : s->n_shed_records; i < end; i++) {
		if (s->records[i].phase == SHED_PHASE_FREE)
			return &s->records[i];
	}
	return NULL;
}

struct shed_record *shed_record_new(
	struct shed *s, size_t prefix, enum shed_purpose purpose, struct monotime now)
{
	struct shed_record *r = shed_record_free(s, purpose);
	struct shed_held *held;

	if (!r)
		return NULL;
	held = r->held;
	*r = (struct shed_record){
		.phase = SHED_PHASE_ASKING,
		.purpose = purpose,
		.prefix = prefix,
		.request = ++s->last_request,
		.since = now,
		.held = held,
	};
	return r;
}

void shed_record_ask(struct shed_record *r, size_t neighbour, uint64_t share, struct monotime now)
{
	r->held[r->n_held++] = (struct shed_held){
		.neighbour = (uint32_t)neighbour,
		.share = share,
		.call_at = now,
	};
}

unsigned shed_record_live(const struct shed_record *r, struct monotime now)
{
	unsigned n = 0;

	for (size_t k = 0; k < r->n_held; k++)
		n += monotime_before(now, r->held[k].until);
	return n;
}

bool shed_record_is_whole(const struct shed_record *r, struct monotime now)
{
	return r->n_held > 0 && shed_record_live(r, now) == r->n_held;
}

size_t shed_record_refused(const struct shed_record *r)
{
	for (size_t k = 0; k < r->n_held; k++) {
		if (r->held[k].refused != SHED_REFUSAL_NONE)
			return k;
	}
	return SIZE_MAX;
}

/* What was asked for is given back by the next calls. */
void shed_record_end(struct shed *s, struct shed_record *r, struct monotime now)
{
	struct shed_prefix_state *p = &s->prefixes[r->prefix];

	if (p->record == r)
		p->record = NULL;
	if (p->permit_record == r)
		p->permit_record = NULL;
	r->phase = SHED_PHASE_ENDING;
	r->since = now;
}

void shed_leases_check(struct shed *s, struct monotime now)
{
	for (size_t i = 0; i < s->n_shed_records; i++) {
		struct shed_record *r = &s->records[i];

		if (r->phase == SHED_PHASE_OUT &&
			shed_record_live(r, now) < s->prefixes[r->prefix].floor)
			shed_restore(s, r, SHED_WHY_LEASES, now);
	}
}

/* ---- calls ---- */

static bool shed_next_give_back(
	struct shed *s, struct shed_record *r, struct shed_call *ret, struct monotime now)
{
	while (r->n_held > 0) {
		const struct shed_held *held = &r->held[--r->n_held];

		if (!held->asked)
			continue;
		*ret = (struct shed_call){
			.give_back = true,
			.neighbour = held->neighbour,
			.prefix = r->prefix,
			.purpose = r->purpose,
			.request = r->request,
			.sent = now,
		};
		return true;
	}
	r->phase = SHED_PHASE_FREE;
	return false;
}

/* Once the receiver's own load must show it, its room need not be kept twice. */
static uint64_t shed_share_now(const struct shed *s, const struct shed_record *r,
	const struct shed_held *held, struct monotime now)
{
	bool visible = r->phase == SHED_PHASE_OUT &&
		       monotime_reached(monotime_add_ms(r->since, s->settings.visible_ms), now);

	return visible ? 0 : held->share;
}

static bool shed_next_post(
	struct shed *s, struct shed_record *r, struct shed_call *ret, struct monotime now)
{
	for (size_t k = 0; k < r->n_held; k++) {
		struct shed_held *held = &r->held[k];
		bool live = monotime_before(now, held->until);

		if (!monotime_reached(held->call_at, now))
			continue;
		held->asked = true;
		held->call_at = monotime_add_ms(
			now, live ? s->settings.renew_ms : s->settings.renew_ms / 2);
		*ret = (struct shed_call){
			.neighbour = held->neighbour,
			.prefix = r->prefix,
			.share = shed_share_now(s, r, held, now),
			.purpose = r->purpose,
			.request = r->request,
			.sent = now,
		};
		return true;
	}
	return false;
}

bool shed_next_call(struct shed *s, struct shed_call *ret, struct monotime now)
{
	for (size_t i = 0; i < s->n_records; i++) {
		struct shed_record *r = &s->records[i];

		switch (r->phase) {
		case SHED_PHASE_FREE:
			break;
		case SHED_PHASE_ASKING:
		case SHED_PHASE_OUT:
			if (shed_next_post(s, r, ret, now))
				return true;
			break;
		case SHED_PHASE_ENDING:
			if (shed_next_give_back(s, r, ret, now))
				return true;
			break;
		}
	}
	return false;
}

static struct shed_held *shed_find_held(struct shed *s, const struct shed_call *call)
{
	for (size_t i = 0; i < s->n_records; i++) {
		struct shed_record *r = &s->records[i];

		if ((r->phase != SHED_PHASE_ASKING && r->phase != SHED_PHASE_OUT) ||
			r->request != call->request || r->prefix != call->prefix)
			continue;
		for (size_t k = 0; k < r->n_held; k++) {
			if (r->held[k].neighbour == call->neighbour)
				return &r->held[k];
		}
	}
	return NULL;
}

void shed_answered(struct shed *s, const struct shed_call *call, const struct shed_answer *answer,
	struct monotime now)
{
	/* Nobody is taken at his word for longer than was asked. */
	uint64_t lease_ms =
		answer->lease_ms < s->settings.lease_ms ? answer->lease_ms : s->settings.lease_ms;
	uint64_t drift_ms = lease_ms * s->settings.drift_bp / SHED_WHOLE_BP;
	uint64_t off_ms = drift_ms + s->settings.guard_ms;
	struct shed_held *held = call->give_back ? NULL : shed_find_held(s, call);

	if (!held || monotime_before(call->sent, held->granted_sent))
		return;
	s->deadline = monotime_min(s->deadline, now);
	held->refused = (uint8_t)answer->refused;
	if (answer->refused != SHED_REFUSAL_NONE) {
		held->until = MONOTIME_ZERO;
		return;
	}
	held->granted_sent = call->sent;
	if (lease_ms > off_ms)
		held->until = monotime_add_ms(call->sent, lease_ms - off_ms);
	held->call_at = monotime_add_ms(call->sent, s->settings.renew_ms);
}

struct monotime shed_record_deadline(const struct shed *s, const struct shed_record *r)
{
	struct monotime at = MONOTIME_NEVER;

	if (r->phase != SHED_PHASE_ASKING && r->phase != SHED_PHASE_OUT)
		return at;
	for (size_t k = 0; k < r->n_held; k++) {
		at = monotime_min(at, r->held[k].call_at);
		if (r->held[k].until.us > 0)
			at = monotime_min(at, r->held[k].until);
	}
	if (r->phase == SHED_PHASE_ASKING)
		return monotime_min(at, monotime_add_ms(r->since, s->settings.ask_ms));
	if (!r->settled)
		return monotime_min(at, monotime_add_ms(r->since, s->settings.settle_ms));
	return at;
}
