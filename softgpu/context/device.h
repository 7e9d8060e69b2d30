/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of CRICKET_SOFT_DEVICES. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "softgpu/cuda_api.h"
#include "softgpu/memory/arena.h"

enum { CKT_SOFT_DRIVER_VERSION = 13000 };

struct ckt_soft_context;

struct ckt_soft_arch {
	unsigned capability;              /* for example 120 */
	unsigned shared_sm, shared_optin; /* KiB */
	unsigned threads_sm, blocks_sm;
};

struct ckt_soft_device {
	int ordinal;
	int serial; /* the place in CRICKET_SOFT_DEVICES */
	const struct ckt_soft_arch *arch;
	uint64_t total_bytes;
	uint64_t budget_bytes; /* 0: none */
	atomic_uint_fast64_t used_bytes;
	unsigned n_sm;
	/* protects the primary context's count and flags, and the creation of the arena */
	pthread_mutex_t lock;
	/* created at the first retain and never freed; NULL before */
	struct ckt_soft_context *primary;
	unsigned primary_refs, primary_flags;
	bool arena_ready;
	/*
	 * At the same address in every process: a restore needs module variables at their old
	 * addresses. An address chosen by the kernel would depend on the mappings of other threads.
	 */
	struct ckt_soft_arena arena;
};

/* NULL if there is no such ordinal. */
struct ckt_soft_device *ckt_soft_device(int ordinal);
int ckt_soft_device_count(void);
CUresult ckt_soft_devices_init(void);
/* Call it before the first use of the device's memory. */
CUresult ckt_soft_device_prepare(struct ckt_soft_device *device);
/* Counts bytes as used; CUDA_ERROR_OUT_OF_MEMORY if the device has less memory left. */
CUresult ckt_soft_device_charge(struct ckt_soft_device *device, uint64_t bytes);
void ckt_soft_device_uncharge(struct ckt_soft_device *device, uint64_t bytes);
/* CUDA_ERROR_NOT_INITIALIZED before cuInit and in a forked child; otherwise CUDA_SUCCESS. */
CUresult ckt_soft_initialized(void);
