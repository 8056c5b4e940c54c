/*
 * The words for a lost connection to BIRD: from errno, which client.c and birdc.c tell, to one of a
 * few that a metric may have as a label. What is none of BIRD's own troubles is ours.
 */
#include "agent/bird/loss.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

enum loss loss_of(int error)
{
	switch (-error) {
	case ENOENT:
	case ENOTDIR:
		return LOSS_ABSENT;
	case ECONNREFUSED:
		return LOSS_REFUSED;
	case EACCES:
	case EPERM:
		return LOSS_DENIED;
	case EAGAIN: /* connect(2) of a Unix socket: the backlog is full */
		return LOSS_FULL;
	case ECONNRESET:
	case EPIPE:
		return LOSS_CLOSED;
	case ETIMEDOUT:
		return LOSS_SILENT;
	case EBADMSG:
		return LOSS_GARBLED;
	}
	return LOSS_FAILED;
}

const char *loss_name(enum loss loss)
{
	switch (loss) {
	case LOSS_NONE:
		return NULL;
	case LOSS_ABSENT:
		return "absent";
	case LOSS_REFUSED:
		return "refused";
	case LOSS_DENIED:
		return "denied";
	case LOSS_FULL:
		return "full";
	case LOSS_CLOSED:
		return "closed";
	case LOSS_SILENT:
		return "silent";
	case LOSS_GARBLED:
		return "garbled";
	case LOSS_TOO_OLD:
		return "too_old";
	case LOSS_FAILED:
		return "failed";
	}
	abort();
}

bool loss_is_silence(enum loss loss)
{
	return loss == LOSS_SILENT || loss == LOSS_FULL;
}
