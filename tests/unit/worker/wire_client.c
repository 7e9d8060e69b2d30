/* SPDX-License-Identifier: Apache-2.0 */
/* The wire, spoken directly; see wire_client.h. */
#include "tests/unit/worker/wire_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/format/broker.h"
#include "rpc/handle.h"
#include "rpc/lane.h"
#include "rpc/net.h"

static void die(const char *what, int error)
{
	fprintf(stderr, "wire_client: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(3);
}

static int64_t deadline(void)
{
	return ckt_net_now_ms() + WIRE_GUARD_MS;
}

uint32_t wire_proc(const char *name)
{
	for (uint32_t i = 0; i < 4096; i++)
		if (ckt_cuda_proc_name(i) && !strcmp(ckt_cuda_proc_name(i), name))
			return i;
	die(name, ENOENT);
	return 0;
}

static struct ckt_broker *brokers[CKT_BROKER_DIRECTORIES_MAX];
static unsigned broker_count;

/*
 * Who passes a directory here means a broker of its files, whatever its number in a chain; -1 where
 * it is none.
 */
static int start_broker(int directory, bool make)
{
	struct stat st;
	int fd, directories[CKT_BROKER_DIRECTORIES_MAX];
	if (directory < 0 || fstat(directory, &st) || !S_ISDIR(st.st_mode) ||
		broker_count == CKT_BROKER_DIRECTORIES_MAX)
		return -1;
	for (unsigned i = 0; i < CKT_BROKER_DIRECTORIES_MAX; i++)
		directories[i] = directory;
	int error = ckt_broker_start(directories, CKT_BROKER_DIRECTORIES_MAX,
		make ? CKT_BROKER_MAKE : CKT_BROKER_READ, &brokers[broker_count], &fd);
	if (error)
		die("broker", error);
	broker_count++;
	return fd;
}

static void stop_brokers(void)
{
	while (broker_count)
		ckt_broker_stop(brokers[--broker_count]);
}

static void control_call(struct wire *wire, uint32_t proc, xdrproc_t xdr_args, void *args,
	xdrproc_t xdr_res, void *res, int pass_fd)
{
	int broker_fd = start_broker(pass_fd, proc == CKT_WORKER_SAVE || proc == CKT_WORKER_SAVE2);
	int result = ckt_net_call(wire->control, CRICKET_WORKER_PROG, proc, xdr_args, args, xdr_res,
		res, deadline(), broker_fd >= 0 ? broker_fd : pass_fd);
	if (broker_fd >= 0)
		close(broker_fd);
	/* A chain's are asked at the start. */
	if (proc != CKT_WORKER_IMAGE)
		stop_brokers();
	if (result && wire->may_die) {
		wire->died = true;
		return;
	}
	if (result)
		die("control call", result);
}

static void send_memory(struct wire *wire)
{
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++) {
		ckt_worker_image_args args = {.index = i};
		ckt_worker_result taken = {0};
		control_call(wire, CKT_WORKER_MEMORY, (xdrproc_t)xdr_ckt_worker_image_args, &args,
			(xdrproc_t)xdr_ckt_worker_result, &taken, wire->memory_fds[i]);
		if (taken.status)
			die("MEMORY", -taken.status);
		free(taken.message);
	}
}

static int start(struct wire *wire, const char *worker, const char *driver, uint64_t memory_limit,
	int image_fd, const char *const *directories, unsigned count, char *ret_message)
{
	snprintf(wire->directory, sizeof wire->directory, "/tmp/ckt-wire-XXXXXX");
	if (!mkdtemp(wire->directory))
		die("mkdtemp", errno);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s/sock", wire->directory);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 16))
		die("listen", errno);
	wire->pid = fork();
	if (wire->pid == 0) {
		dup2(listener, 3);
		fcntl(3, F_SETFD, 0); /* dup2 does nothing where it is 3 already */
		personality(personality(0xffffffff) | ADDR_NO_RANDOMIZE);
		const char *level = getenv("WIRE_LOG");
		char *argv[] = {
			(char *)worker, "--log-level", (char *)(level ? level : "error"), NULL};
		/*
		 * A sanitizer's report would go to the worker's stderr, which catches what kernels
		 * print: give it a file.
		 */
		const char *options = getenv("ASAN_OPTIONS");
		char sanitizer[512], thread_sanitizer[512], behavior_sanitizer[512], fault[64],
			devices[128];
		snprintf(fault, sizeof fault, "CRICKET_FAULT=%s", wire->fault);
		snprintf(devices, sizeof devices, "CRICKET_SOFT_DEVICES=%s",
			wire->devices ? wire->devices : "12.0:8G");
		snprintf(sanitizer, sizeof sanitizer, "ASAN_OPTIONS=%s",
			options ? options : "detect_leaks=0");
		options = getenv("TSAN_OPTIONS");
		snprintf(thread_sanitizer, sizeof thread_sanitizer, "TSAN_OPTIONS=%s",
			options ? options : "");
		options = getenv("UBSAN_OPTIONS");
		snprintf(behavior_sanitizer, sizeof behavior_sanitizer, "UBSAN_OPTIONS=%s",
			options ? options : "");
		char *env[] = {
			"GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.malloc.mmap_threshold=4294967296",
			devices, sanitizer, thread_sanitizer, behavior_sanitizer, fault,
			(char *)wire->env[0], (char *)wire->env[1], (char *)wire->env[2],
			(char *)wire->env[3], NULL};
		execve(worker, argv, env);
		_exit(127);
	}
	close(listener);
	wire->control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(wire->control, (struct sockaddr *)&address, sizeof address))
		die("connect", errno);
	if (!wire->session[0])
		snprintf(wire->session, sizeof wire->session, "0123456789ab");
	ckt_worker_start_args args = {.session = wire->session,
		.socket = address.sun_path,
		.driver = (char *)driver,
		.memory_limit_bytes = memory_limit ? memory_limit : wire->memory_limit,
		.claim_timeout_ms = wire->claim_timeout_ms ? wire->claim_timeout_ms : WIRE_GUARD_MS,
		.disconnect_timeout_ms =
			wire->disconnect_timeout_ms ? wire->disconnect_timeout_ms : WIRE_GUARD_MS,
		.restore = image_fd >= 0 || wire->memory_fds,
		.host_memory_bytes = wire->host_memory};
	if (wire->memory_fds)
		send_memory(wire);
	ckt_worker_start_res res = {0};
	for (unsigned i = 0; i < count; i++) {
		ckt_worker_image_args image = {.index = i};
		ckt_worker_result taken = {0};
		int fd = open(directories[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		control_call(wire, CKT_WORKER_IMAGE, (xdrproc_t)xdr_ckt_worker_image_args, &image,
			(xdrproc_t)xdr_ckt_worker_result, &taken, fd);
		if (taken.status)
			die("IMAGE", -taken.status);
		free(taken.message);
		close(fd);
		args.restore = true;
	}
	control_call(wire, CKT_WORKER_START, (xdrproc_t)xdr_ckt_worker_start_args, &args,
		(xdrproc_t)xdr_ckt_worker_start_res, &res, image_fd);
	if (ret_message)
		snprintf(ret_message, CKT_MESSAGE_MAX, "%s", res.message);
	else if (res.status)
		fprintf(stderr, "wire_client: start: %s\n", res.message);
	int status = res.status;
	xdr_free((xdrproc_t)xdr_ckt_worker_start_res, (char *)&res);
	wire->fd = -1;
	return status;
}

int wire_start(struct wire *wire, const char *worker, const char *driver, uint64_t memory_limit,
	int image_fd, char *ret_message)
{
	return start(wire, worker, driver, memory_limit, image_fd, NULL, 0, ret_message);
}

int wire_start_chain(struct wire *wire, const char *worker, const char *driver,
	const char *const *directories, unsigned count, char *ret_message)
{
	return start(wire, worker, driver, 0, -1, directories, count, ret_message);
}

bool wire_ended(struct wire *wire)
{
	enum { SANITIZER_STATUS = 66 };
	bool ended = false;
	int status = 0;
	for (int64_t until = deadline(); !ended && ckt_net_now_ms() < until; poll(NULL, 0, 5))
		ended = waitpid(wire->pid, &status, WNOHANG) == wire->pid;
	if (!ended)
		return false;
	if (WIFEXITED(status) && WEXITSTATUS(status) == SANITIZER_STATUS) {
		fprintf(stderr, "wire_client: a sanitizer ended worker %d\n", (int)wire->pid);
		exit(3);
	}
	char path[96];
	snprintf(path, sizeof path, "%s/sock", wire->directory);
	unlink(path);
	rmdir(wire->directory);
	close(wire->control);
	if (wire->fd >= 0)
		close(wire->fd);
	wire->fd = -1;
	return true;
}

void wire_ask(struct wire *wire, uint32_t proc, xdrproc_t xdr_args, void *args, xdrproc_t xdr_res,
	void *res)
{
	control_call(wire, proc, xdr_args, args, xdr_res, res, -1);
}

void wire_ask_with(struct wire *wire, uint32_t proc, xdrproc_t xdr_args, void *args,
	xdrproc_t xdr_res, void *res, int fd)
{
	control_call(wire, proc, xdr_args, args, xdr_res, res, fd);
}

static uint64_t told(const ckt_hello_ok *ok, const char *name)
{
	for (u_int i = 0; i < ok->capabilities.capabilities_len; i++)
		if (!strcmp(ok->capabilities.capabilities_val[i].name, name))
			return ok->capabilities.capabilities_val[i].value;
	return 0;
}

ckt_hello_status wire_hello(struct wire *wire, ckt_hello_kind kind, bool right_secret)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		die("socketpair", errno);
	ckt_worker_client_args args = {
		.xid = ++wire->xid,
		.hello = {.protocol = 1,
			.kind = kind,
			.session = kind == CKT_HELLO_NEW ? "" : wire->session,
			.generation = wire->generation,
			.acked = wire->acked,
			.program_name = "wire_client",
			.host = "here",
			.pid = (u_int)getpid(),
			.build = "test"},
		.peer_uid = getuid(),
		.peer = "local",
	};
	ckt_capability copies[] = {{(char *)CKT_CAPABILITY_COPY, wire->copy},
		{(char *)CKT_CAPABILITY_DURABLE, 1}, {(char *)CKT_CAPABILITY_PAST, wire->past},
		{(char *)CKT_CAPABILITY_ATTACHED, wire->attached}};
	if (!wire->durable)
		copies[1] = copies[2] = copies[3];
	else if (wire->stamped)
		copies[3] = (ckt_capability){(char *)CKT_CAPABILITY_STAMPS, CKT_STAMPS_NONE};
	if (kind == CKT_HELLO_RESUME && wire->copy) {
		args.hello.capabilities.capabilities_val = copies;
		args.hello.capabilities.capabilities_len = wire->durable ? 3 + wire->stamped
			: wire->attached                                 ? 2
									 : 1;
	}
	ckt_capability again = {(char *)CKT_CAPABILITY_AGAIN, 1};
	if (kind == CKT_HELLO_NEW && wire->takes_again) {
		args.hello.capabilities.capabilities_val = &again;
		args.hello.capabilities.capabilities_len = 1;
	}
	ckt_capability durable = {(char *)CKT_CAPABILITY_DURABLE, 1};
	if (kind == CKT_HELLO_NEW && wire->durable) {
		args.hello.capabilities.capabilities_val = &durable;
		args.hello.capabilities.capabilities_len = 1;
	}
	ckt_capability lane = {(char *)CKT_CAPABILITY_LANES, wire->lane_set};
	if (kind == CKT_HELLO_DATA) {
		args.hello.capabilities.capabilities_val = &lane;
		args.hello.capabilities.capabilities_len = 1;
	}
	memset(wire->secret, 0x5a, sizeof wire->secret);
	memcpy(args.hello.secret, wire->secret, sizeof wire->secret);
	if (!right_secret)
		args.hello.secret[3] ^= 1;
	ckt_hello_status status = CKT_HELLO_FAILED;
	control_call(wire, CKT_WORKER_CLIENT, (xdrproc_t)xdr_ckt_worker_client_args, &args,
		(xdrproc_t)xdr_ckt_hello_status, &status, pair[1]);
	close(pair[1]);
	uint8_t *data;
	size_t size;
	int result = ckt_net_read_record(pair[0], CKT_RECORD_MAX, deadline(), &data, &size, NULL);
	if (result)
		die("reading the hello's reply", result);
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_reply_header header = {0};
	ckt_hello_res res = {0};
	if (!ckt_reply_header_get(&c, &header) || header.xid != args.xid ||
		ckt_net_decode(&c, (xdrproc_t)xdr_ckt_hello_res, &res))
		die("the hello's reply", EPROTO);
	if (res.status != status)
		die("server and client hear different answers", EPROTO);
	if (status == CKT_HELLO_OK) {
		if (wire->fd >= 0)
			close(wire->fd);
		wire->fd = pair[0];
		wire->executed = res.ckt_hello_res_u.ok.executed;
		wire->generation = res.ckt_hello_res_u.ok.generation;
		wire->before = told(&res.ckt_hello_res_u.ok, CKT_CAPABILITY_BEFORE);
		for (u_int i = 0; i < res.ckt_hello_res_u.ok.capabilities.capabilities_len; i++)
			if (!strcmp(res.ckt_hello_res_u.ok.capabilities.capabilities_val[i].name,
				    CKT_CAPABILITY_COPY))
				wire->copy = res.ckt_hello_res_u.ok.capabilities.capabilities_val[i]
						     .value;
	} else {
		close(pair[0]);
	}
	xdr_free((xdrproc_t)xdr_ckt_hello_res, (char *)&res);
	free(data);
	return status;
}

void wire_disconnect(struct wire *wire)
{
	close(wire->fd);
	wire->fd = -1;
}

uint32_t wire_send(struct wire *wire, uint32_t proc, const uint8_t *args, size_t size,
	bool numbered, bool batched)
{
	struct ckt_call_header header = {.xid = ++wire->xid,
		.prog = wire->prog ? wire->prog : CKT_CUDA_PROG,
		.vers = CKT_CUDA_VERS,
		.proc = proc,
		.seq = numbered ? ++wire->seq : 0,
		.acked = wire->acked,
		.thread = wire->thread ? wire->thread : 1,
		.flags = (batched ? CKT_CALL_BATCHED : 0) | (wire->stamped ? CKT_CALL_STAMPED : 0),
		.context = ckt_handle_primary(0)};
	uint8_t *record = malloc(CKT_CALL_HEADER_SIZE + size);
	memcpy(ckt_call_header_put(record, &header), args, size);
	int result =
		ckt_net_write_record(wire->fd, record, CKT_CALL_HEADER_SIZE + size, deadline(), -1);
	if (result)
		die("sending a command", result);
	if (numbered && !wire->no_log) {
		size_t total = 8 + 4 + CKT_CALL_HEADER_SIZE + size;
		while (wire->log_size + total > wire->log_room) {
			wire->log_room = wire->log_room ? wire->log_room * 2 : 1 << 16;
			wire->log = realloc(wire->log, wire->log_room);
		}
		uint8_t *p = ckt_put_u32(ckt_put_u64(wire->log + wire->log_size, wire->seq),
			(uint32_t)(CKT_CALL_HEADER_SIZE + size));
		memcpy(p, record, CKT_CALL_HEADER_SIZE + size);
		wire->log_size += total;
	}
	free(record);
	return header.xid;
}

void wire_resend(struct wire *wire)
{
	struct ckt_cursor c = {.p = wire->log, .end = wire->log + wire->log_size};
	while (c.p < c.end) {
		uint64_t seq = ckt_get_u64(&c);
		uint32_t size = ckt_get_u32(&c);
		if (seq > wire->executed &&
			ckt_net_write_record(wire->fd, c.p, size, deadline(), -1))
			die("resending", errno);
		c.p += size;
	}
}

/* The latest. */
static void take_stamps(struct wire *wire, struct ckt_cursor *c)
{
	ckt_stamps_args args = {0};
	if (ckt_net_decode(c, (xdrproc_t)xdr_ckt_stamps_args, &args))
		die("stamps", EPROTO);
	if (args.begins.begins_len) {
		wire->stamps.first = args.first;
		wire->stamps.count = args.begins.begins_len;
	}
	for (u_int i = 0; i < args.begins.begins_len && i < 64; i++)
		wire->stamps.begins[i] = args.begins.begins_val[i];
	wire->stamps.xid = args.xid;
	wire->stamps.end = args.end;
	wire->stamps.late = args.late;
	xdr_free((xdrproc_t)xdr_ckt_stamps_args, (char *)&args);
}

static void take_callback(
	struct wire *wire, const struct ckt_call_header *header, struct ckt_cursor *c)
{
	if (header->proc == CKT_CALLBACK_QUIESCE) {
		wire->quiesced = true;
		return;
	}
	if (header->proc == CKT_CALLBACK_PARKED || header->proc == CKT_CALLBACK_MOVED) {
		uint32_t size;
		const uint8_t *words = ckt_get_opaque(c, CKT_MESSAGE_MAX, &size);
		snprintf(header->proc == CKT_CALLBACK_PARKED ? wire->parked : wire->moved_to,
			sizeof wire->moved_to, "%.*s", (int)size, (const char *)words);
		return;
	}
	if (header->proc == CKT_CALLBACK_HOST_CALL) {
		if (wire->host_call_count == sizeof wire->host_calls / sizeof *wire->host_calls)
			die("too many host functions", ENOMEM);
		wire->host_calls[wire->host_call_count++] =
			(struct ckt_host_call_args){.instance = ckt_get_u64(c),
				.number = ckt_get_u64(c),
				.exec = ckt_get_u64(c),
				.status = (int)ckt_get_u32(c)};
		return;
	}
	if (header->proc == CKT_CALLBACK_NOTIFY) {
		wire->notified = (struct ckt_notify_args){.number = ckt_get_u64(c),
			.instance = ckt_get_u64(c),
			.type = ckt_get_u32(c),
			.over_bytes = ckt_get_u64(c)};
		wire->notified_count++;
		return;
	}
	if (header->proc == CKT_CALLBACK_DURABLE) {
		wire->marked = ckt_get_u64(c);
		return;
	}
	if (header->proc == CKT_CALLBACK_STAMPS) {
		take_stamps(wire, c);
		return;
	}
	if (header->proc == CKT_CALLBACK_LANE_PIECE) {
		wire->announced = ckt_get_u64(c);
		return;
	}
	uint32_t length;
	ckt_get_u32(c);
	const uint8_t *text = ckt_get_opaque(c, CKT_OUTPUT_MAX, &length);
	wire->printed = realloc(wire->printed, wire->printed_size + length + 1);
	memcpy(wire->printed + wire->printed_size, text, length);
	wire->printed_size += length;
	wire->printed[wire->printed_size] = 0;
}

static void read_callback(struct wire *wire, const char *what)
{
	struct ckt_call_header call = {0};
	uint8_t *data;
	size_t size;
	int result = ckt_net_read_record(wire->fd, CKT_RECORD_MAX, deadline(), &data, &size, NULL);
	struct ckt_cursor c = {.p = data, .end = data + size};
	if (result || !ckt_call_header_get(&c, &call))
		die(what, result ? result : EPROTO);
	take_callback(wire, &call, &c);
	free(data);
}

void wire_read_calls(struct wire *wire, unsigned count)
{
	while (wire->host_call_count < count)
		read_callback(wire, "waiting for a host function's call");
}

void wire_read_late(struct wire *wire)
{
	while (!wire->stamps.late)
		read_callback(wire, "waiting for a command that is late");
}

struct wire_reply wire_read_any(struct wire *wire)
{
	for (;;) {
		struct wire_reply reply = {0};
		size_t size;
		int result = ckt_net_read_record(
			wire->fd, CKT_RECORD_MAX, deadline(), &reply.data, &size, NULL);
		if (result)
			die("reading a reply", result);
		struct ckt_cursor c = {.p = reply.data, .end = reply.data + size};
		struct ckt_call_header call = {0};
		if (ckt_call_header_get(&c, &call)) {
			take_callback(wire, &call, &c);
			free(reply.data);
			continue;
		}
		c = (struct ckt_cursor){.p = reply.data, .end = reply.data + size};
		struct ckt_reply_header header = {0};
		if (!ckt_reply_header_get(&c, &header))
			die("a reply's header", EPROTO);
		reply.xid = header.xid;
		reply.accept_stat = header.accept_stat;
		wire->executed = header.executed;
		if (header.deferred)
			wire->deferred = header.deferred;
		reply.result = header.accept_stat ? CUDA_ERROR_UNKNOWN : (CUresult)ckt_get_u32(&c);
		reply.results = c;
		return reply;
	}
}

struct wire_reply wire_read(struct wire *wire, uint32_t xid)
{
	static struct wire_reply kept[64];
	static unsigned count;
	for (unsigned i = 0; i < count; i++)
		if (kept[i].xid == xid) {
			struct wire_reply reply = kept[i];
			kept[i] = kept[--count];
			return reply;
		}
	for (;;) {
		struct wire_reply reply = wire_read_any(wire);
		if (reply.xid == xid)
			return reply;
		if (count == 64)
			die("too many replies", ENOMEM);
		kept[count++] = reply;
	}
}

ckt_worker_status_res wire_status(struct wire *wire)
{
	ckt_worker_status_res res = {0};
	control_call(wire, CKT_WORKER_STATUS, NULL, NULL, (xdrproc_t)xdr_ckt_worker_status_res,
		&res, -1);
	return res;
}

uint64_t wire_stat_calls(struct wire *wire, const char *name)
{
	ckt_worker_stats_res res = {0};
	uint64_t calls = 0;
	control_call(
		wire, CKT_WORKER_STATS, NULL, NULL, (xdrproc_t)xdr_ckt_worker_stats_res, &res, -1);
	for (unsigned i = 0; i < res.stats.stats_len; i++)
		if (!strcmp(res.stats.stats_val[i].name, name))
			calls = res.stats.stats_val[i].calls;
	xdr_free((xdrproc_t)xdr_ckt_worker_stats_res, (char *)&res);
	return calls;
}

int wire_save(struct wire *wire, const char *directory, bool stop, unsigned deadline_ms,
	char *ret_message)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		die(directory, errno);
	ckt_worker_save_args args = {.stop = stop, .deadline_ms = deadline_ms};
	ckt_worker_save_res res = {0};
	control_call(wire, CKT_WORKER_SAVE, (xdrproc_t)xdr_ckt_worker_save_args, &args,
		(xdrproc_t)xdr_ckt_worker_save_res, &res, fd);
	close(fd);
	snprintf(ret_message, CKT_MESSAGE_MAX, "%s", res.message);
	int status = res.status;
	xdr_free((xdrproc_t)xdr_ckt_worker_save_res, (char *)&res);
	return status;
}

ckt_worker_save2_res wire_save2(
	struct wire *wire, const char *directory, ckt_worker_save2_args args)
{
	int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (directory && fd < 0)
		die(directory, errno);
	ckt_worker_save2_res res = {0};
	if (wire->memory_fds && args.to_memory)
		send_memory(wire);
	control_call(wire, CKT_WORKER_SAVE2, (xdrproc_t)xdr_ckt_worker_save2_args, &args,
		(xdrproc_t)xdr_ckt_worker_save2_res, &res, fd);
	if (fd >= 0)
		close(fd);
	if (res.status)
		fprintf(stderr, "save2: %d %s\n", res.status, res.message);
	free(res.message);
	res.message = NULL;
	return res;
}

ckt_worker_result wire_control(struct wire *wire, uint32_t proc, xdrproc_t xdr_args, void *args)
{
	ckt_worker_result res = {0};
	control_call(wire, proc, xdr_args, args, (xdrproc_t)xdr_ckt_worker_result, &res, -1);
	if (res.status)
		fprintf(stderr, "procedure %u: %d %s\n", proc, res.status, res.message);
	free(res.message);
	res.message = NULL;
	return res;
}

ckt_worker_result wire_release(
	struct wire *wire, bool end, bool parked, const char *message, const char *moved_to)
{
	ckt_worker_release_args args = {.end = end,
		.parked = parked,
		.message = (char *)message,
		.moved_to = (char *)moved_to};
	return wire_control(
		wire, CKT_WORKER_RELEASE, (xdrproc_t)xdr_ckt_worker_release_args, &args);
}

void wire_read_to_end(struct wire *wire)
{
	uint8_t *data;
	size_t size;
	while (!ckt_net_read_record(wire->fd, CKT_RECORD_MAX, deadline(), &data, &size, NULL)) {
		struct ckt_cursor c = {.p = data, .end = data + size};
		struct ckt_call_header call = {0};
		if (ckt_call_header_get(&c, &call))
			take_callback(wire, &call, &c);
		free(data);
	}
}
