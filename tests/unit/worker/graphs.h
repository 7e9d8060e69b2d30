/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of graphs given to the worker inside the test. */
#pragma once

#include "server/worker/graph/graph.h"
#include "tests/unit/worker/graph_bytes.h"
#include "tests/unit/worker/inside.h"

/*
 * Sends the description as the graph and instantiates it: INSIDE's result, or the status that came
 * with it.
 */
static inline int graph_instantiate(struct description *d, uint64_t graph, uint64_t exec)
{
	struct ckt_graph_instantiate_res res = {.status = 999};
	uint32_t size = graph_end(d);
	int sent = INSIDE(
		graph_data, true, .graph = graph, .total = size, .data = d->bytes, .data_len = size)
			   ->result;
	if (sent)
		return sent;
	struct inside_reply *reply = INSIDE(graph_instantiate, false, .exec = exec, .graph = graph);
	if (reply->result)
		return reply->result;
	YES(ckt_graph_instantiate_res_get(&reply->results, &res));
	return (int)res.status;
}
