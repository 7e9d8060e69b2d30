/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cases of conditional.c make and run: kernels that set conditions, and graphs with them.
 */
#pragma once

#include "driver.h"

static const char conditional_ptx[] =
	".version 8.4\n"
	".target sm_75\n"
	".address_size 64\n"
	".extern .func cudaGraphSetConditional(.param .b64 cudaGraphSetConditional_param_0, .param .b32 cudaGraphSetConditional_param_1);\n"
	/* The condition is value. */
	".visible .entry set(.param .u64 handle, .param .u32 value)\n"
	"{\n"
	"	.reg .b32 v;\n"
	"	.reg .b64 h;\n"
	"	ld.param.u64 h, [handle];\n"
	"	ld.param.u32 v, [value];\n"
	"	{\n"
	"	.param .b64 a;\n"
	"	.param .b32 b;\n"
	"	st.param.b64 [a], h;\n"
	"	st.param.b32 [b], v;\n"
	"	call.uni cudaGraphSetConditional, (a, b);\n"
	"	}\n"
	"	ret;\n"
	"}\n"
	/* The condition is what lies at p. */
	".visible .entry set_from(.param .u64 handle, .param .u64 p)\n"
	"{\n"
	"	.reg .b32 v;\n"
	"	.reg .b64 h, q;\n"
	"	ld.param.u64 h, [handle];\n"
	"	ld.param.u64 q, [p];\n"
	"	ld.global.u32 v, [q];\n"
	"	{\n"
	"	.param .b64 a;\n"
	"	.param .b32 b;\n"
	"	st.param.b64 [a], h;\n"
	"	st.param.b32 [b], v;\n"
	"	call.uni cudaGraphSetConditional, (a, b);\n"
	"	}\n"
	"	ret;\n"
	"}\n"
	/*
	 * Counts at p; the condition is whether that is less than limit, and the count begins anew
	 * where it is not.
	 */
	".visible .entry count(.param .u64 handle, .param .u64 p, .param .u32 limit)\n"
	"{\n"
	"	.reg .b32 v, l;\n"
	"	.reg .b64 h, q;\n"
	"	.reg .pred less;\n"
	"	ld.param.u64 h, [handle];\n"
	"	ld.param.u64 q, [p];\n"
	"	ld.param.u32 l, [limit];\n"
	"	ld.global.u32 v, [q];\n"
	"	add.u32 v, v, 1;\n"
	"	setp.lt.u32 less, v, l;\n"
	"	@!less mov.u32 v, 0;\n"
	"	st.global.u32 [q], v;\n"
	"	selp.u32 v, 1, 0, less;\n"
	"	{\n"
	"	.param .b64 a;\n"
	"	.param .b32 b;\n"
	"	st.param.b64 [a], h;\n"
	"	st.param.b32 [b], v;\n"
	"	call.uni cudaGraphSetConditional, (a, b);\n"
	"	}\n"
	"	ret;\n"
	"}\n"
	/* Adds value at p. */
	".visible .entry add(.param .u64 p, .param .u32 value)\n"
	"{\n"
	"	.reg .b32 v, w;\n"
	"	.reg .b64 q;\n"
	"	ld.param.u64 q, [p];\n"
	"	ld.param.u32 v, [value];\n"
	"	ld.global.u32 w, [q];\n"
	"	add.u32 w, w, v;\n"
	"	st.global.u32 [q], w;\n"
	"	ret;\n"
	"}\n";

static CUcontext context;
static CUfunction set, set_from, count, add;
static CUdeviceptr p; /* 64 bytes of zeros */

static CUgraph new_graph(void)
{
	CUgraph graph = NULL;
	QUIET(cuGraphCreate, &graph, 0);
	return graph;
}

static CUgraph begin(void)
{
	CUmodule module = NULL;
	context = start();
	QUIET(cuModuleLoadData, &module, conditional_ptx);
	set = kernel(module, "set");
	set_from = kernel(module, "set_from");
	count = kernel(module, "count");
	add = kernel(module, "add");
	p = memory(64);
	QUIET(cuMemsetD8_v2, p, 0, 64);
	return new_graph();
}

static CUgraphConditionalHandle new_handle(CUgraph graph, unsigned value, unsigned flags)
{
	CUgraphConditionalHandle handle = 0;
	QUIET(cuGraphConditionalHandleCreate, &handle, graph, context, value, flags);
	return handle;
}

static CUgraphNodeParams conditional(
	CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned size)
{
	CUgraphNodeParams params;
	memset(&params, 0, sizeof(params));
	params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = size;
	params.conditional.ctx = context;
	return params;
}

/* The bodies. */
static CUgraph *add_conditional(CUgraph graph, CUgraphNode after, CUgraphConditionalHandle handle,
	CUgraphConditionalNodeType type, unsigned size)
{
	CUgraphNode node = NULL;
	CUgraphNodeParams params = conditional(handle, type, size);
	QUIET(cuGraphAddNode_v2, &node, graph, after ? &after : NULL, NULL, after ? 1 : 0, &params);
	return params.conditional.phGraph_out;
}

static CUgraphNode add_kernel(CUgraph graph, CUgraphNode after, CUfunction function, void **params)
{
	CUgraphNode node = NULL;
	CUDA_KERNEL_NODE_PARAMS kernel_params = {.func = function,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = params};
	QUIET(cuGraphAddKernelNode_v2, &node, graph, after ? &after : NULL, after ? 1 : 0,
		&kernel_params);
	return node;
}

static CUgraphNode add_add(CUgraph graph, CUgraphNode after, CUdeviceptr to, unsigned value)
{
	return add_kernel(graph, after, add, (void *[]){&to, &value});
}

static CUgraphNode add_set(
	CUgraph graph, CUgraphNode after, CUgraphConditionalHandle handle, unsigned value)
{
	return add_kernel(graph, after, set, (void *[]){&handle, &value});
}

static CUgraphNode add_count(CUgraph graph, CUgraphNode after, CUgraphConditionalHandle handle,
	CUdeviceptr at, unsigned limit)
{
	return add_kernel(graph, after, count, (void *[]){&handle, &at, &limit});
}

static CUgraphNode add_set_from(
	CUgraph graph, CUgraphNode after, CUgraphConditionalHandle handle, CUdeviceptr at)
{
	return add_kernel(graph, after, set_from, (void *[]){&handle, &at});
}

static CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec exec = NULL;
	QUIET(cuGraphInstantiateWithFlags, &exec, graph, 0);
	return exec;
}

static void run(CUgraphExec exec)
{
	QUIET(cuGraphLaunch, exec, NULL);
	QUIET(cuStreamSynchronize, NULL);
	REMARK("launched");
	CONTENT("p", p, 16);
}

static CUgraphInstantiateResult try_instantiate(CUgraph graph, CUgraphExec *exec)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params;
	memset(&params, 0, sizeof(params));
	params.result_out = (CUgraphInstantiateResult)77;
	CALL(cuGraphInstantiateWithParams, exec, graph, &params);
	NUMBER("result", params.result_out);
	YES("a node", params.hErrNode_out != NULL);
	return params.result_out;
}
