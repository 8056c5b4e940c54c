/*
 * The options of `exabgp healthcheck`, as its argparse takes them: `--name value`, `--name=value`,
 * a long name cut to what is still unique, one short letter with its value behind it or in the next
 * word. Its --config holds the same long options, one a line; it is read as if its lines stood
 * before the command line, which therefore wins.
 *
 * One table says for each option what becomes of it: a field of struct options, a remark, or (what
 * is about exabgp's own log and process) nothing.
 */
#include "agent/ctl/import_exabgp.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "agent/ctl/text.h"

enum option_kind {
	OPTION_TEXT,	/* struct options_value at the offset */
	OPTION_IP,	/* one more of `ips` */
	OPTION_NUMBER,	/* int64_t */
	OPTION_SECONDS, /* uint64_t in milliseconds */
	OPTION_SET,	/* bool, becomes true; no value */
	OPTION_CLEAR,	/* bool, becomes false; no value */
	OPTION_TELL,	/* has a value; `text` is told */
	OPTION_TELL_FLAG,
	OPTION_MOOT, /* has a value; nothing to tell */
	OPTION_MOOT_FLAG,
};

#define FIELD(name) offsetof(struct options, name)
#define EXECUTE \
	"no equivalent: nothing is executed on a change of state; redshankctl events -f tells"
#define AS_PATH "no equivalent: `prepend` of a prefix is constant; the export filter may do more"

static const struct option_row {
	const char *name;
	char letter;
	enum option_kind kind;
	size_t offset;
	const char *text;
} rows[] = {
	{"silent", 's', OPTION_MOOT_FLAG, 0, NULL},
	{"syslog-facility", 0, OPTION_MOOT, 0, NULL},
	{"no-syslog", 0, OPTION_MOOT_FLAG, 0, NULL},
	{"debug", 'd', OPTION_MOOT_FLAG, 0, NULL},
	{"no-ack", 'a', OPTION_MOOT_FLAG, 0, NULL},
	{"sudo", 0, OPTION_MOOT_FLAG, 0, NULL},
	{"debounce", 0, OPTION_MOOT_FLAG, 0, NULL},
	{"pid", 'p', OPTION_MOOT, 0, NULL},
	{"name", 'n', OPTION_TEXT, FIELD(name), NULL},
	{"config", 'F', OPTION_TEXT, FIELD(config), NULL},
	{"user", 0, OPTION_TELL, 0, "no equivalent: checks run as the agent's user"},
	{"group", 0, OPTION_TELL, 0, "no equivalent: checks run as the agent's user"},
	{"interval", 'i', OPTION_SECONDS, FIELD(interval_ms), NULL},
	{"fast-interval", 'f', OPTION_SECONDS, FIELD(fast_ms), NULL},
	{"timeout", 't', OPTION_SECONDS, FIELD(timeout_ms), NULL},
	{"rise", 0, OPTION_NUMBER, FIELD(rise), NULL},
	{"fall", 0, OPTION_NUMBER, FIELD(fall), NULL},
	{"disable", 0, OPTION_TEXT, FIELD(disable), NULL},
	{"command", 'c', OPTION_TEXT, FIELD(command), NULL},
	{"cmd", 0, OPTION_TEXT, FIELD(command), NULL},
	{"next-hop", 'N', OPTION_TELL, 0, "no equivalent: the next hop is bird.conf's"},
	{"ip", 0, OPTION_IP, 0, NULL},
	{"ip-ifname", 0, OPTION_TELL, 0,
		"no equivalent: addresses must be there, on whatever interface"},
	{"local-preference", 0, OPTION_TELL, 0,
		"no equivalent: redshank_export_local_pref(TOP) in bird.conf sets TOP - weight"},
	{"deaggregate-networks", 0, OPTION_SET, FIELD(deaggregate), NULL},
	{"no-ip-setup", 0, OPTION_CLEAR, FIELD(ip_setup), NULL},
	{"dynamic-ip-setup", 0, OPTION_TELL_FLAG, 0,
		"no equivalent: addresses stay when the service is down"},
	{"label", 0, OPTION_TELL, 0, "no equivalent: prefixes are named one by one"},
	{"label-exact-match", 0, OPTION_MOOT_FLAG, 0, NULL},
	{"start-ip", 0, OPTION_NUMBER, FIELD(start_ip), NULL},
	{"up-metric", 0, OPTION_NUMBER, FIELD(up_metric), NULL},
	{"down-metric", 0, OPTION_NUMBER, FIELD(down_metric), NULL},
	{"disabled-metric", 0, OPTION_NUMBER, FIELD(disabled_metric), NULL},
	{"increase", 0, OPTION_NUMBER, FIELD(increase), NULL},
	{"community", 0, OPTION_TEXT, FIELD(community), NULL},
	{"extended-community", 0, OPTION_TELL, 0,
		"no equivalent: add it in bird.conf's export filter"},
	{"large-community", 0, OPTION_TEXT, FIELD(large_community), NULL},
	{"disabled-community", 0, OPTION_TELL, 0,
		"no equivalent: communities do not change with the state"},
	{"as-path", 0, OPTION_TELL, 0, AS_PATH},
	{"up-as-path", 0, OPTION_TELL, 0, AS_PATH},
	{"down-as-path", 0, OPTION_TELL, 0, AS_PATH},
	{"disabled-as-path", 0, OPTION_TELL, 0, AS_PATH},
	{"withdraw-on-down", 0, OPTION_SET, FIELD(withdraw_on_down), NULL},
	{"path-id", 0, OPTION_TELL, 0, "no equivalent"},
	{"neighbor", 0, OPTION_TELL, 0,
		"no equivalent: each session's export line in bird.conf decides what it gets"},
	{"execute", 0, OPTION_TELL, 0, EXECUTE},
	{"up-execute", 0, OPTION_TELL, 0, EXECUTE},
	{"down-execute", 0, OPTION_TELL, 0, EXECUTE},
	{"disabled-execute", 0, OPTION_TELL, 0, EXECUTE},
};

void options_init(struct options *o)
{
	*o = (struct options){.interval_ms = 5000,
		.fast_ms = 1000,
		.timeout_ms = 5000,
		.rise = 3,
		.fall = 3,
		.up_metric = 100,
		.down_metric = 1000,
		.disabled_metric = 500,
		.increase = 1,
		.ip_setup = true};
}

static void value_set(struct options_value *value, const char *text, struct import_where where)
{
	free(value->text);
	*value = (struct options_value){import_copy(text, strlen(text)), where};
}

static void values_free(struct options_value *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(values[i].text);
	free(values);
}

static void values_add(
	struct options_value **values, size_t *n, const char *text, struct import_where where)
{
	*values = import_grow(*values, *n, sizeof(**values));
	(*values)[*n] = (struct options_value){0};
	value_set(&(*values)[(*n)++], text, where);
}

void options_done(struct options *o)
{
	values_free(o->words, o->n_words);
	values_free(o->ips, o->n_ips);
	free(o->name.text);
	free(o->command.text);
	free(o->disable.text);
	free(o->community.text);
	free(o->large_community.text);
	free(o->config.text);
	*o = (struct options){0};
}

void options_add_word(struct options *o, const char *word, struct import_where where)
{
	values_add(&o->words, &o->n_words, word, where);
}

bool options_is_community(const char *text, int parts)
{
	unsigned long long most = parts == 2 ? 65535 : UINT32_MAX;

	for (int i = 0; i < parts; i++) {
		size_t n = strspn(text, "0123456789");

		if (n == 0 || n > 10 || strtoull(text, NULL, 10) > most)
			return false;
		if (text[n] != (i + 1 < parts ? ':' : '\0'))
			return false;
		text += n + 1;
	}
	return true;
}

/* --- one option --- */

static bool has_value(enum option_kind kind)
{
	return kind != OPTION_SET && kind != OPTION_CLEAR && kind != OPTION_TELL_FLAG &&
	       kind != OPTION_MOOT_FLAG;
}

/* By its whole name, or a start of it that no other has. NULL: unknown, or more than one. */
static const struct option_row *row_by_name(const char *name, size_t n)
{
	const struct option_row *found = NULL;

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		if (n == 0 || strncmp(rows[i].name, name, n) != 0)
			continue;
		if (rows[i].name[n] == '\0')
			return &rows[i];
		if (found)
			return NULL;
		found = &rows[i];
	}
	return found;
}

static const struct option_row *row_by_letter(char letter)
{
	for (size_t i = 0; letter && i < ELEMENTSOF(rows); i++)
		if (rows[i].letter == letter)
			return &rows[i];
	return NULL;
}

/* `o` and `row` say where it goes. False, and told, where it is not of the option's form. */
static bool option_take(struct import *im, struct options *o, const struct option_row *row,
	const char *text, struct import_where where)
{
	char *field = (char *)o + row->offset;

	switch (row->kind) {
	case OPTION_TEXT:
		value_set((struct options_value *)(void *)field, text, where);
		return true;
	case OPTION_IP:
		if (o->n_ips == OPTIONS_IPS_MAX)
			break;
		values_add(&o->ips, &o->n_ips, text, where);
		return true;
	case OPTION_NUMBER:
		if (!import_integer(text, (int64_t *)(void *)field))
			break;
		return true;
	case OPTION_SECONDS:
		if (!import_seconds(text, (uint64_t *)(void *)field))
			break;
		o->timeout_written |= row->offset == FIELD(timeout_ms);
		return true;
	case OPTION_SET:
	case OPTION_CLEAR:
		*(bool *)(void *)field = row->kind == OPTION_SET;
		return true;
	case OPTION_TELL:
		if (strcmp(row->name, "neighbor") == 0 && strcmp(text, "*") == 0)
			return true;
		import_remark(im, where, "--%s %.128s: %s", row->name, text, row->text);
		return true;
	case OPTION_TELL_FLAG:
		import_remark(im, where, "--%s: %s", row->name, row->text);
		return true;
	case OPTION_MOOT:
	case OPTION_MOOT_FLAG:
		return true;
	}
	import_error(im, where, "--%s: got \"%.128s\"; expected %s", row->name, text,
		row->kind == OPTION_IP	     ? "fewer addresses"
		: row->kind == OPTION_NUMBER ? "a whole number"
					     : "seconds");
	return false;
}

/* One word and, where it is an option that takes one, its value. The number of words that were
 * taken; 0, and told, where it is not understood. */
static size_t option_read(struct import *im, struct options *o, size_t at)
{
	const struct options_value *word = &o->words[at];
	const char *name = word->text, *value = NULL;
	const struct option_row *row = NULL;

	if (name[0] == '-' && name[1] == '-') {
		size_t n = strcspn(name += 2, "=");

		row = row_by_name(name, n);
		value = name[n] == '=' ? name + n + 1 : NULL;
	} else if (name[0] == '-' && strncmp(name, "-sF", 3) == 0) {
		row = row_by_name("syslog-facility", strlen("syslog-facility"));
	} else if (name[0] == '-') {
		row = row_by_letter(name[1]);
		value = name[1] && name[2] ? name + 2 : NULL;
	} else {
		import_error(im, word->where, "got \"%.128s\"; expected an option", name);
		return 0;
	}
	if (!row) {
		import_error(im, word->where,
			"got \"%.128s\"; expected an option of exabgp "
			"healthcheck",
			word->text);
		return 0;
	}
	if (!has_value(row->kind)) {
		if (value && name[0] != '-') {
			import_error(im, word->where, "--%s takes no value", row->name);
			return 0;
		}
		/* Letters of flags may stand together; nobody is known to write that. */
		return option_take(im, o, row, "", word->where) ? 1 : 0;
	}
	if (value)
		return option_take(im, o, row, value, word->where) ? 1 : 0;
	if (at + 1 == o->n_words) {
		import_error(im, word->where, "--%s: expected a value behind it", row->name);
		return 0;
	}
	return option_take(im, o, row, o->words[at + 1].text, word->where) ? 2 : 0;
}

/* --- --config --- */

bool options_add_file(struct import *im, struct options *o, struct import_file *file)
{
	struct import_where where = {.file = file->name};
	_cleanup_free_ char *copy = import_copy(file->text, file->length);

	for (char *line = copy, *next; line; line = next) {
		char *newline = strchr(line, '\n'), *end, *equals;
		_cleanup_free_ char *option = NULL;

		next = newline ? newline + 1 : NULL;
		if (newline)
			*newline = '\0';
		where.line++;
		line += strspn(line, " \t\r");
		for (end = line + strlen(line); end > line && isspace((unsigned char)end[-1]);
			end--)
			end[-1] = '\0';
		if (!*line || *line == '#')
			continue;
		if (o->n_words + 2 > OPTIONS_WORDS_MAX) {
			import_error(im, where, "more than %d options", OPTIONS_WORDS_MAX / 2);
			return false;
		}
		equals = strchr(line, '=');
		for (end = equals; end && end > line && isspace((unsigned char)end[-1]); end--)
			;
		if (end)
			*end = '\0';
		if (asprintf(&option, "--%s", line) < 0)
			(void)import_json(NULL);
		options_add_word(o, option, where);
		if (equals)
			options_add_word(o, equals + 1 + strspn(equals + 1, " \t"), where);
	}
	return true;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The file that --config names: one that was given, too, or the path itself, or one beside the file
 * that names it. NULL, and told. */
static struct import_file *config_find(
	struct import *im, const struct options_value *config, const struct import_file *from)
{
	const char *base = base_of(config->text);
	_cleanup_free_ char *beside = NULL;

	for (size_t i = 0; i < im->n_files; i++)
		if (im->files[i] != from && strcmp(base_of(im->files[i]->name), base) == 0)
			return im->files[i];
	if (!im->sealed && access(config->text, F_OK) == 0)
		return import_read(im, config->text, config->where);
	if (asprintf(&beside, "%.*s%s", (int)(base_of(from->name) - from->name), from->name, base) <
		0)
		(void)import_json(NULL);
	if (!im->sealed && access(beside, F_OK) == 0)
		return import_read(im, beside, config->where);
	import_error(im, config->where,
		"--config %.256s: no such file; name its copy on the command line, too",
		config->text);
	return NULL;
}

/* --config's words before the others. False, and told. */
static bool config_insert(struct import *im, struct options *o, const struct import_file *from)
{
	struct options_value config = {0}, *own = o->words;
	size_t n_own = o->n_words;
	struct import_file *file;

	for (size_t i = 0; i < o->n_words; i++) {
		const char *text = o->words[i].text;

		if (strncmp(text, "--config=", 9) == 0)
			config = (struct options_value){o->words[i].text + 9, o->words[i].where};
		else if ((strcmp(text, "--config") == 0 || strcmp(text, "-F") == 0) &&
			 i + 1 < o->n_words)
			config = (struct options_value){o->words[i + 1].text, o->words[i].where};
	}
	if (!config.text)
		return true;
	file = config_find(im, &config, from);
	if (!file)
		return false;
	file->used = true;
	o->words = NULL;
	o->n_words = 0;
	if (!options_add_file(im, o, file)) {
		values_free(own, n_own);
		return false;
	}
	for (size_t i = 0; i < n_own; i++)
		options_add_word(o, own[i].text, own[i].where);
	values_free(own, n_own);
	return true;
}

bool options_parse(struct import *im, struct options *o, const struct import_file *file)
{
	if (o->n_words > OPTIONS_WORDS_MAX) {
		import_error(im, o->words[0].where, "more than %d words", OPTIONS_WORDS_MAX);
		return false;
	}
	if (!config_insert(im, o, file))
		return false;
	for (size_t at = 0, taken; at < o->n_words; at += taken) {
		taken = option_read(im, o, at);
		if (taken == 0)
			return false; /* what follows would only be misread */
	}
	if (o->interval_ms == 0) {
		import_remark(im, (struct import_where){file->name, 0},
			"--interval 0 announces once and ends; a check every 5s takes its place");
		o->interval_ms = 5000;
	}
	if (o->timeout_ms == 0) {
		import_remark(im, (struct import_where){file->name, 0},
			"--timeout 0 waits for ever; here a run of the check ends with its "
			"interval");
		o->timeout_ms = o->interval_ms;
	}
	return true;
}
