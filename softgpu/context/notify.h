/* SPDX-License-Identifier: Apache-2.0 */
/* What other processes on the device are told. */
#pragma once

#include <stdint.h>

struct ckt_soft_device;

/* The process has bytes more on the device than its budget. */
void ckt_soft_notify_over(const struct ckt_soft_device *device, uint64_t bytes);
