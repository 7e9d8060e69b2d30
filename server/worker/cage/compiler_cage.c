/* SPDX-License-Identifier: Apache-2.0 */
/* The cages of compilations; see compiler_cage.h. */
#include "server/worker/cage/compiler_cage.h"

#include <errno.h>

#include "server/worker/cage/cage_paths.h"
#include "server/worker/cage/landlock.h"
#include "server/worker/cage/syscall_filter.h"

int ckt_compiler_cage_enter(const char *directory, enum ckt_compiler_cage cage)
{
	struct ckt_landlock landlock;
	int result = ckt_landlock_begin(&landlock, false);
	if (result)
		return result;
	result = ckt_cage_paths_allow_compiler(&landlock, directory);
	/* It removes its directory when it ends. */
	if (!result && cage == CKT_COMPILER_CAGE_OUTER)
		result = ckt_landlock_allow(&landlock, "/tmp", CKT_LANDLOCK_CLEAR);
	if (!result)
		result = ckt_landlock_enter(&landlock);
	ckt_landlock_drop(&landlock);
	if (!result)
		result = ckt_syscall_filter_enter_compiler(cage == CKT_COMPILER_CAGE_INNER);
	return result == -EOPNOTSUPP ? 0 : result;
}
