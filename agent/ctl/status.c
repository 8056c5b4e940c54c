/*
 * The status for people.
 *
 * Read at three in the morning: the first line says whether there is trouble and which command says
 * why, the next ones what is wrong with BIRD; then one block for each service with
 * its checks (why it is up or down) and its prefixes (what is wanted, and whether BIRD does it).
 * The words are those of the document, the log and the manual. What is not known is said to be
 * unknown, and a wish that BIRD does not follow is red.
 *
 * A key that is missing counts as unknown: an older agent may not send it.
 */
#include "agent/ctl/status.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "agent/base/address.h"
#include "agent/base/buffer.h"
#include "agent/judge/judge.h"

#define STATUS_FORMAT 1
#define STATUS_UNKNOWN "unknown"
#define STATUS_NAMES_MAX 2000 /* of text that lists names */

json_t *status_parse(const char *body, size_t length, struct error *ret_error)
{
	json_error_t error = {0};
	json_t *document = json_loadb(body, length, JSON_REJECT_DUPLICATES, &error);
	json_int_t format = json_integer_value(json_object_get(document, "format"));

	if (!document) {
		(void)error_set(ret_error, EPROTO, "the agent's answer is not JSON: %s (line %d)",
			error.text, error.line);
		return NULL;
	}
	if (format != STATUS_FORMAT) {
		json_decref(document);
		(void)error_set(ret_error, EPROTO,
			"the agent's answer is not a status of form %d; is redshankctl (%s) as new "
			"as redshankd?",
			STATUS_FORMAT, REDSHANK_VERSION);
		return NULL;
	}
	return document;
}

/* --- selection --- */

/* Does the prefix called `name` match: is it `what`, or holds it the address `what`? */
static bool prefix_matches(const char *name, const char *what)
{
	struct prefix named, wanted;
	struct address address;

	if (prefix_parse(name, &named, NULL) < 0)
		return strcmp(name, what) == 0;
	if (prefix_parse(what, &wanted, NULL) == 0)
		return prefix_equal(&named, &wanted);
	return address_parse(what, &address, NULL) == 0 && prefix_contains(&named, &address);
}

static size_t count_matches(const json_t *service, const char *what)
{
	const char *name;
	json_t *prefix;
	size_t n = 0;

	json_object_foreach (json_object_get(service, "prefixes"), name, prefix)
		if (prefix_matches(name, what))
			n++;
	return n;
}

static int select_nothing(const json_t *services, const char *what, struct error *ret_error)
{
	_cleanup_buffer_ struct buffer names = {0};
	_cleanup_free_ char *escaped = text_escape(what);
	const char *name;
	json_t *service;

	buffer_init(&names, STATUS_NAMES_MAX);
	json_object_foreach ((json_t *)services, name, service)
		(void)buffer_printf(&names, "%s%s", names.length > 0 ? ", " : "", name);
	return error_set(ret_error, ENOENT,
		"no service and no prefix is called \"%.64s\"; the services are: %s", escaped,
		names.length > 0 ? buffer_string(&names) : "none");
}

int status_select(json_t *document, const char *what, struct error *ret_error)
{
	json_t *services = json_object_get(document, "services");
	bool is_service = json_object_get(services, what) != NULL;
	const char *name;
	json_t *service, *prefix;
	void *next;
	size_t n = is_service ? 1 : 0;

	if (!is_service)
		json_object_foreach (services, name, service)
			n += count_matches(service, what);
	if (n == 0)
		return select_nothing(services, what, ret_error);

	json_object_foreach_safe(services, next, name, service)
	{
		json_t *prefixes = json_object_get(service, "prefixes");
		void *next_prefix;
		const char *prefix_name;

		if (is_service ? strcmp(name, what) != 0 : count_matches(service, what) == 0) {
			(void)json_object_del(services, name);
			continue;
		}
		if (is_service)
			continue;
		json_object_foreach_safe(prefixes, next_prefix, prefix_name,
			prefix) if (!prefix_matches(prefix_name, what))(void)
			json_object_del(prefixes, prefix_name);
	}
	return 0;
}

/* --- what a prefix is doing --- */

enum agreement {
	AGREES,
	DISAGREES, /* BIRD does not do what is wanted */
	NOT_KNOWN,
};

static enum agreement announced_agreement(const json_t *prefix)
{
	const json_t *announced = json_object_get(prefix, "announced");

	if (!json_is_boolean(announced))
		return NOT_KNOWN;
	return json_is_true(announced) != judge_is(prefix, "wanted", "withdraw") ? AGREES
										 : DISAGREES;
}

static enum agreement exported_agreement(const json_t *prefix, const json_t *bird)
{
	const json_t *exported = json_object_get(prefix, "exported");
	bool withdraw = judge_is(prefix, "wanted", "withdraw");

	if (!json_is_integer(exported))
		return NOT_KNOWN;
	if (json_integer_value(exported) > 0)
		return withdraw ? DISAGREES : AGREES;
	if (withdraw)
		return AGREES;
	/* Without sessions there is nobody to export to. */
	return json_integer_value(json_object_get(bird, "sessions")) > 0 ? DISAGREES : AGREES;
}

static bool is_elsewhere(const json_t *prefix)
{
	return judge_text(prefix, "elsewhere")[0] != '\0';
}

/* --- the table --- */

static enum text_colour agreement_colour(enum agreement agreement)
{
	switch (agreement) {
	case AGREES:
		return TEXT_PLAIN;
	case DISAGREES:
		return TEXT_RED;
	case NOT_KNOWN:
		return TEXT_YELLOW;
	}
	abort();
}

/* The colour of a word of the document. */
enum text_colour status_word_colour(const char *word)
{
	static const struct {
		const char *word;
		enum text_colour colour;
	} colours[] = {
		{"healthy", TEXT_GREEN},
		{"up", TEXT_GREEN},
		{"announce", TEXT_GREEN},
		{"unhealthy", TEXT_RED},
		{"down", TEXT_RED},
		{"withdraw", TEXT_RED},
		{"undecided", TEXT_YELLOW},
		{"pending", TEXT_YELLOW},
		{"demote", TEXT_YELLOW},
	};

	for (size_t i = 0; i < ELEMENTSOF(colours); i++)
		if (strcmp(word, colours[i].word) == 0)
			return colours[i].colour;
	return TEXT_PLAIN;
}

static void add_head(struct text_table *t, const char *const *heads)
{
	for (size_t i = 0; i < t->n_columns; i++)
		text_table_add(t, TEXT_DIM, false, heads[i]);
}

static void add_word(struct text_table *t, const json_t *object, const char *key)
{
	const char *word = judge_text(object, key);

	text_table_add(t, status_word_colour(word), false, word[0] ? word : STATUS_UNKNOWN);
}

static void add_since(struct text_table *t, const json_t *object, const struct status_view *view)
{
	int64_t when = text_parse_time(judge_text(object, "since"));
	_cleanup_free_ char *age = text_age(view->now - when);
	char cell[40];

	(void)snprintf(cell, sizeof(cell), "%s ago", age);
	text_table_add(t, TEXT_PLAIN, false, when < 0 ? STATUS_UNKNOWN : cell);
}

/* One character an outcome, the newest last. */
char *status_outcomes(const json_t *check, size_t most)
{
	static const struct {
		const char *word;
		char mark;
	} marks[] = {{"good", '.'}, {"bad", 'X'}, {"gone", '!'}, {"unknown", '?'}};
	const json_t *outcomes = json_object_get(check, "outcomes");
	size_t n = json_array_size(outcomes);
	size_t first = n > most ? n - most : 0;
	char *bar = text_allocate(most + 1);

	memset(bar, 0, most + 1);
	for (size_t i = first; i < n; i++) {
		const char *word = json_string_value(json_array_get(outcomes, i));

		bar[i - first] = '?';
		for (size_t m = 0; word && m < ELEMENTSOF(marks); m++)
			if (strcmp(word, marks[m].word) == 0)
				bar[i - first] = marks[m].mark;
	}
	return bar;
}

void status_add_outcomes(struct text_table *t, const json_t *check, size_t most)
{
	_cleanup_free_ char *bar = status_outcomes(check, most);

	text_table_add(t, TEXT_PLAIN, false, bar);
}

static void print_checks(FILE *out, const json_t *checks, const struct status_view *view)
{
	static const char *const heads[] = {"CHECK", "STATE", "SINCE", "OUTCOMES", "REASON"};
	_cleanup_text_table_ struct text_table t = {0};
	const char *name;
	json_t *check;

	text_table_init(&t, ELEMENTSOF(heads));
	if (json_object_size(checks) == 0)
		return;
	add_head(&t, heads);
	json_object_foreach ((json_t *)checks, name, check) {
		text_table_add(&t, TEXT_PLAIN, false, name);
		add_word(&t, check, "state");
		add_since(&t, check, view);
		status_add_outcomes(&t, check, STATUS_OUTCOMES_MAX);
		text_table_add(&t, TEXT_PLAIN, false, judge_text(check, "reason"));
	}
	text_table_print(&t, out, view->colours, 2);
}

static void add_announced(struct text_table *t, const json_t *prefix)
{
	const json_t *announced = json_object_get(prefix, "announced");
	const char *word = json_is_true(announced)    ? "yes"
			   : json_is_false(announced) ? "no"
						      : STATUS_UNKNOWN;

	text_table_add(t, agreement_colour(announced_agreement(prefix)), false, word);
}

static void add_number(
	struct text_table *t, const json_t *object, const char *key, enum text_colour colour)
{
	const json_t *value = json_object_get(object, key);
	char cell[24] = STATUS_UNKNOWN;

	if (json_is_integer(value))
		(void)snprintf(cell, sizeof(cell), "%lld", (long long)json_integer_value(value));
	text_table_add(t, colour, true, cell);
}

/* "drained by root (uid 0, pid 7) until 2026-...: maintenance" */
void status_say_reason(const json_t *prefix, char *buf, size_t size)
{
	static const struct {
		const char *reason, *key, *text;
	} rows[] = {
		{"drained", "drain", "drained"},
		{"forced", "announce", "announced by force"},
		{"frozen", "freeze", "frozen"},
	};

	(void)snprintf(buf, size, "%s", judge_text(prefix, "reason"));
	if (judge_is(prefix, "reason", "shed") && json_is_object(json_object_get(prefix, "shed")))
		status_say_shed(prefix, buf, size);
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		const json_t *word = json_object_get(prefix, rows[i].key);
		const char *until = judge_text(word, "until"), *why = judge_text(word, "reason");

		if (judge_is(prefix, "reason", rows[i].reason) && json_is_object(word))
			(void)snprintf(buf, size, "%s by %s%s%s%s%s", rows[i].text,
				judge_text(word, "who"), until[0] ? " until " : "", until,
				why[0] ? ": " : "", why);
	}
}

static void add_reason(struct text_table *t, const json_t *prefix)
{
	const char *other = judge_text(prefix, "elsewhere");
	char reason[512], cell[768];

	status_say_reason(prefix, reason, sizeof(reason));

	if (!is_elsewhere(prefix)) {
		text_table_add(t, judge_is(prefix, "reason", "forced") ? TEXT_YELLOW : TEXT_PLAIN,
			false, reason);
		return;
	}
	(void)snprintf(cell, sizeof(cell),
		judge_is(prefix, "wanted", "withdraw")
			? "%s, but protocol %s still announces it"
			: "%s, but BIRD prefers the route of protocol %s",
		reason, other);
	text_table_add(t, TEXT_RED, false, cell);
}

/* Is the load of any of them counted? All of a service's are, or none. */
static bool are_counted(const json_t *prefixes)
{
	const json_t *first = json_object_iter_value(json_object_iter((json_t *)prefixes));

	return json_object_get(first, "load") != NULL;
}

static void print_prefixes(
	FILE *out, const json_t *prefixes, const json_t *bird, const struct status_view *view)
{
	static const char *const heads[] = {
		"PREFIX", "WANTED", "ANNOUNCED", "EXPORTED", "WEIGHT", "LOAD", "SINCE", "REASON"};
	bool counted = are_counted(prefixes);
	_cleanup_text_table_ struct text_table t = {0};
	const char *name;
	json_t *prefix;

	text_table_init(&t, counted ? ELEMENTSOF(heads) : ELEMENTSOF(heads) - 1);
	for (size_t i = 0; i < ELEMENTSOF(heads); i++)
		if (counted || strcmp(heads[i], "LOAD") != 0)
			text_table_add(&t, TEXT_DIM, false, heads[i]);
	json_object_foreach ((json_t *)prefixes, name, prefix) {
		text_table_add(&t, TEXT_PLAIN, false, name);
		add_word(&t, prefix, "wanted");
		add_announced(&t, prefix);
		/* Bare: a session carries one family or both, so "of how many" is not known. */
		add_number(
			&t, prefix, "exported", agreement_colour(exported_agreement(prefix, bird)));
		add_number(&t, prefix, "weight", TEXT_PLAIN);
		if (counted)
			status_add_load(&t, prefix);
		add_since(&t, prefix, view);
		add_reason(&t, prefix);
	}
	text_table_print(&t, out, view->colours, 2);
}

static void print_services(
	FILE *out, const json_t *services, const json_t *bird, const struct status_view *view)
{
	const char *name;
	json_t *service;

	json_object_foreach ((json_t *)services, name, service) {
		const char *health = judge_text(service, "health");

		(void)fputc('\n', out);
		text_put(out, view->colours, TEXT_BOLD, name);
		(void)fputs(": ", out);
		text_put(out, view->colours, status_word_colour(health),
			health[0] ? health : STATUS_UNKNOWN);
		(void)fputc('\n', out);
		status_print_repair(out, service, view, view->now * 1000, 2, false);
		print_checks(out, json_object_get(service, "checks"), view);
		print_prefixes(out, json_object_get(service, "prefixes"), bird, view);
	}
	if (json_object_size(services) == 0)
		(void)fputs("\nNo services are configured.\n", out);
}

static void print_trouble(FILE *out, const struct status_view *view, const char *format,
	const char *text) __attribute__((format(printf, 3, 0)));
static void print_trouble(
	FILE *out, const struct status_view *view, const char *format, const char *text)
{
	char line[1200];

	(void)snprintf(line, sizeof(line), format, text);
	text_put_wrapped(out, view->colours, TEXT_RED, 0, line);
}

static void print_freeze(FILE *out, const json_t *freeze, const struct status_view *view)
{
	const char *until = judge_text(freeze, "until"), *why = judge_text(freeze, "reason");
	char said[800];

	if (!json_is_object(freeze))
		return;
	(void)snprintf(said, sizeof(said), "by %.200s at %.40s, %s%.40s%s%.300s",
		judge_text(freeze, "who"), judge_text(freeze, "since"),
		until[0] ? "until " : "until it is thawed", until, why[0] ? ": " : "", why);
	print_trouble(out, view,
		"The server is frozen: only a dead process, a missing address or an operator's "
		"word changes what is announced. It was frozen %s",
		said);
}

static void print_alarm(FILE *out, const json_t *bird, const struct status_view *view)
{
	const char *detail = "", *alarm = judge_alarm(bird, &detail);
	char said[900];

	if (!alarm)
		return;
	(void)snprintf(said, sizeof(said), "%s: %.700s", alarm, detail);
	print_trouble(out, view,
		strstr(alarm, "refuses") ? "%s. Health still acts; new prefixes and weights wait."
					 : "%s",
		said);
}

void status_print_troubles(FILE *out, const json_t *document, const struct status_view *view)
{
	const json_t *bird = json_object_get(document, "bird");
	const char *error = judge_text(bird, "error");

	if (json_is_true(json_object_get(document, "stopping")))
		print_trouble(out, view, "The agent is stopping.%s", "");
	print_freeze(out, json_object_get(document, "freeze"), view);
	if (judge_is(bird, "link", "away") && judge_text(bird, "silent_since")[0])
		print_trouble(out, view,
			"BIRD runs but does not answer. Its neighbours keep sending what it "
			"announces, "
			"also to a service that dies, until their hold times are over or for as "
			"long "
			"as it still keeps its sessions. `systemctl restart bird` ends that. %s",
			error);
	else if (judge_is(bird, "link", "away"))
		print_trouble(out, view, "BIRD is away, what it announces is unknown: %s",
			error[0] ? error : "no reason known");
	else if (judge_is(bird, "link", "refused"))
		print_trouble(out, view, "BIRD is not spoken to: %s", error);
	else if (judge_is(bird, "link", "greeting"))
		print_trouble(out, view, "BIRD is being asked what it announces.%s", "");
	if (judge_text(json_object_get(document, "config"), "error")[0])
		print_trouble(out, view,
			"The configuration on disk was refused, and the agent's next start would "
			"fail (redshankd --check): %s",
			judge_text(json_object_get(document, "config"), "error"));
	if (judge_text(bird, "files_error")[0])
		print_trouble(out, view,
			"Fragments can not be written. Health still acts; what is new waits, and a "
			"BIRD that starts reads what is there. %s",
			judge_text(bird, "files_error"));
	print_alarm(out, bird, view);
}

static void print_headline(FILE *out, const json_t *document, const struct status_view *view)
{
	const json_t *bird = json_object_get(document, "bird");
	const json_t *up = json_object_get(bird, "sessions_up");
	const json_t *sessions = json_object_get(bird, "sessions");
	bool changing = json_is_false(json_object_get(bird, "settled"));
	char counts[64] = "", line[512];
	enum text_colour colour = changing ? TEXT_YELLOW : TEXT_BOLD;

	if (json_is_integer(up) && json_is_integer(sessions)) {
		(void)snprintf(counts, sizeof(counts), ", %lld of %lld sessions up",
			(long long)json_integer_value(up), (long long)json_integer_value(sessions));
		if (json_integer_value(up) < json_integer_value(sessions))
			colour = TEXT_YELLOW;
	}
	(void)snprintf(line, sizeof(line), "%.255s: redshankd %.32s, BIRD %.32s%s%s",
		judge_text(document, "node"), judge_text(document, "version"),
		judge_is(bird, "version", "") ? STATUS_UNKNOWN : judge_text(bird, "version"),
		counts, changing ? ", changes under way" : "");
	text_put_wrapped(out, view->colours, colour, 0, line);
}

/* What about BIRD's configuration will hurt: behind the headline, for it may be there for years. */
static void print_warnings(FILE *out, const json_t *bird, const struct status_view *view)
{
	char line[1200];
	json_t *warning;
	size_t i;

	json_array_foreach (json_object_get(bird, "warnings"), i, warning) {
		(void)snprintf(line, sizeof(line), "warning: %.1000s (%.64s)",
			judge_text(warning, "text"), judge_text(warning, "code"));
		text_put_wrapped(out, view->colours, TEXT_YELLOW, 0, line);
	}
}

void status_print(FILE *out, const json_t *document, const struct status_view *view)
{
	status_print_verdict(out, document, view);
	status_print_troubles(out, document, view);
	print_headline(out, document, view);
	print_warnings(out, json_object_get(document, "bird"), view);
	status_print_load(out, document, view);
	status_print_shed(out, document, view);
	print_services(out, json_object_get(document, "services"),
		json_object_get(document, "bird"), view);
}
