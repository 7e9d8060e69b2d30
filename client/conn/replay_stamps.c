/* SPDX-License-Identifier: Apache-2.0 */
/* Stamps of a durable session's commands; see replay_stamps.h. */
#include "client/conn/replay_stamps.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "rpc/net.h"

enum {
	/* Commands that a worker can have executed before a reply says so: what the ring holds. */
	LIST_MAX = 1 << 17,
	/* A replay may take that many times as long as the program took. */
	SLOWER = 4,
	PATIENCE_MAX_MS = 86400 * 1000,
};

void ckt_replay_stamps_fini(struct ckt_replay_stamps *stamps)
{
	free(stamps->list);
	*stamps = (struct ckt_replay_stamps){0};
}

/* Behind the last one, or in the place of those that an earlier worker told. */
static bool add(struct ckt_replay_stamps *stamps, uint64_t seq, uint64_t stamp)
{
	if (!stamps->count || seq < stamps->first || seq > stamps->first + stamps->count) {
		stamps->first = seq;
		stamps->count = 0;
	}
	stamps->count = seq - stamps->first;
	if (stamps->count >= LIST_MAX || CKT_GROW(stamps->list, stamps->count, stamps->room, 64))
		return false;
	stamps->list[stamps->count++] = stamp;
	return true;
}

bool ckt_replay_stamps_take(struct ckt_replay_stamps *stamps, struct ckt_replay_log *log,
	uint64_t kept, const ckt_stamps_args *args)
{
	uint64_t seq = args->first;
	size_t at = ckt_replay_log_behind(log, seq - 1);
	if (args->late) {
		stamps->late = args->late;
		return true;
	}
	if (!seq || seq + args->begins.begins_len < seq)
		return false;
	for (u_int i = 0; i < args->begins.begins_len; i++, seq++) {
		while (at < log->command_count && log->commands[at].seq < seq)
			at++;
		if (at < log->command_count && log->commands[at].seq == seq)
			log->commands[at].stamp = args->begins.begins_val[i];
		else if (seq > kept && !add(stamps, seq, args->begins.begins_val[i]))
			return false;
	}
	stamps->end_xid = args->xid;
	stamps->end = args->end;
	stamps->told_ms = ckt_net_now_ms();
	return true;
}

uint64_t ckt_replay_stamps_of(struct ckt_replay_stamps *stamps, uint64_t seq)
{
	if (seq < stamps->first || seq - stamps->first >= stamps->count)
		return 0;
	size_t at = seq - stamps->first;
	uint64_t stamp = stamps->list[at];
	/* The others follow, in order: what lies before is of no more use. */
	if (at + 1 == stamps->count)
		stamps->count = 0;
	else if (at >= 1024) {
		stamps->count -= at + 1;
		stamps->first = seq + 1;
		memmove(stamps->list, stamps->list + at + 1, stamps->count * sizeof *stamps->list);
	}
	return stamp;
}

uint64_t ckt_replay_stamps_end(struct ckt_replay_stamps *stamps, uint32_t xid)
{
	return stamps->end_xid == xid ? stamps->end : 0;
}

void ckt_replay_stamps_cut(
	struct ckt_replay_stamps *stamps, const struct ckt_replay_log *log, uint64_t executed)
{
	for (size_t at = ckt_replay_log_behind(log, executed); at-- > 0;)
		if (log->commands[at].stamp) {
			stamps->cut = log->commands[at].stamp;
			return;
		}
}

void ckt_replay_stamps_attach(struct ckt_replay_stamps *stamps, uint64_t clock, uint64_t executed)
{
	if (clock == stamps->clock)
		return;
	stamps->clock = clock;
	stamps->since = executed;
}

uint64_t ckt_replay_stamps_told(const struct ckt_replay_stamps *stamps, uint64_t began)
{
	return stamps->clock > CKT_STAMPS_NONE && began >= stamps->since ? stamps->clock
									 : CKT_STAMPS_NONE;
}

static unsigned bounded(int64_t ms)
{
	return ms < 1 ? 1 : ms > PATIENCE_MAX_MS ? PATIENCE_MAX_MS : (unsigned)ms;
}

bool ckt_replay_stamps_place(struct ckt_replay_stamps *stamps,
	const struct ckt_log_command *command, const struct ckt_log_reply *reply,
	int64_t patience_ms, ckt_stamp_args *ret)
{
	*ret = (ckt_stamp_args){
		.seq = command->seq, .xid = command->xid, .end = reply ? reply->end : 0};
	if (!command->seq)
		return ret->end != 0;
	if (command->stamp <= stamps->before || (ret->end && ret->end <= command->stamp))
		return false;
	/* The others did in that time what comes before this one. */
	uint64_t since = stamps->before ? stamps->before : stamps->cut;
	uint64_t took_ns = since ? command->stamp - since : 0;
	ret->begin = command->stamp;
	ret->patience_ms = bounded(took_ns / 1000000 > PATIENCE_MAX_MS
			? PATIENCE_MAX_MS
			: patience_ms + (int64_t)(SLOWER * (took_ns / 1000000)));
	stamps->before = command->stamp;
	return true;
}

unsigned ckt_replay_stamps_patience(
	const struct ckt_replay_stamps *stamps, int64_t patience_ms, int64_t now_ms)
{
	int64_t took_ms = stamps->told_ms ? now_ms - stamps->told_ms : 0;
	return bounded(patience_ms + SLOWER * took_ms);
}
