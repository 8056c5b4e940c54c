/*
 * The agent's side of the neighbours: the files and their watch, the thread's orders and news, and
 * what is shown. One reading of all files is one `pins` object; it replaces the one in use only
 * when it is whole and right, and else the one in use stays and the reason is told once.
 *
 * Files are watched by their folders, since replacements are renamed into place; a moment passes
 * before they are read, for a certificate and its key come one after the other. What could not be
 * read is looked at again slowly, too.
 */
#include "agent/neighbour/neighbour.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/random.h>

#include "agent/base/clock.h"
#include "agent/events/events.h"
#include "agent/neighbour/thread.h"
#include "agent/system/tcp.h"

#define SETTLE_MS 300  /* from a change in a folder to reading the files */
#define RETRY_MS 10000 /* of files that could not be used */
#define CALLS_MAX 1024 /* whose answers may still come */
#define SAY_MS 60000   /* refused callers are logged once in this time for each reason */
#define WATCH_EVENTS                                                                        \
	(IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB | \
		IN_ONLYDIR)

struct known {
	struct message_report *report; /* owned; NULL: none yet */
	struct monotime asked;
	uint64_t n_reports, n_failures;
	char error[ASKER_ERROR_MAX];
	char where[ASKER_WHERE_MAX]; /* it was when it reported last; "": never */
	bool told;		     /* that it fails */
};

struct pending {
	uint64_t id; /* 0: free */
	struct shed_call call;
};

struct neighbours {
	sd_event *event;
	struct neighbours_ops ops;
	const struct config_neighbours *config; /* borrowed */
	const char *node;			/* borrowed */
	uint64_t boot;
	struct thread *thread;
	struct pins *pins;   /* in use; NULL: none could be read yet */
	struct known *known; /* pins_count(pins) of them */
	struct pending pending[CALLS_MAX];
	uint64_t last_id;
	int watch_fd;
	sd_event_source *watch, *reread;
	struct server_counts counts;
	uint64_t n_replaced;
	struct address found[ASKER_FOUND_MAX];
	size_t n_found;
	char error[ERROR_TEXT_MAX];
	bool owed; /* the thread knows of another configuration than `config` */
	struct monotime said[PINS_REFUSALS];
	unsigned unsaid[PINS_REFUSALS];
};

static const char *const state_names[] = {
	[NEIGHBOURS_NEVER] = "never",
	[NEIGHBOURS_FRESH] = "fresh",
	[NEIGHBOURS_STALE] = "stale",
	[NEIGHBOURS_SILENT] = "silent",
};

const char *neighbours_state_name(enum neighbours_state state)
{
	return state_names[state];
}

/* ---- the files ---- */

static void known_free(struct known *known, size_t n)
{
	for (size_t i = 0; known && i < n; i++)
		message_report_free(known[i].report);
	free(known);
}

/* What is known of those who stay. NULL without memory. */
static struct known *known_carry(struct neighbours *n, const struct pins *pins)
{
	struct known *known = calloc(pins_count(pins) + 1, sizeof(*known));

	for (size_t i = 0; known && i < pins_count(pins); i++) {
		size_t old = pins_find(n->pins, pins_member(pins, i)->name);

		if (old == SIZE_MAX)
			continue;
		known[i] = n->known[old];
		n->known[old].report = NULL;
	}
	return known;
}

static bool same_members(const struct pins *a, const struct pins *b)
{
	if (pins_count(a) != pins_count(b))
		return false;
	for (size_t i = 0; i < pins_count(a); i++)
		if (strcmp(pins_member(a, i)->name, pins_member(b, i)->name) != 0)
			return false;
	return true;
}

static void order_pins(struct neighbours *n)
{
	struct thread_orders *o = thread_orders(n->thread);

	pins_unref(o->pins);
	o->pins = pins_ref(n->pins);
	(void)snprintf(o->site, sizeof(o->site), "%s", n->config->site);
	thread_send(n->thread);
}

/* Takes new pins over: 1 when the members are others, else 0. -ENOMEM: what was in use stays so. */
static int replace(struct neighbours *n, struct pins *pins)
{
	struct known *known = known_carry(n, pins);
	bool others = !same_members(n->pins, pins);

	if (!known) {
		pins_unref(pins);
		return -ENOMEM;
	}
	known_free(n->known, pins_count(n->pins));
	n->known = known;
	pins_unref(n->pins);
	n->pins = pins;
	/* Indices mean others now, and the calls were dropped with their connections. */
	memset(n->pending, 0, sizeof(n->pending));
	n->n_replaced++;
	order_pins(n);
	return others;
}

static void plan_reading(struct neighbours *n, uint64_t ms)
{
	(void)sd_event_source_set_time(n->reread, monotime_add_ms(clock_monotime(), ms).us);
	(void)sd_event_source_set_enabled(n->reread, SD_EVENT_ONESHOT);
}

/* What is wrong now; it is looked at again. */
static void note_error(struct neighbours *n, const char *text)
{
	if (strcmp(n->error, text) != 0)
		event_say(LOG_ERR, EVENT_NEIGHBOUR_TROUBLE,
			&(const struct event_fields){.reason = text}, "neighbours: %s; %s", text,
			n->pins ? "what was in use stays in use" : "nobody may speak yet");
	(void)snprintf(n->error, sizeof(n->error), "%s", text);
	plan_reading(n, RETRY_MS);
}

/* Reads all files. `forced`: another configuration, so that the thread is told in any case, also
 * where only a later reading comes to something. True when the members are others. */
static bool read_files(struct neighbours *n, bool forced)
{
	_cleanup_pins_ struct pins *pins = NULL;
	struct error error = {""};
	int others;

	n->owed = n->owed || forced;
	if (pins_new(&pins, n->config, n->node, &error) < 0) {
		note_error(n, error.text);
		return false;
	}
	if (!n->owed && pins_equal(n->pins, pins)) {
		n->error[0] = '\0';
		return false;
	}
	if (*pins_warning(pins))
		event_say(LOG_WARNING, EVENT_NEIGHBOUR_TROUBLE, NULL, "neighbours: %s: %s",
			n->config->certificate, pins_warning(pins));
	others = replace(n, TAKE_PTR(pins));
	if (others < 0) {
		note_error(n, strerror(-others));
		return false;
	}
	n->error[0] = '\0';
	n->owed = false;
	event_say(LOG_NOTICE, EVENT_NEIGHBOURS, NULL, "neighbours: %zu at the site %s",
		pins_count(n->pins), n->config->site);
	return others > 0;
}

static int on_reread(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct neighbours *n = userdata;

	if (read_files(n, false) && n->ops.members)
		n->ops.members(n->ops.userdata);
	return 0;
}

static int on_watch(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

	while (read(fd, events, sizeof(events)) > 0)
		;
	plan_reading(userdata, SETTLE_MS);
	return 0;
}

static void watch_folder_of(struct neighbours *n, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	_cleanup_free_ char *folder = NULL;

	if (!slash)
		return;
	folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	if (!folder || inotify_add_watch(n->watch_fd, folder, WATCH_EVENTS) < 0)
		event_say(LOG_WARNING, EVENT_NEIGHBOUR_TROUBLE, NULL,
			"neighbours: %s cannot be watched: %s; a change there takes a reload",
			folder ? folder : path, strerror(errno));
}

static void watch_files(struct neighbours *n)
{
	watch_folder_of(n, n->config->certificate);
	watch_folder_of(n, n->config->key);
	watch_folder_of(n, n->config->ca);
	watch_folder_of(n, n->config->file);
}

/* ---- news ---- */

static void tell_peer(struct neighbours *n, size_t member, struct known *k, const char *error)
{
	const char *name = pins_member(n->pins, member)->name;
	const struct event_fields fields = {.neighbour = name, .reason = error};

	if (*error && !k->told)
		event_say(LOG_NOTICE, EVENT_NEIGHBOUR_SILENT, &fields,
			"neighbour %s: no report: %s", name, error);
	else if (!*error && k->told)
		event_say(LOG_NOTICE, EVENT_NEIGHBOUR_BACK, &fields, "neighbour %s: reports again",
			name);
	k->told = *error != '\0';
}

static void take_peer(struct neighbours *n, size_t member, struct thread_peer *p)
{
	struct known *k = &n->known[member];

	k->n_reports += p->n_reports;
	k->n_failures += p->n_failures;
	(void)snprintf(k->error, sizeof(k->error), "%s", p->error);
	tell_peer(n, member, k, p->error);
	if (!p->report)
		return;
	message_report_free(k->report);
	k->report = TAKE_PTR(p->report);
	k->asked = p->asked;
	(void)snprintf(k->where, sizeof(k->where), "%s", p->where);
	n->ops.report(n->ops.userdata, member, k->report, k->asked);
}

static void take_grant(struct neighbours *n, const struct thread_grant *g)
{
	size_t member = pins_find(n->pins, g->grant.node);
	struct thread_answer answer = {.id = g->id,
		.share = g->grant.share,
		.answer = {.refused = SHED_REFUSAL_UNWILLING}};
	struct thread_orders *o;

	if (member != SIZE_MAX)
		answer.answer = n->ops.grant(n->ops.userdata, member, &g->grant, g->give_back);
	o = thread_orders(n->thread);
	/* It has as many places as can wait for an answer at once, twice over. */
	if (o->n_answers < THREAD_GRANTS_MAX)
		o->answers[o->n_answers++] = answer;
	thread_send(n->thread);
}

static void take_answer(struct neighbours *n, const struct thread_answered *a)
{
	for (size_t i = 0; i < CALLS_MAX; i++) {
		struct pending *p = &n->pending[i];

		if (p->id != a->id)
			continue;
		p->id = 0;
		n->ops.answered(n->ops.userdata, &p->call, &a->answer);
		return;
	}
}

static void tell_refused(struct neighbours *n, const struct thread_news *news)
{
	struct monotime now = clock_monotime();

	for (size_t i = 0; i < PINS_REFUSALS; i++) {
		if (news->n_refused[i] == 0)
			continue;
		n->unsaid[i] += news->n_refused[i];
		if (n->said[i].us != 0 &&
			!monotime_reached(monotime_add_ms(n->said[i], SAY_MS), now))
			continue;
		event_say(LOG_WARNING, EVENT_NEIGHBOUR_TROUBLE, NULL,
			"neighbours: %s (%u of such in the last minute)", news->refused[i],
			n->unsaid[i]);
		n->said[i] = now;
		n->unsaid[i] = 0;
	}
}

static void on_news(void *userdata)
{
	struct neighbours *n = userdata;
	struct thread_news *news = thread_news(n->thread);

	n->counts = news->counts;
	/* Members may have changed since: then the indices are not ours. */
	for (size_t i = 0; news->pins == n->pins && i < pins_count(n->pins); i++)
		if (news->peers[i].n_reports + news->peers[i].n_failures > 0)
			take_peer(n, i, &news->peers[i]);
	for (size_t i = 0; i < news->n_grants; i++)
		take_grant(n, &news->grants[i]);
	for (size_t i = 0; i < news->n_answered; i++)
		take_answer(n, &news->answered[i]);
	tell_refused(n, news);
	if (news->failed < 0)
		event_say(LOG_ERR, EVENT_NEIGHBOUR_TROUBLE, NULL, "neighbours: %s",
			strerror(-news->failed));
}

/* ---- what the agent says ---- */

int neighbours_publish(struct neighbours *n, struct message_report *own)
{
	_cleanup_buffer_ struct buffer text = {0};
	struct thread_orders *o;
	int r;

	(void)snprintf(own->node, sizeof(own->node), "%s", n->node);
	(void)snprintf(own->site, sizeof(own->site), "%s", n->config->site);
	own->boot = n->boot;
	buffer_init(&text, MESSAGE_REPORT_MAX);
	r = message_report_write(own, &text);
	if (r < 0)
		return r;
	o = thread_orders(n->thread);
	free(o->report);
	o->report = TAKE_PTR(text.data);
	o->report_length = text.length;
	thread_send(n->thread);
	return 0;
}

void neighbours_found(struct neighbours *n, const struct address *addresses, size_t n_addresses)
{
	struct thread_orders *o;

	if (n_addresses > ASKER_FOUND_MAX)
		n_addresses = ASKER_FOUND_MAX;
	if (n_addresses == n->n_found &&
		(n_addresses == 0 ||
			memcmp(n->found, addresses, n_addresses * sizeof(*addresses)) == 0))
		return;
	n->n_found = n_addresses;
	if (n_addresses > 0)
		memcpy(n->found, addresses, n_addresses * sizeof(*addresses));
	o = thread_orders(n->thread);
	o->found_is_new = true;
	o->n_found = n->n_found;
	memcpy(o->found, n->found, sizeof(o->found));
	thread_send(n->thread);
}

/* A place for the call; where none is free, that of the oldest. */
static struct pending *pending_place(struct neighbours *n)
{
	struct pending *oldest = &n->pending[0];

	for (size_t i = 0; i < CALLS_MAX; i++) {
		if (n->pending[i].id == 0)
			return &n->pending[i];
		if (n->pending[i].id < oldest->id)
			oldest = &n->pending[i];
	}
	return oldest;
}

void neighbours_call(
	struct neighbours *n, const struct shed_call *call, const struct prefix *prefix)
{
	struct thread_orders *o;
	struct asker_call *c;

	if (call->neighbour >= pins_count(n->pins))
		return;
	o = thread_orders(n->thread);
	if (o->n_calls < THREAD_CALLS_MAX) {
		c = &o->calls[o->n_calls++];
		*c = (struct asker_call){.id = ++n->last_id, .give_back = call->give_back};
		c->grant = (struct message_grant){.boot = n->boot,
			.prefix = *prefix,
			.share = call->share,
			.purpose = call->purpose,
			.request = call->request};
		(void)snprintf(c->grant.node, sizeof(c->grant.node), "%s", n->node);
		(void)snprintf(c->member, sizeof(c->member), "%s",
			pins_member(n->pins, call->neighbour)->name);
		if (!call->give_back)
			*pending_place(n) = (struct pending){n->last_id, *call};
	}
	thread_send(n->thread);
}

/* ---- life ---- */

size_t neighbours_count(const struct neighbours *n)
{
	return pins_count(n->pins);
}

const char *neighbours_name(const struct neighbours *n, size_t member)
{
	return pins_member(n->pins, member)->name;
}

uint64_t neighbours_boot(const struct neighbours *n)
{
	return n->boot;
}

void neighbours_view(
	const struct neighbours *n, size_t member, struct monotime now, struct neighbours_view *ret)
{
	const struct pins_member *m = pins_member(n->pins, member);
	const struct known *k = &n->known[member];
	uint64_t age_us = monotime_since_us(k->asked, now);

	*ret = (struct neighbours_view){
		.name = m->name,
		.address = m->of_bird && k->where[0] ? k->where : m->address,
		.of_file = m->of_file,
		.asked = k->asked,
		.report = k->report,
		.error = k->error,
		.n_reports = k->n_reports,
		.n_failures = k->n_failures,
	};
	if (!k->report)
		ret->state = NEIGHBOURS_NEVER;
	else if (age_us <= n->config->stale_after_ms * 1000)
		ret->state = NEIGHBOURS_FRESH;
	else if (age_us <= n->config->forget_after_ms * 1000)
		ret->state = NEIGHBOURS_STALE;
	else
		ret->state = NEIGHBOURS_SILENT;
}

void neighbours_totals(const struct neighbours *n, struct neighbours_totals *ret)
{
	*ret = (struct neighbours_totals){
		.server = n->counts,
		.error = n->error,
		.warning = n->pins ? pins_warning(n->pins) : "",
		.thread_cpu_us = thread_cpu_us(n->thread),
		.n_replaced = n->n_replaced,
	};
	if (n->pins)
		ret->certificate_expires = pins_expire(n->pins);
}

bool neighbours_configure(
	struct neighbours *n, const struct config_neighbours *config, const char *node)
{
	if (strcmp(n->config->listen, config->listen) != 0)
		event_say(LOG_WARNING, EVENT_CONFIG_PROBLEM, NULL,
			"reload: `neighbours.listen` has changed, which takes a restart of the "
			"agent");
	n->config = config;
	n->node = node;
	watch_files(n);
	return read_files(n, true);
}

static int set_up(struct neighbours *n)
{
	int r;

	n->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (n->watch_fd < 0)
		return -errno;
	r = sd_event_add_io(n->event, &n->watch, n->watch_fd, EPOLLIN, on_watch, n);
	if (r >= 0)
		r = sd_event_source_set_priority(n->watch, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		r = sd_event_add_time(
			n->event, &n->reread, CLOCK_BOOTTIME, UINT64_MAX, 10000, on_reread, n);
	if (r >= 0)
		r = sd_event_source_set_priority(n->reread, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		r = sd_event_source_set_enabled(n->reread, SD_EVENT_OFF);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(n->watch, "neighbours-files");
	(void)sd_event_source_set_description(n->reread, "neighbours-reread");
	/* 1 to 2^53 - 1: what every reader of JSON can hold. */
	if (getrandom(&n->boot, sizeof(n->boot), 0) != sizeof(n->boot))
		return -EIO;
	n->boot = n->boot % MESSAGE_ID_MAX + 1;
	return 0;
}

int neighbours_new(struct neighbours **ret, sd_event *event, const struct config_neighbours *config,
	const char *node, const struct neighbours_ops *ops, struct error *ret_error)
{
	_cleanup_(neighbours_freep) struct neighbours *n = calloc(1, sizeof(*n));
	int r, fd;

	if (!n)
		return error_set_errno(ret_error, ENOMEM, "neighbours");
	n->watch_fd = -1;
	n->event = sd_event_ref(event);
	n->ops = *ops;
	n->config = config;
	n->node = node;
	fd = tcp_listen("neighbours", config->listen, ret_error);
	if (fd < 0)
		return fd;
	r = thread_new(&n->thread, event, fd, on_news, n);
	if (r >= 0)
		r = set_up(n);
	if (r < 0)
		return error_set_errno(ret_error, -r, "neighbours");
	watch_files(n);
	(void)read_files(n, true);
	*ret = TAKE_PTR(n);
	return 0;
}

void neighbours_free(struct neighbours *n)
{
	if (!n)
		return;
	thread_free(n->thread);
	sd_event_source_disable_unref(n->watch);
	sd_event_source_disable_unref(n->reread);
	closep(&n->watch_fd);
	known_free(n->known, pins_count(n->pins));
	pins_unref(n->pins);
	sd_event_unref(n->event);
	free(n);
}
