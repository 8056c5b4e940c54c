/*
 * The credentials of clients. The groups are those of the process that connected, at that moment:
 * who was added to the group later has to log in again, as everywhere.
 */
#include "agent/status/caller.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>

#include "agent/base/cleanup.h"

gid_t caller_group(const char *group)
{
	const struct group *entry = group ? getgrnam(group) : NULL;

	return entry ? entry->gr_gid : (gid_t)-1;
}

static bool caller_has_group(int fd, gid_t group)
{
	_cleanup_free_ gid_t *groups = NULL;
	socklen_t size = 0;

	/* A first call with no room tells how much it takes. */
	/* cppcheck-suppress nullPointer */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0 || errno != ERANGE)
		return false;
	groups = malloc(size);
	if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		return false;
	for (size_t i = 0; i < size / sizeof(*groups); i++)
		if (groups[i] == group)
			return true;
	return false;
}

int caller_of(int fd, gid_t group, struct caller *ret)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return -errno;
	if (size != sizeof(cred) || cred.uid == (uid_t)-1)
		return -ENODATA;
	*ret = (struct caller){.pid = cred.pid, .uid = cred.uid};
	ret->may_change =
		cred.uid == 0 || cred.uid == geteuid() ||
		(group != (gid_t)-1 && (cred.gid == group || caller_has_group(fd, group)));
	return 0;
}

const char *caller_format(const struct caller *caller, char buf[CALLER_TEXT_MAX])
{
	_cleanup_fclose_ FILE *f = fopen("/etc/passwd", "re");
	char line[1024];
	struct passwd entry, *found = NULL;

	/* Filled by it. */
	/* cppcheck-suppress uninitvar */
	while (f && fgetpwent_r(f, &entry, line, sizeof(line), &found) == 0)
		if (found->pw_uid == caller->uid) {
			(void)snprintf(buf, CALLER_TEXT_MAX, "%.40s (uid %u, pid %d)",
				found->pw_name, (unsigned)caller->uid, (int)caller->pid);
			return buf;
		}
	(void)snprintf(
		buf, CALLER_TEXT_MAX, "uid %u (pid %d)", (unsigned)caller->uid, (int)caller->pid);
	return buf;
}
