/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/loop.c: the event loop: timers in order, sources that go while others wait. */
#include <CUnit/Basic.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "server/daemon/loop.h"

static struct ckt_loop loop;
static int fired[16], fired_count;

struct numbered {
	struct ckt_timer timer;
	int number;
};

static void fire(struct ckt_timer *timer)
{
	fired[fired_count++] = CKT_CONTAINER(timer, struct numbered, timer)->number;
	if (fired_count == 3)
		loop.stop = true;
}

static void test_timers(void)
{
	struct numbered timers[5];
	CU_ASSERT_EQUAL_FATAL(ckt_loop_init(&loop), 0);
	for (int i = 0; i < 5; i++)
		timers[i] = (struct numbered){{.fire = fire}, i};
	ckt_timer_set(&loop, &timers[0].timer, 30);
	ckt_timer_set(&loop, &timers[1].timer, 10);
	ckt_timer_set(&loop, &timers[2].timer, 20);
	ckt_timer_set(&loop, &timers[3].timer, 15);
	ckt_timer_set(&loop, &timers[4].timer, 5000);
	ckt_timer_clear(&timers[3].timer);
	ckt_timer_clear(&timers[3].timer);
	/* Moves. */
	ckt_timer_set(&loop, &timers[1].timer, 40);
	fired_count = 0;
	CU_ASSERT_EQUAL(ckt_loop_run(&loop), 0);
	CU_ASSERT_EQUAL_FATAL(fired_count, 3);
	CU_ASSERT(fired[0] == 2 && fired[1] == 0 && fired[2] == 1);
	CU_ASSERT_PTR_EQUAL(loop.timers, &timers[4].timer);
	ckt_timer_clear(&timers[4].timer);
	CU_ASSERT_PTR_NULL(loop.timers);
	ckt_loop_fini(&loop);
}

static struct ckt_source pair[2];
static int ready_count;

/* Both are ready; the first to run removes the other, which must then not be called. */
static void remove_other(struct ckt_source *source, uint32_t events)
{
	(void)events;
	ready_count++;
	ckt_loop_remove(&loop, &pair[source == &pair[0]]);
	if (ready_count == 3)
		loop.stop = true;
}

static void test_removal(void)
{
	int a[2], b[2];
	CU_ASSERT_EQUAL_FATAL(ckt_loop_init(&loop), 0);
	CU_ASSERT_EQUAL_FATAL(pipe(a) || pipe(b), 0);
	CU_ASSERT_EQUAL(write(a[1], "x", 1), 1);
	CU_ASSERT_EQUAL(write(b[1], "x", 1), 1);
	pair[0] = (struct ckt_source){.fd = a[0], .ready = remove_other};
	pair[1] = (struct ckt_source){.fd = b[0], .ready = remove_other};
	CU_ASSERT_EQUAL(ckt_loop_add(&loop, &pair[0], EPOLLIN), 0);
	CU_ASSERT_EQUAL(ckt_loop_add(&loop, &pair[1], EPOLLIN), 0);
	ready_count = 0;
	CU_ASSERT_EQUAL(ckt_loop_run(&loop), 0);
	CU_ASSERT_EQUAL((pair[0].fd < 0) + (pair[1].fd < 0), 1);
	ckt_loop_fini(&loop);
	close(a[0]), close(a[1]), close(b[0]), close(b[1]);
}

static int order[4], order_count;
static struct ckt_source talker;

static void note_event(struct ckt_source *source, uint32_t events)
{
	char byte;
	(void)events;
	CU_ASSERT_EQUAL(read(source->fd, &byte, 1), 1);
	order[order_count++] = 1;
}

static void note_timer(struct ckt_timer *timer)
{
	(void)timer;
	order[order_count++] = 2;
	loop.stop = true;
}

static unsigned talked;

static void talk_on(struct ckt_source *source, uint32_t events)
{
	(void)source, (void)events;
	talked++;
}

/*
 * After a pause of the whole process: what came meanwhile is seen before a time-out that is over as
 * well.  And no peer holds timers up.
 */
static void test_held_up(void)
{
	int a[2], b[2];
	struct ckt_timer timer = {.fire = note_timer};
	CU_ASSERT_EQUAL_FATAL(ckt_loop_init(&loop), 0);
	CU_ASSERT_EQUAL_FATAL(pipe(a) || pipe(b), 0);
	pair[0] = (struct ckt_source){.fd = a[0], .ready = note_event};
	pair[1] = (struct ckt_source){.fd = b[0], .ready = note_event};
	CU_ASSERT_EQUAL(ckt_loop_add(&loop, &pair[0], EPOLLIN), 0);
	CU_ASSERT_EQUAL(ckt_loop_add(&loop, &pair[1], EPOLLIN), 0);
	ckt_timer_set(&loop, &timer, -1000);
	CU_ASSERT_EQUAL(write(a[1], "x", 1), 1);
	CU_ASSERT_EQUAL(write(b[1], "x", 1), 1);
	CU_ASSERT_EQUAL(ckt_loop_run(&loop), 0);
	CU_ASSERT_EQUAL(order_count, 3);
	CU_ASSERT(order[0] == 1 && order[1] == 1 && order[2] == 2);
	loop.stop = false;
	talker = (struct ckt_source){.fd = b[1], .ready = talk_on};
	CU_ASSERT_EQUAL(ckt_loop_add(&loop, &talker, EPOLLOUT), 0);
	ckt_timer_set(&loop, &timer, -1);
	CU_ASSERT_EQUAL(ckt_loop_run(&loop), 0);
	CU_ASSERT_EQUAL(order_count, 4);
	CU_ASSERT(talked > 0 && talked <= 1000);
	ckt_loop_fini(&loop);
	close(a[0]), close(a[1]), close(b[0]), close(b[1]);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("loop", NULL, NULL);
	CU_add_test(suite, "timers", test_timers);
	CU_add_test(suite, "removal", test_removal);
	CU_add_test(suite, "held up", test_held_up);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
