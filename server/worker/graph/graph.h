/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs in the worker: descriptions (rpc/graph.h) as trees, the driver's graphs made from them,
 * and the buffers that replace the client's host memory.  Threading: the executor alone (or whoever
 * has frozen it), but for the bytes of segments, which the GPU and host functions of the driver
 * touch in stream order.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/wire.h"

struct ckt_worker;
struct ckt_worker_graph;
struct ckt_object;

/* One node of a description. */
struct ckt_worker_graph_node {
	uint64_t id;   /* the client's */
	uint32_t type; /* CUgraphNodeType */
	bool disabled;
	uint64_t context;
	/* owned; of a child graph: NULL, of a conditional node: what stands before the bodies */
	uint8_t *record;
	uint32_t record_bytes;
	struct ckt_worker_graph **graphs; /* owned: the child graph, or the bodies */
	uint32_t graph_count;
	CUgraphNode real;
	/*
	 * Of a host node: for the callback.  If the node only updates another one, the other one is
	 * called.
	 */
	uint64_t exec;
	struct ckt_worker_graph_node *updates;
};

struct ckt_worker_graph_edge {
	uint32_t from, to;
	uint32_t data;
};

struct ckt_worker_graph {
	struct ckt_worker_graph_node *nodes;
	struct ckt_worker_graph_edge *edges;
	uint32_t node_count, edge_count;
	CUgraph real;     /* NULL before it is made, and in child graphs afterwards */
	uint64_t charged; /* of the host's memory, for all that is in it */
};

/* Replaces a range of the client's memory. */
struct ckt_worker_graph_segment {
	uint64_t address, size; /* the client's */
	uint8_t *data;          /* mmap'd and registered with the driver */
	bool registered;
};

struct ckt_worker_graph_segments {
	struct ckt_worker_graph_segment *list;
	size_t count;
};

/* The driver's handles of conditions for the client's. */
struct ckt_worker_graph_conditions {
	struct ckt_worker_graph_condition {
		uint64_t handle;
		CUgraphConditionalHandle real;
	} * list;
	size_t count;
};

/* An executable graph: hangs in its object. */
struct ckt_worker_graph_exec {
	/* the description that made it, kept up to date with the parameters set since */
	struct ckt_worker_graph *graph;
	uint64_t flags;
	CUgraphExec real;
	struct ckt_worker_graph_segments segments;
	struct ckt_worker_graph_conditions conditions;
	/*
	 * Events after its latest work on each stream; none for a graph that uses nothing of the
	 * worker's.
	 */
	struct ckt_worker_graph_use {
		uint64_t context, stream;
		CUevent event;
	} * uses;
	size_t use_count;
	bool has_host_nodes;
	unsigned device;
	uint64_t device_bytes; /* charged for its nodes */
	bool immortal;         /* no event tells when some of its work ends */
};

/* A description being sent: hangs in its object. */
struct ckt_worker_graph_data {
	uint8_t *data;
	uint64_t total, received;
};

/* ---- graph_tree.c */
/* NULL if the bytes are not a description (errno 0), or if there is no memory for it (ENOMEM). */
struct ckt_worker_graph *ckt_worker_graph_decode(const uint8_t *data, size_t size);
/* One node at the cursor; false if there is none.  The caller owns what it points to. */
bool ckt_worker_graph_node_decode(
	struct ckt_cursor *c, unsigned depth, struct ckt_worker_graph_node *ret_node);
void ckt_worker_graph_node_fini(struct ckt_worker_graph_node *node);
/* Also destroys the driver's. */
void ckt_worker_graph_free(struct ckt_worker_graph *graph);
/*
 * Charges the graph's present memory here and in the driver; false if it does not fit, and the
 * charge stays.
 */
bool ckt_worker_graph_charge(struct ckt_worker_graph *graph);
size_t ckt_worker_graph_encoded_size(const struct ckt_worker_graph *graph);
uint8_t *ckt_worker_graph_encode(uint8_t *p, const struct ckt_worker_graph *graph);
/* Calls for every node, those of child graphs and bodies too, until visit returns an error. */
CUresult ckt_worker_graph_each(struct ckt_worker_graph *graph,
	CUresult (*visit)(struct ckt_worker_graph_node *node, void *data), void *data);
struct ckt_worker_graph_node *ckt_worker_graph_find(struct ckt_worker_graph *graph, uint64_t id);

/* ---- graph_memory.c */
/* Makes segments for the host memory that the graph's nodes touch and that no segment holds yet. */
CUresult ckt_worker_graph_segments_cover(
	struct ckt_worker_graph_segments *segments, struct ckt_worker_graph *graph);
/* The worker's address of size bytes at the client's address; NULL if no segment holds them all. */
uint8_t *ckt_worker_graph_segments_find(
	const struct ckt_worker_graph_segments *segments, uint64_t address, uint64_t size);
/* Precondition: nothing uses them any more. */
void ckt_worker_graph_segments_fini(struct ckt_worker_graph_segments *segments);

/* ---- graph_build.c: the driver's graphs */
struct ckt_worker_graph_build {
	struct ckt_worker *worker;
	struct ckt_worker_graph_segments *segments;
	struct ckt_worker_graph_conditions *conditions;
	uint64_t exec;
};

/* Fills graph->real and the nodes' real handles. */
CUresult ckt_worker_graph_make(
	const struct ckt_worker_graph_build *build, struct ckt_worker_graph *graph);
/* Sets the node's parameters in the executable graph to what its record says now. */
CUresult ckt_worker_graph_node_apply(const struct ckt_worker_graph_build *build, CUgraphExec exec,
	struct ckt_worker_graph_node *node);

/* ---- graph_condition.c */
/*
 * The driver's handles for those that were made for a graph whose driver's graph is `real`,
 * including nodes in nested graphs.
 */
CUresult ckt_worker_graph_conditions_make(const struct ckt_worker_graph_build *build, CUgraph real,
	const struct ckt_worker_graph *graph);
/* Replaces the client's handles by the driver's. */
void ckt_worker_graph_conditions_replace(
	const struct ckt_worker_graph_conditions *conditions, uint8_t *params, size_t size);
/* Precondition: the node's handle was made.  The driver's graphs of the bodies are still empty. */
CUresult ckt_worker_graph_conditional_add(const struct ckt_worker_graph_build *build, CUgraph graph,
	struct ckt_worker_graph_node *node);
/* Also makes the handles of an update known from now on; the update's list becomes empty. */
CUresult ckt_worker_graph_conditions_take(
	struct ckt_worker_graph_conditions *conditions, struct ckt_worker_graph_conditions *from);
void ckt_worker_graph_conditions_fini(struct ckt_worker_graph_conditions *conditions);

/* ---- graph_life.c */
/*
 * Before work that uses the graph goes on the stream: the event to record after it; NULL if none is
 * needed.
 */
CUresult ckt_worker_graph_use_begin(struct ckt_worker *worker, struct ckt_worker_graph_exec *exec,
	uint64_t stream, CUevent *ret_event);
/* Behind it. */
CUresult ckt_worker_graph_use_end(
	struct ckt_worker_graph_exec *exec, CUevent event, CUstream stream);
/* Makes the stream wait until other streams' work with the graph is done. */
CUresult ckt_worker_graph_use_wait(struct ckt_worker *worker,
	const struct ckt_worker_graph_exec *exec, uint64_t stream_id, CUstream stream);
/* Destroys it, now or when the GPU has finished with it; takes over the memory, too. */
void ckt_worker_graph_exec_drop(struct ckt_worker *worker, struct ckt_worker_graph_exec *exec);
/* Frees graphs with which the GPU has finished. */
void ckt_worker_graph_life_poll(struct ckt_worker *worker);
/* The context is about to be destroyed, and idle. */
void ckt_worker_graph_forget_context(struct ckt_worker *worker, uint64_t context);

/* ---- graph.c */
/* The last step of a restore: makes the executable graph from its description. */
CUresult ckt_worker_graph_exec_make(struct ckt_worker *worker, uint64_t id, uint64_t context,
	uint64_t flags, const uint8_t *data, size_t size, struct ckt_object **ret_object);
CUresult ckt_worker_graph_data_make(
	struct ckt_worker *worker, uint64_t id, uint64_t total, struct ckt_object **ret_object);
/* Frees what hangs in an object of either kind; the object stays. */
void ckt_worker_graph_object_fini(struct ckt_worker *worker, struct ckt_object *object);
