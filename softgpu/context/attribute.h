/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of devices. */
#pragma once

#include "softgpu/cuda_api.h"

struct ckt_soft_device;

int ckt_soft_device_attribute(
	const struct ckt_soft_device *device, CUdevice_attribute attribute, CUresult *ret_result);
