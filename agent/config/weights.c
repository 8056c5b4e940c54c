/*
 * The fleet's table of weights. All nodes read the same table, so each checks all of it, keeps all
 * of it, and acts on its own row: there the weight of a service's prefix is replaced. What other
 * nodes announce is not known here, so their rows may name any prefix.
 */
#include <string.h>

#include "agent/config/load.h"
#include "agent/config/settings.h"
#include "agent/config/tables.h"

static void report_same_prefixes(struct load *l, const struct path *node, struct index *row)
{
	char shown[VALUE_TEXT_MAX], other[VALUE_TEXT_MAX];

	index_sort(row);
	for (size_t i = 1; i < row->n; i++) {
		const struct path path = {.parent = node, .key = row->entries[i].key};

		if (prefix_equal(&row->entries[i].prefix, &row->entries[i - 1].prefix))
			report_got(&l->report, &path, text_format(path.key, shown),
				"each prefix once in a row: %s is the same",
				text_format(row->entries[i - 1].key, other));
	}
}

/* The weight of this node's prefix, from its own row. */
static void apply_weight(struct load *l, const struct path *path, const struct config_weight *w)
{
	const struct index_entry *entry = index_find(&l->prefixes, &w->prefix);

	if (!entry) {
		report_warning(&l->report, path,
			"no service of this node has this prefix: the weight does nothing");
		return;
	}
	entry->target->weight = entry->target->configured_weight = w->weight;
	entry->target->announced_weight = w->weight;
	entry->target->weight_is_of_node = true;
}

static bool load_weight(
	struct load *l, const struct path *path, json_t *value, struct config_weight *ret)
{
	bool right = index_parse_key(&l->report, path, &ret->prefix);

	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
		json_integer_value(value) > 65535) {
		report_value(&l->report, path, value, "a weight, an integer from 0 to 65535");
		return false;
	}
	ret->weight = (uint32_t)json_integer_value(value);
	return right;
}

static void load_row(
	struct load *l, const struct path *path, json_t *row, struct config_weights *ret)
{
	bool own = l->config->node && strcmp(path->key, l->config->node) == 0;
	_cleanup_index_ struct index prefixes = {0};
	const char *key;
	json_t *value;

	if (!settings_is_object(
		    &l->report, path, row, "an object, such as {\"192.0.2.53/32\": 100}"))
		return;
	ret->items = calloc(json_object_size(row) + 1, sizeof(*ret->items));
	if (!ret->items) {
		(void)report_no_memory(&l->report);
		return;
	}
	json_object_foreach (row, key, value) {
		const struct path here = {.parent = path, .key = key};
		struct config_weight *w = &ret->items[ret->n];
		struct index_entry entry = {.owner = path->key, .key = key};

		if (!load_weight(l, &here, value, w))
			continue;
		ret->n++;
		entry.prefix = w->prefix;
		(void)index_add(&prefixes, &l->report, &entry);
		if (own)
			apply_weight(l, &here, w);
	}
	report_same_prefixes(l, path, &prefixes);
}

/* "edge1" and "edge1.example.net" or "EDGE1" are two nodes to us, and probably one to the person.
 */
static void warn_of_near_node(struct load *l, const struct path *path)
{
	const char *node = l->config->node, *name = path->key;
	size_t short_node = strcspn(node, "."), short_name = strcspn(name, ".");

	if (short_node == short_name && strncasecmp(node, name, short_node) == 0 &&
		(strcasecmp(node, name) == 0 || !node[short_node] || !name[short_name]))
		report_warning(&l->report, path,
			"is not this node, which is called \"%s\", and nothing here applies to it",
			node);
}

static bool has_own_row(const struct load *l, json_t *weights)
{
	return l->config->node && json_object_get(weights, l->config->node);
}

static size_t count_weights(json_t *weights)
{
	const char *node;
	json_t *row;
	size_t n = 0;

	json_object_foreach (weights, node, row)
		n += json_object_size(row);
	return n;
}

void weights_load(struct load *l, json_t *weights)
{
	const struct path path = {.key = "weights"};
	struct config *c = l->config;
	const char *node, *expected;
	char shown[VALUE_TEXT_MAX];
	json_t *row;

	if (!weights || !settings_is_object(&l->report, &path, weights, "an object of nodes"))
		return;
	if (count_weights(weights) > CONFIG_WEIGHTS_MAX) {
		report_value(&l->report, &path, weights, "at most %d weights, not %zu",
			CONFIG_WEIGHTS_MAX, count_weights(weights));
		return;
	}
	c->weights = calloc(json_object_size(weights) + 1, sizeof(*c->weights));
	if (!c->weights) {
		(void)report_no_memory(&l->report);
		return;
	}
	json_object_foreach (weights, node, row) {
		const struct path here = {.parent = &path, .key = node};
		struct config_weights *w = &c->weights[c->n_weights++];

		expected = tables_form_node(node);
		if (expected)
			report_got(&l->report, &here, text_format(node, shown), "%s", expected);
		w->node = strdup(node);
		if (!w->node)
			(void)report_no_memory(&l->report);
		load_row(l, &here, row, w);
		if (c->node && !has_own_row(l, weights))
			warn_of_near_node(l, &here);
	}
}
