/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/metrics.c: what calls leave in the server's page, whatever thread they end
 * on; files that are no page; and nothing without one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/worker/libs/libs.h"
#include "server/worker/session/metrics.h"
#include "tests/unit/worker/inside.h"

static struct ckt_session_metrics *page;

static int file_new(off_t size)
{
	int fd = memfd_create("page", MFD_CLOEXEC);
	MUST(ftruncate(fd, size), 0);
	return fd;
}

static void begin(void)
{
	int fd = file_new(CKT_METRICS_PAGE_SIZE);
	page = mmap(NULL, CKT_METRICS_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CU_ASSERT_TRUE_FATAL(page != MAP_FAILED);
	MUST(ckt_worker_metrics_use(&ckt_worker, fd), 0);
}

/* The page stays mapped, as the worker's does. */
static void end(void)
{
	atomic_store(&ckt_worker_metrics_page, NULL);
}

static uint32_t index_of(const char *name)
{
	uint32_t i = 0;
	while (i < CKT_STATS && (!ckt_stat_name(i) || strcmp(ckt_stat_name(i), name) != 0))
		i++;
	CU_ASSERT_TRUE_FATAL(i < CKT_STATS);
	return i;
}

static struct ckt_wcall *call_new(const char *name, uint32_t flags)
{
	struct ckt_wcall *call = ckt_wcall_new(&ckt_worker);
	call->header = (struct ckt_call_header){
		.prog = CKT_CUDA_PROG, .vers = 1, .proc = index_of(name), .flags = flags};
	MUST(ckt_stat_index(CKT_CUDA_PROG, call->header.proc), call->header.proc);
	return call;
}

static void test_classes(void)
{
	static const struct {
		const char *name;
		enum ckt_call_class is;
	} calls[] = {{"launch_kernel", CKT_CLASS_LAUNCH}, {"graph_launch", CKT_CLASS_LAUNCH},
		{"ctx_synchronize", CKT_CLASS_WAIT}, {"stream_synchronize", CKT_CLASS_WAIT},
		{"event_query", CKT_CLASS_WAIT}, {"memcpy2d_dtoh", CKT_CLASS_COPY},
		{"memset", CKT_CLASS_COPY}, {"mem_alloc_async", CKT_CLASS_MEMORY},
		{"physical_create", CKT_CLASS_MEMORY}, {"module_unload", CKT_CLASS_MODULE},
		{"blob_data", CKT_CLASS_MODULE}, {"stream_create", CKT_CLASS_OTHER}};
	begin();
	for (size_t i = 0; i < COUNT(calls); i++) {
		uint64_t before = page->calls[calls[i].is];
		ckt_worker_metrics_call(index_of(calls[i].name), false, 10);
		IS(page->calls[calls[i].is], before + 1);
	}
	ckt_worker_metrics_call(CKT_STAT_LIBRARIES + 3, true, 10);
	IS(page->calls[CKT_CLASS_LIBRARY], 1);
	IS(page->waited[CKT_CLASS_LIBRARY], 1);
	IS(page->bytes_in[CKT_CLASS_LIBRARY], 10);
	ckt_worker_metrics_sent(CKT_STAT_LIBRARIES + 3, 7);
	IS(page->bytes_out[CKT_CLASS_LIBRARY], 7);
	ckt_worker_metrics_call(CKT_STATS, true, 10);
	ckt_worker_metrics_sent(UINT32_MAX, 10);
	end();
}

static uint64_t timed(enum ckt_call_class class)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < CKT_LATENCY_BUCKETS; i++)
		sum += page->latency[class][i];
	return sum;
}

static void test_ends(void)
{
	static const int results[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED,
		CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_UNKNOWN};
	static const enum ckt_call_failure kinds[] = {CKT_FAILURE_MEMORY, CKT_FAILURE_UNSUPPORTED,
		CKT_FAILURE_EXECUTION, CKT_FAILURE_INVALID, CKT_FAILURE_OTHER};
	static uint8_t sent[1 << 16];
	begin();
	struct ckt_wcall *call = call_new("ctx_synchronize", 0);
	ckt_worker_metrics_begin(call);
	YES(call->begun_ns > 0);
	ckt_wcall_finish(call, CUDA_SUCCESS);
	IS(timed(CKT_CLASS_WAIT), 1);
	YES(page->bytes_out[CKT_CLASS_WAIT] > 20);
	/* It took that long. */
	call = call_new("ctx_synchronize", 0);
	call->begun_ns = 1;
	ckt_wcall_finish(call, CUDA_ERROR_NOT_READY);
	IS(page->latency[CKT_CLASS_WAIT][CKT_LATENCY_BUCKETS - 1], 1);
	for (unsigned i = 0; i < CKT_CALL_FAILURES; i++)
		IS(page->failures[i], 0);
	for (size_t i = 0; i < COUNT(results); i++) {
		ckt_wcall_finish(call_new("launch_kernel", CKT_CALL_BATCHED), (CUresult)results[i]);
		IS(page->failures[kinds[i]], 1);
	}
	call = call_new("ctx_synchronize", 0);
	call->status = 7;
	ckt_wcall_finish(call, CUDA_SUCCESS);
	IS(page->failures[CKT_FAILURE_LIBRARY], 1);
	IS(timed(CKT_CLASS_LAUNCH), 0);
	atomic_store(&ckt_worker.deferred, 0);
	inside_sent(sent, sizeof sent);
	end();
}

static void test_gauges(void)
{
	begin();
	unsigned gpu = ckt_worker.devices[0].number;
	uint64_t before = page->memory_bytes[gpu];
	IS(before, ckt_memory_used(&ckt_worker.devices[0].memory));
	uint64_t address = inside_memory(5000, 0);
	IS(page->memory_bytes[gpu], ckt_memory_used(&ckt_worker.devices[0].memory));
	YES(page->memory_bytes[gpu] >= before + 5000);
	inside_free(address);
	IS(page->memory_bytes[gpu], ckt_memory_used(&ckt_worker.devices[0].memory));
	enum ckt_session_state state = ckt_worker.state;
	ckt_worker.state = CKT_STATE_ENDING;
	ckt_worker_metrics_state(&ckt_worker);
	IS(page->state, CKT_STATE_ENDING);
	ckt_worker.state = state;
	end();
}

static void test_none(void)
{
	static uint8_t sent[1 << 16];
	int fds[2];
	struct ckt_wcall *call = call_new("ctx_synchronize", 0);
	ckt_worker_metrics_begin(call);
	IS(call->begun_ns, 0);
	ckt_wcall_finish(call, CUDA_SUCCESS);
	inside_sent(sent, sizeof sent);
	ckt_worker_metrics_call(0, true, 1);
	ckt_worker_metrics_state(&ckt_worker);
	/* No page. */
	IS(ckt_worker_metrics_use(&ckt_worker, file_new(CKT_METRICS_PAGE_SIZE - 1)), -EINVAL);
	IS(ckt_worker_metrics_use(&ckt_worker, file_new(1 << 20)), -EINVAL);
	MUST(pipe(fds), 0);
	IS(ckt_worker_metrics_use(&ckt_worker, fds[0]), -EINVAL);
	IS(fcntl(fds[0], F_GETFD), -1);
	close(fds[1]);
	IS(ckt_worker_metrics_use(&ckt_worker, -1), -EBADF);
	CU_ASSERT_PTR_NULL(atomic_load(&ckt_worker_metrics_page));
}

UNIT_SUITE(worker_metrics, {"classes", test_classes}, {"ends", test_ends}, {"gauges", test_gauges},
	{"none", test_none})
