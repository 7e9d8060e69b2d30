/* Graphs: nodes, edges, parameters; see graph.h. */
#include "softgpu/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t ckt_soft_graph_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
	pthread_mutex_lock(&ckt_soft_graph_lock);
}

static CUresult unlock(CUresult result)
{
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	return result;
}

/* Under the lock nobody else drops the table's reference, so that the borrowed pointer is good. */
static void *find(const void *handle, enum ckt_soft_kind kind)
{
	struct ckt_soft_object *object = ckt_soft_object_get(handle, kind);
	if (object)
		ckt_soft_object_put(object);
	return object;
}

struct ckt_soft_graph *ckt_soft_graph_find(CUgraph handle)
{
	return find(handle, CKT_SOFT_GRAPH);
}

struct ckt_soft_node *ckt_soft_node_find(CUgraphNode handle)
{
	return find(handle, CKT_SOFT_GRAPH_NODE);
}

static void destroy(struct ckt_soft_object *object)
{
	free(object);
}

CUresult ckt_soft_graph_new(struct ckt_soft_graph **ret_graph)
{
	struct ckt_soft_graph *graph = calloc(1, sizeof(*graph));
	if (!graph || ckt_soft_object_init(&graph->object, CKT_SOFT_GRAPH, destroy) != CUDA_SUCCESS) {
		free(graph);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_graph = graph;
	return CUDA_SUCCESS;
}

void ckt_soft_node_drop_params(struct ckt_soft_node *node)
{
	if (node->type == CU_GRAPH_NODE_TYPE_KERNEL) {
		free(node->kernel.packed);
		free(node->kernel.pointers);
		free(node->kernel.attributes);
		node->kernel = (struct ckt_soft_kernel_node){0};
	} else if (node->type == CU_GRAPH_NODE_TYPE_GRAPH) {
		ckt_soft_graph_free(node->child);
		node->child = NULL;
	} else if (node->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
		free(node->memop.paramArray);
		node->memop.paramArray = NULL;
	}
}

static void dispose(struct ckt_soft_node *node)
{
	ckt_soft_node_drop_params(node);
	free(node->in);
	node->in = NULL;
	if (ckt_soft_object_remove(&node->object))
		ckt_soft_object_put(&node->object);
}

static void drop_edges_from(struct ckt_soft_node *node, const struct ckt_soft_node *from)
{
	for (size_t i = 0; i < node->n_in; i++)
		if (node->in[i].node == from) {
			memmove(&node->in[i], &node->in[i + 1], (--node->n_in - i) * sizeof(*node->in));
			return;
		}
}

void ckt_soft_node_free(struct ckt_soft_node *node)
{
	struct ckt_soft_graph *graph = node->graph;
	size_t kept = 0;
	for (size_t i = 0; i < graph->n_nodes; i++) {
		drop_edges_from(graph->nodes[i], node);
		if (graph->nodes[i] != node)
			graph->nodes[kept++] = graph->nodes[i];
	}
	graph->n_nodes = kept;
	dispose(node);
}

void ckt_soft_graph_free(struct ckt_soft_graph *graph)
{
	if (!graph)
		return;
	for (size_t i = 0; i < graph->n_nodes; i++)
		dispose(graph->nodes[i]);
	free(graph->nodes);
	graph->nodes = NULL;
	ckt_soft_users_drop(graph);
	if (ckt_soft_object_remove(&graph->object))
		ckt_soft_object_put(&graph->object);
}

static CUresult add_edge(struct ckt_soft_node *from, struct ckt_soft_node *to, const CUgraphEdgeData *data)
{
	for (size_t i = 0; i < to->n_in; i++)
		if (to->in[i].node == from)
			return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_edge *in = realloc(to->in, (to->n_in + 1) * sizeof(*in));
	if (!in)
		return CUDA_ERROR_OUT_OF_MEMORY;
	to->in = in;
	in[to->n_in++] = (struct ckt_soft_edge){.node = from, .data = data ? *data : (CUgraphEdgeData){0}};
	return CUDA_SUCCESS;
}

CUresult ckt_soft_node_new(struct ckt_soft_graph *graph, CUgraphNodeType type, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t n,
			   struct ckt_soft_node **ret_node)
{
	if (!graph || (n && !dependencies))
		return CUDA_ERROR_INVALID_VALUE;
	if (graph->n_nodes == graph->n_nodes_max) {
		size_t max = graph->n_nodes_max ? 2 * graph->n_nodes_max : 16;
		struct ckt_soft_node **nodes = realloc(graph->nodes, max * sizeof(*nodes));
		if (!nodes)
			return CUDA_ERROR_OUT_OF_MEMORY;
		graph->nodes = nodes;
		graph->n_nodes_max = max;
	}
	struct ckt_soft_node *node = calloc(1, sizeof(*node));
	if (!node || ckt_soft_object_init(&node->object, CKT_SOFT_GRAPH_NODE, destroy) != CUDA_SUCCESS) {
		free(node);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	node->graph = graph;
	node->type = type;
	graph->nodes[graph->n_nodes++] = node;
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		struct ckt_soft_node *from = ckt_soft_node_find(dependencies[i]);
		result = from && from->graph == graph ? add_edge(from, node, data ? &data[i] : NULL) : CUDA_ERROR_INVALID_VALUE;
	}
	if (result != CUDA_SUCCESS)
		ckt_soft_node_free(node);
	else
		*ret_node = node;
	return result;
}

CUresult ckt_soft_graph_copy(const struct ckt_soft_graph *from, struct ckt_soft_graph **ret_graph)
{
	struct ckt_soft_graph *graph;
	CUresult result = ckt_soft_graph_new(&graph);
	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; i < from->n_nodes && result == CUDA_SUCCESS; i++) {
		struct ckt_soft_node *node;
		from->nodes[i]->index = i;
		result = ckt_soft_node_new(graph, from->nodes[i]->type, NULL, NULL, 0, &node);
		if (result == CUDA_SUCCESS) {
			node->origin = from->nodes[i]->object.handle;
			node->disabled = from->nodes[i]->disabled;
			result = ckt_soft_node_copy_params(node, from->nodes[i]);
		}
	}
	for (size_t i = 0; i < from->n_nodes && result == CUDA_SUCCESS; i++)
		for (size_t k = 0; k < from->nodes[i]->n_in && result == CUDA_SUCCESS; k++)
			result = add_edge(graph->nodes[from->nodes[i]->in[k].node->index], graph->nodes[i], &from->nodes[i]->in[k].data);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_users_copy(graph, from);
	if (result != CUDA_SUCCESS)
		ckt_soft_graph_free(graph);
	else
		*ret_graph = graph;
	return result;
}

struct ckt_soft_node *ckt_soft_graph_find_copy(struct ckt_soft_graph *graph, uint64_t origin)
{
	for (size_t i = 0; i < graph->n_nodes; i++) {
		if (graph->nodes[i]->origin == origin)
			return graph->nodes[i];
		if (graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_GRAPH && graph->nodes[i]->child) {
			struct ckt_soft_node *inner = ckt_soft_graph_find_copy(graph->nodes[i]->child, origin);
			if (inner)
				return inner;
		}
	}
	return NULL;
}

/* ---- API */

CUresult CUDAAPI cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	struct ckt_soft_graph *graph;
	CUresult result = ckt_soft_initialized();
	if (result == CUDA_SUCCESS && (!phGraph || flags))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = ckt_soft_graph_new(&graph);
	if (result == CUDA_SUCCESS)
		*phGraph = ckt_soft_object_handle(&graph->object);
	return result;
}

CUresult CUDAAPI cuGraphDestroy(CUgraph hGraph)
{
	lock();
	struct ckt_soft_graph *graph = ckt_soft_graph_find(hGraph);
	if (!graph || graph->inner)
		return unlock(CUDA_ERROR_INVALID_VALUE);
	ckt_soft_graph_free(graph);
	return unlock(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
	lock();
	struct ckt_soft_graph *graph = ckt_soft_graph_find(originalGraph), *copy;
	CUresult result = graph && phGraphClone ? ckt_soft_graph_copy(graph, &copy) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*phGraphClone = ckt_soft_object_handle(&copy->object);
	return unlock(result);
}

CUresult CUDAAPI cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
{
	lock();
	struct ckt_soft_graph *graph = ckt_soft_graph_find(hClonedGraph);
	for (size_t i = 0; graph && phNode && i < graph->n_nodes; i++)
		if (graph->nodes[i]->origin == (uint64_t)(uintptr_t)hOriginalNode) {
			*phNode = ckt_soft_object_handle(&graph->nodes[i]->object);
			return unlock(CUDA_SUCCESS);
		}
	return unlock(CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
	lock();
	struct ckt_soft_node *node = ckt_soft_node_find(hNode);
	if (node && type)
		*type = node->type;
	return unlock(node && type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static CUresult list_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count, bool roots)
{
	lock();
	const struct ckt_soft_graph *graph = ckt_soft_graph_find(handle);
	if (!graph || !count)
		return unlock(CUDA_ERROR_INVALID_VALUE);
	size_t n = 0;
	for (size_t i = 0; i < graph->n_nodes; i++) {
		if (roots && graph->nodes[i]->n_in)
			continue;
		if (nodes && n < *count)
			nodes[n] = ckt_soft_object_handle(&graph->nodes[i]->object);
		n++;
	}
	for (size_t i = n; nodes && i < *count; i++)
		nodes[i] = NULL;
	if (!nodes || n < *count)
		*count = n;
	return unlock(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	return list_nodes(hGraph, nodes, numNodes, false);
}

CUresult CUDAAPI cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
	return list_nodes(hGraph, rootNodes, numRootNodes, true);
}

CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edgeData,
					   size_t numDependencies)
{
	lock();
	const struct ckt_soft_graph *graph = ckt_soft_graph_find(hGraph);
	CUresult result = graph && (!numDependencies || (from && to)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numDependencies && result == CUDA_SUCCESS; i++) {
		struct ckt_soft_node *a = ckt_soft_node_find(from[i]), *b = ckt_soft_node_find(to[i]);
		result = a && b && a != b && a->graph == graph && b->graph == graph ? add_edge(a, b, edgeData ? &edgeData[i] : NULL) :
										      CUDA_ERROR_INVALID_VALUE;
	}
	return unlock(result);
}

CUresult CUDAAPI cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies)
{
	return cuGraphAddDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode hNode)
{
	lock();
	struct ckt_soft_node *node = ckt_soft_node_find(hNode);
	if (node)
		ckt_soft_node_free(node);
	return unlock(node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
	static const char *const names[] = {"KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY", "WAIT_EVENT", "EVENT_RECORD"};
	(void)flags;
	FILE *file = path ? fopen(path, "we") : NULL;
	if (!file)
		return path ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_INVALID_VALUE;
	lock();
	const struct ckt_soft_graph *graph = ckt_soft_graph_find(hGraph);
	fprintf(file, "digraph dot {\n");
	for (size_t i = 0; graph && i < graph->n_nodes; i++) {
		const struct ckt_soft_node *node = graph->nodes[i];
		graph->nodes[i]->index = i;
		fprintf(file, "\"graph_node_%zu\"[label=\"%zu\\n%s\"];\n", i, i,
			(unsigned)node->type < sizeof(names) / sizeof(*names) ? names[node->type] : "OTHER");
	}
	for (size_t i = 0; graph && i < graph->n_nodes; i++)
		for (size_t k = 0; k < graph->nodes[i]->n_in; k++)
			fprintf(file, "\"graph_node_%zu\" -> \"graph_node_%zu\";\n", graph->nodes[i]->in[k].node->index, i);
	fprintf(file, "}\n");
	CUresult result = graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (fclose(file) && result == CUDA_SUCCESS)
		result = CUDA_ERROR_OPERATING_SYSTEM;
	return unlock(result);
}
