/* SPDX-License-Identifier: Apache-2.0 */
/* Memory operations: a stream or a graph node writes a value, or waits until memory has a value. */
#pragma once

#include "cudacommon/interface.h"

/* Bytes that the operation accesses; 0 for operations without an address. */
unsigned ckt_memop_width(CUstreamBatchMemOpType type);
bool ckt_memop_is_wait(CUstreamBatchMemOpType type);
CUresult ckt_memop_check(const CUstreamBatchMemOpParams *ops, unsigned count, unsigned flags);
