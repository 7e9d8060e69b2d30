/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, as CRICKET_SOFT_DEVICES names them. */
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
	unsigned capability;              /* 120 */
	unsigned shared_sm, shared_optin; /* KiB */
	unsigned threads_sm, blocks_sm;
};

struct ckt_soft_device {
	int ordinal;
	int serial; /* its place in CRICKET_SOFT_DEVICES */
	const struct ckt_soft_arch *arch;
	uint64_t total_bytes;
	uint64_t budget_bytes; /* 0: none */
	atomic_uint_fast64_t used_bytes;
	unsigned n_sm;
	/* primary context's count and flags, the arena's making */
	pthread_mutex_t lock;
	/* made at the first retain, kept for the process's life; NULL before */
	struct ckt_soft_context *primary;
	unsigned primary_refs, primary_flags;
	bool arena_ready;
	/*
	 * The same in every process: a checkpoint is restored only where module variables lie as
	 * they lay, and where the kernel would put the range depends on what other threads map
	 * meanwhile.
	 */
	struct ckt_soft_arena arena;
};

/* NULL where the ordinal is none. */
struct ckt_soft_device *ckt_soft_device(int ordinal);
int ckt_soft_device_count(void);
CUresult ckt_soft_devices_init(void);
/* Before memory of it is used first. */
CUresult ckt_soft_device_prepare(struct ckt_soft_device *device);
/* Counts bytes as used, CUDA_ERROR_OUT_OF_MEMORY where the device has not so many left. */
CUresult ckt_soft_device_charge(struct ckt_soft_device *device, uint64_t bytes);
void ckt_soft_device_uncharge(struct ckt_soft_device *device, uint64_t bytes);
/* CUDA_ERROR_NOT_INITIALIZED before cuInit and in a forked child. */
CUresult ckt_soft_initialized(void);
