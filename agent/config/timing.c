/* When a check runs: one rule about what fits into what, for `defaults` and for each check. */
#include "agent/config/duration.h"
#include "agent/config/load.h"
#include "agent/config/settings.h"
#include "agent/config/tables.h"

/* `value` may not be longer than the interval: refused where it was said here, else cut. */
static void fit_into_interval(struct load *l, const struct path *path, json_t *object,
	const char *key, bool inherited, uint64_t interval_ms, uint64_t *value_ms)
{
	const struct path here = {.parent = path, .key = key};
	json_t *said = json_object_get(object, key);
	char text[DURATION_TEXT_MAX];

	if (*value_ms <= interval_ms)
		return;
	if (!said) {
		*value_ms = interval_ms;
		return;
	}
	report_value(&l->report, &here, said, "at most the interval, \"%s\"%s",
		duration_format(interval_ms, text),
		json_object_get(object, "interval") ? ""
		: inherited			    ? " (of defaults)"
						    : " (the built-in one)");
}

void timing_load(struct load *l, const struct path *path, json_t *object,
	const struct config_timing *inherit, struct config_timing *ret)
{
	size_t before = report_count(&l->report);

	settings_load(&l->report, path, &tables_timing, object, inherit, ret);
	/* One wrong value is one problem: the others are not judged by what it was not. */
	if (report_count(&l->report) != before)
		return;
	fit_into_interval(l, path, object, "fast_interval", inherit != NULL, ret->interval_ms,
		&ret->fast_interval_ms);
	fit_into_interval(
		l, path, object, "timeout", inherit != NULL, ret->interval_ms, &ret->timeout_ms);
}
