/*
 * Graphs of the soft GPU.  A graph holds nodes with parameters and edges; an executable graph is a copy whose nodes are put on a stream one
 * after another, in an order that its edges allow.  One lock over all of them, taken after no other and before the stream's.
 */
#pragma once

#include "softgpu/soft.h"

struct ckt_soft_graph;

struct ckt_soft_edge {
	struct ckt_soft_node *node;
	CUgraphEdgeData data;
};

struct ckt_soft_kernel_node {
	CUDA_KERNEL_NODE_PARAMS params;		/* kernelParams and extra: NULL, see packed */
	unsigned char *packed;			/* owned */
	size_t packed_bytes;
	void **pointers;			/* into packed, owned: what cuGraphKernelNodeGetParams tells */
	CUlaunchAttribute *attributes;		/* owned */
	unsigned n_attributes;
};

struct ckt_soft_node {
	struct ckt_soft_object object;
	struct ckt_soft_graph *graph;
	CUgraphNodeType type;
	bool disabled;
	uint64_t origin;			/* handle of the node it was copied from */
	size_t index;
	struct ckt_soft_edge *in;
	size_t n_in;
	union {
		struct ckt_soft_kernel_node kernel;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		CUDA_HOST_NODE_PARAMS host;
		struct ckt_soft_graph *child;	/* owned */
		CUevent event;
		CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 memop;	/* paramArray: owned */
	};
};

struct ckt_soft_user {
	uint64_t handle;
	unsigned count;
};

struct ckt_soft_graph {
	struct ckt_soft_object object;
	struct ckt_soft_user *users;		/* objects of the program that it holds; owned */
	size_t n_users;
	struct ckt_soft_node **nodes;
	size_t n_nodes, n_nodes_max;
	bool inner;				/* belongs to a node or an executable graph */
};

struct ckt_soft_exec {
	struct ckt_soft_object object;
	struct ckt_soft_graph *graph;		/* owned copy */
	struct ckt_soft_node **order;		/* owned */
	CUevent last;				/* behind its latest launch: two launches of one graph do not run at once */
	unsigned long long flags;
};

extern pthread_mutex_t ckt_soft_graph_lock;

/* Precondition of all: the lock is held. */
struct ckt_soft_graph *ckt_soft_graph_find(CUgraph handle);
struct ckt_soft_node *ckt_soft_node_find(CUgraphNode handle);
CUresult ckt_soft_graph_new(struct ckt_soft_graph **ret_graph);
void ckt_soft_graph_free(struct ckt_soft_graph *graph);
CUresult ckt_soft_graph_copy(const struct ckt_soft_graph *from, struct ckt_soft_graph **ret_graph);
CUresult ckt_soft_node_new(struct ckt_soft_graph *graph, CUgraphNodeType type, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t n,
			   struct ckt_soft_node **ret_node);
void ckt_soft_node_free(struct ckt_soft_node *node);
void ckt_soft_node_drop_params(struct ckt_soft_node *node);
CUresult ckt_soft_node_copy_params(struct ckt_soft_node *to, const struct ckt_soft_node *from);
/* Checks and replaces. */
CUresult ckt_soft_node_set_params(struct ckt_soft_node *node, const CUgraphNodeParams *params);
/* graph_update.c: 0 where an executable graph's node may become what the other one is. */
CUgraphExecUpdateResult ckt_soft_node_change(const struct ckt_soft_node *from, const struct ckt_soft_node *to);
/* The parameters of a graph of the same shape; the nodes stay. */
CUresult ckt_soft_graph_adopt(struct ckt_soft_graph *graph, const struct ckt_soft_graph *update);
/* graph_exec.c.  Not locked. */
void ckt_soft_exec_settle_users(CUgraphExec handle);
/* user_object.c */
CUresult ckt_soft_users_copy(struct ckt_soft_graph *to, const struct ckt_soft_graph *from);
void ckt_soft_users_drop(struct ckt_soft_graph *graph);
/* graph_node.c: of the executable graph's node that was made from this one.  Not locked. */
CUresult ckt_soft_exec_set(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *params);
/* memop.c: a batch of memory operations, on streams too. */
enum { CKT_SOFT_MEMOPS_MAX = 256 };
CUresult ckt_soft_memops_check(const CUstreamBatchMemOpParams *ops, unsigned count, unsigned flags);
/* The node of the copy, in child graphs too. */
struct ckt_soft_node *ckt_soft_graph_find_copy(struct ckt_soft_graph *graph, uint64_t origin);
