/*
 * libFuzzer target of the converters of `redshankctl import`. The first byte says whose files the
 * rest are: up to four, with the byte 0x1e (record separator) between them.
 *
 * Besides what the sanitizers see: a refusal says why; whatever is told is fit for a terminal; and
 * what comes out loads as a configuration.
 */
#include <assert.h>
#include <string.h>

#include "agent/config/load.h"
#include "agent/ctl/import.h"
#include "probes/probe.h"

#define SEPARATOR 0x1e
#define FILES_MAX 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_load(const char *text)
{
	_cleanup_sources_ struct sources sources = {0};
	_cleanup_config_ struct config *config = NULL;
	struct problems problems;
	int r;

	problems_init(&problems);
	sources_init(&sources);
	r = sources_add_text(&sources, "out", text, strlen(text), &problems);
	if (r == 0)
		r = load_sources(&sources, probe_types, &config, &problems);
	if (r < 0 && problems.n > 0)
		(void)fprintf(stderr, "%s\n%s\n", problems.items[0].text, text);
	assert(r == 0 && problems.n_errors == 0);
	problems_done(&problems);
}

static size_t split(const char *text, size_t size, struct import_text *ret)
{
	static const char *const names[FILES_MAX] = {"a.conf", "b.conf", "c.conf", "d.conf"};
	size_t n = 0;

	for (const char *end; n < FILES_MAX; text = end + 1) {
		end = memchr(text, SEPARATOR, size);
		ret[n] = (struct import_text){names[n], text, end ? (size_t)(end - text) : size};
		n++;
		if (!end)
			break;
		size -= (size_t)(end - text) + 1;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct import_text texts[FILES_MAX];
	_cleanup_free_ char *told = NULL, *text = NULL;
	size_t n_told = 0, n;
	json_t *configuration;
	FILE *err;

	if (size < 1)
		return 0;
	/* Exactly as long as the input, so that a step behind it is seen. */
	text = malloc(size);
	err = open_memstream(&told, &n_told);
	assert(text && err);
	memcpy(text, data + 1, size - 1);
	n = split(text, size - 1, texts);
	configuration = import_convert((enum import_peer)(data[0] % 3), texts, n, err);
	assert(fclose(err) == 0);
	for (const char *c = told; *c; c++)
		assert(*c == '\n' || ((unsigned char)*c >= ' ' && *c != 0x7f));
	assert(configuration || strstr(told, "error: "));
	if (configuration) {
		_cleanup_free_ char *out = json_dumps(configuration, JSON_COMPACT);

		assert(out);
		must_load(out);
	}
	json_decref(configuration);
	return 0;
}
