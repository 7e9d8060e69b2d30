/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/policy/admission.c: who gives way when too many connections say nothing. Counts only: no clock is compared.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inside.h"

enum { CROWD = 64 };

static struct ckt_auth_peer address(uint8_t last)
{
	struct ckt_auth_peer who = {.kind = CKT_PEER_LOOPBACK,
		.uid = CKT_UID_UNKNOWN,
		.address = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = last}};
	snprintf(who.text, sizeof who.text, "127.0.0.%u", last);
	return who;
}

static struct ckt_auth_peer user(uint32_t uid)
{
	return (struct ckt_auth_peer){.kind = CKT_PEER_UNIX, .uid = uid, .text = "local"};
}

/* Connections that say nothing; what the server dropped reads as an end. */
static int fds[CROWD];
static unsigned fd_count;

static void come(struct ckt_auth_peer who, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		int pair[2];
		MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		/* All came just now, however long this test stood still. */
		for (struct ckt_peer *peer = server.peers_first; peer; peer = peer->next)
			peer->since_ms = INT64_MAX;
		ckt_peer_accept_as(&server, pair[1], &who);
		fds[fd_count++] = pair[0];
	}
}

static bool is_open(int fd)
{
	char bytes[512];
	ssize_t n;
	while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
		continue;
	return n < 0;
}

static unsigned open_of(unsigned from, unsigned to)
{
	unsigned count = 0;
	for (unsigned i = from; i < to; i++)
		count += is_open(fds[i]);
	return count;
}

static void leave(void)
{
	for (unsigned i = 0; i < fd_count; i++)
		close(fds[i]);
	fd_count = 0;
	while (server.peers_first)
		run_for(1);
	IS(server.peers_waiting, 0);
}

static void limits(unsigned waiting, unsigned each)
{
	server.options.max_waiting = waiting;
	server.options.max_waiting_per_peer = each;
}

/* 127.0.0.2 floods: 127.0.0.3 gets in, and what waited before stays. */
static void test_flood(void)
{
	limits(16, 0);
	come(address(3), 1);
	come(address(2), 40);
	IS(server.peers_waiting, 1 + 8);
	come(address(3), 1);
	come(address(4), 1);
	YES(is_open(fds[0]));
	IS(open_of(1, 41), 8);
	IS(open_of(41, 43), 2);
	leave();
}

/* Many addresses together: whoever has most gives way, and those that have one keep it. */
static void test_many_addresses(void)
{
	limits(16, 0);
	come(address(2), 8);
	for (unsigned i = 10; i < 18; i++)
		come(address((uint8_t)i), 1);
	IS(server.peers_waiting, 16);
	come(address(3), 3);
	IS(server.peers_waiting, 16);
	IS(open_of(0, 8), 5);
	/* Its first ones are closest to their hello. */
	IS(open_of(0, 5), 5);
	IS(open_of(8, 19), 11);
	/* Who has most itself drops nobody else's. */
	come(address(2), 5);
	IS(open_of(0, 5), 5);
	IS(open_of(19, 24), 0);
	IS(open_of(8, 19), 11);
	leave();
}

static void test_users(void)
{
	limits(16, 4);
	come(user(1001), 10);
	come(user(1002), 2);
	IS(open_of(0, 10), 4);
	IS(open_of(10, 12), 2);
	/* Root and the server's user are limited by what there is in all. */
	come(user(0), 8);
	IS(open_of(12, 20), 8);
	leave();
}

/* The last descriptors: for peers that have few connections, and at the very end for root. */
static void test_descriptors(void)
{
	limits(1000, 1000);
	come(address(2), 1);
	unsigned last = (unsigned)fds[0] + 40;
	/* Numbers in reach of the reserve: 64 descriptors, 4 of them and 4 more. */
	server.descriptor_count = 64;
	struct ckt_auth_peer flooder = address(2), fresh = address(3), root = user(0);
	struct ckt_identity ids[] = {
		ckt_identity_of(&flooder), ckt_identity_of(&fresh), ckt_identity_of(&root)};
	come(address(2), 4);
	NO(ckt_admit_connection(&server, &ids[0], 57));
	YES(ckt_admit_connection(&server, &ids[1], 57));
	NO(ckt_admit_connection(&server, &ids[1], 61));
	YES(ckt_admit_connection(&server, &ids[2], 61));
	ckt_admit_greeted(&server, &ids[1]);
	ckt_admit_greeted(&server, &ids[2]);
	(void)last;
	/* None at all: who has most gives one back. */
	IS(server.peers_waiting, 5);
	ckt_admit_no_descriptor(&server);
	IS(server.peers_waiting, 4);
	server.descriptor_count = 0;
	leave();
}

static void test_failures(void)
{
	struct ckt_auth_peer who = address(5), other = address(6);
	struct ckt_identity source = ckt_identity_of(&who), second = ckt_identity_of(&other);
	server.options.max_delay = 10;
	unsigned before = 0;
	for (int i = 0; i < 3; i++)
		IS(ckt_admit_failed(&server, &source), 0);
	for (int i = 0; i < 6; i++) {
		unsigned delay = ckt_admit_failed(&server, &source);
		YES(delay > before);
		before = delay;
	}
	for (int i = 0; i < 100; i++)
		before = ckt_admit_failed(&server, &source);
	IS(before, 10000);
	IS(ckt_admit_failed(&server, &second), 0);
	/* Addresses that only failed are not remembered without bound. */
	for (unsigned i = 0; i < 10000; i++) {
		struct ckt_identity one = {.kind = CKT_IDENTITY_ADDRESS,
			.network = {1, [1] = (uint8_t)i, [2] = (uint8_t)(i >> 8)}};
		IS(ckt_admit_failed(&server, &one), 0);
	}
	ckt_admission_fini(&server);
	CU_ASSERT_PTR_NULL(server.admission);
	/* The suites behind this one are answered at once. */
	server.options.max_delay = 0;
}

UNIT_SUITE(admission, {"flood", test_flood}, {"many addresses", test_many_addresses},
	{"users", test_users}, {"descriptors", test_descriptors}, {"failures", test_failures})
