/*
 * Scrapers that never rest: N connections to the status socket, each of which asks for PATH, reads
 * to the end as fast as it can, and asks again. One process and one epoll, so that what they cost
 * themselves is little beside what they make the agent do.
 *
 *   bench-scrapers SOCKET PATH N
 *
 * Prints "ready" when all have asked once; at SIGTERM or SIGINT "answers N bytes N wrong N", where
 * wrong are those that were refused, cut short or not 200.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SCRAPERS_MAX 1024
#define PIECE (256 * 1024)

struct scraper {
	int fd;
	size_t got;
	char head[16]; /* "HTTP/1.1 200 OK" */
};

static struct scraper scrapers[SCRAPERS_MAX];
static struct sockaddr_un peer = {.sun_family = AF_UNIX};
static char request[512];
static int epoll = -1;
static unsigned long answers, wrong;
static unsigned long long bytes;
static volatile sig_atomic_t stopped;

static void fail(const char *what)
{
	(void)fprintf(stderr, "bench-scrapers: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void on_signal(int number)
{
	stopped = 1;
}

/* A Unix socket answers connect(2) at once, or waits here for a place in the backlog. */
static void ask(struct scraper *s)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = s};
	size_t n = strlen(request);

	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	s->got = 0;
	if (s->fd < 0)
		fail("socket");
	while (connect(s->fd, (struct sockaddr *)&peer, sizeof(peer)) < 0)
		if (errno != EINTR)
			fail("connect");
	if (send(s->fd, request, n, MSG_NOSIGNAL) != (ssize_t)n)
		fail("send");
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, s->fd, &event) < 0)
		fail("epoll_ctl");
}

static void read_on(struct scraper *s)
{
	static char piece[PIECE];
	ssize_t n = recv(s->fd, piece, sizeof(piece), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		if (s->got < sizeof(s->head))
			memcpy(s->head + s->got, piece,
				(size_t)n < sizeof(s->head) - s->got ? (size_t)n
								     : sizeof(s->head) - s->got);
		s->got += (size_t)n;
		bytes += (size_t)n;
		return;
	}
	answers++;
	if (n < 0 || s->got < sizeof(s->head) || memcmp(s->head, "HTTP/1.1 200 ", 13) != 0)
		wrong++;
	(void)close(s->fd);
	ask(s);
}

int main(int argc, char *argv[])
{
	struct sigaction action = {.sa_handler = on_signal};
	struct epoll_event events[64];
	unsigned long n = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;

	if (n == 0 || n > SCRAPERS_MAX || strlen(argv[1]) >= sizeof(peer.sun_path)) {
		(void)fprintf(stderr, "usage: bench-scrapers SOCKET PATH N\n");
		return 2;
	}
	memcpy(peer.sun_path, argv[1], strlen(argv[1]) + 1);
	(void)snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: agent\r\n\r\n", argv[2]);
	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGINT, &action, NULL);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		fail("epoll_create1");
	for (unsigned long i = 0; i < n; i++)
		ask(&scrapers[i]);
	(void)printf("ready\n");
	(void)fflush(stdout);
	while (!stopped) {
		int k = epoll_wait(epoll, events, 64, -1);

		for (int i = 0; i < k; i++)
			read_on(events[i].data.ptr);
	}
	(void)printf("answers %lu bytes %llu wrong %lu\n", answers, bytes, wrong);
	return 0;
}
