/*
 * Sockets and the timer of libcurl's multi handles on the agent's loop.
 *
 * libcurl says which sockets to watch and when to be called again; what happens to a socket is told
 * to it, and what it has finished is read out after each call until nothing is left, since one call
 * may finish several. Almost every timeout that it asks for is "now", as each transfer begins: that
 * is a deferred source, which costs no system call, where a timer would cost two.
 *
 * The callbacks never tell libcurl of a failure. A multi handle whose socket callback has failed is
 * dead for good (multi->dead in lib/multi.c), and with it every check; instead the one transfer is
 * marked, and ends with the errno when libcurl has returned.
 */
#include "probes/curl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"

#define ACCURACY_US 1000

struct curl_loop {
	struct curl_loop *next;
	unsigned references;
	sd_event *event;
	char *ca; /* NULL: none */
	bool shared;
	const char *name; /* of its sources */
	CURLM *multi;
	sd_event_source *soon, *timer;
	struct curl_transfer *marked; /* whose errnum is set, and whose owners do not know */
};

/* All that there are; the loops of one process, in a test several. */
static struct curl_loop *curl_loops;

static void curl_loop_free(struct curl_loop *l)
{
	if (!l)
		return;
	if (l->multi)
		(void)curl_multi_cleanup(l->multi);
	sd_event_source_disable_unref(l->soon);
	sd_event_source_disable_unref(l->timer);
	sd_event_unref(l->event);
	free(l->ca);
	free(l);
}

DEFINE_CLEANUP_PTR(struct curl_loop *, curl_loop_free)

static void finish(struct curl_transfer *t, CURLcode result)
{
	int errnum = t->errnum;

	curl_transfer_stop(t);
	t->done(t, result, errnum);
}

/* Tells the owners what is finished. An owner may free any transfer in it, and its loop. */
static void drain(struct curl_loop *l)
{
	struct curl_transfer *t;
	CURLMsg *message;
	int left;

	l->references++;
	while ((t = l->marked) != NULL)
		finish(t, CURLE_OK);
	while ((message = curl_multi_info_read(l->multi, &left)) != NULL) {
		CURLcode result = message->data.result;

		if (message->msg != CURLMSG_DONE)
			continue;
		t = NULL;
		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
		assert(t && t->loop == l);
		finish(t, result);
	}
	curl_loop_unref(l);
}

static void act(struct curl_loop *l, curl_socket_t fd, int bits)
{
	int running;
	CURLMcode code = curl_multi_socket_action(l->multi, fd, bits, &running);

	/* A socket may be unknown by now: it was closed by an earlier call of this round. */
	assert(code == CURLM_OK || code == CURLM_BAD_SOCKET || code == CURLM_OUT_OF_MEMORY);
	drain(l);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	int bits = 0;

	if (revents & (EPOLLIN | EPOLLHUP))
		bits |= CURL_CSELECT_IN;
	if (revents & EPOLLOUT)
		bits |= CURL_CSELECT_OUT;
	if (revents & EPOLLERR)
		bits |= CURL_CSELECT_ERR;
	act(userdata, fd, bits);
	return 0;
}

static int on_soon(sd_event_source *source, void *userdata)
{
	act(userdata, CURL_SOCKET_TIMEOUT, 0);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	act(userdata, CURL_SOCKET_TIMEOUT, 0);
	return 0;
}

static uint32_t events_of(int what)
{
	switch (what) {
	case CURL_POLL_IN:
		return EPOLLIN;
	case CURL_POLL_OUT:
		return EPOLLOUT;
	case CURL_POLL_INOUT:
		return EPOLLIN | EPOLLOUT;
	default: /* libcurl's, not ours: nothing is wanted now */
		return 0;
	}
}

static int watch(struct curl_loop *l, curl_socket_t fd, int what, sd_event_source *source)
{
	int r;

	if (source)
		return sd_event_source_set_io_events(source, events_of(what));
	r = sd_event_add_io(l->event, &source, fd, events_of(what), on_io, l);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(source, l->name);
	if (curl_multi_assign(l->multi, fd, source) != CURLM_OK) {
		sd_event_source_disable_unref(source);
		return -ENOMEM;
	}
	return 0;
}

/* A source can always be armed, but on a loop that has ended: there transfers are only dropped. */
static void must(int r)
{
	assert(r >= 0 || r == -ESTALE);
}

/* Ends the transfer when libcurl has returned. */
static void mark(struct curl_loop *l, struct curl_transfer *t, int errnum)
{
	if (t->errnum != 0)
		return;
	t->errnum = errnum;
	t->next_marked = l->marked;
	l->marked = t;
	must(sd_event_source_set_enabled(l->soon, SD_EVENT_ONESHOT));
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *assigned)
{
	struct curl_loop *l = userdata;
	struct curl_transfer *t = NULL;
	int r;

	if (what == CURL_POLL_REMOVE) {
		sd_event_source_disable_unref(assigned);
		return 0;
	}
	r = watch(l, fd, what, assigned);
	if (r < 0) {
		(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
		if (t && t->loop)
			mark(l, t, -r);
	}
	return 0;
}

static int on_timeout(CURLM *multi, long timeout_ms, void *userdata)
{
	struct curl_loop *l = userdata;
	bool soon = timeout_ms == 0, later = timeout_ms > 0;

	if (later)
		must(sd_event_source_set_time(
			l->timer, monotime_add_ms(clock_monotime(), (uint64_t)timeout_ms).us));
	must(sd_event_source_set_enabled(l->timer, later ? SD_EVENT_ONESHOT : SD_EVENT_OFF));
	soon = soon || l->marked;
	must(sd_event_source_set_enabled(l->soon, soon ? SD_EVENT_ONESHOT : SD_EVENT_OFF));
	return 0;
}

static int set_up_multi(struct curl_loop *l)
{
	l->multi = curl_multi_init();
	if (!l->multi)
		return -ENOMEM;
	if (curl_multi_setopt(l->multi, CURLMOPT_SOCKETFUNCTION, on_socket) != CURLM_OK ||
		curl_multi_setopt(l->multi, CURLMOPT_SOCKETDATA, l) != CURLM_OK ||
		curl_multi_setopt(l->multi, CURLMOPT_TIMERFUNCTION, on_timeout) != CURLM_OK ||
		curl_multi_setopt(l->multi, CURLMOPT_TIMERDATA, l) != CURLM_OK ||
		curl_multi_setopt(l->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING) != CURLM_OK)
		return -EINVAL;
	return 0;
}

static int set_up_sources(struct curl_loop *l)
{
	int r = sd_event_add_defer(l->event, &l->soon, on_soon, l);

	if (r >= 0)
		r = sd_event_source_set_enabled(l->soon, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_description(l->soon, l->name);
	if (r >= 0)
		r = sd_event_add_time(
			l->event, &l->timer, CLOCK_BOOTTIME, UINT64_MAX, ACCURACY_US, on_timer, l);
	if (r >= 0)
		r = sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_description(l->timer, l->name);
	return r < 0 ? r : 0;
}

int curl_loop_prepare(void)
{
	static bool done;

	if (!done && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	done = true;
	return 0;
}

int curl_loop_new(sd_event *event, const char *name, unsigned kept, struct curl_loop **ret)
{
	_cleanup_(curl_loop_freep) struct curl_loop *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->references = 1;
	l->event = sd_event_ref(event);
	l->name = name;
	r = set_up_sources(l);
	if (r >= 0)
		r = set_up_multi(l);
	/* By default as many as four times the transfers under way, which may be one. */
	if (r >= 0 && kept > 0 &&
		curl_multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, (long)kept) != CURLM_OK)
		r = -EINVAL;
	if (r < 0)
		return r;
	*ret = TAKE_PTR(l);
	return 0;
}

static bool is_for(const struct curl_loop *l, const sd_event *event, const char *ca)
{
	return l->event == event && (l->ca && ca ? strcmp(l->ca, ca) == 0 : !l->ca && !ca);
}

int curl_loop_get(sd_event *event, const char *ca, struct curl_loop **ret)
{
	_cleanup_(curl_loop_freep) struct curl_loop *l = NULL;
	int r;

	for (struct curl_loop *old = curl_loops; old; old = old->next)
		if (is_for(old, event, ca)) {
			old->references++;
			*ret = old;
			return 0;
		}
	r = curl_loop_prepare();
	if (r < 0)
		return r;
	r = curl_loop_new(event, "check-http", 0, &l);
	if (r < 0)
		return r;
	if (ca) {
		l->ca = strdup(ca);
		if (!l->ca)
			return -ENOMEM;
	}
	l->shared = true;
	l->next = curl_loops;
	curl_loops = l;
	*ret = TAKE_PTR(l);
	return 0;
}

struct curl_loop *curl_loop_unref(struct curl_loop *l)
{
	struct curl_loop **at = &curl_loops;

	if (!l || --l->references > 0)
		return NULL;
	while (l->shared && *at != l)
		at = &(*at)->next;
	if (l->shared)
		*at = l->next;
	curl_loop_free(l);
	return NULL;
}

int curl_transfer_start(struct curl_transfer *t, struct curl_loop *l)
{
	assert(!t->loop);
	t->errnum = 0;
	if (curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t) != CURLE_OK)
		return -ENOMEM;
	t->loop = l;
	if (curl_multi_add_handle(l->multi, t->easy) != CURLM_OK) {
		t->loop = NULL;
		return -ENOMEM;
	}
	return 0;
}

void curl_transfer_stop(struct curl_transfer *t)
{
	struct curl_loop *l = t->loop;
	CURLMcode code;

	if (!l)
		return;
	code = curl_multi_remove_handle(l->multi, t->easy);
	assert(code == CURLM_OK);
	t->loop = NULL;
	for (struct curl_transfer **at = &l->marked; *at; at = &(*at)->next_marked)
		if (*at == t) {
			*at = t->next_marked;
			break;
		}
}
