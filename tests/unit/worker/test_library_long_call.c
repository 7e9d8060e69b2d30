/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/library_long_call.c: what a library does beside the executor: in order, while
 * the executor goes on, and once more where memory was missing.
 */
#include <semaphore.h>
#include <stdlib.h>

#include "rpc/net.h"
#include "server/worker/libs/inside/inside.h"
#include "server/worker/libs/library_long_call.h"
#include "server/worker/libs/libs.h"
#include "server/worker/objects/context.h"
#include "server/worker/session/long_call.h"
#include "tests/unit/worker/inside.h"
#include "tests/unit/worker/toy.h"

static struct {
	sem_t go;
	unsigned runs, done, order[8];
	uint64_t owner;
	pthread_t thread;
	bool missing; /* an allocation fails */
} seen;

struct job {
	struct ckt_library_long_call beside;
	unsigned number;
	bool waits;
};

static void run(struct ckt_library_long_call *beside)
{
	const struct job *job = (struct job *)beside;
	uint64_t address;
	if (job->waits)
		sem_wait(&seen.go);
	seen.owner = ckt_inside_owner();
	seen.thread = pthread_self();
	seen.order[seen.runs++ % 8] = job->number;
	if (seen.missing)
		beside->failed = toy_library()->toy_alloc(
					 TOY_LINKED, (uint64_t)1 << 50, &address) != CUDA_SUCCESS;
}

static int done(struct ckt_library_long_call *beside)
{
	(void)beside;
	seen.done++;
	YES(pthread_equal(pthread_self(), ckt_worker.executor));
	IS(ckt_worker.current->id, ckt_handle_primary(0));
	return CUDA_SUCCESS;
}

static int submit(unsigned number, bool waits, uint64_t owner)
{
	struct job *job = calloc(1, sizeof *job);
	*job = (struct job){.beside = {.run = run, .done = done, .owner = owner},
		.number = number,
		.waits = waits};
	return ckt_library_long_call(NULL, &job->beside);
}

static void begin(pthread_t *ret_executor)
{
	seen.runs = seen.done = 0;
	seen.missing = false;
	sem_init(&seen.go, 0, 0);
	*ret_executor = ckt_worker.executor;
	ckt_worker.executor = pthread_self();
	/* Opened here, as the executor opens libraries. */
	toy_library();
}

static void test_order(void)
{
	pthread_t executor;
	begin(&executor);
	IS(submit(1, true, 77), CKT_WCALL_LATER);
	IS(submit(2, false, 0), CKT_WCALL_LATER);
	IS(submit(3, false, 0), CKT_WCALL_LATER);
	/* The executor goes on meanwhile: another call of the session. */
	IS(ASK(ctx_synchronize, .id = ckt_handle_primary(0)), CUDA_SUCCESS);
	IS(seen.done, 0);
	sem_post(&seen.go);
	IS(ckt_long_call_drain(&ckt_worker, -1), 0);
	IS(seen.done, 3);
	IS(seen.order[0] * 100 + seen.order[1] * 10 + seen.order[2], 123);
	NO(pthread_equal(seen.thread, pthread_self()));
	IS(submit(4, false, 78), CKT_WCALL_LATER);
	IS(ckt_long_call_drain(&ckt_worker, -1), 0);
	IS(seen.owner, 78 | CKT_MEMORY_LIBRARY);
	ckt_worker.executor = executor;
}

/* Before the session goes, as in a restore, nobody may answer later. */
static void test_at_once(void)
{
	pthread_t executor;
	begin(&executor);
	ckt_worker.go = false;
	IS(submit(1, false, 0), CUDA_SUCCESS);
	IS(seen.done, 1);
	YES(pthread_equal(seen.thread, pthread_self()));
	ckt_worker.go = true;
	ckt_worker.executor = executor;
}

static void test_missing(void)
{
	pthread_t executor;
	begin(&executor);
	seen.missing = true;
	IS(submit(1, false, 0), CKT_WCALL_LATER);
	IS(ckt_long_call_drain(&ckt_worker, -1), 0);
	/* Once more, and not for ever. */
	IS(seen.runs, 2);
	IS(seen.done, 1);
	ckt_worker.executor = executor;
}

/* ---- Objects */

static _Atomic unsigned ended;
static uint64_t taken[2];

static void destroy(struct ckt_worker *worker, struct ckt_object *object)
{
	(void)worker;
	sem_wait(&seen.go);
	IS(*(int *)object->library->data, 5);
	NO(pthread_equal(pthread_self(), ckt_worker.executor));
	IS(toy_library()->toy_free(taken[0], 0), CUDA_SUCCESS);
	ended++;
}

static const struct ckt_library library = {
	.name = "toy", .lib = CKT_LIB_CUDNN, .destroy = destroy, .ends_beside = true};

static struct ckt_object *make_object(uint64_t id)
{
	static int real;
	struct ckt_object *object = NULL;
	int *data = malloc(sizeof *data);
	*data = 5;
	MUST(ckt_library_object_add(&ckt_worker, &library, 1, id, &real, data, &object),
		CUDA_SUCCESS);
	return object;
}

/*
 * Its library waits for the GPU; the executor does not.  What the library keeps is the context's
 * then.
 */
static void test_end(void)
{
	pthread_t executor;
	begin(&executor);
	struct ckt_block block;
	uint64_t id = ID(LIB_OBJECT, 700), used = ckt_memory_used(&ckt_worker.devices[0].memory),
		 before = ckt_inside_enter(id);
	MUST(toy_library()->toy_alloc(TOY_LINKED, 4 << 20, &taken[0]), CUDA_SUCCESS);
	MUST(toy_library()->toy_alloc(TOY_LINKED, 2 << 20, &taken[1]), CUDA_SUCCESS);
	ckt_inside_leave(before);
	ended = 0;
	ckt_object_destroy(&ckt_worker, make_object(id));
	IS(ended, 0);
	YES(ckt_library_object_find(&ckt_worker, CKT_LIB_CUDNN, 1, id) == NULL);
	/* The id may be another object's already. */
	ckt_object_destroy(&ckt_worker, make_object(ID(LIB_OBJECT, 701)));
	sem_post(&seen.go);
	/* One of them, on a thread of its own, and the other does not end. */
	for (int i = 0; i < 6000 && !ended; i++)
		IS(ckt_long_call_drain(&ckt_worker, ckt_net_now_ms() + 10) != 0, true);
	IS(ckt_long_call_drain(&ckt_worker, ckt_net_now_ms() + 20) != 0, true);
	IS(ended, 1);
	MUST(toy_library()->toy_alloc(TOY_LINKED, 4 << 20, &taken[0]), CUDA_SUCCESS);
	sem_post(&seen.go);
	IS(ckt_long_call_drain(&ckt_worker, -1), 0);
	IS(ended, 2);
	YES(ckt_memory_block_of(&ckt_worker.devices[0].memory, taken[1], &block));
	IS(block.owner, ckt_handle_primary(0) | CKT_MEMORY_LIBRARY);
	IS(toy_library()->toy_free(taken[1], 0), CUDA_SUCCESS);
	IS(ckt_long_call_drain(&ckt_worker, -1), 0);
	IS(ckt_memory_used(&ckt_worker.devices[0].memory), used);
	ckt_worker.executor = executor;
}

/* A later call for the object comes behind the one that is beside. */
static void test_object_waits(void)
{
	pthread_t executor;
	begin(&executor);
	uint64_t id = ID(LIB_OBJECT, 702);
	struct ckt_object *object = make_object(id);
	sem_post(&seen.go);
	IS(submit(1, true, id), CKT_WCALL_LATER);
	IS(object->library->beside, 1);
	YES(ckt_library_object_find(&ckt_worker, CKT_LIB_CUDNN, 1, id) == object);
	IS(seen.done, 1);
	IS(object->library->beside, 0);
	MUST(toy_library()->toy_alloc(TOY_LINKED, 4 << 20, &taken[0]), CUDA_SUCCESS);
	sem_post(&seen.go);
	ckt_object_destroy(&ckt_worker, object);
	IS(ckt_long_call_drain(&ckt_worker, -1), 0);
	ckt_worker.executor = executor;
}

UNIT_SUITE(libs_beside, {"order", test_order}, {"at once", test_at_once},
	{"missing memory", test_missing}, {"end", test_end}, {"object waits", test_object_waits})
