/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/call_trace.c: what a trace holds, its bounds, and who reads it.
 */
#include "server/worker/session/call_trace.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpc/trace_page.h"
#include "server/worker/session/call.h"
#include "tests/unit/worker/inside.h"

static char message[CKT_MESSAGE_MAX];
static ckt_worker_trace_res res;

/* The answer stays readable: no other thread asks in this test. */
static int ask(ckt_trace_action action, uint64_t trace)
{
	ckt_worker_trace_args args = {.action = action, .trace = trace};
	ckt_call_trace_lock();
	ckt_call_trace_serve(&ckt_worker, &args, &res, message);
	ckt_call_trace_unlock();
	return res.status;
}

/* A command that begins, as the executor begins it; answered by ckt_wcall_free. */
static struct ckt_wcall *begun(uint32_t proc, const uint8_t *args, size_t size, uint32_t flags)
{
	struct ckt_wcall *call = ckt_wcall_new(&ckt_worker);
	call->header = (struct ckt_call_header){
		.prog = CKT_CUDA_PROG, .vers = 1, .proc = proc, .thread = 7, .flags = flags};
	call->proc = &ckt_cuda_procs[proc];
	call->args = (struct ckt_cursor){.p = args, .end = args + size};
	CU_ASSERT_PTR_NULL(ckt_call_trace_begin(call));
	return call;
}

static void command(uint32_t proc, const uint8_t *args, size_t size, uint32_t flags)
{
	struct ckt_wcall *call = begun(proc, args, size, flags);
	ckt_call_trace_end(call);
	CU_ASSERT_PTR_NULL(call->traced);
	ckt_wcall_free(call);
}

static void test_records(void)
{
	uint8_t buffer[256];
	struct ckt_launch_kernel_args launch = {.function = 12345,
		.grid_x = 5,
		.grid_y = 6,
		.grid_z = 7,
		.block_x = 32,
		.block_y = 2,
		.block_z = 1,
		.stream = 2,
		.params = buffer};
	NO(atomic_load(&ckt_call_trace_on));
	IS(ask(CKT_TRACE_ACTION_START, 0), 0);
	uint64_t trace = res.trace;
	YES(atomic_load(&ckt_call_trace_on));
	ckt_launch_kernel_args_put(buffer, &launch);
	size_t size = ckt_launch_kernel_args_size(&launch);
	command(CKT_PROC_LAUNCH_KERNEL, buffer, size, CKT_CALL_BATCHED);
	/* What a client cut off is a record without a kernel. */
	command(CKT_PROC_LAUNCH_KERNEL, buffer, 3, CKT_CALL_BATCHED);
	struct ckt_memcpy_dtoh_args copy = {.src = 1, .size = 4000, .stream = 1};
	ckt_memcpy_dtoh_args_put(buffer, &copy);
	command(CKT_PROC_MEMCPY_DTOH, buffer, ckt_memcpy_dtoh_args_size(&copy), 0);
	IS(ask(CKT_TRACE_ACTION_READ, trace), 0);
	MUST(res.calls.calls_len, 3);
	const ckt_traced_call *call = res.calls.calls_val;
	TEXT(call[0].name, "launch_kernel");
	TEXT(call[0].kernel, "");
	IS(call[0].grid[2], 7);
	IS(call[0].block[0], 32);
	IS(call[0].stream, 2);
	IS(call[0].thread, 7);
	IS(call[0].flags, CKT_TRACED_LAUNCH | CKT_TRACED_STREAM);
	YES(call[0].start_ns > 0 && call[0].duration_ns >= 0);
	IS(call[1].bytes, 3);
	IS(call[2].flags, CKT_TRACED_WAITED | CKT_TRACED_STREAM);
	IS(call[2].bytes, 4000);
	NO(res.more);
	IS(ask(CKT_TRACE_ACTION_STOP, trace), 0);
	IS(res.calls.calls_len, 0);
	NO(atomic_load(&ckt_call_trace_on));
	/* It has ended. */
	IS(ask(CKT_TRACE_ACTION_READ, trace), -ESRCH);
	IS(ask(CKT_TRACE_ACTION_STOP, trace), -ESRCH);
}

static void test_one_at_a_time(void)
{
	IS(ask(CKT_TRACE_ACTION_START, 0), 0);
	uint64_t trace = res.trace;
	IS(ask(CKT_TRACE_ACTION_START, 0), -EBUSY);
	HAS(message, "being traced already");
	/* Another one's number, and what is no request, change nothing. */
	IS(ask(CKT_TRACE_ACTION_STOP, trace + 1), -ESRCH);
	IS(ask(CKT_TRACE_ACTION_READ, trace - 1), -ESRCH);
	IS(ask(3, trace), -EINVAL);
	YES(atomic_load(&ckt_call_trace_on));
	IS(ask(CKT_TRACE_ACTION_STOP, trace), 0);
	IS(ask(CKT_TRACE_ACTION_START, 0), 0);
	YES(res.trace != trace);
	IS(ask(CKT_TRACE_ACTION_STOP, res.trace), 0);
}

/* The memory is bounded: what does not fit is counted, and what is left comes after STOP. */
static void test_bound(void)
{
	unsigned read = 0;
	uint8_t none[8] = {0};
	IS(ask(CKT_TRACE_ACTION_START, 0), 0);
	uint64_t trace = res.trace;
	for (unsigned i = 0; i < CKT_CALL_TRACE_RING + 100u; i++)
		command(CKT_PROC_CTX_SYNCHRONIZE, none, 8, 0);
	IS(ask(CKT_TRACE_ACTION_READ, trace), 0);
	IS(res.dropped, 100);
	IS(res.calls.calls_len, CKT_TRACED_MAX);
	read += res.calls.calls_len;
	IS(ask(CKT_TRACE_ACTION_STOP, trace), 0);
	IS(res.dropped, 0);
	for (read += res.calls.calls_len; res.more; read += res.calls.calls_len)
		MUST(ask(CKT_TRACE_ACTION_READ, trace), 0);
	IS(read, CKT_CALL_TRACE_RING);
	IS(ask(CKT_TRACE_ACTION_READ, trace), -ESRCH);
}

/* A command that outlives its trace, or is given up, leaves nothing. */
static void test_late(void)
{
	uint8_t none[8] = {0};
	IS(ask(CKT_TRACE_ACTION_START, 0), 0);
	struct ckt_wcall *late = begun(CKT_PROC_CTX_SYNCHRONIZE, none, 8, 0);
	struct ckt_wcall *dropped = begun(CKT_PROC_CTX_SYNCHRONIZE, none, 8, 0);
	YES(late->traced && dropped->traced);
	ckt_wcall_free(dropped);
	IS(ask(CKT_TRACE_ACTION_STOP, res.trace), 0);
	IS(res.calls.calls_len, 0);
	ckt_call_trace_end(late);
	ckt_wcall_free(late);
	ckt_call_trace_issued(NULL);
	ckt_call_trace_linger(NULL);
}

static ckt_gpu_trace_res gpu;

static int ask_as_client(ckt_trace_action action, uint64_t trace)
{
	ckt_gpu_trace_args args = {.action = action, .trace = trace};
	YES(ckt_call_trace_try_lock());
	ckt_call_trace_serve_client(&ckt_worker, &args, &gpu);
	ckt_call_trace_unlock();
	return gpu.status;
}

/* The client's own: no commands, no end without readers, and neither reads the other's. */
static void test_of_client(void)
{
	uint8_t none[8] = {0};
	IS(ask_as_client(CKT_TRACE_ACTION_START, 0), 0);
	uint64_t trace = gpu.trace;
	YES(gpu.now_ns > 0);
	YES(atomic_load(&ckt_call_trace_on));
	IS(ask(CKT_TRACE_ACTION_START, 0), -EBUSY);
	HAS(message, "CRICKET_TRACE_GPU=1");
	IS(ask(CKT_TRACE_ACTION_READ, trace), -ESRCH);
	IS(ask(CKT_TRACE_ACTION_STOP, trace), -ESRCH);
	struct ckt_wcall *call = begun(CKT_PROC_CTX_SYNCHRONIZE, none, 8, 0);
	CU_ASSERT_PTR_NULL(call->traced);
	ckt_wcall_free(call);
	IS(ask_as_client(CKT_TRACE_ACTION_READ, trace + 1), -ESRCH);
	IS(ask_as_client(7, trace), -EINVAL);
	IS(ask_as_client(CKT_TRACE_ACTION_READ, trace), 0);
	IS(gpu.calls.calls_len, 0);
	IS(gpu.dropped + gpu.pending + (uint64_t)gpu.more, 0);
	IS(ask_as_client(CKT_TRACE_ACTION_STOP, trace), 0);
	NO(atomic_load(&ckt_call_trace_on));
	IS(ask(CKT_TRACE_ACTION_START, 0), 0);
	IS(ask_as_client(CKT_TRACE_ACTION_START, 0), -EBUSY);
	IS(ask_as_client(CKT_TRACE_ACTION_STOP, res.trace), -ESRCH);
	IS(ask(CKT_TRACE_ACTION_STOP, res.trace), 0);
	/* An answer of the other kind is on its way: the executor does not wait. */
	ckt_call_trace_lock();
	NO(ckt_call_trace_try_lock());
	ckt_call_trace_unlock();
}

/* As ask, and the answer comes to the server, or does not. */
static int ask_and(bool sent, ckt_trace_action action, uint64_t trace)
{
	int status = ask(action, trace);
	ckt_call_trace_sent(sent);
	return status;
}

/* What nobody has read is in the page, whatever becomes of the worker. */
static void test_page(void)
{
	uint8_t none[8] = {0};
	int fd = memfd_create("page", MFD_CLOEXEC), small = memfd_create("small", MFD_CLOEXEC);
	MUST(ftruncate(fd, CKT_TRACE_PAGE_SIZE) || ftruncate(small, 8), 0);
	const struct ckt_trace_page *page =
		mmap(NULL, CKT_TRACE_PAGE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	MUST(page != MAP_FAILED, true);
	IS(ask_and(true, CKT_TRACE_ACTION_START, 0), 0);
	uint64_t trace = res.trace;
	command(CKT_PROC_CTX_SYNCHRONIZE, none, 8, 0);
	IS(ckt_call_trace_use_page(small), -EINVAL);
	IS(ckt_call_trace_use_page(-1), -EBADF);
	IS(ckt_call_trace_use_page(fd), 0);
	IS(page->unread, 1);
	command(CKT_PROC_CTX_SYNCHRONIZE, none, 8, 0);
	IS(page->unread, 2);
	/* Until the answer has been sent; one that has not is a loss, of which the next one tells. */
	IS(ask(CKT_TRACE_ACTION_READ, trace), 0);
	IS(res.calls.calls_len, 2);
	IS(page->unread, 2);
	ckt_call_trace_sent(false);
	IS(page->unread, 2);
	IS(ask_and(true, CKT_TRACE_ACTION_READ, trace), 0);
	IS(res.calls.calls_len, 0);
	IS(res.dropped, 2);
	IS(page->unread, 0);
	for (unsigned i = 0; i < CKT_CALL_TRACE_RING + 100u; i++)
		command(CKT_PROC_CTX_SYNCHRONIZE, none, 8, 0);
	IS(page->unread, CKT_CALL_TRACE_RING + 100);
	IS(ask_and(true, CKT_TRACE_ACTION_STOP, trace), 0);
	IS(page->unread, CKT_CALL_TRACE_RING - CKT_TRACED_MAX);
	while (res.more)
		MUST(ask_and(true, CKT_TRACE_ACTION_READ, trace), 0);
	IS(page->unread, 0);
	/* It is of that trace alone, and has a last word. */
	IS(ask_and(true, CKT_TRACE_ACTION_START, 0), 0);
	IS(ckt_call_trace_use_page(fd), 0);
	command(CKT_PROC_CTX_SYNCHRONIZE, none, 8, 0);
	IS(ask_and(false, CKT_TRACE_ACTION_STOP, res.trace), 0);
	IS(page->unread, 1);
	IS(ask_and(true, CKT_TRACE_ACTION_READ, res.trace), -ESRCH);
	IS(page->unread, 1);
	IS(ask_and(true, CKT_TRACE_ACTION_START, 0), 0);
	command(CKT_PROC_CTX_SYNCHRONIZE, none, 8, 0);
	IS(ask_and(true, CKT_TRACE_ACTION_STOP, res.trace), 0);
	IS(page->unread, 1);
	munmap((void *)page, CKT_TRACE_PAGE_SIZE);
	close(fd);
	close(small);
}

static _Atomic bool lingered;

static void *linger(void *unused)
{
	(void)unused;
	ckt_call_trace_linger(NULL);
	atomic_store(&lingered, true);
	return NULL;
}

/* At the end a reader that comes late still gets everything, and its answer. */
static void test_linger(void)
{
	uint8_t none[8] = {0};
	pthread_t thread;
	IS(ask_and(true, CKT_TRACE_ACTION_START, 0), 0);
	uint64_t trace = res.trace;
	command(CKT_PROC_CTX_SYNCHRONIZE, none, 8, 0);
	MUST(pthread_create(&thread, NULL, linger, NULL), 0);
	poll(NULL, 0, 1000);
	NO(atomic_load(&lingered));
	/* It is over only once the answer is on its way. */
	ckt_worker_trace_args args = {.action = CKT_TRACE_ACTION_READ, .trace = trace};
	ckt_call_trace_lock();
	ckt_call_trace_serve(&ckt_worker, &args, &res, message);
	IS(res.calls.calls_len, 1);
	poll(NULL, 0, 100);
	NO(atomic_load(&lingered));
	ckt_call_trace_sent(true);
	ckt_call_trace_unlock();
	pthread_join(thread, NULL);
	YES(atomic_load(&lingered));
	/* Somebody who has read everything is not waited for. */
	linger(NULL);
	IS(ask_and(true, CKT_TRACE_ACTION_STOP, trace), 0);
}

UNIT_SUITE(call_trace, {"page", test_page}, {"linger", test_linger},
	{"of the client", test_of_client}, {"records", test_records},
	{"one at a time", test_one_at_a_time}, {"bound", test_bound}, {"late", test_late})
