/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs that a session sees; see session_parts.h. */
#include "server/daemon/session/session_parts.h"

#include <errno.h>
#include <string.h>

#include "cudacommon/visible_devices.h"

void ckt_session_ask_share(const struct ckt_session *session, struct ckt_share *ret_share)
{
	const struct ckt_limit_subject subject = ckt_lease_subject(session);
	ckt_ask_share(session->server, &session->identity, &subject, ret_share);
}

/* Joins the pieces of the client's CUDA_VISIBLE_DEVICES; false if it sent none. */
static bool visible_text(const ckt_hello_args *hello, char ret_text[CKT_VISIBLE_TEXT_MAX + 1])
{
	size_t used = 0;
	bool any = false;
	for (u_int i = 0; i < hello->capabilities.capabilities_len; i++) {
		const ckt_capability *c = &hello->capabilities.capabilities_val[i];
		if (strncmp(c->name, CKT_VISIBLE_CAPABILITY, strlen(CKT_VISIBLE_CAPABILITY)) != 0)
			continue;
		const char *piece = c->name + strlen(CKT_VISIBLE_CAPABILITY);
		size_t length = strlen(piece);
		any = true;
		if (length > CKT_VISIBLE_TEXT_MAX - used)
			break;
		memcpy(ret_text + used, piece, length);
		used += length;
	}
	ret_text[used] = 0;
	return any;
}

int ckt_session_narrow(struct ckt_session *session, const ckt_hello_args *hello)
{
	struct ckt_server *server = session->server;
	char text[CKT_VISIBLE_TEXT_MAX + 1];
	u_int chosen[CKT_DEVICES_MAX];
	struct ckt_share share;
	uint8_t uuids[CKT_DEVICES_MAX][CKT_VISIBLE_UUID];
	if (!visible_text(hello, text))
		return 0;
	ckt_session_ask_share(session, &share);
	for (u_int i = 0; i < share.gpu_count; i++)
		memcpy(uuids[i], server->driver.gpus[share.gpus[i]].uuid, CKT_VISIBLE_UUID);
	session->narrowed = true;
	int visible = ckt_visible_select(text, uuids, share.gpu_count, chosen);
	if (visible < 0)
		return visible;
	session->visible_count = (unsigned)visible;
	for (u_int i = 0; i < session->visible_count; i++)
		session->visible[i] = share.gpus[chosen[i]];
	return session->visible_count ? 0 : -ENODEV;
}

u_int ckt_session_list_gpus(const struct ckt_session *session, struct ckt_share *share)
{
	u_int wanted = (u_int)session->gpu;
	if (session->narrowed) {
		memcpy(share->gpus, session->visible, session->visible_count * sizeof *share->gpus);
		return session->visible_count;
	}
	const struct ckt_server *server = session->server;
	if (session->gpu < 0 && !server->gpu_count && share->gpu_count == server->driver.gpu_count)
		return 0; /* the worker uses what exists */
	for (u_int i = 0; i < share->gpu_count && session->gpu >= 0; i++)
		if (share->gpus[i] == wanted) {
			share->gpus[i] = share->gpus[0];
			share->gpus[0] = wanted;
			break;
		}
	return share->gpu_count;
}

unsigned ckt_session_gpus(const struct ckt_session *session, unsigned ret_gpus[CKT_DEVICES_MAX])
{
	struct ckt_share share;
	ckt_session_ask_share(session, &share);
	u_int count = ckt_session_list_gpus(session, &share);
	if (!count)
		count = share.gpu_count;
	memcpy(ret_gpus, share.gpus, count * sizeof *ret_gpus);
	return count;
}
