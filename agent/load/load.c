/*
 * The timer, and what others see. A tick measures one signal in each turn of the loop, and then
 * counts the prefixes; what services answer comes when it comes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/printable.h"
#include "agent/config/tables.h"
#include "agent/load/load_private.h"
#include "agent/system/log.h"
#include "probes/secrets.h"

#define SAY_US 60000000

void load_trouble_set(struct load_trouble *t, const char *what, const char *text)
{
	struct monotime now = clock_monotime();

	(void)printable_copy(t->text, sizeof(t->text), text, strlen(text));
	secrets_mask_urls(t->text); /* a service's or a command's words may be quoted */
	if (t->said || (t->said_at.us > 0 && monotime_since_us(t->said_at, now) < SAY_US))
		return;
	t->said = true;
	t->said_at = now;
	log_warning("load: %s: not known: %s", what, t->text);
}

void load_trouble_clear(struct load_trouble *t, const char *what)
{
	t->text[0] = '\0';
	if (t->said)
		log_info("load: %s: known again", what);
	t->said = false;
}

/* ---- the timer ---- */

static int on_step(sd_event_source *source, void *userdata)
{
	struct load *l = userdata;

	if (l->next < l->n_gauges) {
		load_measure(&l->gauges[l->next++]);
		if (l->next < l->n_gauges)
			return 0;
		if (l->counting)
			load_count(l->counting);
		if (l->looking)
			return 0;
	} else if (l->looking) {
		l->looking = load_count_look(l->counting);
		if (l->looking)
			return 0;
	}
	return sd_event_source_set_enabled(l->step, SD_EVENT_OFF);
}

static int on_timer(sd_event_source *source, uint64_t us, void *userdata)
{
	struct load *l = userdata;
	uint64_t interval_us = (*l->config)->load->interval_ms * 1000, now = clock_monotime().us;

	/* From the last time that was due, so that ten samples are ten intervals; never in a row
	 * for what was missed. */
	(void)sd_event_source_set_time(l->timer, (us + interval_us > now ? us : now) + interval_us);
	(void)sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
	l->next = 0;
	return sd_event_source_set_enabled(l->step, SD_EVENT_ON);
}

/* ---- configuration ---- */

static void gauges_free(struct load_gauge *gauges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		load_gauge_done(&gauges[i]);
	free(gauges);
}

static void take_over(struct load_gauge *g, const struct load_gauge *old, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(old[i].name, g->name) != 0 || strcmp(old[i].identity, g->identity) != 0)
			continue;
		memcpy(g->meters, old[i].meters, sizeof(g->meters));
		g->valid = old[i].valid;
		g->value_milli = old[i].value_milli;
		g->bp = old[i].bp;
		g->failed = old[i].failed;
		g->trouble = old[i].trouble;
	}
}

static int gauge_open(struct load *l, const struct config_signal *config, struct load_gauge *g)
{
	g->load = l;
	g->config = config;
	(void)snprintf(g->name, sizeof(g->name), "%s", config->name);
	g->identity = strdup(config->identity);
	return g->identity ? load_gauge_open(g) : -ENOMEM;
}

/* Nothing is measured any more. */
static void forget(struct load *l)
{
	load_counting_free(l->counting);
	gauges_free(l->gauges, l->n_gauges);
	l->counting = NULL;
	l->gauges = NULL;
	l->n_gauges = 0;
	l->looking = false;
	(void)sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(l->step, SD_EVENT_OFF);
}

/* What is there now makes room for what was opened; the old answers nobody any more. */
static int build(struct load *l, const struct config_load *config)
{
	struct load_gauge *gauges = calloc(config->n_signals, sizeof(*gauges));
	struct load_counting *counting = NULL;
	size_t n = 0;
	int r = gauges ? 0 : -ENOMEM;

	while (r >= 0 && n < config->n_signals) {
		r = gauge_open(l, &config->signals[n], &gauges[n]);
		if (r >= 0)
			take_over(&gauges[n], l->gauges, l->n_gauges);
		n++;
	}
	if (r >= 0 && config->prefixes)
		r = load_counting_new(l, l->counting, &counting);
	if (r < 0) {
		gauges_free(gauges, n);
		forget(l);
		return r;
	}
	forget(l);
	l->gauges = gauges;
	l->n_gauges = n;
	l->counting = counting;
	l->next = 0;
	return 0;
}

int load_configure(struct load *l)
{
	const struct config_load *config = (*l->config)->load;
	int r;

	if (!config) {
		forget(l);
		return 0;
	}
	r = build(l, config);
	if (r >= 0)
		r = sd_event_source_set_time(l->timer, clock_monotime().us);
	if (r >= 0)
		r = sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
	return r < 0 ? r : 0;
}

int load_new(struct load **ret, sd_event *event, const struct config *const *config)
{
	_cleanup_(load_freep) struct load *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->event = sd_event_ref(event);
	l->config = config;
	l->text = malloc(LOAD_FILE_MAX);
	if (!l->text)
		return -ENOMEM;
	r = sd_event_add_time(event, &l->timer, CLOCK_BOOTTIME, UINT64_MAX, 1000, on_timer, l);
	if (r >= 0)
		r = sd_event_source_set_priority(l->timer, LOAD_PRIORITY);
	if (r >= 0)
		r = sd_event_add_defer(event, &l->step, on_step, l);
	if (r >= 0)
		r = sd_event_source_set_priority(l->step, LOAD_PRIORITY);
	if (r >= 0)
		r = sd_event_source_set_enabled(l->step, SD_EVENT_OFF);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(l->timer, "load");
	(void)sd_event_source_set_description(l->step, "load: step");
	r = load_configure(l);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(l);
	return 0;
}

void load_free(struct load *l)
{
	if (!l)
		return;
	if (l->timer && l->step)
		forget(l);
	sd_event_source_disable_unref(l->timer);
	sd_event_source_disable_unref(l->step);
	sd_event_unref(l->event);
	free(l->text);
	free(l);
}

/* ---- views ---- */

void load_view(const struct load *l, struct load_view *ret)
{
	const struct config_load *config = l ? (*l->config)->load : NULL;
	struct meter_signal signals[CONFIG_SIGNALS_MAX];
	struct load_view view = {.counting_error = ""};

	if (config) {
		view.configured = true;
		view.capacity = (uint64_t)config->capacity * 1000;
		view.n_signals = l->n_gauges;
		for (size_t i = 0; i < l->n_gauges; i++) {
			const struct load_gauge *g = &l->gauges[i];

			signals[i] = (struct meter_signal){.valid = g->valid, .bp = g->bp};
			if (g->valid && (!view.heaviest || g->bp > view.utilisation_bp)) {
				view.heaviest = g->name;
				view.utilisation_bp = g->bp;
			}
		}
		view.valid = meter_utilisation(signals, l->n_gauges, &view.utilisation_bp);
		view.load = view.valid ? meter_load(view.capacity, view.utilisation_bp) : 0;
		if (l->counting) {
			view.counting = tables_countings[l->counting->config->type].name;
			view.counting_error = l->counting->trouble.text;
		}
	}
	*ret = view;
}

bool load_signal(const struct load *l, size_t nth, struct load_signal *ret)
{
	const struct load_gauge *g;

	if (!l || nth >= l->n_gauges)
		return false;
	g = &l->gauges[nth];
	*ret = (struct load_signal){
		.name = g->name,
		.type = tables_signals[g->config->type].name,
		.valid = g->valid,
		.value_milli = g->value_milli,
		.limit_milli = (uint64_t)g->config->limit * 1000,
		.bp = g->bp,
		.error = g->trouble.text,
	};
	return true;
}
