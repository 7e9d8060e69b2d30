/* SPDX-License-Identifier: Apache-2.0 */
/* The code that a library of the soft GPU loads into the driver; see code.c.  From any thread. */
#pragma once

/* The library is used for the first time: an eager driver loads all its code now. */
void ckt_softlib_code_begin(void);
/*
 * Work of that kind goes on a stream of the current context: a lazy driver loads its kernel the
 * first time.
 */
void ckt_softlib_code_use(void (*run)(const void *data));
