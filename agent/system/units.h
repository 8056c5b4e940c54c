#ifndef REDSHANK_SYSTEM_UNITS_H
#define REDSHANK_SYSTEM_UNITS_H
/*
 * systemd's units over sd-bus (org.freedesktop.systemd1(5)): state and main process of each watched
 * unit, as systemd tells of a change. One bus connection for all; when it is lost, every unit is
 * unknown until it is back (tried with back-off).
 */
#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "agent/base/error.h"

struct units;
struct units_watch;

enum units_state {
	UNITS_UNKNOWN,	/* the bus is away or has not answered yet */
	UNITS_RUNNING,	/* active, reloading */
	UNITS_STARTING, /* activating */
	UNITS_GONE, /* inactive, failed, deactivating, waiting for its restart, or no such unit */
};

struct units_view {
	enum units_state state;
	pid_t main_pid; /* 0: none */
	char text[128]; /* "nsd.service is failed (exit-code)", for the reason */
};

/* Heap. Connects in the background, once a unit is watched; `bus_address` NULL is the system bus. 0
 * or negative errno. */
int units_new(struct units **ret, sd_event *event, const char *bus_address);
void units_free(struct units *u);

/*
 * `changed` is called from the loop whenever the view changes, never from inside units_watch_new();
 * it may free any watch. `unit` is copied. Watches are freed before their units. 0 or negative
 * errno.
 */
int units_watch_new(struct units_watch **ret, struct units *u, const char *unit,
	void (*changed)(void *userdata), void *userdata);
void units_watch_free(struct units_watch *w);
const struct units_view *units_watch_view(const struct units_watch *w);

#endif
