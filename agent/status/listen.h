#ifndef REDSHANK_STATUS_LISTEN_H
#define REDSHANK_STATUS_LISTEN_H
/* The listening sockets of the status server: made here, served by http.c. */
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

/*
 * A listening TCP socket at "ADDRESS:PORT", an IPv6 address in brackets. The address may be one
 * that the host does not have yet. Returns the descriptor, owned by the caller, or negative errno
 * with the text.
 */
int listen_tcp(const char *address_port, struct error *ret_error);

#endif
