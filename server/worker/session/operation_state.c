/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/operation_state.h"

#include <errno.h>
#include <stdio.h>

#include "base/fault_point.h"
#include "checkpoint/fault.h"
#include "checkpoint/freeze/freeze.h"
#include "server/worker/session/executor.h"
#include "server/worker/worker.h"

struct ckt_operation_state ckt_operation = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ckt_operation_begin(void)
{
	atomic_fetch_add(&ckt_operation.waiting, 1);
	pthread_mutex_lock(&ckt_operation.lock);
	atomic_fetch_sub(&ckt_operation.waiting, 1);
}

void ckt_operation_end(void)
{
	pthread_mutex_unlock(&ckt_operation.lock);
}

bool ckt_operation_is_tied(char *ret_message, size_t message_size)
{
	if (ckt_operation.stopped)
		snprintf(ret_message, message_size,
			"the session is off the GPU together with those that it shares memory or communicators with: "
			"bring them in first, with cricketctl swap in");
	return ckt_operation.stopped;
}

int ckt_operation_freeze(
	struct ckt_worker *worker, unsigned deadline_ms, char *ret_message, size_t message_size)
{
	if (ckt_operation.held || ckt_operation.stopped || worker->checkpoint.paused)
		return 0;
	ckt_progress_begin(&worker->checkpoint.progress, "freeze", 0);
	int error = ckt_checkpoint_freeze(worker, deadline_ms, ret_message, message_size);
	if (!error && ckt_fault_fails(CKT_FAULT_FROZEN)) {
		snprintf(ret_message, message_size, "CRICKET_FAULT made this step fail");
		ckt_checkpoint_thaw(worker, false);
		return -EIO;
	}
	return error;
}

void ckt_operation_thaw(struct ckt_worker *worker)
{
	if (!ckt_operation.held && !ckt_operation.stopped && !worker->checkpoint.paused)
		ckt_checkpoint_thaw(worker, false);
}

void ckt_operation_set_paused(struct ckt_worker *worker, bool paused)
{
	pthread_mutex_lock(&worker->mail_lock);
	worker->checkpoint.paused = paused;
	/* Its executor polls. */
	if (worker->checkpoint.swapped)
		ckt_executor_wake(worker);
	worker->checkpoint.swapped = false;
	pthread_mutex_unlock(&worker->mail_lock);
}
