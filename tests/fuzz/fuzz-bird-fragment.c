/*
 * libFuzzer target of what is written for BIRD and for the dead man: the input is a configuration,
 * as of fuzz-config; each service's fragment is rendered with prefixes up and down.
 *
 * Besides what the sanitizers see: outside of braces a fragment holds nothing but its comment and
 * the heads of its protocols, whatever the configuration holds, all that is in quotes is a name of
 * ours, and braces match; the dead man's list has one line for each service and no other.
 */
#include <errno.h>
#include <stdio.h>

#include "agent/bird/deadman.h"
#include "agent/bird/fragment.h"
#include "agent/config/load.h"
#include "probes/probe.h"
#include "tests/fuzz/fuzz.h"

static void check_text(const char *text, const struct fragment_protocol *protocols, size_t n)
{
	size_t depth = 0, heads = 0;
	const char *head_end = strstr(text, "\n */\n");

	assert(strncmp(text, "/*\n", 3) == 0 && head_end);
	text = head_end + 5;
	for (const char *line = text, *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		assert(end);
		if (depth == 0) {
			char head[NAMES_MAX + 64];

			assert(heads < n);
			(void)snprintf(head, sizeof(head), "protocol static '%s' {",
				protocols[heads++].name);
			assert(strncmp(line, head, strlen(head)) == 0);
		}
		for (const char *c = line; c < end; c++) {
			assert((unsigned char)*c >= ' ' || *c == '\t');
			assert(*c != '}' || depth > 0);
			depth += *c == '{' ? 1 : 0;
			depth -= *c == '}' ? 1 : 0;
		}
	}
	assert(depth == 0 && heads == n);
}

static void render(const struct config_service *service, uint32_t hash)
{
	_cleanup_free_ enum prefix_wanted *wanted = NULL;
	struct fragment_protocol *protocols = NULL;
	_cleanup_buffer_ struct buffer out = {0};
	size_t n = 0;
	int r;

	wanted = calloc(service->n_prefixes + 1, sizeof(*wanted));
	assert(wanted);
	for (size_t i = 0; i < service->n_prefixes; i++)
		wanted[i] = (enum prefix_wanted)((hash >> (i % 16)) % 3);
	r = fragment_protocols(service, wanted, &protocols, &n);
	assert(r == 0 || r == -EEXIST);
	if (r == 0) {
		buffer_init(&out, FRAGMENT_TEXT_MAX);
		assert(fragment_render(service, wanted, protocols, n, &out) == 0);
		check_text(buffer_string(&out), protocols, n);
	}
	free(protocols);
}

static void render_list(const struct config *config)
{
	_cleanup_buffer_ struct buffer out = {0};
	size_t n = 0;
	int r;

	buffer_init(&out, 1U << 24);
	r = deadman_render(config, config->bird.socket, NULL, 0, &out);
	assert(r == 0 || r == -EINVAL);
	if (r < 0)
		return;
	for (const char *c = buffer_string(&out); *c; c++)
		n += *c == '\n';
	assert(n == 2 + 2 * config->n_services);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = fuzz_copy(data, size);
	_cleanup_config_ struct config *config = NULL;
	_cleanup_sources_ struct sources sources = {0};
	struct problems problems;
	int r;

	problems_init(&problems);
	sources_init(&sources);
	r = sources_add_text(&sources, "c", text, size, &problems);
	if (r == 0)
		r = load_sources(&sources, probe_types, &config, &problems);
	problems_done(&problems);
	if (r < 0)
		return 0;
	for (size_t i = 0; i < config->n_services; i++)
		render(&config->services[i], fuzz_hash(data, size));
	render_list(config);
	return 0;
}
