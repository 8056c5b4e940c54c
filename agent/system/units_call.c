/*
 * Questions and orders to systemd (org.freedesktop.systemd1(5)), beside the watches of units.c.
 *
 * Nothing waits: a call is sent, its answer is a callback, and a call without an answer is given up
 * after the connection's time for calls (5 s). An order is answered with a job; that it has ended
 * is a JobRemoved signal, for which the match is installed before the order is sent.
 *
 * A connection that is lost ends every call. They are told from a source of the loop, since it is
 * lost in the middle of callbacks that walk over watches.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "agent/base/cleanup.h"
#include "agent/system/units.h"
#include "agent/system/units_private.h"

#define UNIT_PATH "/org/freedesktop/systemd1/unit"
#define CALL_TEXT_MAX 160

struct units_call {
	struct units *units;
	struct units_call *next, *previous;
	sd_bus_slot *slot;  /* of the answer */
	sd_bus_slot *match; /* JobRemoved */
	char *job;	    /* an order that was taken: the object of its job */
	bool lost;	    /* to be told */
	char why[CALL_TEXT_MAX];
	units_answered_fn answered; /* of a question */
	units_ended_fn ended;	    /* of an order */
	void *userdata;
};

DEFINE_CLEANUP_PTR(struct units_call *, units_call_free)

void units_hold(struct units *u)
{
	u->n_holds++;
	units_want(u);
}

void units_unhold(struct units *u)
{
	u->n_holds--;
}

/* ---- a call's life ---- */

void units_call_free(struct units_call *call)
{
	if (!call)
		return;
	if (call->previous)
		call->previous->next = call->next;
	else
		call->units->calls = call->next;
	if (call->next)
		call->next->previous = call->previous;
	sd_bus_slot_unref(call->slot);
	sd_bus_slot_unref(call->match);
	free(call->job);
	free(call);
}

static struct units_call *call_new(struct units *u, void *userdata)
{
	struct units_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->units = u;
	call->userdata = userdata;
	call->next = u->calls;
	if (call->next)
		call->next->previous = call;
	u->calls = call;
	return call;
}

/* The owner forgets the call in its callback, so it is freed before. */
static void tell_answer(struct units_call *call, const struct units_facts *facts, const char *why)
{
	units_answered_fn answered = call->answered;
	void *userdata = call->userdata;

	units_call_free(call);
	answered(userdata, facts, why);
}

static void tell_end(struct units_call *call, enum units_job_end end, const char *text)
{
	units_ended_fn ended = call->ended;
	void *userdata = call->userdata;

	units_call_free(call);
	ended(userdata, end, text);
}

/* ---- a lost connection ---- */

static int on_lost_calls(sd_event_source *source, void *userdata)
{
	struct units *u = userdata;
	struct units_call *call = u->calls;

	/* A callback may begin or free others, so each search begins anew. */
	while (call) {
		char why[CALL_TEXT_MAX];

		if (!call->lost) {
			call = call->next;
			continue;
		}
		memcpy(why, call->why, sizeof(why));
		if (call->answered)
			tell_answer(call, NULL, why);
		else
			tell_end(call, UNITS_JOB_UNANSWERED, why);
		call = u->calls;
	}
	return 0;
}

void units_calls_lose(struct units *u, const char *why)
{
	for (struct units_call *call = u->calls; call; call = call->next) {
		call->slot = sd_bus_slot_unref(call->slot);
		call->match = sd_bus_slot_unref(call->match);
		if (call->lost)
			continue;
		call->lost = true;
		(void)snprintf(call->why, sizeof(call->why), "%s", why);
	}
	if (u->calls && u->calls_source)
		(void)sd_event_source_set_enabled(u->calls_source, SD_EVENT_ONESHOT);
}

/* Before a call is sent: there is a bus, and a way to tell that it is lost. */
static int ready(struct units *u)
{
	int r;

	if (!u->bus || u->lost)
		return -ENOTCONN;
	if (u->calls_source)
		return 0;
	r = sd_event_add_defer(u->event, &u->calls_source, on_lost_calls, u);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(u->calls_source, "systemd-lost-calls");
	return sd_event_source_set_enabled(u->calls_source, SD_EVENT_OFF);
}

/* ---- questions ---- */

static int read_word(sd_bus_message *m, char word[UNITS_WORD_MAX])
{
	const char *value;
	int r = sd_bus_message_read(m, "v", "s", &value);

	if (r >= 0)
		(void)snprintf(word, UNITS_WORD_MAX, "%s", value);
	return r;
}

static int read_job(sd_bus_message *m, bool *ret)
{
	uint32_t id;
	const char *path;
	int r = sd_bus_message_read(m, "v", "(uo)", &id, &path);

	if (r >= 0)
		*ret = id != 0;
	return r;
}

/* One property: read, or skipped. */
static int read_property(sd_bus_message *m, const char *name, struct units_facts *f)
{
	const struct {
		const char *name;
		char *word;
		uint64_t *number;
	} rows[] = {
		{"LoadState", f->load_state, NULL},
		{"ActiveState", f->active_state, NULL},
		{"SubState", f->sub_state, NULL},
		{"Result", f->result, NULL},
		{"ActiveEnterTimestampMonotonic", NULL, &f->active_enter_us},
		{"ActiveExitTimestampMonotonic", NULL, &f->active_exit_us},
		{"ExecMainStartTimestampMonotonic", NULL, &f->main_start_us},
		{"ExecMainExitTimestampMonotonic", NULL, &f->main_exit_us},
	};

	if (strcmp(name, "Job") == 0)
		return read_job(m, &f->job);
	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if (strcmp(name, rows[i].name) == 0)
			return rows[i].word ? read_word(m, rows[i].word)
					    : sd_bus_message_read(m, "v", "t", rows[i].number);
	return sd_bus_message_skip(m, "v");
}

static int read_facts(sd_bus_message *m, struct units_facts *f)
{
	int r = sd_bus_message_enter_container(m, SD_BUS_TYPE_ARRAY, "{sv}");
	const char *name;

	while (r >= 0 &&
		(r = sd_bus_message_enter_container(m, SD_BUS_TYPE_DICT_ENTRY, "sv")) > 0) {
		r = sd_bus_message_read(m, "s", &name);
		if (r >= 0)
			r = read_property(m, name, f);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	if (r >= 0 && (f->load_state[0] == '\0' || f->active_state[0] == '\0'))
		r = -EBADMSG;
	return r;
}

static const char *error_text(const sd_bus_error *e)
{
	return e->message ? e->message : e->name;
}

static int on_facts(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct units_facts facts = {.load_state = "not-found", .active_state = "inactive"};
	struct units_call *call = userdata;
	const sd_bus_error *e = sd_bus_message_get_error(m);

	if (!e)
		units_heard(call->units);
	if (e && !units_says_no_such_thing(e)) {
		char why[CALL_TEXT_MAX];

		(void)snprintf(why, sizeof(why), "%s", error_text(e));
		tell_answer(call, NULL, why);
		return 0;
	}
	if (!e)
		facts = (struct units_facts){0};
	if (!e && read_facts(m, &facts) < 0)
		tell_answer(call, NULL, "an answer that is not systemd's");
	else
		tell_answer(call, &facts, NULL);
	return 0;
}

int units_ask(struct units_call **ret, struct units *u, const char *unit,
	units_answered_fn answered, void *userdata)
{
	_cleanup_(units_call_freep) struct units_call *call = NULL;
	_cleanup_free_ char *path = NULL;
	int r = ready(u);

	if (r < 0)
		return r;
	call = call_new(u, userdata);
	if (!call)
		return -ENOMEM;
	call->answered = answered;
	r = sd_bus_path_encode(UNIT_PATH, unit, &path);
	if (r >= 0) /* "": of all interfaces */
		r = sd_bus_call_method_async(u->bus, &call->slot, SYSTEMD, path, PROPERTIES,
			"GetAll", on_facts, call, "s", "");
	if (r < 0)
		return r;
	*ret = TAKE_PTR(call);
	return 0;
}

/* ---- orders ---- */

static enum units_job_end end_of_result(const char *result)
{
	static const struct {
		const char *result;
		enum units_job_end end;
	} rows[] = {
		{"done", UNITS_JOB_DONE},
		{"timeout", UNITS_JOB_TIMED_OUT},
		{"canceled", UNITS_JOB_CANCELLED},
		{"skipped", UNITS_JOB_REFUSED},
		{"assert", UNITS_JOB_REFUSED},
		{"unsupported", UNITS_JOB_REFUSED},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if (strcmp(result, rows[i].result) == 0)
			return rows[i].end;
	return UNITS_JOB_FAILED; /* failed, dependency, ... */
}

static enum units_job_end end_of_error(const sd_bus_error *e)
{
	static const struct {
		const char *name;
		enum units_job_end end;
	} rows[] = {
		{SD_BUS_ERROR_ACCESS_DENIED, UNITS_JOB_DENIED},
		{SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, UNITS_JOB_DENIED},
		{SD_BUS_ERROR_AUTH_FAILED, UNITS_JOB_DENIED},
		{"org.freedesktop.systemd1.NoSuchUnit", UNITS_JOB_NO_UNIT},
		{"org.freedesktop.systemd1.UnitMasked", UNITS_JOB_NO_UNIT},
		{"org.freedesktop.systemd1.LoadFailed", UNITS_JOB_NO_UNIT},
		{"org.freedesktop.systemd1.BadUnitSetting", UNITS_JOB_NO_UNIT},
		{SD_BUS_ERROR_NO_REPLY, UNITS_JOB_UNANSWERED},
		{SD_BUS_ERROR_TIMEOUT, UNITS_JOB_UNANSWERED},
		{SD_BUS_ERROR_DISCONNECTED, UNITS_JOB_UNANSWERED},
		{SD_BUS_ERROR_SERVICE_UNKNOWN, UNITS_JOB_UNANSWERED},
		{SD_BUS_ERROR_NAME_HAS_NO_OWNER, UNITS_JOB_UNANSWERED},
	};

	/* Whom systemd could not ask whether we may: it hands on what the bus said of polkit's unit. */
	if (strstr(error_text(e), "polkit.service"))
		return UNITS_JOB_DENIED;
	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if (sd_bus_error_has_name(e, rows[i].name))
			return rows[i].end;
	return UNITS_JOB_REFUSED;
}

/* JobRemoved: id, job, unit, result */
static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct units_call *call = userdata;
	const char *job, *unit, *result;
	uint32_t id;

	if (sd_bus_message_read(m, "uoss", &id, &job, &unit, &result) < 0)
		return 0;
	if (call->job && strcmp(call->job, job) == 0) {
		char text[UNITS_WORD_MAX];

		(void)snprintf(text, sizeof(text), "%s", result);
		tell_end(call, end_of_result(text), text);
	}
	return 0;
}

static int on_job(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct units_call *call = userdata;
	const sd_bus_error *e = sd_bus_message_get_error(m);
	const char *job;

	call->slot = sd_bus_slot_unref(call->slot);
	if (e) {
		enum units_job_end end = end_of_error(e);
		char text[CALL_TEXT_MAX];

		(void)snprintf(text, sizeof(text), "%s", error_text(e));
		tell_end(call, end, text);
		return 0;
	}
	if (sd_bus_message_read(m, "o", &job) >= 0)
		call->job = strdup(job);
	if (!call->job)
		tell_end(call, UNITS_JOB_UNANSWERED, "no job was named");
	return 0;
}

/* Without the match a job has no end; its own bound ends the waiting. */
static int on_job_match(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct units_call *call = userdata;

	if (sd_bus_message_is_method_error(m, NULL))
		tell_end(call, UNITS_JOB_UNANSWERED, "the bus takes no match");
	return 0;
}

int units_order(struct units_call **ret, struct units *u, enum units_order order, const char *unit,
	units_ended_fn ended, void *userdata)
{
	_cleanup_(units_call_freep) struct units_call *call = NULL;
	int r = ready(u);

	if (r < 0)
		return r;
	call = call_new(u, userdata);
	if (!call)
		return -ENOMEM;
	call->ended = ended;
	r = sd_bus_match_signal_async(u->bus, &call->match, SYSTEMD, MANAGER_PATH, MANAGER,
		"JobRemoved", on_job_removed, on_job_match, call);
	if (r >= 0)
		r = sd_bus_call_method_async(u->bus, &call->slot, SYSTEMD, MANAGER_PATH, MANAGER,
			order == UNITS_ORDER_START ? "StartUnit" : "TryRestartUnit", on_job, call,
			"ss", unit, "fail");
	if (r < 0)
		return r;
	*ret = TAKE_PTR(call);
	return 0;
}
