/*
 * The section `shed`: its table, and its settings as core/shed has them. Parts of a whole are whole
 * per cent here and basis points there. The one judge of orders and ranges is core's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "agent/config/load.h"
#include "agent/config/settings.h"
#include "agent/config/tables.h"

#define SECOND_MS 1000
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define PERCENT_BP 100

static const char *const mode_words[] = {"withdraw", "demote", NULL}; /* enum shed_mode */

#define PERCENT(key, field_, low, high, default_, meaning_)                                    \
	{                                                                                      \
		.name = key, .kind = SCHEMA_INTEGER, SCHEMA_FIELD(struct config_shed, field_), \
		.minimum = low, .maximum = high, .fallback = default_, .meaning = meaning_     \
	}
#define SPAN(key, field_, low, high, default_, meaning_)                                        \
	{                                                                                       \
		.name = key, .kind = SCHEMA_DURATION, SCHEMA_FIELD(struct config_shed, field_), \
		.minimum = low, .maximum = high, .fallback = default_, .meaning = meaning_      \
	}

static const struct schema_key shed_keys[] = {
	{.name = "enabled",
		.kind = SCHEMA_BOOLEAN,
		SCHEMA_FIELD(struct config_shed, enabled),
		.fallback = "true",
		.meaning = "false: this server sheds nothing"},
	{.name = "receive",
		.kind = SCHEMA_BOOLEAN,
		SCHEMA_FIELD(struct config_shed, receive),
		.fallback = "true",
		.meaning = "false: this server promises no room to neighbours"},
	{.name = "mode",
		.kind = SCHEMA_ENUM,
		SCHEMA_FIELD(struct config_shed, mode),
		.words = mode_words,
		.fallback = "\"withdraw\"",
		.meaning = "withdraw the route, or keep it announced at the worst weight"},
	PERCENT("hot", hot, 2, 200, "85", "per cent of utilisation above which this server sheds"),
	PERCENT("accept", accept, 2, 200, "82",
		"per cent up to which it takes what neighbours shed"),
	PERCENT("target", target, 2, 200, "75", "per cent to which a shed brings it back"),
	PERCENT("release", release, 1, 99, "72",
		"per cent under which it must stay with a prefix back"),
	PERCENT("margin", margin, 0, 100, "20", "per cent on top of every room that is asked for"),
	PERCENT("most", most, 1, 50, "50", "per cent of its load that may be out at most"),
	SPAN("over", over_ms, SECOND_MS, 10 * MINUTE_MS, "\"6s\"",
		"how long above `hot` before anything goes"),
	SPAN("settle", settle_ms, 12 * SECOND_MS, 10 * MINUTE_MS, "\"20s\"",
		"from one change to the next"),
	SPAN("under", under_ms, 10 * SECOND_MS, 24 * HOUR_MS, "\"5m\"",
		"how long under `target` before anything returns"),
	SPAN("back_off", back_off_ms, SECOND_MS, 24 * HOUR_MS, "\"2m\"",
		"how long a prefix that had to return is left alone; doubles"),
	SPAN("leave_alone", leave_alone_ms, MINUTE_MS, 24 * HOUR_MS, "\"1h\"",
		"how long nothing is shed once it had no effect"),
	SCHEMA_END,
};
const struct schema tables_shed = {.size = sizeof(struct config_shed), .keys = shed_keys};

static uint64_t under_gap_ms(const struct config_shed *c, uint64_t most_ms)
{
	uint64_t gap_ms = c->under_ms > c->settle_ms ? c->under_ms : c->settle_ms;

	return gap_ms < most_ms ? gap_ms : most_ms;
}

struct shed_settings config_shed_settings(const struct config *config)
{
	struct shed_settings s = shed_settings_default();
	const struct config_shed *c = config->shed;

	if (config->neighbours) {
		s.stale_ms = config->neighbours->stale_after_ms;
		s.forget_ms = config->neighbours->forget_after_ms;
	}
	s.enabled = c && c->enabled;
	if (!c)
		return s;
	s.receive = c->receive;
	s.mode = (enum shed_mode)c->mode;
	s.hot_bp = (unsigned)c->hot * PERCENT_BP;
	s.accept_bp = (unsigned)c->accept * PERCENT_BP;
	s.target_bp = (unsigned)c->target * PERCENT_BP;
	s.release_bp = (unsigned)c->release * PERCENT_BP;
	s.margin_bp = (unsigned)c->margin * PERCENT_BP;
	s.most_bp = (unsigned)c->most * PERCENT_BP;
	s.over_ms = c->over_ms;
	s.settle_ms = c->settle_ms;
	s.under_ms = c->under_ms;
	/* who lets prefixes return soon does not want to wait a minute between two of them */
	s.release_gap_ms = under_gap_ms(c, s.release_gap_ms);
	s.back_off_ms = c->back_off_ms;
	if (s.back_off_max_ms < s.back_off_ms)
		s.back_off_max_ms = s.back_off_ms;
	s.leave_alone_ms = c->leave_alone_ms;
	return s;
}

/* Two limits in the wrong order. Who wrote one of them may not know the other's default. */
static void report_order(
	struct load *l, const struct path *parent, json_t *object, const struct shed_fault *fault)
{
	const struct path path = {.parent = parent, .key = fault->low};
	char got[VALUE_TEXT_MAX];

	(void)snprintf(got, sizeof(got), "%llu%s",
		(unsigned long long)fault->low_value / PERCENT_BP,
		json_object_get(object, fault->low) ? "" : " (the default)");
	if (fault->high)
		report_got(&l->report, &path, got, "less than `%s`, which is %llu%s", fault->high,
			(unsigned long long)fault->high_value / PERCENT_BP,
			json_object_get(object, fault->high) ? "" : " by default");
	else
		report_got(&l->report, &path, got, "a number from %llu to %llu",
			(unsigned long long)fault->limit_low,
			(unsigned long long)fault->limit_high);
}

/* Demoted is what the last resort announces: without it there would be nothing. */
static void warn_demote(struct load *l, const struct path *parent)
{
	const struct path path = {.parent = parent, .key = "mode"};
	size_t n_without = 0;

	for (size_t s = 0; s < l->config->n_services; s++)
		for (size_t i = 0; i < l->config->services[s].n_prefixes; i++)
			n_without += !l->config->services[s].prefixes[i].last_resort;
	if (l->config->shed->mode == SHED_MODE_DEMOTE && n_without > 0)
		report_warning(&l->report, &path,
			"%zu of %zu prefixes have no `last_resort`: shed, they are withdrawn",
			n_without, config_count_prefixes(l->config));
}

void shed_load(struct load *l, json_t *value)
{
	const struct path path = {.key = "shed"};
	size_t before = report_count(&l->report);
	struct shed_settings settings;
	struct shed_fault fault;

	if (!value || !settings_is_object(&l->report, &path, value, "an object"))
		return;
	l->config->shed = calloc(1, sizeof(*l->config->shed));
	if (!l->config->shed) {
		(void)report_no_memory(&l->report);
		return;
	}
	settings_check_keys(&l->report, &path, value, &tables_shed, NULL);
	settings_load(&l->report, &path, &tables_shed, value, NULL, l->config->shed);
	if (report_count(&l->report) > before)
		return;
	settings = config_shed_settings(l->config);
	if (!shed_settings_check(&settings, &fault))
		report_order(l, &path, value, &fault);
	warn_demote(l, &path);
	if (!l->config->neighbours)
		report_warning(&l->report, &path,
			"does nothing without `neighbours`: only they can promise the room");
}
