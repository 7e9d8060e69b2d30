/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop; see loop.h. */
#include "server/daemon/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rpc/net.h"

enum { HANDLED_MAX = 1000 }; /* events, some ten microseconds each */

int ckt_loop_init(struct ckt_loop *loop)
{
	*loop = (struct ckt_loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
	return loop->epoll_fd < 0 ? -errno : 0;
}

void ckt_loop_fini(struct ckt_loop *loop)
{
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	loop->epoll_fd = -1;
}

static void fire_due(struct ckt_loop *loop)
{
	int64_t now = ckt_net_now_ms();
	while (loop->timers && loop->timers->due_ms <= now) {
		struct ckt_timer *timer = loop->timers;
		ckt_timer_clear(timer);
		timer->fire(timer);
	}
}

int ckt_loop_run(struct ckt_loop *loop)
{
	unsigned handled = 0;
	while (!loop->stop) {
		int timeout = -1;
		if (loop->timers) {
			int64_t left = loop->timers->due_ms - ckt_net_now_ms();
			timeout = left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
		}
		/*
		 * One at a time: a callback may free the source of a later event in the same batch.
		 */
		struct epoll_event event;
		int n = epoll_wait(loop->epoll_fd, &event, 1, timeout);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			struct ckt_source *source = event.data.ptr;
			source->ready(source, event.events);
		}
		/*
		 * Events before timers: after a delay (a machine that slept, a busy one) a waiting
		 * reply must not be taken for a missing one.  But a peer that always sends holds up
		 * no timer for long.
		 */
		if (n > 0 && ++handled < HANDLED_MAX)
			continue;
		handled = 0;
		fire_due(loop);
	}
	return 0;
}

static int control(struct ckt_loop *loop, int operation, struct ckt_source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};
	if (epoll_ctl(loop->epoll_fd, operation, source->fd, &event))
		return -errno;
	source->events = events;
	return 0;
}

int ckt_loop_add(struct ckt_loop *loop, struct ckt_source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_ADD, source, events);
}

int ckt_loop_change(struct ckt_loop *loop, struct ckt_source *source, uint32_t events)
{
	return source->events == events ? 0 : control(loop, EPOLL_CTL_MOD, source, events);
}

int ckt_loop_remove(struct ckt_loop *loop, struct ckt_source *source)
{
	int fd = source->fd;
	if (fd >= 0)
		epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	source->fd = -1;
	return fd;
}

void ckt_timer_clear(struct ckt_timer *timer)
{
	if (!timer->link)
		return;
	*timer->link = timer->next;
	if (timer->next)
		timer->next->link = timer->link;
	timer->link = NULL;
	timer->next = NULL;
}

void ckt_timer_set(struct ckt_loop *loop, struct ckt_timer *timer, int64_t delay_ms)
{
	ckt_timer_clear(timer);
	timer->due_ms = ckt_net_now_ms() + delay_ms;
	struct ckt_timer **place = &loop->timers;
	while (*place && (*place)->due_ms <= timer->due_ms)
		place = &(*place)->next;
	timer->next = *place;
	timer->link = place;
	if (timer->next)
		timer->next->link = &timer->next;
	*place = timer;
}
