/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/lookahead.c over the wire: the executor is inside a call that waits for the
 * GPU, the GPU waits for a host function, and the session goes on, is saved, or ends with its
 * client.  The soft GPU waits at a launch for a stream that has 1024 pieces of work.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/worker/module/blob.h"
#include "tests/unit/worker/wire_session.h"

enum { MANY = 1100, SOON_US = 100000 };

static const char ptx[] =
	".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry count(.param .u64 p)\n{\n\t.reg .u32 %r<2>; .reg .b64 %d<3>;\n"
	"\tld.param.u64 %d1, [p]; ld.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 1; st.global.u32 [%d1], %r1;\n\tret;\n}\n";

static uint64_t memory;

static struct wire *begin(void)
{
	uint8_t hash[32];
	struct wire *w = calloc(1, sizeof *w);
	w->env[0] = "CRICKET_SOFT_WAITS=launch";
	w->disconnect_timeout_ms = 500;
	MUST(wire_start(w, worker_path, driver_path, 0, -1, NULL), 0);
	MUST(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	memory = alloc(w, 4096);
	fill(w, memory, 0, 4096);
	ckt_blob_hash(ptx, sizeof ptx - 1, hash);
	WIRE_BATCH(w, blob_data, .hash = hash, .hash_len = 32, .total = sizeof ptx - 1,
		.data = (const uint8_t *)ptx, .data_len = sizeof ptx - 1);
	MUST(done(WIRE_CALL(w, module_load, true, .id = MODULE(0), .hash = hash, .hash_len = 32)),
		CUDA_SUCCESS);
	MUST(done(WIRE_CALL(w, module_get_function, true, .module = MODULE(0), .id = FUNCTION(0),
		     .name = "count", .name_len = 5)),
		CUDA_SUCCESS);
	MUST(done(WIRE_CALL(
		     w, stream_create, true, .id = STREAM(0), .flags = CU_STREAM_NON_BLOCKING)),
		CUDA_SUCCESS);
	return w;
}

static void launch(struct wire *w)
{
	WIRE_BATCH(w, launch_kernel, .function = FUNCTION(0), .grid_x = 1, .grid_y = 1, .grid_z = 1,
		.block_x = 1, .block_y = 1, .block_z = 1, .stream = STREAM(0),
		.params = (const uint8_t *)&memory, .params_len = sizeof memory);
}

/* More than the stream takes: the executor does not come back before the function's end. */
static void stick(struct wire *w)
{
	for (unsigned i = 0; i < MANY; i++)
		launch(w);
}

/* The functions' number n, counted from 0, has returned in the program, on the thread for such. */
static void ended(struct wire *w, unsigned n)
{
	w->thread = 2;
	WIRE_BATCH(w, host_func_done, .instance = w->host_calls[n].instance);
	w->thread = 0;
}

/* Functions whose turns come one after another, with commands before their ends. */
static void test_turns(void)
{
	enum { FUNCTIONS = 3 };
	struct wire *w = begin();
	for (unsigned i = 0; i < FUNCTIONS; i++)
		WIRE_BATCH(w, host_func, .stream = STREAM(0), .number = i);
	wire_read_calls(w, 1);
	stick(w);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		usleep(SOON_US / 10);
		wire_read_calls(w, i + 1);
		IS(w->host_calls[i].number, i);
		ended(w, i);
		launch(w);
	}
	IS(done(WIRE_CALL(w, ctx_synchronize, false, .id = 0)), CUDA_SUCCESS);
	IS(get_u32(w, memory), MANY + FUNCTIONS);
	IS(w->deferred, 0);
	session_end(w);
}

/* A context's end, for which the worker waits by itself. */
static void test_reset(void)
{
	struct wire *w = begin();
	WIRE_BATCH(w, host_func, .stream = STREAM(0), .number = 5);
	wire_read_calls(w, 1);
	stick(w);
	uint32_t xid = WIRE_SEND(w, primary_ctx_reset, true, false, .device = 0);
	usleep(SOON_US);
	ended(w, 0);
	IS(done(wire_read(w, xid)), CUDA_SUCCESS);
	session_end(w);
}

static void *end_soon(void *opaque)
{
	usleep(SOON_US);
	ended(opaque, 0);
	return NULL;
}

/* A save that finds the executor inside the call succeeds once the function has returned. */
static void test_save(void)
{
	char directory[] = "/tmp/stuck.XXXXXX", message[CKT_MESSAGE_MAX];
	pthread_t thread;
	struct wire *w = begin();
	make_directory(directory);
	WIRE_BATCH(w, host_func, .stream = STREAM(0), .number = 5);
	wire_read_calls(w, 1);
	stick(w);
	MUST(pthread_create(&thread, NULL, end_soon, w), 0);
	IS(wire_save(w, directory, false, WIRE_GUARD_MS, message), 0);
	pthread_join(thread, NULL);
	launch(w);
	IS(done(WIRE_CALL(w, ctx_synchronize, false, .id = 0)), CUDA_SUCCESS);
	IS(get_u32(w, memory), MANY + 1);
	session_end(w);
	/* The image is whole, and the function's end is none of the restored session's business. */
	w = calloc(1, sizeof *w);
	w->env[0] = "CRICKET_SOFT_WAITS=launch";
	MUST(try_restore(w, directory, message), 0);
	remove_directory(directory);
	kill(w->pid, SIGTERM);
	session_free(w);
}

/* The client goes while nobody but it can let the call return. */
static void test_gone(void)
{
	struct wire *w = begin();
	WIRE_BATCH(w, host_func, .stream = STREAM(0), .number = 5);
	wire_read_calls(w, 1);
	stick(w);
	usleep(SOON_US);
	wire_disconnect(w);
	session_free(w);
}

/* Half of the end of a function comes, and later the rest. */
static void test_pieces(void)
{
	uint8_t record[CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + 8];
	struct wire *w = begin();
	WIRE_BATCH(w, host_func, .stream = STREAM(0), .number = 5);
	wire_read_calls(w, 1);
	stick(w);
	usleep(SOON_US);
	uint8_t *p = ckt_put_u32(record, 0x80000000u | (CKT_CALL_HEADER_SIZE + 8));
	p = ckt_call_header_put(p,
		&(struct ckt_call_header){.xid = ++w->xid,
			.prog = CKT_CUDA_PROG,
			.vers = CKT_CUDA_VERS,
			.proc = wire_proc("host_func_done"),
			.seq = ++w->seq,
			.thread = 2,
			.flags = CKT_CALL_BATCHED});
	ckt_put_u64(p, w->host_calls[0].instance);
	IS(write(w->fd, record, 50), 50);
	usleep(SOON_US / 5);
	IS(write(w->fd, record + 50, sizeof record - 50), sizeof record - 50);
	IS(done(WIRE_CALL(w, ctx_synchronize, false, .id = 0)), CUDA_SUCCESS);
	IS(get_u32(w, memory), MANY);
	session_end(w);
}

UNIT_SUITE(stuck, {"turns", test_turns}, {"reset", test_reset}, {"save", test_save},
	{"gone", test_gone}, {"pieces", test_pieces})
