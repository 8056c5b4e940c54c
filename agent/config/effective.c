/*
 * The configuration as it counts, printed: every default filled in, prefixes as objects in their
 * canonical form, services and checks in the order of the files, keys in the order of their tables.
 *
 * What is printed loads again to the same bytes. So a prefix shows its service's own weight, and
 * the rows of `weights`, of all nodes, stand below: the row of this node replaces it again.
 */
#include <string.h>

#include "agent/config/load.h"
#include "agent/config/settings.h"
#include "agent/config/tables.h"

static json_t *print_require(const struct config_service *s)
{
	switch (s->require) {
	case CONFIG_REQUIRE_ALL:
		return json_string("all");
	case CONFIG_REQUIRE_ANY:
		return json_string("any");
	case CONFIG_REQUIRE_NUMBER:
		return json_integer(s->require_number);
	}
	return NULL;
}

static json_t *print_prefixes(const struct config_service *s)
{
	json_t *object = json_object();
	char text[PREFIX_TEXT_MAX];
	bool ok = object != NULL;

	for (size_t i = 0; ok && i < s->n_prefixes; i++)
		ok = json_object_set_new(object, prefix_format(&s->prefixes[i].prefix, text),
			     prefixes_print(&s->prefixes[i])) == 0;
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *print_checks(const struct config_service *s)
{
	json_t *object = json_object();
	bool ok = object != NULL;

	for (size_t i = 0; ok && i < s->n_checks; i++)
		ok = json_object_set_new(object, s->checks[i].name, checks_print(&s->checks[i])) ==
		     0;
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *print_service(const struct config_service *s)
{
	json_t *object = settings_print(&tables_service, s);

	if (object && json_object_set_new(object, "prefixes", print_prefixes(s)) == 0 &&
		json_object_set_new(object, "require", print_require(s)) == 0 &&
		json_object_set_new(object, "checks", print_checks(s)) == 0 &&
		(s->restart ? json_object_set_new(object, "restart",
				      settings_print(&tables_restart, s->restart))
			    : json_object_del(object, "restart")) == 0 &&
		(s->n_hooks > 0 ? json_object_set_new(object, "hooks", hooks_print(s))
				: json_object_del(object, "hooks")) == 0 &&
		manners_print(s, object) && managed_print(s, object))
		return object;
	json_decref(object);
	return NULL;
}

static json_t *print_services(const struct config *c)
{
	json_t *object = json_object();
	bool ok = object != NULL;

	for (size_t i = 0; ok && i < c->n_services; i++)
		ok = json_object_set_new(
			     object, c->services[i].name, print_service(&c->services[i])) == 0;
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *print_row(const struct config_weights *w)
{
	json_t *object = json_object();
	char text[PREFIX_TEXT_MAX];
	bool ok = object != NULL;

	for (size_t i = 0; ok && i < w->n; i++)
		ok = json_object_set_new(object, prefix_format(&w->items[i].prefix, text),
			     json_integer(w->items[i].weight)) == 0;
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *print_weights(const struct config *c)
{
	json_t *object = json_object();
	bool ok = object != NULL;

	for (size_t i = 0; ok && i < c->n_weights; i++)
		ok = json_object_set_new(object, c->weights[i].node, print_row(&c->weights[i])) ==
		     0;
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}

static char *with_newline(const char *text)
{
	char *copy = NULL;

	if (!text || asprintf(&copy, "%s\n", text) < 0)
		return NULL;
	return copy;
}

static json_t *print_defaults(const struct config *c)
{
	json_t *object = settings_print(&tables_timing, &c->defaults);
	json_t *start = settings_print(&tables_start, &c->start);
	bool ok = object && start && json_object_update(object, start) == 0;

	json_decref(start);
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}

char *config_effective(const struct config *c)
{
	json_t *object = settings_print(&tables_top, c);
	_cleanup_free_ char *text = NULL;

	if (object && json_object_set_new(object, "defaults", print_defaults(c)) == 0 &&
		json_object_set_new(object, "services", print_services(c)) == 0 &&
		json_object_set_new(object, "weights", print_weights(c)) == 0 &&
		(c->neighbours ? json_object_set_new(object, "neighbours",
					 settings_print(&tables_neighbours, c->neighbours))
			       : json_object_del(object, "neighbours")) == 0 &&
		(c->shed ? json_object_set_new(
				   object, "shed", settings_print(&tables_shed, c->shed))
			 : json_object_del(object, "shed")) == 0 &&
		(c->load ? json_object_set_new(object, "load", signals_print(c->load))
			 : json_object_del(object, "load")) == 0)
		text = json_dumps(object, JSON_INDENT(2));
	json_decref(object);
	return with_newline(text);
}
