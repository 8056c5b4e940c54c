/*
 * Reads and edits a fragment's text as fragment.c wrote it, now or in an earlier version: which
 * protocols stand in it, which of them are disabled, which prefixes they hold. Used for what an
 * earlier agent left on disk, and to put back the last text that BIRD accepted: its bodies stay,
 * its `disabled;` lines become what is wanted now, for a dead service must not return with it.
 */
#include <errno.h>
#include <string.h>

#include "agent/bird/apply_state.h"

#define TEXT_HEAD "protocol static '"
#define TEXT_DISABLED "\tdisabled;\n"
#define TEXT_ROUTE "\troute "

/* FNV-1a, 64 bits. */
uint64_t apply_text_hash(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++) {
		h ^= (uint8_t)*text;
		h *= UINT64_C(0x100000001b3);
	}
	return h != 0 ? h : 1;
}

static const char *text_next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

static bool text_starts(const char *line, const char *with)
{
	return strncmp(line, with, strlen(with)) == 0;
}

/* The name in "protocol static 'NAME' {". */
static bool text_head(const char *line, char ret[NAMES_MAX])
{
	size_t n;

	if (!text_starts(line, TEXT_HEAD))
		return false;
	line += strlen(TEXT_HEAD);
	n = strcspn(line, "'\n");
	if (n == 0 || n >= NAMES_MAX || !text_starts(line + n, "' {\n"))
		return false;
	memcpy(ret, line, n);
	ret[n] = '\0';
	return names_is_ours(ret);
}

void apply_text_each(const char *text,
	void (*fn)(void *userdata, const char *name, const char *block), void *userdata)
{
	char name[NAMES_MAX];

	for (const char *line = text; *line; line = text_next_line(line))
		if (text_head(line, name))
			fn(userdata, name, text_next_line(line));
}

const char *apply_text_block(const char *text, const char *name)
{
	char found[NAMES_MAX];

	for (const char *line = text; *line; line = text_next_line(line))
		if (text_head(line, found) && strcmp(found, name) == 0)
			return text_next_line(line);
	return NULL;
}

bool apply_text_is_up(const char *block)
{
	return !text_starts(block, TEXT_DISABLED);
}

/* The prefix in "\troute PREFIX unreachable ...". */
static bool text_route(const char *line, struct prefix *ret)
{
	char text[PREFIX_TEXT_MAX];
	size_t n;

	if (!text_starts(line, TEXT_ROUTE))
		return false;
	line += strlen(TEXT_ROUTE);
	n = strcspn(line, " \n");
	if (n >= sizeof(text))
		return false;
	memcpy(text, line, n);
	text[n] = '\0';
	return prefix_parse(text, ret, NULL) == 0;
}

bool apply_text_holds(const char *block, const struct prefix *prefix)
{
	struct prefix p;

	for (const char *line = block; *line && *line != '}'; line = text_next_line(line))
		if (text_route(line, &p) && prefix_equal(&p, prefix))
			return true;
	return false;
}

int apply_text_prefixes(const char *block, struct prefix **ret, size_t *ret_n)
{
	_cleanup_free_ struct prefix *list = NULL;
	struct prefix p;
	size_t n = 0;

	for (const char *line = block; *line && *line != '}'; line = text_next_line(line))
		n += text_route(line, &p);
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	n = 0;
	for (const char *line = block; *line && *line != '}'; line = text_next_line(line))
		if (text_route(line, &p))
			list[n++] = p;
	*ret = TAKE_PTR(list);
	*ret_n = n;
	return 0;
}

bool apply_text_is_ours(const char *text, const char *service)
{
	char start[NAMES_SERVICE_MAX + sizeof("redshank::")], name[NAMES_MAX];
	bool any = false;

	(void)snprintf(start, sizeof(start), "redshank:%s:", service);
	for (const char *line = text; *line; line = text_next_line(line)) {
		if (!text_starts(line, "protocol "))
			continue;
		if (!text_head(line, name) || !text_starts(name, start))
			return false;
		any = true;
	}
	return any;
}

int apply_text_edit(const char *text, bool (*is_up)(void *userdata, const char *name),
	void *userdata, struct buffer *ret)
{
	char name[NAMES_MAX];
	int r = 0;

	for (const char *line = text, *next; r == 0 && *line; line = next) {
		bool head = text_head(line, name);

		next = text_next_line(line);
		r = buffer_append(ret, line, (size_t)(next - line));
		if (!head)
			continue;
		if (text_starts(next, TEXT_DISABLED))
			next = text_next_line(next);
		if (r == 0 && !is_up(userdata, name))
			r = buffer_append_string(ret, TEXT_DISABLED);
	}
	return r;
}
