#ifndef REDSHANK_TESTS_FAKE_BIRD_H
#define REDSHANK_TESTS_FAKE_BIRD_H
/*
 * A BIRD inside the test's own loop, for what a real one can not be made to show: reconfiguring for
 * half a second, a queued configuration at a chosen moment, a reply that never comes, garbage, 8002
 * out of the blue. It reads the fragments of a folder as text, knows `up` and `down` of the
 * protocols in them, and counts what it is told. Where its answers must be a real BIRD's, the
 * cases with real ones hold; the shapes are those of 2.0.12.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/bird/names.h"

#define FAKE_CONNECTIONS 16
#define FAKE_PROTOCOLS 64

struct fake_protocol {
	char name[NAMES_MAX];
	uint64_t routes[8]; /* a bit for each, by fake_route() */
	unsigned weight;    /* of the last, */
	bool graceful;	    /* and its GRACEFUL_SHUTDOWN */
	bool up;
};

struct fake_configuration {
	struct fake_protocol protocols[FAKE_PROTOCOLS];
	size_t n;
};

struct fake_connection {
	struct fake_bird *fake;
	int fd;
	sd_event_source *source;
	char input[65536];
	size_t n;
	bool echoes;
};

struct fake_bird {
	sd_event *event;
	char folder[256], socket[100]; /* of the test */
	int listen_fd;
	sd_event_source *source, *timer;
	struct fake_connection connections[FAKE_CONNECTIONS];
	struct fake_configuration running, queued;
	bool has_queued;
	struct monotime busy_until;
	unsigned life, generation;

	/* What it is to do. */
	const char *greeting;	     /* instead of its own */
	uint64_t busy_ms;	     /* reconfigures that long: 0004 */
	const char *refuse;	     /* text of 8002 */
	unsigned refuse_weight;	     /* refuses only while a fragment has this weight; 0: always */
	bool on_trial;		     /* by `configure timeout`; any other configure ends it */
	bool mute;		     /* does not answer */
	bool garbage;		     /* answers with no reply */
	bool drips;		     /* begins an answer, and never ends it */
	const char *other_preferred; /* a protocol that holds every prefix, and better */
	const char *other_exported;  /* one that is exported where ours is not */
	const char *next_hop;	     /* of a BGP route of every prefix that is not the best */

	/* What it was told. */
	unsigned n_configure, n_check, n_disable, n_enable, n_connections, n_bytes;
	bool overlapping; /* a configure came before the one before had settled */
	char last[512];	  /* the last command that changes something */
};

static inline void fake_close(struct fake_connection *c)
{
	if (c->fd < 0)
		return;
	c->source = sd_event_source_disable_unref(c->source);
	(void)close(c->fd);
	c->fd = -1;
}

static inline bool fake_is_busy(const struct fake_bird *f)
{
	return !monotime_reached(f->busy_until, clock_monotime());
}

static inline struct fake_protocol *fake_find(struct fake_configuration *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->protocols[i].name, name) == 0)
			return &c->protocols[i];
	return NULL;
}

/* ---- the configuration ---- */

/* Which of 512 a prefix such as "192.0.2.1/32" is: by its last nine bits. */
static inline unsigned fake_route(const char *prefix)
{
	unsigned c = 0, d = 0;

	(void)sscanf(prefix, "%*u.%*u.%u.%u", &c, &d);
	return (c & 1) << 8 | (d & 255);
}

static inline bool fake_holds(const struct fake_protocol *p, const char *prefix)
{
	return p->routes[fake_route(prefix) / 64] >> fake_route(prefix) % 64 & 1;
}

static inline void fake_parse_file(const char *path, struct fake_configuration *ret)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	struct fake_protocol *p = NULL;
	char line[1024], name[NAMES_MAX], prefix[PREFIX_TEXT_MAX];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "protocol static '%64[^']'", name) == 1) {
			p = &ret->protocols[ret->n++];
			(void)snprintf(p->name, sizeof(p->name), "%s", name);
			p->up = true;
		} else if (p && strcmp(line, "\tdisabled;\n") == 0) {
			p->up = false;
		} else if (p && sscanf(line, "\troute %49s unreachable { redshank_weight = %u;",
					prefix, &p->weight) == 2) {
			p->routes[fake_route(prefix) / 64] |= 1ULL << fake_route(prefix) % 64;
			p->graceful = strstr(line, "(65535,0)");
		}
	}
}

static inline void fake_parse(const struct fake_bird *f, struct fake_configuration *ret)
{
	DIR *folder = opendir(f->folder);
	const struct dirent *entry;
	char path[600];

	memset(ret, 0, sizeof(*ret));
	while (folder && (entry = readdir(folder))) {
		if (fnmatch("*.conf", entry->d_name, FNM_PERIOD) != 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", f->folder, entry->d_name);
		fake_parse_file(path, ret);
	}
	if (folder)
		(void)closedir(folder);
}

/* A protocol that is up or was disabled by hand is what the configuration says, as in BIRD. */
static inline void fake_load(struct fake_bird *f, const struct fake_configuration *c)
{
	f->running = *c;
	f->generation++;
}

static inline int fake_on_settled(sd_event_source *source, uint64_t us, void *userdata)
{
	struct fake_bird *f = userdata;

	if (!f->has_queued)
		return 0;
	f->has_queued = false;
	fake_load(f, &f->queued);
	return 0;
}

static inline void fake_be_busy(struct fake_bird *f, uint64_t ms)
{
	f->busy_until = monotime_add_ms(clock_monotime(), ms);
	(void)sd_event_source_set_time(f->timer, f->busy_until.us);
	(void)sd_event_source_set_enabled(f->timer, SD_EVENT_ONESHOT);
}

/* Somebody else's configure while it is busy: parsed now, loaded at the end. */
static inline void fake_queue(struct fake_bird *f)
{
	fake_parse(f, &f->queued);
	f->has_queued = true;
}

/* ---- replies ---- */

static inline void fake_say(struct fake_connection *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static inline void fake_say(struct fake_connection *c, const char *format, ...)
{
	char text[4096];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (c->fd >= 0)
		(void)!write(c->fd, text, strlen(text));
}

static inline void fake_push(struct fake_bird *f, const char *text)
{
	for (size_t i = 0; i < FAKE_CONNECTIONS; i++)
		if (f->connections[i].fd >= 0 && f->connections[i].echoes)
			fake_say(&f->connections[i], "+%s\n", text);
}

static inline bool fake_refuses(const struct fake_bird *f)
{
	struct fake_configuration next;

	if (!f->refuse || f->refuse_weight == 0)
		return f->refuse != NULL;
	fake_parse(f, &next);
	for (size_t i = 0; i < next.n; i++)
		if (next.protocols[i].weight == f->refuse_weight)
			return true;
	return false;
}

static inline void fake_configure(struct fake_bird *f, struct fake_connection *c)
{
	struct fake_configuration next;

	f->n_configure++;
	f->on_trial = false;
	f->overlapping = f->overlapping || fake_is_busy(f);
	fake_say(c, "0002-Reading configuration from bird.conf\n");
	if (fake_refuses(f)) {
		fake_say(c, "8002 %s\n", f->refuse);
		return;
	}
	fake_parse(f, &next);
	if (fake_is_busy(f)) {
		f->queued = next;
		f->has_queued = true;
		fake_say(c, "0005 Reconfiguration already in progress, queueing new config\n");
		return;
	}
	fake_load(f, &next);
	if (f->busy_ms > 0) {
		fake_be_busy(f, f->busy_ms);
		fake_say(c, "0004 Reconfiguration in progress\n");
	} else {
		fake_say(c, "0003 Reconfigured\n");
	}
}

static inline void fake_switch(
	struct fake_bird *f, struct fake_connection *c, const char *command, bool up)
{
	char pattern[512] = "", line[256];
	bool any = false;

	(void)sscanf(command, "%*[a-z] \"%511[^\"]\"", pattern);
	*(up ? &f->n_enable : &f->n_disable) += 1;
	for (size_t i = 0; i < f->running.n; i++) {
		struct fake_protocol *p = &f->running.protocols[i];

		if (fnmatch(pattern, p->name, 0) != 0)
			continue;
		any = true;
		fake_say(c, "%04d-%s: %s%s\n", up ? (p->up ? 10 : 11) : (p->up ? 9 : 8), p->name,
			p->up == up ? "already " : "", up ? "enabled" : "disabled");
		if (p->up != up) {
			(void)snprintf(line, sizeof(line), "%s protocol %s",
				up ? "Enabling" : "Disabling", p->name);
			fake_push(f, line);
		}
		p->up = up;
	}
	fake_say(c, any ? "0000 \n" : "8003 No protocols match\n");
}

static inline void fake_show_protocols(struct fake_bird *f, struct fake_connection *c)
{
	fake_say(c, "2002-Name       Proto      Table      State  Since         Info\n");
	fake_say(c, "1002-router1    BGP        ---        up     12:00:00.000  Established   \n");
	fake_say(c, " backup1    BGP        ---        start  12:00:00.000  Idle          \n");
	for (size_t i = 0; i < f->running.n; i++)
		fake_say(c, " %-10s %-10s %-10s %-6s %s  \n", f->running.protocols[i].name,
			"Static", "redshank4", f->running.protocols[i].up ? "up" : "down",
			"12:00:00.000");
	fake_say(c, "0000 \n");
}

static inline void fake_route_line(
	struct fake_connection *c, const char *prefix, const char *name, bool best)
{
	fake_say(c, " %-20s unreachable [%s 12:00:00.000]%s (250)\n", prefix, name,
		best ? " *" : "");
}

static inline void fake_show_route(struct fake_bird *f, struct fake_connection *c, const char *line)
{
	char prefix[PREFIX_TEXT_MAX] = "";
	struct fake_protocol *p = NULL;
	bool export = strstr(line, " export ");

	(void)sscanf(line, "show route %49s", prefix);
	/* The preferred one has the lower weight here. */
	for (size_t i = 0; i < f->running.n; i++) {
		struct fake_protocol *one = &f->running.protocols[i];

		if (one->up && fake_holds(one, prefix) && (!p || one->weight < p->weight))
			p = one;
	}
	if (!p && !f->other_preferred && !(export && f->other_exported) &&
		(export || !f->next_hop)) {
		fake_say(c, "8001 Network not found\n");
		return;
	}
	if (p && !export)
		fake_say(c, "1007-Table redshank4:\n");
	for (size_t i = 0; i < f->running.n && p && !export; i++) {
		const struct fake_protocol *one = &f->running.protocols[i];

		if (!one->up || !fake_holds(one, prefix))
			continue;
		fake_route_line(c, prefix, one->name, one == p);
		fake_say(c, "1012-\tredshank_weight: %u\n%s", one->weight,
			one->graceful ? " \tBGP.community: (65535,0)\n" : "");
	}
	fake_say(c, "1007-Table master4:\n");
	if (f->other_preferred)
		fake_route_line(c, prefix, f->other_preferred, true);
	if (p && !(export && f->other_preferred)) {
		fake_route_line(c, prefix, p->name, !f->other_preferred);
	} else if (!p && export && f->other_exported) {
		fake_route_line(c, prefix, f->other_exported, true);
	}
	if (f->next_hop && !export) {
		fake_route_line(c, prefix, "up1", false);
		fake_say(c, "1008-\tType: BGP univ\n1012-\tBGP.next_hop: %s\n", f->next_hop);
	}
	fake_say(c, "0000 \n");
}

static inline bool fake_starts(const char *line, const char *with)
{
	return strncmp(line, with, strlen(with)) == 0;
}

static inline void fake_answer(struct fake_bird *f, struct fake_connection *c, const char *line)
{
	bool changes = strcmp(line, "configure") == 0 || fake_starts(line, "disable ") ||
		       fake_starts(line, "enable ");

	if (changes)
		(void)snprintf(f->last, sizeof(f->last), "%s", line);
	if (f->mute)
		return;
	if (f->drips)
		fake_say(c, "0");
	else if (f->garbage)
		fake_say(c, "HTTP/1.1 400 Bad Request\n");
	else if (strcmp(line, "configure") == 0)
		fake_configure(f, c);
	else if (strcmp(line, "configure check") == 0) {
		f->n_check++;
		if (fake_refuses(f))
			fake_say(c, "0002-Reading\n8002 %s\n", f->refuse);
		else
			fake_say(c, "0002-Reading\n0020 Configuration OK\n");
	} else if (strcmp(line, "configure status") == 0)
		fake_say(c, "000%d-Daemon\n%s0000 \n",
			!fake_is_busy(f) ? 3
			: f->has_queued	 ? 5
					 : 4,
			f->on_trial ? "0022-Configuration unconfirmed, undo in 9.123 s\n" : "");
	else if (fake_starts(line, "disable "))
		fake_switch(f, c, line, false);
	else if (fake_starts(line, "enable "))
		fake_switch(f, c, line, true);
	else if (strcmp(line, "show status") == 0)
		fake_say(c,
			"1000-BIRD 2.0.12\n1011-Router ID is 192.0.2.1\n"
			" Last reboot on 2026-11-30 00:00:00.%03u\n"
			" Last reconfiguration on 2026-11-30 00:00:01.%03u\n"
			"0013 Daemon is up and running\n",
			f->life, f->generation);
	else if (strcmp(line, "show protocols") == 0)
		fake_show_protocols(f, c);
	else if (fake_starts(line, "show route "))
		fake_show_route(f, c, line);
	else if (fake_starts(line, "echo ")) {
		c->echoes = true;
		fake_say(c, "0000 \n");
	} else if (strcmp(line, "restrict") == 0)
		fake_say(c, "0016 Access restricted\n");
	else
		fake_say(c, "9001 syntax error\n");
}

static inline int fake_on_input(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct fake_connection *c = userdata;
	struct fake_bird *f = c->fake;
	ssize_t n = read(fd, c->input + c->n, sizeof(c->input) - 1 - c->n);
	char *end;

	if (n <= 0) {
		fake_close(c);
		return 0;
	}
	c->n += (size_t)n;
	f->n_bytes += (unsigned)n;
	while (c->fd >= 0 && (end = memchr(c->input, '\n', c->n))) {
		size_t used = (size_t)(end - c->input) + 1;

		*end = '\0';
		fake_answer(f, c, c->input);
		memmove(c->input, c->input + used, c->n - used);
		c->n -= used;
	}
	return 0;
}

static inline int fake_on_connect(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct fake_bird *f = userdata;
	int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	f->n_connections++;
	for (size_t i = 0; connection >= 0 && i < FAKE_CONNECTIONS; i++) {
		struct fake_connection *c = &f->connections[i];

		if (c->fd >= 0)
			continue;
		memset(c, 0, sizeof(*c));
		c->fake = f;
		c->fd = connection;
		(void)sd_event_add_io(f->event, &c->source, connection, EPOLLIN, fake_on_input, c);
		if (!f->mute)
			fake_say(c, "%s", f->greeting ? f->greeting : "0001 BIRD 2.0.12 ready.\n");
		return 0;
	}
	abort();
}

/* ---- its life ---- */

static inline void fake_start(struct fake_bird *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->socket);
	(void)unlink(f->socket);
	f->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (f->listen_fd < 0 ||
		bind(f->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(f->listen_fd, 8) < 0 ||
		sd_event_add_io(f->event, &f->source, f->listen_fd, EPOLLIN, fake_on_connect, f) <
			0)
		abort();
	f->life++;
	fake_parse(f, &f->running);
	f->has_queued = false;
	f->busy_until = MONOTIME_ZERO;
}

static inline void fake_stop(struct fake_bird *f)
{
	for (size_t i = 0; i < FAKE_CONNECTIONS; i++)
		fake_close(&f->connections[i]);
	f->source = sd_event_source_disable_unref(f->source);
	if (f->listen_fd >= 0)
		(void)close(f->listen_fd);
	f->listen_fd = -1;
	(void)unlink(f->socket);
}

static inline void fake_init(
	struct fake_bird *f, sd_event *event, const char *folder, const char *socket_path)
{
	memset(f, 0, sizeof(*f));
	f->event = event;
	f->listen_fd = -1;
	for (size_t i = 0; i < FAKE_CONNECTIONS; i++)
		f->connections[i].fd = -1;
	(void)snprintf(f->folder, sizeof(f->folder), "%s", folder);
	(void)snprintf(f->socket, sizeof(f->socket), "%s", socket_path);
	if (sd_event_add_time(event, &f->timer, CLOCK_BOOTTIME, 0, 1, fake_on_settled, f) < 0 ||
		sd_event_source_set_enabled(f->timer, SD_EVENT_OFF) < 0)
		abort();
}

static inline void fake_done(struct fake_bird *f)
{
	fake_stop(f);
	f->timer = sd_event_source_disable_unref(f->timer);
}

#endif
