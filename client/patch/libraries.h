/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries that have a shim: a library of ours beside libcricket-client.so.  The shim has the
 * genuine library's SONAME and forwards its calls (client/libs).  This module maps the name by
 * which a program asks for a library to the path of its shim.
 *
 *	libcublas.so.13, libcublas.so, /x/nvidia/cu13/lib/libcublas.so.13.0.0.19, libcublas-1a2b3c4d.so.13   ->   DIRECTORY/libcublas.so.13
 *
 * A library without a shim there, or excluded by CRICKET_LIBRARIES, is not replaced.  Threading:
 * ckt_patch_libraries_init before anything else; the rest from any thread.  Before
 * ckt_patch_library_shim nothing calls malloc, so the start-up patcher can call
 * ckt_patch_library_path.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

/*
 * The shims are beside the library that contains the address; links are not followed.  Reads
 * CRICKET_LIBRARIES and REMOTE_GPU_ADDRESS (with local: nothing is forwarded).
 */
void ckt_patch_libraries_init(const void *address, char *const *environment);
/* The same with the directory, which must stay valid; NULL: there are no shims. */
void ckt_patch_libraries_init_in(const char *directory, char *const *environment);
/* Whether a library of that name can have a shim.  Reads no file and needs no init. */
bool ckt_patch_library_known(const char *name);
/*
 * The path of the shim for a library's name or path; NULL if there is none.  The path stays valid.
 * Keeps errno.
 */
const char *ckt_patch_library_shim(const char *name);
/* The same, into the caller's memory; false if there is no shim. */
bool ckt_patch_library_path(const char *name, char ret_path[PATH_MAX]);
/*
 * Records that the library was loaded under that name. "libcublas.so" without a version means the
 * version that was loaded last.
 */
void ckt_patch_library_loaded(const char *name);
/* The status that an unsupported function of this library returns. soname: the library's SONAME. */
int ckt_patch_library_refusal(const char *soname);
