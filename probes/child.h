#ifndef REDSHANK_PROBES_CHILD_H
#define REDSHANK_PROBES_CHILD_H
/*
 * A command that is run as a child of the agent, one at a time for each struct: bounded in output,
 * ended with all its offspring, without a shell. The exec check and hooks run theirs by it; how
 * long one may take is for them to bound, by child_stop().
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "agent/base/error.h"

/* The command has ended by itself, and all its offspring with it. `info` as waitid(2) fills it;
 * NULL: it cannot be waited for, because of `errnum`. The next may be started from in here. */
typedef void (*child_ended_fn)(void *userdata, const siginfo_t *info, int errnum);

struct child {
	struct child *next_running; /* of all that run, while pid > 0 */
	sd_event *event;	    /* borrowed */
	int64_t priority;	    /* of its sources */
	pid_t pid;		    /* not yet reaped; 0: none */
	uint64_t run;		    /* its number among all runs, which its offspring carry */
	int pidfd, output;
	sd_event_source *exit_io, *output_io, *sweep_timer;
	unsigned sweeps_left;
	char *kept; /* the caller's memory for output, of `room` bytes */
	size_t n_kept, room;
	child_ended_fn ended;
	void *userdata;
};

/* In place; makes this process a subreaper. 0 or negative errno, then child_done() is still due. */
int child_init(struct child *c, sd_event *event, int64_t priority, char *kept, size_t room,
	child_ended_fn ended, void *userdata);
/* Ends what runs. */
void child_done(struct child *c);

/* Starts `argv` (argv[0] is an absolute path) with exactly this environment, of
 * child_environment(), in which it writes the number of this run. None may run. 0 or negative errno
 * with the text. */
int child_start(
	struct child *c, char *const *argv, char *const *environment, struct error *ret_error);
/* Kills it with all its offspring; `ended` is not called. Nothing where none runs. */
void child_stop(struct child *c);
bool child_runs(const struct child *c);

/* The first line of the output that says something, without blanks around it and cut at any of
 * `ends`. Not terminated; lives until the next start. */
const char *child_first_line(const struct child *c, const char *ends, size_t *ret_length);

/*
 * A small environment: the mark by which offspring are known, PATH, LANG, HOME, and the `n` / 2
 * variables of `pairs` (name, value, name, ...), which replace those three. Good for any number of
 * runs. Heap; NULL without memory.
 */
char **child_environment(char *const *pairs, size_t n);
void child_environment_free(char **environment);

#endif
