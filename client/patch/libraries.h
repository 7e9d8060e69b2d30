/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries that have a shim: a library of ours beside libcricket-client.so with the genuine
 * one's SONAME, which forwards its calls (client/libs).  Says by the name under which a program
 * asks for a library which shim takes its place.
 *
 *	libcublas.so.13, libcublas.so, /x/nvidia/cu13/lib/libcublas.so.13.0.0.19, libcublas-1a2b3c4d.so.13   ->   DIRECTORY/libcublas.so.13
 *
 * What has no shim there, or stands in CRICKET_LIBRARIES, is left alone.  Threading:
 * ckt_patch_libraries_init before anything else; the rest from any thread.  No malloc before
 * ckt_patch_library_shim, so the start-up patcher can ask ckt_patch_library_path.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

/*
 * The shims lie beside the library that holds the address; links are not followed.  Reads
 * CRICKET_LIBRARIES and REMOTE_GPU_ADDRESS (local: forwards nothing).
 */
void ckt_patch_libraries_init(const void *address, char *const *environment);
/* The same with the directory, which is borrowed for good; NULL: there are no shims. */
void ckt_patch_libraries_init_in(const char *directory, char *const *environment);
/* Whether a library of that name can have a shim; asks no file and needs no init. */
bool ckt_patch_library_known(const char *name);
/*
 * The path of the shim for the name or path of a library, which stays valid; NULL where there is
 * none.  Keeps errno.
 */
const char *ckt_patch_library_shim(const char *name);
/* The same into the caller's memory; false where there is none. */
bool ckt_patch_library_path(const char *name, char ret_path[PATH_MAX]);
/*
 * The library was loaded under that name: "libcublas.so" without a version means the version that
 * was loaded last.
 */
void ckt_patch_library_loaded(const char *name);
/* What a function of the library returns that is not supported, by the library's SONAME. */
int ckt_patch_library_refusal(const char *soname);
