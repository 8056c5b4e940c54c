/*
 * birdwatcher (github.com/skoef/birdwatcher): one file of TOML with some keys of its own, a table
 * [prometheus], and a table for each service.
 *
 * birdwatcher only says which prefixes a filter function lets through; the routes come from
 * elsewhere in bird.conf. Here the agent announces routes of its own, so that filter and those
 * routes are the operator's to remove.
 */
#include "agent/ctl/import_parts.h"

#include <math.h>
#include <string.h>

#include "agent/ctl/text.h"
#include "agent/ctl/toml.h"

/* --- nodes of the tree --- */

static struct import_where where_of(const struct import_file *file, const json_t *node)
{
	return (struct import_where){
		file->name, (unsigned)json_integer_value(json_object_get(node, "line"))};
}

/* A key's node; Go's decoder does not mind case where the exact name is absent. */
static json_t *find(const json_t *table, const char *name)
{
	json_t *children = json_object_get(table, "table");
	json_t *found = json_object_get(children, name), *child;
	const char *key;

	json_object_foreach (children, key, child)
		if (!found && strcasecmp(key, name) == 0)
			found = child;
	return found;
}

/* NULL: absent, or (told) of another kind. */
static const char *find_string(
	struct import *im, const struct import_file *file, const json_t *table, const char *name)
{
	json_t *node = find(table, name);
	json_t *value = json_object_get(node, "value");

	if (node && !json_is_string(value))
		import_error(im, where_of(file, node), "%s: expected a string in quotes", name);
	return json_string_value(value);
}

/* `fallback` also for 0 and less, as birdwatcher has it. */
static int64_t find_number(struct import *im, const struct import_file *file, const json_t *table,
	const char *name, int64_t fallback)
{
	json_t *node = find(table, name);
	json_t *value = json_object_get(node, "value");

	if (node && !json_is_integer(value))
		import_error(im, where_of(file, node), "%s: expected a whole number", name);
	return json_integer_value(value) > 0 ? json_integer_value(value) : fallback;
}

/* --- times --- */

/* time.ParseDuration of Go: "300ms", "1m30s", "1.5h". False: not of this form. */
static bool go_duration(const char *text, uint64_t *ret_ms)
{
	static const struct {
		const char *unit;
		double ms;
	} units[] = {{"ns", 1e-6}, {"us", 1e-3}, {"\xc2\xb5s", 1e-3}, {"ms", 1}, {"s", 1e3},
		{"m", 6e4}, {"h", 3.6e6}};
	double sum = 0;

	if (!*text || strlen(text) > 64)
		return false;
	while (*text) {
		size_t n = strspn(text, "0123456789."), i = 0;
		_cleanup_free_ char *number = import_copy(text, n);
		uint64_t thousandths;

		if (!import_seconds(number, &thousandths))
			return false;
		text += n;
		n = strcspn(text, "0123456789.");
		while (i < ELEMENTSOF(units) &&
			(strlen(units[i].unit) != n || strncmp(units[i].unit, text, n) != 0))
			i++;
		if (i == ELEMENTSOF(units))
			return false;
		sum += (double)thousandths / 1000 * units[i].ms;
		text += n;
	}
	*ret_ms = sum > 1e12 ? 1000000000000ULL : (uint64_t)llround(sum);
	return true;
}

static void read_timeout(struct import *im, const struct import_file *file, const json_t *service,
	struct import_timing *timing)
{
	json_t *node = find(service, "timeout");
	json_t *value = json_object_get(node, "value");
	char buf[IMPORT_DURATION_MAX];

	timing->timeout_ms = 10000;
	if (!node)
		return;
	timing->timeout_written = true;
	if (json_is_integer(value)) {
		int64_t n = json_integer_value(value);

		if (n > 0 && n <= 3600)
			timing->timeout_ms = (uint64_t)n * 1000;
		import_remark(im, where_of(file, node),
			"timeout = %lld is so many nanoseconds to birdwatcher (seconds before "
			"1.0.0-beta3); taken as %s",
			(long long)n, import_duration(timing->timeout_ms, buf));
	} else if (!json_is_string(value) ||
		   !go_duration(json_string_value(value), &timing->timeout_ms)) {
		import_error(im, where_of(file, node),
			"timeout: expected a duration in quotes, such as \"10s\"");
	}
}

/* --- services --- */

/* strings.Split(command, " ") of Go: no quotes, and a second blank is an empty argument. */
static json_t *split_command(struct import *im, struct import_where where, const char *command)
{
	json_t *words = import_json(json_array());

	for (const char *c = command;; c++) {
		size_t n = strcspn(c, " ");

		import_append(words, json_stringn(c, n));
		c += n;
		if (!*c)
			break;
	}
	if (strpbrk(command, "'\"\\|<>;&$*"))
		import_remark(im, where,
			"the command has characters of a shell, which birdwatcher passes on as "
			"they "
			"stand; so does this");
	if (strstr(command, "  "))
		import_remark(im, where,
			"the command has two blanks in a row, which birdwatcher passes on as an "
			"empty "
			"argument; so does this");
	return import_program(im, where, words);
}

static bool add_prefixes(struct import *im, const struct import_file *file, const json_t *table,
	const char *name, json_t *service)
{
	json_t *node = find(table, "prefixes"), *prefix;
	json_t *list = json_object_get(node, "value");
	size_t i;

	if (!json_is_array(list)) {
		import_error(im, where_of(file, node), "prefixes: expected a list of strings");
		return false;
	}
	json_array_foreach (list, i, prefix) {
		const char *text = json_string_value(prefix);

		if (!text || !strchr(text, '/')) {
			import_error(im, where_of(file, node),
				"prefixes of %.64s: expected strings with a length, such as "
				"\"192.0.2.53/32\"",
				name);
			return false;
		}
		if (!import_prefix(im, where_of(file, node), service, text,
			    IMPORT_HOST_BITS_DROPPED, 100, NULL))
			return false;
	}
	return true;
}

static void remark_keys(struct import *im, const struct import_file *file, const json_t *table)
{
	static const char *const known[] = {
		"command", "interval", "timeout", "fail", "rise", "prefixes", "functionname"};
	json_t *child;
	const char *key;

	json_object_foreach (json_object_get(table, "table"), key, child) {
		bool found = false;

		for (size_t i = 0; i < ELEMENTSOF(known); i++)
			found = found || strcasecmp(known[i], key) == 0;
		if (!found)
			import_remark(im, where_of(file, child),
				"%.64s: not a key of a service; left out", key);
	}
}

static void remark_function(
	struct import *im, const struct import_file *file, const json_t *table, const char *name)
{
	json_t *node = find(table, "functionname");
	const char *function = find_string(im, file, table, "functionname");

	import_remark_once(im, where_of(file, node ? node : table),
		"function %.64s(): no equivalent; bird.conf's export line calls "
		"redshank_export_med() instead, and the routes that it let through are the agent's "
		"now: take their protocols out of bird.conf",
		function ? function : "match_route");
}

static void add_service(
	struct import *im, const struct import_file *file, const json_t *table, const char *name)
{
	struct import_where where = where_of(file, table);
	const char *command = find_string(im, file, table, "command");
	json_t *node = find(table, "command"), *service;
	json_t *prefixes = json_object_get(find(table, "prefixes"), "value");
	struct import_timing timing = {
		.rise = find_number(im, file, table, "rise", 1),
		.fall = find_number(im, file, table, "fail", 1),
	};

	if (!json_object_get(table, "table")) {
		import_error(im, where, "services.%.64s: expected a table", name);
		return;
	}
	if (!command) {
		import_error(im, where, "service %.64s has no command", name);
		return;
	}
	if (!prefixes || (json_is_array(prefixes) && json_array_size(prefixes) == 0)) {
		import_remark(im, where,
			"service %.64s has no prefixes, so its function lets through whatever it "
			"is "
			"asked about: left out, name the prefixes",
			name);
		return;
	}
	timing.interval_ms = (uint64_t)find_number(im, file, table, "interval", 1) * 1000;
	timing.fast_interval_ms = timing.interval_ms; /* there is none */
	read_timeout(im, file, table, &timing);
	service = import_service(im, where, name);
	if (!service || !add_prefixes(im, file, table, name, service))
		return;
	import_check(im, where, service, "command",
		split_command(im, where_of(file, node), command), timing);
	remark_keys(im, file, table);
	remark_function(im, file, table, name);
}

/* --- the file --- */

static void remark_top(struct import *im, const struct import_file *file, const json_t *root)
{
	static const struct {
		const char *key, *text;
	} known[] = {
		{"configfile", "no equivalent: bird.conf includes the agent's fragments instead"},
		{"reloadcommand",
			"no equivalent: BIRD is told over its control socket (bird.socket)"},
		{"compatbird213", "not needed: the fragments suit every BIRD from 2.0.12 on"},
		{"prometheus", "GET /metrics of the status socket, or over TCP with status.listen"},
		{"ipv4", "of birdwatcher for BIRD 1; BIRD 2 is needed"},
		{"ipv6", "of birdwatcher for BIRD 1; BIRD 2 is needed"},
	};
	json_t *child;
	const char *key;

	json_object_foreach (json_object_get(root, "table"), key, child) {
		const char *text = "not known to this converter; left out";

		if (strcasecmp(key, "services") == 0)
			continue;
		for (size_t i = 0; i < ELEMENTSOF(known); i++)
			if (strcasecmp(known[i].key, key) == 0)
				text = known[i].text;
		import_remark(im, where_of(file, child), "%.64s: %s", key, text);
	}
}

static void convert_file(struct import *im, const struct import_file *file)
{
	struct import_where where = {.file = file->name};
	struct error error = {{0}};
	json_t *root = toml_parse(file->text, &where.line, &error), *services, *child;
	const char *key;

	if (!root) {
		import_error(im, where, "%s", error.text);
		return;
	}
	remark_top(im, file, root);
	services = find(root, "services");
	if (services && !json_object_get(services, "table"))
		import_error(im, where_of(file, services), "services: expected a table");
	json_object_foreach (json_object_get(services, "table"), key, child)
		add_service(im, file, child, key);
	json_decref(root);
}

void import_birdwatcher(struct import *im)
{
	for (size_t i = 0; i < im->n_files; i++)
		convert_file(im, im->files[i]);
}
