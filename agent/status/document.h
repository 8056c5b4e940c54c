#ifndef REDSHANK_STATUS_DOCUMENT_H
#define REDSHANK_STATUS_DOCUMENT_H
/*
 * The document of GET /v1/status: what is configured, wanted, announced and exported, and why.
 *   drains: a list of {name,reason,who,since,until,configured}
 *   services.NAME.prefixes.PREFIX.{wanted,announced,exported,weight,reason,since,elsewhere,drain,
 *   shed,level}
 *   services.NAME.prefixes.PREFIX.address.{interface,state,ours,restored,error}
 *   services.NAME.checks.NAME.{state,reason,outcomes,durations_us,since,last,duration_us,next,level}
 *   services.NAME.repair.{unit,state,since,attempts,limit,next,last,last_result,text}
 *   services.NAME.{health,level}; verdict.{level,text,command};
 * bird.{link,version,error,alarm,settled,sessions,sessions_up,next_try}; config.{error,loaded};
 * load.{capacity,utilisation,load,heaviest,signals.NAME,prefixes};
 * neighbours.{error,members.NAME.{state,report,...},refused}; shed.{why,out,alarm,...}; node,
 * version, format. Unknown is null. Only this module and the manual know the form; `format` counts
 * its versions.
 */
#include "agent/bird/apply.h"
#include "agent/config/config.h"
#include "agent/core/engine.h"
#include "agent/core/repair.h"
#include "agent/status/managed_view.h"
#include "agent/words/words.h"
#include "probes/run.h"

struct load;
struct neighbours;

struct document_facts {
	const struct config *config;
	const struct engine *engine;
	const struct apply *apply;
	/* The text of a check's last report; "" when there is none. */
	const char *(*check_reason)(void *userdata, size_t service, size_t check);
	/* When a check ran and runs next. */
	void (*check_view)(void *userdata, size_t service, size_t check, struct run_view *ret);
	/* How long its outcomes took, in us, the newest last; 0: a death between attempts. Returns
	 * how many there are. NULL: not known. */
	size_t (*check_durations)(void *userdata, size_t service, size_t check,
		uint32_t ret_us[CHECK_HISTORY_LENGTH]);
	/* The repair of a service; false where it has no `restart`. NULL: of none is known. */
	bool (*repair)(void *userdata, size_t service, struct repair_view *ret);
	/* The address of a prefix; false where it is not managed. NULL: none is. */
	bool (*address)(void *userdata, size_t service, size_t prefix, struct managed_view *ret);
	const struct managed_counts *addresses; /* of managed ones; NULL: not known */
	const uint64_t *hooks;			/* runs, by enum hooks_result; NULL: not known */
	const struct words *words;		/* of operators; NULL: none */
	const struct neighbours *neighbours;	/* NULL: none are configured */
	const struct load *load;		/* NULL: not measured */
	/* What shedding makes of a prefix, the nth promise behind it, and of the server: false
	 * where there is nothing to say. NULL: nothing is known. */
	bool (*shed)(void *userdata, size_t service, size_t prefix, struct shed_prefix *ret);
	bool (*promise)(void *userdata, size_t service, size_t prefix, size_t nth,
		struct shed_promise *ret);
	void (*shed_server)(void *userdata, struct shed_server *ret);
	void *userdata;
	bool ready; /* what BIRD was found doing is known, and the engine decides */
	bool stopping;
	const char *state_error; /* why operators' words are not on disk; "" or NULL: they are */
	const char
		*config_error; /* why the file was refused when it was read last; "": it was not */
	struct monotime config_loaded; /* of what runs */
	uint64_t generation;	       /* another one: the configuration is another one, too */
	uint64_t revision; /* another one: something else is wanted, or BIRD does something else */
};

/*
 * The status while it is written, a part of a millisecond at a time, so that nothing on the loop
 * waits for it, however many prefixes there are. Where the configuration changes meanwhile it
 * begins anew, and, a few times, where the revision does: so that it mostly is of one moment.
 */
struct document_render;

/* Heap; 0 or -ENOMEM. */
int document_render_new(struct document_render **ret);
void document_render_free(struct document_render *r);

/*
 * Goes on for about `budget_us`. 1: there is more to do. 0: *ret_text is JSON text with a final
 * newline, heap, the caller's, of *ret_length bytes; a further step begins anew. -E2BIG, -ENOMEM.
 */
int document_render_step(struct document_render *r, const struct document_facts *facts,
	uint64_t budget_us, char **ret_text, size_t *ret_length);

#endif
