/*
 * The thread that writes the operators' words.
 *
 * The loop and the thread share the text to be written next, the number of the newest that was
 * handed over and of the last that was tried, and how that went; all of it under one lock, which
 * neither holds while anything can wait. The thread has no other part of the agent to touch: it is
 * given text and calls words_store(). Signals are the loop's.
 *
 * What the loop hears (an eventfd) is for the log and the status; who asked for the change waits a
 * moment for the answer in keeper_put(), since most disks are quick and most failures quicker.
 */
#include "agent/words/keeper.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/words/words.h"

#define KEEPER_AGAIN_MS 1000
#define KEEPER_LEAVE_MS 2000
#define KEEPER_STACK (256 * 1024)

struct keeper {
	/* Set before the thread begins. */
	char *path;
	int event_fd;
	pthread_t thread;
	bool running;
	/* The loop's. */
	sd_event_source *source;
	void (*changed)(void *userdata, const char *error);
	void *userdata;
	struct error heard; /* what `changed` was told last */
	/* Both's, under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t wake, tried;
	char *text;	/* owned; to be written; NULL: nothing is */
	bool again;	/* it was tried and failed */
	uint64_t given; /* how many texts were handed over, */
	uint64_t done;	/* and the last of them that was tried */
	int result;
	struct error error; /* of a negative result */
	bool leave, ended;
	bool last; /* it was tried, and failed, since the agent leaves */
};

static struct timespec keeper_in(unsigned ms)
{
	struct timespec at;

	(void)clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += (long)(ms % 1000) * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_nsec -= 1000000000;
		at.tv_sec++;
	}
	return at;
}

/* ---- the thread ---- */

/* Until there is something to write. False: there is not, and the agent leaves. */
static bool keeper_sleep(struct keeper *k)
{
	struct timespec until = keeper_in(KEEPER_AGAIN_MS);

	while (!k->leave && (!k->text || k->again)) {
		if (!k->text)
			(void)pthread_cond_wait(&k->wake, &k->lock);
		else if (pthread_cond_timedwait(&k->wake, &k->lock, &until) == ETIMEDOUT)
			break;
	}
	return k->text && !k->last;
}

static void *keeper_run(void *userdata)
{
	struct keeper *k = userdata;

	(void)pthread_mutex_lock(&k->lock);
	while (keeper_sleep(k)) {
		_cleanup_free_ char *text = TAKE_PTR(k->text);
		uint64_t number = k->given, one = 1;
		struct error error = {{0}};
		int r;

		(void)pthread_mutex_unlock(&k->lock);
		r = words_store(k->path, text, &error);
		(void)pthread_mutex_lock(&k->lock);
		k->done = number;
		k->result = r;
		k->error = error;
		k->again = r < 0 && !k->text;
		if (k->again)
			k->text = TAKE_PTR(text);
		k->last = k->again && k->leave;
		(void)pthread_cond_broadcast(&k->tried);
		(void)!write(k->event_fd, &one, sizeof(one));
	}
	k->ended = true;
	(void)pthread_cond_broadcast(&k->tried);
	(void)pthread_mutex_unlock(&k->lock);
	return NULL;
}

static int keeper_begin(struct keeper *k)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int r = pthread_attr_init(&attr);

	if (r != 0)
		return -r;
	(void)pthread_attr_setstacksize(&attr, KEEPER_STACK);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&k->thread, &attr, keeper_run, k);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	k->running = r == 0;
	return -r;
}

/* ---- the loop ---- */

static int keeper_on_event(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct keeper *k = userdata;
	struct error error;
	uint64_t times;
	bool known;

	(void)!read(fd, &times, sizeof(times));
	(void)pthread_mutex_lock(&k->lock);
	error = k->error;
	known = k->done == k->given; /* else another one is being written: wait for that */
	if (k->result >= 0)
		error.text[0] = '\0';
	(void)pthread_mutex_unlock(&k->lock);
	if (!known || strcmp(error.text, k->heard.text) == 0)
		return 0;
	k->heard = error;
	k->changed(k->userdata, k->heard.text);
	return 0;
}

int keeper_put(struct keeper *k, char *text, unsigned wait_ms, struct error *ret_error)
{
	struct timespec until = keeper_in(wait_ms);
	uint64_t number;
	int r = 0;

	(void)pthread_mutex_lock(&k->lock);
	free(k->text);
	k->text = text;
	k->again = false;
	number = ++k->given;
	(void)pthread_cond_signal(&k->wake);
	while (k->done < number && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&k->tried, &k->lock, &until);
	r = k->done < number ? 0 : k->result < 0 ? k->result : 1;
	if (r < 0)
		*ret_error = k->error;
	(void)pthread_mutex_unlock(&k->lock);
	return r;
}

const char *keeper_error(const struct keeper *k)
{
	return k->heard.text;
}

/* ---- life ---- */

int keeper_new(struct keeper **ret, sd_event *event, const char *path,
	void (*changed)(void *userdata, const char *error), void *userdata)
{
	struct keeper *k = calloc(1, sizeof(*k));
	pthread_condattr_t attr;
	int r;

	if (!k)
		return -ENOMEM;
	k->changed = changed;
	k->userdata = userdata;
	(void)pthread_mutex_init(&k->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&k->wake, &attr);
	(void)pthread_cond_init(&k->tried, &attr);
	(void)pthread_condattr_destroy(&attr);
	k->path = strdup(path);
	k->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = !k->path ? -ENOMEM : k->event_fd < 0 ? -errno : 0;
	if (r >= 0)
		r = sd_event_add_io(event, &k->source, k->event_fd, EPOLLIN, keeper_on_event, k);
	if (r >= 0)
		r = keeper_begin(k);
	if (r < 0) {
		keeper_free(k);
		return r;
	}
	(void)sd_event_source_set_description(k->source, "words-kept");
	*ret = k;
	return 0;
}

/* True when the thread has ended. */
static bool keeper_end(struct keeper *k)
{
	struct timespec until = keeper_in(KEEPER_LEAVE_MS);
	bool ended;
	int r = 0;

	(void)pthread_mutex_lock(&k->lock);
	k->leave = true;
	(void)pthread_cond_signal(&k->wake);
	while (!k->ended && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&k->tried, &k->lock, &until);
	ended = k->ended;
	(void)pthread_mutex_unlock(&k->lock);
	return ended && pthread_join(k->thread, NULL) == 0;
}

void keeper_free(struct keeper *k)
{
	if (!k)
		return;
	sd_event_source_disable_unref(k->source);
	if (k->running && !keeper_end(k)) {
		(void)pthread_detach(k->thread); /* it still uses what is here */
		return;
	}
	if (k->event_fd >= 0)
		(void)close(k->event_fd);
	(void)pthread_mutex_destroy(&k->lock);
	(void)pthread_cond_destroy(&k->wake);
	(void)pthread_cond_destroy(&k->tried);
	free(k->text);
	free(k->path);
	free(k);
}
