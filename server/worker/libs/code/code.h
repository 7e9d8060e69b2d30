/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libraries load into the driver where it loads lazily, in the order of first uses, and again
 * at a restore.
 *
 *	library's runtime: cuLibraryLoadData(code) -> cuLibraryGetKernel -> first launch --hook--> load the kernel now | journal: use N, context
 *	restore:           journal: use N -> find the code -> load it ahead -> the kernel ... later the library asks, and is handed what is there
 *
 * A use is the first of a kernel, a variable, or a whole module (cuModuleLoadData) in a context;
 * the hook has the driver load it at that moment, so that the step does not depend on what else
 * would have made the driver load it.  Code is known by the file of the library and its place
 * there, or, where it was made at run time, by its hash; its contents are then among the session's
 * blobs.  What a restore cannot find again it says in the session's note; where variables of the
 * program lie elsewhere then, moved_variables.h finds out.
 *
 * Threading: the hooks on any thread, under a lock; the rest the executor's or who restores.
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
 * The bytes of code that a library gives to the driver: behind a wrapper, in a mapped file or not.
 */
struct ckt_code_place {
	const uint8_t *data;
	uint64_t size;
	char file[256]; /* "": none */
	uint64_t offset;
};
/* False if its size cannot be found out. */
bool ckt_code_locate(const void *code, struct ckt_code_place *ret_place);
/* The bytes in the loaded file of that name; NULL if it has fewer, or is not loaded. */
const uint8_t *ckt_code_find_file(const char *file, uint64_t offset, uint64_t size);

/* Hooks, for a driver that loads lazily; ends with a NULL name. */
extern const struct ckt_inside_hook ckt_inside_code_hooks[];

/* ---- In images (code_image.c) */
int ckt_code_save(struct ckt_saving *s);
/* Whether the lists are consistent.  -EBADMSG. */
int ckt_code_check(struct ckt_loading *l);
/* The journal's step of this kind. */
int ckt_code_again(struct ckt_loading *l, const struct ckt_image_journal *entry);

/*
 * Repeats a use in the current context, with the code that is there, and records it.  The driver's
 * result.  Before the session runs.
 */
CUresult ckt_code_use_ahead(
	uint32_t code, const uint8_t *data, enum ckt_code_use_kind kind, const char *symbol);
/* The executor enters a recorded use: the code's contents belong to the session from then on. */
void ckt_code_keep(struct ckt_worker *worker, uint32_t use);
/* The context is being destroyed. */
void ckt_code_forget_context(CUcontext context);
