/*
 * The floor under the bench: what nobody can avoid between a process's death and the UPDATE.
 *
 * Waits for the kernel's word that a process is dead (its pidfd polls readable) and at once writes
 * one command to BIRD's control socket, which was connected and greeted before. Everything that a
 * real agent does besides is left out. wire.py reads the stamps and sees the UPDATE on the wire.
 *
 *   bench-floor PID [SOCKET COMMAND]
 *
 * Says "ready" when it waits, then "word", "written" and "replied" with CLOCK_REALTIME in
 * nanoseconds, and the code of BIRD's last line.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
	(void)fprintf(stderr, "bench-floor: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long long stamp(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* Reads a whole reply; its last line is "NNNN TEXT", a continued one "NNNN-TEXT" or " TEXT". */
static void read_reply(int fd, char code[5])
{
	char buf[65536], *line = buf;
	size_t n = 0;

	for (;;) {
		char *end;
		ssize_t r;

		while ((end = memchr(line, '\n', (size_t)(buf + n - line))) != NULL) {
			if (end - line >= 5 && line[0] != ' ' && line[0] != '+' && line[4] == ' ') {
				memcpy(code, line, 4);
				code[4] = '\0';
				return;
			}
			line = end + 1;
		}
		n = (size_t)(buf + n - line);
		memmove(buf, line, n);
		line = buf;
		r = read(fd, buf + n, sizeof(buf) - n);
		if (r == 0)
			errno = ECONNRESET;
		if (r <= 0)
			fail("read from BIRD");
		n += (size_t)r;
	}
}

static int connect_bird(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char code[5];

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		fail(path);
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		fail(path);
	read_reply(fd, code);
	return fd;
}

int main(int argc, char **argv)
{
	struct pollfd word = {.events = POLLIN};
	char command[256] = "", code[5] = "";
	long long dead, written;
	int bird = -1;

	if (argc != 2 && argc != 4) {
		(void)fprintf(stderr, "usage: bench-floor PID [SOCKET COMMAND]\n");
		return 2;
	}
	word.fd = (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0);
	if (word.fd < 0)
		fail("pidfd_open");
	if (argc == 4) {
		bird = connect_bird(argv[2]);
		(void)snprintf(command, sizeof(command), "%s\n", argv[3]);
	}
	(void)printf("ready\n");
	(void)fflush(stdout);
	while (poll(&word, 1, -1) < 1)
		;
	dead = stamp();
	if (bird < 0) {
		(void)printf("word %lld\n", dead);
		return 0;
	}
	if (write(bird, command, strlen(command)) != (ssize_t)strlen(command))
		fail("write to BIRD");
	written = stamp();
	read_reply(bird, code);
	(void)printf(
		"word %lld\nwritten %lld\nreplied %lld\ncode %s\n", dead, written, stamp(), code);
	return 0;
}
