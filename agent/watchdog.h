#ifndef REDSHANK_WATCHDOG_H
#define REDSHANK_WATCHDOG_H
/*
 * Feeds systemd's watchdog (WatchdogSec in the unit) while the agent makes progress: the loop
 * turns, and every check that runs moves on. A check that a fault of ours has lost would otherwise
 * keep its last state for ever, and its service announced. What is not fed is killed and started
 * again by systemd; BIRD keeps what was true, and the next agent adopts it.
 */
#include <systemd/sd-event.h>

#include "agent/checks.h"

#define WATCHDOG_LATE_MS 10000

/*
 * True when a check should have moved long ago: its attempt should have ended, or its next one
 * begun, more than `interval_ms` and WATCHDOG_LATE_MS ago; or it has begun before, and nothing will
 * ever begin it again. A check that does not run is never overdue. Pure.
 */
bool watchdog_overdue(const struct run_view *view, uint64_t interval_ms, struct monotime now);

struct watchdog;

/* Feeds from now on, four times in each WatchdogSec; does nothing where systemd does not ask for
 * it. `config` is where the current configuration, that of `checks`, is found at any time. Heap. 0
 * or negative errno. */
int watchdog_new(struct watchdog **ret, sd_event *event, const struct checks *checks,
	const struct config *const *config);
void watchdog_free(struct watchdog *w);

#endif
