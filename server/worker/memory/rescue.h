/* SPDX-License-Identifier: Apache-2.0 */
/* What memory holds after a device fault, for the program's touch of managed memory. */
#pragma once

/*
 * Forks the helper process, which waits outside of the worker's cage until it is needed.
 * Precondition: one thread; the cage is not entered yet.  0 or -errno.
 */
int ckt_rescue_fork(const char *driver);
/* The driver that the helper process is to open, too.  Precondition: before the first command. */
void ckt_rescue_init(const char *driver);
/* main() of the helper process. */
int ckt_rescue_main(const char *driver);
