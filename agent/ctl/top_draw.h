#ifndef REDSHANK_CTL_TOP_DRAW_H
#define REDSHANK_CTL_TOP_DRAW_H
/*
 * One screen of `redshankctl top`: a status document and a size in, text out. Pure: it asks no
 * clock, no terminal and no agent, so that screens can be compared with what they should be.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct top_view {
	const json_t *document; /* the newest status there is; NULL: none yet. Borrowed */
	const char *error;	/* why there is no newer one, or NULL */
	unsigned width, height; /* of the terminal, at least 1 */
	bool colours;
	int64_t now_ms; /* since the epoch: ages are counted to it */
};

/*
 * Writes at most `height` lines of at most `width` columns, with '\n' between them and none after
 * the last. The worst services first, with what is wrong with them; where the screen is too low it
 * says how many more there are.
 */
void top_draw(FILE *out, const struct top_view *view);

#endif
