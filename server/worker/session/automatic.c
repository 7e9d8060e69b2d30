/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's part in automatic images; see automatic.h. */
#include "server/worker/session/automatic.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/save/save.h"
#include "rpc/net.h"
#include "server/worker/session/control.h"
#include "server/worker/worker.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ckt_worker_afresh_args afresh; /* its generation is 0: none */
static struct {
	struct ckt_worker_automatic_args wanted; /* of a restore */
	uint8_t image[CKT_IMAGE_ID_SIZE];
	uint64_t executed;
	int lock_fd; /* of the images' directory; only to be kept open */
} automatic = {.lock_fd = -1};

/* Precondition: lock held.  A second lock replaces the first: its server opened it anew. */
static void keep_lock(struct ckt_request *request)
{
	if (request->passed_fd < 0)
		return;
	if (automatic.lock_fd >= 0)
		close(automatic.lock_fd);
	automatic.lock_fd = request->passed_fd;
	request->passed_fd = -1;
}

int ckt_automatic_serve(struct ckt_request *request)
{
	struct ckt_worker *worker = request->worker;
	ckt_worker_automatic_args args = {0};
	ckt_worker_automatic_res res = {0};
	int result =
		ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_automatic_args, &args);
	if (result)
		return result;
	/* Takes control_lock, which is outside of ours. */
	bool started = ckt_worker_control_started();
	pthread_mutex_lock(&lock);
	keep_lock(request);
	if (args.generation && started)
		res.status = -EALREADY;
	else if (args.generation)
		automatic.wanted = args;
	memcpy(res.image, automatic.image, sizeof res.image);
	res.executed = automatic.executed;
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&worker->mail_lock);
	res.generation = worker->generation;
	res.copy = worker->copy;
	pthread_mutex_unlock(&worker->mail_lock);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_automatic_res, &res);
}

int ckt_automatic_serve_afresh(struct ckt_request *request)
{
	ckt_worker_afresh_args args = {0};
	ckt_worker_result res = {.message = (char *)""};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_afresh_args, &args);
	if (result)
		return result;
	/* Takes control_lock, which is outside of ours. */
	bool started = ckt_worker_control_started();
	pthread_mutex_lock(&lock);
	if (started)
		res = (ckt_worker_result){-EALREADY, (char *)"this worker already has a session"};
	else if (args.generation < 2)
		res = (ckt_worker_result){-EINVAL, (char *)"no session begins again so early"};
	else
		afresh = args;
	pthread_mutex_unlock(&lock);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}

void ckt_automatic_started(struct ckt_worker *worker)
{
	pthread_mutex_lock(&lock);
	const ckt_worker_afresh_args args = afresh;
	pthread_mutex_unlock(&lock);
	if (!args.generation)
		return;
	memcpy(worker->secret_hash, args.secret_hash, sizeof worker->secret_hash);
	worker->has_owner = true;
	worker->generation = args.generation;
	worker->copy_before = args.last_copy;
}

void ckt_automatic_saved(const struct ckt_save *save)
{
	pthread_mutex_lock(&lock);
	memcpy(automatic.image, save->image, sizeof automatic.image);
	automatic.executed = save->executed;
	pthread_mutex_unlock(&lock);
}

void ckt_automatic_restored(struct ckt_worker *worker)
{
	pthread_mutex_lock(&lock);
	const struct ckt_worker_automatic_args wanted = automatic.wanted;
	pthread_mutex_unlock(&lock);
	if (worker->generation < wanted.generation)
		worker->generation = wanted.generation;
	if (wanted.copy)
		worker->copy = wanted.copy;
}

void ckt_automatic_over(void)
{
	/* Whoever has the mutex may wait for a worker that ends. */
	if (pthread_mutex_trylock(&lock))
		return;
	if (automatic.lock_fd >= 0 && write(automatic.lock_fd, "e", 1) != 1)
		ckt_debug("cannot say that the session is over");
	pthread_mutex_unlock(&lock);
}

bool ckt_automatic_was(uint64_t copy)
{
	pthread_mutex_lock(&lock);
	bool was = copy && copy == automatic.wanted.last_copy;
	pthread_mutex_unlock(&lock);
	return was;
}
