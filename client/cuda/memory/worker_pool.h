/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools, which the worker keeps. */
#pragma once

#include <stdbool.h>

/* Whether anything was ever freed on a stream: it may be had back by waiting. */
bool ckt_pool_may_settle(void);
