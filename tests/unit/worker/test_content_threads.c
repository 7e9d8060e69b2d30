/* SPDX-License-Identifier: Apache-2.0 */
/* The crew: every member once a run, the first error, the device's context on each thread. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "checkpoint/content_threads.h"
#include "checkpoint/format/store.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/inside.h"

static _Atomic unsigned ran[CKT_CREW_SIZE], fails;
static _Atomic int wrong;

static int work(struct ckt_content_thread *member, void *opaque)
{
	ran[member->index]++;
	wrong += opaque != &ran || member->worker != &ckt_worker ||
		member->buffer != member->buffers[0];
	/* Nobody else's. */
	memset(member->buffers[0], (int)member->index + 1, CKT_IMAGE_CHUNK);
	memset(member->buffers[1], (int)member->index + 101, CKT_IMAGE_CHUNK);
	wrong += member->buffers[0][CKT_IMAGE_CHUNK - 1] != member->index + 1 ||
		member->buffers[1][0] != member->index + 101;
	return (int)member->index < (int)fails ? -EIO : 0;
}

static void test_run(void)
{
	unsigned count = ckt_content_threads_count();
	YES(count >= 2 && count <= CKT_CREW_SIZE);
	for (unsigned round = 1; round <= 20; round++) {
		fails = round % 3;
		IS(ckt_content_threads_run(work, &ran), fails ? -EIO : 0);
		for (unsigned i = 0; i < CKT_CREW_SIZE; i++)
			IS(ran[i], i < count ? round : 0);
	}
	IS(wrong, 0);
}

static uint64_t target;

static int use(struct ckt_content_thread *member, void *opaque)
{
	CUcontext current = NULL;
	(void)opaque;
	if (ckt_content_threads_use_device(member, 0) || ckt_driver.cuCtxGetCurrent(&current) ||
		current != ckt_worker.first_context)
		return -EINVAL;
	if (ckt_content_threads_stream(member, 0) != member->stream ||
		ckt_content_threads_stream(member, 1))
		return -EBADF;
	/* No context of the second device was ever made. */
	if (ckt_content_threads_use_device(member, 1) != CUDA_ERROR_INVALID_CONTEXT)
		return -ENODEV;
	member->buffer[0] = 7;
	if (ckt_driver.cuMemcpyHtoDAsync_v2(target + member->index, member->buffer, 1,
		    ckt_content_threads_stream(member, 0)) ||
		ckt_driver.cuStreamSynchronize(ckt_content_threads_stream(member, 0)))
		return -EIO;
	return 0;
}

static void test_device(void)
{
	target = inside_memory(4096, 0);
	ckt_content_threads_look(&ckt_worker);
	ckt_content_threads_prepare();
	ckt_content_threads_prepare(); /* once is enough */
	IS(ckt_content_threads_run(use, NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(ckt_content_threads_first_stream(0));
	CU_ASSERT_PTR_NULL(ckt_content_threads_first_stream(1));
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	IS(inside_word(target) & 0xffff, 0x0707);
	inside_free(target);
}

UNIT_SUITE(crew, {"run", test_run}, {"device", test_device})
