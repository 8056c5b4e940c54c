/*
 * libFuzzer target of what redshankctl shows of a status or an explain document, which is whatever
 * listens at the socket's path sends: the status, its plug-in line, top's screen, an explanation.
 * The size of the screen and the colours are a hash of the input, so that real documents are the
 * corpus as they are.
 *
 * Besides what the sanitizers see: nothing but our own colours steers the terminal, and top's
 * screen fits.
 */
#include "agent/ctl/explain.h"
#include "agent/ctl/top_draw.h"
#include "tests/fuzz/fuzz.h"

#define NOW_MS 1796008368000LL

/* "\033[" digits and semicolons "m" are our own; takes them out. */
static void take_colours(char *text)
{
	char *to = text;

	for (const char *from = text; *from;) {
		if (from[0] == '\033' && from[1] == '[' &&
			from[2 + strspn(from + 2, "0123456789;")] == 'm')
			from += strcspn(from, "m") + 1;
		else
			*to++ = *from++;
	}
	*to = '\0';
}

static void check_screen(char *text, const struct top_view *view)
{
	unsigned lines = 1;

	for (char *line = text, *end; line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		assert(text_columns(line) <= view->width);
		assert(lines++ <= view->height);
	}
}

static FILE *begin(char **text, size_t *n)
{
	FILE *f = open_memstream(text, n);

	assert(f);
	return f;
}

static void finish(char *text, size_t n, bool colours)
{
	assert(strlen(text) == n);
	if (colours)
		take_colours(text);
	fuzz_assert_printable(text, true);
}

static void draw(const json_t *document, uint32_t hash)
{
	struct top_view view = {.document = document,
		.error = hash & 2 ? "no agent" : NULL,
		.width = 1 + (hash >> 8) % 200,
		.height = 1 + (hash >> 16) % 60,
		.colours = hash & 1,
		.now_ms = NOW_MS};
	_cleanup_free_ char *text = NULL;
	size_t n = 0;
	FILE *f = begin(&text, &n);

	top_draw(f, &view);
	assert(fclose(f) == 0);
	finish(text, n, view.colours);
	check_screen(text, &view);
}

static void show(json_t *document, uint32_t hash)
{
	struct status_view view = {.colours = hash & 1, .terminal = hash & 2, .now = NOW_MS / 1000};
	_cleanup_free_ char *text = NULL;
	struct error error = {""};
	size_t n = 0;
	FILE *f = begin(&text, &n);
	int code;

	explain_print(f, document, &view);
	code = status_plugin(f, document);
	assert(code >= 0 && code <= 3);
	status_print(f, document, &view);
	if (status_select(document, hash & 4 ? "dns" : "192.0.2.53", &error) == 0)
		status_print(f, document, &view);
	else
		assert(error.text[0]);
	assert(fclose(f) == 0);
	finish(text, n, view.colours);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = fuzz_copy(data, size);
	uint32_t hash = fuzz_hash(data, size);
	struct error error = {""};
	json_t *document = status_parse(text, size, &error);

	if (!document) {
		assert(error.text[0]);
		return 0;
	}
	draw(document, hash);
	show(document, hash);
	json_decref(document);
	return 0;
}
