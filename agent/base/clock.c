#include "agent/base/clock.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>

#include "agent/base/cleanup.h"

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

/* When a file system was made, by the clock on the wall of then; 0: it does not say, or is none
 * that is made at a boot. */
static int64_t clock_birth_us(const char *path)
{
	struct statfs fs;
	struct statx st;

	if (statfs(path, &fs) < 0 || fs.f_type != TMPFS_MAGIC ||
		statx(AT_FDCWD, path, 0, STATX_BTIME, &st) < 0 || !(st.stx_mask & STATX_BTIME))
		return 0;
	return st.stx_btime.tv_sec * 1000000 + st.stx_btime.tv_nsec / 1000;
}

uint64_t clock_set_forward_us(void)
{
	static const char *const made_at_boot[] = {"/run", "/dev/shm"};
	int64_t boot = clock_wall_of(MONOTIME_ZERO).us, forward = 0;

	/* A container may have made one of them later than that: the oldest counts. */
	for (size_t i = 0; i < ELEMENTSOF(made_at_boot); i++) {
		int64_t birth = clock_birth_us(made_at_boot[i]);

		if (birth != 0 && boot - birth > forward)
			forward = boot - birth;
	}
	return (uint64_t)forward;
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
