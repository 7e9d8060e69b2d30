/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a session begins and ends: checks and builds what START asks for.  Threading: a control
 * thread starts; ckt_worker_end from any.
 */
#pragma once

#include <stddef.h>

#include "rpc/worker.h"

struct ckt_worker;

/*
 * Before a start with restore = true, once for each arriving image: see preload.h.  Nothing runs
 * yet.  0 or -errno and a sentence.
 */
int ckt_worker_start_ahead(struct ckt_worker *worker, const ckt_worker_start_args *args,
	int image_fd, char *ret_message, size_t message_size);
/*
 * Makes the worker warm: everything of a start that is the same for every owner, once and first.  START or PRELOAD
 * follow, with the same GPUs and staging memory, and bring the limits.  0 or -errno and a sentence.
 */
int ckt_worker_start_warm(struct ckt_worker *worker, const ckt_worker_start_args *args,
	char *ret_message, size_t message_size);
/*
 * 0 or -errno and a sentence.  -EXDEV: a warm worker cannot become this session, because the image's worker was
 * started in another way, or the GPUs are others; a fresh worker can.
 */
int ckt_worker_start(struct ckt_worker *worker, const ckt_worker_start_args *args, int image_fd,
	char *ret_message, size_t message_size);
/* Ends the process at once, whatever the GPU does. */
void ckt_worker_end(const char *why) __attribute__((noreturn));
/* The same, where the program may still live. */
void ckt_worker_end_cut_off(const char *why) __attribute__((noreturn));
/* Of one that shares its GPU in space, after this CUresult: the server ends all that share it. */
void ckt_worker_end_faulted(struct ckt_worker *worker, int result) __attribute__((noreturn));
void ckt_worker_harden(int argc, char **argv);
/* A sentence that listings and cricketctl restore show with the session. */
void ckt_worker_note(struct ckt_worker *worker, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
