/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs in an image: what was saved is made again and does the same, half descriptions too;
 * damaged ones are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/graph/graph_image.h"
#include "tests/unit/worker/graphs.h"

static struct description d;

static void destroy(uint64_t id)
{
	struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, id);
	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	ckt_worker_graph_object_fini(&ckt_worker, object);
	ckt_objects_remove(&ckt_worker.objects, object);
}

static void saved_free(ckt_image_graph *saved)
{
	free(saved->data.data_val);
	free(saved->disabled.disabled_val);
	memset(saved, 0, sizeof *saved);
}

static void test_exec(void)
{
	uint64_t memory = inside_memory(4096, 0), id = ID(GRAPH_EXEC, 21);
	ckt_image_graph saved;
	graph_begin(&d);
	graph_fill(&d, 1, memory, 5, 4, 1);
	graph_fill(&d, 2, memory + 4, 6, 4, 1);
	MUST(graph_instantiate(&d, ID(GRAPH, 21), id), CUDA_SUCCESS);
	uint32_t size = (uint32_t)(d.p - d.bytes);
	IS(ASK(graph_exec_set_enabled, .exec = id, .node = 2, .enabled = 0), CUDA_SUCCESS);
	struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, id);
	ckt_worker_graph_save(object, &saved);
	IS(saved.id, id);
	IS(saved.context, ckt_handle_primary(0));
	IS(saved.total, size);
	IS(saved.data.data_len, size);
	IS(memcmp(saved.data.data_val, d.bytes, size), 0);
	IS(saved.disabled.disabled_len, 1);
	IS(saved.disabled.disabled_val[0], 2);
	destroy(id);
	IS(ckt_worker_graph_load(&ckt_worker, &saved), CUDA_SUCCESS);
	IS(ckt_worker_graph_load(&ckt_worker, &saved), CUDA_ERROR_INVALID_VALUE); /* it is there */
	IS(ASK(graph_launch, .exec = id), CUDA_SUCCESS);
	ckt_driver.cuCtxSynchronize();
	IS(inside_word(memory), 5);
	IS(inside_word(memory + 4), 0);
	IS(ASK(graph_exec_set_enabled, .exec = id, .node = 2, .enabled = 1), CUDA_SUCCESS);
	IS(ASK(graph_launch, .exec = id), CUDA_SUCCESS);
	ckt_driver.cuCtxSynchronize();
	IS(inside_word(memory + 4), 6);
	destroy(id);
	/* A disabled node that it does not have; bytes that are no graph. */
	saved.disabled.disabled_val[0] = 3;
	IS(ckt_worker_graph_load(&ckt_worker, &saved), CUDA_ERROR_INVALID_VALUE);
	if (ckt_objects_find(&ckt_worker.objects, id))
		destroy(id);
	unsigned taken = 0;
	saved.disabled.disabled_len = 0;
	for (u_int cut = 0; cut < size; cut++) {
		saved.data.data_len = cut;
		taken += ckt_worker_graph_load(&ckt_worker, &saved) == CUDA_SUCCESS;
		CU_ASSERT_PTR_NULL(ckt_objects_find(&ckt_worker.objects, id));
	}
	IS(taken, 0);
	saved_free(&saved);
	inside_free(memory);
}

static void test_data(void)
{
	uint64_t id = ID(GRAPH, 22);
	ckt_image_graph saved;
	graph_begin(&d);
	graph_fill(&d, 1, 0x1000, 5, 4, 1);
	uint32_t size = graph_end(&d), half = size / 2;
	IS(ASK(graph_data, .graph = id, .total = size, .data = d.bytes, .data_len = half),
		CUDA_SUCCESS);
	ckt_worker_graph_save(ckt_objects_find(&ckt_worker.objects, id), &saved);
	IS(saved.total, size);
	IS(saved.data.data_len, half);
	destroy(id);
	IS(ckt_worker_graph_load(&ckt_worker, &saved), CUDA_SUCCESS);
	struct ckt_worker_graph_data *data = ckt_objects_find(&ckt_worker.objects, id)->real;
	IS(data->received, half);
	IS(memcmp(data->data, d.bytes, half), 0);
	/* The rest comes by the wire, as if nothing had been. */
	IS(ASK(graph_data, .graph = id, .total = size, .offset = half, .data = d.bytes + half,
		   .data_len = size - half),
		CUDA_SUCCESS);
	IS(memcmp(data->data, d.bytes, size), 0);
	destroy(id);
	/* More than it is to be, and more than any is. */
	saved.total = half - 1;
	IS(ckt_worker_graph_load(&ckt_worker, &saved), CUDA_ERROR_INVALID_VALUE);
	saved.total = (uint64_t)CKT_GRAPH_BYTES_MAX + 1;
	IS(ckt_worker_graph_load(&ckt_worker, &saved), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_PTR_NULL(ckt_objects_find(&ckt_worker.objects, id));
	saved_free(&saved);
}

/* What a launch left for the client, and what the client sent for the next, is in the image. */
static void test_bytes(void)
{
	enum { SIZE = 200000, FAR = 150000 };
	static const uint64_t client = 0x7f0000000000;
	uint64_t memory = inside_memory(SIZE, 0), id = ID(GRAPH_EXEC, 23);
	ckt_image_graph saved;
	ckt_image image = {0};
	graph_begin(&d);
	graph_copy(&d, 1, (struct graph_side){CU_MEMORYTYPE_HOST, client},
		(struct graph_side){CU_MEMORYTYPE_DEVICE, memory}, SIZE, 1);
	MUST(graph_instantiate(&d, ID(GRAPH, 23), id), CUDA_SUCCESS);
	struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, id);
	struct ckt_worker_graph_exec *exec = object->real;
	uint8_t *place = ckt_worker_graph_segments_find(&exec->segments, client, SIZE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(place);
	place[0] = 1;
	place[FAR] = 2;
	IS(ckt_worker_graph_save(object, &saved), 0);
	IS(ckt_worker_graph_save_bytes(object, &image), 0);
	/* Pieces of zeros are left out. */
	IS(image.graph_bytes.graph_bytes_len, 2);
	destroy(id);
	MUST(ckt_worker_graph_load(&ckt_worker, &saved), CUDA_SUCCESS);
	exec = ckt_objects_find(&ckt_worker.objects, id)->real;
	place = ckt_worker_graph_segments_find(&exec->segments, client, SIZE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(place);
	IS(place[0], 0);
	for (u_int i = 0; i < image.graph_bytes.graph_bytes_len; i++)
		IS(ckt_worker_graph_load_bytes(&ckt_worker, &image.graph_bytes.graph_bytes_val[i]),
			CUDA_SUCCESS);
	IS(place[0], 1);
	IS(place[FAR], 2);
	IS(place[1] || place[FAR + 1], 0);
	/* Around it, and beyond all addresses: only what the graph touches. */
	static char around[16] = "0123456789abcde";
	ckt_image_graph_bytes bytes = {.exec = id, .address = client - 8, .data = {16, around}};
	IS(ckt_worker_graph_load_bytes(&ckt_worker, &bytes), CUDA_SUCCESS);
	IS(memcmp(place, around + 8, 8), 0);
	bytes.address = client + SIZE - 8;
	IS(ckt_worker_graph_load_bytes(&ckt_worker, &bytes), CUDA_SUCCESS);
	IS(memcmp(place + SIZE - 8, around, 8), 0);
	bytes.address = UINT64_MAX - 8;
	IS(ckt_worker_graph_load_bytes(&ckt_worker, &bytes), CUDA_ERROR_INVALID_VALUE);
	bytes.exec = ID(GRAPH_EXEC, 24);
	IS(ckt_worker_graph_load_bytes(&ckt_worker, &bytes), CUDA_ERROR_INVALID_VALUE);
	destroy(id);
	saved_free(&saved);
	for (u_int i = 0; i < image.graph_bytes.graph_bytes_len; i++)
		free(image.graph_bytes.graph_bytes_val[i].data.data_val);
	free(image.graph_bytes.graph_bytes_val);
	inside_free(memory);
}

UNIT_SUITE(
	graph_image, {"executable", test_exec}, {"description", test_data}, {"bytes", test_bytes})
