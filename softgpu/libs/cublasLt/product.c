/* SPDX-License-Identifier: Apache-2.0 */
/* cublasLtMatmul: turns descriptors into a job, which runs on the call's stream. */
#include <string.h>

#include "softgpu/libs/common/driver.h"
#include "softgpu/libs/cublasLt/objects.h"

static uint64_t word64(enum ckt_lt_kind kind, const void *descriptor, int attribute)
{
	uint64_t value = 0;
	ckt_lt_get(kind, descriptor, attribute, &value, sizeof value, NULL);
	return value;
}

static uint32_t matmul_word(const void *description, int attribute, uint32_t missing)
{
	uint32_t value = missing;
	ckt_lt_get(CKT_LT_MATMUL, description, attribute, &value, sizeof value, NULL);
	return value;
}

cublasStatus_t ckt_soft_cublaslt_layout_read(const void *layout,
	struct ckt_blas_operand *ret_operand, int64_t *ret_rows, int64_t *ret_columns,
	int64_t *ret_batch)
{
	if (!layout)
		return CUBLAS_STATUS_INVALID_VALUE;
	uint32_t order = ckt_lt_word(CKT_LT_LAYOUT, layout, CUBLASLT_MATRIX_LAYOUT_ORDER);
	struct ckt_blas_operand operand = {
		.type = (cudaDataType)ckt_lt_word(
			CKT_LT_LAYOUT, layout, CUBLASLT_MATRIX_LAYOUT_TYPE),
		.ld = (int64_t)word64(CKT_LT_LAYOUT, layout, CUBLASLT_MATRIX_LAYOUT_LD),
		.stride = (int64_t)word64(
			CKT_LT_LAYOUT, layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET),
		.list = ckt_lt_word(CKT_LT_LAYOUT, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_MODE) ==
			CUBLASLT_BATCH_MODE_POINTER_ARRAY,
		.row = order == CUBLASLT_ORDER_ROW,
	};
	/* Each matrix has its own sizes, which are in device memory. */
	if (ckt_lt_word(CKT_LT_LAYOUT, layout, CKT_LT_LAYOUT_BATCH_MODE) == CKT_LT_BATCH_GROUPED)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	int64_t rows = (int64_t)word64(CKT_LT_LAYOUT, layout, CUBLASLT_MATRIX_LAYOUT_ROWS);
	int64_t columns = (int64_t)word64(CKT_LT_LAYOUT, layout, CUBLASLT_MATRIX_LAYOUT_COLS);
	int64_t batch =
		(int32_t)ckt_lt_word(CKT_LT_LAYOUT, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
	if (rows < 0 || columns < 0 || batch < 1 || operand.ld < (operand.row ? columns : rows))
		return CUBLAS_STATUS_INVALID_VALUE;
	/* OpenBLAS's sizes are int.  Tiles and planes of complex numbers are for tensor cores. */
	if (rows > INT32_MAX || columns > INT32_MAX || operand.ld > INT32_MAX ||
		(order != CUBLASLT_ORDER_COL && !operand.row) ||
		word64(CKT_LT_LAYOUT, layout, CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET) ||
		!ckt_blas_type_size(operand.type))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (!operand.ld)
		operand.ld = 1;
	*ret_operand = operand;
	*ret_rows = rows;
	*ret_columns = columns;
	*ret_batch = batch;
	return CUBLAS_STATUS_SUCCESS;
}

/* Whether the matrix types match the compute type and the scale type. */
static bool types_ok(const struct ckt_blas_job *job, uint32_t compute, uint32_t scale)
{
	cudaDataType a = job->A.type, d = job->D.type;
	bool half = a == CUDA_R_16F || a == CUDA_R_16BF, bytes = a == CUDA_R_8I;
	if (a != job->B.type || job->C.type != d)
		return false;
	switch (compute) {
	case CUBLAS_COMPUTE_16F:
	case CUBLAS_COMPUTE_16F_PEDANTIC:
		return a == CUDA_R_16F && d == a && scale == CUDA_R_16F;
	case CUBLAS_COMPUTE_32I:
	case CUBLAS_COMPUTE_32I_PEDANTIC:
		return bytes &&
			((d == CUDA_R_32I && (scale == CUDA_R_32I || scale == CUDA_R_32F)) ||
				(d == CUDA_R_8I && scale == CUDA_R_32F));
	case CUBLAS_COMPUTE_64F:
	case CUBLAS_COMPUTE_64F_PEDANTIC:
	case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
		return a == d && (a == CUDA_R_64F || a == CUDA_C_64F) && scale == (uint32_t)a;
	case CUBLAS_COMPUTE_32F:
	case CUBLAS_COMPUTE_32F_PEDANTIC:
	case CUBLAS_COMPUTE_32F_FAST_16F:
	case CUBLAS_COMPUTE_32F_FAST_16BF:
	case CUBLAS_COMPUTE_32F_FAST_TF32:
	case CUBLAS_COMPUTE_32F_EMULATED_16BFX9:
		if (a == CUDA_C_32F)
			return d == a && scale == CUDA_C_32F;
		return scale == CUDA_R_32F &&
			((a == d && (half || a == CUDA_R_32F)) ||
				((half || bytes) && d == CUDA_R_32F));
	default:
		return false;
	}
}

/* Reads which function is applied to the sums, whether its argument is kept, and the bias's use. */
static cublasStatus_t read_epilogue(struct ckt_lt_product *product, const void *description)
{
	uint32_t epilogue = matmul_word(
			 description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT),
		 used = 0;
	struct ckt_blas_epilogue *e = &product->epilogue;
	static const struct {
		uint32_t bits;
		int function;
	} functions[] =
		{
			{CUBLASLT_EPILOGUE_RELU, CKT_BLAS_RELU},
			{8, CKT_BLAS_DRELU},
			{CUBLASLT_EPILOGUE_GELU, CKT_BLAS_GELU},
			{64, CKT_BLAS_DGELU},
		},
	  uses[] = {
		  {CUBLASLT_EPILOGUE_BIAS, CKT_BLAS_BIAS},
		  {16, CKT_BLAS_GRADIENT_D},
		  {CUBLASLT_EPILOGUE_BGRADA, CKT_BLAS_GRADIENT_A},
		  {CUBLASLT_EPILOGUE_BGRADB, CKT_BLAS_GRADIENT_B},
	  };
	if (epilogue == CUBLASLT_EPILOGUE_DEFAULT)
		return CUBLAS_STATUS_SUCCESS;
	for (size_t i = 0; i < 4; i++) {
		if (epilogue & functions[i].bits)
			e->function = functions[i].function, used |= functions[i].bits;
		if (epilogue & uses[i].bits)
			e->bias_use = uses[i].function, used |= uses[i].bits;
	}
	bool aux = epilogue & 128,
	     backward = e->function == CKT_BLAS_DRELU || e->function == CKT_BLAS_DGELU;
	if ((used | (epilogue & 128)) != epilogue || __builtin_popcount(used) > 2 ||
		(aux && e->function == CKT_BLAS_KEEP))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (ckt_blas_type_complex(product->job.D.type))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	cudaDataType natural = product->job.D.type == CUDA_R_8I ? CUDA_R_32F : product->job.D.type;
	uint32_t bias_type =
		matmul_word(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, UINT32_MAX);
	uint32_t aux_type =
		matmul_word(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, UINT32_MAX);
	e->bias = (struct ckt_blas_operand){
		.p = (void *)(uintptr_t)word64(
			CKT_LT_MATMUL, description, CUBLASLT_MATMUL_DESC_BIAS_POINTER),
		.type = bias_type == UINT32_MAX ? natural : (cudaDataType)bias_type,
		.stride = (int64_t)word64(
			CKT_LT_MATMUL, description, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE),
	};
	if (aux)
		e->aux = (struct ckt_blas_operand){
			.p = (void *)(uintptr_t)word64(CKT_LT_MATMUL, description,
				CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER),
			.type = aux_type == UINT32_MAX ? product->job.D.type
						       : (cudaDataType)aux_type,
			.ld = (int64_t)word64(
				CKT_LT_MATMUL, description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD),
			.stride = (int64_t)word64(CKT_LT_MATMUL, description,
				CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE),
		};
	if (!ckt_blas_type_size(e->bias.type) || ckt_blas_type_complex(e->bias.type) ||
		(aux && !ckt_blas_type_size(e->aux.type)))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	bool mask = e->function == CKT_BLAS_RELU || e->function == CKT_BLAS_DRELU;
	if ((backward && !aux) ||
		(aux && (e->aux.ld < product->job.m || (mask && e->aux.ld % 128))))
		return CUBLAS_STATUS_INVALID_VALUE;
	product->has_epilogue = true;
	return CUBLAS_STATUS_SUCCESS;
}

static bool unknown_wish(const void *description)
{
	static const int pointers[] = {
		CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
		CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
		CUBLASLT_MATMUL_DESC_C_SCALE_POINTER,
		CUBLASLT_MATMUL_DESC_D_SCALE_POINTER,
		CUBLASLT_MATMUL_DESC_AMAX_D_POINTER,
		CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER,
		CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER,
	};
	for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
		if (word64(CKT_LT_MATMUL, description, pointers[i]))
			return true;
	return matmul_word(description, CUBLASLT_MATMUL_DESC_TRANSC, 0) != CUBLAS_OP_N ||
		matmul_word(description, CUBLASLT_MATMUL_DESC_FILL_MODE, CUBLAS_FILL_MODE_FULL) !=
		CUBLAS_FILL_MODE_FULL;
}

cublasStatus_t ckt_soft_cublaslt_product_make(struct ckt_lt_product *product,
	const void *description, const void *a, const void *b, const void *c, const void *d)
{
	struct ckt_blas_job *job = &product->job;
	int64_t rows[4], columns[4], batch[4];
	*product = (struct ckt_lt_product){.job.name = "cublasLtMatmul"};
	if (!description || !ckt_lt_bytes(CKT_LT_MATMUL, description))
		return CUBLAS_STATUS_INVALID_VALUE;
	const void *layouts[] = {a, b, c, d};
	struct ckt_blas_operand *operands[] = {&job->A, &job->B, &job->C, &job->D};
	for (int i = 0; i < 4; i++) {
		cublasStatus_t status = ckt_soft_cublaslt_layout_read(
			layouts[i], operands[i], &rows[i], &columns[i], &batch[i]);
		if (status != CUBLAS_STATUS_SUCCESS)
			return status;
	}
	uint32_t transa = matmul_word(description, CUBLASLT_MATMUL_DESC_TRANSA, 0),
		 transb = matmul_word(description, CUBLASLT_MATMUL_DESC_TRANSB, 0);
	if (transa > CUBLAS_OP_C || transb > CUBLAS_OP_C)
		return CUBLAS_STATUS_INVALID_VALUE;
	job->transa = (int)transa;
	job->transb = (int)transb;
	job->m = rows[3];
	job->n = columns[3];
	job->k = transa == CUBLAS_OP_N ? columns[0] : rows[0];
	job->batch = batch[3];
	bool fits = (transa == CUBLAS_OP_N ? rows[0] : columns[0]) == job->m &&
		(transb == CUBLAS_OP_N ? columns[1] : rows[1]) == job->n &&
		(transb == CUBLAS_OP_N ? rows[1] : columns[1]) == job->k && rows[2] == job->m &&
		columns[2] == job->n && batch[0] == batch[3] && batch[1] == batch[3] &&
		batch[2] == batch[3];
	if (!fits)
		return CUBLAS_STATUS_INVALID_VALUE;
	uint32_t mode = matmul_word(description, CUBLASLT_MATMUL_DESC_POINTER_MODE, 0);
	if (mode > CKT_LT_POINTER_DEVICE || unknown_wish(description) ||
		!types_ok(job, matmul_word(description, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, 0),
			matmul_word(description, CUBLASLT_MATMUL_DESC_SCALE_TYPE, 0)))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return read_epilogue(product, description);
}

cublasStatus_t ckt_soft_cublaslt_scalar(
	struct ckt_blas_scalar *scalar, const void *p, uint32_t type, uint32_t pointer_mode)
{
	size_t size = ckt_blas_type_size((cudaDataType)type);
	*scalar = (struct ckt_blas_scalar){.p = p, .type = (cudaDataType)type};
	if (!p)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!size || pointer_mode > CKT_LT_POINTER_DEVICE)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (pointer_mode == CKT_LT_POINTER_HOST) {
		memcpy(&scalar->value, p, size);
		scalar->p = NULL;
	}
	return CUBLAS_STATUS_SUCCESS;
}

static void run_product(const void *data)
{
	const struct ckt_lt_product *product = data;
	struct ckt_blas_job job = product->job;
	job.epilogue = product->has_epilogue ? &product->epilogue : NULL;
	int error = ckt_blas_matmul(&job);
	if (error)
		ckt_softlib_fail(job.name, strerror(-error));
}

/* Sets the call's addresses; C may be NULL if beta is 0. */
static cublasStatus_t set_addresses(
	struct ckt_lt_product *product, const void *a, const void *b, const void *c, void *d)
{
	struct ckt_blas_job *job = &product->job;
	struct ckt_blas_epilogue *e = &product->epilogue;
	double beta[2] = {1, 0};
	if (!job->beta.p)
		ckt_blas_scalar_get(&job->beta, 0, beta);
	bool adds = beta[0] != 0 || beta[1] != 0;
	if (job->m && job->n &&
		(!d || (job->k && (!a || !b)) || (adds && !c) || (e->bias_use && !e->bias.p) ||
			(e->aux.ld && !e->aux.p)))
		return CUBLAS_STATUS_INVALID_VALUE;
	job->A.p = (void *)(uintptr_t)a;
	job->B.p = (void *)(uintptr_t)b;
	job->D.p = d;
	job->C.p = (void *)(uintptr_t)c;
	if (!adds)
		job->C = job->D;
	return CUBLAS_STATUS_SUCCESS;
}

CKT_CUBLAS_API cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle,
	cublasLtMatmulDesc_t computeDesc, const void *alpha, const void *A,
	cublasLtMatrixLayout_t Adesc, const void *B, cublasLtMatrixLayout_t Bdesc, const void *beta,
	const void *C, cublasLtMatrixLayout_t Cdesc, void *D, cublasLtMatrixLayout_t Ddesc,
	const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspaceSizeInBytes,
	cudaStream_t stream)
{
	struct ckt_lt_product product;
	(void)algo, (void)workspace, (void)workspaceSizeInBytes;
	if (!lightHandle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (ckt_softlib_failed())
		return CUBLAS_STATUS_EXECUTION_FAILED;
	cublasStatus_t status =
		ckt_soft_cublaslt_product_make(&product, computeDesc, Adesc, Bdesc, Cdesc, Ddesc);
	uint32_t mode = 0, scale = 0;
	if (status == CUBLAS_STATUS_SUCCESS) {
		mode = matmul_word(computeDesc, CUBLASLT_MATMUL_DESC_POINTER_MODE, 0);
		scale = matmul_word(computeDesc, CUBLASLT_MATMUL_DESC_SCALE_TYPE, 0);
		status = ckt_soft_cublaslt_scalar(&product.job.alpha, alpha, scale, mode);
	}
	if (status == CUBLAS_STATUS_SUCCESS)
		status = ckt_soft_cublaslt_scalar(&product.job.beta, beta, scale, mode);
	/* A factor on the host is the same for the whole batch. */
	if (mode == CKT_LT_POINTER_DEVICE) {
		product.job.alpha.stride = (int64_t)word64(
			CKT_LT_MATMUL, computeDesc, CKT_LT_MATMUL_ALPHA_BATCH_STRIDE);
		product.job.beta.stride = (int64_t)word64(
			CKT_LT_MATMUL, computeDesc, CKT_LT_MATMUL_BETA_BATCH_STRIDE);
	}
	if (status == CUBLAS_STATUS_SUCCESS)
		status = set_addresses(&product, A, B, C, D);
	if (status == CUBLAS_STATUS_NOT_SUPPORTED)
		ckt_softlib_unsupported("cublasLtMatmul of these types, layouts or attributes");
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	return ckt_soft_cublaslt_status(
		ckt_softlib_enqueue((CUstream)stream, run_product, &product, sizeof product));
}
