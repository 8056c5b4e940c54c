#ifndef REDSHANK_BIRD_DEADMAN_H
#define REDSHANK_BIRD_DEADMAN_H
/*
 * What becomes of the announcements when the agent is gone for good: written beforehand by an agent
 * that lives, read by systemd/redshank-deadman when systemd has given it up. That is a shell script
 * with nothing but birdc to help it, so the list is lines of words and no JSON:
 *
 *   redshank-deadman 1
 *   socket /run/bird/bird.ctl
 *   withdraw dns
 *   stopped-withdraw dns
 *   keep web
 *   stopped-withdraw web
 *   restore redshank:web:192.0.2.80
 *
 * `withdraw` or `keep` is the service's on_failure, for an agent that systemd has given up;
 * `stopped-withdraw` or `stopped-keep` its on_stop, for one that did not end its stop itself.
 *
 * `restore` is for what is shed (agent/core/shed.h) of a service that is kept: its neighbours'
 * promises end with the agent, so it is announced again. Not where a family has one protocol for
 * all prefixes (names.h): BIRD does not hold the one that is out, and a script cannot make it.
 *
 * It lies beside the fragments, on tmpfs like them: after a reboot neither is there.
 */
#include "agent/base/buffer.h"
#include "agent/base/error.h"
#include "agent/config/config.h"

#define DEADMAN_FILE ".deadman"

/* A prefix that is shed, by its place in the configuration. */
struct deadman_restore {
	size_t service, prefix;
};

/* Appends the list of a configuration, whose `bird` is not looked at: `socket` is the one that is
 * in use, which a reload does not change. 0, -ENOMEM, -E2BIG; -EINVAL where it holds a line's end.
 */
int deadman_render(const struct config *config, const char *socket,
	const struct deadman_restore *sheds, size_t n, struct buffer *ret);

/* Writes it into `folder`, that of the fragments, by dot-file and rename. 0 or negative errno with
 * the text; the old list is untouched then. */
int deadman_write(const struct config *config, const char *socket, const char *folder,
	const struct deadman_restore *sheds, size_t n, struct error *ret_error);

#endif
