/*
 * Progress, as systemd's watchdog is told of it.
 *
 * The timer has the priority of ordinary I/O: a source above it that never rests starves it, and
 * that is meant. It is not the lowest, because an agent with more checks than it has CPU for is
 * late, which a new agent would be, too; how late a check may be is a bound for each of them.
 *
 * After a pause of the whole machine (suspend, a stopped VM) everything looks overdue for one turn
 * of the loop. So a feeding is left out, which costs nothing, and it is said only when the next one
 * is left out, too.
 */
#include "agent/watchdog.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/base/clock.h"
#include "agent/events/events.h"
#include "agent/system/notify.h"

#define FEEDINGS 4
#define ACCURACY_US 50000

struct watchdog {
	sd_event_source *timer; /* NULL: systemd does not ask */
	uint64_t period_us;
	const struct checks *checks;
	const struct config *const *config;
	unsigned left_out; /* feedings in a row */
};

bool watchdog_overdue(const struct run_view *view, uint64_t interval_ms, struct monotime now)
{
	struct monotime moves = view->busy ? view->deadline : view->next;

	if (monotime_is_never(moves))
		return !monotime_is_never(view->began);
	return monotime_reached(
		monotime_add_ms(monotime_add_ms(moves, interval_ms), WATCHDOG_LATE_MS), now);
}

/* The first check that does not move; false when all do. */
static bool find_overdue(const struct watchdog *w, struct monotime now, const char **ret_service,
	const char **ret_check)
{
	const struct config *config = *w->config;

	for (size_t s = 0; s < config->n_services; s++)
		for (size_t c = 0; c < config->services[s].n_checks; c++) {
			struct run_view view;

			checks_view(w->checks, s, c, &view);
			if (!watchdog_overdue(
				    &view, config->services[s].checks[c].interval_ms, now))
				continue;
			*ret_service = config->services[s].name;
			*ret_check = config->services[s].checks[c].name;
			return true;
		}
	return false;
}

static int on_timer(sd_event_source *source, uint64_t us, void *userdata)
{
	struct watchdog *w = userdata;
	const char *service, *check;

	if (!find_overdue(w, clock_monotime(), &service, &check)) {
		w->left_out = 0;
		notify_watchdog();
	} else if (++w->left_out == 2) {
		const struct event_fields fields = {.service = service, .check = check};

		event_say(LOG_ERR, EVENT_AGENT_TROUBLE, &fields,
			"check %s/%s does not move any more, by a fault of this agent: systemd's "
			"watchdog will start another one",
			service, check);
	}
	(void)sd_event_source_set_time_relative(source, w->period_us);
	(void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	return 0;
}

int watchdog_new(struct watchdog **ret, sd_event *event, const struct checks *checks,
	const struct config *const *config)
{
	struct watchdog *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	*w = (struct watchdog){
		.checks = checks, .config = config, .period_us = notify_watchdog_us() / FEEDINGS};
	if (w->period_us > 0) {
		r = sd_event_add_time_relative(
			event, &w->timer, CLOCK_BOOTTIME, 0, ACCURACY_US, on_timer, w);
		if (r < 0) {
			watchdog_free(w);
			return r;
		}
		(void)sd_event_source_set_description(w->timer, "watchdog");
	}
	*ret = w;
	return 0;
}

void watchdog_free(struct watchdog *w)
{
	if (!w)
		return;
	sd_event_source_disable_unref(w->timer);
	free(w);
}
