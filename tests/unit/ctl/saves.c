/* SPDX-License-Identifier: Apache-2.0 */
/* See saves.h. */
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/wire.h"
#include "saves.h"

#include <rpc/rpc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

uint8_t save_id;
ckt_control_save_res save_res;
struct saved saves[64];
unsigned save_count;
bool stale_once;

static bool save(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	ckt_control_save_args asked = {0};
	char ancestors[2] = "";
	if (ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_save_args, &asked))
		return false;
	struct saved *s = &saves[save_count++ % COUNT(saves)];
	*s = (struct saved){.incremental = asked.incremental,
		.hold = asked.hold,
		.keep_hashes = asked.keep_hashes,
		.compress = asked.compress,
		.to_memory = asked.to_memory,
		.deadline_ms = asked.deadline_ms,
		.base = asked.base[0]};
	memcpy(s->id, asked.base, sizeof s->id);
	snprintf(s->stage, sizeof s->stage, "%s", asked.stage);
	if (stale_once) {
		static ckt_control_save_res stale;
		stale = (ckt_control_save_res){
			.result = {CKT_CONTROL_REFUSED, (char *)"not the last"},
			.session = (char *)"0123456789ab",
			.stale = true};
		stale_once = false;
		xdr_free((xdrproc_t)xdr_ckt_control_save_args, (char *)&asked);
		*ret_xdr = (xdrproc_t)xdr_ckt_control_save_res;
		*ret_res = &stale;
		return true;
	}
	if (asked.incremental)
		ancestors[0] = asked.base[0];
	if (fd >= 0 && save_res.result.status == CKT_CONTROL_OK)
		image_in(fd, save_id, ancestors);
	memset(save_res.image, save_id, sizeof save_res.image);
	save_id++;
	xdr_free((xdrproc_t)xdr_ckt_control_save_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_save_res;
	*ret_res = &save_res;
	return true;
}

void saves_begin(void)
{
	begin();
	save_id = 'a';
	save_count = 0;
	save_res = (ckt_control_save_res){.result = {CKT_CONTROL_OK, (char *)""},
		.session = (char *)"0123456789ab",
		.bytes = 10,
		.memory_bytes = 1000,
		.changed_bytes = 100,
		.stopped_us = 3};
	replies[CKT_CONTROL_SAVE].answer = save;
}
