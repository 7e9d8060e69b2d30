/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pointer attributes of cuPointerGetAttribute and cuPointerGetAttributes, from facts that each
 * driver provides.  CUDA Driver API, "Unified Addressing".
 *
 * Threading: any; no state.
 */
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
#include <stdbool.h>
#include <stdint.h>

struct ckt_pointer_facts {
	uint64_t address;        /* the queried address */
	uint64_t device_address; /* the address for devices; 0: no device can access it */
	uint64_t context;        /* the handle as a number; 0: none */
	uint64_t base, size;
	uint64_t buffer_id;
	uint64_t pool;  /* the memory pool of the address; 0: none */
	int device;     /* ordinal */
	bool is_device; /* device memory, including managed memory; otherwise host memory */
	bool is_managed;
	bool waits;   /* operations on it are synchronous */
	bool has_ipc; /* cudaIpcGetMemHandle accepts it */
	/* the physical memory is known: its id and the bounds of the mapping */
	bool has_block;
	uint64_t handle_types; /* CUmemAllocationHandleType values for an export */
	unsigned access;       /* of the current context: CUmemAccess_flags */
};

/*
 * Writes the attribute with its documented size.  CUDA_ERROR_INVALID_VALUE if the address does not
 * have it.
 */
CUresult ckt_pointer_attribute(
	void *data, CUpointer_attribute attribute, const struct ckt_pointer_facts *facts);

/*
 * The attributes of one address.  facts NULL: the address is unknown, which is no error here.  A
 * missing attribute is zero, and a missing ordinal -2.  CUDA_ERROR_INVALID_VALUE if an attribute is
 * invalid or an output is NULL; then nothing is written.
 */
CUresult ckt_pointer_attributes(unsigned count, const CUpointer_attribute *attributes,
	void *const *data, const struct ckt_pointer_facts *facts);
