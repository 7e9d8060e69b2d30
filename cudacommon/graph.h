/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: nodes, edges and parameters are plain memory here, and so is stream capture.  The library
 * makes the executable form when a graph is instantiated (interface.h): the client sends a
 * description to the worker (rpc/graph.h), so that building and asking cost no round trip and a
 * session that is checkpointed in the middle of a capture has nothing of it to save; the soft GPU
 * puts the nodes on a stream.
 *
 * Threading: one lock over all graphs and captures, ckt_graph_lock; functions below expect it held
 * unless they say otherwise. A copy (of cuGraphClone, in a child node, inside an executable graph)
 * knows for each node which one it was made from.
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
	CUfunction handle;             /* as the program gave it: a CUfunction or a CUkernel */
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

/* Allocates or frees; see graph_memory.c. */
struct ckt_memory_node {
	struct ckt_graph_block *block; /* counted */
	size_t size;                   /* of an allocation, as asked */
};

/* A batch of memory operations. */
struct ckt_memop_node {
	CUstreamBatchMemOpParams *ops; /* owned */
	unsigned count, flags;
};

enum { CKT_CONDITIONAL_BODIES_MAX = 1 << 16 };

/* Chooses among graphs by a condition; see graph_condition.c. */
struct ckt_conditional_node {
	CUgraphConditionalHandle handle;
	uint64_t context;
	unsigned value, flags; /* the handle's */
	/* the handle was made for the graph that many around the node's own */
	unsigned up;
	CUgraphConditionalNodeType type;
	unsigned count;
	struct ckt_graph **bodies; /* owned, and its elements */
	/* owned: what the program was given; NULL inside an executable graph */
	CUgraph *told;
};

/* A handle made for a graph. */
struct ckt_condition {
	CUgraphConditionalHandle handle;
	uint64_t context;
	unsigned value, flags;
	bool used; /* has a node, or had */
};

struct ckt_node {
	struct ckt_cudacommon_object object; /* id 0: inside an executable graph */
	struct ckt_graph *graph;
	CUgraphNodeType type;
	uint64_t origin; /* the node that this one was copied from; 0: none */
	uint64_t context;
	uint32_t index; /* scratch: its index in the graph while the graph is encoded */
	bool mark;      /* scratch */
	bool disabled;  /* in an executable graph */
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

/* The graphs inside of a node: a child graph, or bodies. */
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
	struct ckt_cudacommon_object object; /* id 0: inside an executable graph */
	struct ckt_node **nodes;             /* in the order of their making */
	size_t count, room;
	struct ckt_node *owner; /* the node that holds it, or NULL */
	struct ckt_user_ref *users;
	size_t user_count;
	bool capturing; /* a stream adds nodes to it */
	/*
	 * of a graph that allocates, frees or has conditions: its latest executable graph, the only
	 * one
	 */
	uint64_t only_exec;
	struct ckt_condition *conditions;
	size_t condition_count;
	/* counted; the graph stands for a library call, see graph_call.c; NULL: an ordinary one */
	struct ckt_graph_call *call;
};

/* Allocations less frees of a block in an executable graph. */
struct ckt_exec_block {
	struct ckt_graph_block *block; /* the nodes' */
	int balance;
	bool allocates;
};

/* What is launched.  The library's own part of it stands behind (ckt_exec_new). */
struct ckt_exec {
	struct ckt_cudacommon_object object;
	/* a copy of its own: origins are the nodes of the graph it was made from */
	struct ckt_graph *graph;
	uint64_t flags;
	struct ckt_exec_block *blocks; /* of memory that it allocates or frees */
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
/* named: gets a handle. */
CUresult ckt_graph_new(bool named, struct ckt_graph **ret_graph);
void ckt_graph_free(struct ckt_graph *graph);
CUresult ckt_graph_copy(const struct ckt_graph *from, bool named, struct ckt_graph **ret_graph);
/* A node without parameters, behind those of the list; data may be NULL. */
CUresult ckt_node_new(struct ckt_graph *graph, CUgraphNodeType type,
	struct ckt_node *const *dependencies, const CUgraphEdgeData *data, size_t count,
	struct ckt_node **ret_node);
void ckt_node_free(struct ckt_node *node);
/*
 * Marks the nodes of the graph that precede those (or follow them, if forward), including
 * themselves.
 */
void ckt_graph_unmark(struct ckt_graph *graph);
void ckt_graph_mark(struct ckt_node *node, bool forward);
struct ckt_node *ckt_graph_find_copy(struct ckt_graph *graph, uint64_t origin);
CUgraphNode ckt_node_handle(const struct ckt_node *node);

/* ---- graph_exec.c */
struct ckt_exec *ckt_exec_find(CUgraphExec handle);

/* ---- graph_update.c */
/*
 * Pairs the nodes of two graphs as an update does, and sorts those of the update in the order of
 * the other's.  ret_info: may be NULL; its nodes are the update's.  On failure some child graphs of
 * the update may already be sorted.
 */
/* the parameters; precondition: paired */
CUresult ckt_graph_adopt(struct ckt_graph *to, const struct ckt_graph *from);
CUgraphExecUpdateResult ckt_graph_pair(
	struct ckt_graph *graph, struct ckt_graph *update, CUgraphExecUpdateResultInfo *ret_info);

/* ---- graph_condition.c */
bool ckt_graph_has_conditions(const struct ckt_graph *graph);
/* A handle without a node, somewhere in it. */
bool ckt_graph_has_idle_condition(const struct ckt_graph *graph);
/* Precondition: the node has no parameters yet. */
CUresult ckt_node_set_conditional(
	struct ckt_node *node, const CUDA_CONDITIONAL_NODE_PARAMS *params);
CUresult ckt_node_copy_conditional(struct ckt_node *to, const struct ckt_node *from);
void ckt_node_drop_conditional(struct ckt_node *node);
/* The condition of the node of an update, not its bodies. */
void ckt_node_adopt_condition(struct ckt_node *to, const struct ckt_node *from);
bool ckt_graph_is_body(const struct ckt_graph *graph);
/* Whether bodies may hold all their nodes; ret_node: the one that they may not. */
CUgraphInstantiateResult ckt_graph_check_bodies(
	const struct ckt_graph *graph, const struct ckt_node **ret_node);

/* ---- graph_call.c */
/*
 * Appends a captured call, which the library knows by this id, as the capture's next node.  Takes
 * the call over, also on failure.
 */
CUresult ckt_graph_call_append(struct ckt_capture_stream *stream, uint64_t id);
/* The call that the graph represents; 0: none. */
uint64_t ckt_graph_call_id(const struct ckt_graph *graph);
/* The graph represents what the other one represents. */
void ckt_graph_call_share(struct ckt_graph *to, const struct ckt_graph *from);
void ckt_graph_call_drop(struct ckt_graph *graph);

/* ---- graph_memory.c */
extern _Atomic unsigned ckt_graph_blocks; /* there are */
static inline bool ckt_node_is_memory(const struct ckt_node *node)
{
	return node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
		node->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}
/*
 * A block for an allocation of the graph after those nodes.  The caller gives it to a node or
 * leaves it.
 */
CUresult ckt_graph_block_take(struct ckt_graph *graph, struct ckt_node *const *behind, size_t count,
	CUdevice device, size_t size, struct ckt_graph_block **ret_block);
void ckt_graph_block_leave(struct ckt_graph_block *block);
/* Whether a new node of the graph may free that address. */
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
/* The graph is about to exist on the device: uploaded. */
void ckt_exec_memory_use(struct ckt_exec *exec);
/* Not locked, as is the next: checks the rules before a launch. */
CUresult ckt_exec_memory_launch(struct ckt_exec *exec);
/* The program frees an address: false if no graph owns it. */
bool ckt_graph_memory_free(uint64_t address, CUresult *ret_result);

/* ---- graph_node.c */
/* The packed buffer of `extra`; NULL if there is none, and *ret_size is unchanged. */
CUresult ckt_launch_extra(void **extra, const void **ret_buffer, size_t *ret_size);

struct ckt_kernel_spec {
	CUfunction handle;
	uint64_t context; /* 0: the current one */
	struct ckt_function *function;
	unsigned param_count;
	size_t param_bytes;
	unsigned grid[3], block[3], shared_bytes;
	const CUlaunchAttribute *attributes;
	unsigned attribute_count;
	void **params;      /* either */
	const void *packed; /* or */
	size_t packed_bytes;
};
/* Each replaces the node's parameters; failure changes nothing. */
CUresult ckt_node_set_kernel(struct ckt_node *node, const struct ckt_kernel_spec *spec);
CUresult ckt_node_set_copy(struct ckt_node *node, const CUDA_MEMCPY3D *copy);
CUresult ckt_node_set_fill(struct ckt_node *node, const CUDA_MEMSET_NODE_PARAMS *fill);
CUresult ckt_node_set_memop(struct ckt_node *node, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params);
CUresult ckt_node_copy_params(struct ckt_node *to, const struct ckt_node *from, bool named);
void ckt_node_drop_params(struct ckt_node *node);
/* Turns a launch's description into a node's parameters; checks it for the current context. */
CUresult ckt_kernel_spec_read(
	const CUDA_KERNEL_NODE_PARAMS *params, struct ckt_kernel_spec *ret_spec);

/* ---- user_object.c */
CUresult ckt_user_copy(struct ckt_graph *to, const struct ckt_graph *from);
void ckt_user_drop(struct ckt_graph *graph);
