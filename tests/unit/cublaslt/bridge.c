/* SPDX-License-Identifier: Apache-2.0 */
/* See bridge.h. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/cublaslt/bridge.h"
#include "client/libs/libs.h"
#include "rpc/net.h"
#include "server/worker/objects/context.h"

int bridge_deferred;
bool bridge_sync, bridge_captures;
uint8_t *bridge_captured;
size_t bridge_captured_bytes;
unsigned bridge_captured_proc;
CUresult bridge_fails;
uint64_t bridge_addresses[32], bridge_moves;
unsigned bridge_address_count;
static unsigned sent[64], total, waited;
static uint8_t *message; /* of exactly its size, so that a write behind it is found */
static size_t message_bytes;
static uint8_t received[1 << 18];

unsigned bridge_sent(unsigned proc)
{
	return sent[proc];
}

unsigned bridge_total(void)
{
	return total;
}

unsigned bridge_waited(void)
{
	return waited;
}

void bridge_reset(void)
{
	memset(sent, 0, sizeof sent);
	total = waited = 0;
}

static CUresult enter(void)
{
	return CUDA_SUCCESS;
}

static uint64_t context(void)
{
	return ckt_handle_primary(0);
}

static CUresult begin(struct ckt_call *call, uint32_t proc, size_t args_bytes, unsigned flags)
{
	if (bridge_fails)
		return bridge_fails;
	MUST(proc >> 16, CKT_LIB_CUBLASLT);
	sent[(proc & 0xffff) % 64]++;
	total++;
	free(message);
	message = malloc(args_bytes + !args_bytes);
	message_bytes = args_bytes;
	*call = (struct ckt_call){.p = message, .xid = proc & 0xffff, .flags = flags};
	return CUDA_SUCCESS;
}

/* As the executor runs it; the reply's CUresult, its results in *ret_results. */
static int deliver(unsigned proc, const uint8_t *bytes, size_t size, bool batched,
	struct ckt_cursor *ret_results)
{
	static uint32_t xid = 1000000;
	struct ckt_worker *worker = &ckt_worker;
	struct ckt_wcall *call = ckt_wcall_new(worker);
	const struct ckt_library *library = ckt_library_of(CKT_LIB_CUBLASLT);
	struct ckt_reply_header header;
	MUST(proc < *library->proc_count && library->procs[proc].name != NULL, true);
	uint8_t *copy = malloc(size + !size);
	memcpy(copy, bytes, size);
	call->proc = &library->procs[proc];
	YES(!batched || call->proc->flags & CKT_PROC_BATCHED);
	call->header = (struct ckt_call_header){.xid = ++xid,
		.prog = CKT_LIB_PROG + CKT_LIB_CUBLASLT,
		.vers = CKT_LIB_VERS,
		.proc = proc,
		.flags = batched ? CKT_CALL_BATCHED : 0,
		.context = ckt_handle_primary(0)};
	call->args = (struct ckt_cursor){.p = copy, .end = copy + size};
	ckt_worker_use_context(worker, call->header.context);
	/* What would be done beside the executor is done at once. */
	worker->go = false;
	int result = call->proc->handler(call);
	worker->go = true;
	free(copy);
	if (result == CKT_WCALL_GARBAGE) {
		ckt_wcall_free(call);
		return INSIDE_GARBAGE;
	}
	ckt_wcall_finish(call, (CUresult)result);
	if (batched) {
		int deferred = atomic_exchange(&worker->deferred, 0);
		if (deferred)
			bridge_deferred = deferred;
		return result;
	}
	size_t n = inside_sent(received, sizeof received);
	*ret_results = (struct ckt_cursor){.p = received + CKT_MARK_SIZE, .end = received + n};
	MUST(n && ckt_reply_header_get(ret_results, &header) && header.xid == xid, true);
	return (int)ckt_get_u32(ret_results);
}

/* With CRICKET_SYNC=1 a batched call is waited for and has its status. */
static CUresult queue_status(struct ckt_call *call, int *ret_status)
{
	struct ckt_cursor results;
	*ret_status = 0;
	CUresult result =
		(CUresult)deliver(call->xid, message, message_bytes, !bridge_sync, &results);
	if (!bridge_sync)
		return CUDA_SUCCESS;
	if (!result)
		*ret_status = (int)ckt_get_u32(&results);
	return result;
}

static CUresult wait(struct ckt_call *call, struct ckt_reply *ret_reply)
{
	waited++;
	return (CUresult)deliver(call->xid, message, message_bytes, false, &ret_reply->results);
}

static void release(struct ckt_reply *reply)
{
	(void)reply;
	/* What is read after this is read too late. */
	memset(received, 0xdd, sizeof received);
}

/* What would be a node of the graph: kept, for a test to have it run. */
static CUresult capture(uint64_t stream, uint32_t proc, const void *args, size_t size,
	uint64_t workspace, bool *ret_captured)
{
	(void)stream;
	MUST(proc >> 16, CKT_LIB_CUBLASLT);
	/* The program gives workspaces itself. */
	IS(workspace, 0);
	*ret_captured = bridge_captures;
	if (!bridge_captures)
		return CUDA_SUCCESS;
	free(bridge_captured);
	bridge_captured = malloc(size);
	memcpy(bridge_captured, args, size);
	bridge_captured_bytes = size;
	bridge_captured_proc = proc & 0xffff;
	return CUDA_SUCCESS;
}

static CUresult before_work(uint64_t stream, uint64_t *addresses, unsigned count)
{
	(void)stream;
	if (bridge_captures)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	memcpy(bridge_addresses, addresses, count * sizeof *addresses);
	bridge_address_count = count;
	for (unsigned i = 0; i < count; i++)
		if (addresses[i] >= 0x7f0000000000)
			addresses[i] += bridge_moves;
	return CUDA_SUCCESS;
}

static CUresult stream_id(CUstream stream, uint64_t *ret_id)
{
	*ret_id = (uintptr_t)stream;
	return CUDA_SUCCESS;
}

static uint64_t object_make(void)
{
	static unsigned made;
	return ID(LIB_OBJECT, 100 + made++);
}

static void object_drop(uint64_t id)
{
	(void)id;
}

static void unsupported(const char *name, bool *once)
{
	(void)name;
	*once = true;
}

static const struct ckt_client_table table = {
	.version = CKT_CLIENT_TABLE_VERSION,
	.size = sizeof table,
	.enter = enter,
	.context = context,
	.begin = begin,
	.queue_status = queue_status,
	.wait = wait,
	.release = release,
	.before_work = before_work,
	.stream = stream_id,
	.object_make = object_make,
	.object_drop = object_drop,
	.unsupported = unsupported,
	.capture = capture,
};

cublasLtHandle_t bridge_handle(void)
{
	static cublasLtHandle_t handle;
	if (handle)
		return handle;
	ckt_client_found = &table;
	double_install();
	MUST(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
	double_calls();
	return handle;
}

int bridge_raw(unsigned proc, const uint8_t *bytes, size_t size, bool batched)
{
	struct ckt_cursor ignored;
	return deliver(proc, bytes, size, batched, &ignored);
}
