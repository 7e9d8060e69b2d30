/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when the library is loaded whether calls are recorded, and offers the recorder to
 * libcudart and the shims; see client/trace/trace.h.
 */
#include "cudacommon/interface.h"
#include "client/preload/process_exit.h"
#include "client/trace/recorder.h"

#pragma weak cricket_at_exit

/* NULL: nothing is recorded. */
CKT_EXPORT const struct ckt_trace_table *ckt_trace_table;

__attribute__((constructor)) static void start(void)
{
	ckt_trace_start();
	ckt_trace_table = ckt_trace_get();
	/* Without the preloaded library, nothing replaces _exit. */
	if (ckt_trace_table && &cricket_at_exit)
		cricket_at_exit = ckt_trace_end_now;
}
