#ifndef REDSHANK_BASE_CLEANUP_H
#define REDSHANK_BASE_CLEANUP_H
/*
 * Ownership of locals.
 *
 * A local that owns something says so with a cleanup attribute and is handed to its parent with
 * TAKE_PTR or TAKE_FD on the line that publishes it. What is not handed on is released on every
 * way out of the function.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(fmt, args) __attribute__((format(printf, fmt, args)))
#define ELEMENTSOF(a) (sizeof(a) / sizeof((a)[0]))

/* Defines NAMEp(), the cleanup function of a pointer whose owner calls FREE(pointer). */
#define DEFINE_CLEANUP_PTR(type, free_function)      \
	static inline void free_function##p(type *p) \
	{                                            \
		if (*p)                              \
			free_function(*p);           \
	}

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void fclosep(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

DEFINE_CLEANUP_PTR(DIR *, closedir)

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)
#define _cleanup_fclose_ _cleanup_(fclosep)
#define _cleanup_closedir_ _cleanup_(closedirp)

/* The pointer or descriptor, which the local no longer owns. */
#define TAKE_PTR(p)                          \
	({                                   \
		__typeof__(p) *pp_ = &(p);   \
		__typeof__(p) taken_ = *pp_; \
		*pp_ = NULL;                 \
		taken_;                      \
	})
#define TAKE_FD(fd)                 \
	({                          \
		int *fdp_ = &(fd);  \
		int taken_ = *fdp_; \
		*fdp_ = -1;         \
		taken_;             \
	})

#endif
