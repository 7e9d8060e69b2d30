/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker inside the test's own process, on the soft GPU: started as cricket-worker starts it,
 * its executor frozen, so that a test may touch the tables and call what the executor calls.  No
 * client; what the worker sends lies in a socket pair.
 */
#pragma once

#include <cuda.h>

#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/worker.h"
#include "tests/unit/suite.h"

enum {
	INSIDE_GARBAGE = -2, /* a handler's answer to bytes that are no arguments */
	INSIDE_NONE = -3,    /* no reply */
};

struct inside_reply {
	int result;
	uint8_t bytes[1 << 16];
	struct ckt_cursor results;
};

/*
 * Runs the handler of a command as the executor does, and reads its reply where it is not batched.
 * Valid until the next.
 */
struct inside_reply *inside_call(const char *name, const uint8_t *args, size_t size, bool batched);
/* The same of any library's procedure. */
struct inside_reply *inside_run(uint32_t prog, uint32_t number, const struct ckt_proc *proc,
	const uint8_t *args, size_t size, bool batched);
/* Called with true before each handler and with false once its reply is there, where it is set. */
extern void (*inside_watch)(bool runs);
/*
 * The arguments, cut off: how many of the shorter messages are taken for something else than
 * garbage.
 */
unsigned inside_call_cut(const char *name, const uint8_t *args, size_t size);

#define INSIDE(name, batched, ...)                                                        \
	({                                                                                \
		struct ckt_##name##_args args_ = {__VA_ARGS__};                           \
		size_t size_ = ckt_##name##_args_size(&args_);                            \
		uint8_t *bytes_ = malloc(size_ + 1);                                      \
		ckt_##name##_args_put(bytes_, &args_);                                    \
		struct inside_reply *reply_ = inside_call(#name, bytes_, size_, batched); \
		free(bytes_);                                                             \
		reply_;                                                                   \
	})
/* Its result alone. */
#define ASK(name, ...) INSIDE(name, false, __VA_ARGS__)->result
/* All shorter messages are refused. */
#define CUT(name, ...)                                                   \
	({                                                               \
		struct ckt_##name##_args args_ = {__VA_ARGS__};          \
		size_t size_ = ckt_##name##_args_size(&args_);           \
		uint8_t *bytes_ = malloc(size_ + 1);                     \
		ckt_##name##_args_put(bytes_, &args_);                   \
		unsigned taken_ = inside_call_cut(#name, bytes_, size_); \
		free(bytes_);                                            \
		taken_;                                                  \
	})

/* Slots are common to all kinds. */
#define ID(kind, n) ckt_handle_make(CKT_KIND_##kind, 1, 1000 + 1000 * CKT_KIND_##kind + (n))

extern const char *inside_driver;
/* Memory of the session, set to a value for each word. */
uint64_t inside_memory(uint64_t size, uint32_t value);
void inside_fill(uint64_t address, uint32_t value, uint64_t size);
uint32_t inside_word(uint64_t address);
void inside_free(uint64_t address);
/* A module from PTX under the id, its bytes among the blobs. */
struct ckt_object *inside_module(uint64_t id, const char *ptx);
/* What the worker has sent since the last call; the size. */
size_t inside_sent(uint8_t *ret_bytes, size_t room);
/*
 * A kernel of one thread that spins until the word at its parameter is not 0: its stream is busy
 * until inside_stop.
 */
void inside_spin(CUstream stream);
void inside_stop(void);
/* Thaws and freezes again, which drains; the freeze's result. */
int inside_freeze(unsigned deadline_ms, char ret_message[CKT_MESSAGE_MAX]);
