/*
 * libFuzzer target of the messages between agents. The first byte says which message the rest is.
 *
 * Besides what the sanitizers see: what is read is within its bounds, and what is written of it
 * reads back as the same.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "agent/neighbour/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_report(const struct message_report *r)
{
	assert(r->node[0] && r->spare <= r->capacity && r->capacity <= SHED_AMOUNT_MAX);
	assert(r->willing || r->spare == 0);
	assert(r->utilisation_bp <= MESSAGE_BP_MAX && r->want <= MESSAGE_WANT_MAX);
	assert(r->n_prefixes <= MESSAGE_PREFIXES_MAX && r->n_sheds <= MESSAGE_PREFIXES_MAX);
	for (size_t i = 0; i < r->n_prefixes; i++)
		assert(message_report_find(r, &r->prefixes[i].prefix) == &r->prefixes[i]);
}

static void report(const char *text, size_t n)
{
	_cleanup_report_ struct message_report *r = NULL, *again = NULL;
	_cleanup_buffer_ struct buffer first = {0}, second = {0};
	struct error error = {""};
	int e;

	if (message_report_read(text, n, &r, &error) < 0) {
		assert(error.text[0]);
		return;
	}
	check_report(r);
	buffer_init(&first, 4U << 20);
	buffer_init(&second, 4U << 20);
	e = message_report_write(r, &first);
	assert(e == 0);
	if (first.length > MESSAGE_REPORT_MAX)
		return;
	e = message_report_read(first.data, first.length, &again, &error);
	assert(e == 0);
	e = message_report_write(again, &second);
	assert(e == 0 && strcmp(first.data, second.data) == 0);
}

static void grant(const char *text, size_t n)
{
	_cleanup_buffer_ struct buffer written = {0};
	struct message_grant g, again;
	struct error error = {""};
	int e;

	if (message_grant_read(text, n, &g, &error) < 0) {
		assert(error.text[0]);
		return;
	}
	buffer_init(&written, MESSAGE_GRANT_MAX);
	e = message_grant_write(&g, &written);
	assert(e == 0);
	e = message_grant_read(written.data, written.length, &again, &error);
	assert(e == 0 && strcmp(g.node, again.node) == 0 && g.request == again.request);
	assert(prefix_equal(&g.prefix, &again.prefix) && g.share == again.share);
}

static int add(void *userdata, const char *name, const char *address)
{
	assert(name[0] && address);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shed_answer answer;
	const char *text = (const char *)data + 1;

	if (size == 0)
		return 0;
	switch (data[0] % 4) {
	case 0:
		report(text, size - 1);
		break;
	case 1:
		grant(text, size - 1);
		break;
	case 2:
		message_answer_read(text, size - 1, size % 2, 7, &answer);
		assert((answer.refused == SHED_REFUSAL_NONE) == (answer.lease_ms > 0));
		break;
	default: /* no enum of ours */
		(void)message_members_read(text, size - 1, add, NULL, NULL);
	}
	return 0;
}
