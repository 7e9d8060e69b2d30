/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redirects a static copy of the CUDA runtime inside a loaded object to our libcudart.so.13.
 *
 *	the object's text			    our libcudart.so.13
 *	cudaMalloc:  movabs $target, %rax  --------> cudaMalloc
 *		     jmp *%rax
 *
 * Threading: callers run inside the dynamic loader before the object's constructors, so nobody
 * executes the text that is changed. Errors: what the user must know is said on stderr, once an
 * object; the program goes on, and its CUDA calls then fail cleanly because the genuine runtime
 * gets no undocumented driver tables from our libcuda.so.1.
 */
#pragma once

#include "client/patch/loaded_object.h"

/* Our libcudart.so.13, found among the loaded objects. */
struct ckt_runtime {
	struct ckt_loaded_object object;
	struct ckt_dynamic dynamic;
	bool found;
};

enum ckt_redirect_result {
	CKT_REDIRECT_NONE, /* no static runtime inside */
	CKT_REDIRECT_DONE,
	CKT_REDIRECT_UNKNOWN, /* a release we do not know; said so */
	CKT_REDIRECT_REFUSED, /* the text may not be changed; said so */
};

/* True when the object is our libcudart.so.13 and not NVIDIA's, which has the same SONAME. */
bool ckt_patch_runtime_recognise(
	struct ckt_runtime *runtime, const struct ckt_loaded_object *object);
/*
 * Cheap: looks at the program headers.  A static runtime always brings a page of thread-local data,
 * aligned to a page.
 */
bool ckt_redirect_suspect(const struct ckt_loaded_object *object);
/*
 * Precondition: ckt_redirect_suspect(object).  runtime may be one that was not found: then nothing
 * is changed.
 */
enum ckt_redirect_result ckt_redirect_object(
	const struct ckt_loaded_object *object, const struct ckt_runtime *runtime);
/*
 * The function that stands for `name` in a program compiled for CUDA `major`; never NULL, see
 * compat.c.
 */
void *ckt_redirect_target(
	const struct ckt_runtime *runtime, unsigned major, const char *name, unsigned name_index);
struct ckt_redirect_entry {
	uintptr_t address;
	unsigned name; /* index into ckt_static_names */
};
/* Overwrites the entries; 0 or -errno.  Either all or none is changed. */
int ckt_redirect_write(const struct ckt_runtime *runtime, unsigned major,
	const struct ckt_redirect_entry *entries, unsigned count);
/* Tells the user that ckt_redirect_write failed. */
void ckt_redirect_say_refused(const struct ckt_loaded_object *object, int error);
/*
 * NVIDIA's own shared runtime, 12 or 13, by its exported names: a program may come with one and
 * open it by path.
 */
enum ckt_redirect_result ckt_redirect_shared(
	const struct ckt_loaded_object *object, const struct ckt_runtime *runtime);
/*
 * By the names in the file's .symtab or the exported ones; for releases that the table does not
 * know.
 */
enum ckt_redirect_result ckt_redirect_by_symbols(
	const struct ckt_loaded_object *object, const struct ckt_runtime *runtime);
