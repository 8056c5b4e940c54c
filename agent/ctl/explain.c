/*
 * Why a prefix is announced or not, in sentences.
 *
 * Read at three in the morning, so each block answers in the order in which one asks: is it
 * announced, which rule decided and what is behind that, what does BIRD hold, who gets it, who else
 * has it, at which weight, and what happens next, when. The checks follow with the times of their
 * runs. The document has the facts; every sentence is made here.
 *
 * Prefixes whose blocks read the same, word for word, are one block: a service of 5,000 prefixes
 * that died is one paragraph. The protocols' names are then their pattern in BIRD.
 *
 * A key that is missing counts as unknown: an older agent may not send it.
 */
#include "agent/ctl/explain.h"

#include <string.h>

#include "agent/base/buffer.h"
#include "agent/ctl/text.h"

#define EXPLAIN_LINE_MAX 8192
#define EXPLAIN_NAMED_MAX 8	/* prefixes at the head of a block */
#define EXPLAIN_OUTCOMES_MAX 16 /* the newest ones; the document has more */

enum explain_line {
	LINE_STATE,
	LINE_WHY,
	LINE_BIRD,
	LINE_SESSIONS,
	LINE_OTHERS,
	LINE_WEIGHT,
	LINE_NEXT,
	N_LINES,
};

static const char *const labels[N_LINES] = {
	[LINE_STATE] = "State",
	[LINE_WHY] = "Why",
	[LINE_BIRD] = "BIRD",
	[LINE_SESSIONS] = "Sessions",
	[LINE_OTHERS] = "Others",
	[LINE_WEIGHT] = "Weight",
	[LINE_NEXT] = "Next",
};

struct explain_block {
	struct buffer text[N_LINES];
	enum text_colour colour[N_LINES];
	const json_t *prefix; /* the first one */
	struct buffer names;
	size_t n;
};

struct explain {
	const json_t *document, *bird, *service;
	const char *service_name;
	int64_t now_ms;
	struct explain_block *blocks; /* owned, n */
	size_t n_blocks;
};

/* ---- reading ---- */

static const json_t *get(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(get(object, key));

	return s ? s : "";
}

static bool is_text(const json_t *object, const char *key, const char *text)
{
	return strcmp(text_of(object, key), text) == 0;
}

static long long number_of(const json_t *object, const char *key)
{
	return (long long)json_integer_value(get(object, key));
}

static bool is_stopping(const struct explain *e)
{
	return json_is_true(get(e->document, "stopping"));
}

static bool has_next(const json_t *prefix, const char *what)
{
	const json_t *next;
	size_t i;

	json_array_foreach (get(prefix, "next"), i, next)
		if (is_text(next, "what", what))
			return true;
	return false;
}

/* ---- writing ---- */

/* What does not fit is cut: EXPLAIN_LINE_MAX is more than anybody reads. */
#define say(b, ...) ((void)buffer_printf((b), __VA_ARGS__))

/* "18ms", "1.0s", "12s", "3m": without a space, so that no line ends inside. */
static void say_span(struct buffer *b, int64_t ms)
{
	_cleanup_free_ char *age = NULL;

	if (ms < 0)
		ms = 0;
	if (ms < 1000) {
		say(b, "%lldms", (long long)ms);
	} else if (ms < 10000) {
		say(b, "%lld.%llds", (long long)ms / 1000, (long long)ms % 1000 / 100);
	} else if (ms < 120000) {
		say(b, "%llds", (long long)ms / 1000);
	} else {
		age = text_age(ms / 1000);
		say(b, "%s", age);
	}
}

/* " for 12s" */
static void say_for(const struct explain *e, struct buffer *b, const json_t *object)
{
	int64_t since = text_parse_time_ms(text_of(object, "since"));

	if (since < 0)
		return;
	say(b, " for ");
	say_span(b, e->now_ms - since);
}

/* "in 1.0s", or "now" where the time is not known or over. */
static void say_in(const struct explain *e, struct buffer *b, const char *time)
{
	int64_t at = text_parse_time_ms(time);

	if (at <= e->now_ms) {
		say(b, "now");
		return;
	}
	say(b, "in ");
	say_span(b, at - e->now_ms);
}

/* "2 more good outcomes" */
static void say_outcomes(struct buffer *b, const json_t *next)
{
	long long count = number_of(next, "count");

	say(b, "%lld more %s outcome%s", count, text_of(next, "outcome"), count == 1 ? "" : "s");
}

/* ---- state ---- */

static enum text_colour say_withdrawn(struct buffer *b, const json_t *prefix)
{
	const json_t *announced = get(prefix, "announced");
	const char *other = text_of(prefix, "elsewhere");

	if (other[0]) {
		say(b,
			"STILL ANNOUNCED by protocol %s, which is not redshank's, though it should "
			"be withdrawn",
			other);
		return TEXT_RED;
	}
	if (json_is_true(announced) || number_of(prefix, "exported") > 0) {
		say(b, "STILL ANNOUNCED, though it should be withdrawn");
		return TEXT_RED;
	}
	if (!json_is_boolean(announced)) {
		say(b, "should be withdrawn; whether it is, is unknown");
		return TEXT_YELLOW;
	}
	say(b, "withdrawn, as it should be");
	return TEXT_YELLOW;
}

/* Does BIRD hold another text of it than is wanted? */
static bool is_outdated(const json_t *prefix)
{
	const char *name;
	json_t *protocol;

	json_object_foreach ((json_t *)get(prefix, "protocols"), name, protocol)
		if (is_text(protocol, "wanted", "up") && json_is_false(get(protocol, "loaded")))
			return true;
	return false;
}

static enum text_colour say_announced(
	const struct explain *e, struct buffer *b, const json_t *prefix)
{
	const json_t *announced = get(prefix, "announced"), *exported = get(prefix, "exported");
	const char *other = text_of(prefix, "elsewhere");
	bool demoted = is_text(prefix, "wanted", "demote");
	const char *word = demoted ? "demoted (announced as a last resort)" : "announced";

	if (json_is_false(announced)) {
		say(b, "NOT ANNOUNCED, though it should be %s", word);
		if (other[0])
			say(b, ": BIRD prefers the route of protocol %s", other);
		return TEXT_RED;
	}
	if (!json_is_boolean(announced)) {
		say(b, "should be %s; whether it is, is unknown", word);
		return TEXT_YELLOW;
	}
	if (other[0]) {
		say(b, "should be %s, but BIRD exports the route of protocol %s", word, other);
		return TEXT_RED;
	}
	if (json_is_integer(exported) && json_integer_value(exported) == 0 &&
		number_of(e->bird, "sessions") > 0) {
		say(b, "%s in BIRD, but EXPORTED ON NO SESSION", word);
		return TEXT_RED;
	}
	if (is_outdated(prefix)) {
		say(b, "%s, but with an older weight or older attributes than wanted", word);
		return TEXT_YELLOW;
	}
	say(b, "%s, as it should be", word);
	return demoted ? TEXT_YELLOW : TEXT_GREEN;
}

static enum text_colour say_state(const struct explain *e, struct buffer *b, const json_t *prefix)
{
	enum text_colour colour = is_text(prefix, "wanted", "withdraw")
					  ? say_withdrawn(b, prefix)
					  : say_announced(e, b, prefix);

	say(b, ".");
	return colour;
}

/* ---- why ---- */

/* "all 2 must be up" */
static void say_require(const struct explain *e, struct buffer *b)
{
	const json_t *require = get(e->service, "require");
	size_t n = json_object_size(get(e->service, "checks"));

	if (json_is_integer(require))
		say(b, "%lld of %zu must be up", (long long)json_integer_value(require), n);
	else if (is_text(e->service, "require", "any"))
		say(b, "one of %zu must be up", n);
	else
		say(b, n == 1 ? "it must be up" : "all %zu must be up", n);
}

static bool last_outcome_is(const json_t *check, const char *word)
{
	const json_t *outcomes = get(check, "outcomes");
	const char *last =
		json_string_value(json_array_get(outcomes, json_array_size(outcomes) - 1));

	return last && strcmp(last, word) == 0;
}

/* What stands behind the service's health: a sentence for each check that is not simply up. */
static void say_checks(const struct explain *e, struct buffer *b)
{
	const char *name;
	json_t *check;

	json_object_foreach ((json_t *)get(e->service, "checks"), name, check) {
		const char *reason = text_of(check, "reason");
		bool blind = last_outcome_is(check, "unknown");
		long long rise = number_of(check, "rise");
		long long missing = number_of(get(check, "needs"), "count");

		if (is_text(check, "state", "up") && !blind)
			continue;
		say(b, " Check %s ", name);
		if (is_text(check, "state", "down") && missing > 0 && missing < rise && !blind) {
			say(b, "is still down, and rising: %lld of %lld good outcomes.",
				rise - missing, rise);
			continue;
		}
		if (is_text(check, "state", "pending"))
			say(b, "has not spoken yet");
		else
			say(b, "is %s", text_of(check, "state"));
		if (blind)
			say(b, ", and cannot be asked now by a fault of this server, which counts "
			       "neither as good nor as bad");
		say(b, "%s%s.", reason[0] ? ": " : "", reason);
	}
}

static void say_rule(const struct explain *e, struct buffer *b, const json_t *prefix)
{
	bool none = json_object_size(get(e->service, "checks")) == 0;

	if (is_text(prefix, "reason", "stopping")) {
		say(b, "the agent is stopping, and the service's on_stop is `withdraw`.");
	} else if (is_text(prefix, "reason", "drained")) {
		say(b, "an operator has drained it.");
	} else if (is_text(prefix, "reason", "forced")) {
		say(b, "an operator has forced it to be announced, whatever the checks say.");
	} else if (is_text(prefix, "reason", "address_missing")) {
		say(b, "no address of this host lies in it (or none that is usable, see `ip "
		       "address`): nobody here would answer.");
	} else if (is_text(prefix, "reason", "unhealthy")) {
		say(b, "the service's checks do not meet `require` (");
		say_require(e, b);
		say(b, ").");
	} else if (is_text(prefix, "reason", "first_round")) {
		say(b,
			"not every check has spoken since the agent started or the check was "
			"configured. Until then it stays as BIRD was found: %s.",
			is_text(prefix, "wanted", "withdraw") ? "withdrawn" : "announced");
	} else if (is_text(prefix, "reason", "healthy")) {
		say(b, none ? "the service has no checks, its address is here, and nothing speaks "
			      "against it."
			    : "the service's checks meet `require` (");
		if (!none) {
			say_require(e, b);
			say(b, "), and nothing else speaks against it.");
		}
	}
}

static void say_why(const struct explain *e, struct buffer *b, const json_t *prefix)
{
	if (has_next(prefix, "announce"))
		say(b, "it may be announced now. What held it until now: ");
	if (!json_is_integer(get(prefix, "rule"))) {
		say(b, "unknown.");
		return;
	}
	say(b, "rule %lld, %s", number_of(prefix, "rule"), text_of(prefix, "reason"));
	say_for(e, b, prefix);
	say(b, ": ");
	say_rule(e, b, prefix);
	say_checks(e, b);
	if (is_stopping(e) && is_text(e->service, "on_stop", "keep"))
		say(b, " The agent is stopping; on_stop is `keep`, so BIRD keeps what it does.");
}

/* ---- BIRD ---- */

/* Is the protocol not as wanted? Where it is to be down, one that is absent announces as little. */
static bool is_otherwise(const json_t *protocol)
{
	const char *state = text_of(protocol, "state");

	return state[0] && (strcmp(state, "up") == 0) != is_text(protocol, "wanted", "up");
}

static void say_protocol(struct buffer *b, const char *name, const json_t *protocol)
{
	const char *state = text_of(protocol, "state"), *wanted = text_of(protocol, "wanted");
	const json_t *loaded = get(protocol, "loaded");

	if (json_is_true(get(protocol, "last_resort")))
		say(b, "Last resort: ");
	if (!state[0]) {
		say(b, "protocol %s was not seen yet. ", name);
		return;
	}
	say(b, "protocol %s is %s", name, state);
	if (json_is_false(loaded))
		say(b, ", LOADED WITH OTHER ATTRIBUTES than wanted");
	else if (json_is_true(loaded))
		say(b, ", loaded as wanted");
	if (is_otherwise(protocol))
		say(b, ", SHOULD BE %s", strcmp(wanted, "up") == 0 ? "UP" : "DOWN");
	say(b, ". ");
}

static enum text_colour say_fragment(const struct explain *e, struct buffer *b)
{
	const json_t *fragment = get(e->service, "fragment");
	const char *state = text_of(fragment, "state");

	if (!state[0])
		return TEXT_PLAIN;
	say(b, "Fragment %s ", text_of(fragment, "file"));
	if (strcmp(state, "true") == 0) {
		say(b, "says what is wanted.");
		return TEXT_PLAIN;
	}
	if (strcmp(state, "pending") == 0) {
		say(b, "is being written.");
		return TEXT_PLAIN;
	}
	if (strcmp(state, "put_back") == 0)
		say(b, "is the last good one: BIRD REFUSED THE NEW ONE.");
	else
		say(b, "CAN NOT BE WRITTEN (tried again each second).");
	return TEXT_RED;
}

/* `single`: the protocols by their names, not by the service's pattern. */
static enum text_colour say_bird(
	const struct explain *e, struct buffer *b, const json_t *prefix, bool single)
{
	const json_t *protocols = get(prefix, "protocols");
	enum text_colour colour = TEXT_PLAIN, fragment;
	char pattern[64];
	const char *name;
	json_t *protocol;

	if (is_text(e->bird, "link", "away") || is_text(e->bird, "link", "refused")) {
		say(b, "away; what it announces is unknown. ");
		colour = TEXT_YELLOW;
	} else if (is_text(e->bird, "link", "greeting")) {
		say(b, "is being asked what it announces. ");
		colour = TEXT_YELLOW;
	} else {
		json_object_foreach ((json_t *)protocols, name, protocol) {
			(void)snprintf(pattern, sizeof(pattern), "redshank:%.32s:*%s",
				e->service_name,
				json_is_true(get(protocol, "last_resort")) ? ":last" : "");
			say_protocol(b, single ? name : pattern, protocol);
			if (is_otherwise(protocol))
				colour = TEXT_RED;
		}
		if (text_of(e->bird, "alarm")[0])
			say(b, "It refuses its configuration (above). ");
	}
	fragment = say_fragment(e, b);
	while (b->length > 0 && b->data[b->length - 1] == ' ')
		b->data[--b->length] = '\0';
	return fragment == TEXT_RED ? fragment : colour;
}

/* ---- sessions ---- */

static bool is_listed(const json_t *array, const char *name)
{
	const json_t *item;
	size_t i;

	json_array_foreach (array, i, item)
		if (json_is_string(item) && strcmp(json_string_value(item), name) == 0)
			return true;
	return false;
}

enum session_kind {
	SESSION_EXPORTED,
	SESSION_NOT_EXPORTED,
	SESSION_DOWN,
	SESSION_OTHER_FAMILY,
	N_SESSION_KINDS,
};

static enum session_kind session_kind(const json_t *prefix, const char *name, const json_t *session)
{
	if (!json_is_true(get(session, "up")))
		return SESSION_DOWN;
	if (is_listed(get(prefix, "exported_to"), name))
		return SESSION_EXPORTED;
	return is_listed(get(prefix, "not_exported_to"), name) ? SESSION_NOT_EXPORTED
							       : SESSION_OTHER_FAMILY;
}

static enum text_colour say_sessions(
	const struct explain *e, struct buffer *b, const json_t *prefix)
{
	static const char *const heads[N_SESSION_KINDS] = {
		[SESSION_EXPORTED] = "exported on",
		[SESSION_NOT_EXPORTED] = "not exported on",
		[SESSION_DOWN] = "DOWN:",
		[SESSION_OTHER_FAMILY] = "of another family:",
	};
	const json_t *sessions = get(e->document, "sessions");
	size_t n[N_SESSION_KINDS] = {0};
	bool withdraw = is_text(prefix, "wanted", "withdraw");
	const char *name;
	json_t *session;

	if (!is_text(e->bird, "link", "up")) {
		say(b, "unknown.");
		return TEXT_YELLOW;
	}
	if (json_object_size(sessions) == 0) {
		say(b, "BIRD has no BGP session that bird.sessions names.");
		return TEXT_YELLOW;
	}
	if (!json_is_array(get(prefix, "exported_to"))) {
		say(b, "being asked.");
		return TEXT_YELLOW;
	}
	for (int kind = 0; kind < N_SESSION_KINDS; kind++) {
		json_object_foreach ((json_t *)sessions, name, session) {
			if ((int)session_kind(prefix, name, session) != kind)
				continue;
			if (n[kind]++ == 0)
				say(b, "%s%s %s", b->length > 0 ? "; " : "", heads[kind], name);
			else
				say(b, ", %s", name);
		}
	}
	say(b, ".");
	if (!withdraw && n[SESSION_NOT_EXPORTED] > 0)
		say(b, " Either the export filter there keeps it, or BIRD prefers another route.");
	if (!withdraw && n[SESSION_DOWN] > 0)
		say(b, " A session that is down says why in `birdc show protocols all NAME`.");
	if (withdraw ? n[SESSION_EXPORTED] > 0 : n[SESSION_NOT_EXPORTED] > 0)
		return TEXT_RED;
	return n[SESSION_DOWN] > 0 ? TEXT_YELLOW : TEXT_PLAIN;
}

static enum text_colour say_others(struct buffer *b, const json_t *prefix)
{
	const json_t *others = get(prefix, "others"), *other;
	const char *elsewhere = text_of(prefix, "elsewhere");
	size_t i;

	if (!json_is_array(others)) {
		say(b, "unknown.");
		return TEXT_YELLOW;
	}
	json_array_foreach (others, i, other)
		say(b, "%sprotocol %s has a route for it%s", i > 0 ? "; " : "",
			text_of(other, "protocol"),
			json_is_true(get(other, "best")) ? ", which BIRD prefers" : "");
	if (json_is_true(get(prefix, "more_others")))
		say(b, "; and more");
	if (elsewhere[0])
		say(b,
			"%sthe route of %s LEAVES THIS SERVER, and only BIRD's configuration can "
			"end that: its export line, or that protocol",
			b->length > 0 ? "; " : "", elsewhere);
	say(b, b->length > 0 ? "." : "nobody else's route, as far as this BIRD knows.");
	return elsewhere[0] ? TEXT_RED : TEXT_PLAIN;
}

static void say_weight(const struct explain *e, struct buffer *b, const json_t *prefix)
{
	if (!json_is_integer(get(prefix, "weight"))) {
		say(b, "unknown.");
		return;
	}
	say(b, "%lld, ", number_of(prefix, "weight"));
	if (is_text(prefix, "weight_from", "node"))
		say(b, "from the row of %s in `weights` (the service's own is %lld).",
			text_of(e->document, "node"), number_of(prefix, "own_weight"));
	else
		say(b, "the service's own.");
}

/* ---- what happens next ---- */

/* The first outcome of a check, or the next one of a check that could not be asked. */
static void say_next_word(const struct explain *e, struct buffer *b, const json_t *next)
{
	const char *name = text_of(next, "check");
	const json_t *check = get(get(e->service, "checks"), name);
	int64_t began = text_parse_time_ms(text_of(check, "last"));

	if (json_is_true(get(check, "running"))) {
		say(b, "check %s runs, and speaks within ", name);
		say_span(b, began + number_of(check, "timeout_ms") - e->now_ms);
		return;
	}
	say(b, "check %s %s ", name,
		last_outcome_is(check, "unknown") ? "is tried again" : "runs for the first time");
	say_in(e, b, text_of(next, "at"));
}

static void say_next_check(const struct explain *e, struct buffer *b, const json_t *next)
{
	bool good = is_text(next, "outcome", "good");

	if (!good && !is_text(next, "outcome", "bad")) {
		say_next_word(e, b, next);
		return;
	}
	say(b, "check %s %s ", text_of(next, "check"), good ? "needs" : "goes down with");
	say_outcomes(b, next);
	say(b, ": at the earliest ");
	say_in(e, b, text_of(next, "at"));
}

static void say_next_step(const struct explain *e, struct buffer *b, const json_t *next)
{
	static const struct {
		const char *what, *text;
		bool timed;
	} rows[] = {
		{"leave", "the agent leaves when BIRD has done what is wanted, or gives up", false},
		{"connect", "BIRD is away: next try ", true},
		{"ask", "BIRD is asked what it does ", true},
		{"announce", "the announcement waits a moment for others to go with it: due ",
			true},
		{"write", "the fragment is written ", true},
		{"command", "BIRD is told to do what is wanted ", true},
		{"answer", "BIRD was told to do what is wanted, and has not answered yet", false},
		{"configure", "BIRD is told to configure ", true},
		{"configure_retry",
			"BIRD refuses its configuration; tried when its file is saved, or ", true},
		{"operator", "it stays so until an operator says otherwise", false},
		{"address",
			"an address of this host that lies in it: what the checks say holds then, "
			"at once",
			false},
	};

	if (is_text(next, "what", "check")) {
		say_next_check(e, b, next);
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		if (!is_text(next, "what", rows[i].what))
			continue;
		say(b, "%s", rows[i].text);
		if (rows[i].timed)
			say_in(e, b, text_of(next, "at"));
		return;
	}
	say(b, "%s", text_of(next, "what")); /* of a newer agent */
}

/* `as_wanted`: BIRD does what is wanted. */
static void say_next(
	const struct explain *e, struct buffer *b, const json_t *prefix, bool as_wanted)
{
	const json_t *next;
	size_t i;

	json_array_foreach (get(prefix, "next"), i, next) {
		if (!text_of(next, "what")[0])
			continue;
		if (b->length > 0)
			say(b, "; ");
		say_next_step(e, b, next);
	}
	if (b->length == 0)
		say(b, as_wanted ? "nothing: all is as wanted"
				 : "nothing that the agent does by itself");
	say(b, ".");
}

/* ---- blocks ---- */

static void block_fill(
	const struct explain *e, struct explain_block *block, const json_t *prefix, bool single)
{
	for (int i = 0; i < N_LINES; i++) {
		buffer_clear(&block->text[i]);
		block->colour[i] = TEXT_PLAIN;
	}
	block->colour[LINE_STATE] = say_state(e, &block->text[LINE_STATE], prefix);
	say_why(e, &block->text[LINE_WHY], prefix);
	block->colour[LINE_BIRD] = say_bird(e, &block->text[LINE_BIRD], prefix, single);
	block->colour[LINE_SESSIONS] = say_sessions(e, &block->text[LINE_SESSIONS], prefix);
	block->colour[LINE_OTHERS] = say_others(&block->text[LINE_OTHERS], prefix);
	say_weight(e, &block->text[LINE_WEIGHT], prefix);
	say_next(e, &block->text[LINE_NEXT], prefix, block->colour[LINE_STATE] != TEXT_RED);
}

static void block_init(struct explain_block *block)
{
	*block = (struct explain_block){0};
	for (int i = 0; i < N_LINES; i++)
		buffer_init(&block->text[i], EXPLAIN_LINE_MAX);
	buffer_init(&block->names, EXPLAIN_LINE_MAX);
}

static void block_done(struct explain_block *block)
{
	for (int i = 0; i < N_LINES; i++)
		buffer_done(&block->text[i]);
	buffer_done(&block->names);
}

static bool block_equal(const struct explain_block *a, const struct explain_block *b)
{
	for (int i = 0; i < N_LINES; i++)
		if (a->text[i].length != b->text[i].length ||
			strcmp(buffer_string(&a->text[i]), buffer_string(&b->text[i])) != 0)
			return false;
	return true;
}

static void block_add(struct explain_block *block, const char *name)
{
	if (block->n++ < EXPLAIN_NAMED_MAX)
		say(&block->names, "%s%s", block->n > 1 ? ", " : "", name);
}

/* Blocks of one service, in the order of their first prefixes. */
static void make_blocks(struct explain *e)
{
	struct explain_block made, *larger;
	const char *name;
	json_t *prefix;

	block_init(&made);
	json_object_foreach ((json_t *)get(e->service, "prefixes"), name, prefix) {
		size_t i = 0;

		block_fill(e, &made, prefix, false);
		while (i < e->n_blocks && !block_equal(&e->blocks[i], &made))
			i++;
		if (i == e->n_blocks) {
			larger = reallocarray(e->blocks, e->n_blocks + 1, sizeof(*larger));
			if (!larger)
				break;
			e->blocks = larger;
			made.prefix = prefix;
			e->blocks[e->n_blocks++] = made;
			block_init(&made);
		}
		block_add(&e->blocks[i], name);
	}
	block_done(&made);
}

static void print_block(
	struct explain *e, struct explain_block *block, FILE *out, const struct status_view *view)
{
	_cleanup_buffer_ struct buffer head = {0};

	buffer_init(&head, EXPLAIN_LINE_MAX);
	if (block->n == 1)
		block_fill(e, block, block->prefix, true);
	else
		say(&head, "%zu prefixes: ", block->n);
	say(&head, "%s", buffer_string(&block->names));
	if (block->n > EXPLAIN_NAMED_MAX)
		say(&head, " and %zu more", block->n - EXPLAIN_NAMED_MAX);
	(void)fputc('\n', out);
	text_put_wrapped(out, view->colours, TEXT_BOLD, 0, buffer_string(&head));
	for (int i = 0; i < N_LINES; i++)
		text_put_labelled(out, view->colours, labels[i], block->colour[i],
			buffer_string(&block->text[i]));
}

/* ---- checks ---- */

static void add_time(const struct explain *e, struct text_table *t, const json_t *check,
	const char *key, bool past)
{
	_cleanup_buffer_ struct buffer b = {0};
	int64_t at = text_parse_time_ms(text_of(check, key));

	buffer_init(&b, 64);
	if (at >= 0)
		say_span(&b, past ? e->now_ms - at : at - e->now_ms);
	text_table_add(t, TEXT_PLAIN, true, at >= 0 ? buffer_string(&b) : "-");
}

static void add_duration(struct text_table *t, const json_t *check)
{
	long long us = number_of(check, "duration_us");
	_cleanup_buffer_ struct buffer b = {0};

	buffer_init(&b, 64);
	if (us < 10000)
		say(&b, "%lld.%lldms", us / 1000, us % 1000 / 100);
	else
		say_span(&b, us / 1000);
	text_table_add(
		t, TEXT_PLAIN, true, us > 0 && text_of(check, "last")[0] ? buffer_string(&b) : "-");
}

static void add_next(const struct explain *e, struct text_table *t, const json_t *check)
{
	if (json_is_true(get(check, "running")))
		text_table_add(t, TEXT_PLAIN, true, "runs");
	else
		add_time(e, t, check, "next", false);
}

static void print_checks(const struct explain *e, FILE *out, const struct status_view *view)
{
	static const char *const heads[] = {
		"CHECK", "STATE", "FOR", "RAN AGO", "TOOK", "NEXT IN", "OUTCOMES", "REASON"};
	_cleanup_text_table_ struct text_table t = {0};
	_cleanup_buffer_ struct buffer head = {0};
	const json_t *checks = get(e->service, "checks");
	const char *name;
	json_t *check;

	text_table_init(&t, ELEMENTSOF(heads));
	buffer_init(&head, EXPLAIN_LINE_MAX);
	if (json_object_size(checks) == 0)
		return;
	for (size_t i = 0; i < ELEMENTSOF(heads); i++)
		text_table_add(&t, TEXT_DIM, false, heads[i]);
	json_object_foreach ((json_t *)checks, name, check) {
		text_table_add(&t, TEXT_PLAIN, false, name);
		text_table_add(&t, status_word_colour(text_of(check, "state")), false,
			text_of(check, "state"));
		add_time(e, &t, check, "since", true);
		add_time(e, &t, check, "last", true);
		add_duration(&t, check);
		add_next(e, &t, check);
		status_add_outcomes(&t, check, EXPLAIN_OUTCOMES_MAX);
		text_table_add(&t, TEXT_PLAIN, false, text_of(check, "reason"));
	}
	say(&head, "Checks of %s (", e->service_name);
	say_require(e, &head);
	say(&head, ")");
	(void)fputc('\n', out);
	text_put_wrapped(out, view->colours, TEXT_BOLD, 0, buffer_string(&head));
	text_table_print(&t, out, view->colours, 2);
}

static void print_service(struct explain *e, FILE *out, const struct status_view *view)
{
	const char *health = text_of(e->service, "health");
	char line[512];

	(void)snprintf(line, sizeof(line), "service %.32s on %.255s: %s", e->service_name,
		text_of(e->document, "node"), health[0] ? health : "unknown");
	text_put_wrapped(out, view->colours, status_word_colour(health), 0, line);
	make_blocks(e);
	for (size_t i = 0; i < e->n_blocks; i++)
		print_block(e, &e->blocks[i], out, view);
	for (size_t i = 0; i < e->n_blocks; i++)
		block_done(&e->blocks[i]);
	free(e->blocks);
	e->blocks = NULL;
	e->n_blocks = 0;
	print_checks(e, out, view);
}

void explain_print(FILE *out, const json_t *document, const struct status_view *view)
{
	const json_t *services = get(document, "services");
	struct explain e = {
		.document = document,
		.bird = get(document, "bird"),
		.now_ms = text_parse_time_ms(text_of(document, "time")),
	};
	const char *name;
	json_t *service;
	bool first = true;

	status_print_troubles(out, document, view);
	json_object_foreach ((json_t *)services, name, service) {
		if (!first)
			(void)fputc('\n', out);
		first = false;
		e.service = service;
		e.service_name = name;
		print_service(&e, out, view);
	}
}

/* ---- asking ---- */

char *explain_path(const char *name)
{
	static const char hex[] = "0123456789ABCDEF";
	static const char start[] = "/v1/explain?name=";
	char *path = text_allocate(sizeof(start) + 3 * strlen(name)), *to;

	memcpy(path, start, sizeof(start));
	to = path + sizeof(start) - 1;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		if (strchr("-._~:", *c) || (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
			(*c >= 'A' && *c <= 'Z')) {
			*to++ = (char)*c;
			continue;
		}
		*to++ = '%';
		*to++ = hex[*c >> 4];
		*to++ = hex[*c & 15];
	}
	*to = '\0';
	return path;
}

char *explain_error(const char *body, size_t length)
{
	json_t *document = json_loadb(body, length, 0, NULL);
	const char *text = text_of(document, "error");
	char *copy = text_allocate(strlen(text) + 1);

	memcpy(copy, text, strlen(text) + 1);
	json_decref(document);
	return copy;
}
