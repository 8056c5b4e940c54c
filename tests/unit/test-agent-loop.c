/* The loop measures what is dispatched and how late its timer is, and ends with the code it is
 * told. */
#include <check.h>
#include <poll.h>
#include <stdlib.h>

#include "agent/base/clock.h"
#include "agent/loop.h"

#define CODE 7
#define BLOCK_MS 60 /* above the bucket that ends at 50 ms */
#define BUCKETS_BELOW 5

static sd_event *event;
static struct loop *loop;
static struct monotime began;

static void setup(void)
{
	ck_assert_int_ge(sd_event_new(&event), 0);
	ck_assert_int_eq(loop_new(&loop, event), 0);
	began = clock_monotime();
}

static void teardown(void)
{
	loop_free(loop);
	sd_event_unref(event);
}

static uint64_t longer(const struct histogram *h)
{
	uint64_t below = 0;

	for (size_t i = 0; i < BUCKETS_BELOW; i++)
		below += h->buckets[i];
	return h->count - below;
}

static int on_block(sd_event_source *source, uint64_t us, void *userdata)
{
	(void)poll(NULL, 0, BLOCK_MS);
	return 0;
}

static int on_end(sd_event_source *source, uint64_t us, void *userdata)
{
	return sd_event_exit(event, CODE);
}

static void at_ms(uint64_t ms, int64_t priority, sd_event_time_handler_t handler)
{
	sd_event_source *source = NULL;

	ck_assert_int_ge(sd_event_add_time(event, &source, CLOCK_BOOTTIME, began.us + ms * 1000, 1,
				 handler, NULL),
		0);
	ck_assert_int_ge(sd_event_source_set_priority(source, priority), 0);
	ck_assert_int_ge(sd_event_source_set_floating(source, true), 0);
	sd_event_source_unref(source);
}

/* Something that blocks is a long turn, and makes late what was due meanwhile: the timer that looks
 * once a second, a second after the start. */
START_TEST (what_blocks_is_seen) {
	const struct loop_view *view = loop_view(loop);

	ck_assert_ptr_nonnull(view);
	at_ms(996, -1, on_block);
	at_ms(996 + BLOCK_MS + 500, 1, on_end);
	ck_assert_int_eq(loop_run(loop), CODE);
	ck_assert_uint_ge(longer(&view->turns), 1);
	ck_assert_uint_ge(view->turns.count, 3);
	ck_assert_uint_ge(view->lateness.count, 1);
	ck_assert_uint_ge(longer(&view->lateness), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("agent-loop");
	TCase *tests = tcase_create("loop");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, what_blocks_is_seen);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
