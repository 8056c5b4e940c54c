/*
 * The load from files to one object: read, merge, take apart by the tables, judge. Every step goes
 * on after a mistake, so that a person sees all of them in one run; two stop early, because what
 * they would find after them is noise: a file that cannot be read or parsed hides what it says.
 *
 * The object is built aside and published only when nothing was wrong. The JSON trees are gone when
 * the load returns.
 */
#include "agent/config/load.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "agent/config/merge.h"
#include "agent/config/settings.h"
#include "agent/config/tables.h"

static inline void json_decrefp_(json_t **j)
{
	json_decref(*j);
}

/* Where the file says nothing, the node is called as the host. */
static void default_node(struct load *l)
{
	const struct path path = {.key = "node"};
	char name[HOST_NAME_MAX + 1] = "";
	char shown[VALUE_TEXT_MAX];

	if (gethostname(name, sizeof(name)) < 0 || tables_form_node(name)) {
		report_got(&l->report, &path, "nothing",
			"this node's name: the host name, %s, cannot serve as one",
			text_format(name, shown));
		return;
	}
	l->config->node = strdup(name);
	if (!l->config->node)
		(void)report_no_memory(&l->report);
}

static void load_defaults(struct load *l, json_t *value)
{
	const struct path path = {.key = "defaults"};

	if (value && !settings_is_object(&l->report, &path, value, "an object"))
		value = NULL;
	settings_check_keys(&l->report, &path, value, &tables_timing, &tables_start);
	timing_load(l, &path, value, NULL, &l->config->defaults);
	settings_load(&l->report, &path, &tables_start, value, NULL, &l->config->start);
}

void load_name(struct load *l, const struct path *path, char **ret)
{
	const char *expected = tables_form_name(path->key);
	char shown[VALUE_TEXT_MAX];

	if (expected)
		report_got(&l->report, path, text_format(path->key, shown), "%s", expected);
	*ret = strdup(path->key);
	if (!*ret)
		(void)report_no_memory(&l->report);
}

static void load_document(struct load *l, json_t *document)
{
	struct config *c = l->config;

	settings_check_keys(&l->report, NULL, document, &tables_top, NULL);
	settings_load(&l->report, NULL, &tables_top, document, NULL, c);
	if (!json_object_get(document, "node"))
		default_node(l);
	/* An empty group is nobody. */
	if (c->status.group && !*c->status.group) {
		free(c->status.group);
		c->status.group = NULL;
	}
	load_defaults(l, json_object_get(document, "defaults"));
	services_load(l, json_object_get(document, "services"));
	weights_load(l, json_object_get(document, "weights"));
	neighbours_load(l, json_object_get(document, "neighbours"));
	manners_check_floors(l, json_object_get(document, "services"));
	shed_load(l, json_object_get(document, "shed"));
	signals_load(l, json_object_get(document, "load"));
}

int load_sources(const struct sources *sources, const struct probe_type *const *types,
	struct config **ret, struct problems *problems)
{
	_cleanup_config_ struct config *c = calloc(1, sizeof(*c));
	_cleanup_(json_decrefp_) json_t *document = NULL;
	struct load l = {
		.report = {.problems = problems, .sources = sources},
		.types = types,
		.config = c,
	};

	if (!c)
		return -ENOMEM;
	document = merge_sources(sources, &l.report);
	if (document)
		load_document(&l, document);
	index_done(&l.prefixes);
	if (l.report.failed < 0)
		return l.report.failed;
	if (problems->n_errors > 0)
		return -EINVAL;
	*ret = TAKE_PTR(c);
	return 0;
}

int config_load(const char *path, const struct probe_type *const *types, struct config **ret,
	struct problems *problems)
{
	_cleanup_sources_ struct sources sources = {0};
	int r;

	sources_init(&sources);
	r = sources_read(&sources, path, problems);
	if (r < 0)
		return r;
	return load_sources(&sources, types, ret, problems);
}

static void free_service(struct config_service *s)
{
	for (size_t i = 0; i < s->n_prefixes; i++) {
		free(s->prefixes[i].communities);
		free(s->prefixes[i].large_communities);
	}
	for (size_t i = 0; i < s->n_checks; i++) {
		struct config_check *check = &s->checks[i];

		free(check->name);
		free(check->identity);
		if (check->settings)
			settings_done(check->type->settings, check->settings);
		free(check->settings);
	}
	if (s->restart)
		settings_done(&tables_restart, s->restart);
	hooks_release(s);
	settings_done(&tables_service, s);
	free(s->restart);
	manners_done(s);
	free(s->prefixes);
	free(s->checks);
	free(s->managed_interface);
	free(s->name);
}

size_t config_count_prefixes(const struct config *config)
{
	size_t n = 0;

	for (size_t i = 0; i < config->n_services; i++)
		n += config->services[i].n_prefixes;
	return n;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_services; i++)
		free_service(&c->services[i]);
	for (size_t i = 0; i < c->n_weights; i++) {
		free(c->weights[i].node);
		free(c->weights[i].items);
	}
	if (c->neighbours)
		settings_done(&tables_neighbours, c->neighbours);
	settings_done(&tables_top, c);
	free(c->neighbours);
	signals_release(c->load);
	free(c->shed);
	free(c->services);
	free(c->weights);
	free(c);
}
