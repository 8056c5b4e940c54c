#ifndef REDSHANK_WORDS_KEEPER_H
#define REDSHANK_WORDS_KEEPER_H
/*
 * Keeps the operators' words on disk without holding the loop: fsync(2) takes as long as the disk
 * likes, 20 ms on a quiet one and seconds on one that is in trouble, and a process that dies
 * meanwhile has to be withdrawn. A thread writes the file; the loop hears what became of it.
 */
#include <systemd/sd-event.h>

#include "agent/base/error.h"

struct keeper;

/*
 * A keeper of the file at `path`, which is copied. `changed` is called from the loop when a write
 * has failed, with the text, or has succeeded after one that failed, with "". 0 or negative errno.
 */
int keeper_new(struct keeper **ret, sd_event *event, const char *path,
	void (*changed)(void *userdata, const char *error), void *userdata);
/* What was handed over is written first, unless that takes longer than two seconds: then the disk
 * hangs, and what it has to say comes too late. */
void keeper_free(struct keeper *k);

/*
 * Hands over the text of words_render(), which it owns from now on; one that was not written yet is
 * replaced. Waits for `wait_ms` at most: 1, it is on disk; 0, that is not known yet; or a negative
 * errno with the text. What fails is tried again every second, and once more when the agent leaves.
 */
int keeper_put(struct keeper *k, char *text, unsigned wait_ms, struct error *ret_error);

/* Why the newest words are not on disk, as the loop has heard; "": they are, or it has not. */
const char *keeper_error(const struct keeper *k);

#endif
