/*
 * What a service is in BIRD's language, and the file it lies in.
 *
 * Data: a service of the configuration and what is wanted of each of its prefixes go in; a list of
 * protocols and the file's bytes come out. Nothing here remembers anything or talks to BIRD; apply
 * calls it, compares, and decides.
 *
 * The text depends on its arguments alone: apply compares files byte for byte, and a body's id is
 * what tells whether `enable` announces the right thing. So no time, no host name and no version of
 * ours stand in it.
 *
 * Every file appears by rename of a dot-file, which BIRD's `*.conf` does not match, and a failure
 * leaves nothing behind.
 */
#include "agent/bird/fragment.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define FRAGMENT_SUFFIX ".conf"
#define FRAGMENT_NEW ".conf.new"
#define FRAGMENT_READY ".conf.withdrawn"
#define FRAGMENT_MODE 0640
#define FRAGMENT_FILE_MAX (1 + NAMES_SERVICE_MAX + sizeof(FRAGMENT_READY))

/* Is the prefix one of this protocol's? */
static bool fragment_holds(const struct fragment_protocol *p, const struct config_prefix *prefix)
{
	if (p->family_protocol && prefix->prefix.address.family != p->family)
		return false;
	return !p->last_resort || prefix->last_resort;
}

static bool fragment_is_up(const struct fragment_protocol *p, enum prefix_wanted wanted)
{
	switch (wanted) {
	case PREFIX_WANTED_WITHDRAW:
		return false;
	case PREFIX_WANTED_DEMOTE:
		return p->last_resort;
	case PREFIX_WANTED_ANNOUNCE:
		return true;
	}
	return false;
}

static int fragment_route(
	const struct fragment_protocol *p, const struct config_prefix *c, struct buffer *ret)
{
	char text[PREFIX_TEXT_MAX];
	int r;

	r = buffer_printf(ret, "\troute %s unreachable { redshank_weight = %u;",
		prefix_format(&c->prefix, text),
		p->last_resort ? FRAGMENT_LAST_WEIGHT : c->announced_weight);
	if (r == 0 && c->prepend > 0)
		r = buffer_printf(ret, " redshank_prepend = %u;", c->prepend);
	for (size_t i = 0; r == 0 && i < c->n_communities; i++)
		r = buffer_printf(ret, " bgp_community.add((%u,%u));", c->communities[i].part[0],
			c->communities[i].part[1]);
	if (r == 0 && (p->last_resort || c->graceful)) /* GRACEFUL_SHUTDOWN, RFC 8326 section 5 */
		r = buffer_append_string(ret, " bgp_community.add((65535,0));");
	for (size_t i = 0; r == 0 && i < c->n_large_communities; i++)
		r = buffer_printf(ret, " bgp_large_community.add((%u,%u,%u));",
			c->large_communities[i].part[0], c->large_communities[i].part[1],
			c->large_communities[i].part[2]);
	return r < 0 ? r : buffer_append_string(ret, " };\n");
}

static int fragment_protocol_text(const struct config_service *service,
	const enum prefix_wanted *wanted, const struct fragment_protocol *p, bool disabled,
	struct buffer *ret)
{
	unsigned family = p->family == ADDRESS_FAMILY_IPV4 ? 4 : 6;
	int r;

	r = buffer_printf(ret,
		"protocol static '%s' {\n%s\tipv%u { table redshank%u; preference %d; };\n",
		p->name, disabled ? "\tdisabled;\n" : "", family, family,
		p->last_resort ? FRAGMENT_LAST_PREFERENCE : FRAGMENT_PREFERENCE);
	for (size_t i = p->first_prefix; r == 0 && i < p->first_prefix + p->n_prefixes; i++) {
		const struct config_prefix *c = &service->prefixes[i];

		/* All of them where none is wanted: the body stays that of the last `up`. */
		if (fragment_holds(p, c) && (!p->up || fragment_is_up(p, wanted[i])))
			r = fragment_route(p, c, ret);
	}
	return r < 0 ? r : buffer_append_string(ret, "}\n");
}

/* FNV-1a, 64 bits, over the text as it stands when up. */
static int fragment_body(const struct config_service *service, const enum prefix_wanted *wanted,
	struct fragment_protocol *p)
{
	_cleanup_buffer_ struct buffer text = {0};
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	int r;

	buffer_init(&text, FRAGMENT_TEXT_MAX);
	r = fragment_protocol_text(service, wanted, p, false, &text);
	if (r < 0)
		return r;
	for (size_t i = 0; i < text.length; i++) {
		h ^= (uint8_t)text.data[i];
		h *= UINT64_C(0x100000001b3);
	}
	p->body = h != 0 ? h : 1;
	return 0;
}

static int fragment_finish(const struct config_service *service, const enum prefix_wanted *wanted,
	struct fragment_protocol *p)
{
	for (size_t i = p->first_prefix; i < p->first_prefix + p->n_prefixes; i++)
		if (fragment_holds(p, &service->prefixes[i]) && fragment_is_up(p, wanted[i]))
			p->up = true;
	return fragment_body(service, wanted, p);
}

static int fragment_compare_names(const void *a, const void *b)
{
	const struct fragment_protocol *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int fragment_check_names(const struct fragment_protocol *protocols, size_t n)
{
	_cleanup_free_ const struct fragment_protocol **sorted = NULL;

	if (n < 2)
		return 0;
	sorted = calloc(n, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &protocols[i];
	qsort(sorted, n, sizeof(*sorted), fragment_compare_names);
	for (size_t i = 1; i < n; i++)
		if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
			return -EEXIST;
	return 0;
}

/* One protocol for each prefix, its twin behind it. Returns how many. */
static size_t fragment_list_singles(
	const struct config_service *service, struct fragment_protocol *protocols)
{
	size_t n = 0;

	for (size_t i = 0; i < service->n_prefixes; i++) {
		const struct config_prefix *c = &service->prefixes[i];

		for (int last = 0; last <= (c->last_resort ? 1 : 0); last++) {
			struct fragment_protocol *p = &protocols[n++];

			p->first_prefix = i;
			p->n_prefixes = 1;
			p->family = c->prefix.address.family;
			p->last_resort = last;
			names_protocol(p->name, service->name, &c->prefix, last);
		}
	}
	return n;
}

/* One protocol for each family that has a prefix, its twin behind it. Returns how many. */
static size_t fragment_list_families(
	const struct config_service *service, struct fragment_protocol *protocols)
{
	static const enum address_family families[] = {ADDRESS_FAMILY_IPV4, ADDRESS_FAMILY_IPV6};
	size_t n = 0;

	for (size_t f = 0; f < ELEMENTSOF(families); f++) {
		for (int last = 0; last <= 1; last++) {
			struct fragment_protocol p = {
				.n_prefixes = service->n_prefixes,
				.family_protocol = true,
				.family = families[f],
				.last_resort = last,
			};
			bool any = false;

			for (size_t i = 0; i < service->n_prefixes && !any; i++)
				any = fragment_holds(&p, &service->prefixes[i]);
			if (!any)
				continue;
			names_family_protocol(p.name, service->name, families[f], last);
			protocols[n++] = p;
		}
	}
	return n;
}

int fragment_protocols(const struct config_service *service, const enum prefix_wanted *wanted,
	struct fragment_protocol **ret, size_t *ret_n)
{
	bool families = service->n_prefixes > NAMES_SINGLE_MAX;
	_cleanup_free_ struct fragment_protocol *protocols = NULL;
	size_t n;
	int r;

	if (service->n_prefixes == 0) {
		*ret = NULL;
		*ret_n = 0;
		return 0;
	}
	protocols = calloc(families ? 4 : 2 * service->n_prefixes, sizeof(*protocols));
	if (!protocols)
		return -ENOMEM;
	n = families ? fragment_list_families(service, protocols)
		     : fragment_list_singles(service, protocols);
	r = fragment_check_names(protocols, n);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = fragment_finish(service, wanted, &protocols[i]);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(protocols);
	*ret_n = n;
	return 0;
}

int fragment_render(const struct config_service *service, const enum prefix_wanted *wanted,
	const struct fragment_protocol *protocols, size_t n, struct buffer *ret)
{
	int r;

	/* Not a `#` comment: a file cut inside this one is refused. */
	r = buffer_printf(ret,
		"/*\n"
		" * Service %s, written by redshankd: do not edit, changes made here are undone.\n"
		" * Prefixes, weights and communities come from the configuration of redshankd;\n"
		" * `redshankctl drain` takes a prefix out.\n"
		" */\n",
		service->name);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = fragment_protocol_text(service, wanted, &protocols[i], !protocols[i].up, ret);
	return r;
}

/* --- files --- */

static void fragment_file(char buf[FRAGMENT_FILE_MAX], const char *service, const char *suffix)
{
	bool dot = strcmp(suffix, FRAGMENT_SUFFIX) != 0;

	assert(names_service_is_valid(service, strlen(service)));
	(void)snprintf(buf, FRAGMENT_FILE_MAX, "%s%s%s", dot ? "." : "", service, suffix);
}

int fragment_open_folder(const char *path, int *ret_fd, struct error *ret_error)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	switch (errno) {
	case ENOENT:
		return error_set(ret_error, ENOENT,
			"bird: open %s: %s (systemd-tmpfiles --create makes this folder)", path,
			strerror(ENOENT));
	case EACCES:
		return error_set(ret_error, EACCES,
			"bird: open %s: %s (does the folder belong to the agent's user?)", path,
			strerror(EACCES));
	}
	return error_set_errno(ret_error, errno, "bird: open %s", path);
}

static int fragment_fill(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t w = write(fd, text, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		text += w;
		n -= (size_t)w;
	}
	/* The mode that was asked for, whatever the umask. */
	if (fchmod(fd, FRAGMENT_MODE) < 0 || fsync(fd) < 0)
		return -errno;
	return 0;
}

int fragment_place(int folder_fd, const char *from, const char *to, const char *text, size_t n)
{
	_cleanup_close_ int fd = -1;
	int r;

	if (unlinkat(folder_fd, from, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(folder_fd, from, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		FRAGMENT_MODE);
	if (fd < 0)
		return -errno;
	r = fragment_fill(fd, text, n);
	if (r == 0 && renameat(folder_fd, from, folder_fd, to) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(folder_fd, from, 0);
	return r;
}

int fragment_write(int folder_fd, const char *service, const char *text, size_t n)
{
	char from[FRAGMENT_FILE_MAX], to[FRAGMENT_FILE_MAX];
	int r;

	fragment_file(from, service, FRAGMENT_NEW);
	fragment_file(to, service, FRAGMENT_SUFFIX);
	r = fragment_place(folder_fd, from, to, text, n);
	if (r < 0)
		return r;
	/* The new file is in its place; that its name is on the disk as well is for power cuts. */
	(void)fsync(folder_fd);
	return 0;
}

int fragment_prepare(int folder_fd, const char *service, const char *text, size_t n)
{
	char from[FRAGMENT_FILE_MAX], to[FRAGMENT_FILE_MAX];

	fragment_file(from, service, FRAGMENT_NEW);
	fragment_file(to, service, FRAGMENT_READY);
	return fragment_place(folder_fd, from, to, text, n);
}

int fragment_withdraw(int folder_fd, const char *service)
{
	char from[FRAGMENT_FILE_MAX], to[FRAGMENT_FILE_MAX];

	fragment_file(from, service, FRAGMENT_READY);
	fragment_file(to, service, FRAGMENT_SUFFIX);
	return renameat(folder_fd, from, folder_fd, to) < 0 ? -errno : 0;
}

int fragment_remove(int folder_fd, const char *service)
{
	static const char *const suffixes[] = {FRAGMENT_NEW, FRAGMENT_READY, FRAGMENT_SUFFIX};
	char file[FRAGMENT_FILE_MAX];
	int r = 0;

	for (size_t i = 0; i < ELEMENTSOF(suffixes); i++) {
		fragment_file(file, service, suffixes[i]);
		if (unlinkat(folder_fd, file, 0) < 0 && errno != ENOENT)
			r = -errno;
	}
	return r;
}

int fragment_read_file(int folder_fd, const char *file, struct buffer *ret)
{
	_cleanup_close_ int fd = -1;
	char piece[16384];
	size_t before = ret->length;
	struct stat st;
	int r = 0;

	/* O_NONBLOCK: somebody's FIFO of that name must not hold us. */
	fd = openat(folder_fd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP ? -EINVAL : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	for (;;) {
		ssize_t got = read(fd, piece, sizeof(piece));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			r = -errno;
		else if (ret->length - before + (size_t)got > FRAGMENT_TEXT_MAX)
			r = -E2BIG;
		else
			r = buffer_append(ret, piece, (size_t)got);
		if (r < 0 || got == 0)
			break;
	}
	if (r < 0 && ret->data) {
		ret->length = before;
		ret->data[before] = '\0';
	}
	return r;
}

int fragment_read(int folder_fd, const char *service, struct buffer *ret)
{
	char file[FRAGMENT_FILE_MAX];

	fragment_file(file, service, FRAGMENT_SUFFIX);
	return fragment_read_file(folder_fd, file, ret);
}

static bool fragment_is_dot_file(const char *file)
{
	static const char *const suffixes[] = {FRAGMENT_NEW, FRAGMENT_READY};
	size_t n = strlen(file);

	if (file[0] != '.')
		return false;
	for (size_t i = 0; i < ELEMENTSOF(suffixes); i++) {
		size_t suffix = strlen(suffixes[i]);

		if (n > 1 + suffix && strcmp(file + n - suffix, suffixes[i]) == 0)
			return names_service_is_valid(file + 1, n - 1 - suffix);
	}
	return false;
}

int fragment_clean(int folder_fd)
{
	_cleanup_closedir_ DIR *folder = NULL;
	_cleanup_close_ int fd = -1;
	const struct dirent *entry;
	int r = 0;

	/* A descriptor of its own: a folder's position is shared by duplicates. */
	fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	folder = fdopendir(fd);
	if (!folder)
		return -errno;
	TAKE_FD(fd);
	for (;;) {
		errno = 0;
		entry = readdir(folder);
		if (!entry)
			return errno ? -errno : r;
		if (fragment_is_dot_file(entry->d_name) &&
			unlinkat(folder_fd, entry->d_name, 0) < 0 && errno != ENOENT)
			r = -errno;
	}
}
