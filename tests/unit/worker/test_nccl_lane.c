/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/nccl/nccl_lane.c: the library gets one call of a communicator at a time,
 * whatever a client sends, and what a client may make has bounds.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "server/worker/objects/context.h"
#include "server/worker/session/blocking_call.h"
#include "server/worker/session/call.h"
#include "server/worker/session/host_budget.h"
#include "tests/unit/worker/nccl_kit.h"

static struct ckt_nccl_comm *find(uint64_t id)
{
	struct ckt_nccl_comm *comm = NULL;
	return ckt_worker_nccl_comm_find(&ckt_worker, id, &comm) ? NULL : comm;
}

static void until_idle(void)
{
	for (int i = 0; i < 60000 && ckt_blocking_call_is_busy(&ckt_worker); i++)
		poll(NULL, 0, 1);
	NO(ckt_blocking_call_is_busy(&ckt_worker));
}

/* A call that is answered later; its reply goes nowhere. */
static int begin(uint32_t proc, const uint8_t *args, size_t size)
{
	struct ckt_wcall *call = ckt_wcall_new(&ckt_worker);
	call->proc = &ckt_nccl_procs[proc];
	call->header = (struct ckt_call_header){
		.prog = ckt_lib_prog(CKT_LIB_NCCL), .proc = proc, .flags = CKT_CALL_BATCHED};
	call->args = (struct ckt_cursor){.p = args, .end = args + size};
	int result = call->proc->handler(call);
	if (result != CKT_WCALL_LATER)
		ckt_wcall_free(call);
	return result;
}

static int begin_end(uint64_t comm, uint32_t how)
{
	uint8_t bytes[64];
	struct ckt_nccl_end_args args = {.comm = comm, .how = how};
	return begin(CKT_NCCL_PROC_NCCL_END, bytes,
		(size_t)(ckt_nccl_end_args_put(bytes, &args) - bytes));
}

/* Sends to a peer of each. */
static int begin_meet(const uint64_t *comms, unsigned count)
{
	uint8_t operations[4 * CKT_NCCL_OPERATION_BYTES], bytes[512], *p = operations;
	for (unsigned i = 0; i < count; i++)
		p = ckt_nccl_operation_put(p,
			&(struct ckt_nccl_operation){.function = CKT_NCCL_SEND,
				.comm = comms[i],
				.stream = 2,
				.count = 1});
	struct ckt_nccl_group_meet_args args = {
		.operations = operations, .operations_len = (uint32_t)(p - operations)};
	return begin(CKT_NCCL_PROC_NCCL_GROUP_MEET, bytes,
		(size_t)(ckt_nccl_group_meet_args_put(bytes, &args) - bytes));
}

static int operator_of(uint64_t comm)
{
	static const uint8_t scalar[8] = {1, 2};
	return NCCL(NCCL_OPERATOR, nccl_operator, true, .comm = comm, .operator= 5,
		.type = ncclFloat, .residence = 1, .scalar = scalar, .scalar_len = 8)
		->result;
}

static bool is_before(const char *said, const char *first, const char *then)
{
	const char *a = strstr(said, first), *b = strstr(said, then);
	return a && b && a < b;
}

/*
 * A group of two communicators waits for peers, in the lane of the first: the second has no other
 * calls meanwhile, and does not end under it.
 */
static void test_one_at_a_time(void)
{
	uint64_t both[] = {NCCL_ID(60), NCCL_ID(61), NCCL_ID(61)};
	nccl_begin();
	nccl_make(both[0], 2, 0);
	nccl_make(both[1], 2, 0);
	double_hold("ncclSend");
	MUST(begin_meet(both, 3), CKT_WCALL_LATER);
	double_await(1);
	for (unsigned i = 0; i < 2; i++) {
		IS(nccl_group(both[i], 1), CUDA_ERROR_NOT_READY);
		IS(operator_of(both[i]), CUDA_ERROR_NOT_READY);
	}
	/*
	 * Another such group, and the end of the second, wait their turn; behind the end there is
	 * nothing.
	 */
	MUST(begin_meet(both + 1, 1), CKT_WCALL_LATER);
	MUST(begin_end(both[1], CKT_NCCL_DESTROY), CKT_WCALL_LATER);
	IS(begin_meet(both + 1, 1), CUDA_ERROR_INVALID_HANDLE);
	IS(nccl_group(both[1], 1), CUDA_ERROR_INVALID_HANDLE);
	IS(operator_of(both[1]), CUDA_ERROR_INVALID_HANDLE);
	IS(nccl_send(NCCL_ID(62), -1, -1, CKT_NCCL_SPLIT, both[1])->result,
		CUDA_ERROR_INVALID_HANDLE);
	IS(nccl_end(both[1], CKT_NCCL_DESTROY), ncclInvalidArgument);
	IS(nccl_end(both[1], CKT_NCCL_REVOKE), ncclInvalidArgument);
	poll(NULL, 0, 20);
	ckt_blocking_call_finish(&ckt_worker);
	YES(find(both[1]) != NULL);
	IS(double_living(), 2);
	double_hold(NULL);
	until_idle();
	YES(!find(both[1]));
	IS(double_living(), 1);
	IS(double_astray(), 0);
	const char *said = double_said();
	YES(is_before(said, "ncclSend", "ncclCommDestroy"));
	/* Two groups ended before it. */
	const char *group = strstr(said, "ncclGroupEnd");
	YES(group && is_before(group + 1, "ncclGroupEnd", "ncclCommDestroy"));
	IS(nccl_group(both[0], 1), CUDA_SUCCESS);
	IS(nccl_end(both[0], CKT_NCCL_DESTROY), ncclSuccess);
	IS(double_living(), 0);
}

/* Whoever asks for its state while it ends is not told by what has ended. */
static void test_state_at_end(void)
{
	uint64_t comm = NCCL_ID(63);
	nccl_begin();
	nccl_make(comm, 2, 0);
	double_hold("ncclCommDestroy");
	MUST(begin_end(comm, CKT_NCCL_DESTROY), CKT_WCALL_LATER);
	double_await(1);
	IS(NCCL(NCCLCOMMGETASYNCERROR, ncclCommGetAsyncError, false, .comm = comm)->result,
		CUDA_SUCCESS);
	double_hold(NULL);
	until_idle();
	IS(double_astray(), 0);
	IS(double_living(), 0);
}

/*
 * What goes with its context while calls wait in the lane: none of them is made in that context any
 * more.
 */
static void test_gone(void)
{
	uint64_t comm = NCCL_ID(64);
	nccl_begin();
	nccl_make(comm, 2, 0);
	double_hold("ncclSend");
	MUST(begin_meet(&comm, 1), CKT_WCALL_LATER);
	MUST(begin_meet(&comm, 1), CKT_WCALL_LATER);
	MUST(nccl_send(NCCL_ID(65), -1, -1, CKT_NCCL_SPLIT, comm)->result, CUDA_SUCCESS);
	double_await(1);
	for (unsigned n = 64; n <= 65; n++)
		ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, NCCL_ID(n)));
	IS(double_living(), 1);
	double_hold(NULL);
	until_idle();
	const char *said = double_said(), *sent = strstr(said, "ncclSend");
	YES(sent && !strstr(sent + 1, "ncclSend") && !strstr(said, "ncclCommSplit"));
	IS(double_living(), 0);
	IS(double_astray(), 0);
}

/*
 * They are paid for as long as the library is at work for them, given up or not, and by how many
 * ranks they have.
 */
static void test_account(void)
{
	enum { LIMIT = 40 << 20 };
	nccl_begin();
	/* Places of the tables. */
	nccl_make(NCCL_ID(200), 2, 0);
	IS(nccl_end(NCCL_ID(200), CKT_NCCL_DESTROY), ncclSuccess);
	uint64_t used = ckt_budget_used();
	nccl_make(NCCL_ID(200), 2, 0);
	YES(ckt_budget_used() - used >= 4 << 20);
	IS(nccl_end(NCCL_ID(200), CKT_NCCL_DESTROY), ncclSuccess);
	IS(ckt_budget_used(), used);
	ckt_budget_init(used + LIMIT);
	IS(nccl_send(NCCL_ID(200), 1 << 20, 0, CKT_NCCL_INIT, 0)->result, CUDA_ERROR_OUT_OF_MEMORY);
	double_hold("ncclCommInitRank");
	unsigned made = 0;
	while (made < 100 && !nccl_send(NCCL_ID(200) + made, 2, 0, CKT_NCCL_INIT, 0)->result) {
		IS(nccl_end(NCCL_ID(200) + made, CKT_NCCL_FORGET), ncclSuccess);
		made++;
	}
	YES(made > 3 && made < 11);
	double_hold(NULL);
	until_idle();
	ckt_budget_init(0);
	IS(ckt_budget_used(), used);
	IS(double_living(), 0);
}

/*
 * So many calls wait in a lane that there is no thread for one of them: each fails by itself, and
 * the stack is not what holds them.
 */
static void test_no_room(void)
{
	enum { MANY = 20000 };
	struct rlimit limit, small;
	struct ckt_ncclGetUniqueId_res res;
	nccl_begin();
	MUST(getrlimit(RLIMIT_NOFILE, &limit), 0);
	YES(ckt_worker_nccl_has_room());
	nccl_make(NCCL_ID(66), 2, 0);
	double_hold("ncclSend");
	uint64_t comm = NCCL_ID(66);
	MUST(begin_meet(&comm, 1), CKT_WCALL_LATER);
	double_await(1);
	for (unsigned i = 0; i < MANY; i++)
		MUST(nccl_send(ckt_handle_make(CKT_KIND_LIB_OBJECT, 1, 200000 + i), -1, -1,
			     CKT_NCCL_SPLIT, comm)
				->result,
			CUDA_SUCCESS);
	double_said();
	small = limit;
	small.rlim_cur = 100;
	MUST(setrlimit(RLIMIT_NOFILE, &small), 0);
	NO(ckt_worker_nccl_has_room());
	struct inside_reply *reply = nccl_run(CKT_NCCL_PROC_NCCLGETUNIQUEID, NULL, 0, false);
	MUST(ckt_ncclGetUniqueId_res_get(&reply->results, &res), true);
	IS(res.status, ncclSystemError);
	double_hold(NULL);
	until_idle();
	MUST(setrlimit(RLIMIT_NOFILE, &limit), 0);
	unsigned failed = 0;
	for (unsigned i = 0; i < MANY; i++) {
		uint64_t id = ckt_handle_make(CKT_KIND_LIB_OBJECT, 1, 200000 + i);
		failed += find(id)->status == ncclSystemError;
		nccl_end(id, CKT_NCCL_FORGET);
	}
	IS(failed, MANY);
	CU_ASSERT_PTR_NULL(strstr(double_said(), "ncclCommSplit"));
	IS(nccl_end(NCCL_ID(66), CKT_NCCL_DESTROY), ncclSuccess);
	IS(double_living(), 0);
}

UNIT_SUITE(worker_nccl_lane, {"one call at a time", test_one_at_a_time},
	{"its state at its end", test_state_at_end}, {"gone with its context", test_gone},
	{"account", test_account}, {"no room", test_no_room})
