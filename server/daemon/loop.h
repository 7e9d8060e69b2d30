/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's event loop: descriptors and timers.  One thread; a callback may add, change and
 * remove any source or timer, its own included, and free what holds it (the loop takes one event at
 * a time).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ckt_source {
	int fd;          /* the owner's; -1 while not in a loop */
	uint32_t events; /* EPOLL* */
	void (*ready)(struct ckt_source *source, uint32_t events);
};

struct ckt_timer {
	int64_t due_ms; /* CLOCK_MONOTONIC */
	void (*fire)(struct ckt_timer *timer);
	struct ckt_timer *next, **link; /* link is NULL while not set */
};

struct ckt_loop {
	int epoll_fd;
	bool stop;
	struct ckt_timer *timers; /* sorted by due_ms */
};

#define CKT_CONTAINER(pointer, type, member) \
	((type *)((char *)(pointer) - __builtin_offsetof(type, member)))

int ckt_loop_init(struct ckt_loop *loop);
void ckt_loop_fini(struct ckt_loop *loop);
/* Until loop->stop. 0 or -errno. */
int ckt_loop_run(struct ckt_loop *loop);

/* source->fd and ready are set by the caller. */
int ckt_loop_add(struct ckt_loop *loop, struct ckt_source *source, uint32_t events);
int ckt_loop_change(struct ckt_loop *loop, struct ckt_source *source, uint32_t events);
/*
 * The caller keeps the descriptor open; source->fd becomes -1. Must happen before the descriptor is
 * passed on: epoll watches the open file, not the number.
 */
int ckt_loop_remove(struct ckt_loop *loop, struct ckt_source *source);

/* Sets or moves the timer; the caller sets timer->fire. */
void ckt_timer_set(struct ckt_loop *loop, struct ckt_timer *timer, int64_t delay_ms);
void ckt_timer_clear(struct ckt_timer *timer);
