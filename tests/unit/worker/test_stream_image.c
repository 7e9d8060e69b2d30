/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/objects/stream_image.c: streams with their priority, and what was set of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "checkpoint/save/save.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/counted_handles.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/objects/stream.h"
#include "server/worker/objects/stream_attribute.h"
#include "tests/unit/worker/inside_image.h"

static char message[CKT_MESSAGE_MAX];

static struct ckt_loading loading(void)
{
	message[0] = 0;
	return (struct ckt_loading){
		.worker = &ckt_worker, .message = message, .message_size = sizeof message};
}

static void test_stream(void)
{
	struct ckt_save s = {0};
	MUST(ckt_worker_stream_make(&ckt_worker, ID(STREAM, 41), CU_STREAM_NON_BLOCKING, -1),
		CUDA_SUCCESS);
	CUstreamAttrValue value = {.syncPolicy = CU_SYNC_POLICY_YIELD};
	MUST(ckt_worker_stream_attribute_set(&ckt_worker, ID(STREAM, 41),
		     CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
		CUDA_SUCCESS);
	image_files_new();
	MUST(image_save(&s), 0);
	ckt_image *image = image_read();
	IS(image->streams.streams_len, 1);
	IS(image->streams.streams_val[0].id, ID(STREAM, 41));
	IS(image->streams.streams_val[0].flags, CU_STREAM_NON_BLOCKING);
	IS(image->streams.streams_val[0].priority, -1);
	/* Contexts have some, too. */
	const ckt_image_stream_attribute *attribute = NULL;
	unsigned own = 0;
	for (unsigned i = 0; i < image->stream_attributes.stream_attributes_len; i++)
		if (image->stream_attributes.stream_attributes_val[i].stream == ID(STREAM, 41)) {
			attribute = &image->stream_attributes.stream_attributes_val[i];
			own++;
		}
	MUST(own, 1);
	IS(attribute->attribute, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY);
	struct ckt_loading l = loading();
	l.image = *image;
	YES(ckt_stream_kind.load(&l, 0) < 0); /* it is there */
	HAS(message, "stream 0x");
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(STREAM, 41)));
	MUST(ckt_stream_kind.load(&l, 0), 0);
	IS(ckt_stream_kind.load_rest(&l), 0);
	struct ckt_object *stream = ckt_objects_find(&ckt_worker.objects, ID(STREAM, 41));
	CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
	IS(stream->stream.priority, -1);
	const struct ckt_stream_attributes *set = ckt_worker_stream_attributes_of(stream);
	CU_ASSERT_PTR_NOT_NULL_FATAL(set);
	IS(set->values[CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY].syncPolicy,
		CU_SYNC_POLICY_YIELD);
	/* Of a stream that is not there. */
	ckt_object_destroy(&ckt_worker, stream);
	YES(ckt_stream_kind.load_rest(&l) < 0);
	image_free(image);
	image_files_close();
}

/* Made ahead: the next one that is made alike is that one. */
static void test_journal(void)
{
	struct ckt_loading l = loading();
	ckt_image_journal entry = {.kind = CKT_JOURNAL_STREAMS,
		.id = 1,
		.context = ckt_handle_primary(0),
		.flags = CU_STREAM_NON_BLOCKING,
		.device = (uint32_t)-2};
	IS(ckt_stream_kind.steps[0].kind, CKT_JOURNAL_STREAMS);
	IS(ckt_stream_kind.steps[0].merge, CKT_JOURNAL_ADDS);
	MUST(ckt_stream_kind.steps[0].replay(&l, &entry), 0);
	ckt_counted_ahead_fini(&ckt_worker);
	entry.context = ID(CONTEXT, 77);
	YES(ckt_stream_kind.steps[0].replay(&l, &entry) < 0);
	HAS(message, "streams or events of context");
}

UNIT_SUITE(stream_image, {"stream", test_stream}, {"journal", test_journal})
