/* Measuring one signal: what the kernel or a service says, as a value in the unit of its limit. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/load/load_private.h"
#include "agent/load/proc.h"

#define PERCENT_MILLI 100000 /* all, as thousandths of a per cent */
#define SECOND_US 1000000
#define SYS_PATH_MAX 80

static void set_value(struct load_gauge *g, uint64_t value_milli)
{
	char what[LOAD_NAME_MAX + 8];

	(void)snprintf(what, sizeof(what), "signal %s", g->name);
	load_trouble_clear(&g->trouble, what);
	g->failed = 0;
	g->valid = true;
	g->value_milli = value_milli;
	g->bp = meter_fraction_bp(value_milli, (uint64_t)g->config->limit * 1000);
}

static void set_error(struct load_gauge *g, const char *text)
{
	char what[LOAD_NAME_MAX + 8];

	(void)snprintf(what, sizeof(what), "signal %s", g->name);
	g->valid = false;
	load_trouble_set(&g->trouble, what, text);
}

/* The counters are gone: they begin anew. */
static void lose(struct load_gauge *g, const char *text)
{
	for (size_t i = 0; i < ELEMENTSOF(g->meters); i++)
		meter_lose(&g->meters[i]);
	set_error(g, text);
}

/* Nothing is wrong: there is one sample, and a rate needs two. */
static void set_begun(struct load_gauge *g)
{
	g->valid = false;
	g->failed = 0;
	g->trouble.text[0] = '\0';
}

/* False, and the signal is out, where it cannot be read. */
static bool read_file(struct load_gauge *g, const char *path, bool cut)
{
	struct error error = {{0}};

	if (proc_read(path, g->load->text, cut ? 512 : LOAD_FILE_MAX, cut, &error) >= 0)
		return true;
	lose(g, error.text);
	return false;
}

static void unknown_form(struct load_gauge *g, const char *path)
{
	char text[LOAD_TEXT_MAX];

	(void)snprintf(text, sizeof(text), "%s: not in a form that is known here", path);
	lose(g, text);
}

/* A counter of the kernel: what counts is how fast it grows. */
static void count_one(struct load_gauge *g, uint64_t counter)
{
	uint64_t rate;

	meter_add(&g->meters[0], counter, clock_monotime().us);
	if (meter_rate(&g->meters[0], 1000ULL * SECOND_US, 1, &rate))
		set_value(g, rate);
	else
		set_begun(g);
}

static void measure_cpu(struct load_gauge *g)
{
	static const char path[] = "/proc/stat";
	struct proc_ticks ticks;
	uint64_t busy;

	if (!read_file(g, path, true))
		return;
	if (!proc_parse_stat(g->load->text, &ticks)) {
		unknown_form(g, path);
		return;
	}
	meter_add(&g->meters[0], ticks.busy, ticks.all);
	if (meter_rate(&g->meters[0], PERCENT_MILLI, 1, &busy))
		set_value(g, busy);
	else
		set_begun(g);
}

static void measure_pressure(struct load_gauge *g)
{
	static const char *const paths[] = {[CONFIG_RESOURCE_CPU] = "/proc/pressure/cpu",
		[CONFIG_RESOURCE_MEMORY] = "/proc/pressure/memory",
		[CONFIG_RESOURCE_IO] = "/proc/pressure/io"};
	const char *path = paths[g->config->resource];
	uint64_t value;

	if (!read_file(g, path, false))
		return;
	if (proc_parse_pressure(g->load->text, &value))
		set_value(g, value);
	else
		unknown_form(g, path);
}

static void measure_softnet(struct load_gauge *g)
{
	static const char path[] = "/proc/net/softnet_stat";
	uint64_t dropped;

	if (!read_file(g, path, false))
		return;
	if (proc_parse_softnet(g->load->text, &dropped))
		count_one(g, dropped);
	else
		unknown_form(g, path);
}

/* ListenDrops has those of ListenOverflows in it: tcp_v4_syn_recv_sock(), net/ipv4/tcp_ipv4.c. */
static void measure_listen(struct load_gauge *g)
{
	static const char path[] = "/proc/net/netstat";
	uint64_t dropped;

	if (!read_file(g, path, false))
		return;
	if (proc_parse_netstat(g->load->text, "TcpExt", "ListenDrops", &dropped))
		count_one(g, dropped);
	else
		unknown_form(g, path);
}

/* A file that holds one number. False where it is not known, in `error` why. */
static bool read_number(struct load_gauge *g, const char *path, uint64_t *ret, struct error *error)
{
	if (proc_read(path, g->load->text, LOAD_FILE_MAX, false, error) < 0)
		return false;
	if (proc_parse_number(g->load->text, ret))
		return true;
	(void)error_set(error, EBADMSG, "%s: no number", path);
	return false;
}

static void measure_conntrack(struct load_gauge *g)
{
	struct error error = {{0}};
	uint64_t count, most;

	if (!read_number(g, "/proc/sys/net/netfilter/nf_conntrack_count", &count, &error) ||
		!read_number(g, "/proc/sys/net/netfilter/nf_conntrack_max", &most, &error))
		set_error(g, error.text);
	else if (most == 0)
		set_error(g, "the table has no limit");
	else
		set_value(g, meter_scaled(count, PERCENT_MILLI, most));
}

/* Mbit/s; false, and the signal is out, where nobody knows. */
static bool interface_speed(struct load_gauge *g, uint64_t *ret)
{
	char path[SYS_PATH_MAX], text[LOAD_TEXT_MAX];
	struct error error = {{0}};

	*ret = (uint64_t)g->config->speed;
	if (*ret > 0)
		return true;
	(void)snprintf(path, sizeof(path), "/sys/class/net/%s/speed", g->config->interface);
	if (read_number(g, path, ret, &error) && *ret > 0 && *ret < UINT32_MAX)
		return true;
	(void)snprintf(text, sizeof(text),
		"the speed of %s is not known (its link is down, or `speed` should say it)",
		g->config->interface);
	lose(g, text);
	return false;
}

static void measure_interface(struct load_gauge *g)
{
	uint64_t bytes[ELEMENTSOF(g->meters)], speed, bits, busier = 0;
	char text[LOAD_TEXT_MAX];
	bool known = true;

	if (!read_file(g, "/proc/net/dev", false))
		return;
	if (!proc_parse_dev(g->load->text, g->config->interface, &bytes[0], &bytes[1])) {
		(void)snprintf(
			text, sizeof(text), "there is no interface %s", g->config->interface);
		lose(g, text);
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(bytes); i++)
		meter_add(&g->meters[i], bytes[i], clock_monotime().us);
	if (!interface_speed(g, &speed))
		return;
	for (size_t i = 0; i < ELEMENTSOF(bytes); i++) {
		known = known && meter_rate(&g->meters[i], 8ULL * SECOND_US, 1, &bits);
		if (known && bits > busier)
			busier = bits;
	}
	if (known)
		set_value(g, meter_scaled(busier, PERCENT_MILLI, speed * 1000000));
	else
		set_begun(g);
}

/* ---- numbers of a service ---- */

static void fail_number(struct load_gauge *g, const char *text)
{
	if (++g->failed < LOAD_PATIENCE && g->valid) {
		(void)snprintf(g->trouble.text, sizeof(g->trouble.text),
			"its last value counts on: %.120s", text);
		return;
	}
	lose(g, text);
}

static void on_text(void *userdata, const char *text, size_t length, const char *why)
{
	struct load_gauge *g = userdata;
	struct number_text t = {0};
	struct error error = {{0}};
	uint64_t milli;
	int r;

	if (!text) {
		fail_number(g, why);
		return;
	}
	r = number_open(&t, (enum config_format)g->config->source.format, text, length, &error);
	if (r >= 0)
		r = number_find(&t, g->config->key, &milli, &error);
	number_close(&t);
	if (r < 0) {
		fail_number(g, error.text);
	} else if (!g->config->source.rate) {
		set_value(g, milli);
	} else {
		meter_add(&g->meters[0], milli, clock_monotime().us);
		if (meter_rate(&g->meters[0], SECOND_US, 1, &milli))
			set_value(g, milli);
		else
			set_begun(g);
	}
}

/* ---- all ---- */

void load_measure(struct load_gauge *g)
{
	switch ((enum config_signal_type)g->config->type) {
	case CONFIG_SIGNAL_CPU:
		measure_cpu(g);
		return;
	case CONFIG_SIGNAL_PRESSURE:
		measure_pressure(g);
		return;
	case CONFIG_SIGNAL_INTERFACE:
		measure_interface(g);
		return;
	case CONFIG_SIGNAL_SOFTNET:
		measure_softnet(g);
		return;
	case CONFIG_SIGNAL_LISTEN:
		measure_listen(g);
		return;
	case CONFIG_SIGNAL_CONNTRACK:
		measure_conntrack(g);
		return;
	case CONFIG_SIGNAL_FILE:
	case CONFIG_SIGNAL_COMMAND:
	case CONFIG_SIGNAL_URL:
		source_fetch(g->source);
		return;
	}
	abort();
}

int load_gauge_open(struct load_gauge *g)
{
	switch ((enum config_signal_type)g->config->type) {
	case CONFIG_SIGNAL_CPU:
	case CONFIG_SIGNAL_PRESSURE:
	case CONFIG_SIGNAL_INTERFACE:
	case CONFIG_SIGNAL_SOFTNET:
	case CONFIG_SIGNAL_LISTEN:
	case CONFIG_SIGNAL_CONNTRACK:
		return 0;
	case CONFIG_SIGNAL_FILE:
	case CONFIG_SIGNAL_COMMAND:
	case CONFIG_SIGNAL_URL:
		return source_new(&g->source, g->load->event, &g->config->source, on_text, g);
	}
	abort();
}

void load_gauge_done(struct load_gauge *g)
{
	source_free(g->source);
	free(g->identity);
}
