/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/cublasLt/cublasLt_descriptor.c: the genuine library's descriptors, made once
 * for the same bytes and ended when others take their place.
 */
#include <string.h>

#include "tests/unit/cublaslt/bridge.h"

static void *get(enum ckt_cublaslt_role role, const void *bytes, uint32_t length)
{
	void *real = NULL;
	IS(ckt_cublaslt_descriptor(
		   role, &(struct ckt_cublaslt_bytes){.bytes = bytes, .length = length}, &real),
		CUBLAS_STATUS_SUCCESS);
	return real;
}

static void test_kept(void)
{
	uint8_t layout[CKT_LT_LAYOUT_BYTES];
	bridge_handle();
	ckt_cublaslt_descriptors_end();
	IS(double_descriptors(), 0);
	ckt_lt_init(CKT_LT_LAYOUT, layout, CKT_LT_STRUCT_BYTES);
	int before = double_made();
	void *first = get(CKT_CUBLASLT_A, layout, sizeof layout);
	YES(first != NULL);
	YES(get(CKT_CUBLASLT_A, layout, sizeof layout) == first);
	IS(double_made() - before, 1);
	/* In another role it is another one, as both may be in one call. */
	YES(get(CKT_CUBLASLT_B, layout, sizeof layout) != first);
	IS(double_descriptors(), 2);
	/* Nothing is no descriptor. */
	YES(get(CKT_CUBLASLT_A, NULL, 0) == NULL);
	ckt_cublaslt_descriptors_end();
	IS(double_descriptors(), 0);
}

/* However many there are, a bounded number lives. */
static void test_bounded(void)
{
	uint8_t layout[CKT_LT_LAYOUT_BYTES];
	bridge_handle();
	ckt_lt_init(CKT_LT_LAYOUT, layout, CKT_LT_STRUCT_BYTES);
	int before = double_made();
	for (uint64_t rows = 0; rows < 5000; rows++) {
		ckt_lt_set(CKT_LT_LAYOUT, layout, 2, &rows, 8);
		get(CKT_CUBLASLT_C, layout, sizeof layout);
	}
	IS(double_made() - before, 5000);
	YES(double_descriptors() <= 256);
	YES(double_descriptors() > 128);
	ckt_cublaslt_descriptors_end();
	IS(double_descriptors(), 0);
}

/* A refusal leaves nothing behind, and the next one is made anew. */
static void test_refused(void)
{
	uint8_t operation[CKT_LT_MATMUL_BYTES], emulation[CKT_LT_EMULATION_BYTES];
	void *real = NULL;
	bridge_handle();
	ckt_lt_init(CKT_LT_MATMUL, operation, 256);
	ckt_lt_init(CKT_LT_EMULATION, emulation, 64);
	ckt_lt_set(CKT_LT_MATMUL, operation, 7, &(int){4}, 4);
	struct ckt_cublaslt_bytes from = {operation, sizeof operation, emulation, sizeof emulation};
	double_unknown = 7;
	IS(ckt_cublaslt_descriptor(CKT_CUBLASLT_OPERATION, &from, &real),
		CUBLAS_STATUS_INVALID_VALUE);
	double_unknown = -1;
	YES(real == NULL);
	IS(double_descriptors(), 0);
	IS(ckt_cublaslt_descriptor(CKT_CUBLASLT_OPERATION, &from, &real), CUBLAS_STATUS_SUCCESS);
	IS(double_descriptors(), 2);
	/* Another emulation is another operation. */
	int before = double_made();
	ckt_lt_set(CKT_LT_EMULATION, emulation, 0, &(int){1}, 4);
	IS(ckt_cublaslt_descriptor(CKT_CUBLASLT_OPERATION, &from, &real), CUBLAS_STATUS_SUCCESS);
	IS(double_made() - before, 2);
	/* A library without them. */
	ckt_cublasLt.cublasLtEmulationDescCreate = NULL;
	ckt_lt_set(CKT_LT_EMULATION, emulation, 0, &(int){2}, 4);
	IS(ckt_cublaslt_descriptor(CKT_CUBLASLT_OPERATION, &from, &real),
		CUBLAS_STATUS_NOT_SUPPORTED);
	double_install();
	ckt_cublaslt_descriptors_end();
	IS(double_descriptors(), 0);
}

static void test_garbage(void)
{
	uint8_t bytes[CKT_LT_MATMUL_BYTES] = {0};
	void *real;
	bridge_handle();
	static const uint32_t lengths[] = {1, 3, 4, 15, 17, 47, 49, 55, 57, 199};
	for (int role = 0; role < CKT_CUBLASLT_ROLES; role++)
		for (unsigned i = 0; i < COUNT(lengths); i++)
			IS(ckt_cublaslt_descriptor(role,
				   &(struct ckt_cublaslt_bytes){
					   .bytes = bytes, .length = lengths[i]},
				   &real),
				CKT_WCALL_GARBAGE);
	/* An emulation with anything but an operation. */
	IS(ckt_cublaslt_descriptor(CKT_CUBLASLT_A,
		   &(struct ckt_cublaslt_bytes){
			   bytes, CKT_LT_LAYOUT_BYTES, bytes, CKT_LT_EMULATION_BYTES},
		   &real),
		CKT_WCALL_GARBAGE);
	IS(ckt_cublaslt_descriptor(CKT_CUBLASLT_OPERATION,
		   &(struct ckt_cublaslt_bytes){NULL, 0, bytes, CKT_LT_EMULATION_BYTES}, &real),
		CKT_WCALL_GARBAGE);
	IS(double_descriptors(), 0);
}

UNIT_SUITE(cublasLt_descriptor, {"kept", test_kept}, {"bounded", test_bounded},
	{"refused", test_refused}, {"garbage", test_garbage})
