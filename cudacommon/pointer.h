/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an address is: the attributes that cuPointerGetAttribute and cuPointerGetAttributes give, of
 * facts that each driver knows in its own way.  CUDA Driver API, "Unified Addressing".
 *
 * Threading: any; nothing is kept.
 */
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
#include <stdbool.h>
#include <stdint.h>

struct ckt_pointer_facts {
	uint64_t address;        /* that was asked about */
	uint64_t device_address; /* by which a device reaches it; 0: none does */
	uint64_t context;        /* its handle as a number; 0: none */
	uint64_t base, size;
	uint64_t buffer_id;
	uint64_t pool;  /* the memory pool that it comes from; 0: none */
	int device;     /* ordinal */
	bool is_device; /* memory of a device, managed memory included; else of the host */
	bool is_managed;
	bool waits;   /* what is done to it is done when the call returns */
	bool has_ipc; /* cudaIpcGetMemHandle takes it */
	/* the physical memory behind it is known: its own id and the bounds of the mapping */
	bool has_block;
	uint64_t handle_types; /* CUmemAllocationHandleType, as which it can be exported */
	unsigned access;       /* of the current context: CUmemAccess_flags */
};

/*
 * Writes the attribute, as wide as CUDA documents it.  CUDA_ERROR_INVALID_VALUE where the address
 * has none such.
 */
CUresult ckt_pointer_attribute(
	void *data, CUpointer_attribute attribute, const struct ckt_pointer_facts *facts);

/*
 * The attributes of one address; facts NULL: of none that is known, which is no error here.  An
 * attribute that the address has not is zero, and an ordinal -2.  CUDA_ERROR_INVALID_VALUE where an
 * attribute is none, or there is no place for it; nothing is written then.
 */
CUresult ckt_pointer_attributes(unsigned count, const CUpointer_attribute *attributes,
	void *const *data, const struct ckt_pointer_facts *facts);
