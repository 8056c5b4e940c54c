/*
 * Why a prefix is announced or not: what `redshankctl explain` prints.
 *
 * Read at three in the morning, so each block answers in the order in which one asks: is it
 * announced, which rule decided and what is behind that, what does BIRD hold, who gets it, who else
 * has it, at which weight, and what happens next, when. The checks follow with the times of their
 * runs. The document has the facts; the sentences are made in explain_say.c.
 *
 * Prefixes whose blocks read the same, word for word, are one block: a service of 5,000 prefixes
 * that died is one paragraph. The protocols' names are then their pattern in BIRD.
 *
 * A key that is missing counts as unknown: an older agent may not send it.
 */
#include "agent/ctl/explain.h"

#include "agent/ctl/explain_private.h"
#include "agent/ctl/text.h"

#define EXPLAIN_NAMED_MAX 8	/* prefixes at the head of a block */
#define EXPLAIN_OUTCOMES_MAX 16 /* the newest ones; the document has more */

static const char *const labels[EXPLAIN_N_LINES] = {
	[EXPLAIN_STATE] = "State",
	[EXPLAIN_WHY] = "Why",
	[EXPLAIN_BIRD] = "BIRD",
	[EXPLAIN_SESSIONS] = "Sessions",
	[EXPLAIN_OTHERS] = "Others",
	[EXPLAIN_WEIGHT] = "Weight",
	[EXPLAIN_LOAD] = "Load",
	[EXPLAIN_ADDRESS] = "Address",
	[EXPLAIN_SHED] = "Shed",
	[EXPLAIN_NEXT] = "Next",
};

struct explain_block {
	struct explain_text text;
	const json_t *prefix; /* the first one */
	struct buffer names;  /* of the first few */
	struct explain_load load;
	size_t n;
};

struct explain_blocks {
	struct explain_block *items; /* owned */
	size_t n, room;
};

/* ---- blocks ---- */

static void block_init(struct explain_block *block)
{
	*block = (struct explain_block){0};
	for (int i = 0; i < EXPLAIN_N_LINES; i++)
		buffer_init(&block->text.line[i], EXPLAIN_LINE_MAX);
	buffer_init(&block->names, EXPLAIN_LINE_MAX);
}

static void block_done(struct explain_block *block)
{
	for (int i = 0; i < EXPLAIN_N_LINES; i++)
		buffer_done(&block->text.line[i]);
	buffer_done(&block->names);
}

static bool block_equal(const struct explain_block *a, const struct explain_block *b)
{
	for (int i = 0; i < EXPLAIN_N_LINES; i++) {
		const struct buffer *x = &a->text.line[i], *y = &b->text.line[i];

		if (x->length != y->length || strcmp(buffer_string(x), buffer_string(y)) != 0)
			return false;
	}
	return true;
}

static void block_add(struct explain_block *block, const char *name, const json_t *prefix)
{
	explain_add_load(&block->load, prefix);
	if (block->n++ < EXPLAIN_NAMED_MAX)
		(void)buffer_printf(&block->names, "%s%s", block->n > 1 ? ", " : "", name);
}

/* The block that says what `made` does; a new one, which takes its texts over, where there is none.
 */
static struct explain_block *blocks_find(
	struct explain_blocks *blocks, struct explain_block *made, const json_t *prefix)
{
	struct explain_block *larger;

	for (size_t i = 0; i < blocks->n; i++)
		if (block_equal(&blocks->items[i], made))
			return &blocks->items[i];
	if (blocks->n == blocks->room) {
		blocks->room = blocks->room ? 2 * blocks->room : 8;
		larger = text_allocate(blocks->room * sizeof(*larger));
		if (blocks->n > 0)
			memcpy(larger, blocks->items, blocks->n * sizeof(*larger));
		free(blocks->items);
		blocks->items = larger;
	}
	made->prefix = prefix;
	blocks->items[blocks->n] = *made;
	block_init(made);
	return &blocks->items[blocks->n++];
}

/* Of one service, in the order of their first prefixes. */
static struct explain_blocks make_blocks(const struct explain *e)
{
	struct explain_blocks blocks = {0};
	struct explain_block made;
	const char *name;
	json_t *prefix;

	block_init(&made);
	json_object_foreach ((json_t *)explain_get(e->service, "prefixes"), name, prefix) {
		explain_say(e, prefix, false, &made.text);
		block_add(blocks_find(&blocks, &made, prefix), name, prefix);
	}
	block_done(&made);
	return blocks;
}

static void print_block(
	const struct explain *e, struct explain_block *block, FILE *out, bool colours)
{
	_cleanup_buffer_ struct buffer head = {0};

	buffer_init(&head, EXPLAIN_LINE_MAX);
	if (block->n == 1)
		explain_say(e, block->prefix, true, &block->text);
	else
		(void)buffer_printf(&head, "%zu prefixes: ", block->n);
	explain_say_load(e, &block->text.line[EXPLAIN_LOAD], &block->load);
	(void)buffer_append_string(&head, buffer_string(&block->names));
	if (block->n > EXPLAIN_NAMED_MAX)
		(void)buffer_printf(&head, " and %zu more", block->n - EXPLAIN_NAMED_MAX);
	(void)fputc('\n', out);
	text_put_wrapped(out, colours, TEXT_BOLD, 0, buffer_string(&head));
	for (int i = 0; i < EXPLAIN_N_LINES; i++)
		if ((i != EXPLAIN_LOAD && i != EXPLAIN_SHED && i != EXPLAIN_ADDRESS) ||
			block->text.line[i].length > 0)
			text_put_labelled(out, colours, labels[i], block->text.colour[i],
				buffer_string(&block->text.line[i]));
}

/* ---- checks ---- */

static void add_time(const struct explain *e, struct text_table *t, const json_t *check,
	const char *key, bool past)
{
	_cleanup_buffer_ struct buffer b = {0};
	int64_t at = text_parse_time_ms(judge_text(check, key));

	buffer_init(&b, 64);
	if (at >= 0)
		explain_say_span(&b, past ? e->now_ms - at : at - e->now_ms);
	text_table_add(t, TEXT_PLAIN, true, at >= 0 ? buffer_string(&b) : "-");
}

static void add_duration(struct text_table *t, const json_t *check)
{
	long long us = explain_number(check, "duration_us");
	_cleanup_buffer_ struct buffer b = {0};

	buffer_init(&b, 64);
	if (us < 10000)
		(void)buffer_printf(&b, "%lld.%lldms", us / 1000, us % 1000 / 100);
	else
		explain_say_span(&b, us / 1000);
	text_table_add(t, TEXT_PLAIN, true,
		us > 0 && judge_text(check, "last")[0] ? buffer_string(&b) : "-");
}

static void add_next(const struct explain *e, struct text_table *t, const json_t *check)
{
	if (json_is_true(explain_get(check, "running")))
		text_table_add(t, TEXT_PLAIN, true, "runs");
	else
		add_time(e, t, check, "next", false);
}

static void print_checks(const struct explain *e, FILE *out, const struct status_view *view)
{
	static const char *const heads[] = {
		"CHECK", "STATE", "FOR", "RAN AGO", "TOOK", "NEXT IN", "OUTCOMES", "REASON"};
	_cleanup_text_table_ struct text_table t = {0};
	_cleanup_buffer_ struct buffer head = {0};
	const json_t *checks = explain_get(e->service, "checks");
	const char *name;
	json_t *check;

	text_table_init(&t, ELEMENTSOF(heads));
	buffer_init(&head, EXPLAIN_LINE_MAX);
	if (json_object_size(checks) == 0)
		return;
	for (size_t i = 0; i < ELEMENTSOF(heads); i++)
		text_table_add(&t, TEXT_DIM, false, heads[i]);
	json_object_foreach ((json_t *)checks, name, check) {
		text_table_add(&t, TEXT_PLAIN, false, name);
		text_table_add(&t, status_word_colour(judge_text(check, "state")), false,
			judge_text(check, "state"));
		add_time(e, &t, check, "since", true);
		add_time(e, &t, check, "last", true);
		add_duration(&t, check);
		add_next(e, &t, check);
		status_add_outcomes(&t, check, EXPLAIN_OUTCOMES_MAX);
		text_table_add(&t, TEXT_PLAIN, false, judge_text(check, "reason"));
	}
	(void)buffer_printf(&head, "Checks of %s (", e->service_name);
	explain_say_require(e, &head);
	(void)buffer_printf(&head, ")");
	(void)fputc('\n', out);
	text_put_wrapped(out, view->colours, TEXT_BOLD, 0, buffer_string(&head));
	text_table_print(&t, out, view->colours, 2);
}

static void print_service(const struct explain *e, FILE *out, const struct status_view *view)
{
	struct explain_blocks blocks = make_blocks(e);
	const char *health = judge_text(e->service, "health");
	char line[512];

	(void)snprintf(line, sizeof(line), "service %.32s on %.255s: %s", e->service_name,
		judge_text(e->document, "node"), health[0] ? health : "unknown");
	text_put_wrapped(out, view->colours, status_word_colour(health), 0, line);
	status_print_repair(out, e->service, view, e->now_ms, 0, true);
	for (size_t i = 0; i < blocks.n; i++) {
		print_block(e, &blocks.items[i], out, view->colours);
		block_done(&blocks.items[i]);
	}
	free(blocks.items);
	print_checks(e, out, view);
}

void explain_print(FILE *out, const json_t *document, const struct status_view *view)
{
	const json_t *services = explain_get(document, "services");
	struct explain e = {
		.document = document,
		.bird = explain_get(document, "bird"),
		.now_ms = text_parse_time_ms(judge_text(document, "time")),
	};
	const char *name;
	json_t *service;
	bool first = true;

	status_print_troubles(out, document, view);
	json_object_foreach ((json_t *)services, name, service) {
		if (!first)
			(void)fputc('\n', out);
		first = false;
		e.service = service;
		e.service_name = name;
		print_service(&e, out, view);
	}
}

/* ---- asking ---- */

char *explain_path(const char *name)
{
	static const char hex[] = "0123456789ABCDEF";
	static const char start[] = "/v1/explain?name=";
	char *path = text_allocate(sizeof(start) + 3 * strlen(name)), *to;

	memcpy(path, start, sizeof(start));
	to = path + sizeof(start) - 1;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		if (strchr("-._~:", *c) || (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
			(*c >= 'A' && *c <= 'Z')) {
			*to++ = (char)*c;
			continue;
		}
		*to++ = '%';
		*to++ = hex[*c >> 4];
		*to++ = hex[*c & 15];
	}
	*to = '\0';
	return path;
}

char *explain_error(const char *body, size_t length)
{
	json_t *document = json_loadb(body, length, 0, NULL);
	const char *text = judge_text(document, "error");
	char *copy = text_allocate(strlen(text) + 1);

	memcpy(copy, text, strlen(text) + 1);
	json_decref(document);
	return copy;
}
