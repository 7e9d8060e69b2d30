/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a made-up library, for the generator's tests (toy.py). */
#pragma once

typedef enum { TOY_OK = 0 } toyStatus_t;
typedef enum { TOY_HOST, TOY_DEVICE } toyMode_t;
typedef struct toyHandle_st *toyHandle_t;
typedef struct {
	float re, im;
} toyComplex;
typedef struct {
	toyComplex scale[2];
	int rows, columns;
} toyShape;

toyStatus_t toyCreate(toyHandle_t *handle);
toyStatus_t toySetMode(toyHandle_t handle, toyMode_t mode);
toyStatus_t toyGetMode(toyHandle_t handle, toyMode_t *mode);
toyStatus_t toyMultiply(toyHandle_t handle, unsigned long a, unsigned long b,
	const toyComplex *alpha, const toyShape *shape);
toyStatus_t toySwap(
	toyHandle_t handle, toyShape *shape, const char *name, const long long *strides, int count);
