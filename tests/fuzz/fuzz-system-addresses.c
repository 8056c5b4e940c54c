/*
 * libFuzzer target of the netlink messages about addresses: the input is a row of them, told as the
 * kernel's changes and then as a dump.
 *
 * Besides what the sanitizers see: the table stays sorted without doubles, the look-up by bisection
 * says what a walk over all rows says, and a dump of the same is in order, too.
 */
#include "agent/system/addresses.c"
#include "tests/fuzz/fuzz.h"

static enum addresses_answer walk(const struct table *t, const struct prefix *prefix)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->rows[i].usable && prefix_contains(prefix, &t->rows[i].address))
			return ADDRESSES_PRESENT;
	return ADDRESSES_MISSING;
}

static void check(const struct addresses *a)
{
	const struct table *t = &a->table;

	assert(t->n <= t->allocated);
	for (size_t i = 0; i < t->n; i++) {
		const struct row *row = &t->rows[i];
		unsigned whole = row->address.family == ADDRESS_FAMILY_IPV4 ? 32 : 128;
		struct prefix prefix = {row->address, (uint8_t)whole};

		assert(i == 0 || compare_rows(row - 1, row) < 0);
		assert(addresses_in(a, &prefix) == walk(t, &prefix));
		prefix.length = (uint8_t)(whole - 8);
		prefix.address.bytes[whole / 8 - 1] = 0;
		assert(addresses_in(a, &prefix) == walk(t, &prefix));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* malloc() aligns, as netlink messages must be. */
	_cleanup_free_ void *messages = malloc(size ? size : 1);
	struct addresses a = {.known = true};
	struct change c = {.a = &a};
	struct dump d = {0};

	assert(messages);
	if (size > 0)
		memcpy(messages, data, size);
	(void)netlink_run(messages, size, 0, 0, on_change_message, &c);
	assert(!c.failed && (c.changed || a.table.n == 0));
	check(&a);
	(void)netlink_run(messages, size, 0, 0, on_dump_message, &d);
	assert(d.error == 0);
	for (size_t i = 0; i < d.table.n; i++)
		(void)table_remove(&a.table, &d.table.rows[i]);
	assert(a.table.n == 0); /* a change adds nothing that a dump does not show */
	free(a.table.rows);
	free(d.table.rows);
	return 0;
}
