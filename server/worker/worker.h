/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of cricket-worker: one session, one process.
 *
 * Threads
 *	main		watches: timeouts, a client that hung up while the executor is stuck, the end
 *	control (some)	serve the UNIX control socket, a connection each
 *	executor	the only one that reads commands, calls the driver for them and touches objects, blobs and the journal
 *	one for a call	that waits for other workers (blocking_call.h)
 *	waiters		block in the driver for calls that are not done at once, and answer them
 *	the driver's	run host functions: they hand a call to the executor and sleep (hostfunc.h)
 *	look-ahead	takes the end of a host function from the input while the executor is stuck behind it (lookahead.h)
 *	lanes		two for each lane: they receive pieces of large copies into staging memory, and send them (lane.h)
 *	printer		moves what kernels printed from the pipes to the client
 *
 * Locks, in the order in which they may be nested:
 *	control -> mail -> pending -> printed -> replies -> stamps -> output ; input -> host calls ; pending -> lanes ; each ckt_memory's and the staging lock are leaves.
 */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/crowd.h"
#include "checkpoint/state.h"
#include "rpc/job.h"
#include "rpc/session.h"
#include "rpc/worker.h"
#include "server/worker/memory/hostmem.h"
#include "server/worker/memory/memory.h"
#include "server/worker/memory/pool.h"
#include "server/worker/memory/staging.h"
#include "server/worker/memory/vmm.h"
#include "server/worker/module/blob.h"
#include "server/worker/objects/object.h"
#include "server/worker/session/call.h"
#include "server/worker/session/handlers.h"
#include "server/worker/session/impose.h"
#include "server/worker/session/input.h"
#include "server/worker/session/kernel_output.h"
#include "server/worker/session/lane.h"
#include "server/worker/session/lookahead.h"
#include "server/worker/session/output.h"
#include "server/worker/session/pending.h"
#include "server/worker/session/replies.h"

enum {
	/* how long a command or a wait is polled for before a thread blocks */
	CKT_SPIN_NS = 50000,
	/*
	 * how long a command is polled for if there are processors: a program computes between a
	 * reply and its next launch
	 */
	CKT_SPIN_LONG_NS = 1000000,
	/*
	 * and how long the executor asks for the end of a wait, as the client does (client/conn/spin.h):
	 * handing the wait to another thread and waking that costs tens of microseconds
	 */
	CKT_SPIN_WAIT_NS = 100000000,
};

struct ckt_worker_device {
	CUdevice ordinal;
	/*
	 * the server's numbers; the driver's are the session's if the driver sees only these GPUs
	 * (session_devices.h)
	 */
	unsigned number;
	uint64_t total; /* the driver's */
	char name[256];
	int major, minor;
	uint64_t threads; /* that it runs at one time: each has its local memory */
	struct ckt_memory memory;
};

struct ckt_stat {
	uint64_t calls, batched, waited, bytes_in, bytes_out;
};

struct ckt_parting {
	bool parked;
	bool asleep; /* it is to come back with its next command, up to which all is saved: */
	uint64_t executed;
	char message[CKT_MESSAGE_MAX];
	char moved_to[CKT_ADDRESS_MAX + 1];
};

struct ckt_worker {
	struct ckt_checkpoint checkpoint; /* first: see checkpoint/state.h */

	/* Set by START, constant afterwards. */
	char session[CKT_SESSION_ID_SIZE + 1];
	char socket[CKT_WORKER_PATH_MAX];
	unsigned device_count;
	struct ckt_worker_device devices[CKT_DEVICES_MAX];
	uint64_t memory_limit, slice_size;
	/* where the slices are: the window, or a part of it */
	uint64_t window_base, window_size;
	unsigned claim_timeout_ms, disconnect_timeout_ms;
	int driver_version;
	int64_t started; /* seconds since the epoch */
	char note[CKT_MESSAGE_MAX];
	CUcontext first_context; /* the first device's primary one */
	/* started before its session is known, see start.h; and for all GPUs that the driver has */
	bool warm, warm_all;
	/*
	 * it shares its GPUs in space, and a kernel's fault ends it (CRICKET_SPACE); never changed
	 * once threads run
	 */
	bool space;

	/* The executor's. */
	struct ckt_objects objects;
	/* context object whose real context is current on the executor, or NULL */
	struct ckt_object *current;
	struct ckt_blobs blobs;
	uint32_t local_bytes; /* the most of any kernel that was launched */
	struct ckt_pools pools;
	struct ckt_vmm vmm;
	struct ckt_hostmem host;
	struct ckt_staging staging;
	int client_fd;
	struct ckt_transport client_transport; /* client_fd's, or the rings beside it */
	void *rings_place;                     /* ckt_shared_memory_reserve; NULL: none */
	uint64_t client_epoch;
	bool client_takes_again, client_sleeps;
	struct ckt_impose impose;
	pthread_t executor;
	int64_t spin_ns; /* how long it polls for a command before it sleeps, unless: */
	struct ckt_crowd crowd;
	/* recorded at the restore: image_ms of events count from image_base_ms before it */
	CUevent time_base;
	float image_base_ms;

	/* Shared. */
	struct ckt_replies replies;
	struct ckt_output output;
	struct ckt_input input;
	struct ckt_lookahead lookahead;
	struct ckt_pendings pending;
	struct ckt_worker_lanes lanes;
	struct ckt_printed printed;
	_Atomic int deferred; /* first error of a batched call, not yet reported */
	_Atomic bool start_seen;
	struct ckt_stat *stats; /* by ckt_stat_index(); relaxed atomics */

	/* The mailbox, mail_lock. */
	pthread_mutex_t mail_lock;
	pthread_cond_t mail_cond;
	_Atomic bool mail; /* something below is for the executor */
	int wake_fd;       /* eventfd: wakes the executor */
	struct {
		int fd;        /* a new client's socket, or -1 */
		int memory_fd; /* the file of its pinned memory, or -1 */
		uint32_t xid;
		bool takes_rings; /* CKT_CAPABILITY_RINGS, over a UNIX socket */
		bool takes_again; /* CKT_CAPABILITY_AGAIN */
		bool durable;     /* CKT_CAPABILITY_DURABLE */
		bool stamped;     /* CKT_CAPABILITY_STAMPS */
		bool sleeps;      /* CKT_CAPABILITY_SLEEP */
		uint64_t acked;   /* commands that it knows to be executed */
	} new_client;
	bool go;                    /* the tables are the executor's from now on */
	struct ckt_parting parting; /* the message for the client at the end */

	/* Listings and identity, mail_lock. */
	enum ckt_session_state state;
	bool has_owner;
	uint8_t secret_hash[CKT_SECRET_HASH_SIZE];
	struct ckt_worker_owner_args owner; /* as the server last reported */
	char owner_name[64 + 1], owner_project[64 + 1];
	struct ckt_worker_origin_res origin; /* of the image; without its session */
	/* which of several with one generation this is, and which the image's was; 0: not known */
	uint64_t copy, copy_before;
	uint64_t generation;
	char program_name[CKT_NAME_MAX + 1], client[CKT_ADDRESS_MAX + 1];
	char job[CKT_JOB_NAME_MAX + 1];
	uint32_t client_pid, uid;
	int client_process;  /* see client_process.h; -1 */
	int64_t detached_ms; /* since when there is no client; CLOCK_MONOTONIC */
	uint64_t hung_up_epoch;
};

extern struct ckt_worker ckt_worker;

/* Where of ckt_worker.stats calls are counted: see ckt_stat_index(). */
enum {
	CKT_STAT_SESSION = 1024,
	CKT_STAT_LIBRARIES = CKT_STAT_SESSION + 16,
	CKT_STATS = CKT_STAT_LIBRARIES + (CKT_LIB_COUNT - 1) * (CKT_LIB_PROC_MAX + 1),
};

_Static_assert(offsetof(struct ckt_worker, checkpoint) == 0, "ckt_checkpoint_of");
