/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cufft/callback.c: a callback's code and pointer reach the genuine function as they
 * are.
 */
#include "client/libs/cufft/cufft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/cufft_double.h"

enum { MOST = 1040384 };

static void test_callback(void)
{
	cufftHandle plan;
	void *info[] = {(void *)0x7000};
	uint8_t *code = malloc(MOST + 1);
	char symbol[1026], wanted[128];
	int real = -1;
	size_t bytes;
	memset(code, 3, MOST + 1);
	code[0] = 1;
	double_begin();
	MUST(cufftCreate(&plan), CUFFT_SUCCESS);
	double_calls();
	cufftGetSize(plan, &bytes);
	sscanf(double_calls(), "get_size(%d", &real);
	IS(cufftXtSetJITCallback(plan, "load", code, 5, CUFFT_CB_LD_COMPLEX, info), CUFFT_SUCCESS);
	snprintf(wanted, sizeof wanted, "set_jit_callback(%d load 4 5 1 3 0 0x7000)\n", real);
	TEXT(double_calls(), wanted);
	/* Without a pointer; the longest name and code. */
	memset(symbol, 'n', sizeof symbol);
	symbol[1024] = 0;
	IS(cufftXtSetJITCallback(plan, symbol, code, MOST, CUFFT_CB_ST_REAL_DOUBLE, NULL),
		CUFFT_SUCCESS);
	snprintf(wanted, sizeof wanted,
		"set_jit_callback(%d nnnnnnnnnnnnnnnnnnnn 1024 %d 1 3 7 0xdead)\n", real, MOST);
	TEXT(double_calls(), wanted);
	double_status = CUFFT_INVALID_TYPE;
	IS(cufftXtSetJITCallback(plan, "load", code, 5, CUFFT_CB_UNDEFINED, info),
		CUFFT_INVALID_TYPE);
	double_status = CUFFT_SUCCESS;
	double_calls();
	/* These do not travel. */
	IS(cufftXtSetJITCallback(plan, NULL, code, 5, CUFFT_CB_LD_COMPLEX, info),
		CUFFT_INVALID_VALUE);
	IS(cufftXtSetJITCallback(plan, "load", NULL, 5, CUFFT_CB_LD_COMPLEX, info),
		CUFFT_INVALID_VALUE);
	IS(cufftXtSetJITCallback(plan, "load", code, 0, CUFFT_CB_LD_COMPLEX, info),
		CUFFT_INVALID_VALUE);
	IS(cufftXtSetJITCallback(-1, "load", code, 5, CUFFT_CB_LD_COMPLEX, info),
		CUFFT_INVALID_PLAN);
	TEXT(double_calls(), "");
	IS(cufftXtSetJITCallback(plan, "load", code, MOST + 1, CUFFT_CB_LD_COMPLEX, info),
		CUFFT_NOT_SUPPORTED);
	HAS(double_calls(), "unsupported(cufftXtSetJITCallback with more");
	symbol[1024] = 'n';
	symbol[1025] = 0;
	IS(cufftXtSetJITCallback(plan, symbol, code, 5, CUFFT_CB_LD_COMPLEX, info),
		CUFFT_NOT_SUPPORTED);
	double_calls();
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	free(code);
}

/* By a device pointer: NVIDIA's shared library has none. */
static void test_pointer(void)
{
	void *routine[] = {(void *)0x1000};
	double_begin();
	IS(cufftXtSetCallback(1, routine, CUFFT_CB_LD_COMPLEX, routine), CUFFT_NOT_IMPLEMENTED);
	IS(cufftXtSetCallback(-1, NULL, (cufftXtCallbackType)99, NULL), CUFFT_NOT_IMPLEMENTED);
	TEXT(double_calls(), "");
}

UNIT_SUITE(callback, {"callback", test_callback}, {"pointer", test_pointer})
