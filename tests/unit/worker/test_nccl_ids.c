/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/libs/nccl/nccl_ids.h: new ids, and ids that are told, over a control connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"
#include "server/worker/session/control.h"
#include "server/worker/libs/nccl/nccl_ids.h"
#include "tests/unit/worker/nccl_kit.h"

static int ends[2];

/*
 * Serves one request of these arguments, and reads its answer; 0, or what the connection ends with.
 */
static int ask(int (*serve)(struct ckt_request *request, bool ready), bool ready,
	xdrproc_t xdr_args, void *args, xdrproc_t xdr_res, void *res)
{
	uint8_t bytes[65536], *data;
	size_t size;
	XDR xdr;
	xdrmem_create(&xdr, (char *)bytes, sizeof bytes, XDR_ENCODE);
	MUST(xdr_args(&xdr, args), true);
	struct ckt_transport connection;
	ckt_transport_init_socket(&connection, ends[0]);
	struct ckt_request request = {.worker = &ckt_worker,
		.connection = &connection,
		.xid = 9,
		.passed_fd = -1,
		.args = {.p = bytes, .end = bytes + xdr_getpos(&xdr)}};
	int result = serve(&request, ready);
	if (result)
		return result;
	MUST(ckt_net_read_record(ends[1], 1 << 20, ckt_net_now_ms() + 60000, &data, &size, NULL),
		0);
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_reply_header header = {0};
	YES(ckt_reply_header_get(&c, &header) && header.xid == 9 && !header.accept_stat &&
		!ckt_net_decode(&c, xdr_res, res));
	free(data);
	return 0;
}

static char text[CKT_MESSAGE_MAX];

static int make(unsigned count, bool ready, unsigned *ret_count, uint8_t *ret_first)
{
	ckt_worker_nccl_make_args args = {.count = count};
	ckt_worker_nccl_make_res res = {0};
	MUST(ask(ckt_worker_nccl_ids_serve_make, ready, (xdrproc_t)xdr_ckt_worker_nccl_make_args,
		     &args, (xdrproc_t)xdr_ckt_worker_nccl_make_res, &res),
		0);
	int status = res.status;
	snprintf(text, sizeof text, "%.500s", res.message);
	*ret_count = res.ids.ids_len;
	if (res.ids.ids_len)
		memcpy(ret_first, res.ids.ids_val[0].id, CKT_NCCL_ID_BYTES);
	xdr_free((xdrproc_t)xdr_ckt_worker_nccl_make_res, (char *)&res);
	return status;
}

static void test_make(void)
{
	unsigned count;
	uint8_t id[CKT_NCCL_ID_BYTES] = {0};
	nccl_begin();
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	/* There is no genuine library here. */
	IS(make(1, true, &count, id), -ENOENT);
	IS(count, 0);
	((struct ckt_library_loaded *)ckt_library_loaded(CKT_LIB_NCCL))->open = true;
	IS(make(1, false, &count, id), -EINVAL);
	HAS(text, "between its first image and its last");
	IS(count, 0);
	IS(make(3, true, &count, id), 0);
	IS(count, 3);
	IS(id[127], 7);
	/* Wrong counts, and more than a worker is to have sockets for. */
	IS(make(0, true, &count, id), -EINVAL);
	IS(make(CKT_WORKER_NCCL_IDS_MAX + 1, true, &count, id), -EINVAL);
	IS(make(UINT32_MAX, true, &count, id), -EINVAL);
	HAS(text, "1 to 128 unique IDs of NCCL at once, and 1024 in all");
	double_answer("ncclGetUniqueId", ncclSystemError);
	IS(make(1, true, &count, id), -EIO);
	HAS(text, "NCCL cannot make a unique ID: ");
	IS(count, 0);
	double_answer("ncclGetUniqueId", ncclSuccess);
	int status = 0;
	for (unsigned i = 3; i + 128 <= CKT_NCCL_MADE_MAX && !status; i += 128)
		status = make(128, true, &count, id);
	IS(status, 0);
	IS(make(128, true, &count, id), -EINVAL);
	IS(make(125, true, &count, id), 0);
	IS(make(1, true, &count, id), -EINVAL);
	((struct ckt_library_loaded *)ckt_library_loaded(CKT_LIB_NCCL))->open = false;
	close(ends[0]);
	close(ends[1]);
}

static int tell(unsigned count, bool ready)
{
	static ckt_worker_nccl_pair pairs[CKT_WORKER_NCCL_IDS_MAX];
	ckt_worker_nccl_ids_args args = {.pairs = {count, pairs}};
	ckt_worker_result res = {0};
	memset(pairs, 0x33, sizeof pairs);
	MUST(ask(ckt_worker_nccl_ids_serve_pairs, ready, (xdrproc_t)xdr_ckt_worker_nccl_ids_args,
		     &args, (xdrproc_t)xdr_ckt_worker_result, &res),
		0);
	int status = res.status;
	snprintf(text, sizeof text, "%.500s", res.message);
	xdr_free((xdrproc_t)xdr_ckt_worker_result, (char *)&res);
	return status;
}

static void test_tell(void)
{
	nccl_begin();
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	IS(tell(1, false), -EINVAL);
	IS(tell(1, true), 0);
	IS(tell(0, true), 0);
	int status = 0;
	unsigned told = 1;
	for (; told + 128 <= CKT_NCCL_PAIRS_MAX && !status; told += 128)
		status = tell(128, true);
	IS(status, 0);
	IS(tell(128, true), -ENOSPC);
	HAS(text, "cannot take the IDs of communicators: No space left");
	/* Cut short, or of more than there may be: the connection ends. */
	struct ckt_transport connection;
	ckt_transport_init_socket(&connection, ends[0]);
	struct ckt_request request = {
		.worker = &ckt_worker, .connection = &connection, .passed_fd = -1};
	uint8_t bytes[8] = {0, 0, 0, 1, 1, 2, 3, 4};
	request.args = (struct ckt_cursor){.p = bytes, .end = bytes + sizeof bytes};
	YES(ckt_worker_nccl_ids_serve_pairs(&request, true) < 0);
	bytes[0] = 0x10;
	request.args = (struct ckt_cursor){.p = bytes, .end = bytes + sizeof bytes};
	YES(ckt_worker_nccl_ids_serve_pairs(&request, true) < 0);
	request.args = (struct ckt_cursor){.p = bytes, .end = bytes + 3};
	YES(ckt_worker_nccl_ids_serve_make(&request, true) < 0);
	/* What was told for nothing is forgotten with the restore. */
	ckt_worker.go = false;
	IS(ckt_worker_nccl_loaded(&ckt_worker, text, sizeof text), 0);
	IS(tell(1, true), 0);
	IS(ckt_worker_nccl_loaded(&ckt_worker, text, sizeof text), 0);
	ckt_worker.go = true;
	close(ends[0]);
	close(ends[1]);
}

UNIT_SUITE(worker_nccl_ids, {"made", test_make}, {"told", test_tell})
