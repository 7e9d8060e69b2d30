/* SPDX-License-Identifier: Apache-2.0 */
/* The client's memory in graphs: transfers around a launch and around host nodes. */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

struct ckt_exec;
struct ckt_graph;

bool ckt_client_graph_has_host_memory(const struct ckt_graph *graph);
unsigned ckt_client_graph_host_nodes(const struct ckt_graph *graph);
/* Called before and after a launch.  Precondition: not locked. */
CUresult ckt_client_exec_send_memory(struct ckt_exec *exec, uint64_t stream);
CUresult ckt_client_exec_fetch_memory(struct ckt_exec *exec, uint64_t stream);
/* Called before and after a host node's function.  Precondition: not locked. */
void ckt_client_exec_before_host(
	uint64_t exec, uint64_t node, CUhostFn *ret_function, void **ret_data);
void ckt_client_exec_after_host(uint64_t exec, uint64_t node);
