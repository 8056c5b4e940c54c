/*
 * The connection that changes BIRD.
 *
 * Four commands: `disable` and `enable` of a protocol or of all of a service ("redshank:dns:*"),
 * sent whenever they are due, one behind the other, also behind a `configure` that is not answered
 * yet; `configure`, one at a time, never while BIRD is reconfiguring; `configure status`, asked
 * after every other one until it says 0003.
 *
 * What 0004 and 0005 mean here. BIRD has taken a configuration and is not done, or has one queued
 * behind it. A queued one was parsed earlier: it may bring a protocol up that was disabled since,
 * although the fragment says `disabled;`. So BIRD is asked every 50 ms; at 0003 nothing is known of
 * any protocol, all are looked at again, and core/plan repeats what is needed.
 *
 * A refused `configure` (8002: bird.conf is broken, or our fragment is) raises the alarm and is
 * tried again with back-off, at once when the refused file changes or somebody else's `configure`
 * was taken. Health goes on by `disable` and `enable` meanwhile. So that a broken bird.conf is told
 * before a `configure` or a restart of BIRD needs it, `configure check` follows, a second later and
 * at most every ten seconds, where that is known to be cheap: a health command, somebody's file in
 * our folder, somebody's SIGHUP, the first connection, and five minutes in which BIRD read nothing
 * for us. (What `configure` told another client is told to nobody else.)
 *
 * An operator may try a configuration with `configure timeout`: unless it is confirmed, BIRD goes
 * back to the one before. Any other `configure` would confirm it for them (conf/conf.c of BIRD,
 * config_commit() stops the timer). So while `configure status` says 0022, none is sent, and health
 * goes on as after a refusal.
 */
#include "agent/bird/apply_state.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>

#include "agent/base/clock.h"
#include "agent/base/printable.h"
#include "agent/events/events.h"
#include "agent/system/log.h"

#define COMMANDS_BUSY_LONG_US 30000000

static bool commands_ready(const struct apply *a)
{
	return a->command.client && a->command.greeted;
}

static void commands_count(struct apply *a, enum apply_command_kind kind, struct monotime sent,
	const struct reply *reply)
{
	struct apply_counter *counter = &a->status.commands[kind];
	enum apply_command_result result = APPLY_RESULT_LOST;

	if (reply) {
		switch (reply_judge(reply->code)) {
		case REPLY_ACCEPTED:
			result = APPLY_RESULT_ACCEPTED;
			break;
		case REPLY_REFUSED:
			result = APPLY_RESULT_REFUSED;
			break;
		case REPLY_OTHER:
			/* 0020: configure check, "Configuration OK" */
			result = reply->code == 20 ? APPLY_RESULT_ACCEPTED : APPLY_RESULT_OTHER;
			break;
		}
		histogram_add(&counter->duration, monotime_since_us(sent, clock_monotime()));
	}
	counter->results[result]++;
}

static void command_unsent(struct apply *a, enum apply_command_kind kind)
{
	a->status.commands[kind].results[APPLY_RESULT_UNSENT]++;
}

/* ---- disable, enable ---- */

static void command_put_back(struct apply *a, struct apply_command *c)
{
	if (!c->spare) {
		free(c);
		return;
	}
	c->next = a->spares;
	a->spares = c;
}

int apply_commands_init(struct apply *a)
{
	for (size_t i = 0; i < APPLY_SPARES; i++) {
		struct apply_command *c = malloc(sizeof(*c));

		if (!c)
			return -ENOMEM;
		c->spare = true;
		command_put_back(a, c);
	}
	return 0;
}

void apply_commands_done(struct apply *a)
{
	while (a->spares) {
		struct apply_command *c = a->spares;

		a->spares = c->next;
		free(c);
	}
}

/* NULL: no memory, and more are under way than were laid by. */
static struct apply_command *command_new(struct apply *a)
{
	struct apply_command *c = a->spares;

	if (!c)
		return calloc(1, sizeof(*c));
	a->spares = c->next;
	*c = (struct apply_command){.spare = true};
	return c;
}

static void command_free(struct apply_command *c)
{
	struct apply *a = c->apply;

	if (c->previous)
		c->previous->next = c->next;
	else
		a->waiting = c->next;
	if (c->next)
		c->next->previous = c->previous;
	assert(a->commands_waiting > 0);
	a->commands_waiting--;
	command_put_back(a, c);
}

/* Notes which protocols the answer names. */
static void command_confirm(struct apply *a, const struct apply_command *c, const struct reply *r)
{
	char name[NAMES_MAX];

	for (size_t i = 0; i < r->n_lines; i++) {
		const struct reply_line *line = &r->lines[i];
		struct apply_protocol *p;
		/* 0008 already disabled, 0009 disabled, 0010 already enabled, 0011 enabled */
		bool says = c->enable ? line->code == 10 || line->code == 11
				      : line->code == 8 || line->code == 9;

		if (!says || !observe_our_name(line->text, name))
			continue;
		p = apply_find(a, name);
		if (p)
			p->confirmed = c->number;
	}
}

static enum plan_seen command_outcome(
	const struct apply_command *c, const struct apply_protocol *p, const struct reply *reply)
{
	if (!reply)
		return PLAN_SEEN_UNKNOWN;
	if (p->confirmed == c->number)
		return c->enable ? PLAN_SEEN_UP : PLAN_SEEN_DOWN;
	/* Not named, or 8003 No protocols match. */
	if (reply->code == 0 || reply->code == 8003)
		return PLAN_SEEN_ABSENT;
	return PLAN_SEEN_UNKNOWN;
}

static void command_answered(void *userdata, int error, const struct reply *reply)
{
	struct apply_command *c = userdata;
	struct apply *a = c->apply;
	size_t first, end;

	a->answered = ++a->moment;
	commands_count(a, c->enable ? APPLY_COMMAND_ENABLE : APPLY_COMMAND_DISABLE, c->sent, reply);
	if (reply)
		command_confirm(a, c, reply);
	if (reply && reply->code != 0 && reply->code != 8003)
		event_say(LOG_WARNING, EVENT_BIRD_TROUBLE,
			&(const struct event_fields){.protocol = c->pattern},
			"bird: %s \"%s\": %04d %s", c->enable ? "enable" : "disable", c->pattern,
			reply->code, reply->text);
	apply_range(a, c->pattern, &first, &end);
	for (size_t i = first; i < end; i++) {
		struct apply_protocol *p = a->protocols[i];

		if (p->command != c->number)
			continue; /* A later command decides. */
		p->command = 0;
		p->answered = a->moment;
		p->seen = command_outcome(c, p, reply);
		if (p->seen != PLAN_SEEN_UNKNOWN)
			p->last_seen = p->seen;
		if (p->service)
			apply_want_read_protocol(a, p);
	}
	command_free(c);
	apply_round_soon(a);
}

void apply_check_soon(struct apply *a)
{
	if (a->configure_took_ms != UINT64_MAX && a->configure_took_ms > APPLY_CHECK_COST_MS)
		return;
	if (!monotime_is_never(a->check_at))
		return;
	a->check_at = monotime_add_ms(clock_monotime(), APPLY_CHECK_AFTER_MS);
	if (a->check_last.us > 0)
		a->check_at = monotime_max(
			a->check_at, monotime_add_ms(a->check_last, APPLY_CHECK_EVERY_MS));
	apply_wake_at(a, a->check_at);
}

void apply_check_slowly(struct apply *a)
{
	/* While it refuses, the retries look. */
	if (a->refusals == 0 && (a->configure_sent.us == 0 ||
					monotime_since_us(a->configure_sent, clock_monotime()) >
						APPLY_CHECK_SLOWLY_MS * 1000ULL))
		apply_check_soon(a);
}

static void command_send(struct apply *a, bool enable, const char *pattern)
{
	enum apply_command_kind kind = enable ? APPLY_COMMAND_ENABLE : APPLY_COMMAND_DISABLE;
	struct apply_command *c;
	size_t first, end;

	if (!commands_ready(a))
		return;
	c = command_new(a);
	if (!c) { /* The round asks again. */
		command_unsent(a, kind);
		return;
	}
	c->apply = a;
	c->number = ++a->commands;
	c->enable = enable;
	c->sent = clock_monotime();
	(void)snprintf(c->pattern, sizeof(c->pattern), "%s", pattern);
	c->next = a->waiting;
	if (c->next)
		c->next->previous = c;
	a->waiting = c;
	a->commands_waiting++;
	if (client_send(a->command.client, CLIENT_DEADLINE_MS, command_answered, c, "%s \"%s\"",
		    enable ? "enable" : "disable", pattern) < 0) {
		command_unsent(a, kind);
		command_free(c);
		return;
	}
	a->moment++;
	a->status.commands_sent++;
	a->unconfirmed = a->status_wanted = true;
	apply_range(a, pattern, &first, &end);
	for (size_t i = first; i < end; i++) {
		struct apply_protocol *p = a->protocols[i];

		p->command = c->number;
		p->coming = false;
		if (p->seen != PLAN_SEEN_ABSENT)
			p->seen = enable ? PLAN_SEEN_UP : PLAN_SEEN_DOWN;
	}
	apply_check_soon(a);
}

void apply_send_disable(struct apply *a, const char *pattern)
{
	command_send(a, false, pattern);
}

void apply_send_enable(struct apply *a, const char *pattern)
{
	command_send(a, true, pattern);
}

/* ---- a refused configuration ---- */

void apply_retry_now(struct apply *a, const char *why)
{
	struct monotime earliest = monotime_add_ms(a->configure_sent, 100);

	if (!a->refused)
		return;
	log_debug("bird: trying to configure again: %s", why);
	a->retry = monotime_max(clock_monotime(), earliest);
	apply_wake_at(a, a->retry);
}

static void commands_on_refused_file(struct apply *a, const struct inotify_event *e)
{
	const char *slash = a->refused_file ? strrchr(a->refused_file, '/') : NULL;

	if (slash && e->len > 0 && strcmp(e->name, slash + 1) == 0)
		apply_retry_now(a, a->refused_file);
}

/* The file that BIRD refused: as soon as it is saved again, so are we. Best effort. */
static void commands_watch_file(struct apply *a, const char *text)
{
	_cleanup_free_ char *file = strndup(text, observe_refused_file(text));
	char *slash;
	int r;

	if (!file || (a->refused_file && strcmp(a->refused_file, file) == 0))
		return;
	apply_watch_stop(&a->refused_watch);
	free(a->refused_file);
	a->refused_file = strdup(file);
	slash = strrchr(file, '/');
	if (!slash || slash == file)
		return;
	*slash = '\0';
	r = apply_watch_start(a, &a->refused_watch, file,
		IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM, commands_on_refused_file,
		"bird-refused");
	if (r < 0)
		log_debug("bird: watch %s: %s", file, strerror(-r));
}

static const char *commands_blame_text(enum apply_blame blame)
{
	switch (blame) {
	case APPLY_BLAME_OTHERS:
		return "not a file of ours; health goes on without";
	case APPLY_BLAME_STRANGER:
		return "in our folder, but not a file of ours";
	case APPLY_BLAME_DAMAGED:
		return "our fragment, changed by somebody: written again";
	case APPLY_BLAME_OURS:
		return "our fragment: the last good one is put back";
	}
	return "";
}

static void commands_refused(struct apply *a, const struct reply *reply)
{
	enum apply_blame blame = apply_files_refused(a, reply->text);
	uint64_t least = blame == APPLY_BLAME_DAMAGED ? 100 : APPLY_RETRY_MIN_MS;
	char before[sizeof(a->status.alarm)], text[sizeof(before) - 120];

	memcpy(before, a->status.alarm, sizeof(before));
	printable_copy(text, sizeof(text), reply->text, strlen(reply->text));
	apply_set_alarm(a, "BIRD refuses to configure: %04d %s (%s)", reply->code, text,
		commands_blame_text(blame));
	if (strcmp(before, a->status.alarm) != 0)
		event_say(LOG_ERR, EVENT_BIRD_REFUSED, &(const struct event_fields){.reason = text},
			"bird: %s", a->status.alarm);
	a->absent_alarm = false;
	a->refusals++;
	a->refused = true;
	a->retry_ms = a->refusals == 1 ? least : a->retry_ms * 2;
	if (a->retry_ms > APPLY_RETRY_MAX_MS)
		a->retry_ms = APPLY_RETRY_MAX_MS;
	a->retry = monotime_add_ms(clock_monotime(), a->retry_ms);
	if (blame != APPLY_BLAME_OURS) /* ours is saved by us: that would be no back-off at all */
		commands_watch_file(a, reply->text);
	for (size_t i = 0; i < a->n_protocols; i++)
		a->protocols[i]->attempting = a->protocols[i]->coming = false;
}

static bool commands_has_put_back(const struct apply *a)
{
	for (size_t i = 0; i < a->n_services; i++)
		if (a->services[i].put_back)
			return true;
	return false;
}

static void commands_accepted(struct apply *a)
{
	/* That was the text that was put back: the wanted one is still refused, and tried at its
	 * time. */
	if (commands_has_put_back(a))
		return;
	if (a->refusals > 0) {
		event_say(LOG_NOTICE, EVENT_BIRD_ACCEPTED, NULL,
			"bird: the configuration is accepted again, after %u refusal%s",
			a->refusals, a->refusals == 1 ? "" : "s");
		apply_set_alarm(a, "%s", "");
	}
	a->refusals = 0;
	a->refused = false;
	apply_watch_stop(&a->refused_watch);
	free(TAKE_PTR(a->refused_file));
}

/* ---- configure ---- */

static void commands_note_cost(struct apply *a)
{
	a->configure_took_ms = monotime_since_us(a->configure_sent, clock_monotime()) / 1000;
}

static void configure_answered(void *userdata, int error, const struct reply *reply)
{
	struct apply *a = userdata;

	a->answered = ++a->moment;
	a->configure = APPLY_CONFIGURE_NONE;
	commands_count(a, APPLY_COMMAND_CONFIGURE, a->configure_sent, reply);
	apply_round_soon(a);
	if (!reply)
		return; /* apply_commands_lost() follows */
	commands_note_cost(a);
	switch (reply_judge(reply->code)) {
	case REPLY_ACCEPTED:
		a->configure = APPLY_CONFIGURE_SETTLING;
		a->status_wanted = true;
		if (reply->code != 3 && !a->busy) {
			a->busy = true;
			a->busy_since = clock_monotime();
		}
		a->queued_seen = a->queued_seen || reply->code == 5;
		a->life_expected = true;
		apply_files_accepted(a);
		commands_accepted(a);
		break;
	case REPLY_REFUSED:
		commands_refused(a, reply);
		break;
	case REPLY_OTHER: /* 0006: BIRD is shutting down; the connection is lost soon */
		event_say(LOG_WARNING, EVENT_BIRD_TROUBLE, NULL, "bird: configure: %04d %s",
			reply->code, reply->text);
		a->refused = true;
		a->retry = monotime_add_ms(clock_monotime(), APPLY_RETRY_MIN_MS);
		break;
	}
}

void apply_send_configure(struct apply *a)
{
	assert(a->configure == APPLY_CONFIGURE_NONE && !a->check_sent);
	if (!commands_ready(a))
		return;
	if (client_send(a->command.client, APPLY_CONFIGURE_MS, configure_answered, a, "configure") <
		0) {
		command_unsent(a, APPLY_COMMAND_CONFIGURE);
		return;
	}
	a->moment++;
	a->status.commands_sent++;
	a->configure = APPLY_CONFIGURE_SENT;
	a->configure_sent = clock_monotime();
	a->unconfirmed = true;
	for (size_t i = 0; i < a->n_protocols; i++)
		a->protocols[i]->coming = a->protocols[i]->want == PLAN_WANT_UP;
	apply_files_configure_sent(a);
}

/* ---- configure check ---- */

static void check_answered(void *userdata, int error, const struct reply *reply)
{
	struct apply *a = userdata;

	a->check_sent = false;
	commands_count(a, APPLY_COMMAND_CHECK, a->configure_sent, reply);
	apply_round_soon(a);
	if (!reply)
		return;
	commands_note_cost(a);
	if (reply->code == 20)
		commands_accepted(a);
	else if (reply_judge(reply->code) == REPLY_REFUSED)
		commands_refused(a, reply);
}

void apply_send_check(struct apply *a)
{
	a->check_at = MONOTIME_NEVER;
	if (!commands_ready(a))
		return;
	if (client_send(a->command.client, APPLY_CONFIGURE_MS, check_answered, a,
		    "configure check") < 0) {
		command_unsent(a, APPLY_COMMAND_CHECK);
		return;
	}
	a->check_sent = true;
	a->check_last = a->configure_sent = clock_monotime();
}

/* ---- configure status ---- */

/* How long a protocol that `configure` did not help waits for the next one. */
static void commands_attempted(struct apply_protocol *p)
{
	unsigned doublings = p->attempts < 6 ? p->attempts : 6;

	if (!p->attempting)
		return;
	p->attempting = false;
	if (p->attempts > 0)
		p->not_before = monotime_add_ms(
			clock_monotime(), doublings == 6 ? 60000 : 1000ULL << (doublings - 1));
	p->attempts++;
}

/*
 * BIRD came to rest. `ours`: the configuration that it holds is the one that we asked for last, so
 * the bodies are known, unless another one was queued behind it.
 */
static void commands_settled(struct apply *a, bool ours)
{
	for (size_t i = 0; i < a->n_protocols; i++) {
		struct apply_protocol *p = a->protocols[i];
		uint64_t loaded = ours && !a->queued_seen ? p->configure_body : PLAN_BODY_UNKNOWN;

		if (p->loaded != loaded && p->service)
			apply_want_read_protocol(a, p);
		p->loaded = loaded;
		p->coming = false;
		if (p->command == 0)
			p->seen = PLAN_SEEN_UNKNOWN;
		if (ours)
			commands_attempted(p);
	}
	a->settled = ++a->moment;
	a->configure = APPLY_CONFIGURE_NONE;
	a->queued_seen = false;
	a->observe_wanted = true;
}

static void commands_still_busy(struct apply *a, int code)
{
	struct monotime now = clock_monotime();

	if (!a->busy)
		a->busy_since = now;
	a->busy = true;
	a->queued_seen = a->queued_seen || code == 5;
	if (!a->busy_said && monotime_since_us(a->busy_since, now) > COMMANDS_BUSY_LONG_US) {
		event_say(LOG_WARNING, EVENT_BIRD_TROUBLE, NULL,
			"bird: has been reconfiguring for %d s (%04d)",
			COMMANDS_BUSY_LONG_US / 1000000, code);
		a->busy_said = true;
	}
	(void)sd_event_source_set_time_relative(a->poll, APPLY_POLL_MS * 1000ULL);
	(void)sd_event_source_set_enabled(a->poll, SD_EVENT_ONESHOT);
}

static void commands_note_trial(struct apply *a, const struct reply *reply)
{
	bool on_trial = false;

	for (size_t i = 0; i < reply->n_lines; i++)
		on_trial = on_trial || reply->lines[i].code == 22;
	if (on_trial == a->status.on_trial)
		return;
	a->status.on_trial = on_trial;
	apply_say_changed(a);
	event_say(LOG_NOTICE, EVENT_BIRD_RECONFIGURED, NULL, "bird: %s",
		on_trial ? "its configuration is on trial (`configure timeout`): what needs "
			   "`configure` waits until it is confirmed or undone"
			 : "its configuration is on trial no more");
}

static void status_answered(void *userdata, int error, const struct reply *reply)
{
	struct apply *a = userdata;
	bool was_busy = a->busy, timely = a->status_moment >= a->answered;
	int code;

	a->status_asked = false;
	apply_round_soon(a);
	if (!reply)
		return;
	commands_note_trial(a, reply);
	code = reply->lines[0].code;
	if (code == 4 || code == 5 || code == 6) {
		commands_still_busy(a, code);
		return;
	}
	if (code != 3)
		log_debug("bird: configure status: %04d %s", code, reply->text);
	a->busy = a->busy_said = false;
	if (!timely || a->configure == APPLY_CONFIGURE_SENT) {
		a->status_wanted = true; /* says nothing about what was sent since */
		a->busy = was_busy;
		return;
	}
	if (a->configure == APPLY_CONFIGURE_SETTLING)
		commands_settled(a, true);
	else if (was_busy)
		commands_settled(a, false);
	if (a->commands_waiting == 0)
		a->unconfirmed = false;
}

void apply_send_status(struct apply *a)
{
	if (!commands_ready(a) || a->status_asked)
		return;
	if (client_send(a->command.client, CLIENT_DEADLINE_MS, status_answered, a,
		    "configure status") < 0)
		return;
	a->status_asked = true;
	a->status_wanted = false;
	a->status_moment = a->moment;
}

/* ---- the end of a connection ---- */

void apply_commands_lost(struct apply *a)
{
	while (a->waiting)
		command_free(a->waiting);
	for (size_t i = 0; i < a->n_protocols; i++) {
		struct apply_protocol *p = a->protocols[i];

		p->command = 0;
		p->seen = PLAN_SEEN_UNKNOWN;
		p->attempting = p->coming = false;
	}
	a->answered = a->settled = ++a->moment;
	a->configure = APPLY_CONFIGURE_NONE;
	a->busy = a->busy_said = a->queued_seen = a->status.on_trial = false;
	a->check_sent = a->status_asked = a->status_wanted = a->unconfirmed = false;
	a->check_at = MONOTIME_NEVER;
	(void)sd_event_source_set_enabled(a->poll, SD_EVENT_OFF);
}
