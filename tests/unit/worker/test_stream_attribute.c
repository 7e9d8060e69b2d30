/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/objects/stream_attribute.c: what is set of a stream is set on the driver's, is
 * kept, and leaves with the stream.
 */
#include "checkpoint/save/save.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/stream.h"
#include "server/worker/objects/stream_attribute.h"

#include <string.h>

#include "checkpoint/load/image_load.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/worker/inside_image.h"

static void test_set(void)
{
	uint64_t id = ckt_handle_make(CKT_KIND_STREAM, 1, CKT_HANDLE_FIRST_SLOT + 900);
	CUstreamAttrValue value, got;
	MUST(ckt_worker_stream_make(&ckt_worker, id, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	struct ckt_object *stream = ckt_objects_find_kind(&ckt_worker.objects, id, CKT_KIND_STREAM);
	CU_ASSERT_PTR_NULL(ckt_worker_stream_attributes_of(stream));
	memset(&value, 0, sizeof value);
	value.priority = -3;
	IS(ckt_worker_stream_attribute_set(&ckt_worker, id, CU_STREAM_ATTRIBUTE_PRIORITY, &value),
		CUDA_SUCCESS);
	IS(ckt_driver.cuStreamGetAttribute(stream->real, CU_STREAM_ATTRIBUTE_PRIORITY, &got),
		CUDA_SUCCESS);
	IS(got.priority, -3);
	const struct ckt_stream_attributes *kept = ckt_worker_stream_attributes_of(stream);
	MUST(kept != NULL, true);
	IS(kept->set, 1u << CU_STREAM_ATTRIBUTE_PRIORITY);
	IS(kept->values[CU_STREAM_ATTRIBUTE_PRIORITY].priority, -3);
	/* What the driver refuses is not kept, and neither is what no stream has. */
	memset(&value, 0, sizeof value);
	IS(ckt_worker_stream_attribute_set(
		   &ckt_worker, id, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
		CUDA_ERROR_INVALID_VALUE);
	IS(ckt_worker_stream_attribute_set(&ckt_worker, id, (CUstreamAttrID)77, &value),
		CUDA_ERROR_INVALID_VALUE);
	IS(ckt_worker_stream_attribute_set(
		   &ckt_worker, id + 1, CU_STREAM_ATTRIBUTE_PRIORITY, &value),
		CUDA_ERROR_INVALID_HANDLE);
	IS(kept->set, 1u << CU_STREAM_ATTRIBUTE_PRIORITY);
	ckt_object_destroy(&ckt_worker, stream);
	/* The legacy default stream's are the context's. */
	memset(&value, 0, sizeof value);
	value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
	IS(ckt_worker_stream_attribute_set(
		   &ckt_worker, 0, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value),
		CUDA_SUCCESS);
	IS(ckt_worker_stream_attributes_of(ckt_worker.current)->set,
		1u << CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN);
}

/* What each kind is set to; all of them stand, and no other stream has them. */
static void set_all(uint64_t stream, uint64_t window)
{
	CUstreamAttrValue value;
	memset(&value, 0, sizeof value);
	value.accessPolicyWindow = (CUaccessPolicyWindow){.base_ptr = (void *)window,
		.num_bytes = 4096,
		.hitRatio = 0.5f,
		.hitProp = CU_ACCESS_PROPERTY_PERSISTING,
		.missProp = CU_ACCESS_PROPERTY_STREAMING};
	IS(ckt_worker_stream_attribute_set(
		   &ckt_worker, stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value),
		CUDA_SUCCESS);
	memset(&value, 0, sizeof value);
	value.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC;
	IS(ckt_worker_stream_attribute_set(
		   &ckt_worker, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
		CUDA_SUCCESS);
	memset(&value, 0, sizeof value);
	value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
	IS(ckt_worker_stream_attribute_set(
		   &ckt_worker, stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value),
		CUDA_SUCCESS);
	memset(&value, 0, sizeof value);
	value.priority = -2;
	IS(ckt_worker_stream_attribute_set(
		   &ckt_worker, stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value),
		CUDA_SUCCESS);
}

static CUstreamAttrValue get(CUstream real, CUstreamAttrID attribute)
{
	CUstreamAttrValue value;
	memset(&value, 0xee, sizeof value);
	IS(ckt_driver.cuStreamGetAttribute(real, attribute, &value), CUDA_SUCCESS);
	return value;
}

static void check_all(CUstream real, uint64_t window)
{
	CUstreamAttrValue value = get(real, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW);
	IS((uint64_t)value.accessPolicyWindow.base_ptr, window);
	IS(value.accessPolicyWindow.num_bytes, 4096);
	YES(value.accessPolicyWindow.hitRatio == 0.5f);
	IS(value.accessPolicyWindow.hitProp, CU_ACCESS_PROPERTY_PERSISTING);
	IS(value.accessPolicyWindow.missProp, CU_ACCESS_PROPERTY_STREAMING);
	IS(get(real, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY).syncPolicy,
		CU_SYNC_POLICY_BLOCKING_SYNC);
	IS(get(real, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain,
		CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
	IS(get(real, CU_STREAM_ATTRIBUTE_PRIORITY).priority, -2);
}

/*
 * The driver's streams, made again from an image as a restore makes them, have what was set of
 * those before.
 */
static void test_image(void)
{
	struct ckt_save s = {0};
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t set = ID(STREAM, 71), plain = ID(STREAM, 72), window = inside_memory(1 << 20, 0);
	CUstream before, after, other;
	MUST(ckt_worker_stream_make(&ckt_worker, set, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	MUST(ckt_worker_stream_make(&ckt_worker, plain, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	set_all(set, window);
	set_all(0, window);
	MUST(ckt_object_stream(&ckt_worker, set, &before), CUDA_SUCCESS);
	check_all(before, window);
	image_files_new();
	MUST(image_save(&s), 0);
	ckt_image *image = image_read();
	IS(image->stream_attributes.stream_attributes_len, 8);
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, set));
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, plain));
	/* The legacy default stream is the same one: with what it is not to have. */
	CUstreamAttrValue fresh;
	memset(&fresh, 0, sizeof fresh);
	fresh.syncPolicy = CU_SYNC_POLICY_SPIN;
	IS(ckt_worker_stream_attribute_set(
		   &ckt_worker, 0, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &fresh),
		CUDA_SUCCESS);
	struct ckt_loading l = {.worker = &ckt_worker,
		.message = message,
		.message_size = sizeof message,
		.image = *image};
	for (unsigned i = 0; i < image->streams.streams_len; i++)
		MUST(ckt_stream_kind.load(&l, i), 0);
	MUST(ckt_stream_kind.load_rest(&l), 0);
	MUST(ckt_object_stream(&ckt_worker, set, &after), CUDA_SUCCESS);
	check_all(after, window);
	check_all(NULL, window);
	MUST(ckt_object_stream(&ckt_worker, plain, &other), CUDA_SUCCESS);
	IS(get(other, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow.num_bytes, 0);
	IS(get(other, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain,
		CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT);
	IS(get(other, CU_STREAM_ATTRIBUTE_PRIORITY).priority, 0);
	/* And they stand in the tables, for the next image. */
	const struct ckt_stream_attributes *kept =
		ckt_worker_stream_attributes_of(ckt_objects_find(&ckt_worker.objects, set));
	MUST(kept != NULL, true);
	IS(kept->set,
		1u << CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW |
			1u << CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY |
			1u << CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN |
			1u << CU_STREAM_ATTRIBUTE_PRIORITY);
	image_free(image);
	image_files_close();
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, set));
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, plain));
	inside_free(window);
}

UNIT_SUITE(stream_attribute, {"set", test_set}, {"image", test_image})
