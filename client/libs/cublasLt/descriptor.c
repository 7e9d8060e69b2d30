/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLASLt's descriptors: they live here, wholly in their bytes (rpc/cublaslt.h), and nothing of
 * them waits for the server.
 *
 * What Create gives is such bytes from malloc; what Init fills is the program's memory.  Any copy
 * of the bytes is as good.  As in the genuine library (13.1) no value is checked when it is set,
 * only its size: what does not fit together, cublasLtMatmul and the heuristics say.
 */
#include <stdlib.h>
#include <string.h>

#include "client/libs/cublasLt/api.h"
#include "client/libs/libs.h"
#include "rpc/cublaslt.h"

/*
 * The newest form, whatever the header of this build has: a program of a newer one may set what is
 * newer.
 */
static cublasStatus_t create(enum ckt_lt_kind kind, void **ret_descriptor)
{
	if (!ret_descriptor)
		return CUBLAS_STATUS_INVALID_VALUE;
	void *made = malloc(CKT_LT_STRUCT_BYTES);
	if (!made)
		return CUBLAS_STATUS_ALLOC_FAILED;
	ckt_lt_init(kind, made, CKT_LT_STRUCT_BYTES);
	*ret_descriptor = made;
	return CUBLAS_STATUS_SUCCESS;
}

/* The values that the caller gives are set only where init succeeded. */
static cublasStatus_t with(enum ckt_lt_kind kind, cublasStatus_t made, void *descriptor,
	int attribute, const void *value, size_t size)
{
	return made ? made : (cublasStatus_t)ckt_lt_set(kind, descriptor, attribute, value, size);
}

static cublasStatus_t fill_matmul(
	cublasStatus_t made, void *descriptor, cublasComputeType_t compute, cudaDataType_t scale)
{
	made = with(CKT_LT_MATMUL, made, descriptor, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &compute,
		sizeof compute);
	return with(CKT_LT_MATMUL, made, descriptor, CUBLASLT_MATMUL_DESC_SCALE_TYPE, &scale,
		sizeof scale);
}

static cublasStatus_t fill_layout(cublasStatus_t made, void *descriptor, cudaDataType type,
	uint64_t rows, uint64_t cols, int64_t ld)
{
	made = with(
		CKT_LT_LAYOUT, made, descriptor, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type);
	made = with(
		CKT_LT_LAYOUT, made, descriptor, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows);
	made = with(
		CKT_LT_LAYOUT, made, descriptor, CUBLASLT_MATRIX_LAYOUT_COLS, &cols, sizeof cols);
	return with(CKT_LT_LAYOUT, made, descriptor, CUBLASLT_MATRIX_LAYOUT_LD, &ld, sizeof ld);
}

/* Of matrices whose numbers of rows and columns lie on the device. */
static cublasStatus_t fill_grouped(cublasStatus_t made, void *descriptor, cudaDataType type,
	int count, const void *const arrays[3])
{
	static const int32_t grouped = CKT_LT_BATCH_GROUPED;
	made = with(
		CKT_LT_LAYOUT, made, descriptor, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type);
	made = with(
		CKT_LT_LAYOUT, made, descriptor, CKT_LT_LAYOUT_BATCH_COUNT, &count, sizeof count);
	made = with(CKT_LT_LAYOUT, made, descriptor, CKT_LT_LAYOUT_BATCH_MODE, &grouped,
		sizeof grouped);
	for (int i = 0; i < 3; i++)
		made = with(CKT_LT_LAYOUT, made, descriptor, CKT_LT_LAYOUT_ROWS_ARRAY + i,
			&arrays[i], sizeof arrays[i]);
	return made;
}

static cublasStatus_t fill_transform(cublasStatus_t made, void *descriptor, cudaDataType scale)
{
	return with(CKT_LT_TRANSFORM, made, descriptor, CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE,
		&scale, sizeof scale);
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatmulDescCreate(
	cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale)
{
	cublasStatus_t made = create(CKT_LT_MATMUL, (void **)desc);
	return made ? made : fill_matmul(made, *desc, compute, scale);
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatmulDescInit_internal(
	cublasLtMatmulDesc_t desc, size_t size, cublasComputeType_t compute, cudaDataType_t scale)
{
	return fill_matmul(
		(cublasStatus_t)ckt_lt_init(CKT_LT_MATMUL, desc, size), desc, compute, scale);
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(
	cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	cublasStatus_t made = create(CKT_LT_LAYOUT, (void **)layout);
	return made ? made : fill_layout(made, *layout, type, rows, cols, ld);
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout,
	size_t size, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	return fill_layout((cublasStatus_t)ckt_lt_init(CKT_LT_LAYOUT, layout, size), layout, type,
		rows, cols, ld);
}

/*
 * A negative number of groups is as good as any until it is multiplied, as in the genuine library.
 */
CKT_LIB_EXPORT cublasStatus_t cublasLtGroupedMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
	cudaDataType type, int count, const void *rows, const void *cols, const void *ld)
{
	cublasStatus_t made = create(CKT_LT_LAYOUT, (void **)layout);
	return made
		? made
		: fill_grouped(made, *layout, type, count, (const void *const[]){rows, cols, ld});
}

/* A struct that has no room for the arrays is too short. */
CKT_LIB_EXPORT cublasStatus_t cublasLtGroupedMatrixLayoutInit_internal(
	cublasLtMatrixLayout_t layout, size_t size, cudaDataType type, int count, const void *rows,
	const void *cols, const void *ld)
{
	cublasStatus_t made = !layout ? CUBLAS_STATUS_INVALID_VALUE
		: ckt_lt_form(CKT_LT_LAYOUT, size) < 2
		? CUBLAS_STATUS_ALLOC_FAILED
		: (cublasStatus_t)ckt_lt_init(CKT_LT_LAYOUT, layout, size);
	return made
		? made
		: fill_grouped(made, layout, type, count, (const void *const[]){rows, cols, ld});
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatrixTransformDescCreate(
	cublasLtMatrixTransformDesc_t *desc, cudaDataType scale)
{
	cublasStatus_t made = create(CKT_LT_TRANSFORM, (void **)desc);
	return made ? made : fill_transform(made, *desc, scale);
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatrixTransformDescInit_internal(
	cublasLtMatrixTransformDesc_t desc, size_t size, cudaDataType scale)
{
	return fill_transform(
		(cublasStatus_t)ckt_lt_init(CKT_LT_TRANSFORM, desc, size), desc, scale);
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
	return create(CKT_LT_PREFERENCE, (void **)preference);
}

CKT_LIB_EXPORT cublasStatus_t cublasLtMatmulPreferenceInit_internal(
	cublasLtMatmulPreference_t preference, size_t size)
{
	return (cublasStatus_t)ckt_lt_init(CKT_LT_PREFERENCE, preference, size);
}

/*
 * A matmul descriptor holds the address of this one; its bytes are read when the matmul is called.
 */
CKT_LIB_EXPORT cublasStatus_t cublasLtEmulationDescCreate(cublasLtEmulationDesc_t *desc)
{
	return create(CKT_LT_EMULATION, (void **)desc);
}

CKT_LIB_EXPORT cublasStatus_t cublasLtEmulationDescInit_internal(
	cublasLtEmulationDesc_t desc, size_t size)
{
	return (cublasStatus_t)ckt_lt_init(CKT_LT_EMULATION, desc, size);
}

/* What all five kinds have. */
#define ACCESS(kind, type, attribute_type, destroy, set, get)                                     \
	CKT_LIB_EXPORT cublasStatus_t destroy(type descriptor)                                    \
	{                                                                                         \
		free(descriptor);                                                                 \
		return CUBLAS_STATUS_SUCCESS;                                                     \
	}                                                                                         \
	CKT_LIB_EXPORT cublasStatus_t set(                                                        \
		type descriptor, attribute_type attribute, const void *value, size_t size)        \
	{                                                                                         \
		return (cublasStatus_t)ckt_lt_set(kind, descriptor, (int)attribute, value, size); \
	}                                                                                         \
	CKT_LIB_EXPORT cublasStatus_t get(type descriptor, attribute_type attribute, void *value, \
		size_t size, size_t *written)                                                     \
	{                                                                                         \
		return (cublasStatus_t)ckt_lt_get(                                                \
			kind, descriptor, (int)attribute, value, size, written);                  \
	}

ACCESS(CKT_LT_MATMUL, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
	cublasLtMatmulDescDestroy, cublasLtMatmulDescSetAttribute, cublasLtMatmulDescGetAttribute)
ACCESS(CKT_LT_LAYOUT, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t,
	cublasLtMatrixLayoutDestroy, cublasLtMatrixLayoutSetAttribute,
	cublasLtMatrixLayoutGetAttribute)
ACCESS(CKT_LT_TRANSFORM, cublasLtMatrixTransformDesc_t, cublasLtMatrixTransformDescAttributes_t,
	cublasLtMatrixTransformDescDestroy, cublasLtMatrixTransformDescSetAttribute,
	cublasLtMatrixTransformDescGetAttribute)
ACCESS(CKT_LT_PREFERENCE, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
	cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreferenceSetAttribute,
	cublasLtMatmulPreferenceGetAttribute)
ACCESS(CKT_LT_EMULATION, cublasLtEmulationDesc_t, cublasLtEmulationDescAttributes_t,
	cublasLtEmulationDescDestroy, cublasLtEmulationDescSetAttribute,
	cublasLtEmulationDescGetAttribute)
