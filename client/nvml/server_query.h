/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the servers.  Functions return nvmlReturn_t; any thread may call them. */
#pragma once

#include <stdint.h>

#include <rpc/rpc.h>

/* How many there are; 0, and it was told why, where the addresses are none. */
unsigned ckt_nvml_servers(void);
/* Of the server of that number.  *ret is zeroed before and freed with xdr_free after success. */
int ckt_nvml_call(unsigned server, uint32_t proc, xdrproc_t xdr_args, void *args, xdrproc_t xdr_res,
	void *ret);
