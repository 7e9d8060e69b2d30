/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries (cuLibrary*): what launches need of them. */
#pragma once

#include <cuda.h>

#include <stdint.h>

struct ckt_function;

/* Finds the kernel's function in the current context. */
CUresult ckt_client_kernel_function(uint64_t kernel, struct ckt_function **ret_function);
