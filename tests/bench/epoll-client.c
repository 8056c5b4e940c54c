/*
 * The bare client beside which the agent's http checks are measured: one process, one epoll, the
 * same requests at the same rate, and nothing else. It connects, sends, reads to the end, looks at
 * the status and closes; no deadline, no state, no library.
 *
 *   bench-epoll-client ADDRESS PORT HOST PATH RATE SECONDS
 *
 * Starts RATE requests a second, in batches each 25 ms as the agent spreads its checks. Prints
 * "good N bad N cpu SECONDS".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define STEP_MS 25
#define DESCRIPTORS 16384

static char request[1024];
static size_t request_length;
static struct sockaddr_in peer;
static int epoll = -1, timer = -1;
static long good, bad, under_way;
static char status_of[DESCRIPTORS]; /* 0: not asked yet, 1: asked, 2: a good status came */

static void fail(const char *what)
{
	(void)fprintf(stderr, "bench-epoll-client: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void finish(int fd, int ok)
{
	if (ok)
		good++;
	else
		bad++;
	under_way--;
	(void)close(fd);
}

static void start(void)
{
	struct epoll_event event = {.events = EPOLLOUT};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1;

	if (fd < 0 || fd >= DESCRIPTORS)
		fail("socket");
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (connect(fd, (struct sockaddr *)&peer, sizeof(peer)) < 0 && errno != EINPROGRESS)
		fail("connect");
	status_of[fd] = 0;
	event.data.fd = fd;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		fail("epoll");
	under_way++;
}

static void advance(int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	char answer[16384];
	ssize_t n;

	if (status_of[fd] == 0) {
		if (send(fd, request, request_length, MSG_NOSIGNAL) != (ssize_t)request_length) {
			finish(fd, 0);
			return;
		}
		status_of[fd] = 1;
		if (epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) < 0)
			fail("epoll");
		return;
	}
	n = recv(fd, answer, sizeof(answer), 0);
	if (n > 12 && status_of[fd] == 1 && memcmp(answer + 9, "200", 3) == 0)
		status_of[fd] = 2;
	if (n <= 0 && !(n < 0 && errno == EAGAIN))
		finish(fd, n == 0 && status_of[fd] == 2);
}

static void arm(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct itimerspec every = {
		.it_interval.tv_nsec = STEP_MS * 1000000L, .it_value.tv_nsec = STEP_MS * 1000000L};

	epoll = epoll_create1(EPOLL_CLOEXEC);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	event.data.fd = timer;
	if (epoll < 0 || timer < 0 || timerfd_settime(timer, 0, &every, NULL) < 0 ||
		epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) < 0)
		fail("timer");
}

int main(int argc, char **argv)
{
	struct epoll_event events[64];
	struct rusage used;
	uint64_t ticks = 0, passed;
	long rate, seconds, started = 0;

	if (argc != 7) {
		(void)fprintf(
			stderr, "usage: bench-epoll-client ADDRESS PORT HOST PATH RATE SECONDS\n");
		return 2;
	}
	peer.sin_family = AF_INET;
	peer.sin_port = htons((uint16_t)atoi(argv[2]));
	if (inet_pton(AF_INET, argv[1], &peer.sin_addr) != 1)
		return 2;
	request_length = (size_t)snprintf(request, sizeof(request),
		"GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: redshank\r\nAccept: */*\r\n"
		"Connection: close\r\n\r\n",
		argv[4], argv[3]);
	rate = atol(argv[5]);
	seconds = atol(argv[6]);
	arm();
	while (started < rate * seconds || under_way > 0) {
		int n = epoll_wait(epoll, events, 64, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.fd != timer) {
				advance(events[i].data.fd);
				continue;
			}
			if (read(timer, &passed, sizeof(passed)) == sizeof(passed))
				ticks += passed;
			while (started < rate * seconds &&
				started < (long)ticks * rate * STEP_MS / 1000) {
				start();
				started++;
			}
		}
	}
	(void)getrusage(RUSAGE_SELF, &used);
	(void)printf("good %ld bad %ld cpu %.3f\n", good, bad,
		(double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
			(double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
	return bad > 0;
}
