/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic loader's cache, /etc/ld.so.cache: the paths of libraries that only ldconfig knows.
 * Read as untrusted bytes.  Threading: any thread.
 */
#pragma once

#include <stdbool.h>

/*
 * The path of the library for this machine's programs.  False if the cache has another format than
 * that of glibc 2.2 and later, or does not contain the library.
 */
bool ckt_ld_cache_find(
	const char *cache, const char *soname, char *ret_path, unsigned long path_size);
