/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the libraries that would be loaded with a library if it were opened now.  The walk visits
 * the names in its NEEDED list, and in the lists of the libraries found for them, except loaded
 * ones.  It searches like the loader (run paths, LD_LIBRARY_PATH, /etc/ld.so.cache, the system's
 * directories).  If a library is not found, the walk continues without that library's needs.
 *
 * Threading: any thread, without the loader's lock.  Opens no library and keeps no state.
 */
#pragma once

#include <link.h>
#include <stdbool.h>

/* True if the name is handled, so that the walk skips the needs of that library. */
typedef bool ckt_needed_visit(const char *soname, void *opaque);

/*
 * `name` as for dlopen.  `caller` is the calling library; NULL if unknown: its run path is not
 * searched.
 */
void ckt_needed_walk(
	const char *name, const struct link_map *caller, ckt_needed_visit *visit, void *opaque);
/* Whether a library of that file name is loaded. */
bool ckt_needed_is_loaded(const char *soname);
