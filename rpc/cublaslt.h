/*
 * The descriptors of cuBLASLt as both sides know them.
 *
 * A descriptor is plain memory of the program's: it may lie in an opaque struct that the program
 * owns, be copied with memcpy and thrown away without a call.  So all of it lies in these bytes,
 * and the bytes themselves travel with the calls that use it (both sides are x86-64). Attributes
 * have fixed places; the table says where.  Facts of NVIDIA's interface (cublasLt.h, and what its
 * builds 13.1 and 13.10 answer without a GPU); the header is not needed to build.
 *
 * Descriptors come in forms: a program built with an older toolkit hands over a shorter struct,
 * which has no room for newer attributes, and the library then does not know them.  Of a matmul
 * descriptor the first word is its form.  A layout says in the upper half of its batch mode how
 * many forms after the first it is, a preference in a word of its own: there older releases of this
 * table left zeros.  Others have one form.
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
	uint8_t number, offset, size, form; /* form: the first that has it */
	bool pointer;                       /* a device address, or the emulation descriptor */
	/* its value in a new descriptor, of `size` bytes; some are arguments of the creation */
	uint64_t fresh;
	/* bytes that it has in the descriptor, where these are fewer: a number with a sign */
	uint8_t kept;
};

/* The table of a kind. */
const struct ckt_lt_attribute *ckt_lt_attributes(enum ckt_lt_kind kind, unsigned *ret_count);
/* The form that a struct of so many bytes has room for; 0: none. */
unsigned ckt_lt_form(enum ckt_lt_kind kind, size_t size_bytes);
/* Bytes of a form; 0: there is no such form. */
size_t ckt_lt_form_bytes(enum ckt_lt_kind kind, unsigned form);
/* Of a descriptor in memory; 0: it is none.  descriptor has the bytes of the first form. */
size_t ckt_lt_bytes(enum ckt_lt_kind kind, const void *descriptor);
/* Whether so many bytes that somebody sent are a descriptor. */
bool ckt_lt_is_descriptor(enum ckt_lt_kind kind, const void *bytes, size_t size_bytes);

/*
 * Fills the descriptor with what it has when it is new.  SUCCESS, ALLOC_FAILED for too few bytes,
 * INVALID_VALUE for NULL.
 */
int ckt_lt_init(enum ckt_lt_kind kind, void *descriptor, size_t size_bytes);
/*
 * As cublasLt*SetAttribute: INVALID_VALUE for NULL, an unknown attribute, one that the form has
 * not, or another size than the attribute's.
 */
int ckt_lt_set(enum ckt_lt_kind kind, void *descriptor, int attribute, const void *value,
	size_t size_bytes);
/*
 * As cublasLt*GetAttribute: size_bytes 0 asks for the size.  ret_written may be NULL where
 * size_bytes is not 0; it is kept at an error.
 */
int ckt_lt_get(enum ckt_lt_kind kind, const void *descriptor, int attribute, void *ret_value,
	size_t size_bytes, size_t *ret_written);
/* A 32-bit attribute of a descriptor that has it. */
uint32_t ckt_lt_word(enum ckt_lt_kind kind, const void *descriptor, int attribute);

/* Bytes of a scalar of that cudaDataType_t: 0 for a type that is none. */
unsigned ckt_lt_scalar_bytes(uint32_t type);
/*
 * What a heuristic may know of the pointers in a matmul descriptor or a layout is how they are
 * aligned: replaces each but the emulation descriptor's by the lowest power of two in it, at most
 * ALIGNMENT_MAX; NULL stays NULL.
 */
void ckt_lt_reduce_pointers(enum ckt_lt_kind kind, void *descriptor);
/*
 * Whether the operation has a factor for each of a batch where factors lie on the host: as many as
 * the batch would have to travel, which one alone does, and the library would read behind it.
 */
bool ckt_lt_strides_on_host(const void *matmul);
/*
 * Of messages and descriptors, for tables in memory alone; a hash before it goes on with more
 * bytes.
 */
uint64_t ckt_lt_hash(uint64_t hash, const uint8_t *bytes, size_t size);
