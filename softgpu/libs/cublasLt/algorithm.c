/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms: there is one, which needs no workspace and has no options. */
#include <string.h>

#include "softgpu/libs/cublasLt/objects.h"

enum { ALGORITHM = 1, MARK = 0x74666f73 };

/* The contents of this library's cublasLtMatmulAlgo_t.  It stores the attributes without effect. */
struct algorithm {
	uint32_t mark, config[9];
	uint8_t rest[24];
};
_Static_assert(sizeof(struct algorithm) == sizeof(cublasLtMatmulAlgo_t),
	"an algorithm fits where it lies");

static void make(cublasLtMatmulAlgo_t *algo)
{
	const struct algorithm made = {.mark = MARK,
		.config = {[CUBLASLT_ALGO_CONFIG_ID] = ALGORITHM,
			[CUBLASLT_ALGO_CONFIG_SPLITK_NUM] = 1}};
	memcpy(algo, &made, sizeof made);
}

static bool is_ours(const cublasLtMatmulAlgo_t *algo)
{
	struct algorithm read;
	if (!algo)
		return false;
	memcpy(&read, algo, sizeof read);
	return read.mark == MARK;
}

CKT_CUBLAS_API cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t lightHandle,
	cublasComputeType_t computeType, cudaDataType_t scaleType, cudaDataType_t Atype,
	cudaDataType_t Btype, cudaDataType_t Ctype, cudaDataType_t Dtype, int requestedAlgoCount,
	int algoIdsArray[], int *returnAlgoCount)
{
	(void)computeType, (void)scaleType, (void)Atype, (void)Btype, (void)Ctype, (void)Dtype;
	if (!lightHandle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (requestedAlgoCount <= 0 || !algoIdsArray || !returnAlgoCount)
		return CUBLAS_STATUS_INVALID_VALUE;
	algoIdsArray[0] = ALGORITHM;
	*returnAlgoCount = 1;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_CUBLAS_API cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t lightHandle,
	cublasComputeType_t computeType, cudaDataType_t scaleType, cudaDataType_t Atype,
	cudaDataType_t Btype, cudaDataType_t Ctype, cudaDataType_t Dtype, int algoId,
	cublasLtMatmulAlgo_t *algo)
{
	(void)computeType, (void)scaleType, (void)Atype, (void)Btype, (void)Ctype, (void)Dtype;
	if (!lightHandle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!algo || algoId != ALGORITHM)
		return CUBLAS_STATUS_INVALID_VALUE;
	make(algo);
	return CUBLAS_STATUS_SUCCESS;
}

CKT_CUBLAS_API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t lightHandle,
	cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
	cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
	cublasLtMatmulPreference_t preference, int requestedAlgoCount,
	cublasLtMatmulHeuristicResult_t heuristicResultsArray[], int *returnAlgoCount)
{
	struct ckt_lt_product product;
	if (!lightHandle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (requestedAlgoCount <= 0 || !heuristicResultsArray || !returnAlgoCount || !preference)
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasStatus_t status =
		ckt_soft_cublaslt_product_make(&product, operationDesc, Adesc, Bdesc, Cdesc, Ddesc);
	/* As in the genuine library, a wrong argument leaves the count unchanged. */
	if (status != CUBLAS_STATUS_INVALID_VALUE)
		*returnAlgoCount = 0;
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	memset(&heuristicResultsArray[0], 0, sizeof heuristicResultsArray[0]);
	make(&heuristicResultsArray[0].algo);
	heuristicResultsArray[0].wavesCount = 1;
	*returnAlgoCount = 1;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_CUBLAS_API cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t lightHandle,
	cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
	cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
	const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result)
{
	struct ckt_lt_product product;
	if (!lightHandle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!result || !is_ours(algo))
		return CUBLAS_STATUS_INVALID_VALUE;
	cublasStatus_t status =
		ckt_soft_cublaslt_product_make(&product, operationDesc, Adesc, Bdesc, Cdesc, Ddesc);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	/* algo may point into result. */
	cublasLtMatmulAlgo_t kept = *algo;
	memset(result, 0, sizeof *result);
	result->algo = kept;
	result->wavesCount = 1;
	return CUBLAS_STATUS_SUCCESS;
}

/* As for descriptors, size 0 queries the size. */
static cublasStatus_t answer(
	const void *value, size_t size, void *buf, size_t sizeInBytes, size_t *sizeWritten)
{
	if (sizeInBytes ? !buf || sizeInBytes < size : !sizeWritten)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (sizeInBytes)
		memcpy(buf, value, size);
	if (sizeWritten)
		*sizeWritten = size;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_CUBLAS_API cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulAlgoCapAttributes_t attr, void *buf, size_t sizeInBytes, size_t *sizeWritten)
{
	uint32_t value = 0;
	const uint64_t flags =
		CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F;
	if (!is_ours(algo))
		return CUBLAS_STATUS_INVALID_VALUE;
	switch ((int)attr) {
	case CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT:
	case CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT:
	case CUBLASLT_ALGO_CAP_POINTER_ARRAY_BATCH_SUPPORT:
	case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES:
	case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES:
	case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES:
	case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES:
		value = 1;
		break;
	case CUBLASLT_ALGO_CAP_POINTER_MODE_MASK:
		value = CUBLASLT_POINTER_MODE_MASK_HOST | CUBLASLT_POINTER_MODE_MASK_DEVICE;
		break;
	case CUBLASLT_ALGO_CAP_EPILOGUE_MASK:
		value = CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU_AUX_BIAS |
			CUBLASLT_EPILOGUE_GELU_AUX_BIAS | CUBLASLT_EPILOGUE_DRELU_BGRAD |
			CUBLASLT_EPILOGUE_DGELU_BGRAD | CUBLASLT_EPILOGUE_BGRADA |
			CUBLASLT_EPILOGUE_BGRADB;
		break;
	case CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS:
		return answer(&flags, sizeof flags, buf, sizeInBytes, sizeWritten);
	case CUBLASLT_ALGO_CAP_SPLITK_SUPPORT:
	case CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK:
	case CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT:
	case CUBLASLT_ALGO_CAP_UPLO_SUPPORT:
	case CUBLASLT_ALGO_CAP_TILE_IDS: /* one entry: undefined */
	case CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX:
	case CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER:
	case CUBLASLT_ALGO_CAP_STAGES_IDS:
	case CUBLASLT_ALGO_CAP_LD_NEGATIVE:
	case 22: /* floating-point emulation */
		break;
	default:
		return CUBLAS_STATUS_INVALID_VALUE;
	}
	return answer(&value, sizeof value, buf, sizeInBytes, sizeWritten);
}

/* The bytes of an attribute: two for some, as the header says. */
static size_t config_size(int attribute)
{
	return attribute == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ||
			attribute == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID
		? 2
		: 4;
}

CKT_CUBLAS_API cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulAlgoConfigAttributes_t attr, const void *buf, size_t sizeInBytes)
{
	struct algorithm changed;
	if (!is_ours(algo) || !buf || (unsigned)attr > CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID ||
		attr == CUBLASLT_ALGO_CONFIG_ID || sizeInBytes != config_size((int)attr))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(&changed, algo, sizeof changed);
	memcpy(&changed.config[attr], buf, sizeInBytes);
	memcpy(algo, &changed, sizeof changed);
	return CUBLAS_STATUS_SUCCESS;
}

CKT_CUBLAS_API cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulAlgoConfigAttributes_t attr, void *buf, size_t sizeInBytes,
	size_t *sizeWritten)
{
	struct algorithm read;
	if (!is_ours(algo) || (unsigned)attr > CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(&read, algo, sizeof read);
	return answer(&read.config[attr], config_size((int)attr), buf, sizeInBytes, sizeWritten);
}
