/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a worker writes and the server reads, a file without a name.  Its size is sealed, so that
 * the worker cannot cut it off under the server.  Threading: any thread.
 */
#pragma once

#include <stddef.h>

/*
 * The descriptor, for the worker, or -errno.  ret_page: it is full of zeros, and mapped for reading; the
 * caller's, for munmap.  NULL: the server does not read it.
 */
int ckt_sealed_page_make(const char *name, size_t size_bytes, const void **ret_page);
