/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's GPUs, as its client sees them.
 *
 * Threading: what START sets is constant afterwards, so any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/session.h"

struct ckt_worker;
struct ckt_worker_device;

/* Whether kernels of the session's device can reach memory of its peer, which is another. */
bool ckt_device_can_access(const struct ckt_worker *worker, unsigned device, unsigned peer);
/* 0 or -ENOMEM. */
int ckt_worker_session_devices_fill(struct ckt_worker *worker, ckt_devices_res *ret);
/* The device argument of a command: NULL where the session has no such device. */
struct ckt_worker_device *ckt_worker_device_find(struct ckt_worker *worker, uint32_t device);
/* The device in whose slice of the window the address lies, or NULL. */
struct ckt_worker_device *ckt_worker_device_of(struct ckt_worker *worker, uint64_t address);

struct ckt_memory_info {
	uint64_t free_bytes, total_bytes;
};

/* What the program is told of the device's memory, of what the driver tells. */
void ckt_device_memory_info(const struct ckt_worker *worker, struct ckt_worker_device *device,
	const struct ckt_memory_info *driver, struct ckt_memory_info *ret_info);
