/* SPDX-License-Identifier: Apache-2.0 */
/* client/conn/replay_log.c: order, bounds, the file, and what a cut drops. */
#include "client/conn/replay_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

static int add(struct ckt_replay_log *log, uint64_t seq, uint32_t xid, uint32_t size)
{
	uint8_t *record = malloc(size);
	memset(record, (int)(seq ? seq : xid), size);
	int result = ckt_replay_log_command(log, record,
		&(struct ckt_log_command){.seq = seq, .xid = xid, .size = size, .proc = 7});
	free(record);
	return result;
}

static int answer(struct ckt_replay_log *log, uint64_t seq, uint32_t xid, uint64_t before)
{
	return ckt_replay_log_reply(
		log, &(struct ckt_log_reply){.seq = seq, .xid = xid, .before = before});
}

/* Whether the command's bytes are those that it was added with. */
static bool same(struct ckt_replay_log *log, size_t index)
{
	const struct ckt_log_command *c = &log->commands[index];
	uint8_t *record = malloc(c->size);
	bool good = ckt_replay_log_read(log, c, record) == 0;
	for (uint32_t i = 0; i < c->size && good; i++)
		good = record[i] == (uint8_t)(c->seq ? c->seq : c->xid);
	free(record);
	return good;
}

static void test_order(void)
{
	struct ckt_replay_log log;
	ckt_replay_log_init(&log, 64 << 20, "/tmp");
	IS(ckt_replay_log_behind(&log, 0), 0);
	MUST(add(&log, 11, 1, 100), 0);
	MUST(add(&log, 0, 2, 80), 0);
	MUST(add(&log, 12, 3, 100), 0);
	MUST(add(&log, 0, 4, 80), 0);
	MUST(add(&log, 0, 5, 80), 0);
	MUST(add(&log, 13, 6, 100), 0);
	IS(ckt_replay_log_behind(&log, 10), 0);
	IS(ckt_replay_log_behind(&log, 11), 1);
	IS(ckt_replay_log_behind(&log, 12), 3);
	IS(ckt_replay_log_behind(&log, 13), 6);
	IS(ckt_replay_log_behind(&log, 99), 6);
	/* Replies find their commands: by number, and waits by xid. */
	MUST(answer(&log, 12, 3, 13), 0);
	MUST(answer(&log, 0, 5, 13), 0);
	MUST(answer(&log, 10, 99, 14), 0);
	IS(log.commands[2].reply, 1);
	IS(log.commands[4].reply, 2);
	IS(log.commands[0].reply, 0);
	IS(log.commands[3].reply, 0);
	ckt_replay_log_cut(&log, 12);
	IS(log.command_count, 3);
	IS(log.commands[2].seq, 13);
	YES(same(&log, 2));
	/* The replies of what is gone are gone; numbers of replies stay. */
	IS(log.replies_gone, 3);
	MUST(answer(&log, 13, 6, 14), 0);
	IS(log.commands[2].reply, 4);
	ckt_replay_log_cut(&log, 13);
	IS(log.command_count, 0);
	IS(log.reply_count, 0);
	/* Nothing to cut. */
	ckt_replay_log_cut(&log, 99);
	ckt_replay_log_fini(&log);
}

static void test_file(void)
{
	struct ckt_replay_log log;
	enum { RECORD = 1 << 20, COUNT_ = 24 };
	/* One piece fits into the memory, all others are in the file. */
	ckt_replay_log_init(&log, CKT_LOG_PIECE + (64 << 10), "/tmp");
	for (unsigned i = 1; i <= COUNT_; i++)
		MUST(add(&log, i, i, RECORD), 0);
	YES(log.fd >= 0);
	YES(log.memory <= log.limit);
	for (unsigned i = 0; i < COUNT_; i++)
		YES(same(&log, i));
	ckt_replay_log_cut(&log, 10);
	IS(log.command_count, 14);
	YES(log.first_piece > 0);
	/* The piece in memory is free again: the next one takes its place. */
	for (unsigned i = COUNT_ + 1; i <= COUNT_ + 8; i++)
		MUST(add(&log, i, i, RECORD), 0);
	for (unsigned i = 0; i < log.command_count; i++)
		YES(same(&log, i));
	YES(log.memory > CKT_LOG_PIECE);
	/* Larger than any record is. */
	struct ckt_log_command c = {.size = CKT_LOG_PIECE + 1};
	uint8_t byte = 0;
	IS(ckt_replay_log_command(&log, &byte, &c), -EMSGSIZE);
	/* Of no piece. */
	c = (struct ckt_log_command){.size = 1, .position = (uint64_t)CKT_LOG_PIECE * 1000};
	IS(ckt_replay_log_read(&log, &c, &byte), -EINVAL);
	ckt_replay_log_fini(&log);
}

static void test_full(void)
{
	struct ckt_replay_log log;
	/* No directory for the file, and no room in memory. */
	ckt_replay_log_init(&log, 64 << 10, "/nonexistent");
	IS(add(&log, 1, 1, 100), -ENOENT);
	IS(log.command_count, 0);
	ckt_replay_log_fini(&log);
	/* The lists do not fit either. */
	ckt_replay_log_init(&log, 100, "/tmp");
	IS(add(&log, 1, 1, 100), -ENOSPC);
	IS(answer(&log, 1, 1, 2), -ENOSPC);
	ckt_replay_log_fini(&log);
}

UNIT_SUITE(replay_log, {"order", test_order}, {"file", test_file}, {"full", test_full})
