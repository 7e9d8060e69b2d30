/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables behind code.h: the known code, its uses, and its present handles.  A library loads
 * thousands of each, so hash tables find them, and the session pays for their bytes.  Threading:
 * the caller holds ckt_code_lock or is alone (a restore, or a frozen session).
 */
#pragma once

#include "server/worker/libs/code/code.h"

void ckt_code_lock(void);
void ckt_code_unlock(void);

struct ckt_code {
	char file[256]; /* "": the contents are identified by their hash */
	uint64_t offset, size;
	uint8_t hash[32];
	uint8_t *bytes; /* contents that are not among the session's blobs yet */
	bool kept;      /* the contents are among the session's blobs */
	bool preserved; /* the driver was told that the bytes stay */
	/*
	 * loaded with options that a restore cannot repeat: code that is loaded ahead only keeps
	 * its place
	 */
	bool own;
	CUlibrary ahead;   /* loaded by a restore */
	bool handed;       /* the library has got the one loaded ahead */
	CUlibrary library; /* the latest one loaded from the code; NULL: none, or it was unloaded */
	uint32_t loads;    /* libraries loaded from the code now */
	uint32_t next;     /* the next index of the same key, plus 1; 0: none */
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

/* Finds or adds the place's code.  False: no memory. */
bool ckt_code_add(const struct ckt_code_place *place, bool preserved, bool own, uint32_t *ret_code);
/* The same for code that an image describes. */
bool ckt_code_add_known(const struct ckt_code *code, uint32_t *ret_code);
uint32_t ckt_code_count(void);
struct ckt_code *ckt_code_entry(uint32_t code);
/*
 * The library that a restore loaded from the code, for the library that asks now, once.  NULL if
 * there is none, or if it differs.
 */
CUlibrary ckt_code_take_ahead(uint32_t code);

/* Finds or adds the use: repeated loading and unloading counts once.  False: no memory. */
bool ckt_code_use_add(
	enum ckt_code_use_kind kind, uint32_t code, const char *symbol, uint32_t *ret_use);
uint32_t ckt_code_use_count(void);
const struct ckt_code_use *ckt_code_use_at(uint32_t use);

bool ckt_code_library_add(CUlibrary library, uint32_t code);
bool ckt_code_library_find(CUlibrary library, uint32_t *ret_code);
/* A library that was loaded from the code. */
bool ckt_code_library_of(uint32_t code, CUlibrary *ret_library);
/* Drops the library with its kernels. *ret_used: something of the library was touched. */
bool ckt_code_library_drop(CUlibrary library, uint32_t *ret_code, bool *ret_used);

/* Does nothing for an unknown library. */
void ckt_code_kernel_add(CUkernel kernel, CUlibrary library, const char *name);
const struct ckt_code_kernel *ckt_code_kernel_find(const void *handle);

/* A module of the context.  ahead: for a library that will ask for the module later. */
bool ckt_code_module_add(CUmodule module, CUcontext context, uint32_t code);
bool ckt_code_ahead_module_add(uint32_t code, CUcontext context, CUmodule module);
CUmodule ckt_code_take_ahead_module(uint32_t code, CUcontext context);
bool ckt_code_module_drop(CUmodule module, uint32_t *ret_code);

/* Places that all look-ups probed; for tests. */
uint64_t ckt_code_looks(void);

/* Whether a handle was used in a context. */
bool ckt_code_touched(CUcontext context, const void *handle);
void ckt_code_touch(CUcontext context, const void *handle, CUlibrary library);
