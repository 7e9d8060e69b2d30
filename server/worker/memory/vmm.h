/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management by the program: reserved addresses, physical memory, and what is mapped
 * where.
 *
 *	reservation  |......MMMMMMMM....MMMM......|   addresses of a device's slice, with nothing of the allocator's in them
 *	mapping             ^ part of a physical object, with the access that each device has
 *
 * The driver refuses what is wrong inside a reservation; here it is made sure that a program
 * touches nothing outside its own reservations, because the window around them is the session's as
 * far as the driver knows.
 *
 * Threading: the executor alone, or whoever has frozen it.
 */
#pragma once

#include <cuda.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

struct ckt_object;
struct ckt_worker;

struct ckt_reservation {
	uint64_t address, size;
};

struct ckt_mapping {
	uint64_t address, size, offset;
	uint64_t physical;         /* id */
	unsigned access;           /* CUmemAccess_flags of the memory's own device */
	uint64_t readers, writers; /* bit d: device d may read, read and write */
};

struct ckt_vmm {
	struct ckt_reservation *reservations;
	size_t reservation_count, reservation_room;
	struct ckt_mapping *mappings; /* sorted by address */
	size_t mapping_count, mapping_room;
};

CUresult ckt_vmm_reserve(struct ckt_worker *worker, unsigned device, uint64_t size,
	uint64_t alignment, uint64_t hint, uint64_t *ret_address);
CUresult ckt_vmm_physical_make(struct ckt_worker *worker, uint64_t id, unsigned device,
	uint64_t size, unsigned compression);
/* Gives the driver's handle back; the object stays. */
void ckt_vmm_physical_unmake(struct ckt_worker *worker, struct ckt_object *physical);
CUresult ckt_vmm_map(struct ckt_worker *worker, uint64_t address, uint64_t size, uint64_t offset,
	uint64_t physical);
/* Of whole mappings, without a gap. */
CUresult ckt_vmm_unmap(struct ckt_worker *worker, uint64_t address, uint64_t size);
CUresult ckt_vmm_set_access(
	struct ckt_worker *worker, uint64_t address, uint64_t size, unsigned access);
CUresult ckt_vmm_set_peer_access(struct ckt_worker *worker, uint64_t address, uint64_t size,
	unsigned device, unsigned access);
/* Tells the driver what access a mapping has that was just mapped, again or for the first time. */
CUresult ckt_vmm_put_access(struct ckt_worker *worker, const struct ckt_mapping *mapping);
/* Whether it is of memory of another session that was given up (ipc_together.c): nothing is mapped. */
bool ckt_vmm_is_away(struct ckt_worker *worker, const struct ckt_mapping *mapping);
/*
 * What the program has mapped of that physical memory, of all of it that is there for 0: mapped again, or an
 * error and nothing; or not mapped for a while.
 */
CUresult ckt_vmm_map_again(struct ckt_worker *worker, uint64_t physical);
void ckt_vmm_unmap_all(struct ckt_worker *worker, uint64_t physical);
/* Frees a reservation without mappings. */
CUresult ckt_vmm_free(struct ckt_worker *worker, uint64_t address, uint64_t size);
/* An address at which the whole of the physical memory can be read and written, or 0. */
uint64_t ckt_vmm_window_on(const struct ckt_worker *worker, const struct ckt_object *physical);
