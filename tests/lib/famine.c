/*
 * A famine: from SIGRTMIN+1 on no allocation of the program succeeds, until SIGRTMIN+2. The value
 * that comes with it (sigqueue(3)) is how many succeed before. For LD_PRELOAD in front of a program
 * without sanitizers (those bring an allocator of their own); tests/netns/hot-path.py sends the
 * signals. What lies outside malloc(3) is as ever: stacks grow, files are written.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>

/* What glibc's own names stand for. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void *aligned_alloc(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size);
int posix_memalign(void **ret, size_t alignment, size_t size);
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);
void *reallocarray(void *p, size_t n, size_t size);

static volatile sig_atomic_t famine, left;

static void on_signal(int number, siginfo_t *info, void *context)
{
	left = info->si_code == SI_QUEUE ? info->si_value.sival_int : 0;
	famine = number == SIGRTMIN + 1;
}

static int is_starving(void)
{
	if (!famine)
		return 0;
	if (left == 0)
		return 1;
	left--;
	return 0;
}

__attribute__((constructor)) static void begin(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};

	(void)sigaction(SIGRTMIN + 1, &action, NULL);
	(void)sigaction(SIGRTMIN + 2, &action, NULL);
}

static void *refuse(void)
{
	errno = ENOMEM;
	return NULL;
}

void *malloc(size_t size)
{
	return is_starving() ? refuse() : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return is_starving() ? refuse() : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return is_starving() ? refuse() : __libc_realloc(p, size);
}

void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		return refuse();
	return realloc(p, bytes);
}

void *memalign(size_t alignment, size_t size)
{
	return is_starving() ? refuse() : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	void *p = memalign(alignment, size);

	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}
