/*
 * The exec check: a command's exit status.
 *
 * No shell: the argument list is executed as it stands. The command gets /dev/null as its input,
 * one pipe for both outputs, the root directory, a small environment, default signals, none of the
 * agent's descriptors, and a session of its own.
 *
 * The verdict is the exit of the command itself; neither output nor offspring can delay it. Of the
 * output, `output_limit` bytes are kept and the rest is read and forgotten, so that a command that
 * talks much ends as any other.
 *
 * Offspring. At the end of each attempt, in time or not, the whole process group is killed, while
 * the command's own zombie still reserves the group's id. What has left the group by setsid(2) or
 * by a double fork is found another way: the agent is a child subreaper (PR_SET_CHILD_SUBREAPER,
 * prctl(2)), so the kernel hands every orphan to us, and orphans carry MARK in their environment.
 * sweep() looks at the agent's children after each attempt, kills the marked ones and reaps what
 * nobody waits for. Children of other parts of the agent (birdc) have no mark; as zombies they are
 * left to their owner, who is much faster than ZOMBIE_AGE_US.
 */
#include "probes/probe.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/clock.h"

#define MARK "REDSHANK_CHECK_OF="
#define READ_SIZE 65536
#define SWEEP_AGAIN_MS 100
#define SWEEPS_MAX 20
#define ZOMBIE_AGE_US 1000000
#define ORPHANS_MAX 64

struct exec_settings {
	struct schema_strings command;
	struct schema_strings env;
	int64_t output_limit;
	bool plugin;
};

struct exec {
	struct exec *next_running; /* in `running` while pid > 0 */
	char **environment;	   /* owned, with its items */
	pid_t pid;		   /* of the command, not yet reaped; 0: none */
	int pidfd, output;
	sd_event_source *exit_io, *output_io, *sweep_timer;
	unsigned sweeps_left;
	size_t n_kept;
	char kept[]; /* output_limit */
};

/* The commands that run now: their zombies are not orphans. */
static struct exec *running;

/* Zombies that nobody waits for, perhaps, and since when. */
static struct orphan {
	pid_t pid;
	struct monotime seen;
} orphans[ORPHANS_MAX];
static size_t n_orphans;

static const struct schema_key exec_keys[] = {
	{.name = "command",
		.kind = SCHEMA_STRING_LIST,
		SCHEMA_FIELD(struct exec_settings, command),
		.required = true,
		.minimum = 1,
		.maximum = 256,
		.meaning = "the absolute path of a program, and its arguments"},
	{.name = "env",
		.kind = SCHEMA_STRING_MAP,
		SCHEMA_FIELD(struct exec_settings, env),
		.maximum = 256,
		.meaning = "variables added to the small environment of the command"},
	{.name = "output_limit",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct exec_settings, output_limit),
		.minimum = 64,
		.maximum = 1048576,
		.fallback = "4096",
		.meaning = "bytes of output that are kept"},
	{.name = "plugin",
		.kind = SCHEMA_BOOLEAN,
		SCHEMA_FIELD(struct exec_settings, plugin),
		.fallback = "false",
		.meaning = "exit codes are a monitoring plug-in's: 1 is a warning and good, 3 says "
			   "nothing"},
	SCHEMA_END,
};

static const struct schema exec_schema = {.size = sizeof(struct exec_settings), .keys = exec_keys};

static int exec_validate(const void *settings, struct error *ret_error)
{
	const struct exec_settings *s = settings;

	if (s->command.n == 0 || s->command.items[0][0] != '/')
		return error_set(ret_error, EINVAL,
			"command: expected the absolute path of a program as the first item (there "
			"is no shell)");
	for (size_t i = 0; i + 1 < s->env.n; i += 2)
		if (s->env.items[i][0] == '\0' || strchr(s->env.items[i], '='))
			return error_set(ret_error, EINVAL,
				"env: expected names of variables, without an equals sign");
	return 0;
}

/* ---- orphans ---- */

static bool is_running_command(pid_t pid)
{
	for (const struct exec *e = running; e; e = e->next_running)
		if (e->pid == pid)
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

/* Was this process started by a check of this agent? */
static bool is_marked(pid_t pid)
{
	char path[64], mark[64], environment[4096];
	size_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	n = read_file(path, environment, sizeof(environment));
	(void)snprintf(mark, sizeof(mark), MARK "%d", (int)getpid());
	/* The mark is the first variable; a command may have put others before it. */
	for (const char *v = environment; v < environment + n; v += strlen(v) + 1)
		if (strcmp(v, mark) == 0)
			return true;
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
		} else if (is_marked(pid)) {
			(void)kill(pid, SIGKILL);
			expect_orphan(pid, MONOTIME_ZERO);
			clean = false;
		}
	}
}

static void arm_sweep(struct exec *e)
{
	if (sd_event_source_set_time_relative(e->sweep_timer, SWEEP_AGAIN_MS * 1000) >= 0)
		(void)sd_event_source_set_enabled(e->sweep_timer, SD_EVENT_ONESHOT);
}

static int on_sweep(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct exec *e = userdata;

	if (!sweep() && --e->sweeps_left > 0)
		arm_sweep(e);
	return 0;
}

/* ---- one attempt ---- */

static void drop_sources(struct exec *e)
{
	e->exit_io = sd_event_source_disable_unref(e->exit_io);
	e->output_io = sd_event_source_disable_unref(e->output_io);
	if (e->pidfd >= 0)
		(void)close(e->pidfd);
	if (e->output >= 0)
		(void)close(e->output);
	e->pidfd = e->output = -1;
}

/* Ends the command and its group. The order is the point: see the head of this file. */
static void end_group(struct exec *e)
{
	struct exec **link = &running;

	if (e->pid == 0)
		return;
	(void)kill(-e->pid, SIGKILL);
	if (waitpid(e->pid, NULL, WNOHANG) != e->pid)
		expect_orphan(e->pid, MONOTIME_ZERO);
	while (*link != e)
		link = &(*link)->next_running;
	*link = e->next_running;
	e->pid = 0;
	/* Once more in any case: who was just killed has not yet left its children to us. */
	e->sweeps_left = SWEEPS_MAX;
	(void)sweep();
	arm_sweep(e);
}

static void exec_cancel(struct probe *p)
{
	struct exec *e = p->state;

	drop_sources(e);
	end_group(e);
}

/* Reads once and keeps what there is room for. The number of bytes; 0 at the end; negative errno.
 */
static ssize_t read_output(const struct exec_settings *s, struct exec *e)
{
	char chunk[READ_SIZE];
	size_t room = (size_t)s->output_limit - e->n_kept;
	ssize_t n = read(e->output, chunk, sizeof(chunk));

	if (n < 0)
		return -errno;
	if (room > (size_t)n)
		room = (size_t)n;
	memcpy(e->kept + e->n_kept, chunk, room);
	e->n_kept += room;
	return n;
}

/* The first line that says something, without the performance data of a plug-in. */
static const char *first_line(const struct exec_settings *s, const struct exec *e, int *ret_length)
{
	size_t begin = 0, end;

	while (begin < e->n_kept && strchr(" \t\r\n", e->kept[begin]))
		begin++;
	end = begin;
	while (end < e->n_kept && e->kept[end] != '\n' && !(s->plugin && e->kept[end] == '|'))
		end++;
	while (end > begin && strchr(" \t\r", e->kept[end - 1]))
		end--;
	*ret_length = (int)(end - begin < PROBE_REASON_MAX ? end - begin : PROBE_REASON_MAX);
	return e->kept + begin;
}

static void report_exit(struct probe *p, int code)
{
	const struct exec_settings *s = p->settings;
	int n;
	const char *line = first_line(s, p->state, &n), *colon = n > 0 ? ": " : "";

	if (code == 0)
		probe_report(p, CHECK_OUTCOME_GOOD, "%.*s", n, line);
	else if (s->plugin && code == 1)
		probe_report(p, CHECK_OUTCOME_GOOD, "warning%s%.*s", colon, n, line);
	else if (s->plugin && code == 2)
		probe_report(p, CHECK_OUTCOME_BAD, "critical%s%.*s", colon, n, line);
	else if (s->plugin && code == 3)
		probe_report(p, CHECK_OUTCOME_UNKNOWN, "unknown%s%.*s", colon, n, line);
	else if (code == 126)
		probe_report(p, CHECK_OUTCOME_BAD, "exit 126 (a command cannot be executed)%s%.*s",
			colon, n, line);
	else if (code == 127)
		probe_report(p, CHECK_OUTCOME_BAD, "exit 127 (a command was not found)%s%.*s",
			colon, n, line);
	else
		probe_report(p, CHECK_OUTCOME_BAD, "exit %d%s%.*s", code, colon, n, line);
}

static void report_signal(struct probe *p, const siginfo_t *info)
{
	const char *name = sigabbrev_np(info->si_status);
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", info->si_status);
	probe_report(p, CHECK_OUTCOME_BAD, "killed by SIG%s%s", name ? name : number,
		info->si_code == CLD_DUMPED ? " (core dumped)" : "");
}

static int on_exit_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct probe *p = userdata;
	const struct exec_settings *s = p->settings;
	struct exec *e = p->state;
	siginfo_t info = {0};

	/* Left a zombie until its group has been killed. */
	if (waitid(P_PID, (id_t)e->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0) {
		int errnum = errno;

		exec_cancel(p);
		probe_report(p, CHECK_OUTCOME_UNKNOWN, "cannot wait for the command: %s",
			strerror(errnum));
		return 0;
	}
	if (info.si_pid == 0)
		return 0;
	/* What it wrote last lies in the pipe, which offspring may keep open: no waiting for its
	 * end. A pipe holds little; what offspring add meanwhile is bounded by this loop. */
	for (int i = 0; i < 16 && e->output >= 0 && read_output(s, e) > 0; i++)
		;
	exec_cancel(p);
	if (info.si_code == CLD_EXITED)
		report_exit(p, info.si_status);
	else
		report_signal(p, &info);
	return 0;
}

static int on_output(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct probe *p = userdata;
	struct exec *e = p->state;
	ssize_t n = read_output(p->settings, e);

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0) {
		e->output_io = sd_event_source_disable_unref(e->output_io);
		(void)close(e->output);
		e->output = -1;
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
static int spawn(const struct exec_settings *s, char **environment, int output, pid_t *ret)
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
			r = posix_spawn(ret, s->command.items[0], &actions, &attributes,
				s->command.items, environment);
		(void)posix_spawnattr_destroy(&attributes);
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* Watches a command that was started. 0 or negative errno. */
static int watch(struct probe *p)
{
	struct exec *e = p->state;
	int r;

	e->pidfd = pidfd_open(e->pid, 0);
	if (e->pidfd < 0)
		return -errno;
	r = sd_event_add_io(p->host->event, &e->exit_io, e->pidfd, EPOLLIN, on_exit_io, p);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(e->exit_io, "check-exec-exit");
	r = sd_event_add_io(p->host->event, &e->output_io, e->output, EPOLLIN, on_output, p);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(e->output_io, "check-exec-output");
	return 0;
}

static void exec_begin(struct probe *p)
{
	const struct exec_settings *s = p->settings;
	struct exec *e = p->state;
	_cleanup_close_ int theirs = -1;
	int ends[2], r;
	pid_t pid;

	e->n_kept = 0;
	if (pipe2(ends, O_CLOEXEC) < 0) {
		probe_report(p, probe_outcome_of_errno(errno), "pipe: %s", strerror(errno));
		return;
	}
	e->output = ends[0];
	theirs = ends[1];
	/* Only our end: the command's must block as it expects. */
	(void)fcntl(e->output, F_SETFL, O_NONBLOCK);
	r = spawn(s, e->environment, theirs, &pid);
	if (r != 0) {
		drop_sources(e);
		probe_report(p, probe_outcome_of_errno(r), "cannot execute %.64s: %s",
			s->command.items[0], strerror(r));
		return;
	}
	e->pid = pid;
	e->next_running = running;
	running = e;
	r = watch(p);
	if (r < 0) {
		exec_cancel(p);
		probe_report(p, probe_outcome_of_errno(-r), "cannot watch the command: %s",
			strerror(-r));
	}
}

/* ---- life ---- */

static int make_environment(const struct exec_settings *s, char ***ret)
{
	static const char *const base[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG=C.UTF-8",
		"HOME=/",
	};
	size_t n = 0;
	char **e = calloc(1 + ELEMENTSOF(base) + s->env.n / 2 + 1, sizeof(*e));
	bool failed = !e || asprintf(&e[n++], MARK "%d", (int)getpid()) < 0;

	for (size_t i = 0; !failed && i < ELEMENTSOF(base); i++) {
		size_t name = strcspn(base[i], "=");
		bool replaced = false;

		for (size_t k = 0; k + 1 < s->env.n; k += 2)
			replaced |= strlen(s->env.items[k]) == name &&
				    strncmp(s->env.items[k], base[i], name) == 0;
		if (!replaced)
			failed = !(e[n++] = strdup(base[i]));
	}
	for (size_t k = 0; !failed && k + 1 < s->env.n; k += 2)
		failed = asprintf(&e[n++], "%s=%s", s->env.items[k], s->env.items[k + 1]) < 0;
	*ret = e;
	return failed ? -ENOMEM : 0;
}

static void exec_close(struct probe *p)
{
	struct exec *e = p->state;

	sd_event_source_disable_unref(e->sweep_timer);
	for (char **v = e->environment; v && *v; v++)
		free(*v);
	free(e->environment);
	free(e);
	p->state = NULL;
}

static int exec_open(struct probe *p)
{
	const struct exec_settings *s = p->settings;
	struct exec *e = calloc(1, sizeof(*e) + (size_t)s->output_limit);
	int r;

	if (!e)
		return -ENOMEM;
	e->pidfd = e->output = -1;
	p->state = e;
	r = make_environment(s, &e->environment);
	if (r >= 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		r = -errno;
	if (r >= 0)
		r = sd_event_add_time(p->host->event, &e->sweep_timer, CLOCK_MONOTONIC, UINT64_MAX,
			0, on_sweep, e);
	if (r >= 0)
		r = sd_event_source_set_priority(e->sweep_timer, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		r = sd_event_source_set_enabled(e->sweep_timer, SD_EVENT_OFF);
	if (r < 0)
		exec_close(p);
	return r;
}

const struct probe_type probe_type_exec = {
	.name = "exec",
	.settings = &exec_schema,
	.validate = exec_validate,
	.open = exec_open,
	.begin = exec_begin,
	.cancel = exec_cancel,
	.close = exec_close,
};
