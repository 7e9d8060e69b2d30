/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what a program handed over as a module, or as an input of the linker, may be given to the
 * driver: the formats describe their own sizes, and nobody behind us compares them with the bytes
 * that came.
 *
 *	PTX		text, with a NUL behind it (the blobs see to that)
 *	machine code	an ELF file whose tables lie inside of it
 *	fat binary	a container whose entries lie inside of it, and unpack to as many bytes as they say and to what they say
 *	object, library	ELF files and ar archives of them, for the linker, with the fat binaries in them
 *
 * Nothing else passes.  What points (a program's wrapper around a container) points into the
 * client's memory, and is refused. Threading: any.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nobody has a part of that size, and a few bytes could unpack to it. */
#define CKT_MODULE_UNPACKED_MAX ((uint64_t)2 << 30)

struct ckt_module_check {
	/* of the GPU, 90 for 9.0: code for others is not unpacked; 0: everything is */
	unsigned capability;
	uint64_t unpacked_max; /* bytes that one part may come to */
	/* Results. */
	uint64_t unpacked; /* bytes of the largest part that was unpacked */
	char why[128];     /* what is wrong, a sentence */
};

/*
 * CUDA_SUCCESS, CUDA_ERROR_INVALID_IMAGE, or CUDA_ERROR_OUT_OF_MEMORY where a part comes to more
 * than it may.
 */
CUresult ckt_module_check(const uint8_t *image, size_t size, struct ckt_module_check *check);
CUresult ckt_module_check_input(
	CUjitInputType type, const uint8_t *image, size_t size, struct ckt_module_check *check);
