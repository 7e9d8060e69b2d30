/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the communicators with ranks in other sessions; see nccl_members.h. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "server/worker/libs/nccl/nccl.h"

enum { NAMED_MAX = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ckt_nccl_comm *first;

void ckt_worker_nccl_peers_add(struct ckt_nccl_comm *comm)
{
	pthread_mutex_lock(&lock);
	comm->known = true;
	comm->next_known = first;
	first = comm;
	pthread_mutex_unlock(&lock);
	ckt_worker_nccl_together_add(comm);
}

void ckt_worker_nccl_peers_remove(struct ckt_nccl_comm *comm)
{
	if (comm->known)
		ckt_worker_nccl_together_remove(comm);
	pthread_mutex_lock(&lock);
	for (struct ckt_nccl_comm **link = &first; comm->known && *link;
		link = &(*link)->next_known)
		if (*link == comm) {
			*link = comm->next_known;
			comm->known = false;
			break;
		}
	pthread_mutex_unlock(&lock);
}

/* Precondition: locked. */
static bool is_here(const struct ckt_nccl_comm *like, int rank)
{
	for (const struct ckt_nccl_comm *comm = first; comm; comm = comm->next_known)
		if (comm->rank == rank &&
			!memcmp(comm->identity, like->identity, CKT_NCCL_ID_BYTES))
			return true;
	return false;
}

bool ckt_worker_nccl_peer(size_t nth, struct ckt_nccl_peer *ret_peer)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (const struct ckt_nccl_comm *comm = first; comm && !found; comm = comm->next_known)
		for (int rank = 0; rank < comm->ranks && !found; rank++) {
			found = !is_here(comm, rank) && nth-- == 0;
			if (!found)
				continue;
			ret_peer->rank = (uint32_t)rank;
			memcpy(ret_peer->identity, comm->identity, CKT_NCCL_ID_BYTES);
		}
	pthread_mutex_unlock(&lock);
	return found;
}

bool ckt_worker_nccl_is_first(void)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (const struct ckt_nccl_comm *comm = first; comm && !found; comm = comm->next_known)
		found = comm->rank == 0 && comm->ranks > 1;
	pthread_mutex_unlock(&lock);
	return found;
}

void ckt_worker_nccl_peers_close(struct ckt_nccl_comm *comm, bool closed, bool freed)
{
	pthread_mutex_lock(&lock);
	comm->closed |= closed;
	comm->freed |= freed;
	pthread_mutex_unlock(&lock);
}

/* Precondition: locked, so that the library does not free it meanwhile. */
static bool has_failed(const struct ckt_nccl_comm *comm)
{
	ncclResult_t error = ncclSuccess;
	ncclComm_t real = comm->freed || comm->closed ? NULL : comm->real;
	if (comm->ranks < 2 || !real || comm->failure_told)
		return false;
	if (!comm->failed && ckt_nccl.ncclCommGetAsyncError &&
		ckt_nccl.ncclCommGetAsyncError(real, &error))
		return false;
	return comm->failed || (error && error != ncclInProgress);
}

bool ckt_worker_nccl_has_failed(bool told)
{
	bool failed = false;
	pthread_mutex_lock(&lock);
	for (struct ckt_nccl_comm *comm = first; comm; comm = comm->next_known)
		if (has_failed(comm)) {
			failed = true;
			comm->failure_told = told;
		}
	pthread_mutex_unlock(&lock);
	return failed;
}

/* Writes "rank 1" or "ranks 1, 2 and 5 others" and returns their number.  Precondition: locked. */
static int name_ranks(const struct ckt_nccl_comm *comm, bool here, char *text, size_t size)
{
	int count = 0;
	size_t used = 0;
	char list[16 * NAMED_MAX] = "";
	for (int rank = 0; rank < comm->ranks; rank++) {
		if (is_here(comm, rank) != here)
			continue;
		if (count++ < NAMED_MAX)
			used += (size_t)snprintf(
				list + used, sizeof list - used, "%s%d", used ? ", " : "", rank);
	}
	if (count > NAMED_MAX)
		snprintf(text, size, "ranks %s and %d others", list, count - NAMED_MAX);
	else
		snprintf(text, size, "rank%s %s", count == 1 ? "" : "s", list);
	return count;
}

bool ckt_worker_nccl_has_peers(char *ret_text, size_t text_size)
{
	char here[192], elsewhere[192];
	bool found = false;
	pthread_mutex_lock(&lock);
	for (const struct ckt_nccl_comm *comm = first; comm && !found; comm = comm->next_known) {
		found = name_ranks(comm, false, elsewhere, sizeof elsewhere) > 0;
		if (!found)
			continue;
		name_ranks(comm, true, here, sizeof here);
		snprintf(ret_text, text_size,
			"the session is %s of an NCCL communicator with %d ranks, and "
			"other sessions are %s",
			here, comm->ranks, elsewhere);
	}
	pthread_mutex_unlock(&lock);
	return found;
}
