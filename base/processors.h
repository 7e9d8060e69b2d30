/* SPDX-License-Identifier: Apache-2.0 */
/* How many processors this process may run on, and with how many polling pays. */
#pragma once

#include <sched.h>
#include <unistd.h>

/* With this many or fewer, neither side of a connection polls for long: the sides share them. */
enum { CKT_FEW_PROCESSORS = 4 };

static inline unsigned ckt_processors(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) ? (unsigned)sysconf(_SC_NPROCESSORS_ONLN)
						      : (unsigned)CPU_COUNT(&set);
}
