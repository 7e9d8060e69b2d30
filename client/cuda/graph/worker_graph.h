/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the client derives from graphs: descriptions for the worker, and the copies of host memory
 * around a launch.
 */
#pragma once

#include "client/cuda/internal.h"
#include "cudacommon/graph.h"

struct ckt_client_exec {
	struct ckt_exec exec;
	bool has_host_memory; /* copies from or to the client's memory */
	unsigned host_nodes;
};

/* ---- graph_wire.c */
size_t ckt_client_graph_wire_size(const struct ckt_graph *graph);
uint8_t *ckt_client_graph_wire_put(uint8_t *p, const struct ckt_graph *graph);
size_t ckt_client_node_wire_size(const struct ckt_node *node);
uint8_t *ckt_client_node_wire_put(uint8_t *p, const struct ckt_node *node);
/* Sends the description under the id. */
CUresult ckt_client_graph_send(const struct ckt_graph *graph, uint64_t id);

/* ---- graph_host.c: the client's memory in graphs */
bool ckt_client_graph_has_host_memory(const struct ckt_graph *graph);
unsigned ckt_client_graph_host_nodes(const struct ckt_graph *graph);
/* Not locked: before and after a launch. */
CUresult ckt_client_exec_send_memory(struct ckt_exec *exec, uint64_t stream);
CUresult ckt_client_exec_fetch_memory(struct ckt_exec *exec, uint64_t stream);
/* Not locked: around a host node's function. */
void ckt_client_exec_before_host(
	uint64_t exec, uint64_t node, CUhostFn *ret_function, void **ret_data);
void ckt_client_exec_after_host(uint64_t exec, uint64_t node);

/* ---- memop.c */
size_t ckt_client_memop_wire_size(unsigned count);
uint8_t *ckt_client_memop_wire_put(uint8_t *p, const CUstreamBatchMemOpParams *ops, unsigned count);
