/*
 * The judgement.
 *
 * TROUBLE is what costs traffic or sends it into a hole: BIRD away, a prefix that is announced
 * although it should not be or the other way round, an unhealthy service. LOOK is what costs
 * nothing yet: one of several sessions down, a configuration that is refused, less than all checks
 * up. A session that is down and leaves a prefix without any is TROUBLE by that prefix.
 *
 * A key that is missing counts as unknown, and what is unknown speaks against nothing.
 */
#include "agent/judge/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/check.h"

#define JUDGE_SESSIONS_NAMED 4
#define JUDGE_SESSIONS_TEXT_MAX 600

const char *judge_text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

bool judge_is(const json_t *object, const char *key, const char *text)
{
	return strcmp(judge_text(object, key), text) == 0;
}

/* ---- a prefix ---- */

/* What was wanted a moment ago may not be done, or not be read back: that is no trouble yet. */
static bool judge_is_settling(const json_t *prefix)
{
	return json_is_true(json_object_get(prefix, "settling"));
}

static enum judge_prefix judge_withdrawn(const json_t *prefix)
{
	if (judge_text(prefix, "elsewhere")[0])
		return JUDGE_PREFIX_ELSEWHERE;
	if (!judge_is_settling(prefix) &&
		(json_is_true(json_object_get(prefix, "announced")) ||
			json_integer_value(json_object_get(prefix, "exported")) > 0))
		return JUDGE_PREFIX_STILL;
	if (judge_is(prefix, "reason", "address_missing"))
		return JUDGE_PREFIX_NO_ADDRESS;
	if (judge_is(prefix, "reason", "frozen"))
		return JUDGE_PREFIX_FROZEN;
	if (judge_is(prefix, "reason", "drained"))
		return JUDGE_PREFIX_DRAINED;
	if (judge_is(prefix, "reason", "first_round"))
		return JUDGE_PREFIX_UNDECIDED;
	if (judge_is(prefix, "reason", "shed"))
		return JUDGE_PREFIX_SHED;
	return judge_is(prefix, "reason", "unhealthy") ? JUDGE_PREFIX_WELL : JUDGE_PREFIX_WITHDRAWN;
}

enum judge_prefix judge_prefix(const json_t *prefix, const json_t *bird)
{
	const json_t *exported = json_object_get(prefix, "exported");

	if (judge_is(prefix, "wanted", "withdraw"))
		return judge_withdrawn(prefix);
	if (!judge_is_settling(prefix) && json_is_false(json_object_get(prefix, "announced")))
		return JUDGE_PREFIX_MISSING;
	if (judge_text(prefix, "elsewhere")[0])
		return JUDGE_PREFIX_REPLACED;
	/* Without sessions there is nobody to export to. */
	if (!judge_is_settling(prefix) && json_is_integer(exported) &&
		json_integer_value(exported) == 0 &&
		json_integer_value(json_object_get(bird, "sessions")) > 0)
		return JUDGE_PREFIX_NO_SESSION;
	if (judge_is(prefix, "reason", "address_missing"))
		return JUDGE_PREFIX_NO_ADDRESS;
	if (judge_is(prefix, "reason", "forced"))
		return JUDGE_PREFIX_FORCED;
	if (judge_is(prefix, "reason", "drained")) /* and still leaving gently */
		return JUDGE_PREFIX_DRAINED;
	if (judge_is(prefix, "reason", "frozen"))
		return JUDGE_PREFIX_FROZEN;
	if (judge_is(prefix, "reason", "first_round"))
		return JUDGE_PREFIX_UNDECIDED;
	if (judge_is(prefix, "reason", "kept_by_floor"))
		return JUDGE_PREFIX_KEPT;
	if (judge_is(prefix, "reason", "shed"))
		return JUDGE_PREFIX_SHED;
	return judge_is(prefix, "wanted", "demote") ? JUDGE_PREFIX_DEMOTED : JUDGE_PREFIX_WELL;
}

enum judge_level judge_prefix_level(enum judge_prefix what)
{
	switch (what) {
	case JUDGE_PREFIX_ELSEWHERE:
	case JUDGE_PREFIX_STILL:
	case JUDGE_PREFIX_MISSING:
	case JUDGE_PREFIX_REPLACED:
	case JUDGE_PREFIX_NO_SESSION:
	case JUDGE_PREFIX_NO_ADDRESS:
	case JUDGE_PREFIX_KEPT:
		return JUDGE_TROUBLE;
	case JUDGE_PREFIX_FORCED:
	case JUDGE_PREFIX_FROZEN:
	case JUDGE_PREFIX_SHED:
	case JUDGE_PREFIX_WITHDRAWN:
	case JUDGE_PREFIX_DRAINED:
	case JUDGE_PREFIX_UNDECIDED:
	case JUDGE_PREFIX_DEMOTED:
		return JUDGE_LOOK;
	case JUDGE_PREFIX_WELL:
		return JUDGE_GOOD;
	}
	abort();
}

/* ---- a service ---- */

enum judge_level judge_health_level(const json_t *service)
{
	if (judge_is(service, "health", "healthy"))
		return JUDGE_GOOD;
	return judge_is(service, "health", "unhealthy") ? JUDGE_TROUBLE : JUDGE_LOOK;
}

static bool judge_is_silent(const json_t *check)
{
	const json_t *outcomes = json_object_get(check, "outcomes");
	size_t n = json_array_size(outcomes);

	for (size_t i = 1; i <= CHECK_SILENT; i++) {
		const char *outcome =
			i <= n ? json_string_value(json_array_get(outcomes, n - i)) : NULL;

		if (!outcome || strcmp(outcome, "unknown") != 0)
			return false;
	}
	return true;
}

enum judge_check judge_check(const json_t *service, const json_t *check)
{
	if (judge_is_silent(check))
		return JUDGE_CHECK_SILENT;
	return judge_is(service, "health", "healthy") && judge_is(check, "state", "down")
		       ? JUDGE_CHECK_DOWN
		       : JUDGE_CHECK_WELL;
}

enum judge_level judge_check_level(enum judge_check what)
{
	return what == JUDGE_CHECK_WELL ? JUDGE_GOOD : JUDGE_LOOK;
}

const char *judge_check_says(enum judge_check what)
{
	return what == JUDGE_CHECK_SILENT ? "says nothing" : "is down";
}

static enum judge_level worse(enum judge_level a, enum judge_level b)
{
	return a > b ? a : b;
}

enum judge_level judge_service_level(const json_t *service, const json_t *bird)
{
	const json_t *memo = json_object_get(service, JUDGE_MEMO);
	enum judge_level level = judge_health_level(service);
	const char *name;
	json_t *item;

	if (json_is_integer(memo))
		return (enum judge_level)json_integer_value(memo);

	json_object_foreach (json_object_get(service, "checks"), name, item)
		level = worse(level, judge_check_level(judge_check(service, item)));
	json_object_foreach (json_object_get(service, "prefixes"), name, item)
		level = worse(level, judge_prefix_level(judge_prefix(item, bird)));
	return level;
}

/* Why nothing is announced of it, apart from an address. */
static const char *why_withdrawn(const json_t *service, enum judge_prefix worst, bool drained)
{
	if (judge_is(service, "health", "unhealthy"))
		return "is unhealthy";
	if (drained)
		return "is drained";
	if (worst == JUDGE_PREFIX_UNDECIDED || !judge_is(service, "health", "healthy"))
		return "is not decided yet";
	return "";
}

void judge_service_say(
	struct buffer *out, const char *called, const json_t *service, const json_t *bird)
{
	enum judge_prefix worst = JUDGE_PREFIX_WELL;
	const json_t *prefix = NULL;
	const char *name, *of = "", *why, *is, *other, *held;
	bool drained = false;
	json_t *item;

	json_object_foreach (json_object_get(service, "prefixes"), name, item) {
		enum judge_prefix what = judge_prefix(item, bird);

		drained = drained || judge_is(item, "reason", "drained");
		if (what >= worst)
			continue;
		worst = what;
		prefix = item;
		of = name;
	}
	why = why_withdrawn(service, worst, drained);
	is = why[0] ? " and" : "is";
	other = judge_text(prefix, "elsewhere");
	(void)buffer_printf(out, "%.32s%s%s", called,
		!why[0] && worst == JUDGE_PREFIX_NO_ADDRESS ? ":" : " ", why);
	switch (worst) {
	case JUDGE_PREFIX_ELSEWHERE:
		(void)buffer_printf(out, "%s STILL ANNOUNCED by %s", is, other);
		return;
	case JUDGE_PREFIX_STILL:
		(void)buffer_printf(out, "%s STILL ANNOUNCED", is);
		return;
	case JUDGE_PREFIX_MISSING:
		(void)buffer_printf(out, "%s NOT ANNOUNCED%s%s", is,
			other[0] ? ": BIRD prefers the route of " : "", other);
		return;
	case JUDGE_PREFIX_REPLACED:
		(void)buffer_printf(out, "%s announced by the route of %s, not by ours", is, other);
		return;
	case JUDGE_PREFIX_NO_SESSION:
		(void)buffer_printf(out, "%s announced to no session", is);
		return;
	case JUDGE_PREFIX_NO_ADDRESS:
		(void)buffer_printf(
			out, "%s %s has no address on this host", why[0] ? " and" : "", of);
		return;
	case JUDGE_PREFIX_FORCED:
		(void)buffer_printf(
			out, "%s", why[0] ? " and ANNOUNCED BY FORCE" : "is announced by force");
		return;
	case JUDGE_PREFIX_FROZEN:
		held = judge_is(prefix, "wanted", "withdraw") ? "WITHDRAWN" : "ANNOUNCED";
		(void)buffer_printf(out, "%s KEPT %s BY THE FREEZE", is, held);
		return;
	case JUDGE_PREFIX_KEPT:
		(void)buffer_printf(out, "%s KEPT ANNOUNCED BY ITS FLOOR", is);
		return;
	case JUDGE_PREFIX_SHED:
		(void)buffer_printf(out, "%s", why[0] ? "" : "has shed prefixes to neighbours");
		return;
	case JUDGE_PREFIX_WITHDRAWN:
		if (!why[0])
			(void)buffer_printf(
				out, "has withdrawn prefixes: %s", judge_text(prefix, "reason"));
		return;
	case JUDGE_PREFIX_DEMOTED:
		if (!why[0])
			(void)buffer_printf(out, "is demoted: %s", judge_text(prefix, "reason"));
		return;
	case JUDGE_PREFIX_DRAINED:
	case JUDGE_PREFIX_UNDECIDED:
		return;
	case JUDGE_PREFIX_WELL:
		break;
	}
	if (why[0])
		return;
	json_object_foreach (json_object_get(service, "checks"), name, item) {
		enum judge_check what = judge_check(service, item);

		if (what == JUDGE_CHECK_WELL)
			continue;
		(void)buffer_printf(
			out, "is healthy, but check %.32s %s", name, judge_check_says(what));
		return;
	}
}

/* ---- BIRD and the agent ---- */

static void judge_link(const json_t *bird, judge_say_fn *say, void *userdata)
{
	struct judge_finding finding = {
		.level = JUDGE_TROUBLE, .detail = judge_text(bird, "error")};
	const char *silent = judge_text(bird, "silent_since");
	char text[160];

	if (judge_is(bird, "link", "up"))
		return;
	if (judge_is(bird, "link", "greeting")) {
		finding.level = JUDGE_LOOK;
		finding.text = "BIRD is being asked what it announces";
		finding.command = "birdc show status";
	} else if (judge_is(bird, "link", "refused")) {
		finding.text = "BIRD is not spoken to";
		finding.command = "birdc show status";
	} else {
		finding.text = "BIRD is away";
		finding.command = "systemctl status bird";
	}
	if (silent[0]) {
		(void)snprintf(text, sizeof(text),
			"BIRD runs but does not answer (since %.19sZ): what it announces now it "
			"keeps "
			"announcing",
			silent);
		finding.text = text;
		finding.command = "systemctl restart bird";
	}
	say(userdata, &finding);
}

static void judge_sessions(const json_t *bird, judge_say_fn *say, void *userdata)
{
	json_int_t up = json_integer_value(json_object_get(bird, "sessions_up"));
	json_int_t sessions = json_integer_value(json_object_get(bird, "sessions"));
	const json_t *down = json_object_get(bird, "sessions_down");
	const char *first = json_string_value(json_array_get(down, 0));
	_cleanup_buffer_ struct buffer text = {0};
	char command[128];
	json_t *name;
	size_t i;

	if (up >= sessions)
		return;
	buffer_init(&text, JUDGE_SESSIONS_TEXT_MAX);
	(void)buffer_printf(&text, "%lld of %lld sessions down", (long long)(sessions - up),
		(long long)sessions);
	json_array_foreach (down, i, name)
		if (i < JUDGE_SESSIONS_NAMED && json_is_string(name))
			(void)buffer_printf(
				&text, "%s%.64s", i > 0 ? ", " : " (", json_string_value(name));
	if (json_array_size(down) > JUDGE_SESSIONS_NAMED)
		(void)buffer_printf(
			&text, " and %zu more", json_array_size(down) - JUDGE_SESSIONS_NAMED);
	if (first)
		(void)buffer_printf(&text, ")");
	(void)snprintf(command, sizeof(command), "birdc show protocols%s%.64s",
		first ? " all " : "", first ? first : "");
	say(userdata, &(struct judge_finding){.level = JUDGE_LOOK,
			      .text = buffer_string(&text),
			      .detail = "",
			      .command = command});
}

const char *judge_alarm(const json_t *bird, const char **ret_detail)
{
	static const char refused[] = "BIRD refuses to configure: ";
	const char *alarm = judge_text(bird, "alarm");

	if (!alarm[0])
		return NULL;
	*ret_detail = alarm;
	if (strncmp(alarm, "BIRD accepts", strlen("BIRD accepts")) == 0)
		return "BIRD does not load our fragments";
	if (strncmp(alarm, refused, strlen(refused)) == 0) {
		*ret_detail += strlen(refused);
		*ret_detail += strspn(*ret_detail, "0123456789 "); /* the reply's code */
	}
	return "BIRD refuses its configuration";
}

/* "the server is frozen by root (uid 0, pid 7) until 2026-...: the checks lie" */
static void judge_word(
	const json_t *word, const char *is, const char *command, judge_say_fn *say, void *userdata)
{
	const char *until = judge_text(word, "until"), *reason = judge_text(word, "reason");
	char text[600];

	if (!json_is_object(word))
		return;
	(void)snprintf(text, sizeof(text), "the server is %s by %.200s%s%.19s%s%s%.200s", is,
		judge_text(word, "who"), until[0] ? " until " : "", until, until[0] ? "Z" : "",
		reason[0] ? ": " : "", reason);
	say(userdata, &(struct judge_finding){
			      .level = JUDGE_LOOK, .text = text, .detail = "", .command = command});
}

const json_t *judge_drain(const json_t *document)
{
	const json_t *drains = json_object_get(document, "drains");
	json_t *drain;
	size_t i;

	json_array_foreach (drains, i, drain)
		if (json_is_object(drain) && !json_is_string(json_object_get(drain, "name")))
			return drain;
	return NULL;
}

bool judge_is_just_drained(const json_t *service, const json_t *bird)
{
	const char *name;
	json_t *item;

	if (judge_health_level(service) != JUDGE_GOOD)
		return false;
	json_object_foreach (json_object_get(service, "checks"), name, item)
		if (judge_check(service, item) != JUDGE_CHECK_WELL)
			return false;
	json_object_foreach (json_object_get(service, "prefixes"), name, item)
		if (judge_prefix(item, bird) != JUDGE_PREFIX_DRAINED)
			return false;
	return true;
}

static void judge_config(const json_t *document, judge_say_fn *say, void *userdata)
{
	const char *error = judge_text(json_object_get(document, "config"), "error");
	char detail[800];

	if (!error[0])
		return;
	(void)snprintf(detail, sizeof(detail), "%.700s; what ran keeps running", error);
	say(userdata, &(struct judge_finding){.level = JUDGE_LOOK,
			      .text = "the configuration on disk was refused",
			      .detail = detail,
			      .command = "redshankd --check",
			      .whole = true});
}

static void judge_state(const json_t *document, judge_say_fn *say, void *userdata)
{
	const char *error = judge_text(json_object_get(document, "state"), "error");

	if (error[0])
		say(userdata, &(struct judge_finding){.level = JUDGE_LOOK,
				      .text = "what operators have said is not on disk",
				      .detail = error,
				      .command = "journalctl -u redshank",
				      .whole = true});
}

/* Above `hot`, and what stands in the way will not be over in a moment; or nobody knows. */
static void judge_overload(const json_t *shed, judge_say_fn *say, void *userdata)
{
	static const char *const lasting[] = {"no_room", "alone", "site_hot", "budget", "enough"};
	json_int_t utilisation = json_integer_value(json_object_get(shed, "utilisation"));
	json_int_t hot = json_integer_value(json_object_get(shed, "hot"));
	struct judge_finding finding = {
		.level = JUDGE_LOOK, .detail = "", .command = "redshankctl status"};
	char text[120];

	if (!json_is_true(json_object_get(shed, "enabled")))
		return;
	if (judge_is(shed, "why", "no_load"))
		finding.text = "the load of the server is not known, and nothing is shed";
	for (size_t i = 0; i < sizeof(lasting) / sizeof(lasting[0]); i++) {
		if (utilisation <= hot || !judge_is(shed, "why", lasting[i]))
			continue;
		(void)snprintf(text, sizeof(text),
			"the server is overloaded (%lld.%lld %%) and can shed nothing%s",
			(long long)utilisation / 100, (long long)utilisation % 100 / 10,
			json_integer_value(json_object_get(shed, "out")) > 0 ? " more" : "");
		finding.text = text;
	}
	if (finding.text)
		say(userdata, &finding);
}

/* Without effect, alone, or about to be: its certificate. */
static void judge_shed(const json_t *document, judge_say_fn *say, void *userdata)
{
	const json_t *shed = json_object_get(document, "shed");
	const json_t *neighbours = json_object_get(document, "neighbours");
	json_int_t n = json_integer_value(json_object_get(shed, "neighbours")),
		   fresh = json_integer_value(json_object_get(shed, "neighbours_fresh"));
	const char *error = judge_text(neighbours, "error");
	const char *warning = judge_text(neighbours, "warning");
	struct judge_finding finding = {
		.level = JUDGE_LOOK, .detail = "", .command = "journalctl -u redshank"};
	char text[300];

	if (json_is_true(json_object_get(shed, "alarm"))) {
		finding.text = "shedding had no effect, and is stopped";
		say(userdata, &finding);
	}
	judge_overload(shed, say, userdata);
	if (2 * fresh < n) {
		(void)snprintf(text, sizeof(text), "only %lld of %lld neighbours report",
			(long long)fresh, (long long)n);
		finding.text = text;
		finding.command = "redshankctl status"; /* has a line for each that does not */
		say(userdata, &finding);
		finding.command = "journalctl -u redshank";
	}
	if (error[0]) {
		finding.text = "certificates or members of neighbours are not taken into use";
		finding.detail = error;
		say(userdata, &finding);
	}
	if (warning[0]) {
		(void)snprintf(
			text, sizeof(text), "the certificate for neighbours: %.200s", warning);
		finding.text = text;
		finding.detail = "";
		say(userdata, &finding);
	}
}

void judge_bird(const json_t *document, judge_say_fn *say, void *userdata)
{
	const json_t *bird = json_object_get(document, "bird");
	const char *files = judge_text(bird, "files_error"), *detail = "";
	const char *alarm = judge_alarm(bird, &detail);

	judge_link(bird, say, userdata);
	if (alarm)
		say(userdata, &(struct judge_finding){.level = JUDGE_LOOK,
				      .text = alarm,
				      .detail = detail,
				      .command = strstr(alarm, "refuses") ? "birdc configure check"
									  : "redshankd --check"});
	if (files[0])
		say(userdata, &(struct judge_finding){.level = JUDGE_LOOK,
				      .text = "fragments can not be written",
				      .detail = files,
				      .command = "systemd-tmpfiles --create",
				      .whole = true});
	judge_sessions(bird, say, userdata);
	judge_word(
		json_object_get(document, "freeze"), "frozen", "redshankctl thaw", say, userdata);
	judge_word(judge_drain(document), "drained", "redshankctl undrain --all", say, userdata);
	judge_config(document, say, userdata);
	judge_state(document, say, userdata);
	judge_shed(document, say, userdata);
	if (json_is_true(json_object_get(document, "stopping")))
		say(userdata, &(struct judge_finding){.level = JUDGE_LOOK,
				      .text = "the agent is stopping",
				      .detail = "",
				      .command = "systemctl status redshank"});
}

static void judge_keep_worst(void *userdata, const struct judge_finding *finding)
{
	enum judge_level *level = userdata;

	*level = worse(*level, finding->level);
}

enum judge_level judge_document(const json_t *document)
{
	enum judge_level level = JUDGE_GOOD;
	const char *name;
	json_t *service;

	judge_bird(document, judge_keep_worst, &level);
	json_object_foreach (json_object_get(document, "services"), name, service)
		level = worse(
			level, judge_service_level(service, json_object_get(document, "bird")));
	return level;
}
