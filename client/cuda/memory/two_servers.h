/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between memory, or memory and a stream, of different servers.  The servers know nothing of
 * each other: the calling thread waits for the stream, and bytes come through this process.  So the
 * order is the program's, and an asynchronous copy is done when it returns.
 */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

struct ckt_copy2d;
struct ckt_graph;

/*
 * Whether the copy is between servers; then ckt_client_copy_between makes it.  Precondition: there
 * are several servers.
 */
bool ckt_client_copy_is_between(const struct ckt_copy2d *copy);
CUresult ckt_client_copy_between(const struct ckt_copy2d *copy);
/*
 * Waits here for an event of another server before the stream continues.  Precondition: resolved.
 */
CUresult ckt_wait_between(uint64_t stream, CUevent event);
/* CUDA_ERROR_NOT_SUPPORTED, logged once: a graph belongs to one server. */
CUresult ckt_client_graph_between(void);
/*
 * The same if the graph's nodes belong to several; else *context, of its executable form, becomes
 * one at their server.
 */
CUresult ckt_client_graph_place(const struct ckt_graph *graph, uint64_t *context);
