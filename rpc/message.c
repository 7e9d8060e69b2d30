/* SPDX-License-Identifier: Apache-2.0 */
/* Small calls and replies whose arguments go through rpcgen's routines; see net.h. */
#include <errno.h>
#include <stdlib.h>

#include "rpc/net.h"

static int encode(
	size_t header_size, xdrproc_t xdr_body, void *body, uint8_t **ret_data, size_t *ret_size)
{
	size_t size = header_size + (body ? xdr_sizeof(xdr_body, body) : 0);
	uint8_t *data = malloc(size);
	if (!data)
		return -ENOMEM;
	if (body) {
		XDR xdr;
		xdrmem_create(
			&xdr, (char *)data + header_size, (u_int)(size - header_size), XDR_ENCODE);
		if (!xdr_body(&xdr, body)) {
			free(data);
			return -EMSGSIZE;
		}
	}
	*ret_data = data;
	*ret_size = size;
	return 0;
}

int ckt_net_encode_call(uint32_t xid, uint32_t prog, uint32_t proc, xdrproc_t xdr_args, void *args,
	uint8_t **ret_data, size_t *ret_size)
{
	int result = encode(CKT_CALL_HEADER_SIZE, xdr_args, args, ret_data, ret_size);
	if (!result)
		ckt_call_header_put(*ret_data,
			&(struct ckt_call_header){
				.xid = xid, .prog = prog, .vers = 1, .proc = proc});
	return result;
}

int ckt_net_encode_reply(uint32_t xid, uint64_t executed, xdrproc_t xdr_res, void *res,
	uint8_t **ret_data, size_t *ret_size)
{
	int result = encode(CKT_REPLY_HEADER_SIZE, xdr_res, res, ret_data, ret_size);
	if (!result)
		ckt_reply_header_put(
			*ret_data, &(struct ckt_reply_header){.xid = xid, .executed = executed});
	return result;
}

int ckt_net_decode(const struct ckt_cursor *c, xdrproc_t xdr_proc, void *ret)
{
	XDR xdr;
	if (c->bad)
		return -EPROTO;
	xdrmem_create(&xdr, (char *)c->p, (u_int)(c->end - c->p), XDR_DECODE);
	/*
	 * A partly decoded value may own allocations, and leftover bytes mean that the two sides
	 * disagree.
	 */
	if (!xdr_proc(&xdr, ret) || xdr_getpos(&xdr) != (u_int)(c->end - c->p)) {
		xdr_free(xdr_proc, ret);
		return -EPROTO;
	}
	return 0;
}

int ckt_net_ask(int fd, uint32_t prog, uint32_t proc, xdrproc_t xdr_args, void *args,
	int64_t deadline_ms, int pass_fd, uint32_t *ret_xid)
{
	static uint32_t next_xid;
	uint32_t xid = __atomic_add_fetch(&next_xid, 1, __ATOMIC_RELAXED);
	uint8_t *data;
	size_t size;
	int result = ckt_net_encode_call(xid, prog, proc, xdr_args, args, &data, &size);
	if (result)
		return result;
	result = ckt_net_write_record(fd, data, size, deadline_ms, pass_fd);
	free(data);
	if (!result)
		*ret_xid = xid;
	return result;
}

int ckt_net_answer(int fd, uint32_t xid, xdrproc_t xdr_res, void *ret_res, int64_t deadline_ms)
{
	uint8_t *data;
	size_t size;
	int result = ckt_net_read_record(fd, CKT_RECORD_MAX, deadline_ms, &data, &size, NULL);
	if (result)
		return result;
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_reply_header header = {0};
	if (!ckt_reply_header_get(&c, &header) || header.xid != xid || header.accept_stat != 0)
		result = -EPROTO;
	else if (ret_res)
		result = ckt_net_decode(&c, xdr_res, ret_res);
	free(data);
	return result;
}

int ckt_net_call(int fd, uint32_t prog, uint32_t proc, xdrproc_t xdr_args, void *args,
	xdrproc_t xdr_res, void *ret_res, int64_t deadline_ms, int pass_fd)
{
	uint32_t xid;
	int result = ckt_net_ask(fd, prog, proc, xdr_args, args, deadline_ms, pass_fd, &xid);
	return result ? result : ckt_net_answer(fd, xid, xdr_res, ret_res, deadline_ms);
}
