/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a GPU that the server's warm workers have: they give it up for any session that is short of it
 * (server/daemon/session/warm_workers.h).  Threading: any; waits two seconds at most, for processes to end.
 */
#pragma once

#include <stdbool.h>

/*
 * After the driver had no memory on this GPU, by the server's number.  Whether some was given up, and the call is
 * worth another try.
 */
bool ckt_freed_memory_ask(unsigned gpu);
