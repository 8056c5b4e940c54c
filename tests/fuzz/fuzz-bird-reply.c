/*
 * libFuzzer target of the reply parser. The first byte says how the rest is cut into pieces.
 *
 * Besides what the sanitizers see: the same bytes tell the same replies and the same verdict whole
 * and in pieces; what is told is well-formed; after a refusal nothing is taken; and the text of a
 * refusal is fit for a terminal.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "agent/bird/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_reply(void *userdata, const struct reply *reply)
{
	struct buffer *told = userdata;
	int r = 0;

	assert(reply->n_lines > 0 && reply->code == reply->lines[reply->n_lines - 1].code);
	for (size_t i = 0; r == 0 && i < reply->n_lines; i++) {
		assert(reply->lines[i].code >= 0 && reply->lines[i].code <= 9999);
		assert(strlen(reply->lines[i].text) <= REPLY_LINE_MAX);
		assert(!strchr(reply->lines[i].text, '\n'));
		r = buffer_printf(told, "%d %s\n", reply->lines[i].code, reply->lines[i].text);
	}
	if (r == 0)
		r = buffer_append_string(told, "end\n");
	assert(r == 0);
}

static void on_push(void *userdata, const char *text)
{
	int r = buffer_printf(userdata, "push %s\n", text);

	assert(r == 0);
}

static int feed(const char *data, size_t n, size_t piece, struct buffer *told)
{
	const struct reply_ops ops = {.reply = on_reply, .push = on_push, .userdata = told};
	struct reply_parser *p = reply_parser_new(&ops);
	struct error error = {""};
	int r = 0;

	assert(p);
	while (r == 0 && n > 0) {
		size_t now = piece < n ? piece : n;

		r = reply_parser_feed(p, data, now, &error);
		data += now;
		n -= now;
	}
	assert(r == 0 || r == -EBADMSG);
	if (r < 0) {
		size_t before = told->length;

		assert(error.text[0]);
		for (const unsigned char *c = (const unsigned char *)error.text; *c; c++)
			assert(*c >= ' ' && *c != 0x7f);
		assert(reply_parser_feed(p, "0000 \n", 6, &error) == -EBADMSG);
		assert(told->length == before);
	}
	reply_parser_free(p);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer whole, pieces;
	size_t piece;
	int a, b;

	if (size < 2)
		return 0;
	piece = (size_t)data[0] + 1;
	buffer_init(&whole, 64U * 1024 * 1024);
	buffer_init(&pieces, 64U * 1024 * 1024);
	a = feed((const char *)data + 1, size - 1, size, &whole);
	b = feed((const char *)data + 1, size - 1, piece, &pieces);
	assert(a == b);
	assert(strcmp(buffer_string(&whole), buffer_string(&pieces)) == 0);
	buffer_done(&whole);
	buffer_done(&pieces);
	return 0;
}
