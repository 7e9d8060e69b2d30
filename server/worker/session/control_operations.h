/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on the control socket that take long: saving, releasing, and their progress.  Threading:
 * control threads.
 */
#pragma once

#include <stdint.h>

struct ckt_request;

/* SAVE, SAVE2, RELEASE, PROGRESS and others; -EPROTO for any other procedure. */
int ckt_operation_serve(struct ckt_request *request, uint32_t proc);
