#ifndef REDSHANK_LOOP_H
#define REDSHANK_LOOP_H
/*
 * The agent's loop: it turns until it is told to end, goes on when there is no memory, and measures
 * itself, since whatever a turn takes is what a death may have to wait.
 */
#include <systemd/sd-event.h>

#include "agent/base/histogram.h"

struct loop;

struct loop_view {
	struct histogram turns;	   /* how long what was dispatched took, each time */
	struct histogram lateness; /* of a timer, once a second: the machine's part is in it */
};

/* Takes the memory that the loop may need when much happens at once. Heap. 0 or negative errno. */
int loop_new(struct loop **ret, sd_event *event);
void loop_free(struct loop *l);

/* Runs until sd_event_exit(): its code. Negative errno: the loop has failed. */
int loop_run(struct loop *l);

/* Borrowed, and lives as long as the loop. */
const struct loop_view *loop_view(const struct loop *l);

#endif
