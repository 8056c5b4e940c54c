/*
 * systemd's units over sd-bus.
 *
 * One connection, which nothing waits for: it is opened, authenticated and greeted from the loop,
 * calls are queued until then, and every reply is a callback. For each watched unit there is a
 * match on the PropertiesChanged signals of its object, and then six questions (Id, LoadState,
 * ActiveState, SubState, MainPID, Result); from then on systemd's signals carry the new values, in
 * the order in which they became true, and nothing is asked again.
 *
 * Signals come from the object of the unit's own name. A watch on an alias learns that name from Id
 * and moves there. What systemd does not signal (a unit's file came or went) is asked again when it
 * says that it has reloaded.
 *
 * What we know is only as good as the connection. When it is lost, when systemd leaves the bus, or
 * when a question fails for another reason than the unit, the unit is unknown, and the connection
 * is built anew after a back-off. The old one is let go of on the timer and not in its own
 * callback.
 *
 * Where no check watches a unit there need not be a bus: it is connected to for the first watch,
 * and one that is lost while nobody watches is neither mourned nor tried again.
 */
#include "agent/system/units.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <time.h>

#include "agent/base/cleanup.h"
#include "agent/system/log.h"
#include "agent/system/units_private.h"

#define SYSTEM_BUS "unix:path=/run/dbus/system_bus_socket"
#define UNIT "org.freedesktop.systemd1.Unit"
#define SERVICE "org.freedesktop.systemd1.Service"
#define LOCAL "org.freedesktop.DBus.Local"

#define CALL_TIMEOUT_US (5 * 1000000ULL)
/* Units about which something is asked at a time: six questions each, and dbus-daemon takes 128
 * calls of a connection without an answer, or refuses the next. */
#define ASKED_MAX 16
#define BACKOFF_MIN_US 100000ULL
#define BACKOFF_MAX_US (10 * 1000000ULL)

enum property {
	PROPERTY_ID,
	PROPERTY_LOAD_STATE,
	PROPERTY_ACTIVE_STATE,
	PROPERTY_SUB_STATE,
	PROPERTY_RESULT,
	PROPERTY_MAIN_PID,
	N_PROPERTIES,
};

static const struct {
	const char *interface, *name;
} properties[N_PROPERTIES] = {
	[PROPERTY_ID] = {UNIT, "Id"},
	[PROPERTY_LOAD_STATE] = {UNIT, "LoadState"},
	[PROPERTY_ACTIVE_STATE] = {UNIT, "ActiveState"},
	[PROPERTY_SUB_STATE] = {UNIT, "SubState"},
	[PROPERTY_RESULT] = {SERVICE, "Result"},
	[PROPERTY_MAIN_PID] = {SERVICE, "MainPID"},
};

#define WORD_MAX 32

struct question {
	struct units_watch *watch;
	sd_bus_slot *slot;
};

struct units_watch {
	struct units *units;
	struct units_watch *next, *previous;
	char *unit; /* as configured */
	char *path; /* of the object that signals; NULL while the bus is away */
	sd_bus_slot *match;
	struct question questions[N_PROPERTIES];
	char load_state[WORD_MAX], active_state[WORD_MAX], sub_state[WORD_MAX], result[WORD_MAX];
	pid_t main_pid;
	bool waits;  /* for its turn to be asked */
	bool notify; /* the view changed and `changed` was not called yet */
	struct units_view view;
	void (*changed)(void *userdata);
	void *userdata;
};

DEFINE_CLEANUP_PTR(struct units *, units_free)
DEFINE_CLEANUP_PTR(struct units_watch *, units_watch_free)

/* ---- views ---- */

static void set_view(
	struct units_watch *w, enum units_state state, pid_t main_pid, const char *text)
{
	struct units_view view = {.state = state, .main_pid = main_pid};

	(void)snprintf(view.text, sizeof(view.text), "%s", text);
	if (view.state == w->view.state && view.main_pid == w->view.main_pid &&
		strcmp(view.text, w->view.text) == 0)
		return;
	w->view = view;
	w->notify = true;
}

/* Calls back where a view changed. A callback may free any watch, so each search begins anew. */
static void notify_watches(struct units *u)
{
	struct units_watch *w = u->watches;

	while (w) {
		if (!w->notify) {
			w = w->next;
			continue;
		}
		w->notify = false;
		w->changed(w->userdata);
		w = u->watches;
	}
}

static enum units_state judge(const struct units_watch *w)
{
	const char *active = w->active_state;

	if (strcmp(active, "active") == 0 || strcmp(active, "reloading") == 0 ||
		strcmp(active, "refreshing") == 0)
		return UNITS_RUNNING;
	/* Between a death and the restart that follows it, nothing runs. */
	if (strncmp(w->sub_state, "auto-restart", strlen("auto-restart")) == 0)
		return UNITS_GONE;
	return strcmp(active, "activating") == 0 ? UNITS_STARTING : UNITS_GONE;
}

static void update_view(struct units_watch *w)
{
	enum units_state state = judge(w);
	char text[sizeof(w->view.text)];

	for (size_t i = 0; i < N_PROPERTIES; i++)
		if (w->questions[i].slot)
			return; /* not all answers are in */
	if (state == UNITS_GONE && strcmp(w->load_state, "not-found") == 0)
		(void)snprintf(text, sizeof(text), "systemd knows no unit %.80s", w->unit);
	else if (strcmp(w->active_state, "failed") == 0 && w->result[0] != '\0')
		(void)snprintf(text, sizeof(text), "%.80s is failed (%s)", w->unit, w->result);
	else if (state != UNITS_RUNNING && w->sub_state[0] != '\0')
		(void)snprintf(text, sizeof(text), "%.56s is %s (%s)", w->unit, w->active_state,
			w->sub_state);
	else
		(void)snprintf(text, sizeof(text), "%.80s is %s", w->unit, w->active_state);
	set_view(w, state, w->main_pid, text);
}

/* ---- the connection's end ---- */

static void forget_answers(struct units_watch *w)
{
	for (size_t i = 0; i < N_PROPERTIES; i++)
		w->questions[i].slot = sd_bus_slot_unref(w->questions[i].slot);
	w->load_state[0] = w->active_state[0] = w->sub_state[0] = w->result[0] = '\0';
	w->main_pid = 0;
}

static void units_connect_in(struct units *u, uint64_t us)
{
	if (sd_event_source_set_time_relative(u->timer, us) >= 0)
		(void)sd_event_source_set_enabled(u->timer, SD_EVENT_ONESHOT);
}

static void lose(struct units *u, const char *why)
{
	if (u->lost)
		return;
	u->lost = true;
	if ((u->watches || u->n_holds > 0) && !u->told_lost) {
		log_warning("systemd: %s; units are unknown until it is back", why);
		u->told_lost = true;
	}
	for (struct units_watch *w = u->watches; w; w = w->next) {
		char text[sizeof(w->view.text)];

		forget_answers(w);
		(void)snprintf(text, sizeof(text), "%.60s: %.60s", w->unit, why);
		set_view(w, UNITS_UNKNOWN, 0, text);
	}
	units_calls_lose(u, why);
	units_connect_in(u, u->backoff_us);
	u->backoff_us = u->backoff_us * 2 < BACKOFF_MAX_US ? u->backoff_us * 2 : BACKOFF_MAX_US;
}

static void release_bus(struct units *u)
{
	units_calls_lose(u, "the system bus is away");
	for (struct units_watch *w = u->watches; w; w = w->next) {
		forget_answers(w);
		w->match = sd_bus_slot_unref(w->match);
		free(w->path);
		w->path = NULL;
	}
	if (u->bus) {
		sd_bus_detach_event(u->bus);
		sd_bus_close(u->bus);
	}
	u->bus = sd_bus_unref(u->bus);
}

void units_heard(struct units *u)
{
	u->told_lost = false;
	u->backoff_us = BACKOFF_MIN_US;
}

/* ---- answers ---- */

static void set_word(char word[WORD_MAX], const char *value)
{
	(void)snprintf(word, WORD_MAX, "%s", value);
}

static int ask_unit(struct units_watch *w, const char *name);
static void ask_more(struct units *u);

static bool is_asked(const struct units_watch *w)
{
	for (size_t i = 0; i < N_PROPERTIES; i++)
		if (w->questions[i].slot)
			return true;
	return false;
}

/* One value inside a variant, which is read or skipped. 0 or negative errno. */
static int take_value(struct units_watch *w, enum property property, sd_bus_message *m)
{
	const char *word = NULL;
	uint32_t number = 0;
	int r = property == PROPERTY_MAIN_PID ? sd_bus_message_read(m, "v", "u", &number)
					      : sd_bus_message_read(m, "v", "s", &word);

	if (r < 0)
		return r;
	switch (property) {
	case PROPERTY_ID:
		return 0; /* only asked for, see on_answer() */
	case PROPERTY_LOAD_STATE:
		set_word(w->load_state, word);
		return 0;
	case PROPERTY_ACTIVE_STATE:
		set_word(w->active_state, word);
		return 0;
	case PROPERTY_SUB_STATE:
		set_word(w->sub_state, word);
		return 0;
	case PROPERTY_RESULT:
		set_word(w->result, word);
		return 0;
	case PROPERTY_MAIN_PID:
		w->main_pid = (pid_t)number;
		return 0;
	case N_PROPERTIES:
		break;
	}
	abort();
}

bool units_says_no_such_thing(const sd_bus_error *e)
{
	return sd_bus_error_has_name(e, SD_BUS_ERROR_UNKNOWN_OBJECT) ||
	       sd_bus_error_has_name(e, SD_BUS_ERROR_UNKNOWN_INTERFACE) ||
	       sd_bus_error_has_name(e, SD_BUS_ERROR_UNKNOWN_PROPERTY) ||
	       sd_bus_error_has_name(e, SD_BUS_ERROR_UNKNOWN_METHOD) ||
	       sd_bus_error_has_name(e, "org.freedesktop.systemd1.NoSuchUnit");
}

/* A question that failed. A unit that is no service has no main process; one that systemd cannot
 * find is gone; all else is the connection's fault. */
static void take_error(struct units_watch *w, enum property property, const sd_bus_error *e)
{
	char why[128];

	if (!units_says_no_such_thing(e)) {
		(void)snprintf(why, sizeof(why), "%s", e->message ? e->message : e->name);
		lose(w->units, why);
		return;
	}
	if (properties[property].interface[0] &&
		strcmp(properties[property].interface, SERVICE) == 0)
		return;
	set_word(w->load_state, "not-found");
	set_word(w->active_state, "inactive");
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct question *q = userdata;
	struct units_watch *w = q->watch;
	struct units *u = w->units;
	enum property property = (enum property)(q - w->questions);
	const char *id;

	q->slot = sd_bus_slot_unref(q->slot);
	if (u->lost)
		return 0;
	if (sd_bus_message_is_method_error(m, NULL)) {
		take_error(w, property, sd_bus_message_get_error(m));
	} else if (property == PROPERTY_ID) {
		_cleanup_free_ char *path = NULL;

		if (sd_bus_message_read(m, "v", "s", &id) >= 0 &&
			sd_bus_path_encode("/org/freedesktop/systemd1/unit", id, &path) >= 0 &&
			strcmp(path, w->path) != 0 && ask_unit(w, id) < 0)
			lose(u, "cannot ask");
	} else if (take_value(w, property, m) < 0) {
		lose(u, "an answer that is not systemd's");
	} else {
		units_heard(u);
	}
	if (!u->lost)
		update_view(w);
	if (!is_asked(w))
		ask_more(u);
	notify_watches(u);
	return 0;
}

/* PropertiesChanged: interface, {name: value}, [names without value] */
static int on_properties(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct units_watch *w = userdata;
	const char *interface, *name;
	int r;

	if (w->units->lost)
		return 0;
	r = sd_bus_message_read(m, "s", &interface);
	if (r >= 0)
		r = sd_bus_message_enter_container(m, SD_BUS_TYPE_ARRAY, "{sv}");
	while (r >= 0 &&
		(r = sd_bus_message_enter_container(m, SD_BUS_TYPE_DICT_ENTRY, "sv")) > 0) {
		size_t i = 0;

		r = sd_bus_message_read(m, "s", &name);
		if (r < 0)
			break;
		while (i < N_PROPERTIES && (strcmp(name, properties[i].name) != 0 ||
						   strcmp(interface, properties[i].interface) != 0))
			i++;
		r = i == N_PROPERTIES ? sd_bus_message_skip(m, "v")
				      : take_value(w, (enum property)i, m);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	if (r < 0)
		log_debug("systemd: a signal about %s that cannot be read: %s", w->unit,
			strerror(-r));
	update_view(w);
	notify_watches(w->units);
	return 0;
}

/* ---- questions ---- */

/* A late failure of a match (the bus's limits): without signals we would know nothing. */
static int on_match(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct units *u = userdata;

	if (!sd_bus_message_is_method_error(m, NULL) || u->lost)
		return 0;
	lose(u, sd_bus_message_get_error(m)->message ?: "the bus takes no match");
	notify_watches(u);
	return 0;
}

static int on_watch_match(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct units_watch *w = userdata;

	return on_match(m, w->units, ret_error);
}

/* Asks for everything about the unit, whose signals we already get. */
static int ask_properties(struct units_watch *w)
{
	for (size_t i = 0; i < N_PROPERTIES; i++) {
		struct question *q = &w->questions[i];
		int r;

		q->slot = sd_bus_slot_unref(q->slot);
		q->watch = w;
		r = sd_bus_call_method_async(w->units->bus, &q->slot, SYSTEMD, w->path, PROPERTIES,
			"Get", on_answer, q, "ss", properties[i].interface, properties[i].name);
		if (r < 0)
			return r;
	}
	return 0;
}

static int ask_unit(struct units_watch *w, const char *name)
{
	_cleanup_free_ char *path = NULL;
	int r = sd_bus_path_encode("/org/freedesktop/systemd1/unit", name, &path);

	if (r < 0)
		return r;
	w->match = sd_bus_slot_unref(w->match);
	forget_answers(w);
	free(w->path);
	w->path = TAKE_PTR(path);
	r = sd_bus_match_signal_async(w->units->bus, &w->match, SYSTEMD, w->path, PROPERTIES,
		"PropertiesChanged", on_properties, on_watch_match, w);
	if (r < 0)
		return r;
	return ask_properties(w);
}

/* Those whose turn it is. */
static void ask_more(struct units *u)
{
	size_t n = 0;

	for (struct units_watch *w = u->watches; w; w = w->next)
		n += is_asked(w);
	for (struct units_watch *w = u->watches; w && u->bus && !u->lost && n < ASKED_MAX;
		w = w->next) {
		if (!w->waits)
			continue;
		w->waits = false;
		n++;
		if (ask_unit(w, w->unit) < 0)
			lose(u, "cannot ask");
	}
}

static int on_subscribed(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct units *u = userdata;
	const sd_bus_error *e = sd_bus_message_get_error(m);

	if (!e || u->lost || sd_bus_error_has_name(e, "org.freedesktop.systemd1.AlreadySubscribed"))
		return 0;
	lose(u, e->message ? e->message : e->name);
	notify_watches(u);
	return 0;
}

static int on_reloading(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct units *u = userdata;
	int active;

	if (u->lost || sd_bus_message_read(m, "b", &active) < 0 || active)
		return 0;
	for (struct units_watch *w = u->watches; w; w = w->next)
		w->waits = true;
	ask_more(u);
	notify_watches(u);
	return 0;
}

static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct units *u = userdata;
	const char *name, *before, *after;

	if (sd_bus_message_read(m, "sss", &name, &before, &after) < 0)
		return 0;
	/* Also when it was only replaced: what we know is the old one's, and so is our
	 * subscription. */
	if (before[0] != '\0')
		lose(u, "systemd has left the bus");
	if (after[0] != '\0' && u->lost)
		(void)sd_event_source_set_time_relative(u->timer, 0);
	notify_watches(u);
	return 0;
}

static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct units *u = userdata;

	lose(u, "the system bus is away");
	notify_watches(u);
	return 0;
}

/* ---- the connection ---- */

static int add_matches(struct units *u)
{
	int r = sd_bus_match_signal_async(u->bus, NULL, LOCAL, "/org/freedesktop/DBus/Local", LOCAL,
		"Disconnected", on_disconnected, NULL, u);

	if (r < 0)
		return r;
	r = sd_bus_add_match_async(u->bus, NULL,
		"type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
		"interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" SYSTEMD "'",
		on_owner, on_match, u);
	if (r < 0)
		return r;
	return sd_bus_match_signal_async(u->bus, NULL, SYSTEMD, MANAGER_PATH, MANAGER, "Reloading",
		on_reloading, on_match, u);
}

static int start_bus(struct units *u)
{
	int r = sd_bus_new(&u->bus);

	if (r >= 0)
		r = sd_bus_set_address(u->bus, u->address);
	if (r >= 0)
		r = sd_bus_set_bus_client(u->bus, true);
	if (r >= 0)
		r = sd_bus_set_description(u->bus, "system");
	if (r >= 0)
		r = sd_bus_set_method_call_timeout(u->bus, CALL_TIMEOUT_US);
	if (r >= 0)
		r = sd_bus_start(u->bus);
	if (r >= 0)
		r = sd_bus_attach_event(u->bus, u->event, SD_EVENT_PRIORITY_NORMAL);
	return r;
}

static void connect_bus(struct units *u)
{
	char why[160];
	int r;

	u->lost = false;
	r = start_bus(u);
	if (r >= 0)
		r = add_matches(u);
	if (r >= 0)
		r = sd_bus_call_method_async(u->bus, NULL, SYSTEMD, MANAGER_PATH, MANAGER,
			"Subscribe", on_subscribed, u, "");
	for (struct units_watch *w = u->watches; w; w = w->next)
		w->waits = true;
	if (r >= 0)
		ask_more(u);
	if (r < 0) {
		(void)snprintf(why, sizeof(why), "the system bus is away (%s)", strerror(-r));
		lose(u, why);
	}
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct units *u = userdata;

	release_bus(u);
	u->wanted = u->watches || u->n_holds > 0;
	u->lost = false;
	if (u->wanted)
		connect_bus(u);
	notify_watches(u);
	return 0;
}

int units_new(struct units **ret, sd_event *event, const char *bus_address)
{
	_cleanup_(units_freep) struct units *u = calloc(1, sizeof(*u));
	const char *standard = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");
	int r;

	if (!u)
		return -ENOMEM;
	u->event = sd_event_ref(event);
	u->backoff_us = BACKOFF_MIN_US;
	u->address = strdup(bus_address ? bus_address : standard ? standard : SYSTEM_BUS);
	if (!u->address)
		return -ENOMEM;
	r = sd_event_add_time(event, &u->timer, CLOCK_BOOTTIME, UINT64_MAX, 0, on_timer, u);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(u->timer, "systemd-reconnect");
	(void)sd_event_source_set_enabled(u->timer, SD_EVENT_OFF);
	*ret = TAKE_PTR(u);
	return 0;
}

void units_free(struct units *u)
{
	if (!u)
		return;
	assert(!u->watches);
	assert(!u->calls);
	release_bus(u);
	sd_event_source_disable_unref(u->timer);
	sd_event_source_disable_unref(u->calls_source);
	sd_event_unref(u->event);
	free(u->address);
	free(u);
}

void units_want(struct units *u)
{
	if (u->wanted)
		return;
	u->wanted = true;
	units_connect_in(u, 0);
}

int units_watch_new(struct units_watch **ret, struct units *u, const char *unit,
	void (*changed)(void *userdata), void *userdata)
{
	_cleanup_(units_watch_freep) struct units_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->units = u;
	w->changed = changed;
	w->userdata = userdata;
	w->next = u->watches;
	if (w->next)
		w->next->previous = w;
	u->watches = w;
	w->unit = strdup(unit);
	if (!w->unit)
		return -ENOMEM;
	(void)snprintf(w->view.text, sizeof(w->view.text), "%.60s: %s", unit,
		u->lost ? "the system bus is away" : "systemd was not asked yet");
	w->waits = true;
	if (!u->wanted)
		units_want(u);
	else
		ask_more(u);
	*ret = TAKE_PTR(w);
	return 0;
}

void units_watch_free(struct units_watch *w)
{
	if (!w)
		return;
	if (w->previous)
		w->previous->next = w->next;
	else
		w->units->watches = w->next;
	if (w->next)
		w->next->previous = w->previous;
	forget_answers(w);
	ask_more(w->units);
	sd_bus_slot_unref(w->match);
	free(w->path);
	free(w->unit);
	free(w);
}

const struct units_view *units_watch_view(const struct units_watch *w)
{
	return &w->view;
}
