/* SPDX-License-Identifier: Apache-2.0 */
/* Durations on the command line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* "90", "30m", "2h" */
bool ckt_ctl_parse_duration(const char *text, int64_t *ret_seconds);
