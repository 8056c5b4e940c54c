#ifndef REDSHANK_PROBES_PROBE_H
#define REDSHANK_PROBES_PROBE_H
/*
 * The contract of a kind of check: a name, a table of its keys, and five functions. A kind is one
 * file; probes/types.c lists them. A probe finds out one thing and reports one outcome; it does not
 * count, remember outcomes, know about prefixes, or decide when it runs: probes/run.c calls it and
 * keeps its deadline, and core/check judges.
 *
 * How a probe lives:
 *   open()    once. May start to watch something, and from then on may report by itself (a death).
 *   begin()   one attempt. It reports exactly once for each begin, before or after it returns.
 *   cancel()  the deadline has passed, or the check goes away: drop the attempt. No report follows.
 *             The runner reports "timeout" itself. Not called when no attempt is under way.
 *   close()   release everything. cancel() came first if an attempt was under way.
 * None of them may block, resolve names, or take longer than a few hundred microseconds.
 *
 * The caller may free the whole check from inside its report, so a probe that reports from a
 * callback of its own does nothing with its state after probe_report(). (Inside begin() it may: the
 * runner passes such a report on when begin() has returned.)
 *
 * Priorities on the loop, so that what has happened is seen before time is held against it: deaths
 * at PROBE_PRIORITY_DEATH, a probe's I/O at SD_EVENT_PRIORITY_NORMAL, then deadlines, then starts.
 */
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "agent/base/error.h"
#include "agent/config/schema.h"
#include "agent/core/check.h"

#define PROBE_REASON_MAX 160

struct probe_report {
	enum check_outcome outcome;
	char reason[PROBE_REASON_MAX]; /* why; printable UTF-8 on one line; "" with a plain good */
};

struct probe;
struct units; /* agent/system/units.h: systemd's units over sd-bus, shared by all probes */

/* What every probe of this agent may use. Lives longer than any probe. */
struct probe_host {
	sd_event *event;
	struct units *units; /* NULL where there is no system bus */
};

struct probe_type {
	const char *name; /* the word in `type` */
	const struct schema *settings;
	/* What one key's table cannot say (keys that exclude each other). NULL: nothing. 0 or
	 * -EINVAL with "KEY: what was expected" in the text. */
	int (*validate)(const void *settings, struct error *ret_error);
	int (*open)(struct probe *p); /* 0 or negative errno: then the outcome is unknown and open
					 is tried again */
	void (*begin)(struct probe *p);
	void (*cancel)(struct probe *p);
	void (*close)(struct probe *p);
	/* What the attempt under way has seen so far ("2 replies were ignored"): put behind
	 * "timeout after 500ms: ". Valid until the next call. NULL, or returns NULL: nothing. */
	const char *(*waiting)(struct probe *p);
};

struct probe {
	const struct probe_type *type;
	const void *settings; /* borrowed from the configuration, which outlives the probe */
	uint64_t timeout_ms;  /* of each attempt; the runner keeps it */
	const struct probe_host *host;
	void *state; /* the type's own, between open and close */
	/* Set by the runner; probes call probe_report(). */
	void (*report)(struct probe *p, const struct probe_report *report);
	void (*wake)(struct probe *p);
	void *runner;
};

#define PROBE_PRIORITY_DEATH SD_EVENT_PRIORITY_IMPORTANT
#define PROBE_PRIORITY_DEADLINE (SD_EVENT_PRIORITY_NORMAL + 10)
#define PROBE_PRIORITY_START (SD_EVENT_PRIORITY_NORMAL + 20)

/* Ends the attempt, or tells of a death (GONE, nothing else) while none is under way. The reason is
 * made printable. */
void probe_report(struct probe *p, enum check_outcome outcome, const char *reason_format, ...)
	__attribute__((format(printf, 3, 4)));

/* What the probe watches has come back: the next attempt starts now, unless one is under way. */
void probe_wake(struct probe *p);

/*
 * The outcome of an errno that stopped an attempt: UNKNOWN where the fault is this host's or ours
 * (no descriptors, memory, buffers, processes, local ports or watches), BAD otherwise.
 */
enum check_outcome probe_outcome_of_errno(int errnum);

extern const struct probe_type probe_type_process;
extern const struct probe_type probe_type_tcp;
extern const struct probe_type probe_type_http;
extern const struct probe_type probe_type_exec;
extern const struct probe_type probe_type_udp;
extern const struct probe_type probe_type_dns;

extern const struct probe_type *const probe_types[]; /* NULL-terminated */

#endif
