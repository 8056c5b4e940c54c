/*
 * Checks lie in one array, those of the first service first. Each is a heap object of its own,
 * because its probe's callbacks hold its address; a reload moves the pointers, not the objects.
 */
#include "agent/checks.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/events/events.h"
#include "agent/system/log.h"

struct checks_item {
	struct checks *parent;
	const char *service_name, *name; /* the configuration's */
	size_t service, index;
	struct run_check *run;			     /* NULL: does not run (yet) */
	bool kept;				     /* a reload in preparation keeps it */
	uint32_t durations_us[CHECK_HISTORY_LENGTH]; /* a ring; the next one is written at */
	size_t n_durations;			     /* this, modulo its length */
	unsigned n_unknown;			     /* outcomes in a row; counts to CHECK_SILENT */
	bool retried;				     /* could not be started, which was said */
	char reason[PROBE_REASON_MAX];
};

#define CHECKS_RETRY_MS 1000 /* of a check that could not be started */
#define CHECKS_SILENT_REASONS 4
#define CHECKS_SILENT_AGAIN_US 60000000

struct checks_list {
	struct checks_item **items;
	size_t n;
	size_t *first; /* of each service */
};

struct checks {
	const struct probe_host *host;
	struct config *config;
	struct checks_ops ops;
	struct checks_list list;
	sd_event_source *retry;
	struct {
		size_t n;	      /* checks that say nothing */
		struct monotime said; /* when it was last told of one */
		bool is_told;	      /* and not yet that it is over */
		size_t n_reasons;     /* that were told */
		char reasons[CHECKS_SILENT_REASONS][PROBE_REASON_MAX];
	} silence;
};

struct checks_change {
	struct config *config;
	struct checks_list list;
};

static struct config_check *checks_configured(struct config *config, const struct checks_item *item)
{
	return &config->services[item->service].checks[item->index];
}

/*
 * A check that says nothing withdraws nothing, so nobody else would notice. One line for each
 * reason, however many checks have it and however long it lasts: on a host without descriptors or
 * memory all of them do. One that comes and goes is told once a minute.
 */
static void checks_tell_silence(struct checks *c, const struct checks_item *item, bool is_new)
{
	const struct event_fields fields = {
		.service = item->service_name, .check = item->name, .reason = item->reason};

	if (is_new && c->silence.n == 1 &&
		monotime_since_us(c->silence.said, clock_monotime()) > CHECKS_SILENT_AGAIN_US)
		c->silence.n_reasons = 0;
	for (size_t i = 0; i < c->silence.n_reasons; i++)
		if (strcmp(c->silence.reasons[i], item->reason) == 0)
			return;
	if (c->silence.n_reasons == CHECKS_SILENT_REASONS)
		return;
	memcpy(c->silence.reasons[c->silence.n_reasons++], item->reason, sizeof(item->reason));
	c->silence.said = clock_monotime();
	c->silence.is_told = true;
	event_say(LOG_WARNING, EVENT_AGENT_TROUBLE, &fields,
		"check %s/%s says nothing, and changes nothing meanwhile: %s", item->service_name,
		item->name, item->reason);
}

static void checks_tell_all_speak(struct checks *c)
{
	if (c->silence.is_told)
		event_say(LOG_NOTICE, EVENT_AGENT_TROUBLE, NULL,
			"no check is without an outcome any more");
	c->silence.is_told = false;
}

static void checks_heed_silence(
	struct checks *c, struct checks_item *item, enum check_outcome outcome)
{
	bool was = item->n_unknown == CHECK_SILENT;

	if (outcome != CHECK_OUTCOME_UNKNOWN) {
		item->n_unknown = 0;
		if (was && --c->silence.n == 0)
			checks_tell_all_speak(c);
		return;
	}
	if (!was && ++item->n_unknown < CHECK_SILENT)
		return;
	c->silence.n += !was;
	checks_tell_silence(c, item, !was);
}

static struct monotime checks_on_report(void *userdata, const struct probe_report *report,
	struct monotime started, uint64_t duration_us)
{
	struct checks_item *item = userdata;
	struct checks *c = item->parent;
	struct monotime next;

	memcpy(item->reason, report->reason, sizeof(item->reason));
	item->durations_us[item->n_durations++ % CHECK_HISTORY_LENGTH] =
		(uint32_t)(duration_us < UINT32_MAX ? duration_us : UINT32_MAX);
	next = c->ops.report(c->ops.userdata, item->service, item->index, report->outcome, started);
	if (c->ops.took)
		c->ops.took(
			c->ops.userdata, item->service, item->index, report->outcome, duration_us);
	checks_heed_silence(c, item, report->outcome);
	log_debug("check %s/%s: %s after %llu us%s%s", item->service_name, item->name,
		check_outcome_name(report->outcome), (unsigned long long)duration_us,
		*item->reason ? ": " : "", item->reason);
	return next;
}

static void checks_item_free(struct checks_item *item)
{
	run_check_free(item->run);
	free(item);
}

/* Frees the items that are not kept, and the lists. */
static void checks_list_done(struct checks_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i] && !list->items[i]->kept)
			checks_item_free(list->items[i]);
	free(list->items);
	free(list->first);
	*list = (struct checks_list){0};
}

static int checks_list_alloc(struct checks_list *ret, const struct config *config)
{
	struct checks_list list = {0};
	size_t n = 0;

	for (size_t s = 0; s < config->n_services; s++)
		n += config->services[s].n_checks;
	list.items = calloc(n + 1, sizeof(*list.items));
	list.first = calloc(config->n_services + 1, sizeof(*list.first));
	if (!list.items || !list.first) {
		free(list.items);
		free(list.first);
		return -ENOMEM;
	}
	list.n = n;
	n = 0;
	for (size_t s = 0; s < config->n_services; s++) {
		list.first[s] = n;
		n += config->services[s].n_checks;
	}
	*ret = list;
	return 0;
}

/* The running check that is configured as `wanted` is; NULL where there is none. */
static struct checks_item *checks_find(struct checks *c, struct config *old, const char *service,
	const struct config_check *wanted)
{
	for (size_t i = 0; i < c->list.n; i++) {
		struct checks_item *item = c->list.items[i];

		if (strcmp(item->name, wanted->name) == 0 &&
			strcmp(item->service_name, service) == 0)
			return strcmp(checks_configured(old, item)->identity, wanted->identity) == 0
				       ? item
				       : NULL;
	}
	return NULL;
}

int checks_prepare(
	struct checks *c, struct config *old, struct config *new, struct checks_change **ret)
{
	struct checks_change *change;
	size_t k = 0;

	change = calloc(1, sizeof(*change));
	if (!change)
		return -ENOMEM;
	change->config = new;
	if (checks_list_alloc(&change->list, new) < 0) {
		free(change);
		return -ENOMEM;
	}
	for (size_t s = 0; s < new->n_services; s++)
		for (size_t i = 0; i < new->services[s].n_checks; i++, k++) {
			struct checks_item *item = checks_find(
				c, old, new->services[s].name, &new->services[s].checks[i]);

			if (item)
				item->kept = true;
			else
				item = calloc(1, sizeof(*item));
			change->list.items[k] = item;
			if (!item) {
				checks_change_free(change);
				return -ENOMEM;
			}
		}
	*ret = change;
	return 0;
}

void checks_change_free(struct checks_change *change)
{
	struct checks_list kept = change->list;

	/* The kept ones belong to the list that stays: only their mark goes. */
	for (size_t i = 0; i < kept.n; i++)
		if (kept.items[i] && kept.items[i]->kept) {
			kept.items[i]->kept = false;
			kept.items[i] = NULL;
		}
	checks_list_done(&change->list);
	free(change);
}

void checks_commit(struct checks *c, struct checks_change *change)
{
	struct checks_list *list = &change->list;
	size_t k = 0;

	for (size_t s = 0; s < change->config->n_services; s++)
		for (size_t i = 0; i < change->config->services[s].n_checks; i++, k++) {
			struct config_service *service = &change->config->services[s];
			struct checks_item *item = list->items[k];

			if (item->kept) {
				struct config_check *was = checks_configured(c->config, item);
				void *borrowed = was->settings;

				was->settings = service->checks[i].settings;
				service->checks[i].settings = borrowed;
			}
			item->parent = c;
			item->service = s;
			item->index = i;
			item->service_name = service->name;
			item->name = service->checks[i].name;
		}
	checks_list_done(&c->list);
	c->list = *list;
	c->config = change->config;
	c->silence.n = 0;
	for (size_t i = 0; i < c->list.n; i++) {
		c->list.items[i]->kept = false;
		c->silence.n += c->list.items[i]->n_unknown == CHECK_SILENT;
	}
	if (c->silence.n == 0)
		checks_tell_all_speak(c);
	free(change);
}

/* There was no memory for some, which run by now or are tried again. */
static int checks_on_retry(sd_event_source *source, uint64_t us, void *userdata)
{
	checks_start(userdata);
	return 0;
}

int checks_new(struct checks **ret, const struct probe_host *host, struct config *config,
	const struct checks_ops *ops)
{
	struct checks_change *change;
	struct checks *c;
	int r;

	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct checks){.host = host, .config = config, .ops = *ops};
	r = sd_event_add_time(
		host->event, &c->retry, CLOCK_BOOTTIME, UINT64_MAX, 1000, checks_on_retry, c);
	if (r >= 0)
		r = sd_event_source_set_enabled(c->retry, SD_EVENT_OFF);
	if (r >= 0)
		r = checks_prepare(c, config, config, &change);
	if (r < 0) {
		checks_free(c);
		return r;
	}
	(void)sd_event_source_set_description(c->retry, "checks-retry");
	checks_commit(c, change);
	*ret = c;
	return 0;
}

void checks_free(struct checks *c)
{
	if (!c)
		return;
	sd_event_source_disable_unref(c->retry);
	checks_list_done(&c->list);
	free(c);
}

/* Milliseconds until the first attempt of the check at `index`. The first outcome is worth having
 * soon. */
static uint64_t checks_first_ms(
	const struct checks *c, const struct config_check *check, size_t index)
{
	if (check->type == &probe_type_process)
		return 0;
	return run_spread_ms(check->fast_interval_ms, (unsigned)index, (unsigned)c->list.n);
}

void checks_start(struct checks *c)
{
	const struct run_ops ops = {.report = checks_on_report};
	struct monotime now = clock_monotime();

	for (size_t i = 0; i < c->list.n; i++) {
		struct checks_item *item = c->list.items[i];
		const struct config_check *check = checks_configured(c->config, item);
		struct run_ops its = ops;
		const struct event_fields fields = {
			.service = item->service_name, .check = item->name};
		int r;

		if (item->run)
			continue;
		its.userdata = item;
		r = run_check_new(&item->run, check->type, check->settings, c->host,
			check->timeout_ms, monotime_add_ms(now, checks_first_ms(c, check, i)),
			&its);
		if (r < 0) {
			if (!item->retried)
				event_say(LOG_ERR, EVENT_AGENT_TROUBLE, &fields,
					"check %s/%s: cannot be started: %s (tried again)",
					item->service_name, item->name, strerror(-r));
			item->retried = true;
			(void)sd_event_source_set_time_relative(c->retry, CHECKS_RETRY_MS * 1000);
			(void)sd_event_source_set_enabled(c->retry, SD_EVENT_ONESHOT);
		}
	}
}

void checks_stop(struct checks *c)
{
	(void)sd_event_source_set_enabled(c->retry, SD_EVENT_OFF);
	for (size_t i = 0; i < c->list.n; i++) {
		run_check_free(c->list.items[i]->run);
		c->list.items[i]->run = NULL;
	}
}

static void item_now(const struct checks_item *item)
{
	if (item->run)
		run_check_now(item->run);
}

void checks_all_now(struct checks *c)
{
	for (size_t i = 0; i < c->list.n; i++)
		item_now(c->list.items[i]);
}

void checks_now(struct checks *c, size_t service, size_t check)
{
	item_now(c->list.items[c->list.first[service] + check]);
}

const char *checks_reason(const struct checks *c, size_t service, size_t check)
{
	return c->list.items[c->list.first[service] + check]->reason;
}

void checks_view(const struct checks *c, size_t service, size_t check, struct run_view *ret)
{
	const struct run_check *run = c->list.items[c->list.first[service] + check]->run;

	*ret = (struct run_view){
		.began = MONOTIME_NEVER, .next = MONOTIME_NEVER, .deadline = MONOTIME_NEVER};
	if (run)
		run_check_view(run, ret);
}

size_t checks_durations(
	const struct checks *c, size_t service, size_t check, uint32_t ret_us[CHECK_HISTORY_LENGTH])
{
	const struct checks_item *item = c->list.items[c->list.first[service] + check];
	size_t n =
		item->n_durations < CHECK_HISTORY_LENGTH ? item->n_durations : CHECK_HISTORY_LENGTH;

	for (size_t i = 0; i < n; i++)
		ret_us[i] = item->durations_us[(item->n_durations - n + i) % CHECK_HISTORY_LENGTH];
	return n;
}
