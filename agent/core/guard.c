/* See the header. */
#include "agent/core/guard.h"

bool guard_refuses(const struct guard_count *count, unsigned percent)
{
	return count->n_dropped * 100 > count->n_announced * percent;
}
