/*
 * The effect test: did it help, and did it hurt?
 *
 * A settling time after a prefix went, this server's load must have fallen by at least half of what
 * was moved, and no receiver may have risen by more than was asked of it and be above hot. What is
 * smaller than the noise of a measurement is not judged. A load that does not fall although
 * prefixes leave is not carried by them (a backup, a loop, a sick disk): after the second such shed
 * everything returns and shedding stops for a while, loudly.
 */
#include "agent/core/shed_private.h"

static void shed_stop(struct shed *s, struct monotime now)
{
	for (size_t i = 0; i < s->n_shed_records; i++) {
		if (s->records[i].phase == SHED_PHASE_OUT)
			shed_restore(s, &s->records[i], SHED_WHY_NO_EFFECT, now);
	}
	s->no_effect = 0;
	s->alarm = true;
	s->stopped_until = monotime_add_ms(now, s->settings.leave_alone_ms);
}

/* All that we asked of this neighbour and that may have begun to show since `r` went. */
static uint64_t shed_asked_of(const struct shed *s, const struct shed_record *r, uint32_t neighbour)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->n_prefixes; i++) {
		const struct shed_record *other = s->prefixes[i].record;

		if (!other || other->phase != SHED_PHASE_OUT ||
			monotime_reached(
				monotime_add_ms(other->since, s->settings.settle_ms), r->since))
			continue;
		for (size_t k = 0; k < other->n_held; k++)
			sum += other->held[k].neighbour == neighbour ? other->held[k].share : 0;
	}
	return sum;
}

static bool shed_receiver_rose(
	const struct shed *s, const struct shed_record *r, struct monotime now)
{
	for (size_t k = 0; k < r->n_held; k++) {
		const struct shed_held *held = &r->held[k];
		const struct shed_neighbour *n = &s->neighbours[held->neighbour];
		uint64_t noise = shed_part(n->capacity, s->settings.noise_bp);

		if (shed_is_fresh(s, n, now) && n->valid &&
			n->load > held->load_at + shed_asked_of(s, r, held->neighbour) + noise &&
			shed_is_above(n->load, n->capacity, s->settings.hot_bp))
			return true;
	}
	return false;
}

static void shed_judge_own(struct shed *s, const struct shed_record *r)
{
	uint64_t noise = shed_part(s->own.capacity, s->settings.noise_bp);
	uint64_t fell = r->own_load > s->own.load ? r->own_load - s->own.load : 0;

	if (!s->own.valid || r->why != SHED_WHY_OVERLOAD || r->load <= 2 * noise)
		return;
	s->no_effect = fell * 2 < r->load ? s->no_effect + 1 : 0;
}

void shed_judge_effects(struct shed *s, struct monotime now)
{
	if (s->alarm && monotime_reached(s->stopped_until, now))
		s->alarm = false;
	for (size_t i = 0; i < s->n_shed_records; i++) {
		struct shed_record *r = &s->records[i];

		if (r->phase != SHED_PHASE_OUT || r->settled ||
			!monotime_reached(monotime_add_ms(r->since, s->settings.settle_ms), now))
			continue;
		r->settled = true;
		shed_judge_own(s, r);
		if (s->no_effect >= 2)
			shed_stop(s, now);
		else if (shed_receiver_rose(s, r, now))
			shed_restore(s, r, SHED_WHY_RECEIVER_ROSE, now);
	}
}
