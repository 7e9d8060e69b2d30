/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/lane_open.c: lanes are opened behind the first that asks, as many as both sides want,
 * again after they broke, and none once the connection has ended.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/conn/lane_set.h"
#include "client/conn/settings.h"
#include "conn_parts.h"
#include "tests/unit/suite.h"

static struct {
	int listener;
	_Atomic unsigned connections, wrong; /* hellos that are no lane's of the session */
	_Atomic uint64_t set;                /* the number in the last hello */
	_Atomic unsigned takes;              /* so many are taken; the next are refused */
	_Atomic int last;                    /* the descriptor of the last that was taken */
} server;

static void take(int fd)
{
	uint32_t flavours[] = {CKT_AUTH_CRICKET_PROOF, CKT_AUTH_NONE};
	struct ckt_greeting greeting = {.protocol = 1, .flavours = {2, flavours}};
	struct ckt_hello_args hello = {0};
	struct ckt_hello_res res = {.status = server.takes ? CKT_HELLO_OK : CKT_HELLO_FULL};
	uint8_t *data;
	size_t size;
	ckt_net_encode_call(0, CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING,
		(xdrproc_t)xdr_ckt_greeting, &greeting, &data, &size);
	ckt_net_write_record(fd, data, size, -1, -1);
	free(data);
	if (ckt_net_read_record(fd, CKT_HELLO_MAX, ckt_net_now_ms() + 60000, &data, &size, NULL))
		return;
	struct ckt_cursor c = {.p = data + 28, .end = data + size};
	c.p += ckt_get_u32(&c) + 8;
	if (ckt_net_decode(&c, (xdrproc_t)xdr_ckt_hello_args, &hello) == 0) {
		ckt_capability *told = hello.capabilities.capabilities_val;
		server.wrong += hello.kind != CKT_HELLO_DATA ||
			strcmp(hello.session, PARTS_SESSION) || hello.generation != 1 ||
			hello.capabilities.capabilities_len != 1 ||
			strcmp(told->name, CKT_CAPABILITY_LANES);
		server.set = told ? told->value : 0;
		xdr_free((xdrproc_t)xdr_ckt_hello_args, (char *)&hello);
	}
	free(data);
	if (server.takes) {
		server.takes--;
		server.last = fd;
		res.ckt_hello_res_u.ok = (struct ckt_hello_ok){.protocol = 1,
			.session = (char *)PARTS_SESSION,
			.server = (char *)"fake",
			.build = (char *)"test"};
	} else {
		res.ckt_hello_res_u.refused.message = (char *)"because";
		res.ckt_hello_res_u.refused.moved_to = (char *)"";
	}
	ckt_net_encode_reply(0, 0, (xdrproc_t)xdr_ckt_hello_res, &res, &data, &size);
	ckt_net_write_record(fd, data, size, -1, -1);
	free(data);
}

static void *serve(void *unused)
{
	for (int fd; (fd = accept(server.listener, NULL, NULL)) >= 0;) {
		server.connections++;
		take(fd);
	}
	return unused;
}

static void allow(unsigned offered)
{
	ckt_capability capabilities[] = {{(char *)CKT_CAPABILITY_LANES, offered},
		{(char *)CKT_CAPABILITY_LANE_PIECES, 2 * offered}};
	struct ckt_hello_ok ok = {.capabilities = {offered ? 2 : 0, capabilities}};
	ckt_lanes_allow(&ckt_conn, &ok);
}

static void begin(void)
{
	struct ckt_address address = {.type = CKT_ADDRESS_UNIX};
	char message[CKT_MESSAGE_MAX];
	pthread_t thread;
	if (server.listener) {
		server.connections = server.wrong = 0;
		return;
	}
	snprintf(address.host, sizeof address.host, "/tmp/ckt-lanes-%d", (int)getpid());
	MUST(ckt_net_listen(&address, 0600, &server.listener, message, sizeof message), 0);
	fcntl(server.listener, F_SETFL, 0);
	snprintf(ckt_conn.address_text, sizeof ckt_conn.address_text, "unix:%s", address.host);
	MUST(ckt_session_key_new(&ckt_conn.key), 0);
	ckt_session_key_secret(ckt_conn.key->public_key, ckt_conn.secret);
	strcpy(ckt_conn.session, PARTS_SESSION);
	ckt_conn.generation = 1;
	MUST(pthread_create(&thread, NULL, serve, NULL), 0);
	pthread_detach(thread);
}

/* Asks until the thread that opens lanes has done what it can. */
static struct ckt_lane_set *get(void)
{
	struct ckt_lane_set *set = NULL;
	for (int i = 0; i < 300000 && !set; i++, usleep(200)) {
		set = ckt_lanes_get(&ckt_conn);
		pthread_mutex_lock(&ckt_conn.lanes.lock);
		bool over = !ckt_conn.lanes.opening && !ckt_conn.lanes.set &&
			(ckt_conn.lanes.failures == LANE_FAILURES_MAX || !ckt_conn.lanes.offered);
		pthread_mutex_unlock(&ckt_conn.lanes.lock);
		if (over)
			break;
	}
	return set;
}

static unsigned descriptors(void)
{
	DIR *open_now = opendir("/proc/self/fd");
	unsigned count = 0;
	while (readdir(open_now))
		count++;
	closedir(open_now);
	return count;
}

static void test_open(void)
{
	begin();
	ckt_settings.lanes = 3;
	server.takes = 100;
	allow(0);
	YES(ckt_lanes_get(&ckt_conn) == NULL);
	allow(CKT_LANES_MAX);
	/* The first does not wait. */
	YES(ckt_lanes_get(&ckt_conn) == NULL);
	struct ckt_lane_set *set = get();
	MUST(set != NULL, true);
	IS(ckt_lanes_count(set), 3);
	IS(server.connections, 3);
	IS(server.wrong, 0);
	uint64_t number = server.set;
	YES(number > 0);
	/* Others get the same. */
	struct ckt_lane_set *again = ckt_lanes_get(&ckt_conn);
	YES(again == set);
	ckt_lanes_release(again);
	/* A lane breaks: new ones, of another number. */
	shutdown(server.last, SHUT_RDWR);
	for (int i = 0; i < 300000 && !set->gone; i++)
		usleep(200);
	ckt_lanes_release(set);
	set = get();
	MUST(set != NULL, true);
	YES(server.set > number);
	IS(server.connections, 6);
	/* The connection ends, while a copy still has them. */
	ckt_lanes_close(&ckt_conn);
	YES(set->gone);
	YES(ckt_lanes_get(&ckt_conn) == NULL);
	ckt_lanes_release(set);
	/* A worker that takes fewer. */
	allow(2);
	set = get();
	MUST(set != NULL, true);
	IS(ckt_lanes_count(set), 2);
	IS(set->pieces, 4);
	ckt_lanes_release(set);
	ckt_lanes_close(&ckt_conn);
	ckt_settings.lanes = 0;
	allow(2);
	YES(ckt_lanes_get(&ckt_conn) == NULL);
	NO(ckt_conn.lanes.opening);
}

static void test_refused(void)
{
	begin();
	ckt_settings.lanes = 4;
	/* Some of them are enough. */
	server.takes = 1;
	allow(4);
	struct ckt_lane_set *set = get();
	MUST(set != NULL, true);
	IS(ckt_lanes_count(set), 1);
	ckt_lanes_release(set);
	ckt_lanes_close(&ckt_conn);
	/* None: a few attempts, and no more until the connection is another one. */
	begin();
	allow(4);
	YES(get() == NULL);
	IS(server.connections, LANE_FAILURES_MAX);
	for (int i = 0; i < 5; i++)
		YES(ckt_lanes_get(&ckt_conn) == NULL);
	IS(server.connections, LANE_FAILURES_MAX);
	ckt_lanes_close(&ckt_conn);
	server.takes = 4;
	allow(4);
	set = get();
	MUST(set != NULL, true);
	ckt_lanes_release(set);
	ckt_lanes_close(&ckt_conn);
}

/* No descriptor is left of lanes that were closed, not even in a child. */
static void test_descriptors(void)
{
	begin();
	ckt_settings.lanes = 4;
	server.takes = 100;
	allow(4);
	ckt_lanes_get(&ckt_conn);
	ckt_lanes_close(&ckt_conn); /* while they are opened */
	unsigned before = descriptors();
	allow(4);
	struct ckt_lane_set *set = get();
	MUST(set != NULL, true);
	/* Both ends are here. */
	IS(descriptors(), before + 8);
	pid_t child = fork();
	if (child == 0) {
		ckt_lanes_forked(&ckt_conn);
		_exit(descriptors() == before + 4 ? 0 : 1);
	}
	int status = 1;
	waitpid(child, &status, 0);
	IS(status, 0);
	ckt_lanes_release(set);
	ckt_lanes_close(&ckt_conn);
	IS(descriptors(), before + 4);
}

UNIT_SUITE(lane_open, {"open", test_open}, {"refused", test_refused},
	{"descriptors", test_descriptors})
