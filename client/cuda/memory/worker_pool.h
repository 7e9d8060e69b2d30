/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools of the worker. */
#pragma once

#include <stdbool.h>

/* Whether memory was ever freed on a stream.  If so, a wait may make it available. */
bool ckt_pool_may_settle(void);
