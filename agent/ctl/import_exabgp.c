/*
 * exabgp's healthcheck (github.com/Exa-Networks/exabgp, application/healthcheck.py): the `process`
 * blocks of exabgp.conf that run it, and the files that its --config names, which may also be given
 * by themselves.
 *
 * Of exabgp.conf only words, blocks and ends of statements matter here: neighbours are BIRD's
 * business now, and are told. A healthcheck is one service; its options are read as Python's
 * argparse reads them (import_options.c), those of --config first and those of the line over them.
 *
 * The one thing that works otherwise: exabgp goes on announcing a failed service, at a worse
 * metric, unless it has --withdraw-on-down.
 */
#include "agent/ctl/import_exabgp.h"

#include <ctype.h>
#include <string.h>

#include "agent/ctl/text.h"

#define TOKENS_MAX 100000
#define DEAGGREGATE_MAX 256 /* addresses of one --ip */

/* --- words --- */

enum token_kind {
	TOKEN_WORD,
	TOKEN_END, /* ; */
	TOKEN_OPEN,
	TOKEN_CLOSE,
};

struct token {
	enum token_kind kind;
	char *word; /* owned; NULL but for words */
	unsigned line;
};

struct tokens {
	struct token *items;
	size_t n;
};

static void tokens_done(struct tokens *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->items[i].word);
	free(t->items);
}

/* It owns the word, and frees it. */
/* NOLINTNEXTLINE(readability-non-const-parameter) */
static void tokens_add(struct tokens *t, enum token_kind kind, char *word, unsigned line)
{
	t->items = import_grow(t->items, t->n, sizeof(*t->items));
	t->items[t->n++] = (struct token){kind, word, line};
}

static char unescaped(char c)
{
	return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
}

/* A word, which may be quoted in parts. The position behind it; NULL where a quote does not end. */
static const char *word_read(const char *c, char *word, size_t *ret_length, unsigned *line)
{
	size_t n = 0;
	char quote = '\0';

	for (; *c; c++) {
		if (!quote && (isspace((unsigned char)*c) || strchr(";{}#", *c)))
			break;
		if (*c == '\n')
			(*line)++;
		if (*c == '\\' && c[1]) {
			*line += c[1] == '\n';
			word[n++] = unescaped(*++c);
		} else if (quote ? *c == quote : *c == '"' || *c == '\'')
			quote = quote ? '\0' : *c;
		else
			word[n++] = *c;
	}
	*ret_length = n;
	return quote ? NULL : c;
}

static enum token_kind punctuation(char c)
{
	return c == ';' ? TOKEN_END : c == '{' ? TOKEN_OPEN : TOKEN_CLOSE;
}

/* False, and told, where the file is not understood. */
static bool tokens_read(struct import *im, const struct import_file *file, struct tokens *t)
{
	_cleanup_free_ char *word = text_allocate(file->length + 1);
	struct import_where where = {.file = file->name, .line = 1};
	const char *c = file->text;

	while (*c) {
		unsigned line = where.line;
		size_t n;

		if (t->n >= TOKENS_MAX) {
			import_error(im, where, "more than %d words", TOKENS_MAX);
			return false;
		}
		if (*c == '#') {
			c += strcspn(c, "\n");
		} else if (isspace((unsigned char)*c)) {
			where.line += *c == '\n';
			c++;
		} else if (strchr(";{}", *c)) {
			tokens_add(t, punctuation(*c), NULL, line);
			c++;
		} else {
			c = word_read(c, word, &n, &where.line);
			if (!c) {
				import_error(im, (struct import_where){file->name, line},
					"a quote that does not end");
				return false;
			}
			tokens_add(t, TOKEN_WORD, import_copy(word, n), line);
		}
	}
	return true;
}

/* --- a healthcheck as a service --- */

static json_t *communities_of(struct import *im, const struct options_value *value, int parts)
{
	json_t *list = import_json(json_array());
	char *save = NULL;
	_cleanup_free_ char *copy = import_copy(value->text, strlen(value->text));
	static const struct {
		const char *name, *number;
	} known[] = {{"no-export", "65535:65281"}, {"no-advertise", "65535:65282"},
		{"no-export-subconfed", "65535:65283"}, {"no-peer", "65535:65284"},
		{"nopeer", "65535:65284"}, {"blackhole", "65535:666"},
		{"graceful-shutdown", "65535:0"}};

	for (char *word = strtok_r(copy, " \t[],", &save); word;
		word = strtok_r(NULL, " \t[],", &save)) {
		const char *text = word;

		for (size_t i = 0; parts == 2 && i < ELEMENTSOF(known); i++)
			if (strcasecmp(word, known[i].name) == 0)
				text = known[i].number;
		if (!options_is_community(text, parts))
			import_remark(im, value->where,
				"community %.64s: no equivalent; communities are written %s, each "
				"number at most %s",
				word, parts == 2 ? "ASN:VALUE" : "ASN:VALUE:VALUE",
				parts == 2 ? "65535" : "4294967295");
		else if (json_array_size(list) >= 64)
			import_remark_once(im, value->where,
				"more than 64 communities of a prefix; the rest is left out");
		else
			import_append(list, json_string(text));
	}
	return list;
}

static void set_communities(struct import *im, json_t *more, const char *key,
	const struct options_value *value, int parts)
{
	json_t *list;

	if (!value->text)
		return;
	list = communities_of(im, value, parts);
	if (json_array_size(list) > 0)
		import_set(more, key, list);
	else
		json_decref(list);
}

/* The addresses of a short prefix, one by one, for --deaggregate-networks. False: no such prefix,
 * or one of too many addresses, which is then announced whole. */
static bool deaggregate(struct import *im, const struct options_value *ip, json_t *addresses)
{
	struct prefix p;
	unsigned free_bits;

	if (!strchr(ip->text, '/') || prefix_parse(ip->text, &p, NULL) < 0)
		return false;
	free_bits = (p.address.family == ADDRESS_FAMILY_IPV4 ? 32U : 128U) - p.length;
	if (free_bits == 0)
		return false;
	if (free_bits > 8) {
		import_error(im, ip->where,
			"--deaggregate-networks of %.64s: more than %d addresses", ip->text,
			DEAGGREGATE_MAX);
		return false;
	}
	for (unsigned i = 0; i < 1U << free_bits; i++) {
		struct address a = p.address;
		char text[ADDRESS_TEXT_MAX];

		a.bytes[a.family == ADDRESS_FAMILY_IPV4 ? 3 : 15] |= (uint8_t)i;
		import_append(addresses, json_string(address_format(&a, text)));
	}
	return true;
}

/* Prefixes in the order in which the metric grows. */
static void add_prefixes(struct import *im, const struct options *o, json_t *service, json_t *more)
{
	json_t *addresses = import_json(json_array()), *place = import_json(json_array()), *address;
	size_t n, i;
	int64_t start;

	for (i = 0; i < o->n_ips; i++) {
		if (!o->deaggregate || !deaggregate(im, &o->ips[i], addresses))
			import_append(addresses, json_string(o->ips[i].text));
		while (json_array_size(place) < json_array_size(addresses))
			import_append(place, json_integer((json_int_t)i));
	}
	n = json_array_size(addresses);
	/* deque.rotate(-start_ip) */
	start = n > 0 ? ((o->start_ip % (int64_t)n) + (int64_t)n) % (int64_t)n : 0;
	for (i = 0; i < n; i++) {
		size_t at = (i + (size_t)start) % n;
		const struct options_value *ip =
			&o->ips[json_integer_value(json_array_get(place, at))];

		address = json_array_get(addresses, at);
		if (!import_prefix(im, ip->where, service, json_string_value(address),
			    IMPORT_HOST_BITS_REFUSED, o->up_metric + (int64_t)i * o->increase,
			    more))
			break;
	}
	json_decref(addresses);
	json_decref(place);
}

static void remark_metrics(struct import *im, const struct options *o, struct import_where where)
{
	if (!o->withdraw_on_down)
		import_remark(im, where,
			"no --withdraw-on-down: when the service fails, exabgp goes on announcing "
			"it, "
			"with metric %lld and up; here it is withdrawn, and other servers take "
			"over. "
			"last_resort is set: its second route, at weight %d and with "
			"GRACEFUL_SHUTDOWN, stays for as long as this server is demoted, which a "
			"failed check alone does not do",
			(long long)o->down_metric, IMPORT_WEIGHT_MAX);
	import_remark_once(im, where,
		"metrics became weights: they are MED at the router only where bird.conf's export "
		"line calls redshank_export_med()");
}

/* exabgp does not run the command while FILE exists, and takes the service for disabled. */
static void add_disable_file(struct import *im, const struct options *o, json_t *service)
{
	json_t *command;
	struct import_timing timing = {.interval_ms = o->interval_ms,
		.fast_interval_ms = o->fast_ms < o->interval_ms ? o->fast_ms : o->interval_ms,
		.timeout_ms = o->interval_ms < 1000 ? o->interval_ms : 1000,
		.rise = o->rise,
		.fall = 1};

	if (!o->disable.text)
		return;
	command = import_json(json_array());
	import_append(command, json_string("/usr/bin/test"));
	import_append(command, json_string("!"));
	import_append(command, json_string("-e"));
	import_append(command, json_string(o->disable.text));
	import_check(im, o->disable.where, service, "enabled",
		import_program(im, o->disable.where, command), timing);
	if (o->disable.text[0] != '/')
		import_remark(im, o->disable.where, "--disable %.128s is looked for in /",
			o->disable.text);
	if (o->withdraw_on_down)
		import_remark(im, o->disable.where,
			"--disable became the check \"enabled\", which fails while %.128s exists: "
			"the "
			"service is withdrawn then, as before; redshankctl drain does it with a "
			"reason and an end",
			o->disable.text);
	else
		import_remark(im, o->disable.where,
			"--disable became the check \"enabled\", which fails while %.128s exists: "
			"the "
			"service is withdrawn then, and not announced with metric %lld",
			o->disable.text, (long long)o->disabled_metric);
}

static void add_command(
	struct import *im, const struct options *o, json_t *service, struct import_where where)
{
	json_t *command;
	struct import_timing timing = {.interval_ms = o->interval_ms,
		.fast_interval_ms = o->fast_ms,
		.timeout_ms = o->timeout_ms,
		.timeout_written = o->timeout_written,
		.rise = o->rise,
		.fall = o->fall};

	if (!o->command.text) {
		import_remark(im, where, "no --command: no check, always announced%s",
			o->disable.text ? ", but while the --disable file exists" : "");
		return;
	}
	command = import_json(json_array());
	import_append(command, json_string("/bin/sh"));
	import_append(command, json_string("-c"));
	import_append(command, json_string(o->command.text));
	import_check(im, o->command.where, service, "command",
		import_program(im, o->command.where, command), timing);
}

static void add_service(
	struct import *im, const struct options *o, const char *fallback, struct import_where where)
{
	json_t *service, *more;

	if (o->n_ips == 0) {
		import_error(im, where,
			"no --ip: exabgp takes the addresses that it finds on lo; name them with "
			"--ip "
			"to convert this");
		return;
	}
	service = import_service(im, where, o->name.text ? o->name.text : fallback);
	if (!service)
		return;
	more = import_json(json_object());
	set_communities(im, more, "communities", &o->community, 2);
	set_communities(im, more, "large_communities", &o->large_community, 3);
	if (!o->withdraw_on_down)
		import_set(more, "last_resort", json_true());
	add_prefixes(im, o, service, more);
	json_decref(more);
	add_command(im, o, service, where);
	add_disable_file(im, o, service);
	remark_metrics(im, o, where);
	if (o->ip_setup)
		import_remark(im, where,
			"exabgp puts the addresses on lo itself; here they must be there "
			"(ip address add), and a prefix without one is not announced");
}

/* --- exabgp.conf --- */

/* The words of a `run` that are the healthcheck's own; NULL where it runs something else. */
static const struct token *healthcheck_of(const struct token *words, size_t n)
{
	static const char *const programs[] = {"healthcheck", "healthcheck.py",
		"exabgp-healthcheck", "exabgp.application.healthcheck"};

	for (size_t i = 0; i < n && i < 6; i++) {
		const char *slash = strrchr(words[i].word, '/');
		const char *base = slash ? slash + 1 : words[i].word;

		for (size_t j = 0; j < ELEMENTSOF(programs); j++)
			if (strcmp(base, programs[j]) == 0)
				return &words[i + 1];
	}
	return NULL;
}

static void convert_run(struct import *im, const struct import_file *file, const char *process,
	const struct token *words, size_t n)
{
	struct import_where where = {file->name, words[0].line};
	const struct token *first = healthcheck_of(words + 1, n - 1);
	_cleanup_(options_done) struct options o = {0};

	if (!first) {
		import_remark(im, where,
			"process %.64s runs no `exabgp healthcheck`; left out: what it announces "
			"must "
			"be a service with a check of its own",
			process);
		return;
	}
	options_init(&o);
	for (const struct token *word = first; word < words + n; word++)
		options_add_word(&o, word->word, (struct import_where){file->name, word->line});
	if (options_parse(im, &o, file))
		add_service(im, &o, process, where);
}

static void convert_statement(struct import *im, const struct import_file *file,
	const char *process, const struct token *words, size_t n)
{
	struct import_where where;

	if (n == 0)
		return;
	where = (struct import_where){file->name, words[0].line};
	if (process && strcmp(words[0].word, "run") == 0)
		convert_run(im, file, process, words, n);
	else if (strcmp(words[0].word, "route") == 0 || strcmp(words[0].word, "announce") == 0)
		import_remark(im, where, "%.32s %.64s: announced without any check; left out",
			words[0].word, n > 1 ? words[1].word : "");
}

/* The head of a block. The process's name, or NULL. */
static const char *convert_head(
	struct import *im, const struct import_file *file, const struct token *words, size_t n)
{
	struct import_where where;

	if (n == 0)
		return NULL;
	where = (struct import_where){file->name, words[0].line};
	if (strcmp(words[0].word, "process") == 0)
		return n > 1 ? words[1].word : "healthcheck";
	if (strcmp(words[0].word, "neighbor") == 0)
		import_remark(im, where,
			"neighbor %.64s: sessions are BIRD's: bird.conf needs a `protocol bgp` for "
			"it, with an export line that calls redshank_export_med()",
			n > 1 ? words[1].word : "");
	else if (strcmp(words[0].word, "template") == 0 || strcmp(words[0].word, "group") == 0)
		import_remark(im, where, "%.32s: sessions are BIRD's; left out", words[0].word);
	return NULL;
}

static void convert_file(struct import *im, const struct import_file *file)
{
	_cleanup_(tokens_done) struct tokens t = {0};
	const char *process = NULL;
	size_t depth = 0, process_depth = 0, first = 0; /* the depth inside the process's block */
	struct import_where where = {.file = file->name};

	if (!tokens_read(im, file, &t))
		return;
	for (size_t i = 0; i < t.n; i++) {
		const char *inner = NULL;

		where.line = t.items[i].line;
		switch (t.items[i].kind) {
		case TOKEN_WORD:
			continue;
		case TOKEN_OPEN:
			inner = convert_head(im, file, t.items + first, i - first);
			depth++;
			if (inner) {
				process = inner;
				process_depth = depth;
			}
			break;
		case TOKEN_END:
			convert_statement(im, file, depth == process_depth ? process : NULL,
				t.items + first, i - first);
			break;
		case TOKEN_CLOSE:
			if (i > first || depth == 0) {
				import_error(im, where, "got \"}\"; expected %s",
					depth == 0 ? "nothing to close" : "\";\" before it");
				return;
			}
			if (depth-- == process_depth)
				process = NULL;
			break;
		}
		first = i + 1;
	}
	if (first < t.n || depth > 0)
		import_error(im, where, "the file ends inside a %s",
			first < t.n ? "statement (is there a \";\" behind it?)" : "block");
}

/* Options one a line, as --config has them: no block, and so no brace. */
static bool is_options_file(const struct import_file *file)
{
	for (const char *line = file->text; line; line = strchr(line, '\n')) {
		line += strspn(line, " \t\r\n");
		if (*line == '#')
			continue;
		if (!*line)
			break;
		return strncmp(line, "process", strlen("process")) != 0 &&
		       strncmp(line, "neighbor", strlen("neighbor")) != 0 &&
		       strncmp(line, "template", strlen("template")) != 0 &&
		       strncmp(line, "group", strlen("group")) != 0;
	}
	return false;
}

void import_exabgp(struct import *im)
{
	size_t n = im->n_files; /* --config adds to them */

	for (size_t i = 0; i < n; i++)
		if (!is_options_file(im->files[i]))
			convert_file(im, im->files[i]);
	for (size_t i = 0; i < n; i++) {
		_cleanup_(options_done) struct options o = {0};
		struct import_file *file = im->files[i];
		const char *slash = strrchr(file->name, '/');

		if (file->used || !is_options_file(file))
			continue;
		options_init(&o);
		if (options_add_file(im, &o, file) && options_parse(im, &o, file))
			add_service(im, &o, slash ? slash + 1 : file->name,
				(struct import_where){file->name, 1});
	}
}
