/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/lane.c: heads of pieces, whole and broken, and frames over a transport. */
#include <errno.h>
#include <string.h>

#include "rpc/lane.h"
#include "tests/unit/rpc/double_transport.h"
#include "tests/unit/suite.h"

static const uint8_t data_head[] = {0, 0, 0, 1, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8},
		     arrived_head[] = {0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};

static void test_heads(void)
{
	uint8_t bytes[CKT_LANE_HEAD_SIZE];
	struct ckt_lane_head head;
	ckt_lane_head_put(bytes,
		&(struct ckt_lane_head){
			.kind = CKT_LANE_DATA, .size = 5, .piece = 0x0102030405060708});
	IS(memcmp(bytes, data_head, sizeof bytes), 0);
	IS(ckt_lane_head_get(bytes, &head), 0);
	YES(head.kind == CKT_LANE_DATA && head.size == 5 && head.piece == 0x0102030405060708);
	IS(ckt_lane_head_get(arrived_head, &head), 0);
	YES(head.kind == CKT_LANE_ARRIVED && !head.size && head.piece == 9);
}

static void test_wrong_heads(void)
{
	static const struct {
		uint32_t kind, size;
		int result;
	} cases[] = {
		{CKT_LANE_DATA, 1, 0},
		{CKT_LANE_DATA, CKT_DATA_MAX, 0},
		{CKT_LANE_DATA, CKT_DATA_MAX + 1, -EPROTO},
		{CKT_LANE_DATA, UINT32_MAX, -EPROTO},
		{CKT_LANE_DATA, 0, -EPROTO},
		{CKT_LANE_ARRIVED, 0, 0},
		{CKT_LANE_ARRIVED, 1, -EPROTO},
		{0, 0, -EPROTO},
		{3, 0, -EPROTO},
		{3, 1, -EPROTO},
		{0x80000001, 1, -EPROTO},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t bytes[CKT_LANE_HEAD_SIZE];
		struct ckt_lane_head head = {.piece = 77};
		ckt_lane_head_put(bytes,
			&(struct ckt_lane_head){
				.kind = cases[i].kind, .size = cases[i].size, .piece = i});
		if (!IS(ckt_lane_head_get(bytes, &head), cases[i].result))
			CU_FAIL("of a row of the table");
		IS(head.piece, cases[i].result ? 77 : i);
	}
}

static int read_head(const int *steps, size_t step_count, size_t size)
{
	struct double_transport d;
	struct ckt_lane_head head = {0};
	double_init(&d, steps, step_count);
	d.input = data_head;
	d.input_size = size;
	int result = ckt_lane_head_read(&d.transport, &head);
	IS(head.size, result ? 0 : 5);
	double_fini(&d);
	return result;
}

static void test_read(void)
{
	static const int whole[] = {16}, slow[] = {1, 7, -EAGAIN, 8}, gone[] = {15, -ECONNRESET},
			 late[] = {3, -ETIMEDOUT};
	IS(read_head(whole, COUNT(whole), 16), 0);
	IS(read_head(slow, COUNT(slow), 16), 0);
	IS(read_head(gone, COUNT(gone), 16), -ECONNRESET);
	IS(read_head(late, COUNT(late), 16), -ETIMEDOUT);
}

static void test_write(void)
{
	static const int slow[] = {15, 1, 2, -EAGAIN, 3}, gone[] = {16, 2, -EPIPE};
	const struct ckt_lane_head data = {
		.kind = CKT_LANE_DATA, .size = 5, .piece = 0x0102030405060708};
	struct double_transport d;
	double_init(&d, slow, COUNT(slow));
	IS(ckt_lane_frame_write(&d.transport, &data, (const uint8_t *)"abcde"), 0);
	IS(d.output_size, 21);
	IS(memcmp(d.output, data_head, 16) || memcmp(d.output + 16, "abcde", 5), 0);
	double_fini(&d);
	double_init(&d, gone, COUNT(gone));
	IS(ckt_lane_frame_write(&d.transport, &data, (const uint8_t *)"abcde"), -EPIPE);
	double_fini(&d);
	double_init(&d, NULL, 0);
	IS(ckt_lane_frame_write(&d.transport,
		   &(struct ckt_lane_head){.kind = CKT_LANE_ARRIVED, .piece = 9}, NULL),
		0);
	IS(d.output_size, 16);
	IS(memcmp(d.output, arrived_head, 16), 0);
	double_fini(&d);
}

UNIT_SUITE(lane, {"heads", test_heads}, {"wrong heads", test_wrong_heads}, {"read", test_read},
	{"write", test_write})
