/*
 * Writes and reads the attempts at repair: see repair_keep.h. Called from agent/repair.c alone,
 * when an attempt begins (a handful of times in `per`), and at the agent's start. The file is
 * replaced by rename, on the tmpfs of the fragments; it is no part of a withdrawal.
 */
#include "agent/repair_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "agent/bird/fragment.h"
#include "agent/events/events.h"

#define KEEP_NEW REPAIR_KEEP_FILE ".new"
#define KEEP_HEAD "redshank-restarts 1"
#define KEEP_TEXT_MAX (1024UL * 1024)
#define KEEP_BOOT_MAX 64

/* Which boot this is: the clock begins anew with each. "" where the kernel does not say. */
static void keep_boot(char ret[KEEP_BOOT_MAX])
{
	_cleanup_close_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, ret, KEEP_BOOT_MAX - 1) : 0;

	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

static int keep_render(const struct repairs *r, const struct config *config, struct buffer *ret)
{
	char boot[KEEP_BOOT_MAX];
	struct repair_view view;
	int e;

	keep_boot(boot);
	e = buffer_printf(ret, KEEP_HEAD " %s\n", boot);
	for (size_t s = 0; s < config->n_services && e >= 0; s++) {
		if (!repairs_view(r, s, &view) || view.repair->n_attempts == 0)
			continue;
		e = buffer_printf(ret, "%s %s", config->services[s].name, view.unit);
		for (size_t i = 0; i < view.repair->n_attempts && e >= 0; i++)
			e = buffer_printf(ret, " %" PRIu64, view.repair->attempts[i].us);
		if (e >= 0)
			e = buffer_append_string(ret, "\n");
	}
	return e;
}

void repair_keep(const struct repairs *r, const struct config *config, const char *where)
{
	_cleanup_buffer_ struct buffer text = {0};
	_cleanup_close_ int folder = -1;
	struct error error;
	int e;

	buffer_init(&text, KEEP_TEXT_MAX);
	e = keep_render(r, config, &text);
	if (e >= 0)
		e = fragment_open_folder(where, &folder, &error);
	if (e >= 0)
		e = fragment_place(
			folder, KEEP_NEW, REPAIR_KEEP_FILE, buffer_string(&text), text.length);
	if (e < 0)
		event_say(LOG_WARNING, EVENT_AGENT_TROUBLE, NULL,
			"%s/" REPAIR_KEEP_FILE
			": %s; an agent that starts anew would count restarts from none",
			where, strerror(-e));
}

static void keep_read_line(struct repairs *r, char *line)
{
	const char *service = strsep(&line, " "), *unit = strsep(&line, " "), *time;
	char *end;

	while (unit && (time = strsep(&line, " "))) {
		uint64_t us;

		errno = 0;
		us = strtoull(time, &end, 10);
		if (errno || end == time || *end)
			return;
		repairs_remember(r, service, unit, (struct monotime){us});
	}
}

void repair_recall(struct repairs *r, const char *where)
{
	_cleanup_buffer_ struct buffer text = {0};
	_cleanup_close_ int folder = -1;
	char head[sizeof(KEEP_HEAD) + KEEP_BOOT_MAX], boot[KEEP_BOOT_MAX], *rest, *line;
	struct error error;

	buffer_init(&text, KEEP_TEXT_MAX);
	if (fragment_open_folder(where, &folder, &error) < 0 ||
		fragment_read_file(folder, REPAIR_KEEP_FILE, &text) < 0 || text.length == 0)
		return;
	keep_boot(boot);
	(void)snprintf(head, sizeof(head), KEEP_HEAD " %s", boot);
	rest = text.data;
	line = strsep(&rest, "\n");
	if (strcmp(line, head) != 0)
		return;
	while ((line = strsep(&rest, "\n")))
		keep_read_line(r, line);
}
