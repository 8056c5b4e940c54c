/*
 * The log.
 *
 * Where it goes is decided at log_init(): when JOURNAL_STREAM names the device and inode of
 * stderr (systemd.exec(5)), lines go to the journal in its native protocol
 * (https://systemd.io/JOURNAL_NATIVE_PROTOCOL), with their level; else to stderr.
 *
 * The agent must go on when the reader of its log does not: a stopped journald, a full pipe, a
 * terminal under ^S. So nothing here may block. sd_journal_send(3) can, since its socket is a
 * blocking one, which is why the one datagram that it would send is sent here, with MSG_DONTWAIT.
 * stderr is shared with whoever started us and must not be made non-blocking; it is asked with
 * poll(2) first, and a line is shorter than what a pipe that polls writable takes without waiting
 * (PIPE_BUF, pipe(7)). A line that cannot be written is dropped and counted.
 */
#include "agent/system/log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/base/buffer.h"
#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/base/printable.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

static struct {
	int max_level;
	int journal_fd; /* -1: stderr */
	unsigned long dropped;
} state = {.max_level = LOG_INFO, .journal_fd = -1};

static bool stderr_is_the_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;
	char end;

	/* A number that does not fit is no device of ours. */
	/* NOLINTNEXTLINE(cert-err34-c) */
	if (!stream || sscanf(stream, "%llu:%llu%c", &device, &inode, &end) != 2)
		return false;
	return fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_init(int max_level, bool to_stderr)
{
	state.max_level = max_level;
	(void)signal(SIGPIPE, SIG_IGN);
	if (state.journal_fd >= 0)
		(void)close(state.journal_fd);
	state.journal_fd = -1;
	if (!to_stderr && stderr_is_the_journal())
		state.journal_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* NAME=VALUE and a newline for each: a value is made one line, so that it needs no length. */
static void append_fields(struct buffer *b, const struct log_field *fields, size_t n)
{
	char value[LOG_TEXT_MAX];

	for (size_t i = 0; i < n; i++) {
		if (!fields[i].value || !fields[i].value[0])
			continue;
		printable_copy(value, sizeof(value), fields[i].value, strlen(fields[i].value));
		(void)buffer_printf(b, "%s=%s\n", fields[i].name, value);
	}
}

static bool send_to_journal(
	int level, const char *text, const struct log_field *fields, size_t n_fields)
{
	/* Sent to the path each time: a journald that was started anew is found again. */
	static const struct sockaddr_un address = {
		.sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET};
	char memory[LOG_TEXT_MAX + 128 + LOG_FIELDS_MAX];
	struct buffer datagram;

	buffer_init_fixed(&datagram, memory, sizeof(memory));
	(void)buffer_printf(&datagram,
		"PRIORITY=%d\nSYSLOG_FACILITY=%d\nSYSLOG_IDENTIFIER=%.40s\nMESSAGE=%s\n",
		LOG_PRI(level), LOG_FAC(LOG_DAEMON), program_invocation_short_name, text);
	append_fields(&datagram, fields, n_fields);
	return sendto(state.journal_fd, datagram.data, datagram.length, MSG_DONTWAIT | MSG_NOSIGNAL,
		       (const struct sockaddr *)&address,
		       sizeof(address)) == (ssize_t)datagram.length;
}

static bool write_to_stderr(const char *text)
{
	struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
	char line[LOG_TEXT_MAX + 128], when[CLOCK_TEXT_MAX];
	int n = snprintf(line, sizeof(line), "%s %.40s: %s\n", clock_format(clock_walltime(), when),
		program_invocation_short_name, text);

	if (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT))
		return false;
	return write(STDERR_FILENO, line, (size_t)n) == n;
}

static bool put(int level, const char *text, const struct log_field *fields, size_t n)
{
	/* Where there is no journal after all (its socket is gone), stderr is better than nothing;
	 * a full one is not passed by, or lines would come out of order. */
	if (state.journal_fd >= 0) {
		if (send_to_journal(level, text, fields, n))
			return true;
		if (errno == EAGAIN || errno == ENOBUFS)
			return false;
	}
	return write_to_stderr(text);
}

static void tell_dropped(void)
{
	char text[64];

	(void)snprintf(
		text, sizeof(text), "log: %lu lines lost, the reader was too slow", state.dropped);
	if (put(LOG_WARNING, text, NULL, 0))
		state.dropped = 0;
}

void log_entry(int level, const char *text, const struct log_field *fields, size_t n)
{
	int saved = errno;

	if (LOG_PRI(level) > state.max_level)
		return;
	if (!put(level, text, fields, n))
		state.dropped++;
	else if (state.dropped > 0)
		tell_dropped();
	errno = saved;
}

const char *log_format(char buf[LOG_TEXT_MAX], const char *format, va_list ap)
{
	char raw[LOG_TEXT_MAX + 1];
	int n = vsnprintf(raw, sizeof(raw), format, ap);

	if (n < 0)
		n = 0;
	if ((size_t)n >= sizeof(raw))
		n = sizeof(raw) - 1;
	return printable_copy(buf, LOG_TEXT_MAX, raw, (size_t)n);
}

void log_line(int level, const char *format, ...)
{
	char text[LOG_TEXT_MAX];
	int saved = errno;
	va_list ap;

	if (LOG_PRI(level) > state.max_level)
		return;
	va_start(ap, format);
	(void)log_format(text, format, ap);
	va_end(ap);
	log_entry(level, text, NULL, 0);
	errno = saved;
}
