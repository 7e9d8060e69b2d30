/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the servers. ckt_nvml_call returns nvmlReturn_t; any thread may call both. */
#pragma once

#include <stdint.h>

#include <rpc/rpc.h>

/* The number of servers. If the addresses are invalid, logs the reason and returns 0. */
unsigned ckt_nvml_servers(void);
/* The caller zeroes *ret before the call, and frees it with xdr_free after success. */
int ckt_nvml_call(unsigned server, uint32_t proc, xdrproc_t xdr_args, void *args, xdrproc_t xdr_res,
	void *ret);
