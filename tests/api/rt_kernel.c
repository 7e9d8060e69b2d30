/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's kernels: as nvcc's host code registers and launches them, as functions, and how
 * many of their blocks fit.
 */
#include "registered.h"
#include "kernels.h"

/* Not declared for C. */
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, struct CUstream_st *);
cudaError_t __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);

static const char managed_ptx[] =
	".version 7.8\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .global .attribute(.managed) .align 4 .b8 both[16] = {1, 2, 3, 4};\n"
	/* both[i] += 16 */
	".visible .entry add()\n"
	"{\n"
	"	.reg .b32 t, v;\n"
	"	.reg .b64 a, o;\n"
	"	mov.u32 t, %tid.x;\n"
	"	mov.u64 a, both;\n"
	"	cvt.u64.u32 o, t;\n"
	"	add.u64 a, a, o;\n"
	"	ld.global.u8 v, [a];\n"
	"	add.u32 v, v, 16;\n"
	"	st.global.u8 [a], v;\n"
	"	ret;\n"
	"}\n";

/* What stands for a kernel or variable on the host: its address is its name. */
static char nothing[16], fill[16], set_table[16], with_shared[16], not_registered[16];
static uint32_t table[4], fixed = 7;
static void **registration;

static void add_function(void **handle, const char *stub, const char *name)
{
	FUNCTION(__cudaRegisterFunction)
	(handle, stub, (char *)(uintptr_t)name, name, -1, NULL, NULL, NULL, NULL, NULL);
}

/* The whole of kernels.h. */
static void program(void)
{
	registration = registered(api_ptx, sizeof(api_ptx), 7, 8);
	add_function(registration, nothing, "nothing");
	add_function(registration, fill, "fill");
	add_function(registration, set_table, "set_table");
	add_function(registration, with_shared, "with_shared");
	FUNCTION(__cudaRegisterVar)
	(registration, (char *)table, (char *)"table", "table", 0, sizeof(table), 0, 0);
	FUNCTION(__cudaRegisterVar)
	(registration, (char *)&fixed, (char *)"fixed", "fixed", 0, sizeof(fixed), 1, 0);
	FUNCTION(__cudaRegisterFatBinaryEnd)(registration);
}

static dim3 size(unsigned x, unsigned y, unsigned z)
{
	dim3 d = {x, y, z};
	return d;
}

static void attributes_of(const struct cudaFuncAttributes *a)
{
	NUMBER("shared", (long long)a->sharedSizeBytes);
	NUMBER("const", (long long)a->constSizeBytes);
	NUMBER("local", (long long)a->localSizeBytes);
	NUMBER("threads", a->maxThreadsPerBlock);
	YES("registers", a->numRegs > 0 && a->numRegs < 256);
	NUMBER("ptx", a->ptxVersion);
	YES("binary", a->binaryVersion >= 75);
	NUMBER("ca", a->cacheModeCA);
	NUMBER("dynamic", a->maxDynamicSharedSizeBytes);
	NUMBER("carveout", a->preferredShmemCarveout);
	NUMBER("must", a->clusterDimMustBeSet);
	NUMBER("width", a->requiredClusterWidth);
	NUMBER("height", a->requiredClusterHeight);
	NUMBER("depth", a->requiredClusterDepth);
	NUMBER("policy", a->clusterSchedulingPolicyPreference);
	NUMBER("larger", a->nonPortableClusterSizeAllowed);
}

CASE(registered)
{
	struct registered_wrapper *image = registered_image(api_ptx, sizeof(api_ptx), 7, 8);
	void **handle = FUNCTION(__cudaRegisterFatBinary)(image), *args[2], *address = NULL;
	unsigned value = 5;
	size_t bytes = 77;
	char *p;
	CALLED(__cudaRegisterFatBinary);
	YES("some", handle != NULL);
	add_function(handle, fill, "fill");
	CALLED(__cudaRegisterFunction);
	FUNCTION(__cudaRegisterVar)
	(handle, (char *)table, (char *)"table", "table", 0, sizeof(table), 0, 0);
	CALLED(__cudaRegisterVar);
	FUNCTION(__cudaRegisterVar)
	(handle, (char *)&fixed, (char *)"fixed", "fixed", 0, sizeof(fixed), 1, 0);
	CALLED(__cudaRegisterVar);
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
	CALLED(__cudaRegisterFatBinaryEnd);
	CALL(cudaGetLastError);
	p = memory(64);
	args[0] = &p;
	args[1] = &value;
	CALL(cudaLaunchKernel, fill, size(2, 1, 1), size(4, 1, 1), args, 0, NULL);
	CONTENT("bytes", p, 64);
	CALL(cudaGetSymbolAddress, &address, table);
	YES("some", address != NULL);
	CALL(cudaGetSymbolSize, &bytes, table);
	NUMBER("bytes", (long long)bytes);
	CALL(cudaGetSymbolSize, &bytes, &fixed);
	NUMBER("bytes", (long long)bytes);
	CALL(cudaMemcpyFromSymbol, &value, &fixed, 4, 0, cudaMemcpyDeviceToHost);
	NUMBER("value", value);
	FUNCTION(__cudaUnregisterFatBinary)(handle);
	CALLED(__cudaUnregisterFatBinary);
	CALL(cudaGetLastError);
}

CASE(unregistered)
{
	size_t bytes = 77;
	program();
	CALL(cudaLaunchKernel, nothing, size(1, 1, 1), size(1, 1, 1), NULL, 0, NULL);
	CALL(cudaDeviceSynchronize);
	FUNCTION(__cudaUnregisterFatBinary)(registration);
	CALLED(__cudaUnregisterFatBinary);
	CALL(cudaLaunchKernel, nothing, size(1, 1, 1), size(1, 1, 1), NULL, 0, NULL);
	CALL(cudaGetSymbolSize, &bytes, table);
}

CASE(registered_late)
{
	void *address = NULL;
	QUIET(cudaFree, NULL);
	CALL(cudaLaunchKernel, nothing, size(1, 1, 1), size(1, 1, 1), NULL, 0, NULL);
	CALL(cudaGetSymbolAddress, &address, table);
	CALL(cudaGetLastError);
	program();
	CALL(cudaLaunchKernel, nothing, size(1, 1, 1), size(1, 1, 1), NULL, 0, NULL);
	CALL(cudaGetSymbolAddress, &address, table);
	YES("some", address != NULL);
	CALL(cudaDeviceSynchronize);
}

/* Names that the text does not have. */
CASE(registered_unknown)
{
	void **handle = registered(api_ptx, sizeof(api_ptx), 7, 8), *address = NULL;
	add_function(handle, fill, "not there");
	FUNCTION(__cudaRegisterVar)
	(handle, (char *)table, (char *)"not there", "not there", 0, sizeof(table), 0, 0);
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
	CALL(cudaGetLastError);
	CALL(cudaLaunchKernel, fill, size(1, 1, 1), size(1, 1, 1), NULL, 0, NULL);
	CALL(cudaGetSymbolAddress, &address, table);
	CALL(cudaDeviceSynchronize);
}

CASE(managed)
{
	static char *both;
	static char add[16];
	char got[16];
	void **handle = registered(managed_ptx, sizeof(managed_ptx), 7, 8), *address = NULL;
	char made;
	size_t bytes = 77;
	add_function(handle, add, "add");
	FUNCTION(__cudaRegisterManagedVar)
	(handle, (void **)(void *)&both, (char *)"both", "both", 0, 16, 0, 0);
	CALLED(__cudaRegisterManagedVar);
	YES("null", both == NULL);
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
	made = FUNCTION(__cudaInitModule)(handle);
	CALLED(__cudaInitModule);
	NUMBER("made", made);
	YES("some", both != NULL);
	BYTES("both", both, 16);
	CALL(cudaLaunchKernel, add, size(1, 1, 1), size(4, 1, 1), NULL, 0, NULL);
	CALL(cudaDeviceSynchronize);
	memcpy(got, both, 16);
	REMARK("seen");
	BYTES("both", got, 16);
	CALL(cudaGetSymbolAddress, &address, &both);
	YES("the same", address == both);
	CALL(cudaGetSymbolSize, &bytes, &both);
	NUMBER("bytes", (long long)bytes);
	made = FUNCTION(__cudaInitModule)(handle);
	CALLED(__cudaInitModule);
	NUMBER("made", made);
}

CASE(init_module)
{
	void **handle = registered(api_ptx, sizeof(api_ptx), 7, 8);
	char made;
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
	made = FUNCTION(__cudaInitModule)(handle);
	CALLED(__cudaInitModule);
	NUMBER("made", made);
	CALL(cudaGetLastError);
}

/* Of a variable that lies on the host, and of the addresses that both sides share. */
CASE(host_variable)
{
	static uint32_t host[4] = {1, 2, 3, 4};
	void **handle = registered(api_ptx, sizeof(api_ptx), 7, 8);
	FUNCTION(__cudaRegisterHostVar)(handle, "host", (char *)host, sizeof(host));
	CALLED(__cudaRegisterHostVar);
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
	CALL(cudaFree, NULL);
	CALL(cudaGetLastError);
}

CASE(unified_table)
{
	static void *functions[4];
	void **handle = registered(api_ptx, sizeof(api_ptx), 7, 8);
	FUNCTION(__cudaRegisterUnifiedTable)(handle, functions);
	CALLED(__cudaRegisterUnifiedTable);
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
	CALL(cudaFree, NULL);
	CALL(cudaGetLastError);
}

CASE(call_configuration)
{
	dim3 grid = size(77, 77, 77), block = grid;
	size_t shared = 77;
	cudaStream_t stream = NULL, s = new_stream();
	CALL(__cudaPushCallConfiguration, size(2, 3, 4), size(5, 6, 7), 48, s);
	CALL(__cudaPushCallConfiguration, size(1, 1, 1), size(8, 1, 1), 0, NULL);
	CALL(__cudaPopCallConfiguration, &grid, &block, &shared, &stream);
	NUMBER("grid", grid.x * 100 + grid.y * 10 + grid.z);
	NUMBER("block", block.x * 100 + block.y * 10 + block.z);
	NUMBER("shared", (long long)shared);
	YES("null", stream == NULL);
	CALL(__cudaPopCallConfiguration, &grid, &block, &shared, &stream);
	NUMBER("grid", grid.x * 100 + grid.y * 10 + grid.z);
	NUMBER("block", block.x * 100 + block.y * 10 + block.z);
	NUMBER("shared", (long long)shared);
	YES("the stream", stream == s);
	CALL(__cudaPopCallConfiguration, &grid, &block, &shared, &stream);
	CALL(cudaGetLastError);
}

/* As nvcc's stub does it. */
CASE(call)
{
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
	cudaKernel_t handle = NULL;
	unsigned value = 5;
	char *p;
	void *args[] = {&p, &value};
	program();
	p = memory(64);
	CALL(__cudaPushCallConfiguration, size(2, 1, 1), size(4, 1, 1), 0, NULL);
	CALL(__cudaGetKernel, &handle, fill);
	YES("some", handle != NULL);
	CALL(__cudaPopCallConfiguration, &grid, &block, &shared, &stream);
	CALL(__cudaLaunchKernel, handle, grid, block, args, shared, stream);
	CONTENT("bytes", p, 64);
	value = 9;
	CALL_AS(__cudaLaunchKernel, __cudaLaunchKernel_ptsz, handle, size(1, 1, 1), size(4, 1, 1),
		args, 0, NULL);
	CONTENT("bytes", p, 64);
	CALL(__cudaLaunchKernel, handle, size(0, 1, 1), size(4, 1, 1), args, 0, NULL);
	CALL(__cudaLaunchKernel, handle, size(1, 1, 1), size(1025, 1, 1), args, 0, NULL);
	CALL_AS(__cudaLaunchKernel, __cudaLaunchKernel_ptsz, handle, size(1, 1, 1), size(4, 1, 1),
		args, 1 << 24, NULL);
	CALL(cudaGetLastError);
	CONTENT("bytes", p, 64);
}

CASE(call_wrong)
{
	cudaKernel_t handle = NULL;
	QUIET(cudaFree, NULL);
	CALL(__cudaGetKernel, &handle, not_registered);
	CALL(cudaGetLastError);
}

CASE(launch)
{
	unsigned value = 5;
	cudaStream_t s = new_stream();
	char *p;
	void *args[] = {&p, &value};
	program();
	p = memory(64);
	CALL(cudaLaunchKernel, fill, size(2, 1, 1), size(4, 1, 1), args, 0, s);
	CONTENT("bytes", p, 64);
	value = 9;
	CALL_AS(cudaLaunchKernel, cudaLaunchKernel_ptsz, fill, size(1, 1, 1), size(4, 1, 1), args,
		0, NULL);
	CONTENT("bytes", p, 64);
	value = 17;
	CALL(cudaLaunchCooperativeKernel, fill, size(1, 1, 1), size(4, 1, 1), args, 0, s);
	CONTENT("bytes", p, 64);
	value = 33;
	CALL_AS(cudaLaunchCooperativeKernel, cudaLaunchCooperativeKernel_ptsz, fill, size(1, 1, 1),
		size(4, 1, 1), args, 0, NULL);
	CONTENT("bytes", p, 64);
	CALL(cudaLaunchKernel, with_shared, size(1, 1, 1), size(16, 1, 1), args, 4096, NULL);
	CONTENT("bytes", p, 64);
	args[0] = &value;
	CALL(cudaLaunchKernel, set_table, size(1, 1, 1), size(4, 1, 1), args, 0, NULL);
	CALL(cudaMemcpyFromSymbol, table, table, 16, 0, cudaMemcpyDeviceToHost);
	BYTES("table", table, 16);
}

CASE(launch_wrong)
{
	unsigned value = 5;
	char *p;
	void *args[] = {&p, &value};
	program();
	p = memory(64);
	CALL(cudaLaunchKernel, fill, size(0, 1, 1), size(4, 1, 1), args, 0, NULL);
	CALL(cudaLaunchKernel, fill, size(1, 1, 1), size(0, 1, 1), args, 0, NULL);
	CALL(cudaLaunchKernel, fill, size(1, 1, 1), size(1025, 1, 1), args, 0, NULL);
	CALL(cudaLaunchKernel, fill, size(1, 65536, 1), size(1, 1, 1), args, 0, NULL);
	CALL(cudaLaunchKernel, fill, size(1, 1, 1), size(1, 1, 65), args, 0, NULL);
	CALL(cudaLaunchKernel, fill, size(1, 1, 1), size(1, 1, 1), args, 1 << 24, NULL);
	CALL(cudaLaunchKernel, not_registered, size(1, 1, 1), size(1, 1, 1), args, 0, NULL);
	CALL(cudaLaunchKernel, NULL, size(1, 1, 1), size(1, 1, 1), args, 0, NULL);
	CALL(cudaGetLastError);
	CALL(cudaLaunchCooperativeKernel, fill, size(1 << 20, 1, 1), size(1024, 1, 1), args, 0,
		NULL);
	CALL(cudaLaunchCooperativeKernel, fill, size(0, 1, 1), size(4, 1, 1), args, 0, NULL);
	CALL(cudaLaunchCooperativeKernel, not_registered, size(1, 1, 1), size(1, 1, 1), args, 0,
		NULL);
	CALL(cudaLaunchCooperativeKernel, NULL, size(1, 1, 1), size(1, 1, 1), args, 0, NULL);
	CALL(cudaGetLastError);
	CONTENT("bytes", p, 64);
}

CASE(extended)
{
	unsigned value = 5;
	char *p;
	void *args[] = {&p, &value};
	cudaLaunchConfig_t config;
	cudaLaunchAttribute attributes[2];
	program();
	p = memory(64);
	memset(&config, 0, sizeof(config));
	memset(attributes, 0, sizeof(attributes));
	config.gridDim = size(2, 1, 1);
	config.blockDim = size(4, 1, 1);
	config.stream = new_stream();
	CALL(cudaLaunchKernelExC, &config, fill, args);
	CONTENT("bytes", p, 64);
	value = 9;
	attributes[0].id = cudaLaunchAttributeCooperative;
	attributes[0].val.cooperative = 1;
	attributes[1].id = cudaLaunchAttributePriority;
	config.attrs = attributes;
	config.numAttrs = 2;
	CALL(cudaLaunchKernelExC, &config, fill, args);
	CONTENT("bytes", p, 64);
	value = 17;
	config.stream = NULL;
	CALL_AS(cudaLaunchKernelExC, cudaLaunchKernelExC_ptsz, &config, fill, args);
	CONTENT("bytes", p, 64);
	value = 33;
	attributes[0].id = cudaLaunchAttributeClusterDimension;
	attributes[0].val.clusterDim.x = 2;
	attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
	config.numAttrs = 1;
	CALL(cudaLaunchKernelExC, &config, fill, args);
	CONTENT("bytes", p, 64);
	attributes[0].val.clusterDim.x = 3;
	CALL(cudaLaunchKernelExC, &config, fill, args);
	attributes[0].id = cudaLaunchAttributeIgnore;
	CALL(cudaLaunchKernelExC, &config, fill, args);
	CALL(cudaLaunchKernelExC, &config, not_registered, args);
	CALL(cudaLaunchKernelExC, &config, NULL, args);
	config.gridDim.x = 0;
	CALL_AS(cudaLaunchKernelExC, cudaLaunchKernelExC_ptsz, &config, fill, args);
	CALL(cudaGetLastError);
}

CASE(attributes)
{
	struct cudaFuncAttributes a;
	char *const all[] = {nothing, fill, with_shared};
	program();
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		memset(&a, 0x55, sizeof(a));
		CALL(cudaFuncGetAttributes, &a, all[i]);
		attributes_of(&a);
	}
	CALL(cudaFuncGetAttributes, &a, not_registered);
	CALL(cudaFuncGetAttributes, &a, NULL);
	CALL(cudaGetLastError);
}

CASE(attribute)
{
	static const struct {
		enum cudaFuncAttribute attribute;
		int value;
	} list[] = {
		{cudaFuncAttributeMaxDynamicSharedMemorySize, 65000},
		{cudaFuncAttributePreferredSharedMemoryCarveout, 50},
		{cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutDefault},
		{cudaFuncAttributeNonPortableClusterSizeAllowed, 1},
		{cudaFuncAttributeClusterSchedulingPolicyPreference,
			cudaClusterSchedulingPolicySpread},
		/* What is none. */
		{cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 24},
		{cudaFuncAttributeMaxDynamicSharedMemorySize, -1},
		{cudaFuncAttributePreferredSharedMemoryCarveout, 101},
		{cudaFuncAttributePreferredSharedMemoryCarveout, -2},
		{cudaFuncAttributeClusterSchedulingPolicyPreference, 99},
		{(enum cudaFuncAttribute)0, 1},
		{(enum cudaFuncAttribute)99, 1},
	};
	struct cudaFuncAttributes a;
	char *p;
	void *args[] = {&p};
	program();
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		CALL(cudaFuncSetAttribute, with_shared, list[i].attribute, list[i].value);
	CALL(cudaFuncGetAttributes, &a, with_shared);
	attributes_of(&a);
	p = memory(64);
	CALL(cudaLaunchKernel, with_shared, size(1, 1, 1), size(16, 1, 1), args, 65000, NULL);
	CONTENT("bytes", p, 64);
	CALL(cudaLaunchKernel, with_shared, size(1, 1, 1), size(16, 1, 1), args, 65001, NULL);
	CALL(cudaFuncSetAttribute, not_registered, cudaFuncAttributeMaxDynamicSharedMemorySize,
		100);
	CALL(cudaFuncSetAttribute, NULL, cudaFuncAttributeMaxDynamicSharedMemorySize, 100);
	CALL(cudaGetLastError);
}

CASE(caches)
{
	program();
	CALL(cudaFuncSetCacheConfig, fill, cudaFuncCachePreferShared);
	CALL(cudaFuncSetCacheConfig, fill, cudaFuncCachePreferEqual);
	CALL(cudaFuncSetCacheConfig, fill, (enum cudaFuncCache)77);
	CALL(cudaFuncSetCacheConfig, not_registered, cudaFuncCachePreferL1);
	CALL(cudaFuncSetCacheConfig, NULL, cudaFuncCachePreferL1);
	CALL(cudaGetLastError);
	CALL(cudaFuncSetSharedMemConfig, fill, cudaSharedMemBankSizeEightByte);
	CALL(cudaFuncSetSharedMemConfig, fill, cudaSharedMemBankSizeDefault);
	CALL(cudaFuncSetSharedMemConfig, not_registered, cudaSharedMemBankSizeDefault);
	CALL(cudaFuncSetSharedMemConfig, NULL, cudaSharedMemBankSizeDefault);
	CALL(cudaFuncSetSharedMemConfig, fill, (enum cudaSharedMemConfig)77);
	CALL(cudaGetLastError);
}

CASE(names)
{
	const char *name = "before";
	program();
	CALL(cudaFuncGetName, &name, fill);
	TEXT("name", name);
	CALL(cudaFuncGetName, &name, with_shared);
	TEXT("name", name);
	name = "before";
	CALL(cudaFuncGetName, &name, not_registered);
	TEXT("name", name);
	CALL(cudaFuncGetName, &name, NULL);
	CALL(cudaFuncGetName, NULL, fill);
	CALL(cudaGetLastError);
}

CASE(parameters)
{
	size_t offset = 77, bytes = 77;
	program();
	CALL(cudaFuncGetParamInfo, fill, 0, &offset, &bytes);
	NUMBER("offset", (long long)offset);
	NUMBER("bytes", (long long)bytes);
	CALL(cudaFuncGetParamInfo, fill, 1, &offset, &bytes);
	NUMBER("offset", (long long)offset);
	NUMBER("bytes", (long long)bytes);
	offset = 77;
	CALL(cudaFuncGetParamInfo, fill, 1, &offset, NULL);
	NUMBER("offset", (long long)offset);
	CALL(cudaFuncGetParamInfo, fill, 2, &offset, &bytes);
	CALL(cudaFuncGetParamInfo, nothing, 0, &offset, &bytes);
	CALL(cudaFuncGetParamInfo, not_registered, 0, &offset, &bytes);
	CALL(cudaFuncGetParamInfo, NULL, 0, &offset, &bytes);
	CALL(cudaGetLastError);
}

/* The driver's own handles of what is registered. */
CASE(handles)
{
	cudaFunction_t function = NULL;
	cudaKernel_t handle = NULL;
	const char *name = "before";
	unsigned value = 5;
	char *p;
	void *args[] = {&p, &value};
	program();
	p = memory(64);
	CALL(cudaGetFuncBySymbol, &function, fill);
	YES("some", function != NULL);
	CALL(cuFuncGetName, &name, (CUfunction)function);
	TEXT("name", name);
	CALL(cuLaunchKernel, (CUfunction)function, 1, 1, 1, 4, 1, 1, 0, NULL, args, NULL);
	CONTENT("bytes", p, 64);
	name = "before";
	CALL(cudaGetKernel, &handle, fill);
	YES("some", handle != NULL);
	CALL(cuKernelGetName, &name, (CUkernel)handle);
	TEXT("name", name);
	value = 9;
	CALL(cudaLaunchKernel, (const void *)handle, size(1, 1, 1), size(4, 1, 1), args, 0, NULL);
	CONTENT("bytes", p, 64);
	CALL(cudaGetFuncBySymbol, &function, not_registered);
	CALL(cudaGetFuncBySymbol, &function, NULL);
	CALL(cudaGetFuncBySymbol, NULL, fill);
	CALL(cudaGetKernel, &handle, not_registered);
	CALL(cudaGetKernel, &handle, NULL);
	CALL(cudaGetKernel, NULL, fill);
	CALL(cudaGetLastError);
}

static int attribute(enum cudaDeviceAttr which)
{
	int value = 0;
	QUIET(cudaDeviceGetAttribute, &value, which, 0);
	return value;
}

CASE(occupancy)
{
	int blocks = -7, threads, shared;
	size_t bytes = 77;
	program();
	threads = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
	shared = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, with_shared, 512, 0);
	YES("by threads", blocks == threads / 512);
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, with_shared, 256, 30000);
	YES("by shared memory", blocks > 0 && blocks <= shared / 30256 && blocks < threads / 256);
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, with_shared, 2048, 0);
	NUMBER("blocks", blocks);
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, with_shared, 256, 1 << 24);
	NUMBER("blocks", blocks);
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &blocks, with_shared, 512, 0,
		cudaOccupancyDefault);
	YES("by threads", blocks == threads / 512);
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &blocks, with_shared, 512, 0,
		cudaOccupancyDisableCachingOverride);
	YES("by threads", blocks == threads / 512);
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &blocks, with_shared, 512, 0,
		0x80);
	CALL(cudaOccupancyAvailableDynamicSMemPerBlock, &bytes, with_shared, 2, 256);
	YES("fits", bytes > 10000 && bytes <= (size_t)shared / 2);
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, not_registered, 512, 0);
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, NULL, 512, 0);
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, with_shared, 0, 0);
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, with_shared, -1, 0);
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, NULL, with_shared, 512, 0);
	CALL(cudaOccupancyAvailableDynamicSMemPerBlock, &bytes, not_registered, 2, 256);
	CALL(cudaOccupancyAvailableDynamicSMemPerBlock, &bytes, with_shared, 0, 256);
	CALL(cudaOccupancyAvailableDynamicSMemPerBlock, &bytes, with_shared, 2, 0);
	CALL(cudaGetLastError);
}

CASE(clusters)
{
	cudaLaunchConfig_t config;
	cudaLaunchAttribute attribute;
	int most = -7, clusters = -7;
	program();
	memset(&config, 0, sizeof(config));
	memset(&attribute, 0, sizeof(attribute));
	config.gridDim = size(8, 1, 1);
	config.blockDim = size(64, 1, 1);
	CALL(cudaOccupancyMaxPotentialClusterSize, &most, nothing, &config);
	NUMBER("most", most);
	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = 2;
	attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
	config.attrs = &attribute;
	config.numAttrs = 1;
	CALL(cudaOccupancyMaxActiveClusters, &clusters, nothing, &config);
	YES("some", clusters > 0);
	CALL(cudaOccupancyMaxActiveClusters, &clusters, not_registered, &config);
	CALL(cudaOccupancyMaxActiveClusters, &clusters, NULL, &config);
	CALL(cudaOccupancyMaxActiveClusters, NULL, nothing, &config);
	CALL(cudaOccupancyMaxPotentialClusterSize, &most, not_registered, &config);
	CALL(cudaOccupancyMaxPotentialClusterSize, NULL, nothing, &config);
	attribute.val.clusterDim.x = 3;
	CALL(cudaOccupancyMaxActiveClusters, &clusters, nothing, &config);
	CALL(cudaGetLastError);
}

/* A handle that outlives its registration. */
CASE(call_unregistered)
{
	cudaKernel_t handle = NULL;
	struct cudaFuncAttributes a;
	const char *name = "before";
	program();
	QUIET(__cudaGetKernel, &handle, nothing);
	CALL(__cudaLaunchKernel, handle, size(1, 1, 1), size(1, 1, 1), NULL, 0, NULL);
	CALL(cudaDeviceSynchronize);
	FUNCTION(__cudaUnregisterFatBinary)(registration);
	CALL(__cudaGetKernel, &handle, nothing);
	CALL(cudaFuncGetAttributes, &a, nothing);
	CALL(cudaFuncGetName, &name, nothing);
	CALL(cudaGetLastError);
	program();
	CALL(__cudaGetKernel, &handle, nothing);
	CALL(__cudaLaunchKernel, handle, size(1, 1, 1), size(1, 1, 1), NULL, 0, NULL);
	CALL(cudaDeviceSynchronize);
	CALL(cudaGetLastError);
}
