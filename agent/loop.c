/*
 * One turn is prepare, wait, dispatch, as sd_event_run(3) has them: only what is dispatched is
 * measured, not the waiting. systemd dispatches one source in a turn, so a turn is the time for
 * which nothing else is looked at, a death neither. How late a timer fires has more in it: turns
 * that came first, and a machine that has other things to do.
 *
 * The loop's queue of what has happened grows when more happens at once than ever before, which is
 * when a host fails and memory may be short. So it is made to grow at the start: it never shrinks
 * (prioq_put() of systemd). Without memory a turn may fail all the same; then it is tried again
 * after a moment, since the loop keeps what has happened.
 */
#include "agent/loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/events/events.h"

#define LOOP_EVENTS_AT_ONCE 1024
#define LOOP_STARVED_MS 10
#define LOOP_STARVED_SAY_US 60000000
#define LOOP_LOOK_US 1000000

struct loop {
	sd_event *event;
	sd_event_source *timer;
	struct monotime due; /* of `timer` */
	struct monotime starved_said;
	struct loop_view view;
};

static int arm(struct loop *l)
{
	l->due = (struct monotime){clock_monotime().us + LOOP_LOOK_US};
	(void)sd_event_source_set_time(l->timer, l->due.us);
	return sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *source, uint64_t us, void *userdata)
{
	struct loop *l = userdata;

	histogram_add(&l->view.lateness, monotime_since_us(l->due, clock_monotime()));
	return arm(l);
}

/* Best effort. */
static void reserve(sd_event *event)
{
	sd_event_source *sources[LOOP_EVENTS_AT_ONCE] = {NULL};

	for (size_t i = 0; i < ELEMENTSOF(sources); i++)
		if (sd_event_add_defer(event, &sources[i], NULL, NULL) < 0)
			break;
	for (size_t i = 0; i < ELEMENTSOF(sources); i++)
		sd_event_source_disable_unref(sources[i]);
}

static int turn(struct loop *l)
{
	struct monotime began;
	int r;

	r = sd_event_prepare(l->event);
	if (r == 0)
		r = sd_event_wait(l->event, UINT64_MAX);
	if (r <= 0)
		return r;
	began = clock_monotime();
	r = sd_event_dispatch(l->event);
	histogram_add(&l->view.turns, monotime_since_us(began, clock_monotime()));
	return r;
}

static void wait_for_memory(struct loop *l)
{
	if (monotime_since_us(l->starved_said, clock_monotime()) > LOOP_STARVED_SAY_US) {
		event_say(LOG_ERR, EVENT_AGENT_TROUBLE, NULL,
			"no memory: the agent looks again every %d ms", LOOP_STARVED_MS);
		l->starved_said = clock_monotime();
	}
	(void)poll(NULL, 0, LOOP_STARVED_MS);
}

int loop_run(struct loop *l)
{
	int code = 0, r;

	while (sd_event_get_state(l->event) != SD_EVENT_FINISHED) {
		r = turn(l);
		if (r == -ENOMEM)
			wait_for_memory(l);
		else if (r < 0)
			return r;
	}
	r = sd_event_get_exit_code(l->event, &code);
	return r < 0 ? r : code;
}

const struct loop_view *loop_view(const struct loop *l)
{
	return &l->view;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	sd_event_source_disable_unref(l->timer);
	sd_event_unref(l->event);
	free(l);
}

DEFINE_CLEANUP_PTR(struct loop *, loop_free)

int loop_new(struct loop **ret, sd_event *event)
{
	_cleanup_(loop_freep) struct loop *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->event = sd_event_ref(event);
	reserve(event);
	r = sd_event_add_time(event, &l->timer, CLOCK_BOOTTIME, UINT64_MAX, 1, on_timer, l);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(l->timer, "loop-lateness");
	r = arm(l);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(l);
	return 0;
}
