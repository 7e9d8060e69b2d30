/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of the session, as its servers described them. */
#pragma once

#include <cuda.h>

struct ckt_device;

/*
 * Finds a device.  NULL if cuInit has not run or there is no such device; *ret_result (may be NULL)
 * is then the error.
 */
const struct ckt_device *ckt_client_device_get(CUdevice device, CUresult *ret_result);
int ckt_client_device_attribute(CUdevice device, CUdevice_attribute attribute);
unsigned ckt_client_device_count(void);
