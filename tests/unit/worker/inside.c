/* SPDX-License-Identifier: Apache-2.0 */
/* See inside.h. */
#include "tests/unit/worker/inside.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/freeze/freeze.h"
#include "rpc/net.h"
#include "server/worker/module/module.h"
#include "server/worker/objects/context.h"
#include "server/worker/session/blocking_call.h"
#include "server/worker/session/call.h"
#include "server/worker/session/long_call.h"
#include "server/worker/session/start.h"

const char *inside_driver;
void (*inside_watch)(bool runs);
static int sent; /* our end */
static sem_t stop;

/*
 * `--start DRIVER GPUS TOTAL`: how a fresh worker's start goes, on a line, and the devices that its
 * process and its session have.
 */
static int only_start(const char *driver, char *list, const char *total)
{
	struct ckt_worker *worker = &ckt_worker;
	char message[CKT_MESSAGE_MAX] = "";
	u_int gpus[CKT_DEVICES_MAX], count = 0;
	for (char *gpu = strtok(list, ","); gpu && count < CKT_DEVICES_MAX; gpu = strtok(NULL, ","))
		gpus[count++] = (u_int)atoi(gpu);
	setenv("CRICKET_SOFT_DEVICES", "12.0:4G:1G,12.0:1G", 1);
	ckt_worker_start_args args = {.session = (char *)"0123456789ab",
		.socket = (char *)"",
		.driver = (char *)driver,
		.gpus = {count, gpus}};
	setenv("CRICKET_GPUS", total, 1);
	pthread_mutex_init(&worker->mail_lock, NULL);
	pthread_cond_init(&worker->mail_cond, NULL);
	worker->client_fd = worker->new_client.fd = worker->new_client.memory_fd = worker->host.fd =
		worker->client_process = -1;
	int status = ckt_worker_start(worker, &args, -1, message, sizeof message);
	printf("%d %s\n", status, message);
	int devices = 0;
	if (!status && !ckt_driver.cuDeviceGetCount(&devices))
		for (unsigned d = 0; d < worker->device_count; d++)
			printf("%d: %u is %d, the server's %u, %llu GiB\n", devices, d,
				worker->devices[d].ordinal, worker->devices[d].number,
				(unsigned long long)worker->devices[d].total >> 30);
	fflush(stdout);
	_exit(0);
}

int unit_setup(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "--start"))
		return only_start(argv[2], argv[3], argv[4]);
	struct ckt_worker *worker = &ckt_worker;
	char message[CKT_MESSAGE_MAX] = "";
	int ends[2], output[2];
	if (argc != 2)
		return 2;
	inside_driver = argv[1];
	setenv("CRICKET_SOFT_DEVICES", "12.0:4G:1G,12.0:1G", 1);
	ckt_log_init("test", CKT_LOG_ERROR, NULL);
	sem_init(&stop, 0, 0);
	if (pipe(output) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return 2;
	sent = ends[0];
	worker->client_fd = worker->new_client.fd = worker->new_client.memory_fd = worker->host.fd =
		worker->client_process = -1;
	pthread_mutex_init(&worker->mail_lock, NULL);
	pthread_cond_init(&worker->mail_cond, NULL);
	pthread_mutex_init(&worker->printed.lock, NULL);
	/* Nothing is printed into it. */
	for (unsigned stream = 0; stream < CKT_PRINTED_PIPES; stream++)
		worker->printed.pipes[stream] = output[0];
	fcntl(output[0], F_SETFL, O_NONBLOCK);
	ckt_worker_start_args args = {.session = (char *)"0123456789ab",
		.socket = (char *)"/tmp/inside",
		.driver = argv[1],
		.claim_timeout_ms = 100000,
		.disconnect_timeout_ms = 100000};
	if (ckt_worker_start(worker, &args, -1, message, sizeof message) ||
		ckt_checkpoint_freeze(worker, 5000, message, sizeof message)) {
		fprintf(stderr, "inside: %s\n", message);
		return 2;
	}
	/*
	 * NVIDIA's driver opens itself by its name, and glibc keeps every name that an object was
	 * asked for by.
	 */
	if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
		fprintf(stderr, "inside: the driver does not have its name\n");
		return 2;
	}
	worker->client_epoch = 1;
	ckt_output_connect(&worker->output, ends[1], 1, NULL, 0);
	return ckt_worker_use_context(worker, ckt_handle_primary(0));
}

/* As the worker ends: its threads, and the driver's, run on. */
void unit_teardown(int status)
{
	fflush(stdout);
	_exit(status);
}

int inside_freeze(unsigned deadline_ms, char ret_message[CKT_MESSAGE_MAX])
{
	ckt_checkpoint_thaw(&ckt_worker, false);
	int result = ckt_checkpoint_freeze(&ckt_worker, deadline_ms, ret_message, CKT_MESSAGE_MAX);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	return result;
}

size_t inside_sent(uint8_t *ret_bytes, size_t room)
{
	size_t size = 0;
	ckt_output_flush(&ckt_worker.output);
	for (ssize_t n;
		size < room && (n = recv(sent, ret_bytes + size, room - size, MSG_DONTWAIT)) > 0;)
		size += (size_t)n;
	return size;
}

static const struct ckt_proc *find(const char *name)
{
	for (unsigned i = 0; i < ckt_cuda_proc_count; i++)
		if (ckt_cuda_procs[i].name && !strcmp(ckt_cuda_procs[i].name, name))
			return &ckt_cuda_procs[i];
	fprintf(stderr, "inside: no procedure %s\n", name);
	abort();
}

struct inside_reply *inside_call(const char *name, const uint8_t *args, size_t size, bool batched)
{
	const struct ckt_proc *proc = find(name);
	return inside_run(
		CKT_CUDA_PROG, (uint32_t)(proc - ckt_cuda_procs), proc, args, size, batched);
}

struct inside_reply *inside_run(uint32_t prog, uint32_t number, const struct ckt_proc *proc,
	const uint8_t *args, size_t size, bool batched)
{
	static struct inside_reply reply;
	static uint32_t xid;
	struct ckt_worker *worker = &ckt_worker;
	struct ckt_wcall *call = ckt_wcall_new(worker);
	/* Of just that size, so that a read behind it is found. */
	uint8_t *copy = malloc(size + !size);
	if (size)
		memcpy(copy, args, size);
	call->proc = proc;
	call->header = (struct ckt_call_header){.xid = ++xid,
		.prog = prog,
		.vers = 1,
		.proc = number,
		.flags = batched ? CKT_CALL_BATCHED : 0,
		.context = ckt_handle_primary(0)};
	call->args = (struct ckt_cursor){.p = copy, .end = copy + size};
	ckt_worker_use_context(worker, call->header.context);
	if (inside_watch)
		inside_watch(true);
	int result = call->proc->handler(call);
	free(copy);
	reply.result = result;
	if (result == CKT_WCALL_GARBAGE) {
		ckt_wcall_free(call);
		return &reply;
	}
	if (result != CKT_WCALL_LATER)
		ckt_wcall_finish(call, (CUresult)result);
	/* What ends beside the executor, unless the GPU is busy. */
	ckt_long_call_drain(worker, ckt_net_now_ms() + 1000);
	reply.result = INSIDE_NONE;
	if (batched) {
		reply.result = atomic_exchange(&worker->deferred, 0);
		if (inside_watch)
			inside_watch(false);
		return &reply;
	}
	for (int i = 0; i < 60000; i++) {
		ckt_long_call_finish(worker);
		ckt_blocking_call_finish(worker);
		ckt_pending_poll(worker);
		size_t n = inside_sent(reply.bytes, sizeof reply.bytes);
		reply.results = (struct ckt_cursor){
			.p = reply.bytes + CKT_MARK_SIZE, .end = reply.bytes + n};
		struct ckt_reply_header header;
		if (n && ckt_reply_header_get(&reply.results, &header) && header.xid == xid) {
			reply.result = (int)ckt_get_u32(&reply.results);
			break;
		}
		poll(NULL, 0, 1);
	}
	if (inside_watch)
		inside_watch(false);
	return &reply;
}

unsigned inside_call_cut(const char *name, const uint8_t *args, size_t size)
{
	unsigned taken = 0;
	for (size_t cut = 0; cut < size; cut++)
		taken += inside_call(name, args, cut, false)->result != INSIDE_GARBAGE;
	uint8_t *more = calloc(1, size + 4);
	memcpy(more, args, size);
	taken += inside_call(name, more, size + 4, false)->result != INSIDE_GARBAGE;
	free(more);
	return taken;
}

void inside_fill(uint64_t address, uint32_t value, uint64_t size)
{
	IS(ckt_driver.cuMemsetD32_v2(address, value, size / 4), CUDA_SUCCESS);
	ckt_driver.cuCtxSynchronize();
}

uint64_t inside_memory(uint64_t size, uint32_t value)
{
	uint64_t address = 0;
	MUST(ckt_memory_alloc(&ckt_worker.devices[0].memory, size, ckt_handle_primary(0), &address),
		CUDA_SUCCESS);
	inside_fill(address, value, size);
	return address;
}

void inside_free(uint64_t address)
{
	uint64_t owner;
	IS(ckt_memory_free_begin(&ckt_worker.devices[0].memory, address, &owner), CUDA_SUCCESS);
	ckt_memory_free_end(&ckt_worker.devices[0].memory, address);
}

uint32_t inside_word(uint64_t address)
{
	uint32_t value = 0xdeadbeef;
	IS(ckt_driver.cuMemcpyDtoH_v2(&value, address, 4), CUDA_SUCCESS);
	return value;
}

struct ckt_object *inside_module(uint64_t id, const char *ptx)
{
	struct ckt_object *object = NULL;
	uint8_t hash[CKT_HASH_SIZE];
	IS(ckt_blobs_add(&ckt_worker.blobs, ptx, strlen(ptx) + 1, hash), 0);
	MUST(ckt_module_load(&ckt_worker, id, hash, NULL, NULL, 0, &object), CUDA_SUCCESS);
	return object;
}

static void wait_for_stop(void *data)
{
	(void)data;
	sem_wait(&stop);
}

void inside_spin(CUstream stream)
{
	IS(ckt_driver.cuLaunchHostFunc(stream, wait_for_stop, NULL), CUDA_SUCCESS);
}

void inside_stop(void)
{
	sem_post(&stop);
}
