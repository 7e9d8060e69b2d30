/* Threads for contents; see crew.h. */
#include "server/worker/crew.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "checkpoint/store.h"
#include "server/worker/driver.h"
#include "server/worker/worker.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int (*work)(struct ckt_crew_member *member, void *opaque);
	void *opaque;
	unsigned round, busy;
	int error;
	struct ckt_crew_member members[CKT_CREW_SIZE];
} crew = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void *crew_thread(void *opaque)
{
	struct ckt_crew_member *member = opaque;
	unsigned seen = 0;
	pthread_mutex_lock(&crew.lock);
	for (;;) {
		while (crew.round == seen)
			pthread_cond_wait(&crew.cond, &crew.lock);
		seen = crew.round;
		pthread_mutex_unlock(&crew.lock);
		int error = crew.work(member, crew.opaque);
		pthread_mutex_lock(&crew.lock);
		if (error && !crew.error)
			crew.error = error;
		if (--crew.busy == 0)
			pthread_cond_broadcast(&crew.cond);
	}
	return NULL;
}

int ckt_crew_start(struct ckt_worker *worker)
{
	for (unsigned i = 0; i < CKT_CREW_SIZE; i++) {
		struct ckt_crew_member *member = &crew.members[i];
		*member = (struct ckt_crew_member){.worker = worker, .index = i};
		/* Nothing else is staged while the session is frozen, so its pieces serve: they lie one behind the other. */
		member->buffer = worker->staging.base + (size_t)i * CKT_IMAGE_CHUNK;
		pthread_t thread;
		int error = pthread_create(&thread, NULL, crew_thread, member);
		if (error)
			return -error;
		pthread_detach(thread);
	}
	return 0;
}

int ckt_crew_run(int (*work)(struct ckt_crew_member *member, void *opaque), void *opaque)
{
	pthread_mutex_lock(&crew.lock);
	crew.work = work;
	crew.opaque = opaque;
	crew.error = 0;
	crew.busy = CKT_CREW_SIZE;
	crew.round++;
	pthread_cond_broadcast(&crew.cond);
	while (crew.busy)
		pthread_cond_wait(&crew.cond, &crew.lock);
	int error = crew.error;
	pthread_mutex_unlock(&crew.lock);
	return error;
}

CUresult ckt_crew_use_device(struct ckt_crew_member *member, unsigned device)
{
	struct ckt_object *context = ckt_objects_find(&member->worker->objects, ckt_handle_primary(device));
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (member->current == context->real)
		return CUDA_SUCCESS;
	CUresult result = ckt_driver.cuCtxSetCurrent(context->real);
	if (!result)
		member->current = context->real;
	return result;
}

_Static_assert((uint64_t)CKT_CREW_SIZE * CKT_IMAGE_CHUNK <= (uint64_t)(CKT_STAGING_TO_DEVICE + CKT_STAGING_TO_HOST) * CKT_STAGING_PIECE,
	       "the crew's buffers lie in the staging memory");
