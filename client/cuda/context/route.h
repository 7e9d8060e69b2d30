/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the connection of each call if the program uses several servers (client/conn/nodes.c): by
 * default, the connection to the current context's device.
 *
 * A handle or an address may belong to a device of another server.  While a function uses it, the
 * function's calls go to that server, as if the program had made the owner's context current:
 *
 *	CUresult cuStreamQuery(CUstream stream)
 *	{
 *		CKT_ROUTE_STREAM(stream);
 *		...	calls go to the stream's server
 *	}
 *
 * With one server, each of these macros costs one load and one compare.
 */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

#include "client/conn/call.h"
#include "cudacommon/object.h"
#include "rpc/handle.h"

struct ckt_route {
	bool away;
	uint64_t context; /* the context to return to */
	struct ckt_conn *conn;
};

/* Makes the thread's next calls use the context (0: none), without checks. */
void ckt_client_context_use(uint64_t context);
/*
 * The connection to the context's device.  For 0 and for an invalid context: the current
 * connection.
 */
struct ckt_conn *ckt_client_context_conn(uint64_t context);
/* The connection of an object's context, for an object of any kind. */
struct ckt_conn *ckt_client_object_conn(uint64_t id, enum ckt_kind kind);
/*
 * The connection to the server that has the address.  For the program's own memory: the current
 * connection.
 */
struct ckt_conn *ckt_client_address_conn(uint64_t address);

/* The number of the context's server. */
unsigned ckt_client_context_node(uint64_t context);

struct ckt_route ckt_route_to_context(uint64_t context);
struct ckt_route ckt_route_to_object(uint64_t id, enum ckt_kind kind);
struct ckt_route ckt_route_to_address(uint64_t address);
/* The thread then has no context. */
struct ckt_route ckt_route_to_device(CUdevice device);
struct ckt_route ckt_route_to_pool(uint64_t pool);
struct ckt_route ckt_route_to_conn(struct ckt_conn *conn);

static inline void ckt_route_back(struct ckt_route *route)
{
	if (__builtin_expect(route->away, 0)) {
		ckt_call_context = route->context;
		ckt_call_conn = route->conn;
	}
}

#define CKT_ROUTE(call)                                                         \
	__attribute__((cleanup(ckt_route_back))) struct ckt_route route_ = {0}; \
	if (__builtin_expect(ckt_conn_count > 1, 0))                            \
	route_ = call

#define CKT_ROUTE_CONTEXT(id) CKT_ROUTE(ckt_route_to_context(id))
#define CKT_ROUTE_STREAM(stream) \
	CKT_ROUTE(ckt_route_to_object(ckt_handle_id(stream), CKT_KIND_STREAM))
#define CKT_ROUTE_EVENT(event) CKT_ROUTE(ckt_route_to_object(ckt_handle_id(event), CKT_KIND_EVENT))
#define CKT_ROUTE_ADDRESS(address) CKT_ROUTE(ckt_route_to_address(address))
#define CKT_ROUTE_DEVICE(device) CKT_ROUTE(ckt_route_to_device(device))
