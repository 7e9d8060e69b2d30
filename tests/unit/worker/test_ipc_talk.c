/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/ipc/ipc_talk.h: what workers ask each other: nobody there, others there, questions
 * that are none.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/worker/ipc/ipc.h"
#include "server/worker/ipc/ipc_state.h"
#include "tests/unit/worker/inside.h"

static atomic_bool over;

static void *serve(void *unused)
{
	while (!atomic_load(&over)) {
		struct pollfd p = {.fd = ckt_ipc.fd, .events = POLLIN};
		if (poll(&p, 1, 20) == 1)
			ckt_ipc_serve(&ckt_worker);
	}
	return unused;
}

static void test_talk(void)
{
	if (ckt_ipc.fd < 0)
		MUST(ckt_ipc_listen() >= 0, true);
	struct ckt_ipc_question question =
		ckt_ipc_question(&ckt_worker, CKT_IPC_STILL, CKT_IPC_BLOCK, NULL);
	struct ckt_ipc_handle handle = {.kind = CKT_IPC_BLOCK};
	struct ckt_ipc_answer answer;
	pthread_t thread;
	int fd = 7;
	IS(memcmp(question.magic, CKT_IPC_TALK_MAGIC, 8), 0);
	IS(question.uid, ckt_worker.uid);
	IS(memcmp(question.socket, ckt_ipc.name, sizeof question.socket), 0);
	/* Nobody has that name. */
	static const char empty[CKT_IPC_SOCKET], nobodys[CKT_IPC_SOCKET] = "zzzzz";
	IS(ckt_ipc_ask(empty, &question, &answer, &fd), -ESRCH);
	IS(fd, -1);
	IS(ckt_ipc_ask(nobodys, &question, &answer, &fd), -ESRCH);
	/* The right socket, and another session's: its name went to somebody else. */
	memcpy(handle.socket, ckt_ipc.name, sizeof handle.socket);
	memcpy(handle.session, ckt_worker.session, sizeof handle.session);
	handle.session[0] ^= 1;
	atomic_store(&over, false);
	pthread_create(&thread, NULL, serve, NULL);
	IS(ckt_ipc_ask_session(&ckt_worker, &handle, &question, &answer, &fd), -ESRCH);
	handle.session[0] ^= 1;
	IS(ckt_ipc_ask_session(&ckt_worker, &handle, &question, &answer, &fd), 0);
	IS(answer.found, CKT_IPC_NONE);
	IS(answer.copy, ckt_worker.copy);
	IS(memcmp(answer.session, ckt_worker.session, sizeof answer.session), 0);
	/* What is restored is looked for by its notice alone. */
	question.restoring = true;
	IS(ckt_ipc_ask_session(&ckt_worker, &handle, &question, &answer, &fd), -ESRCH);
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	/* Questions of other forms, and for other users. */
	int pair[2];
	for (size_t size = 0; size < sizeof question; size += 9) {
		MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		IS(send(pair[0], &question, size, 0), size);
		NO(ckt_ipc_hear(&ckt_worker, pair[1], &question));
		close(pair[0]);
		close(pair[1]);
	}
	question = ckt_ipc_question(&ckt_worker, CKT_IPC_OPEN, 0, NULL);
	for (unsigned other = 0; other < 2; other++) {
		question.uid += other;
		MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		IS(send(pair[0], &question, sizeof question, 0), sizeof question);
		IS(ckt_ipc_hear(&ckt_worker, pair[1], &question), !other);
		close(pair[0]);
		close(pair[1]);
	}
}

UNIT_SUITE(ipc_talk, {"talk", test_talk})
