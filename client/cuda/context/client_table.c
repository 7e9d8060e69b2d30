/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that this library gives to the shims of forwarded libraries; see
 * client/libs/libs.h.
 */
#include <stdlib.h>

#include "client/conn/conn.h"
#include "client/conn/library_environment.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "client/cuda/graph/captured_library_call.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/mapped.h"
#include "client/libs/libs.h"
#include "cudacommon/capture.h"

static CUresult enter_context(void)
{
	struct ckt_context *current;
	CUcontext primary;
	CUdevice device;
	if (ckt_client_context_current(&current) == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	CUresult result = cuInit(0);
	if (!result)
		result = ckt_client_context_current(&current);
	if (result != CUDA_ERROR_INVALID_CONTEXT)
		return result;
	result = cuDeviceGet(&device, 0);
	if (!result)
		result = cuDevicePrimaryCtxRetain(&primary, device);
	return result ? result : cuCtxSetCurrent(primary);
}

static CUresult enter(void)
{
	CUresult result = enter_context();
	if (!result)
		ckt_conn_environment_send();
	return result;
}

static uint64_t context(void)
{
	return ckt_call_context;
}

static CUresult before_work(uint64_t stream, uint64_t *addresses, unsigned count)
{
	struct ckt_capture_stream *capturing;
	CUresult result = CUDA_SUCCESS;
	/*
	 * A captured call runs later with these addresses.  Nothing checks them again at the
	 * launch.
	 */
	if (__builtin_expect(
		    atomic_load_explicit(&ckt_host_mappable, memory_order_relaxed) != 0, 0))
		result = ckt_client_host_map_params(addresses, count * sizeof *addresses);
	if (!result)
		result = ckt_capture_enter(stream, &capturing);
	if (result)
		return result;
	return capturing ? ckt_graph_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
			 : ckt_managed_before_launch();
}

static bool captures(uint64_t stream)
{
	struct ckt_capture_stream *capturing;
	if (ckt_capture_enter(stream, &capturing) || !capturing)
		return false;
	ckt_graph_leave(CUDA_SUCCESS);
	return true;
}

static uint64_t object_make(void)
{
	struct ckt_cudacommon_object *object = calloc(1, sizeof *object);
	if (!object)
		return 0;
	object->context = ckt_call_context;
	uint64_t id = ckt_cudacommon_object_add(object, CKT_KIND_LIB_OBJECT);
	if (!id)
		free(object);
	return id;
}

static void object_drop(uint64_t id)
{
	struct ckt_cudacommon_object *object = ckt_cudacommon_object_find(id, CKT_KIND_LIB_OBJECT);
	if (object)
		ckt_cudacommon_object_remove(object);
}

static void unsupported(const char *name, bool *once)
{
	ckt_call_unsupported(name, once);
}

static CUresult queue_status(struct ckt_call *call, int *ret_status)
{
	struct ckt_reply reply;
	*ret_status = 0;
	if (!(call->conn->mode & CKT_CONN_SYNC))
		return ckt_call_queue(call);
	CUresult result = ckt_call_wait(call, &reply);
	if (result)
		return result;
	*ret_status = (int)ckt_get_u32(&reply.results);
	ckt_call_reply_release(&reply);
	return CUDA_SUCCESS;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *copy, CUstream stream, bool async)
{
	return async ? cuMemcpy2DAsync_v2(copy, stream) : cuMemcpy2DUnaligned_v2(copy);
}

static int capability(void)
{
	struct ckt_context *current;
	if (ckt_client_context_current(&current))
		return 0;
	return 10 *
		ckt_client_device_attribute(
			current->device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
		ckt_client_device_attribute(
			current->device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

static int device(void)
{
	struct ckt_context *current;
	return ckt_client_context_current(&current) ? -1 : (int)current->device;
}

static CUresult device_context(int number, uint64_t *ret_context)
{
	CUcontext primary;
	CUdevice found;
	CUresult result = cuDeviceGet(&found, number);
	if (!result)
		result = cuDevicePrimaryCtxRetain(&primary, found);
	if (!result)
		*ret_context = ckt_handle_id(primary);
	return result;
}

static uint64_t generation(uint64_t id)
{
	return ckt_client_context_conn(id)->generation;
}

static const struct ckt_client_devices devices = {
	.count = cuDeviceGetCount,
	.retain = cuDevicePrimaryCtxRetain,
	.release = cuDevicePrimaryCtxRelease_v2,
	.push = cuCtxPushCurrent_v2,
	.pop = cuCtxPopCurrent_v2,
	.stream_create = cuStreamCreate,
	.stream_wait = cuStreamSynchronize,
	.stream_destroy = cuStreamDestroy_v2,
	.pointer_attribute = cuPointerGetAttribute,
};

CKT_EXPORT const struct ckt_client_table ckt_client_table = {
	.version = CKT_CLIENT_TABLE_VERSION,
	.size = sizeof(struct ckt_client_table),
	.enter = enter,
	.context = context,
	.begin = ckt_call_begin,
	.queue = ckt_call_queue,
	.wait = ckt_call_wait,
	.release = ckt_call_reply_release,
	.before_work = before_work,
	.stream = ckt_stream_resolve,
	.object_make = object_make,
	.object_drop = object_drop,
	.unsupported = unsupported,
	.capture = ckt_client_lib_capture,
	.workspace_alloc = ckt_client_lib_workspace_alloc,
	.workspace_free = ckt_client_lib_workspace_free,
	.queue_status = queue_status,
	.copy_2d = copy_2d,
	.capability = capability,
	.device = device,
	.device_context = device_context,
	.use_context = ckt_client_context_use,
	.node = ckt_client_context_node,
	.generation = generation,
	.devices = &devices,
	.captures = captures,
};
