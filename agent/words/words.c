/*
 * The operators' words and their file.
 *
 * The file is JSON, {"format": 1, "drains": [{"name", "reason", "who", "since", "until"}],
 * "weights": [the same and "weight"], "announces": [...], "freezes": [...], "sheds": [...],
 * "unsheds": [...]}, name and until null for the whole server and for no end, times in microseconds
 * since the epoch. All lists but the first two are written only where they hold something: an agent
 * of before their time reads the rest, and its own file is read here. It is ours alone, yet
 * whatever lies there is read as a stranger's: bounded, a regular file, every value of the right
 * kind. One that is not as we write it is kept aside whole, for we cannot know which half of it
 * somebody meant.
 */
#include "agent/words/words.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

#define WORDS_FORMAT 1
#define WORDS_FILE_MAX (1024 * 1024)

/* --- what is said --- */

/* The first that is not before this one; w->n if there is none. */
static size_t words_place(const struct words *w, enum word_kind kind, const char *name)
{
	size_t low = 0, high = w->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct word *word = &w->items[middle];

		if (word->kind < kind || (word->kind == kind && strcmp(word->name, name) < 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct word *words_find(const struct words *w, enum word_kind kind, const char *name)
{
	size_t i = words_place(w, kind, name);

	if (i == w->n || w->items[i].kind != kind || strcmp(w->items[i].name, name) != 0)
		return NULL;
	return &w->items[i];
}

int words_put(struct words *w, const struct word *word)
{
	struct word *there = (struct word *)words_find(w, word->kind, word->name), *items;
	size_t i;

	if (there) {
		*there = *word;
		return 0;
	}
	if (w->n >= WORDS_MAX)
		return -ENOSPC;
	items = reallocarray(w->items, w->n + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	w->items = items;
	i = words_place(w, word->kind, word->name);
	memmove(items + i + 1, items + i, (w->n++ - i) * sizeof(*items));
	items[i] = *word;
	return 0;
}

static void words_remove(struct words *w, size_t index, struct word *ret)
{
	*ret = w->items[index];
	w->n--;
	memmove(w->items + index, w->items + index + 1, (w->n - index) * sizeof(*w->items));
}

bool words_take(struct words *w, enum word_kind kind, const char *name, struct word *ret)
{
	const struct word *word = words_find(w, kind, name);

	if (word)
		words_remove(w, (size_t)(word - w->items), ret);
	return word != NULL;
}

bool words_take_ended(struct words *w, struct walltime now, struct word *ret)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->items[i].until.us <= now.us) {
			words_remove(w, i, ret);
			return true;
		}
	return false;
}

struct walltime words_next_end(const struct words *w)
{
	struct walltime next = WORDS_FOREVER;

	for (size_t i = 0; i < w->n; i++)
		if (w->items[i].until.us < next.us)
			next = w->items[i].until;
	return next;
}

const struct word *words_cover(
	const struct words *w, enum word_kind kind, const char *service, const char *prefix)
{
	const struct word *longest = NULL;

	for (size_t i = 0; i < w->n; i++) {
		const struct word *word = &w->items[i];

		if (word->kind != kind)
			continue;
		if (word->name[0] && strcmp(word->name, service) != 0 &&
			strcmp(word->name, prefix) != 0)
			continue;
		if (!longest || word->until.us > longest->until.us)
			longest = word;
	}
	return longest;
}

void words_done(struct words *w)
{
	free(w->path);
	free(w->items);
	*w = (struct words){0};
}

/* --- the file, read --- */

static bool words_text(const json_t *object, const char *key, char *buf, size_t size, bool optional)
{
	const json_t *value = json_object_get(object, key);

	if (optional && json_is_null(value)) {
		buf[0] = '\0';
		return true;
	}
	if (!json_is_string(value) || json_string_length(value) >= size)
		return false;
	memcpy(buf, json_string_value(value), json_string_length(value) + 1);
	return true;
}

static bool words_time(const json_t *object, const char *key, bool optional, struct walltime *ret)
{
	const json_t *value = json_object_get(object, key);

	if (optional && json_is_null(value)) {
		*ret = WORDS_FOREVER;
		return true;
	}
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	ret->us = json_integer_value(value);
	return true;
}

static bool words_weight(const json_t *object, struct word *word)
{
	const json_t *value = json_object_get(object, "weight");

	word->weight = (uint32_t)json_integer_value(value);
	return word->name[0] && json_is_integer(value) && json_integer_value(value) >= 0 &&
	       json_integer_value(value) <= WORDS_WEIGHT_MAX;
}

/* What a kind asks of a word beyond what all have. */
static bool words_fits(const json_t *object, struct word *word)
{
	switch (word->kind) {
	case WORD_WEIGHT:
		return words_weight(object, word);
	case WORD_ANNOUNCE:
		return word->name[0] && !word_is_forever(word);
	case WORD_FREEZE:
		return !word->name[0];
	case WORD_SHED:
	case WORD_UNSHED:
		return word->name[0];
	case WORD_DRAIN:
		return true;
	}
	abort();
}

static int words_read_item(struct words *w, enum word_kind kind, const json_t *item)
{
	struct word word = {.kind = kind};

	if (!json_is_object(item) || json_object_size(item) != (kind == WORD_WEIGHT ? 6U : 5U) ||
		!words_text(item, "name", word.name, sizeof(word.name), true) ||
		!words_text(item, "reason", word.reason, sizeof(word.reason), false) ||
		!words_text(item, "who", word.who, sizeof(word.who), false) ||
		!words_time(item, "since", false, &word.since) ||
		!words_time(item, "until", true, &word.until) || !words_fits(item, &word) ||
		words_find(w, kind, word.name))
		return -EINVAL;
	return words_put(w, &word);
}

static const struct words_list {
	const char *name;
	bool optional;
} words_lists[WORD_N_KINDS] = {
	[WORD_DRAIN] = {"drains", false},
	[WORD_WEIGHT] = {"weights", false},
	[WORD_ANNOUNCE] = {"announces", true},
	[WORD_FREEZE] = {"freezes", true},
	[WORD_SHED] = {"sheds", true},
	[WORD_UNSHED] = {"unsheds", true},
};

static int words_read_list(
	struct words *w, enum word_kind kind, const json_t *root, struct error *ret_error)
{
	const char *name = words_lists[kind].name;
	const json_t *list = json_object_get(root, name), *item;
	size_t i;

	if (!list && words_lists[kind].optional)
		return 0;
	if (!json_is_array(list))
		return error_set(ret_error, EINVAL, "expected a list of `%s`", name);
	json_array_foreach (list, i, item) {
		int r = words_read_item(w, kind, item);

		if (r == -ENOMEM)
			return error_set_errno(ret_error, ENOMEM, "%s", name);
		if (r < 0)
			return error_set(ret_error, -r, "%s[%zu] is none", name, i);
	}
	return 0;
}

static int words_parse(struct words *w, const char *text, size_t n, struct error *ret_error)
{
	json_error_t json_error = {0};
	json_auto_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &json_error);
	size_t known = 1;
	int r = 0;

	/* Where jansson cannot allocate it often says nothing at all. */
	if (!root && (json_error_code(&json_error) == json_error_out_of_memory ||
			     json_error.text[0] == '\0'))
		return error_set_errno(ret_error, ENOMEM, "read");
	if (!root)
		return error_set(
			ret_error, EINVAL, "line %d: %s", json_error.line, json_error.text);
	if (json_integer_value(json_object_get(root, "format")) != WORDS_FORMAT)
		return error_set(ret_error, EINVAL, "not of format %d", WORDS_FORMAT);
	for (int i = 0; i < WORD_N_KINDS && r >= 0; i++) {
		known += json_object_get(root, words_lists[i].name) ? 1 : 0;
		r = words_read_list(w, (enum word_kind)i, root, ret_error);
	}
	if (r >= 0 && json_object_size(root) != known)
		return error_set(ret_error, EINVAL, "it holds a list of another name");
	return r;
}

/* The whole file. -ENOENT where there is none. */
static int words_read(const char *path, char **ret, size_t *ret_n, struct error *ret_error)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t n = 0;

	if (fd < 0)
		return error_set_errno(ret_error, errno, "open");
	if (fstat(fd, &st) < 0)
		return error_set_errno(ret_error, errno, "stat");
	if (!S_ISREG(st.st_mode))
		return error_set(ret_error, EINVAL, "not a regular file");
	if (st.st_size > WORDS_FILE_MAX)
		return error_set(ret_error, E2BIG, "larger than %d bytes", WORDS_FILE_MAX);
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return error_set_errno(ret_error, ENOMEM, "read");
	while (n < (size_t)st.st_size) {
		ssize_t got = read(fd, text + n, (size_t)st.st_size - n);

		if (got < 0)
			return error_set_errno(ret_error, errno, "read");
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*ret = TAKE_PTR(text);
	*ret_n = n;
	return 0;
}

bool words_is_own_trouble(int r)
{
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE;
}

int words_load(struct words *w, const char *path, struct error *ret_error)
{
	_cleanup_free_ char *text = NULL;
	struct error error = {0};
	char bad[4096];
	size_t n = 0;
	int r;

	*w = (struct words){.path = strdup(path)};
	if (!w->path)
		return error_set_errno(ret_error, ENOMEM, "%s", path);
	r = words_read(path, &text, &n, &error);
	if (r == -ENOENT)
		return 0;
	if (r >= 0)
		r = words_parse(w, text, n, &error);
	if (r >= 0)
		return 0;
	free(w->items);
	w->items = NULL;
	w->n = 0;
	if (words_is_own_trouble(r))
		return error_set(ret_error, -r, "%s: %s", path, error.text);
	if (snprintf(bad, sizeof(bad), "%s.bad", path) >= (int)sizeof(bad) || rename(path, bad) < 0)
		return error_set(ret_error, -r,
			"%s: %s; it could not be kept aside: the next word overwrites it", path,
			error.text);
	return error_set(ret_error, -r, "%s: %s; it is kept as %s", path, error.text, bad);
}

/* --- the file, written --- */

static bool words_have(const struct words *w, enum word_kind kind)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->items[i].kind == kind)
			return true;
	return false;
}

static json_t *words_print(const struct words *w)
{
	json_auto_t *root = json_pack("{s:i}", "format", WORDS_FORMAT);

	for (int kind = 0; kind < WORD_N_KINDS; kind++)
		if ((!words_lists[kind].optional || words_have(w, (enum word_kind)kind)) &&
			json_object_set_new(root, words_lists[kind].name, json_array()) < 0)
			return NULL;
	for (size_t i = 0; i < w->n; i++) {
		const struct word *word = &w->items[i];
		json_t *item = json_pack("{s:s?, s:s, s:s, s:I, s:o}", "name",
			word->name[0] ? word->name : NULL, "reason", word->reason, "who", word->who,
			"since", (json_int_t)word->since.us, "until",
			word_is_forever(word) ? json_null() : json_integer(word->until.us));

		if (json_array_append_new(
			    json_object_get(root, words_lists[word->kind].name), item) < 0)
			return NULL;
		if (word->kind == WORD_WEIGHT &&
			json_object_set_new(item, "weight", json_integer(word->weight)) < 0)
			return NULL;
	}
	return json_incref(root);
}

static int words_open_folder(const char *path)
{
	char copy[4096];
	const char *folder;
	int fd;

	(void)snprintf(copy, sizeof(copy), "%s", path);
	folder = dirname(copy);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && mkdir(folder, 0750) == 0)
		fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int words_write(int folder, const char *name, const char *text)
{
	_cleanup_close_ int fd = -1;
	size_t n = strlen(text);

	/* A new file each time: what lies there may be a link to another file, or a FIFO. */
	if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	while (n > 0) {
		ssize_t put = write(fd, text, n);

		if (put < 0)
			return -errno;
		text += put;
		n -= (size_t)put;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

char *words_render(const struct words *w)
{
	json_auto_t *root = words_print(w);

	return root ? json_dumps(root, JSON_INDENT(1)) : NULL;
}

int words_store(const char *path, const char *text, struct error *ret_error)
{
	_cleanup_close_ int folder = -1;
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	char dot[280];
	int r;

	if (snprintf(dot, sizeof(dot), ".%s.new", base) >= (int)sizeof(dot))
		return error_set_errno(ret_error, ENAMETOOLONG, "%s", path);
	folder = words_open_folder(path);
	if (folder < 0)
		return error_set_errno(ret_error, -folder, "%s", path);
	r = words_write(folder, dot, text);
	if (r >= 0 && renameat(folder, dot, folder, base) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(folder, dot, 0);
		return error_set_errno(ret_error, -r, "%s", path);
	}
	if (fsync(folder) < 0)
		return error_set_errno(ret_error, errno, "%s: the folder", path);
	return 0;
}

int words_save(const struct words *w, struct error *ret_error)
{
	_cleanup_free_ char *text = words_render(w);

	if (!text)
		return error_set_errno(ret_error, ENOMEM, "%s", w->path);
	return words_store(w->path, text, ret_error);
}
