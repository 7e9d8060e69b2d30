/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/nccl/nccl_rendezvous.c: ranks agree on an id of rank 0's, and on none that
 * somebody else left.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/net.h"
#include "tests/unit/worker/nccl_kit.h"

static uint8_t identity[CKT_NCCL_ID_BYTES] = {77, 1}, other[CKT_NCCL_ID_BYTES] = {77, 2};

static void *first(void *id)
{
	usleep(20000);
	IS(ckt_worker_nccl_meet(identity, 0, 0, id), ncclSuccess);
	return NULL;
}

static void test_meet(void)
{
	ncclUniqueId mine = {{0}}, theirs = {{0}}, again;
	pthread_t thread;
	nccl_begin();
	pthread_create(&thread, NULL, first, &mine);
	IS(ckt_worker_nccl_meet(identity, 1, ckt_net_now_ms() + 5000, &theirs), ncclSuccess);
	pthread_join(thread, NULL);
	YES(!memcmp(&mine, &theirs, sizeof mine) && mine.internal[127] == 7);
	/* As often as there are ranks; of another communicator there is nothing. */
	IS(ckt_worker_nccl_meet(identity, 3, ckt_net_now_ms() + 5000, &again), ncclSuccess);
	YES(!memcmp(&mine, &again, sizeof mine));
	IS(ckt_worker_nccl_meet(other, 1, ckt_net_now_ms() + 10, &again), ncclRemoteError);
	ckt_worker_nccl_met(identity);
	IS(ckt_worker_nccl_meet(identity, 1, ckt_net_now_ms() + 10, &again), ncclRemoteError);
	/* The library makes none. */
	double_answer("ncclGetUniqueId", ncclSystemError);
	IS(ckt_worker_nccl_meet(identity, 0, 0, &again), ncclSystemError);
	double_answer("ncclGetUniqueId", ncclSuccess);
}

/* What a worker left that died is none of this restore's. */
static void test_stale(void)
{
	ncclUniqueId id;
	nccl_begin();
	pid_t child = fork();
	if (child == 0)
		_exit(ckt_worker_nccl_meet(identity, 0, 0, &id) != ncclSuccess);
	int status;
	MUST(waitpid(child, &status, 0), child);
	IS(status, 0);
	IS(ckt_worker_nccl_meet(identity, 1, ckt_net_now_ms() + 20, &id), ncclRemoteError);
	/* And a new one takes its place. */
	IS(ckt_worker_nccl_meet(identity, 0, 0, &id), ncclSuccess);
	IS(ckt_worker_nccl_meet(identity, 1, ckt_net_now_ms() + 20, &id), ncclSuccess);
	/* Another server's workers do not see it. */
	char before[sizeof ckt_worker.socket];
	memcpy(before, ckt_worker.socket, sizeof before);
	snprintf(ckt_worker.socket, sizeof ckt_worker.socket, "/elsewhere/session");
	IS(ckt_worker_nccl_meet(identity, 1, ckt_net_now_ms() + 20, &id), ncclRemoteError);
	memcpy(ckt_worker.socket, before, sizeof before);
	ckt_worker_nccl_met(identity);
}

/* The one file with that beginning, which rank 0 has left. */
static bool find_place(char path[512])
{
	char start[64];
	bool found = false;
	snprintf(start, sizeof start, "cricket-nccl-%u-", (unsigned)geteuid());
	DIR *folder = opendir("/dev/shm");
	for (struct dirent *e; folder && (e = readdir(folder));)
		if (!strncmp(e->d_name, start, strlen(start))) {
			char there[512];
			uint8_t bytes[512];
			snprintf(there, sizeof there, "/dev/shm/%s", e->d_name);
			FILE *file = fopen(there, "r");
			size_t n = file ? fread(bytes, 1, sizeof bytes, file) : 0;
			if (file)
				fclose(file);
			/* Behind the magic, the process and its start. */
			if (n == 24 + 2 * CKT_NCCL_ID_BYTES &&
				!memcmp(bytes + 24, identity, CKT_NCCL_ID_BYTES)) {
				snprintf(path, 512, "%s", there);
				found = true;
			}
		}
	if (folder)
		closedir(folder);
	return found;
}

static void test_spoilt(void)
{
	ncclUniqueId id;
	char path[512], aside[600];
	nccl_begin();
	IS(ckt_worker_nccl_meet(identity, 0, 0, &id), ncclSuccess);
	MUST(find_place(path), true);
	/* Cut off, then a link to what is whole. */
	snprintf(aside, sizeof aside, "%s.whole", path);
	IS(rename(path, aside), 0);
	IS(symlink(aside, path), 0);
	IS(ckt_worker_nccl_meet(identity, 1, ckt_net_now_ms() + 10, &id), ncclRemoteError);
	IS(unlink(path), 0);
	IS(rename(aside, path), 0);
	IS(ckt_worker_nccl_meet(identity, 1, ckt_net_now_ms() + 10, &id), ncclSuccess);
	IS(truncate(path, 100), 0);
	IS(ckt_worker_nccl_meet(identity, 1, ckt_net_now_ms() + 10, &id), ncclRemoteError);
	ckt_worker_nccl_met(identity);
	NO(find_place(path));
}

UNIT_SUITE(worker_nccl_meet, {"rank 0 makes the id", test_meet},
	{"what a dead worker left", test_stale}, {"what is none of ours", test_spoilt})
