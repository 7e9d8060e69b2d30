/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a worker that shares its GPU in space; see space_end.h. */
#include "server/worker/session/space_end.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "server/worker/driver.h"
#include "server/worker/memory/lease.h"
#include "server/worker/worker.h"

enum {
	/* For what is nearly done. */
	QUIET_MS = 200,
	LOOK_MS = 5,
	/* The server kills it sooner. */
	SERVER_MS = 10000,
};

static _Atomic bool begun, quiet;
static _Atomic(CUcontext) only;

void ckt_space_begin(CUcontext context)
{
	atomic_store(&only, context);
	atomic_store(&begun, true);
}

static void *synchronize(void *context)
{
	/* An error: its context is gone, and with it what ran. */
	if (!ckt_driver.cuCtxSetCurrent(context))
		ckt_driver.cuCtxSynchronize();
	atomic_store(&quiet, true);
	return NULL;
}

/* By a thread of its own, because the driver may not return.  Other contexts are not looked at. */
static bool is_quiet(void)
{
	pthread_t thread;
	if (!atomic_load(&begun))
		return true;
	CUcontext context = atomic_load(&only);
	if (!context || pthread_create(&thread, NULL, synchronize, context))
		return false;
	pthread_detach(thread);
	for (int waited = 0; waited < QUIET_MS && !atomic_load(&quiet); waited += LOOK_MS)
		poll(NULL, 0, LOOK_MS);
	return atomic_load(&quiet);
}

void ckt_space_end(const struct ckt_worker *worker, int status)
{
	static atomic_flag ends = ATOMIC_FLAG_INIT;
	if (!worker->space)
		return;
	if (atomic_flag_test_and_set(&ends)) {
		poll(NULL, 0, SERVER_MS);
		return;
	}
	if (is_quiet() || !ckt_lease_end(status))
		return;
	ckt_info("its kernels run on: waiting for MPS to terminate them");
	poll(NULL, 0, SERVER_MS);
}
