/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection against a server that counts: order, exactly once over broken connections, the
 * ring, copies, many threads.
 */
#include <CUnit/Basic.h>
#include <cuda.h>
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/conn/conn.h"
#include "fake_server.h"

static struct fake_server server;
static char state_dir[] = "/tmp/ckt-state-XXXXXX";

/* Two calls that wait for their answers.  A wait for the GPU may need none (known.h). */
static CUresult ask(void)
{
	CUdeviceptr memory;
	CUresult result = cuMemAlloc_v2(&memory, 16);
	return result ? result : cuMemFree_v2(memory);
}

static void quiet(void)
{
	server.drop_every = 0;
	server.lose_reply = false;
	CU_ASSERT_EQUAL(ask(), CUDA_SUCCESS);
}

static void test_not_initialised(void)
{
	CUdevice device;
	CUcontext context;
	CU_ASSERT_EQUAL(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
	CU_ASSERT_EQUAL(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
	CU_ASSERT_EQUAL(server.connections, 0);
	CU_ASSERT_EQUAL(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

static void test_open(void)
{
	CUcontext context;
	char name[32];
	CU_ASSERT_EQUAL_FATAL(cuInit(0), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(cuInit(0), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(server.connections, 1);
	CU_ASSERT_EQUAL(cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
	CU_ASSERT_STRING_EQUAL(name, "Fake");
	CU_ASSERT_EQUAL(cuDeviceGetName(name, sizeof name, 1), CUDA_ERROR_INVALID_DEVICE);
	CU_ASSERT_EQUAL_FATAL(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	CU_ASSERT_EQUAL_FATAL(cuCtxSetCurrent(context), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
}

/* Questions about what does not change cost no record. */
static void test_local_answers(void)
{
	uint64_t before = server.records;
	for (int i = 0; i < 100; i++) {
		int value;
		CUdevice device;
		CU_ASSERT_EQUAL(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
			CUDA_SUCCESS);
		CU_ASSERT_EQUAL(cuCtxGetDevice(&device), CUDA_SUCCESS);
	}
	CU_ASSERT_EQUAL(server.records, before);
}

/* Several times round the ring, with records that do not divide it. */
static void test_ring(void)
{
	CUdeviceptr memory;
	size_t size = 700001;
	uint8_t *data = malloc(size);
	memset(data, 7, size);
	CU_ASSERT_EQUAL_FATAL(cuMemAlloc_v2(&memory, 1 << 20), CUDA_SUCCESS);
	uint64_t before = server.bytes_to_device;
	for (int i = 0; i < 40; i++)
		CU_ASSERT_EQUAL(cuMemcpyHtoD_v2(memory, data, size - (size_t)i), CUDA_SUCCESS);
	quiet();
	CU_ASSERT_EQUAL(server.bytes_to_device - before, 40 * size - 780);
	CU_ASSERT_EQUAL(server.gaps, 0);
	CU_ASSERT_EQUAL(cuMemcpyHtoD_v2(memory + (1 << 20) - 5, data, 6), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(cuMemFree_v2(memory), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
	free(data);
}

/*
 * The ring is full of what came behind the question how far the server is: its answer makes too
 * little room, and it has to be asked again.
 */
static void test_late_ack(void)
{
	CUdeviceptr memory;
	size_t size = 1 << 20;
	uint8_t *data = calloc(1, size);
	CU_ASSERT_EQUAL_FATAL(cuMemAlloc_v2(&memory, size), CUDA_SUCCESS);
	uint64_t before = server.bytes_to_device;
	server.slow_ack = true;
	for (int i = 0; i < 12; i++)
		CU_ASSERT_EQUAL(cuMemcpyHtoD_v2(memory, data, size), CUDA_SUCCESS);
	server.slow_ack = false;
	quiet();
	CU_ASSERT_EQUAL(server.bytes_to_device - before, 12 * size);
	CU_ASSERT_EQUAL(server.gaps, 0);
	CU_ASSERT_EQUAL(cuMemFree_v2(memory), CUDA_SUCCESS);
	free(data);
}

static bool expected(const uint8_t *data, uint64_t src, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (data[i] != (uint8_t)((src + i) * 31 >> 3))
			return false;
	return true;
}

static void test_to_host(void)
{
	CUdeviceptr memory;
	size_t size = (5 << 20) + 3;
	uint8_t *data = calloc(1, size);
	void *pinned;
	CU_ASSERT_EQUAL_FATAL(cuMemAlloc_v2(&memory, size), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(cuMemcpyDtoH_v2(data, memory, size), CUDA_SUCCESS);
	CU_ASSERT(expected(data, memory, size));
	CU_ASSERT_EQUAL_FATAL(cuMemAllocHost_v2(&pinned, size), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(cuMemcpyDtoHAsync_v2(pinned, memory, size, NULL), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
	CU_ASSERT(expected(pinned, memory, size));
	CU_ASSERT_EQUAL(cuMemFreeHost(pinned), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(cuMemFree_v2(memory), CUDA_SUCCESS);
	free(data);
}

static CUresult churn(unsigned rounds)
{
	CUdeviceptr memory;
	uint8_t data[5000], back[3000];
	memset(data, 1, sizeof data);
	CUresult result = cuMemAlloc_v2(&memory, 1 << 20);
	for (unsigned i = 0; i < rounds && !result; i++) {
		CUevent event;
		result = cuMemcpyHtoD_v2(memory + i, data, 1 + i * 37 % sizeof data);
		if (!result)
			result = cuEventCreate(&event, 0);
		if (!result)
			result = cuEventRecord(event, NULL);
		if (!result && i % 7 == 0)
			result = cuEventSynchronize(event);
		if (!result)
			result = cuEventDestroy_v2(event);
		if (!result && i % 11 == 0) {
			result = cuMemcpyDtoH_v2(back, memory + i, sizeof back);
			if (!result && !expected(back, memory + i, sizeof back))
				result = CUDA_ERROR_UNKNOWN;
		}
	}
	return result ? result : cuMemFree_v2(memory);
}

/* The server hangs up again and again; nothing is lost or done twice. */
static void test_resume(void)
{
	uint64_t before = server.connections;
	for (int mode = 0; mode < 2; mode++) {
		server.lose_reply = mode;
		server.drop_every = 97;
		/*
		 * What is in a record whose reply gets lost is chance: it must once be a call that
		 * changes state.
		 */
		for (int tries = 0; tries == 0 || (mode && !server.replayed && tries < 10); tries++)
			CU_ASSERT_EQUAL(churn(1500), CUDA_SUCCESS);
		quiet();
	}
	CU_ASSERT(server.connections > before + 20);
	CU_ASSERT_EQUAL(server.gaps, 0);
	CU_ASSERT(server.replayed > 0);
}

static void *churn_thread(void *context)
{
	cuCtxSetCurrent(context);
	return (void *)(uintptr_t)churn(600);
}

static void test_threads(void)
{
	pthread_t threads[8];
	CUcontext context;
	CU_ASSERT_EQUAL_FATAL(cuCtxGetCurrent(&context), CUDA_SUCCESS);
	for (int mode = 0; mode < 2; mode++) {
		server.drop_every = mode ? 211 : 0;
		for (int i = 0; i < 8; i++)
			pthread_create(&threads[i], NULL, churn_thread, context);
		for (int i = 0; i < 8; i++) {
			void *result;
			pthread_join(threads[i], &result);
			CU_ASSERT_PTR_NULL(result);
		}
		quiet();
	}
	CU_ASSERT_EQUAL(server.gaps, 0);
}

/*
 * A child has only one of its parent's threads: what the others held would be a leak to
 * LeakSanitizer.
 */
static bool is_child;
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return is_child;
}

/* A child has no CUDA, and its end is not the session's. */
static void test_fork(void)
{
	uint64_t before = server.byes;
	pid_t child = fork();
	if (child == 0) {
		CUdeviceptr memory;
		is_child = true;
		exit(cuMemAlloc_v2(&memory, 16) == CUDA_ERROR_NOT_INITIALIZED &&
					cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
				? 0
				: 1);
	}
	int status = 1;
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(server.byes, before);
	CU_ASSERT_EQUAL(ask(), CUDA_SUCCESS);
}

static void write_state(const char *path, const char *temporary, const char *more)
{
	FILE *file = fopen(temporary, "w");
	fprintf(file, "unix:%s\n%s", server.other_path, more);
	fclose(file);
	rename(temporary, path);
}

/*
 * Stopped on purpose: the client waits beyond CRICKET_RECONNECT_TIMEOUT, and goes where its file
 * says, but not to a session that was restored with another process.
 */
static void *unpark(void *directory)
{
	char path[256], temporary[256];
	while (server.parked_answers < 5)
		poll(NULL, 0, 1);
	snprintf(temporary, sizeof temporary, "%s/new", (const char *)directory);
	snprintf(path, sizeof path, "%s/0123456789ab", (const char *)directory);
	write_state(path, temporary, "generation 2\n");
	poll(NULL, 0, 5500); /* longer than CRICKET_RECONNECT_TIMEOUT, and it still asks */
	while (server.parked_answers < 7)
		poll(NULL, 0, 1);
	CU_ASSERT_EQUAL(server.other_connections, 0);
	write_state(path, temporary, "generation 1\n");
	return NULL;
}

static void test_parked(void)
{
	pthread_t thread;
	uint64_t before = server.connections;
	server.parked = true;
	server.drop_every = 5;
	pthread_create(&thread, NULL, unpark, state_dir);
	CU_ASSERT_EQUAL(churn(40), CUDA_SUCCESS);
	pthread_join(thread, NULL);
	quiet();
	CU_ASSERT(server.connections - before > 5);
	CU_ASSERT_EQUAL(server.gaps, 0);
}

/* A server that holds an earlier state is refused; the right one, later, is taken. */
static void *catch_up(void *unused)
{
	uint64_t before = server.connections;
	while (server.connections < before + 3)
		poll(NULL, 0, 1);
	server.behind = false;
	return NULL;
}

static void test_behind(void)
{
	pthread_t thread;
	server.behind = true;
	server.drop_every = 20;
	pthread_create(&thread, NULL, catch_up, NULL);
	CU_ASSERT_EQUAL(churn(40), CUDA_SUCCESS);
	pthread_join(thread, NULL);
	quiet();
	CU_ASSERT_EQUAL(server.behind_records, 0);
	CU_ASSERT_EQUAL(server.gaps, 0);
}

/* ---- The process is about to be saved */

static char hold_path[64], quiet_path[64];

static void hold(pid_t holder)
{
	FILE *file = fopen(hold_path, "w");
	fprintf(file, "%d\n", (int)holder);
	fclose(file);
}

static bool is_there(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}

/* The process that is quiet names itself. */
static bool become_quiet(void)
{
	int pid = 0;
	for (int i = 0; i < 60000 && !is_there(quiet_path); i++)
		poll(NULL, 0, 1);
	FILE *file = fopen(quiet_path, "r");
	bool named = file && fscanf(file, "%d", &pid) == 1 && pid == getpid();
	if (file)
		fclose(file);
	return named;
}

static unsigned count_sockets(void)
{
	unsigned count = 0;
	char path[300], text[64];
	DIR *dir = opendir("/proc/self/fd");
	for (struct dirent *entry; (entry = readdir(dir));) {
		snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
		ssize_t n = readlink(path, text, sizeof text);
		count += n > 7 && memcmp(text, "socket:", 7) == 0;
	}
	closedir(dir);
	return count;
}

static _Atomic bool call_done;

static void *call_once(void *context)
{
	CU_ASSERT_EQUAL(cuCtxSetCurrent(context), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ask(), CUDA_SUCCESS);
	return NULL;
}

static void *call_and_say(void *context)
{
	call_once(context);
	call_done = true;
	return NULL;
}

static void test_quiesce(void)
{
	pthread_t first, thread;
	CUcontext context;
	snprintf(hold_path, sizeof hold_path, "%s/0123456789ab.hold", state_dir);
	snprintf(quiet_path, sizeof quiet_path, "%s/0123456789ab.quiet", state_dir);
	/* Nobody on this host wants it: as any break. */
	server.quiesce = true;
	CU_ASSERT_EQUAL(churn(40), CUDA_SUCCESS);
	quiet();
	CU_ASSERT_FALSE(is_there(quiet_path));
	/* Nobody is in a call, and still it hears. */
	uint64_t before = server.connections;
	hold(getpid());
	server.quiesce = true;
	CU_ASSERT_EQUAL(cuCtxGetCurrent(&context), CUDA_SUCCESS);
	/*
	 * Answered before, or not before the end, where the server was told while it had another
	 * record.
	 */
	pthread_create(&first, NULL, call_once, context);
	CU_ASSERT_TRUE_FATAL(become_quiet());
	/* The fake server is a thread, which has sent its word before it closes its own end. */
	for (int i = 0; i < 60000 && count_sockets() != 2; i++)
		poll(NULL, 0, 1);
	CU_ASSERT_EQUAL(count_sockets(), 2); /* where the fake server listens */
	call_done = false;
	pthread_create(&thread, NULL, call_and_say, context);
	poll(NULL, 0, 100);
	CU_ASSERT_FALSE(call_done);
	CU_ASSERT_EQUAL(server.connections, before);
	unlink(hold_path);
	pthread_join(thread, NULL);
	pthread_join(first, NULL);
	CU_ASSERT_EQUAL(server.connections, before + 1);
	CU_ASSERT_FALSE(is_there(quiet_path));
	/* Who wanted it has died. */
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	hold(child);
	server.quiesce = true;
	CU_ASSERT_EQUAL(churn(40), CUDA_SUCCESS);
	quiet();
	CU_ASSERT_FALSE(is_there(hold_path));
	CU_ASSERT_FALSE(is_there(quiet_path));
	CU_ASSERT_EQUAL(server.gaps, 0);
}

/* The session is gone for good: a sticky error, no signal, no hang. */
static void test_lost(void)
{
	CUdeviceptr memory;
	server.refuse = true;
	server.drop_every = 1;
	/*
	 * The record the server already waits for, and the one whose reply it sends before it hangs
	 * up, still succeed.
	 */
	CUresult result = CUDA_SUCCESS;
	for (int i = 0; i < 4 && !result; i++)
		result = cuMemAlloc_v2(&memory, 16);
	CU_ASSERT_EQUAL(result, CUDA_ERROR_DEVICE_UNAVAILABLE);
	/* A wait that would need no question says so as well. */
	CU_ASSERT_EQUAL(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	CU_ASSERT_EQUAL(cuMemAlloc_v2(&memory, 16), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

int main(int argc, char **argv)
{
	char address[128];
	bool is_short = argc > 1 && !strcmp(argv[1], "short");
	fake_server_start(&server);
	snprintf(address, sizeof address, "unix:%s", server.path);
	setenv("REMOTE_GPU_ADDRESS", address, 1);
	/* It is short only for what lasts longer: on a busy machine a second is soon over. */
	setenv("CRICKET_RECONNECT_TIMEOUT", is_short ? "5" : "60", 1);
	if (!mkdtemp(state_dir))
		return 1;
	setenv("CRICKET_STATE_DIR", state_dir, 1);
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("conn", NULL, NULL);
	if (is_short) {
		CU_add_test(suite, "open", test_open);
		CU_add_test(suite, "parked", test_parked);
		CU_add_test(suite, "lost", test_lost);
	} else {
		CU_add_test(suite, "before cuInit", test_not_initialised);
		CU_add_test(suite, "open", test_open);
		CU_add_test(suite, "local answers", test_local_answers);
		CU_add_test(suite, "ring", test_ring);
		CU_add_test(suite, "late ack", test_late_ack);
		CU_add_test(suite, "copies to the host", test_to_host);
		CU_add_test(suite, "resume", test_resume);
		CU_add_test(suite, "threads", test_threads);
		CU_add_test(suite, "fork", test_fork);
		CU_add_test(suite, "behind", test_behind);
		CU_add_test(suite, "quiesce", test_quiesce);
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	unlink(server.path);
	unlink(server.other_path);
	snprintf(address, sizeof address, "%s/0123456789ab", state_dir);
	unlink(address);
	rmdir(state_dir);
	return failed != 0;
}
