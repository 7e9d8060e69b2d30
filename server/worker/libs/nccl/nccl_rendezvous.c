/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a communicator agree on a new unique id in a restore whose workers were told none
 * (ckt_worker_nccl_ids_add).  Rank 0 makes the id and is found under the communicator's identity
 * (session/group.h) until all ranks have met.  This works only for ranks of one owner at one server.
 *
 * Threading: any number of threads.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/worker/libs/nccl/nccl.h"
#include "server/worker/module/blob.h"
#include "server/worker/session/group.h"
#include "server/worker/worker.h"

/* More workers than these do not claim one communicator. */
enum { LOOK_NS = 10000000, CLAIMANTS_MAX = 16 };

/* What rank 0 says of itself to whoever asks. */
struct answer {
	char magic[8];
	uint8_t identity[CKT_NCCL_ID_BYTES], id[CKT_NCCL_ID_BYTES];
};

static const char magic[8] = "cktnccl2";

struct meeting {
	struct meeting *next;
	struct ckt_group_name name;
	struct answer answer;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct meeting *meetings;

static struct ckt_group_name name_of(const uint8_t *identity)
{
	struct ckt_group_name name;
	_Static_assert(sizeof name.bytes == CKT_HASH_SIZE, "a hash is a name");
	ckt_blob_hash(identity, CKT_NCCL_ID_BYTES, name.bytes);
	memcpy(name.bytes, "nccl ", 5);
	return name;
}

static void answer(struct ckt_worker *worker, const struct ckt_group_name *name, int connection)
{
	struct answer found;
	bool is_found = false;
	(void)worker;
	pthread_mutex_lock(&lock);
	for (const struct meeting *m = meetings; m && !is_found; m = m->next) {
		is_found = ckt_group_same_name(&m->name, name);
		if (is_found)
			found = m->answer;
	}
	pthread_mutex_unlock(&lock);
	if (is_found)
		send(connection, &found, sizeof found, MSG_NOSIGNAL);
}

static struct meeting *take_out(const struct ckt_group_name *name)
{
	pthread_mutex_lock(&lock);
	struct meeting **place = &meetings;
	while (*place && !ckt_group_same_name(&(*place)->name, name))
		place = &(*place)->next;
	struct meeting *meeting = *place;
	if (meeting)
		*place = meeting->next;
	pthread_mutex_unlock(&lock);
	return meeting;
}

/* Asks all that claim the identity. */
static bool look(const uint8_t *identity, ncclUniqueId *ret_id)
{
	const struct ckt_group_name name = name_of(identity);
	for (unsigned nth = 0; nth < CLAIMANTS_MAX; nth++) {
		struct answer found;
		int connection = ckt_group_ask(&name, nth);
		if (connection < 0)
			return false;
		ssize_t n = ckt_net_receive(connection, &found, sizeof found, 0);
		close(connection);
		if (n == sizeof found && !memcmp(found.magic, magic, sizeof magic) &&
			!memcmp(found.identity, identity, CKT_NCCL_ID_BYTES)) {
			memcpy(ret_id, found.id, CKT_NCCL_ID_BYTES);
			return true;
		}
		if (n == 1) /* CKT_GROUP_NOBODY */
			return false;
	}
	return false;
}

/* What rank 0 tells others from here on. */
static int announce(const uint8_t *identity, const ncclUniqueId *id)
{
	struct meeting *meeting = calloc(1, sizeof *meeting);
	if (!meeting)
		return -ENOMEM;
	meeting->name = name_of(identity);
	memcpy(meeting->answer.magic, magic, sizeof magic);
	memcpy(meeting->answer.identity, identity, CKT_NCCL_ID_BYTES);
	memcpy(meeting->answer.id, id, CKT_NCCL_ID_BYTES);
	free(take_out(&meeting->name));
	pthread_mutex_lock(&lock);
	meeting->next = meetings;
	meetings = meeting;
	pthread_mutex_unlock(&lock);
	return ckt_group_claim(&meeting->name, answer);
}

ncclResult_t ckt_worker_nccl_meet(
	const uint8_t *identity, int rank, int64_t deadline_ms, ncclUniqueId *ret_id)
{
	if (rank) {
		while (!look(identity, ret_id)) {
			if (ckt_net_now_ms() >= deadline_ms)
				return ncclRemoteError;
			nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		}
		return ncclSuccess;
	}
	ncclResult_t status =
		ckt_nccl.ncclGetUniqueId ? ckt_nccl.ncclGetUniqueId(ret_id) : ncclInvalidUsage;
	int error = status ? 0 : announce(identity, ret_id);
	if (error)
		ckt_warning("cannot tell the other ranks of a communicator its new ID: %s",
			strerror(-error));
	return error ? ncclSystemError : status;
}

void ckt_worker_nccl_met(const uint8_t *identity)
{
	const struct ckt_group_name name = name_of(identity);
	ckt_group_drop(&name);
	free(take_out(&name));
}
