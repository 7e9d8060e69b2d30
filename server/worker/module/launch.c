/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches and occupancy.  The driver gets the packed parameters unchanged, as one aligned copy:
 * the message may give them any alignment, and the driver reads whole words.
 */
#include <stdio.h>
#include <string.h>

#include "rpc/gen/cuda_codec.h"
#include "base/log.h"
#include "server/worker/driver.h"
#include "server/worker/objects/context_limits.h"
#include "server/worker/worker.h"

/*
 * Only the executor uses it.  The extra bytes belong to us, in case the driver reads past a short
 * buffer.
 */
static _Alignas(64) uint8_t packed[CKT_LAUNCH_KERNEL_PARAMS_MAX + 64];

static void extra_for(const uint8_t *params, uint32_t size, size_t *size_place, void *extra[5])
{
	memcpy(packed, params, size);
	*size_place = size;
	extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	extra[1] = packed;
	extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	extra[3] = size_place;
	extra[4] = CU_LAUNCH_PARAM_END;
}

/*
 * Runs after a launch: a kernel that takes more local memory than all earlier ones moves the
 * driver's addresses.
 */
static int launched(struct ckt_wcall *call, struct ckt_object *function, CUresult result)
{
	function->function.launched = true;
	if (__builtin_expect(function->function.local_bytes > call->worker->local_bytes, 0) &&
		!result)
		ckt_limits_launched(call->worker, function);
	return result;
}

/* Runs before a launch: charges the local memory of the kernel. */
static CUresult local_memory(struct ckt_wcall *call, const struct ckt_object *function)
{
	return __builtin_expect(function->function.local_bytes > call->worker->local_bytes, 0)
		? ckt_limits_charge_local(call->worker, function)
		: CUDA_SUCCESS;
}

int ckt_worker_launch_kernel(struct ckt_wcall *call)
{
	struct ckt_launch_kernel_args args;
	if (!ckt_launch_kernel_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *function =
		ckt_objects_find_kind(&call->worker->objects, args.function, CKT_KIND_FUNCTION);
	CUstream stream;
	CUresult result = function ? ckt_object_stream(call->worker, args.stream, &stream)
				   : CUDA_ERROR_INVALID_HANDLE;
	if (!result)
		result = local_memory(call, function);
	if (result)
		return result;
	size_t size;
	void *extra[5];
	extra_for(args.params, args.params_len, &size, extra);
	if (!args.cooperative)
		return launched(call, function,
			ckt_driver.cuLaunchKernel(function->real, args.grid_x, args.grid_y,
				args.grid_z, args.block_x, args.block_y, args.block_z,
				args.shared_bytes, stream, NULL, args.params_len ? extra : NULL));
	/* cuLaunchCooperativeKernel accepts no packed buffer; the attribute has the same effect. */
	CUlaunchAttribute attribute = {
		.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
	CUlaunchConfig config = {.gridDimX = args.grid_x,
		.gridDimY = args.grid_y,
		.gridDimZ = args.grid_z,
		.blockDimX = args.block_x,
		.blockDimY = args.block_y,
		.blockDimZ = args.block_z,
		.sharedMemBytes = args.shared_bytes,
		.hStream = stream,
		.attrs = &attribute,
		.numAttrs = 1};
	return launched(call, function,
		ckt_driver.cuLaunchKernelEx(
			&config, function->real, NULL, args.params_len ? extra : NULL));
}

/*
 * Replaces ids inside an attribute by handles; refuses and names an attribute that a client cannot
 * send.
 */
static CUresult translate_attribute(struct ckt_worker *worker, CUlaunchAttribute *attribute)
{
	static bool said[64];
	char what[64];
	switch (attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		return ckt_object_event(worker, (uintptr_t)attribute->value.programmaticEvent.event,
			&attribute->value.programmaticEvent.event);
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		return ckt_object_event(worker,
			(uintptr_t)attribute->value.launchCompletionEvent.event,
			&attribute->value.launchCompletionEvent.event);
	default:
		snprintf(what, sizeof what, "launch attribute %d", attribute->id);
		return ckt_worker_unsupported(what, &said[(unsigned)attribute->id % 64]);
	}
}

/*
 * Notes the events that a launch has recorded.  Precondition: the attributes are as the client sent
 * them.
 */
static void recorded(struct ckt_worker *worker, const uint8_t *sent, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		CUlaunchAttribute attribute;
		memcpy(&attribute, sent + i * sizeof attribute, sizeof attribute);
		CUevent event = attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT
			? attribute.value.programmaticEvent.event
			: attribute.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT
			? attribute.value.launchCompletionEvent.event
			: NULL;
		struct ckt_object *object = event
			? ckt_objects_find_kind(&worker->objects, (uintptr_t)event, CKT_KIND_EVENT)
			: NULL;
		if (object) {
			object->event.recorded = true;
			object->event.from_image = false;
		}
	}
}

int ckt_worker_launch_kernel_ex(struct ckt_wcall *call)
{
	enum { ATTRIBUTES_MAX = CKT_LAUNCH_KERNEL_EX_ATTRS_MAX / sizeof(CUlaunchAttribute) };
	struct ckt_launch_kernel_ex_args args;
	if (!ckt_launch_kernel_ex_args_get(&call->args, &args) ||
		args.attrs_len % sizeof(CUlaunchAttribute))
		return CKT_WCALL_GARBAGE;
	CUlaunchAttribute attributes[ATTRIBUTES_MAX + 1];
	unsigned count = args.attrs_len / sizeof *attributes;
	memcpy(attributes, args.attrs, args.attrs_len);
	struct ckt_object *function =
		ckt_objects_find_kind(&call->worker->objects, args.function, CKT_KIND_FUNCTION);
	CUstream stream;
	CUresult result = function ? ckt_object_stream(call->worker, args.stream, &stream)
				   : CUDA_ERROR_INVALID_HANDLE;
	for (unsigned i = 0; i < count && !result; i++)
		result = translate_attribute(call->worker, &attributes[i]);
	if (!result)
		result = local_memory(call, function);
	if (result)
		return result;
	size_t size;
	void *extra[5];
	extra_for(args.params, args.params_len, &size, extra);
	CUlaunchConfig config = {.gridDimX = args.grid_x,
		.gridDimY = args.grid_y,
		.gridDimZ = args.grid_z,
		.blockDimX = args.block_x,
		.blockDimY = args.block_y,
		.blockDimZ = args.block_z,
		.sharedMemBytes = args.shared_bytes,
		.hStream = stream,
		.attrs = attributes,
		.numAttrs = count};
	result = ckt_driver.cuLaunchKernelEx(
		&config, function->real, NULL, args.params_len ? extra : NULL);
	if (!result)
		recorded(call->worker, args.attrs, count);
	return launched(call, function, result);
}

int ckt_worker_occupancy_blocks(struct ckt_wcall *call)
{
	struct ckt_occupancy_blocks_args args;
	struct ckt_occupancy_blocks_res res = {0};
	CUfunction function;
	if (!ckt_occupancy_blocks_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_function(call->worker, args.function, &function);
	if (!result)
		result = ckt_driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
			&res.blocks, function, args.block_size, args.shared_bytes, args.flags);
	if (result)
		return result;
	ckt_occupancy_blocks_res_put(
		ckt_wcall_results(call, ckt_occupancy_blocks_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_occupancy_available_smem(struct ckt_wcall *call)
{
	struct ckt_occupancy_available_smem_args args;
	size_t bytes;
	CUfunction function;
	if (!ckt_occupancy_available_smem_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_function(call->worker, args.function, &function);
	if (!result)
		result = ckt_driver.cuOccupancyAvailableDynamicSMemPerBlock(
			&bytes, function, args.blocks, args.block_size);
	if (result)
		return result;
	struct ckt_occupancy_available_smem_res res = {.shared_bytes = bytes};
	ckt_occupancy_available_smem_res_put(
		ckt_wcall_results(call, ckt_occupancy_available_smem_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_occupancy_clusters(struct ckt_wcall *call)
{
	enum { ATTRIBUTES_MAX = CKT_OCCUPANCY_CLUSTERS_ATTRS_MAX / sizeof(CUlaunchAttribute) };
	struct ckt_occupancy_clusters_args args;
	struct ckt_occupancy_clusters_res res = {0};
	if (!ckt_occupancy_clusters_args_get(&call->args, &args) ||
		args.attrs_len % sizeof(CUlaunchAttribute))
		return CKT_WCALL_GARBAGE;
	CUlaunchAttribute attributes[ATTRIBUTES_MAX + 1];
	unsigned count = args.attrs_len / sizeof *attributes;
	memcpy(attributes, args.attrs, args.attrs_len);
	CUfunction function;
	CUresult result = ckt_object_function(call->worker, args.function, &function);
	for (unsigned i = 0; i < count && !result; i++)
		result = translate_attribute(call->worker, &attributes[i]);
	if (result)
		return result;
	CUlaunchConfig config = {.gridDimX = args.grid_x,
		.gridDimY = args.grid_y,
		.gridDimZ = args.grid_z,
		.blockDimX = args.block_x,
		.blockDimY = args.block_y,
		.blockDimZ = args.block_z,
		.sharedMemBytes = args.shared_bytes,
		.attrs = attributes,
		.numAttrs = count};
	result = args.which
		? ckt_driver.cuOccupancyMaxPotentialClusterSize(&res.clusters, function, &config)
		: ckt_driver.cuOccupancyMaxActiveClusters(&res.clusters, function, &config);
	if (result)
		return result;
	ckt_occupancy_clusters_res_put(
		ckt_wcall_results(call, ckt_occupancy_clusters_res_size(&res)), &res);
	return CUDA_SUCCESS;
}
