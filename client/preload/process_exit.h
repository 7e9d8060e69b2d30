/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libcuda.so.1 does before the process ends without destructors, by _exit or _Exit.
 * quick_exit needs nothing here: it has functions of its own (at_quick_exit).
 */
#pragma once

/*
 * Set by libcuda.so.1 if it records calls; NULL: nothing to do.  The function may run in a signal
 * handler, and in a child of vfork, where it must do nothing.
 */
extern void (*_Atomic cricket_at_exit)(void);
