/* SPDX-License-Identifier: Apache-2.0 */
/* The table of communicators, and their states. */
#include "softgpu/libs/nccl/comm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/libs/common/driver.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ncclComm *table;
static uint64_t last_number;

static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static char said[512];

void ckt_soft_nccl_comm_say(const char *format, ...)
{
	va_list arguments;
	const char *debug = getenv("NCCL_DEBUG");
	pthread_mutex_lock(&said_lock);
	va_start(arguments, format);
	vsnprintf(said, sizeof said, format, arguments);
	va_end(arguments);
	if (debug &&
		(!strcasecmp(debug, "WARN") || !strcasecmp(debug, "INFO") ||
			!strcasecmp(debug, "TRACE")))
		fprintf(stderr, "cricket: soft GPU: NCCL: %s\n", said);
	pthread_mutex_unlock(&said_lock);
}

/* As NCCL: into the file that NCCL_DEBUG_FILE names, or to stdout. */
static FILE *debug_file(void)
{
	const char *path = getenv("NCCL_DEBUG_FILE");
	FILE *file = path && *path ? fopen(path, "w") : NULL;
	if (file)
		setvbuf(file, NULL, _IOLBF, 0);
	return file ? file : stdout;
}

void ckt_soft_nccl_comm_tell_made(const struct ncclComm *comm)
{
	static FILE *file;
	const char *debug = getenv("NCCL_DEBUG");
	if (!debug || (strcasecmp(debug, "INFO") != 0 && strcasecmp(debug, "TRACE") != 0))
		return;
	pthread_mutex_lock(&said_lock);
	file = file ? file : debug_file();
	fprintf(file, "soft:%d [%d] NCCL INFO rank %d nranks %d - Init COMPLETE\n", (int)getpid(),
		comm->device, comm->rank, comm->size);
	fflush(file);
	pthread_mutex_unlock(&said_lock);
}

const char *ckt_soft_nccl_comm_said(void)
{
	/* A copy for the calling thread: the text may change while the caller reads it. */
	static _Thread_local char copy[sizeof said];
	pthread_mutex_lock(&said_lock);
	memcpy(copy, said, sizeof copy);
	pthread_mutex_unlock(&said_lock);
	return copy;
}

ncclResult_t ckt_soft_nccl_comm_make(
	int device, CUcontext context, bool blocking, struct ncclComm **ret_comm)
{
	struct ncclComm *comm = calloc(1, sizeof *comm);
	if (!comm || ckt_soft_nccl_mesh_init(&comm->mesh)) {
		free(comm);
		ckt_soft_nccl_comm_say("no memory or no descriptors for a communicator");
		return ncclSystemError;
	}
	comm->device = device;
	comm->context = context;
	comm->blocking = blocking;
	comm->busy = true;
	comm->holders = 2; /* the table and the caller */
	pthread_mutex_init(&comm->lock, NULL);
	pthread_cond_init(&comm->changed, NULL);
	pthread_mutex_init(&comm->control, NULL);
	pthread_mutex_init(&comm->running, NULL);
	pthread_mutex_init(&comm->issue, NULL);
	pthread_mutex_lock(&table_lock);
	comm->number = ++last_number;
	comm->next = table;
	table = comm;
	pthread_mutex_unlock(&table_lock);
	*ret_comm = comm;
	return ncclSuccess;
}

ncclResult_t ckt_soft_nccl_comm_set_size(struct ncclComm *comm, int rank, int size)
{
	comm->rank = rank;
	comm->size = size;
	if (ckt_soft_nccl_mesh_set_size(&comm->mesh, rank, size)) {
		ckt_soft_nccl_comm_say("no memory for a communicator of %d ranks", size);
		return ncclSystemError;
	}
	return ncclSuccess;
}

struct ncclComm *ckt_soft_nccl_comm_get(ncclComm_t handle)
{
	pthread_mutex_lock(&table_lock);
	struct ncclComm *comm = table;
	while (comm && comm != handle)
		comm = comm->next;
	if (comm)
		comm->holders++;
	pthread_mutex_unlock(&table_lock);
	return comm;
}

struct ncclComm *ckt_soft_nccl_comm_find(uint64_t number)
{
	pthread_mutex_lock(&table_lock);
	struct ncclComm *comm = table;
	while (comm && comm->number != number)
		comm = comm->next;
	if (comm)
		comm->holders++;
	pthread_mutex_unlock(&table_lock);
	return comm;
}

void ckt_soft_nccl_comm_put(struct ncclComm *comm)
{
	pthread_mutex_lock(&table_lock);
	bool last = --comm->holders == 0;
	pthread_mutex_unlock(&table_lock);
	if (!last)
		return;
	ckt_soft_nccl_mesh_fini(&comm->mesh);
	pthread_mutex_destroy(&comm->lock);
	pthread_cond_destroy(&comm->changed);
	pthread_mutex_destroy(&comm->control);
	pthread_mutex_destroy(&comm->running);
	pthread_mutex_destroy(&comm->issue);
	free(comm->ops);
	free(comm);
}

void ckt_soft_nccl_comm_remove(struct ncclComm *comm)
{
	bool found = false;
	pthread_mutex_lock(&table_lock);
	for (struct ncclComm **link = &table; *link; link = &(*link)->next) {
		if (*link == comm) {
			*link = comm->next;
			found = true;
			break;
		}
	}
	pthread_mutex_unlock(&table_lock);
	if (found)
		ckt_soft_nccl_comm_put(comm);
}

void ckt_soft_nccl_comm_done(struct ncclComm *comm, ncclResult_t result)
{
	pthread_mutex_lock(&comm->lock);
	if (comm->error == ncclSuccess)
		comm->error = result;
	if (result == ncclSuccess)
		comm->ready = true;
	comm->busy = false;
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
}

void ckt_soft_nccl_comm_fail(struct ncclComm *comm, ncclResult_t result)
{
	pthread_mutex_lock(&comm->lock);
	if (comm->error == ncclSuccess)
		comm->error = result;
	pthread_mutex_unlock(&comm->lock);
}

void ckt_soft_nccl_comm_wait_job(struct ncclComm *comm)
{
	pthread_mutex_lock(&comm->lock);
	while (comm->busy)
		pthread_cond_wait(&comm->changed, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
}

ncclResult_t ckt_soft_nccl_comm_state(struct ncclComm *comm)
{
	pthread_mutex_lock(&comm->lock);
	ncclResult_t result = comm->busy ? ncclInProgress : comm->error;
	pthread_mutex_unlock(&comm->lock);
	return result;
}

ncclResult_t ckt_soft_nccl_comm_usable(struct ncclComm *comm)
{
	ncclResult_t result = ncclSuccess;
	pthread_mutex_lock(&comm->lock);
	if (comm->busy || !comm->ready) {
		result = ncclInvalidArgument;
		ckt_soft_nccl_comm_say(
			"the communicator is busy with an earlier call: wait until ncclCommGetAsyncError no longer returns ncclInProgress");
	} else if (comm->error != ncclSuccess) {
		result = comm->error;
	} else if (comm->finalized || comm->revoked) {
		result = ncclInvalidUsage;
		ckt_soft_nccl_comm_say(
			"the communicator is %s", comm->finalized ? "finalized" : "revoked");
	}
	pthread_mutex_unlock(&comm->lock);
	return result;
}
