/*
 * One command at a time, run as a child: for the exec check and for hooks.
 *
 * No shell: the argument list is executed as it stands. The command gets /dev/null as its input,
 * one pipe for both outputs, the root directory, the environment that it is given, default signals,
 * none of the agent's descriptors, and a session of its own. Of the output as much is kept as the
 * caller has room for; the rest is read and forgotten, so that a command that talks much ends as
 * any other.
 *
 * Offspring. When the command ends, or is ended, its whole process group is killed, while the
 * command's own zombie still reserves the group's id. What has left the group by setsid(2) or by a
 * double fork is found another way: the agent is a child subreaper (PR_SET_CHILD_SUBREAPER,
 * prctl(2)), so the kernel hands every orphan to us, and orphans carry MARK in their environment,
 * with the agent's process id and the number of the run that they are of. sweep() looks at the
 * agent's children after each command, kills the marked ones whose run is over and reaps what
 * nobody waits for. The helpers of a command that still runs are left to it: theirs is the sweep
 * after its own end. Children of other parts of the agent (birdc) have no mark; as zombies they are
 * left to their owner, who is much faster than ZOMBIE_AGE_US.
 */
#include "probes/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/clock.h"

/* Before "PID.RUN". A run of 0 is none's. */
#define MARK "REDSHANK_CHECK_OF="
#define MARK_MAX 64
#define READ_SIZE 65536
#define SWEEP_AGAIN_MS 100
#define SWEEPS_MAX 20
#define ZOMBIE_AGE_US 1000000
#define ORPHANS_MAX 64

/* The commands that run now: their zombies are not orphans, and their orphans not yet left over. */
static struct child *running;
static uint64_t last_run;

/* Zombies that nobody waits for, perhaps, and since when. */
static struct orphan {
	pid_t pid;
	struct monotime seen;
} orphans[ORPHANS_MAX];
static size_t n_orphans;

/* ---- orphans ---- */

static bool is_running_command(pid_t pid)
{
	for (const struct child *c = running; c; c = c->next_running)
		if (c->pid == pid)
			return true;
	return false;
}

static size_t read_file(const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (n < 0)
		n = 0;
	buf[n] = '\0';
	return (size_t)n;
}

static bool is_running(uint64_t run)
{
	for (const struct child *c = running; c; c = c->next_running)
		if (c->run == run)
			return true;
	return false;
}

/* Was this process started by a command of this agent that has ended since? */
static bool is_left_over(pid_t pid)
{
	char path[64], mark[MARK_MAX], environment[4096];
	size_t n, length;

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	n = read_file(path, environment, sizeof(environment));
	length = (size_t)snprintf(mark, sizeof(mark), MARK "%d.", (int)getpid());
	/* The mark is the first variable; a command may have put others before it. */
	for (const char *v = environment; v < environment + n; v += strlen(v) + 1)
		if (strncmp(v, mark, length) == 0)
			return !is_running(strtoull(v + length, NULL, 10));
	return false;
}

static bool is_zombie(pid_t pid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == pid;
}

/* A child that is known to end up with us: it is reaped as soon as it is a zombie. */
static void expect_orphan(pid_t pid, struct monotime seen)
{
	for (size_t i = 0; i < n_orphans; i++)
		if (orphans[i].pid == pid)
			return;
	if (n_orphans < ORPHANS_MAX)
		orphans[n_orphans++] = (struct orphan){.pid = pid, .seen = seen};
}

/* Reaps a zombie child that has been lying there so long that nobody waits for it. */
static void reap_if_old(pid_t pid)
{
	struct monotime now = clock_monotime();

	for (size_t i = 0; i < n_orphans; i++) {
		if (orphans[i].pid != pid)
			continue;
		if (monotime_since_us(orphans[i].seen, now) < ZOMBIE_AGE_US)
			return;
		(void)waitpid(pid, NULL, WNOHANG);
		orphans[i] = orphans[--n_orphans];
		return;
	}
	expect_orphan(pid, now);
}

static void forget_orphans_that_left(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < n_orphans; i++) {
		siginfo_t info;

		if (waitid(P_PID, (id_t)orphans[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
			orphans[kept++] = orphans[i];
	}
	n_orphans = kept;
}

/* True when no child is left that somebody must look at again. */
static bool sweep(void)
{
	char path[64], children[16384], *c = children;
	bool clean = true;

	forget_orphans_that_left();
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	(void)read_file(path, children, sizeof(children));
	for (;;) {
		char *end;
		pid_t pid = (pid_t)strtol(c, &end, 10);

		if (end == c)
			return clean;
		c = end;
		if (is_running_command(pid))
			continue;
		if (is_zombie(pid)) {
			reap_if_old(pid);
			clean = false;
		} else if (is_left_over(pid)) {
			(void)kill(pid, SIGKILL);
			expect_orphan(pid, MONOTIME_ZERO);
			clean = false;
		}
	}
}

static void arm_sweep(struct child *c)
{
	if (sd_event_source_set_time_relative(c->sweep_timer, SWEEP_AGAIN_MS * 1000) >= 0)
		(void)sd_event_source_set_enabled(c->sweep_timer, SD_EVENT_ONESHOT);
}

static int on_sweep(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct child *c = userdata;

	if (!sweep() && --c->sweeps_left > 0)
		arm_sweep(c);
	return 0;
}

/* ---- one command ---- */

static void drop_sources(struct child *c)
{
	c->exit_io = sd_event_source_disable_unref(c->exit_io);
	c->output_io = sd_event_source_disable_unref(c->output_io);
	if (c->pidfd >= 0)
		(void)close(c->pidfd);
	if (c->output >= 0)
		(void)close(c->output);
	c->pidfd = c->output = -1;
}

/* Ends the command and its group. The order is the point: see the head of this file. */
static void end_group(struct child *c)
{
	struct child **link = &running;

	if (c->pid == 0)
		return;
	(void)kill(-c->pid, SIGKILL);
	if (waitpid(c->pid, NULL, WNOHANG) != c->pid)
		expect_orphan(c->pid, MONOTIME_ZERO);
	while (*link != c)
		link = &(*link)->next_running;
	*link = c->next_running;
	c->pid = 0;
	/* Once more in any case: who was just killed has not yet left its children to us. */
	c->sweeps_left = SWEEPS_MAX;
	(void)sweep();
	arm_sweep(c);
}

void child_stop(struct child *c)
{
	drop_sources(c);
	end_group(c);
}

/* Reads once and keeps what there is room for. The number of bytes; 0 at the end; negative errno.
 */
static ssize_t read_output(struct child *c)
{
	char chunk[READ_SIZE];
	size_t room = c->room - c->n_kept;
	ssize_t n = read(c->output, chunk, sizeof(chunk));

	if (n < 0)
		return -errno;
	if (room > (size_t)n)
		room = (size_t)n;
	memcpy(c->kept + c->n_kept, chunk, room);
	c->n_kept += room;
	return n;
}

static int on_exit_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct child *c = userdata;
	siginfo_t info = {0};

	/* Left a zombie until its group has been killed. */
	if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0) {
		int errnum = errno;

		child_stop(c);
		c->ended(c->userdata, NULL, errnum);
		return 0;
	}
	if (info.si_pid == 0)
		return 0;
	/* What it wrote last lies in the pipe, which offspring may keep open: no waiting for its
	 * end. A pipe holds little; what offspring add meanwhile is bounded by this loop. */
	for (int i = 0; i < 16 && c->output >= 0 && read_output(c) > 0; i++)
		;
	child_stop(c);
	c->ended(c->userdata, &info, 0);
	return 0;
}

static int on_output(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct child *c = userdata;
	ssize_t n = read_output(c);

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0) {
		c->output_io = sd_event_source_disable_unref(c->output_io);
		(void)close(c->output);
		c->output = -1;
	}
	return 0;
}

static int spawn_actions(posix_spawn_file_actions_t *actions, int output)
{
	int r = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);

	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, output, 1);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, output, 2);
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(actions, 3);
	if (r == 0)
		r = posix_spawn_file_actions_addchdir_np(actions, "/");
	return r;
}

static int spawn_attributes(posix_spawnattr_t *attributes)
{
	sigset_t none, all;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)posix_spawnattr_setsigmask(attributes, &none);
	(void)posix_spawnattr_setsigdefault(attributes, &all);
	return posix_spawnattr_setflags(
		attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* Starts the command with its outputs on `output`. 0 or an errno: of fork or of exec. */
static int spawn(char *const *argv, char *const *environment, int output, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return r;
	r = posix_spawnattr_init(&attributes);
	if (r == 0) {
		r = spawn_actions(&actions, output);
		if (r == 0)
			r = spawn_attributes(&attributes);
		if (r == 0)
			r = posix_spawn(ret, argv[0], &actions, &attributes, argv, environment);
		(void)posix_spawnattr_destroy(&attributes);
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* Watches a command that was started. 0 or negative errno. */
static int watch(struct child *c)
{
	int r;

	c->pidfd = pidfd_open(c->pid, 0);
	if (c->pidfd < 0)
		return -errno;
	r = sd_event_add_io(c->event, &c->exit_io, c->pidfd, EPOLLIN, on_exit_io, c);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(c->exit_io, "command-exit");
	(void)sd_event_source_set_priority(c->exit_io, c->priority);
	r = sd_event_add_io(c->event, &c->output_io, c->output, EPOLLIN, on_output, c);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(c->output_io, "command-output");
	return sd_event_source_set_priority(c->output_io, c->priority);
}

int child_start(
	struct child *c, char *const *argv, char *const *environment, struct error *ret_error)
{
	_cleanup_close_ int theirs = -1;
	uint64_t run = ++last_run;
	int ends[2], r;
	pid_t pid;

	assert(strncmp(environment[0], MARK, strlen(MARK)) == 0);
	(void)snprintf(environment[0], MARK_MAX, MARK "%d.%" PRIu64, (int)getpid(), run);
	c->n_kept = 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set_errno(ret_error, errno, "pipe");
	c->output = ends[0];
	theirs = ends[1];
	/* Only our end: the command's must block as it expects. */
	(void)fcntl(c->output, F_SETFL, O_NONBLOCK);
	r = spawn(argv, environment, theirs, &pid);
	if (r != 0) {
		drop_sources(c);
		return error_set_errno(ret_error, r, "cannot execute %.64s", argv[0]);
	}
	c->pid = pid;
	c->run = run;
	c->next_running = running;
	running = c;
	r = watch(c);
	if (r < 0) {
		child_stop(c);
		return error_set_errno(ret_error, -r, "cannot watch the command");
	}
	return 0;
}

bool child_runs(const struct child *c)
{
	return c->pid > 0;
}

const char *child_first_line(const struct child *c, const char *ends, size_t *ret_length)
{
	size_t begin = 0, end;

	while (begin < c->n_kept && strchr(" \t\r\n", c->kept[begin]))
		begin++;
	end = begin;
	while (end < c->n_kept && c->kept[end] != '\n' &&
		!(c->kept[end] && strchr(ends, c->kept[end])))
		end++;
	while (end > begin && strchr(" \t\r", c->kept[end - 1]))
		end--;
	*ret_length = end - begin;
	return c->kept + begin;
}

/* ---- life ---- */

char **child_environment(char *const *pairs, size_t n)
{
	static const char *const base[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG=C.UTF-8",
		"HOME=/",
	};
	size_t used = 0;
	char **e = calloc(1 + ELEMENTSOF(base) + n / 2 + 1, sizeof(*e));
	bool failed = !e || !(e[used++] = calloc(1, MARK_MAX));

	if (!failed)
		(void)snprintf(e[0], MARK_MAX, MARK "%d.0", (int)getpid());

	for (size_t i = 0; !failed && i < ELEMENTSOF(base); i++) {
		size_t name = strcspn(base[i], "=");
		bool replaced = false;

		for (size_t k = 0; k + 1 < n; k += 2)
			replaced |=
				strlen(pairs[k]) == name && strncmp(pairs[k], base[i], name) == 0;
		if (!replaced)
			failed = !(e[used++] = strdup(base[i]));
	}
	for (size_t k = 0; !failed && k + 1 < n; k += 2)
		failed = asprintf(&e[used++], "%s=%s", pairs[k], pairs[k + 1]) < 0;
	if (!failed)
		return e;
	child_environment_free(e);
	return NULL;
}

void child_environment_free(char **environment)
{
	for (char **v = environment; v && *v; v++)
		free(*v);
	free(environment);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): kept for the output that comes */
int child_init(struct child *c, sd_event *event, int64_t priority, char *kept, size_t room,
	child_ended_fn ended, void *userdata)
{
	int r;

	*c = (struct child){
		.event = event,
		.priority = priority,
		.pidfd = -1,
		.output = -1,
		.kept = kept,
		.room = room,
		.ended = ended,
		.userdata = userdata,
	};
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -errno;
	r = sd_event_add_time(event, &c->sweep_timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_sweep, c);
	if (r >= 0)
		r = sd_event_source_set_priority(c->sweep_timer, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		r = sd_event_source_set_enabled(c->sweep_timer, SD_EVENT_OFF);
	return r;
}

void child_done(struct child *c)
{
	child_stop(c);
	c->sweep_timer = sd_event_source_disable_unref(c->sweep_timer);
}
