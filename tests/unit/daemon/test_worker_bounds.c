/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/worker_bounds.c: which worker takes too much of its host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/worker_bounds.h"

#define GIB (UINT64_C(1) << 30)

static int read_text(const char *text, struct ckt_worker_use *ret_use)
{
	const char *path = path_in("status");
	write_file(path, text, 0600);
	int result = ckt_worker_use_read(path, ret_use);
	unlink(path);
	return result;
}

static void test_read(void)
{
	struct ckt_worker_use use = {0};
	IS(read_text("Name:\tThreads: 9\nUid:\t64600\t64600\t64600\t64600\nVmRSS:\t  900 kB\n"
		     "RssAnon:\t    16 kB\nRssFile:\t  800 kB\nRssShmem:\t     8 kB\n"
		     "VmSwap:\t     4 kB\nThreads:\t12\n",
		   &use),
		0);
	IS(use.uid, 64600);
	IS(use.threads, 12);
	IS(use.memory_bytes, 28 << 10);
	/* A process that has just ended has none. */
	IS(read_text("Name:\tx\nState:\tZ (zombie)\n", &use), -EBADMSG);
	IS(ckt_worker_use_read(path_in("none"), &use), -ENOENT);
	IS(use.threads, 12);
}

static void test_threads(void)
{
	char why[CKT_BOUNDS_WHY] = "";
	const struct ckt_worker_host host = {.threads = 400}, large = {.threads = 1 << 20};
	struct ckt_worker_use uses[] = {{1, 0, 20, 0}, {1, 1, 300, 0}, {2, 2, 340, 0}};
	IS(ckt_worker_bounds_choose(uses, 3, &host, why), -1);
	/* Of the user who has nearly all; the other user's worker has more. */
	uses[0].threads = 50;
	IS(ckt_worker_bounds_choose(uses, 3, &host, why), 1);
	YES(strstr(why, "300 threads, and the workers of its user 350 of 400") != NULL);
	IS(ckt_worker_bounds_choose(uses, 0, &host, why), -1);
	/* Warm ones have a part of them, and are not ended for that. */
	struct ckt_worker_use warm[] = {{1, 0, 55, 0}, {1, 1, 199, 0}, {1, 7, 200, 0, true}};
	IS(ckt_worker_bounds_choose(warm, 2, &host, why), -1);
	IS(ckt_worker_bounds_choose(warm, 3, &host, why), 1);
	warm[1].spare = warm[0].spare = true;
	IS(ckt_worker_bounds_choose(warm, 3, &host, why), -1);
	/* As many as a cgroup would allow are no bomb. */
	uses[2].threads = 4096;
	IS(ckt_worker_bounds_choose(uses, 3, &large, why), -1);
	uses[2].threads = 4097;
	IS(ckt_worker_bounds_choose(uses, 3, &large, why), 2);
	YES(strstr(why, "4097 threads") != NULL);
	const struct ckt_worker_host none = {0};
	uses[2].threads = 4000;
	IS(ckt_worker_bounds_choose(uses, 3, &none, why), -1);
}

/* Many small workers of one owner do not have the large one of another ended. */
static void test_owners(void)
{
	char why[CKT_BOUNDS_WHY] = "";
	struct ckt_worker_host host = {.threads = 400, .memory_bytes = 32 * GIB};
	struct ckt_worker_use uses[] = {
		{1, 0, 150, 9 * GIB}, {1, 1, 100, 6 * GIB}, {1, 1, 101, 6 * GIB}, {1, 1, 10, GIB}};
	IS(ckt_worker_bounds_choose(uses, 4, &host, why), 2);
	host.threads = 0;
	IS(ckt_worker_bounds_choose(uses, 4, &host, why), 1);
}

static void test_memory(void)
{
	char why[CKT_BOUNDS_WHY] = "";
	struct ckt_worker_host host = {.memory_bytes = 32 * GIB, .available_bytes = GIB};
	struct ckt_worker_use uses[] = {{1, 0, 1, 9 * GIB}, {1, 0, 1, 12 * GIB}, {2, 2, 1, GIB}};
	IS(ckt_worker_bounds_choose(uses, 3, &host, why), -1);
	host.available_bytes = GIB / 4;
	IS(ckt_worker_bounds_choose(uses, 3, &host, why), 1);
	YES(strstr(why, "12288 MiB of memory, and the host 256 MiB left of 32768") != NULL);
	/* Somebody else took it. */
	uses[0].memory_bytes = uses[1].memory_bytes = 3 * GIB;
	IS(ckt_worker_bounds_choose(uses, 3, &host, why), -1);
	/* A large host keeps no more than a GiB. */
	host = (struct ckt_worker_host){.memory_bytes = 2048 * GIB, .available_bytes = 2 * GIB};
	uses[1].memory_bytes = 1024 * GIB;
	IS(ckt_worker_bounds_choose(uses, 3, &host, why), -1);
}

UNIT_SUITE(worker_bounds, {"read", test_read}, {"threads", test_threads}, {"owners", test_owners},
	{"memory", test_memory})
