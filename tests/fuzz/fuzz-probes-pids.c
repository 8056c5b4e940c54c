/*
 * libFuzzer target of what is read of /proc: a process chooses its own name, and may choose one
 * that looks like the rest of the line. The input is the name; the file is played here.
 *
 * Besides what the sanitizers see: whatever the name, the start and the state are the kernel's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

static int played;

static int fuzz_open(const char *path, int flags, ...)
{
	assert(lseek(played, 0, SEEK_SET) == 0);
	return dup(played);
}

#define open fuzz_open
#include "probes/pids.c"
#undef open

static void play(const char *text)
{
	assert(ftruncate(played, 0) == 0);
	assert(pwrite(played, text, strlen(text), 0) == (ssize_t)strlen(text));
}

/* As proc_task_name() of the kernel's fs/proc/array.c escapes it in `status`. */
static void escape(const char *name, char *to)
{
	for (; *name; name++) {
		if (*name == '\n' || *name == '\\')
			*to++ = '\\';
		*to++ = *name == '\n' ? 'n' : *name;
	}
	*to = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[PIDS_COMM_MAX] = "", escaped[2 * PIDS_COMM_MAX], text[8192];
	struct monotime started;
	enum pids_state state;
	static bool ready;

	if (!ready) {
		played = memfd_create("proc", MFD_CLOEXEC);
		assert(played >= 0);
		ready = true;
	}
	memcpy(name, data, size < sizeof(name) - 1 ? size : sizeof(name) - 1);
	(void)snprintf(text, sizeof(text),
		"7 (%s) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2\n", name);
	play(text);
	assert(pids_started(7, &started) == 0);
	assert(started.us == 4711 * (1000000 / (uint64_t)sysconf(_SC_CLK_TCK)));
	escape(name, escaped);
	(void)snprintf(text, sizeof(text), "Name:\t%s\nUmask:\t0022\nState:\t%s\nGroups:\t%*s\n%s",
		escaped, size % 2 ? "Z (zombie)" : "S (sleeping)", (int)(size % 7000), "0",
		size % 3 ? "CoreDumping:\t0\n" : "CoreDumping:\t1\n");
	play(text);
	assert(pids_state(7, &state) == 0);
	assert((state == PIDS_DUMPING) == (size % 3 == 0));
	assert(size % 3 == 0 || (state == PIDS_ZOMBIE) == (size % 2 == 1));
	/* And of no form at all. */
	if (size < sizeof(text)) {
		memcpy(text, data, size);
		text[size] = '\0';
		play(text);
		(void)pids_started(7, &started);
		(void)pids_state(7, &state);
	}
	return 0;
}
