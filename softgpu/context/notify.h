/* SPDX-License-Identifier: Apache-2.0 */
/* Async notifications of a device. */
#pragma once

#include <stdint.h>

struct ckt_soft_device;

/* Call it when the process has this many bytes more on the device than its budget. */
void ckt_soft_notify_over(const struct ckt_soft_device *device, uint64_t bytes);
