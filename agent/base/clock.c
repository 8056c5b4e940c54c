#include "agent/base/clock.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

static int64_t clock_us(clockid_t id)
{
	struct timespec ts;
	int r = clock_gettime(id, &ts);

	assert(r == 0);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

struct monotime clock_monotime(void)
{
	return (struct monotime){(uint64_t)clock_us(CLOCK_BOOTTIME)};
}

struct walltime clock_walltime(void)
{
	return (struct walltime){clock_us(CLOCK_REALTIME)};
}

struct walltime clock_wall_of(struct monotime t)
{
	if (monotime_is_never(t))
		return (struct walltime){INT64_MAX};
	return (struct walltime){
		clock_walltime().us + ((int64_t)t.us - (int64_t)clock_monotime().us)};
}

uint64_t clock_cpu_us(void)
{
	return (uint64_t)clock_us(CLOCK_THREAD_CPUTIME_ID);
}

const char *clock_format(struct walltime t, char buf[CLOCK_TEXT_MAX])
{
	time_t seconds = (time_t)(t.us / 1000000);
	struct tm tm;
	size_t n;

	if (!gmtime_r(&seconds, &tm) ||
		(n = strftime(buf, CLOCK_TEXT_MAX - 5, "%Y-%m-%dT%H:%M:%S", &tm)) == 0) {
		(void)snprintf(buf, CLOCK_TEXT_MAX, "-");
		return buf;
	}
	(void)snprintf(buf + n, CLOCK_TEXT_MAX - n, ".%03uZ",
		(unsigned)((uint64_t)t.us % 1000000 / 1000) % 1000);
	return buf;
}
