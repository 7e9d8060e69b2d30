/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole sessions of a worker of its own (wire_client.h), for suites: begun, filled, saved,
 * restored, ended.  A call that fails where the test needs it ends the test.  The executable's
 * argv[1] is the worker, argv[2] the soft libcuda.so.1.
 */
#pragma once

#include "checkpoint/format/store.h"
#include "rpc/handle.h"
#include "tests/unit/suite.h"
#include "tests/unit/worker/wire_client.h"

enum { MIB = 1 << 20 };

extern const char *worker_path, *driver_path;

#define STREAM(n) ckt_handle_make(CKT_KIND_STREAM, 1, 100 + (n))
#define MODULE(n) ckt_handle_make(CKT_KIND_MODULE, 1, 300 + (n))
#define FUNCTION(n) ckt_handle_make(CKT_KIND_FUNCTION, 1, 400 + (n))
#define EVENT(n) ckt_handle_make(CKT_KIND_EVENT, 1, 1000 + (n))

struct wire *session_new(void);
/* Whether its client can replay: CKT_WORKER_STAMPED. */
ckt_stamped wire_stamped(struct wire *w);
/* The worker ends by itself. */
void session_free(struct wire *w);
/* Says bye. */
void session_end(struct wire *w);

/* A reply without results; -1 where the call was not accepted. */
CUresult done(struct wire_reply reply);
uint64_t alloc(struct wire *w, uint64_t size);
/* Words of device memory. */
void fill(struct wire *w, uint64_t at, uint32_t value, uint64_t bytes);
uint64_t get(struct wire *w, uint64_t src, uint32_t size);
uint32_t get_u32(struct wire *w, uint64_t src);
enum ckt_session_state state(struct wire *w);

/* mkdtemp's template. */
void make_directory(char *template);
void remove_directory(const char *directory);
/* The files of an image in memory. */
void make_files(int ret_fds[CKT_IMAGE_MEMORY_FILES]);
void close_files(const int fds[CKT_IMAGE_MEMORY_FILES]);
/* Into the directory, or, where that is NULL, into wire->memory_fds; ends the session. */
void save_and_stop(struct wire *w, const char *directory);
/* START's status; the worker of a refused one is gone. */
int try_restore(struct wire *w, const char *directory, char ret_message[CKT_MESSAGE_MAX]);
/* Goes on with the session where the image stands. */
void restore(struct wire *w, const char *directory);
