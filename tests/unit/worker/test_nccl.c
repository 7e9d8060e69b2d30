/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/libs/nccl/nccl.c: the library as a whole, and what a hostile client sends it. */
#include "server/worker/libs/nccl/nccl.h"
#include "server/worker/objects/context.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/nccl_kit.h"

static void test_unique_id(void)
{
	struct ckt_ncclGetUniqueId_res res;
	nccl_begin();
	struct inside_reply *reply =
		nccl_run(CKT_NCCL_PROC_NCCLGETUNIQUEID, (const uint8_t *)"", 0, false);
	IS(reply->result, CUDA_SUCCESS);
	MUST(ckt_ncclGetUniqueId_res_get(&reply->results, &res), true);
	IS(res.status, ncclSuccess);
	IS(res.id_len, CKT_NCCL_ID_BYTES);
	IS(res.id[127], 7);
	/* For a job's restore; the library is there already. */
	uint8_t id[CKT_NCCL_ID_BYTES] = {0};
	char message[256] = "";
	IS(nccl_run(CKT_NCCL_PROC_NCCLGETUNIQUEID, (const uint8_t *)"abcd", 4, false)->result,
		INSIDE_GARBAGE);
	(void)id;
	(void)message;
}

static void test_load(void)
{
	struct ckt_nccl_load_res res;
	struct ckt_object *object;
	nccl_begin();
	struct inside_reply *reply = NCCL(NCCL_LOAD, nccl_load, false, .id = NCCL_ID(1));
	IS(reply->result, CUDA_SUCCESS);
	MUST(ckt_nccl_load_res_get(&reply->results, &res), true);
	IS(res.status, ncclSuccess);
	/* Of one rank, and gone again: it waits for nobody. */
	TEXT(double_said(),
		"ncclGetUniqueId \nncclCommInitRank 1 0 id 41\nncclCommDestroy comm 0\n");
	object = ckt_library_object_find(
		&ckt_worker, CKT_LIB_NCCL, CKT_NCCL_TYPE_LOADED, NCCL_ID(1));
	YES(object != NULL);
	/* It is no communicator. */
	IS(NCCL(NCCLCOMMGETASYNCERROR, ncclCommGetAsyncError, false, .comm = NCCL_ID(1))->result,
		CUDA_ERROR_INVALID_HANDLE);
	double_answer("ncclCommInitRank", ncclSystemError);
	reply = NCCL(NCCL_LOAD, nccl_load, false, .id = NCCL_ID(2));
	MUST(ckt_nccl_load_res_get(&reply->results, &res), true);
	IS(res.status, ncclSystemError);
	YES(!ckt_library_object_find(&ckt_worker, CKT_LIB_NCCL, CKT_NCCL_TYPE_LOADED, NCCL_ID(2)));
	ckt_object_destroy(&ckt_worker, object);
}

static void test_questions(void)
{
	struct ckt_ncclCommGetAsyncError_res res;
	struct ckt_ncclGetLastError_res last;
	nccl_begin();
	nccl_make(NCCL_ID(3), 2, 1);
	double_state = ncclRemoteError;
	struct inside_reply *reply =
		NCCL(NCCLCOMMGETASYNCERROR, ncclCommGetAsyncError, false, .comm = NCCL_ID(3));
	MUST(ckt_ncclCommGetAsyncError_res_get(&reply->results, &res), true);
	IS(res.status, ncclSuccess);
	IS(res.error, ncclRemoteError);
	reply = NCCL(NCCLGETLASTERROR, ncclGetLastError, false, .comm = 0);
	MUST(ckt_ncclGetLastError_res_get(&reply->results, &last), true);
	IS(last.text_len, strlen("what was wrong last"));
	YES(!memcmp(last.text, "what was wrong last", last.text_len));
	IS(NCCL(NCCLGETLASTERROR, ncclGetLastError, false, .comm = 77)->result,
		CUDA_ERROR_INVALID_HANDLE);
	IS(nccl_end(NCCL_ID(3), CKT_NCCL_DESTROY), ncclSuccess);
	IS(double_living(), 0);
}

/* Nothing of the library is there: each handler says so, and none calls what is not. */
static void test_missing(void)
{
	nccl_begin();
	nccl_make(NCCL_ID(4), 2, 0);
	struct ckt_nccl_functions all = ckt_nccl;
	memset(&ckt_nccl, 0, sizeof ckt_nccl);
	struct inside_reply *reply = NCCL(NCCL_LOAD, nccl_load, false, .id = NCCL_ID(5));
	struct ckt_nccl_load_res res;
	MUST(ckt_nccl_load_res_get(&reply->results, &res), true);
	IS(res.status, ncclInvalidUsage);
	IS(nccl_group(NCCL_ID(4), 1), CUDA_ERROR_UNKNOWN);
	IS(nccl_end(NCCL_ID(4), CKT_NCCL_FINALIZE), ncclInvalidUsage);
	ckt_nccl = all;
	IS(nccl_end(NCCL_ID(4), CKT_NCCL_DESTROY), ncclSuccess);
	IS(double_living(), 0);
}

/* Every message cut off anywhere, and one that goes on behind its end. */
static void test_cut(void)
{
	static const uint32_t procs[] = {CKT_NCCL_PROC_NCCL_LOAD, CKT_NCCL_PROC_NCCL_COMM,
		CKT_NCCL_PROC_NCCL_SETTLE, CKT_NCCL_PROC_NCCL_GROUP, CKT_NCCL_PROC_NCCL_GROUP_MEET,
		CKT_NCCL_PROC_NCCLCOMMGETASYNCERROR, CKT_NCCL_PROC_NCCLGETLASTERROR,
		CKT_NCCL_PROC_NCCL_END, CKT_NCCL_PROC_NCCL_OPERATOR};
	uint8_t bytes[64];
	nccl_begin();
	for (unsigned i = 0; i < COUNT(procs); i++)
		for (unsigned size = 0; size <= 4; size += 4)
			IS(nccl_run(procs[i], memset(bytes, 0, sizeof bytes), size, false)->result,
				procs[i] == CKT_NCCL_PROC_NCCL_SETTLE && size == 4
					? CUDA_SUCCESS
					: INSIDE_GARBAGE);
	/* Lengths that no message has. */
	memset(bytes, 0xff, sizeof bytes);
	for (unsigned i = 0; i < COUNT(procs); i++)
		IS(nccl_run(procs[i], bytes, sizeof bytes, false)->result, INSIDE_GARBAGE);
	TEXT(double_said(), "");
}

UNIT_SUITE(worker_nccl, {"unique IDs", test_unique_id}, {"modules", test_load},
	{"questions", test_questions}, {"a library that lacks them", test_missing},
	{"messages that are none", test_cut})
