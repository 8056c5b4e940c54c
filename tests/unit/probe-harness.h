#ifndef REDSHANK_TESTS_PROBE_HARNESS_H
#define REDSHANK_TESTS_PROBE_HARNESS_H
/*
 * One check of a real kind on a real loop, with every report kept. Defaults are filled in by the
 * test itself: the configuration's loader is not linked here.
 */
#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "probes/run.h"
#include "tests/unit/loop.h"

#define HARNESS_REPORTS_MAX 128

struct harness {
	sd_event *event;
	struct probe_host host;
	struct run_check *run;
	uint64_t interval_ms;
	unsigned n;
	struct probe_report reports[HARNESS_REPORTS_MAX];
	struct monotime started[HARNESS_REPORTS_MAX], when[HARNESS_REPORTS_MAX];
	uint64_t duration_us[HARNESS_REPORTS_MAX];
	bool free_in_report;
	void (*reported)(void); /* called first thing */
};

static struct monotime harness_report(void *userdata, const struct probe_report *report,
	struct monotime started, uint64_t duration_us)
{
	struct harness *h = userdata;
	struct monotime next = monotime_add_ms(started, h->interval_ms);

	if (h->reported)
		h->reported();
	ck_assert_uint_lt(h->n, HARNESS_REPORTS_MAX);
	h->reports[h->n] = *report;
	h->started[h->n] = started;
	h->when[h->n] = clock_monotime();
	h->duration_us[h->n] = duration_us;
	h->n++;
	if (h->free_in_report) {
		run_check_free(h->run);
		h->run = NULL;
	}
	return monotime_max(next, clock_monotime());
}

static void harness_start(struct harness *h, const struct probe_type *type, const void *settings,
	uint64_t interval_ms, uint64_t timeout_ms)
{
	const struct run_ops ops = {.report = harness_report, .userdata = h};

	if (!h->event)
		ck_assert_int_ge(sd_event_new(&h->event), 0);
	h->host.event = h->event;
	h->interval_ms = interval_ms;
	h->n = 0;
	ck_assert_int_eq(run_check_new(&h->run, type, settings, &h->host, timeout_ms,
				 clock_monotime(), &ops),
		0);
	ck_assert_uint_eq(h->n, 0);
}

/* Waits for the n-th report (from 1) and returns it. */
static inline const struct probe_report *harness_wait(struct harness *h, unsigned n)
{
	ck_assert_msg(LOOP_UNTIL(h->event, h->n >= n, 5000), "%u reports instead of %u", h->n, n);
	return &h->reports[n - 1];
}

static inline void harness_expect(
	struct harness *h, unsigned n, enum check_outcome outcome, const char *text)
{
	const struct probe_report *r = harness_wait(h, n);

	ck_assert_msg(r->outcome == outcome && strstr(r->reason, text),
		"report %u is outcome %d \"%s\", expected %d with \"%s\"", n, (int)r->outcome,
		r->reason, (int)outcome, text);
}

/* A socket of `type` for what is checked, on the loopback address of `family` at `*port`, or at any
 * where that is 0, and `*port` says which. A stream listens. */
static inline int harness_serve(int family, int type, int64_t *port)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)*port),
		.sin6_addr = in6addr_loopback};
	struct sockaddr_in v4 = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)*port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_storage bound;
	socklen_t n = sizeof(bound);
	int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(family == AF_INET ? bind(fd, (struct sockaddr *)&v4, sizeof(v4))
					   : bind(fd, (struct sockaddr *)&v6, sizeof(v6)),
		0);
	if (type == SOCK_STREAM)
		ck_assert_int_eq(listen(fd, 64), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&bound, &n), 0);
	*port = ntohs(((struct sockaddr_in *)&bound)->sin_port); /* at the same place in both */
	return fd;
}

static inline void harness_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static inline void harness_stop(struct harness *h)
{
	run_check_free(h->run);
	h->run = NULL;
}

static inline void harness_done(struct harness *h)
{
	harness_stop(h);
	h->event = sd_event_unref(h->event);
}

#endif
