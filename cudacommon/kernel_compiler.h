/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C compiler of the soft GPU's kernels: which it is, with which options, and how a worker asks
 * the server's compiling process for an object (server/worker/compiler).
 *
 *	worker                                      compiling process
 *	  request, descriptor of the text --->        compiles it
 *	  <--- answer, descriptor of the object
 *
 * Both descriptors are unnamed files (memfd) that nobody can change any more.  Functions return 0
 * or -errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CKT_KERNEL_REQUEST = 0x434b4331, /* "CKC1" */
	/* The emitter stops at 10,000 instructions, which are a few MiB of text. */
	CKT_KERNEL_TEXT_MAX = 32 << 20,
	/* About 50 KiB for a kernel. */
	CKT_KERNEL_OBJECT_MAX = 64 << 20,
	CKT_KERNEL_ARGUMENTS_MAX = 40
};

/* Names the worker's socket to the soft GPU, as a number. */
#define CKT_KERNEL_COMPILER_VARIABLE "CRICKET_COMPILER"
/* Where compilers are if PATH does not say: a server's processes have none. */
#define CKT_KERNEL_COMPILER_PATH "/usr/bin:/bin"

struct ckt_kernel_request {
	uint32_t magic, serial;
};

struct ckt_kernel_answer {
	uint32_t serial;
	int32_t error; /* 0 with a descriptor, or -errno */
};

/* Everything except the text that determines the machine code; ends with NULL. */
extern const char *const ckt_kernel_compiler_options[];

/* The first of cc, gcc and clang in PATH; false if there is none. */
bool ckt_kernel_compiler_find(char *ret_path, size_t size);
/* Arguments to compile the text on standard input; they point to the caller's strings. */
void ckt_kernel_compiler_arguments(const char *compiler, const char *output,
	const char *ret_arguments[CKT_KERNEL_ARGUMENTS_MAX]);
/*
 * An unnamed file with those bytes of the descriptor (from its beginning) that cannot be changed
 * any more.  -EFBIG where there are more than `most`.  The descriptor, the caller's, or -errno.
 */
int ckt_kernel_file_sealed(int from, size_t most, const char *name);
/* Whether it is such a file, so that reading never waits. */
bool ckt_kernel_file_is_sealed(int fd);
/*
 * Asks for the text's object and waits for it.  source: an unnamed file; stays the caller's.
 * One caller at a time.  ret_object: the caller's.  -EIO: the compiler failed; -EPIPE: nobody
 * compiles any more.
 */
int ckt_kernel_compiler_ask(int socket, uint32_t serial, int source, int *ret_object);
