/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricket-worker end to end on the soft GPU, spoken to over the wire: argv[1] the worker, argv[2]
 * the soft libcuda.so.1.
 */
#include <CUnit/Basic.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/handle.h"
#include "rpc/net.h"
#include "server/worker/module/blob.h"
#include "tests/unit/worker/wire_client.h"

static const char *worker_path, *driver_path;

#define STREAM(n) ckt_handle_make(CKT_KIND_STREAM, 1, 100 + (n))
#define EVENT(n) ckt_handle_make(CKT_KIND_EVENT, 1, 200 + (n))
#define MODULE(n) ckt_handle_make(CKT_KIND_MODULE, 1, 300 + (n))
#define FUNCTION(n) ckt_handle_make(CKT_KIND_FUNCTION, 1, 400 + (n))

/*
 * counter[0] += step, and out[i] = in[i] * 2 + counter-independent bias from a variable; spin runs
 * until the flag is set.
 */
static const char ptx[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .global .align 4 .u32 total = 5;\n"
	".global .align 4 .u32 hidden = 7;\n"
	".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 args);\n"
	".global .align 1 .b8 format[10] = {108, 105, 110, 101, 32, 37, 117, 10, 0, 0};\n"
	".visible .entry say(.param .u32 number)\n{\n"
	"\t.local .align 8 .b8 frame[8]; .reg .b32 %r<4>; .reg .b64 %d<6>;\n"
	"\tld.param.u32 %r1, [number]; mov.u64 %d1, frame; cvta.local.u64 %d2, %d1; st.local.u32 [frame], %r1;\n"
	"\tmov.u64 %d3, format; cvta.global.u64 %d4, %d3;\n"
	"\t{\n\t.param .b64 p0; st.param.b64 [p0], %d4; .param .b64 p1; st.param.b64 [p1], %d2; .param .b32 r0;\n"
	"\tcall.uni (r0), vprintf, (p0, p1);\n\t}\n"
	"\tret;\n}\n"
	".visible .entry twice(.param .u64 out, .param .u64 in, .param .u32 n)\n{\n"
	"\t.reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<8>;\n"
	"\tld.param.u64 %d1, [out]; ld.param.u64 %d2, [in]; ld.param.u32 %r1, [n];\n"
	"\tmov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;\n"
	"\tsetp.ge.u32 %p, %r5, %r1; @%p bra DONE;\n"
	"\tmul.wide.u32 %d3, %r5, 4; add.u64 %d4, %d2, %d3; ld.global.u32 %r6, [%d4];\n"
	"\tshl.b32 %r6, %r6, 1; add.u64 %d5, %d1, %d3; st.global.u32 [%d5], %r6;\n"
	"DONE:\n\tret;\n}\n"
	".visible .entry add_total(.param .u32 step)\n{\n"
	"\t.reg .b32 %r<4>; .reg .b64 %d<4>;\n"
	"\tld.param.u32 %r1, [step]; mov.u64 %d1, total; atom.global.add.u32 %r2, [%d1], %r1;\n"
	"\tmov.u64 %d2, hidden; atom.global.add.u32 %r3, [%d2], 1;\n"
	"\tret;\n}\n"
	".visible .entry read_hidden(.param .u64 out)\n{\n"
	"\t.reg .b32 %r<4>; .reg .b64 %d<4>;\n"
	"\tld.param.u64 %d1, [out]; ld.global.u32 %r1, [hidden]; st.global.u32 [%d1], %r1;\n"
	"\tret;\n}\n"
	".visible .entry spin(.param .u64 flag)\n{\n"
	"\t.reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<4>;\n"
	"\tld.param.u64 %d1, [flag];\n"
	"AGAIN:\n\tld.volatile.global.u32 %r1, [%d1]; setp.eq.u32 %p, %r1, 0; @%p bra AGAIN;\n"
	"\tret;\n}\n"
	".visible .entry fault()\n{\n"
	"\t.reg .b32 %r<4>; .reg .b64 %d<4>;\n"
	"\tmov.u64 %d1, 16; mov.u32 %r1, 1; st.global.u32 [%d1], %r1;\n"
	"\tret;\n}\n";

static struct wire *session_new(uint64_t limit)
{
	struct wire *w = calloc(1, sizeof *w);
	CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, limit, -1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	return w;
}

static void session_end(struct wire *w)
{
	if (w->fd >= 0) {
		uint8_t bye[CKT_CALL_HEADER_SIZE];
		ckt_call_header_put(bye,
			&(struct ckt_call_header){.xid = 1,
				.prog = CRICKET_SESSION_PROG,
				.vers = 1,
				.proc = CKT_SESSION_BYE,
				.acked = w->acked});
		CU_ASSERT_EQUAL(ckt_net_write_record(w->fd, bye, sizeof bye, -1, -1), 0);
	}
	CU_ASSERT_TRUE(wire_ended(w));
	free(w->log);
	free(w->printed);
	free(w);
}

static CUresult done(struct wire_reply reply)
{
	free(reply.data);
	return reply.accept_stat ? (CUresult)-1 : reply.result;
}

static uint64_t alloc(struct wire *w, uint64_t size, CUresult *ret_result)
{
	struct wire_reply reply = WIRE_CALL(w, mem_alloc, true, .size = size);
	struct ckt_mem_alloc_res res = {0};
	*ret_result = reply.result;
	if (!reply.result)
		CU_ASSERT_TRUE(ckt_mem_alloc_res_get(&reply.results, &res));
	free(reply.data);
	return res.address;
}

static uint64_t must_alloc(struct wire *w, uint64_t size)
{
	CUresult result;
	uint64_t address = alloc(w, size, &result);
	CU_ASSERT_EQUAL_FATAL(result, CUDA_SUCCESS);
	return address;
}

static void put(struct wire *w, uint64_t dst, const void *data, uint32_t size)
{
	WIRE_BATCH(w, memcpy_htod, .dst = dst, .data = data, .data_len = size);
}

static CUresult get(struct wire *w, uint64_t src, void *data, uint32_t size)
{
	struct wire_reply reply = WIRE_CALL(w, memcpy_dtoh, true, .src = src, .size = size);
	CUresult result = reply.result;
	if (!result) {
		struct ckt_memcpy_dtoh_res res;
		CU_ASSERT_TRUE(ckt_memcpy_dtoh_res_get(&reply.results, &res));
		CU_ASSERT_EQUAL(res.data_len, size);
		if (res.data_len == size)
			memcpy(data, res.data, size);
	}
	free(reply.data);
	return result;
}

static uint32_t get_u32(struct wire *w, uint64_t src)
{
	uint32_t value = 0xdeadbeef;
	CU_ASSERT_EQUAL(get(w, src, &value, 4), CUDA_SUCCESS);
	return value;
}

static void load_module(struct wire *w, unsigned n)
{
	uint8_t hash[32];
	ckt_blob_hash(ptx, sizeof ptx - 1, hash);
	struct wire_reply reply = WIRE_CALL(w, blob_have, false, .hash = hash, .hash_len = 32);
	struct ckt_blob_have_res have = {0};
	CU_ASSERT_TRUE(ckt_blob_have_res_get(&reply.results, &have));
	free(reply.data);
	if (!have.have) {
		/* In two pieces. */
		WIRE_BATCH(w, blob_data, .hash = hash, .hash_len = 32, .total = sizeof ptx - 1,
			.offset = 0, .data = (uint8_t *)ptx, .data_len = 100);
		WIRE_BATCH(w, blob_data, .hash = hash, .hash_len = 32, .total = sizeof ptx - 1,
			.offset = 100, .data = (uint8_t *)ptx + 100, .data_len = sizeof ptx - 101);
	}
	reply = WIRE_CALL(w, module_load, true, .id = MODULE(n), .hash = hash, .hash_len = 32,
		.error_log_max = 1000);
	struct ckt_module_load_res res = {.status = 999};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_module_load_res_get(&reply.results, &res));
	if (res.status)
		fprintf(stderr, "module_load: %u %.*s\n", res.status, (int)res.error_log_len,
			res.error_log);
	CU_ASSERT_EQUAL_FATAL(res.status, 0);
	free(reply.data);
}

static void get_function(struct wire *w, unsigned n, const char *name, unsigned params)
{
	struct wire_reply reply = WIRE_CALL(w, module_get_function, true, .module = MODULE(0),
		.id = FUNCTION(n), .name = name, .name_len = (uint32_t)strlen(name));
	struct ckt_module_get_function_res res = {0};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_module_get_function_res_get(&reply.results, &res));
	CU_ASSERT_EQUAL(res.param_offsets_len, params);
	CU_ASSERT_EQUAL(res.attribute_values_len, CU_FUNC_ATTRIBUTE_MAX);
	free(reply.data);
}

static void load_all(struct wire *w)
{
	load_module(w, 0);
	get_function(w, 0, "twice", 3);
	get_function(w, 1, "add_total", 1);
	get_function(w, 2, "read_hidden", 1);
	get_function(w, 3, "spin", 1);
	get_function(w, 4, "fault", 0);
	get_function(w, 5, "say", 1);
}

static void launch(struct wire *w, unsigned function, unsigned blocks, unsigned threads,
	uint64_t stream, const void *params, uint32_t size)
{
	WIRE_BATCH(w, launch_kernel, .function = FUNCTION(function), .grid_x = blocks, .grid_y = 1,
		.grid_z = 1, .block_x = threads, .block_y = 1, .block_z = 1, .stream = stream,
		.params = params, .params_len = size);
}

static void launch_twice(struct wire *w, uint64_t out, uint64_t in, uint32_t n)
{
	uint8_t params[20];
	memcpy(params, &out, 8);
	memcpy(params + 8, &in, 8);
	memcpy(params + 16, &n, 4);
	launch(w, 0, (n + 127) / 128, 128, 0, params, sizeof params);
}

static uint64_t global_address(struct wire *w, const char *name)
{
	struct wire_reply reply = WIRE_CALL(w, module_get_global, true, .module = MODULE(0),
		.name = name, .name_len = (uint32_t)strlen(name));
	struct ckt_module_get_global_res res = {0};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_module_get_global_res_get(&reply.results, &res));
	free(reply.data);
	return res.address;
}

/* ---- Tests */

static void test_devices(void)
{
	struct wire *w = session_new((uint64_t)1 << 30);
	uint8_t call[CKT_CALL_HEADER_SIZE], *data;
	size_t size;
	ckt_call_header_put(call,
		&(struct ckt_call_header){.xid = 77,
			.prog = CRICKET_SESSION_PROG,
			.vers = 1,
			.proc = CKT_SESSION_DEVICES});
	CU_ASSERT_EQUAL(ckt_net_write_record(w->fd, call, sizeof call, -1, -1), 0);
	CU_ASSERT_EQUAL_FATAL(ckt_net_read_record(w->fd, CKT_RECORD_MAX, ckt_net_now_ms() + 60000,
				      &data, &size, NULL),
		0);
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_reply_header header;
	ckt_devices_res res = {0};
	CU_ASSERT_TRUE_FATAL(ckt_reply_header_get(&c, &header));
	CU_ASSERT_EQUAL(header.xid, 77);
	CU_ASSERT_EQUAL_FATAL(ckt_net_decode(&c, (xdrproc_t)xdr_ckt_devices_res, &res), 0);
	CU_ASSERT_EQUAL_FATAL(res.devices.devices_len, 1);
	ckt_device *device = res.devices.devices_val;
	CU_ASSERT_PTR_NOT_NULL(strstr(device->name, "Cricket Soft GPU"));
	CU_ASSERT_EQUAL(device->total_bytes, (uint64_t)1 << 30);
	CU_ASSERT_EQUAL(device->attributes.attributes_len, CU_DEVICE_ATTRIBUTE_MAX);
	CU_ASSERT_EQUAL(device->attributes.attributes_val[CU_DEVICE_ATTRIBUTE_WARP_SIZE].value, 32);
	CU_ASSERT_EQUAL(
		device->attributes.attributes_val[CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY].value, 1);
	CU_ASSERT_EQUAL(
		device->attributes.attributes_val[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED].value,
		1);
	xdr_free((xdrproc_t)xdr_ckt_devices_res, (char *)&res);
	free(data);
	session_end(w);
}

static void test_memory(void)
{
	struct wire *w = session_new(0);
	uint64_t a = must_alloc(w, 1000), b = must_alloc(w, 3 << 20);
	CU_ASSERT_EQUAL(a % 512, 0);
	CU_ASSERT_NOT_EQUAL(a, b);
	uint8_t *out = malloc(1 << 20), *in = malloc(1 << 20);
	for (unsigned i = 0; i < 1 << 20; i++)
		out[i] = (uint8_t)(i * 7 + (i >> 8));
	put(w, b, out, 1 << 20);
	WIRE_BATCH(w, memcpy_dtod, .dst = b + (1 << 20), .src = b, .size = 1 << 20);
	WIRE_BATCH(
		w, memset, .dst = b, .element_size = 1, .value = 0x11, .width = 100, .height = 1);
	CU_ASSERT_EQUAL(get(w, b + (1 << 20), in, 1 << 20), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(in, out, 1 << 20), 0);
	CU_ASSERT_EQUAL(get(w, b, in, 200), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(in[99], 0x11);
	CU_ASSERT_EQUAL(in[100], out[100]);
	/* 2D: 4 rows of 16 bytes into pitch 64 and back. */
	WIRE_BATCH(w, memcpy2d_htod, .dst = b, .dst_pitch = 64, .width = 16, .height = 4,
		.data = out, .data_len = 64);
	struct wire_reply reply = WIRE_CALL(
		w, memcpy2d_dtoh, true, .src = b, .src_pitch = 64, .width = 16, .height = 4);
	struct ckt_memcpy2d_dtoh_res res = {0};
	CU_ASSERT_EQUAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_memcpy2d_dtoh_res_get(&reply.results, &res));
	CU_ASSERT_TRUE(res.data_len == 64 && !memcmp(res.data, out, 64));
	free(reply.data);
	CU_ASSERT_EQUAL(get(w, b + 64, in, 16), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(in, out + 16, 16), 0);
	/* Freed, then given again at the same address; not freed twice; not freed in the middle. */
	CU_ASSERT_EQUAL(
		done(WIRE_CALL(w, mem_free, true, .address = a + 256)), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, mem_free, true, .address = a)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, mem_free, true, .address = a)), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(must_alloc(w, 900), a);
	free(out);
	free(in);
	session_end(w);
}

static void test_limit(void)
{
	struct wire *w = session_new((uint64_t)1 << 30);
	uint64_t total = 0;
	CUresult result = CUDA_SUCCESS;
	while (!result && total <= (uint64_t)1 << 30) {
		alloc(w, 128 << 20, &result);
		if (!result)
			total += 128 << 20;
	}
	CU_ASSERT_EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
	CU_ASSERT_TRUE(total >= (uint64_t)896 << 20 && total < (uint64_t)1 << 30);
	struct wire_reply reply = WIRE_CALL(w, mem_get_info, false, .device = 0);
	struct ckt_mem_get_info_res res = {0};
	CU_ASSERT_TRUE(ckt_mem_get_info_res_get(&reply.results, &res));
	CU_ASSERT_EQUAL(res.total, (uint64_t)1 << 30);
	CU_ASSERT_TRUE(res.free + total <= (uint64_t)1 << 30);
	free(reply.data);
	session_end(w);
}

static void test_launch(void)
{
	struct wire *w = session_new(0);
	load_all(w);
	enum { N = 1000 };
	uint32_t values[N], results[N];
	for (uint32_t i = 0; i < N; i++)
		values[i] = i * 3;
	uint64_t in = must_alloc(w, sizeof values), out = must_alloc(w, sizeof values);
	put(w, in, values, sizeof values);
	launch_twice(w, out, in, N);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(get(w, out, results, sizeof results), CUDA_SUCCESS);
	unsigned wrong = 0;
	for (uint32_t i = 0; i < N; i++)
		wrong += results[i] != values[i] * 2;
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(wire_stat_calls(w, "launch_kernel"), 1);
	/* A batched call that fails is reported with the next reply, once. */
	WIRE_BATCH(w, launch_kernel, .function = FUNCTION(99), .grid_x = 1, .grid_y = 1,
		.grid_z = 1, .block_x = 1, .block_y = 1, .block_z = 1);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, stream_synchronize, false)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(w->deferred, CUDA_ERROR_INVALID_HANDLE);
	w->deferred = 0;
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, stream_synchronize, false)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(w->deferred, 0);
	/* A module's end takes its functions along. */
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, module_unload, true, .id = MODULE(0))), CUDA_SUCCESS);
	launch_twice(w, out, in, N);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, stream_synchronize, false)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(w->deferred, CUDA_ERROR_INVALID_HANDLE);
	session_end(w);
}

static void test_streams_and_events(void)
{
	struct wire *w = session_new(0);
	load_all(w);
	uint64_t flag = must_alloc(w, 4);
	WIRE_BATCH(w, memset, .dst = flag, .element_size = 4, .value = 0, .width = 1, .height = 1);
	WIRE_BATCH(w, stream_create, .id = STREAM(0), .flags = CU_STREAM_NON_BLOCKING);
	WIRE_BATCH(w, stream_create, .id = STREAM(1), .flags = CU_STREAM_NON_BLOCKING);
	WIRE_BATCH(w, event_create, .id = EVENT(0), .flags = 0);
	WIRE_BATCH(w, event_create, .id = EVENT(1), .flags = 0);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	WIRE_BATCH(w, event_record, .event = EVENT(0), .stream = STREAM(0));
	CU_ASSERT_EQUAL(
		done(WIRE_CALL(w, event_synchronize, false, .event = EVENT(0))), CUDA_SUCCESS);
	launch(w, 3, 1, 1, STREAM(0), &flag, 8);
	WIRE_BATCH(w, event_record, .event = EVENT(1), .stream = STREAM(0));
	CU_ASSERT_EQUAL(
		done(WIRE_CALL(w, stream_query, false, .stream = STREAM(0))), CUDA_ERROR_NOT_READY);
	CU_ASSERT_EQUAL(
		done(WIRE_CALL(w, event_query, false, .event = EVENT(1))), CUDA_ERROR_NOT_READY);
	/* A thread waits; another goes on; nobody holds anybody up. */
	uint32_t sync = WIRE_SEND(w, stream_synchronize, false, false, .stream = STREAM(0));
	uint32_t event_sync = WIRE_SEND(w, event_synchronize, false, false, .event = EVENT(1));
	uint32_t data =
		WIRE_SEND(w, memcpy_dtoh, true, false, .src = flag, .size = 4, .stream = STREAM(0));
	uint64_t block = must_alloc(w, 100);
	uint32_t freed = WIRE_SEND(w, mem_free, true, false, .address = block);
	CU_ASSERT_EQUAL(
		done(WIRE_CALL(w, stream_synchronize, false, .stream = STREAM(1))), CUDA_SUCCESS);
	/* The block is not given out again before the work queued then is done. */
	uint64_t other = must_alloc(w, 100);
	CU_ASSERT_NOT_EQUAL(other, block);
	/* Long enough for the waits to have gone to the waiters. */
	poll(NULL, 0, 20);
	uint32_t one = 1;
	WIRE_BATCH(w, memcpy_htod, .dst = flag, .stream = STREAM(1), .data = (uint8_t *)&one,
		.data_len = 4);
	CU_ASSERT_EQUAL(done(wire_read(w, sync)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(wire_read(w, event_sync)), CUDA_SUCCESS);
	struct wire_reply reply = wire_read(w, data);
	struct ckt_memcpy_dtoh_res res = {0};
	CU_ASSERT_EQUAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_memcpy_dtoh_res_get(&reply.results, &res));
	CU_ASSERT_TRUE(res.data_len == 4 && res.data[0] == 1);
	free(reply.data);
	CU_ASSERT_EQUAL(done(wire_read(w, freed)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(must_alloc(w, 100), block);
	reply = WIRE_CALL(w, event_elapsed_time, false, .start = EVENT(0), .end = EVENT(1));
	struct ckt_event_elapsed_time_res ms = {0};
	CU_ASSERT_EQUAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_event_elapsed_time_res_get(&reply.results, &ms));
	/* The kernel ran all through the pause above. */
	CU_ASSERT_TRUE(ms.milliseconds >= 20);
	free(reply.data);
	session_end(w);
}

/*
 * What kernels print is here when the reply of the wait is, in order, and more than a pipe holds.
 */
static void test_printed(void)
{
	struct wire *w = session_new(0);
	load_all(w);
	uint32_t expected = 0;
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < (round == 3 ? 3000 : 3); i++, expected++)
			launch(w, 5, 1, 1, 0, &expected, 4);
		if (round == 0)
			CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS)
		else
			CU_ASSERT_EQUAL(done(WIRE_CALL(w, stream_synchronize, false)), CUDA_SUCCESS)
		const char *p = w->printed;
		CU_ASSERT_PTR_NOT_NULL_FATAL(p);
		uint32_t seen = 0, number;
		int length;
		for (; sscanf(p, "line %u\n%n", &number, &length) == 1; p += length, seen++)
			if (number != seen)
				break;
		CU_ASSERT_EQUAL(seen, expected);
	}
	session_end(w);
}

/* Data that is there comes before the reply that says so. */
static void test_data_before_done(void)
{
	struct wire *w = session_new(0);
	uint64_t block = must_alloc(w, 1 << 20);
	for (int i = 0; i < 50; i++) {
		uint32_t xids[5];
		for (int k = 0; k < 4; k++)
			xids[k] = WIRE_SEND(
				w, memcpy_dtoh, true, false, .src = block, .size = 100000);
		xids[4] = i % 2 ? WIRE_SEND(w, stream_synchronize, false, false, .stream = 0)
				: WIRE_SEND(w, ctx_synchronize, false, false, .id = 0);
		for (int k = 0; k < 5; k++) {
			struct wire_reply reply = wire_read_any(w);
			CU_ASSERT_EQUAL(reply.xid, xids[k]);
			free(reply.data);
		}
		w->acked = w->seq;
	}
	session_end(w);
}

static void test_resume(void)
{
	struct wire *w = session_new(0);
	load_all(w);
	uint64_t total = global_address(w, "total");
	uint32_t step = 10;
	launch(w, 1, 1, 1, 0, &step, 4);
	CU_ASSERT_EQUAL(get_u32(w, total), 15);
	/* Sent, maybe executed, the connection breaks before any answer. */
	uint64_t seq_before = w->seq;
	launch(w, 1, 1, 1, 0, &step, 4);
	uint32_t lost = WIRE_SEND(w, mem_alloc, true, false, .size = 4096);
	WIRE_SEND(w, memcpy_dtoh, true, false, .src = total, .size = 4);
	w->executed = seq_before;
	/* All of it executed, so that what comes again must not be. */
	bool all = false;
	for (int i = 0; i < 30000 && !all; i++, poll(NULL, 0, 2)) {
		ckt_worker_status_res status = wire_status(w);
		all = status.executed == w->seq;
		xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&status);
	}
	CU_ASSERT_TRUE(all);
	wire_disconnect(w);
	CU_ASSERT_EQUAL(wire_hello(w, CKT_HELLO_RESUME, false), CKT_HELLO_DENIED);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_TRUE(w->executed >= seq_before && w->executed <= w->seq);
	/*
	 * Everything since the last acknowledgement again, numbers that were executed among it:
	 * each has its effect once.
	 */
	w->executed = seq_before;
	wire_resend(w);
	CU_ASSERT_EQUAL(get_u32(w, total), 25);
	struct wire_reply reply = wire_read(w, lost);
	struct ckt_mem_alloc_res first = {0};
	CU_ASSERT_EQUAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_mem_alloc_res_get(&reply.results, &first));
	free(reply.data);
	CU_ASSERT_EQUAL(must_alloc(w, 4096), first.address + 4096);
	w->acked = w->seq;
	CU_ASSERT_EQUAL(get_u32(w, total), 25);
	session_end(w);
}

/*
 * Behind a kernel that never ends its client goes: it is listed as detached, and ends once its time
 * is over.
 */
static void vanish(unsigned disconnect_timeout_ms)
{
	struct wire *w = calloc(1, sizeof *w);
	w->disconnect_timeout_ms = disconnect_timeout_ms;
	CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, 0, -1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	load_all(w);
	uint64_t flag = must_alloc(w, 4);
	WIRE_BATCH(w, memset, .dst = flag, .element_size = 4, .value = 0, .width = 1, .height = 1);
	launch(w, 3, 1, 1, 0, &flag, 8);
	WIRE_SEND(w, stream_synchronize, false, false, .stream = 0);
	poll(NULL, 0, 50);
	wire_disconnect(w);
	if (!disconnect_timeout_ms) {
		ckt_worker_status_res status = {0};
		for (int i = 0; i < 60000 && status.state != CKT_STATE_DETACHED;
			i++, poll(NULL, 0, 1)) {
			xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&status);
			status = wire_status(w);
		}
		CU_ASSERT_EQUAL(status.state, CKT_STATE_DETACHED);
		CU_ASSERT_STRING_EQUAL(status.program_name, "wire_client");
		xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&status);
		kill(w->pid, SIGKILL);
	}
	CU_ASSERT_TRUE(wire_ended(w));
	free(w->log);
	free(w);
}

static void test_vanished_client(void)
{
	vanish(0);
	vanish(300);
}

/* Wrong bytes end the connection, not the session; a gap in the numbers does too. */
static void test_malformed(void)
{
	struct wire *w = session_new(0);
	uint64_t block = must_alloc(w, 64);
	uint32_t value = 42;
	put(w, block, &value, 4);
	CU_ASSERT_EQUAL(get_u32(w, block), 42);
	uint64_t seq = w->seq;
	for (int kind = 0; kind < 5; kind++) {
		uint8_t record[CKT_CALL_HEADER_SIZE + 4] = {0};
		struct ckt_call_header header = {.xid = 5,
			.prog = CKT_CUDA_PROG,
			.vers = 1,
			.proc = wire_proc("mem_get_info")};
		size_t size = CKT_CALL_HEADER_SIZE + 4;
		if (kind == 0)
			header.proc = wire_proc("mem_alloc"), header.seq = seq + 5; /* gap */
		else if (kind == 1)
			size = CKT_CALL_HEADER_SIZE; /* arguments missing */
		else if (kind == 2)
			header.flags = CKT_CALL_BATCHED; /* has results */
		else if (kind == 3)
			header.acked = seq + 100;
		ckt_call_header_put(record, &header);
		if (kind == 4)
			memset(record, 0xff, size);
		CU_ASSERT_EQUAL(ckt_net_write_record(w->fd, record, size, -1, -1), 0);
		char byte;
		struct pollfd p = {.fd = w->fd, .events = POLLIN};
		ssize_t n = 1;
		while (poll(&p, 1, WIRE_GUARD_MS) > 0 && (n = read(w->fd, &byte, 1)) > 0)
			;
		CU_ASSERT_TRUE(n <= 0);
		wire_disconnect(w);
		CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	}
	CU_ASSERT_EQUAL(w->executed, seq);
	CU_ASSERT_EQUAL(get_u32(w, block), 42);
	session_end(w);
}

static void test_fault(void)
{
	struct wire *w = session_new(0);
	load_all(w);
	launch(w, 4, 1, 1, 0, "", 0);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_ERROR_ILLEGAL_ADDRESS);
	/* Sticky. */
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, stream_synchronize, false)), CUDA_ERROR_ILLEGAL_ADDRESS);
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX];
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	CU_ASSERT_NOT_EQUAL(wire_save(w, directory, false, 2000, message), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "failed"));
	rmdir(directory);
	session_end(w);
}

static void remove_image(const char *directory)
{
	char command[256];
	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	CU_ASSERT_EQUAL(system(command), 0);
}

static void test_checkpoint(void)
{
	struct wire *w = session_new((uint64_t)2 << 30);
	load_all(w);
	uint64_t total = global_address(w, "total"), small = must_alloc(w, 4096),
		 big = must_alloc(w, 9 << 20), gone = must_alloc(w, 5000);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, mem_free, true, .address = gone)), CUDA_SUCCESS);
	uint32_t step = 100, values[1000];
	for (uint32_t i = 0; i < 1000; i++)
		values[i] = i;
	launch(w, 1, 1, 1, 0, &step, 4);
	put(w, small, values, sizeof values);
	put(w, big + (8 << 20), values, sizeof values);
	WIRE_BATCH(w, stream_create, .id = STREAM(0), .flags = CU_STREAM_NON_BLOCKING);
	WIRE_BATCH(w, event_create, .id = EVENT(0), .flags = 0);
	WIRE_BATCH(w, event_create, .id = EVENT(1), .flags = 0);
	WIRE_BATCH(w, event_record, .event = EVENT(0), .stream = STREAM(0));
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	/* A reply that is not acknowledged travels with the image. */
	w->acked = w->seq;
	uint32_t unacked = WIRE_SEND(w, mem_alloc, true, false, .size = 512);
	struct wire_reply reply = wire_read(w, unacked);
	struct ckt_mem_alloc_res first = {0}, again = {0};
	CU_ASSERT_TRUE(ckt_mem_alloc_res_get(&reply.results, &first));
	free(reply.data);
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX] = "";
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	int status = wire_save(w, directory, true, 5000, message);
	if (status)
		fprintf(stderr, "save: %s\n", message);
	CU_ASSERT_EQUAL_FATAL(status, 0);
	CU_ASSERT_TRUE(wire_ended(w));
	struct stat st;
	int fd = open(directory, O_RDONLY | O_DIRECTORY);
	CU_ASSERT_EQUAL(fstatat(fd, "manifest", &st, 0), 0);
	CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);

	status = wire_start(w, worker_path, driver_path, 0, fd, message);
	if (status)
		fprintf(stderr, "restore: %s\n", message);
	CU_ASSERT_EQUAL_FATAL(status, 0);
	ckt_worker_status_res listed = wire_status(w);
	CU_ASSERT_EQUAL(listed.state, CKT_STATE_RESTORED);
	CU_ASSERT_EQUAL(listed.generation, 2);
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&listed);
	CU_ASSERT_EQUAL(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_DENIED);
	CU_ASSERT_EQUAL(wire_hello(w, CKT_HELLO_RESUME, false), CKT_HELLO_DENIED);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_EQUAL(w->generation, 2);
	CU_ASSERT_EQUAL(w->executed, w->seq);
	w->executed = w->acked;
	wire_resend(w);
	reply = wire_read(w, unacked);
	CU_ASSERT_TRUE(ckt_mem_alloc_res_get(&reply.results, &again));
	CU_ASSERT_EQUAL(again.address, first.address);
	free(reply.data);
	w->acked = w->seq;

	uint32_t back[1000];
	CU_ASSERT_EQUAL(get(w, small, back, sizeof back), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(back, values, sizeof back), 0);
	CU_ASSERT_EQUAL(get(w, big + (8 << 20), back, sizeof back), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(back, values, sizeof back), 0);
	CU_ASSERT_EQUAL(get_u32(w, big), 0);
	CU_ASSERT_EQUAL(get_u32(w, total), 105);
	CU_ASSERT_EQUAL(global_address(w, "total"), total);
	/* The unacknowledged one has taken the first bytes of what was freed. */
	CU_ASSERT_EQUAL(first.address, gone);
	CU_ASSERT_EQUAL(must_alloc(w, 5000), gone + 512);
	launch(w, 1, 1, 1, STREAM(0), &step, 4);
	WIRE_BATCH(w, event_record, .event = EVENT(1), .stream = STREAM(0));
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(get_u32(w, total), 205);
	/* The variable that the host never asked for came along too: 7 + 2 launches. */
	launch(w, 2, 1, 1, 0, &small, 8);
	CU_ASSERT_EQUAL(get_u32(w, small), 9);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, event_query, false, .event = EVENT(0))), CUDA_SUCCESS);
	reply = WIRE_CALL(w, event_elapsed_time, false, .start = EVENT(0), .end = EVENT(1));
	CU_ASSERT_EQUAL(reply.result, CUDA_SUCCESS);
	free(reply.data);
	CU_ASSERT_EQUAL(w->deferred, 0);
	/* And again from the restored one, which goes on. */
	char second[] = "/tmp/ckt-image-XXXXXX";
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(second));
	CU_ASSERT_EQUAL(wire_save(w, second, false, 5000, message), 0);
	launch(w, 1, 1, 1, STREAM(0), &step, 4);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(get_u32(w, total), 305);
	session_end(w);
	close(fd);
	remove_image(directory);
	remove_image(second);
}

static void test_checkpoint_deadline(void)
{
	struct wire *w = session_new(0);
	load_all(w);
	uint64_t flag = must_alloc(w, 4);
	WIRE_BATCH(w, memset, .dst = flag, .element_size = 4, .value = 0, .width = 1, .height = 1);
	WIRE_BATCH(w, stream_create, .id = STREAM(0), .flags = CU_STREAM_NON_BLOCKING);
	WIRE_BATCH(w, stream_create, .id = STREAM(1), .flags = CU_STREAM_NON_BLOCKING);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	launch(w, 3, 1, 1, STREAM(0), &flag, 8);
	/*
	 * A freeze stops where the worker stands, whatever has been sent: see that it stands behind
	 * the launch.
	 */
	CU_ASSERT_EQUAL(
		done(WIRE_CALL(w, stream_query, false, .stream = STREAM(0))), CUDA_ERROR_NOT_READY);
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX] = "", id[32];
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	CU_ASSERT_NOT_EQUAL(wire_save(w, directory, true, 300, message), 0);
	snprintf(id, sizeof id, "0x%llx", (unsigned long long)STREAM(0));
	CU_ASSERT_PTR_NOT_NULL(strstr(message, id));
	/* It runs on. */
	uint32_t one = 1;
	WIRE_BATCH(w, memcpy_htod, .dst = flag, .stream = STREAM(1), .data = (uint8_t *)&one,
		.data_len = 4);
	CU_ASSERT_EQUAL(
		done(WIRE_CALL(w, stream_synchronize, false, .stream = STREAM(0))), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(rmdir(directory), 0);
	session_end(w);
}

/* An image with one wrong byte in its contents is refused, and nothing stays. */
static void test_damaged_image(void)
{
	struct wire *w = session_new(0);
	uint64_t block = must_alloc(w, 4 << 20);
	WIRE_BATCH(w, memset, .dst = block, .element_size = 1, .value = 0x33, .width = 4 << 20,
		.height = 1);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX] = "";
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	CU_ASSERT_EQUAL_FATAL(wire_save(w, directory, true, 5000, message), 0);
	CU_ASSERT_TRUE(wire_ended(w));
	int fd = open(directory, O_RDONLY | O_DIRECTORY), data = -1;
	for (int i = 0; i < 8; i++) {
		char name[16];
		struct stat st;
		snprintf(name, sizeof name, "data-%d", i);
		if (fstatat(fd, name, &st, 0) == 0 && st.st_size > 1000)
			data = openat(fd, name, O_WRONLY);
	}
	CU_ASSERT_TRUE_FATAL(data >= 0);
	CU_ASSERT_EQUAL(pwrite(data, "x", 1, 999), 1);
	close(data);
	CU_ASSERT_NOT_EQUAL(wire_start(w, worker_path, driver_path, 0, fd, message), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "damaged"));
	CU_ASSERT_TRUE(wire_ended(w));
	close(fd);
	remove_image(directory);
	free(w->log);
	free(w);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fputs("test_session WORKER LIBCUDA [TEST]\n", stderr);
		return 2;
	}
	worker_path = argv[1];
	driver_path = argv[2];
	signal(SIGPIPE, SIG_IGN);
	static const struct {
		const char *name;
		void (*function)(void);
	} tests[] = {
		{"devices", test_devices},
		{"memory", test_memory},
		{"limit", test_limit},
		{"launch", test_launch},
		{"streams and events", test_streams_and_events},
		{"data before done", test_data_before_done},
		{"printed", test_printed},
		{"resume", test_resume},
		{"vanished client", test_vanished_client},
		{"malformed", test_malformed},
		{"fault", test_fault},
		{"checkpoint", test_checkpoint},
		{"checkpoint deadline", test_checkpoint_deadline},
		{"damaged image", test_damaged_image},
	};
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("session", NULL, NULL);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (argc < 4 || !strcmp(argv[3], tests[i].name))
			CU_add_test(suite, tests[i].name, tests[i].function);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
