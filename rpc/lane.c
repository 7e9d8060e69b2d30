/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of lanes; see lane.h. */
#include "rpc/lane.h"

#include <errno.h>

void ckt_lane_head_put(uint8_t *p, const struct ckt_lane_head *head)
{
	ckt_put_u64(ckt_put_u32(ckt_put_u32(p, head->kind), head->size), head->piece);
}

int ckt_lane_head_get(const uint8_t *p, struct ckt_lane_head *ret_head)
{
	struct ckt_cursor c = {.p = p, .end = p + CKT_LANE_HEAD_SIZE};
	struct ckt_lane_head head = {.kind = ckt_get_u32(&c), .size = ckt_get_u32(&c)};
	head.piece = ckt_get_u64(&c);
	bool good = head.kind == CKT_LANE_DATA ? head.size && head.size <= CKT_DATA_MAX
					       : head.kind == CKT_LANE_ARRIVED && !head.size;
	if (!good)
		return -EPROTO;
	*ret_head = head;
	return 0;
}

int ckt_lane_head_read(struct ckt_transport *t, struct ckt_lane_head *ret_head)
{
	uint8_t bytes[CKT_LANE_HEAD_SIZE];
	int result = ckt_transport_read_all(t, bytes, sizeof bytes);
	return result ? result : ckt_lane_head_get(bytes, ret_head);
}

int ckt_lane_frame_write(
	struct ckt_transport *t, const struct ckt_lane_head *head, const uint8_t *data)
{
	uint8_t bytes[CKT_LANE_HEAD_SIZE];
	ckt_lane_head_put(bytes, head);
	int result = ckt_transport_write_all(t, bytes, sizeof bytes, -1);
	return result || head->kind != CKT_LANE_DATA
		? result
		: ckt_transport_write_all(t, data, head->size, -1);
}
