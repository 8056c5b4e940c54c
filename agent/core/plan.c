/*
 * The table of the header, one function for each thing that can be wanted. It remembers nothing:
 * whoever carries a step out observes BIRD and asks again, so that a lost reply, a foreign command
 * and a restarted BIRD are all the same case.
 */
#include "agent/core/plan.h"

#include <assert.h>
#include <stdlib.h>

/* `configure`, or waiting for its back-off. */
static enum plan_step plan_configure(const struct plan_bird *bird)
{
	return bird->configure_refused ? PLAN_STEP_WAIT : PLAN_STEP_CONFIGURE;
}

/* Both what is wanted down and what is no longer configured must not be announced: whatever BIRD
 * makes of its configuration, `disable` works. */
static enum plan_step plan_next_down(
	const struct plan_protocol *protocol, const struct plan_bird *bird)
{
	bool comes = protocol->want == PLAN_WANT_DOWN && protocol->coming;

	switch (comes ? PLAN_SEEN_UP : protocol->seen) {
	case PLAN_SEEN_UNKNOWN:
		return PLAN_STEP_OBSERVE;
	case PLAN_SEEN_UP:
		return PLAN_STEP_DISABLE;
	case PLAN_SEEN_DOWN:
		return protocol->want == PLAN_WANT_GONE ? plan_configure(bird) : PLAN_STEP_NONE;
	case PLAN_SEEN_ABSENT:
		return protocol->want == PLAN_WANT_GONE ? PLAN_STEP_NONE : plan_configure(bird);
	}
	abort();
}

static enum plan_step plan_next_up(
	const struct plan_protocol *protocol, const struct plan_bird *bird)
{
	bool loaded = protocol->loaded == protocol->body;

	switch (protocol->seen) {
	case PLAN_SEEN_UNKNOWN:
		return PLAN_STEP_OBSERVE;
	case PLAN_SEEN_ABSENT:
		return plan_configure(bird);
	case PLAN_SEEN_UP:
		if (loaded)
			return PLAN_STEP_NONE;
		if (protocol->loaded == PLAN_BODY_UNKNOWN)
			return PLAN_STEP_READ;
		return plan_configure(bird);
	case PLAN_SEEN_DOWN:
		if (loaded || (bird->configure_refused && !protocol->partial))
			return PLAN_STEP_ENABLE;
		return plan_configure(bird);
	}
	abort();
}

enum plan_step plan_next(const struct plan_protocol *protocol, const struct plan_bird *bird)
{
	switch (protocol->want) {
	case PLAN_WANT_GONE:
	case PLAN_WANT_DOWN:
		return plan_next_down(protocol, bird);
	case PLAN_WANT_UP:
		assert(protocol->body != PLAN_BODY_UNKNOWN);
		return plan_next_up(protocol, bird);
	}
	abort();
}

const char *plan_step_name(enum plan_step step)
{
	switch (step) {
	case PLAN_STEP_NONE:
		return "none";
	case PLAN_STEP_DISABLE:
		return "disable";
	case PLAN_STEP_ENABLE:
		return "enable";
	case PLAN_STEP_CONFIGURE:
		return "configure";
	case PLAN_STEP_READ:
		return "read";
	case PLAN_STEP_OBSERVE:
		return "observe";
	case PLAN_STEP_WAIT:
		return "wait";
	}
	abort();
}
