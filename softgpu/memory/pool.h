/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools. */
#pragma once

#include <stdbool.h>

struct ckt_soft_context;
struct ckt_soft_device;
struct ckt_soft_range;

/* The program has waited: what pools should not keep goes. */
void ckt_soft_pools_settle(void);
/* Waits for all that pools keep on the device and gives it back; false where that is nothing. */
bool ckt_soft_pools_release(const struct ckt_soft_device *device);
void ckt_soft_pools_forget(const struct ckt_soft_context *context);
/* Memory of a pool goes that was not freed on a stream. */
void ckt_soft_pool_forget(const struct ckt_soft_range *range);
