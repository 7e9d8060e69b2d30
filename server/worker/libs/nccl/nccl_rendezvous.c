/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a communicator agree on a new unique id in a restore whose workers were told none
 * (ckt_worker_nccl_ids_add).  Rank 0 makes the id and leaves it in the host's shared memory, under
 * the communicator's identity and the server's name, until all ranks have met.  This works only for
 * ranks of one server, whose workers belong to one user.
 *
 * Threading: any number of threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/worker/libs/nccl/nccl.h"
#include "server/worker/session/notice_file.h"
#include "server/worker/worker.h"

enum { LOOK_NS = 2000000, PATH_BYTES = 128 };

struct notice {
	char magic[8];
	/* of rank 0's worker: the notice of a dead worker does not count */
	uint64_t pid, started;
	uint8_t identity[CKT_NCCL_ID_BYTES], id[CKT_NCCL_ID_BYTES];
};

static const char magic[8] = "cktnccl1";

/* In clock ticks since boot; 0: no such process. */
static uint64_t start_time(uint64_t pid)
{
	char path[64], text[1024];
	uint64_t started = 0;
	snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	/*
	 * The process name may contain anything, so count from its ')': field 22 is the 20th after
	 * it.
	 */
	const char *p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (p)
		started = strtoull(p + 1, NULL, 10);
	return started;
}

/* The file for an identity, shared by the workers of this server. */
static void name_place(const uint8_t *identity, char path[PATH_BYTES])
{
	uint8_t hashed[CKT_NCCL_ID_BYTES];
	ckt_nccl_identity_derive(identity, 0, CKT_NCCL_NONE, ckt_worker.socket,
		ckt_notice_server_length(&ckt_worker), hashed);
	int n = snprintf(
		path, PATH_BYTES, CKT_NOTICE_DIRECTORY "/cricket-nccl-%u-", (unsigned)geteuid());
	for (unsigned i = 8; i < 24; i++)
		n += snprintf(path + n, PATH_BYTES - (size_t)n, "%02x", hashed[i]);
}

static bool look(const char *path, const uint8_t *identity, ncclUniqueId *ret_id)
{
	struct notice notice;
	if (!ckt_notice_read(AT_FDCWD, path, false, &notice, sizeof notice) ||
		memcmp(notice.magic, magic, sizeof magic) ||
		memcmp(notice.identity, identity, CKT_NCCL_ID_BYTES) || !notice.started ||
		start_time(notice.pid) != notice.started)
		return false;
	memcpy(ret_id, notice.id, CKT_NCCL_ID_BYTES);
	return true;
}

ncclResult_t ckt_worker_nccl_meet(
	const uint8_t *identity, int rank, int64_t deadline_ms, ncclUniqueId *ret_id)
{
	char path[PATH_BYTES];
	name_place(identity, path);
	if (rank) {
		while (!look(path, identity, ret_id)) {
			if (ckt_net_now_ms() >= deadline_ms)
				return ncclRemoteError;
			nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		}
		return ncclSuccess;
	}
	struct notice notice = {
		.pid = (uint64_t)getpid(), .started = start_time((uint64_t)getpid())};
	memcpy(notice.magic, magic, sizeof magic);
	memcpy(notice.identity, identity, CKT_NCCL_ID_BYTES);
	ncclResult_t status =
		ckt_nccl.ncclGetUniqueId ? ckt_nccl.ncclGetUniqueId(ret_id) : ncclInvalidUsage;
	memcpy(notice.id, ret_id, CKT_NCCL_ID_BYTES);
	int error = status ? 0 : ckt_notice_leave(path, &notice, sizeof notice, NULL);
	if (error)
		ckt_warning("%s: %s: cannot tell the other ranks of a communicator its new ID",
			path, strerror(-error));
	return error ? ncclSystemError : status;
}

void ckt_worker_nccl_met(const uint8_t *identity)
{
	char path[PATH_BYTES];
	name_place(identity, path);
	unlink(path);
}
