/*
 * The process check on real processes, real pidfiles, and a systemd that does as it is told. With
 * its attempts an hour apart nothing but an event can make it speak twice.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <pthread.h>

#include "agent/system/log.h"
#include "agent/system/units.h"
#include "probes/pids.h"
#include "probes/settings.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/fake-systemd.h"
#include "tests/unit/probe-harness.h"

#define HOUR 3600000

static struct harness h;
static char folder[64], pidfile[96];
static struct process_settings settings;
static pid_t children[512];
static size_t n_children;

static void setup(void)
{
	log_init(LOG_CRIT, true);
	memset(&h, 0, sizeof(h));
	ck_assert_uint_eq(probe_type_process.settings->size, sizeof(settings));
	/* On tmpfs, as /run is. */
	(void)snprintf(folder, sizeof(folder), "/dev/shm/redshank-process-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	(void)snprintf(pidfile, sizeof(pidfile), "%s/x.pid", folder);
	settings = (struct process_settings){.pidfile = pidfile, .count = 1};
}

/* Once: the number may be another's afterwards. */
static void end_child(pid_t pid)
{
	for (size_t i = 0; i < n_children; i++)
		if (children[i] == pid) {
			children[i] = 0;
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
		}
}

static void teardown(void)
{
	harness_done(&h);
	pids_list_done();
	for (size_t i = 0; i < n_children; i++)
		if (children[i] > 0)
			end_child(children[i]);
	n_children = 0;
	(void)unlink(pidfile);
	(void)rmdir(folder);
}

/* A name of this run's own: all processes of the machine are looked at, those of another run, too.
 */
static char *own(const char *rest)
{
	static char names[4][48];
	static unsigned n;
	char *name = names[n++ % 4];

	(void)snprintf(name, sizeof(names[0]), "%d%s", (int)getpid(), rest);
	return name;
}

/* A process of that name, which is there when this returns. */
static pid_t spawn(const char *name)
{
	int ready[2];
	char c;
	pid_t pid;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_NAME, name);
		(void)!write(ready[1], "x", 1);
		for (;;)
			(void)pause();
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	children[n_children++] = pid;
	return pid;
}

static void write_pidfile(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void write_pidfile(const char *format, ...)
{
	FILE *f = fopen(pidfile, "we");
	va_list ap;

	ck_assert_ptr_nonnull(f);
	va_start(ap, format);
	(void)vfprintf(f, format, ap);
	va_end(ap);
	(void)fclose(f);
}

static void start(uint64_t interval_ms)
{
	harness_start(&h, &probe_type_process, &settings, interval_ms, 1000);
}

static void age_pidfile(int seconds)
{
	struct timespec times[2];

	(void)clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= seconds;
	times[1] = times[0];
	ck_assert_int_eq(utimensat(AT_FDCWD, pidfile, times, 0), 0);
}

/* ---- pidfile: what it may hold ---- */

START_TEST (a_living_process_is_good) {
	static const char *const forms[] = {
		"%d\n", "%d", "  %d  \n", "%d\r\n", "%d\n/var/lib/db\n5432\n"};
	char expected[32];
	pid_t pid = spawn("redshank-t");

	(void)snprintf(expected, sizeof(expected), "process %d", (int)pid);
	for (size_t i = 0; i < ELEMENTSOF(forms); i++) {
		FILE *f = fopen(pidfile, "we");

		(void)fprintf(f, forms[i], (int)pid);
		(void)fclose(f);
		start(HOUR);
		harness_expect(&h, 1, CHECK_OUTCOME_GOOD, expected);
		harness_stop(&h);
	}
}
END_TEST

static const struct {
	const char *text;
	enum check_outcome outcome;
	const char *reason;
} bad_rows[] = {
	{"", CHECK_OUTCOME_BAD, "is empty"},
	{"\n123\n", CHECK_OUTCOME_BAD, "is empty"},
	{"0\n", CHECK_OUTCOME_BAD, "holds 0, expected"},
	{"-1\n", CHECK_OUTCOME_BAD, "holds \"-1\", expected a process id"},
	{"1\n", CHECK_OUTCOME_BAD, "names process 1, which is init"},
	{"12 34\n", CHECK_OUTCOME_BAD, "holds \"12 34\", expected a process id"},
	{"99999999999\n", CHECK_OUTCOME_BAD, "holds \"99999999999\", expected a process id"},
	{"18446744073709551617\n", CHECK_OUTCOME_BAD, "expected a process id"},
	{"4194305\n", CHECK_OUTCOME_BAD, "holds 4194305, expected"},
	{"0x10\n", CHECK_OUTCOME_BAD, "holds \"0x10\""},
	{"nginx\n", CHECK_OUTCOME_BAD, "holds \"nginx\""},
	{"4194303\n", CHECK_OUTCOME_GONE, "names process 4194303, which does not exist"},
};

START_TEST (anything_else_has_its_own_reason) {
	write_pidfile("%s", bad_rows[_i].text);
	start(HOUR);
	harness_expect(&h, 1, bad_rows[_i].outcome, bad_rows[_i].reason);
}
END_TEST

START_TEST (no_pidfile) {
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_GONE, "no pidfile");
}
END_TEST

START_TEST (not_a_file) {
	ck_assert_int_eq(_i == 0 ? mkdir(pidfile, 0700) : mkfifo(pidfile, 0600), 0);
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_BAD, "is not a file");
	(void)rmdir(pidfile);
}
END_TEST

START_TEST (a_long_path_leaves_room_for_the_reason) {
	static char path[1000];

	memset(path, 'x', sizeof(path) - 1);
	path[0] = path[200] = path[400] = path[600] = path[800] = '/';
	settings.pidfile = path;
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_GONE, "no pidfile xxx");
}
END_TEST

START_TEST (a_zombie_is_gone) {
	pid_t pid = spawn("redshank-t");
	siginfo_t info;

	write_pidfile("%d\n", (int)pid);
	(void)kill(pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_GONE, "which is a zombie");
}
END_TEST

static void *thread(void *userdata)
{
	*(pid_t *)userdata = (pid_t)syscall(SYS_gettid);
	(void)pause();
	return NULL;
}

START_TEST (a_thread_is_not_a_process) {
	volatile pid_t tid = 0;
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, thread, (void *)&tid), 0);
	while (tid == 0)
		(void)usleep(1000);
	write_pidfile("%d\n", (int)tid);
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_GONE, "which is a thread");
	(void)pthread_cancel(t);
	(void)pthread_join(t, NULL);
}
END_TEST

/* ---- pidfile: whose id is it now? ---- */

START_TEST (a_process_newer_than_its_file_is_another_one) {
	write_pidfile("%d\n", (int)spawn("redshank-t"));
	age_pidfile(5);
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_GONE, "which is newer than the file");
}
END_TEST

/* A file on tmpfs cannot be older than the boot: somebody has set the clock since. */
START_TEST (a_clock_that_was_set_withdraws_nothing) {
	write_pidfile("%d\n", (int)spawn("redshank-t"));
	age_pidfile(20 * 365 * 86400);
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "process");
}
END_TEST

/* On a disk it can, and then it is from before an unclean stop. */
START_TEST (a_file_from_before_the_boot_is_stale_on_a_disk) {
	char disk[] = "/var/tmp/redshank-pid-XXXXXX";
	int fd = mkstemp(disk);

	(void)close(fd);
	(void)snprintf(pidfile, sizeof(pidfile), "%s", disk);
	write_pidfile("%d\n", (int)spawn("redshank-t"));
	age_pidfile(20 * 365 * 86400);
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_GONE, "which is newer than the file");
}
END_TEST

/* ---- pidfile: events ---- */

START_TEST (a_death_is_told_at_once) {
	pid_t pid = spawn("redshank-t");
	struct monotime killed;
	char expected[64];

	write_pidfile("%d\n", (int)pid);
	start(HOUR);
	(void)harness_wait(&h, 1);
	killed = clock_monotime();
	(void)kill(pid, SIGKILL);
	(void)snprintf(expected, sizeof(expected), "process %d has died", (int)pid);
	harness_expect(&h, 2, CHECK_OUTCOME_GONE, expected);
	ck_assert_uint_lt(monotime_since_us(killed, h.when[1]), 10000000); /* not within the hour */
	ck_assert_uint_eq(h.duration_us[1], 0);
	LOOP_FOR(h.event, 50);
	ck_assert_uint_eq(h.n, 2);
}
END_TEST

static unsigned mallocs, mallocs_reported;

static void keep_mallocs(void)
{
	mallocs_reported = mallocs;
}

static void count_malloc(const volatile void *p, size_t size)
{
	mallocs++;
}

static void count_free(const volatile void *p)
{
}

int __sanitizer_install_malloc_and_free_hooks(void (*m)(const volatile void *, size_t),
	void (*f)(const volatile void *)) __attribute__((weak));

/* From the kernel's word to the report nothing is allocated. (Counted where the sanitizer is.) */
START_TEST (a_death_allocates_nothing) {
	static bool installed;
	pid_t pid = spawn("redshank-t");
	siginfo_t info;

	if (!__sanitizer_install_malloc_and_free_hooks)
		return;
	if (!installed)
		ck_assert_int_ne(
			__sanitizer_install_malloc_and_free_hooks(count_malloc, count_free), 0);
	installed = true;
	write_pidfile("%d\n", (int)pid);
	if (_i == 1)
		settings =
			(struct process_settings){.executable = (char *)"redshank-t", .count = 1};
	start(HOUR);
	(void)harness_wait(&h, 1);
	(void)kill(pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	h.reported = keep_mallocs;
	mallocs = 0;
	(void)LOOP_UNTIL(h.event, h.n == 2, 1000);
	ck_assert_uint_eq(mallocs_reported, 0);
	(void)harness_wait(&h, 2);
	ck_assert_int_eq(h.reports[1].outcome, CHECK_OUTCOME_GONE);
}
END_TEST

static void put_in_place(pid_t pid)
{
	write_pidfile("%d\n", (int)pid);
}

static void put_by_rename(pid_t pid)
{
	char temporary[112];
	FILE *f;

	(void)snprintf(temporary, sizeof(temporary), "%s.new", pidfile);
	f = fopen(temporary, "we");
	(void)fprintf(f, "%d\n", (int)pid);
	(void)fclose(f);
	ck_assert_int_eq(rename(temporary, pidfile), 0);
}

static int kept_open = -1;

/* As those do that hold a lock on it for as long as they live. */
static void put_and_keep_open(pid_t pid)
{
	kept_open = open(pidfile, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ck_assert_int_gt(dprintf(kept_open, "%d\n", (int)pid), 0);
}

static void (*const puts_[])(pid_t) = {put_in_place, put_by_rename, put_and_keep_open};

START_TEST (a_return_is_seen_at_once) {
	pid_t pid = spawn("redshank-t");

	write_pidfile("%d\n", (int)pid);
	start(HOUR);
	(void)harness_wait(&h, 1);
	end_child(pid);
	harness_expect(&h, 2, CHECK_OUTCOME_GONE, "has died");
	ck_assert_int_eq(unlink(pidfile), 0);
	puts_[_i](spawn("redshank-t"));
	harness_expect(&h, 3, CHECK_OUTCOME_GOOD, "process");
	end_child(children[1]);
	harness_expect(&h, 4, CHECK_OUTCOME_GONE, "has died");
	if (kept_open >= 0)
		(void)close(kept_open);
	kept_open = -1;
}
END_TEST

/* A binary upgrade: the successor is in the file before the old process ends. No death is told,
 * even when both are seen in one turn of the loop. */
START_TEST (a_handover_is_not_a_death) {
	pid_t old = spawn("redshank-t"), new = spawn("redshank-t");

	write_pidfile("%d\n", (int)old);
	start(HOUR);
	(void)harness_wait(&h, 1);
	puts_[_i](new);
	end_child(old);
	LOOP_FOR(h.event, 100);
	ck_assert_uint_eq(h.n, 1);
	end_child(new);
	harness_expect(&h, 2, CHECK_OUTCOME_GONE, "has died");
	if (kept_open >= 0)
		(void)close(kept_open);
	kept_open = -1;
}
END_TEST

START_TEST (a_lost_pidfile_is_not_a_death) {
	pid_t pid = spawn("redshank-t");

	write_pidfile("%d\n", (int)pid);
	start(20);
	(void)harness_wait(&h, 1);
	ck_assert_int_eq(unlink(pidfile), 0);
	ck_assert(LOOP_UNTIL(h.event, h.reports[h.n - 1].outcome == CHECK_OUTCOME_BAD, 1000));
	ck_assert_ptr_nonnull(strstr(h.reports[h.n - 1].reason, "lives"));
	write_pidfile("%d\n", (int)pid);
	ck_assert(LOOP_UNTIL(h.event, h.reports[h.n - 1].outcome == CHECK_OUTCOME_GOOD, 1000));
}
END_TEST

START_TEST (a_folder_that_goes_and_comes) {
	pid_t pid = spawn("redshank-t");

	write_pidfile("%d\n", (int)pid);
	start(20);
	(void)harness_wait(&h, 1);
	for (int i = 0; i < 3; i++) {
		(void)unlink(pidfile);
		ck_assert_int_eq(rmdir(folder), 0);
		ck_assert(
			LOOP_UNTIL(h.event, h.reports[h.n - 1].outcome == CHECK_OUTCOME_BAD, 1000));
		ck_assert_int_eq(mkdir(folder, 0700), 0);
		write_pidfile("%d\n", (int)pid);
		ck_assert(LOOP_UNTIL(
			h.event, h.reports[h.n - 1].outcome == CHECK_OUTCOME_GOOD, 1000));
	}
}
END_TEST

START_TEST (no_descriptors_is_unknown) {
	rlim_t before;

	write_pidfile("%d\n", (int)spawn("redshank-t"));
	start(20);
	before = descriptors_limit(3);
	harness_expect(&h, 1, CHECK_OUTCOME_UNKNOWN, "Too many open files");
	(void)descriptors_limit(before);
	ck_assert(LOOP_UNTIL(h.event, h.reports[h.n - 1].outcome == CHECK_OUTCOME_GOOD, 1000));
}
END_TEST

/* A process whose core is being written is dead, though nobody says so until it is written. */
START_TEST (a_dumping_process_is_gone) {
	const size_t size = 256UL << 20;
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	char pattern[8] = "", core[128];
	FILE *f = fopen("/proc/sys/kernel/core_pattern", "re");
	enum pids_state state = PIDS_RUNNING;
	gid_t groups[4000];
	pid_t pid;
	int in[2];

	for (size_t i = 0; i < ELEMENTSOF(groups); i++)
		groups[i] = (gid_t)(1000000 + i);
	ck_assert_ptr_nonnull(fgets(pattern, sizeof(pattern), f));
	(void)fclose(f);
	if (pattern[0] == '|' || pattern[0] == '/')
		return; /* somebody else's collector gets the cores of this machine */
	ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)setrlimit(RLIMIT_CORE, &all);
		(void)setgroups(ELEMENTSOF(groups), groups); /* they stand before CoreDumping */
		if (chdir(folder) < 0)
			_exit(1);
		memset(memory, 1, size);
		(void)signal(SIGABRT, SIG_DFL);
		(void)!write(in[1], "x", 1);
		(void)pause();
		_exit(0);
	}
	children[n_children++] = pid;
	ck_assert_int_eq(read(in[0], pattern, 1), 1);
	write_pidfile("%d\n", (int)pid);
	start(5);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "process");
	(void)kill(pid, SIGABRT);
	while (pids_state(pid, &state) == 0 && state == PIDS_RUNNING)
		;
	if (state == PIDS_DUMPING) {
		ck_assert(LOOP_UNTIL(
			h.event, h.reports[h.n - 1].outcome == CHECK_OUTCOME_GONE, 3000));
		ck_assert_ptr_nonnull(strstr(h.reports[h.n - 1].reason, "dumps its core"));
	}
	ck_assert_int_eq(state, PIDS_DUMPING);
	end_child(pid);
	(void)snprintf(core, sizeof(core), "rm -f %s/core*", folder);
	(void)!system(core);
	(void)close(in[0]);
	(void)close(in[1]);
}
END_TEST

/* ---- executable ---- */

static void by_name(const char *name, int64_t count)
{
	settings = (struct process_settings){.executable = (char *)name, .count = count};
}

START_TEST (a_name_that_nobody_has) {
	by_name(own("-none"), 1);
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_GONE, "no process is named ");
	ck_assert_ptr_nonnull(strstr(h.reports[0].reason, own("-none")));
}
END_TEST

START_TEST (a_death_that_leaves_too_few) {
	char *name = own("n)( 7");
	pid_t a = spawn(name), b = spawn(name);

	(void)spawn(name);
	by_name(name, 2);
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "3 processes");
	end_child(a);
	LOOP_FOR(h.event, 50);
	ck_assert_uint_eq(h.n, 1);
	end_child(b);
	harness_expect(&h, 2, CHECK_OUTCOME_GONE, "has died, 1 of 2 are left");
	/* An agent that comes later, or asks again, judges no milder than the one that saw it. */
	run_check_now(h.run);
	harness_expect(&h, 3, CHECK_OUTCOME_GONE, "1 of 2 processes named ");
	ck_assert_ptr_nonnull(strstr(h.reports[2].reason, name));
	harness_stop(&h);
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_GONE, "1 of 2 processes named ");
}
END_TEST

START_TEST (births_are_found_by_attempts) {
	char *name = own("-born");

	by_name(name, 2);
	start(20);
	harness_expect(&h, 1, CHECK_OUTCOME_GONE, "no process");
	(void)spawn(name);
	ck_assert(LOOP_UNTIL(h.event, strstr(h.reports[h.n - 1].reason, "1 of 2"), 1000));
	ck_assert_int_eq(h.reports[h.n - 1].outcome, CHECK_OUTCOME_GONE);
	(void)spawn(name);
	ck_assert(LOOP_UNTIL(h.event, h.reports[h.n - 1].outcome == CHECK_OUTCOME_GOOD, 1000));
}
END_TEST

START_TEST (a_long_name_is_cut_as_the_kernel_cuts_it) {
	char *name = own("-with-a-long-name");

	(void)spawn(name);
	by_name(name, 1);
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "1 processes");
}
END_TEST

/* As nsd does: its argv[0] is "nsd", and its comm "nsd: xfrd". Stopped, and so alive. */
static pid_t spawn_renamed(const char *argv0, const char *comm)
{
	char script[128];
	int status;
	pid_t pid;

	(void)snprintf(script, sizeof(script), "printf '%s' >/proc/$$/comm; kill -STOP $$", comm);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execl("/bin/sh", argv0, "-c", script, (char *)NULL);
		_exit(127);
	}
	children[n_children++] = pid;
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status));
	return pid;
}

START_TEST (a_process_has_two_names) {
	char *daemon = own("-daemon"), *comm = own(": main"), path[64];
	pid_t pid;

	(void)snprintf(path, sizeof(path), "/usr/sbin/%s", daemon);
	pid = spawn_renamed(path, comm);
	(void)spawn(own("-other"));
	by_name(_i == 0 ? daemon : comm, 1);
	start(300); /* so that the list is made anew each time */
	for (unsigned i = 1; i <= 3; i++)
		harness_expect(&h, i, CHECK_OUTCOME_GOOD, "1 processes");
	end_child(pid);
	harness_expect(&h, h.n + 1, CHECK_OUTCOME_GONE, "has died, 0 of 1 are left");
}
END_TEST

START_TEST (more_than_can_be_held) {
	char *name = own("-many");

	by_name(name, 256);
	for (int i = 0; i < 258; i++)
		(void)spawn(name);
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_GOOD, "256+ processes");
	/* 257 are left, of which we hold 255: no death is told before they were counted. */
	for (int i = 0; i < 258 && h.n == 1; i++) {
		end_child(children[i]);
		(void)LOOP_UNTIL(h.event, h.n > 1, 400);
		if (i == 0)
			harness_expect(&h, 2, CHECK_OUTCOME_GOOD, "256");
	}
}
END_TEST

/* ---- unit ---- */

static struct fake_systemd fake;

static void start_unit(pid_t main_pid)
{
	ck_assert_int_ge(sd_event_new(&h.event), 0);
	fake_init(&fake);
	fake.units[0] = (struct fake_unit){"nsd.service", "loaded", "active", "running", "success",
		(uint32_t)main_pid, 0, 0, 0, 0, 0};
	fake_bus_start(&fake);
	fake_join(&fake, h.event);
	ck_assert_int_eq(units_new(&h.host.units, h.event, fake.address), 0);
	settings = (struct process_settings){.unit = (char *)"nsd.service", .count = 1};
	start(HOUR);
	/* The first attempt may come before systemd's answers or after them. */
	(void)harness_wait(&h, 1);
	ck_assert(LOOP_UNTIL(h.event, fake.asked >= 6, 3000));
	for (int i = 0; i < 100; i++) { /* the answers are under way */
		LOOP_FOR(h.event, 30);
		h.n = 1;
		run_check_now(h.run);
		if (harness_wait(&h, 2)->outcome == CHECK_OUTCOME_GOOD)
			break;
	}
	harness_expect(&h, 2, CHECK_OUTCOME_GOOD, "nsd.service is active");
}

static void stop_unit(void)
{
	harness_stop(&h);
	units_free(h.host.units);
	h.host.units = NULL;
	fake_done(&fake);
}

START_TEST (a_unit_without_a_bus) {
	settings = (struct process_settings){.unit = (char *)"nsd.service", .count = 1};
	start(HOUR);
	harness_expect(&h, 1, CHECK_OUTCOME_UNKNOWN, "no system bus");
}
END_TEST

/* The kernel is faster than systemd: the main process's death is told before systemd speaks, once,
 * and is not taken back while systemd still calls the unit active. */
START_TEST (the_main_process_dies_first) {
	pid_t pid = spawn("redshank-u"), next = spawn("redshank-u");

	start_unit(pid);
	end_child(pid);
	harness_expect(&h, 3, CHECK_OUTCOME_GONE, "main process");
	run_check_now(h.run);
	harness_expect(&h, 4, CHECK_OUTCOME_GONE, "main process");
	/* As systemd tells it: first that there is no main process, then the rest. */
	fake.units[0].main_pid = 0;
	ck_assert_int_ge(sd_bus_emit_properties_changed(fake.bus,
				 "/org/freedesktop/systemd1/unit/nsd_2eservice",
				 "org.freedesktop.systemd1.Service", "MainPID", NULL),
		0);
	LOOP_FOR(h.event, 50);
	ck_assert_uint_eq(h.n, 4);
	fake_set(&fake, 0, "failed", "failed", "signal", 0);
	LOOP_FOR(h.event, 50);
	ck_assert_uint_eq(h.n, 4);
	fake_set(&fake, 0, "active", "running", "success", (uint32_t)next);
	harness_expect(&h, 5, CHECK_OUTCOME_GOOD, "nsd.service is active");
	end_child(next);
	harness_expect(&h, 6, CHECK_OUTCOME_GONE, "main process");
	stop_unit();
}
END_TEST

/* A restart so quick that systemd's signals never leave `active`. */
START_TEST (a_quick_restart) {
	pid_t pid = spawn("redshank-u"), next = spawn("redshank-u");

	start_unit(pid);
	end_child(pid);
	harness_expect(&h, 3, CHECK_OUTCOME_GONE, "main process");
	fake_set(&fake, 0, "active", "running", "success", (uint32_t)next);
	harness_expect(&h, 4, CHECK_OUTCOME_GOOD, "nsd.service is active");
	stop_unit();
}
END_TEST

START_TEST (systemd_stops_it) {
	pid_t pid = spawn("redshank-u");

	start_unit(pid);
	fake_set(&fake, 0, "deactivating", "stop-sigterm", "success", (uint32_t)pid);
	harness_expect(&h, 3, CHECK_OUTCOME_GONE, "nsd.service is deactivating (stop-sigterm)");
	fake_set(&fake, 0, "inactive", "dead", "success", 0);
	end_child(pid);
	LOOP_FOR(h.event, 50);
	ck_assert_uint_eq(h.n, 3);
	fake_set(&fake, 0, "activating", "start", "success", 0);
	run_check_now(h.run);
	ck_assert(LOOP_UNTIL(
			  h.event, strstr(h.reports[h.n - 1].reason, "activating (start)"), 1000) ||
		  h.n > 3);
	stop_unit();
}
END_TEST

/* No word of a death comes before the attempt that finds systemd away. */
static void wait_for_unknown(const char *text)
{
	unsigned before = h.n;

	for (int i = 0; i < 100; i++) {
		LOOP_FOR(h.event, 30);
		ck_assert_uint_eq(h.n, before);
		run_check_now(h.run);
		if (harness_wait(&h, ++before)->outcome == CHECK_OUTCOME_UNKNOWN)
			break;
	}
	harness_expect(&h, before, CHECK_OUTCOME_UNKNOWN, text);
	h.n = 0;
}

/* What systemd said last of the main process stands until it speaks again: a bus that goes is not a
 * death, and a death is told without it. */
START_TEST (a_bus_that_goes_withdraws_nothing) {
	pid_t pid = spawn("redshank-u"), next = spawn("redshank-u");

	start_unit(pid);
	fake_bus_stop(&fake);
	wait_for_unknown("the system bus is away");
	end_child(pid);
	harness_expect(&h, 1, CHECK_OUTCOME_GONE, "main process");
	run_check_now(h.run);
	harness_expect(&h, 2, CHECK_OUTCOME_UNKNOWN, "the system bus is away");
	fake_leave(&fake);
	fake.units[0].main_pid = (uint32_t)next;
	fake_bus_start(&fake);
	fake_join(&fake, h.event);
	harness_expect(&h, 3, CHECK_OUTCOME_GOOD, "nsd.service is active");
	end_child(next);
	harness_expect(&h, 4, CHECK_OUTCOME_GONE, "main process");
	stop_unit();
}
END_TEST

/* The same of a systemd that leaves the bus, as in a daemon-reexec. */
START_TEST (a_systemd_that_leaves_withdraws_nothing) {
	pid_t pid = spawn("redshank-u");

	start_unit(pid);
	fake_leave(&fake);
	wait_for_unknown("systemd has left the bus");
	fake_join(&fake, h.event);
	LOOP_FOR(h.event, 300);
	ck_assert_uint_eq(h.n, 0);
	fake_leave(&fake);
	wait_for_unknown("systemd has left the bus");
	end_child(pid);
	harness_expect(&h, 1, CHECK_OUTCOME_GONE, "main process");
	stop_unit();
}
END_TEST

/* ---- settings ---- */

START_TEST (settings_that_exclude_each_other) {
	static const struct {
		struct process_settings settings;
		const char *says; /* NULL: fine */
	} rows[] = {
		{{.unit = (char *)"nsd.service", .count = 1}, NULL},
		{{.unit = (char *)"getty@tty1.service", .count = 1}, NULL},
		{{.pidfile = (char *)"/run/x.pid", .count = 1}, NULL},
		{{.executable = (char *)"nsd", .count = 4}, NULL},
		{{.count = 1}, "unit: expected one of"},
		{{.unit = (char *)"a.service", .pidfile = (char *)"/x", .count = 1},
			"unit: expected one of"},
		{{.pidfile = (char *)"/x", .executable = (char *)"x", .count = 1},
			"unit: expected one of"},
		{{.unit = (char *)"a.service",
			 .pidfile = (char *)"/x",
			 .executable = (char *)"x",
			 .count = 1},
			"unit: expected one of"},
		{{.unit = (char *)"nsd", .count = 1}, "unit: expected the whole name"},
		{{.unit = (char *)".service", .count = 1}, "unit: expected the whole name"},
		{{.unit = (char *)"getty@.service", .count = 1}, "unit: expected the whole name"},
		{{.unit = (char *)"a b.service", .count = 1}, "unit: expected the whole name"},
		{{.pidfile = (char *)"run/x.pid", .count = 1}, "pidfile: expected an absolute"},
		{{.pidfile = (char *)"/run/", .count = 1}, "pidfile: expected an absolute"},
		{{.executable = (char *)"/usr/sbin/nsd", .count = 1},
			"executable: expected a name"},
		{{.pidfile = (char *)"/x", .count = 2}, "count: expected only beside executable"},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct error e = {""};
		int r = probe_type_process.validate(&rows[i].settings, &e);

		if (rows[i].says)
			ck_assert_msg(r == -EINVAL && strstr(e.text, rows[i].says),
				"row %zu: %d \"%s\"", i, r, e.text);
		else
			ck_assert_msg(r == 0, "row %zu: \"%s\"", i, e.text);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probes-process");
	TCase *c = tcase_create("process");
	SRunner *runner;
	int failed;

	tcase_set_timeout(c, 60);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_living_process_is_good);
	tcase_add_loop_test(c, anything_else_has_its_own_reason, 0, ELEMENTSOF(bad_rows));
	tcase_add_test(c, no_pidfile);
	tcase_add_loop_test(c, not_a_file, 0, 2);
	tcase_add_test(c, a_long_path_leaves_room_for_the_reason);
	tcase_add_test(c, a_zombie_is_gone);
	tcase_add_test(c, a_thread_is_not_a_process);
	tcase_add_test(c, a_process_newer_than_its_file_is_another_one);
	tcase_add_test(c, a_clock_that_was_set_withdraws_nothing);
	tcase_add_test(c, a_file_from_before_the_boot_is_stale_on_a_disk);
	tcase_add_test(c, a_death_is_told_at_once);
	tcase_add_loop_test(c, a_death_allocates_nothing, 0, 2);
	tcase_add_loop_test(c, a_return_is_seen_at_once, 0, ELEMENTSOF(puts_));
	tcase_add_loop_test(c, a_handover_is_not_a_death, 0, ELEMENTSOF(puts_));
	tcase_add_test(c, a_lost_pidfile_is_not_a_death);
	tcase_add_test(c, a_folder_that_goes_and_comes);
	tcase_add_test(c, no_descriptors_is_unknown);
	tcase_add_test(c, a_dumping_process_is_gone);
	tcase_add_test(c, a_name_that_nobody_has);
	tcase_add_test(c, a_death_that_leaves_too_few);
	tcase_add_test(c, births_are_found_by_attempts);
	tcase_add_test(c, a_long_name_is_cut_as_the_kernel_cuts_it);
	tcase_add_loop_test(c, a_process_has_two_names, 0, 2);
	tcase_add_test(c, more_than_can_be_held);
	tcase_add_test(c, a_unit_without_a_bus);
	tcase_add_test(c, the_main_process_dies_first);
	tcase_add_test(c, a_quick_restart);
	tcase_add_test(c, systemd_stops_it);
	tcase_add_test(c, a_bus_that_goes_withdraws_nothing);
	tcase_add_test(c, a_systemd_that_leaves_withdraws_nothing);
	tcase_add_test(c, settings_that_exclude_each_other);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
