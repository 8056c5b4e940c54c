#ifndef REDSHANK_HEALTH_H
#define REDSHANK_HEALTH_H
/*
 * The agent's own health, as GET /healthz tells it: it decides, and its checks run when they are
 * due. Nothing of it is about services or BIRD.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/checks.h"

#define HEALTH_LATE_MS 1000

/* How late a check is that should have moved, in microseconds; 0: it is not. Pure. */
uint64_t health_late_us(const struct run_view *view, struct monotime now);

/* One line of text with its newline; at least 128 bytes. True: "ok". `ready`: the agent decides. */
bool health_tell(const struct checks *checks, const struct config *config, bool ready,
	bool stopping, char *text, size_t size);

#endif
