/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code that libraries load into a driver that loads lazily.  The journal records the order of
 * first uses, and a restore repeats it.
 *
 *	library's runtime: cuLibraryLoadData(code) -> cuLibraryGetKernel -> first launch
 *	                   --hook--> load the kernel now | journal: use N, context
 *	restore:           journal: use N -> find the code -> load it ahead -> the kernel
 *	                   ... later the library asks for the code and is handed the loaded one
 *
 * A use is the first one of a kernel, a variable, or a whole module (cuModuleLoadData) in a
 * context.  The hook makes the driver load the kernel at that moment, so that the step does not
 * depend on what else would have made the driver load it.  Code is identified by the library's file
 * and its offset there.  Code that was made at run time is identified by its hash, and its contents
 * are then among the session's blobs.  The session's note names code that a restore cannot find
 * again; moved_variables.h detects whether the program's variables moved because of it.
 *
 * Threading: hooks run on any thread, under a lock; the rest on the executor or the restoring
 * thread.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/worker/libs/inside/passthrough.h"

struct ckt_image_journal;
struct ckt_loading;
struct ckt_saving;
struct ckt_worker;

enum ckt_code_use_kind {
	CKT_CODE_KERNEL = 1,
	CKT_CODE_VARIABLE = 2,
	CKT_CODE_MODULE = 3,
	CKT_CODE_UNLOAD = 4,
	CKT_CODE_MODULE_UNLOAD = 5
};

/*
 * The bytes of code that a library gives to the driver, behind its wrapper if it has one.  They may
 * lie in a mapped file.
 */
struct ckt_code_place {
	const uint8_t *data;
	uint64_t size;
	char file[256]; /* "": in no file */
	uint64_t offset;
};
/* False if the code's size cannot be determined. */
bool ckt_code_locate(const void *code, struct ckt_code_place *ret_place);
/* The bytes in the loaded file of that name; NULL if the file is shorter or not loaded. */
const uint8_t *ckt_code_find_file(const char *file, uint64_t offset, uint64_t size);

/* Hooks for a driver that loads lazily; the last entry has a NULL name. */
extern const struct ckt_inside_hook ckt_inside_code_hooks[];

/* ---- In images (code_image.c) */
int ckt_code_save(struct ckt_saving *s);
/* Checks that the lists are consistent; -EBADMSG if not. */
int ckt_code_check(struct ckt_loading *l);
/* Runs the journal's step of this kind. */
int ckt_code_again(struct ckt_loading *l, const struct ckt_image_journal *entry);

/*
 * Repeats a use of the code in the current context and records it.  Returns the driver's result.
 * Runs before the session starts.
 */
CUresult ckt_code_use_ahead(
	uint32_t code, const uint8_t *data, enum ckt_code_use_kind kind, const char *symbol);
/* The executor enters a recorded use; from then on the code's contents belong to the session. */
void ckt_code_keep(struct ckt_worker *worker, uint32_t use);
/* The context is being destroyed. */
void ckt_code_forget_context(CUcontext context);
