#ifndef REDSHANK_TESTS_FAKE_SYSTEMD_H
#define REDSHANK_TESTS_FAKE_SYSTEMD_H
/*
 * A private dbus-daemon and, on the test's own loop, an org.freedesktop.systemd1 that does as it is
 * told: for states and orders of signals that a real systemd shows too seldom to test.
 */
#include <check.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "tests/unit/loop.h"

struct fake_unit {
	const char *id, *load, *active, *sub, *result;
	uint32_t main_pid;
	uint32_t job; /* id of a job that is queued */
	uint64_t active_enter, active_exit, main_start, main_exit;
};

struct fake_systemd {
	char folder[64], path[96], address[128];
	pid_t daemon;
	sd_bus *bus;
	unsigned subscribed;
	unsigned asked; /* properties read */
	/* Orders: how often each came, for which unit, and what they are answered: an error's name,
	 * or a job, whose end fake_end_job() tells. */
	unsigned started, restarted;
	char ordered[64], mode[16];
	const char *error;
	bool silent; /* answers nothing at all */
	uint32_t job;
	struct fake_unit units[4];
};

static int fake_find(sd_bus *bus, const char *path, const char *interface, void *userdata,
	void **ret_found, sd_bus_error *ret_error)
{
	struct fake_systemd *f = userdata;
	char *id = NULL;

	if (sd_bus_path_decode(path, "/org/freedesktop/systemd1/unit", &id) <= 0)
		return 0;
	for (size_t i = 0; i < ELEMENTSOF(f->units); i++) {
		struct fake_unit *u = &f->units[i];
		bool same = u->id &&
			    (strcmp(u->id, id) == 0 || (strcmp(id, "alias.service") == 0 &&
							       strcmp(u->id, "real.service") == 0));

		if (!same)
			continue;
		f->asked++;
		*ret_found = u;
		free(id);
		return 1;
	}
	free(id);
	return 0;
}

static int fake_get(sd_bus *bus, const char *path, const char *interface, const char *property,
	sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	const struct fake_unit *u = userdata;
	const char *value = strcmp(property, "Id") == 0		   ? u->id
			    : strcmp(property, "LoadState") == 0   ? u->load
			    : strcmp(property, "ActiveState") == 0 ? u->active
			    : strcmp(property, "SubState") == 0	   ? u->sub
								   : u->result;

	if (strcmp(property, "MainPID") == 0)
		return sd_bus_message_append(reply, "u", u->main_pid);
	return sd_bus_message_append(reply, "s", value);
}

static int fake_get_time(sd_bus *bus, const char *path, const char *interface, const char *property,
	sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	const struct fake_unit *u = userdata;
	uint64_t value = strcmp(property, "ActiveEnterTimestampMonotonic") == 0	 ? u->active_enter
			 : strcmp(property, "ActiveExitTimestampMonotonic") == 0 ? u->active_exit
			 : strcmp(property, "ExecMainStartTimestampMonotonic") == 0 ? u->main_start
										    : u->main_exit;

	return sd_bus_message_append(reply, "t", value);
}

static int fake_get_job(sd_bus *bus, const char *path, const char *interface, const char *property,
	sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	const struct fake_unit *u = userdata;

	return sd_bus_message_append(reply, "(uo)", u->job, u->job ? "/some/job" : "/");
}

static int fake_order(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct fake_systemd *f = userdata;
	const char *unit, *mode;
	char job[64];

	ck_assert_int_ge(sd_bus_message_read(m, "ss", &unit, &mode), 0);
	if (strcmp(sd_bus_message_get_member(m), "StartUnit") == 0)
		f->started++;
	else
		f->restarted++;
	(void)snprintf(f->ordered, sizeof(f->ordered), "%s", unit);
	(void)snprintf(f->mode, sizeof(f->mode), "%s", mode);
	if (f->silent)
		return 1;
	if (f->error)
		return sd_bus_reply_method_errorf(m, f->error, "%s", "as the fake was told");
	(void)snprintf(job, sizeof(job), "/org/freedesktop/systemd1/job/%u", ++f->job);
	return sd_bus_reply_method_return(m, "o", job);
}

static int fake_subscribe(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct fake_systemd *f = userdata;

	f->subscribed++;
	return sd_bus_reply_method_return(m, "");
}

static const sd_bus_vtable fake_unit_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("Id", "s", fake_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("LoadState", "s", fake_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("ActiveState", "s", fake_get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("SubState", "s", fake_get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("Job", "(uo)", fake_get_job, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("ActiveEnterTimestampMonotonic", "t", fake_get_time, 0,
		SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("ActiveExitTimestampMonotonic", "t", fake_get_time, 0,
		SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_VTABLE_END,
};

static const sd_bus_vtable fake_service_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("MainPID", "u", fake_get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("Result", "s", fake_get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("ExecMainStartTimestampMonotonic", "t", fake_get_time, 0,
		SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("ExecMainExitTimestampMonotonic", "t", fake_get_time, 0,
		SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_VTABLE_END,
};

static const sd_bus_vtable fake_manager_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("Subscribe", "", "", fake_subscribe, 0),
	SD_BUS_METHOD("StartUnit", "ss", "o", fake_order, 0),
	SD_BUS_METHOD("TryRestartUnit", "ss", "o", fake_order, 0),
	SD_BUS_SIGNAL("Reloading", "b", 0),
	SD_BUS_SIGNAL("JobRemoved", "uoss", 0),
	SD_BUS_VTABLE_END,
};

/* The fake joins the bus; `event` is the test's loop. */
static inline void fake_join(struct fake_systemd *f, sd_event *event)
{
	ck_assert_int_ge(sd_bus_new(&f->bus), 0);
	ck_assert_int_ge(sd_bus_set_address(f->bus, f->address), 0);
	ck_assert_int_ge(sd_bus_set_bus_client(f->bus, true), 0);
	ck_assert_int_ge(sd_bus_start(f->bus), 0);
	ck_assert_int_ge(sd_bus_add_fallback_vtable(f->bus, NULL, "/org/freedesktop/systemd1/unit",
				 "org.freedesktop.systemd1.Unit", fake_unit_vtable, fake_find, f),
		0);
	ck_assert_int_ge(
		sd_bus_add_fallback_vtable(f->bus, NULL, "/org/freedesktop/systemd1/unit",
			"org.freedesktop.systemd1.Service", fake_service_vtable, fake_find, f),
		0);
	ck_assert_int_ge(sd_bus_add_object_vtable(f->bus, NULL, "/org/freedesktop/systemd1",
				 "org.freedesktop.systemd1.Manager", fake_manager_vtable, f),
		0);
	ck_assert_int_ge(sd_bus_request_name(f->bus, "org.freedesktop.systemd1", 0), 0);
	ck_assert_int_ge(sd_bus_attach_event(f->bus, event, 0), 0);
}

static inline void fake_leave(struct fake_systemd *f)
{
	f->bus = sd_bus_flush_close_unref(f->bus);
}

static inline bool fake_bus_answers(const struct fake_systemd *f)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok;

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", f->path);
	ok = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
	(void)close(fd);
	return ok;
}

static inline void fake_bus_start(struct fake_systemd *f)
{
	struct monotime until = monotime_add_ms(clock_monotime(), 5000);
	char config[128];
	FILE *file;

	(void)snprintf(config, sizeof(config), "%s/bus.conf", f->folder);
	file = fopen(config, "we");
	ck_assert_ptr_nonnull(file);
	(void)fprintf(file,
		"<busconfig><type>custom</type><listen>%s</listen><auth>EXTERNAL</auth>"
		"<policy context='default'><allow eavesdrop='true'/><allow user='*'/><allow "
		"own='*'/>"
		"<allow send_destination='*' eavesdrop='true'/></policy></busconfig>\n",
		f->address);
	(void)fclose(file);
	f->daemon = fork();
	ck_assert_int_ge(f->daemon, 0);
	if (f->daemon == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
		(void)execl("/usr/bin/dbus-daemon", "dbus-daemon", "--nofork", "--config-file",
			config, NULL);
		_exit(127);
	}
	while (!fake_bus_answers(f)) {
		ck_assert(!monotime_reached(until, clock_monotime()));
		(void)usleep(5000);
	}
}

static inline void fake_bus_stop(struct fake_systemd *f)
{
	(void)kill(f->daemon, SIGKILL);
	(void)waitpid(f->daemon, NULL, 0);
	f->daemon = 0;
	(void)unlink(f->path);
}

static inline void fake_init(struct fake_systemd *f)
{
	memset(f, 0, sizeof(*f));
	(void)snprintf(f->folder, sizeof(f->folder), "/tmp/redshank-bus-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(f->folder));
	(void)snprintf(f->path, sizeof(f->path), "%s/bus", f->folder);
	(void)snprintf(f->address, sizeof(f->address), "unix:path=%s", f->path);
}

static inline void fake_done(struct fake_systemd *f)
{
	char config[128];

	if (f->bus)
		fake_leave(f);
	if (f->daemon > 0)
		fake_bus_stop(f);
	(void)snprintf(config, sizeof(config), "%s/bus.conf", f->folder);
	(void)unlink(config);
	(void)rmdir(f->folder);
}

/* Changes a unit and tells of it as systemd does: the service's part first. */
static inline void fake_set(struct fake_systemd *f, size_t i, const char *active, const char *sub,
	const char *result, uint32_t main_pid)
{
	struct fake_unit *u = &f->units[i];
	char *path = NULL;

	ck_assert_int_ge(sd_bus_path_encode("/org/freedesktop/systemd1/unit", u->id, &path), 0);
	u->main_pid = main_pid;
	u->result = result;
	ck_assert_int_ge(sd_bus_emit_properties_changed(f->bus, path,
				 "org.freedesktop.systemd1.Service", "MainPID", "Result", NULL),
		0);
	u->active = active;
	u->sub = sub;
	ck_assert_int_ge(sd_bus_emit_properties_changed(f->bus, path,
				 "org.freedesktop.systemd1.Unit", "ActiveState", "SubState", NULL),
		0);
	free(path);
}

/* Tells that the job that was given last has ended. */
static inline void fake_end_job(struct fake_systemd *f, const char *result)
{
	char job[64];

	(void)snprintf(job, sizeof(job), "/org/freedesktop/systemd1/job/%u", f->job);
	ck_assert_int_ge(sd_bus_emit_signal(f->bus, "/org/freedesktop/systemd1",
				 "org.freedesktop.systemd1.Manager", "JobRemoved", "uoss", f->job,
				 job, f->ordered, result),
		0);
}

#endif
