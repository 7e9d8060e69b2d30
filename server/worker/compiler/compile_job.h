/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One compilation in a process group, a directory and a cage of its own.
 *
 *	start -> pidfd readable, or its time is over -> finish
 *
 * The text comes from a program that nobody trusts, so the compiler may do whatever its cage leaves
 * to it.  One thread.  Functions return 0 or -errno.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum {
	CKT_COMPILE_WALL_MS = 600000, /* also where many others compute */
	CKT_COMPILE_DIRECTORY_MAX = 128
};

struct ckt_compile_job {
	pid_t pid;
	int pidfd; /* -1: no compilation */
	char directory[CKT_COMPILE_DIRECTORY_MAX];
};

/* Zeroed jobs are not idle: call this first. */
void ckt_compile_job_init(struct ckt_compile_job *job);
/*
 * text: a sealed file, stays the caller's.  directory: does not exist yet; nobody else uses that
 * name before the job is finished.
 */
int ckt_compile_job_start(struct ckt_compile_job *job, int text, const char *directory);
/*
 * Ends all processes of the compilation and removes its directory.  ret_object: a sealed unnamed
 * file, the caller's; -EIO where the compiler failed or has not ended.
 */
int ckt_compile_job_finish(struct ckt_compile_job *job, int *ret_object);
