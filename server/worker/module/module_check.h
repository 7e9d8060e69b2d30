/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks an image that a program loads as a module, or an input of the linker, before the driver
 * gets it.  The formats state their own sizes, and the driver does not compare them with the number
 * of bytes that the client sent.
 *
 *	PTX		text, followed by a NUL (the blobs add it)
 *	machine code	an ELF file whose tables lie inside the file
 *	fat binary	a container whose entries lie inside it, unpack to their stated size, and
 *			contain what they state
 *	object, library	ELF files and ar archives of them, for the linker, with the fat binaries in
 *			them
 *
 * Every other format is refused.  So is a program's wrapper around a container, because it points
 * into the client's memory.  Threading: any.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No program has a part of that size, and a few bytes could unpack to it. */
#define CKT_MODULE_UNPACKED_MAX ((uint64_t)2 << 30)

struct ckt_module_check {
	/* of the GPU, 90 for 9.0: code for other GPUs is not unpacked; 0: all code is */
	unsigned capability;
	uint64_t unpacked_max; /* the most bytes that one part may unpack to */
	/* Results. */
	uint64_t unpacked; /* bytes of the largest unpacked part */
	/* the code calls the device's printf, as far as can be seen; true where it cannot */
	bool prints;
	char why[128]; /* the error, a sentence */
};

/*
 * CUDA_SUCCESS, CUDA_ERROR_INVALID_IMAGE, or CUDA_ERROR_OUT_OF_MEMORY if a part unpacks to more
 * than unpacked_max.
 */
CUresult ckt_module_check(const uint8_t *image, size_t size, struct ckt_module_check *check);
CUresult ckt_module_check_input(
	CUjitInputType type, const uint8_t *image, size_t size, struct ckt_module_check *check);
