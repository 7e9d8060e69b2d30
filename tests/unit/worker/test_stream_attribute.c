/* server/worker/stream_attribute.c: what is set of a stream is set on the driver's, is kept, and leaves with the stream. */
#include "server/worker/stream_attribute.h"

#include <string.h>

#include "tests/unit/worker/inside.h"

static void test_set(void)
{
	uint64_t id = ckt_handle_make(CKT_KIND_STREAM, 1, CKT_HANDLE_FIRST_SLOT + 900);
	CUstreamAttrValue value, got;
	MUST(ckt_stream_make(&ckt_worker, id, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	struct ckt_object *stream = ckt_objects_find_kind(&ckt_worker.objects, id, CKT_KIND_STREAM);
	CU_ASSERT_PTR_NULL(ckt_stream_attributes_of(stream));
	memset(&value, 0, sizeof value);
	value.priority = -3;
	IS(ckt_stream_attribute_set(&ckt_worker, id, CU_STREAM_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
	IS(ckt_driver.cuStreamGetAttribute(stream->real, CU_STREAM_ATTRIBUTE_PRIORITY, &got), CUDA_SUCCESS);
	IS(got.priority, -3);
	const struct ckt_stream_attributes *kept = ckt_stream_attributes_of(stream);
	MUST(kept != NULL, true);
	IS(kept->set, 1u << CU_STREAM_ATTRIBUTE_PRIORITY);
	IS(kept->values[CU_STREAM_ATTRIBUTE_PRIORITY].priority, -3);
	/* What the driver refuses is not kept, and neither is what no stream has. */
	memset(&value, 0, sizeof value);
	IS(ckt_stream_attribute_set(&ckt_worker, id, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_stream_attribute_set(&ckt_worker, id, (CUstreamAttrID)77, &value), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_stream_attribute_set(&ckt_worker, id + 1, CU_STREAM_ATTRIBUTE_PRIORITY, &value), CUDA_ERROR_INVALID_HANDLE);
	IS(kept->set, 1u << CU_STREAM_ATTRIBUTE_PRIORITY);
	ckt_object_destroy(&ckt_worker, stream);
	/* The legacy default stream's are the context's. */
	memset(&value, 0, sizeof value);
	value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
	IS(ckt_stream_attribute_set(&ckt_worker, 0, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value), CUDA_SUCCESS);
	IS(ckt_stream_attributes_of(ckt_worker.current)->set, 1u << CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN);
}

UNIT_SUITE(stream_attribute, {"set", test_set})
