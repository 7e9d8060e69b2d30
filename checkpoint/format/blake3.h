/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BLAKE3 with 256 bits of output, without a key.  SHA-256 hashes 0.5 to 2 GB/s on a core; this
 * takes 8 or 16 blocks of 1 KiB side by side in vector registers, so that hashing keeps up with the
 * bus.  Thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

void ckt_blake3(const void *data, size_t size, uint8_t ret_hash[32]);
