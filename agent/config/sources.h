#ifndef REDSHANK_CONFIG_SOURCES_H
#define REDSHANK_CONFIG_SOURCES_H
/*
 * The files of a configuration, each with its own tree. The trees are kept until the load is over,
 * so that any value can be traced to the file that it stands in (sources_origin), and released with
 * it. For config/ and its tests.
 */
#include <jansson.h>

#include "agent/config/problems.h"
#include "agent/config/report.h"

#define SOURCES_FILE_MAX (4U << 20)   /* bytes of one file */
#define SOURCES_TOTAL_MAX (16U << 20) /* bytes of all */
#define SOURCES_FILES_MAX 1000	      /* in conf.d */
#define SOURCES_DEPTH_MAX 32	      /* objects and lists in each other */

struct source {
	char *name;
	json_t *tree; /* an object */
};

struct sources {
	struct source *items;
	size_t n;
	size_t bytes;
};

void sources_init(struct sources *s);
void sources_done(struct sources *s);
#define _cleanup_sources_ _cleanup_(sources_done)

/* Reads FILE and conf.d/ *.json beside it, in name order. All that is wrong with reading and syntax
 * is in `problems`. 0, -EINVAL when there is anything, -ENOMEM. */
int sources_read(struct sources *s, const char *path, struct problems *problems);

/* One file's text, which may hold any bytes. 0, -EINVAL with one problem added, -ENOMEM. */
int sources_add_text(struct sources *s, const char *name, const char *text, size_t length,
	struct problems *problems);

/* What stands at the path in this source, or NULL. */
json_t *source_find(const struct source *source, const struct path *path);

/* The name of the file that the value at the path came from; where nothing is there, of the nearest
 * object around it; where an object is spread over files, the first of them. */
const char *sources_origin(const struct sources *s, const struct path *path);

#endif
