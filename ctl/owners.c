/* SPDX-License-Identifier: Apache-2.0 */
/* The names of owners; see owners.h. */
#include "ctl/owners.h"

#include <stdio.h>
#include <string.h>

#include "ctl/server.h"
#include "rpc/identity.h"
#include "rpc/net.h"

enum { TIMEOUT_MS = 15000 };

void ckt_ctl_owners_read(const struct ckt_ctl_args *args, const uint32_t *numbers, unsigned count,
	struct ckt_ctl_owners *ret_owners)
{
	struct ckt_ctl_server server;
	ckt_control_owners_args call = {.owners = {count, (u_int *)numbers}};
	*ret_owners = (struct ckt_ctl_owners){0};
	if (!count || ckt_ctl_connect(args, &server) != CKT_EXIT_DONE)
		return;
	if (ckt_net_call(server.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_OWNERS,
		    (xdrproc_t)xdr_ckt_control_owners_args, &call,
		    (xdrproc_t)xdr_ckt_control_owners_res, &ret_owners->res,
		    ckt_net_now_ms() + TIMEOUT_MS, -1))
		memset(&ret_owners->res, 0, sizeof ret_owners->res);
	ckt_ctl_disconnect(&server);
}

const char *ckt_ctl_owner_name(struct ckt_ctl_owners *owners, unsigned n, uint32_t number)
{
	if (n < owners->res.owners.owners_len && *owners->res.owners.owners_val[n].name)
		return owners->res.owners.owners_val[n].name;
	snprintf(owners->fallback, sizeof owners->fallback, "uid:%u", number);
	return number == CKT_UID_UNKNOWN || number >> 31 ? "-" : owners->fallback;
}

const char *ckt_ctl_owner_project(const struct ckt_ctl_owners *owners, unsigned n)
{
	return n < owners->res.owners.owners_len ? owners->res.owners.owners_val[n].project : "";
}

void ckt_ctl_owners_free(struct ckt_ctl_owners *owners)
{
	xdr_free((xdrproc_t)xdr_ckt_control_owners_res, (char *)&owners->res);
}
