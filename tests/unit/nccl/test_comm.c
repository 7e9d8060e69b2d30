/* SPDX-License-Identifier: Apache-2.0 */
/* client/libs/nccl/comm.c: communicators are made, known and ended. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/nccl/kit.h"

static void begin(void)
{
	double_begin();
	loop_mark();
}

static void test_init(void)
{
	int value;
	begin();
	ncclComm_t comm = kit_comm(4, 2);
	/* The modules once, then the communicator; the first of a session opens the library too. */
	HAS(double_said(), "ncclCommInitRankConfig 4 2 id 1");
	IS(double_config.blocking, 1);
	IS(double_config.min_ctas, INT_MIN);
	IS(double_config.magic, CKT_NCCL_CONFIG_MAGIC);
	IS(ncclCommCount(comm, &value), ncclSuccess);
	IS(value, 4);
	IS(ncclCommUserRank(comm, &value), ncclSuccess);
	IS(value, 2);
	IS(ncclCommCuDevice(comm, &value), ncclSuccess);
	IS(value, 0);
	loop_mark();
	ncclComm_t second = kit_comm(2, 0);
	IS(loop_batched, 1);
	IS(loop_waited, 1);
	loop_mark();
	IS(ncclCommDestroy(second), ncclSuccess);
	IS(loop_waited, 1);
	IS(ncclCommFinalize(comm), ncclSuccess);
	HAS(double_said(), "ncclCommFinalize comm");
	IS(ncclCommAbort(comm), ncclSuccess);
	HAS(double_said(), "ncclCommAbort comm");
	kit_done();
}

static void test_config(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm = NULL, child = NULL;
	ncclUniqueId id = {{9}};
	begin();
	config.minCTAs = 3;
	config.nvlinkCentricSched = 1;
	config.netName = "Socket";
	config.commName = "name of it";
	IS(ncclCommInitRankConfig(&comm, 2, id, 1, &config), ncclSuccess);
	IS(double_config.min_ctas, 3);
	IS(double_config.nvlink_centric, 1);
	IS(double_config.graph_usage, INT_MIN);
	TEXT(double_net, "Socket");
	TEXT(double_name, "name of it");
	/* A child without a config has its parent's. */
	IS(ncclCommSplit(comm, 1, 5, &child, NULL), ncclSuccess);
	IS(double_config.min_ctas, 3);
	TEXT(double_net, "Socket");
	IS(ncclCommDestroy(child), ncclSuccess);
	IS(ncclCommDestroy(comm), ncclSuccess);
	config.magic = 1;
	IS(ncclCommInitRankConfig(&comm, 2, id, 1, &config), ncclInvalidArgument);
	config.magic = 0xcafebeef;
	config.blocking = 2;
	IS(ncclCommInitRankConfig(&comm, 2, id, 1, &config), ncclInvalidArgument);
	/* Of a release that had no more than its first field. */
	config.blocking = 1;
	config.minCTAs = 77;
	config.size = offsetof(ncclConfig_t, cgaClusterSize);
	IS(ncclCommInitRankConfig(&comm, 2, id, 1, &config), ncclSuccess);
	IS(double_config.min_ctas, INT_MIN);
	TEXT(double_net, "");
	IS(ncclCommDestroy(comm), ncclSuccess);
	kit_done();
}

static void test_wrong(void)
{
	ncclUniqueId id = {{1}};
	ncclComm_t comm = NULL, child;
	int value;
	begin();
	IS(ncclCommInitRank(NULL, 2, id, 0), ncclInvalidArgument);
	IS(ncclCommInitRank(&comm, 0, id, 0), ncclInvalidArgument);
	IS(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument);
	IS(ncclCommInitRank(&comm, 2, id, -1), ncclInvalidArgument);
	IS(ncclCommInitRankScalable(&comm, 2, 0, 0, &id, NULL), ncclInvalidArgument);
	IS(ncclCommInitRankScalable(&comm, 2, 0, 3, &id, NULL), ncclInvalidArgument);
	IS(ncclCommInitRankScalable(&comm, 2, 0, 1, NULL, NULL), ncclInvalidArgument);
	IS(ncclCommInitAll(NULL, 1, NULL), ncclInvalidArgument);
	IS(ncclCommInitAll(&comm, 0, NULL), ncclInvalidArgument);
	IS(loop_batched + loop_waited, 0);
	/* As the genuine library: nothing is ended as nothing. */
	IS(ncclCommDestroy(NULL), ncclSuccess);
	IS(ncclCommAbort(NULL), ncclSuccess);
	IS(ncclCommFinalize(NULL), ncclSuccess);
	IS(ncclCommCount(NULL, &value), ncclInvalidArgument);
	IS(ncclCommGetAsyncError(NULL, (ncclResult_t *)&value), ncclInvalidArgument);
	IS(ncclCommSplit(NULL, 0, 0, &child, NULL), ncclInvalidArgument);
	comm = kit_comm(2, 0);
	IS(ncclCommCount(comm, NULL), ncclInvalidArgument);
	IS(ncclCommSplit(comm, 0, 0, NULL, NULL), ncclInvalidArgument);
	IS(ncclCommShrink(comm, NULL, 1, &child, NULL, 0), ncclInvalidArgument);
	/* What the library refuses is nothing, here and there. */
	double_answer("ncclCommInitRankConfig", ncclSystemError);
	child = comm;
	IS(ncclCommInitRank(&child, 2, id, 0), ncclSystemError);
	YES(!child);
	double_answer("ncclCommInitRankConfig", ncclSuccess);
	IS(ncclCommDestroy(comm), ncclSuccess);
	loop_error = CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
	IS(ncclCommInitRank(&comm, 2, id, 0), ncclSystemError);
	loop_error = CUDA_SUCCESS;
	kit_done();
}

static void test_scalable(void)
{
	ncclUniqueId ids[2] = {{{3}}, {{4}}};
	ncclComm_t comm = NULL;
	begin();
	IS(ncclCommInitRankScalable(&comm, 4, 1, 2, ids, NULL), ncclSuccess);
	HAS(double_said(), "ncclCommInitRankScalable 4 1 ids 2: 3 ... 4");
	IS(ncclCommDestroy(comm), ncclSuccess);
	kit_done();
}

static void test_children(void)
{
	ncclComm_t comm, child = NULL, none;
	int excluded[] = {3, 1}, value;
	begin();
	comm = kit_comm(4, 0);
	none = comm;
	double_said();
	/* A colour below NCCL_SPLIT_NOCOLOR is one like others. */
	IS(ncclCommSplit(comm, -5, 5, &child, NULL), ncclSuccess);
	YES(child != NULL);
	IS(ncclCommDestroy(child), ncclSuccess);
	IS(ncclCommSplit(comm, 7, 5, &child, NULL), ncclSuccess);
	HAS(double_said(), "color 7 key 5");
	IS(ncclCommCount(child, &value), ncclSuccess);
	IS(value, 2);
	IS(ncclCommUserRank(child, &value), ncclSuccess);
	IS(value, 1);
	/* Without a colour it takes part, and is in none. */
	IS(ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, 0, &none, NULL), ncclSuccess);
	HAS(double_said(), "color -1");
	YES(!none);
	IS(ncclCommDestroy(child), ncclSuccess);
	IS(ncclCommShrink(comm, excluded, 2, &child, NULL, NCCL_SHRINK_ABORT), ncclSuccess);
	HAS(double_said(), "without 2: 3 flags 1");
	IS(ncclCommRevoke(comm, 0), ncclSuccess);
	HAS(double_said(), "ncclCommRevoke comm");
	IS(ncclCommDestroy(comm), ncclSuccess);
	IS(ncclCommDestroy(child), ncclSuccess);
	kit_done();
}

/*
 * The communicators of one group are made at one time, as the double shows by letting none go
 * before all are there.
 */
static void test_group(void)
{
	ncclComm_t comms[3] = {NULL};
	ncclUniqueId id = {{6}};
	begin();
	ncclCommDestroy(kit_comm(1, 0));
	double_hold("ncclCommInitRankConfig");
	loop_mark();
	IS(ncclGroupStart(), ncclSuccess);
	for (int i = 0; i < 3; i++)
		IS(ncclCommInitRank(&comms[i], 3, id, i), ncclSuccess);
	IS(loop_waited, 0);
	double_await(3);
	double_hold(NULL);
	IS(ncclGroupEnd(), ncclSuccess);
	IS(loop_waited, 1);
	for (int i = 0; i < 3; i++)
		IS(ncclCommDestroy(comms[i]), ncclSuccess);
	/* One call that is wrong, and none is made. */
	IS(ncclGroupStart(), ncclSuccess);
	IS(ncclCommInitRank(&comms[0], 2, id, 0), ncclSuccess);
	IS(ncclCommInitRank(&comms[1], 2, id, 2), ncclInvalidArgument);
	IS(ncclGroupEnd(), ncclInvalidArgument);
	YES(!comms[0]);
	IS(ncclGroupEnd(), ncclInvalidUsage);
	int devices[] = {0, 0};
	IS(ncclCommInitAll(comms, 2, devices), ncclInvalidUsage);
	devices[1] = 5;
	IS(ncclCommInitAll(comms, 2, devices), ncclUnhandledCudaError);
	IS(ncclCommInitAll(comms, 2, NULL), ncclSuccess);
	int device = -1;
	IS(ncclCommCuDevice(comms[1], &device), ncclSuccess);
	IS(device, 1);
	IS(ncclCommDestroy(comms[0]), ncclSuccess);
	IS(ncclCommDestroy(comms[1]), ncclSuccess);
	kit_done();
}

/* One that does not block: in progress until the library says otherwise, and of no use before. */
static void test_without_blocking(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm = NULL;
	ncclUniqueId id = {{1}};
	ncclResult_t error = ncclSuccess;
	int value;
	begin();
	unsigned before = double_without_blocking;
	config.blocking = 0;
	double_state = ncclInProgress;
	double_answer("ncclCommInitRankConfig", ncclInProgress);
	IS(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
	YES(comm != NULL);
	IS(ncclCommGetAsyncError(comm, &error), ncclSuccess);
	IS(error, ncclInProgress);
	IS(ncclCommCount(comm, &value), ncclInvalidArgument);
	IS(ncclAllReduce(NULL, NULL, 1, ncclFloat, ncclSum, comm, NULL), ncclInvalidArgument);
	double_state = ncclSuccess;
	for (int i = 0; i < 10000 && error == ncclInProgress; i++)
		IS(ncclCommGetAsyncError(comm, &error), ncclSuccess);
	IS(error, ncclSuccess);
	/* Counted, so that no other communicator's config is looked at. */
	IS(double_without_blocking, before + 1);
	IS(ncclCommCount(comm, &value), ncclSuccess);
	double_answer("ncclGroupEnd", ncclInProgress);
	IS(ncclAllReduce(NULL, NULL, 1, ncclFloat, ncclSum, comm, NULL), ncclInProgress);
	double_answer("ncclGroupEnd", ncclSuccess);
	IS(ncclCommDestroy(comm), ncclSuccess);
	/* It is aborted while it is being made. */
	double_state = ncclInProgress;
	IS(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
	IS(ncclCommAbort(comm), ncclSuccess);
	kit_done();
}

/* A watchdog's question is asked once a second. */
static void test_async_error(void)
{
	ncclResult_t error;
	begin();
	ncclComm_t comm = kit_comm(2, 0);
	loop_mark();
	for (int i = 0; i < 50; i++)
		IS(ncclCommGetAsyncError(comm, &error), ncclSuccess);
	IS(error, ncclSuccess);
	IS(loop_waited, 1);
	IS(ncclCommGetAsyncError(comm, NULL), ncclInvalidArgument);
	IS(ncclCommDestroy(comm), ncclSuccess);
	comm = kit_comm(2, 0);
	double_state = ncclRemoteError;
	for (int i = 0; i < 2; i++) {
		IS(ncclCommGetAsyncError(comm, &error), ncclSuccess);
		IS(error, ncclRemoteError);
	}
	double_state = ncclSuccess;
	IS(ncclCommAbort(comm), ncclSuccess);
	kit_done();
}

UNIT_SUITE(nccl_comm, {"made, known and ended", test_init}, {"configs", test_config},
	{"what is refused", test_wrong}, {"several ids", test_scalable},
	{"split and shrunken ones", test_children}, {"several in a group", test_group},
	{"without blocking", test_without_blocking}, {"errors from elsewhere", test_async_error})
