/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when the library is loaded whether calls are recorded, and offers the recorder to
 * libcudart and the shims; see client/trace/trace.h.
 */
#include "cudacommon/interface.h"
#include "client/trace/recorder.h"

/* NULL: nothing is recorded. */
CKT_EXPORT const struct ckt_trace_table *ckt_trace_table;

__attribute__((constructor)) static void start(void)
{
	ckt_trace_start();
	ckt_trace_table = ckt_trace_get();
}
