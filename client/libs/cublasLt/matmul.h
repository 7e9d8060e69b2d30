/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of a call. */
#pragma once

#include <stdint.h>

#include "client/libs/cublasLt/api.h"
#include "rpc/cublaslt.h"

/* A descriptor's bytes, checked.  INVALID_VALUE for NULL and for what is no descriptor. */
struct ckt_lt_bytes {
	const uint8_t *bytes;
	uint32_t length;
};
cublasStatus_t ckt_lt_descriptor(
	enum ckt_lt_kind kind, const void *descriptor, struct ckt_lt_bytes *ret);
/* Of the emulation descriptor in a matmul descriptor; none where it has none. */
void ckt_lt_emulation(const void *matmul, struct ckt_lt_bytes *ret);
