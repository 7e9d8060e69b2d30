/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redirects a static copy of the CUDA runtime inside a loaded object to our libcudart.so.13.
 *
 *	the object's text			    our libcudart.so.13
 *	cudaMalloc:  movabs $target, %rax  --------> cudaMalloc
 *		     jmp *%rax
 *
 * Threading: callers run inside the dynamic loader before the object's constructors, so no thread
 * executes the changed text.  Errors: one line on stderr for each object.  The program continues,
 * and its CUDA calls then fail cleanly, because our libcuda.so.1 gives the genuine runtime no
 * undocumented driver tables.
 */
#pragma once

#include "client/patch/loaded_object.h"

/* Our libcudart.so.13, if it is among the loaded objects. */
struct ckt_runtime {
	struct ckt_loaded_object object;
	struct ckt_dynamic dynamic;
	bool found;
};

enum ckt_redirect_result {
	CKT_REDIRECT_NONE, /* no static runtime inside */
	CKT_REDIRECT_DONE,
	CKT_REDIRECT_UNKNOWN, /* an unknown release; logged */
	CKT_REDIRECT_REFUSED, /* the system does not allow changes of the text; logged */
};

/* True if the object is our libcudart.so.13 and not NVIDIA's, which has the same SONAME. */
bool ckt_patch_runtime_recognise(
	struct ckt_runtime *runtime, const struct ckt_loaded_object *object);
/*
 * A cheap test of the program headers: a static runtime always has a page of thread-local data,
 * aligned to a page.
 */
bool ckt_redirect_suspect(const struct ckt_loaded_object *object);
/* Precondition: ckt_redirect_suspect(object).  If runtime was not found, this changes nothing. */
enum ckt_redirect_result ckt_redirect_object(
	const struct ckt_loaded_object *object, const struct ckt_runtime *runtime);
/*
 * The function that replaces `name` in a program compiled for CUDA `major`; never NULL, see
 * compat.c.
 */
void *ckt_redirect_target(
	const struct ckt_runtime *runtime, unsigned major, const char *name, unsigned name_index);
struct ckt_redirect_entry {
	uintptr_t address;
	unsigned name; /* index into ckt_static_names */
};
/* Overwrites all entries or none; 0 or -errno. */
int ckt_redirect_write(const struct ckt_runtime *runtime, unsigned major,
	const struct ckt_redirect_entry *entries, unsigned count);
/* Tells the user that ckt_redirect_write failed. */
void ckt_redirect_say_refused(const struct ckt_loaded_object *object, int error);
/*
 * Redirects NVIDIA's own shared runtime, 12 or 13, by its exported names: a program may include one
 * and open it by path.
 */
enum ckt_redirect_result ckt_redirect_shared(
	const struct ckt_loaded_object *object, const struct ckt_runtime *runtime);
/*
 * Redirects by the names in the file's .symtab or by the exported names, for releases that are not
 * in the table.
 */
enum ckt_redirect_result ckt_redirect_by_symbols(
	const struct ckt_loaded_object *object, const struct ckt_runtime *runtime);
