/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a module, and how they reach the worker. */
#pragma once

#include <cuda.h>

#include <stddef.h>
#include <stdint.h>

/*
 * Finds the bytes of a module image by its header: fat binary (container or nvcc's wrapper), ELF,
 * or text. *ret_data is the first byte.
 */
CUresult ckt_client_image_extent(const void *image, const void **ret_data, size_t *ret_size);
/* Makes sure that the worker has these bytes.  ret_hash: 32 bytes. */
CUresult ckt_client_blob_send(const void *data, size_t size, uint8_t *ret_hash);
/*
 * The hash of these bytes, which are sent at once if that costs less than to be told that the worker
 * lacks them.
 */
CUresult ckt_client_blob_offer(const void *data, size_t size, uint8_t *ret_hash);
/* Sends the bytes: the worker lacks them. */
CUresult ckt_client_blob_put(const void *data, size_t size, const uint8_t *hash);
