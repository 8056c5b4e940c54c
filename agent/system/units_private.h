#ifndef REDSHANK_SYSTEM_UNITS_PRIVATE_H
#define REDSHANK_SYSTEM_UNITS_PRIVATE_H
/* The connection to systemd, shared by those who watch (units.c) and those who ask and order
 * (units_call.c). */
#include <systemd/sd-bus.h>

#include "agent/system/units.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define MANAGER "org.freedesktop.systemd1.Manager"
#define PROPERTIES "org.freedesktop.DBus.Properties"

struct units {
	sd_event *event;
	char *address;
	sd_bus *bus;	/* NULL between connections */
	bool lost;	/* the bus is there only to be released */
	bool told_lost; /* logged, until a unit was read again */
	bool wanted;	/* a unit is watched: the bus is held, or tried again */
	sd_event_source *timer;
	uint64_t backoff_us;
	struct units_watch *watches;
	unsigned n_holds;	       /* of units_hold() */
	struct units_call *calls;      /* that have no answer yet; not owned */
	sd_event_source *calls_source; /* tells the lost ones */
};

/* systemd has answered: its next silence is told again, and tried again soon. */
void units_heard(struct units *u);
/* Connects where nobody wanted it yet. */
void units_want(struct units *u);
bool units_says_no_such_thing(const sd_bus_error *e);

/* Every call that has no answer gets none: told from the loop, not from in here. */
void units_calls_lose(struct units *u, const char *why);

#endif
