/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/context/waits.c: what its list names, and that nothing waits where it names nothing. */
#include "files.h"
#include "softgpu/context/waits.h"

static void test_words(void)
{
	IS(ckt_soft_waits_parse(NULL), 0);
	IS(ckt_soft_waits_parse(""), 0);
	IS(ckt_soft_waits_parse("load"), 1);
	IS(ckt_soft_waits_parse("launch"), 2);
	IS(ckt_soft_waits_parse("launch,load"), 3);
	IS(ckt_soft_waits_parse("loads,unload,,lau"), 0);
}

/* Not set in this program: neither call may look at a stream that stands still. */
static void test_off(void)
{
	enum { MANY = 2000 };
	test_context();
	CUstream gated = files_gated();
	CUfunction kernel = files_kernel(".visible .entry nothing()\n{\nret;\n}\n", "nothing");
	for (unsigned i = 0; i < MANY; i++)
		OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, gated, NULL, NULL));
	ckt_soft_waits_load(files_context());
	CHECK_RESULT(cuStreamQuery(gated), CUDA_ERROR_NOT_READY);
	files_open();
	OK(cuStreamSynchronize(gated));
}

UNIT_SUITE(softgpu / context / waits, {"words", test_words}, {"off", test_off})
