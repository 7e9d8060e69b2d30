/* How many processors this process may run on, and from how many on it pays to poll. */
#pragma once

#include <sched.h>
#include <unistd.h>

/*
 * With no more than these neither side of a connection polls for long: they have none of their own.
 */
enum { CKT_FEW_PROCESSORS = 4 };

static inline unsigned ckt_processors(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) ? (unsigned)sysconf(_SC_NPROCESSORS_ONLN)
						      : (unsigned)CPU_COUNT(&set);
}
