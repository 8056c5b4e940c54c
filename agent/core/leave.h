#ifndef REDSHANK_CORE_LEAVE_H
#define REDSHANK_CORE_LEAVE_H
/*
 * Leaving gently: a prefix that an operator drains, or that the stopping agent takes along, stays
 * announced for a while with GRACEFUL_SHUTDOWN (RFC 8326), so that routers find another way before
 * this one is gone. The clock runs from the first decision that it is to leave, once for each
 * leaving: what is out stays out.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/base/monotime.h"

struct leave_settings {
	uint64_t graceful_ms; /* 0: at once */
	bool has_weight;
	uint32_t weight; /* meanwhile, where the prefix has no last resort */
};

struct leave {
	bool begun;
	struct monotime ends;
};

/*
 * Does the prefix linger at `now`? `leaves`: it is to leave; `announced`: it is announced, or
 * demoted, now. Begins, ends and forgets the leaving.
 */
bool leave_lingers(const struct leave_settings *settings, struct leave *l, bool leaves,
	bool announced, struct monotime now);
/* When it stops to linger after leave_lingers() said that it does; never: it does not. */
struct monotime leave_ends(const struct leave *l, struct monotime now);

#endif
