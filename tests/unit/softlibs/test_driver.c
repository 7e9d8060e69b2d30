/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/common/driver.c: the process's driver, and work on streams. */
#include "softgpu/libs/common/driver.h"
#include "softlibs.h"

static void test_found(void)
{
	YES(ckt_softlib_driver() != NULL);
	YES(ckt_softlib_driver() == ckt_softlib_driver());
	YES(ckt_softlib_driver()->launch_host_func ==
		(PFN_cuLaunchHostFunc_v10000)cuLaunchHostFunc);
}

static void test_context(void)
{
	CUcontext context = NULL, again = NULL;
	OK(cuInit(0));
	OK(cuCtxSetCurrent(NULL));
	OK(ckt_softlib_context(&context));
	OK(cuCtxGetCurrent(&again));
	YES(context && context == again);
	OK(ckt_softlib_context(&again));
	YES(context == again);
}

static void add(const void *data)
{
	struct {
		int *to, value;
	} arguments;
	memcpy(&arguments, data, sizeof arguments);
	*arguments.to = *arguments.to * 10 + arguments.value;
}

static void test_enqueue(void)
{
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	int number = 0;
	struct {
		int *to, value;
	} arguments = {&number, 0};
	lib_begin();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (arguments.value = 1; arguments.value <= 5; arguments.value++)
		OK(ckt_softlib_enqueue(stream, add, &arguments, sizeof arguments));
	OK(ckt_softlib_wait(stream));
	IS(number, 12345);
	number = 0;
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	arguments.value = 7;
	OK(ckt_softlib_enqueue(stream, add, &arguments, sizeof arguments));
	arguments.value = 8;
	OK(ckt_softlib_enqueue(stream, add, &arguments, sizeof arguments));
	OK(cuStreamEndCapture(stream, &graph));
	IS(number, 0);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphLaunch(exec, stream));
	OK(ckt_softlib_wait(stream));
	IS(number, 7878);
	OK(cuGraphExecDestroy(exec));
	/* A wait in a capture ends it, and work is refused from there on. */
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	YES(ckt_softlib_wait(stream) != CUDA_SUCCESS);
	IS(ckt_softlib_enqueue(stream, add, &arguments, sizeof arguments),
		CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	YES(cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS);
	IS(number, 7878);
	YES(ckt_softlib_enqueue((CUstream)(uintptr_t)0x1234567, add, &arguments,
		    sizeof arguments) != CUDA_SUCCESS);
	OK(cuStreamDestroy(stream));
	lib_end();
}

static void test_failures(void)
{
	NO(ckt_softlib_failed());
	ckt_softlib_fail("test_driver", "twice, on purpose");
	ckt_softlib_fail("test_driver", "twice, on purpose");
	YES(ckt_softlib_failed());
	YES(ckt_softlib_failed());
	NO(ckt_softlib_failed());
	/* Said on stderr, once. */
	ckt_softlib_unsupported("a function of the test's");
	ckt_softlib_unsupported("a function of the test's");
}

UNIT_SUITE(driver, {"found", test_found}, {"context", test_context},
	{"work on a stream", test_enqueue}, {"failures", test_failures})
