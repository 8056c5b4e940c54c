/*
 * Sentences about one prefix, one function for each line of its block.
 *
 * They are read at three in the morning by somebody who did not write the configuration: whole
 * sentences, the words of the manual, a check's own reason, and CAPITALS for what needs a person.
 * The document has the facts (docs/status.md); nothing is concluded here that it does not say.
 */
#include "agent/ctl/explain_private.h"
#include "agent/ctl/text.h"
#include "agent/judge/judge.h"

#define SPAN_HOUR_MS (3600 * 1000)
#define say(b, ...) ((void)buffer_printf((b), __VA_ARGS__))

/* ---- small words ---- */

static bool is_stopping(const struct explain *e)
{
	return json_is_true(explain_get(e->document, "stopping"));
}

/* BIRD hangs. */
static bool is_silent(const struct explain *e)
{
	return judge_text(e->bird, "silent_since")[0];
}

static bool has_next(const json_t *prefix, const char *what)
{
	const json_t *next;
	size_t i;

	json_array_foreach (explain_get(prefix, "next"), i, next)
		if (judge_is(next, "what", what))
			return true;
	return false;
}

void explain_say_span(struct buffer *b, int64_t ms)
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
		/* An hour says too little of what ends in 1h59m. */
		if (ms >= SPAN_HOUR_MS && ms < 10 * SPAN_HOUR_MS && ms / 60000 % 60 > 0)
			say(b, "%lldm", (long long)ms / 60000 % 60);
		else if (ms >= 24 * SPAN_HOUR_MS && ms / SPAN_HOUR_MS % 24 > 0)
			say(b, "%lldh", (long long)ms / SPAN_HOUR_MS % 24);
	}
}

/* " for 12s" */
static void say_for(const struct explain *e, struct buffer *b, const json_t *object)
{
	int64_t since = text_parse_time_ms(judge_text(object, "since"));

	if (since < 0)
		return;
	say(b, " for ");
	explain_say_span(b, e->now_ms - since);
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
	explain_say_span(b, at - e->now_ms);
}

/* "2 more good outcomes" */
static void say_outcomes(struct buffer *b, const json_t *next)
{
	long long count = explain_number(next, "count");

	say(b, "%lld more %s outcome%s", count, judge_text(next, "outcome"), count == 1 ? "" : "s");
}

/* ---- state ---- */

static enum text_colour say_withdrawn(struct buffer *b, const json_t *prefix)
{
	const json_t *announced = explain_get(prefix, "announced");
	const char *other = judge_text(prefix, "elsewhere");

	if (other[0]) {
		say(b,
			"STILL ANNOUNCED by protocol %s, which is not redshank's, though it should "
			"be withdrawn",
			other);
		return TEXT_RED;
	}
	if (json_is_true(announced) || explain_number(prefix, "exported") > 0) {
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

	json_object_foreach ((json_t *)explain_get(prefix, "protocols"), name, protocol)
		if (judge_is(protocol, "wanted", "up") &&
			json_is_false(explain_get(protocol, "loaded")))
			return true;
	return false;
}

static enum text_colour say_announced(
	const struct explain *e, struct buffer *b, const json_t *prefix)
{
	const json_t *announced = explain_get(prefix, "announced"),
		     *exported = explain_get(prefix, "exported");
	const char *other = judge_text(prefix, "elsewhere");
	bool demoted = judge_is(prefix, "wanted", "demote");
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
		explain_number(e->bird, "sessions") > 0) {
		say(b, "%s in BIRD, but EXPORTED ON NO SESSION", word);
		return TEXT_RED;
	}
	if (is_outdated(prefix)) {
		say(b, "%s, but with an older weight or older attributes than wanted", word);
		return TEXT_YELLOW;
	}
	if (has_next(prefix, "withdraw")) {
		say(b, "%s, and about to leave", word);
		return TEXT_YELLOW;
	}
	say(b, "%s, as it should be", word);
	return demoted ? TEXT_YELLOW : TEXT_GREEN;
}

/* The agent has not taken over yet what BIRD was found doing. */
static bool is_starting(const struct explain *e)
{
	return json_is_false(explain_get(e->document, "ready"));
}

static enum text_colour say_state(const struct explain *e, struct buffer *b, const json_t *prefix)
{
	enum text_colour colour;

	if (is_starting(e)) {
		say(b, "not decided yet.");
		return TEXT_YELLOW;
	}
	colour = judge_is(prefix, "wanted", "withdraw") ? say_withdrawn(b, prefix)
							: say_announced(e, b, prefix);
	/* What was told to BIRD a moment ago is not read back yet: that is no alarm. */
	if (colour == TEXT_RED && json_is_true(explain_get(prefix, "reading"))) {
		buffer_clear(b);
		say(b,
			"should be %s; BIRD is being read again, and was read last before that was "
			"wanted",
			judge_is(prefix, "wanted", "withdraw") ? "withdrawn" : "announced");
		colour = TEXT_YELLOW;
	}
	say(b, ".");
	return colour;
}

/* ---- why ---- */

void explain_say_require(const struct explain *e, struct buffer *b)
{
	const json_t *require = explain_get(e->service, "require");
	size_t n = json_object_size(explain_get(e->service, "checks"));

	if (json_is_integer(require))
		say(b, "%lld of %zu must be up", (long long)json_integer_value(require), n);
	else if (judge_is(e->service, "require", "any"))
		say(b, "one of %zu must be up", n);
	else
		say(b, n == 1 ? "it must be up" : "all %zu must be up", n);
}

static bool last_outcome_is(const json_t *check, const char *word)
{
	const json_t *outcomes = explain_get(check, "outcomes");
	const char *last =
		json_string_value(json_array_get(outcomes, json_array_size(outcomes) - 1));

	return last && strcmp(last, word) == 0;
}

/* What stands behind the service's health: a sentence for each check that is not simply up, and in
 * doubt for those whose last outcome was bad. */
static void say_checks(const struct explain *e, struct buffer *b, bool doubt)
{
	const char *name;
	json_t *check;

	json_object_foreach ((json_t *)explain_get(e->service, "checks"), name, check) {
		const char *reason = judge_text(check, "reason");
		bool up = judge_is(check, "state", "up"), blind = last_outcome_is(check, "unknown");
		long long rise = explain_number(explain_get(check, "needs"), "of");
		long long missing = explain_number(explain_get(check, "needs"), "count");

		if (up && !blind && !(doubt && last_outcome_is(check, "bad")))
			continue;
		say(b, " Check %s ", name);
		if (judge_is(check, "state", "down") && missing > 0 && missing < rise && !blind) {
			say(b, "is still down, and rising: %lld of %lld good outcomes.",
				rise - missing, rise);
			continue;
		}
		if (judge_is(check, "state", "pending"))
			say(b, "has not spoken yet");
		else
			say(b, "is %s%s", judge_text(check, "state"),
				up && !blind ? ", but its last outcome was bad" : "");
		if (blind)
			say(b, ", and cannot be asked now by a fault of this server, which counts "
			       "neither as good nor as bad");
		say(b, "%s%s.", reason[0] ? ": " : "", reason);
	}
}

/* "it was drained by root (uid 0, pid 7) at 2026-..., until 2026-...: new disks." */
static void say_word(const struct explain *e, struct buffer *b, const json_t *word,
	const char *done, const char *undone)
{
	const char *name = judge_text(word, "name"), *until = judge_text(word, "until");
	const char *reason = judge_text(word, "reason");

	if (!json_is_object(word)) {
		say(b, "it was %s by an operator.", done);
		return;
	}
	if (name[0] && strcmp(name, e->service_name) == 0)
		say(b, "its service");
	else
		say(b, name[0] ? "it" : "the whole server");
	say(b, " was %s by %s at %s, ", done, judge_text(word, "who"), judge_text(word, "since"));
	say(b, "%s%s", until[0] ? "until " : undone, until);
	say(b, reason[0] ? ": %s." : "; no reason was given.", reason);
}

/* What an operator holds up is loud where the service would not be announced without. */
static void say_forced(const struct explain *e, struct buffer *b, const json_t *prefix)
{
	say_word(e, b, explain_get(prefix, "announce"), "announced by force", "until it is reset");
	if (judge_is(e->service, "health", "unhealthy"))
		say(b, " THE SERVICE IS UNHEALTHY: without that word it would be withdrawn.");
	else
		say(b, " Its checks and addresses do not count meanwhile.");
}

static void say_frozen(const struct explain *e, struct buffer *b, const json_t *prefix)
{
	say_word(e, b, explain_get(e->document, "freeze"), "frozen", "until it is thawed");
	say(b,
		" So it stays %s, although the rules say otherwise. Only a dead process, a missing "
		"address or an operator's word changes that.",
		judge_is(prefix, "wanted", "withdraw") ? "withdrawn" : "announced");
}

static void say_rule(const struct explain *e, struct buffer *b, const json_t *prefix)
{
	bool none = json_object_size(explain_get(e->service, "checks")) == 0;

	if (judge_is(prefix, "reason", "stopping")) {
		say(b, "the agent is stopping, and the service's on_stop is `withdraw`.");
	} else if (judge_is(prefix, "reason", "drained")) {
		say_word(e, b, explain_get(prefix, "drain"), "drained", "until it is undrained");
	} else if (judge_is(prefix, "reason", "forced")) {
		say_forced(e, b, prefix);
	} else if (judge_is(prefix, "reason", "frozen")) {
		say_frozen(e, b, prefix);
	} else if (judge_is(prefix, "reason", "address_missing")) {
		say(b, "no address of this host lies in it (or none that is usable, see `ip "
		       "address`): nobody here would answer.");
	} else if (judge_is(prefix, "reason", "unhealthy")) {
		say(b, "the service's checks do not meet `require` (");
		explain_say_require(e, b);
		say(b, ").");
	} else if (judge_is(prefix, "reason", "kept_by_floor")) {
		say(b, "the service is unhealthy, and its `floor` keeps it announced: too few "
		       "neighbours have promised to stay in its place.");
	} else if (judge_is(prefix, "reason", "held_down")) {
		say(b, "the service flapped too often. It is well now, and comes back when its "
		       "penalty has decayed (`hold_down`).");
	} else if (judge_is(prefix, "reason", "shed")) {
		say(b, "neighbours have promised to go on announcing it in the place of this "
		       "server.");
	} else if (judge_is(prefix, "reason", "in_doubt")) {
		say(b, "the service is healthy, but the last outcome of a check was bad: it comes "
		       "back when that check is up for certain.");
	} else if (judge_is(prefix, "reason", "shared_unhealthy")) {
		say(b,
			"only checks that are `shared` are down, which every server sees. If all "
			"withdrew for that, nobody would be left: it stays%s.",
			judge_is(prefix, "wanted", "demote") ? ", demoted" : "");
	} else if (judge_is(prefix, "reason", "ramping")) {
		say(b, "the service is healthy and has just come back: its weight goes to its own "
		       "in steps (`slow_start`).");
	} else if (judge_is(prefix, "reason", "first_round")) {
		say(b, "%s Until then it stays as BIRD was found: %s.",
			has_next(prefix, "spread") && !has_next(prefix, "check")
				? "first announcements after a start wait for a random time, so "
				  "that a site does not announce all in one moment "
				  "(`start_spread`)."
				: "not every check has spoken since the agent started or the check "
				  "was configured.",
			judge_is(prefix, "wanted", "withdraw") ? "withdrawn" : "announced");
	} else if (judge_is(prefix, "reason", "healthy")) {
		say(b, none ? "the service has no checks, its address is here, and nothing speaks "
			      "against it."
			    : "the service's checks meet `require` (");
		if (!none) {
			explain_say_require(e, b);
			say(b, "), and nothing else speaks against it.");
		}
	}
}

static void say_why(const struct explain *e, struct buffer *b, const json_t *prefix)
{
	if (is_starting(e)) {
		say(b, "the agent has just started, and asks BIRD what it announces. Nothing is "
		       "decided yet; within a second it is.");
		return;
	}
	if (has_next(prefix, "announce"))
		say(b, "it may be announced now. What held it until now: ");
	if (!json_is_integer(explain_get(prefix, "rule"))) {
		say(b, "unknown.");
		return;
	}
	say(b, "rule %lld, %s", explain_number(prefix, "rule"), judge_text(prefix, "reason"));
	say_for(e, b, prefix);
	say(b, ": ");
	say_rule(e, b, prefix);
	if (has_next(prefix, "withdraw"))
		say(b, " It leaves gently (`leave`): routers are told first, and find another "
		       "way.");
	say_checks(e, b, judge_is(prefix, "reason", "in_doubt"));
	if (is_stopping(e) && judge_is(e->service, "on_stop", "keep"))
		say(b, " The agent is stopping; on_stop is `keep`, so BIRD keeps what it does.");
}

/* ---- BIRD ---- */

/* Is the protocol not as wanted? Where it is to be down, one that is absent announces as little. */
static bool is_otherwise(const json_t *protocol)
{
	const char *state = judge_text(protocol, "state");

	return state[0] && (strcmp(state, "up") == 0) != judge_is(protocol, "wanted", "up");
}

/* Which weight it has, where that is known, for that is what is asked next. */
static void say_loaded_otherwise(struct buffer *b, const json_t *protocol, const json_t *prefix)
{
	bool twin = json_is_true(explain_get(protocol, "last_resort"));
	long long has = explain_number(protocol, "weight"),
		  wanted = explain_number(prefix, "weight");

	say(b, ", LOADED WITH OTHER ATTRIBUTES than wanted");
	if (twin || !json_is_integer(explain_get(protocol, "weight")))
		return;
	if (has == wanted)
		say(b, " (not the weight, which is %lld: prepending or communities)", has);
	else
		say(b, " (weight %lld, wanted %lld)", has, wanted);
}

static void say_protocol(
	struct buffer *b, const char *name, const json_t *protocol, const json_t *prefix)
{
	const char *state = judge_text(protocol, "state"), *wanted = judge_text(protocol, "wanted");
	const json_t *loaded = explain_get(protocol, "loaded");

	if (json_is_true(explain_get(protocol, "last_resort")))
		say(b, "Last resort: ");
	if (!state[0]) {
		say(b, "protocol %s was not seen yet. ", name);
		return;
	}
	say(b, "protocol %s is %s", name, state);
	if (json_is_false(loaded))
		say_loaded_otherwise(b, protocol, prefix);
	else if (json_is_true(loaded))
		say(b, ", loaded as wanted");
	if (is_otherwise(protocol))
		say(b, ", SHOULD BE %s", strcmp(wanted, "up") == 0 ? "UP" : "DOWN");
	say(b, ". ");
}

static enum text_colour say_fragment(const struct explain *e, struct buffer *b)
{
	const json_t *fragment = explain_get(e->service, "fragment");
	const char *state = judge_text(fragment, "state");

	if (!state[0])
		return TEXT_PLAIN;
	say(b, "Fragment %s ", judge_text(fragment, "file"));
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
		say(b, "CAN NOT BE WRITTEN%s.",
			judge_text(e->bird, "files_error")[0] ? " (above)" : "");
	return TEXT_RED;
}

/* `single`: the protocols by their names, not by the service's pattern. */
static enum text_colour say_bird(
	const struct explain *e, struct buffer *b, const json_t *prefix, bool single)
{
	const json_t *protocols = explain_get(prefix, "protocols");
	enum text_colour colour = TEXT_PLAIN, fragment;
	const char *name, *detail, *alarm = judge_alarm(e->bird, &detail);
	char pattern[64];
	json_t *protocol;

	if (is_silent(e)) {
		say(b, "does not answer; what it announces now it keeps announcing. ");
		colour = TEXT_YELLOW;
	} else if (judge_is(e->bird, "link", "away") || judge_is(e->bird, "link", "refused")) {
		say(b, "away; what it announces is unknown. ");
		colour = TEXT_YELLOW;
	} else if (judge_is(e->bird, "link", "greeting")) {
		say(b, "is being asked what it announces. ");
		colour = TEXT_YELLOW;
	} else {
		json_object_foreach ((json_t *)protocols, name, protocol) {
			(void)snprintf(pattern, sizeof(pattern), "redshank:%.32s:*%s",
				e->service_name,
				json_is_true(explain_get(protocol, "last_resort")) ? ":last" : "");
			say_protocol(b, single ? name : pattern, protocol, prefix);
			if (is_otherwise(protocol))
				colour = TEXT_RED;
		}
		if (alarm)
			say(b, "%s (above). ", alarm);
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
	if (!json_is_true(explain_get(session, "up")))
		return SESSION_DOWN;
	if (is_listed(explain_get(prefix, "exported_to"), name))
		return SESSION_EXPORTED;
	return is_listed(explain_get(prefix, "not_exported_to"), name) ? SESSION_NOT_EXPORTED
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
	const json_t *sessions = explain_get(e->document, "sessions");
	size_t n[N_SESSION_KINDS] = {0};
	bool withdraw = judge_is(prefix, "wanted", "withdraw");
	const char *name, *other;
	json_t *session;

	if (!judge_is(e->bird, "link", "up")) {
		say(b, "unknown.");
		return TEXT_YELLOW;
	}
	if (json_object_size(sessions) == 0) {
		say(b, "BIRD has no BGP session that bird.sessions names.");
		return TEXT_YELLOW;
	}
	if (!json_is_array(explain_get(prefix, "exported_to"))) {
		say(b, "being asked.");
		return TEXT_YELLOW;
	}
	other = judge_text(prefix, "elsewhere");
	for (int kind = 0; kind < N_SESSION_KINDS; kind++) {
		json_object_foreach ((json_t *)sessions, name, session) {
			if ((int)session_kind(prefix, name, session) != kind)
				continue;
			if (n[kind]++ == 0)
				say(b, "%s%s%s %s", b->length > 0 ? "; " : "",
					kind == SESSION_NOT_EXPORTED && other[0] ? "ours is " : "",
					heads[kind], name);
			else
				say(b, ", %s", name);
		}
	}
	say(b, ".");
	if (other[0] && n[SESSION_NOT_EXPORTED] > 0)
		say(b, " The route of %s leaves there%s.", other,
			n[SESSION_NOT_EXPORTED] > 1 ? ", on one of them at least" : "");
	else if (!withdraw && n[SESSION_NOT_EXPORTED] > 0 &&
		 json_is_true(explain_get(prefix, "announced")))
		say(b, " Either the export filter there keeps it, or BIRD prefers another route.");
	if (!withdraw && n[SESSION_DOWN] > 0)
		say(b, " A session that is down says why in `birdc show protocols all NAME`.");
	if (other[0] || (withdraw ? n[SESSION_EXPORTED] > 0 : n[SESSION_NOT_EXPORTED] > 0))
		return TEXT_RED;
	return n[SESSION_DOWN] > 0 ? TEXT_YELLOW : TEXT_PLAIN;
}

static enum text_colour say_others(struct buffer *b, const json_t *prefix)
{
	const json_t *others = explain_get(prefix, "others"), *other;
	const char *elsewhere = judge_text(prefix, "elsewhere");
	size_t i;

	if (!json_is_array(others)) {
		say(b, "unknown.");
		return TEXT_YELLOW;
	}
	json_array_foreach (others, i, other)
		say(b, "%sprotocol %s has a route for it%s", i > 0 ? "; " : "",
			judge_text(other, "protocol"),
			json_is_true(explain_get(other, "best")) ? ", which BIRD prefers" : "");
	if (json_is_true(explain_get(prefix, "more_others")))
		say(b, "; and more");
	if (elsewhere[0])
		say(b,
			"%sthe route of %s LEAVES THIS SERVER, and only BIRD's configuration can "
			"end that: its export line, or that protocol",
			b->length > 0 ? "; " : "", elsewhere);
	say(b, b->length > 0 ? "." : "nobody else's route, as far as this BIRD knows.");
	return elsewhere[0] ? TEXT_RED : TEXT_PLAIN;
}

/* "by root (uid 0, pid 7) at ..., until it is reset: hotter disks (configured is 100)." */
static void say_weight_word(struct buffer *b, const json_t *prefix)
{
	const json_t *word = explain_get(prefix, "weight_word");
	const char *until = judge_text(word, "until"), *reason = judge_text(word, "reason");

	say(b, "given by %s at %s, %s%s", judge_text(word, "who"), judge_text(word, "since"),
		until[0] ? "until " : "until it is reset", until);
	say(b, "%s%s (configured is %lld).", reason[0] ? ": " : "", reason,
		explain_number(prefix, "configured_weight"));
}

static void say_weight(const struct explain *e, struct buffer *b, const json_t *prefix)
{
	bool operators = judge_is(prefix, "weight_from", "operator");

	if (!json_is_integer(explain_get(prefix, "weight"))) {
		say(b, "unknown.");
		return;
	}
	say(b, "%lld, ", explain_number(prefix, "weight"));
	if (judge_text(prefix, "weight_by")[0])
		say(b, "by `%s`; its own is %lld, ", judge_text(prefix, "weight_by"),
			explain_number(operators ? explain_get(prefix, "weight_word") : prefix,
				operators ? "weight" : "configured_weight"));
	if (operators)
		say_weight_word(b, prefix);
	else if (judge_is(prefix, "weight_from", "node"))
		say(b, "from the row of %s in `weights` (the service's own is %lld).",
			judge_text(e->document, "node"), explain_number(prefix, "own_weight"));
	else
		say(b, "the service's own.");
}

/* ---- what happens next ---- */

/* The first outcome of a check, or the next one of a check that could not be asked. */
static void say_next_word(const struct explain *e, struct buffer *b, const json_t *next)
{
	const char *name = judge_text(next, "check");
	const json_t *check = explain_get(explain_get(e->service, "checks"), name);
	int64_t began = text_parse_time_ms(judge_text(check, "last"));

	if (json_is_true(explain_get(check, "running"))) {
		say(b, "check %s runs, and speaks within ", name);
		explain_say_span(b, began + explain_number(check, "timeout_ms") - e->now_ms);
		return;
	}
	if (!judge_text(check, "next")[0]) {
		say(b, "check %s is not started yet", name);
		return;
	}
	say(b, "check %s %s ", name,
		last_outcome_is(check, "unknown") ? "is tried again" : "runs for the first time");
	say_in(e, b, judge_text(next, "at"));
}

static void say_next_check(const struct explain *e, struct buffer *b, const json_t *next)
{
	bool good = judge_is(next, "outcome", "good");

	if (!good && !judge_is(next, "outcome", "bad")) {
		say_next_word(e, b, next);
		return;
	}
	say(b, "check %s %s ", judge_text(next, "check"), good ? "needs" : "goes down with");
	say_outcomes(b, next);
	say(b, ": at the earliest ");
	say_in(e, b, judge_text(next, "at"));
}

static void say_next_step(const struct explain *e, struct buffer *b, const json_t *next)
{
	static const struct {
		const char *what, *text;
		bool timed;
		const char *untimed; /* the text where no time is known; NULL: "now" */
	} rows[] = {
		{"leave", "the agent leaves when BIRD has done what is wanted, or gives up", false,
			NULL},
		{"connect", "BIRD is away: next try ", true, "BIRD is away: a try is under way"},
		{"ask", "BIRD is asked what it does ", true, NULL},
		{"announce", "the announcement waits a moment for others to go with it: due ", true,
			NULL},
		{"write", "the fragment is written ", true, NULL},
		{"command", "BIRD is told to do what is wanted ", true, NULL},
		{"answer", "BIRD was told to do what is wanted, and has not answered yet", false,
			NULL},
		{"configure", "BIRD is told to configure ", true, NULL},
		{"configure_retry",
			"BIRD refuses its configuration; tried when its file is saved, or ", true,
			NULL},
		{"configure_trial",
			"somebody tries a configuration of BIRD (`configure timeout`); BIRD is "
			"told "
			"to configure when that is confirmed or undone",
			false, NULL},
		{"operator", "the operator's word ends ", true,
			"it stays so until an operator says otherwise"},
		{"reuse", "its penalty has decayed ", true, "it may come back"},
		{"withdraw", "it is withdrawn ", true, NULL},
		{"spread", "it may be announced ", true, NULL},
		{"step", "its weight takes the next step ", true,
			"its weight stays until the thaw"},
		{"unshed", "it comes back when this server has room again, or a promise ends",
			false, NULL},
		{"thaw", "the freeze ends ", true,
			"it stays so until an operator thaws the server"},
		{"address", "as soon as an address of this host lies in it, the checks decide",
			false, NULL},
	};

	if (judge_is(next, "what", "check")) {
		say_next_check(e, b, next);
		return;
	}
	if (judge_is(next, "what", "connect") && is_silent(e) && judge_text(next, "at")[0]) {
		say(b, "BIRD does not answer: next try ");
		say_in(e, b, judge_text(next, "at"));
		return;
	}
	if (judge_is(next, "what", "write") &&
		judge_is(explain_get(e->service, "fragment"), "state", "unwritable")) {
		say(b, "the fragment is tried again each second");
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		if (!judge_is(next, "what", rows[i].what))
			continue;
		if (rows[i].untimed && !judge_text(next, "at")[0]) {
			say(b, "%s", rows[i].untimed);
			return;
		}
		say(b, "%s", rows[i].text);
		if (rows[i].timed)
			say_in(e, b, judge_text(next, "at"));
		return;
	}
	say(b, "%s", judge_text(next, "what")); /* of a newer agent */
}

/* What only a person can do: the agent never changes anybody else's part of BIRD. */
static void say_person(const struct explain *e, struct buffer *b, const json_t *prefix)
{
	const char *other = judge_text(prefix, "elsewhere");

	if (is_silent(e))
		say(b, " FOR A PERSON: `systemctl restart bird` ends what it still announces.");
	else if (other[0])
		say(b,
			" FOR A PERSON: end the route of %s. Let the export line take services by "
			"our "
			"functions alone (`export where redshank_export_med();`, for iBGP "
			"`redshank_export_local_pref(TOP)`), then `birdc configure`. "
			"docs/bird-beside.md has it under \"The same prefix from another source\".",
			other);
	else if (json_is_true(explain_get(prefix, "announced")) &&
		 !judge_is(prefix, "wanted", "withdraw") &&
		 json_array_size(explain_get(prefix, "exported_to")) == 0 &&
		 json_array_size(explain_get(prefix, "not_exported_to")) > 0)
		say(b, " FOR A PERSON: the export line of those sessions has to accept ours "
		       "(`redshank_export_med()`; docs/bird-beside.md, step 2), then `birdc "
		       "configure`.");
}

/* `as_wanted`: BIRD does what is wanted. */
static void say_next(
	const struct explain *e, struct buffer *b, const json_t *prefix, bool as_wanted)
{
	const json_t *next;
	size_t i;

	json_array_foreach (explain_get(prefix, "next"), i, next) {
		if (!judge_text(next, "what")[0])
			continue;
		if (b->length > 0)
			say(b, "; ");
		say_next_step(e, b, next);
	}
	if (b->length == 0)
		say(b, as_wanted ? "nothing: all is as wanted"
				 : "nothing that the agent does by itself");
	say(b, ".");
	say_person(e, b, prefix);
}

/* ---- all of it ---- */

void explain_say(
	const struct explain *e, const json_t *prefix, bool single, struct explain_text *ret)
{
	struct buffer *line = ret->line;

	for (int i = 0; i < EXPLAIN_N_LINES; i++) {
		buffer_clear(&line[i]);
		ret->colour[i] = TEXT_PLAIN;
	}
	ret->colour[EXPLAIN_STATE] = say_state(e, &line[EXPLAIN_STATE], prefix);
	say_why(e, &line[EXPLAIN_WHY], prefix);
	ret->colour[EXPLAIN_BIRD] = say_bird(e, &line[EXPLAIN_BIRD], prefix, single);
	ret->colour[EXPLAIN_SESSIONS] = say_sessions(e, &line[EXPLAIN_SESSIONS], prefix);
	ret->colour[EXPLAIN_OTHERS] = say_others(&line[EXPLAIN_OTHERS], prefix);
	say_weight(e, &line[EXPLAIN_WEIGHT], prefix);
	ret->colour[EXPLAIN_ADDRESS] = explain_say_address(&line[EXPLAIN_ADDRESS], prefix);
	explain_say_shed(e, &line[EXPLAIN_SHED], prefix);
	say_next(e, &line[EXPLAIN_NEXT], prefix, ret->colour[EXPLAIN_STATE] != TEXT_RED);
}
