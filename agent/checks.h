#ifndef REDSHANK_AGENT_CHECKS_H
#define REDSHANK_AGENT_CHECKS_H
/*
 * The running checks of a configuration: which probes run, what each said last, and which of them a
 * reload keeps. A check that is configured as before keeps its probe, schedule and last reason; the
 * settings that its probe borrows move into the new configuration, so that the old one can be
 * freed.
 */
#include "agent/config/config.h"
#include "probes/run.h"

struct checks;
struct checks_change;

struct checks_ops {
	/* One report of a check, by its place in the configuration. Returns when to run it next. */
	struct monotime (*report)(void *userdata, size_t service, size_t check,
		enum check_outcome outcome, struct monotime started);
	/* How long the attempt of that report took; 0: a death between two attempts. After it. May
	 * be NULL. */
	void (*took)(void *userdata, size_t service, size_t check, enum check_outcome outcome,
		uint64_t duration_us);
	void *userdata;
};

/* For the checks of `config`; none runs before checks_start(). `host` and `config` outlive it.
 * Heap. 0 or negative errno. */
int checks_new(struct checks **ret, const struct probe_host *host, struct config *config,
	const struct checks_ops *ops);
void checks_free(struct checks *c);

/*
 * Starts every check that does not run yet, spread over its fast interval. Those of processes begin
 * at once: they cost next to nothing, and a process that is found dead is a hard fact, which no
 * prefix is to wait for. One for which there is no memory is tried again every second.
 */
void checks_start(struct checks *c);
/* Ends every attempt; none reports any more. */
void checks_stop(struct checks *c);
/* Every check runs now; or this one. */
void checks_all_now(struct checks *c);
void checks_now(struct checks *c, size_t service, size_t check);

/* A reload in two steps: what can fail, then what cannot. 0 or -ENOMEM with nothing changed. */
int checks_prepare(
	struct checks *c, struct config *old, struct config *new, struct checks_change **ret);
void checks_commit(struct checks *c, struct checks_change *change);
void checks_change_free(struct checks_change *change);

/* What the check said last; "" before it spoke. */
const char *checks_reason(const struct checks *c, size_t service, size_t check);
/* When it ran and when it runs next; both never where it does not run. */
void checks_view(const struct checks *c, size_t service, size_t check, struct run_view *ret);
/* How long its outcomes took, in us, the newest last; 0: a death told between attempts. Returns how
 * many, CHECK_HISTORY_LENGTH at most. */
size_t checks_durations(const struct checks *c, size_t service, size_t check,
	uint32_t ret_us[CHECK_HISTORY_LENGTH]);

#endif
