#ifndef REDSHANK_TESTS_APPLY_SITE_H
#define REDSHANK_TESTS_APPLY_SITE_H
/*
 * An apply with some services and the BIRD of fake-bird.h, in one loop and a folder of their own;
 * for the programs test-bird-apply.c and test-bird-troubles.c. setup() and teardown() are a checked
 * fixture's.
 */
#include <check.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>

#include "agent/bird/apply_state.h"
#include "tests/unit/fake-bird.h"
#include "tests/unit/loop.h"

#define SERVICES_MAX 16

static sd_event *event;
static struct fake_bird bird;
static struct apply *apply;
static char base[64], folder[128], socket_path[128];
static bool is_ready;
static unsigned changes;

static struct config config;
static struct config_service services[SERVICES_MAX];
static struct config_prefix prefixes[SERVICES_MAX][2];
static char names[SERVICES_MAX][24];
static char all_sessions[] = "*";
static char *session_items[] = {all_sessions};

static inline void on_ready(void *userdata)
{
	is_ready = true;
}

static inline void on_changed(void *userdata)
{
	changes++;
}

/* s0, s1, ...: one prefix each, 192.0.2.(i + 1)/32, weight 100. */
static inline void make_config(size_t n)
{
	memset(services, 0, sizeof(services));
	memset(prefixes, 0, sizeof(prefixes));
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "s%zu", i);
		services[i].name = names[i];
		services[i].prefixes = prefixes[i];
		services[i].n_prefixes = 1;
		prefixes[i][0].prefix =
			(struct prefix){.address = {.family = ADDRESS_FAMILY_IPV4,
						.bytes = {192, 0, 2, (uint8_t)(i + 1)}},
				.length = 32};
		prefixes[i][0].announced_weight = 100;
	}
	config = (struct config){.services = services, .n_services = n};
	config.bird.socket = socket_path;
	config.bird.fragments = folder;
	config.bird.sessions = (struct schema_strings){.items = session_items, .n = 1};
}

static inline void start_apply(void)
{
	const struct apply_ops ops = {.ready = on_ready, .changed = on_changed};

	is_ready = false;
	ck_assert_int_eq(apply_new(&apply, event, &config.bird, &ops), 0);
	ck_assert_int_eq(apply_configure(apply, &config), 0);
	ck_assert_int_eq(apply_start(apply), 0);
}

static inline bool all_observed(enum apply_known announced, int exported)
{
	for (size_t i = 0; i < config.n_services; i++) {
		const struct apply_observed *o = apply_observed(apply, i, 0);

		if (o->announced != announced || o->exported != exported)
			return false;
	}
	return true;
}

static inline void want_all(enum prefix_wanted wanted)
{
	for (size_t i = 0; i < config.n_services; i++)
		apply_want(apply, i, 0, wanted);
	apply_flush(apply);
}

static inline bool settled(void)
{
	return apply_status(apply)->settled;
}

/* A BIRD with n services, all announced and read back. */
static inline void begin(size_t n)
{
	make_config(n);
	fake_start(&bird);
	start_apply();
	ck_assert(LOOP_UNTIL(event, is_ready, 2000));
	want_all(PREFIX_WANTED_ANNOUNCE);
	ck_assert(LOOP_UNTIL(event, settled() && all_observed(APPLY_YES, 1), 3000));
}

static inline bool is_up(size_t i)
{
	char name[NAMES_MAX];
	const struct fake_protocol *p = fake_find(&bird.running,
		names_protocol(name, services[i].name, &services[i].prefixes[0].prefix, false));

	return p && p->up;
}

static inline const char *fragment_of(const char *service)
{
	static char text[8192];
	char path[300];
	FILE *file;
	size_t n;

	(void)snprintf(path, sizeof(path), "%s/%s.conf", folder, service);
	file = fopen(path, "re");
	if (!file)
		return "";
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	(void)fclose(file);
	return text;
}

static inline void write_fragment(const char *service, const char *text)
{
	char path[300];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s.conf", folder, service);
	file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	(void)fputs(text, file);
	(void)fclose(file);
}

static inline void setup(void)
{
	(void)snprintf(base, sizeof(base), "/tmp/redshank-apply-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(base));
	(void)snprintf(folder, sizeof(folder), "%s/f", base);
	(void)snprintf(socket_path, sizeof(socket_path), "%s/bird.ctl", base);
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	ck_assert_int_ge(sd_event_new(&event), 0);
	fake_init(&bird, event, folder, socket_path);
	changes = 0;
}

static inline void teardown(void)
{
	char command[128];

	apply_free(apply);
	apply = NULL;
	fake_done(&bird);
	event = sd_event_unref(event);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", base);
	(void)!system(command);
}

#endif
