/* The words of shedding, each the same in configuration, log, status, metrics and explain. */
#include "agent/core/shed.h"

#include <assert.h>
#include <string.h>

static const char *const shed_why_names[SHED_WHY_COUNT] = {
	[SHED_WHY_COOL] = "cool",
	[SHED_WHY_NOT_YET] = "not_yet",
	[SHED_WHY_OFF] = "off",
	[SHED_WHY_NO_LOAD] = "no_load",
	[SHED_WHY_STARTING] = "starting",
	[SHED_WHY_LATE] = "late",
	[SHED_WHY_STOPPED] = "stopped",
	[SHED_WHY_SETTLING] = "settling",
	[SHED_WHY_WAITING] = "waiting",
	[SHED_WHY_BUDGET] = "budget",
	[SHED_WHY_ALONE] = "alone",
	[SHED_WHY_SITE_HOT] = "site_hot",
	[SHED_WHY_NOT_TOP] = "not_top",
	[SHED_WHY_ASKING] = "asking",
	[SHED_WHY_ENOUGH] = "enough",
	[SHED_WHY_NOT_ANNOUNCED] = "not_announced",
	[SHED_WHY_HELD] = "held",
	[SHED_WHY_PROMISED] = "promised",
	[SHED_WHY_UNCOUNTED] = "uncounted",
	[SHED_WHY_TOO_SMALL] = "too_small",
	[SHED_WHY_TOO_LARGE] = "too_large",
	[SHED_WHY_LAST_PREFIX] = "last_prefix",
	[SHED_WHY_BACK_OFF] = "back_off",
	[SHED_WHY_FLOOR] = "floor",
	[SHED_WHY_TIER_UNKNOWN] = "tier_unknown",
	[SHED_WHY_TIER_HOT] = "tier_hot",
	[SHED_WHY_NO_ROOM] = "no_room",
	[SHED_WHY_NOT_PICKED] = "not_picked",
	[SHED_WHY_OVERLOAD] = "overload",
	[SHED_WHY_OPERATOR] = "operator",
	[SHED_WHY_RELEASED] = "released",
	[SHED_WHY_LEASES] = "leases",
	[SHED_WHY_NO_EFFECT] = "no_effect",
	[SHED_WHY_RECEIVER_ROSE] = "receiver_rose",
	[SHED_WHY_REFUSED] = "refused",
	[SHED_WHY_TIMEOUT] = "timeout",
	[SHED_WHY_TIER_CHANGED] = "tier_changed",
	[SHED_WHY_UNSHED] = "unshed",
	[SHED_WHY_GUARD] = "guard",
	[SHED_WHY_GONE] = "gone",
	[SHED_WHY_NEW] = "new",
};

static const char *const shed_refusal_names[SHED_REFUSAL_COUNT] = {
	[SHED_REFUSAL_NONE] = "granted",
	[SHED_REFUSAL_NOT_ANNOUNCED] = "not_announced",
	[SHED_REFUSAL_LEAVING] = "leaving",
	[SHED_REFUSAL_SHEDDING] = "shedding",
	[SHED_REFUSAL_HOT] = "hot",
	[SHED_REFUSAL_NO_ROOM] = "no_room",
	[SHED_REFUSAL_UNWILLING] = "unwilling",
	[SHED_REFUSAL_STARTING] = "starting",
	[SHED_REFUSAL_FULL] = "full",
	[SHED_REFUSAL_STALE] = "stale",
};

const char *shed_why_name(enum shed_why why)
{
	assert((unsigned)why < SHED_WHY_COUNT);
	return shed_why_names[why];
}

const char *shed_refusal_name(enum shed_refusal refusal)
{
	assert((unsigned)refusal < SHED_REFUSAL_COUNT);
	return shed_refusal_names[refusal];
}

unsigned shed_refusal_parse(const char *word)
{
	for (unsigned i = 0; i < SHED_REFUSAL_COUNT; i++) {
		if (strcmp(word, shed_refusal_names[i]) == 0)
			return i;
	}
	return SHED_REFUSAL_COUNT;
}

const char *shed_mode_name(enum shed_mode mode)
{
	return mode == SHED_MODE_DEMOTE ? "demote" : "withdraw";
}

const char *shed_purpose_name(enum shed_purpose purpose)
{
	return purpose == SHED_PURPOSE_HEALTH ? "health" : "shed";
}

const char *shed_state_name(enum shed_state state)
{
	static const char *const names[] = {
		[SHED_STATE_OUT] = "out",
		[SHED_STATE_KEPT] = "kept",
		[SHED_STATE_HEALTHY] = "healthy",
	};

	return names[state];
}

const char *shed_permit_name(enum shed_permit permit)
{
	static const char *const names[] = {
		[SHED_PERMIT_NONE] = "none",
		[SHED_PERMIT_WAITING] = "waiting",
		[SHED_PERMIT_GRANTED] = "granted",
		[SHED_PERMIT_KEPT] = "kept",
	};

	return names[permit];
}
