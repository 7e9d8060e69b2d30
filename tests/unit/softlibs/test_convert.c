/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/blas/convert.c: every half there is, and what lies between two of them. */
#include "softlibs.h"

static void test_every_half(void)
{
	for (int t = 0; t < 2; t++) {
		cudaDataType type = t ? CUDA_R_16BF : CUDA_R_16F;
		unsigned wrong = 0;
		for (unsigned bits = 0; bits < 0x10000; bits++) {
			uint16_t half = (uint16_t)bits, back;
			float value;
			ckt_blas_load(&value, CUDA_R_32F, &half, type, 1, 1);
			double shall = creal(lib_get(&half, type, 0));
			ckt_blas_store(&back, type, 1, &value, CUDA_R_32F, 1);
			if (shall != shall)
				wrong += value == value || (back & 0x7fff) != 0x7fff;
			else
				wrong += value != (float)shall || back != half;
		}
		IS(wrong, 0);
	}
}

/* Between neighbours: just below the middle, the middle, just above; subnormals, overflow. */
static void test_between(void)
{
	for (int t = 0; t < 2; t++) {
		cudaDataType type = t ? CUDA_R_16BF : CUDA_R_16F;
		unsigned wrong = 0, top = t ? 0x7f80 : 0x7c00;
		for (unsigned bits = 0; bits < top; bits++) {
			uint16_t low = (uint16_t)bits, high = (uint16_t)(bits + 1), is, shall;
			float a = (float)creal(lib_get(&low, type, 0)),
			      b = bits + 1 == top ? (t ? INFINITY : 65536)
						  : (float)creal(lib_get(&high, type, 0));
			/*
			 * Half of a step above the greatest bfloat16 is greater than that in single
			 * precision, too.
			 */
			float middle = isinf(b) ? ldexpf(0x1.ffp0f, 127) : a + (b - a) / 2;
			const float values[] = {nextafterf(middle, 0), middle,
				nextafterf(middle, INFINITY), -middle};
			for (size_t i = 0; i < COUNT(values); i++) {
				ckt_blas_store(&is, type, 1, &values[i], CUDA_R_32F, 1);
				lib_set(&shall, type, 0, values[i]);
				wrong += is != shall;
			}
		}
		IS(wrong, 0);
	}
}

static void test_whole_numbers(void)
{
	const double values[] = {0.5, 1.5, 2.5, -0.5, -1.5, 127.4, 127.5, 1e9, -128.5, -1e9, NAN};
	const int8_t shall[] = {0, 2, 2, 0, -2, 127, 127, 127, -128, -128, 0};
	int8_t is[COUNT(values)];
	int32_t wide[2];
	const double far[] = {1e10, -1e10};
	ckt_blas_store(is, CUDA_R_8I, 1, values, CUDA_R_64F, COUNT(values));
	for (size_t i = 0; i < COUNT(values); i++)
		IS(is[i], shall[i]);
	ckt_blas_store(wide, CUDA_R_32I, 1, far, CUDA_R_64F, 2);
	IS(wide[0], INT32_MAX);
	IS(wide[1], INT32_MIN);
}

static void test_complex(void)
{
	const float from[] = {1, 2, 3, 4, 5, 6};
	double to[4] = {0}, real[3];
	float back[6] = {0};
	/*
	 * Every second one; a number that has no imaginary part gets 0, and one that loses it keeps
	 * the real one.
	 */
	ckt_blas_load(to, CUDA_C_64F, from, CUDA_C_32F, 2, 2);
	YES(to[0] == 1 && to[1] == 2 && to[2] == 5 && to[3] == 6);
	ckt_blas_load(to, CUDA_C_64F, from, CUDA_R_32F, 3, 2);
	YES(to[0] == 1 && to[1] == 0 && to[2] == 4 && to[3] == 0);
	ckt_blas_load(real, CUDA_R_64F, from, CUDA_C_32F, 1, 3);
	YES(real[0] == 1 && real[1] == 3 && real[2] == 5);
	ckt_blas_store(back, CUDA_C_32F, 2, to, CUDA_C_64F, 2);
	YES(back[0] == 1 && back[1] == 0 && back[2] == 0 && back[4] == 4 && back[5] == 0);
}

static void test_types(void)
{
	static const struct {
		cudaDataType type, compute;
		size_t size;
	} table[] = {
		{CUDA_R_8I, CUDA_R_64F, 1},
		{CUDA_R_16F, CUDA_R_32F, 2},
		{CUDA_R_16BF, CUDA_R_32F, 2},
		{CUDA_R_32F, CUDA_R_32F, 4},
		{CUDA_R_32I, CUDA_R_64F, 4},
		{CUDA_R_64F, CUDA_R_64F, 8},
		{CUDA_C_32F, CUDA_C_32F, 8},
		{CUDA_C_64F, CUDA_C_64F, 16},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		IS(ckt_blas_type_size(table[i].type), table[i].size);
		IS(ckt_blas_type_compute(table[i].type), table[i].compute);
	}
	IS(ckt_blas_type_size(CUDA_R_8F_E4M3), 0);
	const float list[] = {5, 6, 7, 8};
	double value[2];
	struct ckt_blas_scalar scalar = {.p = list, .type = CUDA_R_32F, .stride = 1};
	ckt_blas_scalar_get(&scalar, 2, value);
	YES(value[0] == 7 && value[1] == 0);
	scalar = (struct ckt_blas_scalar){.p = list, .type = CUDA_C_32F, .stride = 1};
	ckt_blas_scalar_get(&scalar, 1, value);
	YES(value[0] == 7 && value[1] == 8);
	scalar = (struct ckt_blas_scalar){.type = CUDA_R_16F, .value.h = 0x3e00, .stride = 1};
	ckt_blas_scalar_get(&scalar, 9, value);
	YES(value[0] == 1.5);
}

UNIT_SUITE(convert, {"every half, there and back", test_every_half},
	{"to the nearest, and even", test_between},
	{"whole numbers are saturated", test_whole_numbers}, {"complex", test_complex},
	{"types and factors", test_types})
