/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's functions as the worker calls them: ckt_driver.cuX, filled by ckt_driver_open. */
#pragma once

#include "rpc/gen/cuda_driver.h"
