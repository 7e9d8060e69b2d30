/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of the session, as its servers described them. */
#pragma once

#include <cuda.h>

struct ckt_device;

/* NULL with the error to return in ret_result (may be NULL): not initialised, or no such device. */
const struct ckt_device *ckt_client_device_get(CUdevice device, CUresult *ret_result);
int ckt_client_device_attribute(CUdevice device, CUdevice_attribute attribute);
unsigned ckt_client_device_count(void);
