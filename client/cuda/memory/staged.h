/* SPDX-License-Identifier: Apache-2.0 */
/* Large copies through memory that the worker shares. */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

struct ckt_copy2d;

/*
 * Copies between the device and host memory.  Returns false, and copies nothing, if the copy must
 * use the connection.  is_waited_for: the call waits for a copy to the device in any case.
 */
bool ckt_staged_copy(
	const struct ckt_copy2d *c, uint64_t stream, bool is_waited_for, CUresult *ret_result);
