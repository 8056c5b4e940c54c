/*
 * The keys of the configuration. Adding a key is one row here, a field in config.h and a line in
 * the manual (a test compares them); the loader, --check and the nearest key follow the table.
 */
#include "agent/config/tables.h"

#include <string.h>

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

#define SECOND_MS 1000
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)

const char *tables_form_name(const char *text)
{
	size_t length = strlen(text);

	if (length > 0 && length <= 32 && text[0] != '_' && text[0] != '-' &&
		strspn(text, LETTERS_AND_DIGITS "_-") == length)
		return NULL;
	return "a name of 1 to 32 letters, digits, \"_\" and \"-\" that starts with a letter or "
	       "digit";
}

const char *tables_form_node(const char *text)
{
	size_t length = strlen(text);

	if (length > 0 && length <= 253 && text[0] != '.' && text[0] != '-' &&
		strspn(text, LETTERS_AND_DIGITS "._-") == length)
		return NULL;
	return "a host name: letters, digits, \".\", \"_\" and \"-\", at most 253";
}

const char *tables_form_listen(const char *text)
{
	const char *colon = strrchr(text, ':');
	char address[ADDRESS_TEXT_MAX + 2];
	struct address a;
	long port = 0;
	size_t n;

	if (!colon || colon[1] == '\0' || colon[1] == '0' || strlen(colon + 1) > 5 ||
		colon[1 + strspn(colon + 1, "0123456789")] != '\0')
		return "ADDRESS:PORT, such as \"127.0.0.1:9479\" or \"[::1]:9479\"";
	for (const char *c = colon + 1; *c; c++)
		port = port * 10 + (*c - '0');
	if (port > 65535)
		return "a port from 1 to 65535 behind the address";
	n = (size_t)(colon - text);
	if (n >= sizeof(address))
		return "an address literal and a port, such as \"127.0.0.1:9479\"";
	memcpy(address, text, n);
	address[n] = '\0';
	if (n > 2 && address[0] == '[' && address[n - 1] == ']') {
		address[n - 1] = '\0';
		if (address_parse(address + 1, &a, NULL) == 0 && a.family == ADDRESS_FAMILY_IPV6)
			return NULL;
	} else if (address_parse(address, &a, NULL) == 0) {
		return a.family == ADDRESS_FAMILY_IPV4
			       ? NULL
			       : "an IPv6 address in brackets, such as \"[::1]:9479\"";
	}
	return "an address literal, not a name, such as \"127.0.0.1:9479\" or \"[::1]:9479\"";
}

const char *tables_form_member(const char *text)
{
	return strcmp(text, "bird") == 0 ? NULL : tables_form_listen(text);
}

static const char *const control_words[] = {"socket", "birdc", NULL};
static const char *const on_stop_words[] = {"withdraw", "keep", NULL};
static const char *const on_failure_words[] = {"keep", "withdraw", NULL};

static const struct schema_key bird_keys[] = {
	{.name = "socket",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config_bird, socket),
		.minimum = 1,
		.fallback = "\"/run/bird/bird.ctl\"",
		.form = schema_form_socket_path,
		.meaning = "BIRD's control socket"},
	{.name = "fragments",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config_bird, fragments),
		.minimum = 1,
		.fallback = "\"/run/redshank/bird\"",
		.form = schema_form_absolute_path,
		.meaning = "the folder of the fragments that bird.conf includes"},
	{.name = "control",
		.kind = SCHEMA_ENUM,
		SCHEMA_FIELD(struct config_bird, control),
		.words = control_words,
		.fallback = "\"socket\"",
		.meaning = "speak to the socket, or run birdc for each command"},
	{.name = "sessions",
		.kind = SCHEMA_STRING_LIST,
		SCHEMA_FIELD(struct config_bird, sessions),
		.minimum = 1,
		.maximum = 256,
		.fallback = "[\"*\"]",
		.meaning = "patterns of the BGP sessions on which exports are read back"},
	SCHEMA_END,
};
static const struct schema bird_schema = {.size = sizeof(struct config_bird), .keys = bird_keys};

static const struct schema_key status_keys[] = {
	{.name = "socket",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config_status, socket),
		.minimum = 1,
		.fallback = "\"/run/redshank/status.sock\"",
		.form = schema_form_socket_path,
		.meaning = "the status socket"},
	{.name = "group",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config_status, group),
		.maximum = 32,
		.fallback = "\"redshank\"",
		.meaning = "who but root may use the status socket; \"\" is nobody"},
	{.name = "listen",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config_status, listen),
		.minimum = 1,
		.form = tables_form_listen,
		.meaning = "a read-only TCP listener besides, ADDRESS:PORT"},
	SCHEMA_END,
};
static const struct schema status_schema = {
	.size = sizeof(struct config_status), .keys = status_keys};

/* clang-format off: the rows are the same in two tables */
#define TIMING_KEYS                                                                              \
	{.name = "interval",                                                                     \
		.kind = SCHEMA_DURATION,                                                         \
		SCHEMA_FIELD(struct config_timing, interval_ms),                                 \
		.minimum = 10,                                                                   \
		.maximum = HOUR_MS,                                                              \
		.fallback = "\"1s\"",                                                            \
		.meaning = "from the start of one run to the start of the next"},                \
		{.name = "fast_interval",                                                        \
			.kind = SCHEMA_DURATION,                                                 \
			SCHEMA_FIELD(struct config_timing, fast_interval_ms),                    \
			.minimum = 10,                                                           \
			.maximum = HOUR_MS,                                                      \
			.fallback = "\"500ms\"",                                                 \
			.meaning = "the same while the check is undecided; at most interval"},   \
		{.name = "timeout",                                                              \
			.kind = SCHEMA_DURATION,                                                 \
			SCHEMA_FIELD(struct config_timing, timeout_ms),                          \
			.minimum = 10,                                                           \
			.maximum = HOUR_MS,                                                      \
			.fallback = "\"500ms\"",                                                 \
			.meaning = "how long one run may take as a whole; at most interval"},    \
		{.name = "rise",                                                                 \
			.kind = SCHEMA_INTEGER,                                                  \
			SCHEMA_FIELD(struct config_timing, rise),                                \
			.minimum = 1,                                                            \
			.maximum = 100,                                                          \
			.fallback = "3",                                                         \
			.meaning = "good outcomes in a row that make it up"},                    \
		{.name = "fall",                                                                 \
			.kind = SCHEMA_INTEGER,                                                  \
			SCHEMA_FIELD(struct config_timing, fall),                                \
			.minimum = 1,                                                            \
			.maximum = 100,                                                          \
			.fallback = "2",                                                         \
			.meaning = "bad outcomes in a row that make it down"},                   \
	{                                                                                        \
		.name = "first_rise", .kind = SCHEMA_INTEGER,                                    \
		SCHEMA_FIELD(struct config_timing, first_rise), .maximum = 100, .fallback = "0", \
		.meaning = "rise until it was up for the first time; 0: the same"                \
	}

#define CHECK_OWN_KEYS                                                                            \
	{                                                                                         \
		.name = "shared", .kind = SCHEMA_BOOLEAN,                                         \
		SCHEMA_FIELD(struct config_timing, shared), .fallback = "false",                  \
		.meaning = "it asks for what every server depends on: demotes, and withdraws not" \
	}
/* clang-format on */

static const struct schema_key timing_keys[] = {TIMING_KEYS, SCHEMA_END};
const struct schema tables_timing = {.size = sizeof(struct config_timing), .keys = timing_keys};

static const struct schema_key check_keys[] = {
	{.name = "type", .kind = SCHEMA_SPECIAL, .meaning = "the kind of check"},
	TIMING_KEYS,
	CHECK_OWN_KEYS,
	SCHEMA_END,
};
static const struct schema_key check_own_keys[] = {CHECK_OWN_KEYS, SCHEMA_END};
const struct schema tables_check_own = {
	.size = sizeof(struct config_timing), .keys = check_own_keys};
const struct schema tables_check = {.size = sizeof(struct config_timing), .keys = check_keys};

static const struct schema_key prefix_keys[] = {
	{.name = "weight",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct tables_prefix, weight),
		.maximum = 65535,
		.fallback = "100",
		.meaning = "how much the router should not prefer this node; the lowest wins"},
	{.name = "prepend",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct tables_prefix, prepend),
		.maximum = 10,
		.fallback = "0",
		.meaning = "how often the export function prepends the local AS"},
	{.name = "communities",
		.kind = SCHEMA_SPECIAL,
		.meaning = "\"ASN:VALUE\", each at most 65535"},
	{.name = "large_communities",
		.kind = SCHEMA_SPECIAL,
		.meaning = "\"ASN:VALUE:VALUE\", each at most 4294967295"},
	{.name = "last_resort",
		.kind = SCHEMA_BOOLEAN,
		SCHEMA_FIELD(struct tables_prefix, last_resort),
		.fallback = "false",
		.meaning = "keep a second route at the worst weight below it"},
	{.name = "address_check",
		.kind = SCHEMA_BOOLEAN,
		SCHEMA_FIELD(struct tables_prefix, address_check),
		.fallback = "true",
		.meaning = "announce only while an address of this host lies in it"},
	SCHEMA_END,
};
const struct schema tables_prefix = {.size = sizeof(struct tables_prefix), .keys = prefix_keys};

static const struct schema_key restart_keys[] = {
	{.name = "unit",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config_restart, unit),
		.required = true,
		.minimum = 1,
		.form = schema_form_unit_name,
		.meaning = "the systemd unit to restart"},
	{.name = "delay",
		.kind = SCHEMA_DURATION,
		SCHEMA_FIELD(struct config_restart, delay_ms),
		.maximum = HOUR_MS,
		.fallback = "\"1s\"",
		.meaning = "how long a check has been down before"},
	{.name = "limit",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct config_restart, limit),
		.minimum = 1,
		.maximum = 1000,
		.fallback = "3",
		.meaning = "restarts within `per`, then none"},
	{.name = "per",
		.kind = SCHEMA_DURATION,
		SCHEMA_FIELD(struct config_restart, per_ms),
		.minimum = SECOND_MS,
		.maximum = 24 * HOUR_MS,
		.fallback = "\"10m\"",
		.meaning = "the time over which `limit` counts"},
	{.name = "checks",
		.kind = SCHEMA_STRING_LIST,
		SCHEMA_FIELD(struct config_restart, checks),
		.minimum = 1,
		.maximum = 256,
		.meaning = "the checks that trigger it; those of processes by default"},
	SCHEMA_END,
};
const struct schema tables_restart = {.size = sizeof(struct config_restart), .keys = restart_keys};

const char *const tables_hook_events[] = {"service", "prefix", "check", NULL};
static const struct schema_key hook_keys[] = {
	{.name = "command",
		.kind = SCHEMA_STRING_LIST,
		SCHEMA_FIELD(struct config_hook, command),
		.required = true,
		.minimum = 1,
		.maximum = 256,
		.meaning = "the absolute path of a program, and its arguments"},
	{.name = "on",
		.kind = SCHEMA_STRING_LIST,
		SCHEMA_FIELD(struct config_hook, on),
		.minimum = 1,
		.maximum = 3,
		.fallback = "[\"service\", \"prefix\"]",
		.meaning = "the events for which it is run"},
	{.name = "timeout",
		.kind = SCHEMA_DURATION,
		SCHEMA_FIELD(struct config_hook, timeout_ms),
		.minimum = 10,
		.maximum = 5 * MINUTE_MS,
		.fallback = "\"10s\"",
		.meaning = "how long one run may take; then it is killed"},
	SCHEMA_END,
};
const struct schema tables_hook = {.size = sizeof(struct config_hook), .keys = hook_keys};

static const struct schema_key service_keys[] = {
	{.name = "prefixes",
		.kind = SCHEMA_SPECIAL,
		.required = true,
		.meaning = "what is announced: PREFIX to a weight or an object"},
	{.name = "require",
		.kind = SCHEMA_SPECIAL,
		.meaning = "how many checks must be up: \"all\", \"any\" or a number"},
	{.name = "checks", .kind = SCHEMA_SPECIAL, .meaning = "NAME to a check"},
	{.name = "restart", .kind = SCHEMA_SPECIAL, .meaning = "restarting the service's unit"},
	{.name = "hooks",
		.kind = SCHEMA_SPECIAL,
		.meaning = "NAME to a command that is run when something changes"},
	{.name = "slow_start",
		.kind = SCHEMA_SPECIAL,
		.meaning = "coming back with a weight that goes to its own in steps"},
	{.name = "hold_down",
		.kind = SCHEMA_SPECIAL,
		.meaning = "staying away for a while after flapping"},
	{.name = "leave",
		.kind = SCHEMA_SPECIAL,
		.meaning = "being announced with GRACEFUL_SHUTDOWN for a while before leaving"},
	{.name = "floor",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct config_service, floor),
		.maximum = 64,
		.fallback = "0",
		.meaning = "unhealthy, a prefix leaves only when so many neighbours promise to "
			   "stay; 0: "
			   "it leaves"},
	{.name = "on_stop",
		.kind = SCHEMA_ENUM,
		SCHEMA_FIELD(struct config_service, on_stop),
		.words = on_stop_words,
		.fallback = "\"withdraw\"",
		.meaning = "what a stop of the agent does to the announcements"},
	{.name = "on_failure",
		.kind = SCHEMA_ENUM,
		SCHEMA_FIELD(struct config_service, on_failure),
		.words = on_failure_words,
		.fallback = "\"keep\"",
		.meaning = "what becomes of the announcements when systemd gives the agent up"},
	{.name = "address_check",
		.kind = SCHEMA_BOOLEAN,
		SCHEMA_FIELD(struct config_service, address_check),
		.fallback = "true",
		.meaning = "the default of its prefixes"},
	{.name = "manage_addresses",
		.kind = SCHEMA_SPECIAL,
		.meaning = "the agent adds its addresses to this host, and removes them"},
	SCHEMA_END,
};
const struct schema tables_service = {.size = sizeof(struct config_service), .keys = service_keys};

static const struct schema_key top_keys[] = {
	{.name = "node",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config, node),
		.minimum = 1,
		.form = tables_form_node,
		.meaning = "this server's name; the host name by default"},
	{.name = "bird",
		.kind = SCHEMA_OBJECT,
		SCHEMA_FIELD(struct config, bird),
		.object = &bird_schema,
		.meaning = "how to reach BIRD"},
	{.name = "status",
		.kind = SCHEMA_OBJECT,
		SCHEMA_FIELD(struct config, status),
		.object = &status_schema,
		.meaning = "where the agent answers"},
	{.name = "stop_grace",
		.kind = SCHEMA_DURATION,
		SCHEMA_FIELD(struct config, stop_grace_ms),
		.minimum = 0,
		.maximum = MINUTE_MS,
		.fallback = "\"500ms\"",
		.meaning = "how long a stop stays after its withdrawals are done"},
	{.name = "reload_guard",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct config, reload_guard),
		.maximum = 100,
		.fallback = "50",
		.meaning = "a reload that drops more than this percentage of what is announced is "
			   "refused"},
	{.name = "state",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config, state),
		.minimum = 1,
		.fallback = "\"/var/lib/redshank/state.json\"",
		.form = schema_form_absolute_path,
		.meaning = "the file that keeps what operators have said"},
	{.name = "defaults",
		.kind = SCHEMA_SPECIAL,
		.meaning = "the timing of checks that say nothing else"},
	{.name = "services",
		.kind = SCHEMA_SPECIAL,
		.required = true,
		.meaning = "NAME to a service"},
	{.name = "weights",
		.kind = SCHEMA_SPECIAL,
		.meaning = "NODE to PREFIX to weight, for the whole fleet"},
	{.name = "neighbours",
		.kind = SCHEMA_SPECIAL,
		.meaning = "the other agents of this site, and how to speak with them"},
	{.name = "shed", .kind = SCHEMA_SPECIAL, .meaning = "what an overloaded server does"},
	{.name = "load", .kind = SCHEMA_SPECIAL, .meaning = "how this server's load is measured"},
	SCHEMA_END,
};
const struct schema tables_top = {.size = sizeof(struct config), .keys = top_keys};
