/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/freeze/freeze.c: freezing: with the GPU idle, or not at all and with a sentence that
 * names what does not end; thawing and freezing again.
 */
#include <errno.h>
#include <stdlib.h>

#include "checkpoint/freeze/freeze.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/fence.h"
#include "server/worker/objects/stream.h"
#include "tests/unit/worker/inside.h"

static void test_again(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	for (int i = 0; i < 20; i++) {
		YES(ckt_worker.checkpoint.freeze.frozen && ckt_worker.checkpoint.freeze.wanted);
		IS(inside_freeze(5000, message), 0);
	}
	TEXT(message, "");
	YES(ckt_worker.checkpoint.freeze.since_ns > 0);
}

static void test_busy(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	struct ckt_object *stream;
	CUstream real;
	MUST(ckt_worker_stream_make(&ckt_worker, ID(STREAM, 1), CU_STREAM_NON_BLOCKING, 0),
		CUDA_SUCCESS);
	stream = ckt_objects_find(&ckt_worker.objects, ID(STREAM, 1));
	MUST(ckt_object_stream(&ckt_worker, stream->id, &real), CUDA_SUCCESS);
	YES(stream->stream.dirty);
	inside_spin(real);
	IS(inside_freeze(100, message), -EBUSY);
	HAS(message, "on stream 0x200000001000bb9 does not finish");
	NO(ckt_worker.checkpoint.freeze.frozen);
	/* It went on serving: the next try is a new one, and once the work ends it succeeds. */
	inside_stop();
	IS(ckt_checkpoint_freeze(&ckt_worker, 5000, message, sizeof message), 0);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	NO(stream->stream.dirty);
	/* The default stream has no name. */
	MUST(ckt_object_stream(&ckt_worker, 0, &real), CUDA_SUCCESS);
	inside_spin(CU_STREAM_LEGACY);
	IS(inside_freeze(100, message), -EBUSY);
	HAS(message, "on the default stream does not finish");
	inside_stop();
	IS(ckt_checkpoint_freeze(&ckt_worker, 5000, message, sizeof message), 0);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	ckt_object_destroy(&ckt_worker, stream);
}

UNIT_SUITE(freeze, {"again", test_again}, {"busy", test_busy})
