/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a client's connection; see connection.h. */
#include "server/worker/session/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/hostmem.h"
#include "rpc/lane.h"
#include "rpc/net.h"
#include "rpc/record.h"
#include "rpc/transport/shared_memory.h"
#include "server/worker/session/stamps.h"
#include "server/worker/worker.h"

enum { ANSWER_MS = 5000 };

/* The rings that the answer offers. */
struct offer {
	struct ckt_transport transport; /* over the client's socket; closed: there are no rings */
	int memory_fd;
};

static struct offer make_rings(const struct ckt_worker *worker, bool takes_rings)
{
	struct offer offer = {.transport = CKT_TRANSPORT_NONE, .memory_fd = -1};
	if (!takes_rings || !ckt_net_is_local(worker->client_fd))
		return offer;
	int result = ckt_shared_memory_make(CKT_RINGS_BYTES, &offer.memory_fd);
	if (!result)
		result = ckt_transport_init_shared_memory(&offer.transport, worker->client_fd,
			offer.memory_fd, CKT_RINGS_BYTES, true, worker->rings_place);
	if (result) {
		ckt_warning("no shared memory for the client's connection, %d KiB: %s; it stays "
			    "on the UNIX socket",
			2 * CKT_RINGS_BYTES >> 10, strerror(-result));
		if (offer.memory_fd >= 0)
			close(offer.memory_fd);
		offer.memory_fd = -1;
	}
	return offer;
}

static int encode(const struct ckt_worker *worker, uint32_t xid, bool rings, uint8_t **ret_data,
	size_t *ret_size)
{
	/* Copies without lanes need some of them. */
	uint64_t pieces = worker->staging.to_host_count - worker->staging.to_host_count / 4;
	ckt_capability capabilities[12] = {{(char *)CKT_CAPABILITY_COPY, worker->copy},
		{(char *)CKT_CAPABILITY_LANES, CKT_LANES_MAX},
		{(char *)CKT_CAPABILITY_LANE_PIECES, pieces}};
	unsigned count = 3;
	if (worker->host.shared) {
		capabilities[count++] =
			(ckt_capability){(char *)CKT_CAPABILITY_HOST_BASE, CKT_HOST_BASE};
		capabilities[count++] =
			(ckt_capability){(char *)CKT_CAPABILITY_HOST_BYTES, CKT_HOST_SIZE};
	} else if (worker->host.unfilled) {
		capabilities[count++] = (ckt_capability){(char *)CKT_CAPABILITY_HOST_UNFILLED, 1};
	}
	if (rings)
		capabilities[count++] =
			(ckt_capability){(char *)CKT_CAPABILITY_RINGS, CKT_RINGS_BYTES};
	if (worker->impose.durable)
		capabilities[count++] = (ckt_capability){(char *)CKT_CAPABILITY_DURABLE, 1};
	if (worker->impose.durable && worker->copy_before)
		capabilities[count++] =
			(ckt_capability){(char *)CKT_CAPABILITY_BEFORE, worker->copy_before};
	if (worker->impose.durable && ckt_stamps_clock())
		capabilities[count++] =
			(ckt_capability){(char *)CKT_CAPABILITY_STAMPS, ckt_stamps_clock()};
	if (ckt_stamps_replaying())
		capabilities[count++] =
			(ckt_capability){(char *)CKT_CAPABILITY_STAMPED, CKT_STAMPED_OPENS};
	char host[CKT_NAME_MAX + 1] = "";
	gethostname(host, sizeof host - 1);
	ckt_hello_res res = {.status = CKT_HELLO_OK};
	ckt_hello_ok *ok = &res.ckt_hello_res_u.ok;
	*ok = (ckt_hello_ok){.protocol = CKT_PROTOCOL_VERSION,
		.session = (char *)worker->session,
		.generation = worker->generation,
		.executed = atomic_load(&worker->replies.executed),
		.server = host,
		.build = (char *)CKT_VERSION};
	ok->capabilities.capabilities_val = capabilities;
	ok->capabilities.capabilities_len = count;
	return ckt_net_encode_reply(
		xid, ok->executed, (xdrproc_t)xdr_ckt_hello_res, &res, ret_data, ret_size);
}

/* The answer is the last thing on the socket, so all of it must be there before the rings are used. */
static int begin_rings(
	struct ckt_worker *worker, struct offer *offer, const uint8_t *data, size_t size)
{
	int result = ckt_net_write_record(
		worker->client_fd, data, size, ckt_net_now_ms() + ANSWER_MS, offer->memory_fd);
	ckt_transport_release(&worker->client_transport);
	ckt_transport_move(&worker->client_transport, &offer->transport);
	if (result)
		return result;
	ckt_input_connect_over(&worker->input, &worker->client_transport);
	ckt_output_connect_over(&worker->output, &worker->client_transport, worker->client_epoch);
	return 0;
}

int ckt_worker_connection_answer(struct ckt_worker *worker, uint32_t xid, bool takes_rings)
{
	struct offer offer = make_rings(worker, takes_rings);
	bool rings = ckt_transport_open(&offer.transport);
	uint8_t *data = NULL;
	size_t size = 0;
	int result = encode(worker, xid, rings, &data, &size);
	if (rings && result) {
		ckt_transport_release(&worker->client_transport);
		ckt_transport_move(&worker->client_transport, &offer.transport);
	} else if (!result) {
		result = rings ? begin_rings(worker, &offer, data, size)
			       : ckt_output_connect(&worker->output, worker->client_fd,
					 worker->client_epoch, data, size);
	}
	if (offer.memory_fd >= 0)
		close(offer.memory_fd);
	free(data);
	if (!result)
		ckt_info("the client is connected over %s",
			ckt_transport_name(&worker->client_transport));
	return result;
}
