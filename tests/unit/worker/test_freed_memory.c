/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/memory/freed_memory.h: a worker that is short of a GPU's memory asks the server, and tries once more.
 */
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/group.h"
#include "rpc/net.h"
#include "server/worker/memory/freed_memory.h"
#include "server/worker/memory/window.h"
#include "server/worker/session/group.h"
#include "tests/unit/worker/inside.h"

static int channel; /* the server's end */
static unsigned asked, nth;
static bool named;

/* One question, answered with this byte; 0: with the end of the connection. */
static void *answer(void *opaque)
{
	struct ckt_group_message packet;
	struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	const struct ckt_group_name name = ckt_group_memory();
	ckt_net_fd_expect(&message, &room);
	if (recvmsg(channel, &message, 0) != sizeof packet)
		return NULL;
	int connection = ckt_net_fd_take(&message);
	asked++;
	nth = packet.nth;
	named = packet.kind == CKT_GROUP_ASK && ckt_group_same_name(&packet.name, &name);
	if (*(char *)opaque)
		send(connection, opaque, 1, MSG_NOSIGNAL);
	close(connection);
	return NULL;
}

static bool free_memory(char byte)
{
	pthread_t thread;
	pthread_create(&thread, NULL, answer, &byte);
	bool result = ckt_freed_memory_ask(5);
	pthread_join(thread, NULL);
	return result;
}

static CUresult(CUDAAPI *real)(
	CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long);
static unsigned refusals;

static CUresult CUDAAPI create(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	if (refusals) {
		refusals--;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return real(handle, size, prop, flags);
}

static CUresult allocate(char byte, unsigned refused)
{
	pthread_t thread;
	uint64_t handle;
	refusals = refused;
	pthread_create(&thread, NULL, answer, &byte);
	CUresult result = ckt_window_create(
		&ckt_worker, 1, CKT_MEMORY_EXTENT, CU_MEM_ALLOCATION_COMP_NONE, &handle);
	pthread_join(thread, NULL);
	if (!result)
		ckt_driver.cuMemRelease(handle);
	return result;
}

static void test_asking(void)
{
	int ends[2];
	/* Without a server nobody is asked, and nobody waits. */
	NO(ckt_freed_memory_ask(0));
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	channel = ends[0];
	MUST(ckt_group_init() >= 0, true);
	IS(ckt_group_join(ends[1]), 0);
	YES(free_memory(CKT_GROUP_FREED));
	YES(named);
	IS(nth, 5);
	NO(free_memory(CKT_GROUP_NOBODY));
	NO(free_memory('x'));
	NO(free_memory(0));
	IS(asked, 4);
}

static void test_allocations(void)
{
	real = ckt_driver.cuMemCreate;
	ckt_driver.cuMemCreate = create;
	asked = 0;
	IS(allocate(CKT_GROUP_FREED, 1), CUDA_SUCCESS);
	IS(nth, ckt_worker.devices[1].number);
	/* Once more, and no oftener; not at all where nothing was given up. */
	IS(allocate(CKT_GROUP_FREED, 2), CUDA_ERROR_OUT_OF_MEMORY);
	IS(refusals, 0);
	IS(allocate(CKT_GROUP_NOBODY, 2), CUDA_ERROR_OUT_OF_MEMORY);
	IS(refusals, 1);
	IS(asked, 3);
	ckt_driver.cuMemCreate = real;
	close(channel);
}

UNIT_SUITE(freed_memory, {"asking", test_asking}, {"allocations", test_allocations})
