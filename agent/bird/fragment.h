#ifndef REDSHANK_BIRD_FRAGMENT_H
#define REDSHANK_BIRD_FRAGMENT_H
/*
 * The text of a service's fragment, and its file.
 *
 * A fragment is BIRD configuration that holds the service's static protocols and nothing else:
 * every byte outside a protocol's braces is a comment or white space. It uses only what 2.0.12 to
 * 3.2 parse alike. The file is written as a dot-file and renamed, mode 0640; the fully withdrawn
 * text lies ready beside it as `.SERVICE.conf.withdrawn`.
 *
 * A file cut short. Cut inside the head comment or inside a protocol, BIRD refuses it. Cut exactly
 * between two protocols, it parses and holds the first of them, whole and unchanged: never other
 * routes or attributes, but fewer (seen at every byte, tests/unit/test-bird-fragment.c). No text
 * can prevent that: protocols stand at BIRD's top level only, so that no brace or comment spans two
 * of them, and everything must be defined before it is named, so that the first line cannot ask for
 * the last. What protects is the rename: BIRD never sees a file that is being written.
 *
 * What `disable` and `enable` of a whole service need: a protocol none of whose prefixes is wanted
 * lists them all, with `disabled;` before them. For a prefix with a protocol of its own, and for a
 * family whose prefixes live and die together, `body` is then the same up and down, so that BIRD
 * already holds what `enable` will announce, and nothing is parsed. Only a family of which a part
 * is wanted has a body of its own, and needs `configure`.
 */
#include <stdint.h>

#include "agent/base/buffer.h"
#include "agent/bird/names.h"
#include "agent/config/config.h"
#include "agent/core/prefix.h"

/* One protocol of a service's fragment. */
struct fragment_protocol {
	char name[NAMES_MAX];
	size_t first_prefix, n_prefixes; /* of config_service.prefixes; a family protocol skips the
					    other family's, and a twin those without last_resort */
	bool family_protocol;
	enum address_family family;
	bool last_resort; /* the twin: preference 249, the worst weight, GRACEFUL_SHUTDOWN */
	bool up;	  /* without `disabled;` */
	uint64_t body;	  /* id of the text without `disabled;`, never 0 */
};

/*
 * The protocols of a service when `wanted[i]` is wanted of its prefix i, in the order of the file.
 * An announced prefix with a last-resort twin has both up; a demoted one only the twin. A demoted
 * prefix that has no twin is withdrawn. Heap array, owned by the caller (NULL and 0 for a service
 * without prefixes). 0, -ENOMEM, -E2BIG, or -EEXIST when two prefixes would share a name (names.h).
 */
int fragment_protocols(const struct config_service *service, const enum prefix_wanted *wanted,
	struct fragment_protocol **ret, size_t *ret_n);

/* Appends the whole text. `protocols` is what fragment_protocols() gave for the same `wanted`. The
 * same arguments give the same bytes. 0, -ENOMEM, -E2BIG past the buffer's maximum. */
int fragment_render(const struct config_service *service, const enum prefix_wanted *wanted,
	const struct fragment_protocol *protocols, size_t n, struct buffer *ret);

#define FRAGMENT_TEXT_MAX (8U * 1024 * 1024)

#define FRAGMENT_PREFERENCE 250
#define FRAGMENT_LAST_PREFERENCE 249
#define FRAGMENT_LAST_WEIGHT 65535

/*
 * The files. Every function is 0 or negative errno. The files' group is the folder's where that is
 * setgid, else the process's own: BIRD must be able to read them.
 */
int fragment_open_folder(const char *path, int *ret_fd, struct error *ret_error);
/* Writes text as the file `from` (a dot-file, replaced), fsync, and renames it to `to`. On failure
 * `to` is untouched and `from` is gone. */
int fragment_place(int folder_fd, const char *from, const char *to, const char *text, size_t n);
/* Writes text as SERVICE.conf: dot-file, fsync, rename, fsync of the folder. On failure the old
 * file is untouched and no dot-file is left. */
int fragment_write(int folder_fd, const char *service, const char *text, size_t n);
/* Lays the withdrawn text ready; fragment_withdraw() is then one rename, which uses it up: prepare
 * again before the next. -ENOENT when nothing lies ready. No fsync there: the folder is on tmpfs,
 * and where it is not, a power cut can bring the announcing file back, as after any crash. */
int fragment_prepare(int folder_fd, const char *service, const char *text, size_t n);
int fragment_withdraw(int folder_fd, const char *service);
/* SERVICE.conf and what lies ready for it. -ENOENT is success. */
int fragment_remove(int folder_fd, const char *service);
/* Appends the file's content. -ENOENT; -EINVAL when it is no regular file; -E2BIG past the buffer's
 * maximum or FRAGMENT_TEXT_MAX. The buffer is as before on failure. */
int fragment_read(int folder_fd, const char *service, struct buffer *ret);
/* The same of a file by its name. */
int fragment_read_file(int folder_fd, const char *file, struct buffer *ret);
/* Removes dot-files of ours that a killed agent left. Nothing else is touched. */
int fragment_clean(int folder_fd);

#endif
