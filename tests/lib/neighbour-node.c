/*
 * A node that is nothing but its neighbours: the module as the agent runs it, with decisions simple
 * enough for a test to foresee. usage: neighbour-node CONFIGURATION
 *
 * It reports a capacity of 1,000, the room that it was told and as many prefixes; it grants what
 * fits into the room. On stdout, a line for each event: members N NAME...               now, and
 * whenever they change report NAME SPARE AGE_US        what came, and how old it was when it did
 *   asked NAME PREFIX SHARE ANSWER  somebody asked for a grant (or gave it back: "back")
 *   answered NAME ANSWER LEASE_MS   what came of a call
 * Commands on stdin, a line each; those that ask are answered with a line that begins with the
 * command's own word:
 *   spare N | prefixes N | found ADDRESS... | call NAME PREFIX SHARE REQUEST | back NAME PREFIX
 * SHARE REQUEST | reload view NAME: view NAME STATE REPORTS FAILURES ERROR counts:    counts
 * connections=N turned_away=N open=N cpu_us=N replaced=N REFUSAL=N... requests=N,... error=TEXT
 * late:      late US, by how much a timer of one millisecond was late at worst since "late" or the
 * start: what the loop was held by It ends at the end of stdin.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <systemd/sd-event.h>

#include "agent/base/clock.h"
#include "agent/neighbour/neighbour.h"
#include "agent/system/log.h"
#include "probes/probe.h"

#define TICK_US 1000
#define PUBLISH_US 250000
#define PREFIXES_MAX 250

static struct {
	sd_event *event;
	const char *path;
	struct config *config;
	struct neighbours *neighbours;
	sd_event_source *ticker;
	struct monotime tick;
	uint64_t late_us, cpu_us, busy_us, spare;
	struct message_prefix prefixes[PREFIXES_MAX];
	size_t n_prefixes;
} node;

static void publish(void)
{
	struct message_report r = {.capacity = 1000,
		.load_known = true,
		.load = 500,
		.utilisation_known = true,
		.utilisation_bp = 5000,
		.willing = true,
		.spare = node.spare,
		.prefixes = node.prefixes,
		.n_prefixes = node.n_prefixes};

	(void)neighbours_publish(node.neighbours, &r);
}

static void on_members(void *userdata)
{
	printf("members %zu", neighbours_count(node.neighbours));
	for (size_t i = 0; i < neighbours_count(node.neighbours); i++)
		printf(" %s", neighbours_name(node.neighbours, i));
	printf("\n");
}

static void on_report(
	void *userdata, size_t member, const struct message_report *report, struct monotime asked)
{
	printf("report %s %" PRIu64 " %" PRIu64 "\n", neighbours_name(node.neighbours, member),
		report->spare, monotime_since_us(asked, clock_monotime()));
}

static struct shed_answer on_grant(
	void *userdata, size_t member, const struct message_grant *grant, bool give_back)
{
	struct shed_answer answer = {
		.refused = grant->share <= node.spare ? SHED_REFUSAL_NONE : SHED_REFUSAL_NO_ROOM,
		.lease_ms = 10000};
	char prefix[PREFIX_TEXT_MAX];

	printf("asked %s %s %" PRIu64 " %s\n", neighbours_name(node.neighbours, member),
		prefix_format(&grant->prefix, prefix), grant->share,
		give_back ? "back" : shed_refusal_name(answer.refused));
	return answer;
}

static void on_answered(
	void *userdata, const struct shed_call *call, const struct shed_answer *answer)
{
	printf("answered %s %s %" PRIu64 "\n", neighbours_name(node.neighbours, call->neighbour),
		shed_refusal_name(answer->refused), answer->lease_ms);
}

static void found(char *text)
{
	struct address list[8];
	size_t n = 0;

	for (char *word = strtok(text, " "); word && n < ELEMENTSOF(list); word = strtok(NULL, " "))
		if (address_parse(word, &list[n], NULL) == 0)
			n++;
	neighbours_found(node.neighbours, list, n);
}

static size_t member_of(const char *name)
{
	for (size_t i = 0; i < neighbours_count(node.neighbours); i++)
		if (strcmp(neighbours_name(node.neighbours, i), name) == 0)
			return i;
	return SIZE_MAX;
}

static void call(const char *arguments, bool give_back)
{
	struct shed_call c = {.give_back = give_back};
	char name[254], text[PREFIX_TEXT_MAX];
	struct prefix prefix;

	if (sscanf(arguments, "%253s %49s %" SCNu64 " %" SCNu64, name, text, &c.share,
		    &c.request) != 4 ||
		prefix_parse(text, &prefix, NULL) < 0)
		return;
	c.neighbour = member_of(name);
	c.sent = clock_monotime();
	neighbours_call(node.neighbours, &c, &prefix);
}

static void view(const char *name)
{
	struct neighbours_view v;
	size_t member = member_of(name);

	if (member == SIZE_MAX) {
		printf("view %s unknown\n", name);
		return;
	}
	neighbours_view(node.neighbours, member, clock_monotime(), &v);
	printf("view %s %s %" PRIu64 " %" PRIu64 " %s\n", v.name, neighbours_state_name(v.state),
		v.n_reports, v.n_failures, v.error);
}

static void counts(void)
{
	struct neighbours_totals t;

	neighbours_totals(node.neighbours, &t);
	printf("counts connections=%" PRIu64 " turned_away=%" PRIu64 " open=%u cpu_us=%" PRIu64
	       " replaced=%" PRIu64,
		t.server.connections, t.server.turned_away, t.server.open, t.thread_cpu_us,
		t.n_replaced);
	for (unsigned i = 0; i < PINS_REFUSALS; i++)
		printf(" %s=%" PRIu64, pins_refusal_name((enum pins_refusal)i),
			t.server.refused[i]);
	printf(" requests=");
	for (unsigned i = 0; i < SERVER_REQUESTS; i++)
		printf("%s%" PRIu64, i ? "," : "", t.server.requests[i]);
	printf(" error=%s\n", t.error);
}

static struct config *load(void)
{
	struct problems problems;
	struct config *config = NULL;

	problems_init(&problems);
	if (config_load(node.path, probe_types, &config, &problems) < 0)
		for (size_t i = 0; i < problems.n; i++)
			(void)fprintf(stderr, "neighbour-node: %s\n", problems.items[i].text);
	problems_done(&problems);
	return config;
}

static void reload(void)
{
	struct config *old = node.config, *config = load();

	if (!config)
		return;
	node.config = config;
	if (neighbours_configure(node.neighbours, config->neighbours, config->node))
		on_members(NULL);
	config_free(old);
}

static void prefixes(size_t n)
{
	node.n_prefixes = n < PREFIXES_MAX ? n : PREFIXES_MAX;
	for (size_t i = 0; i < node.n_prefixes; i++)
		node.prefixes[i] = (struct message_prefix){
			.prefix = {.address = {.family = ADDRESS_FAMILY_IPV4,
					   .bytes = {192, 0, 2, (uint8_t)i}},
				.length = 32},
			.state = SHED_STATE_HEALTHY,
			.weight_known = true,
			.weight = 100,
			.load_known = true,
			.load = i};
	publish();
}

static uint64_t cpu_us(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void watch(void)
{
	node.late_us = node.busy_us = 0;
	node.cpu_us = cpu_us();
	node.tick = clock_monotime();
	(void)sd_event_source_set_time(node.ticker, node.tick.us + TICK_US);
	(void)sd_event_source_set_enabled(node.ticker, SD_EVENT_ONESHOT);
}

static void late(void)
{
	printf("late %" PRIu64 " %" PRIu64 "\n", node.late_us, node.busy_us);
	(void)sd_event_source_set_enabled(node.ticker, SD_EVENT_OFF);
}

static void command(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, "spare ", 6) == 0) {
		node.spare = strtoull(line + 6, NULL, 10);
		publish();
	} else if (strncmp(line, "prefixes ", 9) == 0) {
		prefixes(strtoul(line + 9, NULL, 10));
	} else if (strncmp(line, "found ", 6) == 0) {
		found(line + 6);
	} else if (strncmp(line, "call ", 5) == 0) {
		call(line + 5, false);
	} else if (strncmp(line, "back ", 5) == 0) {
		call(line + 5, true);
	} else if (strncmp(line, "view ", 5) == 0) {
		view(line + 5);
	} else if (strcmp(line, "counts") == 0) {
		counts();
	} else if (strcmp(line, "reload") == 0) {
		reload();
	} else if (strcmp(line, "watch") == 0) {
		watch();
	} else if (strcmp(line, "late") == 0) {
		late();
	}
}

static int on_stdin(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	char line[512];
	size_t n = 0;
	ssize_t r;

	/* A byte at a time: no line is left in a buffer of stdio's. */
	while ((r = read(fd, line + n, 1)) == 1 && line[n] != '\n' && n < sizeof(line) - 2)
		n++;
	if (r <= 0)
		return sd_event_exit(node.event, 0);
	line[n] = '\0';
	command(line);
	return 0;
}

static int on_tick(sd_event_source *source, uint64_t us, void *userdata)
{
	struct monotime now = clock_monotime();
	uint64_t late_us = monotime_since_us(node.tick, now), cpu = cpu_us();

	late_us = late_us > TICK_US ? late_us - TICK_US : 0;
	if (late_us > node.late_us)
		node.late_us = late_us;
	if (cpu - node.cpu_us > node.busy_us)
		node.busy_us = cpu - node.cpu_us;
	node.cpu_us = cpu;
	node.tick = now;
	(void)sd_event_source_set_time(source, now.us + TICK_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_publish(sd_event_source *source, uint64_t us, void *userdata)
{
	publish();
	(void)sd_event_source_set_time(source, clock_monotime().us + PUBLISH_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int run(void)
{
	const struct neighbours_ops ops = {.members = on_members,
		.report = on_report,
		.grant = on_grant,
		.answered = on_answered};
	struct error error = {""};
	int r = sd_event_new(&node.event);

	if (r < 0)
		return r;
	r = neighbours_new(&node.neighbours, node.event, node.config->neighbours, node.config->node,
		&ops, &error);
	if (r < 0) {
		(void)fprintf(stderr, "neighbour-node: %s\n", error.text);
		return r;
	}
	r = sd_event_add_io(node.event, NULL, STDIN_FILENO, EPOLLIN, on_stdin, NULL);
	if (r >= 0)
		r = sd_event_add_time(
			node.event, &node.ticker, CLOCK_BOOTTIME, UINT64_MAX, 1, on_tick, NULL);
	if (r >= 0)
		r = sd_event_source_set_enabled(node.ticker, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time(node.event, NULL, CLOCK_BOOTTIME, 0, 1000, on_publish, NULL);
	if (r < 0)
		return r;
	on_members(NULL);
	return sd_event_loop(node.event);
}

int main(int argc, char **argv)
{
	int r;

	if (argc != 2)
		return 2;
	log_init(LOG_INFO, true);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	node.path = argv[1];
	node.spare = 100;
	node.config = load();
	if (!node.config || !node.config->neighbours)
		return 1;
	r = run();
	neighbours_free(node.neighbours);
	sd_event_source_unref(node.ticker);
	sd_event_unref(node.event);
	config_free(node.config);
	return r < 0 ? 1 : 0;
}
