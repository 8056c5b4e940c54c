/*
 * The neighbours' thread.
 *
 * Why a thread: a TLS handshake takes a millisecond or two of computing, libmicrohttpd does it
 * wherever it reads, and all that are ready in one pass. On the agent's loop 64 neighbours that
 * come back at once would hold a withdrawal up for a tenth of a second. To let few of them in at a
 * time is no way out: then a few strangers that stop in the middle shut the others out. Here the
 * same work is another thread's, of lower priority (nice), and what reaches the agent's loop is a
 * report that was read, checked and taken apart already, or a request from one who is known.
 *
 * The thread has no part in deciding anything, writes no log and knows no module but the endpoint
 * and the asker. All signals are blocked in it. Descriptors are opened with O_CLOEXEC, so what the
 * agent's loop starts meanwhile does not inherit them.
 */
#include "agent/neighbour/thread.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "agent/base/clock.h"
#include "probes/curl.h"

#define NICE 5
#define STARVED_MS 10

struct thread {
	pthread_t id;
	bool runs;
	sd_event *loop; /* the thread's */
	sd_event_source *orders_source, *news_source;
	struct server *server;
	struct asker *asker;
	void (*wake)(void *userdata);
	void *userdata;
	int orders_fd, news_fd;
	pthread_mutex_t lock;
	/* Under the lock: what is put in now. The others: what is read, each by its reader alone.
	 */
	struct thread_orders *orders_in, *orders_out;
	struct thread_news *news_in, *news_out;
};

static void lock(struct thread *t)
{
	int r = pthread_mutex_lock(&t->lock);

	assert(r == 0);
}

static void unlock(struct thread *t)
{
	int r = pthread_mutex_unlock(&t->lock);

	assert(r == 0);
}

static void ring(int fd)
{
	const uint64_t one = 1;

	/* It fails only where it has rung for ever and nobody came. */
	(void)!write(fd, &one, sizeof(one));
}

static void hear(int fd)
{
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
}

/* ---- the mailboxes ---- */

static void orders_clear(struct thread_orders *o)
{
	pins_unref(o->pins);
	free(o->report);
	o->pins = NULL;
	o->report = NULL;
	o->found_is_new = false;
	o->report_length = o->n_calls = o->n_answers = 0;
}

static void news_clear(struct thread_news *n)
{
	for (size_t i = 0; i < pins_count(n->pins); i++) {
		message_report_free(n->peers[i].report);
		n->peers[i] = (struct thread_peer){.report = NULL};
	}
	pins_unref(n->pins);
	n->pins = NULL;
	n->n_grants = n->n_answered = 0;
	memset(n->n_refused, 0, sizeof(n->n_refused));
	n->failed = 0;
}

struct thread_orders *thread_orders(struct thread *t)
{
	lock(t);
	return t->orders_in;
}

void thread_send(struct thread *t)
{
	unlock(t);
	ring(t->orders_fd);
}

struct thread_news *thread_news(struct thread *t)
{
	struct thread_news *n = t->news_out;

	news_clear(n);
	lock(t);
	t->news_out = t->news_in;
	t->news_in = n;
	/* It may be read again before there is news: what was counted is not less then. */
	n->counts = t->news_out->counts;
	unlock(t);
	return t->news_out;
}

/* ---- in the thread: news ---- */

static struct thread_news *news_open(struct thread *t)
{
	lock(t);
	return t->news_in;
}

static void news_close(struct thread *t)
{
	t->news_in->counts = *server_counts(t->server);
	unlock(t);
	ring(t->news_fd);
}

static struct thread_peer *news_peer(struct thread_news *n, const struct pins *pins, size_t member)
{
	if (n->pins != pins) {
		for (size_t i = 0; i < pins_count(n->pins); i++) {
			message_report_free(n->peers[i].report);
			n->peers[i] = (struct thread_peer){.report = NULL};
		}
		pins_unref(n->pins);
		n->pins = pins_ref((struct pins *)pins);
	}
	return &n->peers[member];
}

static void on_report(void *userdata, const struct pins *pins, size_t member,
	struct message_report *report, struct monotime asked, const char *where)
{
	struct thread *t = userdata;
	struct thread_peer *p = news_peer(news_open(t), pins, member);
	struct message_report *old = p->report;

	p->report = report;
	p->asked = asked;
	(void)snprintf(p->where, sizeof(p->where), "%s", where);
	p->n_reports++;
	p->error[0] = '\0';
	news_close(t);
	message_report_free(old);
}

static void on_failed(void *userdata, const struct pins *pins, size_t member, const char *text)
{
	struct thread *t = userdata;
	struct thread_peer *p = news_peer(news_open(t), pins, member);

	p->n_failures++;
	(void)snprintf(p->error, sizeof(p->error), "%s", text);
	news_close(t);
}

static void on_answered(void *userdata, uint64_t id, const struct shed_answer *answer)
{
	struct thread *t = userdata;
	struct thread_news *n = news_open(t);

	if (n->n_answered < THREAD_CALLS_MAX)
		n->answered[n->n_answered++] = (struct thread_answered){id, *answer};
	news_close(t);
}

static bool on_grant(void *userdata, uint64_t id, const struct message_grant *grant, bool give_back)
{
	struct thread *t = userdata;
	struct thread_news *n = news_open(t);
	bool room = n->n_grants < THREAD_GRANTS_MAX;

	if (room)
		n->grants[n->n_grants++] = (struct thread_grant){id, give_back, *grant};
	news_close(t);
	return room;
}

static void on_refused(void *userdata, enum pins_refusal refusal, const char *text)
{
	struct thread *t = userdata;
	struct thread_news *n = news_open(t);

	n->n_refused[refusal]++;
	(void)snprintf(n->refused[refusal], sizeof(n->refused[refusal]), "%s", text);
	news_close(t);
}

/* ---- in the thread: orders ---- */

static void use_pins(struct thread *t, const struct thread_orders *o)
{
	int r = server_use(t->server, o->pins), s = asker_use(t->asker, o->pins, o->site);

	if (r >= 0 && s >= 0)
		return;
	news_open(t)->failed = r < 0 ? r : s;
	news_close(t);
}

static int on_orders(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct thread *t = userdata;
	struct thread_orders *o = t->orders_out;

	hear(fd);
	orders_clear(o);
	lock(t);
	t->orders_out = t->orders_in;
	t->orders_in = o;
	unlock(t);
	o = t->orders_out;
	if (o->stop)
		return sd_event_exit(t->loop, 0);
	if (o->pins)
		use_pins(t, o);
	if (o->report) {
		server_publish(t->server, o->report, o->report_length);
		o->report = NULL;
	}
	if (o->found_is_new)
		asker_found(t->asker, o->found, o->n_found);
	for (size_t i = 0; i < o->n_answers; i++)
		server_answer(
			t->server, o->answers[i].id, &o->answers[i].answer, o->answers[i].share);
	for (size_t i = 0; i < o->n_calls; i++)
		asker_call(t->asker, &o->calls[i]);
	return 0;
}

static void *run(void *userdata)
{
	struct thread *t = userdata;

	(void)prctl(PR_SET_NAME, "neighbours", 0, 0, 0);
	errno = 0;
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, 0) + NICE);
	while (sd_event_loop(t->loop) == -ENOMEM)
		(void)poll(NULL, 0, STARVED_MS);
	return NULL;
}

/* ---- life ---- */

static int on_news(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct thread *t = userdata;

	hear(fd);
	t->wake(t->userdata);
	return 0;
}

static int start(struct thread *t)
{
	sigset_t all, before;
	int r;

	(void)sigfillset(&all);
	r = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (r != 0)
		return -r;
	r = pthread_create(&t->id, NULL, run, t);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	t->runs = r == 0;
	return -r;
}

static int set_up_loop(struct thread *t, sd_event *event, int fd)
{
	const struct server_ops server_ops = {
		.grant = on_grant, .refused = on_refused, .userdata = t};
	const struct asker_ops asker_ops = {
		.report = on_report, .failed = on_failed, .answered = on_answered, .userdata = t};
	int r = server_new(&t->server, t->loop, fd, &server_ops);

	if (r >= 0)
		r = asker_new(&t->asker, t->loop, &asker_ops);
	if (r >= 0)
		r = sd_event_add_io(
			t->loop, &t->orders_source, t->orders_fd, EPOLLIN, on_orders, t);
	if (r >= 0)
		r = sd_event_source_set_description(t->orders_source, "neighbours-orders");
	if (r >= 0)
		r = sd_event_add_io(event, &t->news_source, t->news_fd, EPOLLIN, on_news, t);
	if (r >= 0)
		r = sd_event_source_set_priority(t->news_source, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		r = sd_event_source_set_description(t->news_source, "neighbours-news");
	return r < 0 ? r : 0;
}

int thread_new(
	struct thread **ret, sd_event *event, int fd, void (*wake)(void *userdata), void *userdata)
{
	_cleanup_(thread_freep) struct thread *t = calloc(1, sizeof(*t));
	_cleanup_close_ int listening = fd;
	int r;

	if (!t)
		return -ENOMEM;
	t->wake = wake;
	t->userdata = userdata;
	(void)pthread_mutex_init(&t->lock, NULL);
	t->orders_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->orders_fd < 0 || t->news_fd < 0)
		return -errno;
	t->orders_in = calloc(1, sizeof(*t->orders_in));
	t->orders_out = calloc(1, sizeof(*t->orders_out));
	t->news_in = calloc(1, sizeof(*t->news_in));
	t->news_out = calloc(1, sizeof(*t->news_out));
	if (!t->orders_in || !t->orders_out || !t->news_in || !t->news_out)
		return -ENOMEM;
	/* What these libraries set up once for all is set up before there are two threads. */
	r = curl_loop_prepare();
	if (r < 0)
		return r;
	json_object_seed(0);
	r = sd_event_new(&t->loop);
	if (r >= 0)
		r = set_up_loop(t, event, TAKE_FD(listening));
	if (r >= 0)
		r = start(t);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(t);
	return 0;
}

void thread_free(struct thread *t)
{
	if (!t)
		return;
	if (t->runs) {
		thread_orders(t)->stop = true;
		thread_send(t);
		(void)pthread_join(t->id, NULL);
	}
	sd_event_source_disable_unref(t->orders_source);
	sd_event_source_disable_unref(t->news_source);
	server_free(t->server);
	asker_free(t->asker);
	sd_event_unref(t->loop);
	if (t->orders_in)
		orders_clear(t->orders_in);
	if (t->orders_out)
		orders_clear(t->orders_out);
	if (t->news_in)
		news_clear(t->news_in);
	if (t->news_out)
		news_clear(t->news_out);
	free(t->orders_in);
	free(t->orders_out);
	free(t->news_in);
	free(t->news_out);
	closep(&t->orders_fd);
	closep(&t->news_fd);
	(void)pthread_mutex_destroy(&t->lock);
	free(t);
}

uint64_t thread_cpu_us(const struct thread *t)
{
	struct timespec cpu = {0};
	clockid_t clock;

	if (pthread_getcpuclockid(t->id, &clock) != 0 || clock_gettime(clock, &cpu) < 0)
		return 0;
	return (uint64_t)cpu.tv_sec * 1000000 + (uint64_t)cpu.tv_nsec / 1000;
}
