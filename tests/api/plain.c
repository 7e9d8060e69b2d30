/*
 * Functions that other cases call with what a GPU's own driver dies of, or for values that are a device's own: each called plainly, in a
 * case where nothing else is.
 */
#include <stdbool.h>

#include "driver.h"

static CUstream new_stream(void)
{
	CUstream stream = NULL;
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	return stream;
}

static CUgraph new_graph(void)
{
	CUgraph graph = NULL;
	QUIET(cuGraphCreate, &graph, 0);
	return graph;
}

CASE(name)
{
	char name[256], small[4];
	memset(name, 'x', sizeof(name));
	QUIET(cuInit, 0);
	CALL(cuDeviceGetName, name, sizeof(name), 0);
	YES("some", name[0] && memchr(name, 0, sizeof(name)));
	CALL(cuDeviceGetName, small, sizeof(small), 0);
	YES("begins so", !small[3] && !strncmp(small, name, 3));
}

CASE(entry_point)
{
	void *f = NULL, *g = NULL;
	QUIET(cuInit, 0);
	CALL(cuGetProcAddress, "cuMemAlloc", &f, 13000, 0);
	YES("the second version", f == api_symbol("cuMemAlloc_v2"));
	CALL(cuGetProcAddress, "cuStreamQuery", &g, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	YES("per thread", g == api_symbol("cuStreamQuery_ptsz"));
}

CASE(core_dumps)
{
	bool on = true;
	size_t size = sizeof(on);
	QUIET(cuInit, 0);
	CALL(cuCoredumpGetAttributeGlobal, CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size);
	NUMBER("on", on);
	NUMBER("size", (long long)size);
	CALL(cuCoredumpGetAttributeGlobal, CU_COREDUMP_ENABLE_USER_TRIGGER, &on, &size);
	NUMBER("on", on);
}

static CUmemPoolProps props(void)
{
	CUmemPoolProps p;
	memset(&p, 0, sizeof(p));
	p.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return p;
}

CASE(pool)
{
	CUmemoryPool pool = NULL, standard = NULL;
	CUmemPoolProps p = props();
	CUdeviceptr d = 0;
	cuuint64_t value = 1 << 30;
	start();
	QUIET(cuDeviceGetDefaultMemPool, &standard, 0);
	CALL(cuMemPoolCreate, &pool, &p);
	YES("another", pool && pool != standard);
	CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
	value = 77;
	CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
	NUMBER("threshold", (long long)value);
	CALL(cuMemAllocFromPoolAsync, &d, 1000, pool, NULL);
	CALL(cuMemsetD8_v2, d, 1, 1000);
	CONTENT("bytes", d, 1000);
	CALL(cuMemFreeAsync, d, NULL);
	CALL(cuMemPoolDestroy, pool);
}

CASE(three_peer)
{
	CUcontext context = start();
	uint8_t out[32];
	CUDA_MEMCPY3D_PEER c;
	CUdeviceptr p = memory(64), q = memory(64);
	QUIET(cuMemcpyHtoD_v2, p, numbers(out, sizeof(out), 1), 32);
	memset(&c, 0, sizeof(c));
	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.srcDevice = p;
	c.dstDevice = q;
	c.srcContext = c.dstContext = context;
	c.srcPitch = 8;
	c.dstPitch = 16;
	c.srcHeight = c.dstHeight = 2;
	c.WidthInBytes = 6;
	c.Height = 2;
	c.Depth = 1;
	CALL(cuMemcpy3DPeer, &c);
	CONTENT("bytes", q, 32);
	c.dstXInBytes = 1;
	CALL(cuMemcpy3DPeer_ptds, &c);
	CONTENT("bytes", q, 32);
	c.dstXInBytes = 2;
	CALL(cuMemcpy3DPeerAsync, &c, NULL);
	CONTENT("bytes", q, 32);
	c.dstXInBytes = 3;
	CALL(cuMemcpy3DPeerAsync_ptsz, &c, NULL);
	CONTENT("bytes", q, 32);
}

CASE(batch_per_thread)
{
	CUdeviceptr p, q;
	size_t size = 8, at = 0;
	CUmemcpyAttributes attributes;
	CUstream stream;
	start();
	p = memory(64);
	q = memory(64);
	stream = new_stream();
	QUIET(cuMemsetD8_v2, p, 3, 8);
	memset(&attributes, 0, sizeof(attributes));
	attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	CALL(cuMemcpyBatchAsync_v2_ptsz, &q, &p, &size, 1, &attributes, &at, 1, stream);
	CONTENT("bytes", q, 12);
}

static size_t CUDA_CB dynamic(int threads) { return (size_t)threads * 4; }

CASE(occupancy)
{
	CUfunction function;
	int blocks = -7, fewer = -7, size = -7, grid = -7;
	size_t shared = 77, less = 77;
	start();
	function = kernel(load(), "with_shared");
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, 256, 0);
	YES("some", blocks > 0);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &fewer, function, 512, 0);
	YES("half", 2 * fewer == blocks);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &fewer, function, 256, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
	YES("the same", fewer == blocks);
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, 256, 40000);
	YES("fewer", blocks > 0 && blocks < fewer);
	CALL(cuOccupancyMaxPotentialBlockSize, &grid, &size, function, NULL, 0, 128);
	NUMBER("block", size);
	YES("some", grid > 0);
	CALL(cuOccupancyMaxPotentialBlockSizeWithFlags, &grid, &size, function, dynamic, 0, 64, CU_OCCUPANCY_DEFAULT);
	NUMBER("block", size);
	YES("some", grid > 0);
	CALL(cuOccupancyAvailableDynamicSMemPerBlock, &shared, function, 1, 256);
	YES("some", shared > 16384);
	CALL(cuOccupancyAvailableDynamicSMemPerBlock, &less, function, 2, 256);
	YES("less", less < shared);
}

CASE(memory_operations)
{
	CUdeviceptr p;
	CUstreamBatchMemOpParams ops[2];
	start();
	p = memory(64);
	memset(ops, 0, sizeof(ops));
	ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[0].writeValue.address = p;
	ops[0].writeValue.value = 0x11223344;
	ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[1].waitValue.address = p;
	ops[1].waitValue.value = 0x11223344;
	ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	CALL(cuStreamBatchMemOp_v2, NULL, 2, ops, 0);
	CONTENT("bytes", p, 8);
}

CASE(attributes)
{
	CUstream stream;
	CUstreamAttrValue value;
	start();
	stream = new_stream();
	memset(&value, 0, sizeof(value));
	value.syncPolicy = CU_SYNC_POLICY_YIELD;
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	memset(&value, 0, sizeof(value));
	CALL(cuStreamGetAttribute, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	NUMBER("policy", value.syncPolicy);
	value.syncPolicy = CU_SYNC_POLICY_SPIN;
	CALL(cuStreamSetAttribute_ptsz, NULL, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	memset(&value, 0, sizeof(value));
	CALL(cuStreamGetAttribute_ptsz, NULL, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	NUMBER("policy", value.syncPolicy);
}

CASE(pinned_flags)
{
	unsigned flags = 77;
	void *p = NULL;
	start();
	QUIET(cuMemAllocHost_v2, &p, 1000);
	CALL(cuMemHostGetFlags, &flags, p);
	HEX("flags", flags);
	QUIET(cuMemHostAlloc, &p, 4096, CU_MEMHOSTALLOC_WRITECOMBINED);
	CALL(cuMemHostGetFlags, &flags, p);
	HEX("flags", flags);
}

static const char with_managed[] =
	".version 7.8\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .global .attribute(.managed) .align 4 .u32 word = 9;\n"
	".visible .entry nothing()\n"
	"{\n"
	"	ret;\n"
	"}\n";

CASE(managed_variable)
{
	CUlibrary library = NULL;
	CUdeviceptr p = 0;
	size_t size = 77;
	start();
	QUIET(cuLibraryLoadData, &library, with_managed, NULL, NULL, 0, NULL, NULL, 0);
	CALL(cuLibraryGetManaged, &p, &size, library, "word");
	YES("some", p != 0);
	NUMBER("size", (long long)size);
	NUMBER("word", p ? *(int *)p : -7);
}

CASE(children)
{
	CUgraph graph, child, other, inner = NULL;
	CUgraphNode node = NULL, set = NULL;
	CUgraphExec exec = NULL;
	CUcontext context = start();
	CUdeviceptr p = memory(64);
	CUDA_MEMSET_NODE_PARAMS fill = {.dst = p, .value = 1, .elementSize = 4, .width = 4, .height = 1};
	child = new_graph();
	other = new_graph();
	graph = new_graph();
	QUIET(cuGraphAddMemsetNode, &set, child, NULL, 0, &fill, context);
	fill.value = 2;
	QUIET(cuGraphAddMemsetNode, &set, other, NULL, 0, &fill, context);
	CALL(cuGraphAddChildGraphNode, &node, graph, NULL, 0, child);
	CALL(cuGraphChildGraphNodeGetGraph, node, &inner);
	YES("a copy", inner != child);
	QUIET(cuGraphInstantiateWithFlags, &exec, graph, 0);
	QUIET(cuGraphLaunch, exec, NULL);
	CONTENT("bytes", p, 20);
	CALL(cuGraphExecChildGraphNodeSetParams, exec, node, other);
	QUIET(cuGraphLaunch, exec, NULL);
	CONTENT("bytes", p, 20);
}

CASE(capture_per_thread)
{
	CUdeviceptr p;
	CUstream s;
	CUgraph graph, ended = NULL, seen = NULL;
	CUgraphNode node = NULL;
	const CUgraphNode *list = NULL;
	CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
	cuuint64_t id = 0, again = 0;
	size_t count = 77;
	start();
	p = memory(64);
	s = new_stream();
	graph = new_graph();
	QUIET(cuGraphAddEmptyNode, &node, graph, NULL, 0);
	CALL(cuStreamBeginCaptureToGraph_ptsz, s, graph, &node, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED);
	QUIET(cuMemsetD8Async, p, 1, 4, s);
	CALL(cuStreamGetCaptureInfo_v2_ptsz, s, &status, &id, &seen, &list, &count);
	NUMBER("status", status);
	YES("the same", seen == graph);
	NUMBER("count", (long long)count);
	CALL(cuStreamUpdateCaptureDependencies_ptsz, s, &node, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
	count = 77;
	CALL(cuStreamGetCaptureInfo_v3_ptsz, s, &status, &again, NULL, NULL, NULL, &count);
	NUMBER("count", (long long)count);
	YES("the same", id == again && id != 0);
	CALL(cuStreamUpdateCaptureDependencies_v2_ptsz, s, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
	count = 77;
	CALL(cuStreamGetCaptureInfo_v3_ptsz, s, &status, NULL, NULL, NULL, NULL, &count);
	NUMBER("count", (long long)count);
	CALL(cuStreamEndCapture, s, &ended);
	YES("the same", ended == graph);
}

CASE(tensor_maps)
{
	CUtensorMap map __attribute__((aligned(64))), first;
	void *base = (void *)0x7f0000000000;
	cuuint64_t dims[] = {64, 32, 8, 4}, strides[] = {256, 8192, 65536};
	cuuint32_t box[] = {16, 8, 2, 2}, steps[] = {1, 1, 1, 1};
	int lower[] = {-1, -1}, upper[] = {1, 1};
	start();
	memset(&map, 0xee, sizeof(map));
	first = map;
	CALL(cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
	     CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	YES("written", memcmp(&map, &first, sizeof(map)));
	first = map;
	CALL(cuTensorMapReplaceAddress, &map, (char *)base + 4096);
	YES("changed", memcmp(&map, &first, sizeof(map)));
	CALL(cuTensorMapReplaceAddress, &map, base);
	YES("as before", !memcmp(&map, &first, sizeof(map)));
	CALL(cuTensorMapEncodeIm2col, &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, base, dims, strides, lower, upper, 16, 32, steps,
	     CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	YES("another", memcmp(&map, &first, sizeof(map)));
}

/* The stack of before CUDA 4.0, with the primary context alone. */
CASE(old_stack)
{
	CUcontext context = start(), popped = NULL;
	CALL(cuCtxPopCurrent, &popped);
	YES("the same", popped == context);
	CALL(cuCtxPushCurrent, popped);
	CALL(cuCtxSynchronize);
}

CASE(second_context)
{
	CUcontext context = start(), other = NULL;
	CUdeviceptr p = 0;
	CALL(cuCtxCreate_v2, &other, 0, 0);
	YES("another", other && other != context);
	CALL(cuMemAlloc_v2, &p, 64);
	CALL(cuMemsetD8_v2, p, 1, 64);
	CALL(cuCtxSynchronize);
	CALL(cuCtxDestroy, other);
}

static void CUDA_CB notified(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle)
{
	(void)info, (void)data, (void)handle;
}

CASE(notifications)
{
	CUasyncCallbackHandle handle = NULL;
	start();
	CALL(cuDeviceRegisterAsyncNotification, 0, notified, NULL, &handle);
	YES("some", handle != NULL);
	CALL(cuDeviceUnregisterAsyncNotification, 0, handle);
}
