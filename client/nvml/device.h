/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libnvidia-ml.so.1 of the client: NVML over the server's GPUs, for programs that look before they
 * start CUDA.  Here: what is known of the GPUs.
 *
 * Every question has a connection of its own, made and ended within the call: nothing is open in
 * between, so a fork, a checkpoint of the process or a server that starts again need no care, and
 * no session exists before CUDA starts one.  What never changes is asked once, by nvmlInit.
 *
 * Functions return nvmlReturn_t (enum ckt_nvml_return).  Threading: any thread; one lock around
 * what is known.
 */
#pragma once

#include <stdint.h>

/* What an nvmlDevice_t points to; lives as long as the process. */
struct ckt_nvml_device {
	unsigned server;  /* in REMOTE_GPU_ADDRESS, from 0 */
	unsigned ordinal; /* the server's name for it */
	/* uuid "GPU-...", pci_bus_id "00000000:01:00.0" */
	char name[96], uuid[48], pci_bus_id[32];
	unsigned domain, bus, slot;
	int major, minor;
	uint64_t memory_bytes;
};

/* Counted: nvmlInit and nvmlShutdown. */
int ckt_nvml_start(void);
int ckt_nvml_stop(void);
/* UNINITIALIZED before nvmlInit.  The devices in NVML's order. */
int ckt_nvml_devices(
	struct ckt_nvml_device **ret_devices, unsigned *ret_count, int *ret_cuda_version);
/* Whether the handle is one of ours, which is checked before it is looked at. */
int ckt_nvml_device(const void *handle, struct ckt_nvml_device **ret_device);
