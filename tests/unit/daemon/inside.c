/* SPDX-License-Identifier: Apache-2.0 */
/* See inside.h. */
#include "inside.h"
#include "server/daemon/session/memory_wait.h"
#include "server/daemon/session/worker_request.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

struct ckt_server server;
struct fake_worker worker;
char directory[64];
unsigned sessions_gone;
const char *soft_driver, *fake_nvml;
/* As they were made: tests put others in their place. */
static struct ckt_options kept_options;

void ckt_server_session_gone(struct ckt_server *s)
{
	(void)s;
	sessions_gone++;
}

int unit_setup(int argc, char **argv)
{
	soft_driver = argc > 1 ? argv[1] : NULL;
	fake_nvml = argc > 2 ? argv[2] : NULL;
	snprintf(directory, sizeof directory, "/tmp/ckt-daemon-XXXXXX");
	if (!mkdtemp(directory) || ckt_loop_init(&server.loop))
		return 2;
	ckt_log_init("test", CKT_LOG_ERROR, NULL);
	ckt_options_init(&server.options);
	kept_options = server.options;
	server.policy = &ckt_policy_limits;
	snprintf(server.socket_path, sizeof server.socket_path, "%s/s", directory);
	snprintf(server.socket_dir, sizeof server.socket_dir, "%s/s.d", directory);
	snprintf(server.host, sizeof server.host, "here");
	server.lock_fd = server.image_dir_fd = -1;
	server.driver.gpu_count = 1;
	server.driver.gpus[0].memory_bytes = 1000000;
	char message[128];
	if (ckt_memory_wait_open(&server, message, sizeof message))
		return 2;
	return mkdir(server.socket_dir, 0700) ? 2 : 0;
}

void unit_teardown(int status)
{
	(void)status;
	char command[128];
	server.options = kept_options;
	ckt_options_fini(&server.options);
	ckt_loop_fini(&server.loop);
	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	if (system(command))
		fprintf(stderr, "%s is left\n", directory);
}

/* ---- The loop */

static void stop(struct ckt_timer *timer)
{
	(void)timer;
	server.loop.stop = true;
}

void run_for(int ms)
{
	struct ckt_timer timer = {.fire = stop};
	struct pollfd ready = {.fd = server.loop.epoll_fd, .events = POLLIN};
	/*
	 * The workers are in the loop, too: once nothing is ready, all that follows from what was
	 * done has happened, however slow the machine.
	 */
	do {
		server.loop.stop = false;
		ckt_timer_set(&server.loop, &timer, ms);
		ckt_loop_run(&server.loop);
		ckt_timer_clear(&timer);
		ms = 0;
	} while (poll(&ready, 1, 0) > 0);
	server.loop.stop = false;
}

bool run_until(bool (*condition)(void *data), void *data)
{
	for (int i = 0; i < 30000; i++) {
		if (condition(data))
			return true;
		run_for(2);
	}
	return false;
}

static bool is_readable(void *data)
{
	struct pollfd p = {.fd = *(int *)data, .events = POLLIN};
	return poll(&p, 1, 0) > 0;
}

/* ---- Workers */

/* The last record's bytes are the number of those before it. */
static int encode_trace(uint32_t xid, uint8_t **ret_data, size_t *ret_size)
{
	ckt_traced_call calls[8];
	struct ckt_worker_trace_res res = {.status = worker.status,
		.message = (char *)(worker.message ? worker.message : ""),
		.trace = worker.trace.trace,
		.dropped = 5,
		.more = worker.traced_more > 0,
		.calls = {worker.traced, calls}};
	for (unsigned i = 0; i < worker.traced; i++)
		calls[i] = (ckt_traced_call){
			.name = (char *)"call", .kernel = (char *)"kernel", .bytes = i};
	worker.traced_more -= worker.traced_more > 0;
	return ckt_net_encode_reply(
		xid, 0, (xdrproc_t)xdr_ckt_worker_trace_res, &res, ret_data, ret_size);
}

static int encode_stats(uint32_t xid, uint8_t **ret_data, size_t *ret_size)
{
	ckt_worker_stat rows[] = {{.name = (char *)"launch_kernel", .calls = 77},
		{.name = (char *)(worker.transport ? worker.transport : "none"),
			.calls = worker.lanes}};
	struct ckt_worker_stats_res res = {.stats = {2, rows}};
	return ckt_net_encode_reply(
		xid, 0, (xdrproc_t)xdr_ckt_worker_stats_res, &res, ret_data, ret_size);
}

static int encode_swap(uint32_t xid, uint8_t **ret_data, size_t *ret_size)
{
	bool fails = !worker.fails_on || worker.fails_on == worker.step;
	struct ckt_worker_swap_res res = {.status = fails ? worker.status : 0,
		.message = (char *)(worker.message ? worker.message : ""),
		.swapped = worker.swapped,
		.bytes = worker.bytes};
	return ckt_net_encode_reply(
		xid, 0, (xdrproc_t)xdr_ckt_worker_swap_res, &res, ret_data, ret_size);
}

static bool is_swap(uint32_t proc)
{
	return proc == CKT_WORKER_SWAP_OUT || proc == CKT_WORKER_SWAP_YIELD ||
		proc == CKT_WORKER_SWAP_IN || proc == CKT_WORKER_SWAP_FOLLOW ||
		proc == CKT_WORKER_TOGETHER;
}

static void answer(int fd, uint32_t xid, uint32_t proc)
{
	struct ckt_worker_result result = {.status = worker.status,
		.message = (char *)(worker.message ? worker.message : ""),
		.bytes = worker.bytes};
	struct ckt_worker_save2_res saved = {
		.status = worker.status, .message = result.message, .bytes = worker.bytes};
	struct ckt_worker_status_res status = {.session = (char *)"",
		.state = CKT_STATE_RUNNING,
		.program_name = (char *)"program",
		.client = (char *)"",
		.memory_bytes = worker.bytes,
		.note = (char *)""};
	struct ckt_worker_progress_res progress = {
		.phase = (char *)"save", .done_bytes = 1, .total_bytes = worker.bytes};
	ckt_worker_gpu gpus[CKT_DEVICES_MAX];
	struct ckt_worker_gpus_res on_gpus = {
		.client = (char *)(worker.client ? worker.client : ""),
		.client_pid = worker.client_pid,
		.gpus = {worker.gpus, gpus}};
	for (unsigned i = 0; i < worker.gpus; i++)
		gpus[i] = (ckt_worker_gpu){.gpu = (int)i, .memory_bytes = worker.bytes * i};
	struct ckt_worker_hold_res hold = {.status = worker.status,
		.message = result.message,
		.held = !worker.not_held,
		.drained = worker.drained};
	static ckt_worker_nccl_id ids[CKT_WORKER_NCCL_IDS_MAX];
	struct ckt_worker_nccl_make_res made = {
		.status = worker.status, .message = result.message, .ids = {worker.ids, ids}};
	memset(ids, 0x77, sizeof ids);
	struct ckt_worker_automatic_res automatic = {.status = worker.status, .generation = 1};
	bool is_automatic = proc == CKT_WORKER_AUTOMATIC;
	bool is_hold = proc == CKT_WORKER_HOLD, is_make = proc == CKT_WORKER_NCCL_MAKE;
	bool is_gpus = proc == CKT_WORKER_GPUS, is_save = proc == CKT_WORKER_SAVE2,
	     is_status = proc == CKT_WORKER_STATUS, is_progress = proc == CKT_WORKER_PROGRESS;
	struct ckt_worker_manifest_res manifest = {.status = worker.status};
	memcpy(manifest.hash, worker.manifest, sizeof manifest.hash);
	bool is_manifest = proc == CKT_WORKER_MANIFEST;
	bool is_lease = proc == CKT_WORKER_LEASE || proc == CKT_WORKER_LEASE_RECALL;
	uint8_t *data;
	size_t size;
	if (is_swap(proc)                          ? encode_swap(xid, &data, &size)
			: proc == CKT_WORKER_TRACE ? encode_trace(xid, &data, &size)
			: proc == CKT_WORKER_STATS
			? encode_stats(xid, &data, &size)
			: ckt_net_encode_reply(xid, 0,
				  is_make                ? (xdrproc_t)xdr_ckt_worker_nccl_make_res
					  : is_hold      ? (xdrproc_t)xdr_ckt_worker_hold_res
					  : is_gpus      ? (xdrproc_t)xdr_ckt_worker_gpus_res
					  : is_save      ? (xdrproc_t)xdr_ckt_worker_save2_res
					  : is_status    ? (xdrproc_t)xdr_ckt_worker_status_res
					  : is_progress  ? (xdrproc_t)xdr_ckt_worker_progress_res
					  : is_lease     ? (xdrproc_t)xdr_ckt_worker_lease_res
					  : is_automatic ? (xdrproc_t)xdr_ckt_worker_automatic_res
					  : is_manifest  ? (xdrproc_t)xdr_ckt_worker_manifest_res
							 : (xdrproc_t)xdr_ckt_worker_result,
				  is_make                ? (void *)&made
					  : is_hold      ? (void *)&hold
					  : is_gpus      ? (void *)&on_gpus
					  : is_save      ? (void *)&saved
					  : is_status    ? (void *)&status
					  : is_progress  ? (void *)&progress
					  : is_lease     ? (void *)&worker.leases
					  : is_automatic ? (void *)&automatic
					  : is_manifest  ? (void *)&manifest
							 : (void *)&result,
				  &data, &size))
		return;
	if (worker.accept_stat)
		ckt_reply_header_put(data,
			&(struct ckt_reply_header){.xid = xid, .accept_stat = worker.accept_stat});
	if (worker.garbage)
		memset(data, 0xee, size);
	ckt_net_write_record(fd, data, size, -1, -1);
	free(data);
}

/* In the loop too, so that nothing of it runs beside a test. */
static void serve(struct ckt_source *source, uint32_t events)
{
	int passed = -1;
	uint8_t *data;
	size_t size;
	(void)events;
	bool open = !ckt_net_read_record(
		source->fd, CKT_RECORD_MAX, ckt_net_now_ms() + 60000, &data, &size, &passed);
	if (open) {
		struct ckt_cursor c = {.p = data, .end = data + size};
		struct ckt_call_header header = {0};
		ckt_call_header_get(&c, &header);
		struct ckt_worker_hold_args hold;
		if (header.proc == CKT_WORKER_TRACE)
			ckt_net_decode(&c, (xdrproc_t)xdr_ckt_worker_trace_args, &worker.trace);
		if (header.proc == CKT_WORKER_HOLD &&
			!ckt_net_decode(&c, (xdrproc_t)xdr_ckt_worker_hold_args, &hold) &&
			hold.action == CKT_HOLD_STEP) {
			worker.steps++;
			worker.commands = hold.commands;
		}
		struct ckt_worker_together_args together;
		if (header.proc == CKT_WORKER_TOGETHER &&
			!ckt_net_decode(&c, (xdrproc_t)xdr_ckt_worker_together_args, &together)) {
			worker.step = together.step;
			worker.steps_of[together.step % 8]++;
		}
		struct ckt_worker_press_args press;
		if (header.proc == CKT_WORKER_LEASE_WAITED)
			ckt_net_decode(&c, (xdrproc_t)xdr_ckt_worker_waited_args, &worker.waited);
		if (header.proc == CKT_WORKER_LEASE_PRESS &&
			!ckt_net_decode(&c, (xdrproc_t)xdr_ckt_worker_press_args, &press))
			worker.pressed = press.on;
		struct ckt_worker_gone_args gone;
		if (header.proc == CKT_WORKER_OWNER_GONE &&
			!ckt_net_decode(&c, (xdrproc_t)xdr_ckt_worker_gone_args, &gone)) {
			size_t length = strlen(worker.gone);
			snprintf(worker.gone + length, sizeof worker.gone - length, " %.*s",
				(int)sizeof gone.name, gone.name);
		}
		if (header.proc == CKT_WORKER_LEASE)
			ckt_net_decode(&c, (xdrproc_t)xdr_ckt_worker_lease_args, &worker.lease);
		free(data);
		if (passed >= 0) {
			worker.descriptors++;
			if (header.proc == CKT_WORKER_GROUP && worker.channel == -1)
				worker.channel = passed;
			else if (header.proc == CKT_WORKER_LEASE && worker.lease_channel == -1)
				worker.lease_channel = passed;
			else if (header.proc == CKT_WORKER_TURN && worker.turn_channel == -1)
				worker.turn_channel = passed;
			else if (header.proc == CKT_WORKER_METRICS && worker.metrics == -1)
				worker.metrics = passed;
			else if (header.proc == CKT_WORKER_ACTIVITY && worker.activity == -1)
				worker.activity = passed;
			else if (header.proc == CKT_WORKER_TRACE && worker.trace_page == -1)
				worker.trace_page = passed;
			else
				close(passed);
		}
		worker.calls[header.proc % 64]++;
		open = !worker.hang_up;
		if (open && !worker.silent && !(worker.swaps_last && is_swap(header.proc)) &&
			!(worker.silent_on && worker.silent_on == header.proc))
			answer(source->fd, header.xid, header.proc);
	}
	if (!open) {
		close(ckt_loop_remove(&server.loop, source));
		free(source);
	}
}

static void accept_one(struct ckt_source *source, uint32_t events)
{
	struct ckt_source *connection = calloc(1, sizeof *connection);
	(void)events;
	*connection = (struct ckt_source){.fd = accept(source->fd, NULL, NULL), .ready = serve};
	if (connection->fd < 0 || ckt_loop_add(&server.loop, connection, EPOLLIN))
		abort();
}

struct ckt_session *session_new(const char *id)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ckt_session *session = calloc(1, sizeof *session), **place = &server.sessions;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%.80s/%s.sock", server.socket_dir, id);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 8))
		abort();
	*session = (struct ckt_session){.server = &server,
		.serial = ++server.session_serial,
		.phase = CKT_SESSION_LIVE,
		.pid = -1,
		.uid = geteuid(),
		.gpu = -1,
		.pidfd = {.fd = fd, .ready = accept_one},
		.started = 1000,
		.status = {.program_name = (char *)"program",
			.client = (char *)"",
			.note = (char *)"",
			.session = (char *)"",
			.state = CKT_STATE_RUNNING}};
	snprintf(session->id, sizeof session->id, "%s", id);
	for (int i = 0; i < CKT_LINKS; i++)
		session->links[i].stream.source.fd = -1;
	while (*place && strcmp((*place)->id, id) < 0)
		place = &(*place)->next;
	session->next = *place;
	*place = session;
	server.session_count++;
	if (ckt_loop_add(&server.loop, &session->pidfd, EPOLLIN))
		abort();
	memset(&worker, 0, sizeof worker);
	return session;
}

void session_drop(struct ckt_session *session)
{
	struct ckt_session **place = &server.sessions;
	char path[CKT_PATH_MAX + 32];
	ckt_turn_close(session);
	while (*place != session)
		place = &(*place)->next;
	*place = session->next;
	server.session_count--;
	ckt_daemon_request_fail_all(session, -ECONNRESET);
	for (int i = 0; i < CKT_LINKS; i++)
		if (session->links[i].stream.source.fd >= 0)
			ckt_record_stream_fini(&session->links[i].stream);
	ckt_timer_clear(&session->timer);
	ckt_timer_clear(&session->pause_timer);
	snprintf(path, sizeof path, "%s/%s.sock", server.socket_dir, session->id);
	unlink(path);
	close(ckt_loop_remove(&server.loop, &session->pidfd));
	free(session->group.partners);
	/* Its worker sees the end. */
	run_for(1);
	free(session);
}

/* ---- Peers */

int peer_new(ckt_greeting *ret_greeting)
{
	ckt_greeting greeting = {0};
	int fds[2];
	size_t size;
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	ckt_peer_accept(&server, fds[1]);
	uint8_t *data = receive(fds[0], &size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(data);
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_call_header header;
	YES(ckt_call_header_get(&c, &header) && header.proc == CKT_CALLBACK_GREETING &&
		!ckt_net_decode(&c, (xdrproc_t)xdr_ckt_greeting, &greeting));
	free(data);
	if (ret_greeting)
		*ret_greeting = greeting;
	else
		xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	return fds[0];
}

struct ckt_peer *peer_last(void)
{
	return server.peers_last;
}

int broker_new(void)
{
	int fds[2];
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	close(fds[1]);
	return fds[0];
}

void send_bytes(int fd, const void *data, size_t size, int pass_fd)
{
	IS(ckt_net_write_record(fd, data, size, ckt_net_now_ms() + 60000, pass_fd), 0);
}

uint8_t *receive(int fd, size_t *ret_size)
{
	uint8_t *data = NULL;
	if (!run_until(is_readable, &fd) ||
		ckt_net_read_record(
			fd, CKT_RECORD_MAX, ckt_net_now_ms() + 60000, &data, ret_size, NULL))
		return NULL;
	return data;
}

ckt_hello_args hello_args(ckt_hello_kind kind, const char *session)
{
	return (ckt_hello_args){.protocol = CKT_PROTOCOL_VERSION,
		.kind = kind,
		.session = (char *)session,
		.program_name = (char *)"test",
		.host = (char *)"there",
		.pid = 1,
		.build = (char *)"test"};
}

/* Reads the answer to a hello, see hello. */
static int hello_answer(int fd, char *ret_text)
{
	char text[512];
	size_t size;
	uint8_t *data = receive(fd, &size);
	if (!data)
		return -1;
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_reply_header header = {0};
	ckt_hello_res res = {0};
	YES(ckt_reply_header_get(&c, &header) && header.xid == 7 &&
		!ckt_net_decode(&c, (xdrproc_t)xdr_ckt_hello_res, &res));
	int status = (int)res.status;
	snprintf(text, sizeof text, "%s%s", status ? res.ckt_hello_res_u.refused.message : "",
		status ? res.ckt_hello_res_u.refused.moved_to : "");
	if (ret_text)
		strcpy(ret_text, text);
	xdr_free((xdrproc_t)xdr_ckt_hello_res, (char *)&res);
	free(data);
	return status;
}

static u_int encode_hello(const ckt_hello_args *args, char *ret_body, size_t size)
{
	XDR xdr;
	xdrmem_create(&xdr, ret_body, (u_int)size, XDR_ENCODE);
	return xdr_ckt_hello_args(&xdr, (ckt_hello_args *)args) ? xdr_getpos(&xdr) : 0;
}

int hello(
	int fd, const ckt_hello_args *args, const uint8_t *nonce, const char *token, char *ret_text)
{
	char body[4096];
	u_int length = encode_hello(args, body, sizeof body);
	if (!length)
		return -2;
	uint8_t record[4200], *p = record, hmac[CKT_AUTH_HMAC_SIZE];
	const uint32_t head[] = {7, 0, 2, CRICKET_SESSION_PROG, 1, CKT_SESSION_HELLO};
	for (size_t i = 0; i < COUNT(head); i++)
		p = ckt_put_u32(p, head[i]);
	if (token) {
		struct ckt_token t = {.size_bytes = strlen(token)};
		memcpy(t.bytes, token, t.size_bytes);
		ckt_auth_hmac(&t, nonce, body, length, hmac);
		p = ckt_put_opaque(ckt_put_u32(p, CKT_AUTH_CRICKET_TOKEN), hmac, sizeof hmac);
	} else {
		p = ckt_put_u32(ckt_put_u32(p, CKT_AUTH_NONE), 0);
	}
	p = ckt_put_u32(ckt_put_u32(p, CKT_AUTH_NONE), 0);
	memcpy(p, body, length);
	send_bytes(fd, record, (size_t)(p - record) + length, -1);
	return hello_answer(fd, ret_text);
}

int hello_proving(int fd, const ckt_hello_args *args, const ckt_greeting *greeting,
	const char *token, const struct ckt_session_key *key, char *ret_text)
{
	char body[4096];
	uint8_t record[4400];
	struct ckt_token t = {.size_bytes = token ? strlen(token) : 0};
	struct ckt_credential credential = {0};
	u_int length = encode_hello(args, body, sizeof body);
	if (!length)
		return -2;
	const struct ckt_challenge challenge = {(const uint8_t *)greeting->nonce, body, length};
	if (token)
		memcpy(t.bytes, token, t.size_bytes);
	if (key)
		MUST(ckt_session_key_prove(key, &challenge, &credential), 0);
	uint8_t *end =
		ckt_hello_put(record, 7, greeting, token ? &t : NULL, &credential, &challenge);
	send_bytes(fd, record, (size_t)(end - record), -1);
	return hello_answer(fd, ret_text);
}

int control_new(void)
{
	ckt_hello_args args = hello_args(CKT_HELLO_CONTROL, "");
	int fd = peer_new(NULL);
	MUST(hello(fd, &args, NULL, NULL, NULL), CKT_HELLO_OK);
	return fd;
}

bool control(int fd, uint32_t proc, xdrproc_t xdr_args, void *args, int pass_fd, xdrproc_t xdr_res,
	void *res)
{
	uint8_t *data;
	size_t size;
	if (ckt_net_encode_call(9, CRICKET_CONTROL_PROG, proc, xdr_args, args, &data, &size))
		return false;
	send_bytes(fd, data, size, pass_fd);
	free(data);
	data = receive(fd, &size);
	if (!data)
		return false;
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_reply_header header = {0};
	bool good = ckt_reply_header_get(&c, &header) && header.xid == 9 && !header.accept_stat;
	if (good && xdr_res)
		good = ckt_net_decode(&c, xdr_res, res) == 0;
	free(data);
	return good;
}

/* ---- Files */

char *path_in(const char *name)
{
	static char paths[4][256];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof paths[0], "%s/%s", directory, name);
	return path;
}

void write_file(const char *path, const char *text, int mode)
{
	FILE *file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	fclose(file);
	IS(chmod(path, (mode_t)mode), 0);
}

const char *read_file(const char *path)
{
	static char text[4096];
	FILE *file = fopen(path, "r");
	text[0] = 0;
	if (file) {
		text[fread(text, 1, sizeof text - 1, file)] = 0;
		fclose(file);
	}
	return text;
}
