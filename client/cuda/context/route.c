/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the connection of each call; see route.h. */
#include "client/cuda/context/route.h"
#include "client/conn/conn.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/memory/range.h"

void ckt_client_context_use(uint64_t context)
{
	ckt_call_context = context;
	if (__builtin_expect(ckt_conn_count > 1, 0))
		ckt_call_conn = context ? ckt_client_context_conn(context) : ckt_conns[0];
}

struct ckt_conn *ckt_client_context_conn(uint64_t id)
{
	const struct ckt_context *context = ckt_cudacommon_object_find(id, CKT_KIND_CONTEXT);
	/* For a destroyed context, its own server returns the error. */
	if (!context)
		context = ckt_cudacommon_object_past(id, CKT_KIND_CONTEXT);
	return context ? ckt_call_conn_of((unsigned)context->device) : ckt_call_conn;
}

unsigned ckt_client_context_node(uint64_t context)
{
	return ckt_client_context_conn(context)->number;
}

struct ckt_conn *ckt_client_object_conn(uint64_t id, enum ckt_kind kind)
{
	const struct ckt_cudacommon_object *object = ckt_cudacommon_object_find(id, kind);
	return object ? ckt_client_context_conn(object->context) : ckt_call_conn;
}

struct ckt_conn *ckt_client_address_conn(uint64_t address)
{
	struct ckt_client_range range;
	return ckt_range_find(address, &range) && ckt_range_reaches_device(&range)
		? ckt_client_context_conn(range.context)
		: ckt_call_conn;
}

struct ckt_route ckt_route_to_context(uint64_t context)
{
	struct ckt_route route = {.away = ckt_client_context_conn(context) != ckt_call_conn,
		.context = ckt_call_context,
		.conn = ckt_call_conn};
	if (route.away)
		ckt_client_context_use(context);
	return route;
}

struct ckt_route ckt_route_to_object(uint64_t id, enum ckt_kind kind)
{
	const struct ckt_cudacommon_object *object = ckt_cudacommon_object_find(id, kind);
	return object ? ckt_route_to_context(object->context) : (struct ckt_route){0};
}

struct ckt_route ckt_route_to_address(uint64_t address)
{
	struct ckt_client_range range;
	return ckt_range_find(address, &range) ? ckt_route_to_context(range.context)
					       : (struct ckt_route){0};
}

struct ckt_route ckt_route_to_device(CUdevice device)
{
	return ckt_route_to_conn(ckt_client_device_get(device, NULL)
			? ckt_call_conn_of((unsigned)device)
			: ckt_call_conn);
}

struct ckt_route ckt_route_to_conn(struct ckt_conn *conn)
{
	struct ckt_route route = {
		.away = conn != ckt_call_conn, .context = ckt_call_context, .conn = ckt_call_conn};
	if (route.away) {
		/* The thread's context is not on that server. */
		ckt_call_context = 0;
		ckt_call_conn = conn;
	}
	return route;
}

struct ckt_route ckt_route_to_pool(uint64_t pool)
{
	uint32_t slot = ckt_handle_slot(pool);
	const struct ckt_cudacommon_object *object =
		ckt_cudacommon_object_find(pool, CKT_KIND_POOL);
	if (object)
		slot = ckt_handle_slot(object->context);
	return slot ? ckt_route_to_device((CUdevice)slot - 1) : (struct ckt_route){0};
}
