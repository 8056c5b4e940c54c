/*
 * What top shows.
 *
 *   edge1: redshankd 0.1.0, BIRD 2.0.12, 2 of 2 sessions up             03:12:44Z
 *   TROUBLE (redshankctl explain dns): dns is unhealthy
 *   SERVICE  HEALTH     CHECKS  ANNOUNCED  SLOWEST  WHAT
 *   dns      unhealthy     1/2        0/2    500ms  is unhealthy
 *     check answers down 4s ..................XX timeout after 500ms
 *     192.0.2.53/32 withdraw 4s unhealthy
 *   web      healthy       2/2        1/1    0.3ms
 *   q quits
 *
 * The one judgement (agent/judge) says what is bad and sorts the services. Each service in trouble
 * has its row before any has a second line, and the lines that are left are shared out among them:
 * one service with 500 dead prefixes does not hide the others. What is well comes last and is what
 * is left out first.
 *
 * A line is cut at the width and never wrapped, for a wrapped one would push the others down. Text
 * counts one column a character, as in the tables of status.
 */
#include "agent/ctl/top_draw.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/ctl/status.h"
#include "agent/ctl/text.h"
#include "agent/judge/verdict.h"

#define TOP_OUTCOMES 20
#define TOP_NAME_MAX 32 /* no service has a longer name */
#define TOP_FOOT "q quits, space asks now"

struct top_service {
	const char *name;
	const json_t *service;
	enum judge_level level;
	size_t details; /* lines about what is wrong with it */
};

struct top {
	const struct top_view *view;
	FILE *out;
	const json_t *bird;
	unsigned line, column; /* lines that are written whole; columns of the present one */
	unsigned kept;	       /* lines at the end that are not to be used yet */
	unsigned name_width;
	struct top_service *services; /* owned */
	size_t n_services;
};

/* --- lines --- */

/* Text in a colour, cut at the right edge. */
static void top_put(struct top *t, enum text_colour colour, const char *text)
{
	_cleanup_free_ char *escaped = text_escape(text);
	size_t i = 0;

	text_colour_on(t->out, t->view->colours, colour);
	for (; escaped[i]; i++) {
		bool begins = ((unsigned char)escaped[i] & 0xc0) != 0x80;

		if (begins && t->column >= t->view->width)
			break;
		t->column += begins;
		(void)fputc(escaped[i], t->out);
	}
	text_colour_off(t->out, t->view->colours, colour);
}

static void top_printf(struct top *t, enum text_colour colour, const char *format, ...)
	_printf_(3, 4);
static void top_printf(struct top *t, enum text_colour colour, const char *format, ...)
{
	char text[1200];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	top_put(t, colour, text);
}

/* Text at a column's place, `width` wide and two more. */
static void top_cell(
	struct top *t, enum text_colour colour, bool right, unsigned width, const char *text)
{
	unsigned columns = (unsigned)text_columns(text);

	if (right && columns < width)
		top_printf(t, TEXT_PLAIN, "%*s", (int)(width - columns), "");
	top_put(t, colour, text);
	if (!right && columns < width)
		top_printf(t, TEXT_PLAIN, "%*s", (int)(width - columns), "");
	top_put(t, TEXT_PLAIN, "  ");
}

static unsigned top_left(const struct top *t)
{
	unsigned used = t->line + t->kept;

	return t->view->height > used ? t->view->height - used : 0;
}

/* Begins a line. False: there is none left. */
static bool top_begin(struct top *t)
{
	if (top_left(t) == 0)
		return false;
	if (t->line > 0)
		(void)fputc('\n', t->out);
	t->line++;
	t->column = 0;
	return true;
}

/* --- the top --- */

static const char *top_text(const json_t *object, const char *key, const char *otherwise)
{
	const char *text = judge_text(object, key);

	return text[0] ? text : otherwise;
}

static void top_age(const struct top *t, const json_t *object, char buf[16])
{
	int64_t when = text_parse_time(judge_text(object, "since"));
	_cleanup_free_ char *age = text_age(t->view->now_ms / 1000 - when);

	(void)snprintf(buf, 16, "%s", when < 0 ? "?" : age);
}

/* Where there are neighbours: how many prefixes they have of ours, and how many of them report. */
static void top_shed(struct top *t)
{
	const json_t *shed = json_object_get(t->view->document, "shed");
	json_int_t out = json_integer_value(json_object_get(shed, "out")),
		   fresh = json_integer_value(json_object_get(shed, "neighbours_fresh")),
		   all = json_integer_value(json_object_get(shed, "neighbours"));

	if (!json_is_object(shed))
		return;
	top_printf(t, 2 * fresh < all ? TEXT_YELLOW : TEXT_PLAIN, ", %lld of %lld neighbours fresh",
		(long long)fresh, (long long)all);
	if (out > 0)
		top_printf(t, TEXT_YELLOW, ", %lld shed", (long long)out);
}

static void top_head(struct top *t)
{
	const json_t *d = t->view->document;
	const json_t *up = json_object_get(t->bird, "sessions_up");
	const char *time = judge_text(d, "time");

	if (!d || !top_begin(t))
		return;
	top_printf(t, TEXT_BOLD, "%.255s", top_text(d, "node", "?"));
	top_printf(t, TEXT_PLAIN, ": redshankd %.32s, BIRD %.32s", top_text(d, "version", "?"),
		top_text(t->bird, "version", "unknown"));
	if (json_is_integer(up))
		top_printf(t, TEXT_PLAIN, ", %lld of %lld sessions up",
			(long long)json_integer_value(up),
			(long long)json_integer_value(json_object_get(t->bird, "sessions")));
	top_shed(t);
	/* "2026-11-30T03:12:44.120Z": the time of day, where there is room for it. */
	if (strlen(time) > 19 && t->column + 10 < t->view->width)
		top_printf(t, TEXT_DIM, "%*s%.8sZ", (int)(t->view->width - t->column - 9), "",
			time + 11);
}

/* The last space within the first `width` columns and one, or NULL. */
static char *top_break(char *text, unsigned width)
{
	char *space = NULL;

	for (unsigned column = 0; *text && column <= width; text++) {
		if (*text == ' ' && column > 0)
			space = text;
		column += ((unsigned char)*text & 0xc0) != 0x80;
	}
	return space;
}

/* Text on as many lines as it needs, but no more than a low screen can spare. */
static void top_put_wrapped(struct top *t, enum text_colour colour, const char *text)
{
	unsigned most = t->view->height / 8 < 1 ? 1 : t->view->height / 8;
	_cleanup_free_ char *line = text_escape(text);
	char *rest = line;

	if (!top_begin(t))
		return;
	while (most-- > 1 && text_columns(rest) > t->view->width) {
		char *space = top_break(rest, t->view->width);

		if (!space)
			break;
		*space = '\0';
		top_put(t, colour, rest);
		if (!top_begin(t))
			return;
		rest = space + 1;
	}
	top_put(t, colour, rest);
}

/* The screen is of before, and of when. */
static void top_gone(struct top *t)
{
	int64_t when = text_parse_time(judge_text(t->view->document, "time"));
	_cleanup_free_ char *age = text_age(t->view->now_ms / 1000 - when);

	if (t->view->document && top_begin(t))
		top_printf(t, TEXT_RED,
			"NO AGENT ANSWERS. Below is what was %s ago; it is asked each second.",
			age);
	top_put_wrapped(t, TEXT_YELLOW, t->view->error);
}

static void top_verdict(struct top *t)
{
	static const enum text_colour colours[] = {TEXT_GREEN, TEXT_YELLOW, TEXT_RED};
	_cleanup_buffer_ struct buffer line = {0};
	struct verdict v;

	if (t->view->error)
		top_gone(t);
	if (!t->view->document)
		return;
	verdict_judge(&v, t->view->document);
	buffer_init(&line, VERDICT_TEXT_MAX + VERDICT_COMMAND_MAX + 32);
	if (v.level != JUDGE_GOOD)
		(void)buffer_printf(&line,
			"%s (%s): ", v.level == JUDGE_TROUBLE ? "TROUBLE" : "Look", v.command);
	(void)buffer_append_string(&line, buffer_string(&v.text));
	top_put_wrapped(t, colours[v.level], buffer_string(&line));
	verdict_done(&v);
}

/* --- services --- */

static enum text_colour top_colour(enum judge_level level)
{
	return level == JUDGE_TROUBLE ? TEXT_RED : level == JUDGE_LOOK ? TEXT_YELLOW : TEXT_PLAIN;
}

/* What is wrong with it: its checks that are not up, its prefixes of which something is said. */
static bool top_check_is_told(const json_t *check)
{
	return !judge_is(check, "state", "up");
}

static bool top_prefix_is_told(const struct top *t, const json_t *prefix)
{
	return judge_prefix(prefix, t->bird) != JUDGE_PREFIX_WELL ||
	       judge_is(prefix, "wanted", "withdraw");
}

static size_t top_count_details(const struct top *t, const json_t *service)
{
	const char *name;
	json_t *item;
	size_t n = 0;

	json_object_foreach (json_object_get(service, "checks"), name, item)
		n += top_check_is_told(item);
	json_object_foreach (json_object_get(service, "prefixes"), name, item)
		n += top_prefix_is_told(t, item);
	return n;
}

static int top_compare(const void *a, const void *b)
{
	const struct top_service *x = a, *y = b;

	return x->level != y->level ? (int)y->level - (int)x->level : strcmp(x->name, y->name);
}

static void top_collect(struct top *t)
{
	const json_t *services = json_object_get(t->view->document, "services");
	const char *name;
	json_t *service;

	t->name_width = 7;
	t->services = text_allocate((json_object_size(services) + 1) * sizeof(*t->services));
	json_object_foreach ((json_t *)services, name, service) {
		struct top_service *s = &t->services[t->n_services++];
		unsigned columns = (unsigned)strnlen(name, TOP_NAME_MAX);

		*s = (struct top_service){.name = name,
			.service = service,
			.level = judge_service_level(service, t->bird)};
		if (s->level != JUDGE_GOOD)
			s->details = top_count_details(t, service);
		t->name_width = columns > t->name_width ? columns : t->name_width;
	}
	if (t->n_services > 0)
		qsort(t->services, t->n_services, sizeof(*t->services), top_compare);
}

static void top_say_duration(char buf[16], json_int_t us)
{
	if (us < 10000)
		(void)snprintf(buf, 16, "%.1fms", (double)us / 1000);
	else if (us < 10000000)
		(void)snprintf(buf, 16, "%lldms", (long long)us / 1000);
	else
		(void)snprintf(buf, 16, "%llds", (long long)us / 1000000);
}

static void top_counts(
	struct top *t, const json_t *items, const char *key, const char *wanted, unsigned width)
{
	size_t good = 0;
	const char *name;
	json_t *item;
	char text[48];

	json_object_foreach ((json_t *)items, name, item)
		good += wanted ? judge_is(item, key, wanted)
			       : json_is_true(json_object_get(item, key));
	(void)snprintf(text, sizeof(text), "%zu/%zu", good, json_object_size(items));
	top_cell(t, TEXT_PLAIN, true, width, text);
}

static void top_row(struct top *t, const struct top_service *s)
{
	const json_t *checks = json_object_get(s->service, "checks");
	const char *health = top_text(s->service, "health", "unknown"), *what;
	_cleanup_buffer_ struct buffer said = {0};
	json_int_t slowest = -1;
	const char *name;
	json_t *check;
	char text[16] = "";

	json_object_foreach ((json_t *)checks, name, check) {
		const json_t *us = json_object_get(check, "duration_us");

		if (json_is_integer(us) && json_integer_value(us) > slowest)
			slowest = json_integer_value(us);
	}
	if (slowest >= 0)
		top_say_duration(text, slowest);
	top_cell(t, top_colour(s->level), false, t->name_width, s->name);
	top_cell(t, status_word_colour(health), false, 9, health);
	top_counts(t, checks, "state", "up", 6);
	top_counts(t, json_object_get(s->service, "prefixes"), "announced", NULL, 9);
	top_cell(t, TEXT_PLAIN, true, 7, text);
	if (s->level == JUDGE_GOOD)
		return;
	buffer_init(&said, 1000);
	judge_service_say(&said, "", s->service, t->bird);
	what = buffer_string(&said);
	top_put(t, top_colour(s->level), what + strspn(what, " :"));
}

static void top_check(struct top *t, const char *name, const json_t *check)
{
	_cleanup_free_ char *outcomes = status_outcomes(check, TOP_OUTCOMES);
	const char *state = top_text(check, "state", "unknown");
	char age[16];

	top_age(t, check, age);
	top_printf(t, TEXT_PLAIN, "  check %.64s ", name);
	top_put(t, status_word_colour(state), state);
	top_printf(t, TEXT_PLAIN, " %s %s %s", age, outcomes, judge_text(check, "reason"));
}

/* What BIRD does beside what is wanted. */
static void top_prefix_trouble(struct top *t, enum judge_prefix what, const char *other)
{
	switch (what) {
	case JUDGE_PREFIX_ELSEWHERE:
		top_printf(t, TEXT_RED, ", STILL ANNOUNCED by %.64s", other);
		return;
	case JUDGE_PREFIX_STILL:
		top_put(t, TEXT_RED, ", STILL ANNOUNCED");
		return;
	case JUDGE_PREFIX_MISSING:
		top_put(t, TEXT_RED, ", NOT ANNOUNCED");
		if (other[0])
			top_printf(t, TEXT_RED, ": BIRD prefers %.64s", other);
		return;
	case JUDGE_PREFIX_REPLACED:
		top_printf(t, TEXT_RED, ", announced by %.64s", other);
		return;
	case JUDGE_PREFIX_NO_SESSION:
		top_put(t, TEXT_RED, ", announced to no session");
		return;
	case JUDGE_PREFIX_NO_ADDRESS:
	case JUDGE_PREFIX_FORCED:
	case JUDGE_PREFIX_FROZEN:
	case JUDGE_PREFIX_KEPT:
		top_put(t, TEXT_RED, ", KEPT BY ITS FLOOR");
		return;
	case JUDGE_PREFIX_SHED:
	case JUDGE_PREFIX_WITHDRAWN:
	case JUDGE_PREFIX_DRAINED:
	case JUDGE_PREFIX_UNDECIDED:
	case JUDGE_PREFIX_DEMOTED:
	case JUDGE_PREFIX_WELL:
		return;
	}
	abort();
}

static void top_prefix(struct top *t, const char *name, const json_t *prefix)
{
	const char *wanted = top_text(prefix, "wanted", "unknown");
	enum judge_prefix what = judge_prefix(prefix, t->bird);
	char age[16], reason[512];

	top_age(t, prefix, age);
	status_say_reason(prefix, reason, sizeof(reason));
	top_printf(t, top_colour(judge_prefix_level(what)), "  %.64s ", name);
	top_put(t, status_word_colour(wanted), wanted);
	top_prefix_trouble(t, what, judge_text(prefix, "elsewhere"));
	if (!json_is_boolean(json_object_get(prefix, "announced")))
		top_put(t, TEXT_YELLOW, ", unknown whether announced");
	top_printf(t, TEXT_PLAIN, " %s %s", age, reason);
}

/* At most `most` lines below a service; the last one counts what is left. */
static void top_details(struct top *t, const struct top_service *s, size_t most)
{
	size_t n = 0, said = s->details > most ? most - 1 : s->details;
	const char *name;
	json_t *item;

	if (most == 0)
		return;
	json_object_foreach (json_object_get(s->service, "checks"), name, item)
		if (top_check_is_told(item) && n++ < said && top_begin(t))
			top_check(t, name, item);
	json_object_foreach (json_object_get(s->service, "prefixes"), name, item)
		if (top_prefix_is_told(t, item) && n++ < said && top_begin(t))
			top_prefix(t, name, item);
	if (said < s->details && top_begin(t))
		top_printf(t, TEXT_DIM, "  and %zu more", s->details - said);
}

static size_t top_n_bad(const struct top *t)
{
	size_t n = 0;

	while (n < t->n_services && t->services[n].level != JUDGE_GOOD)
		n++;
	return n;
}

/* The services from the worst on, as many as there is room for; how many. */
static size_t top_rows(struct top *t, size_t n_bad)
{
	size_t n_told = top_left(t) < n_bad ? top_left(t) : n_bad;
	size_t spare = top_left(t) - n_told;

	for (size_t i = 0; i < t->n_services; i++) {
		const struct top_service *s = &t->services[i];
		size_t most = i < n_told ? (spare + n_told - i - 1) / (n_told - i) : 0;

		if (!top_begin(t))
			return i;
		if (most > s->details)
			most = s->details;
		top_row(t, s);
		top_details(t, s, most);
		spare -= most;
	}
	return t->n_services;
}

static void top_services(struct top *t)
{
	size_t n_bad = top_n_bad(t), wanted = t->n_services, n;

	if (!t->view->document || !top_begin(t))
		return;
	if (t->n_services == 0) {
		top_put(t, TEXT_PLAIN, "No services are configured.");
		return;
	}
	top_cell(t, TEXT_DIM, false, t->name_width, "SERVICE");
	top_cell(t, TEXT_DIM, false, 9, "HEALTH");
	top_cell(t, TEXT_DIM, true, 6, "CHECKS");
	top_cell(t, TEXT_DIM, true, 9, "ANNOUNCED");
	top_cell(t, TEXT_DIM, true, 7, "SLOWEST");
	top_put(t, TEXT_DIM, "WHAT");
	for (size_t i = 0; i < n_bad; i++)
		wanted += t->services[i].details;
	t->kept = wanted > top_left(t) ? 1 : 0; /* for what is left out */
	n = top_rows(t, n_bad);
	t->kept = 0;
	if (n < t->n_services && top_begin(t))
		top_printf(t, n < n_bad ? TEXT_RED : TEXT_DIM, "and %zu more services%s",
			t->n_services - n,
			n < n_bad ? ", also some in trouble: enlarge the window" : ", all well");
}

void top_draw(FILE *out, const struct top_view *view)
{
	struct top t = {.view = view, .out = out, .bird = json_object_get(view->document, "bird")};
	struct top_view body = *view;

	assert(view->width > 0 && view->height > 0);
	if (view->height > 4) /* the last line is the foot's */
		body.height--;
	t.view = &body;
	top_collect(&t);
	top_head(&t);
	top_verdict(&t);
	top_services(&t);
	t.view = view;
	if (view->height > 4 && top_begin(&t))
		top_put(&t, TEXT_DIM, TOP_FOOT);
	free(t.services);
}
