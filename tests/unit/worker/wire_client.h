/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of cricket-worker that speaks the wire directly: starts a worker on a socket of its own
 * and sends it commands, for tests. Every function ends the process with a message where the
 * transport fails; CUDA results are returned.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rpc/gen/cuda_codec.h"
#include "rpc/session.h"
#include "rpc/wire.h"
#include "rpc/worker.h"

/* After which a test gives up what must happen, on a machine however busy. */
enum { WIRE_GUARD_MS = 60000 };

struct wire {
	pid_t pid;          /* the worker */
	char directory[64]; /* holds its control socket */
	int control, fd;
	uint64_t seq, acked, executed;
	uint64_t generation, copy; /* as the last answer to a hello said */
	uint64_t attached;         /* what a RESUME says of that; 0: nothing */
	uint64_t announced;        /* the last piece of a lane that was */
	uint64_t lane_set;         /* the number that a hello of kind DATA says */
	uint32_t xid;
	uint32_t thread;  /* of the program's, that the next commands are of; 0: the first */
	uint32_t prog;    /* that the next commands are of; 0: CUDA */
	int32_t deferred; /* of the last reply */
	char session[CKT_SESSION_ID_SIZE + 1];
	uint8_t secret[CKT_SECRET_SIZE];
	uint8_t *log; /* every numbered record since the image, for resending */
	size_t log_size, log_room;
	char *printed; /* what kernels printed */
	size_t printed_size;
	char fault[32];      /* CRICKET_FAULT of the next worker */
	const char *devices; /* its CRICKET_SOFT_DEVICES; NULL: 12.0:8G */
	const char *env[4];  /* and what else is in its environment */
	/* after which it ends without a client; 0: WIRE_GUARD_MS */
	unsigned claim_timeout_ms, disconnect_timeout_ms;
	uint64_t memory_limit; /* of a restored one, where the caller of wire_start gives none */
	uint64_t host_memory;  /* its limit of host memory; 0: none */
	/* CKT_IMAGE_MEMORY_FILES, what it is restored from or saves to with to_memory */
	const int *memory_fds;
	bool may_die, died; /* a control call that gets no answer is no error */
	bool no_log;
	bool quiesced;    /* told to be quiet */
	bool takes_again; /* says CKT_CAPABILITY_AGAIN in its next hello */
	bool durable;     /* says CKT_CAPABILITY_DURABLE in its hellos */
	uint64_t past;    /* and that it knows this copy; 0: none */
	uint64_t before;  /* what the last answer said of the copy */
	uint64_t marked;  /* the latest number of an image that stays */
	bool stamped;     /* asks for stamps of its commands; the latest: */
	struct {
		uint64_t first, begins[64];
		unsigned count;
		uint32_t xid;
		uint64_t end, late;
	} stamps;
	/* functions that the worker called, in their order; not answered by themselves */
	struct ckt_host_call_args host_calls[16];
	unsigned host_call_count;
	/* the latest of those of the driver, and how many there were */
	struct ckt_notify_args notified;
	unsigned notified_count;
	char parked[CKT_MESSAGE_MAX], moved_to[CKT_ADDRESS_MAX + 1];
};

struct wire_reply {
	uint8_t *data; /* free() it */
	struct ckt_cursor results;
	uint32_t xid;
	uint32_t accept_stat;
	CUresult result;
};

/*
 * worker: path of cricket-worker; driver: of libcuda.so.1. image_fd: -1, or a directory to restore
 * from. Returns START's status.
 */
int wire_start(struct wire *wire, const char *worker, const char *driver, uint64_t memory_limit,
	int image_fd, char *ret_message);
/* The same from an image and those that it builds on, newest first. */
int wire_start_chain(struct wire *wire, const char *worker, const char *driver,
	const char *const *directories, unsigned count, char *ret_message);
/*
 * Waits for the process to end; false where it does not within WIRE_GUARD_MS. Removes the
 * directory.
 */
bool wire_ended(struct wire *wire);
/* Says hello over a fresh socket pair; NEW or RESUME. */
/* Any call of the worker's; dies where it is not answered. */
void wire_ask(struct wire *wire, uint32_t proc, xdrproc_t xdr_args, void *args, xdrproc_t xdr_res,
	void *res);
/* The same, with a descriptor, which stays the caller's. */
void wire_ask_with(struct wire *wire, uint32_t proc, xdrproc_t xdr_args, void *args,
	xdrproc_t xdr_res, void *res, int fd);
ckt_hello_status wire_hello(struct wire *wire, ckt_hello_kind kind, bool right_secret);
void wire_disconnect(struct wire *wire);

/*
 * A command.  numbered: gets the next number.  send only; the reply of a waited one is read with
 * wire_read(xid).
 */
uint32_t wire_send(struct wire *wire, uint32_t proc, const uint8_t *args, size_t size,
	bool numbered, bool batched);
/* Reads until the reply of xid comes; others are kept for later calls. */
struct wire_reply wire_read(struct wire *wire, uint32_t xid);
/* Reads until the worker has called so many functions.  No reply may be due. */
void wire_read_calls(struct wire *wire, unsigned count);
/* Reads until the worker has said that a command of a replay is late.  No reply may be due. */
void wire_read_late(struct wire *wire);
/* The next record that is a reply. */
struct wire_reply wire_read_any(struct wire *wire);
/* Sends everything beyond wire->executed again, as after a resume. */
void wire_resend(struct wire *wire);

/* WIRE_CALL(&wire, mem_alloc, true, .size = 4) -> struct wire_reply */
#define WIRE_SEND(wire, name, numbered, batched, ...)                                          \
	({                                                                                     \
		struct ckt_##name##_args args_ = {__VA_ARGS__};                                \
		size_t size_ = ckt_##name##_args_size(&args_);                                 \
		uint8_t *bytes_ = malloc(size_ + 1);                                           \
		ckt_##name##_args_put(bytes_, &args_);                                         \
		const char *name_ = #name;                                                     \
		uint32_t xid_ =                                                                \
			wire_send((wire), wire_proc(name_), bytes_, size_, numbered, batched); \
		free(bytes_);                                                                  \
		xid_;                                                                          \
	})
#define WIRE_CALL(wire, name, numbered, ...) \
	wire_read((wire), WIRE_SEND((wire), name, numbered, false, __VA_ARGS__))
#define WIRE_BATCH(wire, name, ...) WIRE_SEND((wire), name, true, true, __VA_ARGS__)

uint32_t wire_proc(const char *name);

/* Control calls. */
ckt_worker_status_res wire_status(struct wire *wire);
uint64_t wire_stat_calls(struct wire *wire, const char *name);
/* text and addresses of PARKED and MOVED callbacks end up in wire->parked and moved_to. */
ckt_worker_save2_res wire_save2(
	struct wire *wire, const char *directory, ckt_worker_save2_args args);
ckt_worker_result wire_release(
	struct wire *wire, bool end, bool parked, const char *message, const char *moved_to);
ckt_worker_result wire_control(struct wire *wire, uint32_t proc, xdrproc_t xdr_args, void *args);
/* Reads callbacks until the connection ends. */
void wire_read_to_end(struct wire *wire);
int wire_save(struct wire *wire, const char *directory, bool stop, unsigned deadline_ms,
	char *ret_message);
