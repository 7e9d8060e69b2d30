/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools. */
#pragma once

#include <stdbool.h>

struct ckt_soft_context;
struct ckt_soft_device;
struct ckt_soft_range;

/* Called after the program has waited: frees what exceeds the pools' thresholds. */
void ckt_soft_pools_settle(void);
/* Waits for all memory that pools keep on the device and frees it; false if there is none. */
bool ckt_soft_pools_release(const struct ckt_soft_device *device);
void ckt_soft_pools_forget(const struct ckt_soft_context *context);
/* Called when memory of a pool is freed without a stream. */
void ckt_soft_pool_forget(const struct ckt_soft_range *range);
