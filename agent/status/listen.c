/*
 * Listening sockets of the status server.
 *
 * A Unix socket is a file, and the file outlives a killed agent. So before binding we ask who is
 * there: a connection that is refused means that nobody listens and the file is removed; one that
 * is accepted (or waits in a full queue) is a living agent, which keeps its socket, and we say so
 * instead of taking its clients away.
 *
 * The file appears with mode 0600 and is opened up only after its group is right, so that there is
 * no moment in which the wrong group may connect.
 *
 * Where a socket unit holds the sockets, they are taken from it instead (sd_listen_fds(3)), and
 * tell by their family what they are. File, mode and group are then the unit's, and what waits to
 * be accepted outlives the agent.
 *
 * Called at start and at no other time: getgrnam(3) may ask the network.
 */
#include "agent/status/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "agent/system/log.h"

#define LISTEN_BACKLOG 128
#define LISTEN_PATIENCE_NS 300000000
#define LISTEN_TRIES 30

static int unix_address(const char *path, struct sockaddr_un *ret, struct error *ret_error)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (path[0] != '/')
		return error_set(ret_error, EINVAL, "status: %s: expected an absolute path", path);
	if (strlen(path) >= sizeof(ret->sun_path))
		return error_set(ret_error, ENAMETOOLONG,
			"status: %s: the path of a Unix socket holds at most %zu characters", path,
			sizeof(ret->sun_path) - 1);
	memcpy(ret->sun_path, path, strlen(path) + 1);
	return 0;
}

/* 0: nobody listens. -EADDRINUSE: somebody does. Else negative errno with the text. */
static int unix_is_free(
	const char *path, const struct sockaddr_un *address, struct error *ret_error)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return error_set_errno(ret_error, errno, "status: socket");
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
		errno == EAGAIN || errno == EINPROGRESS)
		return error_set(ret_error, EADDRINUSE,
			"status: %s: another agent answers there; is redshankd running already?",
			path);
	if (errno == ECONNREFUSED || errno == ENOENT)
		return 0;
	return error_set_errno(ret_error, errno, "status: connect %s", path);
}

/*
 * Makes room at `path` if what lies there is a socket that nobody answers on. A killed agent's
 * socket lives on for a moment in a child that it was just starting, until that execs: hence the
 * patience.
 */
static int unix_clear_stale(
	const char *path, const struct sockaddr_un *address, struct error *ret_error)
{
	const struct timespec pause = {.tv_nsec = LISTEN_PATIENCE_NS / LISTEN_TRIES};
	struct stat st;
	int r;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : error_set_errno(ret_error, errno, "status: %s", path);
	if (!S_ISSOCK(st.st_mode))
		return error_set(ret_error, EEXIST,
			"status: %s exists and is not a socket; it is left alone", path);
	for (unsigned i = 0; (r = unix_is_free(path, address, ret_error)) == -EADDRINUSE; i++) {
		if (i == LISTEN_TRIES)
			return r;
		(void)nanosleep(&pause, NULL);
	}
	if (r < 0)
		return r;
	if (unlink(path) < 0 && errno != ENOENT)
		return error_set_errno(ret_error, errno, "status: remove the stale %s", path);
	return 0;
}

static int unix_bind(
	int fd, const char *path, const struct sockaddr_un *address, struct error *ret_error)
{
	mode_t mask = umask(0177);
	int r = bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;

	(void)umask(mask);
	if (r == -ENOENT)
		return error_set_errno(ret_error, ENOENT,
			"status: bind %s (its directory is made by systemd or tmpfiles.d)", path);
	if (r < 0)
		return error_set_errno(ret_error, -r, "status: bind %s", path);
	return 0;
}

/* Lets the group in. What fails here costs the group its access and nothing else. */
static void unix_open_for_group(const char *path, const char *group)
{
	const struct group *found;

	if (!group)
		return;
	errno = 0;
	found = getgrnam(group);
	if (!found) {
		log_warning("status: %s: group \"%s\" is unknown on this host%s%s; only root and "
			    "the agent's own user may connect",
			path, group, errno ? ": " : "", errno ? strerror(errno) : "");
		return;
	}
	if (lchown(path, (uid_t)-1, found->gr_gid) < 0 || chmod(path, 0660) < 0)
		log_warning("status: %s: cannot be given to group \"%s\": %s; only root and the "
			    "agent's own user may connect",
			path, group, strerror(errno));
}

int listen_unix(
	const char *path, const char *group, struct listen_file *ret_file, struct error *ret_error)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_un address;
	struct stat st;
	int r;

	r = unix_address(path, &address, ret_error);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set_errno(ret_error, errno, "status: socket");
	r = unix_clear_stale(path, &address, ret_error);
	if (r < 0)
		return r;
	r = unix_bind(fd, path, &address, ret_error);
	if (r < 0)
		return r;
	if (lstat(path, &st) < 0)
		return error_set_errno(ret_error, errno, "status: %s", path);
	unix_open_for_group(path, group);
	if (listen(fd, LISTEN_BACKLOG) < 0) {
		r = error_set_errno(ret_error, errno, "status: listen %s", path);
		(void)unlink(path);
		return r;
	}
	*ret_file = (struct listen_file){.device = st.st_dev, .inode = st.st_ino};
	return TAKE_FD(fd);
}

void listen_unix_remove(const char *path, const struct listen_file *file)
{
	struct stat st;

	if (lstat(path, &st) < 0 || st.st_dev != file->device || st.st_ino != file->inode)
		return;
	(void)unlink(path);
}

/* ---- sockets of a socket unit ---- */

void listen_passed_done(struct listen_passed *passed)
{
	closep(&passed->unix_fd);
	closep(&passed->tcp_fd);
	*passed = LISTEN_PASSED_NONE;
}

static int passed_option(int fd, int option)
{
	int value = -1;
	socklen_t size = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &size) < 0 ? -errno : value;
}

static int passed_refuse(int fd, const char *what, struct error *ret_error)
{
	return error_set(ret_error, EINVAL,
		"status: descriptor %d of the socket unit is %s; expected listening stream "
		"sockets, "
		"at most one on a Unix path and one on TCP (ListenStream=, Accept=no)",
		fd, what);
}

/* Puts one descriptor where it belongs. */
static int passed_sort_one(int fd, struct listen_passed *passed, struct error *ret_error)
{
	int family = passed_option(fd, SO_DOMAIN), flags;
	int *place = family == AF_UNIX ? &passed->unix_fd : &passed->tcp_fd;

	if (family == -ENOTSOCK)
		return passed_refuse(fd, "no socket", ret_error);
	if (family < 0)
		return error_set_errno(
			ret_error, -family, "status: descriptor %d of the socket unit", fd);
	if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
		return passed_refuse(fd, "neither a Unix nor an IP socket", ret_error);
	if (passed_option(fd, SO_TYPE) != SOCK_STREAM ||
		(family != AF_UNIX && passed_option(fd, SO_PROTOCOL) != IPPROTO_TCP))
		return passed_refuse(fd, "no stream socket", ret_error);
	if (passed_option(fd, SO_ACCEPTCONN) != 1)
		return passed_refuse(fd, "not listening", ret_error);
	if (*place >= 0)
		return passed_refuse(fd,
			family == AF_UNIX ? "a second Unix socket" : "a second TCP socket",
			ret_error);
	/* A client that goes away before accept4() may not stop the loop. */
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
		fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return error_set_errno(
			ret_error, errno, "status: descriptor %d of the socket unit", fd);
	*place = fd;
	return 0;
}

int listen_sort(const int *fds, size_t n, struct listen_passed *ret, struct error *ret_error)
{
	struct listen_passed passed = LISTEN_PASSED_NONE;

	for (size_t i = 0; i < n; i++) {
		int r = passed_sort_one(fds[i], &passed, ret_error);

		if (r >= 0)
			continue;
		for (; i < n; i++)
			(void)close(fds[i]);
		listen_passed_done(&passed);
		return r;
	}
	*ret = passed;
	return 0;
}

int listen_take(struct listen_passed *ret, struct error *ret_error)
{
	_cleanup_free_ int *fds = NULL;
	int n = sd_listen_fds(true);

	if (n < 0)
		return error_set_errno(ret_error, -n,
			"status: the sockets of a socket unit (LISTEN_PID, LISTEN_FDS)");
	if (n == 0) {
		*ret = LISTEN_PASSED_NONE;
		return 0;
	}
	fds = calloc((size_t)n, sizeof(*fds));
	if (!fds)
		return error_set_errno(ret_error, ENOMEM, "status");
	for (int i = 0; i < n; i++)
		fds[i] = SD_LISTEN_FDS_START + i;
	return listen_sort(fds, (size_t)n, ret, ret_error);
}

void listen_passed_compare(int fd, const char *path)
{
	struct sockaddr_un address = {0};
	socklen_t length = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &length) < 0 ||
		strncmp(address.sun_path, path, sizeof(address.sun_path)) == 0)
		return;
	log_warning("status: the socket unit listens at %.107s; `status.socket`, %s, counts for "
		    "nothing",
		address.sun_path[0] == '\0' ? "no path" : address.sun_path, path);
}
