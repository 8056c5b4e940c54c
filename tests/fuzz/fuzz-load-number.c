/*
 * libFuzzer target of what services and the kernel say of load. The first byte, "0" to "4", says
 * which reader the rest is for; a number's key ends at the first newline.
 *
 * Besides what the sanitizers see: a number is within its bounds, an error has a text.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/netlink.h>

#include "agent/load/nft.h"
#include "agent/load/number.h"
#include "agent/load/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void number(enum config_format format, char *text, size_t length)
{
	struct number_text t = {0};
	struct error error = {{0}};
	char *newline = memchr(text, '\n', length);
	uint64_t milli;

	if (!newline)
		return;
	*newline++ = '\0';
	if (number_open(&t, format, newline, length - (size_t)(newline - text), &error) < 0) {
		assert(error.text[0]);
		return;
	}
	if (number_find(&t, text, &milli, &error) < 0)
		assert(error.text[0]);
	else
		assert(milli <= NUMBER_MAX);
	number_close(&t);
}

static void kernel(const char *text)
{
	struct proc_ticks ticks;
	uint64_t n, m;

	(void)proc_parse_stat(text, &ticks);
	if (proc_parse_pressure(text, &n))
		assert(n < 101000);
	(void)proc_parse_softnet(text, &n);
	(void)proc_parse_netstat(text, "TcpExt", "ListenDrops", &n);
	(void)proc_parse_dev(text, "eth0", &n, &m);
	(void)proc_parse_number(text, &n);
}

static void on_counter(void *userdata, const char *name, uint64_t packets, uint64_t bytes)
{
	assert(strlen(name) < 65536);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = malloc(size ? size : 1); /* aligned, and no byte more than is said */
	uint32_t sequence = 0;

	if (size == 0 || !text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch ((data[0] + 2) % 5) {
	case 0:
		number(CONFIG_FORMAT_TEXT, text, size - 1);
		break;
	case 1:
		number(CONFIG_FORMAT_JSON, text, size - 1);
		break;
	case 2:
		number(CONFIG_FORMAT_PROMETHEUS, text, size - 1);
		break;
	case 3:
		kernel(text);
		break;
	default: /* no enum of ours */
		if (size > sizeof(struct nlmsghdr))
			memcpy(&sequence, text + offsetof(struct nlmsghdr, nlmsg_seq),
				sizeof(sequence));
		(void)nft_parse(text, size - 1, sequence, on_counter, NULL);
	}
	return 0;
}
