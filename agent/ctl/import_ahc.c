/*
 * anycast-healthchecker (github.com/unixsurfer/anycast_healthchecker): INI files as Python's
 * configparser reads them. [DEFAULT] is inherited by every section of every file, [daemon] is about
 * the program itself, every other section is a service with one prefix and one command.
 *
 * What bites when such files are read by eye, and is done here: an option that a section does not
 * name comes from [DEFAULT] and then from the program (defaults below); `check_disabled` is true
 * unless somebody says otherwise, so that a section may look like a check and never run one; `%` is
 * the start of an interpolation; a line that is indented continues the one above; the command is
 * split as a shell splits, but no shell runs it.
 */
#include "agent/ctl/import_parts.h"

#include <ctype.h>
#include <string.h>

#include "agent/ctl/text.h"

#define SECTIONS_MAX 4200 /* somewhat more than services */
#define OPTIONS_MAX 128	  /* of a section */
#define VALUE_MAX 65536
#define INTERPOLATION_DEPTH_MAX 10 /* configparser.MAX_INTERPOLATION_DEPTH */
#define INTERPOLATIONS_MAX 1000	   /* in one value, all depths together */

struct option {
	char *name; /* lower case */
	char *value;
	size_t length; /* of the value */
	struct import_where where;
	const struct import_file *file; /* that set it, to see it set twice */
};

struct section {
	char *name;
	struct import_where where;
	const struct import_file *file;
	struct option *options;
	size_t n_options;
};

struct ini {
	struct import *im;
	struct section *sections; /* the first is DEFAULT */
	size_t n_sections;
};

static const struct {
	const char *name, *value;
} defaults[] = {
	{"interface", "lo"},
	{"check_interval", "10"},
	{"check_timeout", "2"},
	{"check_rise", "2"},
	{"check_fail", "2"},
	{"check_disabled", "true"},
	{"on_disabled", "withdraw"},
	{"ip_check_disabled", "false"},
};

/* --- the reader --- */

static void ini_done(struct ini *ini)
{
	for (size_t i = 0; i < ini->n_sections; i++) {
		struct section *s = &ini->sections[i];

		for (size_t j = 0; j < s->n_options; j++) {
			free(s->options[j].name);
			free(s->options[j].value);
		}
		free(s->options);
		free(s->name);
	}
	free(ini->sections);
}

/* The section of that name, made where there is none. NULL, and told, past the limit, or where this
 * file has it already. */
static struct section *section_enter(struct ini *ini, const struct import_file *file,
	struct import_where where, const char *name, size_t n)
{
	struct section *s;

	for (size_t i = 0; i < ini->n_sections; i++) {
		s = &ini->sections[i];
		if (strlen(s->name) != n || memcmp(s->name, name, n) != 0)
			continue;
		if (s->file == file && i > 0) {
			import_error(ini->im, where, "section [%.128s] stands in this file twice",
				s->name);
			return NULL;
		}
		s->file = file;
		return s;
	}
	if (ini->n_sections == SECTIONS_MAX) {
		import_error(ini->im, where, "more than %d sections", SECTIONS_MAX);
		return NULL;
	}
	ini->sections = import_grow(ini->sections, ini->n_sections, sizeof(*s));
	s = &ini->sections[ini->n_sections++];
	*s = (struct section){.name = import_copy(name, n), .where = where, .file = file};
	return s;
}

static struct option *option_find(const struct section *s, const char *name)
{
	for (size_t i = 0; i < s->n_options; i++)
		if (strcmp(s->options[i].name, name) == 0)
			return &s->options[i];
	return NULL;
}

static void value_append(struct option *o, const char *text, size_t n, bool new_line)
{
	char *grown = text_allocate(o->length + n + 2);

	if (o->length > 0)
		memcpy(grown, o->value, o->length);
	free(o->value);
	o->value = grown;
	if (new_line)
		o->value[o->length++] = '\n';
	memcpy(o->value + o->length, text, n);
	o->length += n;
	o->value[o->length] = '\0';
}

static size_t trimmed(const char *text, size_t n)
{
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		n--;
	return n;
}

/* One line `name = value` or `name: value`. NULL, and told, where it is none. */
static struct option *option_read(struct ini *ini, struct section *s,
	const struct import_file *file, struct import_where where, const char *line, size_t n)
{
	size_t delimiter = 0, name_length;
	struct option *o;
	char *name;

	while (delimiter < n && line[delimiter] != '=' && line[delimiter] != ':')
		delimiter++;
	name_length = trimmed(line, delimiter);
	if (delimiter == n || name_length == 0) {
		import_error(ini->im, where, "got \"%.*s\"; expected OPTION = VALUE", (int)n, line);
		return NULL;
	}
	name = import_copy(line, name_length);
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	o = option_find(s, name);
	if (o && o->file == file) {
		import_error(ini->im, where, "%.128s is set twice in [%.128s]", name, s->name);
		free(name);
		return NULL;
	}
	if (!o && s->n_options == OPTIONS_MAX) {
		import_error(
			ini->im, where, "more than %d options in [%.128s]", OPTIONS_MAX, s->name);
		free(name);
		return NULL;
	}
	if (!o) {
		s->options = import_grow(s->options, s->n_options, sizeof(*o));
		o = &s->options[s->n_options++];
		*o = (struct option){.name = name};
	} else {
		free(name);
	}
	o->where = where;
	o->file = file;
	o->length = 0;
	line += delimiter + 1;
	n -= delimiter + 1;
	while (n > 0 && isspace((unsigned char)*line))
		line++, n--;
	value_append(o, line, trimmed(line, n), false);
	return o;
}

struct reader {
	struct section *section; /* NULL before the first, and after one that was refused */
	struct option *option;	 /* that an indented line continues */
	size_t indent;
	bool skipping; /* a section that was refused */
};

static void read_line(struct ini *ini, const struct import_file *file, struct reader *r,
	struct import_where where, const char *line, size_t n)
{
	size_t indent = 0;
	const char *end;

	while (indent < n && isspace((unsigned char)line[indent]))
		indent++;
	line += indent;
	n = trimmed(line, n - indent);
	if (n == 0 || line[0] == '#' || line[0] == ';')
		return;
	if (r->option && indent > r->indent) {
		if (r->option->length + n < VALUE_MAX)
			value_append(r->option, line, n, true);
		else
			import_error(ini->im, where, "a value of more than %d bytes", VALUE_MAX);
		return;
	}
	r->indent = indent;
	end = memrchr(line, ']', n);
	if (line[0] == '[' && end && end > line + 1) {
		r->section = section_enter(ini, file, where, line + 1, (size_t)(end - line) - 1);
		r->skipping = !r->section;
		r->option = NULL;
	} else if (r->section) {
		r->option = option_read(ini, r->section, file, where, line, n);
	} else if (!r->skipping) {
		import_error(ini->im, where, "got \"%.*s\"; expected a section, such as [DEFAULT]",
			(int)(n < 128 ? n : 128), line);
		r->skipping = true;
	}
}

static void read_file(struct ini *ini, const struct import_file *file)
{
	const char *line = file->text, *end = file->text + file->length;
	struct import_where where = {.file = file->name};
	struct reader reader = {0};

	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *stop = newline ? newline : end;

		where.line++;
		read_line(ini, file, &reader, where, line, (size_t)(stop - line));
		line = stop + 1;
	}
}

/* --- values --- */

/* A value as it stands, from the section, [DEFAULT] or the program. `ret_where` is untouched for
 * the last. NULL: there is none. */
static const char *raw_value(const struct ini *ini, const struct section *s, const char *name,
	struct import_where *ret_where)
{
	const struct option *o = option_find(s, name);

	if (!o)
		o = option_find(&ini->sections[0], name);
	if (o) {
		*ret_where = o->where;
		return o->value;
	}
	for (size_t i = 0; i < ELEMENTSOF(defaults); i++)
		if (strcmp(defaults[i].name, name) == 0)
			return defaults[i].value;
	return NULL;
}

struct expansion {
	const struct ini *ini;
	const struct section *section;
	char *text; /* what has come out so far */
	size_t length;
	unsigned n;
};

/* The text of an error, or NULL. */
static const char *expand(struct expansion *e, const char *value, unsigned depth)
{
	if (depth > INTERPOLATION_DEPTH_MAX || e->n++ > INTERPOLATIONS_MAX)
		return "values that name each other too often";
	while (*value) {
		size_t n = strcspn(value, "%");
		_cleanup_free_ char *name = NULL;
		struct import_where where;
		const char *end, *inner, *error;

		if (e->length + n + 1 > VALUE_MAX)
			return "a value that grows without end";
		memcpy(e->text + e->length, value, n);
		e->length += n;
		value += n;
		if (!*value)
			break;
		if (value[1] == '%') {
			e->text[e->length++] = '%';
			value += 2;
			continue;
		}
		end = value[1] == '(' ? strstr(value, ")s") : NULL;
		if (!end)
			return "a % that starts no %(name)s; a plain one is written %%";
		name = import_copy(value + 2, (size_t)(end - value) - 2);
		for (char *c = name; *c; c++)
			*c = (char)tolower((unsigned char)*c);
		inner = raw_value(e->ini, e->section, name, &where);
		if (!inner)
			return "a %(name)s that nothing defines";
		error = expand(e, inner, depth + 1);
		if (error)
			return error;
		value = end + 2;
	}
	return NULL;
}

/* The value as the program sees it; heap. NULL: there is none, or (told) it is not understood. */
static char *option_value(const struct ini *ini, const struct section *s, const char *name,
	struct import_where *ret_where)
{
	const char *raw = raw_value(ini, s, name, ret_where), *error;
	struct expansion e = {.ini = ini, .section = s};

	if (!raw)
		return NULL;
	e.text = text_allocate(VALUE_MAX + 1);
	error = expand(&e, raw, 1);
	if (error) {
		import_error(ini->im, *ret_where, "%s: got %s", name, error);
		free(e.text);
		return NULL;
	}
	e.text[e.length] = '\0';
	return e.text;
}

static bool option_boolean(
	const struct ini *ini, const struct section *s, const char *name, bool *ret)
{
	static const char *const words[][2] = {
		{"false", "true"}, {"no", "yes"}, {"off", "on"}, {"0", "1"}};
	struct import_where where = s->where;
	_cleanup_free_ char *value = option_value(ini, s, name, &where);

	for (size_t i = 0; value && i < ELEMENTSOF(words); i++)
		for (int j = 0; j < 2; j++)
			if (strcasecmp(value, words[i][j]) == 0) {
				*ret = j == 1;
				return true;
			}
	if (value)
		import_error(
			ini->im, where, "%s: got \"%.128s\"; expected true or false", name, value);
	return false;
}

static bool option_seconds(
	const struct ini *ini, const struct section *s, const char *name, uint64_t *ret_ms)
{
	struct import_where where = s->where;
	_cleanup_free_ char *value = option_value(ini, s, name, &where);

	if (!value)
		return false;
	if (import_seconds(value, ret_ms))
		return true;
	import_error(ini->im, where, "%s: got \"%.128s\"; expected seconds, such as 2 or 0.5", name,
		value);
	return false;
}

static bool option_count(
	const struct ini *ini, const struct section *s, const char *name, int64_t *ret)
{
	struct import_where where = s->where;
	_cleanup_free_ char *value = option_value(ini, s, name, &where);

	if (!value)
		return false;
	if (import_integer(value, ret))
		return true;
	import_error(ini->im, where, "%s: got \"%.128s\"; expected a number", name, value);
	return false;
}

/* --- the command --- */

/* One word of a command, as shlex.split() of Python reads it. The position behind it, or NULL with
 * *ret_error set. */
static const char *shell_word(const char *c, char *word, size_t *ret_length, const char **ret_error)
{
	size_t n = 0;

	for (; *c && !isspace((unsigned char)*c); c++) {
		char quote = *c;

		if (quote == '\\') {
			if (!*++c)
				*ret_error = "a backslash with nothing behind it";
			else
				word[n++] = *c;
		} else if (quote == '\'' || quote == '"') {
			for (c++; *c && *c != quote; c++) {
				if (quote == '"' && *c == '\\' && (c[1] == '"' || c[1] == '\\'))
					c++;
				word[n++] = *c;
			}
			if (!*c)
				*ret_error = "a quote that does not end";
		} else {
			word[n++] = *c;
		}
		if (*ret_error)
			return NULL;
	}
	*ret_length = n;
	return c;
}

static json_t *split_command(struct import *im, struct import_where where, const char *command)
{
	_cleanup_free_ char *word = text_allocate(strlen(command) + 1);
	json_t *words = import_json(json_array());
	const char *error = NULL;

	for (const char *c = command;;) {
		size_t n;

		while (isspace((unsigned char)*c))
			c++;
		if (!*c)
			break;
		c = shell_word(c, word, &n, &error);
		if (!c) {
			import_error(im, where, "check_cmd: got %s", error);
			json_decref(words);
			return NULL;
		}
		import_append(words, json_stringn(word, n));
	}
	return import_program(im, where, words);
}

/* --- services --- */

/* What of a section is understood; anything else is told. */
static const char *const service_options[] = {"check_cmd", "check_interval", "check_timeout",
	"check_rise", "check_fail", "check_disabled", "on_disabled", "ip_prefix", "interface",
	"ip_check_disabled", "custom_bird_reconfigure_cmd", "custom_bird_reconfigure_cmd_timeout"};

static void remark_options(struct import *im, const struct section *s)
{
	for (size_t i = 0; i < s->n_options; i++) {
		const struct option *o = &s->options[i];
		bool known = false;

		for (size_t j = 0; j < ELEMENTSOF(service_options); j++)
			known = known || strcmp(o->name, service_options[j]) == 0;
		if (!known)
			import_remark(im, o->where, "%.128s: not an option of a service; left out",
				o->name);
		else if (strcmp(o->name, "custom_bird_reconfigure_cmd") == 0)
			import_remark(im, o->where,
				"%.64s = %.256s: no equivalent. Redshank tells BIRD itself, over "
				"its "
				"control socket, and runs no command for it; what else this one "
				"does "
				"is no longer done",
				o->name, o->value);
		else if (strcmp(o->name, "interface") == 0 && strcmp(o->value, "lo") != 0)
			import_remark(im, o->where,
				"interface = %.64s: the address may be on any interface here",
				o->value);
	}
}

static void add_check(const struct ini *ini, const struct section *s, json_t *service)
{
	struct import_where where = s->where;
	_cleanup_free_ char *command = option_value(ini, s, "check_cmd", &where);
	struct import_where timeout_where = {0};
	struct import_timing timing = {0};

	if (!option_seconds(ini, s, "check_interval", &timing.interval_ms) ||
		!option_seconds(ini, s, "check_timeout", &timing.timeout_ms) ||
		!option_count(ini, s, "check_rise", &timing.rise) ||
		!option_count(ini, s, "check_fail", &timing.fall))
		return;
	if (!command) {
		import_error(ini->im, s->where, "[%.128s] has no check_cmd", s->name);
		return;
	}
	(void)raw_value(ini, s, "check_timeout", &timeout_where);
	timing.timeout_written = timeout_where.file != NULL;
	timing.fast_interval_ms = timing.interval_ms; /* there is none */
	import_check(ini->im, s->where, service, "command", split_command(ini->im, where, command),
		timing);
}

/* A section whose check is disabled: never announced, or always. */
static void add_disabled(
	const struct ini *ini, const struct section *s, const char *prefix, bool advertise)
{
	struct import_where where = {0};
	const char *why = "check_disabled is true";

	(void)raw_value(ini, s, "check_disabled", &where);
	if (!where.file) {
		where = s->where;
		why = "check_disabled is true unless it is set to false";
	}
	if (advertise)
		import_remark(ini->im, where,
			"[%.128s]: no check, always announced (%s, and on_disabled is advertise): "
			"its check_cmd is never run, and %.64s is announced whatever the service "
			"does",
			s->name, why, prefix);
	else
		import_remark(ini->im, where,
			"[%.128s]: no check, never announced (%s, and on_disabled is withdraw): "
			"left "
			"out",
			s->name, why);
}

static void add_service(const struct ini *ini, const struct section *s)
{
	struct import_where where = s->where, prefix_where = s->where;
	_cleanup_free_ char *prefix = option_value(ini, s, "ip_prefix", &prefix_where);
	_cleanup_free_ char *on_disabled = option_value(ini, s, "on_disabled", &where);
	bool disabled, no_address_check, advertise;
	json_t *service, *more;

	if (!prefix)
		import_error(ini->im, s->where, "[%.128s] has no ip_prefix", s->name);
	if (!prefix || !on_disabled || !option_boolean(ini, s, "check_disabled", &disabled) ||
		!option_boolean(ini, s, "ip_check_disabled", &no_address_check))
		return;
	advertise = strcmp(on_disabled, "advertise") == 0;
	if (!advertise && strcmp(on_disabled, "withdraw") != 0) {
		import_error(ini->im, where,
			"on_disabled: got \"%.128s\"; expected withdraw or advertise", on_disabled);
		return;
	}
	if (disabled)
		add_disabled(ini, s, prefix, advertise);
	if (disabled && !advertise)
		return;
	remark_options(ini->im, s);
	service = import_service(ini->im, s->where, s->name);
	if (!service)
		return;
	more = import_json(json_object());
	if (no_address_check)
		import_set(more, "address_check", json_false());
	if (import_prefix(
		    ini->im, prefix_where, service, prefix, IMPORT_HOST_BITS_REFUSED, 100, more) &&
		!disabled)
		add_check(ini, s, service);
	json_decref(more);
}

/* --- [daemon] --- */

static const struct {
	const char *start; /* of the option's name */
	const char *text;
} daemon_options[] = {
	{"bird_conf",
		"the list of prefixes and the filter that tests it go away; bird.conf includes "
		"the fragments instead (docs/import.md)"},
	{"bird6_conf", "as bird_conf"},
	{"bird_variable",
		"bird.conf's export line calls redshank_export_med(), not a filter with this set"},
	{"bird6_variable", "as bird_variable"},
	{"bird_reconfigure_cmd",
		"no equivalent: BIRD is told over its control socket (bird.socket)"},
	{"bird6_reconfigure_cmd", "as bird_reconfigure_cmd; one BIRD has both families"},
	{"dummy_ip_prefix", "not needed, and never announced"},
	{"dummy_ip6_prefix", "not needed, and never announced"},
	{"purge_ip_prefixes",
		"no equivalent: a fragment that is not as it should be is always written anew"},
	{"bird_keep_changes", "no equivalent: redshankctl events tells what changed"},
	{"bird6_keep_changes", "as bird_keep_changes"},
	{"bird_changes_counter", "no equivalent"},
	{"bird6_changes_counter", "no equivalent"},
	{"splay_startup", "no equivalent: first runs of checks are always spread"},
	{"pidfile", "no equivalent: systemd knows the process"},
	{"log", "no equivalent: the log is the journal's"},
	{"stderr_", "no equivalent: the log is the journal's"},
	{"json_", "no equivalent: the journal has fields"},
};

static void remark_daemon(struct import *im, const struct section *s)
{
	for (size_t i = 0; i < s->n_options; i++) {
		const struct option *o = &s->options[i];
		const char *text = "not known to this converter; left out";

		if (strcmp(o->name, "ipv4") == 0 || strcmp(o->name, "ipv6") == 0)
			continue; /* of no effect on what was announced */
		for (size_t j = 0; j < ELEMENTSOF(daemon_options); j++)
			if (strncmp(o->name, daemon_options[j].start,
				    strlen(daemon_options[j].start)) == 0) {
				text = daemon_options[j].text;
				break;
			}
		import_remark(im, o->where, "%.64s = %.128s: %s", o->name, o->value, text);
	}
}

void import_ahc(struct import *im)
{
	struct ini ini = {.im = im};

	(void)section_enter(&ini, NULL, (struct import_where){0}, "DEFAULT", strlen("DEFAULT"));
	for (size_t i = 0; i < im->n_files; i++)
		read_file(&ini, im->files[i]);
	remark_options(im, &ini.sections[0]);
	for (size_t i = 1; im->n_errors == 0 && i < ini.n_sections; i++)
		if (strcmp(ini.sections[i].name, "daemon") == 0)
			remark_daemon(im, &ini.sections[i]);
	for (size_t i = 1; i < ini.n_sections; i++)
		if (strcmp(ini.sections[i].name, "daemon") != 0)
			add_service(&ini, &ini.sections[i]);
	ini_done(&ini);
}
