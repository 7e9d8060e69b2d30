/* SPDX-License-Identifier: Apache-2.0 */
/* client/conn/hostmem.h: the file of pinned memory that a worker on this host shares. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/conn/hostmem.h"
#include "client/conn/settings.h"
#include "rpc/hostmem.h"
#include "rpc/net.h"
#include "tests/unit/suite.h"

#define ROOM (64 * CKT_HOST_GRAIN)

/* Its state lasts as long as the process: each test has one of its own. */
static void in_child(void (*test)(void))
{
	int status = -1;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		unsigned before = CU_get_number_of_failures();
		test();
		_exit(CU_get_number_of_failures() != before);
	}
	waitpid(child, &status, 0);
	IS(status, 0);
}

static bool answer(uint64_t base, uint64_t bytes, bool unfilled)
{
	ckt_capability list[3] = {{(char *)CKT_CAPABILITY_HOST_BASE, base},
		{(char *)CKT_CAPABILITY_HOST_BYTES, bytes},
		{(char *)CKT_CAPABILITY_HOST_UNFILLED, 1}};
	struct ckt_hello_ok ok = {.capabilities = {.capabilities_len = base ? 2 : unfilled,
					  .capabilities_val = base ? list : list + 2}};
	return ckt_host_memory_answer(&ok);
}

/* Addresses that are free here. */
static uint64_t free_place(void)
{
	void *place =
		mmap(NULL, ROOM + CKT_HOST_GRAIN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(place, ROOM + CKT_HOST_GRAIN);
	return ((uint64_t)(uintptr_t)place + CKT_HOST_GRAIN - 1) / CKT_HOST_GRAIN * CKT_HOST_GRAIN;
}

static void shared(void)
{
	uint64_t base = free_place(), got, room;
	ckt_settings.share_memory = true;
	NO(ckt_host_memory_place(&got, &room));
	NO(ckt_host_memory_map(0, CKT_HOST_GRAIN));
	int fd = ckt_host_memory_file();
	YES(fd >= 0);
	IS(ckt_host_memory_file(), fd);
	IS(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK, F_SEAL_SHRINK);
	IS(fcntl(fd, F_GETFD), FD_CLOEXEC);
	NO(answer(base, ROOM, false));
	YES(ckt_host_memory_place(&got, &room));
	IS(got, base);
	IS(room, ROOM);
	/* The same byte at its address and in the file. */
	uint8_t byte = 0;
	YES(ckt_host_memory_map(2 * CKT_HOST_GRAIN, CKT_HOST_GRAIN));
	*(uint8_t *)(uintptr_t)(base + 2 * CKT_HOST_GRAIN + 5) = 42;
	IS(pread(fd, &byte, 1, 2 * CKT_HOST_GRAIN + 5), 1);
	IS(byte, 42);
	/* What is taken, and what lies outside. */
	NO(ckt_host_memory_map(2 * CKT_HOST_GRAIN, CKT_HOST_GRAIN));
	NO(ckt_host_memory_map(ROOM, CKT_HOST_GRAIN));
	NO(ckt_host_memory_map(0, ROOM + CKT_HOST_GRAIN));
	NO(ckt_host_memory_map(UINT64_MAX, 2));
	/* Pages that are given back come again empty. */
	ckt_host_memory_unmap(2 * CKT_HOST_GRAIN, CKT_HOST_GRAIN);
	YES(ckt_host_memory_map(2 * CKT_HOST_GRAIN, CKT_HOST_GRAIN));
	IS(*(uint8_t *)(uintptr_t)(base + 2 * CKT_HOST_GRAIN + 5), 0);
	/* Found again by the same worker, or by another that has the same addresses. */
	NO(answer(base, ROOM, false));
	YES(ckt_host_memory_place(&got, &room));
	/* And lost for good: no file goes along any more. */
	YES(answer(0, 0, true));
	NO(ckt_host_memory_place(&got, &room));
	IS(ckt_host_memory_file(), -1);
	NO(answer(base, ROOM, false));
	NO(ckt_host_memory_place(&got, &room));
	IS(*(uint8_t *)(uintptr_t)(base + 2 * CKT_HOST_GRAIN + 5), 0);
}

static void not_granted(void)
{
	uint64_t base, room;
	ckt_settings.share_memory = true;
	YES(ckt_host_memory_file() >= 0);
	NO(answer(0, 0, false));
	NO(ckt_host_memory_place(&base, &room));
	IS(ckt_host_memory_file(), -1);
}

static void crooked(void)
{
	uint64_t base, room;
	ckt_settings.share_memory = true;
	YES(ckt_host_memory_file() >= 0);
	NO(answer(free_place() + 1, ROOM, false));
	NO(ckt_host_memory_place(&base, &room));
}

static void other_addresses(void)
{
	uint64_t place = free_place(), base, room;
	ckt_settings.share_memory = true;
	YES(ckt_host_memory_file() >= 0);
	NO(answer(place, ROOM, false));
	NO(answer(place + CKT_HOST_GRAIN, ROOM, false));
	NO(ckt_host_memory_place(&base, &room));
}

static void switched_off(void)
{
	ckt_settings.share_memory = false;
	IS(ckt_host_memory_file(), -1);
}

/* A program that closes everything it finds, and opens something else there. */
static void closed_by_program(void)
{
	uint64_t base = free_place(), room;
	ckt_settings.share_memory = true;
	int fd = ckt_host_memory_file();
	NO(answer(base, ROOM, false));
	IS(dup2(STDOUT_FILENO, fd), fd);
	IS(ckt_host_memory_file(), -1);
	NO(ckt_host_memory_place(&base, &room));
	NO(ckt_host_memory_map(0, CKT_HOST_GRAIN));
}

static void test_shared(void)
{
	in_child(shared);
}

static void test_refused(void)
{
	in_child(not_granted);
	in_child(crooked);
	in_child(other_addresses);
	in_child(switched_off);
	in_child(closed_by_program);
}

static void expect_fill(int fd, uint64_t address, size_t size, uint8_t first)
{
	uint8_t *data;
	size_t record;
	ckt_host_fill_args fill = {0};
	MUST(ckt_net_read_record(
		     fd, CKT_RECORD_MAX, ckt_net_now_ms() + 60000, &data, &record, NULL),
		0);
	struct ckt_cursor c = {.p = data, .end = data + record};
	struct ckt_call_header header = {0};
	YES(ckt_call_header_get(&c, &header));
	IS(header.prog, CRICKET_SESSION_PROG);
	IS(header.proc, CKT_SESSION_HOST_FILL);
	IS(header.seq, 0);
	MUST(ckt_net_decode(&c, (xdrproc_t)xdr_ckt_host_fill_args, &fill), 0);
	IS(fill.address, address);
	IS(fill.data.data_len, size);
	YES(!size || (uint8_t)fill.data.data_val[0] == first);
	xdr_free((xdrproc_t)xdr_ckt_host_fill_args, (char *)&fill);
	free(data);
}

static void test_fill(void)
{
	int ends[2], room = 1 << 20;
	size_t size = CKT_HOST_FILL_MAX + 100;
	uint8_t *bytes = malloc(size);
	memset(bytes, 3, size);
	bytes[CKT_HOST_FILL_MAX] = 4;
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	struct ckt_transport to;
	ckt_transport_init_socket(&to, ends[0]);
	IS(ckt_host_memory_fill(&to, 0x1000, bytes, size), 0);
	IS(ckt_host_memory_fill(&to, 0, NULL, 0), 0);
	expect_fill(ends[1], 0x1000, CKT_HOST_FILL_MAX, 3);
	expect_fill(ends[1], 0x1000 + CKT_HOST_FILL_MAX, 100, 4);
	expect_fill(ends[1], 0, 0, 0);
	close(ends[1]);
	IS(ckt_host_memory_fill(&to, 0, NULL, 0), -EPIPE);
	ckt_transport_close(&to);
	free(bytes);
}

UNIT_SUITE(hostmem, {"shared", test_shared}, {"refused", test_refused}, {"fill", test_fill})
