#ifndef REDSHANK_BASE_CLOCK_H
#define REDSHANK_BASE_CLOCK_H
/* The two clocks of monotime.h, asked. Not for core/, which is handed its time. */
#include "agent/base/monotime.h"

struct monotime clock_monotime(void);
struct walltime clock_walltime(void);

/* The wall time at which t was or will be, by both clocks as they are now. Never stays INT64_MAX.
 */
struct walltime clock_wall_of(struct monotime t);

/* Processor time of the calling thread, in microseconds. */
uint64_t clock_cpu_us(void);

#define CLOCK_TEXT_MAX 32
/* UTC with milliseconds, "2026-11-30T03:12:44.120Z"; always terminated; returns buf. */
const char *clock_format(struct walltime t, char buf[CLOCK_TEXT_MAX]);

#endif
