/*
 * Objects merge key by key, in the order in which the keys first appear. Everything else is a leaf,
 * lists too, and stands in one file only: two files that say the same today will not tomorrow, so
 * even equal values are refused. The sources keep their trees; sources_origin() finds a leaf's
 * file.
 */
#include "agent/config/merge.h"

#include <string.h>

static void report_twice(struct report *r, const struct source *second, const struct path *path,
	json_t *first_value, json_t *second_value)
{
	char where[PATH_TEXT_MAX], got[VALUE_TEXT_MAX], had[VALUE_TEXT_MAX];

	problems_add(r->problems, PROBLEM_ERROR,
		"%s: %s: got %s; expected it in one file only: %s has it already (%s)",
		second->name, path_format(path, where), value_at_format(path, second_value, got),
		sources_origin(r->sources, path), value_at_format(path, first_value, had));
}

static void merge_into(struct report *r, json_t *into, json_t *from, const struct source *source,
	const struct path *parent);

static void merge_key(struct report *r, json_t *into, const char *key, json_t *value,
	const struct source *source, const struct path *parent)
{
	const struct path path = {.parent = parent, .key = key};
	json_t *present = json_object_get(into, key);

	if (json_is_object(present) && json_is_object(value)) {
		merge_into(r, present, value, source, &path);
	} else if (present) {
		report_twice(r, source, &path, present, value);
	} else if (json_is_object(value)) {
		/* A new object, so that the source's own tree stays as it was read. */
		if (json_object_set_new(into, key, json_object()) < 0)
			(void)report_no_memory(r);
		else
			merge_into(r, json_object_get(into, key), value, source, &path);
	} else if (json_object_set(into, key, value) < 0) {
		(void)report_no_memory(r);
	}
}

/* As deep as SOURCES_DEPTH_MAX at most. */
static void merge_into(struct report *r, json_t *into, json_t *from, const struct source *source,
	const struct path *parent)
{
	const char *key;
	json_t *value;

	json_object_foreach (from, key, value)
		merge_key(r, into, key, value, source, parent);
}

json_t *merge_sources(const struct sources *sources, struct report *report)
{
	json_t *merged = json_object();

	if (!merged) {
		(void)report_no_memory(report);
		return NULL;
	}
	for (size_t i = 0; i < sources->n; i++)
		merge_into(report, merged, sources->items[i].tree, &sources->items[i], NULL);
	return merged;
}
