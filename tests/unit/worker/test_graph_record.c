/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of nodes: exactly their bytes, and what of the client's memory a copy touches, also where
 * the numbers are hostile.
 */
#include <stdlib.h>
#include <string.h>

#include "rpc/graph.h"
#include "server/worker/graph/graph_record.h"
#include "tests/unit/suite.h"

static bool any(const struct ckt_worker_graph_node *node, unsigned kind)
{
	struct ckt_worker_graph_copy copy;
	struct ckt_worker_graph_kernel kernel;
	struct ckt_worker_graph_fill fill;
	uint64_t event;
	switch (kind) {
	case 0:
		return ckt_worker_graph_copy_get(node, &copy);
	case 1:
		return ckt_worker_graph_kernel_get(node, &kernel);
	case 2:
		return ckt_worker_graph_fill_get(node, &fill);
	default:
		return ckt_worker_graph_event_get(node, &event);
	}
}

static size_t put(unsigned kind, uint8_t *bytes)
{
	uint8_t attributes[2 * (4 + CKT_GRAPH_ATTRIBUTE_BYTES)] = {0}, *p = bytes;
	switch (kind) {
	case 0:
		for (uint64_t side = 1; side <= 2; side++) {
			p = ckt_put_u32(p, (uint32_t)side);
			for (uint64_t i = 0; i < 6; i++)
				p = ckt_put_u64(p, side * 100 + i);
		}
		for (uint64_t i = 0; i < 3; i++)
			p = ckt_put_u64(p, 900 + i);
		break;
	case 1:
		p = ckt_put_u64(p, 77);
		for (uint32_t i = 0; i < 7; i++)
			p = ckt_put_u32(p, 1 + i);
		p = ckt_put_opaque(p, attributes, sizeof attributes);
		p = ckt_put_opaque(p, "0123456789", 10);
		break;
	case 2:
		p = ckt_put_u32(ckt_put_u32(ckt_put_u64(ckt_put_u64(p, 1), 2), 3), 4);
		p = ckt_put_u64(ckt_put_u64(p, 5), 6);
		break;
	default:
		p = ckt_put_u64(p, 1234);
	}
	return (size_t)(p - bytes);
}

static void test_exact(void)
{
	uint8_t bytes[512] = {0};
	for (unsigned kind = 0; kind < 4; kind++) {
		size_t size = put(kind, bytes);
		for (size_t n = 0; n <= size + 4; n++) {
			uint8_t *copy = malloc(n + !n);
			memcpy(copy, bytes, n);
			struct ckt_worker_graph_node node = {
				.record = copy, .record_bytes = (uint32_t)n};
			IS(any(&node, kind), n == size);
			free(copy);
		}
	}
}

static void test_values(void)
{
	uint8_t bytes[512];
	struct ckt_worker_graph_node node = {.record = bytes};
	struct ckt_worker_graph_copy copy;
	struct ckt_worker_graph_kernel kernel;
	struct ckt_worker_graph_fill fill;
	uint64_t event;
	node.record_bytes = (uint32_t)put(0, bytes);
	YES(ckt_worker_graph_copy_get(&node, &copy));
	IS(copy.src.address, 100);
	IS(copy.dst.type, 2);
	IS(copy.dst.x * 1000000 + copy.dst.pitch * 1000 + copy.dst.height, 201204205);
	IS(copy.width + copy.height + copy.depth, 900 + 901 + 902);
	node.record_bytes = (uint32_t)put(1, bytes);
	YES(ckt_worker_graph_kernel_get(&node, &kernel));
	IS(kernel.function, 77);
	IS(kernel.grid[2] * 100 + kernel.block[0] * 10 + kernel.shared_bytes, 347);
	IS(kernel.attributes_bytes, 2 * (4 + CKT_GRAPH_ATTRIBUTE_BYTES));
	IS(kernel.params_bytes, 10);
	/* Half an attribute is none. */
	ckt_put_u32(bytes + 36, 4 + CKT_GRAPH_ATTRIBUTE_BYTES + 4);
	NO(ckt_worker_graph_kernel_get(&node, &kernel));
	node.record_bytes = (uint32_t)put(2, bytes);
	YES(ckt_worker_graph_fill_get(&node, &fill));
	IS(fill.dst * 100000 + fill.pitch * 10000 + fill.value * 1000 + fill.element_size * 100 +
			fill.width * 10 + fill.height,
		123456);
	node.record_bytes = (uint32_t)put(3, bytes);
	YES(ckt_worker_graph_event_get(&node, &event) && event == 1234);
}

static void test_span(void)
{
	static const struct {
		struct ckt_worker_graph_side side;
		uint64_t width, height, depth;
		bool good;
		uint64_t begin, size;
	} cases[] = {
		{{.address = 1000}, 10, 1, 1, true, 1000, 10},
		{{.address = 1000, .x = 5, .y = 2, .pitch = 100}, 10, 3, 1, true, 1205, 210},
		{{.address = 1000, .x = 5, .y = 2}, 10, 3, 1, true, 1035,
			40}, /* rows as wide as what is copied, and what is before */
		{{.address = 0, .z = 1, .pitch = 16, .height = 4}, 8, 2, 2, true, 64, 88},
		{{.address = 7}, 0, 5, 5, true, 7, 0},
		{{.address = 7}, 5, 0, 5, true, 7, 0},
		{{.address = 7}, 5, 5, 0, true, 7, 0},
		{{.address = 7, .pitch = UINT64_MAX}, 5, 3, 1, false, 0, 0},
		{{.address = 7, .pitch = 1 << 20, .height = UINT64_MAX / 2}, 5, 3, 3, false, 0, 0},
		{{.address = UINT64_MAX - 3}, 10, 1, 1, false, 0, 0},
		{{.address = 7, .z = UINT64_MAX, .pitch = 4, .height = 4}, 1, 1, 1, false, 0, 0},
		{{.address = 7, .x = UINT64_MAX}, 1, 1, 1, false, 0, 0},
		{{.address = 7, .y = UINT64_MAX / 2, .pitch = 3}, 1, 1, 1, false, 0, 0},
		{{.address = 7, .pitch = 4, .height = 4}, 1, 1, UINT64_MAX, false, 0, 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_worker_graph_copy copy = {.width = cases[i].width,
			.height = cases[i].height,
			.depth = cases[i].depth};
		uint64_t begin = 0, size = 0;
		bool good = ckt_worker_graph_side_span(&copy, &cases[i].side, &begin, &size);
		if (!IS(good, cases[i].good) || !IS(good ? begin : 0, cases[i].begin) ||
			!IS(good ? size : 0, cases[i].size))
			CU_FAIL("of a row of the table");
	}
}

UNIT_SUITE(graph_record, {"exact", test_exact}, {"values", test_values}, {"span", test_span})
