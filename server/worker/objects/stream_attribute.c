/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of streams; see stream_attribute.h. */
#include "server/worker/objects/stream_attribute.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/worker.h"

static struct ckt_stream_attributes **place_of(struct ckt_object *object)
{
	return ckt_handle_kind(object->id) == CKT_KIND_STREAM ? &object->stream.attributes
							      : &object->ctx.stream_attributes;
}

const struct ckt_stream_attributes *ckt_worker_stream_attributes_of(const struct ckt_object *object)
{
	return *place_of((struct ckt_object *)object);
}

static bool is_known(CUstreamAttrID attribute)
{
	return attribute == CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
		attribute == CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
		attribute == CU_STREAM_ATTRIBUTE_PRIORITY ||
		attribute == CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN ||
		attribute == CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP;
}

CUresult ckt_worker_stream_attribute_set(struct ckt_worker *worker, uint64_t stream,
	CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
	struct ckt_object *object = stream > 1
		? ckt_objects_find_kind(&worker->objects, stream, CKT_KIND_STREAM)
		: worker->current;
	CUstream real;
	CUresult result =
		object ? ckt_object_stream(worker, stream, &real) : CUDA_ERROR_INVALID_HANDLE;
	if (result)
		return result;
	if (!is_known(attribute))
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_stream_attributes **place = place_of(object);
	if (!*place)
		*place = calloc(1, sizeof **place);
	if (!*place)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = ckt_driver.cuStreamSetAttribute(real, attribute, value);
	if (result)
		return result;
	(*place)->set |= 1u << attribute;
	(*place)->values[attribute] = *value;
	return CUDA_SUCCESS;
}

int ckt_worker_stream_set_attribute(struct ckt_wcall *call)
{
	struct ckt_stream_set_attribute_args args;
	CUstreamAttrValue value;
	if (!ckt_stream_set_attribute_args_get(&call->args, &args) ||
		args.value_len != sizeof value)
		return CKT_WCALL_GARBAGE;
	memcpy(&value, args.value, sizeof value);
	return ckt_worker_stream_attribute_set(
		call->worker, args.stream, (CUstreamAttrID)args.attribute, &value);
}
