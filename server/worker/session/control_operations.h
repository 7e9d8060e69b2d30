/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on the control socket that take long: saving, releasing, and their progress.  Threading:
 * control threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ckt_request;
struct ckt_worker;

/* SAVE, SAVE2, RELEASE, PROGRESS and others; -EPROTO for any other procedure. */
int ckt_operation_serve(struct ckt_request *request, uint32_t proc);
/*
 * The executor's, frozen: a command of the client's has come.  Brings the session in if it is
 * swapped and the server grants the memory.  False: not now.
 */
bool ckt_operation_come_in(struct ckt_worker *worker);
