#ifndef REDSHANK_STATUS_DOCUMENT_H
#define REDSHANK_STATUS_DOCUMENT_H
/*
 * The document of GET /v1/status: what is configured, wanted, announced and exported, and why.
 *   drains: a list of {name,reason,who,since,until,configured}
 *   services.NAME.prefixes.PREFIX.{wanted,announced,exported,weight,reason,since,elsewhere,drain,
 *   level}
 *   services.NAME.checks.NAME.{state,reason,outcomes,durations_us,since,last,duration_us,next,level}
 *   services.NAME.{health,level}; verdict.{level,text,command};
 * bird.{link,version,error,alarm,settled,sessions,sessions_up,next_try}; config.{error,loaded};
 * node, version, format Unknown is null. Only this module and the manual know the form; `format`
 * counts its versions.
 */
#include "agent/bird/apply.h"
#include "agent/config/config.h"
#include "agent/core/engine.h"
#include "agent/words/words.h"
#include "probes/run.h"

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
	const struct words *words; /* of operators; NULL: none */
	void *userdata;
	bool ready; /* what BIRD was found doing is known, and the engine decides */
	bool stopping;
	const char
		*config_error; /* why the file was refused when it was read last; "": it was not */
	struct monotime config_loaded; /* of what runs */
};

/* JSON text with a final newline; heap, owned by the caller; NULL when there is no memory. */
char *document_status(const struct document_facts *facts);

#endif
