/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keyed hashes of device memory, made on the device: what of it has changed since the last image is
 * known without reading it.
 *
 * 128 bits, made of two independent chains of 64x64->128 bit multiplications folded to 64; no
 * cryptographic hash, but the key is random, fresh with every chain of images and never leaves the
 * worker, so that no program can aim at a collision.
 *
 * Threading: one thread at a time, with the session frozen.  The kernel is loaded with the primary
 * context, before any module of the program, so that it belongs to every session's history of
 * addresses.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_worker;

struct ckt_hash_item {
	uint64_t address; /* in whole 16 bytes */
	uint64_t size;
};

struct ckt_hash_value {
	uint64_t hash[2];
	uint64_t any; /* 0: nothing but zeros */
};

/*
 * Reserves addresses for ckt_hash_run's own memory; without them there are no hashes, and no error.
 */
void ckt_hash_reserve(struct ckt_worker *worker);
/* Precondition: the primary context of the device is current.  If it fails there are no hashes. */
void ckt_hash_load(struct ckt_worker *worker, unsigned device);
/*
 * Precondition: the whole is mapped, and nothing writes to it.  Changes the thread's current
 * context.
 */
CUresult ckt_hash_run(struct ckt_worker *worker, unsigned device, const uint64_t key[4],
	const struct ckt_hash_item *items, size_t count, struct ckt_hash_value *ret_values);
