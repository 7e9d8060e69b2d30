/* SPDX-License-Identifier: Apache-2.0 */
/* The two fixed message headers; see wire.h and docs/wire.md. */
#include "rpc/wire.h"

enum {
	MESSAGE_CALL = 0,
	MESSAGE_REPLY = 1,
	RPC_VERSION = 2,
	MESSAGE_ACCEPTED = 0,
	CALL_AUTH_SIZE = 32,
	REPLY_AUTH_SIZE = 16
};

uint8_t *ckt_call_header_put(uint8_t *p, const struct ckt_call_header *header)
{
	p = ckt_put_u32(p, header->xid);
	p = ckt_put_u32(p, MESSAGE_CALL);
	p = ckt_put_u32(p, RPC_VERSION);
	p = ckt_put_u32(p, header->prog);
	p = ckt_put_u32(p, header->vers);
	p = ckt_put_u32(p, header->proc);
	p = ckt_put_u32(p, CKT_AUTH_CRICKET);
	p = ckt_put_u32(p, CALL_AUTH_SIZE);
	p = ckt_put_u64(p, header->seq);
	p = ckt_put_u64(p, header->acked);
	p = ckt_put_u32(p, header->thread);
	p = ckt_put_u32(p, header->flags);
	p = ckt_put_u64(p, header->context);
	p = ckt_put_u32(p, CKT_AUTH_NONE);
	return ckt_put_u32(p, 0);
}

uint8_t *ckt_reply_header_put(uint8_t *p, const struct ckt_reply_header *header)
{
	p = ckt_put_u32(p, header->xid);
	p = ckt_put_u32(p, MESSAGE_REPLY);
	p = ckt_put_u32(p, MESSAGE_ACCEPTED);
	p = ckt_put_u32(p, CKT_AUTH_CRICKET);
	p = ckt_put_u32(p, REPLY_AUTH_SIZE);
	p = ckt_put_u64(p, header->executed);
	p = ckt_put_u32(p, header->flags);
	p = ckt_put_u32(p, (uint32_t)header->deferred);
	return ckt_put_u32(p, header->accept_stat);
}

/* Marks the cursor bad if the next word differs. */
static void expect_u32(struct ckt_cursor *c, uint32_t value)
{
	if (ckt_get_u32(c) != value)
		c->bad = true;
}

bool ckt_call_header_get(struct ckt_cursor *c, struct ckt_call_header *ret_header)
{
	struct ckt_call_header header = {.xid = ckt_get_u32(c)};
	expect_u32(c, MESSAGE_CALL);
	expect_u32(c, RPC_VERSION);
	header.prog = ckt_get_u32(c);
	header.vers = ckt_get_u32(c);
	header.proc = ckt_get_u32(c);
	expect_u32(c, CKT_AUTH_CRICKET);
	expect_u32(c, CALL_AUTH_SIZE);
	header.seq = ckt_get_u64(c);
	header.acked = ckt_get_u64(c);
	header.thread = ckt_get_u32(c);
	header.flags = ckt_get_u32(c);
	header.context = ckt_get_u64(c);
	expect_u32(c, CKT_AUTH_NONE);
	expect_u32(c, 0);
	if (!c->bad)
		*ret_header = header;
	return !c->bad;
}

bool ckt_reply_header_get(struct ckt_cursor *c, struct ckt_reply_header *ret_header)
{
	struct ckt_reply_header header = {.xid = ckt_get_u32(c)};
	expect_u32(c, MESSAGE_REPLY);
	expect_u32(c, MESSAGE_ACCEPTED);
	expect_u32(c, CKT_AUTH_CRICKET);
	expect_u32(c, REPLY_AUTH_SIZE);
	header.executed = ckt_get_u64(c);
	header.flags = ckt_get_u32(c);
	header.deferred = (int32_t)ckt_get_u32(c);
	header.accept_stat = ckt_get_u32(c);
	if (!c->bad)
		*ret_header = header;
	return !c->bad;
}
