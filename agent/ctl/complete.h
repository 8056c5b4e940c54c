#ifndef REDSHANK_CTL_COMPLETE_H
#define REDSHANK_CTL_COMPLETE_H
/* What a shell may complete a command line with: `redshankctl complete -- WORD...`, which the
 * completions of bash and zsh call. Not for people. */
#include <stdio.h>

/* A command as redshankctl lists it. */
struct complete_command {
	const char *name, *arguments, *help;
};

/*
 * `words` are the n words behind the program's name, the last of them what is to be completed, ""
 * where nothing of it is there yet. Writes what it can become, a line each, with a tab and a
 * description behind it where there is one; ":files" stands for any file. An agent is asked for the
 * names it has, for a second at most; where none answers there are none. `command(i)` is the i-th
 * command, one with the name NULL past the last.
 */
void complete_words(FILE *out, const char *socket_path, size_t n, char *const *words,
	struct complete_command (*command)(size_t i));

#endif
