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

#define STATUS_KEPT 31 /* bytes, of a piece of /proc/PID/status */

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
	enum pids_state state = PIDS_RUNNING;
	_cleanup_close_ int fd = -1;
	char text[4096], path[64];
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	/* Piece by piece: a process may have 65,536 groups, which stand before CoreDumping. The
	 * name on the first line has its newlines escaped, so what is looked for begins lines of
	 * the kernel's. */
	for (;;) {
		ssize_t got = read(fd, text + n, sizeof(text) - 1 - n);
		size_t kept;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
		text[n] = '\0';
		if (strstr(text, "\nCoreDumping:\t1"))
			state = PIDS_DUMPING;
		else if (strstr(text, "\nState:\tZ"))
			state = PIDS_ZOMBIE;
		/* The beginning of a line that the next piece ends. */
		kept = n < STATUS_KEPT ? n : STATUS_KEPT;
		memmove(text, text + n - kept, kept);
		n = kept;
	}
	*ret = state;
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
	/* NOLINTNEXTLINE(cert-err34-c): the kernel's own number */
	if (!rest || sscanf(rest + 1,
			     " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			     "%*s %*s %llu",
			     &ticks) != 1)
		return -EIO;
	*ret = (struct monotime){ticks * (1000000 / (uint64_t)sysconf(_SC_CLK_TCK))};
	return 0;
}

struct list {
	struct pids_entry *entries;
	size_t n, allocated;
};

static struct list list, before;  /* the one before has what need not be read again */
static struct monotime list_made; /* 0: never */

static struct pids_entry *list_add(pid_t pid)
{
	struct pids_entry *e;

	if (list.n == list.allocated) {
		size_t allocated = list.allocated ? 2 * list.allocated : 256;

		e = reallocarray(list.entries, allocated, sizeof(*e));
		if (!e)
			return NULL;
		list.entries = e;
		list.allocated = allocated;
	}
	e = &list.entries[list.n++];
	*e = (struct pids_entry){.pid = pid};
	return e;
}

/* One read of /proc/PID/FILE. Its length; 0 where the process has gone; negative errno. */
static ssize_t list_read(int proc_fd, pid_t pid, const char *file, char *buf, size_t size)
{
	_cleanup_close_ int fd = -1;
	char path[48];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH ? 0 : -errno;
	n = read(fd, buf, size);
	if (n < 0)
		return errno == ESRCH ? 0 : -errno;
	return n;
}

/* The first word of the command line, without its path. */
static int list_read_program(int proc_fd, struct pids_entry *e)
{
	char line[1024];
	ssize_t n = list_read(proc_fd, e->pid, "cmdline", line, sizeof(line) - 1);
	const char *slash, *name;
	size_t length;

	if (n < 0)
		return (int)n;
	line[n] = '\0';
	slash = strrchr(line, '/');
	name = slash ? slash + 1 : line;
	length = strnlen(name, sizeof(e->program) - 1);
	memcpy(e->program, name, length);
	e->program[length] = '\0';
	return 0;
}

/* /proc lists ids in their order, so the list before is gone through beside it. */
static const struct pids_entry *list_find_before(pid_t pid, size_t *at)
{
	while (*at < before.n && before.entries[*at].pid < pid)
		(*at)++;
	return *at < before.n && before.entries[*at].pid == pid ? &before.entries[*at] : NULL;
}

static int list_look(int proc_fd, pid_t pid, size_t *at)
{
	const struct pids_entry *known = list_find_before(pid, at);
	struct pids_entry *e;
	char comm[64];
	ssize_t n = list_read(proc_fd, pid, "comm", comm, sizeof(comm));

	if (n <= 0)
		return (int)n;
	e = list_add(pid);
	if (!e)
		return -ENOMEM;
	if (comm[n - 1] == '\n')
		n--;
	if ((size_t)n >= sizeof(e->comm))
		n = sizeof(e->comm) - 1;
	memcpy(e->comm, comm, (size_t)n);
	if (!known || strcmp(known->comm, e->comm) != 0)
		return list_read_program(proc_fd, e);
	memcpy(e->program, known->program, sizeof(e->program));
	return 0;
}

/* On failure the list before is lost, and nothing worse. */
static int list_make(void)
{
	_cleanup_closedir_ DIR *proc = opendir("/proc");
	struct list swap = before;
	struct dirent *d;
	size_t at = 0;

	if (!proc)
		return -errno;
	before = list;
	list = swap;
	list.n = 0;
	for (;;) {
		int r;

		errno = 0;
		d = readdir(proc);
		if (!d)
			return -errno;
		if (d->d_name[0] < '1' || d->d_name[0] > '9')
			continue;
		r = list_look(dirfd(proc), (pid_t)strtol(d->d_name, NULL, 10), &at);
		if (r < 0)
			return r;
	}
}

int pids_list(uint64_t max_age_ms, const struct pids_entry **ret, size_t *ret_n)
{
	struct monotime now = clock_monotime();

	if (list_made.us == 0 || !monotime_before(now, monotime_add_ms(list_made, max_age_ms))) {
		int r;

		list_made = MONOTIME_ZERO;
		r = list_make();
		if (r < 0) {
			list.n = 0; /* its last entry is not whole, and would be believed */
			return r;
		}
		list_made = now;
	}
	*ret = list.entries;
	*ret_n = list.n;
	return 0;
}

void pids_list_done(void)
{
	free(list.entries);
	free(before.entries);
	list = before = (struct list){0};
	list_made = MONOTIME_ZERO;
}
