/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/session/pace.c: how much may be unfinished, over a driver whose work ends when the test says so. */
#include "server/worker/session/pace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/worker/driver.h"
#include "server/worker/objects/fence.h"
#include "server/worker/objects/object.h"
#include "server/worker/worker.h"
#include "tests/unit/suite.h"

enum { EVENTS = 64 };

#define MS INT64_C(1000000)

static struct ckt_worker *const worker = &ckt_worker;
static struct ckt_fences fences = {.real = (CUcontext)1};
static struct ckt_object *context;
/* Events are numbers from 1; those up to `finished` are done. */
static uintptr_t made, recorded, finished;
static uintptr_t order[EVENTS + 1];
static bool works;

static CUresult CUDAAPI set_current(CUcontext real)
{
	(void)real;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI query_stream(CUstream stream)
{
	(void)stream;
	return works ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult CUDAAPI create(CUevent *ret_event, unsigned flags)
{
	(void)flags;
	if (made == EVENTS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_event = (CUevent)++made;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI record(CUevent event, CUstream stream)
{
	(void)stream;
	order[(uintptr_t)event] = ++recorded;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI query(CUevent event)
{
	return order[(uintptr_t)event] <= finished ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static void begin(void)
{
	made = recorded = finished = 0;
	memset(&fences, 0, sizeof fences);
	fences.real = (CUcontext)1;
	pthread_mutex_init(&fences.lock, NULL);
	ckt_driver.cuCtxSetCurrent = set_current;
	ckt_driver.cuStreamQuery = query_stream;
	ckt_driver.cuEventCreate = create;
	ckt_driver.cuEventRecord = record;
	ckt_driver.cuEventQuery = query;
	MUST(ckt_objects_add(&worker->objects, ckt_handle_make(CKT_KIND_CONTEXT, 1, 1040),
		     CKT_KIND_CONTEXT, false, &context),
		CUDA_SUCCESS);
	context->real = (void *)1;
	context->ctx.fences = &fences;
	ckt_pace_reset();
}

static void end(void)
{
	ckt_pace_reset();
	IS(fences.spare_count, made);
	worker->current = NULL;
	ckt_objects_remove(&worker->objects, context);
	free(fences.spare);
}

/* Commands that may run before one has to wait, of at most that many. */
static unsigned run(unsigned most)
{
	unsigned count = 0;
	while (count < most && !ckt_pace_stops(worker, context, 10 * MS)) {
		fences.legacy = works = true;
		count++;
	}
	return count;
}

static void test_bound(void)
{
	begin();
	/* Nothing is known: two segments of one command. */
	IS(run(10), 2);
	IS(run(10), 0);
	/* Each took longer than the bound: one command replaces one that ended. */
	usleep(12000);
	finished = 1;
	IS(run(10), 1);
	usleep(12000);
	finished = 2;
	IS(run(10), 1);
	end();
}

static void test_short(void)
{
	unsigned all = 0, last = 0;
	begin();
	/* One that this test found done late, because it stood still, makes the next ones small. */
	for (int i = 0; i < 40 || (all <= 1000 && i < 100000); i++) {
		last = run(1000);
		all += last;
		finished = recorded;
	}
	/* They end at once: segments grow, to their maximum. */
	YES(all > 1000);
	YES(last <= 2 * CKT_PACE_SEGMENT_MAX);
	end();
}

/* Commands that leave no work on the GPU are not counted for long. */
static void test_no_work(void)
{
	begin();
	fences.legacy = works = false;
	for (int i = 0; i < 3000; i++)
		IS(ckt_pace_stops(worker, context, MS), false);
	IS(recorded, 0);
	end();
}

/* No event can be made: the work is not bounded, and the commands go on. */
static void test_no_events(void)
{
	begin();
	made = EVENTS;
	for (int i = 0; i < 100; i++) {
		fences.legacy = works = true;
		IS(ckt_pace_stops(worker, context, MS), false);
	}
	made = 0;
	end();
}

static void test_forget(void)
{
	struct ckt_fences others = {.real = (CUcontext)2};
	begin();
	IS(run(10), 2);
	ckt_pace_forget(&others);
	IS(run(10), 0);
	ckt_pace_forget(&fences);
	IS(fences.spare_count, 2);
	YES(run(10) > 0);
	end();
}

UNIT_SUITE(pace, {"bound", test_bound}, {"short", test_short}, {"no work", test_no_work},
	{"no events", test_no_events}, {"forget", test_forget})
