/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker that enters its cage, makes a call twice that the cage refuses, and ends: for what the
 * server's log says about it.  Exit status 0 where both got EPERM.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rpc/worker_descriptors.h"
#include "server/worker/cage/cage.h"

int main(int argc, char **argv)
{
	char message[256];
	/* The process that compiles for workers: it ends with its server. */
	if (argc == 2 && strcmp(argv[1], "--compiler") == 0) {
		while (recv(CKT_WORKER_CONTROL_FD, message, sizeof message, 0) > 0)
			continue;
		return 0;
	}
	if (ckt_cage_enter(CKT_WORKER_REFUSED_FD, message, sizeof message)) {
		fprintf(stderr, "%s\n", message);
		_exit(2);
	}
	for (int i = 0; i < 2; i++)
		if (syscall(SYS_mq_unlink, NULL) != -1 || errno != EPERM)
			_exit(3);
	/* As workers end: what a sanitizer does at exit, the cage refuses. */
	_exit(0);
}
