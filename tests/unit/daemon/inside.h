/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server inside the test: its loop, run by the test itself, peers over socket pairs and
 * sessions whose worker answers what a test tells it to, in the same loop.
 */
#pragma once

#include "rpc/greeting.h"
#include "rpc/session_key.h"
#include "rpc/worker.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/policy/admission.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/server.h"
#include "server/daemon/session/session.h"
#include "server/daemon/image/image_space.h"
#include "server/daemon/image/stage.h"
#include "tests/unit/suite.h"

extern struct ckt_server server;
extern char directory[64]; /* everything lies in it */
extern unsigned sessions_gone;
extern const char *soft_driver, *fake_nvml; /* the program's arguments: the soft GPU, fake_nvml.c */

/* What the worker of every session answers, and what it was asked. */
extern struct fake_worker {
	int status;
	const char *message;
	uint64_t bytes;
	bool silent, garbage, hang_up;
	uint32_t silent_on; /* this call is not answered; 0: none */
	bool swaps_last;    /* no call that swaps is answered */
	uint32_t accept_stat;
	const char *client; /* on that host */
	unsigned client_pid;
	/* 0 to gpus - 1, with `bytes` times its number more on each */
	unsigned gpus;
	bool drained, not_held; /* of a HOLD */
	unsigned steps;         /* and what it said last */
	uint64_t commands;
	/* of a TRACE: the records that it answers, and what it was asked for */
	unsigned traced;
	unsigned traced_more; /* answers that say that there is more; the last one does not */
	struct ckt_worker_trace_args trace;
	/* the row of STATS beside one call; NULL: "none" */
	const char *transport;
	unsigned lanes;
	unsigned ids; /* of an NCCL_MAKE, whatever it was asked for */
	unsigned calls[64], descriptors;
	int channel;          /* where a test sets it to -1: the latest group channel, the test's */
	int lease_channel;    /* the same, of leases */
	int turn_channel;     /* the same, of turns */
	int metrics;          /* the same: the latest page of METRICS */
	int activity;         /* the same, of ACTIVITY */
	int trace_page;       /* the same, of TRACE */
	uint32_t step;        /* of the last TOGETHER */
	unsigned steps_of[8]; /* how many of each */
	uint32_t fails_on;    /* that step alone has the status; 0: all */
	bool swapped;         /* of SWAP_OUT, SWAP_YIELD and SWAP_IN */
	struct ckt_worker_lease_res leases;   /* of LEASE and LEASE_RECALL */
	struct ckt_worker_lease_args lease;   /* of the last LEASE */
	struct ckt_worker_waited_args waited; /* of the last LEASE_WAITED */
	bool pressed;                         /* of the last LEASE_PRESS */
	char gone[256];                       /* of all OWNER_GONE: a blank and the name each */
	uint8_t manifest[32];                 /* what MANIFEST answers */
} worker;

/* Runs the loop until the condition holds; false where it does not within a minute. */
bool run_until(bool (*condition)(void *data), void *data);
/* Runs it that long in any case. */
void run_for(int ms);

/* A session that lives, with its worker. */
struct ckt_session *session_new(const char *id);
void session_drop(struct ckt_session *session);

/* A peer of the server over a UNIX socket that has read its greeting, our end of it. */
int peer_new(ckt_greeting *ret_greeting);
/* The same after a hello as cricketctl. */
int control_new(void);
/* The server's side of the latest peer. */
struct ckt_peer *peer_last(void);
/* What can be passed as the file broker of an image; nobody serves it. */
int broker_new(void);
void send_bytes(int fd, const void *data, size_t size, int pass_fd);
/* The next record, NULL where the connection ended; free() it. */
uint8_t *receive(int fd, size_t *ret_size);
/*
 * The status of the answer to a hello; -1 where the connection ended without one.  ret_text: its
 * message or "moved to".
 */
int hello(int fd, const ckt_hello_args *args, const uint8_t *nonce, const char *token,
	char *ret_text);
/* The same with the proofs of rpc/credential.h; NULL: without that one. */
int hello_proving(int fd, const ckt_hello_args *args, const ckt_greeting *greeting,
	const char *token, const struct ckt_session_key *key, char *ret_text);
ckt_hello_args hello_args(ckt_hello_kind kind, const char *session);
/* A control call; false where there is no proper answer. */
bool control(int fd, uint32_t proc, xdrproc_t xdr_args, void *args, int pass_fd, xdrproc_t xdr_res,
	void *res);
/* A file in the directory. */
char *path_in(const char *name);
void write_file(const char *path, const char *text, int mode);
/* Its beginning; "" where there is none. */
const char *read_file(const char *path);
