/* SPDX-License-Identifier: Apache-2.0 */
/* Large copies through pieces of memory that the worker shares. */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

struct ckt_copy2d;

/*
 * Between the device and memory that is not pinned.  False where the copy has to go by the
 * connection.
 */
bool ckt_staged_copy(const struct ckt_copy2d *c, uint64_t stream, CUresult *ret_result);
