#ifndef REDSHANK_AGENT_CONTROL_H
#define REDSHANK_AGENT_CONTROL_H
/*
 * The operator's changes: POST /v1/COMMAND with a JSON body, from one who may (status/caller.h).
 * Reads the body, carries it out, logs who did what and why, and says what became of it. Drains
 * live in words/words.h and end here, by a timer on the wall clock. docs/status.md has the forms.
 */
#include <systemd/sd-event.h>

#include "agent/config/config.h"
#include "agent/status/caller.h"
#include "agent/words/words.h"

struct control;

struct control_ops {
	/* The words have changed: the engine is to hear of them, and to decide. */
	void (*changed)(void *userdata);
	void (*check_now)(void *userdata);
	/* As a HUP; with `force` also where the guard of reloads is against it. 0 or negative
	 * errno, with what is wrong in `problems`. */
	int (*reload)(void *userdata, bool force, struct problems *problems);
	/* Why nothing can be changed now, such as "the agent is stopping"; NULL: it can. */
	const char *(*busy)(void *userdata);
	/* Why nothing can be shed here, such as "`shed` is not configured"; NULL: it can. */
	const char *(*cannot_shed)(void *userdata);
	/* What a new weight waits for, such as "BIRD is away"; NULL: nothing, or it is not known.
	 */
	const char *(*weight_waits)(void *userdata);
	void *userdata;
};

/* The names of the commands, NULL at the end. */
extern const char *const control_commands[];

/*
 * Reads what was kept at `state`; what is wrong with that is logged, and does not stop the agent.
 * `config` points to the pointer of the configuration that runs. 0 or negative errno.
 */
int control_new(struct control **ret, sd_event *event, const char *state,
	const struct config *const *config, const struct control_ops *ops);
void control_free(struct control *c);

const struct words *control_words(const struct control *c);

/* Why what operators have said is not on disk; "": it is. */
const char *control_state_error(const struct control *c);

/* Does it. The JSON of the answer: heap, owned by the caller; NULL without memory. `body` is any
 * text of n bytes. *ret_status is HTTP's. */
char *control_command(struct control *c, const char *command, const char *body, size_t n,
	const struct caller *caller, unsigned *ret_status);

#endif
