/*
 * libnvidia-ml.so.1 of the client: NVML over the server's GPUs, for programs that look before they
 * start CUDA.
 *
 * Every question has a connection of its own, made and ended within the call: nothing is open in
 * between, so a fork, a checkpoint of the process or a server that starts again need no care, and
 * no session exists before CUDA starts one.  What never changes is asked once, by nvmlInit.
 *
 * Functions return nvmlReturn_t (enum ckt_nvml_return).  Threading: any thread; one lock around
 * what is known.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/control.h"
#include "rpc/nvml.h"

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

/* ---- device.c: what is known */
/* Counted: nvmlInit and nvmlShutdown. */
int ckt_nvml_start(void);
int ckt_nvml_stop(void);
/* UNINITIALIZED before nvmlInit.  The devices in NVML's order. */
int ckt_nvml_devices(
	struct ckt_nvml_device **ret_devices, unsigned *ret_count, int *ret_cuda_version);
/* Whether the handle is one of ours, which is checked before it is looked at. */
int ckt_nvml_device(const void *handle, struct ckt_nvml_device **ret_device);

/* ---- server_query.c: the servers */
/* How many there are; 0, and it was told why, where the addresses are none. */
unsigned ckt_nvml_servers(void);
/* Of the server of that number.  *ret is zeroed before and freed with xdr_free after success. */
int ckt_nvml_call(unsigned server, uint32_t proc, xdrproc_t xdr_args, void *args, xdrproc_t xdr_res,
	void *ret);

/* ---- forward.c: what the generated functions are made of; number as in rpc/api/nvml.api */
int ckt_nvml_data(unsigned number, const void *device, const void *other, const unsigned *selectors,
	void *const *outs);
int ckt_nvml_versioned(unsigned number, const void *device, const void *other,
	const unsigned *selectors, void *block);
int ckt_nvml_text(unsigned number, const void *device, const void *other, const unsigned *selectors,
	char *text, unsigned size);
int ckt_nvml_fields(unsigned number, const void *device, int count, void *values);
int ckt_nvml_copy_text(const char *from, char *text, unsigned size);
int ckt_nvml_refuse(const char *name, bool *once);
