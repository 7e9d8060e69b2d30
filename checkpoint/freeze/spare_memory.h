/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory that the program does not use, for frozen state.
 *
 * Threading: the control thread that froze the session.
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

struct ckt_worker;

/*
 * Memory of the first device for frozen state, while an image is written behind the running
 * program.
 */
struct ckt_spare {
	uint64_t size, piece;
};

/*
 * As much spare memory as the session holds, where the card has room beyond a reserve for
 * the program.
 */
void ckt_spare_memory_take(struct ckt_worker *worker, struct ckt_spare *ret_spare);
void ckt_spare_memory_give(struct ckt_worker *worker, struct ckt_spare *spare);
/* Makes the first device's primary context current. */
CUresult ckt_spare_memory_use(struct ckt_worker *worker);
