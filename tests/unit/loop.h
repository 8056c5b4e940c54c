#ifndef REDSHANK_TESTS_LOOP_H
#define REDSHANK_TESTS_LOOP_H
/* Runs a loop until something is true, with a deadline: nothing in these tests sleeps for luck. */
#include <systemd/sd-event.h>

#include "agent/base/clock.h"

/* A machine that runs other things, or valgrind, may take so many times as long as this one alone.
 */
#define LOOP_PATIENCE 10

/* True as soon as `expression` is; false when it is not within LOOP_PATIENCE times `ms`, which is
 * long enough where the machine is not busy. */
#define LOOP_UNTIL(event, expression, ms) LOOP_WITHIN((event), (expression), (ms)*LOOP_PATIENCE)

#define LOOP_WITHIN(event, expression, ms)                                                     \
	({                                                                                     \
		struct monotime until_ = monotime_add_ms(clock_monotime(), (ms));              \
		bool true_;                                                                    \
		while (!(true_ = (expression)) && !monotime_reached(until_, clock_monotime())) \
			(void)sd_event_run((event), 10000);                                    \
		true_;                                                                         \
	})

/* Runs the loop for `ms`, for what must not happen. */
#define LOOP_FOR(event, ms) ((void)LOOP_WITHIN((event), false, (ms)))

#endif
