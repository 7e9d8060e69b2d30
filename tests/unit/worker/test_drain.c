/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/drain.c: work on a stream is named, and waited for until the deadline.
 */
#include <errno.h>

#include "rpc/net.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/stream.h"
#include "server/worker/session/drain.h"
#include "tests/unit/worker/inside.h"

static void test_busy(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	CUstream real;
	uint64_t before = ckt_worker.current->id;
	NO(ckt_streams_busy(&ckt_worker, message, sizeof message));
	IS(ckt_streams_drain(&ckt_worker, ckt_net_now_ms() + 1000, message, sizeof message), 0);
	TEXT(message, "");
	MUST(ckt_worker_stream_make(&ckt_worker, ID(STREAM, 1), CU_STREAM_NON_BLOCKING, 0),
		CUDA_SUCCESS);
	MUST(ckt_object_stream(&ckt_worker, ID(STREAM, 1), &real), CUDA_SUCCESS);
	inside_spin(real);
	YES(ckt_streams_busy(&ckt_worker, message, sizeof message));
	TEXT(message, "a kernel or copy on stream 0x200000001000bb9 does not finish");
	IS(ckt_streams_drain(&ckt_worker, ckt_net_now_ms() + 20, message, sizeof message), -EBUSY);
	HAS(message, "on stream 0x200000001000bb9 does not finish: end it, or give a longer");
	inside_stop();
	IS(ckt_streams_drain(&ckt_worker, ckt_net_now_ms() + 60000, message, sizeof message), 0);
	NO(ckt_streams_busy(&ckt_worker, message, sizeof message));
	IS(ckt_worker.current->id, before);
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(STREAM, 1)));
}

UNIT_SUITE(drain, {"busy", test_busy})
