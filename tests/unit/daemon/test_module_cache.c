/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/module_cache.c: a worker reads and writes the modules of its owner, and
 * gains nothing by what it says.
 */
#include "server/daemon/session/module_cache.h"

#include <nettle/sha2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "rpc/module_cache.h"

enum { MODULE = 700000, ROOM = 3 * MODULE };

static struct ckt_module_cache *cache;
static uint8_t module[MODULE];

static void begin(void)
{
	memset(module, 'm', sizeof module);
	MUST(ckt_module_cache_start(path_in("modules"), ROOM, &cache), 0);
}

static void end(void)
{
	char command[128];
	ckt_module_cache_stop(cache);
	snprintf(command, sizeof command, "rm -rf %s/modules", directory);
	IS(system(command), 0);
}

static struct ckt_module_cache_message message_of(enum ckt_module_cache_kind kind, uint64_t size)
{
	struct ckt_module_cache_message message = {.kind = kind, .size = size};
	struct sha256_ctx sha;
	sha256_init(&sha);
	sha256_update(&sha, sizeof module, module);
	sha256_digest(&sha, sizeof message.hash, message.hash);
	return message;
}

static void say(int fd, enum ckt_module_cache_kind kind, uint64_t size)
{
	struct ckt_module_cache_message message = message_of(kind, size);
	IS(send(fd, &message, sizeof message, MSG_NOSIGNAL), sizeof message);
}

/* 1: the whole module came; 0: the cache has none; -1: the connection ended. */
static int get(int fd)
{
	static uint8_t got[MODULE + 1];
	struct ckt_module_cache_answer answer;
	union ckt_net_fd_room room;
	struct iovec part = {.iov_base = &answer, .iov_len = sizeof answer};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct ckt_module_cache_message question = message_of(CKT_MODULE_CACHE_GET, 0);
	if (send(fd, &question, sizeof question, MSG_NOSIGNAL) != sizeof question)
		return -1;
	ckt_net_fd_expect(&message, &room);
	if (recvmsg(fd, &message, MSG_WAITALL) != sizeof answer)
		return -1;
	int file = ckt_net_fd_take(&message);
	IS(file >= 0, answer.found);
	if (file < 0)
		return 0;
	IS(answer.size, MODULE);
	IS(read(file, got, sizeof got), MODULE);
	IS(memcmp(got, module, MODULE), 0);
	/* A worker cannot write to it. */
	YES(write(file, "x", 1) < 0);
	close(file);
	return 1;
}

static void put(int fd)
{
	say(fd, CKT_MODULE_CACHE_PUT, MODULE);
	for (size_t sent = 0; sent < MODULE;) {
		ssize_t n = send(fd, module + sent, MODULE - sent, MSG_NOSIGNAL);
		MUST(n > 0, true);
		sent += (size_t)n;
	}
}

static int connect_as(const char *owner)
{
	int fd = ckt_module_cache_connect(cache, owner);
	MUST(fd >= 0, true);
	return fd;
}

/* How many modules the cache lists, which are all; -1: nonsense. */
static int list(int fd)
{
	struct ckt_module_cache_answer answer;
	uint32_t words[CKT_MODULE_CACHE_WORDS];
	say(fd, CKT_MODULE_CACHE_LIST, 0);
	if (recv(fd, &answer, sizeof answer, MSG_WAITALL) != sizeof answer || !answer.complete ||
		answer.size != answer.found * sizeof *words || answer.size > sizeof words)
		return -1;
	for (uint32_t i = 0; i < answer.found; i++) {
		IS(recv(fd, &words[i], sizeof *words, MSG_WAITALL), sizeof *words);
		IS(words[i], ckt_module_cache_word(message_of(CKT_MODULE_CACHE_GET, 0).hash));
	}
	return (int)answer.found;
}

static void test_list(void)
{
	begin();
	int first = connect_as("owner-a"), other = connect_as("owner-b");
	IS(list(first), 0);
	put(first);
	IS(list(first), 1);
	IS(list(other), 0);
	IS(get(first), 1);
	close(first);
	close(other);
	end();
}

static void test_owners(void)
{
	begin();
	int first = connect_as("owner-a"), second = connect_as("owner-a"),
	    other = connect_as("owner-b");
	IS(get(first), 0);
	IS(get(other), 0);
	put(first);
	IS(get(first), 1);
	IS(get(second), 1);
	IS(get(other), 0);
	/* It says of its own module that it is bad: its own is gone. */
	put(other);
	IS(get(other), 1);
	say(other, CKT_MODULE_CACHE_BAD, 0);
	IS(get(other), 0);
	IS(get(first), 1);
	/* A repeated one is dropped, and what follows is understood. */
	put(first);
	IS(get(first), 1);
	close(first);
	close(second);
	close(other);
	/* The directory outlives its workers. */
	first = connect_as("owner-a");
	IS(get(first), 1);
	close(first);
	end();
}

static void test_lies(void)
{
	struct ckt_module_cache_message message = message_of(CKT_MODULE_CACHE_PUT, MODULE);
	begin();
	/* Other bytes than those of the hash. */
	int fd = connect_as("owner-a");
	module[5] ^= 1;
	IS(send(fd, &message, sizeof message, 0), sizeof message);
	for (size_t sent = 0; sent < MODULE;) {
		ssize_t n = send(fd, module + sent, MODULE - sent, MSG_NOSIGNAL);
		MUST(n > 0, true);
		sent += (size_t)n;
	}
	module[5] ^= 1;
	IS(get(fd), 0);
	/* One that is too large is read and dropped; of no bytes at all. */
	say(fd, CKT_MODULE_CACHE_PUT, 0);
	IS(get(fd), 0);
	say(fd, CKT_MODULE_CACHE_PUT, ROOM + 1);
	for (size_t sent = 0; sent < ROOM + 1;) {
		size_t want = ROOM + 1 - sent < MODULE ? ROOM + 1 - sent : MODULE;
		ssize_t n = send(fd, module, want, MSG_NOSIGNAL);
		MUST(n > 0, true);
		sent += (size_t)n;
	}
	IS(get(fd), 0);
	/* A message of no kind ends the connection, and no other one. */
	int other = connect_as("owner-a");
	/* Also while a child that was just forked has its socket. */
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	say(fd, (enum ckt_module_cache_kind)77, 0);
	usleep(20000);
	say(fd, CKT_MODULE_CACHE_GET, 0);
	usleep(20000);
	IS(get(other), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	IS(get(fd), -1);
	close(fd);
	IS(get(other), 0);
	/* Half a message, half a module. */
	fd = connect_as("owner-a");
	IS(send(fd, &message, 10, 0), 10);
	close(fd);
	fd = connect_as("owner-a");
	say(fd, CKT_MODULE_CACHE_PUT, MODULE);
	IS(send(fd, module, 5000, 0), 5000);
	close(fd);
	IS(get(other), 0);
	put(other);
	IS(get(other), 1);
	/* A worker that does not read its answers is not waited for. */
	fd = connect_as("owner-a");
	message.kind = CKT_MODULE_CACHE_GET;
	struct pollfd ended = {.fd = fd, .events = POLLIN};
	for (int i = 0;
		i < 100000 && send(fd, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
		i++)
		;
	IS(get(other), 1);
	poll(&ended, 1, 0);
	close(fd);
	close(other);
	end();
}

/* Nothing can be kept: workers are told that there is nothing. */
static void test_blocked(void)
{
	write_file(path_in("blocked"), "", 0600);
	MUST(ckt_module_cache_start(path_in("blocked/modules"), ROOM, &cache), 0);
	int fd = connect_as("owner-a");
	IS(get(fd), 0);
	put(fd);
	IS(get(fd), 0);
	say(fd, CKT_MODULE_CACHE_BAD, 0);
	IS(get(fd), 0);
	/* It stops with its connections. */
	ckt_module_cache_stop(cache);
	IS(get(fd), -1);
	close(fd);
	unlink(path_in("blocked"));
	ckt_module_cache_stop(NULL);
}

static bool was_told(void *calls)
{
	return worker.calls[CKT_WORKER_MODULE_CACHE] == *(unsigned *)calls;
}

static void test_sessions(void)
{
	struct ckt_session *session = session_new("abcdefabcdef");
	unsigned calls = worker.calls[CKT_WORKER_MODULE_CACHE];
	/* The server keeps none. */
	session->uid = 1001;
	IS(ckt_module_cache_open(session), 0);
	IS(session->has_modules, false);
	server.options.module_cache = (char *)"off";
	ckt_module_cache_init(&server);
	YES(!server.module_cache);
	server.options.module_cache = path_in("modules");
	server.options.module_cache_size = ROOM;
	ckt_module_cache_init(&server);
	MUST(server.module_cache != NULL, true);
	IS(ckt_module_cache_open(session), 0);
	calls++;
	YES(run_until(was_told, &calls));
	/* Once for an owner. */
	IS(ckt_module_cache_open(session), 0);
	run_for(20);
	YES(was_told(&calls));
	session->uid = 1002;
	IS(ckt_module_cache_open(session), 0);
	calls++;
	YES(run_until(was_told, &calls));
	/* Nobody knows whose it is; then it is an anonymous peer's. */
	session->uid = CKT_UID_UNKNOWN;
	session->identity = (struct ckt_identity){.kind = CKT_IDENTITY_NONE};
	IS(ckt_module_cache_open(session), 0);
	run_for(20);
	YES(was_told(&calls));
	session->identity = (struct ckt_identity){.kind = CKT_IDENTITY_ADDRESS, .network = {9}};
	IS(ckt_module_cache_open(session), 0);
	calls++;
	YES(run_until(was_told, &calls));
	session_drop(session);
	ckt_module_cache_fini(&server);
	YES(!server.module_cache);
	server.options.module_cache = NULL;
}

UNIT_SUITE(module_cache, {"owners", test_owners}, {"list", test_list}, {"lies", test_lies},
	{"blocked", test_blocked}, {"sessions", test_sessions})
