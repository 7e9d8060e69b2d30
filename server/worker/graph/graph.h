/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs in the worker: descriptions (rpc/graph.h) as trees, the driver's graphs made from them,
 * and the buffers that replace the client's host memory.  Threading: the executor, or the thread
 * that has frozen it; only the bytes of segments are also touched by the GPU and the driver's host
 * functions, in stream order.
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
	/* owned.  Child graph: NULL; conditional node: the part before the bodies */
	uint8_t *record;
	uint32_t record_bytes;
	struct ckt_worker_graph **graphs; /* owned: the child graph, or the bodies */
	uint32_t graph_count;
	CUgraphNode real;
	/*
	 * For the callback of a host node.  If the node only updates another one, the callback is
	 * the other node's.
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
	CUgraph real;     /* NULL before it is made; in child graphs also afterwards */
	uint64_t charged; /* host memory of everything in the graph */
};

/* Replaces a range of the client's memory. */
struct ckt_worker_graph_segment {
	uint64_t address, size; /* in the client */
	uint8_t *data;          /* mapped with mmap and registered with the driver */
	bool registered;
};

struct ckt_worker_graph_segments {
	struct ckt_worker_graph_segment *list;
	size_t count;
};

/* Maps the client's handles of conditions to the driver's. */
struct ckt_worker_graph_conditions {
	struct ckt_worker_graph_condition {
		uint64_t handle;
		CUgraphConditionalHandle real;
	} * list;
	size_t count;
};

/* An executable graph; its object points to it. */
struct ckt_worker_graph_exec {
	/* its description, updated by every later change of parameters */
	struct ckt_worker_graph *graph;
	uint64_t flags;
	CUgraphExec real;
	struct ckt_worker_graph_segments segments;
	struct ckt_worker_graph_conditions conditions;
	/*
	 * One event per stream, after the graph's latest work there; none for a graph that uses no
	 * memory of the worker.
	 */
	struct ckt_worker_graph_use {
		uint64_t context, stream;
		CUevent event;
	} * uses;
	size_t use_count;
	bool has_host_nodes;
	unsigned device;
	uint64_t device_bytes; /* charged for the graph's nodes */
	bool immortal;         /* no event reports the end of some of its work */
};

/* A description that is being received; its object points to it. */
struct ckt_worker_graph_data {
	uint8_t *data;
	uint64_t total, received;
};

/* ---- graph_tree.c */
/* NULL with errno 0 if the bytes are not a description, with ENOMEM if there is no memory. */
struct ckt_worker_graph *ckt_worker_graph_decode(const uint8_t *data, size_t size);
/*
 * Decodes the node at the cursor; false if there is none.  The caller owns what the node points to.
 */
bool ckt_worker_graph_node_decode(
	struct ckt_cursor *c, unsigned depth, struct ckt_worker_graph_node *ret_node);
void ckt_worker_graph_node_fini(struct ckt_worker_graph_node *node);
/* Also destroys the driver's graph. */
void ckt_worker_graph_free(struct ckt_worker_graph *graph);
/*
 * Charges the graph's present memory in the worker and the driver.  If it does not fit, returns
 * false and leaves the charge as it was.
 */
bool ckt_worker_graph_charge(struct ckt_worker_graph *graph);
size_t ckt_worker_graph_encoded_size(const struct ckt_worker_graph *graph);
uint8_t *ckt_worker_graph_encode(uint8_t *p, const struct ckt_worker_graph *graph);
/* Visits every node, including those of child graphs and bodies, until visit returns an error. */
CUresult ckt_worker_graph_each(struct ckt_worker_graph *graph,
	CUresult (*visit)(struct ckt_worker_graph_node *node, void *data), void *data);
struct ckt_worker_graph_node *ckt_worker_graph_find(struct ckt_worker_graph *graph, uint64_t id);

/* ---- graph_memory.c */
/* Makes segments for host memory that the graph's nodes touch and that no segment covers yet. */
CUresult ckt_worker_graph_segments_cover(
	struct ckt_worker_graph_segments *segments, struct ckt_worker_graph *graph);
/*
 * The worker's address for `size` bytes at the client's address; NULL if no segment covers them
 * all.
 */
uint8_t *ckt_worker_graph_segments_find(
	const struct ckt_worker_graph_segments *segments, uint64_t address, uint64_t size);
/* Precondition: nothing uses the segments any more. */
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
/* Sets the node's parameters in the executable graph to those of its present record. */
CUresult ckt_worker_graph_node_apply(const struct ckt_worker_graph_build *build, CUgraphExec exec,
	struct ckt_worker_graph_node *node);

/* ---- graph_condition.c */
/*
 * Makes the driver's handles for all conditions of the graph, including nodes in nested graphs.
 * real: the driver's graph.
 */
CUresult ckt_worker_graph_conditions_make(const struct ckt_worker_graph_build *build, CUgraph real,
	const struct ckt_worker_graph *graph);
/* Replaces the client's handles by the driver's. */
void ckt_worker_graph_conditions_replace(
	const struct ckt_worker_graph_conditions *conditions, uint8_t *params, size_t size);
/*
 * Precondition: the node's handle was made.  Afterwards the driver's graphs of the bodies are
 * empty.
 */
CUresult ckt_worker_graph_conditional_add(const struct ckt_worker_graph_build *build, CUgraph graph,
	struct ckt_worker_graph_node *node);
/* Adds the handles of an update to the known ones; the update's list becomes empty. */
CUresult ckt_worker_graph_conditions_take(
	struct ckt_worker_graph_conditions *conditions, struct ckt_worker_graph_conditions *from);
void ckt_worker_graph_conditions_fini(struct ckt_worker_graph_conditions *conditions);

/* ---- graph_life.c */
/*
 * Call before work that uses the graph goes on the stream. *ret_event: record this event after the
 * work; NULL if none is needed.
 */
CUresult ckt_worker_graph_use_begin(struct ckt_worker *worker, struct ckt_worker_graph_exec *exec,
	uint64_t stream, CUevent *ret_event);
/* Call after the work. */
CUresult ckt_worker_graph_use_end(
	struct ckt_worker_graph_exec *exec, CUevent event, CUstream stream);
/* Makes the stream wait until other streams' work with the graph is done. */
CUresult ckt_worker_graph_use_wait(struct ckt_worker *worker,
	const struct ckt_worker_graph_exec *exec, uint64_t stream_id, CUstream stream);
/* Destroys the graph now, or when the GPU has finished with it; takes over the struct. */
void ckt_worker_graph_exec_drop(struct ckt_worker *worker, struct ckt_worker_graph_exec *exec);
/* Frees graphs that the GPU has finished with. */
void ckt_worker_graph_life_poll(struct ckt_worker *worker);
/* The context is idle and about to be destroyed. */
void ckt_worker_graph_forget_context(struct ckt_worker *worker, uint64_t context);

/* ---- graph.c */
/* The last step of a restore of a graph: makes the executable graph from its description. */
CUresult ckt_worker_graph_exec_make(struct ckt_worker *worker, uint64_t id, uint64_t context,
	uint64_t flags, const uint8_t *data, size_t size, struct ckt_object **ret_object);
CUresult ckt_worker_graph_data_make(
	struct ckt_worker *worker, uint64_t id, uint64_t total, struct ckt_object **ret_object);
/* Frees the graph or description of an object; the object stays. */
void ckt_worker_graph_object_fini(struct ckt_worker *worker, struct ckt_object *object);
