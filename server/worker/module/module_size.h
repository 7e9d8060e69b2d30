/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a module takes of a GPU's memory: its code, constants and variables, by its own image.
 * Measured on an H200: a module with a variable of 1 GiB takes 1 GiB.  Of several parts that the
 * driver could choose, the largest counts.  Threading: any.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Precondition: module_check.h found nothing wrong with the image.  UINT64_MAX where it is more
 * than can be counted.
 */
uint64_t ckt_module_device_bytes(const uint8_t *image, size_t size, unsigned capability);
