/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU memory that a module takes for code, constants and variables, estimated from its image.
 * Measured on an H200: a module with a variable of 1 GiB takes 1 GiB.  If the driver could choose
 * among several parts, the largest counts.  Threading: any.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Precondition: module_check.h accepted the image.  UINT64_MAX if the size overflows. */
uint64_t ckt_module_device_bytes(const uint8_t *image, size_t size, unsigned capability);
