#ifndef REDSHANK_STATUS_LISTEN_H
#define REDSHANK_STATUS_LISTEN_H
/* The listening sockets of the status server: made here, or taken from systemd; served by http.c.
 */
#include <sys/stat.h>
#include <sys/types.h>

#include "agent/base/error.h"

/* A socket file that we made; what listen_unix_remove() needs to know it again. */
struct listen_file {
	dev_t device;
	ino_t inode;
};

/*
 * A listening Unix socket at `path`: mode 0660 and `group`, or 0600 where `group` is NULL or cannot
 * be given (a warning is logged: then it is root and the agent's own user alone). A socket file
 * that nobody answers on is replaced; one that answers is another agent's: -EADDRINUSE; anything
 * else at that path stays: -EEXIST. Returns the descriptor, which the caller owns, or negative
 * errno with the text.
 */
int listen_unix(
	const char *path, const char *group, struct listen_file *ret_file, struct error *ret_error);

/* Removes the socket file if it still is the one that was made. */
void listen_unix_remove(const char *path, const struct listen_file *file);

/* What a socket unit has passed on, one of a kind at most. Owned; -1: none. */
struct listen_passed {
	int unix_fd; /* instead of listen_unix(); its file is systemd's, not to be removed */
	int tcp_fd;  /* instead of tcp_listen() */
};

#define LISTEN_PASSED_NONE                  \
	(struct listen_passed)              \
	{                                   \
		.unix_fd = -1, .tcp_fd = -1 \
	}

/*
 * Takes the sockets of sd_listen_fds(3), once: the environment is forgotten, so that a second call
 * finds none. -EINVAL with a text for what is not a listening stream socket on Unix or TCP, for two
 * of a kind and for a number that makes no sense; all are closed then. 0, also where none was
 * passed.
 */
int listen_take(struct listen_passed *ret, struct error *ret_error);

/* The same with `n` descriptors, which it owns from now on. For listen_take() and its tests. */
int listen_sort(const int *fds, size_t n, struct listen_passed *ret, struct error *ret_error);

void listen_passed_done(struct listen_passed *passed);

/* Warns where the file of `fd` is not `path`: nobody would find it by the configuration. */
void listen_passed_compare(int fd, const char *path);

#endif
