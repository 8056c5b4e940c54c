#ifndef REDSHANK_STATUS_CALLER_H
#define REDSHANK_STATUS_CALLER_H
/*
 * Who is at the other end of a Unix socket, by what the kernel wrote down when it was connected
 * (SO_PEERCRED, SO_PEERGROUPS: unix(7), socket(7)), and whether that one may change things.
 */
#include <stdbool.h>
#include <sys/types.h>

#define CALLER_TEXT_MAX 96

struct caller {
	pid_t pid;
	uid_t uid;
	bool may_change; /* root, the agent's own user, or a member of the group */
};

/* The id of status.group, or (gid_t)-1: it is none, or is not there. At start only: getgrnam(3) may
 * ask the network. */
gid_t caller_group(const char *group);

/* 0 or negative errno: nothing is known of it, and it may nothing. */
int caller_of(int fd, gid_t group, struct caller *ret);

/* "alice (uid 1000, pid 4711)"; the name only where /etc/passwd has it, for to ask further may
 * take long. Returns buf. */
const char *caller_format(const struct caller *caller, char buf[CALLER_TEXT_MAX]);

#endif
