/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/durable/group_cut.c and group_return.c: images of one moment, what stands in their way,
 * and which programs come back to them.  tests/server/test_group_return.py has them with real workers.
 */
#include "server/daemon/durable/group_cut.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/group_return.h"
#include "server/daemon/durable/replica.h"

#define FIRST "0000000000c1"
#define SECOND "0000000000c2"

static struct ckt_session *first, *second;

static struct ckt_session *member(const char *id)
{
	struct ckt_session *session = session_new(id);
	session->child = true;
	ckt_auth_hash(
		hello_args(CKT_HELLO_RESUME, "").secret, CKT_SECRET_SIZE, session->secret_hash);
	ckt_automatic_begin(session);
	CU_ASSERT_PTR_NOT_NULL_FATAL(session->chain);
	return session;
}

static void begin(void)
{
	static char dir[128];
	char message[256] = "";
	snprintf(dir, sizeof dir, "%s", path_in("group-images"));
	server.options.auto_checkpoint = (char *)"1h";
	server.options.auto_dir = dir;
	server.options.claim_timeout = 60;
	MUST(ckt_automatic_init(&server, message, sizeof message), 0);
	first = member(FIRST);
	second = member(SECOND);
	worker.drained = true;
	ckt_group_connect(first, second);
	ckt_automatic_share(first);
	ckt_automatic_share(second);
}

static void leave(struct ckt_session *session)
{
	session->cut_off = true;
	ckt_automatic_end(session, true);
	session_drop(session);
}

static void end(void)
{
	ckt_automatic_fini(&server);
	server.options.auto_checkpoint = server.options.auto_dir = NULL;
	worker.drained = false;
}

static bool is_idle(void *data)
{
	(void)data;
	return !first->chain->busy && !first->chain->cut && !second->chain->cut;
}

/* A cut, as the first one's time comes; the images that were written by it. */
static unsigned take(void)
{
	unsigned before = worker.calls[CKT_WORKER_SAVE2];
	ckt_automatic_tick(&first->chain->timer);
	YES(run_until(is_idle, NULL));
	return worker.calls[CKT_WORKER_SAVE2] - before;
}

static void test_cut(void)
{
	begin();
	IS(take(), 2);
	const struct ckt_chain_state *state = &first->chain->state;
	YES(ckt_chain_same_cut(state, &second->chain->state));
	IS(state->member_count, 2);
	TEXT(state->members[0], FIRST);
	NO(state->shared);
	YES(ckt_group_is_covered(first->chain) && ckt_group_is_covered(second->chain));
	IS(worker.calls[CKT_WORKER_CUT], 2);
	IS(worker.calls[CKT_WORKER_DURABLE], 2);
	/* Nothing was executed since. */
	IS(take(), 0);
	/* What is not drained is let go, and says what of its work is left. */
	first->chain->state.executed = 7;
	worker.drained = false;
	worker.message = "a kernel runs";
	IS(take(), 0);
	HAS(first->chain->problem, "had work left while its group stood still: a kernel runs");
	TEXT(second->chain->problem, first->chain->problem);
	worker.drained = true;
	IS(worker.steps, 0);
	/* Ranks of communicators get steps, for one may wait for another. */
	struct ckt_group_name rank = {CKT_GROUP_RANK};
	worker.drained = false;
	second->group.claims = &rank;
	second->group.claim_count = 1;
	ckt_automatic_tick(&first->chain->timer);
	run_for(200);
	YES(worker.steps > 0);
	worker.drained = true;
	worker.commands = 0;
	YES(run_until(is_idle, NULL));
	TEXT(first->chain->problem, "");
	second->group.claims = NULL;
	second->group.claim_count = 0;
	/* Neither is one whose worker goes on by itself. */
	first->chain->state.executed = 7;
	worker.not_held = true;
	worker.message = NULL;
	IS(take(), 0);
	HAS(first->chain->problem, "cannot be held: it goes on by itself");
	worker.not_held = false;
	/* A worker of an older version. */
	worker.status = -EOPNOTSUPP;
	IS(take(), 0);
	worker.status = 0;
	/* Who is held by another connection is left alone, without a word. */
	first->chain->problem[0] = second->chain->problem[0] = 0;
	second->sleep.falls = false;
	second->chain->committing = true;
	IS(take(), 0);
	TEXT(first->chain->problem, "");
	second->chain->committing = false;
	/* No images of the other one. */
	struct ckt_automatic_chain *chain = second->chain;
	second->chain = NULL;
	ckt_automatic_tick(&first->chain->timer);
	run_for(20);
	second->chain = chain;
	HAS(first->chain->problem, "the client of session " SECOND " does not ask for images");
	IS(take(), 2);
	TEXT(first->chain->problem, "");
	/* The worker of one dies while images are written: none counts. */
	uint8_t cut[CKT_CHAIN_CUT];
	memcpy(cut, state->cut, sizeof cut);
	first->chain->state.executed = 7;
	worker.silent_on = CKT_WORKER_SAVE2;
	ckt_automatic_tick(&first->chain->timer);
	run_for(50);
	YES(first->chain->cut && first->chain->cut == second->chain->cut);
	YES(ckt_group_cut_has(FIRST) && ckt_group_cut_has(SECOND));
	leave(second);
	YES(first->chain->cut != NULL);
	worker.silent_on = 0;
	leave(first);
	NO(ckt_group_cut_has(FIRST));
	YES(ckt_automatic_left(FIRST) && ckt_automatic_left(SECOND));
	IS(memcmp(ckt_automatic_left(SECOND)->state.cut, cut, sizeof cut), 0);
	end();
}

/* A peer with that hello. */
static int ask(const char *id, uint64_t acked, char ret_message[CKT_MESSAGE_MAX])
{
	struct ckt_peer *peer = calloc(1, sizeof *peer);
	struct ckt_chain_state state;
	int fd = ckt_chain_open(server.automatic->dir_fd, id, false);
	*ret_message = 0;
	peer->server = &server;
	peer->hello.acked = acked;
	MUST(ckt_chain_read(fd, id, &state), 0);
	int result = ckt_group_return(peer, &state, ret_message);
	close(fd);
	free(peer);
	return result;
}

static void test_return(void)
{
	char message[CKT_MESSAGE_MAX];
	begin();
	IS(take(), 2);
	uint64_t executed = first->chain->state.executed;
	/* The other one lives and has done nothing since: its worker is ended. */
	leave(first);
	IS(ask(FIRST, executed, message), -EAGAIN);
	HAS(message, "whose workers have not ended");
	run_for(20);
	IS(second->phase, CKT_SESSION_ENDING);
	leave(second);
	IS(ask(FIRST, executed, message), -EAGAIN);
	HAS(message, "together with session " SECOND ", whose client has not come");
	/* Whoever holds the lock of one may run it. */
	int fd = ckt_chain_open(server.automatic->dir_fd, FIRST, false);
	int lock = ckt_chain_lock(fd, false);
	IS(ask(SECOND, executed, message), -EAGAIN);
	HAS(message, "session " FIRST ", which still has a worker");
	close(lock);
	IS(ask(SECOND, executed, message), 0);
	IS(ask(FIRST, executed, message), 0);
	/* One dies again: what was agreed on is over. */
	ckt_group_return_over(SECOND);
	IS(ask(SECOND, executed, message), -EAGAIN);
	IS(ask(FIRST, executed + 1, message), -EBADMSG);
	HAS(message, "the program of session " FIRST " has seen command");
	IS(ask(SECOND, executed, message), -EBADMSG);
	HAS(message, "the program of session " FIRST " has seen command");
	ckt_group_return_fini();
	/* Also where one that has seen no more came before. */
	IS(ask(FIRST, executed, message), -EAGAIN);
	IS(ask(SECOND, executed + 1, message), -EBADMSG);
	HAS(message, "the program of session " SECOND " has seen command");
	ckt_group_return_fini();
	struct ckt_chain_state state;
	int other = ckt_chain_open(server.automatic->dir_fd, SECOND, false);
	/* Nobody starts while one of them may run at the server whose replica it is. */
	ckt_replica_keep_init();
	int replica = openat(other, "replica", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	IS(write(replica, "3600000\n", 8), 8);
	close(replica);
	IS(ask(FIRST, executed, message), -EBUSY);
	HAS(message, "session " SECOND " is a replica, and its server may still run it");
	IS(ask(SECOND, executed, message), -EBUSY);
	unlinkat(other, "replica", 0);
	IS(ask(FIRST, executed, message), 0);
	ckt_group_return_fini();
	/* What another says of the group. */
	MUST(ckt_chain_read(other, SECOND, &state), 0);
	struct ckt_chain_state changed = state;
	changed.shared = true;
	MUST(ckt_chain_write(other, &changed), 0);
	IS(ask(FIRST, executed, message), -EBADMSG);
	HAS(message, "it shared with another session after that");
	IS(ask(SECOND, executed, message), -EBADMSG);
	HAS(message, "no images of all of them are there");
	changed = state;
	changed.cut[0] ^= 1;
	MUST(ckt_chain_write(other, &changed), 0);
	IS(ask(FIRST, executed, message), -EBADMSG);
	HAS(message, "its images are of another moment");
	/* Unless its next state is of the cut, as where a server died. */
	MUST(ckt_chain_next_write(other, &state), 0);
	ckt_group_settle(&server, fd, FIRST);
	IS(ckt_chain_next_read(other, SECOND, &changed), -ENOENT);
	IS(ask(FIRST, executed, message), -EAGAIN);
	/* One next state alone is none. */
	changed = state;
	changed.cut[0] ^= 1;
	MUST(ckt_chain_next_write(other, &changed), 0);
	ckt_group_settle(&server, other, SECOND);
	MUST(ckt_chain_read(other, SECOND, &changed), 0);
	YES(ckt_chain_same_cut(&changed, &state));
	ckt_chain_remove(server.automatic->dir_fd, other, SECOND);
	IS(ask(FIRST, executed, message), -EBADMSG);
	HAS(message, "it has ended, or its client did not come back in time");
	close(other);
	ckt_chain_remove(server.automatic->dir_fd, fd, FIRST);
	close(fd);
	end();
}

UNIT_SUITE(group_cut, {"cut", test_cut}, {"return", test_return})
