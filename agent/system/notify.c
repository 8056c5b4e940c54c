/*
 * What the agent tells systemd about itself, in the datagrams of sd_notify(3). Without
 * NOTIFY_SOCKET nothing happens; a failure is nobody's business but systemd's, which notices the
 * silence.
 *
 * sd_notify() itself is not used, since it waits for as long as the service manager does not read
 * its socket: an agent whose host is in such trouble must go on withdrawing. Where the socket is
 * full, what is said once waits for WAIT_MS at most, and what is said again and again not at all.
 */
#include "agent/system/notify.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "agent/base/cleanup.h"
#include "agent/base/printable.h"
#include "agent/system/log.h"

#define STATUS_TEXT_MAX 256
#define WAIT_MS 100

static void notify_send(const char *text, int wait_ms)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = secure_getenv("NOTIFY_SOCKET");
	_cleanup_close_ int fd = -1;
	size_t n = path ? strlen(path) : 0;
	struct pollfd room;

	if (n < 2 || n >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(address.sun_path, path, n);
	if (path[0] == '@') /* an abstract one, unix(7) */
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Connected, it polls writable when the receiver has room. */
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		return;
	room = (struct pollfd){.fd = fd, .events = POLLOUT};
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) >= 0 || errno != EAGAIN)
		return;
	if (wait_ms > 0 && poll(&room, 1, wait_ms) == 1 &&
		send(fd, text, strlen(text), MSG_NOSIGNAL) >= 0)
		return;
	log_warning("systemd does not read what it is notified of: lost %.40s", text);
}

void notify_ready(void)
{
	notify_send("READY=1", WAIT_MS);
}

void notify_reloading(void)
{
	struct timespec now;
	char text[64];

	/* Type=notify-reload wants the time beside it (sd_notify(3)), of this clock. */
	if (clock_gettime(CLOCK_MONOTONIC, &now) < 0)
		return;
	(void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		(unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
	notify_send(text, WAIT_MS);
}

void notify_stopping(void)
{
	notify_send("STOPPING=1", WAIT_MS);
}

void notify_extend(uint64_t us)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%llu", (unsigned long long)us);
	notify_send(text, WAIT_MS);
}

uint64_t notify_watchdog_us(void)
{
	uint64_t us;

	return sd_watchdog_enabled(0, &us) > 0 ? us : 0;
}

void notify_watchdog(void)
{
	notify_send("WATCHDOG=1", 0);
}

void notify_status(const char *format, ...)
{
	char raw[STATUS_TEXT_MAX], shown[STATUS_TEXT_MAX], text[STATUS_TEXT_MAX + 8];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(raw, sizeof(raw), format, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof(raw))
		n = sizeof(raw) - 1;
	/* One line: a newline would end the assignment and begin another. */
	printable_copy(shown, sizeof(shown), raw, (size_t)n);
	(void)snprintf(text, sizeof(text), "STATUS=%s", shown);
	notify_send(text, 0);
}
