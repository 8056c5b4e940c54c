/* What comes on a netlink socket, before libmnl takes it apart. */
#include <check.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>

#include "agent/system/netlink.h"

static unsigned calls;

static int on_message(const struct nlmsghdr *nlh, void *userdata)
{
	calls++;
	return MNL_CB_OK;
}

/* Messages of these lengths, one behind the other, in `n` bytes. */
static const struct {
	const char *what;
	uint32_t lengths[3];
	size_t n;
	bool whole;
	unsigned calls;
} rows[] = {
	{"nothing", {0}, 0, true, 0},
	{"less than a header", {0}, 15, true, 0},
	{"one", {16}, 16, true, 1},
	{"two", {20, 16}, 36, true, 2},
	{"the last with its padding", {16, 17}, 36, true, 2},
	{"the last without its padding", {16, 17}, 33, false, 0},
	{"less than a header behind it", {16}, 24, true, 1},
	{"shorter than its own header", {15}, 32, false, 0},
	{"of no length", {0}, 32, false, 0},
	{"cut", {16, 20}, 34, false, 0},
	{"of 2 GB", {0x80000010}, 64, false, 0},
	{"of 4 GB", {0xffffffff}, 64, false, 0},
	{"the second of 4 GB", {16, 0xfffffff0}, 64, false, 0},
};

START_TEST (whole_or_not) {
	char *buf = calloc(1, rows[_i].n + 1);
	size_t at = 0;

	for (size_t i = 0; i < 3 && at + 16 <= rows[_i].n; i++) {
		struct nlmsghdr header = {
			.nlmsg_len = rows[_i].lengths[i], .nlmsg_type = NLMSG_MIN_TYPE};

		memcpy(buf + at, &header, sizeof(header));
		at += NLMSG_ALIGN(rows[_i].lengths[i] % 64);
		if (rows[_i].lengths[i] == 0)
			break;
	}
	calls = 0;
	errno = 0;
	ck_assert_msg(netlink_is_whole(buf, rows[_i].n) == rows[_i].whole, "%s", rows[_i].what);
	ck_assert_int_eq(netlink_run(buf, rows[_i].n, 0, 0, on_message, NULL),
		rows[_i].whole ? MNL_CB_OK : -1);
	ck_assert_uint_eq(calls, rows[_i].calls);
	ck_assert_int_eq(errno, rows[_i].whole ? 0 : EBADMSG);
	free(buf);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("system-netlink");
	TCase *tcase = tcase_create("messages");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tcase, whole_or_not, 0, sizeof(rows) / sizeof(rows[0]));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
