/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/long_call.c: long calls of the driver do not hold up what comes behind
 * them: argv[1] the worker, argv[2] slow_driver.c's libcuda.so.1, whose long calls end only when a
 * later command was executed.
 */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>

#include "rpc/handle.h"
#include "rpc/net.h"
#include "server/worker/module/blob.h"
#include "tests/unit/worker/wire_client.h"

static const char *worker_path, *driver_path;

#define MODULE(n) ckt_handle_make(CKT_KIND_MODULE, 1, 300 + (n))
#define GRAPH ckt_handle_make(CKT_KIND_GRAPH, 1, 500)
#define EXEC(n) ckt_handle_make(CKT_KIND_GRAPH_EXEC, 1, 501 + (n))

static const char ptx[] =
	".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n";

static struct wire *session_new(uint64_t *ret_memory)
{
	struct wire *w = calloc(1, sizeof *w);
	CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, 0, -1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	struct wire_reply reply = WIRE_CALL(w, mem_alloc, true, .size = 4096);
	struct ckt_mem_alloc_res res = {0};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_mem_alloc_res_get(&reply.results, &res));
	free(reply.data);
	*ret_memory = res.address;
	return w;
}

static void session_end(struct wire *w)
{
	uint8_t bye[CKT_CALL_HEADER_SIZE];
	ckt_call_header_put(bye,
		&(struct ckt_call_header){.xid = 1,
			.prog = CRICKET_SESSION_PROG,
			.vers = 1,
			.proc = CKT_SESSION_BYE,
			.acked = w->acked});
	CU_ASSERT_EQUAL(ckt_net_write_record(w->fd, bye, sizeof bye, -1, -1), 0);
	CU_ASSERT_TRUE(wire_ended(w));
	free(w->log);
	free(w->printed);
	free(w);
}

/* What ends a long call that is under way. */
static void set(struct wire *w, uint64_t memory)
{
	WIRE_BATCH(
		w, memset, .dst = memory, .element_size = 1, .value = 1, .width = 16, .height = 1);
}

static void send_image(struct wire *w, uint8_t hash[32])
{
	ckt_blob_hash(ptx, sizeof ptx - 1, hash);
	WIRE_BATCH(w, blob_data, .hash = hash, .hash_len = 32, .total = sizeof ptx - 1, .offset = 0,
		.data = (uint8_t *)ptx, .data_len = sizeof ptx - 1);
}

static uint32_t load_status(struct wire *w, uint32_t xid)
{
	struct wire_reply reply = wire_read(w, xid);
	struct ckt_module_load_res res = {.status = 999};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_module_load_res_get(&reply.results, &res));
	free(reply.data);
	return res.status;
}

static void test_module(void)
{
	uint64_t memory;
	uint8_t hash[32];
	struct wire *w = session_new(&memory);
	send_image(w, hash);
	uint32_t first = WIRE_SEND(
		w, module_load, true, false, .id = MODULE(0), .hash = hash, .hash_len = 32);
	uint32_t second = WIRE_SEND(
		w, module_load, true, false, .id = MODULE(1), .hash = hash, .hash_len = 32);
	set(w, memory);
	CU_ASSERT_EQUAL(load_status(w, first), CUDA_SUCCESS);
	set(w, memory);
	CU_ASSERT_EQUAL(load_status(w, second), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(wire_stat_calls(w, "module_load"), 2);
	/* An id that is taken is refused when the module is there. */
	first = WIRE_SEND(
		w, module_load, true, false, .id = MODULE(0), .hash = hash, .hash_len = 32);
	set(w, memory);
	CU_ASSERT_NOT_EQUAL(load_status(w, first), CUDA_SUCCESS);
	session_end(w);
}

static void test_link(void)
{
	uint64_t memory;
	uint8_t hash[32];
	uint32_t type = CU_JIT_INPUT_PTX;
	struct wire *w = session_new(&memory);
	send_image(w, hash);
	uint32_t xid = WIRE_SEND(w, link, true, false, .input_types = &type, .input_types_len = 1,
		.input_hashes = hash, .input_hashes_len = 32, .input_names = "a\0",
		.input_names_len = 2);
	set(w, memory);
	struct wire_reply reply = wire_read(w, xid);
	struct ckt_link_res res = {.status = 999};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_link_res_get(&reply.results, &res));
	CU_ASSERT_EQUAL_FATAL(res.status, CUDA_SUCCESS);
	CU_ASSERT_TRUE(res.size > 0);
	/* What was linked is an image that can be loaded. */
	memcpy(hash, res.hash, 32);
	free(reply.data);
	xid = WIRE_SEND(w, module_load, true, false, .id = MODULE(0), .hash = hash, .hash_len = 32);
	CU_ASSERT_EQUAL(load_status(w, xid), CUDA_SUCCESS);
	session_end(w);
}

/* A graph of one empty node. */
static void send_graph(struct wire *w)
{
	uint8_t data[64], *p = ckt_put_u32(data, 1);
	p = ckt_put_u32(ckt_put_u64(p, ckt_handle_make(CKT_KIND_GRAPH_NODE, 1, 600)),
		CU_GRAPH_NODE_TYPE_EMPTY);
	p = ckt_put_u32(ckt_put_u64(p, 0), 0);
	p = ckt_put_u32(p, 0);
	WIRE_BATCH(w, graph_data, .graph = GRAPH, .total = (uint64_t)(p - data), .offset = 0,
		.data = data, .data_len = (uint32_t)(p - data));
}

static void test_graph(void)
{
	uint64_t memory;
	struct wire *w = session_new(&memory);
	send_graph(w);
	uint32_t xid =
		WIRE_SEND(w, graph_instantiate, true, false, .exec = EXEC(0), .graph = GRAPH);
	/* Not anybody's yet. */
	WIRE_BATCH(w, graph_exec_destroy, .exec = EXEC(0));
	set(w, memory);
	struct wire_reply reply = wire_read(w, xid);
	struct ckt_graph_instantiate_res res = {.status = 999};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_graph_instantiate_res_get(&reply.results, &res));
	CU_ASSERT_EQUAL(res.status, CUDA_SUCCESS);
	free(reply.data);
	CU_ASSERT_EQUAL(w->deferred, CUDA_ERROR_INVALID_HANDLE);
	w->deferred = 0;
	WIRE_BATCH(w, graph_launch, .exec = EXEC(0));
	reply = WIRE_CALL(w, ctx_synchronize, false);
	CU_ASSERT_EQUAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_EQUAL(w->deferred, CUDA_SUCCESS);
	free(reply.data);
	session_end(w);
}

/* An image waits for what is under way, not for ever. */
static void test_freeze(void)
{
	uint64_t memory;
	uint8_t hash[32];
	char message[CKT_MESSAGE_MAX], directory[] = "/tmp/ckt-aside-XXXXXX";
	struct wire *w = session_new(&memory);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	send_image(w, hash);
	uint32_t xid = WIRE_SEND(
		w, module_load, true, false, .id = MODULE(0), .hash = hash, .hash_len = 32);
	/* Who answers a later call has begun with this one; a save could overtake it otherwise. */
	free(WIRE_CALL(w, mem_get_info, false).data);
	CU_ASSERT_NOT_EQUAL(wire_save(w, directory, false, 300, message), 0);
	set(w, memory);
	CU_ASSERT_EQUAL(load_status(w, xid), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(wire_save(w, directory, false, 10000, message), 0);
	char command[sizeof directory + 16];
	snprintf(command, sizeof command, "rm -r %s", directory);
	CU_ASSERT_EQUAL(system(command), 0);
	session_end(w);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	worker_path = argv[1];
	driver_path = argv[2];
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("aside", NULL, NULL);
	CU_add_test(suite, "a module", test_module);
	CU_add_test(suite, "the linker", test_link);
	CU_add_test(suite, "a graph", test_graph);
	CU_add_test(suite, "an image meanwhile", test_freeze);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures ? 1 : 0;
}
