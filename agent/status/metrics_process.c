/*
 * The process's own resources, from proc(5) and getrusage(2). Cheap enough for the loop: open
 * descriptors are counted by stat(2) where the kernel tells them so (Linux 6.2), else one by one.
 */
#include "agent/status/metrics_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"

#define PROCESS_STAT_MAX 1024
#define PROCESS_START_FIELD 22 /* of /proc/self/stat, from 1 */

/* A file of /proc/self as a string. False where it cannot be read. */
static bool process_read(const char *path, char buf[PROCESS_STAT_MAX])
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, PROCESS_STAT_MAX - 1);

	if (n <= 0)
		return false;
	buf[n] = '\0';
	return true;
}

uint64_t metrics_process_cpu_us(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) < 0)
		return 0;
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

uint64_t metrics_process_resident_bytes(void)
{
	char text[PROCESS_STAT_MAX], *at;

	if (!process_read("/proc/self/statm", text))
		return 0;
	at = strchr(text, ' '); /* behind the size as a whole */
	return at ? strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uint64_t metrics_process_open_fds(void)
{
	struct stat st;
	uint64_t n = 0;
	DIR *folder;

	if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
		return (uint64_t)st.st_size;
	folder = opendir("/proc/self/fd");
	if (!folder)
		return 0;
	for (const struct dirent *e; (e = readdir(folder)) != NULL;)
		n += e->d_name[0] != '.';
	(void)closedir(folder);
	return n - 1; /* that of the folder itself */
}

uint64_t metrics_process_max_fds(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

static uint64_t process_started_us(void)
{
	char text[PROCESS_STAT_MAX], *at;
	struct walltime wall;
	uint64_t ticks;

	if (!process_read("/proc/self/stat", text))
		return 0;
	at = strrchr(text, ')'); /* the end of the second field, which may hold blanks */
	for (unsigned field = 2; at && field < PROCESS_START_FIELD; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return 0;
	ticks = strtoull(at, NULL, 10); /* since boot, as CLOCK_BOOTTIME counts */
	wall = clock_wall_of((struct monotime){ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK)});
	return wall.us > 0 ? (uint64_t)wall.us : 0;
}

uint64_t metrics_process_started_us(void)
{
	static uint64_t started_us; /* once: the clock on the wall may be set, the start stays */

	if (started_us == 0)
		started_us = process_started_us();
	return started_us;
}
