/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels as machine code: the C text of a kernel (emit*.c), the compiler that translates it
 * (compile.c) and the cache of results (cache.c).  CRICKET_SOFT_COMPILE: 0 never, 1 before a
 * kernel's first launch, unset when a kernel has run for a while; then a thread compiles while the
 * interpreter continues, and blocks that begin later run the machine code.  Without a compiler, or
 * if it fails, the interpreter continues.
 */
#pragma once

#include <limits.h>

#include "softgpu/ptx/program.h"

extern const char ckt_ptx_kernel_head[]; /* kernel_head.in and lane.h */

/*
 * The state of an entry's machine code; NULL if nothing is compiled.  Precondition: the module's
 * lock is held.
 */
struct ptx_compiled *ckt_ptx_compile_new(struct ckt_ptx_module *module);
/*
 * Starts compiling the kernel of `prepared`: _start at once, _heat when the kernel is hot.  insns:
 * instructions of warps that ran since the last call.
 */
void ckt_ptx_compile_start(
	const struct ckt_ptx_function *entry, const struct ptx_prepared *prepared);
void ckt_ptx_compile_heat(
	const struct ckt_ptx_function *entry, const struct ptx_prepared *prepared, uint64_t insns);
/*
 * The compiled functions of the entry, by function index.  The interpreter runs functions whose
 * element is NULL; it runs all functions if the result is NULL.
 */
ptx_runner *const *ckt_ptx_compile_runners(const struct ptx_prepared *prepared);
/* Called when an entry or the module is freed. */
void ckt_ptx_compile_drop(struct ptx_compiled *compiled);

/*
 * The C text of an entry and of all functions that it may reach: one function ckt_kernel_INDEX
 * each.  malloc'd; NULL if there is no memory or the text is too long to be worth compiling.
 * prepared NULL: all functions of the module.
 */
char *ckt_ptx_emit_kernel(
	const struct ckt_ptx_function *entry, const struct ptx_prepared *prepared);

/* whether the whole module is short enough */
bool ckt_ptx_emit_fits(const struct ckt_ptx_module *module);

/*
 * ---- The cache: $XDG_CACHE_HOME/cricket/kernels, or ~/.cache/cricket/kernels, owned by the user
 * alone
 */

enum { CKT_PTX_KEY = 65 }; /* hexadecimal, NUL-terminated */

/*
 * The folder, created if it is missing.  0, or -errno: -EPERM if others could write to it, -ENOENT
 * if no place for it is known.
 */
int ckt_ptx_cache_folder(char *ret_path, size_t size);
/* The key of a text's machine code.  maker: describes compiler, options and processor. */
void ckt_ptx_cache_key(const char *text, const char *maker, char ret_key[CKT_PTX_KEY]);
/* The path of an object that exists and belongs to this user; false if there is none. */
bool ckt_ptx_cache_find(const char *folder, const char *key, char *ret_path, size_t size);
/*
 * Stores the descriptor's contents as the key's object, and removes the oldest objects if there are
 * too many.  0 or -errno.
 */
int ckt_ptx_cache_store(
	const char *folder, const char *key, int object, char *ret_path, size_t size);
/*
 * Removes files that killed processes left in `folder` on file systems without unnamed files: old
 * files whose names have this prefix.
 */
#define CKT_PTX_LEFTOVER "cricket-kernel-"
void ckt_ptx_cache_sweep(const char *folder);
