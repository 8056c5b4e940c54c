/*
 * The queue of hooks and the places in which they run.
 *
 * An entry of the queue holds its texts one behind the other, each with its NUL, so that it is one
 * block of memory without pointers. It names its hook by service and hook: a reload may take place
 * before it is run, and a hook that is configured no more is not run any more.
 *
 * Commands are run by probes/child.c, as those of checks are. The first line of output goes to the
 * log, with the result: at info where the command ended well and said something, as a warning where
 * it did not.
 */
#include "agent/hooks.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/printable.h"
#include "agent/system/log.h"
#include "probes/child.h"
#include "probes/secrets.h"

#define HOOKS_PRIORITY SD_EVENT_PRIORITY_IDLE
#define HOOKS_TEXT_MAX 6144 /* of one event: the prefixes are half of it */
#define HOOKS_VALUE_MIN 8   /* what printable_copy() needs */
#define HOOKS_OUTPUT_MAX 1024
#define HOOKS_LINE_MAX 256
#define HOOKS_SAY_US 60000000 /* between two lines about what was dropped */
#define HOOKS_NAME_MAX 33     /* as tables_form_name() has it, with the NUL */

struct hooks_entry {
	char service[HOOKS_NAME_MAX], hook[HOOKS_NAME_MAX];
	size_t n;		   /* bytes of `text` */
	char text[HOOKS_TEXT_MAX]; /* name, value, name, value, ..., each with its NUL */
};

struct hooks_place {
	struct hooks *hooks;
	struct child child;
	sd_event_source *timer;
	char service[HOOKS_NAME_MAX], hook[HOOKS_NAME_MAX];
	char output[HOOKS_OUTPUT_MAX];
};

struct hooks {
	sd_event *event;
	const struct config *const *config;
	sd_event_source *wake;
	struct hooks_place places[HOOKS_AT_ONCE];
	struct hooks_entry *queue[HOOKS_QUEUED]; /* the oldest first; all n_queued are filled */
	size_t n_queued;
	struct hooks_entry entries[HOOKS_QUEUED];
	uint64_t results[HOOKS_N_RESULTS];
	struct monotime dropped_said;
};

DEFINE_CLEANUP_PTR(struct hooks *, hooks_free)

const char *hooks_result_name(enum hooks_result result)
{
	switch (result) {
	case HOOKS_DONE:
		return "done";
	case HOOKS_FAILED:
		return "failed";
	case HOOKS_TIMED_OUT:
		return "timed_out";
	case HOOKS_NOT_STARTED:
		return "not_started";
	case HOOKS_DROPPED:
		return "dropped";
	}
	abort();
}

const uint64_t *hooks_results(const struct hooks *h)
{
	return h->results;
}

/* ---- what happened, into the queue ---- */

static void entry_add(struct hooks_entry *e, const char *name, const char *value)
{
	size_t name_size = strlen(name) + 1, room;

	if (e->n + name_size + HOOKS_VALUE_MIN > sizeof(e->text))
		return;
	memcpy(e->text + e->n, name, name_size);
	room = sizeof(e->text) - e->n - name_size;
	/* One line, whatever a service answered. */
	(void)printable_copy(
		e->text + e->n + name_size, room, value ? value : "", value ? strlen(value) : 0);
	e->n += name_size + strlen(e->text + e->n + name_size) + 1;
}

static void entry_fill(
	struct hooks_entry *e, const char *node, enum event_kind kind, const struct event_fields *f)
{
	char count[24], when[CLOCK_TEXT_MAX];

	(void)snprintf(count, sizeof(count), "%zu", f->n_prefixes);
	e->n = 0;
	entry_add(e, "REDSHANK_EVENT", event_kind_name(kind));
	entry_add(e, "REDSHANK_HOOK", e->hook);
	entry_add(e, "REDSHANK_NODE", node);
	entry_add(e, "REDSHANK_SERVICE", e->service);
	entry_add(e, "REDSHANK_TIME", clock_format(clock_walltime(), when));
	entry_add(e, "REDSHANK_CHECK", f->check);
	entry_add(e, "REDSHANK_FROM", f->from);
	entry_add(e, "REDSHANK_TO", f->to);
	entry_add(e, "REDSHANK_WANTED", f->wanted);
	entry_add(e, "REDSHANK_RULE", f->rule);
	entry_add(e, "REDSHANK_PREFIX_COUNT", count);
	entry_add(e, "REDSHANK_REASON", f->reason);
	entry_add(e, "REDSHANK_PREFIXES", f->prefixes);
}

static void queue_remove(struct hooks *h, size_t i)
{
	struct hooks_entry *e = h->queue[i];

	memmove(&h->queue[i], &h->queue[i + 1],
		(h->n_queued - i - 1) * sizeof(struct hooks_entry *));
	h->n_queued--;
	h->queue[h->n_queued] = e; /* free ones lie behind those that wait */
}

static void drop_oldest(struct hooks *h)
{
	struct monotime now = clock_monotime();

	queue_remove(h, 0);
	h->results[HOOKS_DROPPED]++;
	if (h->dropped_said.us > 0 && monotime_since_us(h->dropped_said, now) < HOOKS_SAY_US)
		return;
	h->dropped_said = now;
	event_say(LOG_WARNING, EVENT_HOOK, NULL,
		"hooks: more happens than they can follow: %" PRIu64
		" were not run so far, the oldest first",
		h->results[HOOKS_DROPPED]);
}

static bool hook_wants(const struct config_hook *hook, enum event_kind kind)
{
	for (size_t i = 0; i < hook->on.n; i++)
		if (strcmp(hook->on.items[i], event_kind_name(kind)) == 0)
			return true;
	return false;
}

void hooks_tell(
	struct hooks *h, size_t service, enum event_kind kind, const struct event_fields *fields)
{
	const struct config *config = *h->config;
	const struct config_service *s = &config->services[service];

	for (size_t i = 0; i < s->n_hooks; i++) {
		struct hooks_entry *e;

		if (!hook_wants(&s->hooks[i], kind))
			continue;
		if (h->n_queued == HOOKS_QUEUED)
			drop_oldest(h);
		e = h->queue[h->n_queued++];
		(void)snprintf(e->service, sizeof(e->service), "%s", s->name);
		(void)snprintf(e->hook, sizeof(e->hook), "%s", s->hooks[i].name);
		entry_fill(e, config->node, kind, fields);
		(void)sd_event_source_set_enabled(h->wake, SD_EVENT_ONESHOT);
	}
}

/* ---- running ---- */

static const struct config_hook *find_hook(const struct config *config, const struct hooks_entry *e)
{
	for (size_t s = 0; s < config->n_services; s++) {
		const struct config_service *service = &config->services[s];

		if (strcmp(service->name, e->service) != 0)
			continue;
		for (size_t i = 0; i < service->n_hooks; i++)
			if (strcmp(service->hooks[i].name, e->hook) == 0)
				return &service->hooks[i];
	}
	return NULL;
}

static bool hook_runs(const struct hooks *h, const struct hooks_entry *e)
{
	for (size_t i = 0; i < HOOKS_AT_ONCE; i++)
		if (child_runs(&h->places[i].child) &&
			strcmp(h->places[i].service, e->service) == 0 &&
			strcmp(h->places[i].hook, e->hook) == 0)
			return true;
	return false;
}

static struct hooks_place *free_place(struct hooks *h)
{
	for (size_t i = 0; i < HOOKS_AT_ONCE; i++)
		if (!child_runs(&h->places[i].child))
			return &h->places[i];
	return NULL;
}

static void say_result(
	struct hooks_place *p, enum hooks_result result, const char *how, const char *line)
{
	const struct event_fields fields = {
		.service = p->service, .reason = line, .to = hooks_result_name(result)};

	p->hooks->results[result]++;
	if (result == HOOKS_DONE && line[0] == '\0')
		log_debug("hook %s/%s: done", p->service, p->hook);
	else
		event_say(result == HOOKS_DONE ? LOG_INFO : LOG_WARNING, EVENT_HOOK, &fields,
			"hook %s/%s: %s%s%s", p->service, p->hook, how, line[0] ? ": " : "", line);
}

static void first_line(const struct hooks_place *p, char line[HOOKS_LINE_MAX])
{
	size_t n;
	const char *text = child_first_line(&p->child, "", &n);

	(void)printable_copy(line, HOOKS_LINE_MAX, text, n);
	secrets_mask_urls(line);
}

static void place_leave(struct hooks_place *p)
{
	(void)sd_event_source_set_enabled(p->timer, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(p->hooks->wake, SD_EVENT_ONESHOT);
}

static void on_ended(void *userdata, const siginfo_t *info, int errnum)
{
	struct hooks_place *p = userdata;
	char line[HOOKS_LINE_MAX], how[64];
	bool good = info && info->si_code == CLD_EXITED && info->si_status == 0;

	first_line(p, line);
	if (!info)
		(void)snprintf(how, sizeof(how), "cannot be waited for: %s", strerror(errnum));
	else if (info->si_code == CLD_EXITED)
		(void)snprintf(how, sizeof(how), good ? "done" : "exit %d", info->si_status);
	else
		(void)snprintf(how, sizeof(how), "killed by signal %d", info->si_status);
	say_result(p, good ? HOOKS_DONE : HOOKS_FAILED, how, line);
	place_leave(p);
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct hooks_place *p = userdata;
	char line[HOOKS_LINE_MAX];

	if (!child_runs(&p->child))
		return 0;
	child_stop(&p->child);
	first_line(p, line);
	say_result(p, HOOKS_TIMED_OUT, "killed at its timeout", line);
	place_leave(p);
	return 0;
}

/* 0 or negative errno with the text. */
static int place_spawn(struct hooks_place *p, const struct config_hook *hook,
	const struct hooks_entry *e, struct error *ret_error)
{
	char *pairs[64], **environment;
	size_t n = 0;
	int r;

	for (size_t at = 0; at < e->n && n < ELEMENTSOF(pairs); at += strlen(e->text + at) + 1)
		pairs[n++] = (char *)e->text + at;
	environment = child_environment(pairs, n);
	if (!environment)
		return error_set_errno(ret_error, ENOMEM, "cannot be started");
	r = child_start(&p->child, hook->command.items, environment, ret_error);
	child_environment_free(environment);
	return r;
}

static void place_run(
	struct hooks_place *p, const struct config_hook *hook, const struct hooks_entry *e)
{
	struct error error = {{0}};

	memcpy(p->service, e->service, sizeof(p->service));
	memcpy(p->hook, e->hook, sizeof(p->hook));
	if (place_spawn(p, hook, e, &error) < 0) {
		say_result(p, HOOKS_NOT_STARTED, error.text, "");
		return;
	}
	if (sd_event_source_set_time_relative(p->timer, hook->timeout_ms * 1000) >= 0)
		(void)sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
}

/* Starts the oldest ones for which there is a place; of each hook one at a time. */
static int on_wake(sd_event_source *source, void *userdata)
{
	struct hooks *h = userdata;
	size_t i = 0;

	while (i < h->n_queued) {
		struct hooks_place *p = free_place(h);
		struct hooks_entry *e = h->queue[i];
		const struct config_hook *hook;

		if (!p)
			return 0;
		if (hook_runs(h, e)) {
			i++;
			continue;
		}
		hook = find_hook(*h->config, e);
		if (hook)
			place_run(p, hook, e);
		queue_remove(h, i);
	}
	return 0;
}

/* ---- life ---- */

static int place_init(struct hooks *h, struct hooks_place *p)
{
	int r;

	p->hooks = h;
	r = child_init(
		&p->child, h->event, HOOKS_PRIORITY, p->output, sizeof(p->output), on_ended, p);
	if (r >= 0)
		r = sd_event_add_time(
			h->event, &p->timer, CLOCK_BOOTTIME, UINT64_MAX, 1000, on_timeout, p);
	if (r >= 0)
		r = sd_event_source_set_priority(p->timer, HOOKS_PRIORITY);
	if (r >= 0)
		r = sd_event_source_set_enabled(p->timer, SD_EVENT_OFF);
	return r;
}

int hooks_new(struct hooks **ret, sd_event *event, const struct config *const *config)
{
	_cleanup_(hooks_freep) struct hooks *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	h->event = sd_event_ref(event);
	h->config = config;
	for (size_t i = 0; i < HOOKS_AT_ONCE; i++)
		h->places[i].child.pidfd = h->places[i].child.output = -1;
	for (size_t i = 0; i < HOOKS_QUEUED; i++)
		h->queue[i] = &h->entries[i];
	r = sd_event_add_defer(event, &h->wake, on_wake, h);
	if (r >= 0)
		r = sd_event_source_set_priority(h->wake, HOOKS_PRIORITY);
	if (r >= 0)
		r = sd_event_source_set_enabled(h->wake, SD_EVENT_OFF);
	for (size_t i = 0; r >= 0 && i < HOOKS_AT_ONCE; i++)
		r = place_init(h, &h->places[i]);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(h->wake, "hooks");
	*ret = TAKE_PTR(h);
	return 0;
}

void hooks_free(struct hooks *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < HOOKS_AT_ONCE; i++) {
		child_done(&h->places[i].child);
		sd_event_source_disable_unref(h->places[i].timer);
	}
	sd_event_source_disable_unref(h->wake);
	sd_event_unref(h->event);
	free(h);
}
