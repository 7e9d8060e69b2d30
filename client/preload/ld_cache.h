/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic loader's cache, /etc/ld.so.cache: where a library lies that only ldconfig knows.
 * Read as untrusted bytes.  Any thread.
 */
#pragma once

#include <stdbool.h>

/*
 * The path of the library for this machine's programs; false where the file is not as glibc 2.2 and
 * later write it, or has none.
 */
bool ckt_ld_cache_find(
	const char *cache, const char *soname, char *ret_path, unsigned long path_size);
