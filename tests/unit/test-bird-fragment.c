/*
 * The fragment's text, read by a person here and by a real `bird -p` at the end, and its file.
 *
 *   test-bird-fragment print WANTED SERVICE PREFIX=WEIGHT[,PREPEND[,last]]...
 *
 * prints the fragment of such a service, for tests that give it to BIRD.
 */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/bird/fragment.h"

#define PREFIXES_MAX 1024
#define ANNOUNCE PREFIX_WANTED_ANNOUNCE
#define DEMOTE PREFIX_WANTED_DEMOTE
#define WITHDRAW PREFIX_WANTED_WITHDRAW

#define HEAD(name)                                                                                \
	"/*\n"                                                                                    \
	" * Service " name ", written by redshankd: do not edit, changes made here are undone.\n" \
	" * Prefixes, weights and communities come from the configuration of redshankd;\n"        \
	" * `redshankctl drain` takes a prefix out.\n"                                            \
	" */\n"

/* A service under construction. */
static struct {
	struct config_service service;
	struct config_prefix prefixes[PREFIXES_MAX];
	enum prefix_wanted wanted[PREFIXES_MAX];
} s;

static void service(const char *name)
{
	memset(&s, 0, sizeof(s));
	s.service.name = (char *)name;
	s.service.prefixes = s.prefixes;
}

static struct config_prefix *add(const char *prefix, uint32_t weight, enum prefix_wanted wanted)
{
	struct config_prefix *c = &s.prefixes[s.service.n_prefixes];

	ck_assert_uint_lt(s.service.n_prefixes, PREFIXES_MAX);
	ck_assert_msg(prefix_parse(prefix, &c->prefix, NULL) == 0, "%s", prefix);
	c->announced_weight = weight;
	s.wanted[s.service.n_prefixes++] = wanted;
	return c;
}

static void want_all(enum prefix_wanted wanted)
{
	for (size_t i = 0; i < s.service.n_prefixes; i++)
		s.wanted[i] = wanted;
}

/* Heap arrays and texts of a test are the leak checker's: each test frees its own. */
static struct fragment_protocol *list(size_t *ret_n)
{
	struct fragment_protocol *protocols = NULL;

	ck_assert_int_eq(fragment_protocols(&s.service, s.wanted, &protocols, ret_n), 0);
	return protocols;
}

static char *render(void)
{
	struct buffer text;
	_cleanup_free_ struct fragment_protocol *protocols = NULL;
	size_t n;

	protocols = list(&n);
	buffer_init(&text, FRAGMENT_TEXT_MAX);
	ck_assert_int_eq(fragment_render(&s.service, s.wanted, protocols, n, &text), 0);
	return text.data;
}

static void assert_text(const char *expected)
{
	_cleanup_free_ char *text = render(), *again = render();

	ck_assert_str_eq(text, expected);
	ck_assert_str_eq(again, expected);
}

/* --- text --- */

START_TEST (one_prefix) {
	service("dns");
	add("192.0.2.53/32", 100, ANNOUNCE);
	assert_text(HEAD("dns") "protocol static 'redshank:dns:192.0.2.53' {\n"
				"\tipv4 { table redshank4; preference 250; };\n"
				"\troute 192.0.2.53/32 unreachable { redshank_weight = 100; };\n"
				"}\n");
	s.wanted[0] = WITHDRAW;
	assert_text(HEAD("dns") "protocol static 'redshank:dns:192.0.2.53' {\n"
				"\tdisabled;\n"
				"\tipv4 { table redshank4; preference 250; };\n"
				"\troute 192.0.2.53/32 unreachable { redshank_weight = 100; };\n"
				"}\n");
}
END_TEST

START_TEST (all_attributes) {
	static struct config_community small[] = {{{64501, 53, 0}}, {{65535, 65535, 0}}};
	static struct config_community large[] = {{{64501, 1, 53}}, {{4294967295, 0, 1}}};
	struct config_prefix *c;

	service("dns-v6");
	c = add("2001:db8::/48", 65535, ANNOUNCE);
	c->prepend = 10;
	c->communities = small;
	c->n_communities = 2;
	c->large_communities = large;
	c->n_large_communities = 2;
	c->last_resort = true;
	assert_text(
		HEAD("dns-v6") "protocol static 'redshank:dns-v6:2001:db8::-48' {\n"
			       "\tipv6 { table redshank6; preference 250; };\n"
			       "\troute 2001:db8::/48 unreachable { redshank_weight = 65535;"
			       " redshank_prepend = 10; bgp_community.add((64501,53));"
			       " bgp_community.add((65535,65535));"
			       " bgp_large_community.add((64501,1,53));"
			       " bgp_large_community.add((4294967295,0,1)); };\n"
			       "}\n"
			       "protocol static 'redshank:dns-v6:2001:db8::-48:last' {\n"
			       "\tipv6 { table redshank6; preference 249; };\n"
			       "\troute 2001:db8::/48 unreachable { redshank_weight = 65535;"
			       " redshank_prepend = 10; bgp_community.add((64501,53));"
			       " bgp_community.add((65535,65535)); bgp_community.add((65535,0));"
			       " bgp_large_community.add((64501,1,53));"
			       " bgp_large_community.add((4294967295,0,1)); };\n"
			       "}\n");
}
END_TEST

/* Which of a prefix's protocols are up. */
static const struct {
	enum prefix_wanted wanted;
	bool last_resort, first_up, last_up;
} ups[] = {
	{WITHDRAW, false, false, false},
	{DEMOTE, false, false, false}, /* nothing to demote it to */
	{ANNOUNCE, false, true, false},
	{WITHDRAW, true, false, false},
	{DEMOTE, true, false, true},
	{ANNOUNCE, true, true, true},
};

START_TEST (what_is_up) {
	_cleanup_free_ struct fragment_protocol *p = NULL;
	size_t n;

	service("dns");
	add("192.0.2.1/32", 1, WITHDRAW);
	add("192.0.2.53/32", 100, ups[_i].wanted)->last_resort = ups[_i].last_resort;
	p = list(&n);
	ck_assert_uint_eq(n, ups[_i].last_resort ? 3 : 2);
	ck_assert_str_eq(p[1].name, "redshank:dns:192.0.2.53");
	ck_assert_uint_eq(p[1].first_prefix, 1);
	ck_assert_uint_eq(p[1].n_prefixes, 1);
	ck_assert(p[1].up == ups[_i].first_up);
	ck_assert(!p[1].last_resort && !p[1].family_protocol && !p[0].up);
	if (ups[_i].last_resort) {
		ck_assert_str_eq(p[2].name, "redshank:dns:192.0.2.53:last");
		ck_assert_uint_eq(p[2].first_prefix, 1);
		ck_assert(p[2].up == ups[_i].last_up);
		ck_assert(p[2].last_resort);
	}
}
END_TEST

START_TEST (no_prefixes) {
	struct fragment_protocol *p = (struct fragment_protocol *)&s;
	size_t n = 7;

	service("dns");
	ck_assert_int_eq(fragment_protocols(&s.service, s.wanted, &p, &n), 0);
	ck_assert_ptr_null(p);
	ck_assert_uint_eq(n, 0);
	assert_text(HEAD("dns"));
}
END_TEST

/* The id of a body: the same up and down, another one for whatever BIRD would announce otherwise.
 */
static uint64_t body_of(size_t protocol)
{
	_cleanup_free_ struct fragment_protocol *p = NULL;
	size_t n;

	p = list(&n);
	ck_assert_uint_lt(protocol, n);
	ck_assert_uint_ne(p[protocol].body, 0);
	return p[protocol].body;
}

START_TEST (body) {
	static struct config_community community[] = {{{64501, 1, 2}}};
	struct config_prefix *c;
	uint64_t before, last, seen[8];
	size_t n = 0;

	service("dns");
	c = add("192.0.2.53/32", 100, ANNOUNCE);
	c->last_resort = true;
	before = body_of(0);
	last = body_of(1);
	ck_assert_uint_ne(before, last);
	s.wanted[0] = WITHDRAW;
	ck_assert_uint_eq(body_of(0), before);
	ck_assert_uint_eq(body_of(1), last);
	s.wanted[0] = DEMOTE;
	ck_assert_uint_eq(body_of(0), before);

	seen[n++] = before;
	c->announced_weight = 101;
	seen[n++] = body_of(0);
	c->graceful = true;
	seen[n++] = body_of(0);
	ck_assert_uint_eq(body_of(1), last); /* the worst weight is the worst weight */
	c->prepend = 1;
	seen[n++] = body_of(0);
	c->communities = community;
	c->n_communities = 1;
	seen[n++] = body_of(0);
	ck_assert_uint_ne(body_of(1), last);
	c->large_communities = community;
	c->n_large_communities = 1;
	seen[n++] = body_of(0);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			ck_assert_uint_ne(seen[i], seen[k]);
}
END_TEST

START_TEST (too_long) {
	_cleanup_free_ struct fragment_protocol *p = NULL;
	_cleanup_buffer_ struct buffer text = {0};
	size_t n;

	service("dns");
	add("192.0.2.53/32", 100, ANNOUNCE);
	p = list(&n);
	buffer_init(&text, 300);
	ck_assert_int_eq(fragment_render(&s.service, s.wanted, p, n, &text), -E2BIG);
}
END_TEST

struct named {
	char name[NAMES_MAX];
	uint32_t number;
};

static int compare_named(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* Of 200,000 long addresses under a long service name some share the 32 bits of their hash. */
START_TEST (shared_name) {
	enum { N = 200000 };
	const char *name = "abcdefghijklmnopqrstuvwxyz-_0123";
	struct named *named = calloc(N, sizeof(*named));
	struct fragment_protocol *p = NULL;
	char text[PREFIX_TEXT_MAX];
	struct prefix prefix;
	size_t n = 0, found = 0;

	ck_assert_ptr_nonnull(named);
	(void)prefix_parse("2001:db8:1111:2222:3333:4444:5555:6666/128", &prefix, NULL);
	for (uint32_t i = 0; i < N; i++) {
		memcpy(prefix.address.bytes + 12, &i, sizeof(i));
		names_protocol(named[i].name, name, &prefix, false);
		named[i].number = i;
	}
	qsort(named, N, sizeof(*named), compare_named);
	for (size_t i = 1; i < N && !found; i++)
		found = strcmp(named[i - 1].name, named[i].name) == 0 ? i : 0;
	ck_assert_uint_ne(found, 0);

	service(name);
	for (size_t i = found - 1; i <= found; i++) {
		memcpy(prefix.address.bytes + 12, &named[i].number, sizeof(uint32_t));
		add(prefix_format(&prefix, text), 100, ANNOUNCE);
	}
	ck_assert_int_eq(fragment_protocols(&s.service, s.wanted, &p, &n), -EEXIST);
	ck_assert_ptr_null(p);
	free(named);
}
END_TEST

/* --- families --- */

/* `each` prefixes of each family; the last 10 of IPv6 have a last resort. */
static void big_service(unsigned each)
{
	char text[PREFIX_TEXT_MAX];

	service("cache");
	for (unsigned i = 0; i < each; i++) {
		(void)snprintf(text, sizeof(text), "198.18.%u.%u/32", i / 256, i % 256);
		add(text, 100, ANNOUNCE);
		(void)snprintf(text, sizeof(text), "2001:db8::%x/128", i + 1);
		add(text, 100, ANNOUNCE)->last_resort = i >= each - 10;
	}
}

static size_t count(const char *text, const char *word)
{
	size_t n = 0;

	while ((text = strstr(text, word))) {
		n++;
		text += strlen(word);
	}
	return n;
}

START_TEST (as_many_as_have_their_own) {
	_cleanup_free_ struct fragment_protocol *p = NULL;
	size_t n;

	big_service(NAMES_SINGLE_MAX / 2);
	p = list(&n);
	ck_assert_uint_eq(n, NAMES_SINGLE_MAX + 10);
	ck_assert(!p[0].family_protocol);
}
END_TEST

START_TEST (one_for_a_family) {
	static const char *const names[] = {
		"redshank:cache:v4", "redshank:cache:v6", "redshank:cache:v6:last"};
	_cleanup_free_ struct fragment_protocol *p = NULL;
	_cleanup_free_ char *text = NULL;
	size_t n;

	big_service(NAMES_SINGLE_MAX / 2 + 1);
	p = list(&n);
	text = render();
	ck_assert_uint_eq(n, ELEMENTSOF(names));
	for (size_t i = 0; i < n; i++) {
		ck_assert_str_eq(p[i].name, names[i]);
		ck_assert(p[i].family_protocol && p[i].up);
		ck_assert(p[i].last_resort == (i == 2));
		ck_assert_uint_eq(p[i].first_prefix, 0);
		ck_assert_uint_eq(p[i].n_prefixes, s.service.n_prefixes);
	}
	ck_assert_uint_eq(count(text, "\troute "), s.service.n_prefixes + 10);
	ck_assert_uint_eq(count(text, "bgp_community.add((65535,0))"), 10);
	ck_assert_uint_eq(count(text, "disabled;"), 0);
}
END_TEST

/* Only the wanted ones while some are wanted; all of them, disabled, when none is. */
START_TEST (part_of_a_family) {
	_cleanup_free_ char *all = NULL, *part = NULL, *none = NULL;
	uint64_t v4, v6, last;

	big_service(200);
	all = render();
	v4 = body_of(0);
	v6 = body_of(1);
	last = body_of(2);

	s.wanted[0] = s.wanted[2] = WITHDRAW; /* two of IPv4 */
	part = render();
	ck_assert_uint_eq(count(part, "\troute "), count(all, "\troute ") - 2);
	ck_assert_ptr_null(strstr(part, "route 198.18.0.0/32"));
	ck_assert_ptr_nonnull(strstr(part, "route 198.18.0.2/32"));
	ck_assert_uint_ne(body_of(0), v4);
	ck_assert_uint_eq(body_of(1), v6);
	ck_assert_uint_eq(body_of(2), last);

	want_all(WITHDRAW);
	none = render();
	ck_assert_uint_eq(count(none, "\tdisabled;\n"), 3);
	ck_assert_uint_eq(count(none, "\troute "), count(all, "\troute "));
	ck_assert_uint_eq(body_of(0), v4);
	ck_assert_uint_eq(body_of(1), v6);
	ck_assert_uint_eq(body_of(2), last);
}
END_TEST

START_TEST (demoted_family) {
	_cleanup_free_ struct fragment_protocol *p = NULL;
	size_t n;

	big_service(200);
	want_all(DEMOTE);
	p = list(&n);
	ck_assert(!p[0].up && !p[1].up && p[2].up);
}
END_TEST

/* --- BIRD reads it --- */

static char folder[64];

/* `bird -p` on bird.conf with the shipped template and this fragment: its exit status. */
static int bird_parses(const char *text, size_t n)
{
	char path[128];
	char *const arguments[] = {(char *)"bird", (char *)"-p", (char *)"-c", path, NULL};
	posix_spawn_file_actions_t actions;
	int status;
	pid_t pid;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/bird.conf", folder);
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	(void)fprintf(f,
		"router id 198.51.100.1;\ninclude \"%s/../bird-templates/redshank.conf\";\n",
		getenv("REDSHANK_TESTS"));
	ck_assert_uint_eq(fwrite(text, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(posix_spawn_file_actions_init(&actions), 0);
	for (int fd = 1; fd <= 2; fd++)
		ck_assert_int_eq(
			posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0),
			0);
	ck_assert_int_eq(posix_spawnp(&pid, "bird", &actions, NULL, arguments, environ), 0);
	(void)posix_spawn_file_actions_destroy(&actions);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	(void)unlink(path);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void three_prefixes(void)
{
	static struct config_community community[] = {{{64501, 53, 1}}};
	struct config_prefix *c;

	service("dns");
	add("192.0.2.53/32", 100, ANNOUNCE);
	c = add("2001:db8::53/128", 100, ANNOUNCE);
	c->last_resort = true;
	c->communities = c->large_communities = community;
	c->n_communities = c->n_large_communities = 1;
	add("198.18.0.0/24", 65535, WITHDRAW)->prepend = 3;
}

START_TEST (bird_reads_it) {
	static const enum prefix_wanted all[] = {ANNOUNCE, DEMOTE, WITHDRAW};
	_cleanup_free_ char *text = NULL;

	for (size_t i = 0; i < ELEMENTSOF(all); i++) {
		three_prefixes();
		want_all(all[i]);
		free(text);
		text = render();
		ck_assert_int_eq(bird_parses(text, strlen(text)), 0);
		big_service(150);
		want_all(all[i]);
		free(text);
		text = render();
		ck_assert_int_eq(bird_parses(text, strlen(text)), 0);
	}
	ck_assert_int_ne(bird_parses("nonsense;\n", 10), 0);
}
END_TEST

/*
 * Cut at every byte. What BIRD takes ends exactly behind the head comment or a protocol (and its
 * newline): the first protocols whole and no other text, so never other routes or attributes.
 */
START_TEST (cut_anywhere) {
	_cleanup_free_ char *text = NULL;
	size_t n, taken = 0, whole = 0;

	three_prefixes();
	text = render();
	n = strlen(text);
	for (size_t cut = 0; cut <= n; cut++) {
		bool between = cut == 0 || (cut >= 2 && strncmp(text + cut - 2, "*/", 2) == 0) ||
			       (cut >= 2 && strncmp(text + cut - 2, "\n}", 2) == 0) ||
			       (cut >= 3 && strncmp(text + cut - 3, "\n}\n", 3) == 0) ||
			       (cut >= 3 && strncmp(text + cut - 3, "*/\n", 3) == 0);
		bool parsed = bird_parses(text, cut) == 0;

		ck_assert_msg(parsed == between, "cut at %zu of %zu: %s", cut, n,
			parsed ? "taken" : "refused");
		taken += parsed;
		whole += parsed && cut + 1 >= n;
	}
	printf("%zu of %zu cuts are taken, %zu of them with all protocols\n", taken, n + 1, whole);
	ck_assert_uint_eq(taken, 3 + 4 * 2);
	ck_assert_uint_eq(whole, 2);
}
END_TEST

/* --- files --- */

static int folder_fd;

static void setup(void)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/redshank-fragment-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(fragment_open_folder(folder, &folder_fd, NULL), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(rmdir(folder), 0); /* every test leaves it empty */
	(void)close(folder_fd);
}

/* The names in the folder, sorted, each followed by a blank. */
static const char *names_in_folder(void)
{
	static char names[1024];
	struct dirent **entries;
	int n = scandir(folder, &entries, NULL, alphasort);

	ck_assert_int_ge(n, 0);
	names[0] = '\0';
	for (int i = 0; i < n; i++) {
		if (strcmp(entries[i]->d_name, ".") != 0 && strcmp(entries[i]->d_name, "..") != 0) {
			strcat(names, entries[i]->d_name);
			strcat(names, " ");
		}
		free(entries[i]);
	}
	free(entries);
	return names;
}

static void assert_content(const char *text)
{
	_cleanup_buffer_ struct buffer content = {0};

	buffer_init(&content, FRAGMENT_TEXT_MAX);
	ck_assert_int_eq(buffer_append_string(&content, "before "), 0);
	ck_assert_int_eq(fragment_read(folder_fd, "dns", &content), 0);
	ck_assert_str_eq(buffer_string(&content) + strlen("before "), text);
}

START_TEST (open_folder) {
	struct error error;
	char path[128];
	int fd = -7;

	ck_assert(fcntl(folder_fd, F_GETFD) & FD_CLOEXEC);
	(void)snprintf(path, sizeof(path), "%s/none", folder);
	ck_assert_int_eq(fragment_open_folder(path, &fd, &error), -ENOENT);
	ck_assert_ptr_nonnull(strstr(error.text, path));
	ck_assert_ptr_nonnull(strstr(error.text, "systemd-tmpfiles --create"));
	ck_assert_int_eq(fragment_open_folder("/dev/null", &fd, &error), -ENOTDIR);
	ck_assert_int_eq(fd, -7);
}
END_TEST

START_TEST (write_and_read) {
	char path[128];
	struct stat st;
	mode_t mask = umask(0077);

	ck_assert_int_eq(fragment_write(folder_fd, "dns", "one\n", 4), 0);
	ck_assert_str_eq(names_in_folder(), "dns.conf ");
	assert_content("one\n");
	(void)snprintf(path, sizeof(path), "%s/dns.conf", folder);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0640);
	(void)umask(mask);

	ck_assert_int_eq(fragment_write(folder_fd, "dns", "", 0), 0);
	assert_content("");
	ck_assert_int_eq(fragment_remove(folder_fd, "dns"), 0);
	ck_assert_int_eq(fragment_remove(folder_fd, "dns"), 0);
	ck_assert_str_eq(names_in_folder(), "");
}
END_TEST

START_TEST (withdraw) {
	ck_assert_int_eq(fragment_withdraw(folder_fd, "dns"), -ENOENT);
	ck_assert_int_eq(fragment_write(folder_fd, "dns", "up\n", 3), 0);
	ck_assert_int_eq(fragment_withdraw(folder_fd, "dns"), -ENOENT);
	assert_content("up\n");
	ck_assert_int_eq(fragment_prepare(folder_fd, "dns", "down\n", 5), 0);
	assert_content("up\n");
	ck_assert_str_eq(names_in_folder(), ".dns.conf.withdrawn dns.conf ");
	ck_assert_int_eq(fragment_withdraw(folder_fd, "dns"), 0);
	assert_content("down\n");
	ck_assert_str_eq(names_in_folder(), "dns.conf ");
	ck_assert_int_eq(fragment_prepare(folder_fd, "dns", "down\n", 5), 0);
	ck_assert_int_eq(fragment_remove(folder_fd, "dns"), 0);
	ck_assert_str_eq(names_in_folder(), "");
}
END_TEST

/* A file that cannot become longer than 2 bytes, as on a full disk. */
START_TEST (full_disk) {
	struct rlimit before, two;

	ck_assert_int_eq(fragment_write(folder_fd, "dns", "old\n", 4), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	two = (struct rlimit){2, before.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &two), 0);
	ck_assert_int_eq(fragment_write(folder_fd, "dns", "new text\n", 9), -EFBIG);
	ck_assert_int_eq(fragment_prepare(folder_fd, "dns", "new text\n", 9), -EFBIG);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_content("old\n");
	ck_assert_str_eq(names_in_folder(), "dns.conf ");
	ck_assert_int_eq(fragment_remove(folder_fd, "dns"), 0);
}
END_TEST

START_TEST (rename_fails) {
	ck_assert_int_eq(mkdirat(folder_fd, "dns.conf", 0755), 0);
	ck_assert_int_eq(fragment_write(folder_fd, "dns", "x\n", 2), -EISDIR);
	ck_assert_str_eq(names_in_folder(), "dns.conf ");
	ck_assert_int_eq(unlinkat(folder_fd, "dns.conf", AT_REMOVEDIR), 0);
}
END_TEST

/* What a killed agent, or somebody else, left under the dot-file's name. */
START_TEST (stale_dot_file) {
	ck_assert_int_eq(symlinkat("/etc/passwd", folder_fd, ".dns.conf.new"), 0);
	ck_assert_int_eq(fragment_write(folder_fd, "dns", "x\n", 2), 0);
	assert_content("x\n");
	ck_assert_str_eq(names_in_folder(), "dns.conf ");
	/* Another name of a file: that file is not written. */
	ck_assert_int_eq(renameat(folder_fd, "dns.conf", folder_fd, "other"), 0);
	ck_assert_int_eq(linkat(folder_fd, "other", folder_fd, ".dns.conf.new", 0), 0);
	ck_assert_int_eq(linkat(folder_fd, "other", folder_fd, "dns.conf", 0), 0);
	ck_assert_int_eq(fragment_write(folder_fd, "dns", "longer\n", 7), 0);
	assert_content("longer\n");
	ck_assert_int_eq(renameat(folder_fd, "other", folder_fd, "dns.conf"), 0);
	assert_content("x\n");
	ck_assert_int_eq(fragment_remove(folder_fd, "dns"), 0);
}
END_TEST

static void assert_unreadable(int error)
{
	_cleanup_buffer_ struct buffer content = {0};

	buffer_init(&content, FRAGMENT_TEXT_MAX);
	ck_assert_int_eq(buffer_append_string(&content, "kept"), 0);
	ck_assert_int_eq(fragment_read(folder_fd, "dns", &content), error);
	ck_assert_uint_eq(content.length, strlen("kept"));
	ck_assert_str_eq(buffer_string(&content), "kept");
	(void)unlinkat(folder_fd, "dns.conf", 0);
}

START_TEST (unreadable) {
	int fd;

	assert_unreadable(-ENOENT);
	ck_assert_int_eq(mkfifoat(folder_fd, "dns.conf", 0644), 0);
	assert_unreadable(-EINVAL);
	ck_assert_int_eq(symlinkat("/etc/passwd", folder_fd, "dns.conf"), 0);
	assert_unreadable(-EINVAL);
	fd = openat(folder_fd, "dns.conf", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, FRAGMENT_TEXT_MAX + 1), 0);
	(void)close(fd);
	assert_unreadable(-E2BIG);
}
END_TEST

START_TEST (clean) {
	static const char *const others[] = {".dns.conf", ".dns.conf.swp", "..conf.new", ".other",
		"dns.conf", "dns.conf.new", ".d.s.conf.new"};
	static const char *const ours[] = {
		".dns.conf.new", ".dns.conf.withdrawn", ".dns-alt_2.conf.new"};
	_cleanup_free_ char *before = NULL;

	for (size_t i = 0; i < ELEMENTSOF(others); i++)
		(void)close(openat(folder_fd, others[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	before = strdup(names_in_folder());
	for (size_t i = 0; i < ELEMENTSOF(ours); i++)
		(void)close(openat(folder_fd, ours[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	ck_assert_str_ne(names_in_folder(), before);
	for (int round = 0; round < 2; round++) {
		ck_assert_int_eq(fragment_clean(folder_fd), 0);
		ck_assert_str_eq(names_in_folder(), before);
	}
	for (size_t i = 0; i < ELEMENTSOF(others); i++)
		ck_assert_int_eq(unlinkat(folder_fd, others[i], 0), 0);
}
END_TEST

/* --- */

/* As render(), outside of any test. */
static int print_fragment(char **ret)
{
	_cleanup_free_ struct fragment_protocol *protocols = NULL;
	struct buffer text;
	size_t n;
	int r;

	buffer_init(&text, FRAGMENT_TEXT_MAX);
	r = fragment_protocols(&s.service, s.wanted, &protocols, &n);
	if (r == 0)
		r = fragment_render(&s.service, s.wanted, protocols, n, &text);
	*ret = text.data;
	return r;
}

static int print(int argc, char **argv)
{
	_cleanup_free_ char *text = NULL;
	enum prefix_wanted wanted = WITHDRAW;

	if (argc < 4)
		return 2;
	if (strcmp(argv[2], "announce") == 0)
		wanted = ANNOUNCE;
	else if (strcmp(argv[2], "demote") == 0)
		wanted = DEMOTE;
	service(argv[3]);
	for (int i = 4; i < argc; i++) {
		struct config_prefix *c = &s.prefixes[s.service.n_prefixes];
		char *rest = strchr(argv[i], '=');

		if (!rest || s.service.n_prefixes == PREFIXES_MAX)
			return 2;
		*rest++ = '\0';
		if (prefix_parse(argv[i], &c->prefix, NULL) < 0)
			return 2;
		c->announced_weight = (uint32_t)strtoul(rest, &rest, 10);
		if (*rest == ',')
			c->prepend = (uint32_t)strtoul(rest + 1, &rest, 10);
		c->last_resort = strcmp(rest, ",last") == 0;
		s.wanted[s.service.n_prefixes++] = wanted;
	}
	if (print_fragment(&text) < 0)
		return 1;
	return fputs(text, stdout) < 0;
}

static void add_tests(TCase *tc)
{
	tcase_add_test(tc, one_prefix);
	tcase_add_test(tc, all_attributes);
	tcase_add_loop_test(tc, what_is_up, 0, ELEMENTSOF(ups));
	tcase_add_test(tc, no_prefixes);
	tcase_add_test(tc, body);
	tcase_add_test(tc, too_long);
	tcase_add_test(tc, shared_name);
	tcase_add_test(tc, as_many_as_have_their_own);
	tcase_add_test(tc, one_for_a_family);
	tcase_add_test(tc, part_of_a_family);
	tcase_add_test(tc, demoted_family);
	tcase_add_test(tc, bird_reads_it);
	tcase_add_test(tc, cut_anywhere);
	tcase_add_test(tc, open_folder);
	tcase_add_test(tc, write_and_read);
	tcase_add_test(tc, withdraw);
	tcase_add_test(tc, full_disk);
	tcase_add_test(tc, rename_fails);
	tcase_add_test(tc, stale_dot_file);
	tcase_add_test(tc, unreadable);
	tcase_add_test(tc, clean);
}

int main(int argc, char **argv)
{
	Suite *suite;
	TCase *tc;
	SRunner *runner;
	char search[4096];
	int failed;

	if (argc > 1 && strcmp(argv[1], "print") == 0)
		return print(argc, argv);
	(void)snprintf(search, sizeof(search), "%s:/usr/sbin", getenv("PATH"));
	(void)setenv("PATH", search, 1);
	suite = suite_create("bird-fragment");
	tc = tcase_create("fragment");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 50);
	add_tests(tc);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
