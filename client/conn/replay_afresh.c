/* SPDX-License-Identifier: Apache-2.0 */
/* When a durable session begins again from nothing; see replay.h. */
#include "base/log.h"
#include "client/conn/replay.h"
#include "rpc/net.h"

enum {
	/* A restore that somebody has asked for comes first. */
	WAIT_MS = 1000,
	/* without progress in between: the program makes its worker crash */
	BEGINNINGS_MAX = 3,
};

void ckt_replay_absent(struct ckt_conn *conn)
{
	if (conn->replay)
		conn->replay->absent = true;
}

bool ckt_replay_asks_afresh(const struct ckt_conn *conn)
{
	return conn->replay && conn->replay->asks_afresh;
}

/* Whether it has begun so often that it does not any more; says so once. */
static bool is_too_often(struct ckt_conn *conn)
{
	struct ckt_replay *replay = conn->replay;
	pthread_mutex_lock(&conn->lock);
	uint64_t executed = conn->executed;
	pthread_mutex_unlock(&conn->lock);
	if (executed > replay->began_at)
		replay->beginnings = 0;
	replay->began_at = executed;
	if (replay->beginnings < BEGINNINGS_MAX)
		return false;
	ckt_log_user("session %s died %u times after command %llu, and does not begin again: the "
		     "program makes its worker crash",
		conn->session, replay->beginnings + 1, (unsigned long long)executed);
	replay->refused_afresh = true;
	return true;
}

bool ckt_replay_afresh_begin(struct ckt_conn *conn)
{
	struct ckt_replay *replay = conn->replay;
	int64_t now_ms = ckt_net_now_ms();
	bool absent = replay && replay->absent;
	if (!absent || replay->began || replay->refused_afresh || replay->stamps.shares ||
		!conn->copy) {
		if (replay)
			replay->absent_ms = 0;
		return false;
	}
	if (!replay->absent_ms)
		replay->absent_ms = now_ms;
	if (now_ms - replay->absent_ms < WAIT_MS || is_too_often(conn))
		return false;
	replay->absent = false;
	replay->asks_afresh = true;
	return true;
}

void ckt_replay_afresh_end(struct ckt_conn *conn, int result)
{
	struct ckt_replay *replay = conn->replay;
	replay->asks_afresh = false;
	/* The server is an older one, or somebody has ended the session. */
	replay->refused_afresh = result && replay->absent;
	if (result)
		return;
	replay->beginnings++;
	ckt_log_user("session %s: its worker died, and no image of it is there: it begins again "
		     "from its first command",
		conn->session);
}
