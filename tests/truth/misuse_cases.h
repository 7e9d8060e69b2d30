/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of misuse.cu: what is called wrongly, then what is asked afterwards. */

/* ---- Launches */
CASE(launch_zero_grid) { nothing<<<0, 1>>>(); after(); }
CASE(launch_zero_block) { nothing<<<1, 0>>>(); after(); }
CASE(launch_big_block) { nothing<<<1, 1025>>>(); after(); }
CASE(launch_big_block_z) { nothing<<<1, dim3(1, 1, 65)>>>(); after(); }
CASE(launch_big_grid_y) { nothing<<<dim3(1, 65536), 1>>>(); after(); }
CASE(launch_big_grid_x) { nothing<<<dim3(1u << 31), 1>>>(); after(); }
CASE(launch_much_shared) { wants_shared<<<1, 1, 1 << 20>>>(); after(); }
CASE(launch_shared_over_default) { wants_shared<<<1, 1, 49153>>>(); after(); }
CASE(launch_null) { R(cudaLaunchKernel((const void *)NULL, dim3(1), dim3(1), NULL, 0, 0)); after(); }
CASE(launch_unregistered) { R(cudaLaunchKernel((const void *)not_a_kernel, dim3(1), dim3(1), NULL, 0, 0)); after(); }
CASE(launch_zero_grid_call) { R(cudaLaunchKernel((const void *)nothing, dim3(0), dim3(1), NULL, 0, 0)); after(); }
CASE(launch_cooperative_too_large) { R(cudaLaunchCooperativeKernel((const void *)nothing, dim3(1u << 20), dim3(1024), NULL, 0, 0)); after(); }
CASE(launch_ex_null)
{
	R(cudaLaunchKernelExC(NULL, (const void *)nothing, NULL));
	after();
}
CASE(launch_ex_bad_cluster)
{
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attribute = {};
	config.gridDim = dim3(3);
	config.blockDim = dim3(32);
	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = 2;
	attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
	config.attrs = &attribute;
	config.numAttrs = 1;
	R(cudaLaunchKernelExC(&config, (const void *)nothing, NULL));
	after();
}
CASE(function_attribute_much_shared) { R(cudaFuncSetAttribute((const void *)wants_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 24)); after(); }
CASE(function_attribute_negative) { R(cudaFuncSetAttribute((const void *)wants_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, -1)); after(); }
CASE(function_attribute_unknown) { R(cudaFuncSetAttribute((const void *)nothing, (cudaFuncAttribute)999, 1)); after(); }
CASE(function_attributes_null) { R(cudaFuncGetAttributes(NULL, (const void *)nothing)); after(); }
CASE(function_attributes_unregistered)
{
	cudaFuncAttributes attributes;
	R(cudaFuncGetAttributes(&attributes, (const void *)not_a_kernel));
	after();
}
CASE(function_cache_bad) { R(cudaFuncSetCacheConfig((const void *)nothing, (cudaFuncCache)99)); after(); }
CASE(occupancy_bad)
{
	int n = -1;
	R(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, (const void *)nothing, 0, 0));
	R(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, (const void *)nothing, 4096, 0));
	R(cudaOccupancyMaxActiveBlocksPerMultiprocessor(NULL, (const void *)nothing, 32, 0));
	R(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, (const void *)not_a_kernel, 32, 0));
	after();
}

/* ---- Memory */
CASE(malloc_null) { R(cudaMalloc((void **)NULL, 16)); after(); }
CASE(malloc_huge) { void *p = (void *)8; R(cudaMalloc(&p, (size_t)1 << 50)); say_value("changed", p != (void *)8); after(); }
CASE(malloc_zero) { void *p = (void *)8; R(cudaMalloc(&p, 0)); say_value("null", p == NULL); R(cudaFree(p)); after(); }
CASE(free_garbage) { R(cudaFree((void *)0x1234)); after(); }
CASE(free_twice) { int *p = device_memory(); R(cudaFree(p)); R(cudaFree(p)); after(); }
CASE(free_inside) { int *p = device_memory(); R(cudaFree(p + 4)); R(cudaFree(p)); after(); }
CASE(free_host_memory) { R(cudaFree(plain_host)); after(); }
CASE(free_pinned) { void *p; R(cudaMallocHost(&p, 64)); R(cudaFree(p)); R(cudaFreeHost(p)); after(); }
CASE(free_host_of_device) { int *p = device_memory(); R(cudaFreeHost(p)); R(cudaFree(p)); after(); }
CASE(free_host_of_plain) { R(cudaFreeHost(plain_host)); after(); }
CASE(free_host_twice) { void *p; R(cudaMallocHost(&p, 64)); R(cudaFreeHost(p)); R(cudaFreeHost(p)); after(); }
CASE(malloc_host_null) { R(cudaMallocHost((void **)NULL, 64)); after(); }
CASE(malloc_host_zero) { void *p = (void *)8; R(cudaMallocHost(&p, 0)); say_value("null", p == NULL); after(); }
CASE(host_alloc_flags) { void *p; R(cudaHostAlloc(&p, 64, 0x1000)); after(); }
CASE(memcpy_kind) { int v; R(cudaMemcpy(&v, plain_host, 4, (cudaMemcpyKind)99)); after(); }
CASE(memcpy_null) { int *p = device_memory(); R(cudaMemcpy(NULL, p, 4, cudaMemcpyDeviceToHost)); R(cudaMemcpy(p, NULL, 4, cudaMemcpyHostToDevice)); after(); }
CASE(memcpy_nothing) { R(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault)); after(); }
CASE(memcpy_wrong_direction)
{
	int *p = device_memory(), v[4] = {0};
	R(cudaMemcpy(p, v, 16, cudaMemcpyDeviceToDevice));
	R(cudaMemcpy(v, p, 16, cudaMemcpyHostToDevice));
	after();
}
CASE(memcpy_past_end)
{
	static char data[4 << 20];
	int *p;
	R(cudaMalloc(&p, 2 << 20));
	R(cudaMemcpy(data, p, (2 << 20) + 4, cudaMemcpyDeviceToHost));
	after();
}
CASE(memcpy_freed) { int *p = device_memory(), v; R(cudaFree(p)); R(cudaMemcpy(&v, p, 4, cudaMemcpyDeviceToHost)); after(); }
CASE(memcpy_2d_pitch) { int *p = device_memory(); R(cudaMemcpy2D(p, 8, plain_host, 8, 16, 1, cudaMemcpyHostToDevice)); after(); }
CASE(memset_null) { R(cudaMemset(NULL, 0, 4)); R(cudaMemset(NULL, 0, 0)); after(); }
CASE(memset_garbage) { R(cudaMemset((void *)0x1234, 0, 4)); after(); }
CASE(memset_past_end) { int *p; R(cudaMalloc(&p, 2 << 20)); R(cudaMemset(p, 0, (2 << 20) + 1)); after(); }
CASE(malloc_pitch_null) { size_t pitch; R(cudaMallocPitch((void **)NULL, &pitch, 16, 16)); after(); }
CASE(malloc_pitch_zero) { void *p = (void *)8; size_t pitch = 7; R(cudaMallocPitch(&p, &pitch, 0, 16)); say_value("null", p == NULL); after(); }
CASE(symbol_unregistered) { void *p; size_t n; R(cudaGetSymbolAddress(&p, plain_host)); R(cudaGetSymbolSize(&n, plain_host)); after(); }
CASE(symbol_null) { void *p; R(cudaGetSymbolAddress(&p, (const void *)NULL)); R(cudaGetSymbolAddress((void **)NULL, symbol)); after(); }
CASE(symbol_too_much) { int v[8] = {0}; R(cudaMemcpyToSymbol(symbol, v, 32)); R(cudaMemcpyToSymbol(fixed, v, 8, 12)); R(cudaMemcpyFromSymbol(v, symbol, 16, 4)); after(); }
CASE(symbol_wrong_kind) { int v[4] = {0}; R(cudaMemcpyToSymbol(symbol, v, 16, 0, cudaMemcpyDeviceToHost)); R(cudaMemcpyFromSymbol(v, symbol, 16, 0, cudaMemcpyHostToDevice)); after(); }
CASE(register_null) { R(cudaHostRegister(NULL, 64, 0)); after(); }
CASE(register_zero) { static char page[8192]; R(cudaHostRegister(page, 0, 0)); after(); }
CASE(register_twice)
{
	void *p = aligned_alloc(4096, 8192);
	R(cudaHostRegister(p, 8192, 0));
	R(cudaHostRegister(p, 8192, 0));
	LAST();
	R(cudaHostUnregister(p));
	R(cudaHostUnregister(p));
	after();
}
CASE(unregister_plain) { R(cudaHostUnregister(plain_host)); after(); }
CASE(unregister_allocated) { void *p; R(cudaMallocHost(&p, 64)); R(cudaHostUnregister(p)); R(cudaFreeHost(p)); after(); }
CASE(host_pointer_unregistered) { void *p = (void *)8; R(cudaHostGetDevicePointer(&p, plain_host, 0)); after(); }
CASE(host_pointer_flags) { void *p, *d; R(cudaMallocHost(&p, 64)); R(cudaHostGetDevicePointer(&d, p, 1)); after(); }
CASE(host_flags)
{
	unsigned flags = 77;
	void *p;
	R(cudaHostGetFlags(&flags, plain_host));
	LAST();
	R(cudaMallocHost(&p, 64));
	R(cudaHostGetFlags(&flags, p));
	say_value("flags", flags);
	R(cudaHostGetFlags(NULL, p));
	R(cudaHostAlloc(&p, 64, cudaHostAllocPortable | cudaHostAllocWriteCombined));
	R(cudaHostGetFlags(&flags, p));
	say_value("flags", flags);
	after();
}
CASE(pointer_attributes)
{
	cudaPointerAttributes a;
	memset(&a, 0x55, sizeof a);
	R(cudaPointerGetAttributes(&a, plain_host));
	say_value("type", a.type);
	say_value("device", a.device);
	say_value("device pointer null", a.devicePointer == NULL);
	say_value("host pointer null", a.hostPointer == NULL);
	say_value("host pointer same", a.hostPointer == plain_host);
	R(cudaPointerGetAttributes(&a, NULL));
	say_value("type", a.type);
	say_value("device", a.device);
	R(cudaPointerGetAttributes(NULL, plain_host));
	LAST();
	int *p = device_memory();
	R(cudaPointerGetAttributes(&a, p + 1));
	say_value("type", a.type);
	say_value("device", a.device);
	say_value("device pointer same", a.devicePointer == p + 1);
	say_value("host pointer null", a.hostPointer == NULL);
	after();
}
CASE(managed_zero) { void *p; R(cudaMallocManaged(&p, 0)); after(); }
CASE(managed_flags) { void *p; R(cudaMallocManaged(&p, 64, 77)); after(); }
CASE(managed_null) { R(cudaMallocManaged((void **)NULL, 64)); after(); }
CASE(mem_info_null) { size_t n; R(cudaMemGetInfo(NULL, &n)); R(cudaMemGetInfo(&n, NULL)); after(); }
CASE(malloc_async_null) { R(cudaMallocAsync((void **)NULL, 64, (cudaStream_t)0)); after(); }
CASE(free_async_twice) { void *p; R(cudaMallocAsync(&p, 64, (cudaStream_t)0)); R(cudaFreeAsync(p, 0)); R(cudaFreeAsync(p, 0)); after(); }
CASE(free_async_garbage) { R(cudaFreeAsync((void *)0x1234, 0)); R(cudaFreeAsync(NULL, 0)); after(); }
CASE(array_null) { cudaChannelFormatDesc d = cudaCreateChannelDesc<float>(); R(cudaMallocArray(NULL, &d, 16, 16)); R(cudaFreeArray(NULL)); after(); }
CASE(array_zero) { cudaChannelFormatDesc d = cudaCreateChannelDesc<float>(); cudaArray_t a; R(cudaMallocArray(&a, &d, 0, 0)); after(); }

/* ---- Devices */
CASE(device_too_high) { R(cudaSetDevice(1000)); after(); }
CASE(device_negative) { R(cudaSetDevice(-1)); after(); }
CASE(device_get_null) { R(cudaGetDevice(NULL)); R(cudaGetDeviceCount(NULL)); after(); }
CASE(properties_bad) { cudaDeviceProp prop; R(cudaGetDeviceProperties(&prop, 1000)); R(cudaGetDeviceProperties(NULL, 0)); after(); }
CASE(attribute_bad)
{
	int v;
	R(cudaDeviceGetAttribute(&v, (cudaDeviceAttr)99999, 0));
	R(cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 1000));
	R(cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0));
	after();
}
CASE(peer_self)
{
	int can = 7;
	R(cudaDeviceCanAccessPeer(&can, 0, 0));
	say_value("can", can);
	R(cudaDeviceEnablePeerAccess(0, 0));
	R(cudaDeviceDisablePeerAccess(0));
	R(cudaDeviceCanAccessPeer(&can, 0, 1000));
	R(cudaDeviceEnablePeerAccess(1000, 0));
	after();
}
CASE(device_flags)
{
	unsigned flags = 77;
	R(cudaGetDeviceFlags(&flags));
	say_value("flags", flags);
	R(cudaGetDeviceFlags(NULL));
	R(cudaSetDeviceFlags(0xffff));
	LAST();
	R(cudaSetDeviceFlags(cudaDeviceScheduleYield));
	R(cudaGetDeviceFlags(&flags));
	say_value("flags", flags);
	R(cudaFree(0));
	R(cudaGetDeviceFlags(&flags));
	say_value("flags", flags);
	R(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
	R(cudaGetDeviceFlags(&flags));
	say_value("flags", flags);
	after();
}
CASE(limit_bad)
{
	size_t v;
	R(cudaDeviceSetLimit((cudaLimit)99, 1));
	R(cudaDeviceGetLimit(&v, (cudaLimit)99));
	R(cudaDeviceGetLimit(NULL, cudaLimitStackSize));
	R(cudaDeviceSetLimit(cudaLimitStackSize, (size_t)1 << 40));
	R(cudaDeviceSetLimit(cudaLimitMallocHeapSize, (size_t)1 << 50));
	after();
}
CASE(limit_heap_after_launch)
{
	nothing<<<1, 1>>>();
	R(cudaDeviceSynchronize());
	R(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
	R(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 2 << 20));
	after();
}
CASE(pci_bus_id) { int d; char text[4]; R(cudaDeviceGetByPCIBusId(&d, "nonsense")); R(cudaDeviceGetPCIBusId(text, 4, 0)); R(cudaDeviceGetPCIBusId(NULL, 20, 0)); after(); }
CASE(device_cache_bad) { R(cudaDeviceSetCacheConfig((cudaFuncCache)99)); after(); }
CASE(priority_null) { R(cudaDeviceGetStreamPriorityRange(NULL, NULL)); after(); }
CASE(choose_null) { R(cudaChooseDevice(NULL, NULL)); after(); }
CASE(reset_twice) { int *p = device_memory(); R(cudaDeviceReset()); R(cudaDeviceReset()); R(cudaFree(p)); after(); }

/* ---- Streams and events */
CASE(stream_create_null) { R(cudaStreamCreate(NULL)); after(); }
CASE(stream_flags) { cudaStream_t s; R(cudaStreamCreateWithFlags(&s, 0x100)); after(); }
CASE(stream_priority) { cudaStream_t s; int p = 77; R(cudaStreamCreateWithPriority(&s, 0, 1000)); R(cudaStreamGetPriority(s, &p)); say_value("priority", p); after(); }
CASE(stream_destroy_null) { R(cudaStreamDestroy(0)); R(cudaStreamDestroy(cudaStreamLegacy)); R(cudaStreamDestroy(cudaStreamPerThread)); after(); }
CASE(stream_wait_null) { R(cudaStreamWaitEvent(0, NULL, 0)); after(); }
CASE(stream_wait_flags) { cudaEvent_t e; R(cudaEventCreate(&e)); R(cudaStreamWaitEvent(0, e, 0x100)); after(); }
CASE(stream_get_flags_null) { R(cudaStreamGetFlags(0, NULL)); R(cudaStreamGetPriority(0, NULL)); after(); }
CASE(stream_query_busy)
{
	spin<<<1, 1>>>(1000000000ll);
	R(cudaStreamQuery(0));
	LAST();
	R(cudaStreamSynchronize(0));
	R(cudaStreamQuery(0));
	after();
}
CASE(host_function_null) { R(cudaLaunchHostFunc(0, NULL, NULL)); after(); }
CASE(callback_flags) { R(cudaStreamAddCallback(0, NULL, NULL, 0)); R(cudaStreamAddCallback(0, (cudaStreamCallback_t)host_function, NULL, 1)); after(); }
CASE(event_null)
{
	R(cudaEventCreate(NULL));
	R(cudaEventRecord(NULL, 0));
	R(cudaEventQuery(NULL));
	R(cudaEventSynchronize(NULL));
	R(cudaEventDestroy(NULL));
	after();
}
CASE(event_flags) { cudaEvent_t e; R(cudaEventCreateWithFlags(&e, 0x100)); R(cudaEventCreateWithFlags(&e, cudaEventInterprocess)); after(); }
CASE(event_elapsed_unrecorded)
{
	cudaEvent_t a, b;
	float ms;
	R(cudaEventCreate(&a));
	R(cudaEventCreate(&b));
	R(cudaEventElapsedTime(&ms, a, b));
	R(cudaEventRecord(a));
	R(cudaEventSynchronize(a));
	R(cudaEventElapsedTime(&ms, a, b));
	R(cudaEventElapsedTime(NULL, a, a));
	R(cudaEventQuery(b));
	R(cudaEventSynchronize(b));
	after();
}
CASE(event_elapsed_not_ready)
{
	cudaEvent_t a, b;
	float ms;
	R(cudaEventCreate(&a));
	R(cudaEventCreate(&b));
	R(cudaEventRecord(a));
	spin<<<1, 1>>>(1000000000ll);
	R(cudaEventRecord(b));
	R(cudaEventElapsedTime(&ms, a, b));
	R(cudaEventQuery(b));
	LAST();
	R(cudaDeviceSynchronize());
	after();
}
CASE(event_elapsed_disabled)
{
	cudaEvent_t a, b;
	float ms;
	R(cudaEventCreateWithFlags(&a, cudaEventDisableTiming));
	R(cudaEventCreateWithFlags(&b, cudaEventDisableTiming));
	R(cudaEventRecord(a));
	R(cudaEventRecord(b));
	R(cudaDeviceSynchronize());
	R(cudaEventElapsedTime(&ms, a, b));
	after();
}

/* ---- Capture and graphs */
CASE(capture_legacy) { R(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal)); after(); }
CASE(capture_not_begun) { cudaStream_t s; cudaGraph_t g; R(cudaStreamCreate(&s)); R(cudaStreamEndCapture(s, &g)); after(); }
CASE(capture_begun_twice)
{
	cudaStream_t s;
	cudaGraph_t g = NULL;
	R(cudaStreamCreate(&s));
	R(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	R(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	R(cudaStreamEndCapture(s, &g));
	after();
}
CASE(capture_synchronize)
{
	cudaStream_t s;
	cudaGraph_t g = NULL;
	R(cudaStreamCreate(&s));
	R(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	R(cudaStreamSynchronize(s));
	LAST();
	R(cudaStreamEndCapture(s, &g));
	after();
}
CASE(capture_query)
{
	cudaStream_t s;
	cudaGraph_t g = NULL;
	R(cudaStreamCreate(&s));
	R(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	R(cudaStreamQuery(s));
	R(cudaStreamEndCapture(s, &g));
	after();
}
CASE(capture_malloc)
{
	cudaStream_t s;
	cudaGraph_t g = NULL;
	void *p;
	R(cudaStreamCreate(&s));
	R(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	R(cudaMalloc(&p, 64));
	R(cudaStreamEndCapture(s, &g));
	after();
}
CASE(capture_legacy_launch)
{
	cudaStream_t s;
	cudaGraph_t g = NULL;
	R(cudaStreamCreate(&s));
	R(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	nothing<<<1, 1>>>();
	LAST();
	R(cudaStreamEndCapture(s, &g));
	after();
}
CASE(capture_destroy_stream)
{
	cudaStream_t s;
	R(cudaStreamCreate(&s));
	R(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	R(cudaStreamDestroy(s));
	after();
}
CASE(graph_null)
{
	cudaGraphExec_t x;
	R(cudaGraphLaunch(NULL, 0));
	R(cudaGraphInstantiate(&x, NULL, 0));
	R(cudaGraphDestroy(NULL));
	R(cudaGraphExecDestroy(NULL));
	R(cudaGraphCreate(NULL, 0));
	after();
}

/* ---- The driver's own */
CASE(driver_not_initialized)
{
	CUdevice d;
	CUcontext c;
	int n;
	D(cuDeviceGetCount, &n);
	D(cuDeviceGet, &d, 0);
	D(cuCtxGetCurrent, &c);
	D(cuDriverGetVersion, &n);
	D(cuInit, 1);
	D(cuInit, 0);
	D(cuDeviceGetCount, &n);
}
CASE(driver_no_context)
{
	CUdeviceptr p;
	CUcontext c = (CUcontext)8;
	CUmodule m;
	CUdevice d;
	CUstream s;
	D(cuInit, 0);
	D(cuCtxGetCurrent, &c);
	say_value("null", c == NULL);
	D(cuMemAlloc, &p, 64);
	D(cuCtxSynchronize);
	D(cuModuleLoadData, &m, "nonsense");
	D(cuCtxGetDevice, &d);
	D(cuCtxPopCurrent, &c);
	D(cuStreamCreate, &s, 0);
	D(cuMemFree, 0);
	D(cuCtxDestroy, NULL);
	D(cuCtxSetCurrent, NULL);
}
CASE(driver_release_unretained)
{
	CUcontext c;
	D(cuInit, 0);
	D(cuDevicePrimaryCtxRelease, 0);
	D(cuDevicePrimaryCtxRetain, &c, 0);
	D(cuDevicePrimaryCtxRelease, 0);
	D(cuDevicePrimaryCtxRelease, 0);
	D(cuDevicePrimaryCtxRetain, &c, 1000);
	D(cuDevicePrimaryCtxRetain, NULL, 0);
}
CASE(driver_device_bad)
{
	CUdevice d;
	int v;
	size_t n;
	char name[8];
	D(cuInit, 0);
	D(cuDeviceGet, &d, 1000);
	D(cuDeviceGet, &d, -1);
	D(cuDeviceGet, NULL, 0);
	D(cuDeviceGetAttribute, &v, (CUdevice_attribute)99999, 0);
	D(cuDeviceGetAttribute, &v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1000);
	D(cuDeviceGetName, NULL, 8, 0);
	D(cuDeviceGetName, name, 8, 1000);
	D(cuDeviceTotalMem, NULL, 0);
}
CASE(driver_proc_address)
{
	void *p = (void *)8;
	CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
	D(cuInit, 0);
	D(cuGetProcAddress, "cuNoSuchFunction", &p, 13000, 0, &status);
	say_value("status", status);
	say_value("null", p == NULL);
	p = (void *)8;
	D(cuGetProcAddress, "cuNoSuchFunction", &p, 13000, 0, NULL);
	say_value("null", p == NULL);
	status = (CUdriverProcAddressQueryResult)77;
	D(cuGetProcAddress, "cuMemAlloc", &p, 2000, 0, &status);
	say_value("status", status);
	say_value("null", p == NULL);
	D(cuGetProcAddress, "cuMemAllocAsync", &p, 10000, 0, &status);
	say_value("status", status);
	D(cuGetProcAddress, "cuMemAllocAsync", &p, 10000, 0, NULL);
	D(cuGetProcAddress, NULL, &p, 13000, 0, &status);
	D(cuGetProcAddress, "cuMemAlloc", NULL, 13000, 0, &status);
	D(cuGetProcAddress, "cuMemAlloc", &p, 13000, 0x100, &status);
}
CASE(runtime_entry_point)
{
	void *p = (void *)8;
	cudaDriverEntryPointQueryResult status = (cudaDriverEntryPointQueryResult)77;
	R(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &p, 13000, cudaEnableDefault, &status));
	say_value("status", status);
	R(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &p, 13000, cudaEnableDefault, NULL));
	R(cudaGetDriverEntryPointByVersion("cuMemAlloc", NULL, 13000, cudaEnableDefault, &status));
	after();
}
CASE(driver_error_name)
{
	const char *text = "unchanged";
	D(cuGetErrorName, (CUresult)9999, &text);
	say_value("null", text == NULL);
	D(cuGetErrorString, (CUresult)9999, &text);
	D(cuGetErrorName, CUDA_SUCCESS, NULL);
}
static const char module_text[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .u32 cell;\n"
				  ".visible .entry kernel(.param .u32 x) { ret; }\n";
CASE(driver_module_bad)
{
	CUmodule m;
	R(cudaFree(0));
	D(cuModuleLoadData, &m, "nonsense");
	D(cuModuleLoadData, &m, "");
	D(cuModuleLoadData, &m, NULL);
	D(cuModuleLoadData, NULL, module_text);
	D(cuModuleLoadData, &m, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry kernel() { nonsense; ret; }\n");
	D(cuModuleLoadData, &m, ".version 99.0\n.target sm_70\n.address_size 64\n.visible .entry kernel() { ret; }\n");
	D(cuModuleLoadData, &m, ".version 9.0\n.target sm_999\n.address_size 64\n.visible .entry kernel() { ret; }\n");
	D(cuModuleLoadData, &m, ".version 7.0\n.target sm_70\n.address_size 64\n.extern .func missing();\n.visible .entry kernel() { call missing; ret; }\n");
	D(cuModuleUnload, NULL);
	after();
}
CASE(driver_module_names)
{
	CUmodule m;
	CUfunction f;
	CUdeviceptr p;
	size_t n;
	R(cudaFree(0));
	D(cuModuleLoadData, &m, module_text);
	D(cuModuleGetFunction, &f, m, "missing");
	D(cuModuleGetFunction, &f, m, "cell");
	D(cuModuleGetFunction, &f, m, NULL);
	D(cuModuleGetFunction, NULL, m, "kernel");
	D(cuModuleGetFunction, &f, NULL, "kernel");
	D(cuModuleGetGlobal, &p, &n, m, "missing");
	D(cuModuleGetGlobal, &p, &n, m, "kernel");
	D(cuModuleGetGlobal, NULL, NULL, m, "cell");
	D(cuModuleGetGlobal, &p, &n, m, NULL);
	D(cuModuleGetGlobal, &p, &n, m, "cell");
	say_value("size", (long)n);
	after();
}
CASE(driver_launch_bad)
{
	CUmodule m;
	CUfunction f;
	int x = 1;
	size_t size = sizeof x;
	void *params[] = {&x}, *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &x, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
	void *unknown[] = {(void *)77, &x, CU_LAUNCH_PARAM_END};
	R(cudaFree(0));
	D(cuModuleLoadData, &m, module_text);
	D(cuModuleGetFunction, &f, m, "kernel");
	D(cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
	D(cuLaunchKernel, f, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
	D(cuLaunchKernel, f, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL);
	D(cuLaunchKernel, f, 1, 1, 1, 0, 1, 1, 0, NULL, params, NULL);
	D(cuLaunchKernel, f, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL);
	D(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 1 << 20, NULL, params, NULL);
	D(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra);
	D(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, unknown);
	D(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	D(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra);
	D(cuCtxSynchronize);
	after();
}
CASE(driver_function_attributes)
{
	CUmodule m;
	CUfunction f;
	int v;
	R(cudaFree(0));
	D(cuModuleLoadData, &m, module_text);
	D(cuModuleGetFunction, &f, m, "kernel");
	D(cuFuncGetAttribute, &v, (CUfunction_attribute)999, f);
	D(cuFuncGetAttribute, NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, f);
	D(cuFuncGetAttribute, &v, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL);
	D(cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_NUM_REGS, 1);
	D(cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 24);
	D(cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101);
	D(cuFuncSetAttribute, f, (CUfunction_attribute)999, 1);
	D(cuOccupancyMaxActiveBlocksPerMultiprocessor, &v, f, 0, 0);
	D(cuOccupancyMaxActiveBlocksPerMultiprocessor, &v, f, 2048, 0);
	D(cuOccupancyMaxActiveBlocksPerMultiprocessor, NULL, f, 32, 0);
	after();
}
CASE(driver_memory_bad)
{
	CUdeviceptr p = 8, base;
	size_t n;
	unsigned flags;
	R(cudaFree(0));
	D(cuMemAlloc, &p, 0);
	D(cuMemAlloc, NULL, 64);
	D(cuMemAlloc, &p, (size_t)1 << 50);
	D(cuMemFree, 0);
	D(cuMemFree, 0x1234);
	D(cuMemcpyHtoD, 0x1234, plain_host, 4);
	D(cuMemcpyHtoD, 0, plain_host, 4);
	D(cuMemcpyDtoH, plain_host, 0x1234, 4);
	D(cuMemsetD8Async, 0x1234, 0, 4, NULL);
	D(cuPointerGetAttribute, &base, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)plain_host);
	D(cuPointerGetAttribute, &base, (CUpointer_attribute)999, (CUdeviceptr)(uintptr_t)plain_host);
	D(cuMemGetAddressRange, &base, &n, 0x1234);
	D(cuMemHostGetFlags, &flags, plain_host);
	D(cuMemHostRegister, NULL, 64, 0);
	D(cuMemAllocManaged, &p, 64, 77);
	after();
}
CASE(driver_vmm_bad)
{
	CUdeviceptr p;
	CUmemGenericAllocationHandle h = 0;
	CUmemAllocationProp prop = {};
	CUmemAccessDesc access = {};
	R(cudaFree(0));
	D(cuMemAddressReserve, &p, 0, 0, 0, 0);
	D(cuMemAddressReserve, &p, 12345, 0, 0, 0);
	D(cuMemAddressReserve, NULL, 2 << 20, 0, 0, 0);
	D(cuMemCreate, &h, 2 << 20, &prop, 0);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	D(cuMemCreate, &h, 12345, &prop, 0);
	D(cuMemCreate, &h, 0, &prop, 0);
	prop.location.id = 1000;
	D(cuMemCreate, &h, 2 << 20, &prop, 0);
	prop.location.id = 0;
	D(cuMemCreate, &h, 2 << 20, &prop, 0);
	D(cuMemMap, 0x1234, 2 << 20, 0, h, 0);
	D(cuMemUnmap, 0x1234, 2 << 20);
	access.location = prop.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	D(cuMemSetAccess, 0x200000, 2 << 20, &access, 1);
	D(cuMemRelease, h);
	D(cuMemRelease, 0);
	after();
}
CASE(driver_stream_event_null)
{
	CUstream s;
	CUevent e;
	float ms;
	R(cudaFree(0));
	D(cuStreamCreate, NULL, 0);
	D(cuStreamCreate, &s, 0x100);
	D(cuStreamDestroy, NULL);
	D(cuEventCreate, NULL, 0);
	D(cuEventCreate, &e, 0x100);
	D(cuEventQuery, NULL);
	D(cuEventRecord, NULL, NULL);
	D(cuEventDestroy, NULL);
	D(cuEventElapsedTime, &ms, NULL, NULL);
	after();
}
CASE(driver_library_bad)
{
	CUlibrary l;
	CUkernel k;
	R(cudaFree(0));
	D(cuLibraryLoadData, &l, "nonsense", NULL, NULL, 0, NULL, NULL, 0);
	D(cuLibraryLoadData, &l, NULL, NULL, NULL, 0, NULL, NULL, 0);
	D(cuLibraryLoadData, NULL, module_text, NULL, NULL, 0, NULL, NULL, 0);
	D(cuLibraryLoadData, &l, module_text, NULL, NULL, 0, NULL, NULL, 0);
	D(cuLibraryGetKernel, &k, l, "missing");
	D(cuLibraryGetKernel, &k, NULL, "kernel");
	after();
}
CASE(driver_limit_bad)
{
	size_t v;
	R(cudaFree(0));
	D(cuCtxSetLimit, (CUlimit)99, 1);
	D(cuCtxGetLimit, &v, (CUlimit)99);
	D(cuCtxGetLimit, NULL, CU_LIMIT_STACK_SIZE);
	D(cuLinkComplete, NULL, NULL, NULL);
	after();
}

/* ---- Kernels that fault: the context is lost until the device is reset. */
static void lost(void)
{
	int *p = NULL, v = 0, device = -1;
	cudaStream_t s;
	cudaEvent_t e;
	CUcontext c;
	R(cudaDeviceSynchronize());
	LAST();
	R(cudaMalloc(&p, 64));
	R(cudaFree(NULL));
	R(cudaMallocHost((void **)&p, 64));
	R(cudaMemset(p, 0, 4));
	R(cudaMemcpy(&v, symbol, 4, cudaMemcpyDeviceToHost));
	R(cudaStreamCreate(&s));
	R(cudaEventCreate(&e));
	R(cudaStreamQuery(0));
	R(cudaGetDevice(&device));
	R(cudaSetDevice(0));
	R(cudaGetDeviceCount(&device));
	nothing<<<1, 1>>>();
	LAST();
	D(cuCtxSynchronize);
	D(cuCtxGetCurrent, &c);
	D(cuStreamQuery, NULL);
	R(cudaDeviceReset());
	after();
}
CASE(fault_null_write) { store<<<1, 1>>>(NULL, 0); lost(); }
CASE(fault_null_read) { int *p = device_memory(); load<<<1, 1>>>(NULL, p); lost(); }
CASE(fault_far_write) { int *p = device_memory(); store<<<1, 1>>>(p, 1l << 36); lost(); }
CASE(fault_host_write) { store<<<1, 1>>>((int *)0x1000, 0); lost(); }
CASE(fault_misaligned) { int *p = device_memory(); store<<<1, 1>>>(p, 2); lost(); }
CASE(fault_trap) { trap<<<1, 1>>>(); lost(); }
CASE(fault_assert) { failing<<<1, 1>>>(0); lost(); }
CASE(fault_shared_far) { shared_store<<<1, 1>>>(1 << 20); lost(); }
CASE(fault_shared_misaligned) { shared_store<<<1, 1>>>(2); lost(); }
CASE(fault_stream_synchronize)
{
	cudaStream_t s;
	R(cudaStreamCreate(&s));
	store<<<1, 1, 0, s>>>(NULL, 0);
	LAST();
	R(cudaStreamSynchronize(s));
	R(cudaStreamDestroy(s));
	lost();
}
CASE(fault_event_synchronize)
{
	cudaEvent_t e;
	R(cudaEventCreate(&e));
	trap<<<1, 1>>>();
	R(cudaEventRecord(e));
	R(cudaEventSynchronize(e));
	R(cudaEventQuery(e));
	R(cudaEventDestroy(e));
	lost();
}
CASE(fault_memcpy)
{
	int *p = device_memory(), v;
	store<<<1, 1>>>(NULL, 0);
	R(cudaMemcpy(&v, p, 4, cudaMemcpyDeviceToHost));
	R(cudaFree(p));
	lost();
}

#define MISUSES \
	CASE_NAME(launch_zero_grid) CASE_NAME(launch_zero_block) CASE_NAME(launch_big_block) CASE_NAME(launch_big_block_z) \
	CASE_NAME(launch_big_grid_y) CASE_NAME(launch_big_grid_x) CASE_NAME(launch_much_shared) \
	CASE_NAME(launch_shared_over_default) CASE_NAME(launch_null) CASE_NAME(launch_unregistered) \
	CASE_NAME(launch_zero_grid_call) CASE_NAME(launch_cooperative_too_large) CASE_NAME(launch_ex_null) \
	CASE_NAME(launch_ex_bad_cluster) CASE_NAME(function_attribute_much_shared) CASE_NAME(function_attribute_negative) \
	CASE_NAME(function_attribute_unknown) CASE_NAME(function_attributes_null) CASE_NAME(function_attributes_unregistered) \
	CASE_NAME(function_cache_bad) CASE_NAME(occupancy_bad) CASE_NAME(malloc_null) CASE_NAME(malloc_huge) CASE_NAME(malloc_zero) \
	CASE_NAME(free_garbage) CASE_NAME(free_twice) CASE_NAME(free_inside) CASE_NAME(free_host_memory) CASE_NAME(free_pinned) \
	CASE_NAME(free_host_of_device) CASE_NAME(free_host_of_plain) CASE_NAME(free_host_twice) CASE_NAME(malloc_host_null) \
	CASE_NAME(malloc_host_zero) CASE_NAME(host_alloc_flags) CASE_NAME(memcpy_kind) CASE_NAME(memcpy_null) \
	CASE_NAME(memcpy_nothing) CASE_NAME(memcpy_wrong_direction) CASE_NAME(memcpy_past_end) CASE_NAME(memcpy_freed) \
	CASE_NAME(memcpy_2d_pitch) CASE_NAME(memset_null) CASE_NAME(memset_garbage) CASE_NAME(memset_past_end) \
	CASE_NAME(malloc_pitch_null) CASE_NAME(malloc_pitch_zero) CASE_NAME(symbol_unregistered) CASE_NAME(symbol_null) \
	CASE_NAME(symbol_too_much) CASE_NAME(symbol_wrong_kind) CASE_NAME(register_null) CASE_NAME(register_zero) \
	CASE_NAME(register_twice) CASE_NAME(unregister_plain) CASE_NAME(unregister_allocated) CASE_NAME(host_pointer_unregistered) \
	CASE_NAME(host_pointer_flags) CASE_NAME(host_flags) CASE_NAME(pointer_attributes) CASE_NAME(managed_zero) \
	CASE_NAME(managed_flags) CASE_NAME(managed_null) CASE_NAME(mem_info_null) CASE_NAME(malloc_async_null) \
	CASE_NAME(free_async_twice) CASE_NAME(free_async_garbage) CASE_NAME(array_null) CASE_NAME(array_zero) \
	CASE_NAME(device_too_high) CASE_NAME(device_negative) CASE_NAME(device_get_null) CASE_NAME(properties_bad) \
	CASE_NAME(attribute_bad) CASE_NAME(peer_self) CASE_NAME(device_flags) CASE_NAME(limit_bad) \
	CASE_NAME(limit_heap_after_launch) CASE_NAME(pci_bus_id) CASE_NAME(device_cache_bad) CASE_NAME(priority_null) \
	CASE_NAME(choose_null) CASE_NAME(reset_twice) CASE_NAME(stream_create_null) CASE_NAME(stream_flags) \
	CASE_NAME(stream_priority) CASE_NAME(stream_destroy_null) CASE_NAME(stream_wait_null) CASE_NAME(stream_wait_flags) \
	CASE_NAME(stream_get_flags_null) CASE_NAME(stream_query_busy) CASE_NAME(host_function_null) CASE_NAME(callback_flags) \
	CASE_NAME(event_null) CASE_NAME(event_flags) CASE_NAME(event_elapsed_unrecorded) CASE_NAME(event_elapsed_not_ready) \
	CASE_NAME(event_elapsed_disabled) CASE_NAME(capture_legacy) CASE_NAME(capture_not_begun) CASE_NAME(capture_begun_twice) \
	CASE_NAME(capture_synchronize) CASE_NAME(capture_query) CASE_NAME(capture_malloc) CASE_NAME(capture_legacy_launch) \
	CASE_NAME(capture_destroy_stream) CASE_NAME(graph_null) CASE_NAME(driver_not_initialized) CASE_NAME(driver_no_context) \
	CASE_NAME(driver_release_unretained) CASE_NAME(driver_device_bad) CASE_NAME(driver_proc_address) \
	CASE_NAME(runtime_entry_point) CASE_NAME(driver_error_name) CASE_NAME(driver_module_bad) CASE_NAME(driver_module_names) \
	CASE_NAME(driver_launch_bad) CASE_NAME(driver_function_attributes) CASE_NAME(driver_memory_bad) CASE_NAME(driver_vmm_bad) \
	CASE_NAME(driver_stream_event_null) CASE_NAME(driver_library_bad) CASE_NAME(driver_limit_bad) CASE_NAME(fault_null_write) \
	CASE_NAME(fault_null_read) CASE_NAME(fault_far_write) CASE_NAME(fault_host_write) CASE_NAME(fault_misaligned) \
	CASE_NAME(fault_trap) CASE_NAME(fault_assert) CASE_NAME(fault_shared_far) CASE_NAME(fault_shared_misaligned) \
	CASE_NAME(fault_stream_synchronize) CASE_NAME(fault_event_synchronize) CASE_NAME(fault_memcpy)
