/*
 * Sentences about shedding: a line of `status` about the server and its neighbours, and a line of
 * `explain` about one prefix: why it is out, or the first thing that stands in its way with its
 * numbers, who has promised, until when, and what it brings back. docs/shedding.md has the words.
 */
#include "agent/ctl/explain_private.h"
#include "agent/ctl/text.h"

#define say(b, ...) ((void)buffer_printf((b), __VA_ARGS__))

/* What the words mean. The server's come first in it as in core/shed.h; none ends with a stop. */
static const struct shed_row {
	const char *why, *text;
	bool of_server; /* it stands before whatever is known of the prefix */
} rows[] = {
	{"cool", "this server is not overloaded", true},
	{"not_yet", "this server is above `hot`, but not for long enough yet", true},
	{"off", "nothing is shed here (`shed` is not configured, or not `enabled`)", true},
	{"no_load", "no signal of this server's load speaks", true},
	{"starting", "the agent has just started, and may have promised in its last life", true},
	{"late", "the agent ran late a moment ago, and does not trust what it knows", true},
	{"stopped", "SHEDDING HAD NO EFFECT, twice: nothing is shed for `leave_alone`", true},
	{"settling", "the last change has to show in the loads first", true},
	{"waiting", "a request of a moment ago failed", true},
	{"budget", "there were too many changes lately", true},
	{"alone", "fewer than half of the neighbours are fresh", true},
	{"site_hot", "too much of the site is hot: everybody goes on serving", true},
	{"not_top", "it is another server's turn", true},
	{"asking", "neighbours are being asked", false},
	{"enough", "as much as may be out is out already", false},
	{"not_announced", "it is not announced here, healthy and confirmed by BIRD", false},
	{"held", "an operator's word or the freeze holds it", false},
	{"promised", "this server has promised to go on announcing it", false},
	{"uncounted", "its load is not known (`load.prefixes` counts it, docs/load.md)", false},
	{"too_small", "it carries too little to be worth a change", false},
	{"too_large", "it carries too much to be moved at once", false},
	{"last_prefix", "it is the last prefix that this server announces", false},
	{"back_off", "it had to come back, or was refused, and is left alone for a while", false},
	{"floor", "too few neighbours announce it healthily", false},
	{"tier_unknown", "one who would receive it does not report", false},
	{"tier_hot", "too many of those who would receive it are hot", false},
	{"no_room", "one who would receive it has too little room", false},
	{"not_picked", "it could go, but another prefix fits better", false},
	{"overload", "this server is overloaded", false},
	{"operator", "an operator wants it so", false},
	{"released", "there was room for it again", false},
	{"leases", "too few promises were left", false},
	{"no_effect", "this server's load did not fall", false},
	{"receiver_rose", "a neighbour's load rose by more than it had promised", false},
	{"refused", "a neighbour refused", false},
	{"timeout", "not all who were asked promised in time", false},
	{"tier_changed", "those who would receive it are others now", false},
	{"unshed", "an operator wanted it back", false},
	{"guard", "the last guard: too much would have been out", false},
	{"gone", "it was not healthy any more, or did not need it", false},
};

static const struct shed_row *row_of(const char *why)
{
	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if (strcmp(rows[i].why, why) == 0)
			return &rows[i];
	return NULL; /* `new`, or of a newer agent */
}

/* Why a neighbour does not promise: "edge3 refused (no_room): it has too little room". */
static const struct {
	const char *word, *text;
} refusals[] = {
	{"not_announced", "it does not announce it healthily itself"},
	{"leaving", "it is drained, or stops"},
	{"shedding", "it sheds it, too"},
	{"hot", "it is overloaded"},
	{"no_room", "it has too little room"},
	{"unwilling", "it receives nothing, or does not know its load"},
	{"starting", "it has just started"},
	{"full", "it promises as much as it can count"},
	{"stale", "the request came late"},
};

static void say_refusal(struct buffer *b, const char *word)
{
	say(b, " refused (%s)", word);
	for (size_t i = 0; i < ELEMENTSOF(refusals); i++)
		if (strcmp(refusals[i].word, word) == 0)
			say(b, ": %s", refusals[i].text);
}

static void say_per_cent(struct buffer *b, long long bp)
{
	say(b, "%lld.%lld %%", bp / 100, bp % 100 / 10);
}

static void say_until(const struct explain *e, struct buffer *b, const json_t *object)
{
	int64_t at = text_parse_time_ms(judge_text(object, "until"));

	if (at < e->now_ms)
		return;
	say(b, ", for ");
	explain_say_span(b, at - e->now_ms);
	say(b, " more");
}

/* ---- numbers behind a word ---- */

/* Those who announce the prefix healthily, as far as fresh reports tell. */
static size_t count_healthy(const json_t *shed)
{
	const json_t *n;
	size_t i, healthy = 0;

	json_array_foreach (explain_get(shed, "neighbours"), i, n)
		healthy += judge_is(n, "report", "fresh") && judge_is(n, "state", "healthy");
	return healthy;
}

static void say_room(struct buffer *b, const json_t *shed, const char *name)
{
	const json_t *n;
	size_t i;

	json_array_foreach (explain_get(shed, "neighbours"), i, n)
		if (judge_is(n, "neighbour", name))
			say(b,
				json_is_true(explain_get(n, "willing"))
					? ", which has room for %lld"
					: ", which takes nothing",
				explain_number(n, "spare"));
}

static void say_numbers(
	const struct explain *e, struct buffer *b, const json_t *shed, const char *why)
{
	const json_t *server = explain_get(e->document, "shed");
	const char *name = judge_text(shed, "neighbour");

	if (strcmp(why, "cool") == 0 || strcmp(why, "not_yet") == 0) {
		if (!json_is_integer(explain_get(server, "utilisation")))
			return;
		say(b, " (utilisation ");
		say_per_cent(b, explain_number(server, "utilisation"));
		say(b, ", hot is ");
		say_per_cent(b, explain_number(server, "hot"));
		say(b, ")");
	} else if (strcmp(why, "alone") == 0) {
		say(b, " (%lld of %lld)", explain_number(server, "neighbours_fresh"),
			explain_number(server, "neighbours"));
	} else if (strcmp(why, "site_hot") == 0) {
		say(b, " (%lld of %lld neighbours that are fresh)",
			explain_number(server, "neighbours_hot"),
			explain_number(server, "neighbours_fresh"));
	} else if (strcmp(why, "floor") == 0) {
		say(b, " (%zu, and its floor is %lld)", count_healthy(shed),
			explain_number(shed, "floor"));
	} else if (name[0]) {
		say(b, " (%s", name);
		if (strcmp(why, "no_room") == 0)
			say_room(b, shed, name);
		say(b, ")");
	}
}

/* ---- promises ---- */

/* Those that we hold, or those that we gave: "edge2 (for 7.9s more), edge3 has not answered". How
 * many. */
static size_t say_promises(
	const struct explain *e, struct buffer *b, const json_t *shed, bool given)
{
	const json_t *p;
	size_t i, n = 0;

	json_array_foreach (explain_get(shed, "promises"), i, p) {
		int64_t at = text_parse_time_ms(judge_text(p, "until"));
		const char *name = judge_text(p, "neighbour");

		if (json_is_true(explain_get(p, "given")) != given)
			continue;
		say(b, "%s%s", n++ > 0 ? ", " : "", name[0] ? name : "one who is gone");
		if (at >= e->now_ms) {
			say(b, " (for ");
			explain_say_span(b, at - e->now_ms);
			say(b, " more)");
		} else if (judge_text(p, "refused")[0]) {
			say_refusal(b, judge_text(p, "refused"));
		} else {
			say(b, " has not answered");
		}
	}
	return n;
}

/* Nothing where there are none. */
static void say_all_promises(
	const struct explain *e, struct buffer *b, const json_t *shed, bool given)
{
	_cleanup_buffer_ struct buffer list = {0};

	buffer_init(&list, EXPLAIN_LINE_MAX);
	if (say_promises(e, &list, shed, given) == 0)
		return;
	if (given)
		say(b, " It stays here: this server has promised it to %s.", buffer_string(&list));
	else
		say(b, " Promises (its floor is %lld): %s.", explain_number(shed, "floor"),
			buffer_string(&list));
}

/* ---- the line ---- */

static void say_word(struct buffer *b, const json_t *word)
{
	const char *until = judge_text(word, "until"), *reason = judge_text(word, "reason");

	if (!json_is_object(word))
		return;
	say(b, " By hand: %s by %s, %s%s%s%s.", judge_text(word, "word"), judge_text(word, "who"),
		until[0] ? "until " : "until it is reset", until, reason[0] ? ": " : "", reason);
}

static void say_out(const struct explain *e, struct buffer *b, const json_t *shed)
{
	const struct shed_row *row = row_of(judge_text(shed, "why"));
	int64_t since = text_parse_time_ms(judge_text(shed, "since"));

	say(b, "out");
	if (since >= 0) {
		say(b, " for ");
		explain_say_span(b, e->now_ms - since);
	}
	say(b, " (%s): %s. ", judge_is(shed, "mode", "demote") ? "demoted" : "withdrawn",
		row ? row->text : judge_text(shed, "why"));
	if (judge_text(shed, "until")[0]) {
		say(b, "The promises hold");
		say_until(e, b, shed);
		say(b, ", and are renewed.");
	} else {
		say(b, "No promise holds any more.");
	}
	say(b,
		" It brings back %lld of load, and is number %lld of %lld that "
		"are out: the last one comes back first.",
		explain_number(shed, "load_moved"), explain_number(shed, "order"),
		explain_number(explain_get(e->document, "shed"), "out"));
}

static void say_in(const struct explain *e, struct buffer *b, const json_t *shed)
{
	const char *server = judge_text(explain_get(e->document, "shed"), "why");
	const char *why = judge_text(shed, "why");
	const struct shed_row *row = row_of(server);

	if (judge_is(explain_get(shed, "word"), "word", "unshed")) {
		say(b, "not out: an operator keeps it here.");
		return;
	}
	if (!judge_is(explain_get(shed, "word"), "word", "shed") && strcmp(why, "asking") != 0 &&
		row && row->of_server)
		why = server;
	row = row_of(why);
	say(b, "not out: %s", row ? row->text : "nothing has been judged yet");
	say_numbers(e, b, shed, why);
	if (strcmp(why, judge_text(shed, "why")) == 0)
		say_until(e, b, shed);
	say(b, ".");
}

static void say_last(const struct explain *e, struct buffer *b, const json_t *shed)
{
	const struct shed_row *row = row_of(judge_text(shed, "last"));
	int64_t at = text_parse_time_ms(judge_text(shed, "last_at"));

	if (!row || at < 0)
		return;
	say(b, " The last time it came back, or was not taken, ");
	explain_say_span(b, e->now_ms - at);
	say(b, " ago: %s.", row->text);
}

/* Unhealthy, and its floor keeps it: it leaves with as many promises. */
static void say_kept(struct buffer *b, const json_t *shed)
{
	say(b,
		"it wants to leave, and asks for the promises of %lld neighbour%s that announce it "
		"healthily; as far as reports tell there %s %zu of them.",
		explain_number(shed, "floor"), explain_number(shed, "floor") == 1 ? "" : "s",
		count_healthy(shed) == 1 ? "is" : "are", count_healthy(shed));
}

void explain_say_shed(const struct explain *e, struct buffer *b, const json_t *prefix)
{
	const json_t *shed = explain_get(prefix, "shed");

	if (!json_is_object(shed))
		return;
	if (judge_is(prefix, "reason", "kept_by_floor"))
		say_kept(b, shed);
	else if (json_is_true(explain_get(shed, "out")))
		say_out(e, b, shed);
	else
		say_in(e, b, shed);
	say_all_promises(e, b, shed, false);
	say_all_promises(e, b, shed, true);
	say_word(b, explain_get(shed, "word"));
	if (!json_is_true(explain_get(shed, "out")))
		say_last(e, b, shed);
}

/* ---- the status ---- */

/* "shed: overload, 2 promises until 2026-..." */
void status_say_shed(const json_t *prefix, char *buf, size_t size)
{
	const json_t *shed = explain_get(prefix, "shed");

	(void)snprintf(buf, size, "shed: %s, %lld promise%s", judge_text(shed, "why"),
		explain_number(shed, "promised"), explain_number(shed, "promised") == 1 ? "" : "s");
}

static void print_server(FILE *out, const json_t *shed, const struct status_view *view)
{
	const struct shed_row *row = row_of(judge_text(shed, "why"));
	_cleanup_buffer_ struct buffer b = {0};
	long long n = explain_number(shed, "out");

	buffer_init(&b, EXPLAIN_LINE_MAX);
	say(&b, "shedding: %lld prefix%s out", n, n == 1 ? "" : "es");
	if (json_is_integer(explain_get(shed, "utilisation"))) {
		say(&b, ", utilisation ");
		say_per_cent(&b, explain_number(shed, "utilisation"));
		say(&b, " (hot ");
		say_per_cent(&b, explain_number(shed, "hot"));
		say(&b, ")");
	}
	say(&b, ", %lld of %lld neighbours fresh", explain_number(shed, "neighbours_fresh"),
		explain_number(shed, "neighbours"));
	/* Of the server: none could be picked, each for a reason of its own. */
	if (judge_is(shed, "why", "no_room"))
		say(&b, "; no prefix can go, and `redshankctl explain` of each says why");
	else if (row && strcmp(row->why, "cool") != 0)
		say(&b, "; %s", row->text);
	text_put_wrapped(out, view->colours,
		json_is_true(explain_get(shed, "alarm")) ? TEXT_RED
		: n > 0					 ? TEXT_YELLOW
							 : TEXT_PLAIN,
		0, buffer_string(&b));
}

void status_print_shed(FILE *out, const json_t *document, const struct status_view *view)
{
	const json_t *shed = explain_get(document, "shed"), *member;
	int64_t now_ms = text_parse_time_ms(judge_text(document, "time"));
	const char *name;

	if (!json_is_object(shed))
		return;
	print_server(out, shed, view);
	json_object_foreach ((json_t *)explain_get(explain_get(document, "neighbours"), "members"),
		name, member) {
		int64_t at = text_parse_time_ms(judge_text(member, "asked"));
		_cleanup_buffer_ struct buffer b = {0};

		if (judge_is(member, "state", "fresh"))
			continue;
		buffer_init(&b, EXPLAIN_LINE_MAX);
		say(&b, "neighbour %s (%s): %s", name, judge_text(member, "address"),
			judge_text(member, "state"));
		if (at >= 0) {
			say(&b, ", last heard of ");
			explain_say_span(&b, now_ms - at);
			say(&b, " ago");
		}
		if (judge_text(member, "error")[0])
			say(&b, ": %s", judge_text(member, "error"));
		text_put_wrapped(out, view->colours, TEXT_YELLOW, 0, buffer_string(&b));
	}
}
