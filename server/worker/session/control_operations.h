/*
 * Calls on the control socket that take long: saving, releasing, and how far they are.
 *
 * Threading: control threads.
 */
#pragma once

#include <stdint.h>

struct ckt_request;

/* SAVE, SAVE2, RELEASE, PROGRESS and the like; -EPROTO for a procedure that is none of these. */
int ckt_operation_serve(struct ckt_request *request, uint32_t proc);
