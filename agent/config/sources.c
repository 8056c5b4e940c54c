/*
 * Reads the files. Nothing here trusts them: a directory, a pipe that nobody writes, a file that
 * grows while it is read and one of 10 GB each end in a line that says so.
 *
 * In conf.d count the files whose names end in .json and do not start with a dot; what editors and
 * package managers leave there (x.json~, x.json.bak, .x.json.swp, x.json.dpkg-old) does not. The
 * order is that of the bytes of the names, the same in every locale.
 */
#include "agent/config/sources.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/base/buffer.h"
#include "agent/config/syntax.h"

void sources_init(struct sources *s)
{
	*s = (struct sources){0};
}

void sources_done(struct sources *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->items[i].name);
		json_decref(s->items[i].tree);
	}
	free(s->items);
	sources_init(s);
}

/* Takes the tree over. */
static int sources_append(struct sources *s, const char *name, json_t *tree)
{
	struct source *grown = reallocarray(s->items, s->n + 1, sizeof(*grown));
	char *copy = strdup(name);

	if (grown)
		s->items = grown;
	if (!grown || !copy) {
		free(copy);
		json_decref(tree);
		return -ENOMEM;
	}
	s->items[s->n++] = (struct source){.name = copy, .tree = tree};
	return 0;
}

int sources_add_text(struct sources *s, const char *name, const char *text, size_t length,
	struct problems *problems)
{
	json_t *tree;
	int r;

	s->bytes += length;
	if (s->bytes > SOURCES_TOTAL_MAX) {
		problems_add(problems, PROBLEM_ERROR,
			"%s: got more than %u MiB in all files together; expected less", name,
			SOURCES_TOTAL_MAX >> 20);
		return -EINVAL;
	}
	r = syntax_parse(name, text, length, SOURCES_DEPTH_MAX, &tree, problems);
	if (r < 0)
		return r;
	return sources_append(s, name, tree);
}

static const char *file_kind(mode_t mode)
{
	if (S_ISDIR(mode))
		return "a directory";
	if (S_ISFIFO(mode))
		return "a pipe";
	if (S_ISSOCK(mode))
		return "a socket";
	return "a device";
}

/* The agent obeys the file: commands of checks and hooks, and what is announced. */
static void warn_writable(const char *path, const struct stat *st, struct problems *problems)
{
	if (st->st_mode & S_IWOTH)
		problems_add(problems, PROBLEM_WARNING,
			"%s: every user of this host may %s (mode %04o); expected a mode such as "
			"%s",
			path, S_ISDIR(st->st_mode) ? "put files into it" : "change it",
			(unsigned)st->st_mode & 07777, S_ISDIR(st->st_mode) ? "0755" : "0640");
}

/* Opens without waiting for whoever might write into a pipe. The descriptor, or -EINVAL with the
 * problem added. */
static int open_regular(const char *path, struct problems *problems)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		problems_add(problems, PROBLEM_ERROR, "%s: cannot be read: %s%s", path,
			strerror(errno),
			errno == EACCES ? "; expected to be readable by the user that runs this"
					: "");
		return -EINVAL;
	}
	if (!S_ISREG(st.st_mode)) {
		problems_add(problems, PROBLEM_ERROR, "%s: got %s; expected a regular file", path,
			file_kind(st.st_mode));
		return -EINVAL;
	}
	warn_writable(path, &st, problems);
	return TAKE_FD(fd);
}

static int read_all(int fd, const char *path, struct buffer *b, struct problems *problems)
{
	char chunk[16384];
	ssize_t n;
	int r;

	for (;;) {
		n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			problems_add(problems, PROBLEM_ERROR, "%s: cannot be read: %s", path,
				strerror(errno));
			return -EINVAL;
		}
		if (n == 0)
			return 0;
		r = buffer_append(b, chunk, (size_t)n);
		if (r == -E2BIG) {
			problems_add(problems, PROBLEM_ERROR,
				"%s: got more than %u MiB; expected a smaller file", path,
				SOURCES_FILE_MAX >> 20);
			return -EINVAL;
		}
		if (r < 0)
			return r;
	}
}

static int read_file(struct sources *s, const char *path, struct problems *problems)
{
	_cleanup_close_ int fd = -1;
	_cleanup_buffer_ struct buffer b = {0};
	int r;

	buffer_init(&b, SOURCES_FILE_MAX);
	fd = open_regular(path, problems);
	if (fd < 0)
		return fd;
	r = read_all(fd, path, &b, problems);
	if (r < 0)
		return r;
	return sources_add_text(s, path, buffer_string(&b), b.length, problems);
}

static int is_fragment(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* "/etc/redshank/redshank.json" -> "/etc/redshank/conf.d" */
static char *folder_beside(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder;

	if (asprintf(&folder, "%.*sconf.d", slash ? (int)(slash - path) + 1 : 0, path) < 0)
		return NULL;
	return folder;
}

static int read_named(
	struct sources *s, const char *folder, const char *name, struct problems *problems)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/%s", folder, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return read_file(s, path, problems);
}

static int read_folder(struct sources *s, const char *folder, struct problems *problems)
{
	struct dirent **entries;
	int n, r, ret = 0;
	struct stat st;

	n = scandir(folder, &entries, is_fragment, by_bytes);
	if (n < 0 && errno == ENOENT)
		return 0;
	if (n < 0) {
		problems_add(problems, PROBLEM_ERROR,
			"%s: cannot be read: %s; expected a folder of *.json files, or nothing",
			folder, strerror(errno));
		return -EINVAL;
	}
	if (n > SOURCES_FILES_MAX) {
		problems_add(problems, PROBLEM_ERROR, "%s: got %d files; expected at most %d",
			folder, n, SOURCES_FILES_MAX);
		ret = -EINVAL;
	}
	if (n >= 0 && stat(folder, &st) == 0)
		warn_writable(folder, &st, problems);
	for (int i = 0; i < n; i++) {
		r = n > SOURCES_FILES_MAX || ret == -ENOMEM
			    ? 0
			    : read_named(s, folder, entries[i]->d_name, problems);
		if (r < 0)
			ret = r;
		free(entries[i]);
	}
	free(entries);
	return ret;
}

int sources_read(struct sources *s, const char *path, struct problems *problems)
{
	_cleanup_free_ char *folder = folder_beside(path);
	int r, r_folder;

	if (!folder)
		return -ENOMEM;
	r = read_file(s, path, problems);
	if (r == -ENOMEM)
		return r;
	r_folder = read_folder(s, folder, problems);
	return r < 0 && r_folder != -ENOMEM ? r : r_folder;
}

static json_t *step_into(json_t *value, const struct path *step)
{
	return step->key ? json_object_get(value, step->key) : json_array_get(value, step->index);
}

/* How many steps of the path this source has, and what stands there. */
static size_t follow(const struct source *source, const struct path *path, json_t **ret)
{
	const struct path *steps[PATH_DEPTH_MAX];
	json_t *value = source->tree;
	size_t n = 0, followed = 0;

	for (; path && n < PATH_DEPTH_MAX; path = path->parent)
		steps[n++] = path;
	while (n > 0) {
		value = step_into(value, steps[--n]);
		if (!value)
			break;
		followed++;
	}
	*ret = value;
	return followed;
}

json_t *source_find(const struct source *source, const struct path *path)
{
	json_t *value;

	(void)follow(source, path, &value);
	return value;
}

const char *sources_origin(const struct sources *s, const struct path *path)
{
	size_t best = 0, followed, winner = 0;
	json_t *value;

	for (size_t i = 0; i < s->n; i++) {
		followed = follow(&s->items[i], path, &value);
		if (followed > best) {
			best = followed;
			winner = i;
		}
	}
	return s->n ? s->items[winner].name : "configuration";
}
