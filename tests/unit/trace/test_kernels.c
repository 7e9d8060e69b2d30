/* SPDX-License-Identifier: Apache-2.0 */
/* client/trace/kernels.c: names by number. */
#include <stdio.h>
#include <unistd.h>

#include "in_child.h"
#include "tests/unit/suite.h"

static void test_names(void)
{
	char name[32];
	CU_ASSERT_PTR_NULL(ckt_trace_kernel_name(1));
	for (unsigned i = 1; i <= 5000; i++) {
		snprintf(name, sizeof name, "kernel %u", i);
		ckt_trace_kernel((uint64_t)i << 32 | i, name);
	}
	for (unsigned i = 1; i <= 5000; i++) {
		snprintf(name, sizeof name, "kernel %u", i);
		TEXT(ckt_trace_kernel_name((uint64_t)i << 32 | i), name);
	}
	CU_ASSERT_PTR_NULL(ckt_trace_kernel_name(7));
	ckt_trace_kernel((uint64_t)9 << 32 | 9, "another");
	TEXT(ckt_trace_kernel_name((uint64_t)9 << 32 | 9), "another");
}

static void fill(void)
{
	for (unsigned i = 0; i < CKT_TRACE_KERNELS_MAX + 10u; i++)
		ckt_trace_kernel(1000000 + i, "k");
	if (!ckt_trace_kernel_name(1000000))
		_exit(1);
	if (ckt_trace_kernel_name(1000000 + CKT_TRACE_KERNELS_MAX + 9))
		_exit(2);
}

static void test_bound(void)
{
	IS(in_child(NULL, NULL, fill), 0);
}

UNIT_SUITE(kernels, {"names", test_names}, {"bound", test_bound})
