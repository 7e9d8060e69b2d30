/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL in the worker: the library as a whole; see nccl.h. */
#include "server/worker/libs/nccl/nccl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "server/worker/libs/nccl/nccl_meeting.h"
#include "server/worker/session/blocking_call.h"
#include "server/worker/worker.h"

_Static_assert(sizeof(ncclUniqueId) == CKT_NCCL_ID_BYTES, "an id is what rpc/nccl.h says");
_Static_assert(offsetof(ncclConfig_t, nvlinkCentricSched) ==
		offsetof(struct ckt_nccl_config, nvlink_centric),
	"a config is what rpc/nccl.h says");

_Static_assert((int)CKT_NCCL_COMM_PROC == (int)CKT_NCCL_PROC_NCCL_COMM,
	"a communicator is made by what rpc/nccl.h says");

static _Atomic uint64_t issued;

uint64_t ckt_worker_nccl_issued(struct ckt_worker *worker)
{
	(void)worker;
	return issued;
}

void ckt_worker_nccl_count(uint64_t operations)
{
	issued += operations;
}

/*
 * Runs before NCCL reads its environment.  RUNTIME_CONNECT=0: connecting waits for the peers, so
 * NCCL connects when it creates a communicator and not in a collective, which the executor runs.
 * REGISTER=0 and WIN_ENABLE=0: other workers would map registered memory, and they would map the
 * whole extent instead of the block.  NVLS_ENABLE=0: the operator may allow multicast in the
 * server's environment.  DEBUG_FILE: what NCCL_DEBUG asks for is no kernel's text.
 */
static void set_environment(void)
{
	setenv("NCCL_RUNTIME_CONNECT", "0", 1);
	setenv("NCCL_LOCAL_REGISTER", "0", 1);
	setenv("NCCL_GRAPH_REGISTER", "0", 1);
	setenv("NCCL_WIN_ENABLE", "0", 1);
	setenv("NCCL_NVLS_ENABLE", "0", 0);
	if (*ckt_worker.printed.library_file)
		setenv("NCCL_DEBUG_FILE", ckt_worker.printed.library_file, 1);
}

/*
 * A unique id holds a thread and a socket of the library until all ranks have met, perhaps forever;
 * a communicator has about three threads.  The limit is more than a program with hundreds of
 * communicators needs, and less than a user's limit on a node, where all sessions are one user.
 */
enum { THREADS_MAX = 2048, DESCRIPTORS_LEFT = 128 };

bool ckt_worker_nccl_has_room(void)
{
	char text[1024];
	static bool once;
	struct rlimit limit;
	unsigned threads = 0;
	/*
	 * The kernel hands out the lowest free descriptor, so this descriptor shows how many are in
	 * use.
	 */
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	/*
	 * The process name may contain anything, so count from its ')': field 20 is the 18th after
	 * it.
	 */
	const char *p = strrchr(text, ')');
	for (int field = 2; p && field < 20; field++)
		p = strchr(p + 1, ' ');
	if (p)
		threads = (unsigned)strtoul(p + 1, NULL, 10);
	bool room = fd >= 0 && p && threads < THREADS_MAX && !getrlimit(RLIMIT_NOFILE, &limit) &&
		(limit.rlim_cur == RLIM_INFINITY || (rlim_t)fd + DESCRIPTORS_LEFT < limit.rlim_cur);
	if (!room && !once)
		ckt_warning("NCCL has taken %u threads and %d descriptors for this "
			    "session: the session gets no further communicators and unique "
			    "IDs",
			threads, fd);
	once |= !room;
	return room;
}

/* The open calls this function first, whoever opens the library, so it prepares the library. */
static uint32_t version(void)
{
	int value = 0;
	set_environment();
	ckt_worker_nccl_meet_in_group((void *)ckt_nccl.ncclGetUniqueId);
	return ckt_nccl.ncclGetVersion && !ckt_nccl.ncclGetVersion(&value) ? (uint32_t)value : 0;
}

static void destroy(struct ckt_worker *worker, struct ckt_object *object)
{
	(void)worker;
	if (object->library->type == CKT_NCCL_TYPE_COMM && object->real)
		ckt_worker_nccl_comm_end(object);
}

const struct ckt_library ckt_library_nccl = {
	.name = "nccl",
	.soname = "libnccl.so",
	.lib = CKT_LIB_NCCL,
	.procs = ckt_nccl_procs,
	.proc_count = &ckt_nccl_proc_count,
	.functions = &ckt_nccl_functions,
	.version = version,
	.destroy = destroy,
	.loaded = ckt_worker_nccl_loaded,
};

int ckt_worker_nccl_unique_id_make(struct ckt_worker *worker, uint8_t ret_id[CKT_NCCL_ID_BYTES],
	char *ret_message, size_t message_size)
{
	if (ckt_library_open(worker, &ckt_library_nccl, 0, ret_message, message_size))
		return -ENOENT;
	ncclResult_t status = ckt_nccl.ncclGetUniqueId
		? ckt_nccl.ncclGetUniqueId((ncclUniqueId *)ret_id)
		: ncclInvalidUsage;
	if (!status)
		return 0;
	snprintf(ret_message, message_size, "NCCL cannot make a unique ID: %s",
		ckt_nccl.ncclGetErrorString ? ckt_nccl.ncclGetErrorString(status)
					    : "unknown error");
	return -EIO;
}

/* ---- Handlers */

int ckt_worker_nccl_open(struct ckt_wcall *call)
{
	return ckt_library_open_call(call, &ckt_library_nccl);
}

/* The first unique id makes NCCL look for networks. */
struct identifying {
	struct ckt_long_call_job base;
	struct ckt_wcall *call;
	ncclUniqueId id;
	int status;
};

static void identifying_run(struct ckt_long_call_job *job)
{
	struct identifying *i = (struct identifying *)job;
	if (!ckt_worker_nccl_has_room())
		i->status = ncclSystemError;
	else
		i->status = ckt_nccl.ncclGetUniqueId ? (int)ckt_nccl.ncclGetUniqueId(&i->id)
						     : (int)ncclInvalidUsage;
}

static void identifying_finish(struct ckt_worker *worker, struct ckt_long_call_job *job)
{
	struct identifying *i = (struct identifying *)job;
	struct ckt_ncclGetUniqueId_res res = {
		.status = i->status, .id = (const uint8_t *)&i->id, .id_len = CKT_NCCL_ID_BYTES};
	(void)worker;
	ckt_ncclGetUniqueId_res_put(
		ckt_wcall_results(i->call, ckt_ncclGetUniqueId_res_size(&res)), &res);
	ckt_wcall_finish(i->call, CUDA_SUCCESS);
	free(i);
}

int ckt_worker_ncclGetUniqueId(struct ckt_wcall *call)
{
	if (!ckt_cursor_done(&call->args))
		return CKT_WCALL_GARBAGE;
	if (!call->worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct identifying *i = calloc(1, sizeof *i);
	if (!i)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*i = (struct identifying){
		.base = {.run = identifying_run, .finish = identifying_finish}, .call = call};
	if (ckt_blocking_call_submit(call->worker, &i->base)) {
		free(i);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CKT_WCALL_LATER;
}

/* A communicator of one rank loads the same kernels as any other. */
static ncclResult_t load(void)
{
	ncclUniqueId id;
	ncclComm_t comm = NULL;
	if (!ckt_nccl.ncclGetUniqueId || !ckt_nccl.ncclCommInitRank || !ckt_nccl.ncclCommDestroy)
		return ncclInvalidUsage;
	if (!ckt_worker_nccl_has_room())
		return ncclSystemError;
	ncclResult_t status = ckt_nccl.ncclGetUniqueId(&id);
	if (!status)
		status = ckt_nccl.ncclCommInitRank(&comm, 1, id, 0);
	if (!status)
		status = ckt_nccl.ncclCommDestroy(comm);
	return status;
}

int ckt_worker_nccl_load(struct ckt_wcall *call)
{
	struct ckt_nccl_load_args args;
	struct ckt_object *object;
	if (!ckt_nccl_load_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_nccl_load_res res = {.status = (int32_t)load()};
	call->status = res.status;
	if (!res.status) {
		CUresult result = ckt_library_object_add(call->worker, &ckt_library_nccl,
			CKT_NCCL_TYPE_LOADED, args.id, NULL, NULL, &object);
		if (result)
			return (int)result;
	}
	if (!(call->header.flags & CKT_CALL_BATCHED))
		ckt_nccl_load_res_put(ckt_wcall_results(call, ckt_nccl_load_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_ncclCommGetAsyncError(struct ckt_wcall *call)
{
	struct ckt_ncclCommGetAsyncError_args args;
	struct ckt_nccl_comm *comm;
	ncclResult_t error = ncclInProgress;
	if (!ckt_ncclCommGetAsyncError_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_nccl_comm_find(call->worker, args.comm, &comm);
	if (result)
		return (int)result;
	struct ckt_ncclCommGetAsyncError_res res = {0};
	ncclComm_t real = comm->freed ? NULL : comm->real;
	if (!comm->pending) {
		error = comm->status ? (ncclResult_t)comm->status : (ncclResult_t)comm->failed;
		if (!error && real && ckt_nccl.ncclCommGetAsyncError)
			res.status = (int32_t)ckt_nccl.ncclCommGetAsyncError(real, &error);
	}
	res.error = (int32_t)error;
	ckt_ncclCommGetAsyncError_res_put(
		ckt_wcall_results(call, ckt_ncclCommGetAsyncError_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_ncclGetLastError(struct ckt_wcall *call)
{
	struct ckt_ncclGetLastError_args args;
	struct ckt_nccl_comm *comm = NULL;
	if (!ckt_ncclGetLastError_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = args.comm ? ckt_worker_nccl_comm_find(call->worker, args.comm, &comm)
				    : CUDA_SUCCESS;
	if (result)
		return (int)result;
	/* NCCL returns the process's last error for any communicator. */
	const char *text = ckt_nccl.ncclGetLastError ? ckt_nccl.ncclGetLastError(NULL) : "";
	struct ckt_ncclGetLastError_res res = {.text = (const uint8_t *)text,
		.text_len = (uint32_t)strnlen(text, CKT_NCCLGETLASTERROR_RES_TEXT_MAX)};
	ckt_ncclGetLastError_res_put(
		ckt_wcall_results(call, ckt_ncclGetLastError_res_size(&res)), &res);
	return CUDA_SUCCESS;
}
