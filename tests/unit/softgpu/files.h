/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the suites that share the program test_soft_files: the library's own functions beside its
 * API, in one process with two devices, a 9.0 with 128 MiB and an 8.0 with 64 MiB.
 */
#pragma once

#include "soft_test.h"
#include "tests/unit/suite.h"

struct ckt_soft_context;

enum { FILES_MEMORY = 128 << 20, FILES_SECOND_MEMORY = 64 << 20 };

/* A context of the second device, current; files_second_end() ends it. */
CUcontext files_second(void);
void files_second_end(CUcontext context);
/* The inside of the current context. */
struct ckt_soft_context *files_context(void);
/* A kernel of the primary context out of its text behind the head. */
CUfunction files_kernel(const char *text, const char *name);
/* What goes to that descriptor between the two calls. */
void files_catch(int fd);
const char *files_caught(void);
/* A stream that stands still until files_open(). */
CUstream files_gated(void);
void files_open(void);
/* A word of device memory. */
uint32_t files_word(CUdeviceptr address);
