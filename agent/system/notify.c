/*
 * What the agent tells systemd about itself, by sd_notify(3). Without NOTIFY_SOCKET nothing
 * happens; a failure is nobody's business but systemd's, which notices the silence.
 */
#include "agent/system/notify.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <systemd/sd-daemon.h>

#include "agent/base/printable.h"

#define STATUS_TEXT_MAX 256

void notify_ready(void)
{
	(void)sd_notify(0, "READY=1");
}

void notify_reloading(void)
{
	struct timespec now;

	/* Type=notify-reload wants the time beside it (sd_notify(3)), of this clock. */
	if (clock_gettime(CLOCK_MONOTONIC, &now) < 0)
		return;
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
		(unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
}

void notify_stopping(void)
{
	(void)sd_notify(0, "STOPPING=1");
}

uint64_t notify_watchdog_us(void)
{
	uint64_t us;

	return sd_watchdog_enabled(0, &us) > 0 ? us : 0;
}

void notify_watchdog(void)
{
	(void)sd_notify(0, "WATCHDOG=1");
}

void notify_status(const char *format, ...)
{
	char raw[STATUS_TEXT_MAX], text[STATUS_TEXT_MAX];
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
	(void)sd_notifyf(0, "STATUS=%s", printable_copy(text, sizeof(text), raw, (size_t)n));
}
