#ifndef REDSHANK_BIRD_LOSS_H
#define REDSHANK_BIRD_LOSS_H
/*
 * Why there is no connection to BIRD, in one word: of bird.reason in the status, `to` of the event
 * bird_away and `reason` of redshank_bird_connections_lost_total. client.h's errors go in.
 */
#include <stdbool.h>

enum loss {
	LOSS_NONE,
	LOSS_ABSENT,  /* there is no socket: BIRD does not run, or its -s says otherwise */
	LOSS_REFUSED, /* nobody listens at it; or birdc says that it cannot connect */
	LOSS_DENIED,  /* we may not write to it */
	LOSS_FULL,    /* it takes no more connections: BIRD hangs, or others hold them */
	LOSS_CLOSED,  /* BIRD ended, restarted, or hung up */
	LOSS_SILENT,  /* no greeting, or no whole reply, in its time: hung, or dripping */
	LOSS_GARBLED, /* what came is no reply, or no BIRD's greeting */
	LOSS_TOO_OLD, /* a BIRD 1.x, to which nothing was sent */
	LOSS_FAILED,  /* our own side: no descriptors, no memory, no birdc */
};
#define LOSSES ((unsigned)LOSS_FAILED + 1)

/* `error` is a negative errno. Never LOSS_NONE. */
enum loss loss_of(int error);
/* "silent"; NULL for LOSS_NONE. */
const char *loss_name(enum loss loss);
/* True: BIRD's process is there, as far as can be seen, and says nothing. */
bool loss_is_silence(enum loss loss);

#endif
