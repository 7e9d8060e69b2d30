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

struct ckt_worker;

/*
 * One window for every worker, so that an address never changes; sanitizers leave room for a
 * smaller one elsewhere.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CKT_WINDOW_BASE 0x7e8000000000ull
#define CKT_WINDOW_SIZE (256ull << 30)
#define CKT_SCRATCH_SIZE (4ull << 30)
#define CKT_HOST_SIZE (16ull << 30)
#else
#define CKT_WINDOW_BASE 0x200000000000ull
#define CKT_WINDOW_SIZE (4ull << 40)
#define CKT_SCRATCH_SIZE (1ull << 40)
#define CKT_HOST_SIZE (1ull << 40)
#endif
/* Addresses behind the window for the worker's own memory. */
#define CKT_SCRATCH_BASE (CKT_WINDOW_BASE + CKT_WINDOW_SIZE)
/* Its second half is for frozen state. */
#define CKT_SPARE_BASE (CKT_SCRATCH_BASE + CKT_SCRATCH_SIZE / 2)
/*
 * Addresses of pinned memory that the client shares: the driver must not have them, because it
 * gives what is registered the address that it has.
 */
#define CKT_HOST_BASE (CKT_SCRATCH_BASE + CKT_SCRATCH_SIZE)

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
void ckt_window_init_device(struct ckt_worker *worker, unsigned device);
