#ifndef REDSHANK_BASE_CLOCK_H
#define REDSHANK_BASE_CLOCK_H
/* The two clocks of monotime.h, asked. Not for core/, which is handed its time. */
#include "agent/base/monotime.h"

struct monotime clock_monotime(void);
struct walltime clock_walltime(void);

/* The wall time at which t was or will be, by both clocks as they are now. Never stays INT64_MAX.
 */
struct walltime clock_wall_of(struct monotime t);

/*
 * How far the clock on the wall was set forward since this host booted, in us, as far as can be
 * seen: the tmpfs on /run or /dev/shm was made at the boot, and its root says when that was by
 * the clock of then (statx(2), stx_btime). 0: not at all, backwards, or nobody knows.
 */
uint64_t clock_set_forward_us(void);

/* Processor time of the calling thread, in microseconds. */
uint64_t clock_cpu_us(void);

#define CLOCK_TEXT_MAX 32
/* UTC with milliseconds, "2026-11-30T03:12:44.120Z"; always terminated; returns buf. */
const char *clock_format(struct walltime t, char buf[CLOCK_TEXT_MAX]);

#endif
