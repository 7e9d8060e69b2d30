/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of one MPS control daemon (mps.h): the daemon itself, and those that ask it something, each as the
 * user of its group and in what the group shares.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <sys/types.h>

struct ckt_group_domain;
struct ckt_server;
struct ckt_worker_user;

enum { CKT_MPS_TEXT = 512, CKT_MPS_ENVIRONMENT = 8 };

/* Everything is the caller's, and stays until the processes have started. */
struct ckt_mps_process_place {
	struct ckt_server *server;
	const struct ckt_worker_user *user;
	struct ckt_group_domain *domain; /* NULL: none */
	const char *program;             /* nvidia-cuda-mps-control */
	char directory[CKT_MPS_TEXT];    /* of its pipes, with its logs in logs/ */
	/* as in an environment */
	char pipes[CKT_MPS_TEXT], logs[CKT_MPS_TEXT];
};

enum ckt_mps_task {
	CKT_MPS_DAEMON,    /* becomes the daemon */
	CKT_MPS_IS_THERE,  /* exit status 0 once it answers */
	CKT_MPS_TERMINATE, /* a client, which is killed then */
	CKT_MPS_QUIT,
	CKT_MPS_REMOVE, /* what is in its directory */
};

/* 0, or -ENAMETOOLONG: its sockets would have names that are too long. */
int ckt_mps_process_place(struct ckt_mps_process_place *ret_place, struct ckt_server *server,
	const struct ckt_worker_user *user, const char *directory);
/* A child of the caller's; or -errno. */
pid_t ckt_mps_process_start(const struct ckt_mps_process_place *place, enum ckt_mps_task task);
/* Does it, and waits so long at most.  The exit status, or -errno. */
int ckt_mps_process_wait(
	const struct ckt_mps_process_place *place, enum ckt_mps_task task, int timeout_ms);
/*
 * Has a process do it that is waited for when it has ended.  client, pidfd: of TERMINATE.  0 or -errno.
 */
int ckt_mps_process_detach(
	const struct ckt_mps_process_place *place, enum ckt_mps_task task, pid_t client, int pidfd);
