/*
 * The process check: a process lives, and its death is an event.
 *
 * Three ways to name it, one of them for each check:
 *   pidfile     the process whose id stands in the file
 *   executable  at least `count` processes of that name: /proc/PID/comm, or argv[0] without its
 *               path, since some daemons give their processes names of their own ("nsd: xfrd")
 *   unit        a systemd unit is active, and its main process lives
 *
 * A process that was found is held by its pidfd from then on. Its death fires on the loop ahead of
 * everything else and is reported from there: no allocation, no look at /proc, no question to
 * anybody comes before the report. Everything slow belongs to attempts, which run at each interval:
 * they find births, look for cores being dumped, and read the pidfile again.
 *
 * A pidfile outlives its writer when that dies uncleanly, and the kernel then gives the id to
 * anybody. So the process must have been started before the file was written. Both times come by
 * different clocks, hence: a file on tmpfs that claims to be older than this boot was written
 * before somebody set the clock, which proves nothing, and passes; a clock that was set forward
 * since the boot (clock_set_forward_us()) makes a process look newer than it is by as much, and
 * START_SLACK_US covers leap seconds and the grain of both.
 *
 * The folder of the pidfile is watched, so that a daemon that comes back is seen at once, and so
 * that one that hands over to its successor (a binary upgrade) is followed: the folder's events are
 * taken ahead of deaths, hence the new process is held before the old one's end is seen.
 */
#include "probes/probe.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/system/units.h"
#include "probes/pids.h"
#include "probes/settings.h"

#define START_SLACK_US 2000000
#define LIST_AGE_MS 250
/* Processes of one name that are held. With more of them, a death below `count` is not news before
 * the next attempt has counted the others. */
#define HELD_MAX 256
#define PRIORITY_BIRTH (PROBE_PRIORITY_DEATH - 10)

struct process {
	bool gone;		 /* a death was told, and no birth since */
	struct pids_watch main;	 /* of a pidfile or a unit */
	sd_event_source *folder; /* the pidfile's; NULL where it cannot be watched */

	struct units_watch *unit;
	pid_t dead_main; /* the unit's main process, died and not yet replaced; 0: none */

	struct pids_watch *held; /* by name */
	size_t n_held;
	bool more; /* than HELD_MAX of them live */
};

/* What an attempt found. */
struct finding {
	enum check_outcome outcome;
	char text[PROBE_REASON_MAX];
};

static const struct schema_key process_keys[] = {
	{.name = "unit",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct process_settings, unit),
		.minimum = 3,
		.maximum = 255,
		.meaning = "a systemd unit by its whole name, such as nsd.service"},
	{.name = "pidfile",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct process_settings, pidfile),
		.minimum = 2,
		.maximum = 1024,
		.meaning = "a file whose first line is the id of the process"},
	{.name = "executable",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct process_settings, executable),
		.minimum = 1,
		.maximum = 255,
		.meaning = "the name of the process in /proc/PID/comm, or its argv[0] without the "
			   "path"},
	{.name = "count",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct process_settings, count),
		.minimum = 1,
		.maximum = HELD_MAX,
		.fallback = "1",
		.meaning = "how many processes named `executable` must live, at least"},
	SCHEMA_END,
};

static const struct schema process_schema = {
	.size = sizeof(struct process_settings), .keys = process_keys};

static bool is_unit_name(const char *name)
{
	static const char *const types[] = {"service", "socket", "target", "device", "mount",
		"automount", "swap", "timer", "path", "slice", "scope"};
	const char *dot = strrchr(name, '.');

	if (!dot || dot == name ||
		strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			     "0123456789:-_.\\@") != strlen(name))
		return false;
	for (size_t i = 0; i < ELEMENTSOF(types); i++)
		if (strcmp(dot + 1, types[i]) == 0)
			return dot[-1] != '@'; /* a template is not a unit */
	return false;
}

static int process_validate(const void *settings, struct error *ret_error)
{
	const struct process_settings *s = settings;

	if (!s->unit + !s->pidfile + !s->executable != 2)
		return error_set(
			ret_error, EINVAL, "unit: expected one of unit, pidfile and executable");
	if (s->unit && !is_unit_name(s->unit))
		return error_set(ret_error, EINVAL,
			"unit: expected the whole name of a unit, such as nsd.service");
	if (s->pidfile && (s->pidfile[0] != '/' || s->pidfile[strlen(s->pidfile) - 1] == '/'))
		return error_set(ret_error, EINVAL, "pidfile: expected an absolute path of a file");
	if (s->executable && strchr(s->executable, '/'))
		return error_set(ret_error, EINVAL,
			"executable: expected a name as in /proc/PID/comm, without a path");
	if (s->count != 1 && !s->executable)
		return error_set(ret_error, EINVAL, "count: expected only beside executable");
	return 0;
}

static void find(struct finding *f, enum check_outcome outcome, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void find(struct finding *f, enum check_outcome outcome, const char *format, ...)
{
	va_list ap;

	f->outcome = outcome;
	va_start(ap, format);
	(void)vsnprintf(f->text, sizeof(f->text), format, ap);
	va_end(ap);
}

/* A path for a reason: one that is too long shows its end. */
static const char *shown(const char *path)
{
	size_t n = strlen(path);

	return n > 64 ? path + n - 64 : path;
}

/* ---- pidfile ---- */

/* The first line as a process's id. 0, or -EINVAL with the finding. Further lines may follow, as in
 * PostgreSQL's. */
static int pidfile_parse(const char *path, const char *text, pid_t *ret, struct finding *f)
{
	const char *end = text + strcspn(text, "\n"), *c = text;
	uint64_t pid = 0;

	while (end > text && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	while (c < end && (*c == ' ' || *c == '\t'))
		c++;
	if (c == end) {
		find(f, CHECK_OUTCOME_BAD, "pidfile %s is empty", shown(path));
		return -EINVAL;
	}
	for (const char *d = c; d < end; d++) {
		if (*d < '0' || *d > '9' || d - c >= 10) {
			find(f, CHECK_OUTCOME_BAD,
				"pidfile %s holds \"%.*s\", expected a process id", shown(path),
				(int)(end - c < 24 ? end - c : 24), c);
			return -EINVAL;
		}
		pid = pid * 10 + (uint64_t)(*d - '0');
	}
	if (pid == 0 || pid > 4194304) { /* PID_MAX_LIMIT, proc_sys_kernel(5) */
		find(f, CHECK_OUTCOME_BAD, "pidfile %s holds %llu, expected 2 to 4194304",
			shown(path), (unsigned long long)pid);
		return -EINVAL;
	}
	if (pid == 1) {
		find(f, CHECK_OUTCOME_BAD, "pidfile %s names process 1, which is init",
			shown(path));
		return -EINVAL;
	}
	*ret = (pid_t)pid;
	return 0;
}

/* Reads the file. 0, -ENOENT, or another negative errno, the last with the finding. */
static int pidfile_read(const char *path, pid_t *ret_pid, struct walltime *ret_written,
	bool *ret_tmpfs, struct finding *f)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct statfs fs;
	struct stat st;
	char text[128];
	ssize_t n;
	int r;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0)
		goto failed;
	if (!S_ISREG(st.st_mode)) {
		find(f, CHECK_OUTCOME_BAD, "pidfile %s is not a file", shown(path));
		return -EINVAL;
	}
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		goto failed;
	text[n] = '\0';
	r = pidfile_parse(path, text, ret_pid, f);
	if (r < 0)
		return r;
	*ret_written =
		(struct walltime){(int64_t)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000};
	*ret_tmpfs = fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
	return 0;
failed:
	r = -errno;
	find(f, probe_outcome_of_errno(-r), "cannot read pidfile %s: %s", shown(path),
		strerror(-r));
	return r;
}

/* Could the process have been named when the file was written? */
static bool started_before(struct monotime started, struct walltime written, bool tmpfs)
{
	int64_t boot_us = clock_wall_of(MONOTIME_ZERO).us;

	if (tmpfs && written.us < boot_us)
		return true;
	return clock_wall_of(started).us <=
	       written.us + START_SLACK_US + (int64_t)clock_set_forward_us();
}

static void find_no_process(struct finding *f, const char *path, pid_t pid, const char *what)
{
	find(f, CHECK_OUTCOME_GONE, "pidfile %s names process %d, %s", shown(path), (int)pid, what);
}

static int on_main_death(sd_event_source *source, int fd, uint32_t revents, void *userdata);

/* Holds the process that the file names. 0, or negative errno with the finding. */
static int pidfile_hold(struct probe *p, pid_t pid, struct walltime written, bool tmpfs,
	struct pids_watch *ret, struct finding *f)
{
	const struct process_settings *s = p->settings;
	struct pids_watch w = PIDS_WATCH_NONE;
	struct monotime started;
	enum pids_state state;
	int r = pids_watch_open(&w, p->host->event, pid, on_main_death, p);

	if (r == -ESRCH) {
		find_no_process(f, s->pidfile, pid, "which does not exist");
		return r;
	}
	if (r == -EINVAL) {
		find_no_process(f, s->pidfile, pid, "which is a thread of another process");
		return r;
	}
	if (r < 0) {
		find(f, probe_outcome_of_errno(-r), "cannot watch process %d: %s", (int)pid,
			strerror(-r));
		return r;
	}
	r = pids_started(pid, &started);
	if (!pids_watch_alive(&w)) {
		bool zombie = pids_state(pid, &state) == 0 && state == PIDS_ZOMBIE;

		find_no_process(f, s->pidfile, pid,
			zombie ? "which is a zombie (dead, and its parent did not notice)"
			       : "which does not exist");
		r = -ESRCH;
	} else if (r < 0) {
		find(f, probe_outcome_of_errno(-r), "cannot read /proc/%d/stat: %s", (int)pid,
			strerror(-r));
	} else if (!started_before(started, written, tmpfs)) {
		find_no_process(f, s->pidfile, pid,
			"which is newer than the file: another process that was given the id");
		r = -ESRCH;
	}
	if (r < 0) {
		pids_watch_close(&w);
		return r;
	}
	*ret = w;
	return 0;
}

/* A held process that dumps its core is dead, though its pidfd does not say so yet. */
static bool is_dumping(const struct pids_watch *w, struct finding *f)
{
	enum pids_state state;

	if (pids_state(w->pid, &state) < 0 || state != PIDS_DUMPING)
		return false;
	find(f, CHECK_OUTCOME_GONE, "process %d has crashed and dumps its core", (int)w->pid);
	return true;
}

/* Follows the file to the process that it names now. 0, or negative errno with the finding. */
static int pidfile_follow(struct probe *p, struct finding *f)
{
	const struct process_settings *s = p->settings;
	struct process *st = p->state;
	struct pids_watch fresh = PIDS_WATCH_NONE;
	struct walltime written = {0};
	bool tmpfs = false;
	pid_t pid = 0;
	int r = pidfile_read(s->pidfile, &pid, &written, &tmpfs, f);

	if (r == -ENOENT && pids_watch_alive(&st->main)) {
		find(f, CHECK_OUTCOME_BAD, "no pidfile %s, though process %d lives",
			shown(s->pidfile), (int)st->main.pid);
		return r;
	}
	if (r == -ENOENT)
		find(f, CHECK_OUTCOME_GONE, "no pidfile %s", shown(s->pidfile));
	if (r < 0)
		return r;
	if (st->main.fd >= 0 && st->main.pid == pid && pids_watch_alive(&st->main))
		return 0;
	r = pidfile_hold(p, pid, written, tmpfs, &fresh, f);
	if (r < 0)
		return r;
	pids_watch_close(&st->main);
	st->main = fresh;
	return 0;
}

static int on_folder(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
	struct probe *p = userdata;
	const struct process_settings *s = p->settings;
	struct process *st = p->state;
	struct finding f;

	if (event->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) {
		st->folder = sd_event_source_disable_unref(st->folder);
		return 0;
	}
	if (event->len > 0 && strcmp(event->name, strrchr(s->pidfile, '/') + 1) != 0)
		return 0;
	/* What speaks against the file now may be half written: an attempt will tell. */
	if (pidfile_follow(p, &f) >= 0 && st->gone)
		probe_wake(p);
	return 0;
}

static void watch_folder(struct probe *p)
{
	const struct process_settings *s = p->settings;
	struct process *st = p->state;
	const char *slash = strrchr(s->pidfile, '/');
	char folder[1024];

	if (st->folder)
		return;
	(void)snprintf(folder, sizeof(folder), "%.*s",
		(int)(slash == s->pidfile ? 1 : slash - s->pidfile), s->pidfile);
	if (sd_event_add_inotify(p->host->event, &st->folder, folder,
		    IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF |
			    IN_ONLYDIR,
		    on_folder, p) < 0) {
		/* Births are then found by the attempts alone. */
		st->folder = NULL;
		return;
	}
	(void)sd_event_source_set_priority(st->folder, PRIORITY_BIRTH);
	(void)sd_event_source_set_description(st->folder, "check-process-pidfile");
}

static void look_at_pidfile(struct probe *p, struct finding *f)
{
	struct process *st = p->state;

	watch_folder(p);
	if (pidfile_follow(p, f) < 0)
		return;
	if (is_dumping(&st->main, f))
		return;
	find(f, CHECK_OUTCOME_GOOD, "process %d", (int)st->main.pid);
}

/* ---- executable ---- */

static int on_held_death(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct probe *p = userdata;
	const struct process_settings *s = p->settings;
	struct process *st = p->state;
	size_t i = 0;
	pid_t pid;

	while (st->held[i].fd != fd)
		i++;
	assert(i < st->n_held);
	pid = st->held[i].pid;
	pids_watch_close(&st->held[i]);
	st->held[i] = st->held[--st->n_held];
	if ((int64_t)st->n_held >= s->count || st->gone)
		return 0;
	if (st->more) {
		probe_wake(p);
		return 0;
	}
	st->gone = true;
	probe_report(p, CHECK_OUTCOME_GONE, "process %d named %s has died, %zu of %lld are left",
		(int)pid, s->executable, st->n_held, (long long)s->count);
	return 0;
}

static bool is_held(const struct process *st, pid_t pid)
{
	for (size_t i = 0; i < st->n_held; i++)
		if (st->held[i].pid == pid)
			return true;
	return false;
}

/* The kernel keeps the first 15 bytes of a comm, and we the first 63 of an argv[0]. */
static bool is_named(const struct pids_entry *e, const char *name)
{
	return strncmp(e->comm, name, PIDS_COMM_MAX - 1) == 0 ||
	       strncmp(e->program, name, PIDS_PROGRAM_MAX - 1) == 0;
}

/* Lets go of those that died, dump their core, or have taken another name. Returns how many of them
 * dump. */
static size_t drop_held(struct process *st, const struct pids_entry *entries, size_t n,
	const char *name, struct finding *f)
{
	size_t kept = 0, dumping = 0;

	for (size_t i = 0; i < st->n_held; i++) {
		bool named = false, dumps;

		for (size_t k = 0; k < n && !named; k++)
			named = entries[k].pid == st->held[i].pid && is_named(&entries[k], name);
		dumps = named && is_dumping(&st->held[i], f);
		dumping += dumps;
		if (named && !dumps && pids_watch_alive(&st->held[i]))
			st->held[kept++] = st->held[i];
		else
			pids_watch_close(&st->held[i]);
	}
	st->n_held = kept;
	return dumping;
}

/* Holds those of the name that are not held yet. 0 or negative errno. */
static int hold_named(struct probe *p, const struct pids_entry *entries, size_t n)
{
	const struct process_settings *s = p->settings;
	struct process *st = p->state;

	st->more = false;
	for (size_t i = 0; i < n; i++) {
		struct pids_watch w = PIDS_WATCH_NONE;
		enum pids_state state;
		int r;

		if (!is_named(&entries[i], s->executable) || is_held(st, entries[i].pid))
			continue;
		if (st->n_held == HELD_MAX) {
			st->more = true;
			return 0;
		}
		r = pids_watch_open(&w, p->host->event, entries[i].pid, on_held_death, p);
		if (r == -ESRCH || r == -EINVAL)
			continue;
		if (r < 0)
			return r;
		if (!pids_watch_alive(&w) ||
			(pids_state(w.pid, &state) == 0 && state == PIDS_DUMPING)) {
			pids_watch_close(&w);
			continue;
		}
		st->held[st->n_held++] = w;
	}
	return 0;
}

static void look_for_name(struct probe *p, struct finding *f)
{
	const struct process_settings *s = p->settings;
	struct process *st = p->state;
	const struct pids_entry *entries;
	size_t n, dumping;
	int r = pids_list(LIST_AGE_MS, &entries, &n);

	if (r < 0) {
		find(f, CHECK_OUTCOME_UNKNOWN, "cannot read /proc: %s", strerror(-r));
		return;
	}
	dumping = drop_held(st, entries, n, s->executable, f);
	r = hold_named(p, entries, n);
	if ((int64_t)st->n_held >= s->count)
		find(f, CHECK_OUTCOME_GOOD, "%zu%s processes", st->n_held, st->more ? "+" : "");
	else if (r < 0)
		find(f, probe_outcome_of_errno(-r), "cannot watch processes named %s: %s",
			s->executable, strerror(-r));
	else if (dumping > 0)
		return; /* with the finding of is_dumping() */
	else if (st->n_held == 0)
		find(f, CHECK_OUTCOME_GONE, "no process is named %s", s->executable);
	else
		/* As their deaths would have said: who was there then and who came later agree. */
		find(f, CHECK_OUTCOME_GONE, "%zu of %lld processes named %s", st->n_held,
			(long long)s->count, s->executable);
}

/* ---- unit ---- */

/* Holds the unit's main process as systemd names it. */
static void follow_main(struct probe *p, const struct units_view *view)
{
	struct process *st = p->state;

	/* Who does not know names nobody: the one that is held is the kernel's to tell of. */
	if (view->state == UNITS_UNKNOWN)
		return;
	/* systemd tells of the main process before it tells of the state: a unit that is active
	 * without one, after its death, is about to be told inactive. */
	if (view->state != UNITS_RUNNING || (view->main_pid > 0 && view->main_pid != st->dead_main))
		st->dead_main = 0;
	if (st->main.fd >= 0 && view->main_pid != st->main.pid)
		pids_watch_close(&st->main);
	if (st->main.fd >= 0 || view->main_pid <= 0 || view->main_pid == st->dead_main)
		return;
	/* Where it cannot be held, systemd's own word has to do. */
	if (pids_watch_open(&st->main, p->host->event, view->main_pid, on_main_death, p) == -ESRCH)
		st->dead_main = view->main_pid;
}

static void look_at_unit(struct probe *p, struct finding *f)
{
	const struct process_settings *s = p->settings;
	struct process *st = p->state;
	const struct units_view *view;

	if (!st->unit) {
		find(f, CHECK_OUTCOME_UNKNOWN, "no system bus to ask about %s", s->unit);
		return;
	}
	view = units_watch_view(st->unit);
	follow_main(p, view);
	switch (view->state) {
	case UNITS_UNKNOWN:
		find(f, CHECK_OUTCOME_UNKNOWN, "%s", view->text);
		return;
	case UNITS_STARTING:
		find(f, CHECK_OUTCOME_BAD, "%s", view->text);
		return;
	case UNITS_GONE:
		find(f, CHECK_OUTCOME_GONE, "%s", view->text);
		return;
	case UNITS_RUNNING:
		break;
	}
	if (st->dead_main != 0 || (st->main.fd >= 0 && !pids_watch_alive(&st->main)))
		find(f, CHECK_OUTCOME_GONE, "the main process of %s has died", s->unit);
	else if (st->main.fd < 0 || !is_dumping(&st->main, f))
		find(f, CHECK_OUTCOME_GOOD, "%s", view->text);
}

static void on_unit(void *userdata)
{
	struct probe *p = userdata;
	struct process *st = p->state;
	const struct units_view *view = units_watch_view(st->unit);
	char text[sizeof(view->text)];

	follow_main(p, view);
	switch (view->state) {
	case UNITS_UNKNOWN:
	case UNITS_STARTING:
		return;
	case UNITS_GONE:
		if (st->gone)
			return;
		st->gone = true;
		memcpy(text, view->text, sizeof(text));
		probe_report(p, CHECK_OUTCOME_GONE, "%s", text);
		return;
	case UNITS_RUNNING:
		if (st->gone && st->dead_main == 0)
			probe_wake(p);
		return;
	}
}

/* ---- all three ---- */

/* The death of a pidfile's or a unit's process. Nothing may come before the report. */
static int on_main_death(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct probe *p = userdata;
	const struct process_settings *s = p->settings;
	struct process *st = p->state;
	pid_t pid = st->main.pid;

	pids_watch_close(&st->main);
	if (s->unit)
		st->dead_main = pid;
	if (st->gone)
		return 0;
	st->gone = true;
	if (s->unit)
		probe_report(
			p, CHECK_OUTCOME_GONE, "main process %d of %s has died", (int)pid, s->unit);
	else
		probe_report(p, CHECK_OUTCOME_GONE, "process %d has died", (int)pid);
	return 0;
}

static void process_close(struct probe *p)
{
	struct process *st = p->state;

	pids_watch_close(&st->main);
	sd_event_source_disable_unref(st->folder);
	units_watch_free(st->unit);
	for (size_t i = 0; i < st->n_held; i++)
		pids_watch_close(&st->held[i]);
	free(st->held);
	free(st);
	p->state = NULL;
}

static int process_open(struct probe *p)
{
	const struct process_settings *s = p->settings;
	struct process *st = calloc(1, sizeof(*st));
	int r = 0;

	if (!st)
		return -ENOMEM;
	st->main = PIDS_WATCH_NONE;
	p->state = st;
	if (s->executable) {
		st->held = calloc(HELD_MAX, sizeof(*st->held));
		r = st->held ? 0 : -ENOMEM;
	}
	if (s->unit && p->host->units)
		r = units_watch_new(&st->unit, p->host->units, s->unit, on_unit, p);
	if (r < 0)
		process_close(p);
	return r;
}

static void process_begin(struct probe *p)
{
	const struct process_settings *s = p->settings;
	struct process *st = p->state;
	struct finding f = {.outcome = CHECK_OUTCOME_UNKNOWN};

	if (s->pidfile)
		look_at_pidfile(p, &f);
	else if (s->executable)
		look_for_name(p, &f);
	else
		look_at_unit(p, &f);
	if (f.outcome == CHECK_OUTCOME_GONE)
		st->gone = true;
	else if (f.outcome == CHECK_OUTCOME_GOOD)
		st->gone = false;
	probe_report(p, f.outcome, "%s", f.text);
}

/* Attempts end inside begin(). */
static void process_cancel(struct probe *p)
{
}

const struct probe_type probe_type_process = {
	.name = "process",
	.settings = &process_schema,
	.validate = process_validate,
	.open = process_open,
	.begin = process_begin,
	.cancel = process_cancel,
	.close = process_close,
};
