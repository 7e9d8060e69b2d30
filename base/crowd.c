/* SPDX-License-Identifier: Apache-2.0 */
/* Whether other threads want the processor of a thread that polls; see crowd.h. */
#include "base/crowd.h"

#include <sys/resource.h>

static int64_t own_switches(void)
{
	struct rusage usage;
	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
}

int64_t (*ckt_crowd_switches)(void) = own_switches;

void ckt_crowd_begin(struct ckt_crowd *crowd, int64_t now_ns)
{
	if (crowd->look_ns < now_ns + CKT_CROWD_LOOK_NS)
		crowd->look_ns = now_ns + CKT_CROWD_LOOK_NS;
}

static void back_off(struct ckt_crowd *crowd, int64_t now_ns)
{
	int64_t ended_ns = atomic_load_explicit(&crowd->until_ns, memory_order_relaxed);
	bool again = crowd->pause_ns && now_ns - ended_ns < crowd->pause_ns;
	crowd->pause_ns = again ? 2 * crowd->pause_ns : CKT_CROWD_PAUSE_NS;
	if (crowd->pause_ns > CKT_CROWD_PAUSE_MAX_NS)
		crowd->pause_ns = CKT_CROWD_PAUSE_MAX_NS;
	crowd->window_ns = 0;
	atomic_store_explicit(&crowd->until_ns, now_ns + crowd->pause_ns, memory_order_relaxed);
}

void ckt_crowd_look(struct ckt_crowd *crowd, int64_t now_ns)
{
	if (now_ns < crowd->look_ns || ckt_crowd_is(crowd, now_ns))
		return;
	crowd->look_ns = now_ns + CKT_CROWD_LOOK_NS;
	int64_t switches = ckt_crowd_switches();
	if (!crowd->window_ns || now_ns - crowd->window_ns > CKT_CROWD_WINDOW_NS) {
		crowd->window_ns = now_ns;
		crowd->switches = switches;
	} else if (switches - crowd->switches >= CKT_CROWD_SWITCHES) {
		back_off(crowd, now_ns);
	}
}

bool ckt_crowd_is(const struct ckt_crowd *crowd, int64_t now_ns)
{
	return now_ns < atomic_load_explicit(&crowd->until_ns, memory_order_relaxed);
}

int64_t ckt_crowd_spin_ns(const struct ckt_crowd *crowd, int64_t now_ns, int64_t wanted_ns)
{
	return wanted_ns > CKT_CROWD_SPIN_NS && ckt_crowd_is(crowd, now_ns) ? CKT_CROWD_SPIN_NS
									    : wanted_ns;
}
