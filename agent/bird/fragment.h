#ifndef REDSHANK_BIRD_FRAGMENT_H
#define REDSHANK_BIRD_FRAGMENT_H
/*
 * The text of a service's fragment, and its file.
 *
 * A fragment is BIRD configuration that holds the service's static protocols and nothing else:
 * every byte outside a protocol's braces is a comment or white space, so that a file cut short
 * anywhere is a syntax error or the same routes, never other ones. It uses only what 2.0.12 to 3.2
 * parse alike. The file is written as a dot-file and renamed, mode 0640; the fully withdrawn text
 * lies ready beside it as `.SERVICE.conf.withdrawn`.
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
					    other family's */
	bool family_protocol;
	bool last_resort;
	bool up;       /* without `disabled;` */
	uint64_t body; /* id of the text without `disabled;`, never 0 */
};

/*
 * The protocols of a service when `wanted[i]` is wanted of its prefix i. An announced prefix with a
 * last-resort twin has both up; a demoted one only the twin. Heap array, owned by the caller. 0 or
 * -ENOMEM.
 */
int fragment_protocols(const struct config_service *service, const enum prefix_wanted *wanted,
	struct fragment_protocol **ret, size_t *ret_n);

/* The whole text. `protocols` is what fragment_protocols() gave. 0, -ENOMEM, -E2BIG. */
int fragment_render(const struct config_service *service, const enum prefix_wanted *wanted,
	const struct fragment_protocol *protocols, size_t n, struct buffer *ret);

#define FRAGMENT_TEXT_MAX (8U * 1024 * 1024)

/* The folder of fragments, open. Every function is 0 or negative errno. */
int fragment_open_folder(const char *path, int *ret_fd, struct error *ret_error);
/* Writes text as SERVICE.conf: dot-file, fsync, rename. On failure the old file is untouched and no
 * dot-file is left. */
int fragment_write(int folder_fd, const char *service, const char *text, size_t n);
/* Lays the withdrawn text ready; fragment_withdraw() is then one rename. */
int fragment_prepare(int folder_fd, const char *service, const char *text, size_t n);
int fragment_withdraw(int folder_fd, const char *service);
int fragment_remove(int folder_fd, const char *service); /* -ENOENT is success */
/* The file's content. -ENOENT; -E2BIG. */
int fragment_read(int folder_fd, const char *service, struct buffer *ret);
/* Removes dot-files of ours that a killed agent left. */
int fragment_clean(int folder_fd);

#endif
