/*
 * Processes as the kernel tells of them.
 *
 * A pidfd is the one handle that stays with a process: it cannot come to mean another one when the
 * id is used again, and it polls readable when the process is dead. What /proc says of an id is
 * said of our process as long as the pidfd, asked afterwards, says that it lives.
 *
 * Nothing that /proc shows is trusted to be short or well-formed: a process chooses its own name,
 * brackets and spaces included.
 */
#include "probes/pids.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "probes/probe.h"

static void closedirp(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

int pids_watch_open(struct pids_watch *w, sd_event *event, pid_t pid, sd_event_io_handler_t died,
	void *userdata)
{
	_cleanup_close_ int fd = pidfd_open(pid, 0);
	sd_event_source *io = NULL;
	int r;

	/* A thread's id is EINVAL, and ENOENT since Linux 6.9. */
	if (fd < 0)
		return errno == ENOENT ? -EINVAL : -errno;
	r = sd_event_add_io(event, &io, fd, EPOLLIN, died, userdata);
	if (r < 0)
		return r;
	(void)sd_event_source_set_priority(io, PROBE_PRIORITY_DEATH);
	(void)sd_event_source_set_description(io, "check-process-death");
	*w = (struct pids_watch){.pid = pid, .fd = TAKE_FD(fd), .io = io};
	return 0;
}

void pids_watch_close(struct pids_watch *w)
{
	sd_event_source_disable_unref(w->io);
	if (w->fd >= 0)
		(void)close(w->fd);
	*w = PIDS_WATCH_NONE;
}

bool pids_watch_alive(const struct pids_watch *w)
{
	struct pollfd dead = {.fd = w->fd, .events = POLLIN};

	return w->fd >= 0 && poll(&dead, 1, 0) == 0;
}

/* One read of /proc/PID/FILE as a string, cut at the size of buf. */
static int read_proc(pid_t pid, const char *file, char *buf, size_t size)
{
	_cleanup_close_ int fd = -1;
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

int pids_state(pid_t pid, enum pids_state *ret)
{
	char text[8192];
	const char *line;
	int r = read_proc(pid, "status", text, sizeof(text));

	if (r < 0)
		return r;
	/* The name on the first line has its newlines escaped, so these begin lines of the kernel.
	 */
	line = strstr(text, "\nCoreDumping:\t1");
	if (line) {
		*ret = PIDS_DUMPING;
		return 0;
	}
	*ret = strstr(text, "\nState:\tZ") ? PIDS_ZOMBIE : PIDS_RUNNING;
	return 0;
}

int pids_started(pid_t pid, struct monotime *ret)
{
	unsigned long long ticks;
	char text[1024];
	const char *rest;
	int r = read_proc(pid, "stat", text, sizeof(text));

	if (r < 0)
		return r;
	/* Field 2 is the name in brackets, which may hold brackets: field 3 follows the last one.
	 */
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest + 1,
			     " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			     "%*s %*s %llu",
			     &ticks) != 1)
		return -EIO;
	*ret = (struct monotime){ticks * (1000000 / (uint64_t)sysconf(_SC_CLK_TCK))};
	return 0;
}

static struct {
	struct pids_entry *entries;
	size_t n, allocated;
	struct monotime made; /* 0: never */
} list;

static int list_add(pid_t pid, const char *comm, size_t length)
{
	struct pids_entry *e;

	if (list.n == list.allocated) {
		size_t allocated = list.allocated ? 2 * list.allocated : 256;

		e = reallocarray(list.entries, allocated, sizeof(*e));
		if (!e)
			return -ENOMEM;
		list.entries = e;
		list.allocated = allocated;
	}
	e = &list.entries[list.n++];
	e->pid = pid;
	if (length >= sizeof(e->comm))
		length = sizeof(e->comm) - 1;
	memcpy(e->comm, comm, length);
	e->comm[length] = '\0';
	return 0;
}

static int list_read_comm(int proc_fd, const char *name)
{
	char path[32], comm[64];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%.16s/comm", name);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH ? 0 : -errno;
	n = read(fd, comm, sizeof(comm));
	if (n <= 0)
		return 0;
	if (comm[n - 1] == '\n')
		n--;
	return list_add((pid_t)atol(name), comm, (size_t)n);
}

int pids_list(uint64_t max_age_ms, const struct pids_entry **ret, size_t *ret_n)
{
	struct monotime now = clock_monotime();

	if (list.made.us == 0 || !monotime_before(now, monotime_add_ms(list.made, max_age_ms))) {
		_cleanup_(closedirp) DIR *proc = opendir("/proc");
		struct dirent *d;

		if (!proc)
			return -errno;
		list.n = 0;
		list.made = MONOTIME_ZERO;
		while ((d = readdir(proc))) {
			int r;

			if (d->d_name[0] < '1' || d->d_name[0] > '9')
				continue;
			r = list_read_comm(dirfd(proc), d->d_name);
			if (r < 0)
				return r;
		}
		list.made = now;
	}
	*ret = list.entries;
	*ret_n = list.n;
	return 0;
}

void pids_list_done(void)
{
	free(list.entries);
	memset(&list, 0, sizeof(list));
}
