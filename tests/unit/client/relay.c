/* SPDX-License-Identifier: Apache-2.0 */
/* See relay.h. */
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/gen/cuda_codec.h"
#include "rpc/net.h"
#include "rpc/session.h"

enum { PROCS = 2048, KEPT = 4096 };

const char relay_ptx[] =
	".version 8.0\n.target sm_70\n.address_size 64\n"
	".visible .global .align 4 .u32 counter = 3;\n"
	".visible .entry add(.param .u64 out, .param .u32 n)\n{\n"
	"\t.reg .b32 %r<4>; .reg .b64 %d<2>;\n"
	"\tld.param.u64 %d1, [out]; ld.param.u32 %r1, [n]; atom.global.add.u32 %r2, [%d1], %r1; ret;\n}\n";

unsigned relay_waited, relay_batched;
CUcontext primary;
/*
 * Managed memory is served in the fault's handler, on the thread that waits for it: to
 * ThreadSanitizer's signal rules a call too many.
 */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "report_signal_unsafe=0";
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned waited, batched, counts[PROCS];
static struct {
	uint8_t bytes[KEPT];
	size_t size;
} args[PROCS];
static char directory[64], server_path[96];
static pid_t server;

static void take_record(const uint8_t *data, size_t size)
{
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_call_header header = {0};
	if (!ckt_call_header_get(&c, &header) || header.prog != CKT_CUDA_PROG ||
		header.proc >= PROCS)
		return;
	pthread_mutex_lock(&lock);
	*(header.flags & CKT_CALL_BATCHED ? &batched : &waited) += 1;
	counts[header.proc]++;
	args[header.proc].size = (size_t)(c.end - c.p) < KEPT ? (size_t)(c.end - c.p) : KEPT;
	memcpy(args[header.proc].bytes, c.p, args[header.proc].size);
	pthread_mutex_unlock(&lock);
}

struct link {
	int from, to;
	bool look, lane;
};

_Atomic uint64_t relay_lanes, relay_lane_bytes;
static _Atomic uint64_t lane_quota = UINT64_MAX;

/* The kind of a hello; -1: it is none. */
static int kind_of_hello(const uint8_t *data, size_t size)
{
	struct ckt_cursor c = {.p = data, .end = data + size};
	uint32_t length;
	for (int i = 0; i < 3; i++)
		ckt_get_u32(&c);
	bool hello = ckt_get_u32(&c) == CRICKET_SESSION_PROG;
	ckt_get_u32(&c);
	hello = ckt_get_u32(&c) == CKT_SESSION_HELLO && hello;
	ckt_get_u32(&c);
	ckt_get_opaque(&c, 400, &length);
	for (int i = 0; i < 3; i++)
		ckt_get_u32(&c);
	uint32_t kind = ckt_get_u32(&c);
	return hello && !c.bad ? (int)kind : -1;
}

/* So many more bytes go over lanes, of both ways; then they break. */
static bool lane_may(size_t size)
{
	uint64_t left = lane_quota;
	relay_lane_bytes += size;
	while (left != UINT64_MAX &&
		!atomic_compare_exchange_weak(&lane_quota, &left, left > size ? left - size : 0))
		;
	return left == UINT64_MAX || left > size;
}

void relay_break_lanes_after(uint64_t bytes)
{
	lane_quota = bytes;
}

/* What came with the bytes goes on with them, where the test wants it (a tunnel would lose it). */
static _Atomic bool passes;
static _Atomic int newest = -1; /* this process's connection */

static ssize_t take(int fd, uint8_t *data, size_t size, int *ret_passed)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {.iov_base = data, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	if (passes) {
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
	}
	ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 && passes ? CMSG_FIRSTHDR(&message) : NULL;
	*ret_passed = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_passed, CMSG_DATA(c), sizeof *ret_passed);
	return n;
}

static bool pass(int fd, const uint8_t *byte, int passed)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
			     .cmsg_level = SOL_SOCKET,
			     .cmsg_type = SCM_RIGHTS}};
	struct iovec part = {.iov_base = (void *)byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control};
	memcpy(CMSG_DATA(&control.header), &passed, sizeof passed);
	ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);
	close(passed);
	return n == 1;
}

static bool send_all(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return false;
		data += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Children of a test connect, too. */
static bool is_ours(int fd)
{
	struct ucred peer = {0};
	socklen_t size = sizeof peer;
	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.pid == getpid();
}

/* One way of a connection, until it ends. */
static void *carry(void *opaque)
{
	struct link *link = opaque;
	size_t have = 0, room = CKT_RECORD_MAX + 8 + (1 << 16);
	uint8_t *data = malloc(room), *end = data;
	int passed;
	for (ssize_t n; (n = take(link->from, data + have, link->look ? room - have : 1 << 16,
				 &passed)) > 0;) {
		end = data + have;
		if (link->lane && !lane_may((size_t)n))
			break;
		size_t sent = passed >= 0 && pass(link->to, end, passed);
		/* What is to be seen is written down before anybody can answer it. */
		if (link->look) {
			have += (size_t)n;
			size_t at = 0;
			while (have - at >= 4) {
				struct ckt_cursor c = {.p = data + at, .end = data + have};
				size_t size = ckt_get_u32(&c) & 0x7fffffff;
				if (have - at < 4 + size)
					break;
				take_record(c.p, size);
				int kind = kind_of_hello(c.p, size);
				if ((kind == CKT_HELLO_NEW || kind == CKT_HELLO_RESUME) &&
					is_ours(link->from))
					newest = link->from;
				if (kind == CKT_HELLO_DATA) {
					link->look = false;
					link->lane = true;
					relay_lanes++;
				}
				at += 4 + size;
			}
			if (!send_all(link->to, end + sent, (size_t)n - sent))
				break;
			memmove(data, data + at, have - at);
			have -= at;
		} else if (!send_all(link->to, data + sent, (size_t)n - sent)) {
			break;
		}
	}
	shutdown(link->to, SHUT_RDWR);
	shutdown(link->from, SHUT_RDWR);
	free(data);
	free(link);
	return NULL;
}

static int connect_server(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", server_path);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
		return fd;
	close(fd);
	return -1;
}

static void *accept_all(void *opaque)
{
	for (int fd; (fd = accept((int)(intptr_t)opaque, NULL, NULL)) >= 0;) {
		int there = connect_server();
		pthread_t thread;
		for (int way = 0; way < 2 && there >= 0; way++) {
			struct link *link = malloc(sizeof *link);
			*link = way ? (struct link){there, fd, false}
				    : (struct link){fd, there, true};
			if (pthread_create(&thread, NULL, carry, link) == 0)
				pthread_detach(thread);
		}
	}
	return NULL;
}

static int start_server(const char *path)
{
	snprintf(directory, sizeof directory, "/tmp/ckt-relay-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(server_path, sizeof server_path, "%s/server", directory);
	setenv("CRICKET_SOFT_DEVICES", "12.0:2G:1G,12.0:1G", 1);
	setenv("CRICKET_STATE_DIR", directory, 1);
	/* What crosses shared memory, a relay does not see. */
	setenv("CRICKET_TRANSPORT", "unix", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		execl(path, path, "--driver", "soft", "--module-cache", "off", "--socket",
			server_path, "--listen", "none", "--grace", "0", "--log-level", "warning",
			(char *)NULL);
		_exit(127);
	}
	for (int i = 0, fd; i < 6000; i++, poll(NULL, 0, 10))
		if ((fd = connect_server()) >= 0) {
			close(fd);
			return 0;
		}
	return -1;
}

int unit_setup(int argc, char **argv)
{
	struct ckt_address here = {.type = CKT_ADDRESS_UNIX};
	char message[256], address[128];
	pthread_t thread;
	int fd;
	passes = argc == 3 && !strcmp(argv[2], "pass");
	if (argc != 2 + passes || start_server(argv[1]))
		return 2;
	snprintf(here.host, sizeof here.host, "%.64s/relay", directory);
	if (ckt_net_listen(&here, 0600, &fd, message, sizeof message) || fcntl(fd, F_SETFL, 0) ||
		pthread_create(&thread, NULL, accept_all, (void *)(intptr_t)fd))
		return 2;
	pthread_detach(thread);
	snprintf(address, sizeof address, "unix:%.64s/relay", directory);
	setenv("REMOTE_GPU_ADDRESS", address, 1);
	/* Lanes would take the large copies of tests that count commands. */
	setenv("CRICKET_LANES", "0", 0);
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&primary, 0) || cuCtxSetCurrent(primary))
		return 2;
	return 0;
}

void unit_teardown(int status)
{
	char command[128];
	fflush(stdout);
	kill(server, SIGTERM);
	waitpid(server, NULL, 0);
	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	if (system(command))
		fprintf(stderr, "%s is left\n", directory);
	/* The library's threads run on. */
	_exit(status);
}

/*
 * Commands are executed in their order, so the answer to a question says that those before it were.
 * Nothing is waited for: a wait would make later ones needless (client/cuda/stream/known.h).
 */
static void ask(void)
{
	size_t free_bytes, bytes;
	IS(cuMemGetInfo(&free_bytes, &bytes), CUDA_SUCCESS);
}

void relay_mark(void)
{
	ask();
	pthread_mutex_lock(&lock);
	waited = batched = 0;
	memset(counts, 0, sizeof counts);
	pthread_mutex_unlock(&lock);
}

void relay_settle(void)
{
	CUcontext before;
	cuCtxGetCurrent(&before);
	cuCtxSetCurrent(primary);
	pthread_mutex_lock(&lock);
	unsigned waits = counts[CKT_PROC_CTX_SYNCHRONIZE];
	pthread_mutex_unlock(&lock);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	cuCtxSetCurrent(before);
	pthread_mutex_lock(&lock);
	/* Ours travels only if something was issued. */
	relay_waited = waited - (counts[CKT_PROC_CTX_SYNCHRONIZE] - waits);
	relay_batched = batched;
	pthread_mutex_unlock(&lock);
}

static uint32_t proc_of(const char *name)
{
	for (uint32_t i = 0; i < PROCS; i++)
		if (ckt_cuda_proc_name(i) && !strcmp(ckt_cuda_proc_name(i), name))
			return i;
	fprintf(stderr, "relay: no procedure %s\n", name);
	abort();
}

unsigned relay_count(const char *name)
{
	pthread_mutex_lock(&lock);
	unsigned count = counts[proc_of(name)];
	pthread_mutex_unlock(&lock);
	return count;
}

const uint8_t *relay_args(const char *name, size_t *ret_size)
{
	uint32_t proc = proc_of(name);
	pthread_mutex_lock(&lock);
	*ret_size = args[proc].size;
	const uint8_t *bytes = counts[proc] ? args[proc].bytes : NULL;
	pthread_mutex_unlock(&lock);
	return bytes;
}

void relay_break(bool passes_then)
{
	passes = passes_then;
	shutdown(newest, SHUT_RDWR);
}

CUmodule relay_module(void)
{
	static CUmodule module;
	if (!module)
		MUST(cuModuleLoadData(&module, relay_ptx), CUDA_SUCCESS);
	return module;
}

CUfunction relay_add(void)
{
	CUfunction function = NULL;
	MUST(cuModuleGetFunction(&function, relay_module(), "add"), CUDA_SUCCESS);
	return function;
}

CUdeviceptr memory_of(size_t size, uint32_t value)
{
	CUdeviceptr address = 0;
	MUST(cuMemAlloc(&address, size), CUDA_SUCCESS);
	IS(cuMemsetD32(address, value, size / 4), CUDA_SUCCESS);
	return address;
}

uint32_t word_at(CUdeviceptr address)
{
	uint32_t value = 0xdeadbeef;
	IS(cuMemcpyDtoH(&value, address, 4), CUDA_SUCCESS);
	return value;
}
