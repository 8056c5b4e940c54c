/*
 * What the kernel says, what services say, and what netlink carries: real samples, and broken ones,
 * each of which is refused and leaves the result as it was.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/load/nft.h"
#include "agent/load/number.h"
#include "agent/load/proc.h"

/* ---- /proc ---- */

START_TEST (stat_of_processors) {
	static const char *const broken[] = {"", "cpu", "cpu ", "cpu0 1 2 3 4 5 6 7 8\n",
		"cpu  1 2 3 4 5 6 7\n", "cpu  1 2 3 x 5 6 7 8\n",
		"cpu  1 2 3 4 5 6 7 99999999999999999999\n", "cpu  1 2 3 4 5 6 7 8"};
	struct proc_ticks t = {1, 2};

	for (size_t i = 0; i < ELEMENTSOF(broken); i++)
		ck_assert_msg(!proc_parse_stat(broken[i], &t), "%s", broken[i]);
	ck_assert(t.busy == 1 && t.all == 2);
	ck_assert(proc_parse_stat(
		"cpu  291833 644362 538987 1391749 3738 0 6115 539 0 0\ncpu0 1 2\n", &t));
	ck_assert_uint_eq(t.busy, 291833 + 644362 + 538987 + 6115 + 539);
	ck_assert_uint_eq(t.all - t.busy, 1391749 + 3738);
}
END_TEST

START_TEST (pressure) {
	static const char *const broken[] = {"", "full avg10=1.00 ", "some avg10=", "some avg10=x ",
		"some avg10=101.00 ", "some avg10=-1 ", "some avg10=1.0"};
	uint64_t n = 7;

	for (size_t i = 0; i < ELEMENTSOF(broken); i++)
		ck_assert_msg(!proc_parse_pressure(broken[i], &n), "%s", broken[i]);
	ck_assert_uint_eq(n, 7);
	ck_assert(proc_parse_pressure("some avg10=73.70 avg60=78.93 avg300=81.85 total=4614005560\n"
				      "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		&n));
	ck_assert_uint_eq(n, 73700);
	ck_assert(proc_parse_pressure("some avg10=0.05 ", &n));
	ck_assert_uint_eq(n, 50);
	ck_assert(proc_parse_pressure("some avg10=100.00 ", &n));
	ck_assert_uint_eq(n, 100000);
}
END_TEST

START_TEST (softnet) {
	static const char *const broken[] = {"", "\n", "00581935\n", "00581935 x\n",
		"00581935 00000001", "00581935 00000001\n0058"};
	uint64_t n = 7;

	for (size_t i = 0; i < ELEMENTSOF(broken); i++)
		ck_assert_msg(!proc_parse_softnet(broken[i], &n), "%s", broken[i]);
	ck_assert_uint_eq(n, 7);
	ck_assert(proc_parse_softnet("00581935 00000010 00000004 00000000 00000000\n"
				     "005b3877 0000000a 00000000 00000000 00000000\n",
		&n));
	ck_assert_uint_eq(n, 26);
}
END_TEST

START_TEST (netstat) {
	static const char text[] = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\n"
				   "TcpExt: 1 22 333\n"
				   "IpExt: InNoRoutes ListenDrops\nIpExt: 4 5\n";
	static const char *const broken[] = {"", "TcpExt: ListenDrops\n",
		"TcpExt: ListenDrops\nIpExt: 1\n", "TcpExt: A ListenDrops\nTcpExt: 1\n",
		"TcpExt: ListenDrops\nTcpExt: x\n", "TcpExt: ListenDrops\nTcpExt: 1",
		"TcpExt: ListenDropsX\nTcpExt: 1\n"};
	uint64_t n = 7;

	for (size_t i = 0; i < ELEMENTSOF(broken); i++)
		ck_assert_msg(!proc_parse_netstat(broken[i], "TcpExt", "ListenDrops", &n), "%s",
			broken[i]);
	ck_assert_uint_eq(n, 7);
	ck_assert(proc_parse_netstat(text, "TcpExt", "ListenDrops", &n));
	ck_assert_uint_eq(n, 333);
	ck_assert(proc_parse_netstat(text, "IpExt", "InNoRoutes", &n));
	ck_assert_uint_eq(n, 4);
}
END_TEST

START_TEST (interfaces) {
	static const char text[] =
		"Inter-|   Receive                                                |  Transmit\n"
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes    "
		"packets errs\n"
		"    lo:  123456     100    0    0    0     0          0         0   654321     "
		"100    0\n"
		"  eth0:5000000000 9 0 0 0 0 0 0 7000000000 9 0 0 0 0 0 0\n";
	uint64_t in = 1, out = 2;

	ck_assert(!proc_parse_dev(text, "eth", &in, &out) && !proc_parse_dev("", "lo", &in, &out));
	ck_assert(!proc_parse_dev("lo: 1 2 3", "lo", &in, &out));
	ck_assert(!proc_parse_dev("lo: 1 2 3 4 5 6 7 8 x 9\n", "lo", &in, &out));
	ck_assert(in == 1 && out == 2);
	ck_assert(proc_parse_dev(text, "eth0", &in, &out));
	ck_assert(in == 5000000000 && out == 7000000000);
	ck_assert(proc_parse_dev(text, "lo", &in, &out) && in == 123456 && out == 654321);
}
END_TEST

START_TEST (files_are_bounded) {
	struct error error = {{0}};
	char buf[16], folder[] = "/tmp/redshank-load-XXXXXX", path[64];
	uint64_t n = 7;

	ck_assert_int_eq(proc_read("/dev/zero", buf, sizeof(buf), true, &error), -EINVAL);
	ck_assert_int_eq(proc_read("/proc/stat", buf, sizeof(buf), false, &error), -EFBIG);
	ck_assert_int_eq(proc_read("/proc/stat", buf, sizeof(buf), true, &error), 15);
	ck_assert_int_eq(proc_read("/nosuch", buf, sizeof(buf), true, &error), -ENOENT);
	ck_assert_ptr_nonnull(strstr(error.text, "/nosuch"));
	ck_assert_ptr_nonnull(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/fifo", folder);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(proc_read(path, buf, sizeof(buf), true, &error), -EINVAL);
	(void)unlink(path);
	(void)rmdir(folder);
	ck_assert(!proc_parse_number("", &n) && !proc_parse_number("-1\n", &n));
	ck_assert(!proc_parse_number("12 \n", &n) && !proc_parse_number("1a", &n) && n == 7);
	ck_assert(proc_parse_number("262144\n", &n) && n == 262144);
}
END_TEST

/* ---- numbers ---- */

static int find(enum config_format format, const char *text, const char *key, uint64_t *ret,
	struct error *error)
{
	struct number_text t = {0};
	int r = number_open(&t, format, text, strlen(text), error);

	if (r >= 0)
		r = number_find(&t, key, ret, error);
	number_close(&t);
	return r;
}

static const struct {
	enum config_format format;
	const char *text, *key;
	int result;
	uint64_t milli;
} numbers[] = {
	{CONFIG_FORMAT_TEXT, "12.5\n", NULL, 0, 12500},
	{CONFIG_FORMAT_TEXT, "  1e3 \n", NULL, 0, 1000000},
	{CONFIG_FORMAT_TEXT, "", NULL, -ENOENT, 0},
	{CONFIG_FORMAT_TEXT, "x", NULL, -EBADMSG, 0},
	{CONFIG_FORMAT_TEXT, "1 2", NULL, -EBADMSG, 0},
	{CONFIG_FORMAT_TEXT, "0x10", NULL, -EBADMSG, 0},
	{CONFIG_FORMAT_TEXT, "-1", NULL, -EBADMSG, 0},
	{CONFIG_FORMAT_TEXT, "nan", NULL, -EBADMSG, 0},
	{CONFIG_FORMAT_TEXT, "inf", NULL, -EBADMSG, 0},
	{CONFIG_FORMAT_TEXT, "1e16", NULL, -EBADMSG, 0},
	{CONFIG_FORMAT_JSON, "{\"a\": {\"b\": [1, 2.25]}}", "a.b.1", 0, 2250},
	{CONFIG_FORMAT_JSON, "{\"a.b\": 3}", "a\\.b", 0, 3000},
	{CONFIG_FORMAT_JSON, "{\"a\": 1}", "b", -ENOENT, 0},
	{CONFIG_FORMAT_JSON, "[1]", "1", -ENOENT, 0},
	{CONFIG_FORMAT_JSON, "[1]", "x", -ENOENT, 0},
	{CONFIG_FORMAT_JSON, "{\"a\": 1}", "a.b", -ENOENT, 0},
	{CONFIG_FORMAT_JSON, "{\"a\": 1}", "a.", -ENOENT, 0},
	{CONFIG_FORMAT_JSON, "{\"a\": \"1\"}", "a", -EBADMSG, 0},
	{CONFIG_FORMAT_JSON, "{\"a\": null}", "a", -EBADMSG, 0},
	{CONFIG_FORMAT_JSON, "{\"a\": -1}", "a", -EBADMSG, 0},
	{CONFIG_FORMAT_JSON, "{\"a\": 1", "a", -EBADMSG, 0},
	/* "no limit", as many a service writes it, beside what is asked for */
	{CONFIG_FORMAT_JSON, "{\"a\": 7, \"b\": 18446744073709551615}", "a", 0, 7000},
	{CONFIG_FORMAT_JSON, "{\"a\": 18446744073709551615}", "a", -EBADMSG, 0},
	{CONFIG_FORMAT_PROMETHEUS, "# HELP a b\n# TYPE a gauge\na 5\nab 7\n", "a", 0, 5000},
	{CONFIG_FORMAT_PROMETHEUS, "a{x=\"1\",y=\"2\"} 5\na{x=\"2\"} 6 1700000000\n", "a", 0,
		11000},
	{CONFIG_FORMAT_PROMETHEUS, "a{x=\"1\",y=\"2\"} 5\na{x=\"2\"} 6\n", "a{y=\"2\"}", 0, 5000},
	{CONFIG_FORMAT_PROMETHEUS, "a{x=\"}\\\" \"} 5\n", "a{x=\"}\\\" \"}", 0, 5000},
	{CONFIG_FORMAT_PROMETHEUS, "a { x = \"1\" , } 5\n", "a{x=\"1\"}", 0, 5000},
	{CONFIG_FORMAT_PROMETHEUS, "a 5", "a", 0, 5000},
	{CONFIG_FORMAT_PROMETHEUS, "a 5\n", "a{x=\"1\"}", -ENOENT, 0},
	{CONFIG_FORMAT_PROMETHEUS, "", "a", -ENOENT, 0},
	{CONFIG_FORMAT_PROMETHEUS, "a NaN\n", "a", -EBADMSG, 0},
	{CONFIG_FORMAT_PROMETHEUS, "a +Inf\n", "a", -EBADMSG, 0},
	{CONFIG_FORMAT_PROMETHEUS, "a\n", "a", -EBADMSG, 0},
	{CONFIG_FORMAT_PROMETHEUS, "a{x=\"1\" 5\n", "a", -EBADMSG, 0},
	{CONFIG_FORMAT_PROMETHEUS, "a 5\n", "a{x", -EBADMSG, 0},
	{CONFIG_FORMAT_PROMETHEUS, "a 5\n", "a 5", -EBADMSG, 0},
};

START_TEST (numbers_of_services) {
	for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
		struct error error = {{0}};
		uint64_t milli = 0;
		int r = find(numbers[i].format, numbers[i].text, numbers[i].key, &milli, &error);

		ck_assert_msg(r == numbers[i].result && milli == numbers[i].milli,
			"row %zu: %d, %llu, %s", i, r, (unsigned long long)milli, error.text);
		ck_assert_msg((r < 0) == (error.text[0] != '\0'), "row %zu", i);
	}
}
END_TEST

/* ---- netlink ---- */

struct seen {
	unsigned n;
	char name[64];
	uint64_t packets, bytes;
};

static void on_counter(void *userdata, const char *name, uint64_t packets, uint64_t bytes)
{
	struct seen *s = userdata;

	s->n++;
	(void)snprintf(s->name, sizeof(s->name), "%s", name);
	s->packets = packets;
	s->bytes = bytes;
}

static size_t put_object(char *buf, const char *table, uint32_t type, uint32_t sequence, bool whole)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *g;
	struct nlattr *nest;

	h->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWOBJ;
	h->nlmsg_flags = NLM_F_MULTI;
	h->nlmsg_seq = sequence;
	g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
	g->nfgen_family = NFPROTO_INET;
	mnl_attr_put_strz(h, NFTA_OBJ_TABLE, table);
	mnl_attr_put_strz(h, NFTA_OBJ_NAME, "v4_192.0.2.53_32");
	mnl_attr_put_u32(h, NFTA_OBJ_TYPE, htonl(type));
	mnl_attr_put_u32(h, NFTA_OBJ_USE, htonl(1));
	nest = mnl_attr_nest_start(h, NFTA_OBJ_DATA);
	mnl_attr_put_u64(h, NFTA_COUNTER_BYTES, htobe64(68));
	if (whole)
		mnl_attr_put_u64(h, NFTA_COUNTER_PACKETS, htobe64(1));
	mnl_attr_nest_end(h, nest);
	return h->nlmsg_len;
}

static size_t put_end(char *buf, uint16_t type, uint32_t sequence, int32_t error, uint16_t flags)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);

	h->nlmsg_type = type;
	h->nlmsg_seq = sequence;
	h->nlmsg_flags = flags;
	memcpy(mnl_nlmsg_put_extra_header(h, sizeof(struct nlmsgerr)), &error, sizeof(error));
	return h->nlmsg_len;
}

START_TEST (counters_of_nftables) {
	_Alignas(8) char buf[1024];
	struct seen s = {0};
	size_t n = put_object(buf, "redshank", NFT_OBJECT_COUNTER, 5, true);

	ck_assert_int_eq(nft_parse(buf, n, 5, on_counter, &s), 1);
	ck_assert(s.n == 1 && s.packets == 1 && s.bytes == 68);
	ck_assert_str_eq(s.name, "v4_192.0.2.53_32");
	ck_assert_int_eq(nft_parse(buf, n, 6, on_counter, &s), 1); /* of another dump */
	for (size_t cut = 1; cut < n; cut++)
		ck_assert_int_eq(nft_parse(buf, cut, 5, on_counter, &s), -EBADMSG);
	((struct nlmsghdr *)buf)->nlmsg_len = 0xfffffff0;
	ck_assert_int_eq(nft_parse(buf, n, 5, on_counter, &s), -EBADMSG);
	n = put_object(buf, "other", NFT_OBJECT_COUNTER, 5, true);
	ck_assert_int_eq(nft_parse(buf, n, 5, on_counter, &s), 1);
	n = put_object(buf, "redshank", NFT_OBJECT_QUOTA, 5, true);
	ck_assert_int_eq(nft_parse(buf, n, 5, on_counter, &s), 1);
	n = put_object(buf, "redshank", NFT_OBJECT_COUNTER, 5, false);
	ck_assert_int_eq(nft_parse(buf, n, 5, on_counter, &s), 1);
	ck_assert_uint_eq(s.n, 1);
	n = put_end(buf, NLMSG_DONE, 5, 0, NLM_F_MULTI);
	ck_assert_int_eq(nft_parse(buf, n, 5, on_counter, &s), 0);
	n = put_end(buf, NLMSG_DONE, 5, 0, NLM_F_MULTI | NLM_F_DUMP_INTR);
	ck_assert_int_eq(nft_parse(buf, n, 5, on_counter, &s), -EINTR);
	n = put_end(buf, NLMSG_ERROR, 5, -EPERM, 0);
	ck_assert_int_eq(nft_parse(buf, n, 5, on_counter, &s), -EPERM);
}
END_TEST

START_TEST (names_of_counters) {
	struct prefix p = {0};
	char name[NFT_NAME_MAX];

	ck_assert_int_eq(prefix_parse("192.0.2.53/32", &p, NULL), 0);
	ck_assert_str_eq(nft_counter_name(&p, name), "v4_192.0.2.53_32");
	ck_assert_int_eq(prefix_parse("2001:db8::53/128", &p, NULL), 0);
	ck_assert_str_eq(nft_counter_name(&p, name), "v6_2001_db8__53_128");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("load-parts");
	TCase *t = tcase_create("parts");
	SRunner *runner;
	int failed;

	tcase_add_test(t, stat_of_processors);
	tcase_add_test(t, pressure);
	tcase_add_test(t, softnet);
	tcase_add_test(t, netstat);
	tcase_add_test(t, interfaces);
	tcase_add_test(t, files_are_bounded);
	tcase_add_test(t, numbers_of_services);
	tcase_add_test(t, counters_of_nftables);
	tcase_add_test(t, names_of_counters);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}
