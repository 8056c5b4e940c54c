/*
 * Each family of metrics is one row of a table: its name, what it means, and a function that writes
 * the samples of one item: the agent as a whole, a service, a prefix, a check. A render walks over
 * family, service and item, since the samples of a family have to stand together, and stops where
 * its time is over.
 *
 * What is not known has no sample, as document.c has null: a series that ends says so at once, and
 * a NaN would spoil every sum. Texts from outside (reasons, BIRD's errors) are no labels: the
 * number of series is that of the configured things times a constant.
 *
 * docs/metrics.md has every row; a test compares them.
 */
#include "agent/status/metrics.h"

#include <errno.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/bird/apply_explain.h"
#include "agent/events/events.h"
#include "agent/status/metrics_addresses.h"
#include "agent/status/metrics_load.h"
#include "agent/status/metrics_neighbours.h"
#include "agent/status/metrics_shed.h"
#include "agent/status/metrics_process.h"

#define METRICS_MAX (64U * 1024 * 1024)
#define METRICS_ITEMS 16 /* between two looks at the clock */

enum metrics_scope {
	METRICS_OF_AGENT,
	METRICS_OF_SERVICE,
	METRICS_OF_DURATION, /* a type of check in a service */
	METRICS_OF_PREFIX,
	METRICS_OF_CHECK,
};

struct metrics_item {
	const struct metrics_facts *facts;
	struct metrics_writer *w;
	size_t service, index;
};

static const struct config_service *item_service(const struct metrics_item *i)
{
	return &i->facts->document.config->services[i->service];
}

static void put_value(const struct metrics_item *i, uint64_t value)
{
	metrics_sample(i->w, NULL, NULL, value);
}

/* A sample for each `k` of an enum from `first` to `last`, with its name as the label; `value` is
 * an expression of k. */
#define PUT_EACH(i, label, type, first, last, name_of, value)                          \
	do {                                                                           \
		for (int k = (first); k <= (int)(last); k++)                           \
			metrics_sample((i)->w, label, name_of((enum type)k), (value)); \
	} while (0)

/* --- the agent --- */

static void put_build(const struct metrics_item *i)
{
	metrics_label(i->w, "version", REDSHANK_VERSION);
	metrics_label(i->w, "node", i->facts->document.config->node);
	put_value(i, 1);
}

static void put_ready(const struct metrics_item *i)
{
	put_value(i, i->facts->document.ready);
}

static void put_state_error(const struct metrics_item *i)
{
	put_value(i, i->facts->document.state_error && i->facts->document.state_error[0]);
}

static void put_frozen(const struct metrics_item *i)
{
	const struct words *words = i->facts->document.words;

	put_value(i, words && words_find(words, WORD_FREEZE, "") != NULL);
}

static void put_stopping(const struct metrics_item *i)
{
	put_value(i, i->facts->document.stopping);
}

static void put_cpu(const struct metrics_item *i)
{
	metrics_sample_us(i->w, metrics_process_cpu_us());
}

static void put_memory(const struct metrics_item *i)
{
	uint64_t bytes = metrics_process_resident_bytes();

	if (bytes > 0)
		put_value(i, bytes);
}

static void put_fds(const struct metrics_item *i)
{
	uint64_t n = metrics_process_open_fds();

	if (n > 0)
		put_value(i, n);
}

static void put_max_fds(const struct metrics_item *i)
{
	put_value(i, metrics_process_max_fds());
}

static void put_start_time(const struct metrics_item *i)
{
	uint64_t us = metrics_process_started_us();

	if (us > 0)
		metrics_sample_us(i->w, us);
}

static void put_histogram(const struct metrics_item *i, const struct histogram *h)
{
	if (h)
		metrics_sample_histogram(i->w, h);
}

static void put_turns(const struct metrics_item *i)
{
	put_histogram(i, i->facts->turns);
}

static void put_lateness(const struct metrics_item *i)
{
	put_histogram(i, i->facts->lateness);
}

static void put_events(const struct metrics_item *i)
{
	put_value(i, events_span().newest);
}

static void put_events_lost(const struct metrics_item *i)
{
	put_value(i, events_span().lost);
}

static void put_streams(const struct metrics_item *i)
{
	put_value(i, i->facts->streams);
}

static void put_slow_streams(const struct metrics_item *i)
{
	put_value(i, i->facts->slow_streams);
}

static void put_config_error(const struct metrics_item *i)
{
	put_value(i, i->facts->document.config_error && i->facts->document.config_error[0]);
}

static void put_config_loaded(const struct metrics_item *i)
{
	struct walltime loaded = clock_wall_of(i->facts->document.config_loaded);

	if (loaded.us > 0)
		metrics_sample_us(i->w, (uint64_t)loaded.us);
}

static void put_requests(const struct metrics_item *i)
{
	for (size_t k = 0; k < i->facts->n_requests; k++) {
		const struct metrics_requests *r = &i->facts->requests[k];
		char code[8];

		(void)snprintf(code, sizeof(code), "%u", r->code % 1000);
		metrics_labels_clear(i->w);
		metrics_label(i->w, "path", r->path);
		metrics_sample(i->w, "code", code, r->n);
	}
}

static void put_renders(const struct metrics_item *i)
{
	put_value(i, i->facts->renders);
}

static void put_render_time(const struct metrics_item *i)
{
	metrics_sample_us(i->w, i->facts->render_us);
}

static void put_managed(const struct metrics_item *i)
{
	metrics_addresses_managed(i->w, i->facts->document.addresses);
}

static void put_managed_changes(const struct metrics_item *i)
{
	metrics_addresses_changes(i->w, i->facts->document.addresses);
}

/* Families that a file of their own writes from one part of the facts, where that is there. */
#define PUT_PART(name, function, is_there, part)             \
	static void put_##name(const struct metrics_item *i) \
	{                                                    \
		if (is_there)                                \
			function(i->w, part);                \
	}

/* --- load and neighbours --- */

#define PUT_LOAD(name, function) PUT_PART(name, function, true, i->facts->document.load)
PUT_LOAD(load_utilisation, metrics_load_utilisation)
PUT_LOAD(load_capacity, metrics_load_capacity)
PUT_LOAD(load_signal_valid, metrics_load_signal_valid)
PUT_LOAD(load_signal_value, metrics_load_signal_value)
PUT_LOAD(load_signal_limit, metrics_load_signal_limit)
PUT_LOAD(load_signal_utilisation, metrics_load_signal_utilisation)

static void put_prefix_load(const struct metrics_item *i)
{
	metrics_load_prefix(i->w, i->facts->document.load, i->service, i->index);
}

#define PUT_NEIGHBOURS(name, function)                                  \
	PUT_PART(name, function, i->facts->document.neighbours != NULL, \
		i->facts->document.neighbours)
PUT_NEIGHBOURS(neighbours_fresh, metrics_neighbours_fresh)
PUT_NEIGHBOURS(neighbours_age, metrics_neighbours_age)
PUT_NEIGHBOURS(neighbours_reports, metrics_neighbours_reports)
PUT_NEIGHBOURS(neighbours_failures, metrics_neighbours_failures)
PUT_NEIGHBOURS(neighbours_refused, metrics_neighbours_refused)
PUT_NEIGHBOURS(neighbours_requests, metrics_neighbours_requests)
PUT_NEIGHBOURS(neighbours_connections, metrics_neighbours_connections)
PUT_NEIGHBOURS(neighbours_cpu, metrics_neighbours_cpu)
PUT_NEIGHBOURS(neighbours_expires, metrics_neighbours_expires)
PUT_NEIGHBOURS(neighbours_error, metrics_neighbours_error)

/* --- BIRD --- */

static const struct apply_status *bird(const struct metrics_item *i)
{
	return apply_status(i->facts->document.apply);
}

static bool bird_is_up(const struct metrics_item *i)
{
	return bird(i)->link == APPLY_LINK_UP;
}

static void put_bird_up(const struct metrics_item *i)
{
	put_value(i, bird_is_up(i));
}

static void put_bird_silent(const struct metrics_item *i)
{
	put_value(i, !monotime_is_never(bird(i)->silent_since));
}

static void put_bird_losses(const struct metrics_item *i)
{
	PUT_EACH(i, "reason", loss, LOSS_NONE + 1, LOSSES - 1, loss_name, bird(i)->losses[k]);
}

static void put_bird_info(const struct metrics_item *i)
{
	if (!bird(i)->version[0])
		return;
	metrics_label(i->w, "version", bird(i)->version);
	put_value(i, 1);
}

static void put_bird_settled(const struct metrics_item *i)
{
	if (bird_is_up(i))
		put_value(i, bird(i)->settled);
}

static void put_bird_sessions(const struct metrics_item *i)
{
	if (bird_is_up(i))
		put_value(i, bird(i)->sessions);
}

static void put_bird_sessions_up(const struct metrics_item *i)
{
	if (bird_is_up(i))
		put_value(i, bird(i)->sessions_up);
}

#define METRICS_SESSIONS_MAX 64 /* a route server has thousands */

static void put_bird_session(const struct metrics_item *i)
{
	struct apply_explained_session session;

	for (size_t n = 0; bird_is_up(i) && n < METRICS_SESSIONS_MAX &&
			   apply_explain_session(i->facts->document.apply, n, &session);
		n++) {
		metrics_labels_clear(i->w);
		metrics_label(i->w, "session", session.name);
		put_value(i, session.up);
	}
}

static void put_bird_alarm(const struct metrics_item *i)
{
	put_value(i, bird(i)->alarm[0] != '\0');
}

/* A code may stand several times, one behind the other or not: its sample is written where it
 * stands first. */
static void put_bird_warnings(const struct metrics_item *i)
{
	const struct advise_warning *warnings;
	size_t n = apply_warnings(i->facts->document.apply, &warnings);

	for (size_t k = 0; k < n; k++) {
		uint64_t times = 0;
		bool first = true;

		for (size_t j = 0; j < n; j++) {
			if (strcmp(warnings[j].code, warnings[k].code) != 0)
				continue;
			times++;
			first = first && j >= k;
		}
		if (!first)
			continue;
		metrics_labels_clear(i->w);
		metrics_label(i->w, "code", warnings[k].code);
		put_value(i, times);
	}
}

static const char *const command_names[] = {"disable", "enable", "configure", "configure_check"};

static void put_bird_commands(const struct metrics_item *i)
{
	static const char *const results[] = {"accepted", "refused", "other", "lost", "unsent"};

	for (size_t k = 0; k < APPLY_COMMAND_KINDS; k++) {
		metrics_labels_clear(i->w);
		metrics_label(i->w, "command", command_names[k]);
		for (size_t r = 0; r < APPLY_COMMAND_RESULTS; r++)
			metrics_sample(i->w, "result", results[r], bird(i)->commands[k].results[r]);
	}
}

static void put_bird_durations(const struct metrics_item *i)
{
	for (size_t k = 0; k < APPLY_COMMAND_KINDS; k++) {
		metrics_labels_clear(i->w);
		metrics_label(i->w, "command", command_names[k]);
		metrics_sample_histogram(i->w, &bird(i)->commands[k].duration);
	}
}

static void put_bird_repairs(const struct metrics_item *i)
{
	put_value(i, bird(i)->repairs);
}

static void put_bird_fragments(const struct metrics_item *i)
{
	put_value(i, bird(i)->fragments_repaired);
}

/* --- services --- */

static void put_health(const struct metrics_item *i)
{
	enum service_health health = engine_health(i->facts->document.engine, i->service);

	PUT_EACH(i, "health", service_health, SERVICE_HEALTH_UNDECIDED, SERVICE_HEALTH_UNHEALTHY,
		service_health_name, k == (int)health);
}

static void put_service_transitions(const struct metrics_item *i)
{
	const struct tally_service *t = &i->facts->tally->services[i->service];

	PUT_EACH(i, "to", service_health, SERVICE_HEALTH_UNDECIDED, SERVICE_HEALTH_UNHEALTHY,
		service_health_name, t->transitions[k]);
}

static void put_check_durations(const struct metrics_item *i)
{
	metrics_sample_histogram(
		i->w, &i->facts->tally->services[i->service].durations[i->index].histogram);
}

/* False, and nothing to write, where the service has no `restart`. */
static bool item_repair(const struct metrics_item *i, struct repair_view *ret)
{
	const struct document_facts *d = &i->facts->document;

	return d->repair && d->repair(d->userdata, i->service, ret);
}

static void put_repair_state(const struct metrics_item *i)
{
	struct repair_view view;

	if (!item_repair(i, &view))
		return;
	PUT_EACH(i, "state", repair_state, 0, REPAIR_N_STATES - 1, repair_state_name,
		k == (int)view.repair->state);
}

/* agent/hooks.h has them in this order. */
static void put_hooks(const struct metrics_item *i)
{
	static const char *const results[] = {
		"done", "failed", "timed_out", "not_started", "dropped"};

	for (size_t r = 0; i->facts->document.hooks && r < ELEMENTSOF(results); r++)
		metrics_sample(i->w, "result", results[r], i->facts->document.hooks[r]);
}

static void put_restarts(const struct metrics_item *i)
{
	struct repair_view view;

	if (!item_repair(i, &view))
		return;
	PUT_EACH(i, "result", repair_result, REPAIR_RESULT_NONE + 1, REPAIR_N_RESULTS - 1,
		repair_result_name, view.results[k]);
}

/* --- prefixes --- */

static const struct engine_prefix *item_wanted(const struct metrics_item *i)
{
	return engine_prefix(i->facts->document.engine, i->service, i->index);
}

static const struct apply_observed *item_seen(const struct metrics_item *i)
{
	return apply_observed(i->facts->document.apply, i->service, i->index);
}

static void put_wanted(const struct metrics_item *i)
{
	put_value(i, item_wanted(i)->wanted != PREFIX_WANTED_WITHDRAW);
}

static void put_demoted(const struct metrics_item *i)
{
	put_value(i, item_wanted(i)->wanted == PREFIX_WANTED_DEMOTE);
}

static void put_announced(const struct metrics_item *i)
{
	if (item_seen(i)->announced != APPLY_UNKNOWN)
		put_value(i, item_seen(i)->announced == APPLY_YES);
}

static void put_exported(const struct metrics_item *i)
{
	if (item_seen(i)->exported >= 0)
		put_value(i, item_seen(i)->exported > 0);
}

static void put_exported_sessions(const struct metrics_item *i)
{
	if (item_seen(i)->exported >= 0)
		put_value(i, (uint64_t)item_seen(i)->exported);
}

static void put_elsewhere(const struct metrics_item *i)
{
	if (item_seen(i)->announced != APPLY_UNKNOWN)
		put_value(i, item_seen(i)->elsewhere[0] != '\0');
}

static void put_weight(const struct metrics_item *i)
{
	put_value(i, item_wanted(i)->weight);
}

static void put_reason(const struct metrics_item *i)
{
	enum prefix_reason reason = item_wanted(i)->reason;

	PUT_EACH(i, "reason", prefix_reason, PREFIX_REASON_STOPPING, PREFIX_REASON_HEALTHY,
		prefix_reason_name, k == (int)reason);
}

static void put_prefix_transitions(const struct metrics_item *i)
{
	const struct tally_prefix *t = &i->facts->tally->services[i->service].prefixes[i->index];

	PUT_EACH(i, "to", prefix_wanted, PREFIX_WANTED_WITHDRAW, PREFIX_WANTED_ANNOUNCE,
		prefix_wanted_name, t->transitions[k]);
}

/* --- checks --- */

static void put_check_state(const struct metrics_item *i)
{
	enum check_state state =
		engine_check(i->facts->document.engine, i->service, i->index)->state;

	PUT_EACH(i, "state", check_state, CHECK_STATE_PENDING, CHECK_STATE_DOWN, check_state_name,
		k == (int)state);
}

static const struct tally_check *item_check(const struct metrics_item *i)
{
	return &i->facts->tally->services[i->service].checks[i->index];
}

static void put_check_outcomes(const struct metrics_item *i)
{
	PUT_EACH(i, "outcome", check_outcome, CHECK_OUTCOME_GOOD, CHECK_OUTCOME_UNKNOWN,
		check_outcome_name, item_check(i)->outcomes[k]);
}

static void put_check_transitions(const struct metrics_item *i)
{
	put_value(i, item_check(i)->transitions);
}

/* --- shedding --- */

#define PUT_SHED(name, function) PUT_PART(name, function, true, &i->facts->document)
PUT_SHED(shed_prefixes, metrics_shed_prefixes)
PUT_SHED(shed_want, metrics_shed_want)
PUT_SHED(shed_spare, metrics_shed_spare)
PUT_SHED(shed_hot, metrics_shed_hot)
PUT_SHED(shed_alarm, metrics_shed_alarm)
PUT_SHED(shed_sheds, metrics_shed_sheds)
PUT_SHED(shed_restores, metrics_shed_restores)
PUT_SHED(shed_grants, metrics_shed_grants)
PUT_SHED(neighbour_utilisation, metrics_shed_neighbour_utilisation)
PUT_SHED(neighbour_spare, metrics_shed_neighbour_spare)
PUT_SHED(neighbour_willing, metrics_shed_neighbour_willing)
PUT_SHED(neighbour_want, metrics_shed_neighbour_want)

static void put_prefix_shed(const struct metrics_item *i)
{
	metrics_shed_prefix(i->w, &i->facts->document, i->service, i->index);
}

/* --- all of them --- */

static const struct metrics_row {
	const char *name;
	enum metrics_kind kind;
	enum metrics_scope scope;
	const char *help;
	void (*put)(const struct metrics_item *i);
} rows[] = {
#define GAUGE(name, scope, put, help)                                          \
	{                                                                      \
		"redshank_" name, METRICS_GAUGE, METRICS_OF_##scope, help, put \
	}
#define COUNTER(name, scope, put, help)                                                   \
	{                                                                                 \
		"redshank_" name "_total", METRICS_COUNTER, METRICS_OF_##scope, help, put \
	}
#define HISTOGRAM(name, scope, put, help)                                          \
	{                                                                          \
		"redshank_" name, METRICS_HISTOGRAM, METRICS_OF_##scope, help, put \
	}
	GAUGE("build_info", AGENT, put_build, "Always 1; which agent this is."),
	GAUGE("ready", AGENT, put_ready, "1: what BIRD was doing is known, and the agent decides."),
	GAUGE("state_error", AGENT, put_state_error,
		"1: what operators have said could not be written to disk."),
	GAUGE("frozen", AGENT, put_frozen,
		"1: an operator has frozen the server: only dead processes and missing addresses "
		"withdraw."),
	GAUGE("stopping", AGENT, put_stopping, "1: the agent is leaving."),
	COUNTER("process_cpu_seconds", AGENT, put_cpu,
		"Processor time of the agent itself, without its checks' commands."),
	GAUGE("process_resident_memory_bytes", AGENT, put_memory, "Memory of the agent."),
	GAUGE("process_open_fds", AGENT, put_fds, "Open file descriptors."),
	GAUGE("process_max_fds", AGENT, put_max_fds, "How many file descriptors may be open."),
	GAUGE("process_start_time_seconds", AGENT, put_start_time,
		"When the agent started, in seconds since 1970."),
	HISTOGRAM("loop_turn_duration_seconds", AGENT, put_turns,
		"How long the turns of the agent's loop took, for which a death may have to wait."),
	HISTOGRAM("loop_lateness_seconds", AGENT, put_lateness,
		"How late a timer fired that looks once a second."),
	GAUGE("config_error", AGENT, put_config_error,
		"1: the configuration was refused when it was read last, and what ran keeps "
		"running."),
	GAUGE("config_loaded_time_seconds", AGENT, put_config_loaded,
		"When the configuration that runs was read, in seconds since 1970."),
	COUNTER("http_requests", AGENT, put_requests, "Requests that the status server answered."),
	COUNTER("events", AGENT, put_events, "What happened, as /v1/events has it."),
	COUNTER("events_lost", AGENT, put_events_lost,
		"Events that could not be kept; the log has them."),
	GAUGE("event_streams", AGENT, put_streams, "Clients that follow the events."),
	COUNTER("event_streams_slow", AGENT, put_slow_streams,
		"Clients that did not read, and were shut out."),
	COUNTER("metrics_renders", AGENT, put_renders, "How often these metrics were rendered."),
	COUNTER("metrics_render_seconds", AGENT, put_render_time,
		"Time of the agent's loop that went into rendering these metrics."),
	GAUGE("load_utilisation_ratio", AGENT, put_load_utilisation,
		"The largest of the signals of the load, each a part of its limit. Absent: not "
		"known."),
	GAUGE("load_capacity", AGENT, put_load_capacity,
		"What the server can do, in the unit of the site."),
	GAUGE("load_signal_valid", AGENT, put_load_signal_valid,
		"1: the signal could be measured."),
	GAUGE("load_signal_value", AGENT, put_load_signal_value,
		"The signal, in the unit of its limit."),
	GAUGE("load_signal_limit", AGENT, put_load_signal_limit, "The limit of the signal."),
	GAUGE("load_signal_utilisation_ratio", AGENT, put_load_signal_utilisation,
		"The part of its limit that the signal has reached."),
	GAUGE("neighbour_fresh", AGENT, put_neighbours_fresh,
		"1: the neighbour has reported within stale_after."),
	GAUGE("neighbour_report_age_seconds", AGENT, put_neighbours_age,
		"Age of the newest report of the neighbour."),
	COUNTER("neighbour_reports", AGENT, put_neighbours_reports, "Reports of the neighbour."),
	COUNTER("neighbour_failures", AGENT, put_neighbours_failures,
		"Questions to the neighbour that brought no report."),
	COUNTER("neighbours_refused", AGENT, put_neighbours_refused,
		"Callers that were turned away before a byte of theirs was read."),
	COUNTER("neighbours_requests", AGENT, put_neighbours_requests,
		"Requests of neighbours, by what came of them."),
	GAUGE("neighbours_connections", AGENT, put_neighbours_connections,
		"Connections of neighbours that are open."),
	COUNTER("neighbours_cpu_seconds", AGENT, put_neighbours_cpu,
		"Processor time of the thread that speaks with neighbours."),
	GAUGE("neighbours_certificate_expires_time_seconds", AGENT, put_neighbours_expires,
		"When our certificate for neighbours expires, since 1970."),
	GAUGE("neighbours_error", AGENT, put_neighbours_error,
		"1: certificates or members as they lie on disk could not be taken into use."),
	GAUGE("shed_prefixes", AGENT, put_shed_prefixes,
		"Prefixes that neighbours announce in the place of this server."),
	GAUGE("shed_want", AGENT, put_shed_want, "How much this server wants to shed; 0: nothing."),
	GAUGE("shed_spare", AGENT, put_shed_spare,
		"Room that this server offers, in the unit of the site."),
	GAUGE("shed_neighbours_hot", AGENT, put_shed_hot, "Fresh neighbours that are overloaded."),
	GAUGE("shed_alarm", AGENT, put_shed_alarm,
		"1: shedding had no effect, twice, and is stopped for a while."),
	COUNTER("shed_sheds", AGENT, put_shed_sheds, "Prefixes that went to neighbours."),
	COUNTER("shed_restores", AGENT, put_shed_restores,
		"Prefixes that came back from neighbours."),
	COUNTER("shed_grants", AGENT, put_shed_grants,
		"Promises that neighbours asked of this server, by the answer."),
	GAUGE("neighbour_utilisation_ratio", AGENT, put_neighbour_utilisation,
		"How busy the neighbour says it is; 1 is its limit. Absent: not fresh, or not "
		"known."),
	GAUGE("neighbour_spare", AGENT, put_neighbour_spare,
		"Room that the neighbour offers, in the unit of the site. Absent: not fresh."),
	GAUGE("neighbour_willing", AGENT, put_neighbour_willing,
		"1: the neighbour takes what others shed. Absent: not fresh."),
	GAUGE("neighbour_want", AGENT, put_neighbour_want,
		"How much the neighbour wants to shed; 0: nothing. Absent: not fresh."),
	GAUGE("bird_up", AGENT, put_bird_up, "1: the agent speaks with BIRD."),
	GAUGE("bird_silent", AGENT, put_bird_silent,
		"1: BIRD runs and does not answer: what it announces it keeps announcing."),
	COUNTER("bird_connections_lost", AGENT, put_bird_losses,
		"Connections to BIRD that ended, and attempts at one that failed, by why."),
	GAUGE("bird_info", AGENT, put_bird_info, "Always 1; which BIRD was spoken with last."),
	GAUGE("bird_settled", AGENT, put_bird_settled,
		"1: what is wanted is true in BIRD and nothing is under way."),
	GAUGE("bird_sessions", AGENT, put_bird_sessions, "BGP sessions that match bird.sessions."),
	GAUGE("bird_sessions_established", AGENT, put_bird_sessions_up,
		"How many of the BGP sessions are established."),
	GAUGE("bird_session_up", AGENT, put_bird_session,
		"1: this session is established, for the first 64 of them."),
	GAUGE("bird_alarm", AGENT, put_bird_alarm, "1: BIRD refuses its configuration."),
	GAUGE("bird_warnings", AGENT, put_bird_warnings,
		"What about the configuration of BIRD will hurt, by kind."),
	COUNTER("bird_commands", AGENT, put_bird_commands,
		"Commands to BIRD that change something, and configure check, by what came of "
		"them."),
	HISTOGRAM("bird_command_duration_seconds", AGENT, put_bird_durations,
		"From command to answer of BIRD."),
	COUNTER("bird_repairs", AGENT, put_bird_repairs,
		"Changes by others in BIRD that were mended."),
	COUNTER("bird_fragments_repaired", AGENT, put_bird_fragments,
		"Fragment files that others had changed and that were written again."),
	GAUGE("service_health", SERVICE, put_health, "1 for the health of the service, else 0."),
	COUNTER("service_transitions", SERVICE, put_service_transitions,
		"Changes of the health of the service, by what it became."),
	COUNTER("hooks", AGENT, put_hooks, "Runs of hooks, by what came of them."),
	GAUGE("managed_addresses", AGENT, put_managed,
		"Addresses that the agent manages: those that are missing, and the others."),
	COUNTER("managed_address_changes", AGENT, put_managed_changes,
		"What the agent did to this host's addresses; restored: gone by another's hand."),
	GAUGE("service_repair_state", SERVICE, put_repair_state,
		"1 for what the repair of the service does, else 0. Absent: it has no `restart`."),
	COUNTER("service_restarts", SERVICE, put_restarts,
		"Restarts of the unit of the service, by what came of them."),
	GAUGE("prefix_wanted", PREFIX, put_wanted,
		"1: the prefix is to be announced, demoted or not."),
	GAUGE("prefix_demoted", PREFIX, put_demoted,
		"1: it is to be announced at a weight that every other announcer beats."),
	GAUGE("prefix_announced", PREFIX, put_announced,
		"1: BIRD has it from the agent and prefers it. Absent: not known."),
	GAUGE("prefix_exported", PREFIX, put_exported,
		"1: BIRD exports it to a session at least. Absent: not known."),
	GAUGE("prefix_exported_sessions", PREFIX, put_exported_sessions,
		"To how many sessions BIRD exports it. Absent: not known."),
	GAUGE("prefix_elsewhere", PREFIX, put_elsewhere,
		"1: BIRD prefers or exports it from another protocol. Absent: not known."),
	GAUGE("prefix_shed", PREFIX, put_prefix_shed,
		"1: neighbours announce it in the place of this server. Absent: there are none."),
	GAUGE("prefix_weight", PREFIX, put_weight, "The weight of the prefix; the lowest wins."),
	GAUGE("prefix_load", PREFIX, put_prefix_load,
		"What the prefix has of the load, in the unit of the capacity. Absent: not known."),
	GAUGE("prefix_reason", PREFIX, put_reason, "1 for the rule that decided, else 0."),
	COUNTER("prefix_transitions", PREFIX, put_prefix_transitions,
		"Changes of what is wanted of the prefix, by what it became."),
	GAUGE("check_state", CHECK, put_check_state, "1 for the state of the check, else 0."),
	COUNTER("check_outcomes", CHECK, put_check_outcomes, "Outcomes of the check."),
	COUNTER("check_transitions", CHECK, put_check_transitions,
		"Changes of the state of the check."),
	HISTOGRAM("check_duration_seconds", DURATION, put_check_durations,
		"How long checks took, by service and type of check."),
};

static size_t item_count(
	const struct metrics_facts *facts, enum metrics_scope scope, size_t service)
{
	const struct config_service *s = &facts->document.config->services[service];

	switch (scope) {
	case METRICS_OF_AGENT:
	case METRICS_OF_SERVICE:
		return 1;
	case METRICS_OF_DURATION:
		return facts->tally->services[service].n_durations;
	case METRICS_OF_PREFIX:
		return s->n_prefixes;
	case METRICS_OF_CHECK:
		return s->n_checks;
	}
	abort();
}

static void item_labels(const struct metrics_item *i, enum metrics_scope scope)
{
	char prefix[PREFIX_TEXT_MAX];

	metrics_labels_clear(i->w);
	if (scope == METRICS_OF_AGENT)
		return;
	metrics_label(i->w, "service", item_service(i)->name);
	switch (scope) {
	case METRICS_OF_AGENT:
	case METRICS_OF_SERVICE:
		return;
	case METRICS_OF_DURATION:
		metrics_label(i->w, "type",
			i->facts->tally->services[i->service].durations[i->index].type->name);
		return;
	case METRICS_OF_PREFIX:
		metrics_label(i->w, "prefix",
			prefix_format(&item_service(i)->prefixes[i->index].prefix, prefix));
		return;
	case METRICS_OF_CHECK:
		metrics_label(i->w, "check", item_service(i)->checks[i->index].name);
		return;
	}
}

/* Writes one item and moves on to the next. False: there was none any more. */
static bool write_next(struct metrics_render *m, const struct metrics_facts *facts)
{
	const struct metrics_row *row = &rows[m->family];
	struct metrics_item item = {.facts = facts, .w = &m->writer};
	size_t n_services;

	if (m->family == ELEMENTSOF(rows))
		return false;
	n_services = row->scope == METRICS_OF_AGENT ? 1 : facts->document.config->n_services;
	if (m->service == 0 && m->item == 0)
		metrics_family(&m->writer, row->name, row->kind, row->help);
	if (m->service < n_services &&
		(row->scope == METRICS_OF_AGENT ||
			m->item < item_count(facts, row->scope, m->service))) {
		item.service = m->service;
		item.index = m->item++;
		item_labels(&item, row->scope);
		row->put(&item);
		if (row->scope != METRICS_OF_AGENT)
			return true;
	}
	m->item = 0;
	if (++m->service >= n_services) {
		m->service = 0;
		m->family++;
	}
	return true;
}

void metrics_begin(struct metrics_render *m, enum metrics_format format, uint64_t generation)
{
	*m = (struct metrics_render){.generation = generation};
	buffer_init(&m->out, METRICS_MAX);
	metrics_writer_init(&m->writer, &m->out, format);
}

void metrics_done(struct metrics_render *m)
{
	metrics_writer_done(&m->writer);
	buffer_done(&m->out);
}

int metrics_step(struct metrics_render *m, const struct metrics_facts *facts, uint64_t budget_us,
	char **ret_text, size_t *ret_length)
{
	struct monotime began = clock_monotime();
	unsigned n = 0;

	if (m->generation != facts->document.generation) {
		m->generation = facts->document.generation;
		m->family = m->service = m->item = 0;
		m->writer.error = 0;
		buffer_clear(&m->out);
	}
	while (write_next(m, facts)) {
		if (m->writer.error < 0)
			return m->writer.error;
		if (++n % METRICS_ITEMS == 0 &&
			monotime_since_us(began, clock_monotime()) >= budget_us)
			return 1;
	}
	metrics_finish(&m->writer);
	if (m->writer.error < 0)
		return m->writer.error;
	*ret_length = m->out.length;
	*ret_text = TAKE_PTR(m->out.data);
	buffer_init(&m->out, METRICS_MAX);
	return 0;
}
