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
 *	printer		moves what kernels printed from the pipes to the client
 *
 * Locks, in the order in which they may be nested:
 *	control -> mail -> pending -> printed -> replies -> output ; input -> host calls ; each ckt_memory's and the staging lock are leaves.
 */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "rpc/job.h"
#include "rpc/session.h"
#include "rpc/worker.h"
#include "server/worker/module/blob.h"
#include "server/worker/session/call.h"
#include "server/worker/session/handlers.h"
#include "checkpoint/freeze/hold.h"
#include "server/worker/memory/hostmem.h"
#include "server/worker/session/input.h"
#include "checkpoint/journal.h"
#include "server/worker/session/lookahead.h"
#include "server/worker/memory/memory.h"
#include "server/worker/objects/object.h"
#include "server/worker/session/output.h"
#include "server/worker/session/pending.h"
#include "server/worker/memory/pool.h"
#include "server/worker/session/kernel_output.h"
#include "server/worker/session/replies.h"
#include "server/worker/memory/staging.h"
#include "server/worker/memory/vmm.h"

/*
 * One window for every worker, so that an address never changes; sanitizers leave room for a
 * smaller one elsewhere.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CKT_WINDOW_BASE 0x7e8000000000ull
#define CKT_WINDOW_SIZE (256ull << 30)
#define CKT_SCRATCH_SIZE (4ull << 30)
#define CKT_HOST_SIZE (16ull << 30)
#else
#define CKT_WINDOW_BASE 0x200000000000ull
#define CKT_WINDOW_SIZE (4ull << 40)
#define CKT_SCRATCH_SIZE (1ull << 40)
#define CKT_HOST_SIZE (1ull << 40)
#endif
/* Addresses behind the window for the worker's own memory. */
#define CKT_SCRATCH_BASE (CKT_WINDOW_BASE + CKT_WINDOW_SIZE)
/* Its second half is for frozen state. */
#define CKT_SPARE_BASE (CKT_SCRATCH_BASE + CKT_SCRATCH_SIZE / 2)
/*
 * Addresses of pinned memory that the client shares: the driver must not have them, because it
 * gives what is registered the address that it has.
 */
#define CKT_HOST_BASE (CKT_SCRATCH_BASE + CKT_SCRATCH_SIZE)

enum {
	/* how long a command or a wait is looked for before somebody blocks */
	CKT_SPIN_NS = 50000,
	/*
	 * how long a command where there are processors: a program thinks between an answer and its
	 * next launch
	 */
	CKT_SPIN_LONG_NS = 200000,
};

struct ckt_worker_device {
	CUdevice ordinal;
	/*
	 * the server's; the driver's numbers are the session's where it sees these GPUs alone
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

/* What a long operation is doing; written by whoever does it, read by any control thread. */
struct ckt_progress {
	const char *_Atomic phase; /* a literal; NULL: nothing */
	_Atomic uint64_t done, total;
};

/* Of an image and what it may build on. */
enum { CKT_IMAGE_PLACES = 1 + CKT_IMAGE_CHAIN_MAX };

struct ckt_parting {
	bool parked;
	char message[CKT_MESSAGE_MAX];
	char moved_to[CKT_ADDRESS_MAX + 1];
};

struct ckt_worker {
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
	int image_places[CKT_IMAGE_PLACES]; /* by IMAGE, -1 where none came */
	unsigned image_count;
	int memory_fds[CKT_IMAGE_MEMORY_FILES]; /* by MEMORY */
	unsigned memory_count;
	CUcontext first_context; /* the first device's primary one */
	bool old_image;          /* restored from one whose history has no hash kernel */

	/* The executor's. */
	struct ckt_objects objects;
	unsigned start; /* CKT_IMAGE_START_*: how this process was started */
	/* context object whose real context is current on the executor, or NULL */
	struct ckt_object *current;
	struct ckt_blobs blobs;
	struct ckt_journal_entry *journal;
	size_t journal_count, journal_room;
	/* so many stand in an image that others build on: they are only added to */
	size_t journal_saved;
	uint32_t local_bytes; /* most of any kernel that was launched */
	struct ckt_pools pools;
	struct ckt_vmm vmm;
	struct ckt_hostmem host;
	struct ckt_staging staging;
	int client_fd;
	uint64_t client_epoch;
	pthread_t executor;
	int64_t spin_ns; /* how long it looks for a command before it sleeps */
	/* recorded at the restore: image_ms of events count from image_base_ms before it */
	CUevent time_base;
	float image_base_ms;

	/* Shared. */
	struct ckt_replies replies;
	struct ckt_output output;
	struct ckt_input input;
	struct ckt_lookahead lookahead;
	struct ckt_pendings pending;
	struct ckt_printed printed;
	_Atomic int deferred; /* first error of a batched call, not yet reported */
	struct ckt_progress progress;
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
	} new_client;
	bool go; /* the tables are the executor's from now on */
	bool freeze, frozen;
	_Atomic int freeze_error;
	int64_t freeze_deadline_ms;
	char freeze_message[CKT_MESSAGE_MAX];
	bool end_after_freeze;
	bool quiesce;               /* the executor, frozen, is to part from the client */
	int64_t frozen_ns;          /* since when it stands, CLOCK_MONOTONIC */
	struct ckt_parting parting; /* what the client hears at the end */
	bool paused;                /* frozen, and its memory in the host's */

	struct ckt_hold hold;

	/* Listings and identity, mail_lock. */
	enum ckt_session_state state;
	bool has_owner;
	uint8_t secret_hash[CKT_SECRET_HASH_SIZE];
	struct ckt_worker_owner_args owner;  /* as the server said last */
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
	CKT_STAT_LIBRARIES = CKT_STAT_SESSION + 8,
	CKT_STATS = CKT_STAT_LIBRARIES + (CKT_LIB_COUNT - 1) * (CKT_LIB_PROC_MAX + 1),
};

/* ---- start.c */
/* 0 or -errno and a sentence. */
/*
 * Ahead of a start with restore = true, as often as images come: see preload.h.  The same errors;
 * nothing runs yet.
 */
int ckt_worker_start_ahead(struct ckt_worker *worker, const ckt_worker_start_args *args,
	int image_fd, char *ret_message, size_t message_size);
int ckt_worker_start(struct ckt_worker *worker, const ckt_worker_start_args *args, int image_fd,
	char *ret_message, size_t message_size);
/* Ends the process at once, whatever the GPU does. */
void ckt_worker_end(const char *why) __attribute__((noreturn));
void ckt_worker_harden(int argc, char **argv);
/* A sentence that listings and cricketctl restore show with the session. */
void ckt_worker_note(struct ckt_worker *worker, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- device.c */
/* Whether kernels of the session's device can reach memory of its peer, which is another. */
bool ckt_device_can_access(const struct ckt_worker *worker, unsigned device, unsigned peer);

/* ---- window.c */
/* Keeps to a part of the window; see CKT_SESSION_WINDOW.  0 or -errno. */
int ckt_window_part(struct ckt_worker *worker, unsigned part, unsigned parts);
/* Whether that is the window or a part of it. */
bool ckt_window_holds(uint64_t base, uint64_t size);
CUresult ckt_window_reserve(struct ckt_worker *worker, char *ret_message, size_t message_size);
/* Physical memory of the device, mapped nowhere. */
/* compression: a CUmemAllocationCompType; memory of a device without it is made without. */
CUresult ckt_window_create(struct ckt_worker *worker, unsigned device, uint64_t size,
	unsigned compression, uint64_t *ret_handle);
/* Fresh physical memory behind reserved addresses, and away again. */
/* To the device itself and every other of the session that can reach it. */
CUresult ckt_window_give_access(
	struct ckt_worker *worker, unsigned device, uint64_t address, uint64_t size);
/* The access that one GPU has, whichever memory it is. */
CUresult ckt_window_set_access(struct ckt_worker *worker, unsigned device, uint64_t address,
	uint64_t size, unsigned access);
CUresult ckt_window_map(struct ckt_worker *worker, unsigned device, uint64_t address, uint64_t size,
	uint64_t *ret_piece);
void ckt_window_unmap(uint64_t address, uint64_t size, uint64_t piece);
void ckt_window_init_device(struct ckt_worker *worker, unsigned device);

/* ---- executor.c */
/*
 * Made with all other threads, because its stack and buffer must lie before what the driver maps
 * for modules; waits for go.
 */
int ckt_executor_start(struct ckt_worker *worker);
void ckt_executor_go(struct ckt_worker *worker);
void ckt_executor_wake(struct ckt_worker *worker);
/*
 * Of the executor's thread alone: forgets the connection and what came over it without being
 * executed.
 */
void ckt_executor_disconnect(struct ckt_worker *worker, const char *why);
/* The device argument of a command: NULL where the session has no such device. */
struct ckt_worker_device *ckt_worker_device_find(struct ckt_worker *worker, uint32_t device);
/* The device in whose slice of the window the address lies, or NULL. */
struct ckt_worker_device *ckt_worker_device_of(struct ckt_worker *worker, uint64_t address);

/* ---- call.c */
/* From the executor only. */
/* NULL where there is no memory. */
struct ckt_wcall *ckt_wcall_new(struct ckt_worker *worker);
/* Before a call is executed: memory for its reply, where that is kept.  0 or -ENOMEM. */
int ckt_wcall_prepare(struct ckt_wcall *call);
void ckt_wcall_free(struct ckt_wcall *call);
void ckt_wcall_reject(struct ckt_wcall *call, uint32_t accept_stat);
/* Sends the stored reply of a numbered call that came again, or notes who waits for it now. */
void ckt_wcall_replay(
	struct ckt_worker *worker, const struct ckt_call_header *header, uint64_t epoch);
void ckt_worker_defer(struct ckt_worker *worker, CUresult result);

/* ---- context.c */
/* Makes the context current on the executor. */
CUresult ckt_worker_use_context(struct ckt_worker *worker, uint64_t id);
CUresult ckt_context_primary(
	struct ckt_worker *worker, unsigned device, struct ckt_object **ret_object);
/* The stream may have unfinished work from now on. */
void ckt_worker_mark_dirty(struct ckt_worker *worker, struct ckt_object *stream);
CUresult ckt_context_create(struct ckt_worker *worker, uint64_t id, unsigned flags, unsigned device,
	struct ckt_object **ret_object);
void ckt_object_destroy(struct ckt_worker *worker, struct ckt_object *object);
/* Device memory that the driver takes for the context, until it goes. */
CUresult ckt_context_charge(struct ckt_worker *worker, struct ckt_object *context, uint64_t bytes);
void ckt_context_uncharge(struct ckt_worker *worker, struct ckt_object *context, uint64_t bytes);
CUresult ckt_context_destroy(struct ckt_worker *worker, struct ckt_object *context);

/* ---- copy.c */
/*
 * Where the driver may read the data from: the message itself, or pinned memory. *ret_piece NULL in
 * the first case.
 */
const uint8_t *ckt_worker_source(struct ckt_worker *worker, const uint8_t *data, uint32_t size,
	struct ckt_staging_piece **ret_piece);
/* Takes a piece; where all are in flight, waits for one without answering anything out of order. */
struct ckt_staging_piece *ckt_worker_take_piece(struct ckt_worker *worker, size_t size);
/*
 * The stream of a copy with the host.  A context must be current, too: its fences keep the pieces.
 */
CUresult ckt_worker_copy_stream(struct ckt_worker *worker, uint64_t id, CUstream *ret_stream);
/*
 * `begun` is what the driver said to the copy out of the piece, which comes back when the stream is
 * past it.  The handler's result.
 */
CUresult ckt_worker_sent(struct ckt_worker *worker, CUresult begun, struct ckt_staging_piece *piece,
	CUstream stream);
/*
 * And to the copy into the piece: where it is queued, the reply, with the piece's data, goes when
 * it is done.  What a handler returns.
 */
int ckt_worker_reply_when_done(struct ckt_wcall *call, CUresult begun, uint64_t stream_id,
	CUstream stream, struct ckt_staging_piece *piece, size_t size);

/* ---- stream.c, event.c, also used by restore; in the current context */
enum { CKT_STREAM_POOL = 32 };
/* Precondition: the first primary context is current. */
void ckt_stream_pool_fill(void);
CUresult ckt_stream_make(struct ckt_worker *worker, uint64_t id, unsigned flags, int priority);
/* Gives the real stream back; the object stays. */
void ckt_stream_unmake(struct ckt_worker *worker, struct ckt_object *object);
CUresult ckt_event_make(
	struct ckt_worker *worker, uint64_t id, unsigned flags, struct ckt_object **ret_object);
void ckt_event_unmake(struct ckt_worker *worker, struct ckt_object *event);

/* ---- module.c, also used by restore */
CUresult ckt_module_load(struct ckt_worker *worker, uint64_t id, const uint8_t hash[32],
	const uint32_t *keys, const uint64_t *values, uint32_t count,
	struct ckt_object **ret_object);
void ckt_module_unload(struct ckt_worker *worker, struct ckt_object *module);
/* The client knows where the variable lies. */
/* 0 or -ENOMEM. */
int ckt_module_note_seen(struct ckt_object *module, const char *name);
CUresult ckt_function_get(struct ckt_worker *worker, struct ckt_object *module, uint64_t id,
	const char *name, struct ckt_object **ret_object);
CUresult ckt_function_set(struct ckt_object *function, uint32_t attribute, int32_t value);

/* ---- device.c */
/* 0 or -ENOMEM. */
int ckt_session_devices_fill(struct ckt_worker *worker, ckt_devices_res *ret);

/* ---- control.c */
int ckt_control_start(struct ckt_worker *worker, int listen_fd);

/* ---- control_operations.c */
struct ckt_request;
/* SAVE, SAVE2, RELEASE, PROGRESS and the like; -EPROTO for a procedure that is none of these. */
int ckt_operation_serve(struct ckt_request *request, uint32_t proc);
/* Lets go of what MEMORY brought. */
void ckt_memory_files_close(struct ckt_worker *worker);
void ckt_progress_begin(struct ckt_worker *worker, const char *phase, uint64_t total);

/* ---- freeze.c */
/*
 * Stops the executor between commands with everything finished; 0 or -errno and a sentence naming
 * what would not finish.
 */
int ckt_worker_freeze(
	struct ckt_worker *worker, unsigned deadline_ms, char *ret_message, size_t message_size);
void ckt_worker_thaw(struct ckt_worker *worker, bool end);
/*
 * Tells the client to be quiet and ends its connection.  Precondition: frozen, and nobody thaws
 * meanwhile.
 */
void ckt_worker_quiesce(struct ckt_worker *worker);
/* The executor's side. */
void ckt_executor_freeze(struct ckt_worker *worker);

/* ---- image_save.c, image_load.c.  Precondition: frozen, or not started. */
/*
 * Memory of the first device for frozen state, while an image is written behind the running
 * program.
 */
struct ckt_spare {
	uint64_t size, piece;
};
struct ckt_save {
	struct ckt_spare spare;
	/* Where not NULL: called as soon as the session is not needed any more. */
	void (*let_go)(struct ckt_save *save, struct ckt_worker *worker);
	bool gone;
	uint64_t stopped_us;
	int broker;            /* makes its files */
	const int *memory_fds; /* instead of the directory: CKT_IMAGE_MEMORY_FILES */
	bool compress, incremental, keep_hashes;
	const char *base; /* CKT_IMAGE_ID_SIZE bytes, with incremental */
	/* Results. */
	uint8_t image[CKT_IMAGE_ID_SIZE];
	uint64_t bytes, memory_bytes, changed_bytes;
};
/*
 * spare.c.  As much spare memory as the session holds, where the card has room beyond a reserve for
 * the program.
 */
void ckt_worker_spare_take(struct ckt_worker *worker, struct ckt_spare *ret_spare);
void ckt_worker_spare_give(struct ckt_worker *worker, struct ckt_spare *spare);
/* Makes the first device's primary context current. */
CUresult ckt_worker_spare_use(struct ckt_worker *worker);
int ckt_worker_save(
	struct ckt_worker *worker, struct ckt_save *save, char *ret_message, size_t message_size);
int ckt_worker_preload(struct ckt_worker *worker, int broker, const ckt_worker_start_args *args,
	char *ret_message, size_t message_size);
int ckt_worker_load(struct ckt_worker *worker, int broker, const ckt_worker_start_args *args,
	char *ret_message, size_t message_size);
