/* See the header. Every path to a removal goes through rules 0 to 6. */
#include "agent/core/managed.h"

#include <stdlib.h>

/* Rule 2. */
static struct managed_verdict managed_stay(const struct managed_facts *f)
{
	if (f->here)
		return (struct managed_verdict){f->ours && f->ours_apart && f->may_remove
							? MANAGED_ACTION_TIDY
							: MANAGED_ACTION_NONE,
			f->ours ? MANAGED_STATE_PRESENT : MANAGED_STATE_OTHERS};
	if (f->others)
		return (struct managed_verdict){MANAGED_ACTION_NONE, MANAGED_STATE_OTHERS};
	return (struct managed_verdict){
		f->may_add ? MANAGED_ACTION_ADD : MANAGED_ACTION_NONE, MANAGED_STATE_MISSING};
}

struct managed_verdict managed_decide(const struct managed_facts *f)
{
	bool stays = f->configured && f->managed && !f->leaves;

	if (f->kept && !stays)
		return (struct managed_verdict){MANAGED_ACTION_NONE, MANAGED_STATE_KEPT};
	if (f->configured && !f->managed)
		return (struct managed_verdict){MANAGED_ACTION_NONE, MANAGED_STATE_HANDED};
	if (stays)
		return managed_stay(f);
	if (!f->ours)
		return (struct managed_verdict){MANAGED_ACTION_NONE,
			f->here || f->others ? MANAGED_STATE_OTHERS : MANAGED_STATE_ABSENT};
	if (f->wanted)
		return (struct managed_verdict){MANAGED_ACTION_NONE, MANAGED_STATE_ANNOUNCED};
	switch (f->bird) {
	case MANAGED_BIRD_UNKNOWN:
	case MANAGED_BIRD_ANNOUNCES:
		return (struct managed_verdict){MANAGED_ACTION_NONE, MANAGED_STATE_BIRD};
	case MANAGED_BIRD_WITHDRAWN:
		break;
	}
	if (!f->grace_over)
		return (struct managed_verdict){MANAGED_ACTION_NONE, MANAGED_STATE_GRACE};
	return (struct managed_verdict){
		f->may_remove ? MANAGED_ACTION_REMOVE : MANAGED_ACTION_NONE, MANAGED_STATE_ABSENT};
}

const char *managed_state_name(enum managed_state state)
{
	switch (state) {
	case MANAGED_STATE_KEPT:
		return "kept";
	case MANAGED_STATE_HANDED:
		return "handed";
	case MANAGED_STATE_PRESENT:
		return "present";
	case MANAGED_STATE_OTHERS:
		return "others";
	case MANAGED_STATE_MISSING:
		return "missing";
	case MANAGED_STATE_ANNOUNCED:
		return "announced";
	case MANAGED_STATE_BIRD:
		return "bird";
	case MANAGED_STATE_GRACE:
		return "grace";
	case MANAGED_STATE_ABSENT:
		return "absent";
	}
	abort();
}
