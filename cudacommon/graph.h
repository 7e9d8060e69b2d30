/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs and stream capture: nodes, edges and parameters are plain memory here.  The library makes
 * the executable form when a graph is instantiated (interface.h).  The client sends a description
 * to the worker (rpc/graph.h), so building and queries need no round trip.  A checkpoint during a
 * capture has nothing of the capture to save.  The soft GPU submits the nodes to the stream.
 *
 * Threading: one lock, ckt_graph_lock, protects all graphs and captures.  The functions below
 * expect the lock to be held unless noted.  A copy (from cuGraphClone, in a child node, in an
 * executable graph) stores for each node its original.
 */
#pragma once

#include "cudacommon/interface.h"

struct ckt_capture_stream;
struct ckt_function;
struct ckt_graph_block;
struct ckt_graph_call;

struct ckt_edge {
	struct ckt_node *node;
	CUgraphEdgeData data;
};

struct ckt_edges {
	struct ckt_edge *list;
	size_t count;
};

struct ckt_kernel_node {
	CUfunction handle;             /* from the program: a CUfunction or a CUkernel */
	struct ckt_function *function; /* the client's */
	unsigned grid[3], block[3], shared_bytes;
	uint8_t *params; /* packed, owned */
	/* into params, owned; NULL if the program gave a packed buffer */
	void **pointers;
	unsigned pointer_count;
	size_t param_bytes;
	void *extra[5];
	CUlaunchAttribute *attributes; /* owned */
	unsigned attribute_count;
};

/* An allocation or a free; see graph_memory.c. */
struct ckt_memory_node {
	struct ckt_graph_block *block; /* counted */
	size_t size;                   /* the requested size of an allocation */
};

/* A batch of memory operations. */
struct ckt_memop_node {
	CUstreamBatchMemOpParams *ops; /* owned */
	unsigned count, flags;
};

enum { CKT_CONDITIONAL_BODIES_MAX = 1 << 16 };

/* Selects a graph by a condition; see graph_condition.c. */
struct ckt_conditional_node {
	CUgraphConditionalHandle handle;
	uint64_t context;
	unsigned value, flags; /* of the handle */
	/* the handle was created for the graph this many levels above the node's graph */
	unsigned up;
	CUgraphConditionalNodeType type;
	unsigned count;
	struct ckt_graph **bodies; /* owned, and its elements */
	/* the handles for the program, owned; NULL in an executable graph */
	CUgraph *told;
};

/* A condition handle created for a graph. */
struct ckt_condition {
	CUgraphConditionalHandle handle;
	uint64_t context;
	unsigned value, flags;
	bool used; /* has or had a node */
};

struct ckt_node {
	struct ckt_cudacommon_object object; /* id 0: in an executable graph */
	struct ckt_graph *graph;
	CUgraphNodeType type;
	uint64_t origin; /* the original of a copied node; 0: none */
	uint64_t context;
	uint32_t index; /* scratch: its index in the graph while the graph is encoded */
	bool mark;      /* scratch */
	bool disabled;  /* only in an executable graph */
	struct ckt_edges in, out;
	union {
		struct ckt_kernel_node kernel;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		CUDA_HOST_NODE_PARAMS host;
		struct ckt_graph *child; /* owned */
		CUevent event;
		struct ckt_memory_node memory;
		struct ckt_memop_node memop;
		struct ckt_conditional_node conditional;
	};
};

/* The graphs in a node: a child graph, or bodies. */
static inline struct ckt_graph *const *ckt_node_graphs(
	const struct ckt_node *node, size_t *ret_count)
{
	bool child = node->type == CU_GRAPH_NODE_TYPE_GRAPH && node->child;
	*ret_count = child                                     ? 1
		: node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? node->conditional.count
							       : 0;
	return child ? &node->child : node->conditional.bodies;
}

struct ckt_user_ref {
	uint64_t object;
	unsigned count;
};

struct ckt_graph {
	struct ckt_cudacommon_object object; /* id 0: in an executable graph */
	struct ckt_node **nodes;             /* in the order of creation */
	size_t count, room;
	struct ckt_node *owner; /* the node that contains the graph, or NULL */
	struct ckt_user_ref *users;
	size_t user_count;
	bool capturing; /* a stream adds nodes to it */
	/*
	 * the latest executable graph of a graph that allocates, frees or has conditions; there is
	 * only one
	 */
	uint64_t only_exec;
	struct ckt_condition *conditions;
	size_t condition_count;
	/*
	 * counted; the library call that the graph represents, see graph_call.c; NULL: an ordinary
	 * graph
	 */
	struct ckt_graph_call *call;
};

/* Allocations minus frees of a block in an executable graph. */
struct ckt_exec_block {
	struct ckt_graph_block *block; /* belongs to the nodes */
	int balance;
	bool allocates;
};

/* An executable graph.  The library's own part follows the struct (ckt_exec_new). */
struct ckt_exec {
	struct ckt_cudacommon_object object;
	/* the exec's own copy: origins are the nodes of the source graph */
	struct ckt_graph *graph;
	uint64_t flags;
	struct ckt_exec_block *blocks; /* memory that the exec allocates or frees */
	size_t block_count;
	bool uses_memory; /* was launched or uploaded before */
};

extern pthread_mutex_t ckt_graph_lock;
static inline void ckt_graph_enter(void)
{
	pthread_mutex_lock(&ckt_graph_lock);
}
static inline CUresult ckt_graph_leave(CUresult result)
{
	pthread_mutex_unlock(&ckt_graph_lock);
	return result;
}

/* ---- graph.c */
struct ckt_graph *ckt_graph_find(CUgraph handle);
struct ckt_node *ckt_node_find(CUgraphNode handle);
/* named: the graph gets a handle. */
CUresult ckt_graph_new(bool named, struct ckt_graph **ret_graph);
void ckt_graph_free(struct ckt_graph *graph);
CUresult ckt_graph_copy(const struct ckt_graph *from, bool named, struct ckt_graph **ret_graph);
/* Adds a node without parameters that depends on the nodes of the list; data may be NULL. */
CUresult ckt_node_new(struct ckt_graph *graph, CUgraphNodeType type,
	struct ckt_node *const *dependencies, const CUgraphEdgeData *data, size_t count,
	struct ckt_node **ret_node);
void ckt_node_free(struct ckt_node *node);
/* Marks the given nodes and all nodes that precede them, or follow them if forward. */
void ckt_graph_unmark(struct ckt_graph *graph);
void ckt_graph_mark(struct ckt_node *node, bool forward);
struct ckt_node *ckt_graph_find_copy(struct ckt_graph *graph, uint64_t origin);
CUgraphNode ckt_node_handle(const struct ckt_node *node);

/* ---- graph_exec.c */
struct ckt_exec *ckt_exec_find(CUgraphExec handle);

/* ---- graph_update.c */
/*
 * Pairs the nodes of two graphs for an update, and sorts the update's nodes in the order of the
 * other graph.  ret_info may be NULL; its nodes are the update's.  On failure, some child graphs of
 * the update may already be sorted.
 */
/* Updates the parameters.  Precondition: paired. */
CUresult ckt_graph_adopt(struct ckt_graph *to, const struct ckt_graph *from);
CUgraphExecUpdateResult ckt_graph_pair(
	struct ckt_graph *graph, struct ckt_graph *update, CUgraphExecUpdateResultInfo *ret_info);

/* ---- graph_condition.c */
bool ckt_graph_has_conditions(const struct ckt_graph *graph);
/* Whether a handle in the graph or below has no node. */
bool ckt_graph_has_idle_condition(const struct ckt_graph *graph);
/* Precondition: the node has no parameters yet. */
CUresult ckt_node_set_conditional(
	struct ckt_node *node, const CUDA_CONDITIONAL_NODE_PARAMS *params);
CUresult ckt_node_copy_conditional(struct ckt_node *to, const struct ckt_node *from);
void ckt_node_drop_conditional(struct ckt_node *node);
/* Updates the node's condition, without its bodies. */
void ckt_node_adopt_condition(struct ckt_node *to, const struct ckt_node *from);
bool ckt_graph_is_body(const struct ckt_graph *graph);
/* Whether bodies may contain all their nodes; ret_node: the first forbidden node. */
CUgraphInstantiateResult ckt_graph_check_bodies(
	const struct ckt_graph *graph, const struct ckt_node **ret_node);

/* ---- graph_call.c */
/*
 * Appends a captured call with this id as the capture's next node.  Takes over the call, also on
 * failure.
 */
CUresult ckt_graph_call_append(struct ckt_capture_stream *stream, uint64_t id);
/* The call that the graph represents; 0: none. */
uint64_t ckt_graph_call_id(const struct ckt_graph *graph);
/* Makes the graph represent the same call as the other graph. */
void ckt_graph_call_share(struct ckt_graph *to, const struct ckt_graph *from);
void ckt_graph_call_drop(struct ckt_graph *graph);

/* ---- graph_memory.c */
extern _Atomic unsigned ckt_graph_blocks; /* the number of blocks */
static inline bool ckt_node_is_memory(const struct ckt_node *node)
{
	return node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
		node->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}
/*
 * Makes a block for an allocation of the graph after those nodes.  The caller gives it to a node or
 * calls ckt_graph_block_leave.
 */
CUresult ckt_graph_block_take(struct ckt_graph *graph, struct ckt_node *const *behind, size_t count,
	CUdevice device, size_t size, struct ckt_graph_block **ret_block);
void ckt_graph_block_leave(struct ckt_graph_block *block);
/* Whether a new node of the graph may free the address. */
CUresult ckt_graph_block_freeable(
	const struct ckt_graph *graph, uint64_t address, struct ckt_graph_block **ret_block);
uint64_t ckt_graph_block_address(const struct ckt_graph_block *block);
void ckt_node_set_alloc(struct ckt_node *node, struct ckt_graph_block *block, size_t size);
void ckt_node_set_free(struct ckt_node *node, struct ckt_graph_block *block);
void ckt_node_share_memory(struct ckt_node *to, const struct ckt_node *from);
void ckt_node_drop_memory(struct ckt_node *node);
bool ckt_graph_has_memory(const struct ckt_graph *graph);
CUresult ckt_alloc_params_check(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params, CUdevice *ret_device);
CUresult ckt_exec_memory_init(struct ckt_exec *exec);
void ckt_exec_memory_fini(struct ckt_exec *exec);
/* Call it before the graph is uploaded to the device. */
void ckt_exec_memory_use(struct ckt_exec *exec);
/* Checks the rules before a launch.  This function and the next need no lock. */
CUresult ckt_exec_memory_launch(struct ckt_exec *exec);
/* Frees an address for the program; false if no graph owns it. */
bool ckt_graph_memory_free(uint64_t address, CUresult *ret_result);

/* ---- graph_node.c */
/* Returns the packed buffer of `extra`; NULL if there is none, and *ret_size is unchanged. */
CUresult ckt_launch_extra(void **extra, const void **ret_buffer, size_t *ret_size);

struct ckt_kernel_spec {
	CUfunction handle;
	uint64_t context; /* 0: the current context */
	struct ckt_function *function;
	unsigned param_count;
	size_t param_bytes;
	unsigned grid[3], block[3], shared_bytes;
	const CUlaunchAttribute *attributes;
	unsigned attribute_count;
	void **params;      /* either this */
	const void *packed; /* or this */
	size_t packed_bytes;
};
/* Each function replaces the node's parameters; failure changes nothing. */
CUresult ckt_node_set_kernel(struct ckt_node *node, const struct ckt_kernel_spec *spec);
CUresult ckt_node_set_copy(struct ckt_node *node, const CUDA_MEMCPY3D *copy);
CUresult ckt_node_set_fill(struct ckt_node *node, const CUDA_MEMSET_NODE_PARAMS *fill);
CUresult ckt_node_set_memop(struct ckt_node *node, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params);
CUresult ckt_node_copy_params(struct ckt_node *to, const struct ckt_node *from, bool named);
void ckt_node_drop_params(struct ckt_node *node);
/* Converts a launch's description to a node's parameters, and checks it for the current context. */
CUresult ckt_kernel_spec_read(
	const CUDA_KERNEL_NODE_PARAMS *params, struct ckt_kernel_spec *ret_spec);

/* ---- user_object.c */
CUresult ckt_user_copy(struct ckt_graph *to, const struct ckt_graph *from);
void ckt_user_drop(struct ckt_graph *graph);
