/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the GPU did, in the file of CRICKET_TRACE: a process for each server, a track for each
 * stream.  The records come from the worker (client/conn/gpu_trace.c); their text is written at
 * once, so there is no ring that could be full.  Threads: any, one at a time for each server.
 */
#pragma once

#include <stdint.h>

#include "client/trace/trace.h"

enum {
	/* Tracks of a server; streams beyond share the last one. */
	CKT_TRACE_GPU_STREAMS = 256,
	CKT_TRACE_GPU_SERVERS = 8,
	/* Above every process's ID of the kernel (PID_MAX_LIMIT). */
	CKT_TRACE_GPU_PID = 1 << 23,
};

struct ckt_trace_gpu {
	const char *name;               /* of the worker's procedure */
	const char *kernel;             /* empty: no launch */
	uint64_t start_ns, duration_ns; /* of this host's monotonic clock */
	uint64_t stream, bytes;
	uint32_t grid[3], block[3];
};

/* The server's name for viewers; once, before its first record. */
void ckt_trace_gpu_server(unsigned server, const char *name);
void ckt_trace_gpu_put(unsigned server, const struct ckt_trace_gpu *record);
/* So many records of that server were lost. */
void ckt_trace_gpu_dropped(unsigned server, uint64_t records);
