/*
 * libFuzzer target of the configuration's loader: up to eight files in one input, with the byte
 * 0x1e (record separator, which JSON refuses anyway) between them.
 *
 * Besides what the sanitizers see: a refusal has its reasons, in lines that a terminal can show;
 * and what was accepted prints, loads again without an error, and prints the same bytes.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "agent/config/load.h"
#include "tests/unit/config-types.h"

#define SEPARATOR 0x1e
#define FILES_MAX 8

static const struct probe_type *const types[] = {
	&kinds_type, &probe_type_process, &probe_type_tcp, &probe_type_exec, NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_problems(const struct problems *problems)
{
	for (size_t i = 0; i < problems->n; i++)
		for (const char *c = problems->items[i].text; *c; c++)
			assert((unsigned char)*c >= 0x20 && *c != 0x7f);
}

static int load_files(const char *text, size_t size, struct config **ret)
{
	static const char *const names[FILES_MAX] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	_cleanup_sources_ struct sources sources = {0};
	struct problems problems;
	size_t length;
	int r = 0;

	problems_init(&problems);
	sources_init(&sources);
	for (size_t i = 0; i < FILES_MAX && r == 0; i++) {
		const char *end = memchr(text, SEPARATOR, size);

		length = end ? (size_t)(end - text) : size;
		r = sources_add_text(&sources, names[i], text, length, &problems);
		if (!end)
			break;
		text += length + 1;
		size -= length + 1;
	}
	if (r == 0)
		r = load_sources(&sources, types, ret, &problems);
	assert(r == 0 || (r == -EINVAL && problems.n_errors > 0));
	assert(r < 0 || problems.n_errors == 0);
	check_problems(&problems);
	problems_done(&problems);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_config_ struct config *config = NULL, *again = NULL;
	_cleanup_free_ char *printed = NULL, *printed_again = NULL;
	/* Exactly as long as the input, so that a step behind it is seen. */
	_cleanup_free_ char *text = malloc(size ? size : 1);

	assert(text);
	if (size)
		memcpy(text, data, size);
	if (load_files(text, size, &config) < 0)
		return 0;
	printed = config_effective(config);
	assert(printed);
	assert(load_files(printed, strlen(printed), &again) == 0);
	printed_again = config_effective(again);
	assert(printed_again && strcmp(printed, printed_again) == 0);
	return 0;
}
