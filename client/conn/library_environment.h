/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the program's environment that libraries in the worker see; see
 * library_environment.c.
 */
#pragma once

/* Called before a library is used; only the first call sends.  The session is open.  Any thread. */
void ckt_conn_environment_send(void);
