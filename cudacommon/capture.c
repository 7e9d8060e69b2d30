/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture; see capture.h.
 *
 * begin -> active -- a forbidden call --> invalidated -- end --> gone, its graph with it
 *            `------------ end -------------------------------> gone, its graph is the program's
 *
 * A stream joins when it waits for an event that was recorded in the capture, and leaves when the
 * capture ends.  The nodes of a stream that is destroyed meanwhile stay in the capture.  The origin
 * has to join them, like those of any other stream.
 */
#include "cudacommon/capture.h"
#include "cudacommon/launch_attribute.h"

#include <stdlib.h>
#include <string.h>

struct ckt_capture_stream {
	struct ckt_capture_stream *next;
	struct capture *capture;
	uint64_t stream;
	bool blocking;
	bool gone;               /* destroyed: no more calls name it */
	struct ckt_node **nodes; /* the dependencies of the next node */
	CUgraphEdgeData *data;
	size_t count;
	/* the answer of cuStreamGetCaptureInfo, valid until the next call for the stream */
	CUgraphNode *told;
	CUgraphEdgeData *told_data;
};

struct capture {
	struct capture *next;
	uint64_t id, context;
	CUstreamCaptureMode mode;
	pthread_t thread;
	bool invalid, own_graph;
	struct ckt_graph *graph;
	uint64_t origin;
	struct ckt_capture_stream *streams;
};

/* An event whose latest record was captured. */
struct captured_event {
	struct captured_event *next;
	uint64_t event;
	struct capture *capture; /* NULL: the capture has ended */
	struct ckt_node **nodes;
	CUgraphEdgeData edge; /* from each node to the node that waits */
	size_t count;
};

_Atomic unsigned ckt_capture_count, ckt_capture_events;
static struct capture *captures;
static struct captured_event *events;
static uint64_t next_id = 1;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- Look-ups.  Precondition of all functions below: entered. */

static struct ckt_capture_stream *find_stream(uint64_t stream)
{
	for (struct capture *c = captures; c; c = c->next)
		for (struct ckt_capture_stream *s = c->streams; s; s = s->next)
			if (s->stream == stream && !s->gone)
				return s;
	return NULL;
}

static struct captured_event *find_event(uint64_t event)
{
	for (struct captured_event *e = events; e; e = e->next)
		if (e->event == event)
			return e;
	return NULL;
}

/* Finds a capture that the legacy default stream would have to wait for. */
static struct capture *find_blocking(void)
{
	for (struct capture *c = captures; c; c = c->next)
		for (struct ckt_capture_stream *s = c->streams;
			s && c->context == ckt_cudacommon_context_now(); s = s->next)
			if (s->blocking && !s->gone)
				return c;
	return NULL;
}

static bool is_legacy(uint64_t stream)
{
	return stream <= 1;
}

static void forget_told(struct ckt_capture_stream *s)
{
	free(s->told);
	free(s->told_data);
	s->told = NULL;
	s->told_data = NULL;
}

/* ---- Checks of every call */

CUresult ckt_capture_enter_slow(uint64_t stream, struct ckt_capture_stream **ret)
{
	ckt_graph_enter();
	if (is_legacy(stream)) {
		struct capture *c = find_blocking();
		if (c)
			c->invalid = true;
		return ckt_graph_leave(c ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS);
	}
	struct ckt_capture_stream *s = find_stream(stream);
	if (!s)
		return ckt_graph_leave(CUDA_SUCCESS);
	if (s->capture->invalid)
		return ckt_graph_leave(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	forget_told(s);
	*ret = s;
	return CUDA_SUCCESS;
}

CUresult ckt_capture_forbid_slow(uint64_t stream)
{
	struct ckt_capture_stream *s;
	CUresult result = ckt_capture_enter(stream, &s);
	if (result || !s)
		return result;
	s->capture->invalid = true;
	return ckt_graph_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult ckt_capture_unsafe_slow(void)
{
	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	CUresult result = CUDA_SUCCESS;
	ckt_graph_enter();
	for (struct capture *c = captures; c; c = c->next) {
		bool own = pthread_equal(c->thread, pthread_self()) &&
			c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
		bool others = thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
			c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
		if (own || others) {
			c->invalid = true;
			result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	return ckt_graph_leave(result);
}

CUresult ckt_capture_context_check_slow(uint64_t context)
{
	CUresult result = CUDA_SUCCESS;
	ckt_graph_enter();
	for (struct capture *c = captures; c; c = c->next)
		if (c->context == context) {
			c->invalid = true;
			result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	return ckt_graph_leave(result);
}

CUresult ckt_capture_append(
	struct ckt_capture_stream *s, CUgraphNodeType type, struct ckt_node **ret_node)
{
	struct ckt_node **nodes = s->nodes ? s->nodes : malloc(sizeof(struct ckt_node *));
	CUgraphEdgeData *data = s->data ? s->data : malloc(sizeof *data);
	s->nodes = nodes;
	s->data = data;
	CUresult result = nodes && data
		? ckt_node_new(s->capture->graph, type, s->nodes, s->data, s->count, ret_node)
		: CUDA_ERROR_OUT_OF_MEMORY;
	if (result) {
		s->capture->invalid = true;
		return result;
	}
	s->nodes[0] = *ret_node;
	s->data[0] = (CUgraphEdgeData){0};
	s->count = 1;
	return CUDA_SUCCESS;
}

/* The next node is a kernel and may begin before the kernels that it depends on have ended. */
static void programmatic(struct ckt_capture_stream *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->nodes[i]->type == CU_GRAPH_NODE_TYPE_KERNEL)
			s->data[i] = (CUgraphEdgeData){
				.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
				.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
}

static void drop_event(struct captured_event **e)
{
	struct captured_event *dead = *e;
	*e = dead->next;
	free(dead->nodes);
	free(dead);
	ckt_capture_events--;
}

static void forget(uint64_t event)
{
	for (struct captured_event **e = &events; *e; e = &(*e)->next)
		if ((*e)->event == event) {
			drop_event(e);
			return;
		}
}

/* Records that the event follows these nodes. */
static CUresult record_nodes(struct capture *capture, uint64_t event,
	struct ckt_node *const *behind, size_t count, CUgraphEdgeData edge)
{
	struct captured_event *e = calloc(1, sizeof *e);
	struct ckt_node **nodes = malloc((count + 1) * sizeof(struct ckt_node *));
	if (!e || !nodes) {
		free(e);
		free(nodes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	forget(event);
	if (count)
		memcpy(nodes, behind, count * sizeof(struct ckt_node *));
	*e = (struct captured_event){.next = events,
		.event = event,
		.capture = capture,
		.nodes = nodes,
		.edge = edge,
		.count = count};
	events = e;
	ckt_capture_events++;
	return CUDA_SUCCESS;
}

static bool brings(const struct ckt_kernel_spec *spec, CUlaunchAttributeID id)
{
	for (unsigned i = 0; i < spec->attribute_count; i++)
		if (spec->attributes[i].id == id)
			return true;
	return false;
}

/*
 * Collects the node's attributes: those of the launch, and those of the stream that the launch does
 * not set.
 */
static unsigned node_attributes(const struct ckt_capture_stream *s,
	const struct ckt_kernel_spec *given, bool cooperative, CUlaunchAttribute *list)
{
	CUlaunchAttribute of_stream[CKT_STREAM_ATTRIBUTES_MAX];
	unsigned count = 0, stream_count = ckt_stream_node_attributes(s->stream, of_stream);
	for (unsigned i = 0; i < given->attribute_count; i++)
		if (ckt_launch_attribute_stays(&given->attributes[i]))
			list[count++] = given->attributes[i];
	for (unsigned i = 0; i < stream_count; i++)
		if (!brings(given, of_stream[i].id))
			list[count++] = of_stream[i];
	if (cooperative)
		list[count++] = (CUlaunchAttribute){
			.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
	return count;
}

CUresult ckt_capture_kernel(
	struct ckt_capture_stream *s, const struct ckt_kernel_spec *given, bool cooperative)
{
	struct ckt_node *node;
	struct ckt_kernel_spec spec = *given;
	CUgraphEdgeData edge;
	CUresult result = CUDA_SUCCESS;
	for (unsigned i = 0; i < given->attribute_count && !result; i++)
		result = ckt_launch_attribute_check(&given->attributes[i], true);
	if (result)
		return result;
	CUlaunchAttribute *attributes =
		calloc(given->attribute_count + CKT_STREAM_ATTRIBUTES_MAX + 1, sizeof *attributes);
	if (!attributes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	spec.attributes = attributes;
	spec.attribute_count = node_attributes(s, given, cooperative, attributes);
	/* In a graph, edges define the order of nodes. */
	for (unsigned i = 0; i < given->attribute_count; i++)
		if (given->attributes[i].id ==
				CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
			given->attributes[i].value.programmaticStreamSerializationAllowed)
			programmatic(s);
	result = ckt_capture_append(s, CU_GRAPH_NODE_TYPE_KERNEL, &node);
	if (!result)
		result = ckt_node_set_kernel(node, &spec);
	for (unsigned i = 0; i < given->attribute_count && !result; i++) {
		CUevent event = ckt_launch_attribute_event(&given->attributes[i], &edge);
		if (event)
			result = record_nodes(s->capture, ckt_handle_id(event), &node, 1, edge);
	}
	free(attributes);
	return result;
}

CUresult ckt_capture_alloc(
	struct ckt_capture_stream *s, CUdevice device, size_t size, uint64_t *ret_address)
{
	struct ckt_graph_block *block;
	struct ckt_node *node;
	CUresult result =
		ckt_graph_block_take(s->capture->graph, s->nodes, s->count, device, size, &block);
	if (result)
		return result;
	result = ckt_capture_append(s, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &node);
	if (result) {
		ckt_graph_block_leave(block);
		return result;
	}
	ckt_node_set_alloc(node, block, size);
	*ret_address = ckt_graph_block_address(block);
	return CUDA_SUCCESS;
}

CUresult ckt_capture_free(struct ckt_capture_stream *s, uint64_t address)
{
	struct ckt_graph_block *block;
	struct ckt_node *node;
	CUresult result = ckt_graph_block_freeable(s->capture->graph, address, &block);
	if (!result)
		result = ckt_capture_append(s, CU_GRAPH_NODE_TYPE_MEM_FREE, &node);
	if (!result)
		ckt_node_set_free(node, block);
	return result;
}

/* ---- Events */

void ckt_capture_event_forget_slow(uint64_t event)
{
	ckt_graph_enter();
	forget(event);
	ckt_graph_leave(CUDA_SUCCESS);
}

CUresult ckt_capture_event_check_slow(uint64_t event)
{
	ckt_graph_enter();
	struct captured_event *e = find_event(event);
	/* After the end of the capture, the event is invalid until it is recorded again. */
	bool capturing = e && e->capture;
	if (capturing)
		e->capture->invalid = true;
	ckt_graph_leave(CUDA_SUCCESS);
	if (e)
		return capturing ? CUDA_ERROR_CAPTURED_EVENT : CUDA_ERROR_INVALID_VALUE;
	return ckt_capture_unsafe();
}

static CUresult record(struct ckt_capture_stream *s, uint64_t event, unsigned flags)
{
	struct ckt_node *node;
	if (flags & CU_EVENT_RECORD_EXTERNAL) {
		CUresult result = ckt_capture_append(s, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &node);
		if (!result)
			node->event = (CUevent)(uintptr_t)event;
		return result;
	}
	return record_nodes(s->capture, event, s->nodes, s->count, (CUgraphEdgeData){0});
}

CUresult ckt_capture_record_slow(uint64_t event, uint64_t stream, unsigned flags, bool *ret_done)
{
	struct ckt_capture_stream *s;
	CUresult result = ckt_capture_enter(stream, &s);
	if (result)
		return result;
	if (!s) {
		ckt_capture_event_forget(event);
		return CUDA_SUCCESS;
	}
	*ret_done = true;
	return ckt_graph_leave(record(s, event, flags));
}

static CUresult join_nodes(struct ckt_capture_stream *s, struct ckt_node *const *nodes,
	size_t count, CUgraphEdgeData edge)
{
	struct ckt_node **all =
		realloc(s->nodes, (s->count + count + 1) * sizeof(struct ckt_node *));
	if (all)
		s->nodes = all;
	CUgraphEdgeData *data = realloc(s->data, (s->count + count + 1) * sizeof *data);
	if (data)
		s->data = data;
	if (!all || !data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < count; i++) {
		size_t k = 0;
		while (k < s->count && s->nodes[k] != nodes[i])
			k++;
		if (k == s->count) {
			s->nodes[s->count] = nodes[i];
			s->data[s->count++] = edge;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult add_stream(struct capture *c, uint64_t stream, struct ckt_capture_stream **ret)
{
	struct ckt_capture_stream *s = calloc(1, sizeof *s);
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->capture = c;
	s->stream = stream;
	s->blocking = !(ckt_stream_flags(stream) & CU_STREAM_NON_BLOCKING);
	s->next = c->streams;
	c->streams = s;
	*ret = s;
	return CUDA_SUCCESS;
}

static CUresult wait_captured(
	uint64_t stream, struct ckt_capture_stream *s, const struct captured_event *e)
{
	/* The capture has ended, so there is nothing to wait for. */
	if (!e->capture)
		return s ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_ERROR_INVALID_VALUE;
	if (e->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (is_legacy(stream)) {
		e->capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (s && s->capture != e->capture) {
		s->capture->invalid = e->capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	CUresult result = s ? CUDA_SUCCESS : add_stream(e->capture, stream, &s);
	return result ? result : join_nodes(s, e->nodes, e->count, e->edge);
}

CUresult ckt_capture_wait_slow(uint64_t stream, uint64_t event, unsigned flags, bool *ret_done)
{
	ckt_graph_enter();
	struct ckt_capture_stream *s = is_legacy(stream) ? NULL : find_stream(stream);
	const struct captured_event *e = find_event(event);
	struct ckt_node *node;
	CUresult result = CUDA_SUCCESS;
	if (s && s->capture->invalid)
		return ckt_graph_leave(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	if (s)
		forget_told(s);
	if (s && flags & CU_EVENT_WAIT_EXTERNAL) {
		*ret_done = true;
		result = ckt_capture_append(s, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &node);
		if (!result)
			node->event = (CUevent)(uintptr_t)event;
	} else if (e) {
		*ret_done = true;
		result = wait_captured(stream, s, e);
	} else if (s) {
		s->capture->invalid = true;
		result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	} else if (is_legacy(stream)) {
		struct capture *c = find_blocking();
		if (c) {
			c->invalid = true;
			result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
	}
	return ckt_graph_leave(result);
}

/* ---- Begin and end */

static void stream_free(struct ckt_capture_stream *s)
{
	forget_told(s);
	free(s->nodes);
	free(s->data);
	free(s);
}

/* Removes the capture; the caller takes over its graph. */
static void dissolve(struct capture *c)
{
	for (struct ckt_capture_stream *s = c->streams, *next; s; s = next) {
		next = s->next;
		stream_free(s);
	}
	for (struct captured_event *e = events; e; e = e->next)
		if (e->capture == c)
			e->capture = NULL;
	for (struct capture **p = &captures; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			break;
		}
	c->graph->capturing = false;
	free(c);
	ckt_capture_count--;
}

static CUresult begin(uint64_t stream, CUstreamCaptureMode mode, struct ckt_graph *graph,
	const CUgraphNode *list, const CUgraphEdgeData *data, size_t count)
{
	struct ckt_capture_stream *s;
	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_legacy(stream))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (find_stream(stream))
		return CUDA_ERROR_ILLEGAL_STATE;
	for (size_t i = 0; i < count; i++) {
		const struct ckt_node *node = list ? ckt_node_find(list[i]) : NULL;
		if (!node || node->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	struct capture *c = calloc(1, sizeof *c);
	CUresult result = c ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (!result && !graph) {
		c->own_graph = true;
		result = ckt_graph_new(true, &graph);
	}
	if (!result)
		result = add_stream(c, stream, &s);
	for (size_t i = 0; i < count && !result; i++) {
		struct ckt_node *node = ckt_node_find(list[i]);
		result = join_nodes(s, &node, 1, (CUgraphEdgeData){0});
		if (!result && data)
			s->data[s->count - 1] = data[i];
	}
	if (result) {
		for (struct ckt_capture_stream *dead = c ? c->streams : NULL, *next; dead;
			dead = next) {
			next = dead->next;
			stream_free(dead);
		}
		if (c && c->own_graph)
			ckt_graph_free(graph);
		free(c);
		return result;
	}
	c->id = next_id++;
	c->context = ckt_cudacommon_context_now();
	c->mode = mode;
	c->thread = pthread_self();
	c->graph = graph;
	c->origin = stream;
	c->next = captures;
	captures = c;
	graph->capturing = true;
	ckt_capture_count++;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
	uint64_t stream;
	CUresult result = ckt_stream_resolve(handle, &stream);
	if (result)
		return result;
	ckt_graph_enter();
	return ckt_graph_leave(begin(stream, mode, NULL, NULL, NULL, 0));
}

/* Before CUDA 10.1, there was only one mode. */
CKT_EXPORT CUresult cuStreamBeginCapture(CUstream handle)
{
	return cuStreamBeginCapture_v2(handle, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CKT_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph_handle,
	const CUgraphNode *list, const CUgraphEdgeData *data, size_t count,
	CUstreamCaptureMode mode)
{
	uint64_t stream;
	CUresult result = ckt_stream_resolve(handle, &stream);
	if (result)
		return result;
	ckt_graph_enter();
	struct ckt_graph *graph = ckt_graph_find(graph_handle);
	if (graph && graph->call)
		return ckt_graph_leave(CKT_CUDACOMMON_UNSUPPORTED(
			"a capture to the graph of a captured library call"));
	return ckt_graph_leave(graph && !graph->capturing
			? begin(stream, mode, graph, list, data, count)
			: CUDA_ERROR_INVALID_VALUE);
}

/* Whether the origin's next node would depend on all nodes that other streams captured. */
static bool joined(struct capture *c, const struct ckt_capture_stream *origin)
{
	ckt_graph_unmark(c->graph);
	for (size_t i = 0; i < origin->count; i++)
		ckt_graph_mark(origin->nodes[i], false);
	for (const struct ckt_capture_stream *s = c->streams; s; s = s->next)
		for (size_t i = 0; i < s->count; i++)
			if (!s->nodes[i]->mark)
				return false;
	return true;
}

CKT_EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph *ret_graph)
{
	uint64_t stream;
	CUresult result = ckt_stream_resolve(handle, &stream);
	if (result)
		return result;
	ckt_graph_enter();
	struct ckt_capture_stream *s = is_legacy(stream) ? NULL : find_stream(stream);
	if (!s)
		return ckt_graph_leave(
			ret_graph ? CUDA_ERROR_ILLEGAL_STATE : CUDA_ERROR_INVALID_VALUE);
	struct capture *c = s->capture;
	/* A program that captured into its own graph has that graph already. */
	if (!ret_graph && c->own_graph)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		!pthread_equal(c->thread, pthread_self())) {
		/* The attempt ends the capture (seen on an H200): its own thread finds none. */
		struct ckt_graph *graph = c->own_graph ? c->graph : NULL;
		result = c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
				    : CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
		dissolve(c);
		ckt_graph_free(graph);
		return ckt_graph_leave(result);
	}
	if (c->origin != stream) {
		c->invalid = true;
		return ckt_graph_leave(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	}
	result = c->invalid    ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
		: joined(c, s) ? CUDA_SUCCESS
			       : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	struct ckt_graph *graph = c->graph;
	bool own = c->own_graph;
	dissolve(c);
	if (ret_graph)
		*ret_graph = result ? NULL : (CUgraph)(uintptr_t)graph->object.id;
	if (result && own)
		ckt_graph_free(graph);
	return ckt_graph_leave(result);
}

/*
 * A capture without its origin stream ends without a graph.  Nodes of another destroyed stream stay
 * in the capture (seen on an H200).
 */
void ckt_capture_stream_gone(uint64_t stream)
{
	if (!ckt_capture_count)
		return;
	ckt_graph_enter();
	struct ckt_capture_stream *s = find_stream(stream);
	if (s && s->capture->origin == stream) {
		/* This destroys the graph, even if it is the program's own. */
		struct ckt_graph *graph = s->capture->graph;
		dissolve(s->capture);
		ckt_graph_free(graph);
	} else if (s) {
		s->gone = true;
	}
	ckt_graph_leave(CUDA_SUCCESS);
}

/* ---- Queries */

CKT_EXPORT CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *ret)
{
	uint64_t stream;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_stream_resolve(handle, &stream);
	if (result)
		return result;
	*ret = CU_STREAM_CAPTURE_STATUS_NONE;
	if (!ckt_capture_count)
		return CUDA_SUCCESS;
	ckt_graph_enter();
	/* A query does not invalidate a capture, although a use of the default stream would. */
	if (is_legacy(stream))
		return ckt_graph_leave(
			find_blocking() ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS);
	const struct ckt_capture_stream *s = find_stream(stream);
	if (s)
		*ret = s->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
	return ckt_graph_leave(CUDA_SUCCESS);
}

static CUresult tell(struct ckt_capture_stream *s, const CUgraphNode **nodes,
	const CUgraphEdgeData **data, size_t *count)
{
	forget_told(s);
	s->told = calloc(s->count + 1, sizeof *s->told);
	s->told_data = calloc(s->count + 1, sizeof *s->told_data);
	if (!s->told || !s->told_data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	bool special = false;
	for (size_t i = 0; i < s->count; i++) {
		s->told[i] = ckt_node_handle(s->nodes[i]);
		s->told_data[i] = s->data[i];
		special |= s->data[i].from_port || s->data[i].type;
	}
	if (special && nodes && !data)
		return CUDA_ERROR_LOSSY_QUERY;
	if (nodes)
		*nodes = s->told;
	if (data)
		*data = s->told_data;
	if (count)
		*count = s->count;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status,
	cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies,
	const CUgraphEdgeData **edges, size_t *count)
{
	CUresult result = cuStreamIsCapturing(handle, status);
	uint64_t stream;
	if (result || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return result;
	result = ckt_stream_resolve(handle, &stream);
	if (result)
		return result;
	ckt_graph_enter();
	struct ckt_capture_stream *s = find_stream(stream);
	if (!s)
		return ckt_graph_leave(CUDA_SUCCESS);
	if (id)
		*id = s->capture->id;
	if (graph)
		*graph = (CUgraph)(uintptr_t)s->capture->graph->object.id;
	return ckt_graph_leave(tell(s, dependencies, edges, count));
}

CKT_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status,
	cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies, size_t *count)
{
	return cuStreamGetCaptureInfo_v3(handle, status, id, graph, dependencies, NULL, count);
}

CKT_EXPORT CUresult cuStreamGetCaptureInfo(
	CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	return cuStreamGetCaptureInfo_v3(handle, status, id, NULL, NULL, NULL, NULL);
}

static CUresult update(struct ckt_capture_stream *s, const CUgraphNode *list,
	const CUgraphEdgeData *data, size_t count, unsigned flags)
{
	if ((count && !list) || flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		const struct ckt_node *node = ckt_node_find(list[i]);
		if (!node || node->graph != s->capture->graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	CUresult result = CUDA_SUCCESS;
	forget_told(s);
	if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		s->count = 0;
	for (size_t i = 0; i < count && !result; i++) {
		struct ckt_node *node = ckt_node_find(list[i]);
		size_t before = s->count;
		result = join_nodes(s, &node, 1, (CUgraphEdgeData){0});
		if (!result && data && s->count > before)
			s->data[before] = data[i];
	}
	return result;
}

CKT_EXPORT CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *list,
	const CUgraphEdgeData *data, size_t count, unsigned int flags)
{
	uint64_t stream;
	CUresult result = ckt_stream_resolve(handle, &stream);
	if (result)
		return result;
	ckt_graph_enter();
	struct ckt_capture_stream *s = is_legacy(stream) ? NULL : find_stream(stream);
	if (!s)
		return ckt_graph_leave(CUDA_ERROR_ILLEGAL_STATE);
	return ckt_graph_leave(s->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
						   : update(s, list, data, count, flags));
}

CKT_EXPORT CUresult cuStreamUpdateCaptureDependencies(
	CUstream stream, CUgraphNode *list, size_t count, unsigned int flags)
{
	return cuStreamUpdateCaptureDependencies_v2(stream, list, NULL, count, flags);
}

CKT_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	/*
	 * CUDA stores any number, and so does this code.  An invalid mode forbids what this
	 * thread's own captures forbid.
	 */
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	CUstreamCaptureMode before = thread_mode;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}
