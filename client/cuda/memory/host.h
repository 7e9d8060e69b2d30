/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that the program allocated or registered. */
#pragma once

#include <cuda.h>

#include <stdint.h>

/*
 * Host memory that is allocated or registered: gives the device's address in its place, from here
 * on good there.
 */
CUresult ckt_client_host_reach(uint64_t *address);
