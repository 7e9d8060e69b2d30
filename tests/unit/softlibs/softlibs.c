/* SPDX-License-Identifier: Apache-2.0 */
/* See softlibs.h. */
#include <stdio.h>

#include "softlibs.h"

cublasHandle_t lib_handle;
CUstream lib_stream;
static CUdeviceptr scalars;
static size_t scalars_used;
static uint32_t seed;

void lib_begin(void)
{
	CUcontext context;
	MUST(cuInit(0), CUDA_SUCCESS);
	MUST(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	MUST(cuCtxSetCurrent(context), CUDA_SUCCESS);
	MUST(cuStreamCreate(&lib_stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	MUST(cublasCreate_v2(&lib_handle), CUBLAS_STATUS_SUCCESS);
	MUST(cublasSetStream_v2(lib_handle, (cudaStream_t)lib_stream), CUBLAS_STATUS_SUCCESS);
	MUST(cuMemAlloc(&scalars, 1 << 16), CUDA_SUCCESS);
	scalars_used = 0;
	seed = 1;
}

void lib_end(void)
{
	OK(cuStreamSynchronize(lib_stream));
	OK(cublasDestroy_v2(lib_handle));
	OK(cuMemFree(scalars));
	OK(cuStreamDestroy(lib_stream));
}

static bool is_complex(cudaDataType type)
{
	return type == CUDA_C_32F || type == CUDA_C_64F;
}

static size_t size_of(cudaDataType type)
{
	switch (type) {
	case CUDA_R_8I:
		return 1;
	case CUDA_R_16F:
	case CUDA_R_16BF:
		return 2;
	case CUDA_R_32F:
	case CUDA_R_32I:
		return 4;
	case CUDA_R_64F:
	case CUDA_C_32F:
		return 8;
	default:
		return 16;
	}
}

/* By the definition of the formats: sign, exponent, mantissa. */
static double small_get(uint16_t bits, int mantissa_bits, int bias)
{
	int exponent = (bits & 0x7fff) >> mantissa_bits,
	    mantissa = bits & ((1 << mantissa_bits) - 1), top = (0x7fff >> mantissa_bits);
	double value = exponent == top ? (mantissa ? NAN : INFINITY)
		: exponent ? ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits)
			   : ldexp(mantissa, 1 - bias - mantissa_bits);
	return bits & 0x8000 ? -value : value;
}

/* The nearest of all values of the format, by search: slow and plain. */
static uint16_t small_set(double value, int mantissa_bits, int bias)
{
	uint16_t low = 0, high = 0x7fff & ~((1 << mantissa_bits) - 1); /* zero and infinity */
	double magnitude = fabs(value);
	if (value != value)
		return 0x7fff;
	while (high - low > 1) {
		uint16_t middle = (uint16_t)((low + high) / 2);
		if (small_get(middle, mantissa_bits, bias) <= magnitude)
			low = middle;
		else
			high = middle;
	}
	double below = small_get(low, mantissa_bits, bias),
	       above = small_get(high, mantissa_bits, bias);
	/* Infinity is where the next power of two would be. */
	if (isinf(above))
		above = ldexp(1, bias + 1);
	uint16_t nearest = magnitude - below < above - magnitude ? low
		: magnitude - below > above - magnitude          ? high
		: low & 1                                        ? high
								 : low;
	return (uint16_t)(nearest | (signbit(value) ? 0x8000 : 0));
}

double complex lib_get(const void *p, cudaDataType type, int64_t i)
{
	switch (type) {
	case CUDA_R_8I:
		return ((const int8_t *)p)[i];
	case CUDA_R_32I:
		return ((const int32_t *)p)[i];
	case CUDA_R_16F:
		return small_get(((const uint16_t *)p)[i], 10, 15);
	case CUDA_R_16BF:
		return small_get(((const uint16_t *)p)[i], 7, 127);
	case CUDA_R_32F:
		return ((const float *)p)[i];
	case CUDA_R_64F:
		return ((const double *)p)[i];
	case CUDA_C_32F:
		return ((const float complex *)p)[i];
	default:
		return ((const double complex *)p)[i];
	}
}

void lib_set(void *p, cudaDataType type, int64_t i, double complex value)
{
	double re = creal(value);
	switch (type) {
	case CUDA_R_8I:
		((int8_t *)p)[i] = (int8_t)(re < -128 ? -128 : re > 127 ? 127 : nearbyint(re));
		break;
	case CUDA_R_32I:
		((int32_t *)p)[i] = (int32_t)re;
		break;
	case CUDA_R_16F:
		((uint16_t *)p)[i] = small_set((float)re, 10, 15);
		break;
	case CUDA_R_16BF:
		((uint16_t *)p)[i] = small_set((float)re, 7, 127);
		break;
	case CUDA_R_32F:
		((float *)p)[i] = (float)re;
		break;
	case CUDA_R_64F:
		((double *)p)[i] = re;
		break;
	case CUDA_C_32F:
		((float complex *)p)[i] = (float complex)value;
		break;
	default:
		((double complex *)p)[i] = value;
		break;
	}
}

void lib_set_nan(void *p, cudaDataType type, int64_t i)
{
	memset((char *)p + (size_t)i * size_of(type),
		type == CUDA_R_8I || type == CUDA_R_32I ? 0x55 : 0xff, size_of(type));
}

double complex lib_op(double complex value, int op)
{
	return op == CUBLAS_OP_C ? conj(value) : value;
}

static double quarter(void)
{
	seed = seed * 1664525 + 1013904223;
	return ((int)(seed >> 16 & 31) - 16) / 4.0;
}

struct lib_array lib_array(cudaDataType type, size_t count)
{
	struct lib_array array = {.type = type, .count = count};
	CUdeviceptr p = 0;
	/* Never of no bytes. */
	MUST(cuMemAlloc(&p, (count + 1) * size_of(type)), CUDA_SUCCESS);
	array.p = (char *)(uintptr_t)p;
	array.expected = malloc((count + 1) * size_of(type));
	bool whole = type == CUDA_R_8I || type == CUDA_R_32I;
	for (size_t i = 0; i < count + 1; i++) {
		double re = quarter() * (whole ? 4 : 1), im = is_complex(type) ? quarter() : 0;
		lib_set(array.p, type, (int64_t)i, re + im * I);
	}
	memcpy(array.expected, array.p, (count + 1) * size_of(type));
	return array;
}

static bool near(double complex a, double complex b, double tolerance)
{
	return cabs(a - b) <= tolerance * (1 + cabs(b));
}

bool lib_same(const struct lib_array *array, double tolerance)
{
	OK(cuStreamSynchronize(lib_stream));
	for (size_t i = 0; i < array->count + 1; i++) {
		double complex is = lib_get(array->p, array->type, (int64_t)i),
			       shall = lib_get(array->expected, array->type, (int64_t)i);
		bool same =
			!memcmp(array->p + i * size_of(array->type),
				array->expected + i * size_of(array->type), size_of(array->type)) ||
			(tolerance > 0 ? near(is, shall, tolerance) : is == shall);
		if (!same) {
			fprintf(stderr, "element %zu of type %d: %g%+gi, not %g%+gi\n", i,
				array->type, creal(is), cimag(is), creal(shall), cimag(shall));
			return false;
		}
	}
	return true;
}

void lib_free(struct lib_array *array)
{
	OK(cuMemFree((CUdeviceptr)(uintptr_t)array->p));
	free(array->expected);
	*array = (struct lib_array){0};
}

const void *lib_scalar(cudaDataType type, double complex value)
{
	static char host[8][16];
	static unsigned next;
	cublasPointerMode_t mode;
	OK(cublasGetPointerMode_v2(lib_handle, &mode));
	char *p = host[next++ % 8];
	if (mode == CUBLAS_POINTER_MODE_DEVICE) {
		/* Those of calls that have not run yet stay. */
		if (scalars_used == 4096) {
			OK(cuStreamSynchronize(lib_stream));
			scalars_used = 0;
		}
		p = (char *)(uintptr_t)scalars + 16 * scalars_used++;
	}
	lib_set(p, type, 0, value);
	return p;
}
