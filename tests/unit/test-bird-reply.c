/*
 * The reply parser against what three BIRDs really said (data/bird-VERSION.raw: the bytes of one
 * connection, captured while the same commands were sent), cut into pieces in every way, and
 * against what no BIRD says.
 */
#include <assert.h>
#include <check.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/bird/reply.h"

#define REPLIES_MAX 64

/* What a parser told, as text that can be compared, and some of it in numbers. */
struct told {
	struct buffer text;
	int codes[REPLIES_MAX];
	size_t n_replies, n_pushes;
};

/* assert() here: Check writes a record for each of its own, and these are many. */
static void on_reply(void *userdata, const struct reply *reply)
{
	struct told *t = userdata;
	int r = 0;

	assert(t->n_replies < REPLIES_MAX && reply->n_lines >= 1);
	assert(reply->text == reply->lines[reply->n_lines - 1].text);
	assert(reply->code == reply->lines[reply->n_lines - 1].code);
	t->codes[t->n_replies++] = reply->code;
	for (size_t i = 0; r == 0 && i < reply->n_lines; i++)
		r = buffer_printf(&t->text, "%d|%s\n", reply->lines[i].code, reply->lines[i].text);
	if (r == 0)
		r = buffer_append_string(&t->text, "end\n");
	assert(r == 0);
}

static void on_push(void *userdata, const char *text)
{
	struct told *t = userdata;
	int r = buffer_printf(&t->text, "push|%s\n", text);

	assert(r == 0);
	t->n_pushes++;
}

static struct reply_parser *parser_new(struct told *t)
{
	const struct reply_ops ops = {.reply = on_reply, .push = on_push, .userdata = t};
	struct reply_parser *p;

	*t = (struct told){0};
	buffer_init(&t->text, 64U * 1024 * 1024);
	p = reply_parser_new(&ops);
	ck_assert_ptr_nonnull(p);
	return p;
}

/* Feeds the whole in pieces of `piece` bytes; 0: of random sizes. */
static int feed(struct told *t, const char *data, size_t n, size_t piece, struct error *error)
{
	struct reply_parser *p = parser_new(t);
	int r = 0;

	while (r == 0 && n > 0) {
		size_t now = piece ? piece : (size_t)(random() % 40) + 1;

		now = now < n ? now : n;
		r = reply_parser_feed(p, data, now, error);
		data += now;
		n -= now;
	}
	reply_parser_free(p);
	return r;
}

static void read_data(const char *name, struct buffer *ret)
{
	const char *tests = getenv("REDSHANK_TESTS");
	char path[512], piece[4096];
	FILE *f;
	size_t n;

	ck_assert_ptr_nonnull(tests);
	(void)snprintf(path, sizeof(path), "%s/unit/data/%s", tests, name);
	f = fopen(path, "re");
	ck_assert_msg(f, "%s", path);
	buffer_init(ret, 1U << 20);
	while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
		ck_assert_int_eq(buffer_append(ret, piece, n), 0);
	(void)fclose(f);
}

/* Final codes in the order of the commands; the second one answers `echo all`. */
static const struct transcript {
	const char *file;
	size_t pushes;
	int codes[REPLIES_MAX];
} transcripts[] = {
	{"bird-2.0.12.raw", 18,
		{1, 0, 13, 0, 0, 0, 0, 0, 0, 8001, 9001, 0, 0, 0, 0, 8003, 9001, 9001, 0, 8002,
			8002, 20, 4, 5, 0, 3, 0, 18, 19, 3, 3, 16, 8007, -1}},
	{"bird-2.17.6.raw", 50,
		{1, 0, 13, 0, 0, 0, 0, 0, 0, 8001, 9001, 0, 0, 0, 0, 8003, 9001, 9001, 0, 8002,
			8002, 20, 4, 5, 0, 3, 0, 18, 19, 3, 3, 16, 8007, -1}},
	{"bird-3.1.8.raw", 0,
		{1, 9001, 13, 0, 0, 0, 0, 0, 0, 8001, 9001, 0, 0, 0, 0, 8003, 9001, 9001, 0, 8002,
			8002, 20, 4, 5, 0, 3, 0, 18, 19, 3, 3, 16, 8007, -1}},
};

START_TEST (transcripts_in_any_pieces) {
	const struct transcript *tr = &transcripts[_i];
	_cleanup_buffer_ struct buffer data = {0};
	struct told whole, pieces;
	struct error error;
	size_t n;

	read_data(tr->file, &data);
	ck_assert_int_eq(feed(&whole, data.data, data.length, data.length, &error), 0);
	for (n = 0; tr->codes[n] >= 0; n++)
		ck_assert_int_eq(whole.codes[n], tr->codes[n]);
	ck_assert_uint_eq(whole.n_replies, n);
	ck_assert_uint_eq(whole.n_pushes, tr->pushes);
	for (size_t piece = 0; piece < 50; piece++) {
		/* 0: 50 rounds of random sizes */
		for (int round = 0; round < (piece ? 1 : 50); round++) {
			ck_assert_int_eq(feed(&pieces, data.data, data.length, piece, &error), 0);
			ck_assert_str_eq(buffer_string(&pieces.text), buffer_string(&whole.text));
			buffer_done(&pieces.text);
		}
	}
	buffer_done(&whole.text);
}
END_TEST

/* What the parser makes of each kind of line. */
static const struct shape {
	const char *why, *bytes, *told;
} shapes[] = {
	{"a greeting", "0001 BIRD 2.0.12 ready.\n", "1|BIRD 2.0.12 ready.\nend\n"},
	{"an empty final text", "0000 \n", "0|\nend\n"},
	{"a blank takes the code before it", "1007-a\n b\n1008-c\n d\n0000 \n",
		"1007|a\n1007|b\n1008|c\n1008|d\n0|\nend\n"},
	{"only the first blank is taken", "1008-\tx\n  \ty \n0000 \n",
		"1008|\tx\n1008| \ty \n0|\nend\n"},
	{"a blank alone", "1006-x\n \n0000 \n", "1006|x\n1006|\n0|\nend\n"},
	{"a final line after a line of its own code", "0003-Daemon is up and running\n0003 x\n",
		"3|Daemon is up and running\n3|x\nend\n"},
	{"an asynchronous line before a reply", "+Reconfigured\n0000 \n",
		"push|Reconfigured\n0|\nend\n"},
	{"between two continuation lines", "1007-a\n+p\n b\n0000 \n",
		"push|p\n1007|a\n1007|b\n0|\nend\n"},
	{"before the first blank", "1007-a\n+p\n+q\n b\n+r\n0000 \n+s\n",
		"push|p\npush|q\npush|r\n1007|a\n1007|b\n0|\nend\npush|s\n"},
	{"an empty asynchronous line", "+\n", "push|\n"},
	{"asynchronous lines that were lost", "1007-a\n<151 messages lost>\n+p\n0000 \n",
		"push|<151 messages lost>\npush|p\n1007|a\n0|\nend\n"},
	{"an asynchronous line that looks like a reply", "+0000 \n", "push|0000 \n"},
	{"two replies in one piece", "0004 a\n0005 b\n", "4|a\nend\n5|b\nend\n"},
	{"UTF-8 is none of our business", "1002-caf\xc3\xa9\n0000 \n",
		"1002|caf\xc3\xa9\n0|\nend\n"},
	{"half a line is nothing yet", "0000", ""},
};

START_TEST (shapes_of_lines) {
	const struct shape *s = &shapes[_i];
	struct told told;
	struct error error;

	for (size_t piece = 1; piece <= strlen(s->bytes); piece++) {
		ck_assert_int_eq(feed(&told, s->bytes, strlen(s->bytes), piece, &error), 0);
		ck_assert_msg(strcmp(buffer_string(&told.text), s->told) == 0,
			"%s: expected:\n%sgot:\n%s", s->why, s->told, buffer_string(&told.text));
		buffer_done(&told.text);
	}
}
END_TEST

#define BYTES(s) s, sizeof(s) - 1
static const struct bad {
	const char *why, *bytes;
	size_t n;
	const char *quoted; /* a part of the error */
} bads[] = {
	{"an empty line", BYTES("\n"), "\"\""},
	{"no code", BYTES("HTTP/1.1 400 Bad Request\r\n"), "\"HTTP/1.1 400 Bad Request"},
	{"three digits", BYTES("000 x\n"), "\"000 x\""},
	{"five digits", BYTES("00000 x\n"), "\"00000 x\""},
	{"a code alone", BYTES("0000\n"), "\"0000\""},
	{"another sign behind the code", BYTES("0000+x\n"), "\"0000+x\""},
	{"a sign before it", BYTES("-001 x\n"), "\"-001 x\""},
	{"a continuation of nothing", BYTES(" x\n"), "\" x\""},
	{"a continuation after a reply", BYTES("0000 \n x\n"), "\" x\""},
	{"a NUL", BYTES("0000 a\0b\n"), "\"0000 a\\x00b\""},
	{"control characters are shown harmless", BYTES("\x1b[2J\n"), "\"\\x1b[2J\""},
};

START_TEST (no_reply_at_all) {
	const struct bad *b = &bads[_i];

	for (size_t piece = 1; piece <= b->n; piece++) {
		struct error error = {""};
		struct told told;

		ck_assert_msg(feed(&told, b->bytes, b->n, piece, &error) == -EBADMSG, "%s", b->why);
		ck_assert_msg(strstr(error.text, b->quoted), "%s: %s", b->why, error.text);
		buffer_done(&told.text);
	}
}
END_TEST

START_TEST (nothing_after_a_bad_line) {
	struct told told;
	struct reply_parser *p = parser_new(&told);
	struct error error;

	ck_assert_int_eq(reply_parser_feed(p, "what?\n0000 \n", 12, &error), -EBADMSG);
	ck_assert_int_eq(reply_parser_feed(p, "0000 \n", 6, &error), -EBADMSG);
	ck_assert_uint_eq(told.n_replies, 0);
	reply_parser_free(p);
	buffer_done(&told.text);
}
END_TEST

START_TEST (longest_line) {
	char line[REPLY_LINE_MAX + 2];
	struct told told;
	struct error error;

	memset(line, 'x', sizeof(line));
	memcpy(line, "0000 ", 5);
	line[REPLY_LINE_MAX] = '\n';
	for (size_t piece = 1; piece <= sizeof(line); piece += 1365) {
		ck_assert_int_eq(feed(&told, line, REPLY_LINE_MAX + 1, piece, &error), 0);
		ck_assert_uint_eq(told.n_replies, 1);
		buffer_done(&told.text);
	}
	line[REPLY_LINE_MAX] = 'x';
	for (size_t piece = 1; piece <= sizeof(line); piece += 1365) {
		ck_assert_int_eq(feed(&told, line, REPLY_LINE_MAX + 1, piece, &error), -EBADMSG);
		ck_assert_ptr_nonnull(strstr(error.text, "\"0000 xxx"));
		buffer_done(&told.text);
	}
}
END_TEST

/* However it is made up, a reply without end is given up before it has cost much more memory than
 * its bound, and one of 5,000 protocols is nowhere near. */
START_TEST (longest_reply) {
	static const struct {
		const char *line;
		size_t least, most; /* lines that must be taken, and may be */
	} rows[] = {
		{" redshank:dns:2001:db8:1111:2222:3333:4444:5555:6666 Static     redshank6  up  "
		 "x\n",
			75000, 100000},
		{" \n", 300000, 600000},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct told told;
		struct reply_parser *p = parser_new(&told);
		struct error error = {""};
		size_t n = 0;

		ck_assert_int_eq(reply_parser_feed(p, "1002-begin\n", 11, &error), 0);
		while (n < REPLY_MAX &&
			reply_parser_feed(p, rows[i].line, strlen(rows[i].line), &error) == 0)
			n++;
		ck_assert_uint_le(n, rows[i].most);
		ck_assert_uint_ge(n, rows[i].least);
		ck_assert_ptr_nonnull(strstr(error.text, "begin"));
		ck_assert_uint_eq(told.n_replies, 0);
		reply_parser_free(p);
		buffer_done(&told.text);
	}
}
END_TEST

START_TEST (asynchronous_lines_cost_nothing) {
	struct told told;
	struct reply_parser *p = parser_new(&told);
	struct error error;

	ck_assert_int_eq(reply_parser_feed(p, "1007-a\n", 7, &error), 0);
	for (size_t i = 0; i < REPLY_MAX / 16; i++) {
		int r = reply_parser_feed(p, "+Reconfiguring it\n", 18, &error);

		assert(r == 0);
		buffer_clear(&told.text);
	}
	ck_assert_int_eq(reply_parser_feed(p, " b\n0000 \n", 9, &error), 0);
	ck_assert_str_eq(buffer_string(&told.text), "1007|a\n1007|b\n0|\nend\n");
	reply_parser_free(p);
	buffer_done(&told.text);
}
END_TEST

START_TEST (codes_are_judged) {
	static const int accepted[] = {0, 3, 4, 5, 8, 9, 10, 11};

	for (int code = 0; code <= 9999; code++) {
		enum reply_verdict want = code >= 8000 ? REPLY_REFUSED : REPLY_OTHER;

		for (size_t i = 0; i < ELEMENTSOF(accepted); i++)
			if (accepted[i] == code)
				want = REPLY_ACCEPTED;
		ck_assert_int_eq(reply_judge(code), want);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bird-reply");
	TCase *t = tcase_create("reply");
	unsigned seed = (unsigned)time(NULL);
	SRunner *runner;
	int failed;

	printf("seed %u\n", seed);
	srandom(seed);
	tcase_set_timeout(t, 50);
	tcase_add_loop_test(t, transcripts_in_any_pieces, 0, ELEMENTSOF(transcripts));
	tcase_add_loop_test(t, shapes_of_lines, 0, ELEMENTSOF(shapes));
	tcase_add_loop_test(t, no_reply_at_all, 0, ELEMENTSOF(bads));
	tcase_add_test(t, nothing_after_a_bad_line);
	tcase_add_test(t, longest_line);
	tcase_add_test(t, longest_reply);
	tcase_add_test(t, asynchronous_lines_cost_nothing);
	tcase_add_test(t, codes_are_judged);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
