/* One clock for each leaving, see the header. */
#include "agent/core/leave.h"

bool leave_lingers(const struct leave_settings *settings, struct leave *l, bool leaves,
	bool announced, struct monotime now)
{
	if (!leaves) {
		l->begun = false;
		return false;
	}
	if (!l->begun) {
		l->begun = true;
		l->ends = monotime_add_ms(now, settings->graceful_ms);
	}
	if (!announced)
		l->ends = monotime_min(l->ends, now);
	return !monotime_reached(l->ends, now);
}

struct monotime leave_ends(const struct leave *l, struct monotime now)
{
	return l->begun && !monotime_reached(l->ends, now) ? l->ends : MONOTIME_NEVER;
}
