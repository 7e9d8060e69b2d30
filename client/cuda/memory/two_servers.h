/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between memory of two servers, or between memory of one server on a stream of another.
 * The servers do not communicate.  The calling thread waits for the stream, and the bytes pass
 * through this process.  So the copies keep the program's order, and an asynchronous copy has ended
 * when its call returns.
 */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

struct ckt_copy2d;
struct ckt_graph;

/*
 * Whether the copy involves two servers.  If so, ckt_client_copy_between makes it.  Precondition:
 * there are several servers.
 */
bool ckt_client_copy_is_between(const struct ckt_copy2d *copy);
CUresult ckt_client_copy_between(const struct ckt_copy2d *copy);
/*
 * Blocks the calling thread until an event of another server is done, before it puts more work on
 * the stream.  Precondition: the stream is resolved.
 */
CUresult ckt_wait_between(uint64_t stream, CUevent event);
/* Returns CUDA_ERROR_NOT_SUPPORTED, which is logged once: a graph belongs to one server. */
CUresult ckt_client_graph_between(void);
/*
 * Refuses a graph as above if its nodes belong to several servers.  Otherwise sets *context, the
 * context of the executable graph, to one at the nodes' server.
 */
CUresult ckt_client_graph_place(const struct ckt_graph *graph, uint64_t *context);
