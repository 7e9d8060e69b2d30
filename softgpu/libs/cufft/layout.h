/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan's transform: its shape, the layout and type of its numbers, and the transform itself, on
 * memory that the CPU can read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cufft.h>
#include <library_types.h>

#include "softgpu/libs/cufft/transform.h"

enum { CKT_LAYOUT_RANK = 3 };

enum ckt_layout_kind { CKT_COMPLEX_TO_COMPLEX, CKT_REAL_TO_COMPLEX, CKT_COMPLEX_TO_REAL };
enum ckt_layout_precision { CKT_HALF, CKT_BRAIN, CKT_SINGLE, CKT_DOUBLE };

/* The location of one side's numbers, counted in numbers of its own type. */
struct ckt_layout_side {
	int64_t strides[CKT_LAYOUT_RANK], distance;
};

struct ckt_layout {
	enum ckt_layout_kind kind;
	enum ckt_layout_precision precision;
	int rank;
	int64_t n[CKT_LAYOUT_RANK], batch;
	/*
	 * Without embeds, rows are contiguous.  Rows of a real side are padded if the transform is
	 * in place.
	 */
	bool basic;
	struct ckt_layout_side in, out; /* if basic: for transforms out of place */
	struct ckt_transform *along[CKT_LAYOUT_RANK];
};

/* The arguments of plan-making functions.  embeds: rank numbers, or NULL. */
struct ckt_layout_request {
	enum ckt_layout_kind kind;
	enum ckt_layout_precision precision;
	int rank;
	const int64_t *n, *in_embed, *out_embed;
	int64_t in_stride, in_distance, out_stride, out_distance, batch;
};

/* Checks the request and fills in the layout, except its transforms. */
cufftResult ckt_soft_cufft_layout_init(
	struct ckt_layout *layout, const struct ckt_layout_request *request);
/* Makes the transforms.  CUFFT_ALLOC_FAILED if there is not enough memory. */
cufftResult ckt_soft_cufft_layout_make(struct ckt_layout *layout);
void ckt_soft_cufft_layout_fini(struct ckt_layout *layout);

/* Reads a type such as CUFFT_C2C. */
bool ckt_soft_cufft_layout_from_type(
	cufftType type, enum ckt_layout_kind *ret_kind, enum ckt_layout_precision *ret_precision);
/* Reads the three types of cufftXtMakePlanMany. */
bool ckt_soft_cufft_layout_from_data_types(cudaDataType in, cudaDataType out,
	cudaDataType execution, enum ckt_layout_kind *ret_kind,
	enum ckt_layout_precision *ret_precision);

/* The size of the work area that a run needs. */
size_t ckt_soft_cufft_layout_work_bytes(const struct ckt_layout *layout);
/* The bytes from the first number to the end of the last one that a run reads (input) or writes. */
size_t ckt_soft_cufft_layout_extent(const struct ckt_layout *layout, bool input, bool in_place);
/* work: memory of ckt_soft_cufft_layout_work_bytes() bytes. */
void ckt_soft_cufft_layout_run(
	const struct ckt_layout *layout, const void *in, void *out, bool inverse, void *work);
