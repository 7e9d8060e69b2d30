/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables behind code.h: which code exists, what was used of it, and its present handles.  A
 * library loads thousands of each, so tables find them, and their bytes are charged to the session.
 * Threading: the caller holds ckt_code_lock, or is alone (a restore, or a frozen session).
 */
#pragma once

#include "server/worker/libs/code/code.h"

void ckt_code_lock(void);
void ckt_code_unlock(void);

struct ckt_code {
	char file[256]; /* "": contents by their hash */
	uint64_t offset, size;
	uint8_t hash[32];
	uint8_t *bytes; /* of contents that are not among the session's blobs yet */
	bool kept;      /* they are */
	bool preserved; /* the driver was told that the bytes stay */
	/*
	 * came with options that a restore cannot give again: code that is loaded ahead only keeps
	 * its place
	 */
	bool own;
	CUlibrary ahead;   /* loaded by a restore */
	bool handed;       /* and was given to the library */
	CUlibrary library; /* the latest that was loaded from it; NULL: none, or it is gone */
	uint32_t loads;    /* that are there now */
	uint32_t next;     /* the next one of the same key, and 1; 0: none */
};
struct ckt_code_use {
	enum ckt_code_use_kind kind;
	uint32_t code;
	char *symbol;
};
struct ckt_code_kernel {
	CUkernel kernel;
	CUlibrary library;
	uint32_t code;
	char *name;
};

/* The place's code, new or not; false: no memory. */
bool ckt_code_add(const struct ckt_code_place *place, bool preserved, bool own, uint32_t *ret_code);
/* The same by what an image says. */
bool ckt_code_add_known(const struct ckt_code *code, uint32_t *ret_code);
uint32_t ckt_code_count(void);
struct ckt_code *ckt_code_entry(uint32_t code);
/*
 * What a restore has loaded of it, for the library that asks now, once; NULL if there is none, or
 * it differs.
 */
CUlibrary ckt_code_take_ahead(uint32_t code);

/* The use, new or not: repeated loading and unloading counts as one.  False: no memory. */
bool ckt_code_use_add(
	enum ckt_code_use_kind kind, uint32_t code, const char *symbol, uint32_t *ret_use);
uint32_t ckt_code_use_count(void);
const struct ckt_code_use *ckt_code_use_at(uint32_t use);

bool ckt_code_library_add(CUlibrary library, uint32_t code);
bool ckt_code_library_find(CUlibrary library, uint32_t *ret_code);
/* A library that was loaded from it. */
bool ckt_code_library_of(uint32_t code, CUlibrary *ret_library);
/* With its kernels; used: something of it was touched. */
bool ckt_code_library_drop(CUlibrary library, uint32_t *ret_code, bool *ret_used);

/* Does nothing for an unknown library. */
void ckt_code_kernel_add(CUkernel kernel, CUlibrary library, const char *name);
const struct ckt_code_kernel *ckt_code_kernel_find(const void *handle);

/* A module of the context; ahead: for a library that will ask for it. */
bool ckt_code_module_add(CUmodule module, CUcontext context, uint32_t code);
bool ckt_code_ahead_module_add(uint32_t code, CUcontext context, CUmodule module);
CUmodule ckt_code_take_ahead_module(uint32_t code, CUcontext context);
bool ckt_code_module_drop(CUmodule module, uint32_t *ret_code);

/* Places that all look-ups probed; for tests. */
uint64_t ckt_code_looks(void);

/* What was used in a context, by its handle there. */
bool ckt_code_touched(CUcontext context, const void *handle);
void ckt_code_touch(CUcontext context, const void *handle, CUlibrary library);
