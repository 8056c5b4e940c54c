/*
 * A process of a given size: touches every page of MEGABYTES, then writes its pid into PIDFILE (by
 * a rename, when it is ready) and waits to be killed. The kernel frees that memory before it tells
 * anybody of the death.
 *
 *   bench-ballast MEGABYTES PIDFILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char path[4096];
	size_t size;
	char *memory;
	FILE *f;

	if (argc != 3) {
		(void)fprintf(stderr, "usage: bench-ballast MEGABYTES PIDFILE\n");
		return 2;
	}
	size = (size_t)atol(argv[1]) << 20;
	memory = malloc(size + 1);
	if (!memory) {
		perror("malloc");
		return 1;
	}
	for (size_t i = 0; i <= size; i += 4096)
		((volatile char *)memory)[i] = 1;
	(void)snprintf(path, sizeof(path), "%s.new", argv[2]);
	f = fopen(path, "we");
	if (!f || fprintf(f, "%d\n", (int)getpid()) < 0 || fclose(f) != 0 ||
		rename(path, argv[2]) < 0) {
		perror(argv[2]);
		return 1;
	}
	for (;;)
		(void)pause();
}
