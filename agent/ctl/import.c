/*
 * `redshankctl import`: configurations of anycast-healthchecker, exabgp's healthcheck and
 * birdwatcher as one of Redshank's.
 *
 * The new configuration goes to standard output, whole or not at all; whatever it does otherwise
 * than the old one goes to standard error with the file and line. One file for each peer
 * (import_ahc.c, import_exabgp.c, import_birdwatcher.c), what they share is in import_parts.c.
 * The files are read as an untrusted stranger's: every size has a limit, and nothing in them is
 * executed, expanded by a shell, or looked up.
 */
#include "agent/ctl/import.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/ctl/import_parts.h"
#include "agent/ctl/text.h"

bool import_peer_parse(const char *word, enum import_peer *ret)
{
	static const struct {
		const char *word;
		enum import_peer peer;
	} words[] = {
		{"ahc", IMPORT_AHC},
		{"anycast-healthchecker", IMPORT_AHC},
		{"exabgp", IMPORT_EXABGP},
		{"birdwatcher", IMPORT_BIRDWATCHER},
	};

	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		if (strcmp(word, words[i].word) == 0) {
			*ret = words[i].peer;
			return true;
		}
	return false;
}

/* --- files --- */

/* Up to one byte more than a file may have. 0 or negative errno. */
static int read_up_to_limit(int fd, char *text, size_t *ret_length)
{
	size_t n = 0;

	while (n <= IMPORT_FILE_MAX) {
		ssize_t got = read(fd, text + n, IMPORT_FILE_MAX + 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*ret_length = n;
	return 0;
}

struct import_file *import_read(struct import *im, const char *path, struct import_where where)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t length = 0;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0) {
		import_error(im, where, "cannot read %.512s: %s", path, strerror(errno));
		return NULL;
	}
	/* A pipe is what `<(...)` of a shell gives. */
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode)) {
		import_error(im, where, "cannot read %.512s: not a file", path);
		return NULL;
	}
	r = fcntl(fd, F_SETFL, 0) < 0 ? -errno : 0;
	text = text_allocate(IMPORT_FILE_MAX + 1);
	if (r == 0)
		r = read_up_to_limit(fd, text, &length);
	if (r < 0) {
		import_error(im, where, "cannot read %.512s: %s", path, strerror(-r));
		return NULL;
	}
	return import_add_text(im, path, text, length);
}

static int is_conf(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".conf") == 0;
}

static void read_folder(struct import *im, const char *path)
{
	struct dirent **entries = NULL;
	int n = scandir(path, &entries, is_conf, alphasort);

	if (n < 0) {
		import_error(im, (struct import_where){0}, "cannot read %.512s: %s", path,
			strerror(errno));
		return;
	}
	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *name = NULL;

		if (asprintf(&name, "%s/%s", path, entries[i]->d_name) < 0)
			(void)import_json(NULL);
		(void)import_read(im, name, (struct import_where){0});
		free(entries[i]);
	}
	free(entries);
}

/* --- the conversion --- */

static void convert(struct import *im, enum import_peer peer)
{
	switch (peer) {
	case IMPORT_AHC:
		import_ahc(im);
		return;
	case IMPORT_EXABGP:
		import_exabgp(im);
		return;
	case IMPORT_BIRDWATCHER:
		import_birdwatcher(im);
		return;
	}
	abort();
}

/* The configuration; NULL where there were errors, or nothing was converted. */
static json_t *finish(struct import *im, enum import_peer peer)
{
	json_t *configuration;

	if (im->n_errors == 0)
		convert(im, peer);
	if (im->n_errors == 0 && json_object_size(im->services) == 0)
		import_error(im, (struct import_where){0}, "nothing to convert: no service found");
	if (im->n_errors > 0)
		return NULL;
	configuration = import_json(json_object());
	import_set(configuration, "services", json_incref(im->services));
	return configuration;
}

json_t *import_convert(enum import_peer peer, const struct import_text *texts, size_t n, FILE *err)
{
	struct import im;
	json_t *configuration;

	import_init(&im, err);
	im.sealed = true;
	for (size_t i = 0; i < n; i++)
		(void)import_add_text(&im, texts[i].name, texts[i].text, texts[i].length);
	configuration = finish(&im, peer);
	import_done(&im);
	return configuration;
}

int import_command(enum import_peer peer, size_t n, char **paths, FILE *out, FILE *err)
{
	struct import im;
	json_t *configuration;
	struct stat st;
	size_t services;

	import_init(&im, err);
	for (size_t i = 0; i < n; i++) {
		if (peer == IMPORT_AHC && stat(paths[i], &st) == 0 && S_ISDIR(st.st_mode))
			read_folder(&im, paths[i]);
		else
			(void)import_read(&im, paths[i], (struct import_where){0});
	}
	configuration = finish(&im, peer);
	services = json_object_size(im.services);
	if (configuration) {
		(void)json_dumpf(configuration, out, JSON_INDENT(2));
		(void)fputc('\n', out);
		(void)fprintf(err,
			"%zu service%s converted, %u remark%s; read them, then try the result with "
			"redshankd -c FILE --check\n",
			services, services == 1 ? "" : "s", im.n_remarks,
			im.n_remarks == 1 ? "" : "s");
	} else {
		(void)fprintf(err, "nothing was written\n");
	}
	json_decref(configuration);
	import_done(&im);
	return configuration ? 0 : 1;
}
