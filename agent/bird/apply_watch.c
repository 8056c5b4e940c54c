/*
 * Watches of folders, each on an inotify descriptor of its own, so that two that mean the same
 * folder do not replace each other's mask. (Not sd_event_add_inotify(): with libsystemd 252 a
 * source that is freed while the kernel holds events for it left the loop spinning.)
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "agent/bird/apply_state.h"

static int watch_on_events(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct apply_watch *w = userdata;
	_Alignas(struct inotify_event) char buf[4096];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n <= 0)
		return 0; /* EAGAIN, EINTR: the loop comes again */
	for (char *at = buf; at < buf + n;) {
		const struct inotify_event *e = (const struct inotify_event *)at;

		at += sizeof(*e) + e->len;
		if (e->mask & (IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF))
			w->lost = true;
		w->fn(w->apply, e);
	}
	return 0;
}

int apply_watch_start(struct apply *a, struct apply_watch *w, const char *folder, uint32_t mask,
	apply_watch_fn fn, const char *name)
{
	int r;

	apply_watch_stop(w);
	w->apply = a;
	w->fn = fn;
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd < 0)
		return -errno;
	r = inotify_add_watch(w->fd, folder, mask | IN_ONLYDIR) < 0 ? -errno : 0;
	if (r == 0)
		r = sd_event_add_io(a->event, &w->source, w->fd, EPOLLIN, watch_on_events, w);
	if (r < 0) {
		apply_watch_stop(w);
		return r;
	}
	(void)sd_event_source_set_description(w->source, name);
	return 0;
}

void apply_watch_stop(struct apply_watch *w)
{
	w->source = sd_event_source_disable_unref(w->source);
	if (w->apply && w->fd >= 0)
		(void)close(w->fd);
	*w = (struct apply_watch){.fd = -1};
}
