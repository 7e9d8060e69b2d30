/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code that a library of the soft GPU loads into the driver; see code.c.  Any thread may call
 * these functions.
 */
#pragma once

/* Call at the first use of the library: an eager driver then loads all its code. */
void ckt_softlib_code_begin(void);
/*
 * Call before work that `run` does is put on a stream of the current context.  A lazy driver then
 * loads the kernel for it, the first time.
 */
void ckt_softlib_code_use(void (*run)(const void *data));
