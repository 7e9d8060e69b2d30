/* SPDX-License-Identifier: Apache-2.0 */
/* The replay of a group's member, each command in its place; see stamps.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/log.h"
#include "rpc/net.h"
#include "rpc/record.h"
#include "checkpoint/session.h"
#include "rpc/stamps.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/session/executor.h"
#include "server/worker/session/stamps.h"
#include "server/worker/worker.h"

/* A client has as many waited calls open as threads. */
enum { OPEN_MAX = 1 << 16 };

/* A call of the replay that its program had been told of, and that is not answered yet. */
struct open_end {
	uint32_t xid;
	uint64_t end;
};

bool ckt_stamps_waits;

static struct {
	pthread_mutex_t lock; /* of the ends and of our slot */
	struct ckt_stamps_page *page;
	unsigned slot, count;
	/*
	 * False: communicators alone tie it to others.  Then the library's order is enough, and nobody
	 * waits: a sum that one program was told of may need commands of another that nobody was told of,
	 * which run behind the replay.
	 */
	bool ordered;
	_Atomic bool replaying;
	struct open_end *ends;
	size_t end_count, end_room;
	bool done;
	/* The executor's, and under the lock where others read: */
	uint64_t passed; /* stamp of the last command that began */
	uint64_t next;   /* of the next one; 0: not known */
	uint64_t seq;    /* its number */
	unsigned patience_ms;
	int64_t deadline_ms; /* 0: nothing has waited yet */
	bool late;
	struct ckt_wcall *end_call; /* STAMPS_END; NULL: it has not come */
} replay = {.lock = PTHREAD_MUTEX_INITIALIZER};

int ckt_stamps_join(int fd, unsigned slot, unsigned count)
{
	char text[CKT_MESSAGE_MAX];
	struct stat status;
	void *place = MAP_FAILED;
	int result = fstat(fd, &status) ? -errno : 0;
	if (!result &&
		(!S_ISREG(status.st_mode) || status.st_size != CKT_STAMPS_PAGE_SIZE ||
			count > CKT_STAMPS_SLOTS || slot >= count || replay.page))
		result = -EINVAL;
	if (!result)
		place = mmap(NULL, CKT_STAMPS_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!result && place == MAP_FAILED)
		result = -errno;
	close(fd);
	if (result)
		return result;
	replay.page = place;
	replay.slot = slot;
	replay.count = count;
	replay.ordered = ckt_ipc_shares() || !ckt_session_operations.has_peers(text, sizeof text);
	if (!replay.ordered)
		__atomic_store_n(&replay.page->slots[slot].next, CKT_STAMPS_DONE, __ATOMIC_RELEASE);
	atomic_store(&replay.replaying, true);
	return 0;
}

bool ckt_stamps_replaying(void)
{
	return atomic_load_explicit(&replay.replaying, memory_order_relaxed);
}

/* Precondition: the lock.  What has not begun or ended here is not before that. */
static void publish(void)
{
	uint64_t next = replay.next ? replay.next : replay.passed + 1;
	if (replay.done || !replay.ordered)
		next = CKT_STAMPS_DONE;
	for (size_t i = 0; i < replay.end_count && replay.ordered; i++)
		if (replay.ends[i].end - 1 < next)
			next = replay.ends[i].end - 1;
	__atomic_store_n(&replay.page->slots[replay.slot].next, next, __ATOMIC_RELEASE);
}

static bool reached(uint64_t stamp)
{
	for (unsigned i = 0; i < replay.count && replay.ordered; i++)
		if (i != replay.slot &&
			__atomic_load_n(&replay.page->slots[i].next, __ATOMIC_ACQUIRE) < stamp)
			return false;
	return true;
}

/* Precondition: the lock. */
static void drop_end(uint32_t xid)
{
	for (size_t i = 0; i < replay.end_count; i++)
		if (replay.ends[i].xid == xid)
			replay.ends[i--] = replay.ends[--replay.end_count];
}

void ckt_stamps_come(void)
{
	ckt_wcall_free(replay.end_call);
	replay.end_call = NULL;
	pthread_mutex_lock(&replay.lock);
	replay.next = replay.seq = 0;
	replay.done = false;
	pthread_mutex_unlock(&replay.lock);
	replay.deadline_ms = 0;
	replay.late = ckt_stamps_waits = false;
}

bool ckt_stamps_take(struct ckt_worker *worker, const ckt_stamp_args *args)
{
	uint64_t next = atomic_load(&worker->replies.executed) + 1;
	bool good = ckt_stamps_replaying() && !replay.done &&
		(args->seq ? !replay.next && args->seq == next && next <= worker->impose.last &&
					args->begin > replay.passed && args->begin < CKT_STAMPS_DONE
			   : args->end != 0) &&
		(!args->end || args->end > args->begin) && replay.end_count < OPEN_MAX;
	if (!good) {
		ckt_warning("call number %llu of a replay cannot have its place behind %llu: "
			    "number %llu is next, up to %llu",
			(unsigned long long)args->seq, (unsigned long long)replay.passed,
			(unsigned long long)next, (unsigned long long)worker->impose.last);
		return false;
	}
	pthread_mutex_lock(&replay.lock);
	drop_end(args->xid);
	good = !args->end || !CKT_GROW(replay.ends, replay.end_count, replay.end_room, 16);
	if (good && args->end)
		replay.ends[replay.end_count++] =
			(struct open_end){.xid = args->xid, .end = args->end};
	if (args->seq) {
		replay.next = args->begin;
		replay.seq = args->seq;
		replay.patience_ms = args->patience_ms;
		replay.deadline_ms = 0;
	}
	publish();
	pthread_mutex_unlock(&replay.lock);
	return good;
}

bool ckt_stamps_pass(uint64_t seq)
{
	if (replay.seq != seq)
		return false;
	pthread_mutex_lock(&replay.lock);
	replay.passed = replay.next;
	replay.next = replay.seq = 0;
	publish();
	pthread_mutex_unlock(&replay.lock);
	ckt_stamps_waits = false;
	return true;
}

void ckt_stamps_answered(uint32_t xid, CUresult result)
{
	if (__builtin_expect(!ckt_stamps_replaying(), 1) || result == CUDA_ERROR_NOT_READY)
		return;
	pthread_mutex_lock(&replay.lock);
	drop_end(xid);
	publish();
	pthread_mutex_unlock(&replay.lock);
}

bool ckt_stamps_end(struct ckt_wcall *call, unsigned patience_ms)
{
	if (!ckt_stamps_replaying() || replay.end_call)
		return false;
	pthread_mutex_lock(&replay.lock);
	replay.end_count = 0;
	replay.done = true;
	publish();
	pthread_mutex_unlock(&replay.lock);
	replay.end_call = call;
	replay.patience_ms = patience_ms;
	replay.deadline_ms = 0;
	replay.late = false;
	return true;
}

/* ---- Waiting */

/* The number of the next command in the input; 0: it has none, or is not there yet. */
static uint64_t next_number(const struct ckt_worker *worker)
{
	size_t have = worker->input.tail - worker->input.head, size;
	const uint8_t *p = worker->input.data + worker->input.head;
	struct ckt_call_header header;
	if (have < CKT_MARK_SIZE || ckt_mark_get(p, CKT_RECORD_MAX, &size) ||
		size < CKT_CALL_HEADER_SIZE || have < CKT_MARK_SIZE + size)
		return 0;
	struct ckt_cursor cursor = {p + CKT_MARK_SIZE, p + CKT_MARK_SIZE + size};
	return ckt_call_header_get(&cursor, &header) ? header.seq : 0;
}

/* Whether what waits has waited for too long. */
static bool is_late(void)
{
	int64_t now_ms = ckt_net_now_ms();
	if (!replay.deadline_ms)
		replay.deadline_ms = now_ms + replay.patience_ms;
	return now_ms >= replay.deadline_ms;
}

static void tell_late(struct ckt_worker *worker)
{
	uint8_t *p = ckt_output_begin(
		&worker->output, worker->client_epoch, CKT_CALL_HEADER_SIZE + CKT_STAMPS_FIXED);
	replay.late = true;
	ckt_warning(
		"call number %llu of the replay cannot have its place: other members of the group are not so far",
		(unsigned long long)replay.seq);
	if (!p)
		return;
	p = ckt_call_header_put(p,
		&(struct ckt_call_header){
			.prog = CRICKET_CALLBACK_PROG, .vers = 1, .proc = CKT_CALLBACK_STAMPS});
	p = ckt_put_u32(ckt_put_u64(p, 0), 0);
	p = ckt_put_u64(ckt_put_u32(p, 0), 0);
	ckt_put_u64(p, replay.seq);
	ckt_output_end(&worker->output);
}

/* All are done, or it took too long. */
static void finish(struct ckt_worker *worker, int status)
{
	struct ckt_wcall *call = replay.end_call;
	ckt_stamps_end_res res = {.status = status};
	replay.end_call = NULL;
	if (!status) {
		atomic_store(&replay.replaying, false);
		ckt_info("the group has replayed all");
	}
	ckt_executor_answer(worker, call, (xdrproc_t)xdr_ckt_stamps_end_res, &res);
	ckt_wcall_free(call);
}

bool ckt_stamps_stops(struct ckt_worker *worker)
{
	bool ends = replay.end_call, waits = ends;
	ckt_stamps_waits = false;
	if (!ends && replay.seq)
		waits = next_number(worker) == replay.seq;
	if (!waits)
		return false;
	bool good = reached(ends ? CKT_STAMPS_DONE : replay.next);
	if (ends && (good || is_late()))
		finish(worker, good ? 0 : -ETIMEDOUT);
	else if (!ends && !good && !replay.late && is_late())
		tell_late(worker);
	if (good || (ends && !replay.end_call))
		return false;
	ckt_stamps_waits = true;
	return true;
}
