#ifndef REDSHANK_CORE_GUARD_H
#define REDSHANK_CORE_GUARD_H
/*
 * The guard of a reload: a configuration that would withdraw too much of what is announced now is
 * more likely a mistake than a wish. Who means it says so.
 */
#include <stdbool.h>
#include <stddef.h>

struct guard_count {
	size_t n_announced; /* prefixes that are announced or demoted now */
	size_t n_dropped;   /* of them, those that the new configuration does not have */
};

/* More than `percent` of what is announced would go. At 100 nothing is refused, at 0 the first. */
bool guard_refuses(const struct guard_count *count, unsigned percent);

#endif
