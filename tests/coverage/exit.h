/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before every file of a coverage build (./run coverage). A process that ends by _exit()
 * skips the destructor that writes its counters, so they are written here first: those of the
 * program or library that calls _exit(), because each has counters of its own. Workers and forked
 * children end so.
 */
#pragma once
#ifndef __ASSEMBLER__

/*
 * Headers of the C library are left to the file: some files choose their form first.  Hidden:
 * otherwise a library takes this function from another one that it is linked with, and is not
 * loaded where a library of that name without it stands in.  The counters would be wrong, too.
 */
extern void __gcov_dump(void) __attribute__((visibility("hidden")));
extern void ckt_coverage_real_exit(int status) __asm__("_exit") __attribute__((noreturn));
void ckt_coverage_exit(int status) __attribute__((weak, visibility("hidden"), noreturn));

/* <unistd.h> declares it once more, by the macro. */
void ckt_coverage_exit(int status)
{
	__gcov_dump();
	ckt_coverage_real_exit(status);
}

#define _exit(status) ckt_coverage_exit(status)

#endif
