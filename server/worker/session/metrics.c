/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's counts for --metrics; see metrics.h. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/worker/libs/libs.h"
#include "server/worker/session/metrics.h"
#include "server/worker/worker.h"

struct ckt_session_metrics *_Atomic ckt_worker_metrics_page;

static uint8_t classes[CKT_STATS]; /* enum ckt_call_class of each index */

/* Parts of names; the first that fits decides. */
static const struct {
	const char *part;
	enum ckt_call_class is;
} parts[] = {
	{"synchronize", CKT_CLASS_WAIT},
	{"stream_query", CKT_CLASS_WAIT},
	{"event_query", CKT_CLASS_WAIT},
	{"launch", CKT_CLASS_LAUNCH},
	{"stream_mem_ops", CKT_CLASS_OTHER},
	{"memcpy", CKT_CLASS_COPY},
	{"lane_", CKT_CLASS_COPY},
	{"memset", CKT_CLASS_COPY},
	{"module", CKT_CLASS_MODULE},
	{"blob", CKT_CLASS_MODULE},
	{"link", CKT_CLASS_MODULE},
	{"function", CKT_CLASS_MODULE},
	{"mem_", CKT_CLASS_MEMORY},
	{"pool_", CKT_CLASS_MEMORY},
	{"array_", CKT_CLASS_MEMORY},
	{"address_", CKT_CLASS_MEMORY},
	{"physical_", CKT_CLASS_MEMORY},
};

static enum ckt_call_class class_of(uint32_t index)
{
	const char *name = index >= CKT_STAT_LIBRARIES ? NULL : ckt_stat_name(index);
	if (index >= CKT_STAT_LIBRARIES)
		return CKT_CLASS_LIBRARY;
	for (size_t i = 0; name && i < sizeof parts / sizeof *parts; i++)
		if (strstr(name, parts[i].part))
			return parts[i].is;
	return CKT_CLASS_OTHER;
}

static const struct {
	CUresult result;
	enum ckt_call_failure is;
} results[] = {
	{CUDA_ERROR_OUT_OF_MEMORY, CKT_FAILURE_MEMORY},
	{CUDA_ERROR_NOT_SUPPORTED, CKT_FAILURE_UNSUPPORTED},
	{CUDA_ERROR_ILLEGAL_ADDRESS, CKT_FAILURE_EXECUTION},
	{CUDA_ERROR_LAUNCH_FAILED, CKT_FAILURE_EXECUTION},
	{CUDA_ERROR_LAUNCH_TIMEOUT, CKT_FAILURE_EXECUTION},
	{CUDA_ERROR_ASSERT, CKT_FAILURE_EXECUTION},
	{CUDA_ERROR_HARDWARE_STACK_ERROR, CKT_FAILURE_EXECUTION},
	{CUDA_ERROR_ILLEGAL_INSTRUCTION, CKT_FAILURE_EXECUTION},
	{CUDA_ERROR_MISALIGNED_ADDRESS, CKT_FAILURE_EXECUTION},
	{CUDA_ERROR_INVALID_ADDRESS_SPACE, CKT_FAILURE_EXECUTION},
	{CUDA_ERROR_INVALID_PC, CKT_FAILURE_EXECUTION},
	{CUDA_ERROR_ECC_UNCORRECTABLE, CKT_FAILURE_EXECUTION},
	{CUDA_ERROR_NVLINK_UNCORRECTABLE, CKT_FAILURE_EXECUTION},
	/* of another client of its MPS */
	{CUDA_ERROR_MPS_RPC_FAILURE, CKT_FAILURE_EXECUTION},
	{CUDA_ERROR_MPS_CLIENT_TERMINATED, CKT_FAILURE_EXECUTION},
	{CUDA_ERROR_INVALID_VALUE, CKT_FAILURE_INVALID},
	{CUDA_ERROR_INVALID_DEVICE, CKT_FAILURE_INVALID},
	{CUDA_ERROR_INVALID_IMAGE, CKT_FAILURE_INVALID},
	{CUDA_ERROR_INVALID_CONTEXT, CKT_FAILURE_INVALID},
	{CUDA_ERROR_INVALID_HANDLE, CKT_FAILURE_INVALID},
	{CUDA_ERROR_INVALID_SOURCE, CKT_FAILURE_INVALID},
	{CUDA_ERROR_INVALID_PTX, CKT_FAILURE_INVALID},
	{CUDA_ERROR_NOT_FOUND, CKT_FAILURE_INVALID},
};

static enum ckt_call_failure failure_of(int result)
{
	for (size_t i = 0; i < sizeof results / sizeof *results; i++)
		if ((int)results[i].result == result)
			return results[i].is;
	return CKT_FAILURE_OTHER;
}

bool ckt_worker_metrics_is_fault(int result)
{
	return failure_of(result) == CKT_FAILURE_EXECUTION;
}

static void add(uint64_t *count, uint64_t by)
{
	__atomic_fetch_add(count, by, __ATOMIC_RELAXED);
}

static struct ckt_session_metrics *page_now(void)
{
	return atomic_load_explicit(&ckt_worker_metrics_page, memory_order_acquire);
}

int ckt_worker_metrics_use(struct ckt_worker *worker, int fd)
{
	struct stat status;
	void *place = MAP_FAILED;
	int result = fstat(fd, &status) ? -errno : 0;
	if (!result && (!S_ISREG(status.st_mode) || status.st_size != CKT_METRICS_PAGE_SIZE))
		result = -EINVAL;
	if (!result)
		place = mmap(
			NULL, CKT_METRICS_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!result && place == MAP_FAILED)
		result = -errno;
	close(fd);
	if (result)
		return result;
	for (uint32_t i = 0; i < CKT_STATS; i++)
		classes[i] = (uint8_t)class_of(i);
	/* An earlier server's page stays mapped: another thread may be counting into it. */
	pthread_mutex_lock(&worker->mail_lock);
	atomic_store_explicit(&ckt_worker_metrics_page, place, memory_order_release);
	ckt_worker_metrics_state(worker);
	pthread_mutex_unlock(&worker->mail_lock);
	for (unsigned d = 0; d < worker->device_count; d++)
		if (worker->devices[d].memory.ops && worker->devices[d].number < CKT_DEVICES_MAX)
			ckt_memory_tell(&worker->devices[d].memory,
				&page_now()->memory_bytes[worker->devices[d].number]);
	return 0;
}

void ckt_worker_metrics_state(const struct ckt_worker *worker)
{
	struct ckt_session_metrics *page = page_now();
	if (page)
		__atomic_store_n(&page->state, (uint64_t)worker->state, __ATOMIC_RELAXED);
}

void ckt_worker_metrics_call(uint32_t index, bool waited, size_t bytes)
{
	struct ckt_session_metrics *page = page_now();
	if (__builtin_expect(!page, 1) || index >= CKT_STATS)
		return;
	unsigned class = classes[index];
	add(&page->calls[class], 1);
	if (waited)
		add(&page->waited[class], 1);
	add(&page->bytes_in[class], bytes);
}

void ckt_worker_metrics_sent(uint32_t index, size_t bytes)
{
	struct ckt_session_metrics *page = page_now();
	if (__builtin_expect(page != NULL, 0) && index < CKT_STATS)
		add(&page->bytes_out[classes[index]], bytes);
}

void ckt_worker_metrics_begin(struct ckt_wcall *call)
{
	if (__builtin_expect(page_now() != NULL, 0))
		call->begun_ns = ckt_now_ns();
}

/* Of the first bucket that is not too small; see CKT_LATENCY_FIRST_NS. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned bucket = 0;
	uint64_t bound = CKT_LATENCY_FIRST_NS;
	while (bucket < CKT_LATENCY_BUCKETS - 1 && ns > bound) {
		bound *= 4;
		bucket++;
	}
	return bucket;
}

void ckt_worker_metrics_end(const struct ckt_wcall *call, int result)
{
	struct ckt_session_metrics *page = page_now();
	if (__builtin_expect(!page, 1))
		return;
	if (result && result != CUDA_ERROR_NOT_READY)
		add(&page->failures[failure_of(result)], 1);
	else if (call->status)
		add(&page->failures[CKT_FAILURE_LIBRARY], 1);
	uint32_t index = ckt_stat_index(call->header.prog, call->header.proc);
	if (!call->begun_ns || index >= CKT_STATS)
		return;
	int64_t took = ckt_now_ns() - call->begun_ns;
	uint64_t ns = took > 0 ? (uint64_t)took : 0;
	add(&page->latency_ns[classes[index]], ns);
	add(&page->latency[classes[index]][bucket_of(ns)], 1);
}
