/*
 * The thresholds of shedding: what holds when nothing is configured, and what may be. The order of
 * the four limits keeps the law from chasing itself: what returns stays under `release`, what is
 * shed aims at `target`, who receives stays under `accept`, and only above `hot` anything goes. The
 * order of the times keeps a holder's lease inside the receiver's.
 */
#include "agent/core/shed.h"

#define MINUTE_MS 60000ull

struct shed_settings shed_settings_default(void)
{
	return (struct shed_settings){
		.receive = true,
		.mode = SHED_MODE_WITHDRAW,
		.release_bp = 7200,
		.target_bp = 7500,
		.accept_bp = 8200,
		.hot_bp = 8500,
		.margin_bp = 2000,
		.pick_min_bp = 100,
		.pick_max_bp = 3000,
		.most_bp = 5000,
		.warm_share_bp = 300,
		.site_hot_bp = 4000,
		.fresh_bp = 5000,
		.noise_bp = 300,
		.drift_bp = 200,
		.over_ms = 6000,
		.rank_ms = 3000,
		.visible_ms = 12000,
		.settle_ms = 20000,
		.under_ms = 5 * MINUTE_MS,
		.release_gap_ms = MINUTE_MS,
		.ask_ms = 10000,
		.wait_min_ms = 3000,
		.wait_max_ms = 12000,
		.stale_ms = 3000,
		.forget_ms = 5 * MINUTE_MS,
		.lease_ms = 10000,
		.guard_ms = 2000,
		.renew_ms = 2000,
		.late_ms = 1000,
		.permit_ms = 2000,
		.back_off_ms = 2 * MINUTE_MS,
		.back_off_max_ms = 60 * MINUTE_MS,
		.leave_alone_ms = 60 * MINUTE_MS,
		.prefix_changes = 2,
		.prefix_window_ms = 15 * MINUTE_MS,
		.in_flight = 3,
		.server_changes = 6,
		.server_window_ms = 10 * MINUTE_MS,
	};
}

static bool shed_settings_fault(struct shed_fault *ret, struct shed_fault fault)
{
	*ret = fault;
	return false;
}

static bool shed_settings_order(const char *low, uint64_t low_value, const char *high,
	uint64_t high_value, struct shed_fault *ret)
{
	return low_value < high_value ||
	       shed_settings_fault(
		       ret, (struct shed_fault){low, high, low_value, high_value, 0, 0});
}

static bool shed_settings_range(
	const char *key, uint64_t value, uint64_t low, uint64_t high, struct shed_fault *ret)
{
	return (value >= low && value <= high) ||
	       shed_settings_fault(ret, (struct shed_fault){key, NULL, value, 0, low, high});
}

bool shed_settings_check(const struct shed_settings *s, struct shed_fault *ret)
{
	uint64_t drift_ms = s->lease_ms * s->drift_bp / SHED_WHOLE_BP;

	return shed_settings_range("release", s->release_bp, 100, 9999, ret) &&
	       shed_settings_order("release", s->release_bp, "target", s->target_bp, ret) &&
	       shed_settings_order("target", s->target_bp, "accept", s->accept_bp, ret) &&
	       shed_settings_order("accept", s->accept_bp, "hot", s->hot_bp, ret) &&
	       shed_settings_range("hot", s->hot_bp, 1, 20000, ret) &&
	       shed_settings_range("margin", s->margin_bp, 0, 10000, ret) &&
	       shed_settings_range("drift", s->drift_bp, 0, 2000, ret) &&
	       shed_settings_order("pick_min", s->pick_min_bp, "pick_max", s->pick_max_bp, ret) &&
	       shed_settings_range("pick_max", s->pick_max_bp, 1, SHED_WHOLE_BP, ret) &&
	       shed_settings_range("most", s->most_bp, 1, 5000, ret) &&
	       shed_settings_range("site_hot", s->site_hot_bp, 0, SHED_WHOLE_BP, ret) &&
	       shed_settings_range("lease", s->lease_ms, 1, 3600 * 1000, ret) &&
	       shed_settings_order("guard", s->guard_ms + drift_ms, "lease", s->lease_ms, ret) &&
	       shed_settings_order(
		       "renew", s->renew_ms, "lease", s->lease_ms - drift_ms - s->guard_ms, ret) &&
	       shed_settings_order("stale_after", s->stale_ms, "forget_after", s->forget_ms, ret) &&
	       shed_settings_range("visible", s->visible_ms, 0, s->settle_ms, ret) &&
	       shed_settings_range("wait", s->wait_max_ms, s->wait_min_ms, UINT64_MAX, ret) &&
	       shed_settings_range("in_flight", s->in_flight, 1, SHED_OUT_MAX / 2, ret) &&
	       shed_settings_range("server_changes", s->server_changes, 1, SHED_CHANGES_MAX, ret) &&
	       shed_settings_range(
		       "prefix_changes", s->prefix_changes, 1, SHED_PREFIX_CHANGES_MAX, ret);
}
