/* SPDX-License-Identifier: Apache-2.0 */
/* The account of host memory; see host_budget.h. */
#include "server/worker/session/host_budget.h"

#include <stdatomic.h>

#include "base/log.h"
#include "rpc/net.h"

enum { SAY_EVERY_MS = 1000 };

static uint64_t limit; /* constant once the session has begun */
static _Atomic uint64_t used;
static _Atomic int64_t said_ms;

void ckt_budget_init(uint64_t limit_bytes)
{
	limit = limit_bytes;
}

static void say(uint64_t bytes, const char *what)
{
	int64_t now = ckt_net_now_ms(), before = atomic_load(&said_ms);
	if ((before && now - before < SAY_EVERY_MS) ||
		!atomic_compare_exchange_strong(&said_ms, &before, now))
		return;
	ckt_warning("%s: %llu MiB of host memory do not fit: the session has %llu MiB of "
		    "at most %llu; raise --session-host-memory",
		what, (unsigned long long)((bytes + (1 << 20) - 1) >> 20),
		(unsigned long long)(atomic_load(&used) >> 20), (unsigned long long)(limit >> 20));
}

bool ckt_budget_charge(uint64_t bytes, const char *what)
{
	uint64_t before = atomic_load(&used);
	do {
		if (bytes > UINT64_MAX - before ||
			(limit && (before > limit || bytes > limit - before))) {
			say(bytes, what);
			return false;
		}
	} while (!atomic_compare_exchange_weak(&used, &before, before + bytes));
	return true;
}

void ckt_budget_add(uint64_t bytes)
{
	atomic_fetch_add(&used, bytes);
}

void ckt_budget_uncharge(uint64_t bytes)
{
	atomic_fetch_sub(&used, bytes);
}

uint64_t ckt_budget_used(void)
{
	return atomic_load(&used);
}

uint64_t ckt_budget_left(void)
{
	uint64_t now = atomic_load(&used);
	return !limit ? UINT64_MAX : now < limit ? limit - now : 0;
}
