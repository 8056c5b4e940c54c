/*
 * The section `load`: how this server's load is measured. A signal's `type` chooses the table of
 * its keys; so does that of `prefixes`. A misspelt one is an error, never a signal that is silently
 * away.
 */
#include <stdio.h>
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/config/load.h"
#include "agent/config/nearest.h"
#include "agent/config/settings.h"
#include "agent/config/tables.h"

#define SECOND_MS 1000
#define LIMIT_MAX 1000000000000000 /* a thousandth of it is still told apart in 64 bits */
#define KEY_MAX 256
#define KEYS_MAX 256 /* each is looked for in the text */

static const char *const resource_words[] = {"cpu", "memory", "io", NULL}; /* config_resource */
static const char *const format_words[] = {"text", "json", "prometheus", NULL}; /* config_format */
static const char *const count_words[] = {"packets", "bytes", "connections", NULL};

/* http://ADDRESS[:PORT][/PATH] with a literal, since nothing is resolved while load is measured. */
static const char *form_url(const char *text)
{
	static const char scheme[] = "http://";
	static const char expected[] =
		"http:// and an address literal, such as \"http://127.0.0.1:8080/metrics\"";
	char place[ADDRESS_TEXT_MAX + 16];
	size_t n;

	if (strncmp(text, scheme, strlen(scheme)) != 0)
		return expected;
	text += strlen(scheme);
	n = strcspn(text, "/?#");
	if (n + 4 > sizeof(place))
		return expected;
	memcpy(place, text, n);
	place[n] = '\0';
	if (n > 0 && (place[n - 1] == ']' || !strchr(place, ':')))
		(void)snprintf(place + n, sizeof(place) - n, ":80");
	return tables_form_listen(place) ? expected : NULL;
}

/* clang-format off: the rows are the same in several tables */
#define LIMIT(low, high, fallback_, meaning_)                                               \
	{                                                                                   \
		.name = "limit", .kind = SCHEMA_INTEGER,                                    \
		SCHEMA_FIELD(struct config_signal, limit), .minimum = low, .maximum = high, \
		.fallback = fallback_, .meaning = meaning_                                  \
	}
#define NUMBER_LIMIT                                                                       \
	{                                                                                  \
		.name = "limit", .kind = SCHEMA_INTEGER,                                   \
		SCHEMA_FIELD(struct config_signal, limit), .required = true, .minimum = 1, \
		.maximum = LIMIT_MAX, .meaning = "the number at which this server is full" \
	}
#define KEY                                                                                        \
	{                                                                                          \
		.name = "key", .kind = SCHEMA_STRING, SCHEMA_FIELD(struct config_signal, key),     \
		.minimum = 1, .maximum = KEY_MAX, .meaning = "where in the text the number stands" \
	}
#define FILE_KEY(type)                                                                  \
	{                                                                               \
		.name = "file", .kind = SCHEMA_STRING, SCHEMA_FIELD(type, source.file), \
		.required = true, .minimum = 1, .form = schema_form_absolute_path,      \
		.meaning = "the file that holds it"                                     \
	}
#define COMMAND_KEY(type)                                                                          \
	{                                                                                          \
		.name = "command", .kind = SCHEMA_STRING_LIST, SCHEMA_FIELD(type, source.command), \
		.required = true, .minimum = 1, .maximum = 256,                                    \
		.meaning = "the absolute path of a program, and its arguments"                     \
	}
#define URL_KEYS(type)                                                                         \
	{.name = "url",                                                                        \
		.kind = SCHEMA_STRING,                                                         \
		SCHEMA_FIELD(type, source.url),                                                \
		.required = true,                                                              \
		.minimum = 1,                                                                  \
		.maximum = 2048,                                                               \
		.form = form_url,                                                              \
		.meaning = "the page that holds it"},                                          \
	{                                                                                      \
		.name = "unix", .kind = SCHEMA_STRING, SCHEMA_FIELD(type, source.unix_socket), \
		.minimum = 1, .form = schema_form_socket_path,                                 \
		.meaning = "a Unix socket to ask instead of the address"                       \
	}
#define SOURCE_KEYS(type, format_, rate_)                                                  \
	{.name = "format",                                                                 \
		.kind = SCHEMA_ENUM,                                                       \
		SCHEMA_FIELD(type, source.format),                                         \
		.words = format_words,                                                     \
		.fallback = format_,                                                       \
		.meaning = "what the text is"},                                            \
		{.name = "timeout",                                                        \
			.kind = SCHEMA_DURATION,                                           \
			SCHEMA_FIELD(type, source.timeout_ms),                             \
			.minimum = 10,                                                     \
			.maximum = 10 * SECOND_MS,                                         \
			.fallback = "\"500ms\"",                                           \
			.meaning = "how long it may take; at most interval"},              \
	{                                                                                  \
		.name = "rate", .kind = SCHEMA_BOOLEAN, SCHEMA_FIELD(type, source.rate),   \
		.fallback = rate_,                                                         \
		.meaning = "true: it is a counter, and what counts is its growth a second" \
	}
/* clang-format on */

static const struct schema_key cpu_keys[] = {
	LIMIT(1, 100, "100", "per cent of all processors busy"), SCHEMA_END};
static const struct schema_key pressure_keys[] = {
	{.name = "resource",
		.kind = SCHEMA_ENUM,
		SCHEMA_FIELD(struct config_signal, resource),
		.words = resource_words,
		.fallback = "\"cpu\"",
		.meaning = "what tasks wait for"},
	LIMIT(1, 100, "20", "per cent of the time in which some task waits"),
	SCHEMA_END,
};
static const struct schema_key interface_keys[] = {
	{.name = "interface",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config_signal, interface),
		.required = true,
		.minimum = 1,
		.form = tables_form_interface,
		.meaning = "the name of the network interface"},
	{.name = "speed",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct config_signal, speed),
		.minimum = 1,
		.maximum = 10000000,
		.meaning = "Mbit/s, where the kernel does not know it or less is paid for"},
	LIMIT(1, 100, "90", "per cent of the speed, of the busier direction"),
	SCHEMA_END,
};
static const struct schema_key softnet_keys[] = {
	LIMIT(1, 1000000000, "100", "packets a second that the kernel drops for want of room"),
	SCHEMA_END};
static const struct schema_key listen_keys[] = {
	LIMIT(1, 1000000000, "10", "connections a second that find a full queue"), SCHEMA_END};
static const struct schema_key conntrack_keys[] = {
	LIMIT(1, 100, "90", "per cent of the table in use"), SCHEMA_END};
static const struct schema_key file_keys[] = {FILE_KEY(struct config_signal), KEY, NUMBER_LIMIT,
	SOURCE_KEYS(struct config_signal, "\"text\"", "false"), SCHEMA_END};
static const struct schema_key command_keys[] = {COMMAND_KEY(struct config_signal), KEY,
	NUMBER_LIMIT, SOURCE_KEYS(struct config_signal, "\"text\"", "false"), SCHEMA_END};
static const struct schema_key url_keys[] = {URL_KEYS(struct config_signal), KEY, NUMBER_LIMIT,
	SOURCE_KEYS(struct config_signal, "\"text\"", "false"), SCHEMA_END};

#define SIGNAL(name_, keys_)                                                                    \
	{                                                                                       \
		.name = name_, .schema = {.size = sizeof(struct config_signal), .keys = keys_ } \
	}
const struct tables_type tables_signals[] = {
	[CONFIG_SIGNAL_CPU] = SIGNAL("cpu", cpu_keys),
	[CONFIG_SIGNAL_PRESSURE] = SIGNAL("pressure", pressure_keys),
	[CONFIG_SIGNAL_INTERFACE] = SIGNAL("interface", interface_keys),
	[CONFIG_SIGNAL_SOFTNET] = SIGNAL("softnet", softnet_keys),
	[CONFIG_SIGNAL_LISTEN] = SIGNAL("listen", listen_keys),
	[CONFIG_SIGNAL_CONNTRACK] = SIGNAL("conntrack", conntrack_keys),
	[CONFIG_SIGNAL_FILE] = SIGNAL("file", file_keys),
	[CONFIG_SIGNAL_COMMAND] = SIGNAL("command", command_keys),
	[CONFIG_SIGNAL_URL] = SIGNAL("url", url_keys),
	{.name = NULL},
};

#define KEYS                                                                                    \
	{                                                                                       \
		.name = "keys", .kind = SCHEMA_STRING_MAP,                                      \
		SCHEMA_FIELD(struct config_counting, keys), .required = true, .minimum = 1,     \
		.maximum = KEYS_MAX, .meaning = "PREFIX to where in the text its number stands" \
	}
static const struct schema_key nftables_keys[] = {
	{.name = "count",
		.kind = SCHEMA_ENUM,
		SCHEMA_FIELD(struct config_counting, count),
		.words = count_words,
		.fallback = "\"packets\"",
		.meaning = "what of each prefix is compared"},
	SCHEMA_END,
};
static const struct schema_key counted_file_keys[] = {FILE_KEY(struct config_counting), KEYS,
	SOURCE_KEYS(struct config_counting, "\"json\"", "true"), SCHEMA_END};
static const struct schema_key counted_command_keys[] = {COMMAND_KEY(struct config_counting), KEYS,
	SOURCE_KEYS(struct config_counting, "\"json\"", "true"), SCHEMA_END};
static const struct schema_key counted_url_keys[] = {URL_KEYS(struct config_counting), KEYS,
	SOURCE_KEYS(struct config_counting, "\"json\"", "true"), SCHEMA_END};

#define COUNTING(name_, keys_)                                                                    \
	{                                                                                         \
		.name = name_, .schema = {.size = sizeof(struct config_counting), .keys = keys_ } \
	}
const struct tables_type tables_countings[] = {
	[CONFIG_COUNTING_NFTABLES] = COUNTING("nftables", nftables_keys),
	[CONFIG_COUNTING_FILE] = COUNTING("file", counted_file_keys),
	[CONFIG_COUNTING_COMMAND] = COUNTING("command", counted_command_keys),
	[CONFIG_COUNTING_URL] = COUNTING("url", counted_url_keys),
	{.name = NULL},
};

static const struct schema_key load_keys[] = {
	{.name = "capacity",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct config_load, capacity),
		.minimum = 1,
		.maximum = 1000000,
		.fallback = "100",
		.meaning = "what this server can do, in a unit that is the same at the whole site"},
	{.name = "interval",
		.kind = SCHEMA_DURATION,
		SCHEMA_FIELD(struct config_load, interval_ms),
		.minimum = SECOND_MS / 2,
		.maximum = 10 * SECOND_MS,
		.fallback = "\"1s\"",
		.meaning = "from one measurement to the next"},
	{.name = "signals", .kind = SCHEMA_SPECIAL, .meaning = "NAME to a measure of the load"},
	{.name = "prefixes", .kind = SCHEMA_SPECIAL, .meaning = "how each prefix's load is known"},
	SCHEMA_END,
};
const struct schema tables_load = {.size = sizeof(struct config_load), .keys = load_keys};

/* What stands in every object whose `type` chooses its table. */
static const struct schema_key type_keys[] = {
	{.name = "type", .kind = SCHEMA_SPECIAL, .meaning = "the kind"}, SCHEMA_END};
static const struct schema type_schema = {.keys = type_keys};

/* ---- load ---- */

/* The index of the type; -1, and reported, where there is none. */
static int load_type(
	struct load *l, const struct path *parent, json_t *object, const struct tables_type *types)
{
	const struct path path = {.parent = parent, .key = "type"};
	json_t *value = json_object_get(object, "type");
	const char *name = json_string_value(value);
	_cleanup_buffer_ struct buffer known = {0};
	struct nearest nearest;

	buffer_init(&known, 512);
	nearest_init(&nearest, name ? name : "");
	for (int i = 0; types[i].name; i++) {
		if (name && strcmp(types[i].name, name) == 0)
			return i;
		nearest_offer(&nearest, types[i].name);
		(void)buffer_printf(&known, "%s\"%s\"", i > 0 ? ", " : "", types[i].name);
	}
	report_value(&l->report, &path, value, "one of %s%s%s%s", buffer_string(&known),
		nearest.best ? "; did you mean \"" : "", nearest.best ? nearest.best : "",
		nearest.best ? "\"?" : "");
	return -1;
}

/* What no row can say. `key` is NULL where each prefix has its own. */
static void check_source(struct load *l, const struct path *parent, json_t *object,
	const struct config_source *source)
{
	const struct path command = {.parent = parent, .key = "command"};
	const struct path first = {.parent = &command, .index = 0};
	const struct path timeout = {.parent = parent, .key = "timeout"};

	if (source->command.n > 0 && source->command.items[0][0] != '/')
		report_value(&l->report, &first,
			json_array_get(json_object_get(object, "command"), 0),
			"the absolute path of a program (there is no shell)");
	if (source->timeout_ms > l->config->load->interval_ms)
		report_value(&l->report, &timeout, json_object_get(object, "timeout"),
			"at most `interval`");
}

static void check_key(
	struct load *l, const struct path *parent, json_t *object, const struct config_signal *s)
{
	const struct path path = {.parent = parent, .key = "key"};
	json_t *value = json_object_get(object, "key");

	switch ((enum config_format)s->source.format) {
	case CONFIG_FORMAT_TEXT:
		if (s->key)
			report_value(&l->report, &path, value,
				"nothing: text is the number itself; or \"format\": \"json\" or "
				"\"prometheus\"");
		return;
	case CONFIG_FORMAT_JSON:
	case CONFIG_FORMAT_PROMETHEUS:
		if (!s->key && !value)
			report_got(&l->report, &path, "nothing",
				"where the number stands, such as \"queue.length\" or "
				"\"requests_total{code=\\\"200\\\"}\"");
	}
}

static char *identity_of(struct load *l, json_t *object)
{
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	json_decref(object);
	if (!text)
		(void)report_no_memory(&l->report);
	return text;
}

static json_t *print_typed(const struct tables_type *type, const void *settings)
{
	json_t *object = json_object(), *own = settings_print(&type->schema, settings);
	bool ok = object && own &&
		  json_object_set_new(object, "type", json_string(type->name)) == 0 &&
		  json_object_update(object, own) == 0;

	json_decref(own);
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}

static void load_signal(
	struct load *l, const struct path *path, json_t *object, struct config_signal *ret)
{
	size_t before = report_count(&l->report);
	const struct schema *schema;
	int type;

	load_name(l, path, &ret->name);
	if (!settings_is_object(&l->report, path, object, "an object, such as {\"type\": \"cpu\"}"))
		return;
	type = load_type(l, path, object, tables_signals);
	if (type < 0)
		return;
	ret->type = type;
	schema = &tables_signals[type].schema;
	settings_check_keys(&l->report, path, object, schema, &type_schema);
	settings_load(&l->report, path, schema, object, NULL, ret);
	if (report_count(&l->report) == before && type >= CONFIG_SIGNAL_FILE) {
		check_source(l, path, object, &ret->source);
		check_key(l, path, object, ret);
	}
	if (report_count(&l->report) == before && l->report.failed == 0)
		ret->identity = identity_of(l, print_typed(&tables_signals[type], ret));
}

/* Without any it is the processors that count: the configuration then says so. */
static void load_signals(struct load *l, const struct path *parent, json_t *value)
{
	const struct path path = {.parent = parent, .key = "signals"};
	struct config_load *load = l->config->load;
	json_t *made = NULL, *object;
	const char *key;

	if (!value)
		value = made = json_pack("{s:{s:s}}", "cpu", "type", "cpu");
	if (!value || !settings_is_object(&l->report, &path, value, "an object, names to signals"))
		return;
	if (json_object_size(value) == 0 || json_object_size(value) > CONFIG_SIGNALS_MAX) {
		report_value(&l->report, &path, value, "1 to %d signals", CONFIG_SIGNALS_MAX);
		return;
	}
	load->signals = calloc(json_object_size(value), sizeof(*load->signals));
	if (!load->signals)
		(void)report_no_memory(&l->report);
	else
		json_object_foreach (value, key, object) {
			const struct path here = {.parent = &path, .key = key};

			load_signal(l, &here, object, &load->signals[load->n_signals++]);
		}
	json_decref(made);
}

static void check_keys(struct load *l, const struct path *parent, const struct config_counting *c)
{
	const struct path keys = {.parent = parent, .key = "keys"};
	char shown[VALUE_TEXT_MAX];
	struct prefix prefix;

	for (size_t i = 0; i + 1 < c->keys.n && !report_is_full(&l->report); i += 2) {
		const struct path path = {.parent = &keys, .key = c->keys.items[i]};

		if (index_parse_key(&l->report, &path, &prefix) &&
			!index_find(&l->prefixes, &prefix))
			report_warning(&l->report, &path, "no service has this prefix");
		if (c->keys.items[i + 1][0] == '\0' || strlen(c->keys.items[i + 1]) > KEY_MAX)
			report_got(&l->report, &path, text_format(c->keys.items[i + 1], shown),
				"where its number stands, 1 to %d bytes", KEY_MAX);
	}
	if (c->source.format == CONFIG_FORMAT_TEXT)
		report_got(&l->report, parent, "\"format\": \"text\"",
			"\"json\" or \"prometheus\": text holds one number alone");
}

static void load_prefixes(struct load *l, const struct path *parent, json_t *object)
{
	const struct path path = {.parent = parent, .key = "prefixes"};
	size_t before = report_count(&l->report);
	struct config_counting *c;
	const struct schema *schema;
	int type;

	if (!object || !settings_is_object(&l->report, &path, object,
			       "an object, such as {\"type\": \"nftables\"}"))
		return;
	type = load_type(l, &path, object, tables_countings);
	if (type < 0)
		return;
	c = l->config->load->prefixes = calloc(1, sizeof(*c));
	if (!c) {
		(void)report_no_memory(&l->report);
		return;
	}
	c->type = type;
	schema = &tables_countings[type].schema;
	settings_check_keys(&l->report, &path, object, schema, &type_schema);
	settings_load(&l->report, &path, schema, object, NULL, c);
	if (report_count(&l->report) == before && type != CONFIG_COUNTING_NFTABLES) {
		check_source(l, &path, object, &c->source);
		check_keys(l, &path, c);
	}
	if (report_count(&l->report) == before && l->report.failed == 0)
		l->config->load->prefixes_identity =
			identity_of(l, print_typed(&tables_countings[type], c));
}

void signals_load(struct load *l, json_t *value)
{
	const struct path path = {.key = "load"};

	if (!value || !settings_is_object(&l->report, &path, value, "an object"))
		return;
	l->config->load = calloc(1, sizeof(*l->config->load));
	if (!l->config->load) {
		(void)report_no_memory(&l->report);
		return;
	}
	settings_check_keys(&l->report, &path, value, &tables_load, NULL);
	settings_load(&l->report, &path, &tables_load, value, NULL, l->config->load);
	load_signals(l, &path, json_object_get(value, "signals"));
	load_prefixes(l, &path, json_object_get(value, "prefixes"));
}

/* ---- print, release ---- */

static json_t *print_signals(const struct config_load *load)
{
	json_t *object = json_object();
	bool ok = object != NULL;

	for (size_t i = 0; ok && i < load->n_signals; i++)
		ok = json_object_set_new(object, load->signals[i].name,
			     print_typed(&tables_signals[load->signals[i].type],
				     &load->signals[i])) == 0;
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}

json_t *signals_print(const struct config_load *load)
{
	json_t *object = settings_print(&tables_load, load);

	if (object && json_object_set_new(object, "signals", print_signals(load)) == 0 &&
		(load->prefixes ? json_object_set_new(object, "prefixes",
					  print_typed(&tables_countings[load->prefixes->type],
						  load->prefixes))
				: json_object_del(object, "prefixes")) == 0)
		return object;
	json_decref(object);
	return NULL;
}

void signals_release(struct config_load *load)
{
	if (!load)
		return;
	for (size_t i = 0; i < load->n_signals; i++) {
		free(load->signals[i].name);
		free(load->signals[i].identity);
		settings_done(&tables_signals[load->signals[i].type].schema, &load->signals[i]);
	}
	if (load->prefixes)
		settings_done(&tables_countings[load->prefixes->type].schema, load->prefixes);
	free(load->prefixes);
	free(load->prefixes_identity);
	free(load->signals);
	free(load);
}
