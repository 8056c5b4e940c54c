#ifndef REDSHANK_JUDGE_VERDICT_H
#define REDSHANK_JUDGE_VERDICT_H
/*
 * The judgement of a whole status document in one sentence: what is wrong, and the command that
 * says more. The agent puts it into the document for its page; `redshankctl status` makes its first
 * line of it.
 */
#include "agent/judge/judge.h"

#define VERDICT_TEXT_MAX 4200
#define VERDICT_COMMAND_MAX 128

struct verdict {
	enum judge_level level;
	char command[VERDICT_COMMAND_MAX]; /* of the worst; "" where all is well */
	struct buffer text;		   /* never empty while there is memory */
};

/* Initialises `ret`. Without memory the text may be cut short or empty; the level is right. */
void verdict_judge(struct verdict *ret, const json_t *document);
void verdict_done(struct verdict *v);

/* "good", "look", "trouble": the word in the document. */
const char *verdict_level_name(enum judge_level level);

#endif
