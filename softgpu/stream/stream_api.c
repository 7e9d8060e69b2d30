/* SPDX-License-Identifier: Apache-2.0 */
/* The stream API: create, query, wait, callbacks. */
#include <string.h>

#include "cudacommon/launch_attribute.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/object.h"
#include "softgpu/memory/pool.h"
#include "softgpu/module/kernel_output.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/stream.h"

/* The stream of a handle, with a reference; reports its context's fault. */
static CUresult enter_stream(CUstream handle, struct ckt_soft_stream **ret_stream)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_stream_get(context, handle, ret_stream);
	return result;
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!phStream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
		return CUDA_ERROR_INVALID_VALUE;
	/* A priority outside the range is clamped, as documented. */
	priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	struct ckt_soft_stream *stream;
	result = ckt_soft_stream_create(context, flags, priority, &stream);
	if (result == CUDA_SUCCESS)
		*phStream = ckt_soft_object_handle(&stream->object);
	return result;
}

CUresult CUDAAPI cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter_faulted(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if ((uintptr_t)hStream <= 2)
		return CUDA_ERROR_INVALID_HANDLE;
	struct ckt_soft_stream *stream = ckt_soft_object_get(hStream, CKT_SOFT_STREAM);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	ckt_capture_stream_gone(stream->object.handle);
	ckt_soft_stream_close(stream);
	ckt_soft_object_put(&stream->object);
	return ckt_soft_context_result(context);
}

/* Like enter_stream, for calls that fail for a capturing stream. */
static CUresult enter_stream_asked(CUstream handle, struct ckt_soft_stream **ret_stream)
{
	CUresult result = enter_stream(handle, ret_stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_capture_forbid(*ret_stream);
	if (result != CUDA_SUCCESS)
		ckt_soft_object_put(&(*ret_stream)->object);
	return result;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream hStream)
{
	struct ckt_soft_stream *stream;
	CUresult result = enter_stream_asked(hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_context *context = stream->context;
	result = ckt_soft_stream_submit(
		stream, ckt_soft_nothing, NULL, 0, CKT_SOFT_BLOCK | CKT_SOFT_ALWAYS, NULL, 0, NULL);
	ckt_soft_output_flush(context);
	ckt_soft_pools_settle();
	if (result == CUDA_SUCCESS)
		result = ckt_soft_context_result(context);
	ckt_soft_object_put(&stream->object);
	return result;
}

CUresult CUDAAPI cuStreamQuery(CUstream hStream)
{
	struct ckt_soft_stream *stream;
	CUresult result = enter_stream_asked(hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_context *context = stream->context;
	pthread_mutex_lock(&context->submit_lock);
	/* The default stream is busy while any blocking stream is busy. */
	for (struct ckt_soft_stream *s = stream; s;
		s = s == context->legacy ? context->streams : s->next) {
		bool counts = s == stream || !(s->flags & CU_STREAM_NON_BLOCKING);
		pthread_mutex_lock(&s->lock);
		if (counts && s->completed < s->submitted)
			result = CUDA_ERROR_NOT_READY;
		pthread_mutex_unlock(&s->lock);
		if (stream != context->legacy)
			break;
	}
	pthread_mutex_unlock(&context->submit_lock);
	CUresult fault = ckt_soft_context_result(context);
	ckt_soft_object_put(&stream->object);
	return fault != CUDA_SUCCESS ? fault : result;
}

CUresult CUDAAPI cuStreamGetPriority(CUstream hStream, int *priority)
{
	struct ckt_soft_stream *stream;
	CUresult result = enter_stream(hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (priority)
		*priority = stream->priority;
	ckt_soft_object_put(&stream->object);
	return priority ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
	struct ckt_soft_stream *stream;
	CUresult result = enter_stream(hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (flags)
		*flags = stream->flags;
	ckt_soft_object_put(&stream->object);
	return flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
	struct ckt_soft_stream *stream;
	CUresult result = enter_stream(hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (streamId)
		*streamId = stream->id;
	ckt_soft_object_put(&stream->object);
	return streamId ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
	struct ckt_soft_stream *stream;
	CUresult result = enter_stream(hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (pctx)
		*pctx = ckt_soft_context_handle(stream->context);
	ckt_soft_object_put(&stream->object);
	return pctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	CUresult result = cuStreamGetCtx(hStream, pCtx);
	if (result == CUDA_SUCCESS && pGreenCtx)
		*pGreenCtx = NULL;
	return result;
}

CUresult CUDAAPI cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
	struct ckt_soft_stream *stream;
	CUresult result = enter_stream(hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (device)
		*device = stream->context->device->ordinal;
	ckt_soft_object_put(&stream->object);
	return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuStreamSetAttribute(
	CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	struct ckt_soft_stream *stream;
	CUresult result = enter_stream(hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = value ? ckt_stream_attribute_check(attr, value, 0) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS) {
		pthread_mutex_lock(&stream->lock);
		stream->attributes[attr] = *value;
		stream->attributes_set |= 1u << attr;
		if ((int)attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
			stream->priority = value->priority > 0 ? 0
				: value->priority < -5         ? -5
							       : value->priority;
		pthread_mutex_unlock(&stream->lock);
	}
	ckt_soft_object_put(&stream->object);
	return result;
}

CUresult CUDAAPI cuStreamGetAttribute(
	CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value_out)
{
	struct ckt_soft_stream *stream;
	CUresult result = enter_stream(hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!value_out || !ckt_stream_attribute_known(attr)) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else {
		pthread_mutex_lock(&stream->lock);
		*value_out = stream->attributes_set >> attr & 1 ? stream->attributes[attr]
								: ckt_stream_attribute_fresh(attr);
		if ((int)attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
			value_out->priority = stream->priority;
		pthread_mutex_unlock(&stream->lock);
	}
	ckt_soft_object_put(&stream->object);
	return result;
}

unsigned ckt_stream_node_attributes(
	uint64_t number, CUlaunchAttribute ret_attributes[CKT_STREAM_ATTRIBUTES_MAX])
{
	static const CUlaunchAttributeID ids[] = {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
		CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP};
	struct ckt_soft_stream *stream;
	unsigned count = 0;
	if (ckt_soft_stream_by_number(number, &stream) != CUDA_SUCCESS)
		return 0;
	pthread_mutex_lock(&stream->lock);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		if (stream->attributes_set >> ids[i] & 1)
			ret_attributes[count++] = (CUlaunchAttribute){
				.id = ids[i], .value = stream->attributes[ids[i]]};
	if (stream->priority)
		ret_attributes[count++] = (CUlaunchAttribute){
			.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = stream->priority};
	pthread_mutex_unlock(&stream->lock);
	ckt_soft_object_put(&stream->object);
	return count;
}

CUresult CUDAAPI cuStreamCopyAttributes(CUstream dst, CUstream src)
{
	struct ckt_soft_stream *from, *to;
	CUresult result = enter_stream(src, &from);
	if (result != CUDA_SUCCESS)
		return result;
	result = enter_stream(dst, &to);
	if (result == CUDA_SUCCESS) {
		CUstreamAttrValue copy[sizeof(from->attributes) / sizeof(*from->attributes)];
		pthread_mutex_lock(&from->lock);
		memcpy(copy, from->attributes, sizeof(copy));
		int priority = from->priority;
		unsigned set = from->attributes_set;
		pthread_mutex_unlock(&from->lock);
		pthread_mutex_lock(&to->lock);
		memcpy(to->attributes, copy, sizeof(copy));
		to->priority = priority;
		to->attributes_set = set;
		pthread_mutex_unlock(&to->lock);
		ckt_soft_object_put(&to->object);
	}
	ckt_soft_object_put(&from->object);
	return result;
}

struct host_call {
	CUhostFn function; /* either function or callback is set */
	CUstreamCallback callback;
	CUstream handle;
	void *data;
};

static void run_host_call(struct ckt_soft_context *context, void *payload)
{
	struct host_call *call = payload;
	ckt_soft_in_host_function = true;
	/* After a fault, no host function is called; a callback is called with the error. */
	if (call->callback)
		call->callback(call->handle, ckt_soft_context_result(context), call->data);
	else if (ckt_soft_context_result(context) == CUDA_SUCCESS)
		call->function(call->data);
	ckt_soft_in_host_function = false;
}

/* Precondition: entered.  Leaves. */
static CUresult capture(struct ckt_capture_stream *capturing, const struct ckt_soft_stream *stream,
	const struct host_call *call)
{
	struct ckt_node *node;
	/* A callback cannot be captured. */
	if (call->callback) {
		ckt_graph_leave(CUDA_SUCCESS);
		return ckt_soft_capture_forbid(stream);
	}
	CUresult result = ckt_capture_append(capturing, CU_GRAPH_NODE_TYPE_HOST, &node);
	if (result == CUDA_SUCCESS)
		node->host = (CUDA_HOST_NODE_PARAMS){.fn = call->function, .userData = call->data};
	return ckt_graph_leave(result);
}

static CUresult submit_host_call(CUstream handle, const struct host_call *call)
{
	struct ckt_soft_stream *stream;
	CUresult result = enter_stream(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_capture_stream *capturing;
	result = ckt_soft_capture(stream, &capturing);
	if (capturing)
		result = capture(capturing, stream, call);
	else if (result == CUDA_SUCCESS)
		result = ckt_soft_stream_submit(
			stream, run_host_call, call, sizeof(*call), CKT_SOFT_ALWAYS, NULL, 0, NULL);
	ckt_soft_object_put(&stream->object);
	return result;
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	struct host_call call = {.function = fn, .data = userData};
	return submit_host_call(hStream, &call);
}

CUresult CUDAAPI cuStreamAddCallback(
	CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	struct host_call call = {.callback = callback, .handle = hStream, .data = userData};
	return submit_host_call(hStream, &call);
}
