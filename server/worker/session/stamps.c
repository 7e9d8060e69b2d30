/* SPDX-License-Identifier: Apache-2.0 */
/* Stamps of commands that run for the first time; see stamps.h. */
#include "server/worker/session/stamps.h"

#include <pthread.h>
#include <string.h>

#include "base/boot_id.h"
#include "base/clock.h"
#include "server/worker/session/executor.h"
#include "server/worker/worker.h"

/*
 * Stamps that can be told again: of more commands than the client's ring holds, which are all that it
 * may not know to be executed.
 */
enum { KEPT = 1 << 16 };

static struct {
	uint64_t clock;
	_Atomic bool kept;
	uint64_t list[KEPT]; /* by number; of (taken - KEPT, taken] */
	_Atomic uint64_t taken;
	uint64_t last;
	pthread_mutex_t lock; /* of what follows */
	uint64_t told;        /* the stamps up to this number are */
} stamps = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ckt_stamps_init(void)
{
	char boot[CKT_BOOT_ID_SIZE + 1];
	uint8_t hash[CKT_SECRET_HASH_SIZE];
	if (!ckt_boot_id(boot))
		return;
	/* With the end of its line, as earlier workers: the clocks of one boot are equal. */
	strcat(boot, "\n");
	ckt_blob_hash(boot, strlen(boot), hash);
	memcpy(&stamps.clock, hash, sizeof stamps.clock);
	stamps.clock |= CKT_STAMPS_NONE + 1;
}

uint64_t ckt_stamps_clock(void)
{
	return stamps.clock;
}

void ckt_stamps_look(const struct ckt_call_header *header)
{
	bool kept = header->flags & CKT_CALL_STAMPED;
	if (__builtin_expect(kept != atomic_load_explicit(&stamps.kept, memory_order_relaxed), 0))
		atomic_store(&stamps.kept, kept);
}

void ckt_stamps_hello(bool kept)
{
	atomic_store(&stamps.kept, kept);
}

bool ckt_stamps_kept(void)
{
	return atomic_load_explicit(&stamps.kept, memory_order_relaxed);
}

static uint64_t new_stamp(void)
{
	return (uint64_t)ckt_now_ns();
}

void ckt_stamps_begin(struct ckt_worker *worker, uint64_t seq)
{
	if (ckt_stamps_replaying() && ckt_stamps_pass(seq))
		return;
	if (seq <= worker->impose.last)
		return;
	uint64_t stamp = new_stamp(),
		 taken = atomic_load_explicit(&stamps.taken, memory_order_relaxed);
	if (stamp <= stamps.last)
		stamp = stamps.last + 1;
	stamps.last = stamp;
	stamps.list[seq % KEPT] = stamp;
	if (seq != taken + 1) {
		pthread_mutex_lock(&stamps.lock);
		stamps.told = seq - 1;
		pthread_mutex_unlock(&stamps.lock);
	}
	atomic_store_explicit(&stamps.taken, seq, memory_order_release);
}

/* Precondition: the lock.  False: that connection is gone. */
static bool tell(struct ckt_worker *worker, uint64_t epoch, uint64_t taken, uint32_t xid)
{
	uint64_t first = stamps.told + 1, count = taken >= first ? taken - first + 1 : 0;
	if (count > CKT_STAMPS_MAX)
		count = CKT_STAMPS_MAX;
	uint8_t *p = ckt_output_begin(&worker->output, epoch,
		CKT_CALL_HEADER_SIZE + CKT_STAMPS_FIXED + count * sizeof(uint64_t));
	if (!p)
		return false;
	p = ckt_call_header_put(p,
		&(struct ckt_call_header){
			.prog = CRICKET_CALLBACK_PROG, .vers = 1, .proc = CKT_CALLBACK_STAMPS});
	p = ckt_put_u32(ckt_put_u64(p, first), (uint32_t)count);
	for (uint64_t i = 0; i < count; i++)
		p = ckt_put_u64(p, stamps.list[(first + i) % KEPT]);
	/* After the last begin that the reply speaks of. */
	bool ends = xid && first + count > taken;
	p = ckt_put_u64(ckt_put_u32(p, ends ? xid : 0), ends ? new_stamp() : 0);
	ckt_put_u64(p, 0);
	ckt_output_end(&worker->output);
	stamps.told += count;
	return true;
}

void ckt_stamps_tell(struct ckt_worker *worker, uint64_t epoch, uint32_t xid)
{
	if (!ckt_stamps_kept())
		return;
	pthread_mutex_lock(&stamps.lock);
	uint64_t taken = atomic_load_explicit(&stamps.taken, memory_order_acquire);
	bool more = xid || taken > stamps.told;
	while (more && tell(worker, epoch, taken, xid))
		more = taken > stamps.told;
	pthread_mutex_unlock(&stamps.lock);
}

void ckt_stamps_connect(struct ckt_worker *worker, uint64_t acked)
{
	ckt_stamps_come();
	pthread_mutex_lock(&stamps.lock);
	uint64_t taken = atomic_load_explicit(&stamps.taken, memory_order_relaxed);
	if (acked < stamps.told)
		stamps.told = taken > KEPT && acked < taken - KEPT ? taken - KEPT : acked;
	pthread_mutex_unlock(&stamps.lock);
	ckt_stamps_tell(worker, worker->client_epoch, 0);
}
