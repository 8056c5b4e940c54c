/*
 * A loop that is late shows in what it should have begun or ended: the most belated check is its
 * measure, and no timer is needed for it. The watchdog asks the same with much more patience, since
 * it kills.
 */
#include "agent/health.h"

#include <stdio.h>

#include "agent/base/clock.h"

uint64_t health_late_us(const struct run_view *view, struct monotime now)
{
	struct monotime moves = view->busy ? view->deadline : view->next;

	return monotime_is_never(moves) ? 0 : monotime_since_us(moves, now);
}

bool health_tell(const struct checks *checks, const struct config *config, bool ready,
	bool stopping, char *text, size_t size)
{
	struct monotime now = clock_monotime();
	uint64_t most = 0, late;
	size_t service = 0, check = 0;

	if (stopping || !ready) {
		(void)snprintf(text, size, "%s\n",
			stopping ? "stopping" : "not ready: BIRD is being asked what it announces");
		return false;
	}
	for (size_t s = 0; s < config->n_services; s++)
		for (size_t c = 0; c < config->services[s].n_checks; c++) {
			struct run_view view;

			checks_view(checks, s, c, &view);
			late = health_late_us(&view, now);
			if (late <= most)
				continue;
			most = late;
			service = s;
			check = c;
		}
	if (most < HEALTH_LATE_MS * 1000) {
		(void)snprintf(text, size, "ok\n");
		return true;
	}
	(void)snprintf(text, size, "late: check %s/%s is %llu ms behind\n",
		config->services[service].name, config->services[service].checks[check].name,
		(unsigned long long)(most / 1000));
	return false;
}
