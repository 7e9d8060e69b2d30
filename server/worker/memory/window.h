/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The window of addresses that every worker reserves, and physical memory behind them.
 *
 * Threading: the executor, or who restores while it stands.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/addresses.h"

struct ckt_worker;

/* Keeps to a part of the window; see CKT_SESSION_WINDOW.  0 or -errno. */
int ckt_window_part(struct ckt_worker *worker, unsigned part, unsigned parts);
/* Whether that is the window or a part of it. */
bool ckt_window_holds(uint64_t base, uint64_t size);
CUresult ckt_window_reserve(struct ckt_worker *worker, char *ret_message, size_t message_size);
/*
 * Physical memory of the device, mapped nowhere.  compression: a CUmemAllocationCompType; a device
 * without compression ignores it.
 */
CUresult ckt_window_create(struct ckt_worker *worker, unsigned device, uint64_t size,
	unsigned compression, uint64_t *ret_handle);
/* To the device itself and every other of the session that can reach it. */
CUresult ckt_window_give_access(
	struct ckt_worker *worker, unsigned device, uint64_t address, uint64_t size);
/* The access that one GPU has, whichever memory it is. */
CUresult ckt_window_set_access(struct ckt_worker *worker, unsigned device, uint64_t address,
	uint64_t size, unsigned access);
/* Puts new physical memory behind reserved addresses; ckt_window_unmap removes it. */
CUresult ckt_window_map(struct ckt_worker *worker, unsigned device, uint64_t address, uint64_t size,
	uint64_t *ret_piece);
void ckt_window_unmap(uint64_t address, uint64_t size, uint64_t piece);
/*
 * One piece of physical memory behind an extent that has parts, with the same contents, for others to
 * map.  Waits until the GPU is idle, and needs as much free memory as the extent has.
 */
CUresult ckt_window_join(struct ckt_worker *worker, unsigned device, uint64_t address,
	uint64_t size, uint64_t *ret_piece);
void ckt_window_init_device(struct ckt_worker *worker, unsigned device);
