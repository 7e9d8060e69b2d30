/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches: the call checks and copies everything, and the grid runs on the stream's thread.  A
 * fault becomes the context's sticky error, and its message goes to stderr.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/module/launch.h"
#include "cudacommon/launch_attribute.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/log.h"
#include "softgpu/context/object.h"
#include "softgpu/context/waits.h"
#include "softgpu/memory/array.h"
#include "softgpu/memory/heap.h"
#include "softgpu/module/function.h"
#include "softgpu/module/kernel_output.h"
#include "softgpu/module/module.h"
#include "softgpu/module/occupancy.h"
#include "softgpu/ptx/ptx.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/condition.h"
#include "softgpu/stream/stream.h"

struct launch {
	struct ckt_soft_function *function; /* referenced until the kernel has run */
	uint32_t grid[3], block[3], cluster[3];
	uint32_t dynamic_shared;
	bool cooperative;
	_Alignas(16) unsigned char params[];
};

static CUresult fault_result(enum ckt_ptx_fault fault)
{
	switch (fault) {
	case CKT_PTX_FAULT_NONE:
		return CUDA_SUCCESS;
	case CKT_PTX_FAULT_ILLEGAL_ADDRESS:
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	case CKT_PTX_FAULT_MISALIGNED_ADDRESS:
		return CUDA_ERROR_MISALIGNED_ADDRESS;
	case CKT_PTX_FAULT_INVALID_ADDRESS_SPACE:
		return CUDA_ERROR_INVALID_ADDRESS_SPACE;
	case CKT_PTX_FAULT_INVALID_PC:
		return CUDA_ERROR_INVALID_PC;
	case CKT_PTX_FAULT_ILLEGAL_INSTRUCTION:
		return CUDA_ERROR_ILLEGAL_INSTRUCTION;
	case CKT_PTX_FAULT_ASSERT:
		return CUDA_ERROR_ASSERT;
	case CKT_PTX_FAULT_STACK_OVERFLOW:
		return CUDA_ERROR_HARDWARE_STACK_ERROR;
	case CKT_PTX_FAULT_TRAP:
	case CKT_PTX_FAULT_LAUNCH_FAILURE:
		return CUDA_ERROR_LAUNCH_FAILED;
	}
	return CUDA_ERROR_LAUNCH_FAILED;
}

static void device_output(void *data, int fd, const char *text, size_t size_bytes)
{
	ckt_soft_output_write(data, fd, text, size_bytes);
}

static void *device_malloc(void *data, uint64_t size_bytes)
{
	return ckt_soft_heap_alloc(data, size_bytes);
}

static void device_free(void *data, void *address)
{
	ckt_soft_heap_free(data, address);
}

static void run_launch(struct ckt_soft_context *stream_context, void *payload)
{
	struct launch *launch = payload;
	/* In a graph, the kernel's context may differ from the stream's. */
	struct ckt_soft_context *context = launch->function->module->context;
	(void)stream_context;
	if (ckt_soft_context_result(context) == CUDA_SUCCESS) {
		struct ckt_ptx_device device = {
			.n_sm = context->device->n_sm,
			.capability = context->device->arch->capability,
			.output = device_output,
			.heap_alloc = device_malloc,
			.heap_free = device_free,
			.set_condition = ckt_soft_condition_set,
			.texture = ckt_soft_texture_find,
			.surface = ckt_soft_surface_find,
			.data = context,
		};
		struct ckt_ptx_launch run = {
			.dynamic_shared_bytes = launch->dynamic_shared,
			.params = launch->params,
			.cooperative = launch->cooperative,
			.stack_bytes = context->limits[CU_LIMIT_STACK_SIZE],
			.device = &device,
		};
		memcpy(run.grid, launch->grid, sizeof(run.grid));
		memcpy(run.block, launch->block, sizeof(run.block));
		memcpy(run.cluster, launch->cluster, sizeof(run.cluster));
		char message[512] = "";
		enum ckt_ptx_fault fault =
			ckt_ptx_launch(launch->function->code, &run, message, sizeof(message));
		if (fault != CKT_PTX_FAULT_NONE) {
			/* An assertion's message is already in the program's output. */
			if (fault != CKT_PTX_FAULT_ASSERT)
				ckt_soft_say("kernel fault: %s",
					*message ? message : launch->function->info->name);
			ckt_soft_context_fault(context, fault_result(fault));
		}
	}
	ckt_soft_object_put(&launch->function->object);
}

/* ---- Checks */

static CUresult check_cluster(const struct launch *launch, const struct ckt_soft_device *device)
{
	const uint32_t *cluster = launch->cluster;
	if (!cluster[0] && !cluster[1] && !cluster[2])
		return CUDA_SUCCESS;
	if (!cluster[0] || !cluster[1] || !cluster[2])
		return CUDA_ERROR_INVALID_VALUE;
	if (device->arch->capability < 90)
		return CKT_AS_CUDA_NOT_SUPPORTED;
	uint64_t blocks = (uint64_t)cluster[0] * cluster[1] * cluster[2];
	if (cluster[0] > 16 || cluster[1] > 16 || cluster[2] > 16 ||
		blocks > (atomic_load(&launch->function->non_portable_cluster) ? 16 : 8))
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	for (int i = 0; i < 3; i++)
		if (launch->grid[i] % cluster[i])
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	return CUDA_SUCCESS;
}

static CUresult check_shape(const struct launch *launch, const struct ckt_soft_device *device)
{
	const struct ckt_ptx_function_info *info = launch->function->info;
	static const uint32_t most_grid[3] = {2147483647, 65535, 65535},
			      most_block[3] = {1024, 1024, 64};
	for (int i = 0; i < 3; i++)
		if (!launch->grid[i] || launch->grid[i] > most_grid[i] || !launch->block[i] ||
			launch->block[i] > most_block[i])
			return CUDA_ERROR_INVALID_VALUE;
	uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
	if (threads > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < 3; i++)
		if (info->reqntid[i] && info->reqntid[i] != launch->block[i])
			return CUDA_ERROR_INVALID_VALUE;
	if (threads > info->max_threads) /* beyond the launch bounds; seen on an H200 */
		return CUDA_ERROR_INVALID_VALUE;
	if (launch->dynamic_shared > (uint32_t)atomic_load(&launch->function->max_dynamic_shared))
		return CUDA_ERROR_INVALID_VALUE;
	if (info->static_shared_bytes + launch->dynamic_shared > device->arch->shared_optin << 10)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	CUresult result = check_cluster(launch, device);
	if (result == CUDA_SUCCESS && launch->cooperative) {
		uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
		unsigned per_sm = ckt_soft_occupancy(
			launch->function, device, (unsigned)threads, launch->dynamic_shared);
		if (blocks > (uint64_t)per_sm * device->n_sm)
			result = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	}
	return result;
}

CUresult ckt_soft_launch_check(struct ckt_soft_function *function, const unsigned grid[3],
	const unsigned block[3], unsigned dynamic_shared)
{
	struct launch launch = {.function = function,
		.grid = {grid[0], grid[1], grid[2]},
		.block = {block[0], block[1], block[2]},
		.dynamic_shared = dynamic_shared};
	return check_shape(&launch, function->module->context->device);
}

/* Copies the parameters, which are separate or in one buffer. */
static CUresult copy_params(struct launch *launch, void **kernel_params, void **extra)
{
	const struct ckt_ptx_function_info *info = launch->function->info;
	if (kernel_params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (info->n_params == 0)
		return CUDA_SUCCESS;
	if (kernel_params) {
		for (size_t i = 0; i < info->n_params; i++) {
			if (!kernel_params[i])
				return CUDA_ERROR_INVALID_VALUE;
			memcpy(launch->params + info->params[i].offset_bytes, kernel_params[i],
				info->params[i].size_bytes);
		}
		return CUDA_SUCCESS;
	}
	if (!extra)
		return CUDA_ERROR_INVALID_VALUE;
	const void *buffer;
	size_t size = 0;
	CUresult result = ckt_launch_extra(extra, &buffer, &size);
	if (result != CUDA_SUCCESS)
		return result;
	if (!buffer || size < info->param_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(launch->params, buffer, info->param_bytes);
	return CUDA_SUCCESS;
}

struct request {
	CUfunction function;
	uint32_t grid[3], block[3], cluster[3];
	uint32_t dynamic_shared;
	CUstream stream;
	bool cooperative;
	const CUlaunchAttribute *attributes;
	unsigned n_attributes;
};

/* Precondition: entered. */
static CUresult capture(struct ckt_capture_stream *capturing, const struct request *request,
	const struct launch *launch, void **kernel_params)
{
	const struct ckt_ptx_function_info *info = launch->function->info;
	struct ckt_kernel_spec spec = {
		.handle = request->function,
		.context = launch->function->module->context->object.handle,
		.param_count = (unsigned)info->n_params,
		.param_bytes = info->param_bytes,
		.shared_bytes = request->dynamic_shared,
		.attributes = request->attributes,
		.attribute_count = request->n_attributes,
		.params = kernel_params,
		.packed = kernel_params ? NULL : launch->params,
		.packed_bytes = info->param_bytes,
	};
	memcpy(spec.grid, request->grid, sizeof(spec.grid));
	memcpy(spec.block, request->block, sizeof(spec.block));
	return ckt_capture_kernel(capturing, &spec, request->cooperative && !request->n_attributes);
}

/*
 * Records the events of a launch that was not captured.  Both kinds of event may be recorded after
 * the kernel.
 */
static CUresult record_events(const struct request *request)
{
	CUresult result = CUDA_SUCCESS;
	for (unsigned i = 0; i < request->n_attributes && result == CUDA_SUCCESS; i++) {
		CUgraphEdgeData edge;
		CUevent event = ckt_launch_attribute_event(&request->attributes[i], &edge);
		if (event)
			result = cuEventRecord(event, request->stream);
	}
	return result;
}

/* Returns the function in the stream's context, ready to run; the caller owns the reference. */
static CUresult usable_function(CUfunction handle, struct ckt_soft_context *context,
	struct ckt_soft_function **ret_function)
{
	struct ckt_soft_function *function;
	CUresult result = ckt_soft_function_get(handle, context, &function);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_function_usable(function->info, &function->refusal_said);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_function_load(function);
	if (result != CUDA_SUCCESS)
		ckt_soft_object_put(&function->object);
	else
		*ret_function = function;
	return result;
}

static void fill_launch(struct launch *launch, struct ckt_soft_function *function,
	const struct request *request, size_t size)
{
	memset(launch, 0, size);
	launch->function = function;
	memcpy(launch->grid, request->grid, sizeof(launch->grid));
	memcpy(launch->block, request->block, sizeof(launch->block));
	memcpy(launch->cluster, request->cluster, sizeof(launch->cluster));
	if (!launch->cluster[0] && !launch->cluster[1] && !launch->cluster[2])
		for (int i = 0; i < 3; i++)
			launch->cluster[i] = (uint32_t)atomic_load(&function->cluster_set[i]);
	launch->dynamic_shared = request->dynamic_shared;
	launch->cooperative = request->cooperative;
}

/* Submits the launch to the stream's thread, with a reference to the function. */
static CUresult enqueue(struct ckt_soft_stream *stream, const struct request *request,
	struct launch *launch, size_t size)
{
	struct ckt_soft_function *function = launch->function;
	for (unsigned i = 0; i < request->n_attributes; i++) {
		CUresult result = ckt_launch_attribute_check(&request->attributes[i], false);
		if (result != CUDA_SUCCESS)
			return result;
	}
	ckt_soft_object_ref(&function->object);
	ckt_soft_waits_launch(stream);
	/* Always run the work, because it drops the reference. */
	CUresult result = ckt_soft_stream_submit(
		stream, run_launch, launch, size, CKT_SOFT_ALWAYS, NULL, 0, NULL);
	if (result == CUDA_SUCCESS)
		return record_events(request);
	ckt_soft_object_put(&function->object);
	return result;
}

/* Checks a filled launch and captures or enqueues it. */
static CUresult place_launch(struct ckt_soft_stream *stream, const struct request *request,
	struct launch *launch, size_t size, void **kernel_params, void **extra)
{
	const struct ckt_soft_context *context = launch->function->module->context;
	if (stream->context != context && !ckt_soft_in_graph)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = check_shape(launch, context->device);
	if (result == CUDA_SUCCESS)
		result = copy_params(launch, kernel_params, extra);
	struct ckt_capture_stream *capturing = NULL;
	if (result == CUDA_SUCCESS)
		result = ckt_soft_capture(stream, &capturing);
	if (capturing)
		return ckt_graph_leave(capture(capturing, request, launch, kernel_params));
	return result == CUDA_SUCCESS ? enqueue(stream, request, launch, size) : result;
}

static CUresult submit_launch(const struct request *request, void **kernel_params, void **extra)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_stream *stream;
	result = ckt_soft_stream_get(context, request->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	/* A kernel of a library runs in the stream's context. */
	struct ckt_soft_function *function;
	if (!ckt_soft_in_graph)
		context = stream->context;
	result = usable_function(request->function, context, &function);
	if (result != CUDA_SUCCESS)
		goto put_stream;
	size_t size = sizeof(struct launch) + function->info->param_bytes;
	_Alignas(16) unsigned char small[512];
	struct launch *launch = size <= sizeof(small) ? (struct launch *)small : malloc(size);
	if (launch) {
		fill_launch(launch, function, request, size);
		result = place_launch(stream, request, launch, size, kernel_params, extra);
	} else {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (launch != (struct launch *)small)
		free(launch);
	ckt_soft_object_put(&function->object);
put_stream:
	ckt_soft_object_put(&stream->object);
	return result;
}

/* ---- API */

CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
	unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
	unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, void **kernelParams,
	void **extra)
{
	struct request request = {
		.function = f,
		.grid = {gridDimX, gridDimY, gridDimZ},
		.block = {blockDimX, blockDimY, blockDimZ},
		.dynamic_shared = sharedMemBytes,
		.stream = hStream,
	};
	return submit_launch(&request, kernelParams, extra);
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX,
	unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
	unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
	CUstream hStream, void **kernelParams)
{
	struct request request = {
		.function = f,
		.grid = {gridDimX, gridDimY, gridDimZ},
		.block = {blockDimX, blockDimY, blockDimZ},
		.dynamic_shared = sharedMemBytes,
		.stream = hStream,
		.cooperative = true,
	};
	return submit_launch(&request, kernelParams, NULL);
}

static void take_attribute(struct request *request, const CUlaunchAttribute *attribute)
{
	/*
	 * The other attributes are events, or hints about caches and order that full serialisation
	 * satisfies.
	 */
	if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
		request->cooperative = attribute->value.cooperative != 0;
	} else if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
		request->cluster[0] = attribute->value.clusterDim.x;
		request->cluster[1] = attribute->value.clusterDim.y;
		request->cluster[2] = attribute->value.clusterDim.z;
	}
}

CUresult CUDAAPI cuLaunchKernelEx(
	const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	if (!config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	struct request request = {
		.function = f,
		.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
		.block = {config->blockDimX, config->blockDimY, config->blockDimZ},
		.dynamic_shared = config->sharedMemBytes,
		.stream = config->hStream,
		.attributes = config->attrs,
		.n_attributes = config->numAttrs,
	};
	for (unsigned i = 0; i < config->numAttrs; i++)
		take_attribute(&request, &config->attrs[i]);
	return submit_launch(&request, kernelParams, extra);
}
