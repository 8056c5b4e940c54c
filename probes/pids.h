#ifndef REDSHANK_PROBES_PIDS_H
#define REDSHANK_PROBES_PIDS_H
/*
 * Processes as the kernel tells of them: a watch on one of them that fires when it dies
 * (pidfd_open(2)), what /proc says of it, and the list of all. The process kind of check judges.
 */
#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "agent/base/monotime.h"

/* One process held by its pidfd: the pid cannot come to mean another one. `fd` -1: holds nothing;
 * zeroed memory must be initialised with PIDS_WATCH_NONE. */
struct pids_watch {
	pid_t pid;
	int fd;
	sd_event_source *io;
};

#define PIDS_WATCH_NONE ((struct pids_watch){.fd = -1})

/*
 * Holds `pid`; `died` is called once, at PROBE_PRIORITY_DEATH, when it has died, and must close the
 * watch. 0; -ESRCH: no such process; -EINVAL: a thread, not a process; or another negative errno.
 * Nothing is held on failure.
 */
int pids_watch_open(struct pids_watch *w, sd_event *event, pid_t pid, sd_event_io_handler_t died,
	void *userdata);
void pids_watch_close(struct pids_watch *w);
/* False from the moment at which the process is dead, reaped or not. */
bool pids_watch_alive(const struct pids_watch *w);

enum pids_state {
	PIDS_RUNNING,
	PIDS_ZOMBIE,
	PIDS_DUMPING, /* dead, and the kernel writes its core: the pidfd fires only after that */
};

/* From /proc/PID/status (proc_pid_status(5)). 0, -ESRCH or another negative errno. */
int pids_state(pid_t pid, enum pids_state *ret);
/* When it was started: field 22 of /proc/PID/stat, to 10 ms. 0, -ESRCH or another negative errno.
 */
int pids_started(pid_t pid, struct monotime *ret);

#define PIDS_COMM_MAX 16 /* TASK_COMM_LEN of linux/sched.h, with the NUL */

#define PIDS_PROGRAM_MAX 64

struct pids_entry {
	pid_t pid;
	char comm[PIDS_COMM_MAX];
	/* argv[0] without its path, cut; "" for a thread of the kernel. It stays what it was when
	 * the id was first seen under this comm. */
	char program[PIDS_PROGRAM_MAX];
};

/*
 * Every process of this host with its names. One list for all who ask, made anew when it is older
 * than `max_age_ms`; valid until the next call. 0 or negative errno.
 */
int pids_list(uint64_t max_age_ms, const struct pids_entry **ret, size_t *ret_n);
/* Frees the list. */
void pids_list_done(void);

#endif
