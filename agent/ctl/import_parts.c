/*
 * The half of a converter that is the same for every peer: places and remarks, names, prefixes,
 * timing, commands.
 *
 * A remark says what the new configuration does otherwise; an error says that a file was not
 * understood, or that the peer itself would not have taken it, and fails the run. Nothing is
 * guessed silently: where a value does not fit, the one that was taken is told.
 */
#include "agent/ctl/import_parts.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "agent/base/address.h"
#include "agent/ctl/text.h"

#define SERVICES_MAX 4096
#define PREFIXES_MAX 10000
#define CHECKS_MAX 4096
#define NAME_MAX_BYTES 32
#define COUNT_MAX 100 /* of rise and fall */

void import_init(struct import *im, FILE *err)
{
	*im = (struct import){.err = err,
		.services = import_json(json_object()),
		.owners = import_json(json_object()),
		.told = import_json(json_object())};
}

void import_done(struct import *im)
{
	for (size_t i = 0; i < im->n_files; i++) {
		free(im->files[i]->name);
		free(im->files[i]->text);
		free(im->files[i]);
	}
	free(im->files);
	json_decref(im->services);
	json_decref(im->owners);
	json_decref(im->told);
	*im = (struct import){0};
}

/* --- places and remarks --- */

static void tell(struct import *im, struct import_where where, const char *kind, const char *text)
{
	_cleanup_free_ char *file = text_escape(where.file ? where.file : "");
	_cleanup_free_ char *escaped = text_escape(text);

	if (!where.file)
		(void)fprintf(im->err, "%s%s\n", kind, escaped);
	else if (where.line == 0)
		(void)fprintf(im->err, "%s: %s%s\n", file, kind, escaped);
	else
		(void)fprintf(im->err, "%s:%u: %s%s\n", file, where.line, kind, escaped);
}

void import_remark(struct import *im, struct import_where where, const char *format, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	tell(im, where, "", text);
	im->n_remarks++;
}

void import_remark_once(struct import *im, struct import_where where, const char *format, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (json_object_get(im->told, text))
		return;
	import_set(im->told, text, json_true());
	tell(im, where, "", text);
	im->n_remarks++;
}

void import_error(struct import *im, struct import_where where, const char *format, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	tell(im, where, "error: ", text);
	im->n_errors++;
}

/* --- memory and JSON --- */

json_t *import_json(json_t *value)
{
	if (!value)
		(void)text_allocate(SIZE_MAX / 2); /* says so, and exits */
	return value;
}

void import_set(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, import_json(value)) < 0)
		(void)import_json(NULL);
}

void import_append(json_t *array, json_t *value)
{
	if (json_array_append_new(array, import_json(value)) < 0)
		(void)import_json(NULL);
}

void *import_grow(void *items, size_t n, size_t size)
{
	void *grown;

	if (n > 0 && (n & (n - 1)) != 0)
		return items; /* made twice as large at the last power of two */
	grown = reallocarray(items, n > 0 ? 2 * n : 1, size);
	if (!grown)
		(void)import_json(NULL);
	return grown;
}

char *import_copy(const char *text, size_t n)
{
	char *copy = text_allocate(n + 1);

	memcpy(copy, text, n);
	copy[n] = '\0';
	return copy;
}

/* --- files --- */

/* The line of the first byte that is a NUL or no UTF-8; 0: there is none. */
static unsigned bad_line(const char *text, size_t length)
{
	unsigned line = 1;

	for (size_t start = 0, end; start < length; start = end, line++) {
		const char *newline = memchr(text + start, '\n', length - start);
		json_t *value;

		end = newline ? (size_t)(newline - text) + 1 : length;
		if (memchr(text + start, '\0', end - start))
			return line;
		value = json_stringn(text + start, end - start);
		if (!value)
			return line;
		json_decref(value);
	}
	return 0;
}

struct import_file *import_add_text(
	struct import *im, const char *name, const char *text, size_t length)
{
	struct import_where where = {.file = name};
	struct import_file *file;

	if (length > IMPORT_FILE_MAX) {
		import_error(im, where, "more than %u bytes", IMPORT_FILE_MAX);
		return NULL;
	}
	if (im->n_files == IMPORT_FILES_MAX) {
		import_error(im, where, "more than %d files", IMPORT_FILES_MAX);
		return NULL;
	}
	if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3; /* a byte order mark */
		length -= 3;
	}
	where.line = bad_line(text, length);
	if (where.line > 0) {
		import_error(im, where, "not a text in UTF-8");
		return NULL;
	}
	im->files = import_grow(im->files, im->n_files, sizeof(struct import_file *));
	file = text_allocate(sizeof(*file));
	*file = (struct import_file){.name = import_copy(name, strlen(name)),
		.text = import_copy(text, length),
		.length = length};
	im->files[im->n_files++] = file;
	return file;
}

/* --- services --- */

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* The nearest name that is allowed: what is not becomes a dash, a row of them one. */
static void name_fit(char name[NAME_MAX_BYTES + 1], const char *wanted)
{
	size_t n = 0;

	for (const char *c = wanted; *c && n < NAME_MAX_BYTES; c++) {
		if (is_name_byte(*c) && (n > 0 || (*c != '-' && *c != '_')))
			name[n++] = *c;
		else if (n > 0 && name[n - 1] != '-')
			name[n++] = '-';
	}
	while (n > 0 && name[n - 1] == '-')
		n--;
	name[n] = '\0';
	if (n == 0)
		(void)snprintf(name, NAME_MAX_BYTES + 1, "service");
}

json_t *import_service(struct import *im, struct import_where where, const char *wanted)
{
	char base[NAME_MAX_BYTES + 1], name[NAME_MAX_BYTES + 1];
	json_t *service;

	if (json_object_size(im->services) >= SERVICES_MAX) {
		import_error(im, where, "more than %d services", SERVICES_MAX);
		return NULL;
	}
	name_fit(base, wanted);
	(void)snprintf(name, sizeof(name), "%s", base);
	for (unsigned i = 2; json_object_get(im->services, name); i++) {
		char suffix[8];
		int n = snprintf(suffix, sizeof(suffix), "-%u", i % 100000);

		(void)snprintf(name, sizeof(name), "%.*s%s", NAME_MAX_BYTES - n, base, suffix);
	}
	if (strcmp(name, wanted) != 0)
		import_remark(im, where,
			"\"%.128s\" is called %s here: names have letters, digits, _ and -, 32 at "
			"most",
			wanted, name);
	service = import_json(json_object());
	import_set(im->services, name, service);
	import_set(service, "prefixes", json_object());
	return service;
}

static const char *service_name(const struct import *im, const json_t *service)
{
	const char *name;
	json_t *other;

	json_object_foreach (im->services, name, other)
		if (other == service)
			return name;
	abort();
}

/* --- prefixes --- */

/* Why the configuration would refuse it (unannounceable() of agent/config/index.c), or NULL. */
static const char *never_announced(const struct prefix *p)
{
	static const uint8_t zero[15] = {0};
	const uint8_t *b = p->address.bytes;

	if (p->length == 0)
		return "is the default route";
	if (p->address.family == ADDRESS_FAMILY_IPV4) {
		if (b[0] == 0 || b[0] == 127 || memcmp(b, "\xff\xff\xff\xff", 4) == 0)
			return "is no other host's, and BIRD never announces such";
		return b[0] >= 224 && b[0] < 240 ? "is multicast, and BIRD never announces such"
						 : NULL;
	}
	if (b[0] == 0xff || (b[0] == 0xfe && (b[1] & 0xc0) == 0x80))
		return "is link-local or multicast, and BIRD never announces such";
	if ((memcmp(b, zero, 15) == 0 && b[15] <= 1 && p->length == 128) ||
		(memcmp(b, zero, 12) == 0 && b[12] == 127))
		return "is no other host's, and BIRD never announces such";
	return NULL;
}

/* "192.0.2.77/24" to "192.0.2.0/24". False: not of this form, or nothing to drop. */
static bool drop_host_bits(const char *text, char ret[PREFIX_TEXT_MAX])
{
	const char *slash = strchr(text, '/');
	char address[ADDRESS_TEXT_MAX];
	struct prefix p = {0};
	unsigned most;
	int64_t length;

	if (!slash || (size_t)(slash - text) >= sizeof(address) ||
		!import_integer(slash + 1, &length))
		return false;
	(void)snprintf(address, sizeof(address), "%.*s", (int)(slash - text), text);
	if (address_parse(address, &p.address, NULL) < 0)
		return false;
	most = p.address.family == ADDRESS_FAMILY_IPV4 ? 32 : 128;
	if (length < 0 || length > (int64_t)most)
		return false;
	p.length = (uint8_t)length;
	for (unsigned bit = p.length; bit < most; bit++)
		p.address.bytes[bit / 8] &= (uint8_t) ~(0x80U >> bit % 8);
	(void)prefix_format(&p, ret);
	return true;
}

static bool prefix_read(struct import *im, struct import_where where, const char *text,
	enum import_host_bits host_bits, struct prefix *ret)
{
	char masked[PREFIX_TEXT_MAX];
	struct error error;
	struct prefix p = {0};

	if (!strchr(text, '/')) {
		if (address_parse(text, &p.address, &error) < 0) {
			import_error(im, where, "got \"%.128s\"; %s", text, error.text);
			return false;
		}
		p.length = p.address.family == ADDRESS_FAMILY_IPV4 ? 32 : 128;
	} else if (prefix_parse(text, &p, &error) < 0) {
		if (host_bits == IMPORT_HOST_BITS_REFUSED || !drop_host_bits(text, masked) ||
			prefix_parse(masked, &p, NULL) < 0) {
			import_error(im, where, "got \"%.128s\"; %s", text, error.text);
			return false;
		}
		import_remark(im, where, "%.128s is the prefix %s", text, masked);
	}
	*ret = p;
	return true;
}

static uint32_t weight_fit(struct import *im, struct import_where where, int64_t weight)
{
	int64_t fit = weight < 0 ? 0 : weight > IMPORT_WEIGHT_MAX ? IMPORT_WEIGHT_MAX : weight;

	if (fit != weight)
		import_remark(im, where,
			"metric %lld is cut to %lld: weights are 0 to %d, and prefixes whose "
			"metrics "
			"are cut are equal now",
			(long long)weight, (long long)fit, IMPORT_WEIGHT_MAX);
	return (uint32_t)fit;
}

bool import_prefix(struct import *im, struct import_where where, json_t *service, const char *text,
	enum import_host_bits host_bits, int64_t weight, json_t *more)
{
	json_t *prefixes = json_object_get(service, "prefixes"), *value, *owner;
	char name[PREFIX_TEXT_MAX];
	struct prefix p;
	const char *never;

	if (!prefix_read(im, where, text, host_bits, &p))
		return false;
	(void)prefix_format(&p, name);
	never = never_announced(&p);
	if (never) {
		import_error(im, where, "%s %s", name, never);
		return false;
	}
	owner = json_object_get(im->owners, name);
	if (owner) {
		import_error(im, where, "%s belongs to %s already; here a prefix has one service",
			name, json_string_value(owner));
		return false;
	}
	if (im->n_prefixes++ >= PREFIXES_MAX) {
		import_error(im, where, "more than %d prefixes", PREFIXES_MAX);
		return false;
	}
	import_set(im->owners, name, json_string(service_name(im, service)));
	value = import_json(json_integer(weight_fit(im, where, weight)));
	if (more && json_object_size(more) > 0) {
		json_t *object = import_json(json_object());

		import_set(object, "weight", value);
		if (json_object_update(object, more) < 0)
			(void)import_json(NULL);
		value = object;
	}
	import_set(prefixes, name, value);
	return true;
}

/* --- checks --- */

bool import_seconds(const char *text, uint64_t *ret_ms)
{
	size_t whole = strspn(text, "0123456789"), all = strspn(text, "0123456789.");
	char *end;
	double seconds;

	if (all == 0 || text[all] || all > 32 || (whole == 0 && all == 1))
		return false;
	seconds = strtod(text, &end);
	if (*end || !isfinite(seconds))
		return false;
	*ret_ms = seconds > 1e9 ? 1000000000000ULL : (uint64_t)llround(seconds * 1000);
	return true;
}

bool import_integer(const char *text, int64_t *ret)
{
	bool negative = text[0] == '-';
	const char *digits = text + (text[0] == '-' || text[0] == '+' ? 1 : 0);
	size_t n = strspn(digits, "0123456789");
	int64_t value = 0;

	if (n == 0 || digits[n] || n > 9)
		return false;
	for (size_t i = 0; i < n; i++)
		value = value * 10 + (digits[i] - '0');
	*ret = negative ? -value : value;
	return true;
}

const char *import_duration(uint64_t ms, char buf[IMPORT_DURATION_MAX])
{
	static const struct {
		uint64_t ms;
		const char *unit;
	} units[] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
	size_t i = 0;

	while (ms % units[i].ms != 0 || (ms == 0 && units[i].ms != 1))
		i++;
	(void)snprintf(buf, IMPORT_DURATION_MAX, "%llu%s", (unsigned long long)(ms / units[i].ms),
		units[i].unit);
	return buf;
}

static uint64_t time_fit(
	struct import *im, struct import_where where, const char *what, uint64_t ms)
{
	uint64_t fit = ms < IMPORT_TIME_MIN_MS	 ? IMPORT_TIME_MIN_MS
		       : ms > IMPORT_TIME_MAX_MS ? IMPORT_TIME_MAX_MS
						 : ms;
	char was[IMPORT_DURATION_MAX], is[IMPORT_DURATION_MAX];

	if (fit != ms)
		import_remark(im, where, "%s %s is made %s: the range is 10ms to 1h", what,
			import_duration(ms, was), import_duration(fit, is));
	return fit;
}

static int64_t count_fit(struct import *im, struct import_where where, const char *what, int64_t n)
{
	int64_t fit = n < 1 ? 1 : n > COUNT_MAX ? COUNT_MAX : n;

	if (fit != n)
		import_remark(im, where, "%s %lld is made %lld: the range is 1 to %d", what,
			(long long)n, (long long)fit, COUNT_MAX);
	return fit;
}

/* A timeout may not be longer than the interval. What somebody wrote down is kept: a timeout that
 * was written makes the interval longer; one that is only the peer's default is cut. */
static void timing_fit(struct import *im, struct import_where where, struct import_timing *t)
{
	char interval[IMPORT_DURATION_MAX], timeout[IMPORT_DURATION_MAX];

	t->interval_ms = time_fit(im, where, "interval", t->interval_ms);
	t->timeout_ms = time_fit(im, where, "timeout", t->timeout_ms);
	(void)import_duration(t->interval_ms, interval);
	(void)import_duration(t->timeout_ms, timeout);
	if (t->timeout_ms > t->interval_ms && t->timeout_written) {
		import_remark(im, where,
			"timeout %s is longer than the interval %s, which it cannot be here: the "
			"interval is made %s, too, so that nothing slow fails that did not before; "
			"failures are found later",
			timeout, interval, timeout);
		t->interval_ms = t->timeout_ms;
	} else if (t->timeout_ms > t->interval_ms) {
		import_remark(im, where,
			"the default timeout %s is longer than the interval %s, which it cannot be "
			"here: it is cut to %s; raise both if the check ever takes longer",
			timeout, interval, interval);
		t->timeout_ms = t->interval_ms;
	}
	if (t->fast_interval_ms > t->interval_ms) {
		import_remark(im, where, "a fast interval longer than the interval is cut to it");
		t->fast_interval_ms = t->interval_ms;
	}
	t->fast_interval_ms = time_fit(im, where, "fast interval", t->fast_interval_ms);
	t->rise = count_fit(im, where, "rise", t->rise);
	t->fall = count_fit(im, where, "fall", t->fall);
}

void import_check(struct import *im, struct import_where where, json_t *service, const char *name,
	json_t *command, struct import_timing timing)
{
	json_t *checks = json_object_get(service, "checks"), *check;
	char buf[IMPORT_DURATION_MAX];

	if (!command)
		return;
	if (im->n_checks++ >= CHECKS_MAX) {
		import_error(im, where, "more than %d checks", CHECKS_MAX);
		json_decref(command);
		return;
	}
	timing_fit(im, where, &timing);
	if (!checks) {
		checks = import_json(json_object());
		import_set(service, "checks", checks);
	}
	check = import_json(json_object());
	import_set(check, "type", json_string("exec"));
	import_set(check, "command", command);
	import_set(check, "interval", json_string(import_duration(timing.interval_ms, buf)));
	import_set(
		check, "fast_interval", json_string(import_duration(timing.fast_interval_ms, buf)));
	import_set(check, "timeout", json_string(import_duration(timing.timeout_ms, buf)));
	import_set(check, "rise", json_integer(timing.rise));
	import_set(check, "fall", json_integer(timing.fall));
	import_set(checks, name, check);
}

json_t *import_program(struct import *im, struct import_where where, json_t *words)
{
	const char *program = json_string_value(json_array_get(words, 0));
	json_t *word;
	size_t i;

	if (!program || !program[0]) {
		import_error(im, where, "the command is empty");
		json_decref(words);
		return NULL;
	}
	if (!strchr(program, '/')) {
		import_remark(im, where,
			"%.128s is looked for in PATH, by /usr/bin/env; its absolute path saves a "
			"step",
			program);
		if (json_array_insert_new(words, 0, import_json(json_string("/usr/bin/env"))) < 0)
			(void)import_json(NULL);
	} else if (program[0] != '/') {
		import_error(im, where, "%.128s: expected the absolute path of a program", program);
		json_decref(words);
		return NULL;
	}
	json_array_foreach (words, i, word) {
		if (i < IMPORT_ARGUMENTS_MAX && json_string_length(word) <= IMPORT_STRING_MAX)
			continue;
		import_error(im, where, "a command has at most %d words of at most %d bytes",
			IMPORT_ARGUMENTS_MAX, IMPORT_STRING_MAX);
		json_decref(words);
		return NULL;
	}
	return words;
}
