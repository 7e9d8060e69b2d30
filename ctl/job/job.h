/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs: sessions of one user, at one or several servers, that are saved as one cut and restored
 * together (docs/control.md, "Jobs").
 *
 * Threading: the main thread, except that each session is saved and restored on a thread of its
 * own. Exit codes, with the error printed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/format/sealed_file.h"
#include "ctl/command.h"
#include "ctl/sealed_image.h"
#include "ctl/server.h"
#include "rpc/control.h"
#include "rpc/job.h"
#include "rpc/job_cut.h"
#include "rpc/nccl.h"
#include "rpc/session.h"

enum { CKT_CTL_RANKS_MAX = CKT_CONTROL_JOB_SESSIONS };

/* A session of the job, and its server's last report. */
struct ckt_ctl_rank {
	unsigned server; /* which of the job's */
	char session[CKT_SESSION_ID_SIZE + 1];
	char program[CKT_NAME_MAX + 1], client[CKT_ADDRESS_MAX + 1];
	char message[CKT_MESSAGE_MAX + 1]; /* what is unfinished */
	uint32_t pid;
	int gpu;
	bool seen, held, copied;
	uint64_t memory_bytes, executed;
	struct ckt_job_rank cut;       /* with the step that the next look carries */
	uint8_t salt[CKT_SEALED_SALT]; /* of its encrypted image */
};

struct ckt_ctl_job {
	const struct ckt_ctl_args *args;
	char name[CKT_JOB_NAME_MAX + 1];
	struct {
		struct ckt_ctl_args args;     /* with --server of this one */
		struct ckt_ctl_server server; /* the connection that holds its sessions */
		char key[CKT_CONTROL_JOB_KEY];
		unsigned ranks;
	} servers[CKT_CTL_SERVERS_MAX];
	unsigned server_count;
	struct ckt_ctl_rank *ranks;
	unsigned rank_count;
	/* With --encrypt: where the images are written before they are encrypted. */
	struct ckt_ctl_plain plain;
	int64_t held_ms; /* since when the first is stopped, at the earliest */
	/*
	 * By a finer clock: just before the first was stopped, when all were stopped with no work
	 * left, when the last continued or all were saved.
	 */
	int64_t held_ns, cut_ns, over_ns;
};

/* ---- job_servers.c */
/* Connects to every --server, or to the default one. */
int ckt_ctl_job_connect(const struct ckt_ctl_args *args, struct ckt_ctl_job *job);
void ckt_ctl_job_close(struct ckt_ctl_job *job);
int64_t ckt_ctl_job_now_ns(void);
/* Stops all sessions of the job, or none. */
int ckt_ctl_job_hold(struct ckt_ctl_job *job);
/* Sends the steps and asks for all states. */
int ckt_ctl_job_look(struct ckt_ctl_job *job);
/* All continue; refused if one was not held all the time. */
int ckt_ctl_job_end(struct ckt_ctl_job *job);
/* "session 0123456789ab (program, process 7 on host)" */
const char *ckt_ctl_rank_text(const struct ckt_ctl_rank *rank, char *buffer, size_t size);

/* ---- job_cut.c: letting some on until none has anything left to do */
int ckt_ctl_job_cut(struct ckt_ctl_job *job, unsigned deadline_ms);

/* ---- job_manifest.c: DIR/job.json */
#define CKT_CTL_JOB_MANIFEST "job.json"
struct ckt_ctl_job_entry {
	char session[CKT_SESSION_ID_SIZE + 1]; /* the name of its image's directory, too */
	unsigned server;
	int gpu;
	bool sealed; /* its image has that salt */
	uint8_t salt[CKT_SEALED_SALT];
};
/* 0 or -errno. */
int ckt_ctl_job_manifest_write(int dir_fd, const struct ckt_ctl_job *job);
int ckt_ctl_job_manifest_read(const char *path, char ret_job[CKT_JOB_NAME_MAX + 1],
	struct ckt_ctl_job_entry **ret_entries, unsigned *ret_count);

/* ---- job_sealed.c: encrypted images */
bool ckt_ctl_job_is_sealed(const char *path);
/* The rank's plain image into the new directory parent_fd/SESSION.  Any thread, a rank each. */
int ckt_ctl_job_image_seal(
	const struct ckt_ctl_job *job, struct ckt_ctl_rank *rank, int directory, int parent_fd);
/* job.json of that job into the directory `to`; then a session's image into `to`/SESSION. */
int ckt_ctl_job_sealed_open(const struct ckt_ctl_args *args, const char *path, int to);
int ckt_ctl_job_image_unseal(const struct ckt_ctl_args *args, const char *path,
	const struct ckt_ctl_job_entry *entry, int to);
/* The whole job into a directory that is not yet there. */
struct ckt_ctl_partial;
int ckt_ctl_job_unseal(
	const struct ckt_ctl_args *args, const char *path, const struct ckt_ctl_partial *partial);

/* ---- job_nccl.c: communicators of NCCL whose ranks are sessions of the job */
struct ckt_ctl_members {
	struct ckt_ctl_member {
		struct ckt_nccl_member nccl;
		unsigned session;              /* its place in the job */
		bool shared;                   /* with another session */
		uint8_t id[CKT_NCCL_ID_BYTES]; /* of which it is made anew */
	} * list;                              /* by communicator, then rank */
	size_t count;
	struct ckt_ctl_need {
		char owner[CKT_SESSION_ID_SIZE + 1]; /* the session that owns memory or events */
		unsigned session;                    /* the session that has opened them */
	} * needs;
	size_t need_count;
};
/* Reads those of the image in that directory; session: its index.  0, or -errno and a sentence. */
int ckt_ctl_members_read(struct ckt_ctl_members *members, int dir_fd, unsigned session,
	char *ret_message, size_t message_size);
/*
 * All are read: each communicator must have each of its ranks once.  job: its name; sessions: names
 * by index.  Exit codes, with the error printed, as for the others.
 */
int ckt_ctl_members_check(
	struct ckt_ctl_members *members, const char *job, const char *const *sessions);
bool ckt_ctl_members_shared(const struct ckt_ctl_members *members);
/*
 * Memory is shared within a host: its owner must be in the job and go to the same server.  servers:
 * by index, all NULL if there is only one.
 */
int ckt_ctl_members_place(const struct ckt_ctl_members *members, const char *job,
	const char *const *sessions, const char *const *servers, unsigned count);
/* New IDs, each made by the copy that has rank 0; servers[i] and copies[i] belong to session i. */
int ckt_ctl_members_make(struct ckt_ctl_members *members, struct ckt_ctl_server *const *servers,
	const char *const *copies);
/* Sends a copy the IDs of all communicators that its session has. */
int ckt_ctl_members_tell(const struct ckt_ctl_members *members, struct ckt_ctl_server *server,
	const char *copy, unsigned session);
void ckt_ctl_members_free(struct ckt_ctl_members *members);

/* ---- job.c, job_restore.c */
int ckt_ctl_job_checkpoint(const struct ckt_ctl_args *args);
int ckt_ctl_job_restore(const struct ckt_ctl_args *args);
int ckt_ctl_job_migrate(const struct ckt_ctl_args *args);
/* The same restore without a word to clients or to stdout: they are told by the source. */
int ckt_ctl_job_restore_held(const struct ckt_ctl_args *args);

/* ---- job_move.c: what migrate does otherwise than checkpoint */
/* A directory that has room for all of the job. */
int ckt_ctl_job_move_directory(const struct ckt_ctl_job *job, struct ckt_ctl_partial *ret_partial);
/*
 * Restores the images of path at --to, while the sessions stay held.  holders[i]: the connection that
 * holds session i.
 */
int ckt_ctl_job_pass(
	struct ckt_ctl_job *job, struct ckt_ctl_server *const *holders, const char *path);
/* Ends what was restored there. */
void ckt_ctl_job_pass_undo(struct ckt_ctl_job *job);
int ckt_ctl_job_move_print(const struct ckt_ctl_job *job, uint64_t bytes);
