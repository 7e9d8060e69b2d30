/* SPDX-License-Identifier: Apache-2.0 */
/* How a thread waits for a reply; see spin.h. */
#include "client/conn/spin.h"

#include <cuda.h>
#include <sched.h>
#include <stdatomic.h>

#include "client/conn/settings.h"
#include "base/clock.h"
#include "base/crowd.h"
#include "base/processors.h"

static _Atomic unsigned schedule, waiting;
static _Thread_local struct ckt_crowd crowd __attribute__((tls_model("initial-exec")));

void ckt_spin_schedule(unsigned flags)
{
	atomic_store_explicit(&schedule, flags & CU_CTX_SCHED_MASK, memory_order_relaxed);
}

bool ckt_spin_sleeps(void)
{
	return atomic_load_explicit(&schedule, memory_order_relaxed) == CU_CTX_SCHED_BLOCKING_SYNC;
}

struct ckt_spin ckt_spin_short(void)
{
	return (struct ckt_spin){
		.until_us = ckt_settings.spin_us ? ckt_now_ns() / 1000 + ckt_settings.spin_us : 0};
}

/*
 * At most half of the processors poll.  The flusher, the program's other threads and, on the same
 * host, the worker also need processors.
 */
static bool polls(unsigned flags, unsigned threads)
{
	if (ckt_settings.spin_given || flags == CU_CTX_SCHED_BLOCKING_SYNC)
		return false;
	if (flags == CU_CTX_SCHED_SPIN)
		return ckt_settings.processors > 1;
	return ckt_settings.processors > CKT_FEW_PROCESSORS &&
		threads <= ckt_settings.processors / 2;
}

struct ckt_spin ckt_spin_begin(void)
{
	unsigned flags = atomic_load_explicit(&schedule, memory_order_relaxed);
	unsigned threads = atomic_fetch_add_explicit(&waiting, 1, memory_order_relaxed) + 1;
	if (!polls(flags, threads))
		return ckt_spin_short();
	int64_t now_ns = ckt_now_ns();
	if (ckt_crowd_is(&crowd, now_ns))
		return ckt_spin_short();
	ckt_crowd_begin(&crowd, now_ns);
	return (struct ckt_spin){.until_us = now_ns / 1000 + CKT_SPIN_LONG_US,
		.yield = flags == CU_CTX_SCHED_YIELD,
		.looks = true};
}

void ckt_spin_end(void)
{
	atomic_fetch_sub_explicit(&waiting, 1, memory_order_relaxed);
}

bool ckt_spin_again(const struct ckt_spin *spin)
{
	if (!spin->until_us)
		return false;
	int64_t now_ns = ckt_now_ns();
	if (spin->looks) {
		ckt_crowd_look(&crowd, now_ns);
		if (ckt_crowd_is(&crowd, now_ns))
			return false;
	}
	if (now_ns / 1000 >= spin->until_us)
		return false;
	if (spin->yield)
		sched_yield();
	return true;
}
