/*
 * The fragments: what each service's file must hold, and that it does.
 *
 * A file is made true before the command that it belongs to is sent, except where it can not be
 * (disk full, folder gone): then a withdrawal is sent all the same, and the file is tried again
 * until it is true. A file that should say `disabled;` and can not be written is removed instead,
 * for BIRD would announce a dead service from it after a restart; nothing is enabled meanwhile.
 *
 * Whoever changes or deletes one of our files is noticed by inotify (and by the slow timer), and
 * undone by the next round. Files of others in the folder are told once and left alone.
 */
#include "agent/bird/apply_state.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>

#include "agent/base/clock.h"
#include "agent/events/events.h"
#include "agent/system/log.h"

#define FILES_STRANGERS_MAX 64
#define FILES_REPAIRS_FREE 3 /* in a row, before the next one waits */

/* ---- names ---- */

/* SERVICE of "SERVICE.conf". */
static bool files_service_of(const char *file, char ret[NAMES_SERVICE_MAX + 1])
{
	size_t n = strlen(file);

	if (n <= 5 || strcmp(file + n - 5, ".conf") != 0 || !names_service_is_valid(file, n - 5))
		return false;
	memcpy(ret, file, n - 5);
	ret[n - 5] = '\0';
	return true;
}

/* By what bird.conf is told to include: "*.conf" means no hidden file. */
static bool files_is_included(const char *file)
{
	size_t n = strlen(file);

	return file[0] != '.' && n >= 5 && strcmp(file + n - 5, ".conf") == 0;
}

static struct apply_service *files_find(const struct apply *a, const char *name)
{
	for (size_t i = 0; i < a->n_services; i++)
		if (strcmp(a->services[i].name, name) == 0)
			return &a->services[i];
	return NULL;
}

static int files_remember(char ***list, size_t *n, const char *text)
{
	char **larger = reallocarray(*list, *n + 1, sizeof(*larger));

	if (!larger)
		return -ENOMEM;
	*list = larger;
	larger[*n] = strdup(text);
	if (!larger[*n])
		return -ENOMEM;
	(*n)++;
	return 0;
}

/* ---- what is in a file ---- */

/* The hash of the file: 0 when there is none or it can not be read. False when that is no fault of
 * the file's but of this host's, which has no descriptor or memory for it. */
static bool files_hash_on_disk(
	const struct apply *a, const char *service, struct buffer *text, uint64_t *ret)
{
	int r;

	buffer_clear(text);
	r = fragment_read(a->folder_fd, service, text);
	if (r == -EMFILE || r == -ENFILE || r == -ENOMEM)
		return false;
	if (r < 0)
		*ret = 0;
	else if (strlen(buffer_string(text)) != text->length)
		*ret = 1; /* Bytes behind a NUL are not ours. */
	else
		*ret = apply_text_hash(buffer_string(text));
	return true;
}

/* The text that the file holds from now on. Takes `text` over. */
static void files_holds(struct apply_service *s, char *text)
{
	if (s->text && s->text_is_good && text && strcmp(text, s->text) != 0) {
		free(s->good);
		s->good = TAKE_PTR(s->text);
		s->text_is_good = false;
	}
	free(s->text);
	s->text = text;
	s->text_hash = text ? apply_text_hash(text) : 0;
}

/* ---- writing ---- */

static bool files_is_wanted_up(void *userdata, const char *name)
{
	const struct apply_protocol *p = apply_find(userdata, name);

	return p && p->want == PLAN_WANT_UP;
}

static bool files_none_is_up(void *userdata, const char *name)
{
	return false;
}

/* Every way to announce what is not wanted by the file as it lies there. */
static bool files_is_wrongly_up(const struct apply_service *s)
{
	if (!s->text)
		return !s->withdrawn;
	for (size_t i = 0; i < s->n_protocols; i++) {
		const char *block = apply_text_block(s->text, s->protocols[i]->name);

		if (block && s->protocols[i]->want != PLAN_WANT_UP && apply_text_is_up(block))
			return true;
	}
	return false;
}

static void files_set_error(struct apply *a, const char *text)
{
	(void)snprintf(a->status.files_error, sizeof(a->status.files_error), "%s", text);
	apply_say_changed(a);
}

/* The usual cause of each. */
static const char *files_hint(int error)
{
	switch (-error) {
	case ENOENT:
		return "; systemd-tmpfiles --create makes the folder";
	case EACCES:
	case EPERM:
		return "; does the folder belong to the agent's user? systemd-tmpfiles --create "
		       "sets it right";
	case EROFS:
		return "; is the file system mounted read-only?";
	case ENOSPC:
	case EDQUOT:
		return "; is the file system full? see df and df -i";
	}
	return "";
}

static void files_write_failed(struct apply *a, struct apply_service *s, int error)
{
	const struct event_fields fields = {.service = s->name};
	char text[sizeof(a->status.files_error)];

	(void)snprintf(text, sizeof(text), "bird: fragment %s/%s.conf can not be written: %s%s",
		a->folder, s->name, strerror(-error), files_hint(error));
	if (!a->write_said) {
		event_say(LOG_ERR, EVENT_FRAGMENT_UNWRITABLE, &fields, "%s (tried again)", text);
		files_set_error(a, text);
	}
	a->write_said = true;
	s->dirty = true;
	if (files_is_wrongly_up(s) && fragment_remove(a->folder_fd, s->name) == 0) {
		event_say(LOG_WARNING, EVENT_FRAGMENT_REMOVED, &fields,
			"bird: fragment %s.conf removed: it announces what is withdrawn and "
			"can not be rewritten",
			s->name);
		s->ready = false;
		s->ready_hash = 0;
		s->withdrawn = true; /* no file announces nothing */
		files_holds(s, NULL);
	}
}

static void files_set_bodies(struct apply *a, struct apply_service *s)
{
	for (size_t i = 0; i < s->n_protocols; i++) {
		struct apply_protocol *p = s->protocols[i];
		uint64_t body = s->put_back ? PLAN_BODY_UNKNOWN : p->body;

		if (p->file_body != body)
			p->configure_body = PLAN_BODY_UNKNOWN;
		p->file_body = body;
	}
}

static void files_write(struct apply *a, struct apply_service *s, struct buffer *text)
{
	bool withdrawn = true;
	int r;

	for (size_t i = 0; i < s->n_protocols; i++)
		if (s->protocols[i]->want == PLAN_WANT_UP)
			withdrawn = false;
	if (apply_text_hash(buffer_string(text)) == s->text_hash) {
		if (!s->text) /* it came by renaming what lay ready */
			s->text = TAKE_PTR(text->data);
		s->dirty = false;
		s->withdrawn = withdrawn;
		files_set_bodies(a, s);
		return;
	}
	r = fragment_write(a->folder_fd, s->name, buffer_string(text), text->length);
	if (r < 0) {
		files_write_failed(a, s, r);
		return;
	}
	files_holds(s, TAKE_PTR(text->data));
	s->sent = false;
	s->dirty = false;
	s->withdrawn = withdrawn;
	files_set_bodies(a, s);
}

/* ---- the withdrawn text, laid ready ---- */

static int files_render_withdrawn(struct apply_service *s, struct buffer *ret)
{
	_cleanup_free_ struct fragment_protocol *protocols = NULL;
	_cleanup_free_ enum prefix_wanted *wanted = NULL;
	size_t n = 0;
	int r;

	if (s->put_back)
		return s->good ? apply_text_edit(s->good, files_none_is_up, NULL, ret) : -ENOENT;
	/* PREFIX_WANTED_WITHDRAW is 0. */
	wanted = calloc(s->config->n_prefixes + 1, sizeof(*wanted));
	if (!wanted)
		return -ENOMEM;
	r = fragment_protocols(s->config, wanted, &protocols, &n);
	if (r < 0)
		return r;
	assert(n == s->n_protocols);
	for (size_t i = 0; i < n; i++)
		s->protocols[i]->ready_body = protocols[i].body;
	return fragment_render(s->config, wanted, protocols, n, ret);
}

/* Without it, a withdrawal sends its command first and its file is written by the round; so a
 * failure is no trouble yet. The slow timer tries again. */
static void files_prepare(struct apply *a, struct apply_service *s)
{
	_cleanup_buffer_ struct buffer text = {0};
	uint64_t hash;
	int r;

	buffer_init(&text, FRAGMENT_TEXT_MAX);
	if (s->withdrawn || files_render_withdrawn(s, &text) < 0)
		return;
	hash = apply_text_hash(buffer_string(&text));
	if (s->ready && s->ready_hash == hash)
		return;
	r = fragment_prepare(a->folder_fd, s->name, buffer_string(&text), text.length);
	s->ready = r == 0;
	s->ready_hash = r == 0 ? hash : 0;
	if (r < 0)
		log_debug("bird: %s/.%s.conf.withdrawn can not be written: %s", a->folder, s->name,
			strerror(-r));
}

bool apply_files_withdraw(struct apply *a, struct apply_service *s)
{
	s->stale = true;
	if (s->withdrawn || !s->ready)
		return false;
	if (fragment_withdraw(a->folder_fd, s->name) == 0)
		return true;
	s->ready = false; /* somebody took it; the round writes the file */
	return false;
}

void apply_files_withdrew(struct apply *a, struct apply_service *s)
{
	files_holds(s, NULL);
	s->text_hash = s->ready_hash;
	s->sent = false;
	s->withdrawn = true;
	s->ready = false;
	s->ready_hash = 0;
	for (size_t i = 0; i < s->n_protocols; i++) {
		struct apply_protocol *p = s->protocols[i];
		uint64_t body = s->put_back ? PLAN_BODY_UNKNOWN : p->ready_body;

		if (p->file_body != body)
			p->configure_body = PLAN_BODY_UNKNOWN;
		p->file_body = body;
	}
}

/* ---- somebody else's changes ---- */

/* 100 ms, doubling with each repair beyond the free ones, up to 10 s. */
static bool files_may_repair(struct apply *a, struct apply_service *s)
{
	struct monotime now = clock_monotime(), from;
	unsigned over;

	if (monotime_since_us(s->repaired, now) > 60000000)
		s->repairs = 0;
	if (s->repairs < FILES_REPAIRS_FREE)
		return true;
	over = s->repairs - FILES_REPAIRS_FREE;
	from = monotime_add_ms(s->repaired, over < 7 ? 100ULL << over : 10000);
	if (monotime_reached(from, now))
		return true;
	apply_wake_at(a, from);
	return false;
}

static void files_check(struct apply *a, struct apply_service *s)
{
	_cleanup_buffer_ struct buffer text = {0};
	uint64_t hash;

	buffer_init(&text, FRAGMENT_TEXT_MAX);
	if (s->text_hash == 0 || s->stale) { /* is written by this round anyhow */
		s->check_file = false;
		return;
	}
	if (!files_hash_on_disk(a, s->name, &text, &hash))
		return; /* The slow timer looks again. */
	if (hash == s->text_hash) {
		s->check_file = false;
		return;
	}
	if (!files_may_repair(a, s))
		return;
	s->check_file = false;
	s->repairs++;
	s->repaired = clock_monotime();
	a->status.fragments_repaired++;
	apply_say_changed(a);
	event_say(s->repairs <= FILES_REPAIRS_FREE ? LOG_WARNING : LOG_DEBUG,
		EVENT_FRAGMENT_REPAIRED, &(const struct event_fields){.service = s->name},
		"bird: fragment %s/%s.conf was %s by somebody: written again", a->folder, s->name,
		hash == 0 ? "removed" : "changed");
	s->text_hash = 0;
	s->stale = true;
}

static bool files_is_known_stranger(struct apply *a, const char *file)
{
	for (size_t i = 0; i < a->n_strangers; i++)
		if (strcmp(a->strangers[i], file) == 0)
			return true;
	return false;
}

struct files_orphan {
	struct apply *apply;
	int error;
};

static void files_orphan_protocol(void *userdata, const char *name, const char *block)
{
	struct files_orphan *o = userdata;
	struct apply_protocol *p = apply_find(o->apply, name);

	if (p)
		return;
	p = apply_add(o->apply, name);
	if (!p) {
		o->error = -ENOMEM;
		return;
	}
	p->want = PLAN_WANT_GONE;
	p->last_resort = names_is_last(name);
	if (apply_text_is_up(block))
		o->error = apply_text_prefixes(block, &p->held, &p->n_held);
}

/* A *.conf that is no configured service's: an earlier agent's, to be removed, or a stranger's. */
static void files_look_at(struct apply *a, const char *file)
{
	struct files_orphan orphan = {.apply = a};
	_cleanup_buffer_ struct buffer text = {0};
	char service[NAMES_SERVICE_MAX + 1];

	buffer_init(&text, FRAGMENT_TEXT_MAX);
	if (!files_is_included(file))
		return;
	if (files_service_of(file, service)) {
		if (files_find(a, service))
			return;
		if (fragment_read(a->folder_fd, service, &text) == 0 &&
			apply_text_is_ours(buffer_string(&text), service)) {
			apply_text_each(buffer_string(&text), files_orphan_protocol, &orphan);
			(void)files_remember(&a->orphans, &a->n_orphans, service);
			return;
		}
	}
	if (files_is_known_stranger(a, file) || a->n_strangers >= FILES_STRANGERS_MAX)
		return;
	if (files_remember(&a->strangers, &a->n_strangers, file) == 0)
		event_say(LOG_WARNING, EVENT_FRAGMENT_STRANGER, NULL,
			"bird: %s/%s is not the agent's, and BIRD includes it with ours: left "
			"alone",
			a->folder, file);
}

static void files_scan(struct apply *a)
{
	const struct dirent *entry;
	int fd = openat(a->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;

	if (!folder) {
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	while ((entry = readdir(folder)))
		files_look_at(a, entry->d_name);
	(void)closedir(folder);
}

static void files_on_event(struct apply *a, const struct inotify_event *e)
{
	char service[NAMES_SERVICE_MAX + 1];
	struct apply_service *s = NULL;

	if (e->len == 0) { /* the folder itself, or lost events */
		a->folder_check = true;
		apply_round_soon(a);
		return;
	}
	if (e->name[0] == '.')
		return;
	if (files_service_of(e->name, service))
		s = files_find(a, service);
	if (s) {
		s->check_file = true;
		apply_round_soon(a);
		return;
	}
	if (e->mask & IN_MODIFY) /* of somebody else, who will close it */
		return;
	if (e->mask & (IN_CLOSE_WRITE | IN_MOVED_TO))
		files_look_at(a, e->name);
	/* Perhaps somebody repaired what BIRD refused, or made what it will refuse. */
	if (a->refused && (e->mask & (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)))
		apply_retry_now(a, e->name);
	else if (files_is_included(e->name))
		apply_check_soon(a);
	apply_round_soon(a);
}

/* ---- the folder ---- */

static void files_forget(struct apply *a)
{
	for (size_t i = 0; i < a->n_services; i++) {
		struct apply_service *s = &a->services[i];

		files_holds(s, NULL);
		s->ready = s->withdrawn = false;
		s->ready_hash = 0;
		s->stale = true;
	}
}

int apply_files_open(struct apply *a)
{
	struct error error;
	int r;

	r = fragment_open_folder(a->folder, &a->folder_fd, &error);
	if (r < 0) {
		if (!a->folder_said) {
			event_say(LOG_ERR, EVENT_FRAGMENT_UNWRITABLE, NULL, "%s", error.text);
			files_set_error(a, error.text);
		}
		a->folder_said = true;
		return r;
	}
	if (a->folder_said) {
		event_say(LOG_NOTICE, EVENT_FRAGMENT_WRITABLE, NULL,
			"bird: folder %s is there again", a->folder);
		files_set_error(a, "");
	}
	a->folder_said = false;
	r = apply_watch_start(a, &a->folder_watch, a->folder,
		IN_MODIFY /* truncate(2) closes nothing */ | IN_CLOSE_WRITE | IN_MOVED_TO |
			IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF,
		files_on_event, "bird-fragments");
	if (r < 0)
		event_say(LOG_WARNING, EVENT_BIRD_TROUBLE, NULL,
			"bird: watch %s: %s (the slow timer looks)", a->folder, strerror(-r));
	r = fragment_clean(a->folder_fd);
	if (r < 0)
		event_say(LOG_WARNING, EVENT_BIRD_TROUBLE, NULL, "bird: clean %s: %s", a->folder,
			strerror(-r));
	return 0;
}

/* The folder may have been removed and made again under our descriptor. */
void apply_files_tick(struct apply *a)
{
	struct stat ours, there;
	bool same = !a->folder_watch.lost && a->folder_fd >= 0 && fstat(a->folder_fd, &ours) == 0 &&
		    stat(a->folder, &there) == 0 && ours.st_ino == there.st_ino &&
		    ours.st_dev == there.st_dev;

	a->folder_check = false;
	if (!same) {
		if (a->folder_fd >= 0)
			(void)close(TAKE_FD(a->folder_fd));
		files_forget(a);
		if (apply_files_open(a) == 0)
			files_scan(a);
	}
	for (size_t i = 0; i < a->n_services; i++) {
		struct apply_service *s = &a->services[i];

		s->check_file = true;
		s->stale = s->stale || (!s->withdrawn && !s->ready);
	}
	apply_round_soon(a);
}

/* ---- start ---- */

void apply_files_adopt(struct apply *a)
{
	for (size_t i = 0; i < a->n_services; i++) {
		struct apply_service *s = &a->services[i];
		_cleanup_buffer_ struct buffer text = {0};
		uint64_t hash;

		buffer_init(&text, FRAGMENT_TEXT_MAX);
		s->stale = true;
		if (a->folder_fd >= 0 && files_hash_on_disk(a, s->name, &text, &hash) && hash > 1)
			files_holds(s, TAKE_PTR(text.data));
	}
	if (a->folder_fd >= 0)
		files_scan(a);
}

enum prefix_wanted apply_files_found(const struct apply_service *s, size_t prefix)
{
	enum prefix_wanted found = PREFIX_WANTED_WITHDRAW;

	if (!s->text)
		return found;
	for (size_t i = 0; i < s->n_protocols; i++) {
		const struct apply_protocol *p = s->protocols[i];
		const char *block = apply_text_block(s->text, p->name);

		if (!block || !apply_text_is_up(block) || !apply_protocol_holds(p, prefix) ||
			!apply_text_holds(block, &s->config->prefixes[prefix].prefix))
			continue;
		if (!p->last_resort)
			return PREFIX_WANTED_ANNOUNCE;
		found = PREFIX_WANTED_DEMOTE;
	}
	return found;
}

/* ---- a round ---- */

static void files_remove_orphans(struct apply *a)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->n_orphans; i++) {
		char *service = a->orphans[i];
		/* It may have come back with a new configuration. */
		int r = files_find(a, service) ? 0 : fragment_remove(a->folder_fd, service);

		if (r < 0) {
			a->orphans[kept++] = service;
			continue;
		}
		if (!files_find(a, service))
			event_say(LOG_NOTICE, EVENT_FRAGMENT_REMOVED,
				&(const struct event_fields){.service = service},
				"bird: fragment %s.conf removed: its service is no longer "
				"configured",
				service);
		free(service);
	}
	a->n_orphans = kept;
}

static void files_sync_service(struct apply *a, struct apply_service *s)
{
	_cleanup_free_ struct fragment_protocol *protocols = NULL;
	_cleanup_free_ enum prefix_wanted *wanted = NULL;
	_cleanup_buffer_ struct buffer text = {0};
	size_t n = 0;
	int r;

	buffer_init(&text, FRAGMENT_TEXT_MAX);
	r = apply_service_protocols(a, s, &protocols, &n);
	wanted = calloc(s->config->n_prefixes + 1, sizeof(*wanted));
	if (r == 0 && !wanted)
		r = -ENOMEM;
	if (r == 0 && s->put_back)
		r = s->good ? apply_text_edit(s->good, files_is_wanted_up, a, &text) : 0;
	if (r == 0 && !s->put_back) {
		for (size_t i = 0; i < s->config->n_prefixes; i++)
			wanted[i] = s->prefixes[i].wanted;
		r = fragment_render(s->config, wanted, protocols, n, &text);
	}
	if (r < 0) {
		files_write_failed(a, s, r);
		return;
	}
	s->stale = false;
	if (s->put_back && !s->good) { /* nothing was ever accepted: BIRD is better without it */
		(void)fragment_remove(a->folder_fd, s->name);
		files_holds(s, NULL);
		s->ready = false;
		files_set_bodies(a, s);
		return;
	}
	files_write(a, s, &text);
	files_prepare(a, s);
}

bool apply_files_dirty(const struct apply *a)
{
	for (size_t i = 0; i < a->n_services; i++)
		if (a->services[i].dirty || a->services[i].stale)
			return true;
	return a->n_orphans > 0;
}

/* That every file is as it is to be says nothing, where what is wanted was changed back meanwhile:
 * one is written as it is. */
static bool files_can_be_written(const struct apply *a)
{
	for (size_t i = 0; i < a->n_services; i++) {
		const struct apply_service *s = &a->services[i];

		if (s->text)
			return fragment_write(a->folder_fd, s->name, s->text, strlen(s->text)) == 0;
	}
	return true;
}

void apply_files_sync(struct apply *a)
{
	bool was_said = a->write_said;

	if (a->folder_fd < 0) { /* what is wanted goes to BIRD all the same */
		for (size_t i = 0; i < a->n_services; i++)
			if (a->services[i].stale)
				(void)apply_service_protocols(a, &a->services[i], NULL, NULL);
		return;
	}
	files_remove_orphans(a);
	for (size_t i = 0; i < a->n_services; i++) {
		struct apply_service *s = &a->services[i];

		if (s->check_file)
			files_check(a, s);
		if (s->stale || s->dirty)
			files_sync_service(a, s);
	}
	if (was_said && !apply_files_dirty(a) && files_can_be_written(a)) {
		event_say(LOG_NOTICE, EVENT_FRAGMENT_WRITABLE, NULL,
			"bird: fragments can be written again");
		files_set_error(a, "");
		a->write_said = false;
	}
}

/* ---- what BIRD says of them ---- */

void apply_files_configure_sent(struct apply *a)
{
	for (size_t i = 0; i < a->n_services; i++)
		a->services[i].sent = a->services[i].text != NULL;
	for (size_t i = 0; i < a->n_protocols; i++)
		a->protocols[i]->configure_body = a->protocols[i]->file_body;
}

void apply_files_accepted(struct apply *a)
{
	for (size_t i = 0; i < a->n_services; i++) {
		struct apply_service *s = &a->services[i];

		if (!s->sent)
			continue;
		s->sent = false;
		if (s->put_back)
			continue; /* the text is made of `good`, which stays until another is */
		free(TAKE_PTR(s->good));
		s->text_is_good = true;
	}
}

/* Does FILE, as BIRD names it, lie in our folder? Returns its last part, or NULL. */
static const char *files_in_folder(const struct apply *a, char *file)
{
	char *slash = strrchr(file, '/');
	struct stat ours, there;
	bool inside;

	if (!slash || a->folder_fd < 0 || fstat(a->folder_fd, &ours) < 0)
		return NULL;
	*slash = '\0';
	inside = stat(slash == file ? "/" : file, &there) == 0 && ours.st_ino == there.st_ino &&
		 ours.st_dev == there.st_dev;
	*slash = '/';
	return inside ? slash + 1 : NULL;
}

enum apply_blame apply_files_refused(struct apply *a, const char *text)
{
	_cleanup_free_ char *file = strndup(text, observe_refused_file(text));
	_cleanup_buffer_ struct buffer there = {0};
	char name[NAMES_SERVICE_MAX + 1];
	struct apply_service *s;
	const char *last;
	uint64_t hash;

	buffer_init(&there, FRAGMENT_TEXT_MAX);
	last = file ? files_in_folder(a, file) : NULL;
	if (!last)
		return APPLY_BLAME_OTHERS;
	s = files_service_of(last, name) ? files_find(a, name) : NULL;
	if (!s)
		return APPLY_BLAME_STRANGER;
	if (s->text_hash == 0 ||
		(files_hash_on_disk(a, name, &there, &hash) && hash != s->text_hash)) {
		s->check_file = true;
		return APPLY_BLAME_DAMAGED;
	}
	s->put_back = true;
	s->stale = true;
	if (!s->good && s->text_is_good && s->text)
		s->good = strdup(s->text); /* BIRD took it before: something else changed */
	return APPLY_BLAME_OURS;
}

void apply_files_try_again(struct apply *a)
{
	for (size_t i = 0; i < a->n_services; i++) {
		if (!a->services[i].put_back)
			continue;
		a->services[i].put_back = false;
		a->services[i].stale = true;
	}
}
