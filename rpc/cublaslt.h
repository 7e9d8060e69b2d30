/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors of cuBLASLt as both sides know them.
 *
 * A descriptor is plain memory of the program's: it may lie in an opaque struct that the program
 * owns, be copied with memcpy and thrown away without a call.  So all of it lies in these bytes,
 * and the bytes themselves travel with the calls that use it (both sides are x86-64). The table
 * gives the fixed offset of each attribute.  Facts of NVIDIA's interface (cublasLt.h, and what its
 * builds 13.1 and 13.10 answer without a GPU); the header is not needed to build.
 *
 * Descriptors come in forms: a program built with an older toolkit passes a shorter struct without
 * room for newer attributes, so the library ignores those.  The first word of a matmul descriptor
 * is its form.  A layout stores its form, counted from the first, in the upper half of its batch
 * mode, and a preference stores it in a word of its own; older releases of this table left zeros
 * there.  Other descriptors have one form.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ckt_lt_kind {
	CKT_LT_MATMUL,
	CKT_LT_LAYOUT,
	CKT_LT_TRANSFORM,
	CKT_LT_PREFERENCE,
	CKT_LT_EMULATION,
	CKT_LT_KINDS
};

/* Bytes of the newest form, which cublasLt*Create gives in CKT_LT_STRUCT_BYTES of memory. */
enum {
	CKT_LT_MATMUL_BYTES = 224,
	CKT_LT_LAYOUT_BYTES = 88,
	CKT_LT_TRANSFORM_BYTES = 16,
	CKT_LT_PREFERENCE_BYTES = 72,
	CKT_LT_EMULATION_BYTES = 32,
	CKT_LT_BYTES_MAX = CKT_LT_MATMUL_BYTES,
	/* at least as many as any of the newest cublasLt.h's opaque structs has */
	CKT_LT_STRUCT_BYTES = 256,
	/* of a cublasLtMatmulAlgo_t, which only the genuine library reads */
	CKT_LT_ALGO_BYTES = 64,
	CKT_LT_RESULT_BYTES = 96, /* of a cublasLtMatmulHeuristicResult_t */
	CKT_LT_SCALAR_BYTES = 16, /* the longest alpha: CUDA_C_64F */
	/* more alignment of a pointer than this makes no difference to a heuristic */
	CKT_LT_ALIGNMENT_MAX = 4096,
};

/* The statuses that descriptors give: cublasStatus_t. */
enum { CKT_LT_SUCCESS = 0, CKT_LT_ALLOC_FAILED = 3, CKT_LT_INVALID_VALUE = 7 };

/* Attributes by number that both sides look at. */
enum {
	CKT_LT_MATMUL_COMPUTE_TYPE = 0,
	CKT_LT_MATMUL_SCALE_TYPE = 1,
	CKT_LT_MATMUL_POINTER_MODE = 2,
	CKT_LT_MATMUL_EMULATION = 38,
	CKT_LT_MATMUL_ALPHA_BATCH_STRIDE = 39,
	CKT_LT_MATMUL_BETA_BATCH_STRIDE = 40,
	CKT_LT_LAYOUT_TYPE = 0,
	CKT_LT_LAYOUT_BATCH_COUNT = 5,
	CKT_LT_LAYOUT_BATCH_MODE = 8,
	CKT_LT_LAYOUT_ROWS_ARRAY = 9,
	CKT_LT_LAYOUT_COLS_ARRAY = 10,
	CKT_LT_LAYOUT_LD_ARRAY = 11,
	CKT_LT_TRANSFORM_SCALE_TYPE = 0,
	CKT_LT_TRANSFORM_POINTER_MODE = 1,
};

enum ckt_lt_pointer_mode {
	CKT_LT_POINTER_HOST,
	CKT_LT_POINTER_DEVICE,
	CKT_LT_POINTER_VECTOR,
	CKT_LT_POINTER_ALPHA_VECTOR_BETA_ZERO,
	CKT_LT_POINTER_ALPHA_VECTOR_BETA_HOST,
};

enum ckt_lt_batch_mode { CKT_LT_BATCH_STRIDED, CKT_LT_BATCH_POINTERS, CKT_LT_BATCH_GROUPED };

struct ckt_lt_attribute {
	uint8_t number, offset, size, form; /* form: the first form that has the attribute */
	bool pointer;                       /* a device address, or the emulation descriptor */
	/* value in a new descriptor, of `size` bytes; some are arguments of the creation */
	uint64_t fresh;
	/* bytes in the descriptor, if fewer: a signed number */
	uint8_t kept;
};

/* The table of a kind. */
const struct ckt_lt_attribute *ckt_lt_attributes(enum ckt_lt_kind kind, unsigned *ret_count);
/* The form for which a struct of this many bytes has room; 0: none. */
unsigned ckt_lt_form(enum ckt_lt_kind kind, size_t size_bytes);
/* Bytes of a form; 0: there is no such form. */
size_t ckt_lt_form_bytes(enum ckt_lt_kind kind, unsigned form);
/*
 * The form of a descriptor in memory; 0: not a descriptor.  descriptor has the bytes of the first
 * form.
 */
size_t ckt_lt_bytes(enum ckt_lt_kind kind, const void *descriptor);
/* Whether this many bytes from a peer can be a descriptor. */
bool ckt_lt_is_descriptor(enum ckt_lt_kind kind, const void *bytes, size_t size_bytes);

/*
 * Fills the descriptor with the values of a new one.  SUCCESS, ALLOC_FAILED for too few bytes,
 * INVALID_VALUE for NULL.
 */
int ckt_lt_init(enum ckt_lt_kind kind, void *descriptor, size_t size_bytes);
/*
 * As cublasLt*SetAttribute: INVALID_VALUE for NULL, an unknown attribute, one that the form lacks,
 * or a size other than the attribute's.
 */
int ckt_lt_set(enum ckt_lt_kind kind, void *descriptor, int attribute, const void *value,
	size_t size_bytes);
/*
 * As cublasLt*GetAttribute: size_bytes 0 asks for the size.  ret_written may be NULL if size_bytes
 * is not 0; an error leaves it unchanged.
 */
int ckt_lt_get(enum ckt_lt_kind kind, const void *descriptor, int attribute, void *ret_value,
	size_t size_bytes, size_t *ret_written);
/* A 32-bit attribute of a descriptor that has it. */
uint32_t ckt_lt_word(enum ckt_lt_kind kind, const void *descriptor, int attribute);

/* Bytes of a scalar of that cudaDataType_t; 0 for an unknown type. */
unsigned ckt_lt_scalar_bytes(uint32_t type);
/*
 * A heuristic may know only the alignment of the pointers in a matmul descriptor or a layout:
 * replaces each pointer except the emulation descriptor's by the largest power of two that divides
 * it, at most ALIGNMENT_MAX; NULL stays NULL.
 */
void ckt_lt_reduce_pointers(enum ckt_lt_kind kind, void *descriptor);
/*
 * Whether the operation has one factor for each matrix of a batch, on the host.  Then all of them
 * would have to travel; only one does, and the library would read past it.
 */
bool ckt_lt_strides_on_host(const void *matmul);
/*
 * A hash of messages and descriptors, for tables in memory only; `hash` continues an earlier one
 * with more bytes.
 */
uint64_t ckt_lt_hash(uint64_t hash, const uint8_t *bytes, size_t size);
