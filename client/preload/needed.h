/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a library would bring along if it were opened now: the names in its NEEDED list, and in
 * those of what is found for them, as far as they are not loaded.  Looks where the loader would
 * (run paths, LD_LIBRARY_PATH, /etc/ld.so.cache, the system's directories).  A library that is not
 * found here ends the walk there and nothing else.
 *
 * Threading: any thread, without the loader's lock.  Nothing is opened, nothing is kept.
 */
#pragma once

#include <link.h>
#include <stdbool.h>

/* True when the name is settled, so that what it would bring along does not matter. */
typedef bool ckt_needed_visit(const char *soname, void *opaque);

/*
 * `name` as dlopen gets it, `caller` the library that calls it (NULL: not known, which leaves out
 * its run path).
 */
void ckt_needed_walk(
	const char *name, const struct link_map *caller, ckt_needed_visit *visit, void *opaque);
/* Whether a library of that file name is loaded. */
bool ckt_needed_is_loaded(const char *soname);
