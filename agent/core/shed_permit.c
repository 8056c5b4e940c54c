/*
 * The floor for health: an unhealthy server leaves a prefix only with the promise of at least
 * `floor` neighbours to go on announcing it healthily. So five servers that lose one upstream at
 * once all stay, degraded, and three of five do leave.
 *
 * A permit is used at once or not at all: once this server has left it promises nothing and counts
 * for nobody, so that the promises may be given back. What this server has promised itself it keeps
 * first, also what it may have promised in a life that it has forgotten.
 */
#include "agent/core/shed_private.h"

static void shed_permit_set(struct shed *s, struct shed_prefix_state *p, enum shed_permit permit)
{
	s->changed = s->changed || p->permit != permit;
	p->permit = permit;
}

static void shed_permit_ask(struct shed *s, size_t prefix, struct monotime now)
{
	struct shed_prefix_state *p = &s->prefixes[prefix];
	struct shed_record *r;

	if (shed_others(s, prefix, now) < p->floor)
		return;
	r = shed_record_new(s, prefix, SHED_PURPOSE_HEALTH, now);
	if (!r)
		return;
	for (size_t j = 0; j < s->n_neighbours; j++) {
		const struct shed_neighbour *n = &s->neighbours[j];

		if (shed_is_fresh(s, n, now) && shed_announces(s, n, prefix, now) &&
			n->seen[prefix].state == SHED_STATE_HEALTHY)
			shed_record_ask(r, j, 0, now);
	}
	p->permit_record = r;
}

/* It is out for its load already, and those who promised that still do. */
static bool shed_permit_from_shed(struct shed *s, struct shed_prefix_state *p, struct monotime now)
{
	struct shed_record *r = p->record;

	if (!r || r->phase != SHED_PHASE_OUT || shed_record_live(r, now) < p->floor)
		return false;
	p->last = SHED_WHY_GONE;
	p->last_at = now;
	shed_record_end(s, r, now);
	return true;
}

static bool shed_permit_wait(struct shed *s, size_t prefix, struct monotime now, uint64_t random)
{
	struct shed_prefix_state *p = &s->prefixes[prefix];
	struct shed_record *r = p->permit_record;
	uint64_t spread_ms = s->settings.wait_max_ms - s->settings.wait_min_ms + 1;
	struct monotime until;

	if (r && shed_record_live(r, now) >= p->floor) {
		shed_record_end(s, r, now);
		return true;
	}
	if (r && monotime_reached(monotime_add_ms(r->since, s->settings.permit_ms), now)) {
		shed_record_end(s, r, now);
		p->permit_retry =
			monotime_add_ms(now, s->settings.wait_min_ms + random % spread_ms);
	}
	if (!p->permit_record && monotime_reached(p->permit_retry, now) &&
		!shed_is_starting(s, now) && !shed_is_bound(s, prefix, now, &until))
		shed_permit_ask(s, prefix, now);
	return false;
}

void shed_permits_decide(struct shed *s, struct monotime now, uint64_t random)
{
	for (size_t i = 0; i < s->n_prefixes; i++) {
		struct shed_prefix_state *p = &s->prefixes[i];
		struct monotime kept_at = monotime_add_ms(p->leave_since, s->settings.permit_ms);

		if (!p->leave || !p->floor_health) {
			if (p->permit_record)
				shed_record_end(s, p->permit_record, now);
			shed_permit_set(s, p, p->leave ? SHED_PERMIT_GRANTED : SHED_PERMIT_NONE);
			continue;
		}
		if (p->permit == SHED_PERMIT_GRANTED)
			continue;
		if (shed_permit_from_shed(s, p, now) || shed_permit_wait(s, i, now, random))
			shed_permit_set(s, p, SHED_PERMIT_GRANTED);
		else if (monotime_reached(kept_at, now))
			shed_permit_set(s, p, SHED_PERMIT_KEPT);
	}
}
