/*
 * The section `neighbours`: its table, and what only the whole of it can tell. Where TLS is off,
 * nobody is asked who he is, so that is allowed on loopback alone and said in so many words.
 *
 * This node may stand among the members: one section, or one file, then serves the whole site.
 */
#include <string.h>
#include <sys/stat.h>

#include "agent/config/load.h"
#include "agent/config/settings.h"
#include "agent/config/tables.h"

#define SECOND_MS 1000
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)

static const struct schema_key neighbours_keys[] = {
	{.name = "listen",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config_neighbours, listen),
		.required = true,
		.minimum = 1,
		.form = tables_form_listen,
		.meaning = "where this agent answers its neighbours, ADDRESS:PORT"},
	{.name = "site",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config_neighbours, site),
		.required = true,
		.minimum = 1,
		.form = tables_form_name,
		.meaning = "what this site is called; reports from another count for nothing"},
	{.name = "certificate",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config_neighbours, certificate),
		.minimum = 1,
		.form = schema_form_absolute_path,
		.meaning = "this agent's certificate, PEM; it names `node`"},
	{.name = "key",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config_neighbours, key),
		.minimum = 1,
		.form = schema_form_absolute_path,
		.meaning = "its private key, PEM"},
	{.name = "ca",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config_neighbours, ca),
		.minimum = 1,
		.form = schema_form_absolute_path,
		.meaning = "the authority that signs neighbours' certificates, PEM"},
	{.name = "members",
		.kind = SCHEMA_STRING_MAP,
		SCHEMA_FIELD(struct config_neighbours, members),
		.maximum = CONFIG_MEMBERS_MAX,
		.form = tables_form_member,
		.meaning = "the neighbours: their `node` to ADDRESS:PORT, or \"bird\""},
	{.name = "file",
		.kind = SCHEMA_STRING,
		SCHEMA_FIELD(struct config_neighbours, file),
		.minimum = 1,
		.form = schema_form_absolute_path,
		.meaning = "a file of more members, watched"},
	{.name = "plain",
		.kind = SCHEMA_BOOLEAN,
		SCHEMA_FIELD(struct config_neighbours, plain),
		.fallback = "false",
		.meaning = "HTTP without TLS, on loopback alone"},
	{.name = "stale_after",
		.kind = SCHEMA_DURATION,
		SCHEMA_FIELD(struct config_neighbours, stale_after_ms),
		.minimum = SECOND_MS,
		.maximum = MINUTE_MS,
		.fallback = "\"3s\"",
		.meaning = "a report older than this says nothing"},
	{.name = "forget_after",
		.kind = SCHEMA_DURATION,
		SCHEMA_FIELD(struct config_neighbours, forget_after_ms),
		.minimum = 10 * SECOND_MS,
		.maximum = 24 * HOUR_MS,
		.fallback = "\"5m\"",
		.meaning = "a neighbour silent for this long announces nothing"},
	SCHEMA_END,
};
const struct schema tables_neighbours = {
	.size = sizeof(struct config_neighbours), .keys = neighbours_keys};

/* Is the address of "ADDRESS:PORT", of the right form, this host's own? */
static bool is_loopback(const char *text)
{
	return strncmp(text, "127.", 4) == 0 || strncmp(text, "[::1]:", 6) == 0;
}

static void report_pem(struct load *l, const struct path *parent, const char *key,
	const char *value, json_t *object, bool plain)
{
	const struct path path = {.parent = parent, .key = key};

	if (plain && value)
		report_value(&l->report, &path, json_object_get(object, key),
			"nothing: `plain` speaks without TLS; take one of the two away");
	else if (!plain && !value && !json_object_get(object, key))
		report_got(&l->report, &path, "nothing",
			"the path of a PEM file: neighbours prove to each other who they are "
			"(redshank.json(5))");
}

static void check_members(
	struct load *l, const struct path *parent, const struct config_neighbours *n)
{
	const struct path members = {.parent = parent, .key = "members"};
	char shown[VALUE_TEXT_MAX];

	for (size_t i = 0; i + 1 < n->members.n; i += 2) {
		const struct path path = {.parent = &members, .key = n->members.items[i]};
		const char *address = n->members.items[i + 1];

		if (tables_form_node(path.key))
			report_got(&l->report, &path, text_format(path.key, shown),
				"the name of a neighbour, as its own configuration has it in "
				"`node`");
		if (n->plain && !is_loopback(address))
			report_got(&l->report, &path, text_format(address, shown),
				"a loopback address: without TLS there are no others");
		for (size_t k = 0; k < i && strcmp(address, "bird") != 0; k += 2)
			if (strcmp(n->members.items[k + 1], address) == 0)
				report_got(&l->report, &path, text_format(address, shown),
					"each address once: it is also %s's", n->members.items[k]);
	}
}

/* Whoever reads the key can speak as this node. One that is not there yet is the agent's matter. */
static void warn_key(struct load *l, const struct path *parent, const char *key)
{
	const struct path path = {.parent = parent, .key = "key"};
	struct stat st;

	if (key && stat(key, &st) == 0 && st.st_mode & (S_IROTH | S_IWOTH))
		report_warning(&l->report, &path,
			"every user of this host may %s %s (mode %04o); expected a mode such as "
			"0640",
			st.st_mode & S_IROTH ? "read" : "change", key,
			(unsigned)st.st_mode & 07777);
}

void neighbours_load(struct load *l, json_t *value)
{
	const struct path path = {.key = "neighbours"}, listen = {.parent = &path, .key = "listen"},
			  forget = {.parent = &path, .key = "forget_after"};
	struct config_neighbours *n;

	if (!value || !settings_is_object(&l->report, &path, value, "an object"))
		return;
	n = l->config->neighbours = calloc(1, sizeof(*n));
	if (!n) {
		(void)report_no_memory(&l->report);
		return;
	}
	settings_check_keys(&l->report, &path, value, &tables_neighbours, NULL);
	settings_load(&l->report, &path, &tables_neighbours, value, NULL, n);
	report_pem(l, &path, "certificate", n->certificate, value, n->plain);
	report_pem(l, &path, "key", n->key, value, n->plain);
	report_pem(l, &path, "ca", n->ca, value, n->plain);
	warn_key(l, &path, n->key);
	if (n->plain && n->listen && !is_loopback(n->listen))
		report_value(&l->report, &listen, json_object_get(value, "listen"),
			"a loopback address: without TLS there are no others");
	check_members(l, &path, n);
	if (n->forget_after_ms < n->stale_after_ms)
		report_value(&l->report, &forget, json_object_get(value, "forget_after"),
			"at least `stale_after`");
}
