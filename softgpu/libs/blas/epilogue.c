/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epilogues of cublasLtMatmul: bias, ReLU and GELU, the data for their backward passes, and sums
 * that are the gradient of a bias.
 *
 * GELU is the approximation by tanh that cuBLASLt documents.  ReLU keeps one bit for each number,
 * in columns of ld bits.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "softgpu/libs/blas/epilogue.h"

static double number(const void *p, cudaDataType compute, int64_t i)
{
	return compute == CUDA_R_64F ? ((const double *)p)[i] : ((const float *)p)[i];
}

static void set_number(void *p, cudaDataType compute, int64_t i, double value)
{
	if (compute == CUDA_R_64F)
		((double *)p)[i] = value;
	else
		((float *)p)[i] = (float)value;
}

static const double gelu_root = 0.7978845608028654, gelu_cubic = 0.044715;

static double gelu(double x)
{
	return 0.5 * x * (1 + tanh(gelu_root * (x + gelu_cubic * x * x * x)));
}

static double gelu_slope(double x)
{
	double t = tanh(gelu_root * (x + gelu_cubic * x * x * x));
	return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * gelu_root * (1 + 3 * gelu_cubic * x * x);
}

static bool mask_get(const void *mask, int64_t bit)
{
	return ((const uint8_t *)mask)[bit / 8] >> bit % 8 & 1;
}

static void mask_set(void *mask, int64_t bit, bool value)
{
	uint8_t *byte = (uint8_t *)mask + bit / 8;
	*byte = (uint8_t)((*byte & ~(1u << bit % 8)) | (unsigned)value << bit % 8);
}

static double activate(const struct ckt_blas_epilogue *e, void *aux, int64_t at, double value)
{
	double kept = value;
	switch (e->function) {
	case CKT_BLAS_KEEP:
		return value;
	case CKT_BLAS_RELU:
		if (aux)
			mask_set(aux, at, value > 0);
		return value > 0 || value != value ? value : 0;
	case CKT_BLAS_GELU:
		if (aux)
			ckt_blas_store((char *)aux + at * (int64_t)ckt_blas_type_size(e->aux.type),
				e->aux.type, 1, &kept, CUDA_R_64F, 1);
		return gelu(value);
	case CKT_BLAS_DRELU:
		return mask_get(aux, at) ? value : 0;
	case CKT_BLAS_DGELU:
		ckt_blas_load(&kept, CUDA_R_64F,
			(char *)aux + at * (int64_t)ckt_blas_type_size(e->aux.type), e->aux.type, 1,
			1);
		return value * gelu_slope(kept);
	}
	return value;
}

/* Writes the sums of the rows of D or of op(A), or of the columns of op(B). */
static int gradient(
	const struct ckt_blas_job *job, int64_t i, const void *product, cudaDataType compute)
{
	const struct ckt_blas_epilogue *e = job->epilogue;
	bool of_b = e->bias_use == CKT_BLAS_GRADIENT_B;
	int64_t count = of_b ? job->n : job->m,
		terms = e->bias_use == CKT_BLAS_GRADIENT_D ? job->n : job->k;
	const struct ckt_blas_operand *from = of_b ? &job->B : &job->A;
	const char *p = e->bias_use == CKT_BLAS_GRADIENT_D ? NULL : ckt_blas_at(from, i);
	/* Sum over t of the elements op(A)(c, t) or op(B)(t, c). */
	bool swapped = (of_b ? job->transb : job->transa) != CKT_BLAS_N;
	bool step_is_ld = (of_b != swapped) != from->row;
	double *sums = calloc((size_t)count, sizeof *sums);
	if (!sums)
		return -ENOMEM;
	for (int64_t c = 0; c < count; c++)
		for (int64_t t = 0; t < terms; t++) {
			double value = 0;
			if (!p)
				value = number(product, compute, t * job->m + c);
			else
				ckt_blas_load(&value, CUDA_R_64F,
					p +
						(step_is_ld ? c * from->ld + t : c + t * from->ld) *
							(int64_t)ckt_blas_type_size(from->type),
					from->type, 1, 1);
			sums[c] += value;
		}
	ckt_blas_store(ckt_blas_at(&e->bias, i), e->bias.type, 1, sums, CUDA_R_64F, count);
	free(sums);
	return 0;
}

int ckt_blas_epilogue_apply(
	const struct ckt_blas_job *job, int64_t i, void *product, cudaDataType compute)
{
	const struct ckt_blas_epilogue *e = job->epilogue;
	double *bias = NULL;
	if (e->bias_use == CKT_BLAS_BIAS) {
		bias = malloc((size_t)job->m * sizeof *bias);
		if (!bias)
			return -ENOMEM;
		ckt_blas_load(bias, CUDA_R_64F, ckt_blas_at(&e->bias, i), e->bias.type, 1, job->m);
	}
	char *aux = e->aux.p;
	bool mask = e->function == CKT_BLAS_RELU || e->function == CKT_BLAS_DRELU;
	if (aux)
		aux += mask ? i * e->aux.stride / 8
			    : i * e->aux.stride * (int64_t)ckt_blas_type_size(e->aux.type);
	for (int64_t c = 0; c < job->n; c++)
		for (int64_t r = 0; r < job->m; r++) {
			double value =
				number(product, compute, c * job->m + r) + (bias ? bias[r] : 0);
			/* The sum is rounded to the type of computation. */
			if (compute == CUDA_R_32F)
				value = (float)value;
			set_number(product, compute, c * job->m + r,
				activate(e, aux, c * e->aux.ld + r, value));
		}
	free(bias);
	return e->bias_use > CKT_BLAS_BIAS ? gradient(job, i, product, compute) : 0;
}
