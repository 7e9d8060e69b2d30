/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes descriptions of graphs; see rpc/graph.h. */
#pragma once

#include <cuda.h>

#include <stddef.h>
#include <stdint.h>

struct ckt_graph;
struct ckt_node;

size_t ckt_client_graph_wire_size(const struct ckt_graph *graph);
uint8_t *ckt_client_graph_wire_put(uint8_t *p, const struct ckt_graph *graph);
size_t ckt_client_node_wire_size(const struct ckt_node *node);
uint8_t *ckt_client_node_wire_put(uint8_t *p, const struct ckt_node *node);
/* Sends the graph's description.  The worker keeps it under the id. */
CUresult ckt_client_graph_send(const struct ckt_graph *graph, uint64_t id);
