/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's libnvidia-ml.so.1: NVML for the servers' GPUs. Programs use it to examine the GPUs
 * before they start CUDA. This file holds the table of the GPUs.
 *
 * Each request opens a connection and closes it within the call. No connection is open between
 * calls, so a fork, a checkpoint of the process or a restart of the server needs no special code.
 * NVML starts no session; CUDA does. nvmlInit asks once for the values that never change.
 *
 * Functions return nvmlReturn_t (enum ckt_nvml_return). Any thread may call them; one lock protects
 * the table.
 */
#pragma once

#include <stdint.h>

/* An nvmlDevice_t points to this struct, which lives as long as the process. */
struct ckt_nvml_device {
	unsigned server;  /* its index in REMOTE_GPU_ADDRESS, from 0 */
	unsigned ordinal; /* the server's number of the GPU */
	/* uuid "GPU-...", pci_bus_id "00000000:01:00.0" */
	char name[96], uuid[48], pci_bus_id[32];
	unsigned domain, bus, slot;
	int major, minor;
	uint64_t memory_bytes;
};

/* nvmlInit and nvmlShutdown; the calls are counted. */
int ckt_nvml_start(void);
int ckt_nvml_stop(void);
/* Returns the devices in NVML's order, or UNINITIALIZED before nvmlInit. */
int ckt_nvml_devices(
	struct ckt_nvml_device **ret_devices, unsigned *ret_count, int *ret_cuda_version);
/* Checks that the handle points into the table, and reads nothing through an invalid handle. */
int ckt_nvml_device(const void *handle, struct ckt_nvml_device **ret_device);
