/* SPDX-License-Identifier: Apache-2.0 */
/* Unique ids of communicators that are restored; see nccl_ids.h. */
#include "server/worker/libs/nccl/nccl_ids.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/net.h"
#include "server/worker/session/control.h"
#include "server/worker/libs/nccl/nccl_members.h"
#include "server/worker/worker.h"

int ckt_worker_nccl_unique_id_make(struct ckt_worker *worker, uint8_t ret_id[CKT_NCCL_ID_BYTES],
	char *ret_message, size_t message_size) __attribute__((weak));
int ckt_worker_nccl_ids_add(struct ckt_worker *worker, const struct ckt_nccl_ids *pairs,
	size_t count) __attribute__((weak));

_Static_assert(
	sizeof(struct ckt_worker_nccl_pair) == sizeof(struct ckt_nccl_ids), "a pair is two ids");
_Static_assert(
	sizeof(ckt_worker_nccl_id) == CKT_NCCL_ID_BYTES && CKT_NCCL_ID_SIZE == CKT_NCCL_ID_BYTES,
	"an id is what rpc/nccl.h says");

static unsigned made;

static int refuse(bool there, bool ready, char message[CKT_MESSAGE_MAX])
{
	if (!there)
		snprintf(message, CKT_MESSAGE_MAX, "this build has no NCCL");
	else if (!ready)
		snprintf(message, CKT_MESSAGE_MAX,
			"a session accepts IDs of communicators only between its first "
			"image and its last");
	return there && ready ? 0 : -EINVAL;
}

static int make(struct ckt_worker *worker, unsigned count, ckt_worker_nccl_id *ret_ids,
	char message[CKT_MESSAGE_MAX])
{
	if (!count || count > CKT_WORKER_NCCL_IDS_MAX || count > CKT_NCCL_MADE_MAX - made) {
		snprintf(message, CKT_MESSAGE_MAX,
			"a worker makes 1 to %d unique IDs of NCCL at once, and %d in "
			"all",
			(int)CKT_WORKER_NCCL_IDS_MAX, CKT_NCCL_MADE_MAX);
		return -EINVAL;
	}
	for (unsigned i = 0; i < count; i++) {
		int error = ckt_worker_nccl_unique_id_make(
			worker, (uint8_t *)ret_ids[i].id, message, CKT_MESSAGE_MAX);
		if (error)
			return error;
		made++;
	}
	return 0;
}

int ckt_worker_nccl_ids_serve_make(struct ckt_request *request, bool ready)
{
	ckt_worker_nccl_make_args args = {0};
	int result =
		ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_nccl_make_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_nccl_id ids[CKT_WORKER_NCCL_IDS_MAX] = {0};
	ckt_worker_nccl_make_res res = {.message = message, .ids = {.ids_val = ids}};
	res.status = refuse(ckt_worker_nccl_unique_id_make != NULL, ready, message);
	if (!res.status)
		res.status = make(request->worker, args.count, ids, message);
	if (!res.status)
		res.ids.ids_len = args.count;
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_nccl_make_res, &res);
}

int ckt_worker_nccl_ids_serve_pairs(struct ckt_request *request, bool ready)
{
	ckt_worker_nccl_ids_args args = {0};
	int result = ckt_net_decode(&request->args, (xdrproc_t)xdr_ckt_worker_nccl_ids_args, &args);
	if (result)
		return result;
	char message[CKT_MESSAGE_MAX] = "";
	ckt_worker_result res = {.message = message,
		.status = refuse(ckt_worker_nccl_ids_add != NULL, ready, message)};
	if (!res.status) {
		res.status = ckt_worker_nccl_ids_add(request->worker,
			(const struct ckt_nccl_ids *)args.pairs.pairs_val, args.pairs.pairs_len);
		if (res.status)
			snprintf(message, sizeof message,
				"cannot take the IDs of communicators: %s", strerror(-res.status));
	}
	xdr_free((xdrproc_t)xdr_ckt_worker_nccl_ids_args, (char *)&args);
	return ckt_worker_control_reply(request, (xdrproc_t)xdr_ckt_worker_result, &res);
}
