#ifndef REDSHANK_STATUS_DOCUMENT_H
#define REDSHANK_STATUS_DOCUMENT_H
/*
 * The document of GET /v1/status: what is configured, wanted, announced and exported, and why.
 *   drains: a list of {name,reason,who,since,until,configured}
 *   services.NAME.prefixes.PREFIX.{wanted,announced,exported,weight,reason,since,elsewhere,drain}
 *   services.NAME.checks.NAME.{state,reason,outcomes,since,last,duration_us,next}
 *   services.NAME.health; bird.{link,version,error,alarm,settled,sessions,sessions_up,next_try};
 *   config.{error,loaded}; node, version, format
 * Unknown is null. Only this module and the manual know the form; `format` counts
 * its versions.
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
