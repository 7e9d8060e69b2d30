/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/ipc/ipc_talk.h: what workers ask each other: nobody there, others there, several
 * that claim one id, questions that are none.
 */
#include <errno.h>
#include <string.h>

#include "server/worker/ipc/ipc_state.h"
#include "tests/unit/worker/group_kit.h"

static void test_talk(void)
{
	struct ckt_ipc_question question =
		ckt_ipc_question(&ckt_worker, CKT_IPC_STILL, CKT_IPC_BLOCK, NULL);
	struct ckt_ipc_answer answer;
	char session[CKT_IPC_SESSION];
	int fd = 7;
	IS(memcmp(question.magic, CKT_IPC_TALK_MAGIC, 8), 0);
	memcpy(session, ckt_worker.session, sizeof session);
	session[0] ^= 1;
	group_kit_begin();
	/* Nobody has that id. */
	atomic_store(&group_kit.asked, 0);
	IS(ckt_ipc_ask_session(session, &question, &answer, &fd), -ENOENT);
	IS(fd, -1);
	IS(atomic_load(&group_kit.asked), 1);
	session[0] ^= 1;
	IS(ckt_ipc_ask_session(session, &question, &answer, &fd), 0);
	IS(answer.found, CKT_IPC_NONE);
	IS(answer.copy, ckt_worker.copy);
	IS(memcmp(answer.session, session, sizeof answer.session), 0);
	/* All that have the id are asked until one has it, and each once. */
	IS(atomic_load(&group_kit.asked), 3);
	struct ckt_group_name again = ckt_group_session(session, sizeof session);
	unsigned claimed = atomic_load(&group_kit.claimed);
	IS(ckt_group_claim(&again, NULL), 0);
	while (atomic_load(&group_kit.claimed) == claimed)
		usleep(1000);
	atomic_store(&group_kit.asked, 0);
	IS(ckt_ipc_ask_session(session, &question, &answer, &fd), 0);
	IS(atomic_load(&group_kit.asked), 3);
	ckt_group_drop(&again);
	/* Another session's worker answers under a claimed id: that is no answer. */
	session[0] ^= 1;
	again = ckt_group_session(session, sizeof session);
	IS(ckt_group_claim(&again, NULL), 0);
	IS(ckt_ipc_ask_session(session, &question, &answer, &fd), -ESRCH);
	ckt_group_drop(&again);
	group_kit_end();
	IS(ckt_ipc_ask_session(session, &question, &answer, &fd), -ENOTCONN);
	/* Questions of other forms. */
	int pair[2];
	for (size_t size = 0; size <= sizeof question; size += 4) {
		MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		IS(send(pair[0], &question, size, 0), size);
		IS(ckt_ipc_hear(pair[1], &question), size == sizeof question);
		close(pair[0]);
		close(pair[1]);
	}
	question.magic[7] ^= 1;
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	IS(send(pair[0], &question, sizeof question, 0), sizeof question);
	NO(ckt_ipc_hear(pair[1], &question));
	close(pair[0]);
	close(pair[1]);
}

UNIT_SUITE(ipc_talk, {"talk", test_talk})
