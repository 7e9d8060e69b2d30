/* SPDX-License-Identifier: Apache-2.0 */
/* The value of --auto-checkpoint.  No shared state. */
#pragma once

#include <stdbool.h>

/* "30s" or "30s,asked"; a day at most.  0 or -EINVAL. */
int ckt_automatic_parse(const char *text, unsigned *ret_seconds, bool *ret_asked);
