/* SPDX-License-Identifier: Apache-2.0 */
/* Memory operations as they travel; see rpc/graph.h. */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ops: room for CKT_MEMOPS_MAX.  False if the bytes are not operations. */
bool ckt_memops_decode(
	const uint8_t *data, size_t size, CUstreamBatchMemOpParams *ops, unsigned *ret_count);
