/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory that the program does not use, for frozen state.
 *
 * Threading: the control thread that froze the session.
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

#include "base/bounds.h"

struct ckt_worker;

/*
 * Memory of the session's devices for frozen state, while an image is written behind the running
 * program.  The parts lie one after the other from CKT_SPARE_BASE on.
 */
struct ckt_spare {
	struct ckt_spare_part {
		uint64_t address, size, piece;
	} parts[CKT_DEVICES_MAX]; /* size 0: the device has none */
	uint64_t size;            /* of all */
};

/*
 * As much memory of the first device as the session holds there, if the card has room beyond a
 * reserve for the program.  Taken before the session is frozen, because it takes time.
 */
void ckt_spare_memory_take(struct ckt_worker *worker, struct ckt_spare *ret_spare);
/* The same of the other devices, if the first has its part.  Precondition: frozen. */
void ckt_spare_memory_take_others(struct ckt_worker *worker, struct ckt_spare *spare);
void ckt_spare_memory_give(struct ckt_worker *worker, struct ckt_spare *spare);
/*
 * Makes the device's primary context current.  Precondition: frozen, or it is the first device.
 */
CUresult ckt_spare_memory_use(struct ckt_worker *worker, unsigned device);
