/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates, changes and reads descriptors.  The client and this library know their bytes
 * (rpc/cublaslt.h).
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/libs/cublasLt/objects.h"

static cublasStatus_t init_words(
	enum ckt_lt_kind kind, void *descriptor, size_t size, const uint32_t *words, int count)
{
	int status = ckt_lt_init(kind, descriptor, size);
	for (int i = 0; i < count && status == CKT_LT_SUCCESS; i++)
		status = ckt_lt_set(kind, descriptor, i, &words[i], sizeof words[i]);
	return (cublasStatus_t)status;
}

CKT_CUBLAS_API cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t matmulDesc,
	size_t size, cublasComputeType_t computeType, cudaDataType_t scaleType)
{
	const uint32_t words[] = {(uint32_t)computeType, (uint32_t)scaleType};
	return init_words(CKT_LT_MATMUL, matmulDesc, size, words, 2);
}

CKT_CUBLAS_API cublasStatus_t cublasLtMatrixTransformDescInit_internal(
	cublasLtMatrixTransformDesc_t transformDesc, size_t size, cudaDataType scaleType)
{
	const uint32_t word = (uint32_t)scaleType;
	return init_words(CKT_LT_TRANSFORM, transformDesc, size, &word, 1);
}

CKT_CUBLAS_API cublasStatus_t cublasLtMatmulPreferenceInit_internal(
	cublasLtMatmulPreference_t pref, size_t size)
{
	return init_words(CKT_LT_PREFERENCE, pref, size, NULL, 0);
}

#if CUBLAS_VER_MAJOR >= 13
CKT_CUBLAS_API cublasStatus_t cublasLtEmulationDescInit_internal(
	cublasLtEmulationDesc_t emulationDesc, size_t size)
{
	return init_words(CKT_LT_EMULATION, emulationDesc, size, NULL, 0);
}
#endif

CKT_CUBLAS_API cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t matLayout,
	size_t size, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	const uint32_t word = (uint32_t)type;
	cublasStatus_t status = init_words(CKT_LT_LAYOUT, matLayout, size, &word, 1);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	ckt_lt_set(CKT_LT_LAYOUT, matLayout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows);
	ckt_lt_set(CKT_LT_LAYOUT, matLayout, CUBLASLT_MATRIX_LAYOUT_COLS, &cols, sizeof cols);
	ckt_lt_set(CKT_LT_LAYOUT, matLayout, CUBLASLT_MATRIX_LAYOUT_LD, &ld, sizeof ld);
	return CUBLAS_STATUS_SUCCESS;
}

/* Allocates the opaque struct, which init fills. */
#define CREATE(name, handle, size, init, parameters, arguments) \
	CKT_CUBLAS_API cublasStatus_t name parameters           \
	{                                                       \
		if (!handle)                                    \
			return CUBLAS_STATUS_INVALID_VALUE;     \
		*handle = calloc(1, size);                      \
		if (!*handle)                                   \
			return CUBLAS_STATUS_ALLOC_FAILED;      \
		return init arguments;                          \
	}
#define DESTROY(name, type)                                 \
	CKT_CUBLAS_API cublasStatus_t name(type descriptor) \
	{                                                   \
		free(descriptor);                           \
		return CUBLAS_STATUS_SUCCESS;               \
	}
#define SET(name, type, attribute_type, kind)                                                     \
	CKT_CUBLAS_API cublasStatus_t name(                                                       \
		type descriptor, attribute_type attr, const void *buf, size_t sizeInBytes)        \
	{                                                                                         \
		return (cublasStatus_t)ckt_lt_set(kind, descriptor, (int)attr, buf, sizeInBytes); \
	}
#define GET(name, type, attribute_type, kind)                                               \
	CKT_CUBLAS_API cublasStatus_t name(type descriptor, attribute_type attr, void *buf, \
		size_t sizeInBytes, size_t *sizeWritten)                                    \
	{                                                                                   \
		return (cublasStatus_t)ckt_lt_get(                                          \
			kind, descriptor, (int)attr, buf, sizeInBytes, sizeWritten);        \
	}

CREATE(cublasLtMatmulDescCreate, matmulDesc, CKT_LT_STRUCT_BYTES, cublasLtMatmulDescInit_internal,
	(cublasLtMatmulDesc_t * matmulDesc, cublasComputeType_t computeType,
		cudaDataType_t scaleType),
	(*matmulDesc, CKT_LT_STRUCT_BYTES, computeType, scaleType))
CREATE(cublasLtMatrixLayoutCreate, matLayout, CKT_LT_STRUCT_BYTES,
	cublasLtMatrixLayoutInit_internal,
	(cublasLtMatrixLayout_t * matLayout, cudaDataType type, uint64_t rows, uint64_t cols,
		int64_t ld),
	(*matLayout, CKT_LT_STRUCT_BYTES, type, rows, cols, ld))
CREATE(cublasLtMatrixTransformDescCreate, transformDesc, CKT_LT_STRUCT_BYTES,
	cublasLtMatrixTransformDescInit_internal,
	(cublasLtMatrixTransformDesc_t * transformDesc, cudaDataType scaleType),
	(*transformDesc, CKT_LT_STRUCT_BYTES, scaleType))
CREATE(cublasLtMatmulPreferenceCreate, pref, CKT_LT_STRUCT_BYTES,
	cublasLtMatmulPreferenceInit_internal, (cublasLtMatmulPreference_t * pref),
	(*pref, CKT_LT_STRUCT_BYTES))
DESTROY(cublasLtMatmulDescDestroy, cublasLtMatmulDesc_t)
DESTROY(cublasLtMatrixLayoutDestroy, cublasLtMatrixLayout_t)
DESTROY(cublasLtMatrixTransformDescDestroy, cublasLtMatrixTransformDesc_t)
DESTROY(cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreference_t)
SET(cublasLtMatmulDescSetAttribute, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
	CKT_LT_MATMUL)
SET(cublasLtMatrixLayoutSetAttribute, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t,
	CKT_LT_LAYOUT)
SET(cublasLtMatrixTransformDescSetAttribute, cublasLtMatrixTransformDesc_t,
	cublasLtMatrixTransformDescAttributes_t, CKT_LT_TRANSFORM)
SET(cublasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreference_t,
	cublasLtMatmulPreferenceAttributes_t, CKT_LT_PREFERENCE)
GET(cublasLtMatmulDescGetAttribute, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
	CKT_LT_MATMUL)
GET(cublasLtMatrixLayoutGetAttribute, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t,
	CKT_LT_LAYOUT)
GET(cublasLtMatrixTransformDescGetAttribute, cublasLtMatrixTransformDesc_t,
	cublasLtMatrixTransformDescAttributes_t, CKT_LT_TRANSFORM)
GET(cublasLtMatmulPreferenceGetAttribute, cublasLtMatmulPreference_t,
	cublasLtMatmulPreferenceAttributes_t, CKT_LT_PREFERENCE)
#if CUBLAS_VER_MAJOR >= 13
CREATE(cublasLtEmulationDescCreate, emulationDesc, CKT_LT_STRUCT_BYTES,
	cublasLtEmulationDescInit_internal, (cublasLtEmulationDesc_t * emulationDesc),
	(*emulationDesc, CKT_LT_STRUCT_BYTES))
DESTROY(cublasLtEmulationDescDestroy, cublasLtEmulationDesc_t)
SET(cublasLtEmulationDescSetAttribute, cublasLtEmulationDesc_t, cublasLtEmulationDescAttributes_t,
	CKT_LT_EMULATION)
GET(cublasLtEmulationDescGetAttribute, cublasLtEmulationDesc_t, cublasLtEmulationDescAttributes_t,
	CKT_LT_EMULATION)
#endif
