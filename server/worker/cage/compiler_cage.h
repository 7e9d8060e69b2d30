/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cages of the process that compiles for workers, and of each of its compilations inside it:
 * the compiler's own files, one directory to write to, no sockets, no other processes.
 */
#pragma once

enum ckt_compiler_cage {
	/* starts compilations, ends them, and gives each the other cage */
	CKT_COMPILER_CAGE_OUTER,
	/* executes the compiler; may neither send signals nor leave its process group */
	CKT_COMPILER_CAGE_INNER
};

/*
 * directory: all that may be written to.  Precondition: one thread, no_new_privs.  In force for
 * good.  0, also where the host offers nothing; or -errno.
 */
int ckt_compiler_cage_enter(const char *directory, enum ckt_compiler_cage cage);
